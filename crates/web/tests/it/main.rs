//! The viewer, called over HTTP.

mod change;
mod hits;
mod list;
mod numbers;
mod overview;
mod proxy;
mod security;
mod session;
mod versions;
mod world;
