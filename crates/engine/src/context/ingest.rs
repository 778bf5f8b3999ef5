//! Truncates results on ingest, before they are first sent.

use std::collections::{BTreeSet, HashSet};

use epitome_formats::epitome::Batch;
use epitome_model::{At, Block, Edit, Entry, Ref, Role, Source, Stub, Tokens, Verb};
use epitome_passes::{
    Complete, EventReason, INGEST, Plan, PlannedEdit, SeenLines, View, only_text, pins,
};

use super::Context;
use super::excerpt::{Excerpt, calls_of, from_first};
use epitome_error::{Error, ErrorKind, Result};

/// The maximum number of bytes of an entry that is indexed for digests when it is added. A larger
/// entry is indexed only when a digest is made.
const LEARNED: u64 = 1 << 20;

impl Context {
    /// Truncates the results in an entry before the entry is first sent. If the truncated results
    /// cannot be written to the log, the whole results are sent, and an event reports it. This is
    /// not returned as an error: the caller would add the entry again, although it is in the log.
    pub(super) fn truncate_on_ingest(&mut self, item: usize) {
        let Some(rule) = self.setup.recipe.stages.live.ingest else { return };
        let transcript = self.log.parsed().transcript();
        let source = self.log.bytes();
        let Some(entry) = transcript.items[item].entry() else { return };
        let mut edits = Vec::new();
        for (block, said) in entry.blocks.iter().enumerate() {
            let Block::Output(output) = said else { continue };
            let Some(text) = only_text(output).map(|text| text.read(source)) else { continue };
            let call = self.known.calls.get(&output.call);
            let what = call.map_or("result", |call| &*call.what);
            let rule = rule.rule_for(call.map(|call| call.kind));
            let whole = Ref::from_bytes(&Source::at(source, output.whole));
            let short = rule.shorten(&text, whole, &self.known.seen, &*self.setup.counter);
            self.known.seen.add(short.as_deref().unwrap_or(&text), what);
            edits.extend(short.map(|short| Edit {
                at: At::Block { item, block },
                verb: Verb::Replace(short),
                pass: INGEST,
            }));
        }
        let edits = self.without_pinned(edits);
        if edits.is_empty() {
            return;
        }
        if let Err(err) = self.write_shortened(edits) {
            self.report_whole(&err);
        }
    }

    /// Truncates the largest of the results that follow the model's last response, if all of them
    /// together are too large. Results that were sent before do not change.
    pub(super) fn preview(&mut self) -> Result<()> {
        let ingest = self.setup.recipe.stages.live.ingest;
        let Some(rule) = ingest.and_then(|rule| rule.batch) else { return Ok(()) };
        let source = self.log.bytes();
        let results: Vec<_> = self
            .unanswered()
            .into_iter()
            .flat_map(|(item, entry)| {
                let blocks = entry.blocks.iter().enumerate();
                blocks.filter_map(move |(block, said)| match said {
                    Block::Output(output) => Some((At::Block { item, block }, output)),
                    _ => None,
                })
            })
            .collect();
        let texts: Vec<String> = results.iter().map(|(_, it)| it.text(source)).collect();
        let all = results.iter().zip(&texts).map(|((place, output), text)| {
            let is_new = place.item() >= self.attempt.sent && only_text(output).is_some();
            (&**text, is_new && Stub::parse(text).is_none())
        });
        let all: Vec<(&str, bool)> = all.collect();
        let edits: Vec<Edit> = rule
            .too_much(&all)
            .into_iter()
            .filter_map(|at| {
                let (place, output) = results[at];
                let whole = Ref::from_bytes(&Source::at(source, output.whole));
                let preview = rule.preview(&texts[at], whole);
                let is_less =
                    self.setup.counter.count(&preview) < self.setup.counter.count(&texts[at]);
                let verb = Verb::Replace(preview);
                is_less.then_some(Edit { at: place, verb, pass: INGEST })
            })
            .collect();
        let edits = self.without_pinned(edits);
        if edits.is_empty() {
            return Ok(());
        }
        if self.write_shortened(edits)? {
            self.see_unanswered();
        }
        Ok(())
    }

    /// The entries that the model has not answered yet, in order.
    fn unanswered(&self) -> Vec<(usize, &Entry)> {
        let context = self.transcript().context();
        let newest = context.rev().take_while(|(_, entry)| entry.role != Role::Assistant);
        let mut newest: Vec<(usize, &Entry)> = newest.collect();
        newest.reverse();
        newest
    }

    /// Records the lines of the results after the model's last response again, now that these
    /// results have become shorter.
    fn see_unanswered(&mut self) {
        let mut seen = std::mem::take(&mut self.known.seen);
        seen.rewind(self.known.answered);
        for (_, entry) in self.unanswered() {
            self.see(&mut seen, entry);
        }
        self.known.seen = seen;
    }

    /// Records the lines of the results in an entry.
    pub(super) fn see(&self, seen: &mut SeenLines, entry: &Entry) {
        for block in &entry.blocks {
            if let Block::Output(output) = block {
                let what = self.known.calls.description(&output.call).unwrap_or("result");
                seen.add(&output.text(self.log.bytes()), what);
            }
        }
    }

    /// The edits, without those of rule files, skills and other pinned content. Such content should
    /// stay in the context after every compaction, so it is sent whole.
    fn without_pinned(&self, mut edits: Vec<Edit>) -> Vec<Edit> {
        if edits.is_empty() {
            return edits;
        }
        let items: HashSet<usize> = edits.iter().map(|edit| edit.at.item()).collect();
        let transcript = self.transcript();
        // Whether a result is pinned depends on its call and on later entries.
        let newest = from_first(transcript, &items);
        let with_calls = [&calls_of(transcript, newest), newest].concat();
        let excerpt = Excerpt::new(transcript, with_calls, newest);
        let view = View::new(excerpt.transcript(), self.log.bytes(), &*self.setup.counter)
            .with_rule_files(&self.setup.recipe.rule_files);
        let mut items: Vec<usize> = items.into_iter().collect();
        items.sort_unstable();
        let pins = pins(&view, &excerpt.places(&items)).into_iter();
        let pinned: HashSet<At> =
            pins.map(|pin| At::Block { item: excerpt.item(pin.item), block: pin.block }).collect();
        edits.retain(|edit| !pinned.contains(&edit.at));
        edits
    }

    /// Writes edits of results to the log. Returns whether they were written. If the edits are
    /// refused, the results are sent whole, and an event reports why.
    pub(super) fn write_shortened(&mut self, edits: Vec<Edit>) -> Result<bool> {
        let edits = edits.into_iter().map(|edit| PlannedEdit { edit, tokens: Tokens(0) });
        let mut plan = Plan { edits: edits.collect(), ..Plan::default() };
        let line = self.line_of(&plan, Batch::Ingest);
        match line.and_then(|line| self.add_line(&line, &mut plan)) {
            Ok(()) => {
                self.count_shortened(&plan);
                Ok(true)
            }
            Err(err) if err.kind() == ErrorKind::Refused => {
                self.report_whole(&err);
                Ok(false)
            }
            Err(err) => Err(err),
        }
    }

    /// Reports that a result is sent whole, and why.
    fn report_whole(&mut self, why: &Error) {
        let reason = format!("a result is not shortened before it is sent: {why}");
        self.machine.skip(EventReason::Request, reason);
    }

    /// Replaces the counts of the edited entries by those of their edited versions, which are the
    /// last items of the transcript, in the order of the originals. The provider's last count stays
    /// valid, because it does not include these entries yet.
    fn count_shortened(&mut self, plan: &Plan) {
        let edited = plan.edits.iter().map(|planned| planned.edit.at.item());
        let edited: BTreeSet<usize> = edited.collect();
        let transcript = self.log.parsed().transcript();
        let source = self.log.bytes();
        let new = transcript.items.len() - edited.len()..transcript.items.len();
        for (old, new) in edited.into_iter().zip(new) {
            self.counts.replace(old, new, transcript, source, &*self.setup.counter);
        }
    }

    /// Indexes the blocks of this entry for the next digest, and the calls that its results answer.
    /// Does nothing if the recipe has no digest, or if the entry is very large.
    pub(super) fn learn_for_digest(&mut self, item: usize) {
        let Some(rule) = self.setup.recipe.stages.live.digest.clone() else { return };
        let entry = self.transcript().items[item].entry();
        // The lines of very large entries are read only when a digest is made.
        if entry.is_none_or(|entry| entry.record.span.len() > LEARNED) {
            return;
        }
        let mut index = std::mem::take(&mut self.known.index);
        let transcript = self.log.parsed().transcript();
        let source = self.log.bytes();
        let entry = transcript.items[item].entry();
        let blocks = entry.into_iter().flat_map(|entry| &entry.blocks);
        for (block, said) in blocks.enumerate() {
            // A call is indexed together with its result.
            let (at, number, result) = match said {
                Block::Call(_) => continue,
                Block::Output(output) => match self.known.calls.get(&output.call) {
                    Some(call) => (call.at, call.number, Some(output)),
                    None => continue,
                },
                _ => ((item, block), 0, None),
            };
            let Some(entry) = transcript.items[at.0].entry() else { continue };
            let blocks = self.counts.items().get(at.0);
            let tokens = blocks.and_then(|it| it.get(at.1)).copied().unwrap_or_default();
            let complete = Complete { at, entry, number, result, tokens };
            index.learn(&rule, source, &*self.setup.counter, complete);
        }
        self.known.index = index;
    }
}

#[cfg(test)]
mod tests {
    use epitome_model::Tokens;
    use epitome_passes::{Event, IngestRule, Recipe, built_in};

    use super::super::{MessagePart, Setup};
    use super::*;
    use crate::Journal;

    /// A journal that refuses the lines that shorten results.
    struct WholeResults;

    impl Journal for WholeResults {
        fn append(&mut self, lines: &[u8]) -> Result<()> {
            if String::from_utf8_lossy(lines).contains("\"birth\"") {
                return Err(Error::new(ErrorKind::Disk, "no storage space"));
            }
            Ok(())
        }

        fn flush(&self) -> Result<()> {
            Ok(())
        }
    }

    /// A recipe that replaces the largest results of a response by previews if all its results
    /// together have more than 3,000 characters, and that leaves out repeated lines.
    fn recipe() -> Recipe {
        let mut recipe = built_in("s08").expect("a built-in recipe");
        let mut rule = recipe.stages.live.ingest.expect("it has the stage");
        rule.repeats = true;
        let batch = rule.batch.as_mut().expect("it has the rule");
        (batch.chars, batch.over, batch.preview) = (3_000, 1_000, 200);
        recipe.stages.live.ingest = Some(rule);
        recipe
    }

    fn lines(n: usize, range: std::ops::Range<usize>) -> String {
        range.map(|line| format!("let value_{n}_{line} = compute(input, {line})?;\n")).collect()
    }

    #[test]
    fn what_is_known_call_by_call_is_what_is_known_of_the_whole() {
        let mut context = Context::in_memory(Setup::new(recipe()).with_window(Tokens(90_000)));
        context.user("Read all.").expect("memory");
        for n in 0..12_usize {
            let ids = [format!("a{n}"), format!("b{n}")];
            let call = |id: &String| MessagePart::call(id.clone(), "Read", r#"{"path":"a.rs"}"#);
            context.assistant(&ids.iter().map(call).collect::<Vec<_>>()).expect("memory");
            let again = lines(n.saturating_sub(1), 0..20);
            let texts = [lines(n, 0..30) + &again, lines(n, 20..20 + 5 * n)];
            for (id, text) in ids.iter().zip(texts) {
                context.tool(&[MessagePart::output(id.clone(), text)]).expect("memory");
            }
            context.view().expect("memory");
            let known =
                |it: &Context| (it.counts.total(), it.known.seen.clone(), it.known.answered);
            let found = known(&context);
            context.recount();
            assert_eq!(found, known(&context), "after {n}");
        }
        let stubs = String::from_utf8_lossy(context.log()).matches("\"birth\"").count();
        assert!(stubs > 12, "{stubs}");
    }

    #[test]
    fn a_result_whose_shortening_cannot_be_written_is_added_whole() {
        let mut recipe = recipe();
        recipe.stages.live.ingest = Some(IngestRule { cap: Some(100), ..IngestRule::default() });
        let setup = Setup::new(recipe).with_window(Tokens(90_000));
        let mut context = Context::create(Box::new(WholeResults), setup).expect("a journal");
        context.user("List all.").expect("a journal");
        let call = MessagePart::call("c1", "Bash", r#"{"command":"ls"}"#);
        context.assistant(&[call]).expect("a journal");
        context.tool(&[MessagePart::output("c1", lines(0, 0..200))]).expect("the result is added");
        assert_eq!((context.report().entries, context.open_calls()), (3, Vec::new()));
        let events = context.events();
        assert!(events.iter().any(|event| matches!(event, Event::Skipped { .. })), "{events:?}");
    }
}
