//! Finds the versions in which an agent compacted its session by itself.

use std::collections::BTreeSet;

use epitome_model::{Bytes, Source as _, Transcript};

use super::{ContentChange, FileKey, Vault, Version};
use crate::ops::is_compaction;
use crate::session::Loaded;

/// The maximum number of bytes that are read to find compactions in the versions of a file, the
/// newest versions first. A file to which the agent only appended is read once. Each change that is
/// not an append needs one more read.
const MOST: Bytes = Bytes(256 << 20);

/// The numbers of the versions that were appended to or rewritten and have more records of
/// compactions than the version before them. A version is left out if it or the version before it
/// cannot be read, or is not read because of [`MOST`].
pub(super) fn compacted_versions(vault: &Vault, file: &FileKey) -> BTreeSet<u64> {
    let versions: Vec<&Version> = vault.versions(file).filter(|it| !it.is_deleted()).collect();
    let chains: Vec<&[&Version]> =
        versions.chunk_by(|_, next| next.change == ContentChange::Appended).collect();
    let mut found = BTreeSet::new();
    let mut before = None;
    for chain in &chains[first_read(&chains)..] {
        let ends = compaction_ends(vault, file, chain);
        for version in *chain {
            let is_new =
                matches!(version.change, ContentChange::Appended | ContentChange::Rewritten);
            let count = ends.as_ref().map(|ends| count_within(ends, version.digest.len));
            if is_new && before.is_some_and(|before| count > Some(before)) {
                found.insert(version.number);
            }
            before = count;
        }
    }
    found
}

/// The index of the first of `chains` that is read: from this index on, all of them are together at
/// most [`MOST`] bytes long. Each chain is a version with the versions that only append to it.
fn first_read(chains: &[&[&Version]]) -> usize {
    let mut rest = MOST.0;
    for (at, chain) in chains.iter().enumerate().rev() {
        let len = chain.last().map_or(0, |last| last.digest.len);
        match rest.checked_sub(len) {
            Some(left) => rest = left,
            None => return at + 1,
        }
    }
    0
}

fn count_within(ends: &BTreeSet<u64>, len: u64) -> usize {
    ends.range(..=len).count()
}

/// The offsets at which the records of compactions end in the last version of a chain (see
/// [`first_read`]). The other versions of the chain are beginnings of this one. `None` if the last
/// version cannot be read.
fn compaction_ends(vault: &Vault, file: &FileKey, chain: &[&Version]) -> Option<BTreeSet<u64>> {
    let source = vault.open_version(file, chain.last()?.number).ok()?;
    if source.len() == 0 {
        return Some(BTreeSet::new());
    }
    let loaded = Loaded::read(source, Some(&file.agent)).ok()?;
    Some(ends(&loaded.transcript))
}

fn ends(transcript: &Transcript) -> BTreeSet<u64> {
    let entries = transcript.items.iter().filter_map(|item| item.entry());
    entries.filter(|entry| is_compaction(entry)).map(|entry| entry.record.span.end).collect()
}
