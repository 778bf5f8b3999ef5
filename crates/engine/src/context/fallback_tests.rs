use epitome_formats::find_format;
use epitome_model::{StopReason, Tokens};
use epitome_passes::{BUILT_IN, Event, NoReply, Recipe, Reply, built_in};
use epitome_tokens::Estimate;

use super::super::{Context, MessagePart, Next, Recovery, Setup};
use crate::journal::Nowhere;

/// A model that writes no useful summary.
#[derive(Clone, Copy, Debug)]
enum Bad {
    /// No model is configured.
    Absent,
    /// The model does not answer.
    Down,
    /// The model refuses every question as too long.
    TooLong,
    /// The model answers with this text, and gives this reason for stopping.
    Says(&'static str, fn() -> StopReason),
}

const BAD: [Bad; 8] = [
    Bad::Absent,
    Bad::Down,
    Bad::TooLong,
    Bad::Says("", || StopReason::End),
    Bad::Says("All is well, and the work goes on.", || StopReason::End),
    Bad::Says("## Goal\nFix the par", || StopReason::Length),
    Bad::Says("", || StopReason::Call),
    Bad::Says("I cannot do that.", || StopReason::Refused),
];

impl Bad {
    fn answer(self) -> Result<Reply, NoReply> {
        match self {
            Bad::Absent => Err(NoReply::NoModel),
            Bad::Down => Err(NoReply::Failed("no answer in time".into())),
            Bad::TooLong => Err(NoReply::TooLong),
            Bad::Says(text, stopped) => {
                Ok(Reply { text: text.into(), stopped: stopped(), used: None })
            }
        }
    }
}

const RULE: &str = "Fix the parser, and never touch vendor/.";

fn context(recipe: Recipe, window: u64) -> Context {
    let setup = Setup::new(recipe).with_counter(Estimate::new()).with_window(Tokens(window));
    let mut context = Context::in_memory(setup);
    context.user(RULE).expect("memory");
    context
}

/// Calls `step` until the context can be sent, and answers each question as the model does. Returns
/// the events.
fn request(context: &mut Context, model: Bad) -> Vec<Event> {
    while let Next::Ask(_) = context.step().expect("memory") {
        context.answer(model.answer()).expect("memory");
    }
    context.events()
}

fn fits(context: &Context, about: &str) {
    let usage = context.usage();
    assert!(Some(usage.tokens) <= usage.usable, "{about}: {usage:?}");
    let body = context.unchanged_view().body("anthropic").expect("an API").body.into_bytes();
    let format = find_format("anthropic").expect("an API");
    let read = (format.read)(&body, &mut ());
    assert_eq!(format.invariants.check(&read, &body), Vec::new(), "{about}");
}

fn lines(n: usize, lines: usize) -> String {
    (0..lines).map(|k| format!("let value_{n}_{k} = compute({});\n", n * k)).collect()
}

fn reads(context: &mut Context, n: usize, results: usize, length: usize) {
    let id = |k: usize| format!("c{n}x{k}");
    let mut parts =
        vec![MessagePart::text(format!("I read part {n}, and think of it. ").repeat(20))];
    let path = |k: usize| format!(r#"{{"path":"src/f{n}_{k}.rs"}}"#);
    parts.extend((0..results).map(|k| MessagePart::call(id(k), "Read", path(k))));
    context.assistant(&parts).expect("memory");
    let outputs = (0..results).map(|k| MessagePart::output(id(k), lines(n * 10 + k, length)));
    context.tool(&outputs.collect::<Vec<_>>()).expect("memory");
}

/// Plays a session in a window of this size, and checks that every request fits into it.
fn play(recipe: &str, model: Bad, window: u64) {
    let mut context = context(built_in(recipe).expect("a recipe"), window);
    let about = format!("{recipe} {model:?} {window}");
    for n in 0..15 {
        reads(&mut context, n, 1, 60);
        request(&mut context, model);
        fits(&context, &about);
        if n % 5 == 4 {
            context.assistant(&[MessagePart::text("It is so. ".repeat(200))]).expect("memory");
            context.user(&format!("Go on with part {n}.")).expect("memory");
            request(&mut context, model);
            fits(&context, &about);
        }
    }
    // New results that are larger than the window.
    reads(&mut context, 90, 6, 400);
    request(&mut context, model);
    fits(&context, &about);
    assert!(context.unchanged_view().messages().contains(RULE), "{about}");
}

#[test]
fn a_share_is_in_per_cent() {
    assert_eq!(super::share(Tokens(1_000), 45), Tokens(450));
}

#[test]
fn a_target_of_zero_means_that_all_is_removed_that_can_be() {
    for (target, expect) in [(0, None), (1, Some(Tokens(1))), (500, Some(Tokens(500)))] {
        let mut context = context(built_in("epitome").expect("a recipe"), 30_000);
        context.ask_for_compaction(None, Some(Tokens(target)));
        assert_eq!(context.machine.aim(), expect, "{target}");
    }
}

#[test]
fn no_recipe_runs_out_of_context_whatever_its_model_does() {
    for (name, _) in BUILT_IN {
        for model in BAD {
            play(name, model, 12_000);
        }
        play(name, Bad::Down, 30_000);
    }
}

#[test]
fn a_digest_in_place_of_a_summary_is_told_with_the_reason() {
    let mut context = context(built_in("pi").expect("a recipe"), 30_000);
    let mut all_events = Vec::new();
    for n in 0..20 {
        reads(&mut context, n, 1, 60);
        all_events.extend(request(&mut context, Bad::Down));
    }
    let reasons = all_events.iter().filter_map(|event| match event {
        Event::Finished { no_summary, .. } => no_summary.as_deref(),
        _ => None,
    });
    let reasons: Vec<&str> = reasons.collect();
    assert!(!reasons.is_empty(), "{all_events:?}");
    assert!(reasons.iter().all(|it| *it == "no answer in time"), "{all_events:?}");
}

#[test]
fn a_message_longer_than_the_window_stays_and_is_named() {
    for name in ["epitome", "pi", "s06"] {
        let mut context = context(built_in(name).expect("a recipe"), 30_000);
        reads(&mut context, 0, 1, 60);
        let long = lines(7, 3_000);
        context.user(&long).expect("memory");
        let events = request(&mut context, Bad::Down);
        let failed = events.iter().filter_map(|event| match event {
            Event::Failed { reason, .. } => Some(&**reason),
            _ => None,
        });
        let failed: Vec<&str> = failed.collect();
        let expect = "the context cannot be made to fit 15.0k tokens: words of the user: ";
        assert!(failed.iter().any(|it| it.contains(expect)), "{name}: {events:?}");
        assert!(
            context.unchanged_view().messages().contains("let value_7_2999 = compute"),
            "{name}"
        );
        let refused =
            context.recover_from_refusal(Some(413), "prompt is too long").expect("memory");
        let Recovery::Final { because } = refused else { panic!("{name}: {refused:?}") };
        assert!(because[0].starts_with("words of the user: "), "{name}: {because:?}");
    }
}

/// The first digest does not save enough, because it has all of the model's texts. The last digest
/// has a tenth of the target, and has them, too.
#[test]
fn what_the_model_concluded_survives_the_last_digest() {
    const CONCLUSIONS: [&str; 5] = [
        "Die Sperre geht verloren, sobald beide Seiten aufeinander warten.",
        "El archivo está vacío porque nadie lo cierra después de leerlo.",
        "Сначала исправлю чтение, потом запись, потом проверю.",
        "Il test est faux: il compare deux fois la même valeur.",
        "The parser drops the last line if no newline ends it.",
    ];
    for name in ["epitome", "digest"] {
        let mut context = context(built_in(name).expect("a recipe"), 4_000);
        for text in CONCLUSIONS {
            context.assistant(&[MessagePart::text(text)]).expect("memory");
            context.user("Go on.").expect("memory");
        }
        context.assistant(&[MessagePart::text("So it is.")]).expect("memory");
        // This message stays as it is, and so no digest reaches its target.
        context.user(&lines(7, 190)).expect("memory");
        let events = request(&mut context, Bad::Absent);
        let failed = events.iter().any(|event| matches!(event, Event::Failed { .. }));
        assert!(failed, "the last digest was tried: {name}: {events:?}");
        let sent = context.unchanged_view().messages();
        let lost: Vec<&str> = CONCLUSIONS.into_iter().filter(|text| !sent.contains(text)).collect();
        assert_eq!(lost, Vec::<&str>::new(), "{name}: {events:?} {sent}");
    }
}

/// Plays a session. Checks, after each request that led to a compaction, that one undo in the
/// resumed log restores the context as it was before that request. Returns how many of these
/// requests led to a digest.
fn undone(recipe: &str, model: Bad) -> usize {
    let setup = || {
        let recipe = built_in(recipe).expect("a recipe");
        Setup::new(recipe).with_counter(Estimate::new()).with_window(Tokens(12_000))
    };
    let mut context = Context::in_memory(setup());
    context.user(RULE).expect("memory");
    let mut resorts = 0;
    for n in 0..12 {
        reads(&mut context, n, 1 + n % 3, 60);
        let about = format!("{recipe} {model:?} {n}");
        let (before, taken) = (context.unchanged_view().messages(), context.report().compactions);
        let events = request(&mut context, model);
        if context.report().compactions == taken {
            continue;
        }
        resorts += usize::from(events.iter().any(|event| match event {
            Event::Finished { by_stage, .. } => by_stage.contains_key("digest"),
            _ => false,
        }));
        let log = context.log().to_vec();
        let mut undone = Context::resume(log, Box::new(Nowhere), setup()).expect("a log");
        assert!(undone.undo().expect("memory"), "{about}");
        assert_eq!(undone.report().compactions, taken, "{about}: {events:?}");
        assert_eq!(undone.unchanged_view().messages(), before, "{about}: {events:?}");
    }
    resorts
}

#[test]
fn one_undo_takes_back_one_compaction_where_a_digest_was_the_last_resort() {
    let mut resorted = Vec::new();
    for (recipe, _) in BUILT_IN {
        let models = [Bad::Absent, Bad::Down, Bad::TooLong];
        let resorts: usize = models.map(|model| undone(recipe, model)).iter().sum();
        resorted.extend((resorts > 0).then_some(recipe));
    }
    // The recipe `pi` has only a summary. Without a summary, only the fallback makes the context
    // smaller.
    assert!(resorted.contains(&"pi"), "{resorted:?}");
}
