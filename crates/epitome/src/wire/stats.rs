//! Sums of the requests that `epitome proxy` passed on: by day, model or agent, and for each cut.
//! Conversations that were held out for comparison are compared with the others.

use std::collections::{BTreeMap, BTreeSet};

use epitome_model::{MicroDollars, TokenUsage, Tokens};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Serialize;

use super::Chain;
use super::comparison::{Comparison, compare};
use super::ledger::{End, Group, LedgerLine, LedgerLines, Treatment};

/// How a report groups requests: each row of the report is the sum of one group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum StatsBy {
    /// Days in UTC.
    Day,
    /// Models.
    Model,
    /// Agents.
    Agent,
}

impl StatsBy {
    /// All ways to group requests.
    pub const ALL: [StatsBy; 3] = [StatsBy::Day, StatsBy::Model, StatsBy::Agent];

    /// The name of the grouping in options and JSON.
    pub fn name(self) -> &'static str {
        match self {
            StatsBy::Day => "day",
            StatsBy::Model => "model",
            StatsBy::Agent => "agent",
        }
    }

    fn row(self, line: &LedgerLine) -> Option<String> {
        match self {
            StatsBy::Day => Some(line.time.to_zoned(TimeZone::UTC).date().to_string()),
            StatsBy::Model => line.model.clone(),
            StatsBy::Agent => line.agent.clone(),
        }
    }
}

/// What the proxy passed on. Its serde form is the JSON of `epitome proxy --stats --json`
/// (`docs/schema/proxy.schema.json`): members are added to it, never changed or removed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProxyReport {
    /// How the requests are grouped into rows.
    pub by: StatsBy,
    /// The rows. Days are in order of time; models and agents begin with the most expensive.
    pub rows: Vec<StatsRow>,
    /// All rows together.
    pub total: RequestSum,
    /// The cuts (decisions to shorten or drop the beginning of a conversation), the newest first.
    pub cuts: Vec<CutSum>,
    /// The conversations that the proxy may change, compared with those that are held out from
    /// changes. `None` if none is held out.
    pub comparison: Option<Comparison>,
    /// The number of lines of the ledger (the proxy's list of requests) that cannot be read.
    pub skipped: u64,
}

/// One row of a report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StatsRow {
    /// The day, model or agent; `None` if the request does not name it.
    pub name: Option<String>,
    /// The sum of the row.
    #[serde(flatten)]
    pub sum: RequestSum,
}

/// A sum of requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RequestSum {
    /// The number of conversations.
    pub conversations: u64,
    /// The number of requests.
    pub requests: u64,
    /// Requests whose tokens the service counted. All sums of tokens and costs include only these
    /// requests.
    pub metered: u64,
    /// Metered requests whose cost, or whose cost without the proxy's changes, is not known. They
    /// are in no sum of costs.
    pub unpriced: u64,
    /// Input tokens that were neither read from a cache nor written to one.
    pub input_tokens: Tokens,
    /// Input tokens that were read from a cache.
    pub cached_tokens: Tokens,
    /// Input tokens that were written to a cache.
    pub cache_written_tokens: Tokens,
    /// Output tokens.
    pub output_tokens: Tokens,
    /// Input tokens that were not sent, by the proxy's own count.
    pub saved_tokens: Tokens,
    /// What the metered requests cost at list prices, in millionths of a dollar, without those that
    /// are `unpriced`.
    pub cost: MicroDollars,
    /// What the same requests would have cost without the proxy's changes.
    pub unchanged_cost: MicroDollars,
    /// Requests that were sent as they came, for any reason.
    pub passed: u64,
    /// Requests that were changed only by decisions that were made for earlier requests.
    pub known: u64,
    /// Requests with results that were shortened for the first time.
    pub shortened: u64,
    /// Requests in which a cut was made: messages at the beginning of the conversation were
    /// shortened or dropped.
    pub cut: u64,
    /// Requests of conversations that are held out from changes, for comparison; they are also in
    /// `passed`.
    pub held_out: u64,
    /// The number of removed texts to which models referred in calls.
    pub recalled: u64,
    /// Responses with a status of 400 or more.
    pub errors: u64,
    /// Requests without a response.
    pub unreachable: u64,
    /// Responses that ended early.
    pub interrupted: u64,
    /// Requests in which something passed unchanged because of an error of epitome.
    pub failed: u64,
}

impl RequestSum {
    /// Adds a request. Conversations are not counted.
    pub fn add(&mut self, line: &LedgerLine) {
        self.requests += 1;
        if let Some(usage) = line.usage {
            self.add_usage(usage);
            self.saved_tokens += line.saved;
            match line.cost.zip(line.unchanged_cost) {
                Some((cost, unchanged)) => {
                    self.cost += cost;
                    self.unchanged_cost += unchanged;
                }
                None => self.unpriced += 1,
            }
        }
        match line.treatment {
            Treatment::Passed => self.passed += 1,
            Treatment::Known => self.known += 1,
            Treatment::Shortened => self.shortened += 1,
            Treatment::Cut => self.cut += 1,
        }
        match line.end {
            End::Complete => {}
            End::Interrupted => self.interrupted += 1,
            End::Unreachable => self.unreachable += 1,
        }
        self.held_out += u64::from(line.group == Group::Holdout);
        self.recalled += line.recalled.len() as u64;
        self.errors += u64::from(line.status.is_some_and(|status| status >= 400));
        self.failed += u64::from(line.failed);
    }

    fn add_usage(&mut self, usage: TokenUsage) {
        let TokenUsage { input, cached, cache_written, output } = usage;
        self.metered += 1;
        self.input_tokens += input;
        self.cached_tokens += cached;
        self.cache_written_tokens += cache_written;
        self.output_tokens += output;
    }

    /// The requests that are not in the sums or went wrong, by reason: their number, and the words
    /// that follow `3 requests` in a report. Reasons without requests are left out.
    pub fn shortfalls(&self) -> Vec<(u64, &'static str)> {
        let mut shortfalls = vec![
            (self.requests - self.metered, "without a count from the service, in no sum of tokens"),
            (self.unpriced, "of unknown price, in no cost"),
            (self.errors, "answered with an error"),
            (self.unreachable, "without a response"),
            (self.interrupted, "whose response ended early"),
            (self.failed, "in which something passed unchanged after an error of epitome"),
        ];
        shortfalls.retain(|(requests, _)| *requests > 0);
        shortfalls
    }

    /// All input tokens.
    pub fn all_input(&self) -> Tokens {
        self.input_tokens + self.cached_tokens + self.cache_written_tokens
    }

    /// Whether the price of any metered request is known.
    pub fn has_price(&self) -> bool {
        self.metered > self.unpriced
    }
}

/// A cut that the proxy made in a conversation, and what it has saved since.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CutSum {
    /// When the request in which the cut was made ended.
    pub time: Timestamp,
    /// The conversation.
    pub session: Option<Chain>,
    /// The agent, if it is known.
    pub agent: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// Tokens that the provider had to write to its cache again.
    pub rewritten_tokens: Tokens,
    /// How much more it cost to write them again than to read them from the cache, at list prices;
    /// `None` if the price is not known.
    pub price: Option<MicroDollars>,
    /// The number of metered requests so far that the cut made smaller, including the request in
    /// which it was made.
    pub requests: u64,
    /// The tokens that were not sent in these requests because of the cut.
    pub saved_tokens: Tokens,
    /// What these tokens would have cost at list prices; `None` if the price of the cut or of one
    /// of these requests is not known.
    pub saved: Option<MicroDollars>,
}

/// Sums up the requests of a ledger.
pub fn report(read: &LedgerLines, by: StatsBy) -> ProxyReport {
    let mut rows: BTreeMap<Option<String>, Sum> = BTreeMap::new();
    let mut total = Sum::default();
    for line in &read.lines {
        rows.entry(by.row(line)).or_default().add(line);
        total.add(line);
    }
    let rows = rows.into_iter().map(|(name, sum)| StatsRow { name, sum: sum.finish() });
    let mut rows: Vec<StatsRow> = rows.collect();
    match by {
        StatsBy::Day => {}
        StatsBy::Model | StatsBy::Agent => {
            rows.sort_by_key(|row| std::cmp::Reverse((row.sum.cost, row.sum.all_input())));
        }
    }
    ProxyReport {
        by,
        rows,
        total: total.finish(),
        cuts: cuts(&read.lines),
        comparison: compare(&read.lines),
        skipped: read.skipped,
    }
}

#[derive(Default)]
struct Sum {
    sum: RequestSum,
    conversations: BTreeSet<Chain>,
}

impl Sum {
    fn add(&mut self, line: &LedgerLine) {
        self.sum.add(line);
        self.conversations.extend(line.session);
    }

    fn finish(self) -> RequestSum {
        RequestSum { conversations: self.conversations.len() as u64, ..self.sum }
    }
}

/// The cuts that the lines report, the newest first.
fn cuts(lines: &[LedgerLine]) -> Vec<CutSum> {
    let mut cuts: BTreeMap<Chain, CutSum> = BTreeMap::new();
    for line in lines {
        let Some(made) = line.cut else { continue };
        // If a request was sent twice, both lines report the same cut.
        cuts.entry(made.id).or_insert_with(|| CutSum {
            time: line.time,
            session: line.session,
            agent: line.agent.clone(),
            model: line.model.clone(),
            rewritten_tokens: made.rewritten,
            price: made.price,
            requests: 0,
            saved_tokens: Tokens(0),
            saved: made.price.map(|_| MicroDollars(0)),
        });
    }
    for line in lines.iter().filter(|line| line.usage.is_some()) {
        for used in &line.cuts {
            let Some(cut) = cuts.get_mut(&used.id) else { continue };
            cut.requests += 1;
            cut.saved_tokens += used.tokens;
            cut.saved = cut.saved.zip(used.saved).map(|(sum, saved)| sum + saved);
        }
    }
    let mut cuts: Vec<CutSum> = cuts.into_values().collect();
    cuts.sort_by_key(|cut| std::cmp::Reverse(cut.time));
    cuts
}

#[cfg(test)]
mod tests {
    use super::super::ledger::{MadeCut, UsedCut};
    use super::*;

    fn line(day: u8, session: u8) -> LedgerLine {
        let usage = TokenUsage { cached: Tokens(100), output: Tokens(5), ..TokenUsage::default() };
        LedgerLine {
            time: format!("2026-11-{day:02}T10:00:00Z").parse().expect("a time"),
            session: Some(Chain::from_bytes([session; 16])),
            model: Some("m".into()),
            usage: Some(usage),
            cost: Some(MicroDollars(10)),
            unchanged_cost: Some(MicroDollars(15)),
            saved: Tokens(50),
            ..LedgerLine::default()
        }
    }

    fn sums(lines: Vec<LedgerLine>, by: StatsBy) -> ProxyReport {
        report(&LedgerLines { lines, skipped: 0 }, by)
    }

    #[test]
    fn requests_are_summed_by_day() {
        let other = LedgerLine { cost: None, unchanged_cost: None, ..line(2, 2) };
        let refused = LedgerLine { status: Some(529), usage: None, ..line(2, 2) };
        let report = sums(vec![line(2, 1), line(1, 1), line(2, 1), other, refused], StatsBy::Day);
        let rows: Vec<_> = report.rows.iter().map(|row| row.name.as_deref()).collect();
        assert_eq!(rows, [Some("2026-11-01"), Some("2026-11-02")]);
        let expect = RequestSum {
            conversations: 2,
            requests: 4,
            metered: 3,
            unpriced: 1,
            cached_tokens: Tokens(300),
            output_tokens: Tokens(15),
            saved_tokens: Tokens(150),
            cost: MicroDollars(20),
            unchanged_cost: MicroDollars(30),
            passed: 4,
            errors: 1,
            ..RequestSum::default()
        };
        assert_eq!(report.rows[1].sum, expect);
        assert_eq!((report.total.conversations, report.total.requests), (2, 5));
        assert_eq!(report.comparison, None);
    }

    #[test]
    fn the_most_expensive_model_is_first() {
        let model = |name: &str, cost| LedgerLine {
            model: Some(name.into()),
            cost: Some(MicroDollars(cost)),
            ..line(1, 1)
        };
        let none = LedgerLine { model: None, ..line(1, 1) };
        let report = sums(vec![model("a", 2), none, model("b", 30)], StatsBy::Model);
        let rows: Vec<_> = report.rows.iter().map(|row| row.name.as_deref()).collect();
        assert_eq!(rows, [Some("b"), None, Some("a")]);
    }

    #[test]
    fn a_cut_has_its_price_and_what_it_saved_since() {
        let id = Chain::from_bytes([9; 16]);
        let used = |saved| vec![UsedCut { id, tokens: Tokens(40), saved }];
        let made = MadeCut { id, rewritten: Tokens(70), price: Some(MicroDollars(80)) };
        let first = LedgerLine { cut: Some(made), cuts: used(Some(MicroDollars(4))), ..line(1, 1) };
        let later = LedgerLine { cuts: used(Some(MicroDollars(4))), ..line(2, 1) };
        let uncounted = LedgerLine { usage: None, ..later.clone() };
        let report = sums(vec![first.clone(), later.clone(), uncounted], StatsBy::Day);
        let expect = CutSum {
            time: first.time,
            session: first.session,
            agent: None,
            model: Some("m".into()),
            rewritten_tokens: Tokens(70),
            price: Some(MicroDollars(80)),
            requests: 2,
            saved_tokens: Tokens(80),
            saved: Some(MicroDollars(8)),
        };
        assert_eq!(report.cuts, std::slice::from_ref(&expect));
        // A request of unknown price makes the whole sum unknown.
        let unknown = LedgerLine { cuts: used(None), ..line(2, 1) };
        let report = sums(vec![first, later, unknown], StatsBy::Day);
        let expect = CutSum { requests: 3, saved_tokens: Tokens(120), saved: None, ..expect };
        assert_eq!(report.cuts, [expect]);
    }
}
