//! A session without its secrets: read anew from bytes that do not have them, so that whatever is
//! made of it has none either.

use std::fs;
use std::path::{Path, PathBuf};

use epitome_model::{Block, Image, Output, Part, Source, Span, Transcript};
use epitome_redact::{Found, Redactor, Rules};

use crate::config::Config;
use crate::error::{Error, ErrorKind, Result};
use crate::regular;
use crate::session::Loaded;
use crate::source::Spliced;

/// A session without what rules found in it.
pub struct Redacted<'a> {
    /// The session. Nothing of it is on disk, and the one that it comes from is as it was.
    pub session: Loaded<Spliced<'a>>,
    /// What was found where, in the order of the session. It does not say what it was.
    pub found: Vec<Found>,
}

/// The rules that come with epitome, those that find the user of this machine, the user's own, and
/// those of more files; of two with one id the later.
///
/// # Errors
///
/// `NotFound`, `NoPermission`, `Unreadable`; `Refused` for a file that holds no rules.
pub fn rules(config: &Config, files: &[PathBuf]) -> Result<Rules> {
    let own = config.redaction_rules();
    let own = own.exists().then_some(own);
    let files = config.rules.iter().chain(files);
    let mut rules = Rules::built_in().and(config.person.rules());
    for path in own.iter().chain(files) {
        let text = text_of(path, own.as_ref() == Some(path))
            .map_err(|err| Error::reading(err, "the file of rules", path))?;
        let more = Rules::parse(&text).and_then(Rules::checked).map_err(|err| {
            Error::new(ErrorKind::Refused, "the rules cannot be used").because(err).at(path)
        })?;
        rules = rules.and(more);
    }
    Ok(rules)
}

/// The user's own rules are a regular file; one that is named on the command line may be a pipe.
#[cfg_attr(
    not(test),
    expect(clippy::disallowed_methods, reason = "a person names it: it may be a pipe")
)]
fn text_of(path: &Path, is_own: bool) -> std::io::Result<String> {
    if is_own { regular::read_to_string(path) } else { fs::read_to_string(path) }
}

/// A session with placeholders in the place of what a redactor finds in its strings.
///
/// # Errors
///
/// `Refused` if the changes cannot be laid over the session, which does not happen.
pub fn redacted<'a, S: Source>(
    session: &'a Loaded<S>,
    redactor: &mut Redactor<'_>,
) -> Result<Redacted<'a>> {
    let splices = redactor.splices(&session.source, &sealed(&session.transcript));
    let source = Spliced::new(&session.source, splices)?;
    let mut faults = Vec::new();
    let transcript = (session.format.read)(&source, &mut faults);
    let session = Loaded { format: session.format, source, transcript, faults };
    Ok(Redacted { session, found: redactor.found().to_vec() })
}

/// Reasoning, which may be signed, and pictures: in order and apart.
fn sealed(transcript: &Transcript) -> Vec<Span> {
    let mut spans: Vec<Span> = Vec::new();
    for block in transcript.entries().flat_map(|(_, entry)| &entry.blocks) {
        match block {
            Block::Thinking(thinking) => spans.push(thinking.whole),
            Block::Image(image) => spans.push(image.data),
            Block::Output(output) => spans.extend(pictures(output)),
            Block::Again(again) => spans.extend(pictures(&again.output)),
            // Words, calls, and what nobody understands.
            _ => {}
        }
    }
    spans.retain(|span| !span.is_empty());
    spans.sort_unstable();
    spans.dedup_by(|later, earlier| later.start < earlier.end);
    spans
}

fn pictures(output: &Output) -> impl Iterator<Item = Span> {
    output.parts.iter().filter_map(|part| match part {
        Part::Image(Image { data, .. }) => Some(*data),
        Part::Text(_) | Part::Opaque(_) => None,
    })
}
