//! Forgets a session, or a text such as a secret: removes it from what epitome stores, and checks
//! that it is gone.
//!
//! [`ForgetText`] masks a text in the versions of the [vault](crate::keep), and removes it from the
//! archive of compactions, from caches and from logs; on request also from the sessions of agents.
//! [`ForgetSession`] removes what is stored of a session; the session itself stays where its agent
//! keeps it, and so do a few files that only name it, such as logs. The report lists them. At the
//! end, both check that nothing else is left.
//!
//! ```
//! use epitome::forget::{ForgetText, PlaceKind};
//! use epitome::keep::Keeper;
//!
//! # let home = tempfile::tempdir().expect("a folder");
//! # let config = epitome::Config::from_home(home.path());
//! # let folder = home.path().join(".pi/agent/sessions/--p--");
//! # std::fs::create_dir_all(&folder).expect("a folder");
//! # let path = folder.join("2026-11-18T12-00-00-000Z_0001.jsonl");
//! # std::fs::write(&path, fixtures::get("pi", "pricing").bytes()).expect("a session");
//! Keeper::open(&config)?.scan()?;
//! let forget = ForgetText::new("toolResult")?;
//! let report = forget.run(&config)?;
//! let kinds: Vec<PlaceKind> = report.places.iter().map(|place| place.kind).collect();
//! assert_eq!(kinds, [PlaceKind::Vault, PlaceKind::Session]);
//! assert!(report.proof.is_some_and(|proof| proof.files > 0));
//! # Ok::<(), epitome::Error>(())
//! ```
//!
//! # Absent
//!
//! - Copies elsewhere: backups, snapshots, and blocks of a disk that no file uses any more. Copies
//!   in object storage are named by [`ForgetReport::copies`], and `epitome::remote` deletes them.

mod found;
mod home;
mod replace;
mod session;
mod text;

use epitome_model::Bytes;
use serde::Serialize;

use crate::archive::{Digest, Hash, SessionKey};
use crate::config::Config;
use crate::error::{Error, Result};
use crate::keep::{FileKey, InterruptedRestore};
use crate::place;

pub use found::FoundTexts;
pub use session::{ForgetSession, SessionChoice};
pub use text::ForgetText;

/// The name of a file in the vault, as reports show it.
fn name_of(file: &FileKey) -> String {
    match &file.part {
        Some(part) => format!("{} {} / {part}", file.agent, file.session),
        None => format!("{} {}", file.agent, file.session),
    }
}

/// The places that contain what is to be forgotten, and what is done at each. Its serde form is the
/// JSON of `epitome forget --json` (`docs/json.md`), to which members are only added.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ForgetReport {
    /// The places: first those in the vault, then those in the archive, then caches and other
    /// files, then sessions.
    pub places: Vec<ForgetPlace>,
    /// What was searched afterwards to prove that nothing is left. `None` in a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proof: Option<Proof>,
    /// The texts that rules found and that are not forgotten, because they are in epitome's own
    /// records.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOutText>,
    /// The interrupted restores of the session. They are completed before the session is forgotten,
    /// because completing them needs its versions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub completed: Vec<InterruptedRestore>,
    /// The sessions of agents whose compaction becomes final, because the archive loses what it
    /// removed, or a part of that: their agents and ids.
    #[serde(rename = "final", skip_serializing_if = "Vec::is_empty")]
    pub final_compactions: Vec<String>,
    /// Whether this is only what would be done.
    pub dry_run: bool,
    /// Packs of the archive that are deleted or changed, and may have copies in object storage.
    #[serde(skip)]
    pub copies: Vec<ForgottenCopy>,
}

/// A text that is not forgotten. The text itself is not named.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LeftOutText {
    /// The id of the rule that found the text.
    pub rule: String,
    /// Why the text is not forgotten, with the place in epitome's records.
    pub reason: String,
}

/// One pack of the archive of compactions, or all packs of a session, which may have copies in
/// object storage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForgottenCopy {
    /// The session to which the packs belong.
    pub session: SessionKey,
    /// The hash of the pack; `None` for all packs of the session.
    pub blake3: Option<Hash>,
}

/// A place that contains what is to be forgotten.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ForgetPlace {
    /// What kind of a place it is.
    pub kind: PlaceKind,
    /// The name of the place: a path, or an agent and a session.
    pub name: String,
    /// A number that says how much is at the place: see [`PlaceKind`].
    pub count: u64,
    /// What is done at the place.
    pub action: ForgetAction,
    /// Why something stays at the place, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A kind of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PlaceKind {
    /// A file in the vault. If a session is forgotten, `count` is the number of its versions; if a
    /// text is forgotten, of those that contain the text.
    Vault,
    /// The packs of a session in the archive of compactions. If a session is forgotten, `count` is
    /// the number of its packs. If a text is forgotten, each pack with the text is a place of its
    /// own, and `count` is the number of archived texts in it that contain the text.
    Archive,
    /// A cache, which epitome computes again when it needs it. `count` is 1.
    Cache,
    /// Another file below the home of epitome, or a temporary file that a killed epitome left next
    /// to a session. If a text is forgotten, `count` is how often the file contains it; if a
    /// session is forgotten, `count` is 1.
    File,
    /// A file of a session, where its agent keeps it. `count` is as for [`PlaceKind::File`].
    Session,
}

/// What is done at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ForgetAction {
    /// The text, or the id of the session, is replaced by asterisks (in base64 by `x`, in
    /// hexadecimal digits by `0`) or by a placeholder.
    Masked,
    /// What `count` counts is deleted: versions, packs, archived texts, or a file or folder.
    Deleted,
    /// Nothing is done: what is at the place stays.
    Stays,
}

/// What was searched to prove that nothing is left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Proof {
    /// The number of files.
    pub files: u64,
    /// How many bytes were searched: the bytes of the files, and the decompressed content of packs.
    pub bytes: Bytes,
}

impl ForgetReport {
    fn add(&mut self, kind: PlaceKind, name: impl Into<String>, count: u64, action: ForgetAction) {
        self.places.push(ForgetPlace { kind, name: name.into(), count, action, reason: None });
    }

    /// Notes that the archive loses what compactions of a session removed. This matters only if
    /// the session exists and is not as it was before them.
    fn add_final(&mut self, config: &Config, key: &SessionKey) -> Result<()> {
        let generations = config.archive().generations(key)?.whole;
        let (Some(first), Some(last)) = (generations.first(), generations.last()) else {
            return Ok(());
        };
        let is_compacted = !last.is_restore()
            && match place::open(&last.path) {
                Ok(present) => Digest::from_source(&present)? != first.before,
                Err(_) => false,
            };
        let name = format!("{} {}", key.agent, key.id);
        if is_compacted && !self.final_compactions.contains(&name) {
            self.final_compactions.push(name);
        }
        Ok(())
    }

    /// The places where something stays.
    pub fn remaining(&self) -> impl Iterator<Item = &ForgetPlace> {
        self.places.iter().filter(|place| place.action == ForgetAction::Stays)
    }
}

/// The error of a removal that may have removed a part: its hint says to repeat it.
fn incomplete(err: Error) -> Error {
    with_rest(err, "a part may be removed already")
}

/// The error of a removal with a hint that says what is left, and to repeat it.
fn with_rest(err: Error, left: &str) -> Error {
    let hint = match err.hint() {
        Some(hint) => format!("{}; ", hint.trim_end_matches("; nothing was changed")),
        None => String::new(),
    };
    err.with_hint(format!("{hint}{left}: run the same again, which completes it"))
}
