//! The memo of `epitome proxy`: a record on disk of what the proxy sends in place of messages.
//!
//! The memo of a conversation is a file of JSON lines that is only appended to. A line records what
//! is sent in place of messages. A message is identified by its [`Chain`], the hash of the message
//! and all before it. Texts that are no longer sent are in the same line, so that they are on disk
//! before the shortened message is sent, and `epitome show` finds them. An incomplete last line,
//! which was being written when the machine went down, is removed.
//!
//! [`ledger`] records what each request cost, [`stats`] sums that up, and [`comparison`] compares
//! conversations that pass unchanged with the others.

pub mod comparison;
pub mod ledger;
pub mod stats;

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use epitome_model::Ref;
use serde::{Deserialize, Serialize};

use crate::archive::{About, Hash, Hex};
use crate::error::{Error, Result};
use crate::regular;

/// Version of the lines. A line with a higher version is not read.
const VERSION: u32 = 2;
/// The version of lines that drop no messages. An older epitome can read them.
const WITHOUT_DROPS: u32 = 1;

/// The hash of a message of a list and of all messages before it.
pub type Chain = Hex<16>;

/// A replacement of bytes in a message. The offsets are those in the JSON of the message without
/// its cache marks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Patch {
    /// The offset of the first replaced byte.
    pub start: usize,
    /// The offset after the last replaced byte.
    pub end: usize,
    /// The JSON that is sent instead of these bytes.
    pub with: String,
}

/// Whether and how a message is changed before it is sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// The replacements in the message, in order; empty if the message is sent as it is or is not
    /// sent at all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub patches: Vec<Patch>,
    /// The tokens that this decision saves in each request.
    #[serde(default)]
    pub saved: u64,
    /// Whether the message is not sent at all, because an earlier message is replaced by a digest
    /// that covers this one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dropped: bool,
}

impl Decision {
    /// Whether the message is sent as it is.
    pub fn changes_nothing(&self) -> bool {
        self.patches.is_empty() && !self.dropped
    }
}

/// A text that is no longer sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemovedText {
    /// The hash of the text's bytes. The text's reference is the beginning of this hash.
    pub hash: Hash,
    /// The bytes of the text, as they were in the request.
    pub raw: String,
    /// The description of the text.
    pub about: About,
}

/// A cut: a decision to shorten or to drop messages at the beginning of a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CutLine {
    /// The hash of the last message that the cut covers, as a [`Chain`].
    pub last: Chain,
    /// What is sent in place of each message that the cut covers, in order.
    pub messages: Vec<Decision>,
    /// The length in bytes of the request in which the cut was made, before any change by the
    /// proxy.
    pub bytes: u64,
    /// Tokens that the cut saves in each request, in addition to earlier decisions; 0 if an older
    /// epitome made the cut.
    #[serde(default)]
    pub saved: u64,
}

/// A line of the memo.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoLine {
    /// Version of the line.
    pub v: u32,
    /// What is sent in place of the messages that were new when the line was written.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub messages: BTreeMap<Chain, Decision>,
    /// A decision to shorten or drop the first messages, if one was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<CutLine>,
    /// What is sent in place of tool results, in whatever message they are. The key is the hash of
    /// the call's id and the text of the result.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub results: BTreeMap<Chain, String>,
    /// The texts that are no longer sent because of the decisions in this line.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<RemovedText>,
}

impl MemoLine {
    /// Whether the line changes no request: it only says that messages are sent as they are.
    pub fn changes_nothing(&self) -> bool {
        let MemoLine { v: _, messages, cut, results, removed } = self;
        messages.values().all(Decision::changes_nothing)
            && cut.is_none()
            && results.is_empty()
            && removed.is_empty()
    }

    /// The lowest version of the format that can express the line.
    fn version(&self) -> u32 {
        let cut = self.cut.iter().flat_map(|cut| &cut.messages);
        let drops = self.messages.values().chain(cut).any(|decision| decision.dropped);
        if drops { VERSION } else { WITHOUT_DROPS }
    }
}

/// The file with the memo of one conversation. It is created when the first line is appended.
#[derive(Debug)]
pub struct MemoFile {
    path: PathBuf,
    file: Option<File>,
    /// The offset up to which lines were read or written.
    known: u64,
}

impl MemoFile {
    /// Reads the memo in `folder` of the conversation whose first message has the hash `root`. If
    /// there is no memo, the result has no lines. Other processes may append to it at the same
    /// time.
    ///
    /// # Errors
    ///
    /// `NoPermission` or `Disk` if the memo exists and cannot be opened or read.
    pub fn open(folder: &Path, root: Chain) -> Result<(MemoFile, Vec<MemoLine>)> {
        let path = folder.join(format!("{root}.jsonl"));
        let mut memo = MemoFile { path, file: None, known: 0 };
        let lines = memo.new_lines()?;
        Ok((memo, lines))
    }

    /// The lines that were appended since the memo was last read: those of other processes, and a
    /// line of this process if other processes had appended lines before it.
    ///
    /// # Errors
    ///
    /// `NoPermission` or `Disk` if the memo exists and cannot be opened or read.
    pub fn new_lines(&mut self) -> Result<Vec<MemoLine>> {
        let lines = match self.opened(false) {
            Ok(()) => self.read(),
            Err(err) if err.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(err) => Err(err),
        };
        lines.map_err(|err| self.failed(err))
    }

    fn failed(&self, err: io::Error) -> Error {
        Error::writing(err, "the memo of the proxy", &self.path)
    }

    /// Opens the file. If it does not exist, it is created if `create` is true.
    fn opened(&mut self, create: bool) -> io::Result<()> {
        if self.file.is_some() {
            return Ok(());
        }
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(create);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        self.file = Some(regular::open_with(&mut options, &self.path)?);
        Ok(())
    }

    /// Reads the lines after the offset `known`. An incomplete last line is removed from the file.
    fn read(&mut self) -> io::Result<Vec<MemoLine>> {
        let Some(mut file) = self.file.as_ref() else { return Ok(Vec::new()) };
        if file.metadata()?.len() == self.known {
            return Ok(Vec::new());
        }
        // Another process may be writing the last line.
        file.lock()?;
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(self.known))?;
        file.read_to_end(&mut bytes)?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        self.known += whole as u64;
        if whole < bytes.len() {
            file.set_len(self.known)?;
        }
        file.unlock()?;
        Ok(lines(&bytes[..whole]))
    }

    /// Appends a line, and waits until it is on the disk.
    ///
    /// # Errors
    ///
    /// `Disk` or `NoPermission` if the line cannot be written.
    pub fn append(&mut self, line: &MemoLine) -> Result<()> {
        self.try_append(line).map_err(|err| self.failed(err))
    }

    fn try_append(&mut self, line: &MemoLine) -> io::Result<()> {
        let line = MemoLine { v: line.version(), ..line.clone() };
        let mut text = serde_json::to_vec(&line)?;
        text.push(b'\n');
        if !self.path.exists() {
            // Another proxy may have removed the file, because it was old.
            self.file = None;
            self.known = 0;
        }
        if let Some(folder) = self.path.parent().filter(|_| self.file.is_none()) {
            private_folder(folder)?;
        }
        self.opened(true)?;
        let Some(mut file) = self.file.as_ref() else { return Ok(()) };
        file.lock()?;
        let end = file.metadata()?.len();
        let written = file.write_all(&text);
        match written {
            Ok(()) if end == self.known => self.known += text.len() as u64,
            // Other processes have written lines before this one, so `new_lines` will read them and
            // this one.
            Ok(()) => {}
            // A part of the line may have been written. This part is removed, so that the next line
            // is whole.
            Err(_) => file.set_len(end)?,
        }
        file.unlock()?;
        written?;
        file.sync_data()
    }
}

/// Removes the memos in `folder` to which nothing was added since `before`, and returns how many.
///
/// A conversation without its memo is sent whole if it goes on. After a long time this costs
/// nothing extra, because no provider has its beginning in a cache any more.
///
/// # Errors
///
/// `NoPermission` or `Disk` if a memo cannot be removed.
pub fn remove_old_memos(folder: &Path, before: SystemTime) -> Result<u64> {
    let Ok(entries) = fs::read_dir(folder) else { return Ok(0) };
    let mut removed = 0;
    for entry in entries.flatten() {
        let path = entry.path();
        let is_memo = path.extension().is_some_and(|end| end == "jsonl");
        let is_old = entry.metadata().is_ok_and(|metadata| {
            metadata.is_file() && metadata.modified().is_ok_and(|modified| modified < before)
        });
        if !is_memo || !is_old {
            continue;
        }
        match fs::remove_file(&path) {
            Ok(()) => removed += 1,
            // Another proxy has removed the memo meanwhile.
            Err(err) if err.kind() == io::ErrorKind::NotFound => {}
            Err(err) => return Err(Error::writing(err, "the memo of the proxy", &path)),
        }
    }
    Ok(removed)
}

/// The removed texts whose reference begins with `reference`, from all memos in a folder. Each is
/// returned with the name of its conversation.
///
/// # Errors
///
/// `Unreadable` or `NoPermission` if a memo cannot be read.
pub(crate) fn removed_texts(folder: &Path, reference: &Ref) -> Result<Vec<(String, RemovedText)>> {
    let Ok(entries) = fs::read_dir(folder) else { return Ok(Vec::new()) };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|end| end == "jsonl"));
    paths.sort();
    let begin = format!(r#""hash":"{}"#, reference.digits());
    let mut found = Vec::new();
    for path in paths {
        let bytes = regular::read(&path)
            .map_err(|err| Error::reading(err, "the memo of the proxy", &path))?;
        if memchr::memmem::find(&bytes, begin.as_bytes()).is_none() {
            continue;
        }
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let removed = lines(&bytes).into_iter().flat_map(|line| line.removed);
        let named = removed.filter(|text| text.hash.matches(reference));
        // A text that does not match its hash is damaged, and is left out.
        let whole = named.filter(|text| Hash::compute(text.raw.as_bytes()) == text.hash);
        found.extend(whole.map(|text| (name.clone(), text)));
    }
    Ok(found)
}

/// The lines that can be read. A line that is damaged or has a higher version is left out: its
/// messages are sent as they are.
fn lines(bytes: &[u8]) -> Vec<MemoLine> {
    let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let parsed = lines.filter_map(|line| serde_json::from_slice::<MemoLine>(line).ok());
    parsed.filter(|line| line.v <= VERSION).collect()
}

fn private_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(root: u8) -> MemoLine {
        let patches = vec![Patch { start: 3, end: 9, with: "\"short\"".into() }];
        let decision = Decision { patches, saved: 7, dropped: false };
        let dropped = Decision { dropped: true, ..Decision::default() };
        let raw = format!("\"long {root}\"");
        let hash = Hash::compute(raw.as_bytes());
        let about = About { texts: vec![(0, raw.len() as u32)], ..About::default() };
        MemoLine {
            v: VERSION,
            messages: [(Chain::from_bytes([root; 16]), decision.clone())].into(),
            cut: Some(CutLine {
                last: Chain::from_bytes([9; 16]),
                messages: vec![decision, dropped],
                bytes: 90_000,
                saved: 7,
            }),
            results: [(Chain::from_bytes([root; 16]), "x".into())].into(),
            removed: vec![RemovedText { hash, raw, about }],
        }
    }

    #[test]
    fn lines_are_read_again_and_a_torn_one_is_dropped() {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path().join("proxy");
        let root = Chain::from_bytes([1; 16]);
        let (mut memo, lines) = MemoFile::open(&folder, root).expect("a memo");
        assert_eq!(lines, []);
        memo.append(&line(1)).expect("a disk");
        let path = folder.join(format!("{root}.jsonl"));
        let mut torn = fs::read(&path).expect("it exists");
        torn.extend_from_slice(&torn.clone()[..40]);
        fs::write(&path, torn).expect("a disk");
        let (mut memo, lines) = MemoFile::open(&folder, root).expect("a memo");
        assert_eq!(lines, [line(1)]);
        memo.append(&line(2)).expect("a disk");
        let (mut other, lines) = MemoFile::open(&folder, root).expect("a memo");
        assert_eq!(lines, [line(1), line(2)]);
        // Each of the two values reads the line that the other one wrote.
        assert_eq!(memo.new_lines().expect("a memo"), []);
        other.append(&line(3)).expect("a disk");
        assert_eq!(other.new_lines().expect("a memo"), []);
        memo.append(&line(4)).expect("a disk");
        assert_eq!(memo.new_lines().expect("a memo"), [line(3), line(4)]);
        assert_eq!(other.new_lines().expect("a memo"), [line(4)]);
    }

    #[test]
    fn old_memos_are_removed_and_all_else_stays() {
        let folder = tempfile::tempdir().expect("a folder");
        let hour = |n: u64| SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(n * 3_600);
        let open =
            |n: u8| MemoFile::open(folder.path(), Chain::from_bytes([n; 16])).expect("a memo").0;
        let (mut old, mut new) = (open(1), open(2));
        let other = folder.path().join("notes.txt");
        for (memo, hours) in [(&mut old, 9), (&mut new, 10)] {
            memo.append(&line(1)).expect("a disk");
            let file = File::options().write(true).open(&memo.path).expect("it exists");
            file.set_modified(hour(hours)).expect("a disk");
        }
        let file = File::create(&other).expect("a disk");
        file.set_modified(hour(1)).expect("a disk");
        ledger::Ledger::new(folder.path()).append(&ledger::LedgerLine::default()).expect("a disk");
        assert_eq!(remove_old_memos(folder.path(), hour(10)).expect("a disk"), 1);
        assert_eq!(remove_old_memos(&folder.path().join("none"), hour(10)).expect("a disk"), 0);
        assert!(!old.path.exists() && new.path.exists() && other.exists());
        let read = ledger::Ledger::new(folder.path()).read(None).expect("a ledger");
        assert_eq!(read.lines.len(), 1);
        // A proxy that still has the removed memo open creates it again.
        old.append(&line(2)).expect("a disk");
        let (_, lines) = MemoFile::open(folder.path(), Chain::from_bytes([1; 16])).expect("a memo");
        assert_eq!(lines, [line(2)]);
    }

    #[test]
    fn a_memo_that_was_removed_is_read_from_its_beginning() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = Chain::from_bytes([1; 16]);
        let (mut memo, _) = MemoFile::open(folder.path(), root).expect("a memo");
        memo.append(&line(1)).expect("a disk");
        memo.append(&line(2)).expect("a disk");
        fs::remove_file(&memo.path).expect("it exists");
        memo.append(&line(3)).expect("a disk");
        let (mut other, lines) = MemoFile::open(folder.path(), root).expect("a memo");
        assert_eq!(lines, [line(3)]);
        other.append(&line(4)).expect("a disk");
        assert_eq!(memo.new_lines().expect("a memo"), [line(4)]);
    }

    #[test]
    fn a_removed_text_is_found_by_its_reference() {
        let folder = tempfile::tempdir().expect("a folder");
        let (mut memo, _) =
            MemoFile::open(folder.path(), Chain::from_bytes([1; 16])).expect("a memo");
        memo.append(&line(1)).expect("a disk");
        let reference = Ref::from_bytes(b"\"long 1\"");
        let found = removed_texts(folder.path(), &reference).expect("it is read");
        assert_eq!(found, [(Chain::from_bytes([1; 16]).to_string(), line(1).removed[0].clone())]);
        let other = Ref::from_bytes(b"\"other\"");
        assert_eq!(removed_texts(folder.path(), &other).expect("it is read"), []);
    }
}
