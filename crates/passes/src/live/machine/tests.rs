use super::*;
use crate::PerKind;
use crate::summary::SummaryRule;

fn gauge(tokens: u64) -> ContextSize {
    ContextSize { tokens: Tokens(tokens), counted: Tokens(tokens), ..ContextSize::default() }
}

/// A machine for a window of 1,000 tokens without a reserve.
fn machine(mut recipe: Recipe) -> Machine {
    recipe.live.reserve = 0;
    Machine::new(&recipe, Some(Tokens(1_000)))
}

fn with_target(target: Target, mut recipe: Recipe) -> Recipe {
    recipe.target.live = Some(target);
    recipe
}

fn with_trigger(live: Level) -> Recipe {
    Recipe { trigger: PerKind { live, ..PerKind::default() }, ..Recipe::default() }
}

fn that_runs(when: StageTiming, mut recipe: Recipe) -> Recipe {
    recipe.live.when = when;
    recipe
}

const PERCENT: Target = Target { tokens: None, percent: Some(60), chars: None };

fn started(why: EventReason, tokens: Tokens) -> Event {
    Event::Started { why, tokens, target: None, usable: None }
}

fn tiers() -> BTreeMap<String, u64> {
    BTreeMap::from([("results".to_owned(), 1)])
}

#[test]
fn a_context_is_warned_of_and_then_compacted() {
    let mut machine = machine(with_target(PERCENT, Recipe::default()));
    assert_eq!(machine.step(&gauge(699)), NextStep::Send);
    assert_eq!(machine.step(&gauge(700)), NextStep::Send);
    assert_eq!(machine.step(&gauge(800)), NextStep::Send);
    assert_eq!(machine.step(&gauge(801)), NextStep::Run(EventReason::Trigger));
    machine.report_passes(EventReason::Trigger, Tokens(801), &gauge(650), tiers());
    assert_eq!(machine.step(&gauge(650)), NextStep::Send);
    assert_eq!(machine.step(&gauge(650)), NextStep::Send);
    let (why, before, after) = (EventReason::Trigger, Tokens(801), Tokens(650));
    let over_target = Some(TargetExcess::Tokens(Tokens(50)));
    assert_eq!(
        machine.events(),
        [
            Event::Warning { tokens: Tokens(700), percent: 70 },
            started(why, before),
            Event::finished(why, before, after, tiers(), over_target),
        ]
    );
}

#[test]
fn what_exceeds_the_trigger_starts_it() {
    let of = |trigger, gauge| machine(trigger).step(&gauge) == NextStep::Run(EventReason::Trigger);
    let (tokens, results) = (Some(10), Some(3));
    let stored = Level { tokens, ..Level::default() };
    let live = Level { results, ..Level::default() };
    for (trigger, tokens, results, expect) in [
        (PerKind::default(), 800, 9, false),
        (PerKind::default(), 801, 0, true),
        (PerKind { stored, live: Level::default() }, 11, 0, true),
        (PerKind { stored, live: Level::default() }, 10, 9, false),
        (PerKind { stored, live }, 801, 3, false),
        (PerKind { stored, live }, 11, 4, true),
    ] {
        let size = ContextSize { results, ..gauge(tokens) };
        let recipe = Recipe { trigger, ..Recipe::default() };
        assert_eq!(of(recipe, size), expect, "{trigger:?} {size:?}");
    }
}

#[test]
fn two_poor_gains_open_the_breaker_until_the_context_has_grown() {
    let mut machine = machine(Recipe::default());
    for _ in 0..2 {
        assert_eq!(machine.step(&gauge(900)), NextStep::Run(EventReason::Trigger));
        machine.report_passes(EventReason::Trigger, Tokens(900), &gauge(880), tiers());
        assert_eq!(machine.step(&gauge(880)), NextStep::Send);
    }
    assert!(matches!(
        machine.events().last(),
        Some(Event::Breaker { tokens: Tokens(880), .. }) | Some(Event::Warning { .. })
    ));
    assert_eq!(machine.step(&gauge(900)), NextStep::Send);
    assert_eq!(machine.step(&gauge(924)), NextStep::Run(EventReason::Trigger));
    machine.report_passes(EventReason::Trigger, Tokens(924), &gauge(923), tiers());
    assert_eq!(machine.step(&gauge(923)), NextStep::Send);
    // The breaker is open already: that it would open again is not reported.
    let is_breaker = |event: &Event| matches!(event, Event::Breaker { .. });
    assert!(!machine.events().iter().any(is_breaker));
    machine.force(EventReason::Manual);
    assert_eq!(machine.step(&gauge(923)), NextStep::Run(EventReason::Manual));
}

#[test]
fn a_full_window_is_hard_whatever_the_trigger_says() {
    let trigger = Level { results: Some(99), ..Level::default() };
    let mut machine = machine(with_trigger(trigger));
    assert_eq!(machine.step(&gauge(1_000)), NextStep::Send);
    assert_eq!(machine.step(&gauge(1_001)), NextStep::Run(EventReason::Hard));
}

#[test]
fn a_small_window_keeps_half_for_the_conversation() {
    let machine = Machine::new(&Recipe::default(), Some(Tokens(20_000)));
    assert_eq!(machine.usable(), Some(Tokens(10_000)));
}

#[test]
fn what_was_taken_back_stays_until_the_context_has_grown_or_is_full_or_somebody_asks() {
    for when in [StageTiming::Trigger, StageTiming::Request] {
        let held = || {
            let mut machine = machine(that_runs(when, Recipe::default()));
            machine.suspend_after_undo(Tokens(900));
            machine
        };
        let starts = |gauge: &ContextSize| matches!(held().step(gauge), NextStep::Run(_));
        // A larger count by the provider is not growth.
        let billed = ContextSize { tokens: Tokens(999), ..gauge(900) };
        for (gauge, expect) in [
            (gauge(900), false),
            (gauge(944), false),
            (gauge(945), true),
            (gauge(1_001), true),
            (billed, false),
            (ContextSize { tokens: Tokens(1_001), ..billed }, true),
        ] {
            assert_eq!(starts(&gauge), expect, "{when:?} {gauge:?}");
        }
        for why in [EventReason::Manual, EventReason::Tool, EventReason::Overflow] {
            let mut machine = held();
            machine.force(why);
            assert_eq!(machine.step(&gauge(900)), NextStep::Run(why));
            machine.report_passes(why, Tokens(900), &gauge(890), tiers());
            assert_eq!(machine.step(&gauge(890)), NextStep::Send);
            assert!(matches!(machine.step(&gauge(890)), NextStep::Run(_)), "it is held no longer");
        }
    }
}

/// What happens at one request of a test.
#[derive(Clone, Copy, Debug)]
enum Comes {
    /// The passes leave this many tokens, and the model returns no usable summary.
    To(u64),
    /// The passes leave this many tokens, and a summary then leaves this many.
    Summary(u64, u64),
    /// The passes leave this many tokens, and no model is configured.
    NoModel(u64),
    /// An invariant refuses the edits of the passes.
    Refused,
}

/// Lets the machine decide about requests of these sizes, and returns the steps and the breaker
/// events of each.
fn play(machine: &mut Machine, requests: &[(u64, Comes)]) -> Vec<String> {
    requests.iter().map(|(tokens, comes)| play_one(machine, *tokens, *comes)).collect()
}

fn play_one(machine: &mut Machine, tokens: u64, comes: Comes) -> String {
    let mut steps_made: Vec<String> = Vec::new();
    let mut now = gauge(tokens);
    loop {
        let before = now.tokens;
        match (machine.step(&now), comes) {
            (NextStep::Send, _) => break,
            (NextStep::Run(why), Comes::Refused) => {
                steps_made.push("run".into());
                machine.report_failure(why, &now, "an invariant".into());
            }
            (
                NextStep::Run(why),
                Comes::To(left) | Comes::Summary(left, _) | Comes::NoModel(left),
            ) => {
                steps_made.push("run".into());
                now = gauge(left);
                let by_stage = if now.tokens == before { BTreeMap::new() } else { tiers() };
                machine.report_passes(why, before, &now, by_stage);
            }
            (NextStep::Ask(why), Comes::Summary(_, left)) => {
                steps_made.push("ask".into());
                now = gauge(left);
                machine.report_summary(why, before, &now, Ok(()));
            }
            (NextStep::Ask(why), Comes::NoModel(_)) => {
                steps_made.push("nobody".into());
                machine.report_no_summary(why, &now, "there is no model to ask".into());
            }
            (NextStep::Ask(why), Comes::To(_) | Comes::Refused) => {
                steps_made.push("ask".into());
                machine.report_summary(why, before, &now, Err("no model".into()));
            }
            (NextStep::Digest(why), _) => {
                steps_made.push("digest".into());
                now = gauge(400);
                machine.report_fallback(why, before, &now, tiers(), None);
            }
        }
    }
    steps_made.extend(machine.events().into_iter().filter_map(|event| match event {
        Event::Breaker { tokens, reason } => Some(format!("{reason} ({tokens})")),
        _ => None,
    }));
    steps_made.join(", ")
}

fn with_summary() -> Recipe {
    let mut recipe = without();
    recipe.stages.live.summary = Some(SummaryRule::default());
    recipe
}

fn without() -> Recipe {
    Recipe { live: Live { warn: 1_000, ..Live::default() }, ..Recipe::default() }
}

const POOR: &str = "run, 2 gains of less than 5 per cent (900)";
const UNWRITTEN: &str = "run, ask, 3 summaries failed (900)";
const REFUSED: &str = "run, 3 compactions could not be carried out (900)";

/// A recipe, requests, and the expected steps and events of each.
type Talk<'a> = (Recipe, &'a [(u64, Comes)], &'a [&'a str]);

fn check(talks: &[Talk<'_>]) {
    for (n, (recipe, requests, expect)) in talks.iter().enumerate() {
        let mut machine = machine(recipe.clone());
        assert_eq!(play(&mut machine, requests), *expect, "{n}: {requests:?}");
    }
}

#[test]
fn three_failed_summaries_open_the_breaker_until_the_context_has_grown() {
    use Comes::{Summary, To};
    let fails = (900, To(900));
    check(&[
        // After a single failed summary, the next summary is used.
        (with_summary(), &[fails, (900, Summary(900, 300))], &["run, ask", "run, ask"]),
        // Three failures open the breaker: a model that works again is asked when the context has
        // grown.
        (
            with_summary(),
            &[fails, fails, fails, (944, To(944)), (945, Summary(945, 300)), (900, To(900))],
            &["run, ask", "run, ask", UNWRITTEN, "", "run, ask", "run, ask"],
        ),
        // An attempt that an open breaker allows may ask for a summary, even if the passes saved
        // little.
        (
            with_summary(),
            &[fails, fails, fails, (945, Summary(930, 300))],
            &["run, ask", "run, ask", UNWRITTEN, "run, ask"],
        ),
        // After a failed attempt, no attempt is allowed until the context has grown again.
        (
            with_summary(),
            &[fails, fails, fails, (945, To(945)), (992, To(992)), (993, Summary(993, 300))],
            &["run, ask", "run, ask", UNWRITTEN, "run, ask", "", "run, ask"],
        ),
        // Only failures in a row are counted: a summary between two failures sets the number to
        // zero.
        (
            with_summary(),
            &[fails, fails, (900, Summary(900, 300)), fails, fails, fails],
            &["run, ask", "run, ask", "run, ask", "run, ask", "run, ask", UNWRITTEN],
        ),
    ]);
}

#[test]
fn gains_and_violations_open_and_close_the_breaker() {
    use Comes::{NoModel, Refused, Summary, To};
    let fails = (900, To(900));
    check(&[
        // The passes and the summary are judged together.
        (
            with_summary(),
            &[(900, Summary(870, 850)), (900, Summary(870, 850)), (900, Summary(900, 850))],
            &["run, ask", "run, ask", "run, ask"],
        ),
        (
            with_summary(),
            &[(900, Summary(900, 890)), (920, Summary(910, 900)), (944, To(0))],
            &["run, ask", "run, ask, 2 gains of less than 5 per cent (900)", ""],
        ),
        // Without a model, the gain of the passes is judged.
        (
            with_summary(),
            &[(900, NoModel(900)), (900, NoModel(900)), (944, To(0)), (945, Summary(945, 300))],
            &["run, nobody", "run, nobody, 2 gains of less than 5 per cent (900)", "", "run, ask"],
        ),
        // Without summaries the gain of the passes is judged, even if it is zero.
        (without(), &[fails, (910, To(900)), (944, To(0))], &["run", POOR, ""]),
        // A good gain closes the breaker; if it opens again, that is reported.
        (
            without(),
            &[fails, fails, (945, To(300)), (900, To(880)), fails, (944, To(0))],
            &["run", POOR, "run", "run", POOR, ""],
        ),
        // If an invariant refuses the edits, the machine reports this refusal, and not a failure of
        // the summary.
        (
            with_summary(),
            &[(900, Refused), (900, Refused), (900, Refused), (944, To(0)), (945, To(300))],
            &["run", "run", REFUSED, "", "run, ask"],
        ),
        (
            with_summary(),
            &[(900, Refused), (900, Refused), fails, (900, Refused), fails, (944, Refused)],
            &["run", "run", "run, ask", "run", "run, ask", "run"],
        ),
    ]);
}

#[test]
fn who_asks_begins_anew() {
    let fails = (900, Comes::To(900));
    let mut machine = machine(with_summary());
    assert_eq!(play(&mut machine, &[fails; 3])[2], UNWRITTEN);
    machine.force(EventReason::Manual);
    // The first of three consecutive failures is that of the requested compaction.
    let expect = ["run, ask", "run, ask", UNWRITTEN, ""];
    assert_eq!(play(&mut machine, &[fails; 4]), expect);
}

#[test]
fn a_summary_of_a_sliding_recipe_waits_behind_the_breaker_and_its_passes_do_not() {
    let mut machine = machine(that_runs(StageTiming::Request, with_summary()));
    let fails = (900, Comes::To(900));
    let talk = [fails, fails, fails, fails, (945, Comes::Summary(945, 300)), fails];
    let expect = ["run, ask", "run, ask", UNWRITTEN, "run", "run, ask", "run, ask"];
    assert_eq!(play(&mut machine, &talk), expect);
}

#[test]
fn who_misses_the_target_says_so_whatever_was_done() {
    let target = |target| with_target(target, without());
    let tokens = |tokens| Some(TargetExcess::Tokens(Tokens(tokens)));
    let none = Target::default();
    let chars = target(Target { chars: Some(2_000), ..none });
    for (recipe, now, expect) in [
        (target(Target::from_tokens(Tokens(600))), 900, tokens(300)),
        (target(PERCENT), 601, tokens(1)),
        (target(PERCENT), 600, None),
        (target(Target { chars: Some(2_000), ..PERCENT }), 600, Some(TargetExcess::Chars(400))),
        (chars.clone(), 501, Some(TargetExcess::Chars(4))),
        (chars, 500, None),
        (without(), 900, None),
    ] {
        let why = EventReason::Hard;
        let now = ContextSize { chars: now * 4, ..gauge(now) };
        let events_after = |does: &dyn Fn(&mut Machine)| {
            let mut machine = machine(recipe.clone());
            does(&mut machine);
            machine.events().pop().expect("it says so")
        };
        let (before, after, over_target) = (Tokens(1_000), now.tokens, expect);
        let (reason, by_stage) = ("so it is".to_owned(), tiers());
        let nothing = "there is nothing to shorten".to_owned();
        assert_eq!(
            [
                events_after(&|it| it.report_passes(why, before, &now, tiers())),
                events_after(&|it| it.report_passes(why, before, &now, BTreeMap::new())),
                events_after(&|it| it.report_summary(why, before, &now, Err(reason.clone()))),
                events_after(&|it| it.report_no_summary(why, &now, reason.clone())),
                events_after(&|it| it.report_failure(why, &now, reason.clone())),
                events_after(&|it| {
                    it.force(EventReason::Manual);
                    it.aim_at(Some(now.tokens - Tokens(7)));
                    it.report_summary(why, before, &now, Err(reason.clone()));
                }),
            ],
            [
                Event::finished(why, before, after, by_stage, over_target),
                Event::Skipped { why, reason: nothing, over_target },
                Event::Failed { why, reason: reason.clone(), over_target },
                Event::Skipped { why, reason: reason.clone(), over_target },
                Event::Failed { why, reason: reason.clone(), over_target },
                Event::Failed { why, reason: reason.clone(), over_target: tokens(7) },
            ],
            "{recipe:?}"
        );
    }
    let json = |missed| serde_json::to_string(&missed).expect("it is JSON");
    assert_eq!(json(tokens(7)), r#"{"tokens":7}"#);
    assert_eq!(json(Some(TargetExcess::Chars(4))), r#"{"chars":4}"#);
}

#[test]
fn a_compaction_is_prepared_once_each_time_the_context_comes_near_its_trigger() {
    let recipe = |background, trigger| {
        let mut recipe = with_trigger(trigger);
        recipe.live.background = background;
        recipe
    };
    let trigger = |tokens| Level { tokens: Some(tokens), ..Level::default() };
    let default = Level::default();
    for (recipe, sizes, expect) in [
        (recipe(false, default), &[750][..], &[false][..]),
        // At the warning level: true once, until the context was smaller; false if a compaction is
        // due.
        (recipe(true, default), &[699, 700, 760, 650, 710], &[false, true, false, false, true]),
        (recipe(true, default), &[801, 790], &[false, true]),
        // A seventh below a trigger that is lower than the warning level.
        (recipe(true, trigger(400)), &[350, 351, 380, 401], &[false, true, false, false]),
        (that_runs(StageTiming::Request, recipe(true, default)), &[750], &[false]),
        (that_runs(StageTiming::Asked, recipe(true, default)), &[750], &[false]),
    ] {
        let mut machine = machine(recipe.clone());
        let prepares: Vec<bool> =
            sizes.iter().map(|&size| machine.should_prepare(&gauge(size))).collect();
        assert_eq!(prepares, expect, "{:?} {sizes:?}", recipe.trigger.live);
    }
    let mut held = machine(recipe(true, default));
    held.suspend_after_undo(Tokens(740));
    assert!(!held.should_prepare(&gauge(750)), "who took a compaction back wants what it took");
}

#[test]
fn what_was_prepared_is_told_and_judged_and_more_is_done_if_it_was_not_enough() {
    let mut machine = machine(with_target(PERCENT, Recipe::default()));
    machine.report_swap(Tokens(850), &gauge(820), tiers());
    let (why, before, after) = (EventReason::Background, Tokens(850), Tokens(820));
    let over_target = Some(TargetExcess::Tokens(Tokens(220)));
    assert_eq!(
        machine.events(),
        [started(why, before), Event::finished(why, before, after, tiers(), over_target),]
    );
    assert_eq!(machine.step(&gauge(820)), NextStep::Run(EventReason::Trigger));
}

#[test]
fn a_full_window_falls_back_to_a_digest_whatever_the_recipe_has() {
    use Comes::{NoModel, Refused, Summary, To};
    let fails = (900, To(900));
    let sliding = || that_runs(StageTiming::Request, with_summary());
    check(&[
        // A digest is the only remaining step.
        (without(), &[(1_100, To(1_050)), (1_100, To(1_000))], &["run, digest", "run"]),
        // A fallback digest that saves enough keeps the breaker closed.
        (
            without(),
            &[(1_100, To(1_050)), (1_100, To(1_050)), (1_100, To(1_050))],
            &["run, digest", "run, digest", "run, digest"],
        ),
        (with_summary(), &[(1_100, To(1_050))], &["run, ask, digest"]),
        (with_summary(), &[(1_100, NoModel(1_050))], &["run, nobody, digest"]),
        (with_summary(), &[(1_100, Summary(1_050, 1_020))], &["run, ask, digest"]),
        (with_summary(), &[(1_100, Refused)], &["run, digest"]),
        (sliding(), &[(1_100, To(1_050)), (900, To(1_000))], &["run, ask, digest", "run, ask"]),
        // The breaker stops the recipe, but not the fallback digest.
        (
            with_summary(),
            &[fails, fails, (980, To(980)), (1_020, To(1_020))],
            &["run, ask", "run, ask", "run, ask, 3 summaries failed (980)", "digest"],
        ),
        // A recipe that runs only when a compaction is requested does nothing here.
        (that_runs(StageTiming::Asked, with_summary()), &[(1_100, To(1_050))], &[""]),
    ]);
}

#[test]
fn a_level_above_a_small_window_counts_as_the_window() {
    let over = Level { tokens: Some(5_000), ..Level::default() };
    let mut recipe = that_runs(StageTiming::Request, with_summary());
    recipe.stages.live.summary.iter_mut().for_each(|rule| rule.over = over);
    check(&[(
        recipe,
        &[(1_000, Comes::To(1_000)), (1_001, Comes::Summary(1_001, 300))],
        &["run", "run, ask"],
    )]);
}

#[test]
fn what_a_digest_took_the_place_of_is_told() {
    let mut machine = machine(with_summary());
    let (why, before, after) = (EventReason::Hard, Tokens(1_100), Tokens(400));
    assert_eq!(machine.step(&gauge(1_100)), NextStep::Run(why));
    machine.report_passes(why, before, &gauge(1_100), BTreeMap::new());
    assert_eq!(machine.step(&gauge(1_100)), NextStep::Ask(why));
    machine.report_summary(why, before, &gauge(1_100), Err("it is empty".into()));
    assert_eq!(machine.step(&gauge(1_100)), NextStep::Digest(why));
    machine.report_fallback(why, before, &gauge(400), tiers(), None);
    let no_summary = Some("it is empty".to_owned());
    let (by_stage, over_target) = (tiers(), None);
    let events = machine.events();
    let expect = Event::Finished { why, before, after, by_stage, over_target, no_summary };
    assert_eq!(events.last(), Some(&expect));
    assert!(!events.iter().any(|it| matches!(it, Event::Failed { .. })), "{events:?}");
    // If a digest does not help, this is reported once, until the context has grown.
    assert_eq!(machine.step(&gauge(400)), NextStep::Send);
    for (size, expect) in [(1_100, true), (1_110, false), (1_160, true)] {
        let mut digests = false;
        loop {
            match machine.step(&gauge(size)) {
                NextStep::Send => break,
                NextStep::Run(why) => {
                    machine.report_passes(why, Tokens(size), &gauge(size), BTreeMap::new())
                }
                NextStep::Ask(why) => {
                    machine.report_summary(why, Tokens(size), &gauge(size), Err("down".into()));
                }
                NextStep::Digest(why) => {
                    digests = true;
                    let misfit = Some("it is too long".to_owned());
                    let now = gauge(size);
                    machine.report_fallback(why, Tokens(size), &now, BTreeMap::new(), misfit);
                    let reason = "down; it is too long".to_owned();
                    let failed = Event::Failed { why, reason, over_target: None };
                    assert!(machine.events().contains(&failed), "{size}");
                }
            }
        }
        assert_eq!(digests, expect, "{size}");
    }
}

#[test]
fn by_hand_a_compaction_aims_at_half_of_the_target_and_a_quarter_of_the_window() {
    let tokens = |tokens| Some(Target::from_tokens(Tokens(tokens)));
    for (target, expect) in [
        (tokens(300), Some(150)),
        (tokens(900), Some(250)),
        (Some(PERCENT), Some(250)),
        (None, None),
    ] {
        let mut recipe = without();
        recipe.target.live = target;
        let mut machine = machine(recipe);
        for (why, expect) in [
            (EventReason::Manual, expect),
            (EventReason::Tool, expect),
            (EventReason::Overflow, None),
        ] {
            machine.force(why);
            assert_eq!(machine.aim(), expect.map(Tokens), "{target:?} {why:?}");
        }
    }
}

/// Each request adds 1,000 tokens, and a compaction has a target of 10,000.
#[test]
fn a_compaction_starts_when_it_is_worth_its_price() {
    let mut recipe = with_target(Target::from_tokens(Tokens(10_000)), Recipe::default());
    recipe.live.priced = true;
    let mut machine = Machine::new(&recipe, None);
    let mut compacted_at = Vec::new();
    let mut tokens = 1_000;
    for _ in 0..60 {
        let step = machine.step(&gauge(tokens));
        if step == NextStep::Run(EventReason::Trigger) {
            compacted_at.push(tokens);
            machine.report_passes(EventReason::Trigger, Tokens(tokens), &gauge(10_000), tiers());
            assert_eq!(machine.step(&gauge(10_000)), NextStep::Send);
            tokens = 10_000;
        }
        tokens += 1_000;
    }
    // A compaction that removes x tokens saves the price of 0.1 x tokens in each of the x / 1,000
    // requests until the context has grown back. The least x with x² / 1,000 * 0.1 > 2 * 10,000 *
    // 1.15 is 15,166.
    assert_eq!(compacted_at, [26_000, 26_000, 26_000]);
}

#[test]
fn what_is_skipped_is_reported() {
    let mut machine = machine(Recipe::default());
    let (why, reason) = (EventReason::Manual, "a backup is missing".to_owned());
    machine.skip(why, reason.clone());
    assert_eq!(machine.events(), [Event::Skipped { why, reason, over_target: None }]);
}
