//! Why there is no response, and who can do something about it.

use std::time::Duration;

use epitome_model::Tokens;
use epitome_passes::TokenUsage;
use serde::Serialize;

/// Why there is no response. Messages of services are shortened, and contain no key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The provider with this name needs a key, and none is set.
    #[error("there is no key for {0}")]
    NoKey(String),
    /// The request cannot be made or sent with these settings.
    #[error("{0}")]
    Setup(String),
    /// The key is rejected, or lacks a permission.
    #[error("the key was rejected: {0}")]
    Auth(String),
    /// There is no such model, or no such service at that URL.
    #[error("there is no such model: {0}")]
    NoSuchModel(String),
    /// The service rejects the request, for example because it is invalid, or because the account
    /// has no credit left.
    #[error("the request was rejected: {0}")]
    Rejected(String),
    /// The service refuses to answer the request because of its content.
    #[error("the service refused to answer: {0}")]
    Refused(String),
    /// The request is longer than the model accepts.
    #[error("the request is too long{limit}: {message}", limit = limited(*.limit))]
    TooLong {
        /// The maximum tokens of a request, if the service states it, or, if the service read only
        /// a part of the request, the number of tokens that it read.
        limit: Option<Tokens>,
        /// The service's message, or the statement that it read only a part of the request.
        message: String,
        /// Tokens that were billed nevertheless.
        used: Option<TokenUsage>,
    },
    /// The service has a rate limit, and received too many requests or tokens.
    #[error("too many requests{wait}: {message}", wait = waiting(*.after))]
    Rate {
        /// How long to wait before the next request, if the service states it.
        after: Option<Duration>,
        /// The service's message.
        message: String,
    },
    /// The service failed or is overloaded.
    #[error("the service failed with status {status}{wait}: {message}", wait = waiting(*.after))]
    Overloaded {
        /// The HTTP status.
        status: u16,
        /// How long to wait before the next request, if the service states it.
        after: Option<Duration>,
        /// The service's message.
        message: String,
    },
    /// The service cannot be reached.
    #[error("the service cannot be reached: {0}")]
    Unreachable(String),
    /// The response, or the next chunk of a streamed one, did not arrive within the timeout.
    #[error("no response within {} s", .0.as_secs_f64())]
    TimedOut(Duration),
    /// The connection ended in the middle of the response.
    #[error("the connection ended in the middle of the response: {0}")]
    Half(String),
    /// The response cannot be used, for example because it cannot be parsed, is too large, or is an
    /// error without a status.
    #[error("the response cannot be read: {0}")]
    BadAnswer(String),
    /// The caller stopped the request.
    #[error("stopped")]
    Stopped,
}

/// Where the cause of a failure lies, and so who can do something about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FailureCause {
    /// The user's settings or account: a key, a name, an address, missing credit.
    Settings,
    /// The request.
    Question,
    /// The service.
    Service,
    /// The network.
    Network,
    /// There is no cause that can be removed: the caller stopped the request.
    Elsewhere,
}

impl Failure {
    /// Where the cause of this failure lies.
    pub fn cause(&self) -> FailureCause {
        match self {
            Failure::NoKey(_)
            | Failure::Setup(_)
            | Failure::Auth(_)
            | Failure::NoSuchModel(_)
            | Failure::Rejected(_) => FailureCause::Settings,
            Failure::Refused(_) | Failure::TooLong { .. } => FailureCause::Question,
            Failure::Rate { .. } | Failure::Overloaded { .. } | Failure::BadAnswer(_) => {
                FailureCause::Service
            }
            Failure::Unreachable(_) | Failure::TimedOut(_) | Failure::Half(_) => {
                FailureCause::Network
            }
            Failure::Stopped => FailureCause::Elsewhere,
        }
    }

    /// The failure in a few words, for a user who waits for a retry.
    pub fn summary(&self) -> &'static str {
        match self {
            Failure::Rate { .. } => "the service is busy",
            Failure::Overloaded { .. } => "the service fails",
            Failure::Unreachable(_) => "the service cannot be reached",
            Failure::TimedOut(_) => "the service does not respond",
            Failure::Half(_) => "the connection ended",
            Failure::BadAnswer(_) => "the response cannot be read",
            Failure::NoKey(_) | Failure::Auth(_) => "the key is wrong",
            Failure::Setup(_) | Failure::NoSuchModel(_) => "the model cannot be called",
            Failure::Rejected(_) | Failure::TooLong { .. } => "the request was rejected",
            Failure::Refused(_) => "the service refused to answer",
            Failure::Stopped => "stopped",
        }
    }

    /// Whether the same request may succeed if it is sent again.
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

    /// How long to wait before the next request, if the service states it.
    pub fn after(&self) -> Option<Duration> {
        let (Failure::Rate { after, .. } | Failure::Overloaded { after, .. }) = self else {
            return None;
        };
        *after
    }

    /// Whether the failed request counts as a call of the service, which may have billed it. False
    /// if the key is missing or the settings are wrong, and if the caller stopped the request. True
    /// for every failure of the network: the connection may have ended after the request was sent.
    pub(crate) fn reached_service(&self) -> bool {
        !matches!(self, Failure::NoKey(_) | Failure::Setup(_) | Failure::Stopped)
    }
}

fn limited(limit: Option<Tokens>) -> String {
    limit.map_or_else(String::new, |limit| format!(" (the limit is {limit} tokens)"))
}

fn waiting(after: Option<Duration>) -> String {
    after.map_or_else(String::new, |after| format!(" (again in {} s)", after.as_secs()))
}
