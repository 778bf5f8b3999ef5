//! The proxy over loopback, between a client that is a socket and services that record what
//! arrives.

mod budget;
mod change;
mod exchange;
mod explain;
mod http2;
mod ledger;
mod metrics;
mod pass;
mod telemetry;
mod websocket;
