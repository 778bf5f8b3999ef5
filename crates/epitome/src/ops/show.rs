//! Looks up a removed text by the reference in its stub.

use epitome_model::Ref;

use crate::archive::{Archive, ReferencedBytes};
use crate::config::Config;
use crate::error::{Error, ErrorKind, Result};

/// A removed text.
#[derive(Debug)]
pub struct ArchivedText {
    /// Where it was, and its description.
    pub found: ReferencedBytes,
    /// Its bytes; base64 for a picture.
    pub bytes: Vec<u8>,
}

/// The removed text with a reference, or with one that begins like it. Of several copies in the
/// archive, the newest that is not damaged, preferring one with a description.
///
/// # Errors
///
/// `NotFound` if there is none, `Ambiguous` if several references begin like it, `Archive` if every
/// copy is damaged.
pub fn archived_text(config: &Config, reference: &Ref) -> Result<ArchivedText> {
    let archive = config.archive();
    let found = archive.find(reference).map_err(Error::while_writing)?;
    let mut copies = copies_of_one(reference, found)?;
    let mut failed = None;
    copies.sort_by_key(|it| !it.about.what.is_empty());
    while let Some(found) = copies.pop() {
        match read(&archive, &found) {
            Ok(bytes) => return Ok(ArchivedText { found, bytes }),
            Err(err) => failed = failed.or(Some(err)),
        }
    }
    Err(failed.expect("there was a copy to read").while_writing())
}

fn read(archive: &Archive, found: &ReferencedBytes) -> Result<Vec<u8>> {
    let raw = archive.read(&found.key, found.generation, &found.hash)?;
    Ok(found.about.text_for_people(&raw))
}

/// The copies of the text: the same bytes removed twice are one text.
fn copies_of_one(reference: &Ref, mut found: Vec<ReferencedBytes>) -> Result<Vec<ReferencedBytes>> {
    let mut hashes: Vec<_> = found.iter().map(|found| found.hash).collect();
    hashes.sort_unstable();
    hashes.dedup();
    match hashes.len() {
        0 => {
            let what = format!("the archive has no piece {reference}");
            let hint = "set EPITOME_HOME if the archive is in another folder";
            Err(Error::new(ErrorKind::NotFound, what).with_hint(hint).while_writing())
        }
        1 => Ok(found),
        n => {
            let mut what = format!("{reference} is the beginning of {n} references");
            found.sort_by_key(|found| found.hash);
            found.dedup_by_key(|found| found.hash);
            for it in found.iter().take(10) {
                let digits = &it.hash.to_string()[..16];
                let key = format!("{} {}", it.key.agent, it.key.id);
                what.push_str(&format!("\nk{digits}  {key}  {}", it.about.what));
            }
            Err(Error::new(ErrorKind::Ambiguous, what).with_hint("give more digits"))
        }
    }
}
