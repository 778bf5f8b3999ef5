//! Computes what the sessions of this machine cost. The cost of a request is the cost that the
//! session records. If it records none, the provider's token counts are multiplied by list prices.
//!
//! The requests of sub-agents are included. A request that several files contain (a fork begins
//! with a copy of the history) is counted once: it is recognised by the ids that the agent records
//! of it. If the agent records none, every copy is counted.

mod recorded;

use std::collections::{BTreeMap, HashSet};

use epitome_agents as agents;
use epitome_llm::Catalogue;
use epitome_model::{MicroDollars, TokenUsage, Tokens};
use jiff::Timestamp;
use jiff::civil::{Date, Weekday};
use jiff::tz::TimeZone;
use serde::Serialize;

use crate::config::Config;
use crate::drive::catalogue;
use crate::error::Result;

pub(crate) use recorded::{RecordedRequest, RecordedSession, billed_requests};

/// How a report groups requests: each row of the report is the sum of one group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CostBy {
    /// Days in UTC.
    Day,
    /// Weeks in UTC, named by the date of their Monday.
    Week,
    /// The folders in which sessions were run.
    Project,
    /// Models.
    Model,
    /// Agents.
    Agent,
}

impl CostBy {
    /// All ways to group requests.
    pub const ALL: [CostBy; 5] =
        [CostBy::Day, CostBy::Week, CostBy::Project, CostBy::Model, CostBy::Agent];

    /// The name of the grouping in options and JSON.
    pub fn name(self) -> &'static str {
        match self {
            CostBy::Day => "day",
            CostBy::Week => "week",
            CostBy::Project => "project",
            CostBy::Model => "model",
            CostBy::Agent => "agent",
        }
    }

    fn row(self, session: &RecordedSession, request: &RecordedRequest) -> Option<String> {
        match self {
            CostBy::Day => Some(day(request.time?).to_string()),
            CostBy::Week => Some(monday(day(request.time?)).to_string()),
            CostBy::Project => session.project.clone(),
            CostBy::Model => request.model.clone(),
            CostBy::Agent => Some(session.agent.clone()),
        }
    }

    /// Whether the rows are sorted by their names, which are dates. If not, they are sorted by
    /// cost, the most expensive row first.
    fn is_of_time(self) -> bool {
        match self {
            CostBy::Day | CostBy::Week => true,
            CostBy::Project | CostBy::Model | CostBy::Agent => false,
        }
    }
}

/// What sessions cost. Serialised, it is the JSON of `epitome cost --json` (`docs/json.md`). Later
/// versions may add members to it, but change and remove none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CostReport {
    /// How the requests are grouped into rows.
    pub by: CostBy,
    /// The date of the list prices.
    pub prices_of: String,
    /// The rows. Days and weeks are in order of time. Projects, models and agents are in order of
    /// cost, the most expensive first.
    pub rows: Vec<CostRow>,
    /// All rows together.
    pub total: CostSum,
    /// The number of session files that could not be read.
    pub unreadable: u64,
}

/// One row of a report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CostRow {
    /// The day, week, project, model or agent; `None` if the sessions do not record it.
    pub name: Option<String>,
    /// The sum of the row's requests.
    #[serde(flatten)]
    pub sum: CostSum,
}

/// A sum of requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CostSum {
    /// The number of session files that record the requests. The file of a sub-agent counts, too. A
    /// request that is in several files counts only for the first of them.
    pub sessions: u64,
    /// The number of requests.
    pub requests: u64,
    /// Input tokens that were neither read from a cache nor written to one.
    pub input_tokens: Tokens,
    /// Input tokens that were read from a cache.
    pub cached_tokens: Tokens,
    /// Input tokens that were written to a cache.
    pub cache_written_tokens: Tokens,
    /// Output tokens.
    pub output_tokens: Tokens,
    /// What the requests cost, in millionths of a dollar: as a session records it, or else at list
    /// prices.
    pub cost: MicroDollars,
    /// The number of requests of unknown cost, which are not in `cost`.
    pub unpriced: u64,
}

impl CostSum {
    /// All input and output tokens.
    pub fn tokens(&self) -> Tokens {
        self.input_tokens + self.cached_tokens + self.cache_written_tokens + self.output_tokens
    }

    pub(crate) fn add(&mut self, request: &RecordedRequest, prices: &Catalogue) {
        let TokenUsage { input, cached, cache_written, output } = request.usage();
        self.requests += 1;
        self.input_tokens += input;
        self.cached_tokens += cached;
        self.cache_written_tokens += cache_written;
        self.output_tokens += output;
        match request.cost(prices) {
            Some(cost) => self.cost += cost,
            None => self.unpriced += 1,
        }
    }
}

/// Which requests are summed.
#[derive(Clone, Debug, Default)]
pub struct CostFilter<'a> {
    /// Only sessions of this agent. `None`: of all agents.
    pub agent: Option<&'a str>,
    /// Only requests that were answered at this time or later; requests without a time are left
    /// out. `None`: all requests.
    pub since: Option<Timestamp>,
}

/// Sums what the sessions of this machine cost. `takes` returns whether the sessions of a project
/// are included; a project is the folder in which a session was run, `None` if it is unknown. For
/// session files that did not change since an earlier report, the requests are usually taken from a
/// cache.
///
/// # Errors
///
/// The errors of [`catalogue`].
pub fn cost(
    config: &Config,
    by: CostBy,
    filter: &CostFilter<'_>,
    takes: impl Fn(Option<&str>) -> bool,
) -> Result<CostReport> {
    let prices = catalogue(config)?;
    let found = agents::sessions(&config.agents, filter.agent);
    let (mut sessions, unreadable) = recorded::sessions(config, &found);
    sessions.retain(|session| takes(session.project.as_deref()));
    let mut sums = Sums { by, seen: HashSet::new(), rows: BTreeMap::new(), total: Sum::default() };
    for (number, session) in sessions.iter().enumerate() {
        for request in &session.requests {
            if filter.since.is_none_or(|since| request.time.is_some_and(|time| time >= since)) {
                sums.add(number, session, request, &prices);
            }
        }
    }
    Ok(sums.report(prices.date().to_owned(), unreadable))
}

/// The sums of the requests that were added so far.
struct Sums<'s> {
    by: CostBy,
    /// The keys of the requests that were counted.
    seen: HashSet<&'s str>,
    rows: BTreeMap<Option<String>, Sum>,
    total: Sum,
}

#[derive(Default)]
struct Sum {
    sum: CostSum,
    /// The indices of the sessions whose requests are in the sum.
    sessions: HashSet<usize>,
}

impl<'s> Sums<'s> {
    fn add(
        &mut self,
        number: usize,
        session: &'s RecordedSession,
        request: &'s RecordedRequest,
        prices: &Catalogue,
    ) {
        if request.key.as_deref().is_some_and(|key| !self.seen.insert(key)) {
            return;
        }
        let row = self.rows.entry(self.by.row(session, request)).or_default();
        for sum in [row, &mut self.total] {
            sum.sum.add(request, prices);
            sum.sessions.insert(number);
        }
    }

    fn report(self, prices_of: String, unreadable: u64) -> CostReport {
        let rows = self.rows.into_iter().map(|(name, sum)| CostRow { name, sum: sum.finish() });
        let mut rows: Vec<CostRow> = rows.collect();
        if !self.by.is_of_time() {
            rows.sort_by_key(|row| std::cmp::Reverse((row.sum.cost, row.sum.tokens())));
        }
        CostReport { by: self.by, prices_of, rows, total: self.total.finish(), unreadable }
    }
}

impl Sum {
    fn finish(self) -> CostSum {
        CostSum { sessions: self.sessions.len() as u64, ..self.sum }
    }
}

fn day(time: Timestamp) -> Date {
    time.to_zoned(TimeZone::UTC).date()
}

/// The Monday of the week of a day. The day itself if that Monday is before the first possible
/// date.
fn monday(day: Date) -> Date {
    if day.weekday() == Weekday::Monday {
        return day;
    }
    day.nth_weekday(-1, Weekday::Monday).unwrap_or(day)
}

#[cfg(test)]
mod tests;
