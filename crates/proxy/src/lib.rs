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

mod ambiguous;
mod body;
mod counter;
mod decide;
mod decode;
mod guard;
mod headers;
mod hint;
mod memo;
mod meter;
mod price;
mod priced_cut;
mod proxy;
mod refusal;
mod rewrite;
#[cfg(test)]
mod rewrite_properties;
mod server;
mod splice;
mod upstream;

pub use headers::BYPASS;
pub use meter::Totals;
pub use proxy::{Options, Proxy};
pub use server::{BindError, Server};
pub use upstream::{BadUpstream, Upstream};
