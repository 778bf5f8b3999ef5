use super::*;

const TODAY: Date = date(2026, 11, 23);

fn usage(day: &str, model: &str, input: u64) -> DayUsage {
    DayUsage {
        day: day.parse().ok(),
        model: Some(model.to_owned()).filter(|model| !model.is_empty()),
        requests: 1,
        input: Tokens(input),
        cached: Tokens(input / 2),
        output: Tokens(1),
        cost: MicroDollars(input),
        ..DayUsage::default()
    }
}

fn used<'s>(project: Option<&'s str>, usage: &'s [DayUsage]) -> Used<'s> {
    Used { agent: "claude", project, usage }
}

#[test]
fn requests_are_summed_by_day_project_and_model() {
    let one = [usage("2026-11-23", "m", 10), usage("2026-11-22", "m", 4)];
    let other = [usage("2026-11-23", "", 100), usage("2026-10-01", "m", 1_000)];
    let sums =
        Sums::from_sessions(&[used(Some("/a"), &one), used(None, &other)], Period::Month, TODAY);
    let sum = |sessions, requests, input: u64| Sum {
        sessions,
        priced: sessions,
        partly: 0,
        requests,
        input: Tokens(input),
        cached: Tokens(input / 2),
        output: Tokens(requests),
        cost: MicroDollars(input),
    };
    assert_eq!(sums.all, sum(2, 3, 114));
    let by = |all: &BTreeMap<String, Sum>| all.clone().into_iter().collect::<Vec<_>>();
    let named = |name: &str, sum: Sum| (name.to_owned(), sum);
    assert_eq!(by(&sums.by_agent), [named("claude", sum(2, 3, 114))]);
    assert_eq!(by(&sums.by_project), [named("", sum(1, 1, 100)), named("/a", sum(1, 2, 14))]);
    assert_eq!(by(&sums.by_model), [named("", sum(1, 1, 100)), named("m", sum(1, 2, 14))]);
    assert_eq!(sums.slots.len(), 30);
    assert_eq!(sums.slots[0].when, "2026-10-25");
    let slot = |when: &str, sum: Sum| Slot { when: when.to_owned(), sum };
    assert_eq!(
        sums.slots[27..],
        [
            slot("2026-11-21", sum(0, 0, 0)),
            slot("2026-11-22", sum(1, 1, 4)),
            slot("2026-11-23", sum(2, 2, 110)),
        ]
    );
}

#[test]
fn a_long_time_is_shown_by_month_and_wrong_times_have_no_place_in_it() {
    let of = [
        usage("2025-12-31", "m", 1),
        usage("2026-11-01", "m", 2),
        usage("2026-11-23", "m", 4),
        usage("2026-11-24", "m", 8),
        usage("1970-01-01", "m", 16),
        usage("", "m", 32),
    ];
    let sums = Sums::from_sessions(&[used(None, &of)], Period::All, TODAY);
    assert_eq!((sums.all.input, sums.undated), (Tokens(63), 3));
    let shown: Vec<(&str, u64)> =
        sums.slots.iter().map(|slot| (&*slot.when, slot.sum.input.0)).collect();
    assert_eq!(shown.len(), 12);
    assert_eq!((shown[0], shown[1], shown[11]), (("2025-12", 1), ("2026-01", 0), ("2026-11", 6)));
    assert_eq!(sums.slots[11].sum.sessions, 1);
    assert_eq!(Sums::from_sessions(&[], Period::All, TODAY).slots, []);
}

#[test]
fn a_cost_with_something_missing_is_a_lower_bound() {
    let known = usage("2026-11-23", "m", 5_000_000);
    let silent = DayUsage { unrecorded_output: 1, ..known.clone() };
    let unknown = DayUsage { unpriced: 1, cost: MicroDollars(0), ..known.clone() };
    let sums_of = |sessions: &[&[DayUsage]]| {
        let used: Vec<Used<'_>> = sessions.iter().map(|usage| used(None, usage)).collect();
        let all = Sums::from_sessions(&used, Period::Month, TODAY).all;
        (all.cost(), all.priced, all.partly, all.sessions)
    };
    let text = |text: &str| text.to_owned();
    let one = [known.clone()];
    let both = [known, unknown.clone()];
    assert_eq!(sums_of(&[&one, &one]), (text("$10.00"), 2, 0, 2));
    assert_eq!(sums_of(&[&one, &[silent]]), (text("≥ $10.00"), 1, 1, 2));
    assert_eq!(sums_of(&[&both]), (text("≥ $5.00"), 0, 1, 1));
    assert_eq!(sums_of(&[&[unknown]]), (text("not known"), 0, 0, 1));
    assert_eq!(sums_of(&[]), (text("not known"), 0, 0, 0));
}

#[test]
fn the_period_is_the_shortest_that_has_a_request() {
    let fitting = |days: &[&str]| {
        let usages: Vec<DayUsage> = days.iter().map(|day| usage(day, "m", 1)).collect();
        Period::fitting(usages.iter(), TODAY)
    };
    assert_eq!(fitting(&["2026-10-25", "2024-01-01"]), Period::Month);
    assert_eq!(fitting(&["2026-10-24"]), Period::Quarter);
    assert_eq!(fitting(&["2026-08-25", "2027-01-01", ""]), Period::All);
    assert_eq!(fitting(&[]), Period::All);
}
