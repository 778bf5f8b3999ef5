//! A session as it happened: its requests, their cost and the agent's own compactions, as far as
//! the session records them.

use epitome_llm::Catalogue;
use epitome_model::{Block, Entry, Item, MicroDollars, Role, Tokens, Transcript};
use epitome_render::recorded_requests;
use serde::Serialize;

use crate::render::ListPrices;

/// What sessions record about their requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct RecordedCost {
    /// The number of requests whose tokens are recorded.
    pub requests: u64,
    /// The cost of these requests, in millionths of a dollar; `null` if no price is known.
    pub micro_dollars: Option<MicroDollars>,
    /// Whether the real cost may be higher than `micro_dollars`, for example because a price is not
    /// known.
    pub at_least: bool,
    /// The cost divided by the cost of the same sessions without compaction; `null` if the first
    /// cost is not known, or if the second is 0.
    pub cost: Option<f64>,
    /// The mean number of tokens in a request.
    pub context: Tokens,
    /// The share of requests that exceed the window (0 to 1).
    pub over: f64,
    /// The number of compactions that the sessions record.
    pub compactions: u64,
    #[serde(skip)]
    sums: Sums,
}

/// The sums from which the figures over several sessions are computed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Sums {
    input: Tokens,
    over: u64,
    /// The cost without compaction, of those sessions whose real cost is known.
    uncompacted: MicroDollars,
}

impl RecordedCost {
    /// The figures of one session; `None` if the session records the tokens of no request.
    pub(super) fn in_session(
        transcript: &Transcript,
        prices: &Catalogue,
        window: Tokens,
        uncompacted: MicroDollars,
    ) -> Option<RecordedCost> {
        let requests = recorded_requests(transcript, &ListPrices(prices));
        if requests.inputs.is_empty() {
            return None;
        }
        let cost = requests.cost.map(|cost| cost.micro_dollars);
        let floor = requests.cost_floor.map(|floor| floor.micro_dollars);
        let micro_dollars = cost.or(floor);
        let over = requests.inputs.iter().filter(|input| **input > window).count() as u64;
        let sums = Sums {
            input: requests.inputs.iter().copied().sum(),
            over,
            uncompacted: micro_dollars.map_or(MicroDollars(0), |_| uncompacted),
        };
        let recorded = RecordedCost {
            requests: requests.inputs.len() as u64,
            micro_dollars,
            at_least: cost.is_none(),
            compactions: compactions(transcript),
            sums,
            ..RecordedCost::default()
        };
        Some(recorded.finished())
    }

    /// The figures of several sessions together. `None` if no session has figures; if only some
    /// have, the cost is a lower limit.
    pub(super) fn over_all(sessions: &[Option<RecordedCost>]) -> Option<RecordedCost> {
        let mut all: Option<RecordedCost> = None;
        for one in sessions.iter().flatten() {
            let sum = all.get_or_insert_default();
            sum.requests += one.requests;
            sum.compactions += one.compactions;
            sum.at_least |= one.at_least;
            sum.micro_dollars = match (sum.micro_dollars, one.micro_dollars) {
                (Some(a), Some(b)) => Some(MicroDollars(a.0 + b.0)),
                (one, other) => one.or(other),
            };
            sum.sums.input += one.sums.input;
            sum.sums.over += one.sums.over;
            sum.sums.uncompacted.0 += one.sums.uncompacted.0;
        }
        let mut all = all?;
        all.at_least |= sessions.iter().any(Option::is_none);
        Some(all.finished())
    }

    /// Computes the figures from the sums.
    fn finished(self) -> RecordedCost {
        let Sums { input, over, uncompacted } = self.sums;
        let requests = self.requests.max(1);
        let ratio = |cost: MicroDollars| rounded(cost.0 as f64 / uncompacted.0 as f64);
        RecordedCost {
            context: Tokens(input.0 / requests),
            over: rounded(over as f64 / requests as f64),
            cost: self.micro_dollars.filter(|_| uncompacted.0 > 0).map(ratio),
            ..self
        }
    }

    /// The cost as text, such as `≥ $1.20` if the real cost may be higher; `None` if no price is
    /// known.
    pub fn dollars(&self) -> Option<String> {
        let sign = if self.at_least { "≥ " } else { "" };
        self.micro_dollars.map(|dollars| format!("{sign}{dollars}"))
    }
}

/// The number of times that a summary, or a copy of a part of the history, replaced the history.
fn compactions(transcript: &Transcript) -> u64 {
    let replaces = |entry: &Entry| {
        entry.repeated || entry.blocks.iter().any(|it| matches!(it, Block::Summary(_)))
    };
    let mut count = 0;
    let mut is_within = false;
    for entry in transcript.items.iter().filter_map(Item::entry) {
        if replaces(entry) {
            count += u64::from(!is_within);
            is_within = true;
        } else if entry.role != Role::System {
            is_within = false;
        }
    }
    count
}

/// A share rounded to four decimals, so that equal figures have equal texts.
pub(super) fn rounded(share: f64) -> f64 {
    (share * 10_000.0).round() / 10_000.0
}
