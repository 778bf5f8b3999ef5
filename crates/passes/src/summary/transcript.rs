//! Reads from a transcript what a summary needs in addition to the records.

use epitome_model::{Block, Role};

use super::check::Haystack;
use crate::view::View;

/// The text of the last summary among these items; `None` if none of them is a summary.
pub fn summary_of(view: &View<'_>, items: &[usize]) -> Option<String> {
    let entries = items.iter().rev().filter_map(|&item| view.transcript.items[item].entry());
    entries.flat_map(|entry| &entry.blocks).find_map(|block| match block {
        Block::Summary(text) => Some(text.read(view.source).into_owned()),
        _ => None,
    })
}

/// Whether an item is a message of the user that contains text.
pub fn is_request(view: &View<'_>, item: usize) -> bool {
    let entry = view.transcript.items[item].entry();
    entry.is_some_and(|entry| {
        let words = entry.blocks.iter().any(|block| matches!(block, Block::Text(_)));
        entry.role == Role::User && words
    })
}

/// Adds all texts of an item to `history`, in which the quotes of a summary are searched.
pub fn listen(view: &View<'_>, item: usize, history: &mut Haystack) {
    let Some(entry) = view.transcript.items[item].entry() else { return };
    for block in &entry.blocks {
        match block {
            Block::Text(text) | Block::Summary(text) => history.add(&text.read(view.source)),
            Block::Thinking(thinking) => {
                if let Some(text) = &thinking.text {
                    history.add(&text.read(view.source));
                }
            }
            Block::Call(call) => {
                history.add(&call.name);
                let raw = view.source.at(call.arguments);
                history.add(&String::from_utf8_lossy(&raw));
                let texts = call.target.iter().chain(call.fields.iter().map(|field| &field.text));
                texts.for_each(|text| history.add(&text.read(view.source)));
            }
            Block::Output(output) => history.add(&output.text(view.source)),
            _ => {}
        }
    }
}

#[cfg(test)]
#[path = "transcript_tests.rs"]
mod tests;
