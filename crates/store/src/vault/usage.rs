//! How many bytes of the vault would be given back if versions were removed.

use std::collections::{HashMap, HashSet};

use super::{FileKey, Vault, Version};
use crate::archive::Hash;
use crate::archive::pack::Kind;
use epitome_error::Result;

/// What each version costs: the chunks that no other version needs.
///
/// The numbers are estimates: a removal may cut content into other chunks, and packs contain more
/// than chunks.
#[derive(Debug)]
pub struct VaultUsage<'v> {
    vault: &'v Vault,
    /// For each chunk of each machine: its length on disk, and how many versions need it.
    chunks: HashMap<(&'v str, Hash), ChunkUsage>,
}

#[derive(Clone, Copy, Debug, Default)]
struct ChunkUsage {
    stored: u64,
    versions: u64,
}

impl<'v> VaultUsage<'v> {
    /// Reads which chunks each version needs.
    ///
    /// # Errors
    ///
    /// The errors of opening packs.
    pub fn read(vault: &'v Vault) -> Result<VaultUsage<'v>> {
        let mut usage = VaultUsage { vault, chunks: HashMap::new() };
        for id in vault.index.packs() {
            let pack = vault.pack(id)?;
            for entry in pack.entries().iter().filter(|entry| entry.kind == Kind::Chunk) {
                usage.chunks.entry((&id.0, entry.hash)).or_default().stored += entry.stored_len;
            }
        }
        for file in vault.files() {
            for version in vault.versions(file) {
                for chunk in usage.chunks_of(file, version) {
                    usage.chunks.entry((&file.machine, chunk)).or_default().versions += 1;
                }
            }
        }
        Ok(usage)
    }

    /// Changes the numbers as if a version was removed. Returns how many bytes the removal gives
    /// back.
    pub fn remove(&mut self, file: &'v FileKey, version: &Version) -> u64 {
        let mut given_back = 0;
        for chunk in self.chunks_of(file, version) {
            if let Some(usage) = self.chunks.get_mut(&(&*file.machine, chunk)) {
                usage.versions = usage.versions.saturating_sub(1);
                if usage.versions == 0 {
                    given_back += usage.stored;
                }
            }
        }
        given_back
    }

    /// Whether removing a version gave nothing back, because other versions need all its chunks.
    /// Call this only after [`remove`](VaultUsage::remove) for that version.
    pub fn is_free(&self, file: &'v FileKey, version: &Version) -> bool {
        self.chunks_of(file, version).iter().all(|chunk| {
            let usage = self.chunks.get(&(&*file.machine, *chunk));
            usage.is_some_and(|usage| usage.versions > 0)
        })
    }

    /// The chunks that the content of a version consists of; none if a version that it refers to is
    /// lost.
    fn chunks_of(&self, file: &FileKey, version: &Version) -> HashSet<Hash> {
        let segments = self.vault.segments(file, version).unwrap_or_default();
        segments.into_iter().flat_map(|segment| segment.chunks).collect()
    }
}
