//! What a compaction came to, as data. Its serde form is the JSON of `epitome compact --json`
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
    /// Nine of ten requests are within it.
    pub error_percent: f64,
}

impl Fitted {
    /// A calibration as it is reported.
    pub fn of(calibration: &Calibration) -> Fitted {
        Fitted {
            factor: f64::from(calibration.factor) / 1_000.0,
            fixed_tokens: calibration.fixed,
            requests: calibration.points,
            error_percent: f64::from(calibration.error) / 10.0,
        }
    }
}

/// What became of a file.
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

/// What is kept whole, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KeptBecause {
    /// Tokens that are kept whole.
    pub tokens: Tokens,
    /// The rules that keep something.
    pub rules: Vec<RuleKept>,
    /// The rules that together would keep everything.
    pub covered_everything: Vec<KeepRule>,
    /// The tail of tokens that is kept instead of what those rules would; none when it takes the
    /// last tokens to keep everything.
    pub instead: Option<Tokens>,
}

/// What a recipe waits for: all of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct NotReached {
    /// Bytes on disk.
    pub bytes: Option<u64>,
    /// Tokens of context.
    pub tokens: Option<u64>,
    /// Per cent of the window without the reserve.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub percent: Option<u64>,
    /// Characters of text as written, with what the API's JSON adds around each text.
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

/// A record that could not be read as it should be.
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
    /// In the agent's own way.
    Native,
    /// In the records themselves.
    Rewrite,
    /// As the agent's own record of a summary.
    Summary,
}

/// What a compaction of one file came to.
#[derive(Clone, Debug, Serialize)]
pub struct CompactedFile {
    /// The address of the file.
    pub session: String,
    /// The agent, as its format is called.
    pub agent: &'static str,
    /// The session's id, if it has one.
    pub id: Option<String>,
    /// What became of it.
    pub outcome: Outcome,
    /// How it is written, where there is a choice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub way: Option<WayTaken>,
    /// The generation in the archive. None: nothing was written.
    pub generation: Option<u64>,
    /// What a resume sends, as the counter of the report counts.
    pub context_tokens: Change<Tokens>,
    /// The whole request as the provider bills it, where the session records enough of them.
    pub request_tokens: Option<Change<Tokens>>,
    /// What that follows from.
    pub calibration: Option<Fitted>,
    /// The length of the file.
    pub disk_bytes: Change<Bytes>,
    /// The pack in the archive that was written, or would be.
    pub archive_bytes: Bytes,
    /// The same as `calibration`.
    #[serde(skip)]
    pub billed: Option<Calibration>,
    /// Edits by the names of the passes that planned them.
    pub edits: BTreeMap<String, u64>,
    /// Where these save tokens, by tool and by file.
    pub savings: Savings,
    /// What a summary or a digest is written in the place of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stands_for: Option<StandsFor>,
    /// What the next requests of the session cost with it and without it; none where no price is
    /// known, and of what belongs to a session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quote: Option<Quote>,
    /// What is kept whole.
    pub kept_because: KeptBecause,
    /// What the recipe waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_reached: Option<NotReached>,
    /// The tokens that would go, if the recipe wants more to go.
    #[serde(skip)]
    pub too_little: Option<Tokens>,
    /// The target, when what is left is still more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_missed: Option<Tokens>,
    /// What of the recipe is left out, as sentences.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Records that could not be read as they should be.
    pub faults: Vec<FaultFound>,
    /// The blake3 hash of the session before, which the archive was proved to give back.
    pub restored_proof: Option<String>,
    /// A whole copy of the file.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "lossy_path_option")]
    pub backup: Option<PathBuf>,
    /// The processes that have it open, of a plan.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub in_use: Vec<UserFound>,
    /// Whether it is a conversation, and not a log that a database keeps of one.
    #[serde(skip)]
    pub is_conversation: bool,
    /// Invariants that the plan would break. If there are any, it is refused.
    #[serde(skip)]
    pub violations: Vec<Violation>,
}

/// What the compaction of a session with all that belongs to it came to.
#[derive(Clone, Debug, Serialize)]
pub struct CompactReport {
    /// The session itself.
    #[serde(flatten)]
    pub file: CompactedFile,
    /// The name of the recipe.
    pub recipe: String,
    /// What counted the tokens.
    pub counter: &'static str,
    /// Whether it was only planned.
    pub dry_run: bool,
    /// The copy that was compacted; the session stays.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "lossy_path_option")]
    pub out: Option<PathBuf>,
    /// The run that wrote it: see `epitome log`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Whether it is left because too little of its context would go.
    #[serde(skip)]
    pub too_little: bool,
    /// What models were asked for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub models: Option<AskedModels>,
    /// What of the session itself would leave the context, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub losses: Option<CompactionLosses>,
    /// The files that belong to it.
    pub files: Vec<CompactedFile>,
}

impl CompactedFile {
    pub(super) fn of<S: Source>(
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
            kept_because: KeptBecause::of(planned.kept()),
            not_reached: compaction.not_reached.map(NotReached::of),
            too_little: compaction.too_little,
            target_missed: planned
                .recipe
                .target
                .stored
                .and_then(|target| target.tokens(None))
                .filter(|it| planned.tokens_after > *it),
            notes: planned.notes.iter().map(ToString::to_string).collect(),
            faults: session.faults.iter().map(FaultFound::of).collect(),
            restored_proof: None,
            backup: None,
            in_use: Vec::new(),
            is_conversation: true,
            violations: planned.violations.clone(),
        }
    }

    /// Hides secrets in what it says of the session: names of tools and files, notes, faults.
    /// Reports are shown, stored and pasted elsewhere.
    pub(super) fn hide_secrets(&mut self, screen: &Screen) {
        let named = self.savings.tools.iter_mut().chain(&mut self.savings.files);
        let texts = named.map(|saving| &mut saving.of).chain(&mut self.notes);
        for text in texts.chain(self.faults.iter_mut().map(|fault| &mut fault.what)) {
            if let Cow::Owned(shown) = screen.text(text) {
                *text = shown;
            }
        }
    }

    /// Adds what the provider bills, by what the session records of it.
    pub(super) fn set_billed(&mut self, calibration: Option<Calibration>) {
        let Change { before, after } = self.context_tokens;
        self.billed = calibration;
        self.calibration = calibration.as_ref().map(Fitted::of);
        self.request_tokens =
            calibration.map(|it| Change { before: it.apply(before), after: it.apply(after) });
    }

    /// Adds that it was done, how it is undone, and the length of its pack in the archive.
    pub(super) fn set_done(&mut self, generation: &Generation, pack: Bytes) {
        self.archive_bytes = pack;
        self.outcome = Outcome::Compacted;
        self.generation = Some(generation.number);
        self.restored_proof = Some(generation.before.blake3.to_string());
    }

    /// What the file and its archive take together.
    pub fn net_bytes(&self) -> Change<Bytes> {
        let Change { before, after } = self.disk_bytes;
        Change { before, after: after + self.archive_bytes }
    }
}

impl CompactReport {
    /// The session, and what belongs to it.
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

    /// What a resume of all files sends.
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
    fn of(kept: &Kept) -> KeptBecause {
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
    fn of(level: Level) -> NotReached {
        let Level { tokens, percent, bytes, chars, results, turns, messages } = level;
        NotReached { bytes, tokens, percent, chars, results, turns, messages }
    }
}

impl FaultFound {
    /// A fault as it is reported.
    pub fn of(fault: &Fault) -> FaultFound {
        FaultFound { line: fault.line, what: fault.what.clone() }
    }
}

impl UserFound {
    /// A process as it is reported.
    pub fn of(user: &User) -> UserFound {
        UserFound { pid: user.pid, name: user.name.clone() }
    }
}
