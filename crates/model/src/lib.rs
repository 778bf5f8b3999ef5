//! The nouns of epitome: a [`Transcript`] is what a coding agent's session says, whatever agent
//! wrote it; an [`Edit`] is a change to it, as data; a [`Stub`] is what an edit leaves in place.
//!
//! # Absent
//!
//! No input or output, no clock, no environment, no agent's key or tool name, no policy. A
//! transcript does not hold the text of a session: it says where each text stands in a [`Source`],
//! so that its size depends on the number of records and not on their length.

// Floors 1 and 2 do no IO: `clippy.toml` names what they do without.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod amount;
mod applied;
mod count;
mod edit;
mod inner;
mod law;
mod literal;
mod nested;
mod source;
mod stub;
mod tool;
mod transcript;
mod turn;
mod unit;
mod usage;

pub use amount::{Bytes, Lines, MicroDollars, Tokens, Turns};
pub use applied::{Applied, Longer};
pub use count::{CHARS_AROUND, Counter, IMAGE, Weight, Weights, block_chars, block_tokens, weigh};
pub use edit::{At, Change, Edit, Splice};
pub use inner::Inner;
pub use law::{Breach, Law, Laws};
pub use literal::{encode, encode_to};
pub use nested::{as_seen, decode, encode_as};
pub use source::{Source, Span, Text};
pub use stub::{
    CLEARED, Note, Ref, Stub, counted, excerpt, is_left_by_recipe, is_truncated, line_count,
    previous, removed, short, truncated,
};
pub use tool::{Field, FieldRole, ToolKind};
pub use transcript::{
    Again, Block, CacheUse, Call, Copy, Entry, Head, Image, Item, Kept, Left, Output, Part, Record,
    Role, Thinking, Transcript, Usage,
};
pub use turn::{context_turns, turns};
pub use unit::{Unit, units};
pub use usage::{StopReason, TokenUsage};
