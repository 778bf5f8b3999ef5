//! What happens in a recorded session: `assets/scenario.toml`, played with the tools of an agent.

use crate::action::Action;
use crate::agent::Agent;
use crate::project::{Scale, manual};
use crate::sandbox::Sandbox;
use model_server::{Script, Step, Track};
use serde::Deserialize;
use std::collections::BTreeMap;

/// One answer of the model.
#[derive(Debug, Clone, Deserialize)]
pub struct Move {
    thinking: Option<String>,
    text: Option<String>,
    #[serde(default)]
    actions: Vec<Action>,
}

/// What the user says, and all the model answers to it.
#[derive(Debug, Clone, Deserialize)]
pub struct Turn {
    /// The user's words.
    pub prompt: String,
    /// The model's answers; the last one calls nothing.
    pub moves: Vec<Move>,
}

/// Which session is played.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Play {
    /// Every kind of call, over five turns.
    Full,
    /// A turn, the agent's own compaction, and a turn after it.
    OwnCompaction,
}

/// A whole session.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// What is played.
    pub play: Play,
    /// How big the project is.
    pub scale: Scale,
    /// The user's turns, each a run of the agent.
    pub turns: Vec<Turn>,
}

impl Scenario {
    /// The session every agent is recorded with.
    pub fn full(agent: &dyn Agent) -> Self {
        let facts = agent.facts();
        let mut names = vec!["fix", "document", "import", "delegate", "recall"];
        names.retain(|name| match *name {
            "document" => facts.appends,
            "delegate" => facts.records_sub_agents,
            _ => true,
        });
        let turns = names.into_iter().map(|name| turn(name, facts.scale)).collect();
        Self { play: Play::Full, scale: facts.scale, turns }
    }

    /// A session that the agent itself compacts after the first turn: because it is asked to, or
    /// because its context is full.
    pub fn own_compaction(agent: &dyn Agent) -> Self {
        let scale = Scale::SMALL;
        let compact = turn("compact", scale);
        let command = agent.facts().compact_command;
        let command = command.map(|prompt| Turn { prompt: prompt.to_owned(), ..compact });
        let [fix, recall] = ["fix", "recall"].map(|name| turn(name, scale));
        let turns = [fix].into_iter().chain(command).chain([recall]).collect();
        Self { play: Play::OwnCompaction, scale, turns }
    }

    /// The script for `sandbox`: the same moves, in its agent's own tools.
    pub fn script(&self, sandbox: &Sandbox) -> Script {
        let summary = turn("compact", self.scale).last_words();
        let count = turn("count", self.scale);
        Script {
            canned: (self.play == Play::OwnCompaction).then_some(summary),
            steps: self.turns.iter().flat_map(|turn| turn.steps(sandbox)).collect(),
            tracks: vec![Track { steps: count.steps(sandbox), mark: count.prompt }],
            aside: None,
        }
    }
}

impl Turn {
    /// The turn with which a session is resumed: one call of a tool, then the last words.
    pub fn resume() -> Self {
        turn("resume", Scale::SMALL)
    }

    /// The answers of the model, in the tools of the sandbox's agent.
    pub fn steps(&self, sandbox: &Sandbox) -> Vec<Step> {
        let step = |one: &Move| Step {
            thinking: one.thinking.clone(),
            text: one.text.clone(),
            calls: one.actions.iter().map(|action| sandbox.call(action)).collect(),
            ..Step::default()
        };
        self.moves.iter().map(step).collect()
    }

    /// What the model says at the end: that it was said shows that the turn was played to its end.
    pub fn last_words(&self) -> String {
        self.moves.last().and_then(|last| last.text.clone()).unwrap_or_default()
    }
}

/// The turn of this name, in a project of this size.
fn turn(name: &str, scale: Scale) -> Turn {
    #[derive(Deserialize)]
    struct File {
        turns: BTreeMap<String, Turn>,
    }
    let file: File = toml::from_str(include_str!("../assets/scenario.toml")).expect("turns");
    let mut turns = file.turns;
    let mut turn = turns.remove(name).expect("a turn of the scenario");
    for action in turn.moves.iter_mut().flat_map(|one| &mut one.actions) {
        if let Action::Write { content, .. } = action {
            *content = content.replace("{manual}", &manual(scale));
        }
    }
    turn
}
