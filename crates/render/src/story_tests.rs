use epitome_model::ToolKind::Read;
use samples::Sample;

use super::*;
use crate::testing::{every_block, told};

/// The pieces of a story: turn, item, kind; `=` before what is part of the answer.
fn pieces(sample: &Sample, detail: Detail) -> Vec<String> {
    told(sample, detail, |story| {
        let mut lines = Vec::new();
        for (number, turn) in story.turns.iter().enumerate() {
            for idx in turn.pieces.clone() {
                let piece = &story.pieces[idx];
                let what = match piece.what {
                    What::Words(_) => "words",
                    What::Summary(_) => "summary",
                    What::Thinking(_) => "thinking",
                    What::Call(_, None) => "open call",
                    What::Call(_, Some(_)) => "call",
                    What::Result(_) => "result",
                    What::Image(_) => "image",
                    What::Opaque(_) => "opaque",
                };
                let answer = if idx >= turn.answer { "=" } else { "" };
                lines.push(format!("{number} {answer}{} {what}", piece.item));
            }
        }
        lines
    })
}

#[test]
fn a_story_has_turns_steps_and_answers() {
    let expect = [
        "0 0 words",
        "0 1 thinking",
        "0 2 call",
        "0 5 call",
        "0 7 call",
        "0 =9 words",
        "1 10 words",
        "1 11 image",
        "1 12 call",
        "1 =14 words",
    ];
    assert_eq!(pieces(&every_block(), Detail::Steps), expect);
}

#[test]
fn less_detail_leaves_steps_out() {
    let calls = ["0 0 words", "0 2 call", "0 5 call", "0 7 call", "0 =9 words"];
    assert_eq!(pieces(&every_block(), Detail::Calls)[..5], calls);
    let conversation = ["0 0 words", "0 =9 words", "1 10 words", "1 11 image", "1 =14 words"];
    assert_eq!(pieces(&every_block(), Detail::Conversation), conversation);
}

#[test]
fn a_result_is_shown_with_its_call_or_alone() {
    let sample = Sample::new().user("Go.").output("lost").call(Read, "/p/a");
    assert_eq!(pieces(&sample, Detail::Steps), ["0 0 words", "0 1 result", "0 2 open call"]);
}

#[test]
fn messages_of_the_agent_and_empty_texts_are_left_out() {
    let sample = Sample::new().user("Go.").system("A reminder.").reply("  ").summary("In short.");
    assert_eq!(pieces(&sample, Detail::Calls), ["0 0 words", "0 3 summary"]);
    let all = ["0 0 words", "0 1 words", "0 3 summary"];
    assert_eq!(pieces(&sample, Detail::Steps), all);
}

#[test]
fn what_a_resume_does_not_send_is_on_another_branch() {
    let sample = Sample::new().user("One.").reply("Left.").reply("Sent.");
    let mut transcript = sample.transcript().clone();
    transcript.context = vec![0, 2];
    let session = told(&sample, Detail::Steps, |story| {
        let sub_agents = story.session.sub_agents.clone();
        let session = Session { transcript: &transcript, sub_agents: &sub_agents, ..story.session };
        Story::new(session).pieces.iter().map(|piece| piece.told).collect::<Vec<_>>()
    });
    assert_eq!(session, [Told::Main, Told::Aside, Told::Main]);
}

#[test]
fn a_title_is_the_first_words_of_the_user_on_one_line() {
    let title = |sample: &Sample| told(sample, Detail::Steps, |story| story.title());
    assert_eq!(title(&Sample::new().reply("Hi.").user("Do\n\u{202e}it.")), "Do \\u{202e}it.");
    assert_eq!(title(&Sample::new().reply("Hi.")), "A session without words");
}
