//! The viewer, asked over HTTP.

mod change;
mod hits;
mod list;
mod numbers;
mod overview;
mod proxy;
mod security;
mod session;
mod world;
