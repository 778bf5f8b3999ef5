//! One file a command.

pub mod archive;
pub mod compact;
pub mod completions;
pub mod config;
pub mod engine;
pub mod export;
pub mod hook;
pub mod index;
pub mod inspect;
pub mod install;
pub mod key;
pub mod list;
pub mod man;
pub mod manifest;
pub mod port;
pub mod recipes;
pub mod redact;
pub mod render;
pub mod restore;
pub mod scan;
pub mod search;
pub mod serve;
pub mod show;
pub mod uninstall;
pub mod watch;
