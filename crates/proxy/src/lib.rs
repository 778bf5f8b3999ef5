//! The proxy between an agent and its model: the same engine that compacts stored sessions, on the
//! requests themselves.
//!
//! A [`Server`] listens on a local port. Each request that an agent sends there goes on to the
//! model service, and the response comes back as it arrives. A request that need not change leaves
//! byte for byte as it came.
//!
//! # Absent
//!
//! Interception of TLS: agents are given a base URL. The address of an agent's service and how it
//! is set, which are in `epitome-agents`.

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod account;
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
