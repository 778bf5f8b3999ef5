//! What becomes of a live context over a talk of some length.

use epitome::live::{Context, Said, Setup};
use epitome_model::{Block, Tokens};
use epitome_passes::{Event, Recipe, Why};
use epitome_tokens::Estimate;

/// Results of all but the last message become stubs.
const CLEARING: &str = r#"
    name = "clearing"
    about = "Clears all results but those of the last message."
    keep = { messages = 1 }
    passes = [{ pass = "results", style = "cleared" }]
    live = { trigger = { tokens = 3_000 }, reserve = 0 }
"#;

fn setup(recipe: &str) -> Setup {
    Setup::new(Recipe::parse(recipe).expect("a recipe")).with_counter(Estimate::new())
}

fn lines(name: &str, n: usize) -> String {
    (0..n).map(|n| format!("line {n} of {name} says something\n")).collect()
}

fn read(context: &mut Context, name: &str, n: usize) {
    let arguments = format!(r#"{{"path":"{name}"}}"#);
    context.assistant(&[Said::call(name, "Read", arguments)]).expect("a disk");
    context.tool(&[Said::output(name, lines(name, n))]).expect("a disk");
}

fn results(context: &Context) -> Vec<String> {
    let view = context.as_it_is();
    let blocks = view.transcript().context().flat_map(|(_, entry)| &entry.blocks);
    let texts = blocks.filter_map(|block| match block {
        Block::Output(output) => Some(output.text(view.source())),
        _ => None,
    });
    texts.collect()
}

#[test]
fn what_somebody_took_back_is_not_compacted_again_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("talk.jsonl");
    let setup = || setup(CLEARING).with_window(Tokens(9_000));
    let mut context = Context::create(&path, setup()).expect("a log");
    context.user("Read them all.").expect("a disk");
    for n in 0..5 {
        read(&mut context, &format!("{n}.rs"), 100);
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
    // Nor by who goes on with the log, nor because a provider counts otherwise.
    drop(context);
    let mut context = Context::open(&path, setup()).expect("a log");
    context.billed(Tokens(tokens.0 * 5 / 4));
    read(&mut context, "5.rs", 1);
    context.view().expect("a disk");
    assert_eq!((results(&context).len(), context.report().compactions), (6, 0));
    assert_eq!(results(&context)[..5], before[..]);
    assert!(!context.events().iter().any(|it| matches!(it, Event::Started { .. })));
    // But when it has grown, or when it is full, or when somebody asks.
    drop(context);
    let grown = |context: &mut Context| read(context, "6.rs", 30);
    let full = |context: &mut Context| context.billed(Tokens(9_001));
    let asked = |context: &mut Context| context.ask_for_compaction(None, None);
    let all: [(&dyn Fn(&mut Context), Why); 3] =
        [(&grown, Why::Trigger), (&full, Why::Hard), (&asked, Why::Manual)];
    for (happens, expect) in all {
        let copy = folder.path().join("copy.jsonl");
        std::fs::copy(&path, &copy).expect("a disk");
        let mut context = Context::open(&copy, setup()).expect("a log");
        happens(&mut context);
        context.view().expect("a disk");
        assert_eq!(context.report().compactions, 1, "{expect:?}");
        let started = matches!(context.events()[0], Event::Started { why, .. } if why == expect);
        assert!(started, "{expect:?}");
    }
}
