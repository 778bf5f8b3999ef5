//! The core types of epitome. A [`Transcript`] is the content of a coding agent's session, whatever
//! agent wrote it; an [`Edit`] is a change to it, as data; a [`Stub`] is the text that an edit
//! leaves in place.
//!
//! # Absent
//!
//! No IO, no clock, no environment, no agent's keys or tool names, no policy. A transcript does not
//! hold the text of a session: it holds the position of each text in a [`Source`], so that its size
//! depends on the number of records and not on their length.

// Pure crates do no IO: `clippy.toml` names what they must not use.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod amount;
mod applied;
mod count;
mod edit;
mod fault;
mod inner;
mod invariant;
mod literal;
mod nested;
pub mod parallel;
mod paths;
mod request;
mod shorten;
mod source;
mod stub;
mod title;
mod tool;
mod transcript;
mod turn;
mod unit;
mod usage;

pub use amount::{Bytes, Lines, MicroDollars, Tokens, Turns};
pub use applied::{Applied, Longer};
pub use count::{
    CHARS_AROUND, Counter, IMAGE, TOKENS_AROUND, Weight, Weights, block_chars, block_has_at_least,
    block_tokens, call_tokens, has_at_least, weigh,
};
pub use edit::{At, Cut, Edit, Splice, Summary, Verb, WriteMode};
pub use fault::{Fault, Faults};
pub use inner::Inner;
pub use invariant::{Invariant, Invariants, Violation};
pub use literal::{encode, encode_to};
pub use nested::{as_seen, decode, encode_as};
pub use paths::{lossy_path, lossy_path_option};
pub use request::{CountedRequest, counted_requests, request_sizes};
pub use shorten::{first_words, last_words, percent, percent_change, plural, short};
pub use source::{ReadFailure, Source, Span, Text};
pub use stub::{
    CLEARED, Note, PRUNED, Ref, Stub, counted, excerpt, is_left_by_recipe, is_truncated,
    line_count, previous, removed, truncated,
};
pub use title::{title, typed_command};
pub use tool::{Field, FieldRole, ToolKind};
pub use transcript::{
    Block, CacheUse, Call, Entry, Head, HiddenField, HiddenRecord, Image, Item, Left, Output, Part,
    Record, RepeatedOutput, Role, Thinking, Transcript, Usage,
};
pub use turn::{context_turns, turns};
pub use unit::{Unit, undivided, units};
pub use usage::{StopReason, TokenUsage};
