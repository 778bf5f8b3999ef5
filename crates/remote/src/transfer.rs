//! Copies packs to a remote archive and back: [`push`] and [`pull`].

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read, Write};
use std::path::PathBuf;

use epitome_error::{Error, ErrorKind, Result};
use epitome_model::Bytes;
use epitome_store::Archive;
use epitome_store::archive::pack_store::{FolderName, PackReader, PackStore};
use epitome_store::archive::{FolderStore, Generation, SessionKey};
use epitome_store::archive_transfer::{ImportReport, ReceivedPack};
use epitome_store::store::disk;

use crate::connection::hidden_parts;
use crate::key::SealKey;
use crate::store::{ObjectPackStore, Put, hash_of};

/// The folder of the archive's packs in the remote archive.
const AREA: &str = "archive";
/// The extension of a pack.
const PACK: &str = ".pack";

/// The result of [`push`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PushReport {
    /// Number of packs that were copied.
    pub pushed: u64,
    /// The total length of the packs that were copied.
    pub bytes: Bytes,
    /// Number of packs that the remote archive had already.
    pub known: u64,
}

/// The result of [`pull`].
#[derive(Clone, Debug, Default)]
pub struct PullReport {
    /// The packs that were added or refused, and the number of packs that the local archive had
    /// already.
    pub packs: ImportReport,
    /// Number of packs that were not copied, because they were removed from the local archive on
    /// purpose.
    pub removed: u64,
    /// The errors of names in the remote archive that cannot be read.
    pub unread: Vec<Error>,
}

/// The name of a pack in the remote archive. It contains the number and the hash of the pack, so
/// that different packs with the same number, from two machines, have different names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RemoteName {
    /// The first part of the name: `archive` or `vault`.
    area: &'static str,
    /// The folder of the session: `claude/0f3c9a52`; in the vault, the machine.
    pub folder: String,
    pub number: u64,
    /// The first 32 digits of the blake3 hash of the pack.
    pub hash: String,
}

impl RemoteName {
    pub fn new(area: &'static str, folder: &str, number: u64, hash: &str) -> RemoteName {
        RemoteName { area, folder: folder.to_owned(), number, hash: hash[..32].to_owned() }
    }

    pub fn text(&self) -> String {
        format!("{}/{}/{:06}-{}{PACK}", self.area, self.folder, self.number, self.hash)
    }

    pub fn parse(area: &'static str, name: &str) -> Option<RemoteName> {
        let (folder, file) = name.strip_prefix(area)?.strip_prefix('/')?.rsplit_once('/')?;
        let (number, hash) = file.strip_suffix(PACK)?.split_once('-')?;
        let parsed = RemoteName {
            area,
            folder: folder.to_owned(),
            number: number.parse().ok()?,
            hash: hash.to_owned(),
        };
        (parsed.text() == name).then_some(parsed)
    }
}

/// A pack in the local archive.
struct LocalPack {
    /// The name of the pack: `claude/0f3c9a52/000001.pack`.
    name: String,
    folder: String,
    number: u64,
}

/// A file that lists packs that were copied, one in each line. For [`push`], a line is the name and
/// the length of a local pack. That list only saves requests: `push` makes it again from what the
/// remote archive has. For the vault, a line is the name of a pack in the remote archive.
#[derive(Clone, Debug)]
pub struct PushRecord {
    path: PathBuf,
    lines: BTreeSet<String>,
}

impl PushRecord {
    /// Reads the record. One that does not exist or cannot be read is empty.
    pub fn open(path: PathBuf) -> PushRecord {
        let text = epitome_store::regular::read_to_string(&path).unwrap_or_default();
        PushRecord { path, lines: text.lines().map(str::to_owned).collect() }
    }

    fn line(pack: &LocalPack, len: u64) -> String {
        format!("{} {len}", pack.name)
    }

    /// The lines.
    pub fn lines(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().map(String::as_str)
    }

    pub(crate) fn has(&self, line: &str) -> bool {
        self.lines.contains(line)
    }

    /// Adds a line, which is on disk when this returns.
    ///
    /// # Errors
    ///
    /// `Disk` or `NoPermission` if it cannot be written.
    pub fn add(&mut self, line: &str) -> Result<()> {
        if self.has(line) {
            return Ok(());
        }
        let mut options = std::fs::OpenOptions::new();
        options.create(true).append(true);
        let added =
            epitome_store::regular::open_with(&mut options, &self.path).and_then(|mut file| {
                file.write_all(format!("{line}\n").as_bytes())?;
                file.sync_all()
            });
        added.map_err(|err| Error::writing(err, "the record of pushed packs", &self.path))?;
        self.lines.insert(line.to_owned());
        Ok(())
    }

    /// Removes a line. If the file cannot be written, the next process that opens the record has
    /// the line again.
    pub fn remove(&mut self, line: &str) {
        let mut lines = self.lines.clone();
        lines.remove(line);
        self.write(lines);
    }

    /// Replaces the lines. It is no error if they cannot be written to disk: the next process that
    /// opens the record then has the old lines.
    pub(crate) fn write(&mut self, lines: BTreeSet<String>) {
        self.lines = lines;
        let text: String = self.lines.iter().map(|line| format!("{line}\n")).collect();
        if let Some(folder) = self.path.parent()
            && disk::private_folder(folder).is_ok()
            && let Ok(temp) = disk::Temp::create(folder)
        {
            let written = temp.file().write_all(text.as_bytes());
            let placed = written.and_then(|()| temp.place_over(&self.path));
            if let Err(err) = placed {
                tracing::debug!("the record of pushed packs was not written: {err}");
            }
        }
    }
}

/// Copies the packs of the local archive `from` that the remote archive `to` does not have. Writes
/// to `record` which packs of `from` were found in `to` or copied to it. Packs of the remote
/// archive are never replaced or deleted. If a request fails, the packs that were copied stay, and
/// the next call continues.
///
/// # Errors
///
/// The errors of the first request that fails; `Archive` if one of the two archives cannot be
/// listed, or if the remote one has something else under the name of a pack; the errors of reading
/// a local pack.
pub fn push(
    from: &FolderStore,
    to: &ObjectPackStore,
    record: &mut PushRecord,
) -> Result<PushReport> {
    let known: BTreeSet<String> = to.hashes(AREA)?.0.into_keys().collect();
    let packs = local_packs(from)?;
    push_packs(from, to, packs, &known, BTreeSet::new(), record)
}

/// As [`push`], but copies only packs that are not in the record, and does not list the remote
/// archive. Calls `connect` only if there is such a pack.
///
/// # Errors
///
/// The errors of `connect` and of [`push`].
pub fn push_new(
    from: &FolderStore,
    connect: impl FnOnce() -> Result<ObjectPackStore>,
    record: &mut PushRecord,
) -> Result<PushReport> {
    let mut packs = Vec::new();
    let mut kept = BTreeSet::new();
    for pack in local_packs(from)? {
        match from.facts(&pack.name) {
            Ok(facts) => {
                let line = PushRecord::line(&pack, facts.len.0);
                if record.lines.contains(&line) {
                    kept.insert(line);
                } else {
                    packs.push(pack);
                }
            }
            Err(err) if err.kind() == ErrorKind::NotFound => {}
            Err(err) => return Err(err),
        }
    }
    if packs.is_empty() {
        return Ok(PushReport { known: kept.len() as u64, ..PushReport::default() });
    }
    push_packs(from, &connect()?, packs, &BTreeSet::new(), kept, record)
}

/// Copies `packs`, unless `known` contains their names in the remote archive. `done` are the lines
/// of the record for the packs that are not in `packs`.
fn push_packs(
    from: &FolderStore,
    to: &ObjectPackStore,
    packs: Vec<LocalPack>,
    known: &BTreeSet<String>,
    mut done: BTreeSet<String>,
    record: &mut PushRecord,
) -> Result<PushReport> {
    let mut report = PushReport { known: done.len() as u64, ..PushReport::default() };
    let mut pushed = Ok(());
    for local in packs {
        match push_pack(from, to, &local, known) {
            Ok((state, len)) => {
                match state {
                    State::Copied => {
                        report.pushed += 1;
                        report.bytes += Bytes(len);
                    }
                    State::Known => report.known += 1,
                }
                done.insert(PushRecord::line(&local, len));
            }
            // The pack was removed after the folder was listed.
            Err(err) if err.kind() == ErrorKind::NotFound => {}
            Err(err) => {
                pushed = Err(err);
                break;
            }
        }
    }
    if done != record.lines {
        record.write(done);
    }
    pushed.map(|()| report)
}

enum State {
    Copied,
    Known,
}

/// Copies one pack, if the remote archive does not have it. Returns which was the case, and the
/// length of the pack.
fn push_pack(
    from: &FolderStore,
    to: &ObjectPackStore,
    local: &LocalPack,
    known: &BTreeSet<String>,
) -> Result<(State, u64)> {
    let pack = from.open(&local.name)?;
    let len = pack.len();
    let hash = hash_of(&*pack, &from.location(&local.name))?;
    let name = RemoteName::new(AREA, &local.folder, local.number, &hash).text();
    if known.contains(&name) {
        return Ok((State::Known, len));
    }
    match to.put_pack(&*pack, &name)? {
        Put::New => Ok((State::Copied, len)),
        Put::Known => Ok((State::Known, len)),
        Put::Taken => {
            let what = "the remote archive has another pack of this name";
            Err(Error::new(ErrorKind::Archive, what).at(&to.location(&name)))
        }
    }
}

/// All packs of the local archive.
fn local_packs(store: &FolderStore) -> Result<Vec<LocalPack>> {
    let mut packs = Vec::new();
    for agent in folders(store, "")? {
        for session in folders(store, &agent)? {
            let folder = format!("{agent}/{session}");
            packs.extend(packs_in(store, &folder)?);
        }
    }
    Ok(packs)
}

/// The packs of one session.
fn packs_in(store: &FolderStore, folder: &str) -> Result<Vec<LocalPack>> {
    let names = store.list(folder)?.into_iter().filter_map(|listed| {
        let FolderName::File(file) = listed else { return None };
        let number = number_of(&file, PACK)?;
        Some(LocalPack { name: format!("{folder}/{file}"), folder: folder.to_owned(), number })
    });
    Ok(names.collect())
}

/// The names of the folders in a folder, without hidden ones such as the trash.
fn folders(store: &FolderStore, folder: &str) -> Result<Vec<String>> {
    let folders = store.list(folder)?.into_iter().filter_map(|listed| match listed {
        FolderName::Folder(name) if !name.starts_with('.') => Some(name),
        FolderName::Folder(_) | FolderName::File(_) => None,
    });
    Ok(folders.collect())
}

fn number_of(file: &str, extension: &str) -> Option<u64> {
    file.strip_suffix(extension)?.parse().ok()
}

/// Copies packs from the remote archive to the local one, whose packs are in `local`. For a
/// `session`, copies its packs and those of the sessions that were compacted together with it, such
/// as its sub-agents. For `None`, copies the packs of all sessions, except packs that were removed
/// from the local archive on purpose. `files` is the same as for [`Archive::import`]. Each pack is
/// proved by its hash before it is added.
///
/// # Errors
///
/// The errors of requests; `Archive` if a pack is damaged; the errors of [`Archive::receive`].
pub fn pull(
    from: &ObjectPackStore,
    local: &FolderStore,
    session: Option<&SessionKey>,
    files: &dyn Fn(&Generation) -> Vec<PathBuf>,
) -> Result<PullReport> {
    let archive = Archive::in_store(local.clone());
    let mut pull = Pull { from, local, archive, files, report: PullReport::default() };
    let Some(key) = session else {
        pull.folder("", Removed::Skip)?;
        return Ok(pull.report);
    };
    let mut done: BTreeSet<SessionKey> = BTreeSet::new();
    let mut next = vec![key.clone()];
    while let Some(key) = next.pop() {
        if done.insert(key.clone()) {
            pull.folder(&key.folder(), Removed::Copy)?;
            for generation in pull.archive.generations(&key)?.whole {
                next.extend(generation.parts.into_iter().map(|part| part.key));
                next.extend(generation.part_of);
            }
        }
    }
    Ok(pull.report)
}

/// Whether packs that were removed from the local archive on purpose are copied again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Removed {
    Copy,
    Skip,
}

struct Pull<'a> {
    from: &'a ObjectPackStore,
    local: &'a FolderStore,
    archive: Archive,
    files: &'a dyn Fn(&Generation) -> Vec<PathBuf>,
    report: PullReport,
}

impl Pull<'_> {
    /// Copies the packs below a folder of the remote archive that the local archive does not have.
    fn folder(&mut self, folder: &str, removed: Removed) -> Result<()> {
        let below = if folder.is_empty() { AREA.to_owned() } else { format!("{AREA}/{folder}") };
        let (hashes, unread) = self.from.hashes(&below)?;
        self.report.unread.extend(unread);
        let mut by_folder: BTreeMap<String, Vec<(RemoteName, String)>> = BTreeMap::new();
        for (name, hash) in hashes {
            if let Some(name) = RemoteName::parse(AREA, &name) {
                by_folder.entry(name.folder.clone()).or_default().push((name, hash));
            }
        }
        for (folder, packs) in by_folder {
            let missing = self.missing(&folder, packs, removed)?;
            let mut received = missing.into_iter().map(|(name, hash)| self.received(&name, hash));
            let report = self.archive.receive(&mut received, self.files)?;
            drop(received);
            self.report.packs.added.extend(report.added);
            self.report.packs.refused.extend(report.refused);
            self.report.packs.known += report.known;
        }
        Ok(())
    }

    /// The packs of a session that the remote archive has and the local archive does not. Packs
    /// that were removed from the local archive on purpose are left out and counted, unless
    /// `removed` is `Copy`.
    fn missing(
        &mut self,
        folder: &str,
        packs: Vec<(RemoteName, String)>,
        removed: Removed,
    ) -> Result<Vec<(RemoteName, String)>> {
        let mut here = BTreeSet::new();
        for local in packs_in(self.local, folder)? {
            let pack = self.local.open(&local.name)?;
            here.insert(hash_of(&*pack, &self.local.location(&local.name))?);
        }
        let files = self.local.list(folder)?;
        let was_removed: BTreeSet<u64> =
            files.iter().filter_map(|it| number_of(it.name(), ".removed")).collect();
        let mut missing = Vec::new();
        for (name, hash) in packs {
            if here.contains(&hash) {
                self.report.packs.known += 1;
            } else if removed == Removed::Skip && was_removed.contains(&name.number) {
                self.report.removed += 1;
            } else {
                missing.push((name, hash));
            }
        }
        Ok(missing)
    }

    fn received(&self, name: &RemoteName, hash: String) -> Result<ReceivedPack> {
        let ProvedPack { len, bytes } = self.from.proved(&name.text(), hash)?;
        Ok(ReceivedPack { number: name.number, len, bytes })
    }
}

/// A pack that is compared with its hash while it is read.
pub(crate) struct ProvedPack {
    pub len: u64,
    pub bytes: Box<dyn Read>,
}

impl ObjectPackStore {
    /// Opens a pack, to read it once. If its hash is not `hash`, reading fails at its end.
    pub(crate) fn proved(&self, name: &str, hash: String) -> Result<ProvedPack> {
        let pack = self.open(name)?;
        let len = pack.len();
        let location = self.location(name);
        let reader = PackReader::new(pack);
        let bytes = Box::new(Proved { reader, hasher: blake3::Hasher::new(), hash, location });
        Ok(ProvedPack { len, bytes })
    }
}

/// The path below the address under which a session's packs are named in the remote archive. Its
/// parts are hashes: without the key, they do not tell which session it is.
pub fn hidden_folder(key: &SealKey, session: &SessionKey) -> String {
    hidden_parts(key, &format!("{AREA}/{}", session.folder())).join("/")
}

/// Reads a pack, and fails at its end if its hash is not the expected one.
struct Proved<R> {
    reader: R,
    hasher: blake3::Hasher,
    hash: String,
    location: PathBuf,
}

impl<R: Read> Read for Proved<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let n = self.reader.read(into)?;
        self.hasher.update(&into[..n]);
        if n == 0 && !into.is_empty() && self.hasher.finalize().to_hex().as_str() != self.hash {
            let what = "a pack in the remote archive is damaged";
            return Err(Error::new(ErrorKind::Archive, what).at(&self.location).into());
        }
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_parsed_to_what_it_was_made_of() {
        let name = RemoteName::new(AREA, "claude/0f3c~a.b", 12, &"0123456789abcdef".repeat(4));
        let text = name.text();
        assert_eq!(text, "archive/claude/0f3c~a.b/000012-0123456789abcdef0123456789abcdef.pack");
        assert_eq!(RemoteName::parse(AREA, &text), Some(name));
        for other in ["vault/m/000001-0.pack", "archive/claude/s/000001.pack", "archive/x"] {
            assert_eq!(RemoteName::parse(AREA, other), None, "{other}");
        }
    }
}
