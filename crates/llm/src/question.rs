//! Builds the transcript that is sent for an [`Ask`].

use epitome_model::{Block, Entry, Head, Item, Role, Text, Transcript};
use epitome_passes::Ask;

/// A transcript of a system prompt and one user message. It owns its texts, so it needs no source.
pub(crate) fn transcript(ask: &Ask) -> Transcript {
    let items = vec![entry(Role::System, &ask.system), entry(Role::User, &ask.prompt)];
    let head = Head { prompt: vec![0], ..Head::default() };
    Transcript { head, items, context: vec![0, 1] }
}

fn entry(role: Role, text: &str) -> Item {
    let blocks = vec![Block::Text(Text::Owned(text.into()))];
    Item::Entry(Box::new(Entry { role, blocks, ..Entry::default() }))
}
