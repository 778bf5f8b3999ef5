//! The layout of a pack. The undamaged pieces of a damaged pack can be read.

use std::borrow::Cow;
use std::cell::RefCell;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use epitome_model::Ref;
use memchr::memmem;

use super::pack_store::PackBytes;
use super::{About, Generation, Hash, SessionKey};
use crate::source::CHUNK;
use epitome_error::{Error, ErrorKind, Result};

/// The format number that this version writes.
pub const FORMAT: u32 = 1;
/// The maximum length of the raw bytes of a piece. Longer pieces are neither written nor read.
pub const LONGEST: u64 = 1 << 30;
const LONGEST_ABOUT: u64 = 1 << 24;

const MAGIC: &[u8; 8] = b"EPITPACK";
const END: &[u8; 8] = b"PACKEPIT";
/// The bytes with which every tag begins. The first of them is not ASCII, so that they are rare in
/// payloads.
const TAG: &[u8; 3] = b"\x89EP";

pub const HEADER: usize = 16;
const RECORD: usize = 64;
const ENTRY: usize = 64;
const FOOTER: usize = 52;

/// The kinds of pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The key of the pack's session.
    Key,
    /// Removed bytes.
    Blob,
    /// The generation.
    Manifest,
    /// A part of the content of kept files, in a pack of the vault.
    Chunk,
    /// The versions of kept files, as JSON, in a pack of the vault.
    Versions,
}

impl Kind {
    const ALL: [Kind; 5] = [Kind::Key, Kind::Blob, Kind::Manifest, Kind::Chunk, Kind::Versions];

    fn tag(self) -> [u8; 4] {
        let last = match self {
            Kind::Key => b'k',
            Kind::Blob => b'b',
            Kind::Manifest => b'm',
            Kind::Chunk => b'c',
            Kind::Versions => b'v',
        };
        [TAG[0], TAG[1], TAG[2], last]
    }

    fn from_tag(tag: &[u8]) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.tag() == tag)
    }
}

/// An entry of the table of contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    pub kind: Kind,
    pub hash: Hash,
    /// The offset in the pack of the piece's record.
    pub at: u64,
    pub raw_len: u64,
    pub stored_len: u64,
    pub about_len: u32,
}

impl Entry {
    fn payload(&self) -> Option<std::ops::Range<u64>> {
        let from = self.at.checked_add(RECORD as u64 + u64::from(self.about_len))?;
        Some(from..from.checked_add(self.stored_len)?)
    }

    /// The offset at which the payload ends; `None` if it is more than a `u64` can hold.
    pub fn end(&self) -> Option<u64> {
        self.payload().map(|payload| payload.end)
    }

    #[cfg(test)]
    pub fn payload_contains(&self, at: u64) -> bool {
        self.payload().is_some_and(|payload| payload.contains(&at))
    }

    /// Whether the lengths are within their limits, and the piece ends within a pack of `len`
    /// bytes.
    fn fits(&self, len: u64) -> bool {
        self.raw_len <= LONGEST
            && u64::from(self.about_len) <= LONGEST_ABOUT
            && self.payload().is_some_and(|payload| payload.end <= len)
    }
}

/// The header of a pack.
pub fn header() -> [u8; HEADER] {
    let mut bytes = [0; HEADER];
    bytes[..8].copy_from_slice(MAGIC);
    bytes[8..12].copy_from_slice(&FORMAT.to_le_bytes());
    let check = Hash::compute(&bytes[..12]);
    bytes[12..].copy_from_slice(&check.bytes()[..4]);
    bytes
}

/// The record and the description that precede the payload of a piece. With them, the piece is
/// found even without the table of contents.
pub fn record(entry: &Entry, about: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(RECORD + about.len());
    bytes.extend_from_slice(&entry.kind.tag());
    bytes.extend_from_slice(entry.hash.bytes());
    bytes.extend_from_slice(&entry.raw_len.to_le_bytes());
    bytes.extend_from_slice(&entry.stored_len.to_le_bytes());
    bytes.extend_from_slice(&entry.about_len.to_le_bytes());
    let check = record_check(&bytes, about);
    bytes.extend_from_slice(&check);
    bytes.extend_from_slice(about);
    bytes
}

fn record_check(head: &[u8], about: &[u8]) -> [u8; 8] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(head).update(about);
    eight(hasher.finalize().as_bytes())
}

/// The table of contents, which begins at the offset `at` in the pack, and the footer. Sorts
/// `entries` in place.
pub fn ending(entries: &mut [Entry], at: u64) -> Vec<u8> {
    entries.sort_by_key(|entry| (entry.hash, entry.at));
    let mut bytes = Vec::with_capacity(entries.len() * ENTRY + FOOTER);
    for entry in &*entries {
        bytes.extend_from_slice(entry.hash.bytes());
        bytes.extend_from_slice(&entry.at.to_le_bytes());
        bytes.extend_from_slice(&entry.raw_len.to_le_bytes());
        bytes.extend_from_slice(&entry.stored_len.to_le_bytes());
        bytes.extend_from_slice(&entry.about_len.to_le_bytes());
        bytes.extend_from_slice(&entry.kind.tag());
    }
    let check = Hash::compute(&bytes);
    let footer = bytes.len();
    bytes.extend_from_slice(&at.to_le_bytes());
    bytes.extend_from_slice(&(entries.len() as u64).to_le_bytes());
    bytes.extend_from_slice(&check.bytes()[..16]);
    bytes.extend_from_slice(&FORMAT.to_le_bytes());
    let check = Hash::compute(&bytes[footer..]);
    bytes.extend_from_slice(&check.bytes()[..8]);
    bytes.extend_from_slice(END);
    bytes
}

/// How the table of contents of a pack was obtained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contents {
    Stored,
    /// The table is damaged, and the pieces were found by a scan of the pack.
    Rebuilt,
}

/// An open pack.
#[derive(Debug)]
pub struct Pack {
    file: Box<dyn PackBytes>,
    location: PathBuf,
    entries: Vec<Entry>,
    pub contents: Contents,
}

impl Pack {
    /// Reads the table of contents of an open pack. Errors name `location`.
    ///
    /// # Errors
    ///
    /// `NewerFormat` if a newer version of epitome wrote the pack; `Archive` if it is not a pack or
    /// nothing in it can be found; the errors of reading it.
    pub fn open(file: Box<dyn PackBytes>, location: PathBuf) -> Result<Pack> {
        let head = format_of_header(&file.read(0..HEADER as u64));
        let stored = stored_contents(&*file);
        if let Some(err) = file.failure() {
            return Err(err);
        }
        // Checksums cover the format number, so damage is not mistaken for a newer format.
        let format = head.or(stored.as_ref().map(|(format, _)| *format));
        if format.is_some_and(|format| format != FORMAT) {
            let what = "this part of the archive was written by a newer epitome";
            return Err(Error::new(ErrorKind::NewerFormat, what).at(&location));
        }
        let pack = match stored {
            Some((_, entries)) => Pack { file, location, entries, contents: Contents::Stored },
            None => {
                let entries = scan(&*file)?;
                Pack { file, location, entries, contents: Contents::Rebuilt }
            }
        };
        if pack.entries.is_empty() {
            return Err(pack.damaged("nothing of this part of the archive can be read"));
        }
        Ok(pack)
    }

    /// Whether the header of the pack is undamaged.
    pub fn has_header(&self) -> bool {
        format_of_header(&self.file.read(0..HEADER as u64)).is_some()
    }

    /// The location of the pack, for error messages.
    pub fn location(&self) -> &Path {
        &self.location
    }

    pub fn len(&self) -> u64 {
        self.file.len()
    }

    /// All entries, sorted by hash.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The entries of removed bytes that `reference` may refer to.
    pub fn matching(&self, reference: &Ref) -> impl Iterator<Item = &Entry> {
        let digits = reference.digits();
        let low: Hash = format!("{digits:0<64}").parse().unwrap_or(Hash::from_bytes([0xff; 32]));
        let from = self.entries.partition_point(|entry| entry.hash < low);
        self.entries[from..]
            .iter()
            .take_while(move |entry| entry.hash.matches(reference))
            .filter(|entry| entry.kind == Kind::Blob)
    }

    /// The removed bytes with this hash.
    ///
    /// # Errors
    ///
    /// `Archive` if the bytes are not in the pack or are damaged; the errors of reading the pack.
    pub fn read(&self, hash: &Hash) -> Result<Vec<u8>> {
        match self.find(Kind::Blob, hash) {
            Some(entry) => self.raw(entry),
            None if self.generation().is_ok_and(|it| it.forgotten.contains(hash)) => {
                Err(were_forgotten(&hash.to_string()).at(&self.location))
            }
            None => Err(self.damaged(format!("the archive misses the bytes {hash}"))),
        }
    }

    /// The piece of this kind whose raw bytes have this hash.
    pub fn find(&self, kind: Kind, hash: &Hash) -> Option<&Entry> {
        let from = self.entries.partition_point(|entry| entry.hash < *hash);
        let same = self.entries[from..].iter().take_while(|entry| entry.hash == *hash);
        same.into_iter().find(|entry| entry.kind == kind)
    }

    /// The bytes of a piece, checked against their hash.
    pub fn raw(&self, entry: &Entry) -> Result<Vec<u8>> {
        let damaged = || self.damaged(format!("the bytes {} are damaged", entry.hash));
        let stored = self.stored(entry)?;
        let raw = unpacked(&stored, entry.raw_len).map_err(|_| damaged())?;
        if raw.len() as u64 != entry.raw_len || Hash::compute(&raw) != entry.hash {
            return Err(damaged());
        }
        Ok(raw)
    }

    /// The bytes of a piece as they are stored. They are not checked.
    pub fn stored(&self, entry: &Entry) -> Result<Cow<'_, [u8]>> {
        let damaged = || self.damaged(format!("the bytes {} are damaged", entry.hash));
        self.read_at(entry.payload().ok_or_else(damaged)?)
    }

    /// The description of a piece; `None` if its record is damaged or has no valid description.
    pub fn description(&self, entry: &Entry) -> Option<About> {
        serde_json::from_slice(&self.about_bytes(entry)?).ok()
    }

    /// The key of the pack's session.
    ///
    /// # Errors
    ///
    /// `Archive` if the key is neither in its own piece nor in the manifest.
    pub fn key(&self) -> Result<SessionKey> {
        let entry = self.entries.iter().find(|entry| entry.kind == Kind::Key);
        let key = entry
            .and_then(|entry| self.about_bytes(entry))
            .and_then(|about| serde_json::from_slice(&about).ok());
        match key {
            Some(key) => Ok(key),
            None => Ok(self.generation()?.key()),
        }
    }

    /// The generation that the pack contains. Its number is 0 in packs of older versions.
    ///
    /// # Errors
    ///
    /// `Archive` if the generation is missing or damaged.
    pub fn generation(&self) -> Result<Generation> {
        let mut manifests = self.entries.iter().filter(|entry| entry.kind == Kind::Manifest);
        let Some(entry) = manifests.next() else {
            return Err(self.damaged("this part of the archive has no manifest"));
        };
        let raw = self.raw(entry)?;
        serde_json::from_slice(&raw).map_err(|err| {
            self.damaged("the manifest of this part of the archive is damaged").because(err)
        })
    }

    /// Whether the record of a piece can be read, and agrees with the entry in the table of
    /// contents.
    pub fn has_record(&self, entry: &Entry) -> bool {
        self.about_bytes(entry).is_some()
    }

    /// The stored bytes of a piece's description; `None` if the record of the piece is damaged or
    /// differs from `entry`.
    pub fn about_bytes(&self, entry: &Entry) -> Option<Vec<u8>> {
        let record = read_record(&*self.file, entry.at)?;
        (record.0 == *entry).then_some(record.1)
    }

    /// The stored bytes of a piece's description, for a search that must not miss a text.
    ///
    /// # Errors
    ///
    /// `Archive` if the record of the piece is damaged or differs from `entry`.
    pub fn undamaged_about(&self, entry: &Entry) -> Result<Vec<u8>> {
        self.about_bytes(entry).ok_or_else(|| {
            self.damaged(format!("the description of the bytes {} is damaged", entry.hash))
        })
    }

    fn read_at(&self, range: std::ops::Range<u64>) -> Result<Cow<'_, [u8]>> {
        let want = range.end - range.start;
        let bytes = self.file.read(range);
        match self.file.failure() {
            Some(err) => Err(err),
            None if bytes.len() as u64 != want => Err(self.damaged("the archive is cut off")),
            None => Ok(bytes),
        }
    }

    pub fn damaged(&self, what: impl Into<String>) -> Error {
        Error::new(ErrorKind::Archive, what).at(&self.location)
    }
}

/// The format number, if the header is undamaged.
fn format_of_header(bytes: &[u8]) -> Option<u32> {
    let whole = bytes.len() == HEADER
        && bytes.starts_with(MAGIC)
        && Hash::compute(&bytes[..12]).bytes()[..4] == bytes[12..];
    whole.then(|| u32_at(bytes, 8))
}

/// The format number and the table of contents, if both are undamaged.
fn stored_contents(file: &dyn PackBytes) -> Option<(u32, Vec<Entry>)> {
    let len = file.len();
    // One read is enough for the table of most packs.
    let tail_at = len.saturating_sub(8 * 1024);
    let tail = file.read(tail_at..len);
    let footer = tail.get(tail.len().checked_sub(FOOTER)?..)?;
    if !footer.ends_with(END) || Hash::compute(&footer[..36]).bytes()[..8] != footer[36..44] {
        return None;
    }
    let at = u64_at(footer, 0);
    let count = u64_at(footer, 8);
    let table_len = count.checked_mul(ENTRY as u64)?;
    if at.checked_add(table_len)?.checked_add(FOOTER as u64)? != len {
        return None;
    }
    let table = match at.checked_sub(tail_at) {
        Some(from) => Cow::Borrowed(&tail[usize::try_from(from).ok()?..tail.len() - FOOTER]),
        None => file.read(at..at + table_len),
    };
    if table.len() as u64 != table_len || Hash::compute(&table).bytes()[..16] != footer[16..32] {
        return None;
    }
    let format = u32_at(footer, 32);
    // The table of a newer format may have another layout.
    let entries: Option<Vec<Entry>> = match format {
        FORMAT => table.chunks_exact(ENTRY).map(|bytes| entry_of(bytes, len)).collect(),
        _ => Some(Vec::new()),
    };
    let entries = entries?;
    let sorted = entries.is_sorted_by_key(|entry| (entry.hash, entry.at));
    sorted.then_some((format, entries))
}

fn entry_of(bytes: &[u8], len: u64) -> Option<Entry> {
    let entry = Entry {
        hash: Hash::from_bytes(bytes[..32].try_into().ok()?),
        at: u64_at(bytes, 32),
        raw_len: u64_at(bytes, 40),
        stored_len: u64_at(bytes, 48),
        about_len: u32_at(bytes, 56),
        kind: Kind::from_tag(&bytes[60..64])?,
    };
    entry.fits(len).then_some(entry)
}

/// The record at `at` and the description of its piece, if undamaged.
fn read_record(file: &dyn PackBytes, at: u64) -> Option<(Entry, Vec<u8>)> {
    let head = file.read(at..at.checked_add(RECORD as u64)?);
    if head.len() != RECORD {
        return None;
    }
    let entry = Entry {
        kind: Kind::from_tag(&head[..4])?,
        hash: Hash::from_bytes(head[4..36].try_into().ok()?),
        at,
        raw_len: u64_at(&head, 36),
        stored_len: u64_at(&head, 44),
        about_len: u32_at(&head, 52),
    };
    if !entry.fits(file.len()) {
        return None;
    }
    let from = at + RECORD as u64;
    let about = file.read(from..from + u64::from(entry.about_len)).into_owned();
    let check = record_check(&head[..56], &about);
    (check == head[56..]).then_some((entry, about))
}

/// Scans the whole pack for pieces.
fn scan(file: &dyn PackBytes) -> Result<Vec<Entry>> {
    let mut entries = Vec::new();
    let mut at = 0;
    while let Some(found) = next_tag(file, at) {
        match read_record(file, found).and_then(|(entry, _)| Some((entry, entry.payload()?.end))) {
            Some((entry, end)) => {
                entries.push(entry);
                at = end;
            }
            None => at = found + 1,
        }
    }
    if let Some(err) = file.failure() {
        return Err(err);
    }
    entries.sort_by_key(|entry| (entry.hash, entry.at));
    Ok(entries)
}

/// The offset of the next tag, from `at` on.
fn next_tag(file: &dyn PackBytes, mut at: u64) -> Option<u64> {
    while at + (RECORD as u64) <= file.len() {
        let bytes = file.read(at..at + CHUNK);
        if let Some(idx) = memmem::find(&bytes, TAG) {
            return Some(at + idx as u64);
        }
        // A tag may begin at the end of one buffer and end in the next.
        at += (bytes.len() as u64).checked_sub(TAG.len() as u64 - 1).filter(|&n| n > 0)?;
    }
    None
}

/// Decompresses a piece. Each thread reuses its decoder, because making a decoder takes longer than
/// decompressing most pieces.
fn unpacked(stored: &[u8], raw_len: u64) -> io::Result<Vec<u8>> {
    /// For a piece up to this length in bytes, memory of the length that its record states is
    /// allocated at once. A greater length may be hostile: then memory is allocated only for bytes
    /// that were really decompressed.
    const BELIEVED: u64 = 16 << 20;
    thread_local! {
        static DECODER: RefCell<Option<zstd::bulk::Decompressor<'static>>> =
            const { RefCell::new(None) };
    }
    match usize::try_from(raw_len) {
        Ok(len) if raw_len <= BELIEVED => DECODER.with_borrow_mut(|decoder| {
            let decoder = match decoder {
                Some(decoder) => decoder,
                None => decoder.insert(zstd::bulk::Decompressor::new()?),
            };
            decoder.decompress(stored, len)
        }),
        Ok(_) | Err(_) => {
            let mut raw = Vec::new();
            zstd::Decoder::with_buffer(stored)?.take(raw_len + 1).read_to_end(&mut raw)?;
            Ok(raw)
        }
    }
}

/// The error for bytes that were forgotten on purpose.
pub fn were_forgotten(what: &str) -> Error {
    let what = format!("the bytes {what} were forgotten on purpose and cannot come back");
    Error::new(ErrorKind::Archive, what)
        .with_hint("`epitome restore SESSION --partial` restores everything else")
}

fn eight(hash: &[u8; 32]) -> [u8; 8] {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&hash[..8]);
    bytes
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let four = bytes[at..at + 4].try_into().expect("four bytes");
    u32::from_le_bytes(four)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let eight = bytes[at..at + 8].try_into().expect("eight bytes");
    u64::from_le_bytes(eight)
}
