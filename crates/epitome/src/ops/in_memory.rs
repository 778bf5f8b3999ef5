//! Compacts and restores sessions that are bytes in memory. The caller also gets the removed bytes,
//! as one pack, and must keep them: nothing is written to the disk.

use std::collections::BTreeMap;
use std::path::Path;

use epitome_model::{Bytes, Source, Tokens};
use jiff::Timestamp;

use super::change::Change;
use super::compact::Compact;
use super::losses::{FactTotals, planned_facts};
use super::quote::quote_of;
use crate::archive::{Archive, CompactionInfo, Digest, MemoryStore};
use crate::billed::calibration_of_plan;
use crate::compact::archive_elsewhere;
use crate::config::Config;
use crate::drive::catalogue;
use crate::error::Result;
use crate::quote::Quote;
use crate::restore::{Damage, RestoreOutcome, RestoreTarget, check_original, restore_from};
use crate::session::Loaded;
use crate::source::Spliced;

/// Values that are computed in addition to the compacted bytes, on request. Each takes time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extras {
    /// How many facts the compaction removes.
    pub facts: bool,
    /// What the next requests cost with and without the compaction.
    pub price: bool,
}

/// A compaction of bytes.
#[derive(Clone, Debug)]
pub struct CompactedBytes {
    /// The compacted session; `None` if there was nothing to remove.
    pub bytes: Option<Vec<u8>>,
    /// The removed bytes, as a pack of the archive: [`restore_bytes`] needs it. `None` if there was
    /// nothing to remove.
    pub pack: Option<Vec<u8>>,
    /// The tokens that a resume sends.
    pub context_tokens: Change<Tokens>,
    /// The length of the session.
    pub disk_bytes: Change<Bytes>,
    /// The length and the blake3 hash of the session.
    pub digest: Change<Digest>,
    /// Number of edits of each pass.
    pub edits: BTreeMap<String, u64>,
    /// Parts of the recipe that were left out, each as a sentence.
    pub notes: Vec<String>,
    /// The facts that are removed, if they were [requested](Extras::facts).
    pub facts: Option<FactTotals>,
    /// What the next requests cost. `None` if that was not [requested](Extras::price), if no price
    /// is known, or if the compaction changes no cost.
    pub quote: Option<Quote>,
}

/// Bytes that were restored.
#[derive(Clone, Debug)]
pub struct RestoredBytes {
    /// The restored session; `None` if the given bytes are the restored session already.
    pub bytes: Option<Vec<u8>>,
    /// The length and the blake3 hash of the restored session.
    pub digest: Digest,
    /// Whether a hash in the pack proves the result. False, for example, if another program has
    /// changed records of the session since: then the edits are undone record by record.
    pub is_exact: bool,
}

impl Compact<'_> {
    /// Compacts a session that is in memory, as [`run`](Compact::run) compacts a file with these
    /// bytes, but without the minimum [`least`](Compact::least). `name` identifies the session if
    /// it has no id of its own. `at` is recorded as the time of the compaction, so that a caller
    /// can make the same pack again.
    ///
    /// ```
    /// use epitome::Loaded;
    /// use epitome::ops::{Compact, Extras, restore_bytes};
    ///
    /// # let home = tempfile::tempdir().expect("a folder");
    /// # let config = epitome::Config::from_home(home.path());
    /// # let run = config.begin_run("example");
    /// # let recipe = epitome::built_in("epitome").expect("a recipe");
    /// # let counter = epitome_tokens::Estimate::new();
    /// let original = fixtures::get("pi", "pricing").bytes();
    /// let session = epitome_formats::Loaded::read(&original, None)?;
    /// let compact = Compact::new(&recipe, &counter, &run);
    /// let done = compact.in_memory(&config, &session, "s1", config.now(), Extras::default())?;
    /// let (small, pack) = (done.bytes.expect("less"), done.pack.expect("what was removed"));
    /// assert!(small.len() < original.len());
    /// let restored = restore_bytes(&small, pack)?;
    /// assert_eq!(restored.bytes, Some(original));
    /// assert!(restored.is_exact && restored.digest == done.digest.before);
    /// # Ok::<(), epitome::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `Invariant` if the compaction would violate one; `ReadOnly` if sessions of this format are
    /// never written; the errors of planning.
    pub fn in_memory<S: Source>(
        &self,
        config: &Config,
        session: &Loaded<S>,
        name: &str,
        at: Timestamp,
        extras: Extras,
    ) -> Result<CompactedBytes> {
        // An absolute path is the same in every folder.
        let path = &Path::new("/").join(name.trim_start_matches('/'));
        let prepared = self.plan_file(config, path, session, &mut None)?;
        prepared.check_invariants(path)?;
        let mut facts = None;
        if extras.facts {
            facts = Some(planned_facts(&prepared, self.counter)?);
        }
        let mut quote = None;
        if extras.price {
            let fit = calibration_of_plan(&prepared, config, path, self.counter);
            quote = quote_of(&catalogue(config)?, &prepared, fit, self.counter, at);
        }
        let mut written = Written::default();
        let digest = if prepared.is_empty() {
            let digest = Digest::from_source(&session.source)?;
            Change { before: digest, after: digest }
        } else {
            let store = MemoryStore::default();
            let archive = Archive::in_store(store.clone());
            let info = CompactionInfo::from(at);
            let generation = archive_elsewhere(&prepared, path, &archive, self.counter, info)?;
            written.bytes = Some(bytes_of(&prepared.spliced()?)?);
            written.pack = store.into_packs().pop().map(|(_, pack)| pack);
            Change { before: generation.before, after: generation.after }
        };
        Ok(CompactedBytes {
            bytes: written.bytes,
            pack: written.pack,
            context_tokens: Change {
                before: prepared.plan.tokens_before,
                after: prepared.tokens_after,
            },
            disk_bytes: Change { before: Bytes(session.source.len()), after: prepared.bytes_after },
            digest,
            edits: prepared
                .plan
                .by_pass()
                .into_iter()
                .map(|(pass, n)| (pass.to_owned(), n))
                .collect(),
            notes: prepared.notes.iter().map(ToString::to_string).collect(),
            facts,
            quote,
        })
    }
}

/// The compacted session, and the pack with the removed bytes. Both are `None` if nothing is
/// removed.
#[derive(Default)]
struct Written {
    bytes: Option<Vec<u8>>,
    pack: Option<Vec<u8>>,
}

/// Restores a session from its bytes and the [pack](CompactedBytes::pack) of its compaction.
///
/// # Errors
///
/// `Archive` if the pack is damaged; `NewerFormat` if a newer version of epitome wrote it;
/// `Refused` if a record that the compaction appended was changed since. With the pack of another
/// session, the result is an error or not exact.
pub fn restore_bytes(session: &[u8], pack: Vec<u8>) -> Result<RestoredBytes> {
    let (store, key) = MemoryStore::with_pack(pack)?;
    let archive = Archive::in_store(store);
    let found = archive.generations(&key)?;
    let target = RestoreTarget::Original;
    let way = restore_from(&archive, &key, &found, &session, target, Damage::Refuse)?;
    let mut is_exact = matches!(way.outcome, RestoreOutcome::Exact { .. });
    let is_changed = !way.splices.is_empty();
    let restored = Spliced::new(&session, way.splices)?;
    is_exact &= check_original(&archive, &key, &found, &restored).is_ok();
    let digest = Digest::from_source(&restored)?;
    let bytes = if is_changed { Some(bytes_of(&restored)?) } else { None };
    Ok(RestoredBytes { bytes, digest, is_exact })
}

fn bytes_of(spliced: &Spliced<'_>) -> Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(usize::try_from(Source::len(spliced)).unwrap_or_default());
    spliced.copy_to(&mut bytes)?;
    Ok(bytes)
}
