//! The edits of a plan as text: what they remove and what they put in its place.

use std::cmp::Reverse;

use epitome_formats::Loaded;
use epitome_model::{At, Block, Counter, Part, Source, Tokens, Verb};
use epitome_passes::{PlannedEdit, View};

use super::PreparedCompaction;

/// An edit as it is displayed. The texts are the session's own: secrets are not redacted, and
/// control characters are not escaped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownEdit {
    /// The line of the session that is edited, from 1.
    pub line: u64,
    /// A description of the removed content, such as the call of a removed result: `Read
    /// src/main.rs`.
    pub what: String,
    /// The name of the pass that planned the edit.
    pub pass: &'static str,
    /// Tokens that the edit saves in the context.
    pub saved: Tokens,
    /// The removed text, decoded.
    pub before: String,
    /// The text that takes the place of the removed text; may be empty.
    pub after: String,
}

impl<S: Source> PreparedCompaction<'_, S> {
    /// The edits of blocks and their parts, in the order of the session. Their texts are read from
    /// the session one by one.
    pub fn describe_edits<'p>(
        &'p self,
        counter: &'p dyn Counter,
    ) -> impl ExactSizeIterator<Item = ShownEdit> {
        let mut edits: Vec<_> = self.plan.block_edits().collect();
        edits.sort_by_key(|edit| edit.edit.at.item());
        self.described(edits, counter)
    }

    /// The edits that save tokens, those with the largest savings first.
    pub fn describe_edits_by_saving<'p>(
        &'p self,
        counter: &'p dyn Counter,
    ) -> impl ExactSizeIterator<Item = ShownEdit> {
        let mut edits: Vec<_> =
            self.plan.edits.iter().filter(|edit| edit.tokens > Tokens(0)).collect();
        edits.sort_by_key(|edit| (Reverse(edit.tokens), edit.edit.at.item()));
        self.described(edits, counter)
    }

    fn described<'p>(
        &'p self,
        edits: Vec<&'p PlannedEdit>,
        counter: &'p dyn Counter,
    ) -> impl ExactSizeIterator<Item = ShownEdit> {
        let Loaded { source, transcript, .. } = self.session;
        let view = View::new(transcript, source, counter);
        edits.into_iter().map(move |edit| {
            let at = edit.edit.at;
            ShownEdit {
                line: transcript.items[at.item()].record().line,
                what: view.describe(at),
                pass: edit.edit.pass,
                saved: edit.tokens,
                before: text_at(self.session, at),
                after: match &edit.edit.verb {
                    Verb::Replace(text) => text.as_str().to_owned(),
                    Verb::Drop | Verb::Cut(_) | Verb::Summarise(_) => String::new(),
                },
            }
        })
    }
}

/// The decoded text at a position.
fn text_at<S: Source>(session: &Loaded<S>, at: At) -> String {
    let Loaded { source, transcript, .. } = session;
    let item = &transcript.items[at.item()];
    let block = |idx: usize| item.entry().and_then(|entry| entry.blocks.get(idx));
    let raw = |span| String::from_utf8_lossy(&source.at(span)).into_owned();
    let image = |media: &str, len: u64| format!("{media}, {len} characters of base64");
    match at {
        At::Items { .. } => String::new(),
        At::HiddenField { field, .. } => {
            item.hidden_fields().get(field).map_or_else(String::new, |field| raw(field.value))
        }
        At::Field { block: idx, field, .. } => match block(idx) {
            Some(Block::Call(call)) => call
                .fields
                .get(field)
                .map_or_else(String::new, |field| field.text.read(source).into_owned()),
            _ => String::new(),
        },
        At::Part { block: idx, part, .. } => match block(idx) {
            Some(Block::Output(output)) => match output.parts.get(part) {
                Some(Part::Text(text)) => text.read(source).into_owned(),
                Some(Part::Image(picture)) => image(&picture.media, picture.data.len()),
                Some(Part::Opaque(span)) => raw(*span),
                None => String::new(),
            },
            _ => String::new(),
        },
        At::Block { block: idx, .. } => match block(idx) {
            Some(Block::Text(text) | Block::Summary(text)) => text.read(source).into_owned(),
            Some(Block::Thinking(thinking)) => match &thinking.text {
                Some(text) => text.read(source).into_owned(),
                None => raw(thinking.whole),
            },
            Some(Block::Call(call)) => raw(call.arguments),
            Some(Block::Output(output)) => output.text(source),
            Some(Block::Repeated(again)) => again.output.text(source),
            Some(Block::Image(picture)) => image(&picture.media, picture.data.len()),
            Some(Block::Opaque(span)) => raw(*span),
            _ => String::new(),
        },
    }
}

#[cfg(test)]
mod tests {
    use epitome_model::Edit;
    use epitome_passes::{Plan, Recipe};
    use samples::Quarters;

    use super::super::{Planner, Way};
    use super::*;

    #[test]
    fn edits_that_save_nothing_are_not_shown_by_saving() {
        let message = |role: &str| format!(r#"{{"role":"{role}","content":"It is so."}}"#);
        let roles = ["user", "assistant", "user", "assistant"];
        let body = format!(r#"{{"messages":[{}]}}"#, roles.map(message).join(","));
        let session = Loaded::read(body.into_bytes(), Some("anthropic")).expect("a body");
        let recipe = Recipe::default();
        let planner = Planner { session: &session, recipe: &recipe, counter: &Quarters };
        let edits = [(0, 0), (1, 1), (2, 3), (3, 1)].map(|(item, tokens)| PlannedEdit {
            edit: Edit {
                at: At::Block { item, block: 0 },
                verb: Verb::Replace("So.".into()),
                pass: "test",
            },
            tokens: Tokens(tokens),
        });
        let plan = Plan { edits: edits.into(), ..Plan::default() };
        let planned = planner.write_and_verify(Way::Rewrite, plan).expect("a plan");
        let shown: Vec<_> = planned
            .describe_edits_by_saving(&Quarters)
            .map(|shown| (shown.saved.0, shown.what, shown.before, shown.after))
            .collect();
        let expect = [3, 1, 1]
            .map(|saved| (saved, "block".to_owned(), "It is so.".to_owned(), "So.".to_owned()));
        assert_eq!(shown, expect);
    }
}
