//! The proxy over loopback, between a client that is a socket and services that record what
//! arrives.

mod change;
mod exchange;
mod pass;
