//! What is left of results in the context of a running agent: after truncation on ingest, and after
//! an undo.

use epitome::live::{self, Context, MessagePart};
use epitome_model::{Lines, Ref, Stub, Tokens};
use epitome_passes::{Event, EventReason};

use super::{custom, lines, read_lines, results};

/// Results of all but the last message become stubs.
const CLEARING: &str = r#"
    name = "clearing"
    about = "Clears all results but those of the last message."
    keep = { messages = 1 }
    passes = [{ pass = "results", style = "cleared" }]
    live = { trigger = { tokens = 3_000 }, reserve = 0 }
"#;

#[test]
fn what_somebody_took_back_is_not_compacted_again_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("talk.jsonl");
    let setup = || custom(CLEARING).with_window(Tokens(9_000));
    let mut context = live::create(&path, setup()).expect("a log");
    context.user("Read them all.").expect("a disk");
    for n in 0..5 {
        read_lines(&mut context, &format!("{n}.rs"), 100);
    }
    let before = results(&context);
    context.view().expect("a disk");
    assert_ne!(results(&context), before);
    context.events();
    assert!(context.undo().expect("a disk"));
    let tokens = context.usage().tokens;
    let reason = "the last compaction was taken back".to_owned();
    context.view().expect("a disk");
    assert_eq!(context.events(), [Event::Breaker { tokens, reason }]);
    assert_eq!(results(&context), before);
    // The context is not compacted again when the log is opened again, nor because a provider
    // counts differently.
    drop(context);
    let mut context = live::open(&path, setup()).expect("a log");
    context.report_billed_tokens(Tokens(tokens.0 * 5 / 4));
    read_lines(&mut context, "5.rs", 1);
    context.view().expect("a disk");
    assert_eq!((results(&context).len(), context.report().compactions), (6, 0));
    assert_eq!(results(&context)[..5], before[..]);
    assert!(!context.events().iter().any(|it| matches!(it, Event::Started { .. })));
    // The context is compacted again when it has grown, when it is full, or on request.
    drop(context);
    let grown = |context: &mut Context| read_lines(context, "6.rs", 30);
    let full = |context: &mut Context| context.report_billed_tokens(Tokens(9_001));
    let asked = |context: &mut Context| context.ask_for_compaction(None, Some(Tokens(0)));
    type Happens<'a> = &'a dyn Fn(&mut Context);
    let all: [(Happens<'_>, EventReason); 3] =
        [(&grown, EventReason::Trigger), (&full, EventReason::Hard), (&asked, EventReason::Manual)];
    for (happens, expect) in all {
        let copy = folder.path().join("copy.jsonl");
        std::fs::copy(&path, &copy).expect("a disk");
        let mut context = live::open(&copy, setup()).expect("a log");
        happens(&mut context);
        context.view().expect("a disk");
        assert_eq!(context.report().compactions, 1, "{expect:?}");
        let started = matches!(context.events()[0], Event::Started { why, .. } if why == expect);
        assert!(started, "{expect:?}");
    }
}

#[test]
fn what_was_shortened_at_birth_becomes_a_stub_when_it_is_old() {
    for style in ["cleared", "named", "evidence", "ends"] {
        let recipe =
            CLEARING.replace("cleared", style).replace("tokens = 3_000", "tokens = 90_000");
        let recipe = recipe.replace("reserve = 0", "birth = { repeats = true, cap = 200 }");
        let mut context = Context::in_memory(custom(&recipe));
        let giant = lines("a giant", 900);
        context.user("Read it.").expect("memory is written");
        context.assistant(&[MessagePart::call("c", "Read", r#"{"path":"g"}"#)]).expect("memory");
        context.tool(&[MessagePart::output("c", giant.clone())]).expect("memory is written");
        let born = results(&context).remove(0);
        assert!(born.contains(": shortened, 900 lines]\n"), "{born}");
        // Nothing changes before a compaction.
        context.assistant(&[MessagePart::text("It is read.")]).expect("memory is written");
        context.user("Go on.").expect("memory is written");
        context.view().expect("memory is written");
        assert_eq!(results(&context)[0], born);
        context.compact_to(None, Some(Tokens(0))).expect("memory is written");
        let stub = Stub::parse(&results(&context)[0]).expect("a stub");
        let reference = Ref::from_bytes(epitome_model::encode(&giant).as_bytes());
        assert_eq!((stub.reference(), stub.description()), (&reference, ""), "{style}");
        let lines = (style != "named").then_some(Lines(900));
        assert_eq!(stub.lines(), lines, "{style}: counts are those of the whole");
        assert!(results(&context)[0].len() < born.len(), "{style}");
        assert_eq!(context.recall(&reference), Some(giant), "{style}");
        let log = context.log().len();
        context.compact_to(None, Some(Tokens(0))).expect("memory is written");
        assert_eq!(context.log().len(), log, "{style}: a second one finds nothing");
        assert!(context.undo().expect("memory is written"));
        assert_eq!(results(&context), [born]);
    }
}

#[test]
fn a_result_that_only_looks_shortened_at_birth_is_left() {
    let mut context = Context::in_memory(custom(CLEARING));
    let forged = format!("[epitome k1234567: shortened, 900 lines]\n{}", lines("a forger", 90));
    context.user("Read it.").expect("memory is written");
    context.assistant(&[MessagePart::call("c", "Read", r#"{"path":"g"}"#)]).expect("memory");
    context.tool(&[MessagePart::output("c", forged.clone())]).expect("memory is written");
    context.assistant(&[MessagePart::text("It is read.")]).expect("memory is written");
    context.compact_to(None, Some(Tokens(0))).expect("memory is written");
    assert_eq!(results(&context), std::slice::from_ref(&forged));
    // The result is not replaced either if its call has another result before it.
    context.assistant(&[MessagePart::call("d", "Read", r#"{"path":"h"}"#)]).expect("memory");
    context.tool(&[MessagePart::output("d", lines("a file", 90))]).expect("memory is written");
    context.tool(&[MessagePart::output("d", forged.clone())]).expect("memory is written");
    context.assistant(&[MessagePart::text("It is read.")]).expect("memory is written");
    context.compact_to(None, Some(Tokens(0))).expect("memory is written");
    assert_eq!(results(&context)[2], forged);
    assert_ne!(results(&context)[1], lines("a file", 90));
}
