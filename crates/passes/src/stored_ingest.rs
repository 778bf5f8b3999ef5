//! The ingest stage for a stored session. It truncates results by the same rules as in a live
//! context.

use epitome_model::{At, Block, Edit, Output, Ref, Role, Verb};

use crate::View;
use crate::ingest::{INGEST, IngestRule, SeenLines, only_text};

/// A result that is held back until all results of the same response are read, because together
/// they may be too large.
struct Arrived {
    at: At,
    whole: Ref,
    text: String,
    /// Whether the result may become a preview: it is a single text that the user did not write, it
    /// is neither kept nor pinned, and it has not been truncated yet.
    may: bool,
}

impl IngestRule {
    /// The edits that truncate stored results as a live context would have done, in the order of
    /// the session. Results that are kept whole or pinned (rule files such as `AGENTS.md`, skills,
    /// plans, to-do lists) are not edited.
    pub(crate) fn plan(&self, view: &View<'_>) -> Vec<Edit> {
        let mut edits = Vec::new();
        let mut batch = Vec::new();
        let mut seen = SeenLines::default();
        for (item, entry) in view.transcript.context() {
            if entry.role == Role::Assistant {
                edits.extend(self.plan_batch(view, std::mem::take(&mut batch)));
            }
            for (block, said) in entry.blocks.iter().enumerate() {
                let Block::Output(output) = said else { continue };
                let at = At::Block { item, block };
                let mut text = output.text(view.source);
                let whole = reference_of(view, output);
                let mut may = !view.is_kept(item)
                    && !view.is_pinned(at)
                    && only_text(output).is_some_and(|text| !view.is_recipe_text(text));
                let short = Some(&text).filter(|_| may);
                let call = view.call_of(output);
                let rule = self.rule_for(call.map(|call| call.kind));
                let short =
                    short.and_then(|text| rule.shorten(text, whole.clone(), &seen, view.counter));
                let edit = short.and_then(|short| view.replace(at, &text, short, INGEST));
                if let Some(Edit { verb: Verb::Replace(short), .. }) = &edit {
                    text = short.clone();
                    may = false;
                }
                if self.repeats {
                    seen.add(&text, &view.describe_call(call));
                }
                edits.extend(edit);
                batch.push(Arrived { at, whole, text, may });
            }
        }
        edits.extend(self.plan_batch(view, batch));
        edits.sort_by_key(|edit| edit.at);
        edits
    }

    /// The edits that turn the largest results of a response into previews, if all results of the
    /// response together are too large.
    fn plan_batch(&self, view: &View<'_>, batch: Vec<Arrived>) -> Vec<Edit> {
        let Some(rule) = self.batch else { return Vec::new() };
        let texts: Vec<(&str, bool)> = batch.iter().map(|it| (&*it.text, it.may)).collect();
        let previews = rule.too_much(&texts).into_iter().filter_map(|at| {
            let Arrived { at, whole, text, .. } = &batch[at];
            view.replace(*at, text, rule.preview(text, whole.clone()), INGEST)
        });
        previews.collect()
    }
}

/// The reference that identifies the whole result.
fn reference_of(view: &View<'_>, output: &Output) -> Ref {
    Ref::from_bytes(&view.source.at(output.whole))
}
