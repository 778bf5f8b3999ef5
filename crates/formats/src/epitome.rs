//! epitome's own format: the log of a live context, as JSON lines. New lines are only appended. A
//! live context is a running conversation of which epitome shortens the part that is sent.
//!
//! `docs/formats/epitome.md` describes the records. A [`Log`] reads such lines as they arrive.

mod append;
mod invariants;
mod originals;
mod read;
mod record;

pub use append::{Batch, UndoReason, batch, continuing, rewind, undo};
pub use originals::{all_originals, originals_in_context};
pub use read::{Log, id, last_origin, origin};
pub use record::{
    MessagePart, Origin, Speaker, add_line, blocks_of, header, line, origin_line, said_again,
};

use epitome_json::write::{self, BlockRemainder, Shapes};

use crate::{Append, AppendedHiddenFields, Format, Native, Write};

/// Logs of live contexts.
pub const FORMAT: Format = Format {
    native: Some(Native::Append(Append {
        write: append::append,
        passed_over: |_| None,
        reaches: append::reaches,
        cuts: true,
        hidden_fields: AppendedHiddenFields::Omitted,
        originals: Some(originals::originals_before),
        // Appending is the default: a compaction changes no existing line of a log.
        by_default: true,
    })),
    summarise: Some(append::summarise),
    ..Format::writable("epitome", read::sniff, read::read, SPLICES, &invariants::INVARIANTS)
};

const SPLICES: Write =
    |transcript, source, edits| write::splices(transcript, source, edits, &SHAPES);

const SHAPES: Shapes =
    Shapes { output: write::literal, block: record::text_block, thinking: BlockRemainder::Nothing };
