//! The loss report: what the compactions of a session removed from its context, and what of it the
//! agent needed later.

mod timeline;
mod used_facts;
mod view;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};

use epitome_llm::Catalogue;
use epitome_model::{Counter, MicroDollars, Ref, Source, TokenUsage, Tokens, Transcript, plural};
use epitome_passes::facts::FactKind;
use epitome_passes::losses::{
    Losses, LostKind, LostPiece, RepeatedCall, UsedFact, changed_files, losses, names_in,
    text_of_reference,
};
use epitome_passes::{
    Name, ResponseText, View, named_texts, response_name, results_of_calls, texts_at_calls,
    texts_of_responses,
};
use epitome_tokens::Estimate;
use jiff::Timestamp;
use serde::Serialize;

use super::change::Change;
use super::open::{OpenSession, is_same_file};
use crate::agents::{self, SessionMatch};
use crate::compact::{PreparedCompaction, Way};
use crate::config::Config;
use crate::drive::catalogue;
use crate::error::Result;
use crate::history::{History, Version};
use crate::recipes;
use crate::redact::{Screen, SessionScreen};
use crate::settings::Settings;

use timeline::Found;
pub(super) use timeline::Timeline;
pub(crate) use timeline::is_compaction;
use used_facts::{one_per_file, with_slash};
use view::is_unresolved;
pub use view::{LossGroup, LossMembers, RecoveryCommand};

/// The maximum number of tokens of a short text of the model. Most such texts are conclusions.
const SHORT: Tokens = Tokens(80);

/// The loss report of a session, which [`session_losses`] returns: what the session's compactions
/// removed from its context.
#[derive(Clone, Debug, Serialize)]
pub struct LossReport {
    /// The address of the session: the path of its file, or `DATABASE#ID`.
    #[serde(serialize_with = "epitome_model::lossy_path")]
    pub session: PathBuf,
    /// The agent that wrote the session.
    pub agent: &'static str,
    /// The id of the session.
    pub id: Option<String>,
    /// The name of the counter of tokens.
    pub counter: &'static str,
    /// The date of the prices, as in the table of models.
    pub prices_of: String,
    /// The losses of each compaction, the oldest first.
    pub compactions: Vec<CompactionLosses>,
    /// What could not be determined, as sentences.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// Which program made a compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CompactedBy {
    /// The agent itself.
    Agent,
    /// epitome.
    Epitome,
}

/// What one compaction removed from the context of a session.
#[derive(Clone, Debug, Serialize)]
pub struct CompactionLosses {
    /// Which program made the compaction.
    pub by: CompactedBy,
    /// The number of the generation. `None` for a planned compaction, and for one by the agent.
    pub generation: Option<u64>,
    /// The name of the recipe, for a compaction by epitome.
    pub recipe: Option<String>,
    /// When the compaction was made, as recorded in the session or the archive.
    pub at: Option<String>,
    /// For a compaction by the agent: the line of its record in the session, from 1.
    pub line: Option<u64>,
    /// The model of the newest response before the compaction.
    pub model: Option<String>,
    /// The tokens that a resume sends, before and after the compaction.
    pub context_tokens: Change<Tokens>,
    /// The number and the tokens of the removed texts, by kind.
    pub left: BTreeMap<LostKind, LossAmount>,
    /// The calls that the agent probably repeated only because their results had been removed.
    pub again: AgainTotal,
    /// The numbers of distinct facts: before the compaction, removed by it, and used later.
    pub facts: FactTotals,
    /// The facts that the agent wrote later although they had been removed.
    pub facts_used: Vec<UsedFact>,
    /// The removed texts, in the order of the session.
    pub pieces: Vec<LostText>,
    /// For a planned compaction: the paths of files that the session changes and whose reads would
    /// be removed.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub changed_files: BTreeSet<String>,
}

impl CompactionLosses {
    /// The removed texts of the model, in three groups: texts that state a decision; short texts,
    /// because most of them are conclusions; and all others. In each group the newest is first.
    pub fn texts_of_the_model(&self) -> Vec<&LostText> {
        let texts = self
            .pieces
            .iter()
            .rev()
            .filter(|it| matches!(it.lost.kind, LostKind::Decision | LostKind::Reply));
        let mut texts: Vec<&LostText> = texts.collect();
        texts.sort_by_key(|it| match it.lost.kind {
            LostKind::Decision => 0,
            _ if is_short(&it.lost) => 1,
            _ => 2,
        });
        texts
    }

    /// The losses that may matter for the rest of the session, each as a few words: `2 rules`, `1
    /// unresolved error`. Other losses, for example resolved errors, are not included.
    pub fn relevant_losses(&self) -> Vec<String> {
        let pieces: Vec<&LostPiece> = self.pieces.iter().map(|piece| &piece.lost).collect();
        describe_what_may_matter(&pieces, self.changed_files.len())
    }
}

/// Describes the removed texts that may matter, and the removed reads of files that the session
/// changes.
fn describe_what_may_matter(pieces: &[&LostPiece], changed_files: usize) -> Vec<String> {
    let of_kind = |kind: LostKind| pieces.iter().filter(|piece| piece.kind == kind).count();
    let open = pieces.iter().filter(|piece| is_unresolved(piece));
    let short = pieces.iter().filter(|piece| piece.kind == LostKind::Reply && is_short(piece));
    let counts = [
        (of_kind(LostKind::Rule), "rule", ""),
        (of_kind(LostKind::Plan), "plan", ""),
        (of_kind(LostKind::User), "message", " of yours"),
        (open.count(), "unresolved error", ""),
        (of_kind(LostKind::Decision), "text", " with decisions"),
        (short.count(), "short text", " of the model"),
        (changed_files, "file", " read and changed"),
    ];
    let known = counts.into_iter().filter(|(n, ..)| *n > 0);
    known.map(|(n, one, which)| plural(n as u64, one) + which).collect()
}

/// Whether a removed text is short, and was removed as a whole.
fn is_short(piece: &LostPiece) -> bool {
    !piece.partly && piece.tokens <= SHORT
}

/// The number and tokens of removed texts of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LossAmount {
    /// Number of texts.
    pub pieces: u64,
    /// Tokens of these texts.
    pub tokens: Tokens,
}

/// The calls that were repeated, and what they cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct AgainTotal {
    /// Number of calls.
    pub calls: u64,
    /// Tokens of these calls and of their results.
    pub tokens: Tokens,
    /// What these calls and their results cost at list prices if each is sent once; `null` if the
    /// price of one is unknown.
    pub cost: Option<MicroDollars>,
}

/// Numbers of distinct facts, such as paths, names and numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FactTotals {
    /// Facts in the context before the compaction.
    pub before: u64,
    /// Facts that are not in the context after the compaction.
    pub gone: u64,
    /// Removed facts that the agent wrote later, before any other text had brought them back.
    pub used: u64,
}

/// A removed text, and how to get it back.
#[derive(Clone, Debug, Serialize)]
pub struct LostText {
    /// The removed text.
    #[serde(flatten)]
    pub lost: LostPiece,
    /// What repeating the call cost at list prices; `None` if it was not repeated or the price is
    /// unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<MicroDollars>,
    /// The command that puts the text back into the session. `None` if the compaction did not
    /// archive the text.
    pub restore: Option<String>,
    /// The command that prints the text. `None` if the text has no reference.
    pub show: Option<String>,
    /// Whether all bytes of the text that the compaction archived are in the context again. False
    /// if the compaction archived none of its bytes.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub back: bool,
}

impl LostText {
    /// The reference in the commands that restore or print the text. `None` if there is no such
    /// command.
    pub fn reference(&self) -> Option<&Ref> {
        let commands = [self.restore.as_deref(), self.show.as_deref()];
        let command = commands.into_iter().flatten().next()?;
        self.lost.references.iter().find(|it| command.contains(&it.to_string()))
    }
}

/// Reports what the compactions of a session removed from its context: those by epitome and those
/// by the agent itself. A compaction by the agent that lost nothing is left out. For a session
/// without compactions, [`LossReport::compactions`] is empty.
///
/// ```
/// use epitome::Settings;
/// use epitome::ops::{Compact, OpenSession, session_losses};
///
/// # let home = tempfile::tempdir().expect("a folder");
/// # let config = epitome::Config::from_home(home.path());
/// # let path = home.path().join("session.jsonl");
/// # std::fs::write(&path, fixtures::get("pi", "pricing").bytes()).expect("a session");
/// # let run = config.begin_run("example");
/// # let recipe = epitome::built_in("epitome").expect("a recipe");
/// # let counter = epitome_tokens::Estimate::new();
/// let settings = Settings::default();
/// let before = session_losses(&OpenSession::new(&config, &path), &settings, &counter)?;
/// assert!(before.compactions.is_empty());
/// Compact::new(&recipe, &counter, &run).run(&OpenSession::new(&config, &path))?;
/// let after = session_losses(&OpenSession::new(&config, &path), &settings, &counter)?;
/// let [losses] = &after.compactions[..] else { panic!("one compaction") };
/// assert!(losses.context_tokens.after < losses.context_tokens.before);
/// # Ok::<(), epitome::Error>(())
/// ```
///
/// # Errors
///
/// The errors of opening and reading the session, the archive and the table of models; `Recipe` if
/// a recipe of the settings cannot be used.
pub fn session_losses(
    session: &OpenSession<'_>,
    settings: &Settings,
    counter: &dyn Counter,
) -> Result<LossReport> {
    let loaded = session.load()?;
    let rule_files = recipes::rule_files(session.config, settings)?;
    let screen = Screen::with_settings(session.config, settings);
    let prices = catalogue(session.config)?;
    let archive = session.config.archive();
    let timeline = Timeline::from_session(loaded, &archive, session.path())?;
    let whole = View::new(&timeline.transcript, timeline.whole(), counter);
    let history = History::open_place(
        session.config,
        session.place(),
        session.path(),
        session.agent,
        Version::AsItWas,
    )?;
    let mut screen = history.screen(&screen);
    let name = name_of(session.config, session.path(), &loaded.transcript);
    let in_context = names_in(&View::new(&loaded.transcript, &loaded.source, counter));
    let mut notes = timeline.notes.clone();
    let mut compactions = Vec::new();
    for found in timeline.found() {
        let moment = timeline.at(&found);
        let before = View::new(&moment.before.0, &moment.before.1, counter);
        let before = before.with_rule_files(&rule_files);
        let after = View::new(&moment.after.0, &moment.after.1, counter);
        let after = after.with_rule_files(&rule_files);
        let tokens = Change { before: before.context_tokens(), after: after.context_tokens() };
        let lost = losses(&before, &after, &whole, &found.later);
        if lost.pieces.is_empty() && found.generation.is_none() {
            continue;
        }
        let reported =
            ReportedCompaction { found: &found, session: &name, in_context: &in_context };
        let model = model_of(&moment.before.0);
        compactions.push(describe_losses(lost, tokens, model, &reported, &prices, &mut screen));
    }
    notes.dedup();
    let id = loaded.transcript.head.id.as_deref().map(|id| screen.text(id));
    Ok(LossReport {
        session: session.path().to_owned(),
        agent: loaded.format.name,
        id,
        counter: counter.name(),
        prices_of: prices.date().to_owned(),
        compactions,
        notes,
    })
}

/// The text that a name refers to, in the session as it was before all compactions by epitome: a
/// text named in a loss report; a call with its result and the model's text next to it; or a
/// response of the model. `None` if the session has nothing with this name.
///
/// ```
/// use epitome::ops::{OpenSession, session_text};
/// use epitome_passes::Name;
///
/// # let home = tempfile::tempdir().expect("a folder");
/// # let config = epitome::Config::from_home(home.path());
/// # let path = home.path().join("session.jsonl");
/// # std::fs::write(&path, fixtures::get("pi", "pricing").bytes()).expect("a session");
/// # let run = config.begin_run("example");
/// # let recipe = epitome::built_in("epitome").expect("a recipe");
/// # let counter = epitome_tokens::Estimate::new();
/// let session = OpenSession::new(&config, &path);
/// let first_call = Name::parse("#1").expect("the name of a call");
/// assert!(session_text(&session, &first_call)?.is_some());
/// let unknown = Name::parse("#999").expect("the name of a call");
/// assert_eq!(session_text(&session, &unknown)?, None);
/// # Ok::<(), epitome::Error>(())
/// ```
///
/// # Errors
///
/// The errors of opening and reading the session and the archive.
pub fn session_text(session: &OpenSession<'_>, name: &Name) -> Result<Option<String>> {
    let loaded = session.load()?;
    let timeline = Timeline::from_session(loaded, &session.config.archive(), session.path())?;
    let view = View::new(&timeline.transcript, timeline.whole(), &const { Estimate::new() });
    let transcript = view.transcript;
    let source = view.source;
    Ok(match name {
        Name::Text(reference) => text_of_reference(&view, reference),
        Name::Responses(wanted) => {
            let texts = texts_of_responses(transcript, source, |it| wanted.contains(&it));
            named_texts(with_response_names(texts))
        }
        Name::Calls(calls) => {
            let mut texts = with_response_names(texts_at_calls(transcript, source, calls));
            let results = results_of_calls(transcript, source, calls);
            texts.extend(results.into_iter().map(|(number, text)| (format!("#{number}"), text)));
            named_texts(texts)
        }
    })
}

/// The texts with the names of their responses.
fn with_response_names(texts: Vec<ResponseText>) -> Vec<(String, String)> {
    texts.into_iter().map(|it| (response_name(it.response), it.text)).collect()
}

/// What a planned compaction would remove from the context of the session at `path`. The recipe of
/// the plan says which files contain rules.
///
/// # Errors
///
/// The errors of reading the table of models; `Unreadable` if the session cannot be read any more.
pub fn planned_losses<S: Source>(
    config: &Config,
    settings: &Settings,
    path: &Path,
    plan: &PreparedCompaction<'_, S>,
    counter: &dyn Counter,
) -> Result<CompactionLosses> {
    let prices = catalogue(config)?;
    let loaded = plan.session;
    let PlannedLosses { tokens, lost, changed_files } = PlannedLosses::from_plan(plan, counter)?;
    let removed = match plan.way {
        Way::Rewrite => {
            plan.unsent.iter().map(|(span, _)| Ref::from_bytes(&loaded.source.at(*span))).collect()
        }
        Way::Native | Way::Summary => Vec::new(),
    };
    let found = Found {
        by: CompactedBy::Epitome,
        recipe: Some(plan.recipe.name.clone()),
        removed,
        ..Found::default()
    };
    let name = name_of(config, path, &loaded.transcript);
    let reported =
        ReportedCompaction { found: &found, session: &name, in_context: &HashSet::new() };
    let history = History::open(config, path, Some(loaded.format.name), Version::AsItWas);
    let screen = Screen::with_settings(config, settings);
    // A session from standard input has no history that could be opened.
    let mut screen = match &history {
        Ok(history) => history.screen(&screen),
        Err(_) => screen.session_screen(&loaded.source),
    };
    let model = model_of(&loaded.transcript);
    let changed_files = changed_files.iter().map(|name| screen.text(name)).collect();
    let losses = describe_losses(lost, tokens, model, &reported, &prices, &mut screen);
    Ok(CompactionLosses { changed_files, ..losses })
}

/// The losses of a planned compaction that may matter for the rest of the session, in the form of
/// [`CompactionLosses::relevant_losses`]. They contain no text of the session, so they need not be
/// searched for secrets; that search would take longer than planning the compaction.
///
/// # Errors
///
/// `Unreadable` if the session cannot be read any more.
pub fn planned_losses_in_short<S: Source>(
    plan: &PreparedCompaction<'_, S>,
    counter: &dyn Counter,
) -> Result<Vec<String>> {
    let PlannedLosses { lost, changed_files, .. } = PlannedLosses::from_plan(plan, counter)?;
    let pieces: Vec<&LostPiece> = lost.pieces.iter().collect();
    Ok(describe_what_may_matter(&pieces, changed_files.len()))
}

/// The numbers of facts that a planned compaction would remove from the context.
///
/// # Errors
///
/// `Unreadable` if the session cannot be read any more.
pub(super) fn planned_facts<S: Source>(
    plan: &PreparedCompaction<'_, S>,
    counter: &dyn Counter,
) -> Result<FactTotals> {
    let PlannedLosses { lost, .. } = PlannedLosses::from_plan(plan, counter)?;
    let used = one_per_file(lost.facts_used).len() as u64;
    Ok(FactTotals { before: lost.facts_before, gone: lost.facts_gone, used })
}

/// What a planned compaction would remove. Secrets in the names of texts and files are not hidden
/// yet.
struct PlannedLosses {
    /// The tokens that a resume sends, before and after the compaction.
    tokens: Change<Tokens>,
    lost: Losses,
    /// The files that the session changes and whose reads would be removed.
    changed_files: BTreeSet<String>,
}

impl PlannedLosses {
    fn from_plan<S: Source>(
        prepared: &PreparedCompaction<'_, S>,
        counter: &dyn Counter,
    ) -> Result<PlannedLosses> {
        let loaded = prepared.session;
        let spliced = prepared.spliced()?;
        let files = &prepared.recipe.rule_files;
        let before = View::new(&loaded.transcript, &loaded.source, counter)
            .with_rule_files(files)
            .with_known_counts(&prepared.plan.counted);
        let after = View::new(&prepared.after, &spliced, counter).with_rule_files(files);
        let tokens = Change { before: before.context_tokens(), after: prepared.tokens_after };
        let lost = losses(&before, &after, &before, &[]);
        let mut changed_files = changed_files(&before);
        changed_files.retain(|name| {
            lost.pieces.iter().any(|piece| piece.kind == LostKind::Read && piece.name == *name)
        });
        let changed_files = changed_files.into_iter().collect();
        Ok(PlannedLosses { tokens, lost, changed_files })
    }
}

/// A compaction in the report, and the values that are needed to write the commands which restore
/// its texts.
struct ReportedCompaction<'a> {
    found: &'a Found,
    /// The session, as it is written in these commands.
    session: &'a str,
    /// The references of the texts in the current context.
    in_context: &'a HashSet<Ref>,
}

/// The losses of a compaction, without secrets and with the commands that get texts back.
fn describe_losses(
    lost: Losses,
    context_tokens: Change<Tokens>,
    model: Option<String>,
    reported: &ReportedCompaction<'_>,
    prices: &Catalogue,
    screen: &mut SessionScreen<'_>,
) -> CompactionLosses {
    let cost = |again: &RepeatedCall| {
        let usage = TokenUsage {
            input: again.result_tokens,
            output: again.call_tokens,
            ..TokenUsage::default()
        };
        prices.cost(model.as_deref()?, &usage)
    };
    let Losses { pieces, facts_before, facts_gone, facts_used } = lost;
    let mut facts_used = one_per_file(facts_used);
    let mut left: BTreeMap<LostKind, LossAmount> = BTreeMap::new();
    let mut again = AgainTotal { cost: Some(MicroDollars(0)), ..AgainTotal::default() };
    for piece in &pieces {
        let amount = left.entry(piece.kind).or_default();
        amount.pieces += 1;
        amount.tokens += piece.tokens;
        if let Some(it) = piece.again.as_ref().filter(|it| it.is_loss()) {
            again.calls += 1;
            again.tokens += it.call_tokens + it.result_tokens;
            again.cost = again.cost.zip(cost(it)).map(|(all, one)| all + one);
        }
    }
    let facts =
        FactTotals { before: facts_before, gone: facts_gone, used: facts_used.len() as u64 };
    facts_used.iter_mut().for_each(|it| it.fact = screened(it, screen));
    let pieces = pieces.into_iter().map(|mut lost| {
        lost.name = screen.text(&lost.name);
        let cost = lost.again.as_ref().and_then(cost);
        let (restore, show) = reported.commands(&lost);
        let back = reported.is_back(&lost);
        LostText { lost, cost, restore, show, back }
    });
    let pieces = pieces.collect();
    let Found { by, generation, recipe, time, line, .. } = reported.found;
    CompactionLosses {
        by: *by,
        generation: *generation,
        recipe: recipe.clone(),
        at: time.as_deref().map(|it| screen.text(&rfc3339(it))),
        line: *line,
        model: model.as_deref().map(|it| screen.text(it)),
        context_tokens,
        left,
        again,
        facts,
        facts_used,
        pieces,
        changed_files: BTreeSet::new(),
    }
}

/// A fact with secrets and personal data hidden. Facts are stored without the first slash of a
/// path. The slash is added for the search, which recognises a user's folder only with it.
fn screened(used: &UsedFact, screen: &mut SessionScreen<'_>) -> String {
    let fact = with_slash(used);
    if used.kind != FactKind::Path || fact.starts_with(['/', '~']) {
        return screen.text(&fact);
    }
    let shown = screen.text(&format!("/{fact}"));
    shown.strip_prefix('/').map_or(shown.clone(), str::to_owned)
}

impl ReportedCompaction<'_> {
    /// The references of a removed text whose bytes this compaction archived.
    fn archived<'p>(&self, piece: &'p LostPiece) -> impl Iterator<Item = &'p Ref> {
        piece.references.iter().filter(|it| self.found.removed.contains(it))
    }

    /// Whether this compaction archived bytes of a removed text, and all of them are in the context
    /// now.
    fn is_back(&self, piece: &LostPiece) -> bool {
        let mut archived = self.archived(piece).peekable();
        archived.peek().is_some() && archived.all(|it| self.in_context.contains(it))
    }

    /// The command that puts a removed text back into the session, and the command that prints it.
    fn commands(&self, piece: &LostPiece) -> (Option<String>, Option<String>) {
        let mut archived = self.archived(piece);
        // The reference to the first archived bytes that are not in the context again.
        let missing = self.archived(piece).find(|it| !self.in_context.contains(it));
        match (missing.or_else(|| archived.next()), piece.references.first()) {
            (Some(reference), _) => {
                let restore = format!("epitome restore {} --block {reference}", self.session);
                (Some(restore), Some(format!("epitome show {reference}")))
            }
            // The compaction archived nothing of the text.
            (None, Some(reference)) => {
                (None, Some(format!("epitome show {reference} --session {}", self.session)))
            }
            (None, None) => (None, None),
        }
    }
}

/// A time as RFC 3339. Some agents write milliseconds since 1970, which are converted; any other
/// text is returned unchanged.
fn rfc3339(time: &str) -> String {
    let millis = time.parse().ok().and_then(|it| Timestamp::from_millisecond(it).ok());
    millis.map_or_else(|| time.to_owned(), |it| it.to_string())
}

/// The model of the newest response in a context.
fn model_of(transcript: &Transcript) -> Option<String> {
    transcript.context().rev().find_map(|(_, entry)| entry.model.as_deref().map(str::to_owned))
}

/// The name of a session on a command line: its id if commands accept that for this file, otherwise
/// the path, with quotes if a shell needs them.
fn name_of(config: &Config, path: &Path, transcript: &Transcript) -> String {
    let id = transcript.head.id.as_deref().filter(|id| is_plain(id) && id.len() >= 8);
    let found = id.filter(|id| match agents::find_session(&config.agents, id, None) {
        SessionMatch::File(found) => is_same_file(&found, path),
        SessionMatch::AnyOf(_) | SessionMatch::Nothing => false,
    });
    if let Some(id) = found {
        return id.to_owned();
    }
    let path = path.to_string_lossy();
    if is_plain(&path) {
        return path.into_owned();
    }
    // A path that begins with a hyphen would be parsed as an option.
    let here = if path.starts_with('-') { "./" } else { "" };
    format!("'{here}{}'", path.replace('\'', r"'\''"))
}

/// Whether a text needs no quotes in a shell, and is no option.
fn is_plain(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with('-')
        && text.bytes().all(|it| it.is_ascii_alphanumeric() || b"-_./#".contains(&it))
}
