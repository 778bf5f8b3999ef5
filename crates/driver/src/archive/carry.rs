//! Carrying a session's part of the archive to another machine.

use std::fs;
use std::io::{self, Read, Write};

use epitome_model::Bytes;

use super::care::{VerifyReport, verify_pack};
use super::writer::{create_in, place};
use super::{Archive, SessionKey, number_of, numbers, pack_path};
use crate::error::{Error, ErrorKind, Result};
use crate::source::FileSource;
use crate::store::disk::Temp;

/// Longest pack that is taken in.
const LONGEST_PACK: u64 = 8 << 30;
/// Most packs that are taken in at once.
const MOST_PACKS: usize = 100_000;
/// Highest number that a pack brings along.
const HIGHEST: u64 = 1_000_000;

/// A pack that was taken in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// The session that it is of.
    pub key: SessionKey,
    /// The number that it has here. Another than there, when that one was taken.
    pub number: u64,
    /// Its bytes.
    pub stored: Bytes,
}

/// What [`Archive::import`] did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportReport {
    /// Packs that are new here.
    pub added: Vec<Imported>,
    /// Packs that were here already.
    pub known: u64,
}

impl Archive {
    /// Writes all packs of a session as a tar archive. The same packs give the same bytes.
    /// Returns how many they are.
    ///
    /// # Errors
    ///
    /// `NotFound` when the session has none, `Unreadable`, and what the writer says.
    pub fn export(&self, key: &SessionKey, out: &mut dyn Write) -> Result<u64> {
        let folder = self.folder(key);
        let numbers = numbers(&folder)?;
        if numbers.is_empty() {
            let what = "the archive holds nothing of this session";
            return Err(Error::new(ErrorKind::NotFound, what).at(&folder));
        }
        let mut tar = tar::Builder::new(out);
        for &number in &numbers {
            let path = pack_path(&folder, number);
            let file = FileSource::open(&path)?;
            let mut head = tar::Header::new_ustar();
            head.set_size(epitome_model::Source::len(&file));
            head.set_mode(0o600);
            head.set_mtime(0);
            let name = pack_path(&key.folder(), number);
            let from = SourceReader { file: &file, at: 0 };
            tar.append_data(&mut head, name, from).map_err(Error::from)?;
        }
        tar.into_inner().and_then(Write::flush).map_err(Error::from)?;
        Ok(numbers.len() as u64)
    }

    /// Takes packs in from a tar archive, which anyone may have made. All of it is read and
    /// verified before the first pack is put in place; names in it say nothing but the number,
    /// and no pack takes the place of another.
    ///
    /// # Errors
    ///
    /// `Refused` when it holds anything but whole packs, `NewerFormat`, `Disk`.
    pub fn import(&self, from: &mut dyn Read) -> Result<ImportReport> {
        let unreadable = |err: io::Error| {
            Error::new(ErrorKind::Unreadable, "this is no export of an archive").because(err)
        };
        let mut tar = tar::Archive::new(from);
        let mut staged = Vec::new();
        for entry in tar.entries().map_err(unreadable)? {
            let mut entry = entry.map_err(unreadable)?;
            if staged.len() == MOST_PACKS {
                return Err(Error::new(ErrorKind::Refused, "it holds too many packs"));
            }
            staged.push(self.stage(&mut entry)?);
        }
        if staged.is_empty() {
            let what = "this is no export of an archive: it is empty";
            return Err(Error::new(ErrorKind::Refused, what));
        }
        staged.sort_by(|one, other| (&one.key, one.number).cmp(&(&other.key, other.number)));
        let mut report = ImportReport::default();
        for pack in staged {
            self.take_in(pack, &mut report)?;
        }
        Ok(report)
    }

    /// Copies a pack to a file without a number and verifies it there.
    fn stage(&self, entry: &mut tar::Entry<'_, &mut dyn Read>) -> Result<Staged> {
        let refused = |what: &str| Error::new(ErrorKind::Refused, what);
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let number = name.rsplit('/').next().and_then(number_of);
        let number = number.filter(|&it| it <= HIGHEST && entry.header().entry_type().is_file());
        let number = number.ok_or_else(|| refused("it holds something that is no pack"))?;
        if entry.size() > LONGEST_PACK {
            return Err(refused("it holds a pack that is too long"));
        }
        let mut temp = create_in(&self.root)?;
        let copied = io::copy(&mut entry.take(LONGEST_PACK), &mut temp)
            .map_err(|err| Error::writing(err, "the archive", &self.root))?;
        if copied != entry.size() {
            return Err(refused("the export is cut off"));
        }
        let mut report = VerifyReport::default();
        let key = match verify_pack(temp.path(), &mut report) {
            Ok(key) => key,
            Err(err) if err.kind() == ErrorKind::NewerFormat => return Err(err),
            Err(err) => return Err(refused("it holds a damaged pack").because(err)),
        };
        match report.faults.pop() {
            Some(fault) => Err(refused("it holds a damaged pack").because(fault)),
            None => Ok(Staged { temp, key, number, len: copied }),
        }
    }

    fn take_in(&self, pack: Staged, report: &mut ImportReport) -> Result<()> {
        let folder = self.folder(&pack.key);
        for number in numbers(&folder)? {
            if same_bytes(&pack, &pack_path(&folder, number))? {
                report.known += 1;
                return Ok(());
            }
        }
        crate::store::disk::private_folder(&folder)?;
        let number = place(pack.temp, &folder, Some(pack.number))?;
        report.added.push(Imported { key: pack.key, number, stored: Bytes(pack.len) });
        Ok(())
    }
}

/// A whole pack that has no number yet.
struct Staged {
    temp: Temp,
    key: SessionKey,
    number: u64,
    len: u64,
}

fn same_bytes(pack: &Staged, path: &std::path::Path) -> Result<bool> {
    if fs::metadata(path).map_or(0, |meta| meta.len()) != pack.len {
        return Ok(false);
    }
    let (one, other) = (FileSource::open(pack.temp.path())?, FileSource::open(path)?);
    Ok(super::Digest::of_source(&one)? == super::Digest::of_source(&other)?)
}

/// Reads a file from its beginning to the length that it had when it was opened.
struct SourceReader<'a> {
    file: &'a FileSource,
    at: u64,
}

impl Read for SourceReader<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let bytes = epitome_model::Source::read(self.file, self.at..self.at + into.len() as u64);
        if let Some(err) = self.file.failure() {
            return Err(err.into());
        }
        into[..bytes.len()].copy_from_slice(&bytes);
        self.at += bytes.len() as u64;
        Ok(bytes.len())
    }
}
