use epitome_model::{Block, StopReason, Tokens};
use epitome_passes::{Event, Recipe, built_in};

use super::super::{MessagePart, Setup};
use super::*;
use crate::journal::Nowhere;

/// A context near its trigger, in a window of 30,000 tokens of which 15,000 are reserved for the
/// response.
fn near(recipe: Recipe) -> Context {
    let mut context = Context::in_memory(Setup::new(recipe).with_window(Tokens(30_000)));
    context.user("Never rename what is public. Read all.").expect("memory");
    for n in 0..40 {
        if context.machine.clone().should_prepare(&context.gauge()) {
            break;
        }
        more(&mut context, n);
    }
    assert_eq!(context.step().expect("memory"), Next::Send);
    context.events();
    context
}

fn more(context: &mut Context, n: usize) {
    let id = n.to_string();
    let call = MessagePart::call(id.clone(), "Read", format!(r#"{{"path":"src/part_{n}.rs"}}"#));
    context.assistant(&[call]).expect("memory");
    let line = |line: usize| format!("let value_{n}_{line} = computeAll(input, {line})?;\n");
    let text: String = (0..60).map(line).collect();
    context.tool(&[MessagePart::output(id, text)]).expect("memory");
}

fn recipe(name: &str) -> Recipe {
    let mut recipe = built_in(name).expect("a built-in recipe");
    recipe.live.background = true;
    recipe
}

/// The texts of the blocks that the context sends.
fn texts(context: &Context) -> Vec<String> {
    let (transcript, source) = (context.transcript(), context.log.bytes());
    let blocks = transcript.context().flat_map(|(_, entry)| &entry.blocks);
    let text = |block: &Block| match block {
        Block::Text(text) | Block::Summary(text) => text.read(source).into_owned(),
        Block::Output(output) => output.text(source),
        block => format!("{block:?}"),
    };
    blocks.map(text).collect()
}

/// Works until the preparation is done, and answers its questions.
fn worked(mut prepared: Preparation) -> Preparation {
    prepared.work();
    while let Some(question) = prepared.question() {
        let headings = question.ask.prompt.lines().filter(|line| line.starts_with("## "));
        let text: String = headings.map(|line| format!("{line}\nIt goes on.\n")).collect();
        prepared.answer(Ok(Reply { text, stopped: StopReason::End, used: None }));
        prepared.work();
    }
    assert!(prepared.is_done());
    prepared
}

/// A recipe with which only a summary makes the context small.
fn summary() -> Recipe {
    let mut summary = recipe("ion");
    summary.keep.messages = None;
    summary.stages.live.passes.clear();
    summary
}

#[test]
fn what_was_prepared_comes_to_what_the_same_compaction_at_that_moment_comes_to() {
    for name in ["epitome", "digest", "ion"] {
        let mut context = near(recipe(name));
        let prepared = worked(context.prepare().expect("it is time"));
        let expect = texts(&prepared.copy);
        assert_ne!(expect, texts(&context), "{name}");
        context.user("Go on, then.").expect("memory");
        more(&mut context, 99);
        let behind = texts(&context).split_off(texts(&context).len() - 3);
        let before = context.usage().tokens;
        assert!(context.swap(prepared).expect("memory"), "{name}");
        assert_eq!(texts(&context), [expect, behind].concat(), "{name}");
        // The adopted compaction is reported, can be undone, and is in the log.
        let events = context.events();
        let [
            Event::Started { why: EventReason::Background, .. },
            Event::Finished { why, after, .. },
        ] = &events[..]
        else {
            panic!("{name}: {events:?}")
        };
        assert_eq!((*why, *after), (EventReason::Background, context.usage().tokens), "{name}");
        assert!(*after < before, "{name}");
        let read = (epitome_formats::epitome::FORMAT.read)(&context.log(), &mut ());
        assert_eq!(read.context, context.transcript().context, "{name}");
        while context.undo().expect("memory") {}
        assert_eq!(context.usage().tokens, before, "{name}");
    }
}

/// Messages that were added since the preparation are sent after a summary of the whole context.
#[test]
fn a_summary_of_everything_is_put_before_what_was_said_since() {
    let mut context = near(summary());
    let prepared = worked(context.prepare().expect("it is time"));
    let last = prepared.copy.attempt.steps.iter().flatten().next_back();
    let Some(PreparedStep::Apply { plan, .. }) = last else { panic!("{last:?}") };
    assert_eq!(plan.summary().map(|summary| &*summary.kept), Some(&[][..]));
    context.user("Go on, then.").expect("memory");
    assert!(context.swap(prepared).expect("memory"));
    let texts = texts(&context);
    assert_eq!((texts.len(), &*texts[1]), (2, "Go on, then."));
}

#[test]
fn what_was_prepared_of_another_context_is_dropped_without_harm() {
    type Change = fn(&mut Context);
    let changes: [(&str, Change); 3] = [
        ("compacted", |context| drop(context.compact_to(None, Some(Tokens(0))))),
        ("compacted and back", |context| {
            context.compact_to(None, Some(Tokens(0))).expect("memory");
            more(context, 90);
            context.compact_to(None, Some(Tokens(0))).expect("memory");
            context.undo().expect("memory");
        }),
        ("another log", |context| {
            let text = String::from_utf8_lossy(context.log()).replace("part_0", "part_x");
            let setup = Setup::new(recipe("digest")).with_window(Tokens(30_000));
            *context = Context::resume(text.into(), Box::new(Nowhere), setup).expect("a log");
        }),
    ];
    for (what, change) in changes {
        let mut context = near(recipe("digest"));
        let prepared = worked(context.prepare().expect("it is time"));
        change(&mut context);
        context.events();
        let log = context.log().to_vec();
        assert!(!context.swap(prepared).expect("memory"), "{what}");
        assert_eq!(context.log(), log, "{what}");
        assert_eq!(context.events(), [], "{what}");
    }
    // A preparation that is not done, or that failed, is not adopted either.
    let mut context = near(recipe("digest"));
    let log = context.log().to_vec();
    let prepared = context.prepare().expect("it is time");
    assert_eq!(context.prepare(), None, "once");
    assert!(!context.swap(prepared).expect("memory"));
    let mut failing = near(summary());
    let mut prepared = failing.prepare().expect("it is time");
    prepared.work();
    prepared.answer(Err(NoReply::Failed("down".into())));
    prepared.work();
    assert!(prepared.is_done());
    assert!(!failing.swap(prepared).expect("memory"));
    assert_eq!(failing.report().summaries.failed, 1);
    assert_eq!(context.log(), log);
}

#[test]
fn a_question_was_asked_also_between_an_answer_and_the_next_question() {
    let mut prepared = near(summary()).prepare().expect("it is time");
    assert!(!prepared.has_asked());
    prepared.work();
    // A shorter question follows.
    prepared.answer(Err(NoReply::TooLong));
    assert_eq!((prepared.question(), prepared.has_asked()), (None, true));
}

/// If the provider has counted a context, then after a swap the context counts the same tokens as a
/// context that is resumed from its log.
#[test]
fn a_context_that_was_compacted_in_the_background_counts_as_one_that_is_read_again() {
    let mut context = near(recipe("digest"));
    let prepared = worked(context.prepare().expect("it is time"));
    more(&mut context, 99);
    assert!(context.swap(prepared).expect("memory"));
    let setup = Setup::new(recipe("digest")).with_window(Tokens(30_000));
    let again = Context::resume(context.log().to_vec(), Box::new(Nowhere), setup);
    assert_eq!(again.expect("a log").usage(), context.usage());
}
