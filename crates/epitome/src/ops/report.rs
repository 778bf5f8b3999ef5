//! The report of a compaction. Its serde form is the JSON of `epitome compact --json`
//! (`docs/json.md`): members are added to it, never changed or removed.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use epitome_model::{Bytes, Counter, Fault, Source, Tokens, Violation, lossy_path_option};
use epitome_passes::{KeepRule, Kept, Level};
use epitome_tokens::Calibration;
use serde::Serialize;

use super::change::Change;
use super::losses::CompactionLosses;
use super::summary::AskedModels;
use crate::archive::Generation;
use crate::compact::{CompactionPlan, Savings, StandsFor, Way};
use crate::error::Result;
use crate::quote::Quote;
use crate::redact::Screen;
use crate::store::User;

/// How the tokens that a provider bills for a request follow from those of the messages:
/// `factor × messages + fixed_tokens`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Fitted {
    /// Billed tokens for each token that we count.
    pub factor: f64,
    /// The system prompt and the tools.
    pub fixed_tokens: Tokens,
    /// Requests of the session from which it was fitted.
    pub requests: usize,
    /// Nine of ten requests are within this error.
    pub error_percent: f64,
}

impl Fitted {
    /// A calibration as it is reported.
    pub fn from_calibration(calibration: &Calibration) -> Fitted {
        Fitted {
            factor: f64::from(calibration.factor) / 1_000.0,
            fixed_tokens: calibration.fixed,
            requests: calibration.points,
            error_percent: f64::from(calibration.error) / 10.0,
        }
    }
}

/// What was done with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It was compacted.
    Compacted,
    /// It would be compacted.
    Planned,
    /// There is nothing to do.
    Nothing,
}

/// How much is kept whole, and by which rules.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KeptBecause {
    /// Tokens that are kept whole.
    pub tokens: Tokens,
    /// The rules that keep something.
    pub rules: Vec<RuleKept>,
    /// Rules that together would have kept everything.
    pub covered_everything: Vec<KeepRule>,
    /// The number of last tokens that is kept instead of what those rules would keep; none if those
    /// are everything as well.
    pub instead: Option<Tokens>,
}

/// The conditions that a recipe waits for: all must be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct NotReached {
    /// Bytes on disk.
    pub bytes: Option<u64>,
    /// Tokens of context.
    pub tokens: Option<u64>,
    /// Per cent of the window without the reserve.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub percent: Option<u64>,
    /// Characters of text as written, and those of the API's JSON around each text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chars: Option<u64>,
    /// Results.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub results: Option<u64>,
    /// Turns of the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turns: Option<u64>,
    /// Messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages: Option<u64>,
}

/// How many entries a rule keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct RuleKept {
    /// The rule.
    pub rule: KeepRule,
    /// The number of entries.
    pub entries: u64,
}

/// A record that could not be fully parsed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FaultFound {
    /// The line in the file, from 1.
    pub line: u64,
    /// What is wrong with it.
    pub what: String,
}

/// A process that has the session open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UserFound {
    /// Its number.
    pub pid: u32,
    /// Its name; empty if the system does not show it.
    pub name: String,
}

/// How a compaction is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum WayTaken {
    /// With the agent's own marks or records.
    Native,
    /// The records themselves were edited.
    Rewrite,
    /// As the agent's own record of a summary.
    Summary,
}

/// The result of compacting one file.
#[derive(Clone, Debug, Serialize)]
pub struct CompactedFile {
    /// The address of the file.
    pub session: String,
    /// The agent, as its format is called.
    pub agent: &'static str,
    /// The session's id, if it has one.
    pub id: Option<String>,
    /// What was done with it.
    pub outcome: Outcome,
    /// How it is written, for formats with several ways.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub way: Option<WayTaken>,
    /// The generation in the archive. None: nothing was written.
    pub generation: Option<u64>,
    /// The context that a resume sends, as the counter of the report counts.
    pub context_tokens: Change<Tokens>,
    /// The whole request as the provider bills it, if the session records enough requests.
    pub request_tokens: Option<Change<Tokens>>,
    /// The calibration from which `request_tokens` is computed.
    pub calibration: Option<Fitted>,
    /// The length of the file.
    pub disk_bytes: Change<Bytes>,
    /// The length of the pack that was written to the archive, or would be.
    pub archive_bytes: Bytes,
    /// The calibration with full precision.
    #[serde(skip)]
    pub billed: Option<Calibration>,
    /// Edits by the names of the passes that planned them.
    pub edits: BTreeMap<String, u64>,
    /// The tools and files with the largest savings.
    pub savings: Savings,
    /// What a summary or a digest replaces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stands_for: Option<StandsFor>,
    /// What the next requests of the session cost with and without the compaction; none if no price
    /// is known, and for the files that belong to a session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quote: Option<Quote>,
    /// What is kept whole, and why.
    pub kept_because: KeptBecause,
    /// The conditions that the recipe still waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_reached: Option<NotReached>,
    /// The tokens that would be removed, if the recipe requires more.
    #[serde(skip)]
    pub too_little: Option<Tokens>,
    /// The target, if the result is still larger.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_missed: Option<Tokens>,
    /// Parts of the recipe that were left out, as sentences.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Records that could not be fully parsed.
    pub faults: Vec<FaultFound>,
    /// The blake3 hash of the session before, which the archive was proved to restore.
    pub restored_proof: Option<String>,
    /// The path of a whole copy of the file.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "lossy_path_option")]
    pub backup: Option<PathBuf>,
    /// For a plan: the processes that have the file open.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub in_use: Vec<UserFound>,
    /// Whether it is a conversation. If not, it is a log that a database keeps of one.
    #[serde(skip)]
    pub is_conversation: bool,
    /// Invariants that the plan would break. If there are any, the plan is refused.
    #[serde(skip)]
    pub violations: Vec<Violation>,
}

/// The result of compacting a session with all files that belong to it.
#[derive(Clone, Debug, Serialize)]
pub struct CompactReport {
    /// The session itself.
    #[serde(flatten)]
    pub file: CompactedFile,
    /// The name of the recipe.
    pub recipe: String,
    /// The name of the counter of the tokens.
    pub counter: &'static str,
    /// Whether it was only planned.
    pub dry_run: bool,
    /// The path of the compacted copy, if one was written; the session is unchanged.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "lossy_path_option")]
    pub out: Option<PathBuf>,
    /// The id of the run: see `epitome log`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Whether it is skipped because too little of its context would be removed.
    #[serde(skip)]
    pub too_little: bool,
    /// The models that were called for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub models: Option<AskedModels>,
    /// What would be lost from the session's context, if that was requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub losses: Option<CompactionLosses>,
    /// The files that belong to it.
    pub files: Vec<CompactedFile>,
}

impl CompactedFile {
    pub(super) fn from_plan<S: Source>(
        path: &Path,
        planned: &CompactionPlan<'_, S>,
        counter: &dyn Counter,
    ) -> CompactedFile {
        let session = planned.session;
        let compaction = &planned.compaction;
        let edits = compaction.by_pass();
        CompactedFile {
            session: path.display().to_string(),
            agent: session.format.name,
            id: session.transcript.head.id.as_deref().map(str::to_owned),
            outcome: if planned.is_empty() { Outcome::Nothing } else { Outcome::Planned },
            way: match planned.way {
                Way::Native => Some(WayTaken::Native),
                Way::Rewrite => session.format.native.map(|_| WayTaken::Rewrite),
                Way::Summary => Some(WayTaken::Summary),
            },
            generation: None,
            context_tokens: Change {
                before: compaction.tokens_before,
                after: planned.tokens_after,
            },
            request_tokens: None,
            calibration: None,
            disk_bytes: Change { before: Bytes(session.source.len()), after: planned.bytes_after },
            archive_bytes: Bytes(0),
            billed: None,
            edits: edits.into_iter().map(|(pass, n)| (pass.to_owned(), n)).collect(),
            savings: planned.savings(counter),
            stands_for: planned.stands_for,
            quote: None,
            kept_because: KeptBecause::from_kept(planned.kept()),
            not_reached: compaction.not_reached.map(NotReached::from_level),
            too_little: compaction.too_little,
            target_missed: planned
                .recipe
                .target
                .stored
                .and_then(|target| target.tokens(None))
                .filter(|it| planned.tokens_after > *it),
            notes: planned.notes.iter().map(ToString::to_string).collect(),
            faults: session.faults.iter().map(FaultFound::from_fault).collect(),
            restored_proof: None,
            backup: None,
            in_use: Vec::new(),
            is_conversation: true,
            violations: planned.violations.clone(),
        }
    }

    /// Hides secrets in texts of the session: names of tools and files, notes, faults. Reports are
    /// shown, stored and pasted elsewhere.
    pub(super) fn hide_secrets(&mut self, screen: &Screen) {
        let named = self.savings.tools.iter_mut().chain(&mut self.savings.files);
        let texts = named.map(|saving| &mut saving.of).chain(&mut self.notes);
        for text in texts.chain(self.faults.iter_mut().map(|fault| &mut fault.what)) {
            if let Cow::Owned(shown) = screen.text(text) {
                *text = shown;
            }
        }
    }

    /// Sets the billed tokens from the usage that the session records.
    pub(super) fn set_billed(&mut self, calibration: Option<Calibration>) {
        let Change { before, after } = self.context_tokens;
        self.billed = calibration;
        self.calibration = calibration.as_ref().map(Fitted::from_calibration);
        self.request_tokens =
            calibration.map(|it| Change { before: it.apply(before), after: it.apply(after) });
    }

    /// Records that the compaction was written: its generation, and the length of its pack.
    pub(super) fn set_done(&mut self, generation: &Generation, pack: Bytes) {
        self.archive_bytes = pack;
        self.outcome = Outcome::Compacted;
        self.generation = Some(generation.number);
        self.restored_proof = Some(generation.before.blake3.to_string());
    }

    /// The length of the file together with its pack in the archive.
    pub fn net_bytes(&self) -> Change<Bytes> {
        let Change { before, after } = self.disk_bytes;
        Change { before, after: after + self.archive_bytes }
    }
}

impl CompactReport {
    /// The session and the files that belong to it.
    pub fn all(&self) -> impl Iterator<Item = &CompactedFile> {
        std::iter::once(&self.file).chain(&self.files)
    }

    /// Whether neither the session nor what belongs to it had anything to do.
    pub fn is_nothing(&self) -> bool {
        self.all().all(|file| file.outcome == Outcome::Nothing)
    }

    /// Refuses a plan that would break an invariant.
    ///
    /// # Errors
    ///
    /// `Invariant`, with the first violations as its causes.
    pub fn check(&self) -> Result<()> {
        self.all().try_for_each(|file| {
            epitome_engine::stored::check_invariants(&file.violations, Path::new(&file.session))
        })
    }

    /// The contexts that a resume of all files sends.
    pub fn tokens(&self) -> Change<Tokens> {
        Change {
            before: self.all().map(|file| file.context_tokens.before).sum(),
            after: self.all().map(|file| file.context_tokens.after).sum(),
        }
    }

    /// The length of all files.
    pub fn disk_bytes(&self) -> Change<Bytes> {
        Change {
            before: self.all().map(|file| file.disk_bytes.before).sum(),
            after: self.all().map(|file| file.disk_bytes.after).sum(),
        }
    }

    /// The length of all files, with their archive.
    pub fn net_bytes(&self) -> Change<Bytes> {
        Change {
            before: self.all().map(|file| file.net_bytes().before).sum(),
            after: self.all().map(|file| file.net_bytes().after).sum(),
        }
    }
}

impl KeptBecause {
    fn from_kept(kept: &Kept) -> KeptBecause {
        let rules = kept.rules.iter().map(|&(rule, entries)| RuleKept { rule, entries });
        KeptBecause {
            tokens: kept.tokens,
            rules: rules.collect(),
            covered_everything: kept.covered_everything.clone(),
            instead: kept.instead,
        }
    }
}

impl NotReached {
    fn from_level(level: Level) -> NotReached {
        let Level { tokens, percent, bytes, chars, results, turns, messages } = level;
        NotReached { bytes, tokens, percent, chars, results, turns, messages }
    }
}

impl FaultFound {
    /// A fault as it is reported.
    pub fn from_fault(fault: &Fault) -> FaultFound {
        FaultFound { line: fault.line, what: fault.what.clone() }
    }
}

impl UserFound {
    /// A process as it is reported.
    pub fn from_user(user: &User) -> UserFound {
        UserFound { pid: user.pid, name: user.name.clone() }
    }
}
