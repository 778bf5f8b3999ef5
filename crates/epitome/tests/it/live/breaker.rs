//! When the context of a running agent stops trying to compact, and when it tries again: after
//! failed summaries, passes whose result breaks an invariant, and requests that stay too long.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use epitome::live::{Context, MessagePart, Next, Recovery, Setup};
use epitome_model::{Counter, Tokens};
use epitome_passes::{Event, NoReply, Recipe, Writer};
use epitome_tokens::Estimate;

use super::{custom, describe, lines, read, read_lines, reply, rule, setup};

/// A recipe with nothing but a summary of all but the last message.
const TELLING: &str = r#"
    name = "telling"
    about = "Tells of all but the last message."
    passes = []
    keep = { messages = 1 }
    live = { trigger = { tokens = 3_000 }, reserve = 0, summary = { sections = "pi" } }
"#;

/// The behaviour of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Is {
    Ill,
    Well,
}

/// Runs a context until no compaction is due. Returns how often the model was called, and the
/// reported failures.
fn due(context: &mut Context, model: Is) -> (u32, Vec<String>) {
    let mut asked = 0;
    while let Next::Ask(_) = context.step().expect("memory is written") {
        asked += 1;
        let answer = match model {
            Is::Ill => Err(NoReply::Failed("no answer in time".into())),
            Is::Well => Ok(reply(&rule("pi"), "Files were read.")),
        };
        context.answer(answer).expect("memory is written");
    }
    let reasons_given = context.events().into_iter().filter_map(|event| match event {
        Event::Failed { reason, .. } | Event::Breaker { reason, .. } => Some(reason),
        _ => None,
    });
    (asked, reasons_given.collect())
}

fn says(context: &mut Context, words: usize) {
    context.assistant(&[MessagePart::text("word ".repeat(words))]).expect("memory is written");
    context.user("Go on.").expect("memory is written");
}

fn talk(recipe: Recipe) -> Context {
    let setup = Setup::new(recipe).with_counter(Estimate::new()).with_window(Tokens(9_000));
    let mut context = Context::in_memory(setup);
    context.user("Read them all.").expect("memory is written");
    let mut n = 0;
    while context.usage().tokens < Tokens(3_200) {
        read_lines(&mut context, &format!("{n}.rs"), 40);
        says(&mut context, 20);
        n += 1;
    }
    context
}

#[test]
fn one_failed_summary_silences_none_of_a_model_that_is_well_again() {
    let clears =
        TELLING.replace("passes = []", r#"passes = [{ pass = "results", style = "cleared" }]"#);
    for recipe in [TELLING, clears.as_str()] {
        let recipe = Recipe::parse(recipe).expect("a recipe");
        let failed = || (1, vec!["no answer in time".to_owned()]);
        let mut context = talk(recipe);
        assert_eq!(due(&mut context, Is::Ill), failed());
        let before = context.usage().tokens;
        // The context is not compacted again until it has grown beyond what the passes left.
        let grown = (before.0 * 105 / 100).max(3_000);
        while context.usage().tokens <= Tokens(grown) {
            says(&mut context, 200);
        }
        let before = context.usage().tokens;
        assert_eq!(due(&mut context, Is::Well), (1, Vec::new()));
        assert!(context.usage().tokens.0 < before.0 / 2, "{}", context.usage().tokens);
        // The model is called again only when the context is larger than 3,000 tokens.
        while context.usage().tokens <= Tokens(3_000) {
            assert_eq!(due(&mut context, Is::Well), (0, Vec::new()));
            says(&mut context, 200);
        }
        assert_eq!(due(&mut context, Is::Well), (1, Vec::new()));
    }
}

#[test]
fn three_failed_summaries_are_told_and_the_next_is_asked_when_the_context_has_grown() {
    let mut context = talk(Recipe::parse(TELLING).expect("a recipe"));
    let failed = "no answer in time".to_owned();
    assert_eq!(due(&mut context, Is::Ill), (1, vec![failed.clone()]));
    assert_eq!(due(&mut context, Is::Ill), (1, vec![failed.clone()]));
    let reasons_given = vec![failed.clone(), "3 summaries failed".to_owned()];
    assert_eq!(due(&mut context, Is::Ill), (1, reasons_given));
    assert_eq!(due(&mut context, Is::Well), (0, Vec::new()));
    let before = context.usage().tokens;
    says(&mut context, 200);
    assert!(context.usage().tokens.0 * 100 >= before.0 * 105, "it has grown");
    // When the model fails again, the context waits again.
    assert_eq!(due(&mut context, Is::Ill), (1, vec![failed]));
    assert_eq!(due(&mut context, Is::Well), (0, Vec::new()));
    says(&mut context, 250);
    assert_eq!(due(&mut context, Is::Well), (1, Vec::new()));
    assert!(context.usage().tokens < Tokens(1_500), "{}", context.usage().tokens);
}

/// A counter that counts every stub as longer than any result, except the first two times: so a
/// pass plans the edit, and its result then is larger.
struct Growing(AtomicU64);

impl Counter for Growing {
    fn name(&self) -> &'static str {
        "growing"
    }

    fn count(&self, text: &str) -> Tokens {
        let more = text.contains("[epitome k");
        let times = self.0.fetch_add(u64::from(more), Ordering::Relaxed);
        Estimate::new().count(text) + Tokens(1_000_000 * u64::from(times > 1 && more))
    }
}

#[test]
fn an_overflow_whose_passes_are_refused_is_told_and_loses_nothing() {
    let recipe = Recipe::parse(
        r#"
            name = "clearing"
            about = "Clears all results but those of the last message."
            keep = { messages = 1 }
            passes = [{ pass = "results", style = "cleared" }]
        "#,
    );
    let setup = Setup::new(recipe.expect("a recipe")).with_counter(Growing(AtomicU64::new(0)));
    let mut context = Context::in_memory(setup);
    context.user("Read it.").expect("memory is written");
    read(&mut context, 0, "a.rs", &lines("a.rs", 200));
    says(&mut context, 20);
    let before = describe(&context.unchanged_view());
    let recovery =
        context.recover_from_refusal(Some(413), "").expect("a refusal by an invariant is no error");
    assert!(matches!(recovery, Recovery::Retry { .. }), "a digest takes their place: {recovery:?}");
    let events = context.events();
    let failed = events.iter().filter_map(|event| match event {
        Event::Failed { reason, .. } => Some(&**reason),
        _ => None,
    });
    let failed: Vec<&str> = failed.collect();
    assert!(failed.contains(&"a block has more tokens than it had (growth)"), "{events:?}");
    assert!(context.undo().expect("memory is written"));
    assert_eq!(describe(&context.unchanged_view()), before);
    assert_eq!(context.report().compactions, 0);
}

#[test]
fn a_recovery_is_final_if_nothing_that_takes_the_place_of_a_summary_makes_it_smaller() {
    let (first, long) = (lines("what is to be done", 100), lines("what is to be read", 2_000));
    let words = "word ".repeat(4_000);
    for (model, user, said, last, fits) in [
        (Is::Ill, &*first, &*words, "Go on.", true),
        (Is::Well, &*first, &*words, "Go on.", true),
        (Is::Ill, "Hear me.", "Yes.", &*long, false),
    ] {
        let writer = Writer { window: Tokens(50_000), counter: Arc::new(Estimate::new()) };
        let mut context = Context::in_memory(custom(TELLING).with_writer(writer));
        context.user(user).expect("memory is written");
        context.assistant(&[MessagePart::text(said)]).expect("memory is written");
        context.user(last).expect("memory is written");
        let outcome = context.recover_from_refusal(Some(413), "").expect("memory is written");
        assert!(matches!(outcome, Recovery::Summarise { .. }), "{outcome:?}");
        due(&mut context, model);
        let recovered = context.recovery_result(outcome.clone());
        if fits {
            assert_eq!(recovered, outcome, "{model:?}");
        } else {
            let Recovery::Final { because } = recovered else { panic!("{recovered:?}") };
            assert!(because[0].starts_with("words of the user: "), "{because:?}");
        }
    }
    let context = Context::in_memory(setup("pi", 9_000));
    let retry = Recovery::Retry { before: Tokens(2), after: Tokens(1) };
    assert_eq!(context.recovery_result(retry.clone()), retry);
}
