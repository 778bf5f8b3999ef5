//! The core types: a session in one form for the formats of all agents, and changes to it as data.
//!
//! A [`Transcript`] is the content of a session: a list of [`Item`]s, each read from one record. An
//! [`Item::Entry`] is a message or a part of one, and has [`Block`]s, such as texts, reasoning,
//! tool calls and their results. [`Transcript::context`] lists the items that are sent to a model
//! if the session is resumed.
//!
//! A transcript does not hold the texts of a session: a [`Text`] is usually a [`Span`], a range of
//! bytes in a [`Source`] such as a file. So the size of a transcript depends on the number of
//! records and not on their length.
//!
//! An [`Edit`] is a change at one position ([`At`]): it replaces or drops a block, cuts items out,
//! or puts a summary in their place. [`EditedTranscript`] carries edits out in memory. A [`Stub`]
//! is a text that an edit leaves where it removed something; it contains a [`Ref`], by which the
//! archive finds the removed bytes.
//!
//! A [`Unit`] is what can be removed from a context only together, such as a response with its
//! calls and their results. A [`Counter`] counts the tokens of texts, and [`weigh`] adds up the
//! tokens of a context. A reader reports what it cannot understand as a [`Fault`]; the
//! [`Invariants`] of a format find each [`Violation`]: something that the agent or its API refuses.
//!
//! ```
//! use epitome_model::{Block, Entry, Item, Span, Text, Transcript};
//!
//! let source: &[u8] = br#"{"role":"user","text":"Hi"}"#;
//! // The string literal "Hi", quotes included.
//! let text = Text::Source(Span { start: 22, end: 26 });
//! assert_eq!(text.read(&source), "Hi");
//! let entry = Entry { blocks: vec![Block::Text(text)], ..Entry::default() };
//! let items = vec![Item::Entry(Box::new(entry))];
//! let transcript = Transcript { items, context: vec![0], ..Transcript::default() };
//! assert_eq!(transcript.context().count(), 1);
//! ```
//!
//! # Absent
//!
//! - Reading and writing sessions: `epitome-formats`.
//! - Deciding what is removed: `epitome-passes`.
//! - Agents' keys and tool names, input and output, clocks, the environment: higher crates.

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
pub use applied::{EditedTranscript, ExtendedSource};
pub use count::{
    CHARS_AROUND, Counter, IMAGE_TOKENS, TOKENS_AROUND, Weight, Weights, block_chars,
    block_has_at_least, block_tokens, call_tokens, has_at_least, weigh,
};
pub use edit::{At, Cut, Edit, Splice, Summary, Verb, WriteMode};
pub use fault::{Fault, Faults};
pub use inner::DecodedLiteral;
pub use invariant::{Invariant, Invariants, Violation};
pub use literal::{encode, encode_to};
pub use nested::{decode, encode_as, literal_as_text};
pub use paths::{lossy_path, lossy_path_option};
pub use request::{CountedRequest, request_sizes, requests_with_counts};
pub use shorten::{first_words, last_words, percent, percent_change, plural, short};
pub use source::{ReadFailure, Source, Span, Text};
pub use stub::{
    CLEARED, Note, PRUNED, Ref, Stub, excerpt, has_truncation_mark, is_left_by_recipe, line_count,
    line_count_stub, previous_tool_stub, removed_output_stub, truncation_mark,
};
pub use title::{title, typed_command};
pub use tool::{Field, FieldRole, ToolKind};
pub use transcript::{
    Block, CacheUse, Call, Entry, FieldRemainder, Head, HiddenField, HiddenRecord, Image, Item,
    Output, Part, Record, RecordedUsage, RepeatedOutput, Role, Thinking, Transcript,
};
pub use turn::{context_turns, turns};
pub use unit::{Unit, unit_boundary_before, units};
pub use usage::{StopReason, TokenUsage};
