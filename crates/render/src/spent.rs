//! The usage of requests, in tokens and money.

use std::collections::HashMap;
use std::fmt;

use epitome_model::{CacheUse, MicroDollars, RecordedUsage, Tokens, Transcript, plural};
use serde::{Deserialize, Serialize};

use crate::prices::Prices;

/// A request that the session records.
pub(crate) struct Request<'a> {
    /// The index of the first item of the transcript that belongs to the response and has a usage.
    pub(crate) item: usize,
    model: Option<&'a str>,
    usage: RecordedUsage,
}

/// The requests of a session that have tokens or a cost, in the order of the session's items. If
/// several records belong to one response, each may contain the usage so far; they count as one
/// request.
pub(crate) fn requests(transcript: &Transcript) -> Vec<Request<'_>> {
    let mut requests: Vec<Request<'_>> = Vec::new();
    let mut groups: HashMap<&str, usize> = HashMap::new();
    for (item, entry) in transcript.entries().filter(|(_, entry)| !entry.repeated) {
        let Some(usage) = entry.usage else { continue };
        let model = entry.model.as_deref();
        let known = entry.group.as_deref().map(|group| {
            *groups.entry(group).or_insert_with(|| {
                requests.push(Request { item, model, usage: RecordedUsage::default() });
                requests.len() - 1
            })
        });
        match known {
            Some(at) => {
                let known = &mut requests[at];
                known.model = model;
                known.usage.input = known.usage.input.max(usage.input);
                known.usage.output = known.usage.output.max(usage.output);
                known.usage.cache = most(known.usage.cache, usage.cache);
                known.usage.cost = known.usage.cost.max(usage.cost);
            }
            None => requests.push(Request { item, model, usage }),
        }
    }
    requests.retain(|request| is_billed(&request.usage));
    requests
}

/// The requests that a session records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordedRequests {
    /// The input of each request in tokens, in order, including cached input.
    pub inputs: Vec<Tokens>,
    /// The cost of all requests together; `None` unless the cost of each is known.
    pub cost: Option<Cost>,
    /// A lower bound of the cost of all requests, if only a part of the cost is known.
    pub cost_floor: Option<CostFloor>,
}

/// The recorded requests of a session, and their cost.
pub fn recorded_requests(transcript: &Transcript, prices: &dyn Prices) -> RecordedRequests {
    let requests = requests(transcript);
    let Spent { cost, cost_floor, .. } = Spent::on(&requests, Some(prices));
    let inputs = requests.iter().map(|request| Tokens(request.usage.input)).collect();
    RecordedRequests { inputs, cost, cost_floor }
}

/// The usage of some requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spent {
    pub(crate) totals: RequestTotals,
    /// The input tokens that were read from a cache; `None` unless each request records them.
    pub(crate) cached: Option<Tokens>,
    /// The cost of all requests together; `None` unless the cost of each is known.
    pub(crate) cost: Option<Cost>,
    /// A lower bound of the cost of all requests, if only a part of the cost is known.
    pub(crate) cost_floor: Option<CostFloor>,
}

impl Spent {
    pub(crate) fn on(requests: &[Request<'_>], prices: Option<&dyn Prices>) -> Spent {
        let mut totals = RequestTotals::default();
        let mut sum = Sum::new(prices);
        for request in requests {
            totals.add(request.usage);
            sum.add(request.model, &request.usage);
        }
        let caches = requests.iter().map(|request| Some(Tokens(request.usage.cache?.read)));
        let cached = caches.sum::<Option<Tokens>>().filter(|_| !requests.is_empty());
        let (cost, cost_floor) = sum.finish();
        Spent { totals, cached, cost, cost_floor }
    }
}

/// Token totals of the requests whose usage the session records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestTotals {
    /// Number of requests with a recorded usage.
    pub requests: u64,
    /// Sum of all input, including cached input.
    pub input: Tokens,
    /// The largest input.
    pub largest: Tokens,
    /// Sum of all output, if it is recorded for each request.
    pub output: Option<Tokens>,
}

/// The cost of requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cost {
    /// Millionths of a dollar.
    pub micro_dollars: MicroDollars,
    /// The day of the list prices; `None` if the session itself records all costs.
    pub prices_of: Option<String>,
}

/// A lower bound of the cost: the sum of the known costs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CostFloor {
    /// Millionths of a dollar.
    pub micro_dollars: MicroDollars,
    /// The day of the list prices; `None` if the session itself records all summed costs.
    pub prices_of: Option<String>,
    /// Number of all requests.
    pub requests: u64,
    /// Number of requests at list prices without recorded output tokens: only their input is in the
    /// sum.
    pub unrecorded_output: u64,
    /// Number of requests whose cost is unknown: they are not in the sum.
    pub unpriced: u64,
}

impl Cost {
    /// The label of the cost.
    pub(crate) fn name(&self) -> String {
        match &self.prices_of {
            Some(date) => format!("about, at list prices of {date}"),
            None => "cost".into(),
        }
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.prices_of {
            Some(date) => write!(f, "about {} at list prices of {date}", self.micro_dollars),
            None => write!(f, "{}", self.micro_dollars),
        }
    }
}

impl CostFloor {
    /// The label of the lower bound, which says what the bound does not include.
    pub(crate) fn name(&self) -> String {
        match &self.prices_of {
            Some(date) => format!("at least, at list prices of {date}: {}", self.missing()),
            None => format!("at least: {}", self.missing()),
        }
    }

    /// A description of what the sum does not include.
    fn missing(&self) -> String {
        let requests = plural(self.requests, "request");
        let mut missing = Vec::new();
        if self.unrecorded_output > 0 {
            let n = self.unrecorded_output;
            missing.push(format!("output tokens of {n} of {requests} are not recorded"));
        }
        if self.unpriced > 0 {
            missing.push(format!("no price is known for {} of {requests}", self.unpriced));
        }
        missing.join("; ")
    }
}

impl fmt::Display for CostFloor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at least {}", self.micro_dollars)?;
        if let Some(date) = &self.prices_of {
            write!(f, " at list prices of {date}")?;
        }
        write!(f, " ({})", self.missing())
    }
}

/// A sum of costs, and the numbers of requests whose cost it does not include, or only in part.
struct Sum<'p> {
    prices: Option<&'p dyn Prices>,
    cost: MicroDollars,
    /// Whether the sum includes list prices.
    is_listed: bool,
    requests: u64,
    unrecorded_output: u64,
    unpriced: u64,
}

impl<'p> Sum<'p> {
    fn new(prices: Option<&'p dyn Prices>) -> Sum<'p> {
        let cost = MicroDollars(0);
        Sum { prices, cost, is_listed: false, requests: 0, unrecorded_output: 0, unpriced: 0 }
    }

    fn add(&mut self, model: Option<&str>, usage: &RecordedUsage) {
        self.requests += 1;
        if let Some(cost) = usage.cost {
            self.cost += cost;
            return;
        }
        match self.prices.zip(model).and_then(|(prices, model)| prices.cost(model, usage)) {
            Some(cost) => {
                self.cost += cost;
                self.is_listed = true;
                self.unrecorded_output += u64::from(usage.output == 0);
            }
            None => self.unpriced += 1,
        }
    }

    /// The cost, or else its lower bound. Both are `None` if no cost is known.
    fn finish(self) -> (Option<Cost>, Option<CostFloor>) {
        if self.requests == self.unpriced {
            return (None, None);
        }
        let date = self.prices.filter(|_| self.is_listed).map(|prices| prices.date().to_owned());
        let micro_dollars = self.cost;
        let prices_of = date;
        if self.unpriced + self.unrecorded_output == 0 {
            return (Some(Cost { micro_dollars, prices_of }), None);
        }
        let Sum { requests, unrecorded_output, unpriced, .. } = self;
        let floor = CostFloor { micro_dollars, prices_of, requests, unrecorded_output, unpriced };
        (None, Some(floor))
    }
}

impl RequestTotals {
    fn add(&mut self, usage: RecordedUsage) {
        let before = if self.requests == 0 { Some(Tokens(0)) } else { self.output };
        self.output = before.filter(|_| usage.output > 0).map(|sum| sum + Tokens(usage.output));
        self.requests += 1;
        self.input += Tokens(usage.input);
        self.largest = self.largest.max(Tokens(usage.input));
    }
}

/// Whether a usage has tokens or a cost. Requests that were aborted or failed may have neither.
fn is_billed(usage: &RecordedUsage) -> bool {
    usage.input > 0 || usage.output > 0 || usage.cost.is_some()
}

fn most(one: Option<CacheUse>, other: Option<CacheUse>) -> Option<CacheUse> {
    let (Some(a), Some(b)) = (one, other) else { return one.or(other) };
    Some(CacheUse { read: a.read.max(b.read), written: a.written.max(b.written) })
}

#[cfg(test)]
mod tests {
    use super::*;

    struct List;

    impl Prices for List {
        fn cost(&self, model: &str, usage: &RecordedUsage) -> Option<MicroDollars> {
            (model == "known").then(|| MicroDollars(usage.input * 2))
        }

        fn date(&self) -> &str {
            "2026-11-21"
        }
    }

    #[test]
    fn a_cost_is_whole_or_a_floor_that_says_what_is_missing() {
        let stored = |cost| RecordedUsage {
            input: 7,
            cost: Some(MicroDollars(cost)),
            ..RecordedUsage::default()
        };
        let listed = RecordedUsage { input: 10, output: 1, ..RecordedUsage::default() };
        let unfinished = RecordedUsage { input: 10, ..RecordedUsage::default() };
        let cost_of = |requests: &[(&str, RecordedUsage)], prices: Option<&dyn Prices>| {
            let mut sum = Sum::new(prices);
            requests.iter().for_each(|(model, usage)| sum.add(Some(model), usage));
            let (cost, floor) = sum.finish();
            cost.map(|it| it.to_string()).or(floor.map(|it| it.to_string()))
        };
        let list: Option<&dyn Prices> = Some(&List);
        let some = |text: &str| Some(text.to_owned());
        for (requests, prices, expect) in [
            (vec![("x", stored(400_000)), ("x", stored(20_000))], list, some("$0.42")),
            (
                vec![("x", stored(400_000)), ("known", listed)],
                list,
                some("about $0.40 at list prices of 2026-11-21"),
            ),
            (vec![("known", listed)], list, some("about $0.0000 at list prices of 2026-11-21")),
            (
                vec![("x", stored(400_000)), ("x", listed)],
                list,
                some("at least $0.40 (no price is known for 1 of 2 requests)"),
            ),
            (
                vec![("x", stored(400_000)), ("known", unfinished), ("x", listed)],
                list,
                some(
                    "at least $0.40 at list prices of 2026-11-21 (output tokens of 1 of 3 requests \
                     are not recorded; no price is known for 1 of 3 requests)",
                ),
            ),
            (vec![("known", listed)], None, None),
            (vec![("x", unfinished)], list, None),
            (vec![], list, None),
        ] {
            assert_eq!(cost_of(&requests, prices), expect, "{requests:?}");
        }
    }
}
