use super::*;
use crate::summary::SummaryRule;

fn gauge(tokens: u64) -> Gauge {
    Gauge { tokens: Tokens(tokens), counted: Tokens(tokens), ..Gauge::default() }
}

fn machine(live: Live) -> Machine {
    Machine::new(Live { reserve: 0, ..live }, Some(Tokens(1_000)))
}

fn tiers() -> BTreeMap<String, u64> {
    BTreeMap::from([("results".to_owned(), 1)])
}

#[test]
fn a_context_is_warned_of_and_then_compacted() {
    let mut machine = machine(Live { target: Some(Target::Percent(60)), ..Live::default() });
    assert_eq!(machine.step(&gauge(699)), Step::Send);
    assert_eq!(machine.step(&gauge(700)), Step::Send);
    assert_eq!(machine.step(&gauge(800)), Step::Send);
    assert_eq!(machine.step(&gauge(801)), Step::Run(Why::Trigger));
    machine.ran(Why::Trigger, Tokens(801), &gauge(650), tiers());
    assert_eq!(machine.step(&gauge(650)), Step::Send);
    assert_eq!(machine.step(&gauge(650)), Step::Send);
    let (why, before, after) = (Why::Trigger, Tokens(801), Tokens(650));
    let over_target = Some(Missed::Tokens(Tokens(50)));
    assert_eq!(
        machine.events(),
        [
            Event::Warning { tokens: Tokens(700), percent: 70 },
            Event::Started { why, tokens: before },
            Event::Finished { why, before, after, by_tier: tiers(), over_target },
        ]
    );
}

#[test]
fn any_part_of_a_trigger_starts_it() {
    let of = |trigger, gauge: Gauge| {
        machine(Live { trigger, ..Live::default() }).step(&gauge) == Step::Run(Why::Trigger)
    };
    let level = Level::default;
    let (tokens, counted) = (Tokens(11), Tokens(11));
    let all = Gauge { tokens, bytes: 12, chars: 16, results: 13, turns: 14, messages: 15, counted };
    for (trigger, expect) in [
        (Level { tokens: Some(10), ..level() }, true),
        (Level { tokens: Some(11), ..level() }, false),
        (Level { percent: Some(1), ..level() }, true),
        (Level { percent: Some(2), ..level() }, false),
        (Level { bytes: Some(11), ..level() }, true),
        (Level { bytes: Some(12), ..level() }, false),
        (Level { results: Some(12), ..level() }, true),
        (Level { turns: Some(13), ..level() }, true),
        (Level { messages: Some(14), ..level() }, true),
        (Level { messages: Some(15), results: Some(13), ..level() }, false),
    ] {
        assert_eq!(of(trigger, all), expect, "{trigger:?}");
    }
}

#[test]
fn two_poor_gains_open_the_breaker_until_the_context_has_grown() {
    let mut machine = machine(Live::default());
    for _ in 0..2 {
        assert_eq!(machine.step(&gauge(900)), Step::Run(Why::Trigger));
        machine.ran(Why::Trigger, Tokens(900), &gauge(880), tiers());
        assert_eq!(machine.step(&gauge(880)), Step::Send);
    }
    assert!(matches!(
        machine.events().last(),
        Some(Event::Breaker { tokens: Tokens(880), .. }) | Some(Event::Warning { .. })
    ));
    assert_eq!(machine.step(&gauge(900)), Step::Send);
    assert_eq!(machine.step(&gauge(924)), Step::Run(Why::Trigger));
    machine.ran(Why::Trigger, Tokens(924), &gauge(923), tiers());
    assert_eq!(machine.step(&gauge(923)), Step::Send);
    // It does not open twice.
    let is_breaker = |event: &Event| matches!(event, Event::Breaker { .. });
    assert!(!machine.events().iter().any(is_breaker));
    machine.force(Why::Manual);
    assert_eq!(machine.step(&gauge(923)), Step::Run(Why::Manual));
}

#[test]
fn a_full_window_is_hard_whatever_the_trigger_says() {
    let trigger = Level { results: Some(99), ..Level::default() };
    let mut machine = machine(Live { trigger, ..Live::default() });
    assert_eq!(machine.step(&gauge(1_000)), Step::Send);
    assert_eq!(machine.step(&gauge(1_001)), Step::Run(Why::Hard));
}

#[test]
fn a_small_window_keeps_half_for_the_conversation() {
    let machine = Machine::new(Live::default(), Some(Tokens(20_000)));
    assert_eq!(machine.usable(), Some(Tokens(10_000)));
}

#[test]
fn what_was_taken_back_stays_until_the_context_has_grown_or_is_full_or_somebody_asks() {
    for when in [When::Trigger, When::Request] {
        let held = || {
            let mut machine = machine(Live { when, ..Live::default() });
            machine.hold(Tokens(900));
            machine
        };
        let starts = |gauge: &Gauge| matches!(held().step(gauge), Step::Run(_));
        // What a provider says of it meanwhile is no growth.
        let billed = Gauge { tokens: Tokens(999), ..gauge(900) };
        for (gauge, expect) in [
            (gauge(900), false),
            (gauge(944), false),
            (gauge(945), true),
            (gauge(1_001), true),
            (billed, false),
            (Gauge { tokens: Tokens(1_001), ..billed }, true),
        ] {
            assert_eq!(starts(&gauge), expect, "{when:?} {gauge:?}");
        }
        for why in [Why::Manual, Why::Tool, Why::Overflow] {
            let mut machine = held();
            machine.force(why);
            assert_eq!(machine.step(&gauge(900)), Step::Run(why));
            machine.ran(why, Tokens(900), &gauge(890), tiers());
            assert_eq!(machine.step(&gauge(890)), Step::Send);
            assert!(matches!(machine.step(&gauge(890)), Step::Run(_)), "it is held no longer");
        }
    }
}

/// What comes of one request.
#[derive(Clone, Copy, Debug)]
enum Comes {
    /// The passes leave so many tokens; who is asked says nothing of use.
    To(u64),
    /// They leave so many, and a summary so many of these.
    Summary(u64, u64),
    /// They leave so many, and nobody is there to be asked.
    Nobody(u64),
    /// A law refuses what they do.
    Refused,
}

/// Plays requests at these sizes, and tells what was done and heard at each.
fn play(machine: &mut Machine, requests: &[(u64, Comes)]) -> Vec<String> {
    requests.iter().map(|(tokens, comes)| play_one(machine, *tokens, *comes)).collect()
}

fn play_one(machine: &mut Machine, tokens: u64, comes: Comes) -> String {
    let mut told: Vec<String> = Vec::new();
    let mut now = gauge(tokens);
    loop {
        let before = now.tokens;
        match (machine.step(&now), comes) {
            (Step::Send, _) => break,
            (Step::Run(why), Comes::Refused) => {
                told.push("run".into());
                machine.failed(why, &now, "a law".into());
            }
            (Step::Run(why), Comes::To(left) | Comes::Summary(left, _) | Comes::Nobody(left)) => {
                told.push("run".into());
                now = gauge(left);
                let by_tier = if now.tokens == before { BTreeMap::new() } else { tiers() };
                machine.ran(why, before, &now, by_tier);
            }
            (Step::Ask(why), Comes::Summary(_, left)) => {
                told.push("ask".into());
                now = gauge(left);
                machine.answered(why, before, &now, Ok(()));
            }
            (Step::Ask(why), Comes::Nobody(_)) => {
                told.push("nobody".into());
                machine.unanswered(why, &now, "there is no model to ask".into());
            }
            (Step::Ask(why), Comes::To(_) | Comes::Refused) => {
                told.push("ask".into());
                machine.answered(why, before, &now, Err("no model".into()));
            }
        }
    }
    told.extend(machine.events().into_iter().filter_map(|event| match event {
        Event::Breaker { tokens, reason } => Some(format!("{reason} ({tokens})")),
        _ => None,
    }));
    told.join(", ")
}

fn with_summary() -> Live {
    Live { summary: Some(SummaryRule::default()), warn: 1_000, ..Live::default() }
}

fn without() -> Live {
    Live { warn: 1_000, ..Live::default() }
}

const POOR: &str = "run, 2 gains of less than 5 per cent (900)";
const UNWRITTEN: &str = "run, ask, 3 summaries failed (900)";
const REFUSED: &str = "run, 3 compactions could not be carried out (900)";

/// A recipe, requests, and what is done and heard at each.
type Talk<'a> = (Live, &'a [(u64, Comes)], &'a [&'a str]);

fn check(talks: &[Talk<'_>]) {
    for (n, (live, requests, expect)) in talks.iter().enumerate() {
        let mut machine = machine(live.clone());
        assert_eq!(play(&mut machine, requests), *expect, "{n}: {requests:?}");
    }
}

#[test]
fn three_failed_summaries_open_the_breaker_until_the_context_has_grown() {
    use Comes::{Summary, To};
    let fails = (900, To(900));
    check(&[
        // One failure is none of the model's that answers next.
        (with_summary(), &[fails, (900, Summary(900, 300))], &["run, ask", "run, ask"]),
        // Three are: whoever is healthy then is asked when the context has grown.
        (
            with_summary(),
            &[fails, fails, fails, (944, To(944)), (945, Summary(945, 300)), (900, To(900))],
            &["run, ask", "run, ask", UNWRITTEN, "", "run, ask", "run, ask"],
        ),
        // What is let through reaches its question, whatever the passes do first.
        (
            with_summary(),
            &[fails, fails, fails, (945, Summary(930, 300))],
            &["run, ask", "run, ask", UNWRITTEN, "run, ask"],
        ),
        // What is tried in vain when it has grown waits until it has grown again.
        (
            with_summary(),
            &[fails, fails, fails, (945, To(945)), (992, To(992)), (993, Summary(993, 300))],
            &["run, ask", "run, ask", UNWRITTEN, "run, ask", "", "run, ask"],
        ),
        // Failures count in a row: a summary in between begins anew.
        (
            with_summary(),
            &[fails, fails, (900, Summary(900, 300)), fails, fails, fails],
            &["run, ask", "run, ask", "run, ask", "run, ask", "run, ask", UNWRITTEN],
        ),
    ]);
}

#[test]
fn what_an_attempt_gains_opens_the_breaker_or_closes_it_and_so_do_laws() {
    use Comes::{Nobody, Refused, Summary, To};
    let fails = (900, To(900));
    check(&[
        // The gain is that of passes and summary together.
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
        // Who has nobody to ask has what the passes gain.
        (
            with_summary(),
            &[(900, Nobody(900)), (900, Nobody(900)), (944, To(0)), (945, Summary(945, 300))],
            &["run, nobody", "run, nobody, 2 gains of less than 5 per cent (900)", "", "run, ask"],
        ),
        // Without a summary poor gains are what passes have, nothing included.
        (without(), &[fails, (910, To(900)), (944, To(0))], &["run", POOR, ""]),
        // A good gain closes it, and it opens again with a word.
        (
            without(),
            &[fails, fails, (945, To(300)), (900, To(880)), fails, (944, To(0))],
            &["run", POOR, "run", "run", POOR, ""],
        ),
        // What a law refuses is told as what it is, and is no summary's failure.
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
    machine.force(Why::Manual);
    // Of three failures in a row the first is the one that was asked for.
    let expect = ["run, ask", "run, ask", UNWRITTEN, ""];
    assert_eq!(play(&mut machine, &[fails; 4]), expect);
}

#[test]
fn a_summary_of_a_sliding_recipe_waits_behind_the_breaker_and_its_passes_do_not() {
    let mut machine = machine(Live { when: When::Request, ..with_summary() });
    let fails = (900, Comes::To(900));
    let talk = [fails, fails, fails, fails, (945, Comes::Summary(945, 300)), fails];
    let expect = ["run, ask", "run, ask", UNWRITTEN, "run", "run, ask", "run, ask"];
    assert_eq!(play(&mut machine, &talk), expect);
}

#[test]
fn who_misses_the_target_says_so_whatever_was_done() {
    let target = |target| Live { target: Some(target), ..without() };
    let tokens = |tokens| Some(Missed::Tokens(Tokens(tokens)));
    let chars = target(Target::Chars(2_000));
    for (live, now, expect) in [
        (target(Target::Tokens(600)), 900, tokens(300)),
        (target(Target::Percent(60)), 601, tokens(1)),
        (target(Target::Percent(60)), 600, None),
        (chars.clone(), 501, Some(Missed::Chars(4))),
        (chars, 500, None),
        (without(), 900, None),
    ] {
        let why = Why::Hard;
        let now = Gauge { chars: now * 4, ..gauge(now) };
        let told = |does: &dyn Fn(&mut Machine)| {
            let mut machine = machine(live.clone());
            does(&mut machine);
            machine.events().pop().expect("it says so")
        };
        let (before, after, over_target) = (Tokens(1_000), now.tokens, expect);
        let (reason, by_tier) = ("so it is".to_owned(), tiers());
        let nothing = "there is nothing to shorten".to_owned();
        assert_eq!(
            [
                told(&|it| it.ran(why, before, &now, tiers())),
                told(&|it| it.ran(why, before, &now, BTreeMap::new())),
                told(&|it| it.answered(why, before, &now, Err(reason.clone()))),
                told(&|it| it.unanswered(why, &now, reason.clone())),
                told(&|it| it.failed(why, &now, reason.clone())),
                told(&|it| {
                    it.force(Why::Manual);
                    it.aim_at(Some(now.tokens - Tokens(7)));
                    it.answered(why, before, &now, Err(reason.clone()));
                }),
            ],
            [
                Event::Finished { why, before, after, by_tier, over_target },
                Event::Skipped { why, reason: nothing, over_target },
                Event::Failed { why, reason: reason.clone(), over_target },
                Event::Skipped { why, reason: reason.clone(), over_target },
                Event::Failed { why, reason: reason.clone(), over_target },
                Event::Failed { why, reason: reason.clone(), over_target: tokens(7) },
            ],
            "{live:?}"
        );
    }
    let json = |missed| serde_json::to_string(&missed).expect("it is JSON");
    assert_eq!(json(tokens(7)), r#"{"tokens":7}"#);
    assert_eq!(json(Some(Missed::Chars(4))), r#"{"chars":4}"#);
}
