//! The script of a recorded session: `assets/scenario.toml`, played with the tools of an agent.

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

/// A user message, and all answers of the model to it.
#[derive(Debug, Clone, Deserialize)]
pub struct Turn {
    /// The text of the user message.
    pub prompt: String,
    /// The model's answers; the last one has no call.
    pub moves: Vec<Move>,
}

/// The session that is played.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Play {
    /// All kinds of calls, in five turns.
    Full,
    /// A turn, the agent's own compaction, and a turn after it.
    OwnCompaction,
}

/// A whole session.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// The session that is played.
    pub play: Play,
    /// The size of the project.
    pub scale: Scale,
    /// The user's turns; each is a run of the agent.
    pub turns: Vec<Turn>,
}

impl Scenario {
    /// The session that is recorded with every agent.
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

    /// A session that the agent itself compacts after the first turn: by command, or because its
    /// context is full.
    pub fn own_compaction(agent: &dyn Agent) -> Self {
        let scale = Scale::SMALL;
        let compact = turn("compact", scale);
        let command = agent.facts().compact_command;
        let command = command.map(|prompt| Turn { prompt: prompt.to_owned(), ..compact });
        let [fix, recall] = ["fix", "recall"].map(|name| turn(name, scale));
        let turns = [fix].into_iter().chain(command).chain([recall]).collect();
        Self { play: Play::OwnCompaction, scale, turns }
    }

    /// The script for `sandbox`: the same actions, with its agent's tools.
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
    /// The turn with which a session is resumed: one tool call, then a final text.
    pub fn resume() -> Self {
        turn("resume", Scale::SMALL)
    }

    /// The answers of the model, with the tools of the sandbox's agent.
    pub fn steps(&self, sandbox: &Sandbox) -> Vec<Step> {
        let step = |one: &Move| Step {
            thinking: one.thinking.clone(),
            text: one.text.clone(),
            calls: one.actions.iter().map(|action| sandbox.call(action)).collect(),
            ..Step::default()
        };
        self.moves.iter().map(step).collect()
    }

    /// The final text of the model: if it was sent, the turn was played to its end.
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
