//! A summary that stands for the beginning of a history.

use epitome_engine::{keeping, kept_end, says_more_than_a_summary};
use epitome_formats::{Format, Summarise, Summary};
use epitome_model::{At, Block, Bytes, Counter, Source, Span, Splice, Tokens, Transcript, weigh};
use epitome_passes::{
    Compaction, ContextKind, Options, Pin, Plan, Recipe, Side, View, names_of_pins, pins, verify,
};

use super::{CompactionPlan, Note, StandsFor, Way, bound_in};
use crate::error::{Error, ErrorKind, Result};
use crate::session::Loaded;
use crate::source::{Spliced, if_read};

impl<'a, S: Source> CompactionPlan<'a, S> {
    /// Plans a summary in the place of everything but the end that the recipe keeps whole, written
    /// as the agent writes its own. Of the recipe only the rules of what is kept count.
    ///
    /// There is nothing to do when everything is kept, when nothing but a summary is not, and when
    /// what a resume sends begins with this summary, whatever was said since.
    ///
    /// # Errors
    ///
    /// `Refused` if this agent has no such record, if this session cannot hold it, and if the
    /// summary is longer than what it stands for; what reading the session says.
    pub fn summarised(
        text: &str,
        session: &'a Loaded<S>,
        recipe: &Recipe,
        counter: &dyn Counter,
    ) -> Result<CompactionPlan<'a, S>> {
        let planned = CompactionPlan::summary_planned(text, session, recipe, counter);
        if_read(&session.source, planned)
    }

    fn summary_planned(
        text: &str,
        session: &'a Loaded<S>,
        recipe: &Recipe,
        counter: &dyn Counter,
    ) -> Result<CompactionPlan<'a, S>> {
        session.writer()?;
        let options = Options {
            kind: ContextKind::Stored,
            counter,
            thinking_is_bound: bound_in(session.format),
            counted: &[],
        };
        let keep = keeping(recipe);
        let Loaded { source, transcript, .. } = session;
        let compaction = epitome_passes::compact(transcript, source, &keep, &options);
        let kept = kept_end(transcript, &compaction.kept).1;
        CompactionPlan::in_place_of(text, session, (recipe, compaction), kept, counter)
    }

    /// The same in the place of everything but `kept`, the end of the context.
    pub(super) fn with_summary(
        text: &str,
        session: &'a Loaded<S>,
        recipe: &Recipe,
        kept: &[usize],
        counter: &dyn Counter,
    ) -> Result<CompactionPlan<'a, S>> {
        let Loaded { format, source, transcript, .. } = session;
        let options = Options {
            kind: ContextKind::Stored,
            counter,
            thinking_is_bound: bound_in(format),
            counted: &[],
        };
        let nothing = Recipe::default();
        let compaction = epitome_passes::compact(transcript, source, &nothing, &options);
        CompactionPlan::in_place_of(text, session, (recipe, compaction), kept, counter)
    }

    fn in_place_of(
        text: &str,
        session: &'a Loaded<S>,
        (recipe, compaction): (&Recipe, Compaction),
        kept: &[usize],
        counter: &dyn Counter,
    ) -> Result<CompactionPlan<'a, S>> {
        let Loaded { format, source, transcript, .. } = session;
        let summarise = format.summarise.ok_or_else(|| no_summaries(format))?;
        let old = &transcript.context[..transcript.context.len() - kept.len()];
        let (mut splices, mut notes, mut stands_for) = (Vec::new(), Vec::new(), None);
        if says_more_than_a_summary(transcript, old) && !stands_already(text, session, summarise)? {
            let summary = Summary { text, kept, tokens: compaction.tokens_before };
            let with = summarise(transcript, source, &summary).map_err(|why| {
                let what = format!("the session cannot hold a summary: {why}");
                Error::new(ErrorKind::Refused, what)
            })?;
            splices.push((behind(source, with), At::Block { item: old[0], block: 0 }));
            let view = View::new(transcript, source, counter).with_rule_files(&recipe.rule_files);
            notes.extend(left_out(text, &pins(&view, old)));
            stands_for = Some(StandsFor::of(transcript, old));
        }
        let spliced = Spliced::new(source, splices.iter().map(|(s, _)| s.clone()).collect())?;
        let after = (format.read)(&spliced, &mut ());
        let tokens_after = weigh(&after, &spliced, counter).total();
        let mut violations = Vec::new();
        if !splices.is_empty() {
            let before_side = Side { transcript, source };
            let after_side = Side { transcript: &after, source: &spliced };
            let plan = Plan::Summary { text, kept };
            violations = verify(before_side, after_side, &plan, format.invariants, counter);
            if violations.is_empty() && tokens_after >= compaction.tokens_before {
                return Err(too_long());
            }
        }
        let bytes_after = Bytes(Source::len(&spliced));
        Ok(CompactionPlan {
            session,
            recipe: recipe.clone(),
            way: Way::Summary,
            compaction,
            stands_for,
            notes,
            splices,
            removed: Vec::new(),
            violations,
            after,
            tokens_after,
            bytes_after,
        })
    }
}

/// What sets rules, goes, and is not in the text of a summary.
fn left_out(text: &str, pins: &[Pin]) -> Option<Note> {
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let text = words(text);
    let missing = pins.iter().filter(|pin| !text.contains(&words(&pin.text)));
    let names = names_of_pins(&Vec::from_iter(missing.cloned()));
    (!names.is_empty()).then_some(Note::RulesLeftOut { names })
}

/// Whether what a resume sends begins with a summary of just this text.
///
/// Formats wrap a summary in words of their own, so the text is compared as the format would write
/// it and read it back.
fn stands_already<S: Source>(
    text: &str,
    session: &Loaded<S>,
    summarise: Summarise,
) -> Result<bool> {
    let Loaded { format, source, transcript, .. } = session;
    let Some(stands) = first_summary(transcript, source).filter(|it| it.contains(text)) else {
        return Ok(false);
    };
    let summary = Summary { text, kept: &[], tokens: Tokens(0) };
    let Ok(with) = summarise(transcript, source, &summary) else { return Ok(false) };
    let spliced = Spliced::new(source, vec![behind(source, with)])?;
    let written = first_summary(&(format.read)(&spliced, &mut ()), &spliced);
    Ok(written == Some(stands))
}

fn first_summary(transcript: &Transcript, source: &dyn Source) -> Option<String> {
    transcript.context().flat_map(|(_, entry)| &entry.blocks).find_map(|block| match block {
        Block::Summary(text) => Some(text.read(source).into_owned()),
        _ => None,
    })
}

fn behind(source: &dyn Source, with: Vec<u8>) -> Splice {
    let end = source.len();
    Splice { span: Span { start: end, end }, with: with.into() }
}

pub(crate) fn no_summaries(format: &Format) -> Error {
    let what = format!("epitome does not write summaries into sessions of {}", format.name);
    Error::new(ErrorKind::Refused, what).with_hint("without --summary its sessions are compacted")
}

fn too_long() -> Error {
    Error::new(ErrorKind::Refused, "the summary is longer than what it stands for")
        .with_hint("nothing was written; give a shorter summary, or keep less (--keep-turns)")
}
