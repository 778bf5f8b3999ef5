//! Restores from an archive that may be damaged in part.

use std::collections::HashSet;

use epitome_model::{
    Block, Output, Part, Ref, RepeatedOutput, Source, Stub, Transcript, line_count,
};

use super::{Restoration, RestoreOutcome, RestoreTarget, by_record, newest_first, restore_without};
use crate::archive::{Archive, Digest, Generations, SessionKey};
use crate::source::{Spliced, failure_of, if_read};
use epitome_error::{Error, ErrorKind, Result};

/// The hint for a restore that needs a damaged or missing part.
const PARTIAL: &str = "`epitome restore SESSION --partial` restores what can be; `epitome \
     archive verify` lists what is damaged";

/// What a restore does if it needs a damaged or missing part of the archive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Damage {
    /// Refuse: the session is unchanged.
    #[default]
    Refuse,
    /// Do not put back the bytes of that part, and count their edits as missing.
    LeaveOut,
}

/// Computes how to restore `current`, like [`restore`](super::restore). `found` are all generations
/// of its session, and the errors of damaged ones.
///
/// # Errors
///
/// The errors of [`restore`](super::restore); with [`Damage::Refuse`] also `Archive`, if a damaged
/// or missing part may be needed.
pub fn restore_from(
    archive: &Archive,
    key: &SessionKey,
    found: &Generations,
    current: &dyn Source,
    target: RestoreTarget,
    damage: Damage,
) -> Result<Restoration> {
    if_read(current, restored_from(archive, key, found, current, target, damage))
}

fn restored_from(
    archive: &Archive,
    key: &SessionKey,
    found: &Generations,
    current: &dyn Source,
    target: RestoreTarget,
    damage: Damage,
) -> Result<Restoration> {
    let blobs = archive.blobs(key);
    let done = restore_without(current, &found.whole, &found.removed, &blobs, target);
    if damage == Damage::LeaveOut {
        return match done {
            Err(err) if matches!(err.kind(), ErrorKind::Archive | ErrorKind::Refused) => {
                let above = match target {
                    RestoreTarget::Original => 0,
                    RestoreTarget::Generation(number) => number,
                };
                let later = found.whole.iter().filter(|it| it.number > above);
                by_record(current, &newest_first(later), &blobs, damage)
            }
            done => done,
        };
    }
    let done = done.map_err(|err| match (err.kind(), err.hint()) {
        // Bytes that were forgotten are no damage: their error has a hint of its own.
        (ErrorKind::Archive, Some(hint)) if hint.contains("--partial`") => err,
        (ErrorKind::Archive, _) => err.with_hint(PARTIAL),
        _ => err,
    })?;
    let may_need_more = match &done.outcome {
        RestoreOutcome::ByRecord { .. } => true,
        RestoreOutcome::Exact { undone } => goes_on_behind(found, undone, current),
    };
    if let (true, Some(damaged)) = (may_need_more, found.damaged.first()) {
        let what = "a damaged or missing part of the archive may be needed; nothing was changed";
        let err = Error::new(ErrorKind::Archive, what).because(damaged.clone());
        return Err(err.with_hint(PARTIAL));
    }
    if let (RestoreOutcome::ByRecord { .. }, RestoreTarget::Original) = (&done.outcome, target) {
        let restored = Spliced::new(current, done.splices.clone())?;
        check_stubs(archive, key, found, &restored)?;
    }
    Ok(done)
}

/// Whether `current` is longer than the file right after the first undone generation. Then an agent
/// has appended the rest, or a compaction has, because for some agents a compaction appends, too.
/// The damaged part may be the generation of that compaction.
fn goes_on_behind(found: &Generations, undone: &[u64], current: &dyn Source) -> bool {
    let first = found.whole.iter().find(|it| undone.first() == Some(&it.number));
    first.is_some_and(|first| current.len() > first.after.len)
}

/// The texts of a block that may be stubs.
fn texts_of(block: &Block, source: &dyn Source) -> Vec<String> {
    if let Block::Output(it) | Block::Repeated(RepeatedOutput { output: it, .. }) = block {
        output_texts(it, source)
    } else if let Block::Call(call) = block {
        call.fields.iter().map(|field| field.text.read(source).into_owned()).collect()
    } else if let Block::Text(text) = block {
        // A user may have pasted a stub into a message. Only stubs of pictures are searched for: a
        // compaction leaves no other stubs in messages of the user.
        let text = text.read(source);
        let is_stub = Stub::parse(&text).is_some_and(|stub| stub.is_of_picture());
        if is_stub { vec![text.into_owned()] } else { Vec::new() }
    } else {
        Vec::new()
    }
}

fn output_texts(output: &Output, source: &dyn Source) -> Vec<String> {
    let parts = output.parts.iter().filter_map(|part| match part {
        Part::Text(text) => Some(text.read(source).into_owned()),
        Part::Image(_) | Part::Opaque(_) => None,
    });
    std::iter::once(output.text(source)).chain(parts).collect()
}

/// Returns an error if a restored session is not the original, although its hash is proved: it
/// begins with the file after a generation that was removed from the archive, or it has stubs whose
/// bytes are not in the archive.
///
/// # Errors
///
/// `Archive`, with the reason; the errors of searching the archive.
pub fn check_original(
    archive: &Archive,
    key: &SessionKey,
    found: &Generations,
    restored: &dyn Source,
) -> Result<()> {
    let left = found.removed_left.iter().filter(|(_, left)| left.len > 0);
    let lens: Vec<u64> = left.clone().map(|(_, left)| left.len).collect();
    let digests = Digest::from_prefixes(restored, &lens)?;
    let lost = left.clone().find(|(number, left)| {
        let is_here = found.whole.iter().any(|generation| generation.number == *number);
        !is_here && digests.contains(left)
    });
    if let Some((number, _)) = lost {
        let what = format!(
            "what generation {number} took out of this session was removed from the archive"
        );
        return Err(Error::new(ErrorKind::Archive, what).with_hint(PARTIAL));
    }
    check_stubs(archive, key, found, restored)
}

/// The references in the stubs of a session, sorted, without duplicates.
pub fn stubs_in(transcript: &Transcript, source: &dyn Source) -> Vec<Ref> {
    let entries = transcript.items.iter().filter_map(|item| item.entry());
    let mut names: Vec<Ref> = entries
        .flat_map(|entry| &entry.blocks)
        .flat_map(|block| texts_of(block, source))
        .filter_map(|text| Stub::parse(&text))
        // A stub has no more lines than the text that it replaced: a longer one was pasted.
        .filter(|stub| stub.lines().is_none_or(|lines| line_count(stub.body()) <= lines))
        .map(|stub| stub.reference().clone())
        .collect();
    names.sort();
    names.dedup();
    names
}

/// Returns an error if a file has a stub whose bytes are not in the archive, and not in the file
/// either.
///
/// # Errors
///
/// `Archive`, which names the first such stub; the errors of searching the archive.
pub fn check_stubs(
    archive: &Archive,
    key: &SessionKey,
    found: &Generations,
    source: &dyn Source,
) -> Result<()> {
    let Some(format) = epitome_formats::find_format(&key.agent) else { return Ok(()) };
    if format.keeps_originals() {
        return Ok(());
    }
    let known: HashSet<Ref> = found
        .whole
        .iter()
        .flat_map(|generation| generation.blobs())
        .map(|hash| hash.reference())
        .collect();
    let transcript = (format.read)(source, &mut ());
    let names = stubs_in(&transcript, source);
    if let Some(err) = failure_of(source) {
        return Err(err);
    }
    for name in names.into_iter().filter(|name| !known.contains(name)) {
        // A forked session has stubs of the session it was made from.
        if archive.find(&name)?.is_empty() {
            let what = format!("{name} was removed from this session and is not in the archive");
            return Err(Error::new(ErrorKind::Archive, what).with_hint(PARTIAL));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use epitome_model::{Bytes, Entry, Item, Lines, Text};

    use super::*;

    #[test]
    fn of_messages_only_stubs_of_pictures_are_found() {
        let picture = Ref::from_bytes(b"picture");
        let stubs = [
            Stub::new(picture.clone()).with_what("image/png").with_size(Bytes(4_000)),
            Stub::new(Ref::from_bytes(b"pasted")).with_lines(Lines(40)),
        ];
        let blocks = stubs.iter().map(|stub| Block::Text(Text::Owned(stub.to_string().into())));
        let entry = Entry { blocks: blocks.collect(), ..Entry::default() };
        let items = vec![Item::Entry(Box::new(entry))];
        let transcript = Transcript { items, ..Transcript::default() };
        let source: &[u8] = b"";
        assert_eq!(stubs_in(&transcript, &source), [picture]);
    }
}
