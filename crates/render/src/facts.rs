//! A session in figures.

use std::collections::HashMap;

use epitome_model::{Block, Role, Tokens, Usage};
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
        let Session { agent, transcript, changes, .. } = story.session;
        let mut facts = Facts {
            agent: agent.to_owned(),
            id: transcript.head.id.as_deref().map(str::to_owned),
            title: story.title(),
            cwd: transcript.head.cwd.as_deref().map(str::to_owned),
            turns: story.turns.len() as u64,
            changes,
            ..Facts::default()
        };
        let mut groups: HashMap<&str, Usage> = HashMap::new();
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
                    let known = groups.entry(group).or_default();
                    known.input = known.input.max(usage.input);
                    known.output = known.output.max(usage.output);
                }
                (Some(usage), None) => facts.spent.add(usage),
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
        groups.into_values().for_each(|usage| facts.spent.add(usage));
        facts.started = times.iter().min().map(ToString::to_string);
        facts.ended = times.iter().max().map(ToString::to_string);
        facts
    }
}
