//! Looking after the archive: is every byte there.

use std::collections::HashSet;
use std::path::Path;

use epitome_model::Bytes;

use super::pack::{Contents, Kind, Pack};
use super::{Archive, Generation, Hash, numbers, pack_path};
use epitome_error::{Error, ErrorKind, Result};

/// What [`Archive::verify`] saw.
#[derive(Clone, Debug, Default)]
pub struct VerifyReport {
    /// Sessions with at least one pack.
    pub sessions: u64,
    /// Packs, damaged ones included.
    pub packs: u64,
    /// Pieces of removed bytes that are what their hash says.
    pub blobs: u64,
    /// Their bytes.
    pub raw: Bytes,
    /// The bytes of all packs on disk.
    pub stored: Bytes,
    /// What is wrong, one error a fault. Each names its pack.
    pub faults: Vec<Error>,
}

impl Archive {
    /// Reads everything and says what is not as it was written.
    ///
    /// # Errors
    ///
    /// `Archive` when a folder cannot be listed. Damage is no error but a fault
    /// in the report.
    pub fn verify(&self) -> Result<VerifyReport> {
        let mut report = VerifyReport::default();
        for folder in self.session_folders()? {
            let numbers = numbers(&folder)?;
            report.sessions += u64::from(!numbers.is_empty());
            for number in super::missing(&folder)? {
                report.faults.push(super::lost(&pack_path(&folder, number), number));
            }
            for number in numbers {
                report.packs += 1;
                let path = pack_path(&folder, number);
                let home = path.strip_prefix(&self.root).ok().and_then(Path::parent);
                let checked = verify_pack(&path, &mut report).and_then(|generation| {
                    let is_home = Some(generation.key().folder().as_path()) == home;
                    if !is_home {
                        return Err(super::foreign(&path));
                    }
                    super::check_number(&generation, &path, number)
                });
                report.faults.extend(checked.err());
            }
        }
        Ok(report)
    }
}

/// Reads all of a pack. Returns its generation.
pub(crate) fn verify_pack(path: &Path, report: &mut VerifyReport) -> Result<Generation> {
    let pack = Pack::open(path)?;
    report.stored += Bytes(pack.len());
    let fault = |what: &str| Error::new(ErrorKind::Archive, what).at(path);
    if pack.contents == Contents::Rebuilt {
        report.faults.push(fault("the table of contents is damaged; the bytes can be read"));
    }
    if !pack.has_header() {
        report.faults.push(fault("the first bytes are damaged; the others can be read"));
    }
    let mut held: HashSet<Hash> = HashSet::new();
    for entry in pack.entries() {
        if !pack.has_record(entry) {
            report.faults.push(fault("a record is damaged; its bytes can be read"));
        }
        match pack.raw(entry) {
            Err(err) => report.faults.push(err),
            Ok(raw) if entry.kind == Kind::Blob => {
                report.blobs += 1;
                report.raw += Bytes(raw.len() as u64);
                held.insert(entry.hash);
            }
            Ok(_) => {}
        }
    }
    let generation = pack.generation()?;
    if let Err(err) = generation.check(&held) {
        report.faults.push(fault("this generation cannot be undone").because(err));
    }
    if pack.key()? != generation.key() {
        report.faults.push(fault("a pack names two sessions"));
    }
    Ok(generation)
}
