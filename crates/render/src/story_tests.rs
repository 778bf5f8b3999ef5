use epitome_model::ToolKind::Read;
use samples::Sample;

use super::*;
use crate::testing::{every_block, with_story};

/// The pieces of a story: index of the turn, item, kind; `=` before those that belong to the
/// answer.
fn pieces(sample: &Sample, detail: Detail) -> Vec<String> {
    with_story(sample, detail, |story| {
        let mut lines = Vec::new();
        for (number, turn) in story.turns.iter().enumerate() {
            for idx in turn.pieces.clone() {
                let piece = &story.pieces[idx];
                let what = match piece.what {
                    StoryItemKind::Words(_) => "words",
                    StoryItemKind::Summary(_) => "summary",
                    StoryItemKind::Thinking(_) => "thinking",
                    StoryItemKind::Call(_, None) => "open call",
                    StoryItemKind::Call(_, Some(_)) => "call",
                    StoryItemKind::Result(_) => "result",
                    StoryItemKind::Image(_) => "image",
                    StoryItemKind::Opaque(_) => "opaque",
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
    let session = with_story(&sample, Detail::Steps, |story| {
        let sub_agents = story.session.sub_agents.clone();
        let session =
            StorySession { transcript: &transcript, sub_agents: &sub_agents, ..story.session };
        Story::new(session).pieces.iter().map(|piece| piece.branch).collect::<Vec<_>>()
    });
    assert_eq!(session, [Branch::Main, Branch::Aside, Branch::Main]);
}

#[test]
fn a_title_is_the_first_words_of_the_user_on_one_line() {
    let title = |sample: &Sample| with_story(sample, Detail::Steps, |story| story.title());
    assert_eq!(title(&Sample::new().reply("Hi.").user("Do\n\u{202e}it.")), "Do \\u{202e}it.");
    assert_eq!(title(&Sample::new().reply("Hi.")), "A session without words");
}

#[test]
fn the_prompt_of_a_turn_is_what_the_user_said_at_its_beginning() {
    let sample = Sample::new().user("Go.").image(4).thinking("Hm.").reply("Done.").user("On.");
    let prompts = with_story(&sample, Detail::Steps, |story| {
        story.turns.iter().map(|turn| story.prompt(turn)).collect::<Vec<_>>()
    });
    assert_eq!(prompts, [0..2, 4..5]);
}

#[test]
fn the_turns_of_some_pieces_are_found() {
    with_story(&every_block(), Detail::Steps, |story| {
        let turns = |pieces: Range<usize>| {
            story.turns_on(&pieces).map(|turn| turn.number).collect::<Vec<_>>()
        };
        assert_eq!(turns(0..1), [1]);
        assert_eq!(turns(5..7), [1, 2]);
        assert_eq!(turns(6..99), [2]);
        assert_eq!(turns(6..6), [0; 0]);
    });
}

/// Turns are numbered as `epitome list` counts them, in every level of detail.
#[test]
fn turns_are_numbered_by_messages_of_the_user() {
    let sample = Sample::new().system("Rules.").user("One.").reply("Done.").user("Two.");
    let numbers = |detail| {
        with_story(&sample, detail, |story| {
            story.turns.iter().map(|it| it.number).collect::<Vec<_>>()
        })
    };
    assert_eq!(numbers(Detail::Full), [0, 1, 2]);
    assert_eq!(numbers(Detail::Conversation), [1, 2]);
}

#[test]
fn an_anchor_names_the_record_and_the_block_in_it() {
    let sample = Sample::new().user("One.").reply("Two.").with(|entry| {
        entry.blocks.push(Block::Text(Text::Owned("Three.".into())));
    });
    let anchors = with_story(&sample, Detail::Steps, |story| {
        story.pieces.iter().map(StoryItem::anchor).collect::<Vec<_>>()
    });
    assert_eq!(anchors, ["m0", "m1", "m1.1"]);
}

#[test]
fn a_prompt_is_only_told_in_full() {
    let sample = Sample::new().user("You are an agent.").user("Go.");
    let mut transcript = sample.transcript().clone();
    transcript.head.prompt = vec![0];
    let items = |detail| {
        with_story(&sample, detail, |story| {
            let session = StorySession { transcript: &transcript, ..story.session };
            let story = Story::new(session);
            story.pieces.iter().map(|piece| piece.item).collect::<Vec<_>>()
        })
    };
    assert_eq!(items(Detail::Steps), [1]);
    assert_eq!(items(Detail::Full), [0, 1]);
}

#[test]
fn a_piece_weighs_its_bytes_and_no_more_of_a_call_than_is_shown() {
    let long = "x".repeat(200 << 10);
    let sample = Sample::new().user("Go.").call(Read, &long).output(&long).image(40);
    let weights = with_story(&sample, Detail::Steps, |story| {
        story.pieces.iter().map(|piece| piece.weight).collect::<Vec<_>>()
    });
    // A text has two quotes, and each piece has 400 bytes of HTML around it.
    assert_eq!(weights, [400 + 5, 400 + (128 << 10) + (64 << 10), 400 + 42]);
}

#[test]
fn the_title_of_the_session_comes_before_its_first_words() {
    let sample = Sample::new().user("Go.");
    let title = |title: &str| {
        let mut transcript = sample.transcript().clone();
        transcript.head.title = Some(title.into());
        with_story(&sample, Detail::Steps, |story| {
            Story::new(StorySession { transcript: &transcript, ..story.session }).title()
        })
    };
    assert_eq!(title("A\tname\n"), "A name");
    assert_eq!(title(" "), "Go.");
}
