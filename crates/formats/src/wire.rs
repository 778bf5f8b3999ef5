//! What the wires share: bodies of requests to a model, each one JSON document.

mod body;
mod breach;
mod conversation;
pub mod hear;
mod offer;
mod skim;
mod tools;

pub use body::{Body, read};
pub use breach::{Breaches, check, is_name};
pub(crate) use conversation::UNDERSTOOD;
pub use conversation::{
    Answered, Arguments, Conversation, Left, Made, OPENING, Piece, Step, SummaryAs, Word, name,
};
pub use offer::Offer;
pub use skim::skim;
pub use tools::{call, call_at, picture};
