//! Removes texts of calls and results that a later reply of the same turn repeats.

use epitome_model::{At, Block, Edit, Note, Role};
use memchr::memmem;
use serde::{Deserialize, Serialize};

use crate::{Pass, View};

/// Settings of the pass that removes texts which a later reply repeats.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Repeats {
    /// Texts of at most this many bytes are not removed.
    pub min_bytes: u64,
}

impl Default for Repeats {
    fn default() -> Repeats {
        Repeats { min_bytes: 200 }
    }
}

impl Pass for Repeats {
    fn name(&self) -> &'static str {
        "repeats"
    }

    fn plan(&self, view: &View<'_>) -> Vec<Edit> {
        let mut edits = Vec::new();
        // Go through the session from its end, and collect the later replies of the same turn in
        // `replies`.
        let mut replies: Vec<String> = Vec::new();
        for (item, entry) in view.transcript.context().rev() {
            match entry.role {
                Role::User => replies.clear(),
                Role::Assistant => {
                    let texts = entry.blocks.iter().filter_map(|block| match block {
                        Block::Text(text) => Some(view.text(text).into_owned()),
                        _ => None,
                    });
                    replies.extend(texts.filter(|text| text.len() as u64 > self.min_bytes));
                }
                Role::Tool | Role::System => {}
            }
            if replies.is_empty() || view.is_kept(item) {
                continue;
            }
            for block in (0..entry.blocks.len()).rev() {
                edits.extend(self.block(view, item, block, &entry.blocks[block], &replies));
            }
        }
        edits.reverse();
        edits
    }
}

impl Repeats {
    fn block(
        &self,
        view: &View<'_>,
        item: usize,
        block: usize,
        content: &Block,
        replies: &[String],
    ) -> Vec<Edit> {
        let repeated = |text: &str| {
            let text = text.trim();
            text.len() as u64 > self.min_bytes
                && replies.iter().any(|reply| {
                    reply.len() >= text.len()
                        && memmem::find(reply.as_bytes(), text.as_bytes()).is_some()
                })
        };
        let longest = replies.iter().map(String::len).max().unwrap_or(0) as u64;
        // A JSON string literal is at most six times as long as its text.
        let may_repeat = |len: u64| len > self.min_bytes && len <= longest * 6 + 64;
        match content {
            Block::Output(output)
                if may_repeat(output.whole.len())
                    && !view.is_edited(At::Block { item, block })
                    && view.stubbable(output) =>
            {
                let whole = view.ingest_original(output).unwrap_or(output);
                let text = whole.text(view.source);
                if !repeated(&text) {
                    return Vec::new();
                }
                let stub = view.stub(whole, view.call_of(output), &text).with_note(Note::Repeated);
                let at = At::Block { item, block };
                view.replace(at, &output.text(view.source), stub.to_string(), self.name())
                    .into_iter()
                    .collect()
            }
            Block::Call(call) if view.is_answered(call) => (call.fields.iter().enumerate())
                .filter(|(_, argument)| {
                    argument.text.span().is_some_and(|span| may_repeat(span.len()))
                })
                .filter_map(|(field, argument)| {
                    let at = At::Field { item, block, field };
                    let text = view.text(&argument.text);
                    if view.is_edited(at) || view.is_recipe_text(&argument.text) || !repeated(&text)
                    {
                        return None;
                    }
                    let stub = view.stub_of_text(&argument.text, &text).with_note(Note::Repeated);
                    view.replace_argument(at, &argument.text, stub.to_string(), self.name())
                })
                .collect(),
            _ => Vec::new(),
        }
    }
}

#[cfg(test)]
#[path = "repeats_tests.rs"]
mod tests;
