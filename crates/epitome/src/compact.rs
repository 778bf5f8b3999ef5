//! One compaction of one file: plan, check, archive, prove, replace. In this order, and nothing is
//! written before everything before it has succeeded.

mod digest;
mod native;
mod note;
mod savings;
mod shown;
mod size;
mod stands_for;
mod summary;
mod trim;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use epitome_formats::{Format, Native};
use epitome_model::{
    At, Block, Bytes, Counter, Part, RepeatedOutput, Source, Span, Splice, Text, Tokens,
    Transcript, Violation, WriteMode, weigh,
};
use epitome_passes::{
    Compaction, ContextKind, Kept, Options, Plan, Recipe, Side, View, recount, verify,
};

pub use note::Note;
pub use savings::{Saving, Savings};
pub use shown::Shown;
pub use stands_for::{StandIn, StandsFor};
pub(crate) use summary::no_summaries;

use tracing::field::Empty;
use tracing::{debug_span, info_span};

use crate::archive::{About, Archive, Digest, Draft, Generation, Hash, Made, WayBack};
use crate::error::{Error, ErrorKind, Result};
use crate::reference::{GitObjects, Reference, blob_id};
use crate::restore::Blobs;
use crate::session::{Loaded, format_of};
use crate::source::{FileSource, Spliced, copy, if_read};
use crate::store::{self, write_new};

/// How a compaction is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// As the agent itself does it ([`Native`]): by a record of its own behind the end of the
    /// session, which replaces for a resume what stands before, or by its marks on results.
    Native,
    /// In the records themselves: the file becomes smaller, too.
    Rewrite,
    /// As the agent's own record of a summary that stands for the beginning of the history.
    Summary,
}

/// What a compaction of a session comes to. Nothing of it is written yet.
pub struct CompactionPlan<'a, S> {
    /// The session.
    pub session: &'a Loaded<S>,
    /// The recipe.
    pub recipe: Recipe,
    /// How it is written.
    pub way: Way,
    /// The edits, and what is cut out of the middle.
    pub compaction: Compaction,
    /// What a summary or a digest is written in the place of; none without one.
    pub stands_for: Option<StandsFor>,
    /// What of the recipe is left out, and why.
    pub notes: Vec<Note>,
    /// The replacements that carry them out, each with the place of its edit.
    pub splices: Vec<(Splice, At)>,
    /// The bytes that are not sent any more, each with the place of its edit.
    pub removed: Vec<(Span, At)>,
    /// Invariants that it would break. If there are any, it is refused.
    pub violations: Vec<Violation>,
    /// The session afterwards, read anew.
    pub after: Transcript,
    /// What a resume sends afterwards, counted anew.
    pub tokens_after: Tokens,
    /// Length of the file afterwards.
    pub bytes_after: Bytes,
}

/// What the usual way of writing would save, of what a recipe takes from the context of a session:
/// nothing where that is not worth writing.
pub(crate) fn usual_saving(format: &Format, taken: Tokens, before: Tokens) -> Tokens {
    let is_native = format.native.is_some_and(|native| native.is_default());
    let way = if is_native { Way::Native } else { Way::Rewrite };
    if native::pays(way, format, taken, before) { taken } else { Tokens(0) }
}

impl<'a, S: Source> CompactionPlan<'a, S> {
    /// Plans a compaction that rewrites the session, carries it out in memory, reads the result,
    /// and asks the invariants.
    ///
    /// # Errors
    ///
    /// `ReadOnly` if sessions of this format are never written; `Broken` if the edits cannot be:
    /// it names the first that cannot.
    pub fn new(
        session: &'a Loaded<S>,
        recipe: &Recipe,
        counter: &dyn Counter,
    ) -> Result<CompactionPlan<'a, S>> {
        CompactionPlan::by(Way::Rewrite, session, recipe, counter)
    }

    /// Plans a compaction that is written in one of its ways.
    ///
    /// # Errors
    ///
    /// `Broken` if the edits cannot be written; `Unsupported` if this agent has no records for
    /// [`Way::Native`]; what reading the session says.
    pub fn by(
        way: Way,
        session: &'a Loaded<S>,
        recipe: &Recipe,
        counter: &dyn Counter,
    ) -> Result<CompactionPlan<'a, S>> {
        if_read(&session.source, CompactionPlan::planned(way, session, recipe, counter))
    }

    fn planned(
        way: Way,
        session: &'a Loaded<S>,
        recipe: &Recipe,
        counter: &dyn Counter,
    ) -> Result<CompactionPlan<'a, S>> {
        let mut planned = CompactionPlan::of_edits(way, session, recipe, counter)?;
        planned.notes.extend(recipe.is_summary_alone().then_some(Note::OnlyASummary));
        planned.notes.extend(within_target(&planned));
        if planned.compaction.not_reached.is_some() {
            return Ok(planned);
        }
        if let Some(rule) = recipe.stages.stored.trim {
            planned = trim::trimmed(planned, &rule, counter)?;
        }
        if let Some(rule) = &recipe.stages.stored.digest {
            planned = planned.digested(rule, counter)?;
        }
        planned.notes.extend(missed_for_pins(&planned));
        native::only_if_it_pays(&mut planned);
        Ok(planned)
    }

    /// Plans the edits of a recipe.
    fn of_edits(
        way: Way,
        session: &'a Loaded<S>,
        recipe: &Recipe,
        counter: &dyn Counter,
    ) -> Result<CompactionPlan<'a, S>> {
        let Loaded { format, source, transcript, .. } = session;
        let (format_name, recipe_name) = (format.name, recipe.name.as_str());
        let span = debug_span!(
            "session.plan",
            format = format_name,
            recipe = recipe_name,
            ?way,
            edits = Empty,
            before = Empty,
            after = Empty
        );
        let _span = span.clone().entered();
        let write = session.writer()?;
        let native = native_of(format, way)?;
        let options = Options {
            kind: ContextKind::Stored,
            counter,
            thinking_is_bound: bound_in(format),
            counted: &[],
        };
        let mut compaction = epitome_passes::compact(transcript, source, recipe, &options);
        if let Some(native) = &native {
            native::only_what_is_reached(native, session, &mut compaction, counter)?;
        }
        let edits = compaction.edits();
        let unwritten =
            |err| Error::new(ErrorKind::Broken, "an edit cannot be written").because(err);
        let replaced = write(transcript, source, &edits).map_err(unwritten)?;
        // A record that is added behind the end takes no bytes away.
        let taken = replaced.iter().filter(|(splice, _)| splice.span.start < Source::len(source));
        let removed = taken.map(|(splice, at)| (splice.span, *at)).collect();
        let splices = match &native {
            None => replaced,
            Some(native) => native::splices(native, transcript, source, &edits)
                .map_err(|err| native::passed_over(format, err.why))?,
        };
        let spliced = Spliced::new(source, splices.iter().map(|(s, _)| s.clone()).collect())?;
        let after = (format.read)(&spliced, &mut ());
        let before_side = Side { transcript, source };
        let after_side = Side { transcript: &after, source: &spliced };
        let mode = native.as_ref().map_or(WriteMode::Splice, Native::mode);
        let plan = Plan::Edits(&compaction, mode);
        let violations = verify(before_side, after_side, &plan, format.invariants, counter);
        let tokens_after = sent_after(native.as_ref(), &compaction, after_side, counter);
        let bytes_after = Bytes(Source::len(&spliced));
        span.record("edits", edits.len());
        span.record("before", compaction.tokens_before.0);
        span.record("after", tokens_after.0);
        Ok(CompactionPlan {
            session,
            recipe: recipe.clone(),
            way,
            compaction,
            stands_for: None,
            notes: Vec::new(),
            splices,
            removed,
            violations,
            after,
            tokens_after,
            bytes_after,
        })
    }

    /// Plans a compaction in the way that sessions of this agent get if nobody says another: the
    /// agent's own where that is its default and holds all there is, else rewriting.
    ///
    /// # Errors
    ///
    /// As [`CompactionPlan::by`].
    pub fn as_usual(
        session: &'a Loaded<S>,
        recipe: &Recipe,
        counter: &dyn Counter,
    ) -> Result<CompactionPlan<'a, S>> {
        let plan = |way| CompactionPlan::by(way, session, recipe, counter);
        let is_default = session.format.native.is_some_and(|native| native.is_default());
        match is_default.then(|| plan(Way::Native)) {
            Some(Ok(planned)) if planned.violations.is_empty() => Ok(planned),
            // A session with something in it that the record cannot hold.
            Some(_) | None => plan(Way::Rewrite),
        }
    }

    /// The session afterwards, laid over the one before.
    ///
    /// # Errors
    ///
    /// Never, as the splices have been laid once before; the type says it might.
    pub fn spliced(&self) -> Result<Spliced<'_>> {
        let splices = self.splices.iter().map(|(splice, _)| splice.clone()).collect();
        Spliced::new(&self.session.source, splices)
    }

    /// Refuses a compaction that would break an invariant; `path` names the session.
    ///
    /// # Errors
    ///
    /// `Invariant`, with the first violations as its causes.
    pub(crate) fn check_invariants(&self, path: &Path) -> Result<()> {
        check_invariants(&self.violations, path)?;
        self.check_is_known_again().map_err(|err| err.at(path))
    }

    /// Refuses a compaction after which the archive would not know the session by its file: two
    /// logs in one file may look like the other's when records of the first are shorter.
    fn check_is_known_again(&self) -> Result<()> {
        let spliced = self.spliced()?;
        let (before, after) = (format_of(&self.session.source), format_of(&spliced));
        let is_same_agent = before.map(|it| it.name) == after.map(|it| it.name);
        if is_same_agent && self.session.transcript.head.id == self.after.head.id {
            return Ok(());
        }
        let what = "this file holds the logs of two sessions: compacted, it would be taken for the \
                    other one, and nothing could be restored";
        Err(Error::new(ErrorKind::Refused, what))
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.splices.is_empty()
    }

    /// What is kept whole, and why.
    pub fn kept(&self) -> &Kept {
        &self.compaction.kept
    }
}

/// Refuses a compaction of the session at `path` that would break an invariant.
///
/// # Errors
///
/// `Invariant`, with the first violations as its causes.
pub(crate) fn check_invariants(violations: &[Violation], path: &Path) -> Result<()> {
    let causes = violations.iter().take(5).rev().fold(None, |cause: Option<Error>, violation| {
        let err = Error::new(ErrorKind::Invariant, violation.to_string());
        Some(match cause {
            Some(cause) => err.because(cause),
            None => err,
        })
    });
    match causes {
        None => Ok(()),
        Some(first) => {
            let what = "the compaction would violate an invariant";
            Err(Error::new(ErrorKind::Invariant, what).at(path).because(first))
        }
    }
}

/// What a resume sends of the result. Where a record behind the end stands for what is before it,
/// all is counted anew, else what was edited.
fn sent_after(
    native: Option<&Native>,
    compaction: &Compaction,
    after: Side<'_>,
    counter: &dyn Counter,
) -> Tokens {
    match native {
        None | Some(Native::Mark(_)) => recount(compaction, after, counter),
        Some(Native::Append(_)) => weigh(after.transcript, after.source, counter).total(),
    }
}

/// The agent's own way, if that is how a compaction is written.
fn native_of(format: &Format, way: Way) -> Result<Option<Native>> {
    match way {
        Way::Rewrite => Ok(None),
        Way::Native | Way::Summary => format.native.ok_or_else(|| no_records(format)).map(Some),
    }
}

fn no_records(format: &Format) -> Error {
    let what = format!("{} has no way of its own to shorten a session", format.name);
    Error::new(ErrorKind::Unsupported, what).with_hint("its sessions are rewritten")
}

pub(crate) fn bound_in(format: &Format) -> fn(&str) -> bool {
    format.thinking_is_bound
}

/// Applies a planned compaction to the session file: archive, prove, replace.
///
/// # Errors
///
/// `Refused` if an invariant would break; what the archive and the store say. The session is then
/// what it was.
pub fn apply(
    planned: &CompactionPlan<'_, &FileSource>,
    file: &store::Session,
    archive: &Archive,
    counter: &dyn Counter,
    made: impl Into<Made>,
) -> Result<Generation> {
    file.check_comes_back(planned.spliced()?.splices())?;
    let generation = archive_generation(planned, file.path(), archive, counter, made.into())?;
    let spliced = planned.spliced()?;
    let _span = info_span!("session.replace", bytes = planned.bytes_after.0).entered();
    if let Err(err) = file.replace(|out| spliced.copy_to(out)) {
        archive.withdraw_if_unused(&generation, file.path());
        return Err(err);
    }
    archive.remove_repeated(&generation);
    Ok(generation)
}

/// Applies a planned compaction to a copy of the session at `to`; the session stays.
///
/// # Errors
///
/// As [`apply`], and `Disk` if the copy cannot be written.
pub fn apply_to(
    planned: &CompactionPlan<'_, impl Source>,
    to: &Path,
    archive: &Archive,
    counter: &dyn Counter,
    made: impl Into<Made>,
) -> Result<Generation> {
    let generation = archive_generation(planned, to, archive, counter, made.into())?;
    let spliced = planned.spliced()?;
    write_new(to, |out| spliced.copy_to(out)).inspect_err(|_| {
        // A new file is written whole or not at all.
        archive.withdraw(&generation);
    })?;
    Ok(generation)
}

/// Puts what goes into the archive and proves that it comes back.
pub(crate) fn archive_generation<S: Source>(
    planned: &CompactionPlan<'_, S>,
    path: &Path,
    archive: &Archive,
    counter: &dyn Counter,
    made: Made,
) -> Result<Generation> {
    if_read(&planned.session.source, archived(planned, path, archive, counter, made))
}

fn archived<S: Source>(
    planned: &CompactionPlan<'_, S>,
    path: &Path,
    archive: &Archive,
    counter: &dyn Counter,
    made: Made,
) -> Result<Generation> {
    planned.check_invariants(path)?;
    let format = planned.session.format.name;
    let _span =
        debug_span!("session.archive", format, edits = planned.compaction.edits.len()).entered();
    let key = planned.session.key(path);
    let spliced = planned.spliced()?;
    let way = WayBack::of(&planned.session.source, &spliced)?;
    let mut pack = archive.begin(&key)?;
    let source = &planned.session.source;
    put_all(planned, counter, |span, about| pack.put(&source.at(span), about()).map(drop))?;
    // Otherwise the pack holds other bytes than were there.
    if_read(source, Ok(()))?;
    let generation = pack.commit(draft(planned, path, way, made))?;
    if let Err(err) = prove(&spliced, &generation, &archive.blobs(&key)) {
        archive.withdraw(&generation);
        return Err(err);
    }
    Ok(generation)
}

/// Why a plan has no edits, if the reason is that the target is reached already.
fn within_target<S>(planned: &CompactionPlan<'_, S>) -> Option<Note> {
    let Compaction { edits, not_reached, tokens_before: tokens, .. } = &planned.compaction;
    // Per cent of a known window are tokens by now.
    let target = planned.recipe.target.stored?.tokens(None)?;
    let is_why = edits.is_empty() && not_reached.is_none() && *tokens <= target;
    is_why.then_some(Note::WithinTarget { tokens: *tokens, target })
}

/// Why a target is missed, if the reason is what sets rules.
fn missed_for_pins<S>(planned: &CompactionPlan<'_, S>) -> Option<Note> {
    let target = planned.recipe.target.stored?.tokens(None)?;
    let (after, tokens) = (planned.tokens_after, planned.compaction.pinned);
    let is_why = after > target && after - tokens <= target;
    is_why.then_some(Note::Pinned { tokens, target })
}

fn draft<S>(planned: &CompactionPlan<'_, S>, path: &Path, way: WayBack, made: Made) -> Draft {
    let by_pass = planned.compaction.by_pass().into_iter();
    Draft {
        // Told from the root: `gc` asks from other folders whether it is still there.
        path: std::path::absolute(path).unwrap_or_else(|_| path.to_owned()),
        recipe: planned.recipe.name.clone(),
        made: made.at,
        run: made.run,
        part_of: made.part_of,
        parts: made.parts,
        before: way.before,
        after: way.after,
        records: way.records,
        tokens_before: planned.compaction.tokens_before,
        tokens_after: planned.tokens_after,
        edits: by_pass.map(|(pass, n)| (pass.to_owned(), n)).collect(),
        shared: Some(way.shared),
    }
}

/// Gives `put` the places of the removed bytes, and a function that returns what they were.
fn put_all<S: Source>(
    planned: &CompactionPlan<'_, S>,
    counter: &dyn Counter,
    mut put: impl FnMut(Span, &dyn Fn() -> About) -> Result<()>,
) -> Result<()> {
    let Loaded { source, transcript, .. } = planned.session;
    let view = View::new(transcript, source, counter);
    let passes: HashMap<At, &str> =
        planned.compaction.edits.iter().map(|it| (it.edit.at, it.edit.pass)).collect();
    let references = References::of(planned.session);
    for (span, at) in &planned.removed {
        put(*span, &|| About {
            pass: passes.get(at).copied().unwrap_or_default().to_owned(),
            reference: references.find(&view, *at),
            ..about(&view, *at, *span)
        })?;
    }
    // What stood where a record or a mark of the agent's stands now: nothing, or no mark.
    let end = Source::len(source);
    let added = |splice: &Splice| planned.way != Way::Rewrite || splice.span.start == end;
    for (splice, _) in planned.splices.iter().filter(|(splice, _)| added(splice)) {
        let at_end = splice.span.start == end;
        let what = if at_end { "the end of the session" } else { "where a mark stands" };
        put(splice.span, &|| About { what: what.into(), ..About::default() })?;
    }
    Ok(())
}

/// What removed bytes were, for whoever asks to see them.
fn about(view: &View<'_>, at: At, span: Span) -> About {
    let item = &view.transcript.items[at.item()];
    let mut spans: Vec<Span> = Vec::new();
    let mut media = None;
    let block = |idx: usize| item.entry().and_then(|entry| entry.blocks.get(idx));
    match at {
        At::Block { block: idx, .. } => match block(idx) {
            Some(Block::Output(output) | Block::Repeated(RepeatedOutput { output, .. })) => {
                spans.extend(output.parts.iter().filter_map(|part| match part {
                    Part::Text(text) => text.span(),
                    Part::Image(_) | Part::Opaque(_) => None,
                }));
            }
            Some(Block::Thinking(thinking)) => {
                spans.extend(thinking.text.iter().filter_map(Text::span));
            }
            Some(Block::Image(image)) => {
                media = Some(image.media.to_string());
                spans.push(image.data);
            }
            Some(_) | None => {}
        },
        At::Field { block: idx, field, .. } => {
            if let Some(Block::Call(call)) = block(idx) {
                spans.extend(call.fields.get(field).and_then(|field| field.text.span()));
            }
        }
        At::Part { block: idx, part, .. } => {
            if let Some(Block::Output(output)) = block(idx)
                && let Some(Part::Image(image)) = output.parts.get(part)
            {
                media = Some(image.media.to_string());
                spans.push(image.data);
            }
        }
        At::Copy { .. } => {}
    }
    let texts = spans
        .into_iter()
        .filter(|text| span.contains(*text))
        .filter_map(|text| {
            let start = u32::try_from(text.start - span.start).ok()?;
            Some((start, u32::try_from(text.end - span.start).ok()?))
        })
        .collect();
    let line = item.record().line;
    About { what: view.describe(at), line, texts, media, ..About::default() }
}

/// Reads the compacted session with the archived bytes in the place of what stands for them, and
/// compares the hash with that of the session as it was.
fn prove(spliced: &Spliced<'_>, generation: &Generation, blobs: &dyn Blobs) -> Result<()> {
    let mut hasher = blake3::Hasher::new();
    let mut from = 0;
    for record in &generation.records {
        for splice in &record.splices {
            let at = record.at + splice.at;
            copy(spliced, from..at, &mut hasher)?;
            let blob = blobs.blob(generation.number, &splice.blob)?;
            hasher.update(&blob);
            from = at + splice.len;
        }
    }
    copy(spliced, from..Source::len(spliced), &mut hasher)?;
    let restored = Digest { len: hasher.count(), blake3: hasher.finalize().into() };
    if restored == generation.before {
        return Ok(());
    }
    let what = "the archive would not give the session back as it is; nothing was changed";
    Err(Error::new(ErrorKind::Broken, what))
}

/// Finds files that hold the same text as what goes: on disk, or in the project's repository.
struct References {
    cwd: Option<PathBuf>,
    git: Option<GitObjects>,
}

impl References {
    fn of<S>(session: &Loaded<S>) -> References {
        let cwd = session.transcript.head.cwd.as_deref().map(PathBuf::from);
        let cwd = cwd.filter(|cwd| cwd.is_absolute() && cwd.is_dir());
        let git = cwd.as_deref().and_then(|cwd| GitObjects::around(&cwd.join("a file")));
        References { cwd, git }
    }

    fn find(&self, view: &View<'_>, at: At) -> Option<Reference> {
        // Without the project's folder there is nothing to compare with.
        let cwd = self.cwd.as_deref()?;
        let (path, text) = view.file_text(at)?;
        let path = cwd.join(path);
        Reference::find(&text, &path).or_else(|| self.in_git(&path, text))
    }

    /// Whole files that git keeps, whatever stands on disk now. Agents show them with and without
    /// their last line feed.
    fn in_git(&self, path: &Path, text: String) -> Option<Reference> {
        let git = self.git.as_ref()?;
        [format!("{text}\n"), text].into_iter().find_map(|text| {
            let blob = blob_id(text.as_bytes());
            git.hold(&blob).then(|| Reference {
                path: path.to_string_lossy().into_owned(),
                blob: Some(blob),
                first_line: None,
                lines: None,
                blake3: Hash::of(text.as_bytes()),
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use epitome_model::Invariant;

    use super::*;

    #[test]
    fn a_refusal_names_the_session_and_the_first_five_violations() {
        let violation =
            |line| Violation { invariant: Invariant::Pairing, line, what: "unanswered".to_owned() };
        let violations: Vec<Violation> = (1..=7).map(violation).collect();
        let err = check_invariants(&violations, Path::new("/a")).expect_err("it is refused");
        assert_eq!(err.kind(), ErrorKind::Invariant);
        assert_eq!(err.to_string(), "the compaction would violate an invariant: /a");
        let (mut causes, mut cause) = (Vec::new(), err.source());
        while let Some(err) = cause {
            causes.push(err.to_string());
            cause = err.source();
        }
        let first: Vec<String> = violations.iter().take(5).map(ToString::to_string).collect();
        assert_eq!(causes, first);
        assert!(check_invariants(&[], Path::new("/a")).is_ok());
    }
}
