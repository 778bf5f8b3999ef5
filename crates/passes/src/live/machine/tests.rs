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
    let over_target = Some(Tokens(50));
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
fn three_failed_summaries_open_the_breaker() {
    let summary = SummaryRule::default();
    let mut machine = machine(Live { summary: Some(summary), ..Live::default() });
    for n in 0..3 {
        assert_eq!(machine.step(&gauge(900 + n * 40)), Step::Run(Why::Trigger), "{n}");
        machine.ran(Why::Trigger, Tokens(900 + n * 40), &gauge(810), tiers());
        assert_eq!(machine.step(&gauge(810)), Step::Ask(Why::Trigger));
        machine.answered(Why::Trigger, Tokens(810), Err("no model".into()));
        assert_eq!(machine.step(&gauge(810)), Step::Send);
    }
    let events = machine.events();
    assert!(events.iter().any(|it| matches!(it, Event::Breaker { .. })), "{events:?}");
    assert_eq!(machine.step(&gauge(820)), Step::Send);
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
