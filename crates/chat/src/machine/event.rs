//! What happens, as it is shown: the lines of `epitome chat --json`, which `docs/agent.md` lists.

use epitome_engine::{Share, WindowUse};
use epitome_model::{MicroDollars, TokenUsage, Tokens};
use serde::Serialize;

/// Something to show.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// A session begins or goes on.
    Session {
        /// Its id, for `--resume`.
        id: String,
        /// The model.
        model: String,
        /// The recipe.
        recipe: String,
        /// The file of its log.
        log: String,
        /// The model that writes summaries, if it is another and the recipe has any.
        #[serde(skip_serializing_if = "Option::is_none")]
        summaries: Option<String>,
    },
    /// Files of the project and of the user that are in the prompt, or that settings come from.
    Loaded {
        /// The files.
        files: Vec<LoadedFile>,
    },
    /// A message of the user is in the context from now on.
    User {
        /// The message.
        text: String,
    },
    /// The next piece of the answer.
    Text {
        /// The piece.
        text: String,
    },
    /// The next piece of readable reasoning.
    Thinking {
        /// The piece.
        text: String,
    },
    /// What was shown of this answer is void: it is requested again.
    Restart,
    /// There was no answer, and the request is sent again after a while.
    Retry(Retrying),
    /// The model calls a tool.
    Call {
        /// The id of the call.
        id: String,
        /// The tool.
        tool: String,
        /// The arguments as the model wrote them.
        arguments: String,
    },
    /// The user is asked whether a call may run.
    Permission {
        /// The id of the call.
        id: String,
        /// What it would do.
        about: String,
        /// What the answers "always" and "never" are about.
        always: String,
    },
    /// The user is asked a question by the model.
    Question {
        /// The id of the call.
        id: String,
        /// The question.
        question: String,
        /// Answers to choose from.
        choices: Vec<String>,
    },
    /// It is decided whether a call may run about which the user was asked.
    Permitted {
        /// The id of the call.
        id: String,
        /// Whether it may.
        allowed: bool,
    },
    /// Something happened in the task that a call began.
    Task {
        /// The id of the call.
        id: String,
        /// What happened.
        inner: Box<Event>,
    },
    /// A call runs, and prints.
    Progress {
        /// The id of the call.
        id: String,
        /// Seconds since it began.
        seconds: u64,
        /// The last lines that it has printed: each event has them again.
        text: String,
    },
    /// A call has its result.
    Result {
        /// The id of the call.
        id: String,
        /// Whether it failed.
        error: bool,
        /// What the tool returned, before anything is shortened.
        text: String,
    },
    /// The context changed: a warning, a compaction, a summary. The same objects as in
    /// `epitome engine`.
    Context {
        /// What happened to it.
        #[serde(rename = "change")]
        event: epitome_passes::Event,
    },
    /// A compaction was taken back.
    Undone {
        /// What the next request would have sent.
        before: Tokens,
        /// What it sends now.
        after: Tokens,
    },
    /// How full the window is, and what was spent.
    Usage {
        /// The window.
        #[serde(flatten)]
        usage: WindowUse,
        /// What was spent.
        cost: Cost,
    },
    /// What fills the window, which the user asked for.
    Window {
        /// The window.
        #[serde(flatten)]
        usage: WindowUse,
        /// What a request holds, by kind.
        contents: Vec<Share>,
        /// The whole window, of which a part is kept for the answer.
        #[serde(skip_serializing_if = "Option::is_none")]
        window: Option<Tokens>,
    },
    /// What was shortened, which the user asked for.
    Losses {
        /// In words.
        lines: Vec<String>,
    },
    /// Anything else to tell the user.
    Notice {
        /// The message.
        text: String,
    },
    /// The turn is over.
    Done {
        /// Why.
        ended: Ended,
        /// The reason in words, unless the model answered.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// The text of the last answer.
        answer: String,
        /// What was spent since the program began.
        cost: Cost,
    },
}

/// What is said of a request that is sent again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Retrying {
    /// Why there was no answer, in a few words.
    pub reason: String,
    /// Seconds until it is sent again.
    pub seconds: u64,
    /// Which try comes next, from 2.
    pub attempt: u32,
    /// How many there are at most.
    pub tries: u32,
}

impl std::fmt::Display for Retrying {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Retrying { reason, seconds, attempt, tries } = self;
        write!(f, "{reason}: again in {seconds} s ({attempt} of {tries})")
    }
}

/// A file that a session begins with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LoadedFile {
    /// What it is.
    pub kind: LoadedKind,
    /// Its name: of a skill the name of that, of others the path.
    pub name: String,
    /// Its path, if its name is another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

/// What a file is that a session begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LoadedKind {
    /// Rules for agents: they are in the prompt, whole.
    Rules,
    /// A skill: its name and a line on it are in the prompt.
    Skill,
    /// Settings of the project.
    Settings,
}

/// Why a turn is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ended {
    /// The model answered and called no tool.
    Answered,
    /// The user interrupted it.
    Interrupted,
    /// The model has no answer.
    Failed,
    /// The budget is spent.
    Budget,
}

/// What was spent since the program began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Cost {
    /// Requests, those for summaries included.
    pub requests: u64,
    /// Tokens that were billed.
    pub used: TokenUsage,
    /// Their cost at list prices, as far as those are known.
    pub cost: MicroDollars,
    /// Requests of unknown cost.
    pub unpriced: u64,
}
