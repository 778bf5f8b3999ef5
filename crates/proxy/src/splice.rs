//! The body of a request with decisions carried out.

use std::ops::Range;
use std::sync::Arc;

use epitome::wire::Decision;
use epitome_error::{Error, ErrorKind, Result};
use epitome_formats::Spliced;
use epitome_model::{Span, Splice};

use crate::body::{Messages, sole_text};

/// A range of a body and the bytes that replace it.
pub(crate) type BodySplice<'d> = (Range<usize>, &'d str);

/// The replacements in a body that carry out decisions about its first messages, in order.
///
/// # Errors
///
/// `Broken`, if a decision does not fit its message.
pub(crate) fn splices<'d>(
    messages: &Messages,
    decisions: &'d [Arc<Decision>],
) -> Result<Vec<BodySplice<'d>>> {
    let broken = || Error::new(ErrorKind::Broken, "a decision does not fit its message");
    let mut splices = Vec::new();
    let mut end_of_last = None;
    for (message, decision) in messages.all.iter().zip(decisions) {
        let before = end_of_last.replace(message.span.end);
        if decision.dropped {
            // The comma before the message is removed with it.
            splices.push((before.ok_or_else(broken)?..message.span.end, ""));
            continue;
        }
        for patch in &decision.patches {
            let range = message.range_of(patch.start, patch.end).ok_or_else(broken)?;
            splices.push((range, patch.with.as_str()));
        }
    }
    Ok(splices)
}

/// A body with replacements carried out.
pub(crate) fn spliced(body: &[u8], splices: &[BodySplice<'_>]) -> Vec<u8> {
    let mut made = Vec::with_capacity(body.len());
    let mut from = 0;
    for (range, with) in splices {
        made.extend_from_slice(&body[from..range.start]);
        made.extend_from_slice(with.as_bytes());
        from = range.end;
    }
    made.extend_from_slice(&body[from..]);
    made
}

/// A body with decisions about its first messages carried out.
pub(crate) fn sent(
    body: &[u8],
    messages: &Messages,
    decisions: &[Arc<Decision>],
) -> Result<Spliced<'static>> {
    let splices = splices(messages, decisions)?.into_iter().map(|(range, with)| Splice {
        span: Span { start: range.start as u64, end: range.end as u64 },
        with: with.as_bytes().into(),
    });
    let splices = splices.collect();
    Spliced::with_owned_base(body.to_vec(), splices)
}

/// If a value and its replacement `with` are each one text, alone or in an array, returns the range
/// and the replacement of the text alone. So an array around the text stays, with its cache marks.
/// Otherwise returns `value` and `with` unchanged.
pub(crate) fn narrowed(body: &[u8], value: Range<usize>, with: String) -> (Range<usize>, String) {
    let Some(text) = sole_text(with.as_bytes(), &(0..with.len())) else { return (value, with) };
    match sole_text(body, &value) {
        Some(place) => (place, with[text].to_owned()),
        None => (value, with),
    }
}

/// JSON as text, to be kept in a memo.
///
/// # Errors
///
/// `Refused`, if it is not valid UTF-8.
pub(crate) fn text(bytes: Vec<u8>) -> Result<String> {
    String::from_utf8(bytes).map_err(|_| refused("a text is not valid UTF-8"))
}

/// An error of the kind `Refused`, because of which something is not changed.
pub(crate) fn refused(what: &str) -> Error {
    Error::new(ErrorKind::Refused, what)
}
