//! Verifying the vault.

use std::collections::HashMap;

use epitome_model::Bytes;
use serde::{Serialize, Serializer};

use super::{FileKey, Vault, Version};
use crate::archive::Hash;
use crate::archive::pack::{Contents, Kind, Pack};
use epitome_error::{Error, ErrorKind, sentence};

/// The result of [`Vault::verify`]. Serialised, it is the member `vault` of the JSON of `epitome
/// archive verify --json`: later versions may add members, but change and remove none.
#[derive(Clone, Debug, Default, Serialize)]
pub struct VaultReport {
    /// The number of kept files.
    pub files: u64,
    /// The number of versions.
    pub versions: u64,
    /// The number of packs, including damaged ones.
    pub packs: u64,
    /// The number of different chunks that match their hash.
    pub chunks: u64,
    /// The total length of these chunks before compression.
    #[serde(rename = "raw_bytes")]
    pub raw: Bytes,
    /// The total length on disk of all packs that can be opened.
    #[serde(rename = "stored_bytes")]
    pub stored: Bytes,
    /// One error for each fault, and for each version that cannot be restored. The error names the
    /// pack, or the file.
    #[serde(serialize_with = "sentences")]
    pub faults: Vec<Error>,
}

fn sentences<S: Serializer>(errors: &[Error], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(errors.iter().map(|err| sentence(err)))
}

impl Vault {
    /// Reads every pack, and reports what differs from what was written and which versions cannot
    /// be restored because of it.
    pub fn verify(&self) -> VaultReport {
        let mut report = VaultReport::default();
        let mut whole: HashMap<Hash, u64> = HashMap::new();
        for id in self.index.packs() {
            report.packs += 1;
            match self.pack(id) {
                Ok(pack) => verify_pack(&pack, &mut whole, &mut report),
                // The pack was deleted since the vault was read, by a merge or a removal.
                Err(err) if err.kind() == ErrorKind::NotFound => {}
                Err(err) => report.faults.push(err),
            }
        }
        report.chunks = whole.len() as u64;
        report.raw = Bytes(whole.values().sum());
        let damaged = self
            .damaged()
            .filter(|err| report.faults.iter().all(|known| sentence(known) != sentence(*err)));
        let damaged: Vec<Error> = damaged.cloned().collect();
        report.faults.extend(damaged);
        for file in self.files() {
            report.files += 1;
            for version in self.versions(file) {
                report.versions += 1;
                if !self.has_all_chunks(file, version, &whole) {
                    let what = format!("version {} cannot be restored", version.number);
                    report.faults.push(Error::new(ErrorKind::Archive, what).at(&file.path));
                }
            }
        }
        report
    }

    /// Whether the undamaged chunks, of which `whole` has the lengths, contain all of a version's
    /// content.
    fn has_all_chunks(
        &self,
        file: &FileKey,
        version: &Version,
        whole: &HashMap<Hash, u64>,
    ) -> bool {
        let Ok(segments) = self.segments(file, version) else { return false };
        segments.iter().all(|segment| {
            let mut len = 0;
            let needed = segment.chunks.iter().map_while(|chunk| {
                let before = len;
                len += whole.get(chunk)?;
                Some(before)
            });
            needed.take_while(|before| *before < segment.len).for_each(drop);
            len >= segment.len
        })
    }
}

/// Reads a whole pack. Adds its faults to `report`, and the lengths of its undamaged chunks to
/// `whole`.
fn verify_pack(pack: &Pack, whole: &mut HashMap<Hash, u64>, report: &mut VaultReport) {
    report.stored += Bytes(pack.len());
    if pack.contents == Contents::Rebuilt {
        let what = "the table of contents is damaged; the bytes can be read";
        report.faults.push(pack.damaged(what));
    }
    if !pack.has_header() {
        report.faults.push(pack.damaged("the first bytes are damaged; the others can be read"));
    }
    for entry in pack.entries() {
        if !pack.has_record(entry) {
            report.faults.push(pack.damaged("a record is damaged; its bytes can be read"));
        }
        match pack.raw(entry) {
            Err(err) => report.faults.push(err),
            Ok(raw) if entry.kind == Kind::Chunk => {
                whole.insert(entry.hash, raw.len() as u64);
            }
            Ok(_) => {}
        }
    }
}
