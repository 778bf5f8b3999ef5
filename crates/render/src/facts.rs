//! Key figures of a session.

use epitome_model::{Block, Role, turns};
use serde::{Deserialize, Serialize};

use crate::spent::{Cost, CostFloor, RequestTotals, Spent, requests};
use crate::{Changes, Story, StorySession, time};

/// The key figures of a session, as in the header of a page and in a manifest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// The name of the session's agent.
    pub agent: String,
    /// The id of the session, if it has one.
    pub id: Option<String>,
    /// The title of the session.
    pub title: String,
    /// The folder in which the session was run.
    pub cwd: Option<String>,
    /// When the session began, in RFC 3339. `None` if it records no time in a known format.
    pub started: Option<String>,
    /// When the last record was written, in RFC 3339. `None` if the session records no time in a
    /// known format.
    pub ended: Option<String>,
    /// The models that wrote the answers, in the order of their first answers.
    pub models: Vec<String>,
    /// The number of turns, as [`turns`] counts them.
    pub turns: u64,
    /// The number of tool calls.
    pub calls: u64,
    /// The number of tool calls that failed.
    pub failed: u64,
    /// Totals of the tokens that the provider counted.
    pub spent: RequestTotals,
    /// The cost of all requests, if it is known for each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
    /// A lower bound of the cost, if only a part of the cost is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_floor: Option<CostFloor>,
    /// The number of changed files and lines.
    pub changes: Changes,
}

impl Facts {
    /// The facts of a session.
    pub fn from_story(story: &Story<'_>) -> Facts {
        let StorySession { agent, transcript, source, changes, prices, .. } = story.session;
        let mut facts = Facts {
            agent: agent.to_owned(),
            id: transcript.head.id.as_deref().map(str::to_owned),
            title: story.title(),
            cwd: transcript.head.cwd.as_deref().map(str::to_owned),
            turns: turns(transcript, source).len() as u64,
            changes,
            ..Facts::default()
        };
        let mut times = Vec::new();
        for (_, entry) in transcript.entries() {
            times.extend(entry.time.as_deref().and_then(time::parse));
            if let Some(model) = &entry.model
                && entry.role == Role::Assistant
                && !facts.models.iter().any(|known| **known == **model)
            {
                facts.models.push(model.to_string());
            }
            for block in entry.blocks.iter().filter(|_| !entry.repeated) {
                match block {
                    Block::Call(_) => facts.calls += 1,
                    Block::Output(output) => facts.failed += u64::from(output.error),
                    _ => {}
                }
            }
        }
        let spent = Spent::on(&requests(transcript), prices);
        facts.spent = spent.totals;
        facts.cost = spent.cost;
        facts.cost_floor = spent.cost_floor;
        facts.started = times.iter().min().map(ToString::to_string);
        facts.ended = times.iter().max().map(ToString::to_string);
        facts
    }

    /// The cost, or its lower bound, as text.
    pub(crate) fn cost_in_words(&self) -> Option<String> {
        let floor = self.cost_floor.as_ref().map(ToString::to_string);
        self.cost.as_ref().map(ToString::to_string).or(floor)
    }
}

#[cfg(test)]
#[path = "facts_tests.rs"]
mod of_samples;
