//! The versions of a session, and why it changed.

use std::path::PathBuf;

use epitome_agents::find_agent;
use epitome_model::{Bytes, plural};
use jiff::Timestamp;
use serde::Serialize;

use super::compacted::compacted_versions;
use super::moved::{files_at_place, is_apart, present_path};
use super::parts::parts_of;
use super::{Cause, ChangeName, ContentChange, FileKey, Vault, Version, place_here};
use crate::archive::{Archive, Digest, Generation, Hash, SessionKey};
use crate::config::Config;
use crate::error::Result;
use crate::place;
use crate::rows;

/// The versions of a kept file, and of the files that belong to it. Its serde form is the JSON of
/// `epitome history --json` (`docs/json.md`), to which members are only added.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct VersionHistory {
    /// The name of the agent.
    pub agent: String,
    /// The id of the session.
    pub session: String,
    /// The name of the file, if it belongs to the session but is not the session's main file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part: Option<String>,
    /// The machine on which the file was kept.
    pub machine: String,
    /// The address of the file: a path, or `DATABASE#ID`. If the home folder was moved, the address
    /// in the present one.
    #[serde(serialize_with = "epitome_model::lossy_path")]
    pub path: PathBuf,
    /// Whether another machine kept the file, and this one received the versions.
    #[serde(rename = "other_machine", skip_serializing_if = "std::ops::Not::not")]
    pub is_other: bool,
    /// Whether a file exists at the address `path` now. If another machine kept the file: whether
    /// one exists at the same place on this machine.
    pub exists: bool,
    /// The versions, the oldest first.
    pub versions: Vec<HistoryVersion>,
    /// The files that belong to the session, such as those of its sub-agents.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<VersionHistory>,
    /// If this is the session's main file: the histories of the same file that are not part of this
    /// one: those on other machines, and some of those at other paths.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub elsewhere: Vec<VersionHistory>,
}

/// A version of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HistoryVersion {
    /// The number of the version, from 1.
    pub version: u64,
    /// When a scan saw the version.
    pub seen: Timestamp,
    /// When the file was last modified, if that is known.
    pub modified: Option<Timestamp>,
    /// The path at which the version was kept, if the file has another path now, because the home
    /// folder was moved.
    #[serde(
        serialize_with = "epitome_model::lossy_path_option",
        skip_serializing_if = "Option::is_none"
    )]
    pub earlier_path: Option<PathBuf>,
    /// The length of the content.
    pub bytes: Bytes,
    /// The hash of the content.
    pub blake3: Hash,
    /// What changed since the version before.
    pub change: ChangeName,
    /// The number of the earlier version with the same content, if the file went back to that
    /// content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub same_as: Option<u64>,
    /// How many bytes longer the content is than that of the version before; negative if it is
    /// shorter.
    pub bytes_added: i64,
    /// In how many places of the content a forgotten text was masked since the version was seen.
    #[serde(skip_serializing_if = "is_zero")]
    pub masked: u64,
    /// Why the content changed, if that is known: what epitome did, or that the agent compacted the
    /// session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<VersionReason>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Why the content of a file changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum VersionReason {
    /// Epitome compacted the session.
    Compacted {
        /// The number of the compaction in the archive.
        generation: u64,
        /// The id of the run that made the compaction, if it is known.
        run: Option<String>,
        /// The name of the recipe.
        recipe: String,
    },
    /// What a compaction had removed was restored.
    Restored,
    /// The version with this number was restored from the vault.
    RestoredVersion {
        /// The number of the version.
        version: u64,
    },
    /// The agent itself compacted the session.
    CompactedByAgent,
}

impl HistoryVersion {
    /// What changed, and why, in a few words: `+12.0 KB`, `compacted by epitome (run 1f0c9a2e),
    /// -80.0 KB`.
    pub fn description(&self) -> String {
        let before = self.bytes.0.saturating_add_signed(self.bytes_added.saturating_neg());
        let changed = match self.same_as {
            Some(number) => format!("as version {number}"),
            None => self.change.describe(self.bytes, Bytes(before)),
        };
        let difference = ChangeName::Appended.describe(self.bytes, Bytes(before));
        let what = match &self.reason {
            None => changed,
            Some(VersionReason::Compacted { run, .. }) => {
                let run = run.as_ref().map(|run| format!(" (run {run})")).unwrap_or_default();
                let is_first = self.change == ChangeName::First;
                let changed = if is_first { changed } else { difference };
                format!("compacted by epitome{run}, {changed}")
            }
            Some(VersionReason::CompactedByAgent) => {
                format!("compacted by the agent, {difference}")
            }
            Some(VersionReason::Restored) => format!("restored, {changed}"),
            Some(VersionReason::RestoredVersion { version }) => {
                format!("restored from version {version}")
            }
        };
        match self.masked {
            0 => what,
            masked => format!("{what}; {} forgotten", plural(masked, "text")),
        }
    }

    /// Whether the version has content, which can be restored. False if it records a deletion.
    pub fn has_content(&self) -> bool {
        self.change != ChangeName::Deleted
    }
}

impl VersionHistory {
    /// The history of a kept file. If this is a session's main file, it includes the histories of
    /// the files that belong to the session, and those in [`elsewhere`](VersionHistory::elsewhere).
    ///
    /// # Errors
    ///
    /// `Archive` if the archive of compactions cannot be listed.
    pub fn read(config: &Config, vault: &Vault, file: &FileKey) -> Result<VersionHistory> {
        let mut history = VersionHistory::read_file(config, vault, file)?;
        if file.part.is_some() {
            return Ok(history);
        }
        // Of a file that was kept at several paths, because the home folder was moved, only the
        // newest is listed: its history includes the others.
        let is_listed = |it: &&FileKey| files_at_place(config, vault, it).last() == Some(*it);
        let parts = parts_of(config, vault, file).into_iter();
        for part in parts.filter(is_listed) {
            history.parts.push(VersionHistory::read_file(config, vault, part)?);
        }
        let elsewhere = vault.files().filter(|it| {
            (&it.agent, &it.session, &it.part) == (&file.agent, &file.session, &None)
                && (it.machine != file.machine || is_apart(config, vault, file, it))
        });
        for other in elsewhere.filter(is_listed) {
            history.elsewhere.push(VersionHistory::read_file(config, vault, other)?);
        }
        Ok(history)
    }

    fn read_file(config: &Config, vault: &Vault, file: &FileKey) -> Result<VersionHistory> {
        let files = files_at_place(config, vault, file);
        let file = files.last().unwrap_or(file);
        let generations = generations_of(&config.archive(), file)?;
        let is_other = file.machine != vault.machine();
        let path = match is_other {
            true => file.path.clone(),
            false => present_path(config, vault, file),
        };
        let mut versions: Vec<HistoryVersion> = Vec::new();
        let mut earlier: Vec<VersionOf<'_>> = Vec::new();
        for kept in &files {
            let compacted = compacted_versions(vault, kept);
            for version in vault.versions(kept) {
                let change = change(vault, (kept, version), &earlier);
                let before = earlier.last().copied();
                let mut listed = history_version(version, change, before.map(|(_, it)| it));
                listed.earlier_path = (kept.path != path).then(|| kept.path.clone());
                let is_rows = rows::split(&kept.path).is_some();
                let before_it = before.map(|(_, it)| it);
                listed.reason = reason(version, change, before_it, &generations, is_rows)
                    .or_else(|| explained(vault, (kept, version), change, before, &generations));
                let is_same = before.is_some_and(|(_, it)| it.digest == version.digest);
                if listed.reason.is_none() && !is_same && compacted.contains(&version.number) {
                    listed.reason = Some(VersionReason::CompactedByAgent);
                }
                versions.push(listed);
                earlier.push((kept, version));
            }
        }
        Ok(VersionHistory {
            agent: file.agent.clone(),
            session: file.session.clone(),
            part: file.part.clone(),
            machine: file.machine.clone(),
            path,
            is_other,
            exists: place_here(config, vault, file).is_ok_and(|path| place::exists(&path)),
            versions,
            parts: Vec::new(),
            elsewhere: Vec::new(),
        })
    }
}

/// A version, with the file of which it was kept.
type VersionOf<'v> = (&'v FileKey, &'v Version);

/// The key under which the archive has the compactions of a file.
fn archive_key(file: &FileKey) -> SessionKey {
    let id = match (&file.part, find_agent(&file.agent)) {
        (None, _) => file.session.clone(),
        (Some(_), Some(agent)) => agent.part_id(&file.session, &file.path),
        (Some(part), None) => part.clone(),
    };
    SessionKey::new(file.agent.clone(), id)
}

/// The compactions of a file in the archive. The vault names a session by the id in its file name.
/// That of Gemini CLI has the beginning of the id alone: such a session is found by its file name.
fn generations_of(archive: &Archive, file: &FileKey) -> Result<Vec<Generation>> {
    let key = archive_key(file);
    let found = archive.generations(&key)?.whole;
    if !found.is_empty() {
        return Ok(found);
    }
    let is_continued = |it: &SessionKey| it.agent == key.agent && it.id.starts_with(&key.id);
    for longer in archive.sessions()?.into_iter().filter(is_continued) {
        let found = archive.generations(&longer)?.whole;
        if found.iter().any(|it| it.path.file_name() == file.path.file_name()) {
            return Ok(found);
        }
    }
    Ok(Vec::new())
}

/// What changed in a version since the last of `earlier`, which may have been kept in a home that
/// was moved since. (The vault compares the versions of one path alone.)
fn change(
    vault: &Vault,
    (file, version): VersionOf<'_>,
    earlier: &[VersionOf<'_>],
) -> ContentChange {
    let Some((before_file, before)) = earlier.last().copied() else { return version.change };
    if version.is_deleted() || matches!(version.change, ContentChange::Back(_)) {
        return version.change;
    }
    let is_same = |(kept, it): &&VersionOf<'_>| {
        *kept != file && !it.is_deleted() && it.digest == version.digest
    };
    if let Some((_, same)) = earlier.iter().rfind(is_same) {
        return ContentChange::Back(same.number);
    }
    if version.change != ContentChange::First {
        return version.change;
    }
    let begins_with = |file: &FileKey, version: &Version, digest: Digest| {
        !vault.beginnings_among(file, version, &[digest]).is_empty()
    };
    if before.is_deleted() {
        ContentChange::Rewritten
    } else if begins_with(file, version, before.digest) {
        ContentChange::Appended
    } else if begins_with(before_file, before, version.digest) {
        ContentChange::Cut
    } else {
        ContentChange::Rewritten
    }
}

/// The entry of a version in a history. `change` is what changed since the version `before`.
fn history_version(
    version: &Version,
    change: ContentChange,
    before: Option<&Version>,
) -> HistoryVersion {
    let Version { number, seen, modified, digest: Digest { len, blake3 }, .. } = *version;
    let was = before.map_or(0, |before| before.digest.len);
    let signed = |len: u64| i64::try_from(len).unwrap_or(i64::MAX);
    HistoryVersion {
        version: number,
        seen,
        modified,
        earlier_path: None,
        bytes: Bytes(len),
        blake3,
        change: change.into(),
        same_as: match change {
            ContentChange::Back(number) => Some(number),
            ContentChange::First
            | ContentChange::Appended
            | ContentChange::Cut
            | ContentChange::Rewritten
            | ContentChange::Deleted => None,
        },
        bytes_added: signed(len) - signed(was),
        masked: version.masked,
        reason: None,
    }
}

/// Why the content of a version that is the first one or was rewritten changed, as its beginning
/// shows. If the version begins with the result of a compaction, epitome has compacted the session.
/// If it begins with the session from before a compaction, and the version before begins with the
/// result of that compaction, the session was restored. When the versions were seen does not
/// matter.
fn explained(
    vault: &Vault,
    (file, version): VersionOf<'_>,
    change: ContentChange,
    before: Option<VersionOf<'_>>,
    generations: &[Generation],
) -> Option<VersionReason> {
    match change {
        ContentChange::First | ContentChange::Rewritten => {}
        ContentChange::Appended
        | ContentChange::Cut
        | ContentChange::Back(_)
        | ContentChange::Deleted => return None,
    }
    let digests: Vec<Digest> = generations.iter().flat_map(|it| [it.before, it.after]).collect();
    let begins_with = vault.beginnings_among(file, version, &digests);
    if begins_with.is_empty() {
        return None;
    }
    let began_with = before
        .map(|(file, before)| vault.beginnings_among(file, before, &digests))
        .unwrap_or_default();
    let made = generations.iter().rfind(|it| {
        let is_compacted = !it.is_restore() && it.before != it.after && it.after.len > 0;
        // If the version also begins with the session from before the compaction, the compaction
        // only removed something from the end, and that is not removed here.
        let is_whole = it.before.len > it.after.len && begins_with.contains(&it.before);
        is_compacted && begins_with.contains(&it.after) && !is_whole
    });
    if let Some(made) = made {
        // If the version before begins with the same result, this compaction is not what changed.
        return (!began_with.contains(&made.after)).then(|| made_by(made));
    }
    let is_undone = |it: &Generation| {
        !it.is_restore()
            && it.before.len > 0
            && begins_with.contains(&it.before)
            && began_with.contains(&it.after)
    };
    generations.iter().any(is_undone).then_some(VersionReason::Restored)
}

/// What epitome did when it made a generation: a compaction or a restore.
fn made_by(made: &Generation) -> VersionReason {
    if made.is_restore() {
        return VersionReason::Restored;
    }
    VersionReason::Compacted {
        generation: made.number,
        run: made.run.as_ref().map(|run| run.id.clone()),
        recipe: made.recipe.clone(),
    }
}

/// What epitome did to a file, if the archive or the vault says that epitome changed it. `is_rows`
/// says whether the file is a session in a database.
fn reason(
    version: &Version,
    change: ContentChange,
    before: Option<&Version>,
    generations: &[Generation],
    is_rows: bool,
) -> Option<VersionReason> {
    if let Some(Cause::Restored(version)) = version.cause {
        return Some(VersionReason::RestoredVersion { version });
    }
    let before = before.filter(|before| before.digest != version.digest)?;
    // If the file went back to an earlier content, the compaction that made this content may be
    // older. So only a compaction between the two versions counts.
    let between = before.seen..=version.seen;
    let is_back = matches!(change, ContentChange::Back(_));
    let is_made_by = |it: &&Generation| {
        let is_in_time = !is_back || between.contains(&it.made);
        it.before != it.after && it.after == version.digest && is_in_time
    };
    let made = generations.iter().rev().find(is_made_by).or_else(|| {
        // The agent may have appended something before the compacted session was seen.
        generations.iter().rev().find(|it| {
            let is_possible = match change {
                // Of a file, `explained` looks whether it begins with the result of a compaction.
                ContentChange::Rewritten => is_rows || it.is_restore(),
                ContentChange::Appended => {
                    it.before.len < it.after.len && before.digest.len < it.after.len
                }
                ContentChange::First
                | ContentChange::Cut
                | ContentChange::Back(_)
                | ContentChange::Deleted => false,
            };
            is_possible && between.contains(&it.made) && it.after.len <= version.digest.len
        })
    });
    if let Some(made) = made {
        return Some(made_by(made));
    }
    let is_undone = |it: &Generation| it.before == version.digest && it.after == before.digest;
    generations.iter().any(is_undone).then_some(VersionReason::Restored)
}
