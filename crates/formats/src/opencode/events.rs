//! The log of all versions of messages and parts: what of it can go.

use std::ops::Range;

use epitome_model::{Copy, Left};

use super::raw;
use crate::json::{Cursor, Kind, Malformed};
use crate::place::Place;

/// The bulky values of a logged version. What is left is a version of the same shape: OpenCode
/// reads the log anew when another machine asks for it, and refuses what it does not know.
pub fn copies(at: &Place<'_>, data: &Range<usize>) -> Result<Vec<Copy>, Malformed> {
    let mut copies = Vec::new();
    let mut copy = |name, place: &Option<Range<usize>>, left| {
        if let Some(place) = place {
            copies.push(Copy { name, value: at.span(place), left });
        }
    };
    let mut cursor = Cursor::at(at.line, data);
    cursor.object(|value, key| {
        match key {
            b"part" if value.kind() == Kind::Object => {
                let part = raw::part(value, at.line)?;
                copy("text", &part.text, Left::EmptyText);
                copy("url", &part.url, Left::EmptyText);
                if let Some(state) = &part.state {
                    copy("input", &state.input, Left::EmptyObject);
                    copy("output", &state.output, Left::EmptyText);
                    copy("error", &state.error, Left::EmptyText);
                    copy("metadata", &state.metadata, Left::EmptyObject);
                    copy("attachments", &state.attachments, Left::Nothing);
                }
            }
            b"info" if value.kind() == Kind::Object => {
                let message = raw::message(value, at.line)?;
                let shown = message.summary.filter(|place| at.line[place.start] == b'{');
                copy("summary", &shown, Left::Nothing);
            }
            _ => {
                value.skip()?;
            }
        }
        Ok(())
    })?;
    Ok(copies)
}
