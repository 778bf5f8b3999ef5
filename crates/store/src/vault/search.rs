//! Finds a text in versions, also where it continues in the next chunk, and masks it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{self, Read};

use super::chunker::each_chunk;
use super::merge::{Failed, Merge};
use super::read::{ChunkReader, Parts};
use super::version::{Content, FileVersions};
use super::{FileKey, Vault, Version};
use crate::archive::{Digest, Hash};
use crate::forgotten::{ForgottenText, Occurrence};
use epitome_error::{Error, ErrorKind, Result};

/// Looks for a text in versions. Each chunk is searched once.
pub(super) struct TextSearch<'a> {
    vault: &'a Vault,
    reader: ChunkReader<'a>,
    text: &'a ForgottenText,
    /// A text that crosses the border of two chunks has at most this many bytes on each side of the
    /// border.
    edge: usize,
    chunks: HashMap<Hash, SearchedChunk>,
}

/// The result of searching one chunk, and the bytes at the ends of the chunk. With these, the text
/// is found where it continues in another chunk.
struct SearchedChunk {
    len: u64,
    /// The occurrences that are in this chunk alone.
    inside: Vec<Occurrence>,
    /// The first and the last bytes, at most `edge` of each.
    head: Vec<u8>,
    tail: Vec<u8>,
}

impl<'a> TextSearch<'a> {
    /// Looks for `text` in versions of a machine.
    pub fn new(vault: &'a Vault, machine: &'a str, text: &'a ForgottenText) -> TextSearch<'a> {
        let reader = ChunkReader::new(vault, machine);
        let edge = text.longest().saturating_sub(1);
        TextSearch { vault, reader, text, edge, chunks: HashMap::new() }
    }

    /// Where the text is in a version, in order.
    ///
    /// # Errors
    ///
    /// `Archive` if a chunk cannot be read.
    pub fn occurrences(&mut self, file: &FileKey, version: &Version) -> Result<Vec<Occurrence>> {
        let mut found = Vec::new();
        // The last bytes before the current chunk, and the offset of the chunk.
        let mut before: Vec<u8> = Vec::new();
        let mut at = 0;
        for segment in self.vault.segments(file, version)? {
            let mut rest = segment.len;
            for hash in &segment.chunks {
                if rest == 0 {
                    break;
                }
                self.search_chunk(hash)?;
                let chunk = &self.chunks[hash];
                let used = chunk.len.min(rest);
                let inside = chunk.inside.iter().filter(|it| it.range.end <= used);
                found.extend(inside.map(|it| it.moved(at)));
                let head = first(&chunk.head, used);
                let from = at - before.len() as u64;
                let border = [&before[..], head].concat();
                let is_in_both = |it: &Occurrence| {
                    it.range.start < before.len() as u64 && it.range.end > before.len() as u64
                };
                let both = self.text.find(&border).into_iter().filter(is_in_both);
                found.extend(both.map(|it| it.moved(from)));
                before = if used < chunk.len {
                    let bytes = self.reader.chunk(hash)?;
                    last(&[&before[..], first(&bytes, used)].concat(), self.edge)
                } else if chunk.len > self.edge as u64 {
                    chunk.tail.clone()
                } else {
                    last(&border, self.edge)
                };
                at += used;
                rest -= used;
            }
        }
        found.sort();
        found.dedup();
        Ok(found)
    }

    fn search_chunk(&mut self, hash: &Hash) -> Result<()> {
        if self.chunks.contains_key(hash) {
            return Ok(());
        }
        let bytes = self.reader.chunk(hash)?;
        let chunk = SearchedChunk {
            len: bytes.len() as u64,
            inside: self.text.find(&bytes),
            head: first(&bytes, self.edge as u64).to_vec(),
            tail: last(&bytes, self.edge),
        };
        self.chunks.insert(*hash, chunk);
        Ok(())
    }
}

fn first(bytes: &[u8], len: u64) -> &[u8] {
    let len = usize::try_from(len).unwrap_or(usize::MAX);
    &bytes[..bytes.len().min(len)]
}

fn last(bytes: &[u8], len: usize) -> Vec<u8> {
    bytes[bytes.len().saturating_sub(len)..].to_vec()
}

/// Masks a text in all versions of a file. Returns the number of versions that contained the text.
pub(super) fn mask_versions(
    merge: &mut Merge<'_>,
    listed: &mut FileVersions,
    text: &ForgottenText,
) -> Result<u64, Failed> {
    let vault = merge.vault;
    let mut search = TextSearch::new(vault, &vault.machine, text);
    let mut found = BTreeMap::new();
    for version in &listed.versions {
        found.insert(version.number, search.occurrences(&listed.file, version)?);
    }
    drop(search);
    // In each turn, the longest remaining version gets chunks. Versions whose content is the
    // beginning of that version refer to it.
    let mut order: Vec<usize> = (0..listed.versions.len()).collect();
    order.retain(|at| !listed.versions[*at].is_deleted());
    order.sort_by_key(|at| std::cmp::Reverse((listed.versions[*at].digest.len, *at)));
    while !order.is_empty() {
        let root = listed.versions[order.remove(0)].clone();
        let places = &found[&root.number];
        let (prefixes, others) = order.into_iter().partition::<Vec<usize>, _>(|at| {
            let other = &listed.versions[*at];
            let is_cut = places.iter().any(|place| {
                place.range.start < other.digest.len && place.range.end > other.digest.len
            });
            !is_cut && is_prefix_of(merge, &listed.file, other.number, root.number)
        });
        order = others;
        let lens = prefixes.iter().map(|at| listed.versions[*at].digest.len).collect();
        let prefixes: BTreeSet<u64> =
            prefixes.iter().map(|at| listed.versions[*at].number).collect();
        let (chunks, digests) = write_masked(merge, &listed.file, &root, places, lens)?;
        for version in &mut listed.versions {
            if version.number == root.number {
                version.content = Content::Chunks(chunks.clone());
            } else if prefixes.contains(&version.number) {
                version.content = Content::Prefix { of: root.number };
            } else {
                continue;
            }
            version.masked += found[&version.number].len() as u64;
            if let Some(digest) = digests.get(&version.digest.len) {
                version.digest = *digest;
            }
        }
    }
    Ok(found.values().filter(|places| !places.is_empty()).count() as u64)
}

/// Whether the content of version `one` of a file is the beginning of the content of `other`, as
/// far as the lists of versions say.
pub(super) fn is_prefix_of(merge: &Merge<'_>, file: &FileKey, one: u64, other: u64) -> bool {
    let index = &merge.vault.index;
    let Some(longer) = index.version(file, other) else { return false };
    let mut begins_with = merge.appended_to(file, longer);
    begins_with.insert(other);
    let mut seen = BTreeSet::new();
    let mut at = one;
    loop {
        if begins_with.contains(&at) {
            return true;
        }
        match index.version(file, at).map(|version| &version.content) {
            Some(Content::Prefix { of }) if seen.insert(at) => at = *of,
            Some(_) | None => return false,
        }
    }
}

/// Writes the content of a version with a text masked. Returns its chunks, and the digest of its
/// first bytes for each length in `lens` and for its whole length.
fn write_masked(
    merge: &mut Merge<'_>,
    file: &FileKey,
    version: &Version,
    places: &[Occurrence],
    mut lens: BTreeSet<u64>,
) -> Result<(Vec<Hash>, BTreeMap<u64, Digest>), Failed> {
    let vault = merge.vault;
    let reader = ChunkReader::new(vault, &vault.machine);
    let parts = reader.parts(file, version)?;
    lens.insert(version.digest.len);
    let mut content = MaskedReader::new(&reader, &parts, places, lens);
    let mut chunks = Vec::new();
    each_chunk(&mut content, |bytes| {
        let hash = Hash::compute(bytes);
        chunks.push(hash);
        merge.put(hash, bytes)
    })?;
    if content.before() != version.digest {
        return Err(Failed::Other(unreadable(file, version.number)));
    }
    Ok((chunks, content.digests))
}

/// Reads content with all occurrences of a text masked.
struct MaskedReader<'a> {
    reader: &'a ChunkReader<'a>,
    rest: &'a [(Hash, u64)],
    places: &'a [Occurrence],
    /// The masked bytes of the present chunk, how many of them were read, and the offset of the end
    /// of the chunk in the content.
    now: Vec<u8>,
    used: usize,
    at: u64,
    /// The hash of the content before it is masked, and of the masked content.
    before: blake3::Hasher,
    after: blake3::Hasher,
    lens: BTreeSet<u64>,
    digests: BTreeMap<u64, Digest>,
}

impl<'a> MaskedReader<'a> {
    fn new(
        reader: &'a ChunkReader<'a>,
        parts: &'a Parts,
        places: &'a [Occurrence],
        lens: BTreeSet<u64>,
    ) -> MaskedReader<'a> {
        let mut content = MaskedReader {
            reader,
            rest: &parts.all,
            places,
            now: Vec::new(),
            used: 0,
            at: 0,
            before: blake3::Hasher::new(),
            after: blake3::Hasher::new(),
            lens,
            digests: BTreeMap::new(),
        };
        content.hash(&[]);
        content
    }

    /// The digest of all that was read, before it was masked.
    fn before(&self) -> Digest {
        Digest::new(self.at, &self.before.finalize())
    }

    /// Reads the next chunk and masks it.
    fn advance(&mut self) -> Result<()> {
        let Some(((hash, len), rest)) = self.rest.split_first() else { return Ok(()) };
        self.rest = rest;
        let mut bytes = self.reader.chunk(hash)?;
        bytes.truncate(usize::try_from(*len).unwrap_or(usize::MAX));
        self.before.update(&bytes);
        for place in self.places {
            place.mask_in(&mut bytes, self.at);
        }
        self.hash(&bytes);
        self.now = bytes;
        self.used = 0;
        Ok(())
    }

    /// Hashes masked bytes, and records a digest at each of `lens` that is reached in these bytes.
    fn hash(&mut self, mut bytes: &[u8]) {
        let end = self.at + bytes.len() as u64;
        let wanted: Vec<u64> = self.lens.range(self.at..=end).copied().collect();
        for len in wanted {
            let upto = usize::try_from(len - self.at).unwrap_or(usize::MAX);
            let (head, rest) = bytes.split_at(upto);
            self.after.update(head);
            self.at = len;
            bytes = rest;
            self.digests.insert(len, Digest::new(len, &self.after.finalize()));
        }
        self.after.update(bytes);
        self.at = end;
    }
}

impl Read for MaskedReader<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.used == self.now.len() {
            if self.rest.is_empty() {
                return Ok(0);
            }
            self.advance()?;
        }
        let n = into.len().min(self.now.len() - self.used);
        into[..n].copy_from_slice(&self.now[self.used..self.used + n]);
        self.used += n;
        Ok(n)
    }
}

/// The error for a version that must be written again and cannot be read.
pub(super) fn unreadable(file: &FileKey, number: u64) -> Error {
    let what = format!("version {number} cannot be read, so it is not changed");
    Error::new(ErrorKind::Archive, what)
        .at(&file.path)
        .with_hint("`epitome archive verify` says what is damaged")
}
