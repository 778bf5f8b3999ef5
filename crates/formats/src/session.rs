//! A session that was read: its bytes, its format and its transcript.

use epitome_error::{Error, ErrorKind, Result};
use epitome_model::{Fault, Source, Transcript};
use tracing::debug_span;
use tracing::field::Empty;

use crate::splice::if_read;
use crate::{FORMATS, Format, Write, Writing, find_format, sniff};

/// How many bytes at the beginning of a file are read to recognise its format. If the first records
/// are so long that the first number is not enough, the second is used.
pub const HEADS: [u64; 2] = [64 << 10, 16 << 20];

/// A session with its bytes, its transcript, and the faults of its records.
pub struct Loaded<S> {
    /// The format of the session's agent.
    pub format: &'static Format,
    /// The bytes of the session.
    pub source: S,
    /// The transcript that was read from the bytes.
    pub transcript: Transcript,
    /// Faults: records that could not be read as expected.
    pub faults: Vec<Fault>,
}

impl<S: Source> Loaded<S> {
    /// Reads a session. `agent` names the format; `None` means that it is recognised from the
    /// bytes.
    ///
    /// # Errors
    ///
    /// `UnknownFormat` if no format recognises the bytes, if no format is named `agent`, or if that
    /// format finds no entry; the error of `source` if reading it failed.
    pub fn read(source: S, agent: Option<&str>) -> Result<Loaded<S>> {
        let (format, transcript, faults) = if_read(&source, parsed(&source, agent))?;
        Ok(Loaded { format, source, transcript, faults })
    }
}

/// The format of a session, its transcript, and its faults.
type Parsed = (&'static Format, Transcript, Vec<Fault>);

fn parsed(source: &dyn Source, agent: Option<&str>) -> Result<Parsed> {
    let span = debug_span!("session.read", bytes = source.len(), format = Empty);
    let _span = span.clone().entered();
    let format = match agent {
        Some(name) => find_format(name).ok_or_else(|| unknown_agent(name))?,
        None => format_of(source).ok_or_else(|| unknown(source))?,
    };
    span.record("format", format.name);
    let mut faults = Vec::new();
    let transcript = (format.read)(source, &mut faults);
    if !transcript.items.iter().any(|item| item.entry().is_some()) && agent.is_some() {
        let what = format!("there is nothing that {} wrote", format.name);
        return Err(Error::new(ErrorKind::UnknownFormat, what).with_hint(format_names()));
    }
    Ok((format, transcript, faults))
}

impl<S> Loaded<S> {
    /// The function that writes edits of this session.
    ///
    /// # Errors
    ///
    /// `ReadOnly` if sessions of this format are never written.
    pub fn writer(&self) -> Result<Write> {
        writer(self.format)
    }
}

/// The function that writes edits of sessions of this format.
///
/// # Errors
///
/// `ReadOnly`, with the reason, if sessions of this format are never written.
pub fn writer(format: &Format) -> Result<Write> {
    match format.writing {
        Writing::Splices(write) => Ok(write),
        Writing::ReadOnly(why) => {
            let what = format!("sessions of {} are only read: {why}", format.name);
            let hint = "`epitome list`, `inspect` and `export` work on it; nothing is written";
            Err(Error::new(ErrorKind::ReadOnly, what).with_hint(hint))
        }
    }
}

/// The format of a source, recognised by its beginning; `None` if no format recognises it.
pub fn format_of(source: &dyn Source) -> Option<&'static Format> {
    HEADS.iter().find_map(|&head| sniff(&source.read(0..head)))
}

fn unknown(source: &dyn Source) -> Error {
    let what = if source.is_empty() {
        "the file is empty"
    } else {
        "not a session of an agent that epitome knows"
    };
    Error::new(ErrorKind::UnknownFormat, what).with_hint(format_names())
}

fn unknown_agent(name: &str) -> Error {
    let what = format!("unknown agent `{name}`");
    Error::new(ErrorKind::UnknownFormat, what).with_hint(format_names())
}

fn format_names() -> String {
    let names: Vec<&str> = FORMATS.iter().map(|format| format.name).collect();
    format!("epitome knows the sessions of: {}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_first_record_hides_no_session() {
        let words = "x".repeat(100_000);
        let message = format!(r#"{{"role":"user","content":"{words}"}}"#);
        let rest = r#""uuid":"1","parentUuid":null,"sessionId":"s","timestamp":"t""#;
        let session = format!("{{\"type\":\"user\",\"message\":{message},{rest}}}\n").into_bytes();
        assert_eq!(format_of(&session).map(|format| format.name), Some("claude"));
    }

    #[test]
    fn a_format_that_is_only_read_says_why() {
        let format = find_format("copilot").expect("a format that is only read");
        let err = writer(format).expect_err("it is only read");
        assert_eq!(err.kind(), ErrorKind::ReadOnly);
        let Writing::ReadOnly(why) = format.writing else { panic!("{err}") };
        assert!(err.to_string().ends_with(why), "{err}");
        assert!(writer(find_format("pi").expect("a format that is written")).is_ok());
    }
}
