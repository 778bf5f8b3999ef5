//! Adds versions to the vault: what one scan found is one pack.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::time::SystemTime;

use epitome_model::Source;
use jiff::Timestamp;

use super::chunker::{HashingReader, each_chunk};
use super::read::ChunkReader;
use super::version::{Content, FileVersions, PackVersions};
use super::{Cause, ContentChange, FileKey, FileStamp, Vault, Version};
use crate::archive::pack::Kind;
use crate::archive::pieces::PieceWriter;
use crate::archive::{Digest, Hash, pack_name};
use crate::source::FileSource;
use epitome_error::{Error, ErrorKind, Result};

/// How many version numbers of a file are left free for packs that cannot be read. It is unlikely
/// that such packs have more versions of one file.
pub(super) const GAP: u64 = 1_000;

/// The zstd compression level of chunks.
pub(super) const LEVEL: i32 = 9;
/// How many times a file is read at most, if it is written to while it is read.
const ATTEMPTS: usize = 3;

/// New versions that are collected before they are written as one pack. None of them can be read
/// before [`commit`](Batch::commit).
pub struct Batch<'v> {
    vault: &'v mut Vault,
    now: Timestamp,
    pieces: Option<PieceWriter>,
    /// The chunks that are in this batch.
    held: HashSet<Hash>,
    /// The chunks of this batch's versions that packs of the vault have already.
    relied_on: HashSet<Hash>,
    versions: BTreeMap<FileKey, Version>,
    /// For each file whose version in this batch refers to a version in a pack: the digest of that
    /// other version.
    bases: BTreeMap<FileKey, Digest>,
    /// For files that had another key before: the number of the last version under that key. If the
    /// vault has no version under the present key, the next version gets a number after this one.
    counted_from: BTreeMap<FileKey, u64>,
    /// The number of the last version that each file had when it was added to this batch; 0 if it
    /// had none.
    last: BTreeMap<FileKey, u64>,
    /// Whether the last version of the file that is being read is lost or damaged. If so, the new
    /// version does not extend the last one, and chunks in packs are used only if they can be read.
    is_damaged: bool,
}

/// What [`Batch::put_file`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Put {
    /// The file has a new version.
    New(ContentChange),
    /// The content is that of the last version. As long as the file has this stamp, the content is
    /// still the same. `None` if the stamp proves nothing, for example because the file was changed
    /// a moment ago, and for content that is not a file.
    Same(Option<FileStamp>),
    /// The file changed each time that it was read. Nothing was recorded.
    Changing,
}

/// What [`Batch::commit`] did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Committed {
    /// These versions can be read from now on, also after a power cut. The list is empty if the
    /// batch had no versions.
    Written(Vec<(FileKey, Version)>),
    /// Another process has added versions of the same files, or has removed chunks or versions that
    /// this batch relied on. Nothing was written: the files must be put into a new batch.
    Stale,
}

impl Vault {
    /// Begins to add versions, which are seen at `now`.
    pub fn begin(&mut self, now: Timestamp) -> Batch<'_> {
        Batch {
            vault: self,
            now,
            pieces: None,
            held: HashSet::new(),
            relied_on: HashSet::new(),
            versions: BTreeMap::new(),
            bases: BTreeMap::new(),
            counted_from: BTreeMap::new(),
            last: BTreeMap::new(),
            is_damaged: false,
        }
    }

    /// The number for the next version of a file: the one after `before`. If a pack that cannot be
    /// read may have versions after `last` (0 if the file has none), a greater number: the pack may
    /// be put back from a backup, and its versions keep their numbers.
    fn number_after(&self, file: &FileKey, last: u64, before: u64) -> u64 {
        let gap = if self.index.may_have_later(file, last) { GAP } else { 0 };
        before + gap + 1
    }

    /// The last version of a file that is not a deletion.
    fn last_content(&self, file: &FileKey) -> Option<&Version> {
        self.versions(file).rev().find(|version| !version.is_deleted())
    }

    /// Whether a new version can refer to the last version of a file: all that the last version
    /// needs is in packs that can be read. Its content is read back for this until that succeeds
    /// once; later calls only look for its chunks in the lists of the packs. True if the vault has
    /// no content of the file.
    fn is_last_intact(&mut self, file: &FileKey) -> bool {
        let Some(last) = self.last_content(file) else { return true };
        let number = last.number;
        if !self.is_listed(file, last) {
            self.proved.remove(file);
            return false;
        }
        if self.proved.contains(file) {
            return true;
        }
        let is_proved = self.prove_version(file, number).is_ok();
        if is_proved {
            self.proved.insert(file.clone());
        }
        is_proved
    }
}

impl Vault {
    /// How this content differs from the last version; `None` if it is the same. No chunk is read,
    /// so content that was cut, or is that of an older version, is reported as rewritten.
    ///
    /// # Errors
    ///
    /// The errors of reading `source`.
    pub fn difference(&self, file: &FileKey, source: &FileSource) -> Result<Option<ContentChange>> {
        let Some(last) = self.versions(file).next_back() else {
            return Ok(Some(ContentChange::First));
        };
        if last.is_deleted() {
            return Ok(Some(ContentChange::Rewritten));
        }
        let begins = Digest::from_prefixes(source, &[last.digest.len])?.contains(&last.digest);
        Ok(match (begins, last.digest.len == source.len()) {
            (true, true) => None,
            (true, false) => Some(ContentChange::Appended),
            (false, _) => Some(ContentChange::Rewritten),
        })
    }
}

impl Batch<'_> {
    /// The key of a file that this machine keeps.
    pub fn key(&self, agent: &str, session: &str, part: Option<&str>, path: &Path) -> FileKey {
        FileKey {
            machine: self.vault.machine.clone(),
            agent: agent.to_owned(),
            session: session.to_owned(),
            part: part.map(str::to_owned),
            path: path.to_owned(),
        }
    }

    /// Sets, for files that had other keys before, the number of the last version under the other
    /// key. If the vault has no version of such a file under its present key, the next version gets
    /// a number after this one.
    pub fn count_from(&mut self, numbers: BTreeMap<FileKey, u64>) {
        self.counted_from = numbers;
    }

    /// The versions that were added to this batch.
    pub fn versions(&self) -> impl Iterator<Item = (&FileKey, &Version)> {
        self.versions.iter()
    }

    /// Adds the present content of the file at a path, if it is new.
    ///
    /// The file is read as a whole. If its stamp does not prove that it stayed unchanged, what was
    /// read is accepted only if the same bytes are read again: then they were in the file between
    /// the two reads.
    ///
    /// # Errors
    ///
    /// `NotFound`, `NotAFile`, `NoPermission` or `Unreadable` if the file cannot be read; `Disk` if
    /// the pack cannot be written: the batch is unusable then.
    pub fn put_file(&mut self, file: &FileKey, path: &Path) -> Result<Put> {
        for _ in 0..ATTEMPTS {
            let source = FileSource::open(path)?;
            let before = stamp(&source)?;
            let is_settled = before.is_settled(SystemTime::now()) && before.len == source.len();
            let Some(draft) = self.read(file, &source)? else { continue };
            let is_same = is_settled && stamp(&source)? == before;
            if !is_same && !is_still(&source, &draft.digest)? {
                continue;
            }
            let stamp = is_same.then_some(before);
            return Ok(self.add(file, draft, stamp, timestamp(before.modified)));
        }
        Ok(Put::Changing)
    }

    /// Adds content that cannot change while it is read, such as the rows of a session, if it is
    /// new. `modified` is when it was last modified.
    ///
    /// # Errors
    ///
    /// The errors of [`put_file`](Batch::put_file).
    pub fn put_snapshot(
        &mut self,
        file: &FileKey,
        source: &FileSource,
        modified: Option<Timestamp>,
    ) -> Result<Put> {
        match self.read(file, source)? {
            Some(draft) => Ok(self.add(file, draft, None, modified)),
            None => Ok(Put::Changing),
        }
    }

    /// Records that a file does not exist any more. Does nothing if the file was never kept, or if
    /// its deletion is recorded already. Returns whether a deletion was added.
    pub fn put_deleted(&mut self, file: &FileKey) -> bool {
        let Some(last) = self.vault.versions(file).next_back() else { return false };
        if last.is_deleted() {
            return false;
        }
        let number = self.vault.number_after(file, last.number, last.number);
        self.last.insert(file.clone(), last.number);
        let draft = Draft {
            digest: Digest::from_bytes(b""),
            change: ContentChange::Deleted,
            content: Content::Nothing,
        };
        self.versions.insert(file.clone(), draft.into_version(number, self.now, None, None));
        true
    }

    /// Records why epitome itself changed a file, in the version of the file that this batch has.
    /// Does nothing if the batch has no version of the file.
    pub fn set_cause(&mut self, file: &FileKey, cause: Cause) {
        if let Some(version) = self.versions.get_mut(file) {
            version.cause = Some(cause);
        }
    }

    /// Reads content, and writes those chunks that the vault does not have. `None` if the content
    /// became shorter while it was read.
    fn read(&mut self, file: &FileKey, source: &FileSource) -> Result<Option<Draft>> {
        self.is_damaged = !self.vault.is_last_intact(file);
        let read = self.read_appended(file, source).and_then(|appended| match appended {
            Some(draft) => Ok(draft),
            None => self.read_whole(file, source),
        });
        match read {
            Err(err) if err.kind() == ErrorKind::Changed => Ok(None),
            Err(err) => Err(err),
            Ok(draft) => Ok(Some(draft)),
        }
    }

    /// Reads content that begins with the last version. `None` if it does not, if there is no last
    /// version, or if that is lost or damaged.
    fn read_appended(&mut self, file: &FileKey, source: &FileSource) -> Result<Option<Draft>> {
        if self.is_damaged {
            return Ok(None);
        }
        let Some(last) = self.vault.last_content(file) else { return Ok(None) };
        let Version { number: of, digest: old, .. } = *last;
        if old.len > source.len() {
            return Ok(None);
        }
        let mut hasher = blake3::Hasher::new();
        crate::source::copy(source, 0..old.len, &mut hasher)?;
        if Digest::new(old.len, &hasher.finalize()) != old {
            return Ok(None);
        }
        if old.len == source.len() {
            let content = Content::Prefix { of };
            return Ok(Some(Draft { digest: old, change: ContentChange::Back(of), content }));
        }
        let chunks = self.put_chunks(source, old.len, &mut hasher)?;
        let digest = Digest::new(source.len(), &hasher.finalize());
        let content = Content::Extends { of, chunks };
        Ok(Some(Draft { digest, change: ContentChange::Appended, content }))
    }

    /// Reads all of a content, because the last version is not its beginning, is lost or damaged,
    /// or does not exist.
    fn read_whole(&mut self, file: &FileKey, source: &FileSource) -> Result<Draft> {
        let digest = Digest::from_source(source)?;
        let is_same = |version: &&Version| !version.is_deleted() && version.digest == digest;
        let same = self.vault.versions(file).rev().find(is_same).map(|version| version.number);
        if let Some(of) = same.filter(|of| self.vault.prove_version(file, *of).is_ok()) {
            let content = Content::Prefix { of };
            return Ok(Draft { digest, change: ContentChange::Back(of), content });
        }
        let last = self.vault.last_content(file);
        if let Some(last) = last.filter(|it| it.digest.len > digest.len)
            && self.vault.prefix(file, last, digest.len).is_ok_and(|prefix| prefix == digest)
        {
            let content = Content::Prefix { of: last.number };
            return Ok(Draft { digest, change: ContentChange::Cut, content });
        }
        let change = if last.is_some() { ContentChange::Rewritten } else { ContentChange::First };
        let mut hasher = blake3::Hasher::new();
        let chunks = self.put_chunks(source, 0, &mut hasher)?;
        let digest = Digest::new(source.len(), &hasher.finalize());
        Ok(Draft { digest, change, content: Content::Chunks(chunks) })
    }

    /// Cuts the bytes of a source from `from` on into chunks, and writes those that are new.
    fn put_chunks(
        &mut self,
        source: &FileSource,
        from: u64,
        hasher: &mut blake3::Hasher,
    ) -> Result<Vec<Hash>> {
        let mut chunks = Vec::new();
        let reader = HashingReader::new(source, from..source.len(), hasher);
        each_chunk(reader, |bytes| {
            let hash = Hash::compute(bytes);
            chunks.push(hash);
            self.put_chunk(hash, bytes)
        })?;
        source.failure().map_or(Ok(chunks), Err)
    }

    fn put_chunk(&mut self, hash: Hash, bytes: &[u8]) -> Result<()> {
        if self.held.contains(&hash) {
            return Ok(());
        }
        if self.vault.index.has_chunk(&self.vault.machine, &hash) && !self.is_lost(&hash) {
            self.relied_on.insert(hash);
            return Ok(());
        }
        self.pieces()?.put(Kind::Chunk, hash, bytes, &[])?;
        self.held.insert(hash);
        Ok(())
    }

    /// Whether a chunk cannot be read although packs list it. To save time, this is checked only if
    /// the last version of the file is lost or damaged; otherwise the result is false.
    fn is_lost(&self, hash: &Hash) -> bool {
        self.is_damaged && ChunkReader::new(self.vault, &self.vault.machine).chunk(hash).is_err()
    }

    fn pieces(&mut self) -> Result<&mut PieceWriter> {
        if self.pieces.is_none() {
            let begun = PieceWriter::begin(&*self.vault.store, &self.vault.machine, LEVEL)?;
            return Ok(self.pieces.insert(begun));
        }
        let what = "a pack that was begun is gone";
        self.pieces.as_mut().ok_or_else(|| Error::new(ErrorKind::Broken, what))
    }

    /// Adds what was read as a version, unless it equals the last version and the last version is
    /// intact.
    fn add(
        &mut self,
        file: &FileKey,
        draft: Draft,
        stamp: Option<FileStamp>,
        modified: Option<Timestamp>,
    ) -> Put {
        let last = self.vault.versions(file).next_back();
        let is_same = last.is_some_and(|last| !last.is_deleted() && last.digest == draft.digest);
        if is_same && !self.is_damaged {
            return Put::Same(stamp);
        }
        let change = draft.change;
        let base = draft.content.base().and_then(|of| self.vault.index.version(file, of));
        if let Some(base) = base {
            self.bases.insert(file.clone(), base.digest);
        }
        let last = last.map_or(0, |last| last.number);
        self.last.insert(file.clone(), last);
        let before =
            if last > 0 { last } else { self.counted_from.get(file).copied().unwrap_or(0) };
        let number = self.vault.number_after(file, last, before);
        let version = draft.into_version(number, self.now, stamp, modified);
        self.versions.insert(file.clone(), version);
        Put::New(change)
    }

    /// Writes the pack. When this returns `Written`, the versions survive a power cut.
    ///
    /// # Errors
    ///
    /// `Disk` or `NoPermission` if the pack cannot be written: nothing is recorded then. `Archive`
    /// if the vault cannot be listed.
    pub fn commit(mut self) -> Result<Committed> {
        if self.versions.is_empty() {
            return Ok(Committed::Written(Vec::new()));
        }
        self.pieces()?;
        let Some(mut pieces) = self.pieces.take() else { return Ok(Committed::Stale) };
        let raw = serde_json::to_vec(&self.listed())
            .map_err(|err| Error::new(ErrorKind::Broken, "no list of versions").because(err))?;
        let keep = pieces.len();
        let _lock = self.vault.lock()?;
        loop {
            self.vault.refresh()?;
            if !self.is_current() {
                return Ok(Committed::Stale);
            }
            pieces.put(Kind::Versions, Hash::compute(&raw), &raw, &[])?;
            let machine = &self.vault.machine;
            let name = pack_name(machine, self.vault.index.next_pack(machine));
            // If the name is taken, a process that does not use the lock has written a pack.
            match pieces.finish(&name, keep)? {
                Some(again) => pieces = again,
                None => break,
            }
        }
        self.vault.refresh()?;
        Ok(Committed::Written(self.versions.into_iter().collect()))
    }

    /// Whether the last versions of the files are still the same as when they were added to this
    /// batch, and the vault still has the versions and chunks that the batch needs.
    fn is_current(&self) -> bool {
        let vault = &self.vault;
        let last =
            |file: &FileKey| vault.versions(file).next_back().map_or(0, |version| version.number);
        let is_base_here = |(file, version): (&FileKey, &Version)| match version.content.base() {
            Some(of) => vault
                .index
                .version(file, of)
                .is_some_and(|base| Some(base.digest) == self.bases.get(file).copied()),
            None => true,
        };
        self.versions.keys().all(|file| self.last.get(file) == Some(&last(file)))
            && self.versions.iter().all(is_base_here)
            && self.relied_on.iter().all(|hash| vault.index.has_chunk(&vault.machine, hash))
    }

    fn listed(&self) -> PackVersions {
        let files = self.versions.iter().map(|(file, version)| FileVersions {
            file: file.clone(),
            versions: vec![version.clone()],
        });
        PackVersions { files: files.collect(), replaces: Vec::new() }
    }
}

impl Vault {
    /// The digest of the first `len` bytes of a version.
    fn prefix(&self, file: &FileKey, version: &Version, len: u64) -> Result<Digest> {
        let mut hasher = blake3::Hasher::new();
        let mut rest = len;
        let reader = ChunkReader::new(self, &file.machine);
        for mut segment in self.segments(file, version)? {
            segment.len = segment.len.min(rest);
            rest -= segment.len;
            reader.each(&segment, |bytes| {
                hasher.update(bytes);
                Ok(())
            })?;
        }
        Ok(Digest::new(len - rest, &hasher.finalize()))
    }
}

/// A new version without its number, from content that was read.
struct Draft {
    digest: Digest,
    change: ContentChange,
    content: Content,
}

impl Draft {
    fn into_version(
        self,
        number: u64,
        seen: Timestamp,
        stamp: Option<FileStamp>,
        modified: Option<Timestamp>,
    ) -> Version {
        let Draft { digest, change, content } = self;
        let cause = None;
        Version { number, seen, modified, digest, change, cause, masked: 0, stamp, content }
    }
}

fn stamp(source: &FileSource) -> Result<FileStamp> {
    let meta = source.metadata();
    let meta = meta.map_err(|err| Error::reading(err, "the file", source.path()))?;
    Ok(FileStamp::from_metadata(&meta))
}

/// Whether a file that was read still has the same bytes, apart from what was appended.
fn is_still(source: &FileSource, digest: &Digest) -> Result<bool> {
    match Digest::from_source(source) {
        Ok(again) => Ok(again == *digest),
        Err(err) if err.kind() == ErrorKind::Changed => Ok(false),
        Err(err) => Err(err),
    }
}

/// A time in nanoseconds since 1970; `None` if it is out of range.
fn timestamp(nanoseconds: i64) -> Option<Timestamp> {
    Timestamp::from_nanosecond(i128::from(nanoseconds)).ok()
}
