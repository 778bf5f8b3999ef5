//! Looks up a removed text by the reference in its stub.

use epitome_model::{Bytes, Ref};

use crate::archive::{Archive, Hash, ReferencedBytes, SessionKey};
use crate::config::Config;
use crate::error::{Error, ErrorKind, Result};
use crate::wire;

/// A removed text that was found.
#[derive(Debug)]
pub struct ArchivedText {
    /// Where the text was found, and its description.
    pub found: ReferencedBytes,
    /// The removed text, decoded from the JSON of the session; of a picture, the base64.
    pub bytes: Vec<u8>,
}

/// The removed text with this reference, from the archive or, if the archive does not have it, from
/// the texts that `epitome proxy` removed from requests. The reference may be abbreviated to its
/// first digits. If the archive has several copies, an undamaged one is returned, preferably one
/// with a description.
///
/// ```
/// use epitome::ErrorKind;
/// use epitome::ops::archived_text;
/// use epitome_model::Ref;
///
/// # let home = tempfile::tempdir().expect("a folder");
/// # let config = epitome::Config::from_home(home.path());
/// # let path = home.path().join("session.jsonl");
/// # std::fs::write(&path, fixtures::get("pi", "pricing").bytes()).expect("a session");
/// # let run = config.begin_run("example");
/// # let recipe = epitome::built_in("epitome").expect("a recipe");
/// # let counter = epitome_tokens::Estimate::new();
/// let unknown = Ref::from_bytes(b"nothing like this was removed");
/// let err = archived_text(&config, &unknown).expect_err("an empty archive");
/// assert_eq!(err.kind(), ErrorKind::NotFound);
/// # Ok::<(), epitome::Error>(())
/// ```
///
/// # Errors
///
/// `NotFound` if there is no such text; `Ambiguous` if the references of several texts begin with
/// these digits; `Archive` if all copies are damaged, if the text was forgotten on purpose, or if
/// it was not found and a part of the archive is damaged; the errors of listing the archive.
pub fn archived_text(config: &Config, reference: &Ref) -> Result<ArchivedText> {
    match in_archive(config, reference) {
        Err(err) if err.kind() == ErrorKind::NotFound => on_the_wire(config, reference)?.ok_or(err),
        found => found,
    }
}

/// The removed text with this reference, if `epitome proxy` removed it from a request; otherwise
/// `None`.
fn on_the_wire(config: &Config, reference: &Ref) -> Result<Option<ArchivedText>> {
    let removed = wire::removed_texts(&config.wire_memo(), reference)?;
    let raw_of = |hash: Hash| removed.iter().find(|(_, text)| text.hash == hash);
    let described = removed.iter().map(|(conversation, text)| ReferencedBytes {
        key: SessionKey::new("proxy", conversation),
        generation: 0,
        hash: text.hash,
        about: text.about.clone(),
        raw_len: Bytes(text.raw.len() as u64),
    });
    let described: Vec<ReferencedBytes> = described.collect();
    if described.is_empty() {
        return Ok(None);
    }
    let found = copies_of_one(reference, described)?.into_iter().next();
    Ok(found.and_then(|found| {
        let (_, text) = raw_of(found.hash)?;
        let bytes = found.about.text_for_people(text.raw.as_bytes());
        Some(ArchivedText { found, bytes })
    }))
}

fn in_archive(config: &Config, reference: &Ref) -> Result<ArchivedText> {
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

/// Returns `found` if all its elements are copies of the same bytes, which were removed several
/// times. `NotFound` if `found` is empty; `Ambiguous` if its elements have different bytes.
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
