//! Why there is no answer, and whose fault it is.

use std::time::Duration;

use epitome_model::Tokens;
use epitome_passes::TokenUsage;
use serde::Serialize;

/// Why there is no answer. What services said is shortened, and holds no key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// There is no key.
    #[error("there is no key for {0}")]
    NoKey(String),
    /// It cannot be asked as it is set up.
    #[error("{0}")]
    Setup(String),
    /// The key is not taken, or may not do this.
    #[error("the key is not taken: {0}")]
    Auth(String),
    /// There is no such model, or no such service at that address.
    #[error("there is no such model: {0}")]
    NoSuchModel(String),
    /// The request is not one that this model takes.
    #[error("the request is not taken: {0}")]
    Rejected(String),
    /// The service declines to answer this.
    #[error("the service declines: {0}")]
    Refused(String),
    /// The question is longer than the model takes.
    #[error("the question is too long{takes}: {said}", takes = told(*.limit))]
    TooLong {
        /// Tokens that it takes, if it was told.
        limit: Option<Tokens>,
        /// What it said.
        said: String,
        /// What was billed nevertheless.
        used: Option<TokenUsage>,
    },
    /// Too many requests, or no more money.
    #[error("too many requests{wait}: {said}", wait = waiting(*.after))]
    Rate {
        /// How long it asks to wait.
        after: Option<Duration>,
        /// What it said.
        said: String,
    },
    /// The service has trouble of its own.
    #[error("the service is in trouble ({status}){wait}: {said}", wait = waiting(*.after))]
    Overloaded {
        /// The status of HTTP.
        status: u16,
        /// How long it asks to wait.
        after: Option<Duration>,
        /// What it said.
        said: String,
    },
    /// Nobody is there.
    #[error("the service cannot be reached: {0}")]
    Unreachable(String),
    /// No answer came in time.
    #[error("no answer within {} s", .0.as_secs_f64())]
    TimedOut(Duration),
    /// The connection ended before the answer did.
    #[error("the connection ended in the middle of the answer: {0}")]
    Half(String),
    /// What came is no answer.
    #[error("this is no answer: {0}")]
    BadAnswer(String),
    /// Whoever asked does not want to know any more.
    #[error("stopped")]
    Stopped,
}

/// Whose fault it is, and so who can do something about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Whose {
    /// The user's settings: a key, a name, an address.
    Settings,
    /// What was asked.
    Question,
    /// The service.
    Service,
    /// The way there.
    Network,
    /// Nobody's.
    Nobody,
}

impl Failure {
    /// Whose fault it is.
    pub fn whose(&self) -> Whose {
        match self {
            Failure::NoKey(_)
            | Failure::Setup(_)
            | Failure::Auth(_)
            | Failure::NoSuchModel(_)
            | Failure::Rejected(_) => Whose::Settings,
            Failure::Refused(_) | Failure::TooLong { .. } => Whose::Question,
            Failure::Rate { .. } | Failure::Overloaded { .. } | Failure::BadAnswer(_) => {
                Whose::Service
            }
            Failure::Unreachable(_) | Failure::TimedOut(_) | Failure::Half(_) => Whose::Network,
            Failure::Stopped => Whose::Nobody,
        }
    }

    /// Whether the same question may be answered later.
    pub fn may_pass(&self) -> bool {
        match self {
            Failure::Rate { .. }
            | Failure::Overloaded { .. }
            | Failure::Unreachable(_)
            | Failure::TimedOut(_)
            | Failure::Half(_)
            | Failure::BadAnswer(_) => true,
            Failure::NoKey(_)
            | Failure::Setup(_)
            | Failure::Auth(_)
            | Failure::NoSuchModel(_)
            | Failure::Rejected(_)
            | Failure::Refused(_)
            | Failure::TooLong { .. }
            | Failure::Stopped => false,
        }
    }

    /// How long the service asks to wait.
    pub fn after(&self) -> Option<Duration> {
        match self {
            Failure::Rate { after, .. } | Failure::Overloaded { after, .. } => *after,
            Failure::NoKey(_)
            | Failure::Setup(_)
            | Failure::Auth(_)
            | Failure::NoSuchModel(_)
            | Failure::Rejected(_)
            | Failure::Refused(_)
            | Failure::TooLong { .. }
            | Failure::Unreachable(_)
            | Failure::TimedOut(_)
            | Failure::Half(_)
            | Failure::BadAnswer(_)
            | Failure::Stopped => None,
        }
    }

    /// Whether the service was asked at all: then it may have billed something.
    pub(crate) fn was_asked(&self) -> bool {
        !matches!(self, Failure::NoKey(_) | Failure::Setup(_) | Failure::Stopped)
    }
}

fn told(limit: Option<Tokens>) -> String {
    limit.map_or_else(String::new, |limit| format!(" (it takes {limit} tokens)"))
}

fn waiting(after: Option<Duration>) -> String {
    after.map_or_else(String::new, |after| format!(" (again in {} s)", after.as_secs()))
}
