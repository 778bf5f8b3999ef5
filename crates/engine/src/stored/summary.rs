//! Replaces the beginning of a stored session by a summary.

use epitome_error::{Error, ErrorKind, Result};
use epitome_formats::splice::if_read;
use epitome_formats::{Format, Loaded, Spliced};
use epitome_model::{Block, Counter, Edit, Source, Summary, Tokens, Transcript, WriteMode};
use epitome_passes::{Pin, Plan, PlannedEdit, Recipe, begin, names_of_pins, pins};

use super::{Note, Planner, PreparedCompaction, ReplacedItems, Way, unwritten};
use crate::summary::{keep_rules_of, says_more_than_a_summary, split_at_kept_end};

impl<'a, S: Source> PreparedCompaction<'a, S> {
    /// Makes a compaction in which a summary replaces everything but the end of the context that
    /// the recipe keeps. The summary is written as the agent writes its own. Other parts of the
    /// recipe are not used.
    ///
    /// The result [is empty](PreparedCompaction::is_empty) if the recipe keeps everything, if the
    /// summary would replace only another summary, or if the context already begins with this very
    /// summary.
    ///
    /// # Errors
    ///
    /// `ReadOnly` if sessions of this format are never written; `Refused` if this agent has no
    /// record of a summary, if this session cannot hold one, or if the summary is longer than what
    /// it replaces; the error of reading the session.
    pub fn with_summary(
        text: &str,
        session: &'a Loaded<S>,
        recipe: &Recipe,
        counter: &dyn Counter,
    ) -> Result<PreparedCompaction<'a, S>> {
        let tried = session.writer().and_then(|_| {
            let planner = Planner { session, recipe, counter };
            let (plan, kept) = planner.end_that_is_kept();
            let mut planned = planner.in_place_of_the_beginning(text, plan, kept, "summary")?;
            if planned.stands_for.is_some() {
                let context = &session.transcript.context;
                let old = &context[..context.len() - kept.len()];
                planned.notes.extend(left_out(text, &pins(&planner.view(), old)));
            }
            Ok(planned)
        });
        if_read(&session.source, tried)
    }
}

/// Returns an error if a session cannot hold a summary, so that no model is asked for one in vain.
///
/// # Errors
///
/// The errors of [`PreparedCompaction::with_summary`], except that a summary is too long.
pub fn check_holds_a_summary<S: Source>(
    session: &Loaded<S>,
    recipe: &Recipe,
    counter: &dyn Counter,
) -> Result<()> {
    let Loaded { format, source, transcript, .. } = session;
    session.writer()?;
    if format.summarise.is_none() {
        return Err(no_summaries(format));
    }
    let (plan, kept) = Planner { session, recipe, counter }.end_that_is_kept();
    let old = &transcript.context[..transcript.context.len() - kept.len()];
    if !says_more_than_a_summary(transcript, old) {
        return Ok(());
    }
    let text = "What was done.".to_owned();
    let summary = Summary { text, kept: kept.to_vec(), tokens: plan.tokens_before };
    let edits = Vec::from_iter(Edit::summary(summary, &transcript.context, "summary"));
    let written = format.write(transcript, source, &edits, WriteMode::Append);
    written.map(drop).map_err(|err| unwritten(format, Way::Summary, err))
}

impl<'a, S: Source> Planner<'a, '_, S> {
    /// A plan without edits that states what the recipe keeps, and the end of the context that is
    /// kept.
    fn end_that_is_kept(&self) -> (Plan, &'a [usize]) {
        let plan = begin(&mut self.view(), &keep_rules_of(self.recipe), &self.options());
        let kept = split_at_kept_end(&self.session.transcript, &plan.kept).1;
        (plan, kept)
    }

    /// Makes a compaction that replaces everything by a text, except `kept`, the end of the
    /// context.
    pub(super) fn in_place_of_the_beginning(
        &self,
        text: &str,
        mut plan: Plan,
        kept: &[usize],
        stage: &'static str,
    ) -> Result<PreparedCompaction<'a, S>> {
        let Loaded { format, transcript, .. } = self.session;
        if format.summarise.is_none() {
            return Err(no_summaries(format));
        }
        let old = &transcript.context[..transcript.context.len() - kept.len()];
        if !says_more_than_a_summary(transcript, old) || self.is_there_already(text)? {
            return self.write_and_verify(Way::Summary, plan);
        }
        let tokens = plan.tokens_before;
        let summary = Summary { text: text.to_owned(), kept: kept.to_vec(), tokens };
        let edit = Edit::summary(summary, &transcript.context, stage);
        plan.edits.extend(edit.map(PlannedEdit::without_count));
        let mut planned = self.write_and_verify(Way::Summary, plan)?;
        if planned.violations.is_empty() && planned.tokens_after >= tokens {
            return Err(too_long());
        }
        planned.stands_for = Some(ReplacedItems::from_items(transcript, old));
        Ok(planned)
    }

    /// Whether the first summary that a resume sends has exactly this text already.
    ///
    /// Formats add words of their own around a summary, so the text is compared in the form in
    /// which the format would write it and read it again.
    fn is_there_already(&self, text: &str) -> Result<bool> {
        let Loaded { format, source, transcript, .. } = self.session;
        let Some(there) = first_summary(transcript, source).filter(|it| it.contains(text)) else {
            return Ok(false);
        };
        let summary = Summary { text: text.to_owned(), kept: Vec::new(), tokens: Tokens(0) };
        let edits = Vec::from_iter(Edit::summary(summary, &transcript.context, "summary"));
        let Ok(splices) = format.write(transcript, source, &edits, WriteMode::Append) else {
            return Ok(false);
        };
        let spliced =
            Spliced::new(source, splices.into_iter().map(|(splice, _)| splice).collect())?;
        let written = first_summary(&(format.read)(&spliced, &mut ()), &spliced);
        Ok(written == Some(there))
    }
}

/// A note that names the rules which are removed and not in the summary; `None` if all are in it.
fn left_out(text: &str, pins: &[Pin]) -> Option<Note> {
    let text = one_line(text);
    let missing = pins.iter().filter(|pin| !text.contains(&one_line(&pin.text)));
    let names = names_of_pins(&Vec::from_iter(missing.cloned()));
    (!names.is_empty()).then_some(Note::RulesLeftOut { names })
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn first_summary(transcript: &Transcript, source: &dyn Source) -> Option<String> {
    transcript.context().flat_map(|(_, entry)| &entry.blocks).find_map(|block| match block {
        Block::Summary(text) => Some(text.read(source).into_owned()),
        _ => None,
    })
}

/// The error for a format in whose sessions epitome writes no summaries.
pub fn no_summaries(format: &Format) -> Error {
    let what = format!("epitome does not write summaries into sessions of {}", format.name);
    Error::new(ErrorKind::Refused, what).with_hint("without --summary its sessions are compacted")
}

fn too_long() -> Error {
    Error::new(ErrorKind::Refused, "the summary is longer than what it replaces")
        .with_hint("nothing was written; give a shorter summary, or keep less (--keep-turns)")
}

#[cfg(test)]
mod tests {
    use epitome_passes::{Keep, PinKind, PinSource};
    use samples::Quarters;

    use super::*;
    use crate::{Context, MessagePart, Setup};

    /// The log of a session of two turns.
    fn log() -> Vec<u8> {
        let mut context = Context::in_memory(Setup::new(Recipe::default()));
        context.user("Read a.rs.").expect("memory");
        let call = MessagePart::call("c1", "Read", r#"{"path":"a.rs"}"#);
        context.assistant(&[MessagePart::text("I look."), call]).expect("memory");
        let text = "let value = compute();\n".repeat(200);
        context.tool(&[MessagePart::output("c1", text)]).expect("memory");
        context.assistant(&[MessagePart::text("It computes.")]).expect("memory");
        context.user("And now?").expect("memory");
        context.assistant(&[MessagePart::text("Now it is done. ".repeat(40))]).expect("memory");
        context.log().to_vec()
    }

    #[test]
    fn a_summary_that_a_session_begins_with_is_not_written_again() {
        let session = Loaded::read(log(), Some("epitome")).expect("a log");
        let recipe =
            Recipe { keep: Keep { turns: Some(1), ..Keep::default() }, ..Recipe::default() };
        let text = "It was read, and it computes.";
        let written = PreparedCompaction::with_summary(text, &session, &recipe, &Quarters);
        let written = written.expect("a summary");
        assert_eq!((written.is_empty(), &written.violations[..]), (false, &[][..]));
        let splices = written.splices.iter().map(|(splice, _)| splice.clone()).collect();
        let spliced = Spliced::new(&session.source, splices).expect("it fits");
        let bytes = spliced.read(0..Source::len(&spliced)).into_owned();
        let again = Loaded::read(bytes, Some("epitome")).expect("a log");
        for (text, expect) in [(text, true), ("It was read", false), ("Otherwise.", false)] {
            let recipe = Recipe::default();
            let planned = PreparedCompaction::with_summary(text, &again, &recipe, &Quarters);
            assert_eq!(planned.expect("a plan").is_empty(), expect, "{text}");
        }
    }

    #[test]
    fn a_format_without_summaries_is_refused_by_name() {
        let message = |role: &str| format!(r#"{{"role":"{role}","content":"It is so."}}"#);
        let body = format!(r#"{{"messages":[{},{}]}}"#, message("user"), message("assistant"));
        let session = Loaded::read(body.into_bytes(), Some("anthropic")).expect("a body");
        let recipe = Recipe::default();
        let planned = PreparedCompaction::with_summary("So.", &session, &recipe, &Quarters);
        let refused = planned.map(|_| ()).expect_err("it is refused").to_string();
        assert_eq!(refused, "epitome does not write summaries into sessions of anthropic");
    }

    #[test]
    fn rules_that_a_summary_lacks_are_named() {
        let pin = |name: &str, text: &str| Pin {
            item: 0,
            block: 0,
            kind: PinKind::RuleFile,
            name: name.into(),
            source: PinSource::Given,
            text: text.into(),
        };
        let pins = [pin("AGENTS.md", "No\n  tabs."), pin("CLAUDE.md", "Never push.")];
        let note = |names: &[&str]| {
            let names = names.iter().map(|name| (*name).to_owned()).collect();
            Some(Note::RulesLeftOut { names })
        };
        for (text, expect) in [
            ("So: No tabs. Never\npush.", None),
            ("No tabs.", note(&["CLAUDE.md"])),
            ("Tabs.", note(&["AGENTS.md", "CLAUDE.md"])),
        ] {
            assert_eq!(left_out(text, &pins), expect, "{text}");
        }
    }
}
