//! Verifying the archive.

use std::collections::HashSet;

use epitome_model::Bytes;
use serde::{Serialize, Serializer};

use super::pack::{Contents, Kind, Pack};
use super::{Archive, Generation, Hash, Numbers, pack_name};
use epitome_error::{Error, ErrorKind, Result, sentence};

/// The result of [`Archive::verify`]. Serialised, it is the JSON of `epitome archive verify --json`
/// (`docs/json.md`): later versions may add members, but change and remove none.
#[derive(Clone, Debug, Default, Serialize)]
pub struct VerifyReport {
    /// Sessions with at least one pack.
    pub sessions: u64,
    /// Packs, including damaged ones.
    #[serde(rename = "generations")]
    pub packs: u64,
    /// Pieces of removed bytes that match their hash.
    #[serde(rename = "pieces")]
    pub blobs: u64,
    /// The total length before compression of the pieces that match their hash.
    #[serde(rename = "raw_bytes")]
    pub raw: Bytes,
    /// The total length on disk of all packs that can be opened.
    #[serde(rename = "stored_bytes")]
    pub stored: Bytes,
    /// One error for each fault. The error names the pack.
    #[serde(serialize_with = "sentences")]
    pub faults: Vec<Error>,
}

fn sentences<S: Serializer>(errors: &[Error], to: S) -> std::result::Result<S::Ok, S::Error> {
    to.collect_seq(errors.iter().map(|err| sentence(err)))
}

impl Archive {
    /// Reads all packs outside of the trash, and reports what differs from what was written.
    ///
    /// # Errors
    ///
    /// `Archive` when a folder cannot be listed. Damage is not an error but a fault in the report.
    pub fn verify(&self) -> Result<VerifyReport> {
        let mut report = VerifyReport::default();
        for folder in self.session_folders()? {
            let Numbers { here, removed } = self.numbers(&folder)?;
            report.sessions += u64::from(!here.is_empty());
            for number in super::missing(&here, &removed) {
                report.faults.push(self.lost(&pack_name(&folder, number), number));
            }
            for number in here {
                report.packs += 1;
                let name = pack_name(&folder, number);
                let read = self.pack(&name).and_then(|pack| verify_pack(&pack, &mut report));
                let checked = read.and_then(|generation| {
                    if generation.key().folder() != folder {
                        return Err(self.foreign(&name));
                    }
                    self.check_number(&generation, &name, number)
                });
                report.faults.extend(checked.err());
            }
        }
        Ok(report)
    }
}

/// Reads a whole pack, and adds its faults to `report`. Returns the generation in the pack, or the
/// error of reading it.
pub(crate) fn verify_pack(pack: &Pack, report: &mut VerifyReport) -> Result<Generation> {
    report.stored += Bytes(pack.len());
    let fault = |what: &str| Error::new(ErrorKind::Archive, what).at(pack.location());
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
