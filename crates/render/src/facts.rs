//! A session in figures.

use std::collections::HashMap;
use std::fmt;

use epitome_model::{Block, CacheUse, MicroDollars, Role, Tokens, Usage};
use serde::{Deserialize, Serialize};

use crate::{Changes, Session, Story, time};

/// What is known of a session at a glance: what stands above a page and in a manifest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// The name of its agent.
    pub agent: String,
    /// Its id, if it has one.
    pub id: Option<String>,
    /// What it is called.
    pub title: String,
    /// The folder it was run in.
    pub cwd: Option<String>,
    /// When it began, in RFC 3339 where the session's way of writing times is known.
    pub started: Option<String>,
    /// When it was last written to.
    pub ended: Option<String>,
    /// The models that wrote it, in order.
    pub models: Vec<String>,
    /// Turns.
    pub turns: u64,
    /// Calls of tools.
    pub calls: u64,
    /// Calls that failed.
    pub failed: u64,
    /// Tokens, as the provider counted them.
    pub spent: Spent,
    /// What all requests cost together, if that is known of each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
    /// What it did to files.
    pub changes: Changes,
}

/// Tokens of all requests, where the session says what they came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spent {
    /// Requests that say it.
    pub requests: u64,
    /// Input of all of them together, from a cache or not.
    pub input: Tokens,
    /// The largest input.
    pub largest: Tokens,
    /// Output of all of them together, if every one says what it came to.
    pub output: Option<Tokens>,
}

/// What requests cost at list prices.
pub trait Prices: Sync {
    /// What one request to a model cost; nothing if its price, or what of its tokens had to do with
    /// a cache, is not known.
    fn cost(&self, model: &str, usage: &Usage) -> Option<MicroDollars>;

    /// The day of the prices: `2026-11-20`.
    fn date(&self) -> &str;
}

/// What requests cost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cost {
    /// Millionths of a dollar.
    pub micro_dollars: MicroDollars,
    /// The day of the list prices; nothing when the session itself says what each request cost.
    pub prices_of: Option<String>,
}

impl Cost {
    /// What is said beside the sum.
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

/// The sum so far, and whether a price of the list is in it; nothing once a request's is not known.
struct Sum<'p> {
    prices: Option<&'p dyn Prices>,
    cost: Option<MicroDollars>,
    is_listed: bool,
}

impl Sum<'_> {
    fn add(&mut self, model: Option<&str>, usage: &Usage) {
        let listed = || self.prices?.cost(model?, usage);
        let cost = usage.cost.or_else(listed);
        self.is_listed |= usage.cost.is_none();
        self.cost = self.cost.zip(cost).map(|(sum, cost)| sum + cost);
    }

    fn told(self, requests: u64) -> Option<Cost> {
        let micro_dollars = self.cost.filter(|_| requests > 0)?;
        let date = self.prices.filter(|_| self.is_listed).map(|prices| prices.date().to_owned());
        Some(Cost { micro_dollars, prices_of: date })
    }
}

impl Spent {
    fn add(&mut self, usage: Usage) {
        let before = if self.requests == 0 { Some(Tokens(0)) } else { self.output };
        self.output = before.filter(|_| usage.output > 0).map(|sum| sum + Tokens(usage.output));
        self.requests += 1;
        self.input += Tokens(usage.input);
        self.largest = self.largest.max(Tokens(usage.input));
    }
}

impl Facts {
    /// The facts of a session.
    pub fn of(story: &Story<'_>) -> Facts {
        let Session { agent, transcript, changes, prices, .. } = story.session;
        let mut facts = Facts {
            agent: agent.to_owned(),
            id: transcript.head.id.as_deref().map(str::to_owned),
            title: story.title(),
            cwd: transcript.head.cwd.as_deref().map(str::to_owned),
            turns: story.turns.len() as u64,
            changes,
            ..Facts::default()
        };
        let mut groups: HashMap<&str, (Option<&str>, Usage)> = HashMap::new();
        let mut sum = Sum { prices, cost: Some(MicroDollars(0)), is_listed: false };
        let mut times = Vec::new();
        for (_, entry) in transcript.entries() {
            times.extend(entry.time.as_deref().and_then(time::parse));
            if let Some(model) = &entry.model
                && entry.role == Role::Assistant
                && !facts.models.iter().any(|known| **known == **model)
            {
                facts.models.push(model.to_string());
            }
            match (entry.usage, entry.group.as_deref()) {
                // Each record of a response may say what it came to so far.
                (Some(usage), Some(group)) => {
                    let (model, known) = groups.entry(group).or_default();
                    *model = entry.model.as_deref();
                    known.input = known.input.max(usage.input);
                    known.output = known.output.max(usage.output);
                    known.cache = most(known.cache, usage.cache);
                    known.cost = known.cost.max(usage.cost);
                }
                (Some(usage), None) => {
                    facts.spent.add(usage);
                    sum.add(entry.model.as_deref(), &usage);
                }
                (None, _) => {}
            }
            for block in &entry.blocks {
                match block {
                    Block::Call(_) => facts.calls += 1,
                    Block::Output(output) => facts.failed += u64::from(output.error),
                    _ => {}
                }
            }
        }
        for (model, usage) in groups.into_values() {
            facts.spent.add(usage);
            sum.add(model, &usage);
        }
        facts.cost = sum.told(facts.spent.requests);
        facts.started = times.iter().min().map(ToString::to_string);
        facts.ended = times.iter().max().map(ToString::to_string);
        facts
    }
}

/// So many of them.
pub(crate) fn counted(number: u64, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
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
        fn cost(&self, model: &str, usage: &Usage) -> Option<MicroDollars> {
            (model == "known").then(|| MicroDollars(usage.input * 2))
        }

        fn date(&self) -> &str {
            "2026-11-21"
        }
    }

    #[test]
    fn a_cost_is_told_when_that_of_every_request_is_known() {
        let said = |cost| Usage { input: 7, cost: Some(MicroDollars(cost)), ..Usage::default() };
        let listed = Usage { input: 10, ..Usage::default() };
        let told = |requests: &[(&str, Usage)], prices: Option<&dyn Prices>| {
            let mut sum = Sum { prices, cost: Some(MicroDollars(0)), is_listed: false };
            requests.iter().for_each(|(model, usage)| sum.add(Some(model), usage));
            sum.told(requests.len() as u64).map(|cost| cost.to_string())
        };
        let list: Option<&dyn Prices> = Some(&List);
        let about = |dollars: &str| Some(format!("about {dollars} at list prices of 2026-11-21"));
        for (requests, prices, expect) in [
            (vec![("x", said(400_000)), ("x", said(20_000))], list, Some("$0.42".to_owned())),
            (vec![("x", said(400_000)), ("known", listed)], list, about("$0.40")),
            (vec![("known", listed)], list, about("$0.0000")),
            (vec![("x", said(400_000)), ("x", listed)], list, None),
            (vec![("known", listed)], None, None),
            (vec![], list, None),
        ] {
            assert_eq!(told(&requests, prices), expect, "{requests:?}");
        }
    }
}
