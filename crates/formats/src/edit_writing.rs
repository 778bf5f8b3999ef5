//! What can be done to a session, and how edits of every kind are written.

use epitome_model::{At, Edit, Source, Span, Splice, Summary, Transcript, Verb, WriteMode};

use crate::{Format, Native, Unwritable, Writing};

/// What can be done to a session. Each error is the reason why something cannot be done, as a
/// clause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Whether edits can be written into existing records.
    pub splice: Result<(), &'static str>,
    /// Whether edits can be written in the agent's own way. `Ok` says how: as appended records or
    /// as marks.
    pub own: Result<WriteMode, &'static str>,
    /// Whether items can be cut out of the middle of the context, by an appended record.
    pub cut: Result<(), &'static str>,
    /// Whether a summary can replace the beginning of the context, by an appended record.
    pub summary: Result<(), &'static str>,
}

impl Capabilities {
    /// The mode in which a session is compacted by default: the agent's own way, if its format
    /// prefers that way and the session permits it; otherwise [`WriteMode::Splice`].
    pub fn usual_mode(&self, format: &Format) -> WriteMode {
        let is_default = format.native.is_some_and(|native| native.is_default());
        match self.own {
            Ok(mode) if is_default => mode,
            Ok(_) | Err(_) => WriteMode::Splice,
        }
    }
}

impl Format {
    /// The capabilities of sessions of this format.
    pub fn capabilities(&self, transcript: &Transcript) -> Capabilities {
        let splice = match self.writing {
            Writing::Splices(_) => Ok(()),
            Writing::ReadOnly(why) => Err(why),
        };
        let own = match &self.native {
            Some(Native::Append(append)) => match (append.passed_over)(transcript) {
                None => Ok(WriteMode::Append),
                Some(why) => Err(why),
            },
            Some(Native::Mark(_)) => Ok(WriteMode::Mark),
            None => Err("its sessions are rewritten"),
        };
        let cut = match &self.native {
            Some(Native::Append(append)) if append.cuts => own.map(drop),
            Some(Native::Append(_) | Native::Mark(_)) | None => {
                Err("they have no record for messages that are left out")
            }
        };
        let summary =
            self.summarise.map(drop).ok_or("epitome writes no summaries into them").and(splice);
        Capabilities { splice, own, cut, summary }
    }

    /// The replacements of bytes that carry out edits, sorted and disjoint. Each has the position
    /// of an edit that it carries out.
    ///
    /// If the first edit is a summary, it is the only one that is written, and is appended at the
    /// end in every mode. A cut can be written only in [`WriteMode::Append`].
    ///
    /// # Errors
    ///
    /// [`Unwritable`] with the reason why the edits cannot be written, and the position of one of
    /// them.
    pub fn write(
        &self,
        transcript: &Transcript,
        source: &dyn Source,
        edits: &[Edit],
        mode: WriteMode,
    ) -> Result<Vec<(Splice, At)>, Unwritable> {
        let Some(first) = edits.first() else { return Ok(Vec::new()) };
        let not_written = |why| Unwritable { at: first.at, why };
        if let Verb::Summarise(summary) = &first.verb {
            let lines = self.summary_lines(transcript, source, summary).map_err(not_written)?;
            return Ok(vec![(splice_at_end(source, lines), first.at)]);
        }
        match (mode, &self.native, self.writing) {
            (WriteMode::Splice, _, Writing::Splices(write)) => write(transcript, source, edits),
            (WriteMode::Splice, _, Writing::ReadOnly(why)) => Err(not_written(why)),
            (WriteMode::Append, Some(Native::Append(append)), _) => {
                let lines = (append.write)(transcript, source, edits)?;
                Ok(vec![(splice_at_end(source, lines), first.at)])
            }
            (WriteMode::Mark, Some(Native::Mark(mark)), _) => {
                (mark.write)(transcript, source, edits)
            }
            (WriteMode::Append | WriteMode::Mark, _, _) => {
                Err(not_written("the agent has no such records"))
            }
        }
    }

    /// The bytes of a summary, to be appended; or why the session cannot hold one.
    fn summary_lines(
        &self,
        transcript: &Transcript,
        source: &dyn Source,
        summary: &Summary,
    ) -> Result<Vec<u8>, &'static str> {
        self.capabilities(transcript).summary?;
        let write = self.summarise.ok_or("epitome writes no summaries into them")?;
        write(transcript, source, summary)
    }
}

/// The splice that appends lines to a source.
fn splice_at_end(source: &dyn Source, lines: Vec<u8>) -> Splice {
    let end = source.len();
    Splice { span: Span { start: end, end }, with: lines.into() }
}
