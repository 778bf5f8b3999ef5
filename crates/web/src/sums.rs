//! Sums of the usage of many sessions: in total, over time, and by agent, project and model.

use std::collections::{BTreeMap, BTreeSet};

use epitome::list::DayUsage;
use epitome_model::{MicroDollars, Tokens};
use jiff::ToSpan as _;
use jiff::civil::{Date, date};
use serde::Deserialize;

/// Times of requests before this day are wrong, because agents did not exist yet.
const FIRST: Date = date(2020, 1, 1);
/// If the first day of a period is more than this many days before today, the period has a bar for
/// each month; otherwise it has one for each day.
const DAYS: i32 = 100;

/// The period over which requests are summed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(crate) enum Period {
    #[serde(rename = "30")]
    Month,
    #[serde(rename = "90")]
    Quarter,
    #[serde(rename = "all")]
    All,
}

impl Period {
    pub(crate) const ALL: [Period; 3] = [Period::Month, Period::Quarter, Period::All];

    /// The value of the period in an address.
    pub(crate) fn value(self) -> &'static str {
        match self {
            Period::Month => "30",
            Period::Quarter => "90",
            Period::All => "all",
        }
    }

    pub(crate) fn label(self) -> &'static str {
        match self {
            Period::Month => "30 days",
            Period::Quarter => "90 days",
            Period::All => "all",
        }
    }

    /// The shortest period that contains a request; [`Period::All`] if none does.
    pub(crate) fn fitting<'s>(usages: impl Iterator<Item = &'s DayUsage>, today: Date) -> Period {
        let last = usages.filter_map(|it| it.day).filter(|day| *day <= today).max();
        let mut periods = Period::ALL.into_iter();
        let fitting = periods.find(|period| {
            last.zip(period.first(today)).is_some_and(|(last, first)| last >= first)
        });
        fitting.unwrap_or(Period::All)
    }

    /// The first day of the period; `None` if it has no beginning.
    fn first(self, today: Date) -> Option<Date> {
        let days = match self {
            Period::Month => 30,
            Period::Quarter => 90,
            Period::All => return None,
        };
        today.checked_sub((days - 1).days()).ok()
    }

    /// Whether the period contains a day. A request without a day is only in [`Period::All`].
    fn has(self, day: Option<Date>, today: Date) -> bool {
        match (self.first(today), day) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(first), Some(day)) => first <= day && day <= today,
        }
    }
}

/// The requests of a session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Used<'s> {
    pub(crate) agent: &'s str,
    pub(crate) project: Option<&'s str>,
    pub(crate) usage: &'s [DayUsage],
}

/// A sum of requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sum {
    /// The number of sessions that record requests.
    pub(crate) sessions: u64,
    /// The number of sessions for which the cost of every request is known.
    pub(crate) priced: u64,
    /// The number of sessions for which only a part of the cost is known.
    pub(crate) partly: u64,
    pub(crate) requests: u64,
    pub(crate) input: Tokens,
    pub(crate) cached: Tokens,
    pub(crate) output: Tokens,
    pub(crate) cost: MicroDollars,
}

impl Sum {
    /// The tokens of input and output.
    pub(crate) fn tokens(&self) -> Tokens {
        self.input + self.output
    }

    /// The cost in words: exact, at least, or unknown.
    pub(crate) fn cost(&self) -> String {
        match (self.priced, self.partly, self.sessions) {
            (0, 0, _) => "not known".to_owned(),
            (priced, _, sessions) if priced == sessions => self.cost.to_string(),
            (..) => format!("≥ {}", self.cost),
        }
    }

    /// Adds the requests of one session.
    fn add<'s>(&mut self, usages: impl Iterator<Item = &'s DayUsage>) {
        let mut requests = 0;
        let mut unpriced = 0;
        let mut missing = 0;
        for usage in usages {
            requests += usage.requests;
            unpriced += usage.unpriced;
            missing += usage.unpriced + usage.unrecorded_output;
            self.input += usage.input;
            self.cached += usage.cached;
            self.output += usage.output;
            self.cost += usage.cost;
        }
        self.requests += requests;
        self.sessions += u64::from(requests > 0);
        self.priced += u64::from(requests > 0 && missing == 0);
        self.partly += u64::from(missing > 0 && unpriced < requests);
    }
}

/// The sum of a day or of a month.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Slot {
    /// The day or the month: `2026-11-23`, `2026-11`.
    pub(crate) when: String,
    pub(crate) sum: Sum,
}

/// Sums over the requests of many sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sums {
    pub(crate) all: Sum,
    /// Each day, or each month of a long period, the oldest first.
    pub(crate) slots: Vec<Slot>,
    /// The number of requests that are in the sums but in no slot: they have no date, or one before
    /// 2020 or after today.
    pub(crate) undated: u64,
    pub(crate) by_agent: BTreeMap<String, Sum>,
    /// By folder; requests without a folder have an empty name.
    pub(crate) by_project: BTreeMap<String, Sum>,
    /// By model; requests without a model have an empty name.
    pub(crate) by_model: BTreeMap<String, Sum>,
}

impl Sums {
    /// Sums up the requests of these sessions in a period.
    pub(crate) fn from_sessions(sessions: &[Used<'_>], period: Period, today: Date) -> Sums {
        let mut sums = Sums {
            all: Sum::default(),
            slots: Vec::new(),
            undated: 0,
            by_agent: BTreeMap::new(),
            by_project: BTreeMap::new(),
            by_model: BTreeMap::new(),
        };
        let mut in_time: Vec<Vec<(Date, &DayUsage)>> = Vec::new();
        for Used { agent, project, usage } in sessions {
            let usages = usage.iter().filter(|it| period.has(it.day, today));
            let usages: Vec<&DayUsage> = usages.collect();
            if usages.is_empty() {
                continue;
            }
            let add = |sum: &mut Sum| sum.add(usages.iter().copied());
            add(&mut sums.all);
            add(sums.by_agent.entry((*agent).to_owned()).or_default());
            add(sums.by_project.entry(project.unwrap_or_default().to_owned()).or_default());
            let models: BTreeSet<Option<&str>> =
                usages.iter().map(|usage| usage.model.as_deref()).collect();
            for model in models {
                let of_model = usages.iter().copied().filter(|it| it.model.as_deref() == model);
                sums.by_model
                    .entry(model.unwrap_or_default().to_owned())
                    .or_default()
                    .add(of_model);
            }
            let (dated, undated): (Vec<&DayUsage>, Vec<&DayUsage>) = usages
                .iter()
                .copied()
                .partition(|usage| usage.day.is_some_and(|day| (FIRST..=today).contains(&day)));
            sums.undated += undated.iter().map(|usage| usage.requests).sum::<u64>();
            in_time.push(dated.into_iter().filter_map(|usage| Some((usage.day?, usage))).collect());
        }
        sums.slots = slots(&in_time, period, today);
        sums
    }
}

/// A slot for each day of the period, or for each month if the period is longer than [`DAYS`] days,
/// with the requests of all sessions. [`Period::All`] begins with the first request.
fn slots(sessions: &[Vec<(Date, &DayUsage)>], period: Period, today: Date) -> Vec<Slot> {
    let days = sessions.iter().flatten().map(|(day, _)| *day);
    let Some(first) = period.first(today).or_else(|| days.min()) else { return Vec::new() };
    let is_long = (today - first).get_days() > DAYS;
    let name = |day: Date| {
        if is_long { day.strftime("%Y-%m").to_string() } else { day.to_string() }
    };
    let (begin, step) =
        if is_long { (first.first_of_month(), 1.month()) } else { (first, 1.day()) };
    let mut slots: BTreeMap<String, Sum> = begin
        .series(step)
        .take_while(|day| *day <= today)
        .map(|day| (name(day), Sum::default()))
        .collect();
    for session in sessions {
        let mut named: BTreeMap<String, Vec<&DayUsage>> = BTreeMap::new();
        for (day, usage) in session {
            named.entry(name(*day)).or_default().push(usage);
        }
        for (when, usages) in named {
            slots.entry(when).or_default().add(usages.into_iter());
        }
    }
    slots.into_iter().map(|(when, sum)| Slot { when, sum }).collect()
}

#[cfg(test)]
#[path = "sums_tests.rs"]
mod tests;
