//! Compacts a stored session in memory.
//!
//! The stages plan one after the other: each works on the result of the earlier ones. The format
//! writes the plan into the session's bytes. The result is read again as if another program had
//! written it, compared with the original, and counted. Nothing is written to disk here.
//!
//! `Planner::plan` runs the stages, `write` removes edits that the agent's own way cannot express,
//! and `write_and_verify` does the rest. A digest and a summary do not need `write`.
//!
//! `PreparedCompaction::in_default_way`, `in_way` and `with_summary` compact a session.
//! `PreparedCompaction::ingested` and [`RequestDigest`] do a part of the same for the body of a
//! request, which is read like a session.

mod digest;
mod ingest;
mod native;
mod note;
mod replaced_items;
mod request;
mod savings;
mod shown_edits;
mod summary;
mod trim;

use std::path::Path;

use epitome_error::{Error, ErrorKind, Result};
use epitome_formats::session::format_of;
use epitome_formats::splice::if_read;
use epitome_formats::{Format, Loaded, Spliced, Unwritable};
use epitome_model::{
    At, Bytes, Counter, Source, Span, Splice, Tokens, Transcript, Violation, WriteMode, weigh,
};
use epitome_passes::{
    ContextKind, KeptParts, Options, Plan, Recipe, Side, View, add_edits, begin, recount, verify,
};
use tracing::debug_span;
use tracing::field::Empty;

pub use ingest::unanswered;
pub use native::default_way_saving;
pub use note::Note;
pub use replaced_items::{ReplacedItems, ReplacementKind};
pub use request::{RequestDigest, RequestRule};
pub use savings::{Saving, Savings};
pub use shown_edits::ShownEdit;
pub use summary::{check_holds_a_summary, no_summaries};

/// How edits are written. Together with the session's format it determines the [`WriteMode`]:
/// `Rewrite` is [`WriteMode::Splice`], `Summary` is [`WriteMode::Append`], and `Native` is
/// [`WriteMode::Append`] or [`WriteMode::Mark`], whichever the format has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// As the agent itself writes it ([`epitome_formats::Native`]): as records at the end of the
    /// session, or as marks on results.
    Native,
    /// Into the records that hold the edited content: not only the context but also the file
    /// becomes smaller.
    Rewrite,
    /// As the agent's own record of a summary, which replaces the beginning of the history. A
    /// summary and a digest are written like this.
    Summary,
}

/// A compaction of a session that has been carried out in memory and is not yet written to disk.
///
/// ```
/// use epitome_engine::stored::PreparedCompaction;
/// use epitome_formats::Loaded;
/// use epitome_passes::built_in;
/// use epitome_tokens::Estimate;
///
/// # let line = |id: usize, parent: usize, message: String| {
/// #     let ids = format!(r#""id":"{id}","parentId":"{parent}""#);
/// #     format!(r#"{{"type":"message",{ids},"message":{message}}}"#) + "\n"
/// # };
/// # let mut bytes = r#"{"type":"session","version":3,"id":"s","cwd":"/p"}"#.to_owned() + "\n";
/// # let text = "fn main() {}\\n".repeat(300);
/// # for n in 1..10 {
/// #     let call = r#""type":"toolCall","name":"read","arguments":{"path":"a.rs"}"#;
/// #     let call = format!(r#"{{"role":"assistant","content":[{{"id":"c{n}",{call}}}]}}"#);
/// #     let content = format!(r#"[{{"type":"text","text":"{text}"}}]"#);
/// #     let result = r#""role":"toolResult","toolName":"read","isError":false"#;
/// #     let result = format!(r#"{{{result},"toolCallId":"c{n}","content":{content}}}"#);
/// #     bytes += &line(3 * n, 3 * n - 1, r#"{"role":"user","content":"Read it."}"#.to_owned());
/// #     bytes += &line(3 * n + 1, 3 * n, call);
/// #     bytes += &line(3 * n + 2, 3 * n + 1, result);
/// # }
/// // `bytes` is a session of pi in which a file is read nine times.
/// let session = Loaded::read(bytes.into_bytes(), None)?;
/// let recipe = built_in("s06").expect("a built-in recipe");
/// let prepared = PreparedCompaction::new(&session, &recipe, &Estimate::new())?;
/// prepared.check_invariants("session.jsonl".as_ref())?;
/// assert!(prepared.tokens_after < prepared.plan.tokens_before);
/// // The compacted session has nothing left to remove.
/// let mut compacted = Vec::new();
/// prepared.spliced()?.copy_to(&mut compacted)?;
/// let session = Loaded::read(compacted, None)?;
/// assert!(PreparedCompaction::new(&session, &recipe, &Estimate::new())?.is_empty());
/// # Ok::<(), epitome_error::Error>(())
/// ```
pub struct PreparedCompaction<'a, S> {
    /// The original session.
    pub session: &'a Loaded<S>,
    /// The recipe that planned the edits.
    pub recipe: Recipe,
    /// How the edits are written.
    pub way: Way,
    /// The plan: its edits, with their token counts.
    pub plan: Plan,
    /// What a summary or a digest replaces; `None` if the plan has neither.
    pub stands_for: Option<ReplacedItems>,
    /// Why parts of the recipe were left out, or why the compaction does less than the recipe asks
    /// for.
    pub notes: Vec<Note>,
    /// The replacements of bytes that carry out the edits, each with the position of its edit.
    pub splices: Vec<(Splice, At)>,
    /// The ranges of the session that the edits of blocks replace or remove, each with the position
    /// of its edit. A summary, a digest or a cut adds none. The archive keeps the bytes of these
    /// ranges. In a rewrite, `splices` replaces them. If records are appended or results are
    /// marked, the bytes remain in the file.
    pub unsent: Vec<(Span, At)>,
    /// The invariants that the compaction would violate. If there are any, the compaction must not
    /// be written.
    pub violations: Vec<Violation>,
    /// The transcript of the compacted session, read from its bytes.
    pub after: Transcript,
    /// Tokens that a resume sends after the compaction, counted again.
    pub tokens_after: Tokens,
    /// The length of the session after the compaction.
    pub bytes_after: Bytes,
}

/// What the stages of a recipe planned.
enum Staged<'a, S> {
    /// A digest, which can be written in one way only: it is written and verified already.
    Digest(Box<PreparedCompaction<'a, S>>),
    /// Edits, and the parts of the recipe that are left out.
    Edits(Box<Plan>, Vec<Note>),
}

impl<'a, S: Source> PreparedCompaction<'a, S> {
    /// Makes a compaction with [`Way::Rewrite`]. If the recipe finds nothing to do, the result [is
    /// empty](PreparedCompaction::is_empty).
    ///
    /// # Errors
    ///
    /// `ReadOnly` if sessions of this format are never written; `Broken`, with the first edit that
    /// cannot be written; `Refused` if a pinned rule (one that should stay in the context after
    /// every compaction) alone exceeds the budget of the digest; the error of reading the session.
    pub fn new(
        session: &'a Loaded<S>,
        recipe: &Recipe,
        counter: &dyn Counter,
    ) -> Result<PreparedCompaction<'a, S>> {
        PreparedCompaction::in_way(Way::Rewrite, session, recipe, counter)
    }

    /// Makes a compaction that is written in the given way. A digest is written with
    /// [`Way::Summary`], whatever the given way is.
    ///
    /// # Errors
    ///
    /// `ReadOnly` if sessions of this format are never written; `Broken` if the edits cannot be
    /// written; `Unsupported` if this agent has no way of its own, for [`Way::Native`]; `Refused`
    /// if this way is not possible in this session, or if a pinned rule alone exceeds the budget of
    /// the digest; the error of reading the session.
    pub fn in_way(
        way: Way,
        session: &'a Loaded<S>,
        recipe: &Recipe,
        counter: &dyn Counter,
    ) -> Result<PreparedCompaction<'a, S>> {
        let planner = Planner { session, recipe, counter };
        let tried = planner.plan(way).and_then(|staged| match staged {
            Staged::Digest(done) => Ok(*done),
            Staged::Edits(plan, notes) => planner.write(way, *plan, notes),
        });
        if_read(&session.source, tried)
    }

    /// Makes a compaction in the default way of this agent. If that is the agent's own way, and
    /// possible in this session, the edits that it cannot express are left out. Otherwise the edits
    /// are written into the records.
    ///
    /// # Errors
    ///
    /// The errors of [`PreparedCompaction::in_way`].
    pub fn in_default_way(
        session: &'a Loaded<S>,
        recipe: &Recipe,
        counter: &dyn Counter,
    ) -> Result<PreparedCompaction<'a, S>> {
        let mode = session.format.capabilities(&session.transcript).usual_mode(session.format);
        if mode == WriteMode::Splice {
            return PreparedCompaction::in_way(Way::Rewrite, session, recipe, counter);
        }
        let planner = Planner { session, recipe, counter };
        let tried = planner.plan(Way::Native).and_then(|staged| match staged {
            Staged::Digest(done) => Ok(*done),
            Staged::Edits(plan, notes) => planner.write_natively_or_rewrite(*plan, notes),
        });
        if_read(&session.source, tried)
    }

    /// The compacted session: the original bytes with the replacements laid over them.
    ///
    /// # Errors
    ///
    /// None in practice: the same replacements have been applied before.
    pub fn spliced(&self) -> Result<Spliced<'_>> {
        let splices = self.splices.iter().map(|(splice, _)| splice.clone()).collect();
        Spliced::new(&self.session.source, splices)
    }

    /// The characters that a resume sends after the compaction, as a target in characters counts
    /// them.
    ///
    /// # Errors
    ///
    /// Those of [`PreparedCompaction::spliced`].
    pub fn chars_after(&self, counter: &dyn Counter) -> Result<u64> {
        let spliced = self.spliced()?;
        Ok(View::new(&self.after, &spliced, counter).context_chars())
    }

    /// Returns an error if the compaction would violate an invariant, or if the archive could not
    /// recognise the compacted session. `path` is the path of the session in the error.
    ///
    /// # Errors
    ///
    /// `Invariant`, with the first violations as its causes; `Refused` if the archive could not
    /// recognise the compacted session.
    pub fn check_invariants(&self, path: &Path) -> Result<()> {
        check_invariants(&self.violations, path)?;
        self.check_is_known_again().map_err(|err| err.at(path))
    }

    /// Returns an error if the archive could not recognise the compacted session by its file. That
    /// can happen if a file contains two logs: shortened records of one may look like those of the
    /// other.
    fn check_is_known_again(&self) -> Result<()> {
        let spliced = self.spliced()?;
        let before = format_of(&self.session.source);
        let after = format_of(&spliced);
        let is_same_agent = before.map(|it| it.name) == after.map(|it| it.name);
        if is_same_agent && self.session.transcript.head.id == self.after.head.id {
            return Ok(());
        }
        let what = "this file holds the logs of two sessions: compacted, it would be taken for the \
                    other one, and nothing could be restored";
        Err(Error::new(ErrorKind::Refused, what))
    }

    /// Whether the compaction changes nothing.
    pub fn is_empty(&self) -> bool {
        self.splices.is_empty()
    }

    /// What the recipe keeps whole, and why.
    pub fn kept(&self) -> &KeptParts {
        &self.plan.kept
    }
}

/// A session, and the recipe and the counter with which a compaction of it is planned and written.
struct Planner<'a, 'r, S> {
    session: &'a Loaded<S>,
    recipe: &'r Recipe,
    counter: &'r dyn Counter,
}

impl<'a, S: Source> Planner<'a, '_, S> {
    fn options(&self) -> Options<'_> {
        Options {
            kind: ContextKind::Stored,
            counter: self.counter,
            thinking_is_bound: self.session.format.thinking_is_bound,
            counted: &[],
        }
    }

    fn view(&self) -> View<'_> {
        let Loaded { source, transcript, .. } = self.session;
        View::new(transcript, source, self.counter).with_rule_files(&self.recipe.rule_files)
    }

    /// Runs the stages of the recipe: a digest of the old part, or else a middle cut, and the
    /// passes over what the cut leaves. Plans no edits if the recipe's trigger is not reached.
    fn plan(&self, way: Way) -> Result<Staged<'a, S>> {
        let mode = mode_of(way, self.session)?;
        let stages = &self.recipe.stages.stored;
        let mut notes =
            Vec::from_iter(self.recipe.is_summary_alone().then_some(Note::OnlyASummary));
        let mut view = self.view();
        // Counts, checks the trigger, and determines what is kept. There are no edits yet.
        let mut plan = begin(&mut view, self.recipe, &self.options());
        if plan.not_reached.is_some() {
            return Ok(Staged::Edits(Box::new(plan), notes));
        }
        if let Some(rule) = &stages.digest
            && let Some(digest) = self.digest(rule, &view, &plan, &mut notes)?
        {
            notes.extend(missed_for_pins(&digest));
            return Ok(Staged::Digest(Box::new(PreparedCompaction { notes, ..digest })));
        }
        match stages.trim.and_then(|rule| self.cut(&rule, mode, &plan.kept, &mut notes)) {
            Some(cut) => plan = self.plan_after_cut(cut, plan),
            None => add_edits(&mut plan, &mut view, self.recipe, &self.options()),
        }
        notes.extend(within_target(self.recipe, &plan));
        Ok(Staged::Edits(Box::new(plan), notes))
    }

    /// Writes a plan in the agent's own way. If that is impossible in this session, or would
    /// violate an invariant, the plan is written into the existing records, except cuts of whole
    /// messages.
    fn write_natively_or_rewrite(
        &self,
        plan: Plan,
        notes: Vec<Note>,
    ) -> Result<PreparedCompaction<'a, S>> {
        match self.write(Way::Native, plan.clone(), notes.clone()) {
            Ok(planned) if planned.violations.is_empty() => Ok(planned),
            // A failure of the agent's own way is not reported: the rewrite succeeds, or fails with
            // an error of its own.
            Ok(_) | Err(_) => {
                let mut plan = plan;
                // A rewrite cannot remove whole messages.
                plan.edits.retain(|planned| !matches!(planned.edit.at, At::Items { .. }));
                self.write(Way::Rewrite, plan, notes)
            }
        }
    }

    /// Writes those edits of a plan that can be expressed in the given way. If an appended record
    /// would save too little, writes none and adds a note.
    fn write(
        &self,
        way: Way,
        mut plan: Plan,
        notes: Vec<Note>,
    ) -> Result<PreparedCompaction<'a, S>> {
        if let (Way::Native, Some(native)) = (way, &self.session.format.native) {
            native::only_what_is_reached(native, self.session, &mut plan, self.counter)?;
        }
        let mut planned = self.write_and_verify(way, plan)?;
        planned.notes = notes;
        planned.notes.extend(missed_for_pins(&planned));
        native::only_if_it_pays(&mut planned);
        Ok(planned)
    }

    /// Carries out a plan in memory: writes it, reads the result again, verifies and counts it.
    fn write_and_verify(&self, way: Way, plan: Plan) -> Result<PreparedCompaction<'a, S>> {
        let session = self.session;
        let Loaded { format, source, transcript, .. } = session;
        let span = debug_span!(
            "session.plan",
            format = format.name,
            recipe = self.recipe.name.as_str(),
            ?way,
            edits = plan.edits.len(),
            before = plan.tokens_before.0,
            after = Empty
        );
        let _span = span.clone().entered();
        let mode = mode_of(way, session)?;
        let splices = format
            .write(transcript, source, &plan.edits(), mode)
            .map_err(|err| unwritten(format, way, err))?;
        let unsent = self.unsent(&plan, mode, &splices)?;
        let spliced = Spliced::new(source, splices.iter().map(|(s, _)| s.clone()).collect())?;
        let after = (format.read)(&spliced, &mut ());
        let before_side = Side { transcript, source };
        let after_side = Side { transcript: &after, source: &spliced };
        let violations = match splices.is_empty() {
            true => Vec::new(),
            false => verify(before_side, after_side, &plan, mode, format.invariants, self.counter),
        };
        let tokens_after = match mode {
            WriteMode::Splice | WriteMode::Mark => recount(&plan, after_side, self.counter),
            // Appended records may replace any earlier record, so everything is counted again.
            WriteMode::Append => weigh(&after, &spliced, self.counter).total(),
        };
        let bytes_after = Bytes(Source::len(&spliced));
        span.record("after", tokens_after.0);
        Ok(PreparedCompaction {
            session,
            recipe: self.recipe.clone(),
            way,
            plan,
            stands_for: None,
            notes: Vec::new(),
            splices,
            unsent,
            violations,
            after,
            tokens_after,
            bytes_after,
        })
    }

    /// The ranges for [`PreparedCompaction::unsent`]: those that the edits of blocks replace, or
    /// would replace in a rewrite.
    fn unsent(
        &self,
        plan: &Plan,
        mode: WriteMode,
        splices: &[(Splice, At)],
    ) -> Result<Vec<(Span, At)>> {
        let Loaded { format, source, transcript, .. } = self.session;
        // A splice at the end of the source appends a record, and replaces nothing.
        let end = Source::len(source);
        if mode == WriteMode::Splice {
            return Ok(replaced_spans(splices, end));
        }
        let edits: Vec<_> = plan.block_edits().map(|planned| planned.edit.clone()).collect();
        let in_records = format
            .write(transcript, source, &edits, WriteMode::Splice)
            .map_err(|err| unwritten(format, Way::Rewrite, err))?;
        Ok(replaced_spans(&in_records, end))
    }
}

/// The spans of the source, which ends at `end`, that splices replace.
fn replaced_spans(splices: &[(Splice, At)], end: u64) -> Vec<(Span, At)> {
    let replaced = splices.iter().filter(|(splice, _)| splice.span.start < end);
    replaced.map(|(splice, at)| (splice.span, *at)).collect()
}

/// The mode in which edits are written in a given way into a session.
///
/// # Errors
///
/// `ReadOnly` if sessions of this format are never written; `Unsupported` if this agent has no way
/// of its own.
fn mode_of<S>(way: Way, session: &Loaded<S>) -> Result<WriteMode> {
    session.writer()?;
    match (way, &session.format.native) {
        (Way::Rewrite, _) => Ok(WriteMode::Splice),
        (Way::Summary, _) => Ok(WriteMode::Append),
        (Way::Native, Some(native)) => Ok(native.mode()),
        (Way::Native, None) => {
            let what =
                format!("{} has no way of its own to shorten a session", session.format.name);
            Err(Error::new(ErrorKind::Unsupported, what).with_hint("its sessions are rewritten"))
        }
    }
}

fn unwritten(format: &Format, way: Way, err: Unwritable) -> Error {
    match way {
        Way::Rewrite => Error::new(ErrorKind::Broken, "an edit cannot be written").because(err),
        Way::Native => native::passed_over(format, err.why),
        Way::Summary => {
            let what = format!("the session cannot hold a summary: {}", err.why);
            Error::new(ErrorKind::Refused, what)
        }
    }
}

/// Returns an error if there are violations. `path` is the path of the session in the error.
///
/// # Errors
///
/// `Invariant`, with the first violations as its causes.
pub fn check_invariants(violations: &[Violation], path: &Path) -> Result<()> {
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

/// A note if a plan has no edits because the context is within the target already.
fn within_target(recipe: &Recipe, plan: &Plan) -> Option<Note> {
    let Plan { edits, tokens_before: tokens, .. } = plan;
    // If the window is known, a target in per cent was converted to tokens before.
    let target = recipe.target.stored?.tokens(None)?;
    let is_why = edits.is_empty() && *tokens <= target;
    is_why.then_some(Note::WithinTarget { tokens: *tokens, target })
}

/// A note if the target is missed because of pinned rules.
fn missed_for_pins<S>(planned: &PreparedCompaction<'_, S>) -> Option<Note> {
    let target = planned.recipe.target.stored?.tokens(None)?;
    let after = planned.tokens_after;
    let tokens = planned.plan.pinned;
    let is_why = after > target && after - tokens <= target;
    is_why.then_some(Note::Pinned { tokens, target })
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
        let mut causes = Vec::new();
        let mut cause = err.source();
        while let Some(err) = cause {
            causes.push(err.to_string());
            cause = err.source();
        }
        let first: Vec<String> = violations.iter().take(5).map(ToString::to_string).collect();
        assert_eq!(causes, first);
        assert!(check_invariants(&[], Path::new("/a")).is_ok());
    }

    #[test]
    fn a_rewrite_in_place_of_an_own_record_leaves_out_cuts_of_messages() {
        let message =
            |role: &str| format!(r#"{{"role":"{role}","content":"It is so, and more."}}"#);
        let body = format!(r#"{{"messages":[{},{}]}}"#, message("user"), message("assistant"));
        let session = Loaded::read(body.into_bytes(), Some("anthropic")).expect("a body");
        let recipe = Recipe::default();
        let planner = Planner { session: &session, recipe: &recipe, counter: &samples::Quarters };
        let edit = |at| {
            let verb = epitome_model::Verb::Replace("So.".into());
            let edit = epitome_model::Edit { at, verb, pass: "test" };
            epitome_passes::PlannedEdit::without_count(edit)
        };
        let block = At::Block { item: 1, block: 0 };
        let edits = vec![edit(At::Items { item: 0 }), edit(block)];
        let plan = Plan { edits, ..Plan::default() };
        // The format of request bodies has no record for a compaction, so that the plan cannot be
        // written natively.
        let planned = planner.write_natively_or_rewrite(plan, Vec::new()).expect("a rewrite");
        let places: Vec<At> = planned.plan.edits.iter().map(|edit| edit.edit.at).collect();
        assert_eq!((planned.way, places), (Way::Rewrite, vec![block]));
    }
}
