//! Events to show: the lines of `epitome chat --json`, which `docs/agent.md` lists.

use epitome_engine::{ContentShare, WindowUse};
use epitome_model::{MicroDollars, TokenUsage, Tokens};
use serde::Serialize;

/// An event to show.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// A session begins or is resumed, or its model or recipe changes.
    Session {
        /// The id of the session, for `--resume`.
        id: String,
        /// The model.
        model: String,
        /// The recipe.
        recipe: String,
        /// The file of the session's log.
        log: String,
        /// The model that writes summaries. `None` if the model that answers writes them, or if the
        /// recipe has a digest, with which a summary is rarely needed.
        #[serde(skip_serializing_if = "Option::is_none")]
        summaries: Option<String>,
    },
    /// The rule files in the prompt, the available skills, and the settings files of the project.
    Loaded {
        /// The files.
        files: Vec<LoadedFile>,
    },
    /// A message of the user was added to the context.
    User {
        /// The message.
        text: String,
    },
    /// The next chunk of the answer.
    Text {
        /// The chunk.
        text: String,
    },
    /// The next chunk of readable reasoning.
    Thinking {
        /// The chunk.
        text: String,
    },
    /// The answer is requested again, or the request has failed: the chunks of the answer so far
    /// are void.
    Restart,
    /// The request failed, and is sent again after a while.
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
        /// What the call would do.
        about: String,
        /// What the answers "always" and "never" would apply to.
        always: String,
    },
    /// The model asks the user a question.
    Question {
        /// The id of the call.
        id: String,
        /// The question.
        question: String,
        /// Answers to choose from.
        choices: Vec<String>,
    },
    /// A call about which the user was asked now runs or is refused. The reason is the user's
    /// answer, or a rule that the answer to another call has added.
    Permitted {
        /// The id of the call.
        id: String,
        /// Whether the call may run.
        allowed: bool,
    },
    /// An event of the sub-agent that a call of `task` started.
    Task {
        /// The id of the call.
        id: String,
        /// The event.
        inner: Box<Event>,
    },
    /// A call is still running. Only commands report this: when they have printed something, at
    /// most five times a second; otherwise once a second.
    Progress {
        /// The id of the call.
        id: String,
        /// Seconds since the call began.
        seconds: u64,
        /// The last lines of the call's output so far, at most 40. They may repeat lines of the
        /// event before.
        text: String,
    },
    /// A call has its result.
    Result {
        /// The id of the call.
        id: String,
        /// Whether the call failed.
        error: bool,
        /// The tool's result, before anything is shortened.
        text: String,
    },
    /// The context changed: a warning, a compaction, a summary. The JSON is the same as in the
    /// output of `epitome engine`.
    Context {
        /// What happened to the context.
        #[serde(rename = "change")]
        event: epitome_passes::Event,
    },
    /// A compaction was undone.
    Undone {
        /// The tokens that the next request would have sent.
        before: Tokens,
        /// The tokens that the next request sends now.
        after: Tokens,
    },
    /// How full the window is, and the cost so far.
    Usage {
        /// How full the window is.
        #[serde(flatten)]
        usage: WindowUse,
        /// The cost so far.
        cost: Cost,
    },
    /// The contents of the window, on the user's request.
    Window {
        /// How full the window is.
        #[serde(flatten)]
        usage: WindowUse,
        /// The contents of a request, by kind.
        contents: Vec<ContentShare>,
        /// The whole window, including the part reserved for the answer.
        #[serde(skip_serializing_if = "Option::is_none")]
        window: Option<Tokens>,
    },
    /// What is shortened in the context. The user asked for this list.
    Losses {
        /// The losses, each as a line of text.
        lines: Vec<String>,
    },
    /// A notice for the user.
    Notice {
        /// The message.
        text: String,
    },
    /// The turn is over.
    Done {
        /// Why the turn is over.
        ended: TurnEnd,
        /// The reason in words, unless the model answered.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// The text of the last answer.
        answer: String,
        /// The cost since the agent was started, with that of sub-agents. `/resume` does not reset
        /// it.
        cost: Cost,
    },
}

/// The details of a retry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Retrying {
    /// Why the request failed, in a few words.
    pub reason: String,
    /// Seconds until the request is sent again.
    pub seconds: u64,
    /// The number of the next attempt, from 2.
    pub attempt: u32,
    /// The maximum number of attempts.
    pub tries: u32,
}

impl std::fmt::Display for Retrying {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Retrying { reason, seconds, attempt, tries } = self;
        write!(f, "{reason}: again in {seconds} s ({attempt} of {tries})")
    }
}

/// A file that is loaded when a session begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LoadedFile {
    /// The kind of the file.
    pub kind: LoadedKind,
    /// The name of a skill, or the path of any other file.
    pub name: String,
    /// The path of the file, if it differs from the name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

/// The kind of a loaded file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LoadedKind {
    /// Rules for agents. The prompt contains their text, up to 32 KiB of it.
    Rules,
    /// A skill. Its name and a one-line description are in the prompt, unless the project and the
    /// user have too many skills.
    Skill,
    /// Settings of the project.
    Settings,
}

/// Why a turn is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TurnEnd {
    /// The model answered and called no tool.
    Answered,
    /// The user interrupted the turn.
    Interrupted,
    /// There is no complete answer, for example because the request failed.
    Failed,
    /// The budget is spent.
    Budget,
}

/// The usage since the agent was started, with that of sub-agents. Another session that `/resume`
/// opens in the same agent continues the count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Cost {
    /// The number of requests that were answered, and of requests for summaries, answered or not.
    pub requests: u64,
    /// Tokens that were billed.
    pub used: TokenUsage,
    /// The cost at list prices, as far as these are known.
    pub cost: MicroDollars,
    /// The number of requests whose cost is unknown.
    pub unpriced: u64,
}
