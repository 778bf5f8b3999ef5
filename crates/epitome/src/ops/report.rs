//! The report of a compaction. Its serde form is the JSON of `epitome compact --json`
//! (`docs/json.md`), to which members are only added.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use epitome_model::{Bytes, Counter, Fault, Source, Tokens, Violation, lossy_path_option};
use epitome_passes::{KeepRule, KeptParts, Level};
use epitome_tokens::Calibration;
use serde::Serialize;

use super::change::Change;
use super::losses::CompactionLosses;
use super::summary::AskedModels;
use super::window::WindowLimits;
use crate::archive::Generation;
use crate::compact::{PreparedCompaction, ReplacedItems, Savings, Way};
use crate::error::Result;
use crate::quote::Quote;
use crate::redact::Screen;
use crate::store::User;

/// How the tokens that a provider bills for a request are computed from those of its messages:
/// `factor × messages + fixed_tokens`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct BillingFit {
    /// Billed tokens for each token that the counter counts.
    pub factor: f64,
    /// Billed tokens of the system prompt and the tools.
    pub fixed_tokens: Tokens,
    /// Number of requests in the session that the values were fitted to.
    pub requests: usize,
    /// The error in per cent of the billed tokens that nine of ten requests do not exceed.
    pub error_percent: f64,
}

impl BillingFit {
    /// The values of a calibration, for a report.
    pub fn from_calibration(calibration: &Calibration) -> BillingFit {
        BillingFit {
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
    /// The file was compacted.
    Compacted,
    /// The file would be compacted, but is not changed.
    Planned,
    /// There is nothing to do.
    Nothing,
}

/// How much of a context is kept whole, and by which rules.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KeptBecause {
    /// Tokens that are kept whole.
    pub tokens: Tokens,
    /// The rules that keep something.
    pub rules: Vec<RuleCount>,
    /// The rules that together would have kept everything; empty if they would not.
    pub covered_everything: Vec<KeepRule>,
    /// If the rules would have kept everything: the number of tokens at the end of the context that
    /// are kept instead. `null` if the rules are followed.
    pub instead: Option<Tokens>,
}

/// The sizes of a context or file below which a recipe removes nothing. The recipe begins to remove
/// something only when all sizes that are set are reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct UnmetTrigger {
    /// Bytes on disk.
    pub bytes: Option<u64>,
    /// Tokens of the context.
    pub tokens: Option<u64>,
    /// Per cent of the usable window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub percent: Option<u64>,
    /// Characters of the texts as JSON strings (with quotes and escapes), plus an estimate of the
    /// JSON around each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chars: Option<u64>,
    /// Number of tool results.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub results: Option<u64>,
    /// Number of turns of the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turns: Option<u64>,
    /// Number of messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages: Option<u64>,
}

/// How many entries a rule keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct RuleCount {
    /// The rule.
    pub rule: KeepRule,
    /// Number of entries that the rule keeps.
    pub entries: u64,
}

/// A record that could not be fully parsed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FaultFound {
    /// The line in the file, from 1.
    pub line: u64,
    /// What is wrong with the record.
    pub what: String,
}

/// A process that uses a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UserFound {
    /// The id of the process; 0 if it is unknown.
    pub pid: u32,
    /// The name of the process; empty if the system does not show it.
    pub name: String,
}

/// How a compaction was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum WrittenWay {
    /// With marks or records of the agent's own.
    Native,
    /// By rewriting the records that hold the edited content.
    Rewrite,
    /// As the agent's own record of a summary.
    Summary,
}

/// A target in characters that a compaction does not reach. The characters are those of the texts
/// as JSON strings, with an estimate of the JSON around each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct MissedChars {
    /// The target.
    pub target: u64,
    /// What a resume sends after the compaction.
    pub left: u64,
}

impl MissedChars {
    /// `None` if the recipe has no target in characters, or if the compaction reaches it.
    fn from_plan<S: Source>(
        planned: &PreparedCompaction<'_, S>,
        counter: &dyn Counter,
    ) -> Option<MissedChars> {
        let target = planned.recipe.target.stored?.chars?;
        let left = planned.chars_after(counter).ok()?;
        (left > target).then_some(MissedChars { target, left })
    }
}

/// The result of compacting one file. For a plan, the result that it would have.
#[derive(Clone, Debug, Serialize)]
pub struct CompactedFile {
    /// The address: the path of the file, or `DATABASE#ID` for rows of a database.
    pub session: String,
    /// The agent: the name of its format.
    pub agent: &'static str,
    /// The session's id, if it has one.
    pub id: Option<String>,
    /// What was done with the file.
    pub outcome: Outcome,
    /// How the compaction is written. `None` for a rewrite in a format that does not allow
    /// [`Native`](WrittenWay::Native).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub way: Option<WrittenWay>,
    /// The number of the generation in the archive; `null` if nothing was written.
    pub generation: Option<u64>,
    /// The tokens that a resume sends, as the report's counter counts them.
    pub context_tokens: Change<Tokens>,
    /// The tokens of the whole request, as the provider bills them; `null` if they cannot be
    /// computed from the requests that the session records.
    pub request_tokens: Option<Change<Tokens>>,
    /// The values from which `request_tokens` is computed.
    pub calibration: Option<BillingFit>,
    /// The length of the file.
    pub disk_bytes: Change<Bytes>,
    /// The length of the pack in the archive that was written, or would be written.
    pub archive_bytes: Bytes,
    /// The calibration that `calibration` describes; not serialized.
    #[serde(skip)]
    pub billed: Option<Calibration>,
    /// Number of edits of each pass.
    pub edits: BTreeMap<String, u64>,
    /// The tools and files with the largest savings.
    pub savings: Savings,
    /// What a summary or a digest replaces; `None` if the plan has neither.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stands_for: Option<ReplacedItems>,
    /// What the next requests of the session cost with and without the compaction. `None`, for
    /// example, if no price is known, and for files that belong to a session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quote: Option<Quote>,
    /// What is kept whole, and why.
    pub kept_because: KeptBecause,
    /// The sizes that must be reached before the recipe removes anything, if they are not reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_reached: Option<UnmetTrigger>,
    /// The number of tokens that would be removed, if it is below the recipe's minimum: then
    /// nothing is removed. Otherwise `None`.
    #[serde(skip)]
    pub saving_below_minimum: Option<Tokens>,
    /// The target in tokens, if the result is larger than the target; otherwise `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_missed: Option<Tokens>,
    /// The target in characters and what is left, if the result is larger than the target;
    /// otherwise `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_chars_missed: Option<MissedChars>,
    /// The window of the model, if limits of the recipe are percentages of it and it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<WindowLimits>,
    /// Parts of the recipe that were left out, each as a sentence.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Records that could not be fully parsed.
    pub faults: Vec<FaultFound>,
    /// The blake3 hash of the session before the compaction: the archive was proved to restore it.
    /// `null` if nothing was written.
    pub restored_proof: Option<String>,
    /// The path of a whole copy of the file, if one was kept.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "lossy_path_option")]
    pub backup: Option<PathBuf>,
    /// For the plan of a session's own file: the processes that use the file.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub in_use: Vec<UserFound>,
    /// Whether the file is a conversation, and not a log that is stored with one in a database.
    #[serde(skip)]
    pub is_conversation: bool,
    /// The invariants that the plan would violate. If there are any, the compaction is refused.
    #[serde(skip)]
    pub violations: Vec<Violation>,
}

/// The result of compacting a session with all files that belong to it. Its serde form is the JSON
/// of `epitome compact --json`.
///
/// ```
/// use epitome::ops::{Compact, OpenSession};
///
/// # let home = tempfile::tempdir().expect("a folder");
/// # let config = epitome::Config::from_home(home.path());
/// # let path = home.path().join("session.jsonl");
/// # std::fs::write(&path, fixtures::get("pi", "pricing").bytes()).expect("a session");
/// # let run = config.begin_run("example");
/// # let recipe = epitome::built_in("epitome").expect("a recipe");
/// # let counter = epitome_tokens::Estimate::new();
/// let session = OpenSession::new(&config, &path);
/// let report = Compact::new(&recipe, &counter, &run).plan(&session, |_, _| {})?;
/// // This session has no sub-agents: the sums are those of its own file.
/// assert_eq!(report.tokens(), report.file.context_tokens);
/// assert_eq!((report.all().count(), report.sub_agents_text()), (1, None));
/// // What is removed from the file is kept in the archive.
/// assert!(report.net_bytes().after > report.disk_bytes().after);
/// # Ok::<(), epitome::Error>(())
/// ```
#[derive(Clone, Debug, Serialize)]
pub struct CompactReport {
    /// The result for the session's own file.
    #[serde(flatten)]
    pub file: CompactedFile,
    /// The name of the recipe.
    pub recipe: String,
    /// The name of the counter of tokens.
    pub counter: &'static str,
    /// Whether the compaction was only planned.
    pub dry_run: bool,
    /// The path of the compacted copy, if one was written or planned; the session is then
    /// unchanged.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "lossy_path_option")]
    pub out: Option<PathBuf>,
    /// The id of the run that made the compaction, as in `epitome log`; `None` if nothing was
    /// written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Whether less than [`Compact::least`](super::Compact::least) of the tokens of all files would
    /// be removed. Then the session is skipped, unless a copy is to be written.
    #[serde(skip)]
    pub is_below_minimum: bool,
    /// The calls of models for a summary; `None` if no model was called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub models: Option<AskedModels>,
    /// What would be lost from the context, if the caller requested that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub losses: Option<CompactionLosses>,
    /// The results for the files that belong to the session.
    pub files: Vec<CompactedFile>,
}

impl CompactedFile {
    pub(super) fn from_plan<S: Source>(
        path: &Path,
        planned: &PreparedCompaction<'_, S>,
        counter: &dyn Counter,
    ) -> CompactedFile {
        let session = planned.session;
        let compaction = &planned.plan;
        let edits = compaction.by_pass();
        CompactedFile {
            session: path.display().to_string(),
            agent: session.format.name,
            id: session.transcript.head.id.as_deref().map(str::to_owned),
            outcome: if planned.is_empty() { Outcome::Nothing } else { Outcome::Planned },
            way: match planned.way {
                Way::Native => Some(WrittenWay::Native),
                Way::Rewrite => session.format.native.map(|_| WrittenWay::Rewrite),
                Way::Summary => Some(WrittenWay::Summary),
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
            not_reached: compaction.not_reached.map(UnmetTrigger::from_level),
            saving_below_minimum: compaction.saving_below_minimum,
            target_missed: planned
                .recipe
                .target
                .stored
                .and_then(|target| target.tokens(None))
                .filter(|it| planned.tokens_after > *it),
            target_chars_missed: MissedChars::from_plan(planned, counter),
            window: None,
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
    /// displayed, stored and pasted elsewhere.
    pub(super) fn hide_secrets(&mut self, screen: &Screen) {
        let named = self.savings.tools.iter_mut().chain(&mut self.savings.files);
        let texts = named.map(|saving| &mut saving.of).chain(&mut self.notes);
        for text in texts.chain(self.faults.iter_mut().map(|fault| &mut fault.what)) {
            if let Cow::Owned(shown) = screen.text(text) {
                *text = shown;
            }
        }
    }

    /// Sets the billed tokens, as computed from the usage that the session records.
    pub(super) fn set_billed(&mut self, calibration: Option<Calibration>) {
        let Change { before, after } = self.context_tokens;
        self.billed = calibration;
        self.calibration = calibration.as_ref().map(BillingFit::from_calibration);
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

    /// Before the compaction: the length of the file. After: the lengths of the file and of the
    /// pack that this compaction wrote or would write.
    pub fn net_bytes(&self) -> Change<Bytes> {
        let Change { before, after } = self.disk_bytes;
        Change { before, after: after + self.archive_bytes }
    }
}

impl CompactReport {
    /// The results for the session's own file and for those that belong to it.
    pub fn all(&self) -> impl Iterator<Item = &CompactedFile> {
        std::iter::once(&self.file).chain(&self.files)
    }

    /// Whether no file was compacted, or would be, because there was nothing to do in any of them.
    pub fn is_nothing(&self) -> bool {
        self.all().all(|file| file.outcome == Outcome::Nothing)
    }

    /// Returns an error if a plan would violate an invariant.
    ///
    /// # Errors
    ///
    /// `Invariant`, with the first violations as its causes.
    pub fn check(&self) -> Result<()> {
        self.all().try_for_each(|file| {
            epitome_engine::stored::check_invariants(&file.violations, Path::new(&file.session))
        })
    }

    /// The tokens that a resume of all files sends, in sum.
    pub fn tokens(&self) -> Change<Tokens> {
        Change {
            before: self.all().map(|file| file.context_tokens.before).sum(),
            after: self.all().map(|file| file.context_tokens.after).sum(),
        }
    }

    /// The length of all files, in sum.
    pub fn disk_bytes(&self) -> Change<Bytes> {
        Change {
            before: self.all().map(|file| file.disk_bytes.before).sum(),
            after: self.all().map(|file| file.disk_bytes.after).sum(),
        }
    }

    /// The sum over all files: before, their lengths; after, their lengths and those of the packs
    /// that this compaction wrote or would write. Packs of earlier compactions are not counted.
    pub fn net_bytes(&self) -> Change<Bytes> {
        Change {
            before: self.all().map(|file| file.net_bytes().before).sum(),
            after: self.all().map(|file| file.net_bytes().after).sum(),
        }
    }
}

impl KeptBecause {
    fn from_kept(kept: &KeptParts) -> KeptBecause {
        let rules = kept.rules.iter().map(|&(rule, entries)| RuleCount { rule, entries });
        KeptBecause {
            tokens: kept.tokens,
            rules: rules.collect(),
            covered_everything: kept.covered_everything.clone(),
            instead: kept.instead,
        }
    }
}

impl UnmetTrigger {
    fn from_level(level: Level) -> UnmetTrigger {
        let Level { tokens, percent, bytes, chars, results, turns, messages } = level;
        UnmetTrigger { bytes, tokens, percent, chars, results, turns, messages }
    }
}

impl FaultFound {
    /// A fault of a record, for a report.
    pub fn from_fault(fault: &Fault) -> FaultFound {
        FaultFound { line: fault.line, what: fault.what.clone() }
    }
}

impl UserFound {
    /// A process, for a report.
    pub fn from_user(user: &User) -> UserFound {
        UserFound { pid: user.pid, name: user.name.clone() }
    }
}
