//! The proxy between an agent and its model: the same engine that compacts stored sessions, on the
//! requests themselves.
//!
//! A [`Server`] listens on a local port. It passes on each request that an agent sends to this port
//! to the model service, unless it refuses the request, for example because a budget is spent. The
//! response is passed back as it arrives. A body that need not change is sent byte for byte as it
//! came.
//!
//! # The way of a request
//!
//! - `proxy` reads the bodies of most requests to the APIs of models. It passes on all other bodies
//!   unread.
//! - `body` divides a body at its messages. Each has a [`Chain`](epitome::wire::Chain), the hash of
//!   the message and of all before it. The chain of the last message before the first response is
//!   the root, which identifies the conversation.
//! - `memo` has what was decided in a conversation: for each chain that has one, a
//!   [`Decision`](epitome::wire::Decision), which says what is sent in place of the message.
//! - `rewrite` repeats these decisions, so that the provider's cache stays valid. Messages after
//!   the known ones are new: `decide` may shorten their results.
//! - When a cut is worth its price (`cuttable`) or the model's window is nearly full, `rewrite`
//!   makes it, with new decisions about all messages: `digest` sends one message in place of the
//!   old ones, or else `priced_cut` runs the passes of the recipe over all of them. This cut is not
//!   the one of `epitome_model`, which removes messages from the middle.
//! - `splice` carries the decisions out, and `meter` reads what the service counted.
//!
//! A request is read, planned and verified like a stored session, with `PreparedCompaction` and
//! `RequestDigest`. The engine's `Context`, which is for running agents, is not used.
//!
//! # Absent
//!
//! - Interception of TLS: agents are given a base URL.
//! - The address of an agent's service, and how it is set: `epitome-agents`.

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod account;
mod agent_compaction;
mod ambiguous;
mod block;
mod body;
mod budget;
mod client;
mod counter;
mod cuttable;
mod decide;
mod decode;
mod digest;
mod effect;
mod explain;
mod guard;
mod headers;
mod hint;
mod holdout;
mod memo;
mod meter;
mod metrics;
mod price;
mod priced_cut;
mod proxy;
mod recall;
mod refusal;
mod rewrite;
#[cfg(test)]
mod rewrite_properties;
mod sent_requests;
mod server;
mod span;
mod splice;
mod telemetry;
mod turn;
mod upstream;
mod websocket;

pub use explain::{ExplainedBlock, Explainer, Explanation, Reason};
pub use headers::BYPASS;
pub use holdout::Holdout;
pub use meter::Totals;
pub use proxy::{Options, Proxy};
pub use server::{BindError, Server};
pub use telemetry::TelemetrySettings;
pub use upstream::{BadUpstream, Upstream};
