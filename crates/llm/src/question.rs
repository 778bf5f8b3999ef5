//! A question as a transcript, and the length of what is sent.

use epitome_formats::api::Outgoing;
use epitome_model::{Block, Entry, Head, Item, Part, Role, Text, Transcript};
use epitome_passes::Ask;

/// A transcript of a system prompt and one message of the user. It needs no source.
pub(crate) fn transcript(ask: &Ask) -> Transcript {
    let entry = |role, text: &str| {
        let blocks = vec![Block::Text(Text::Made(text.into()))];
        Item::Entry(Box::new(Entry { role, blocks, ..Entry::default() }))
    };
    let items = vec![entry(Role::System, &ask.system), entry(Role::User, &ask.prompt)];
    let head = Head { prompt: vec![0], ..Head::default() };
    Transcript { head, items, context: vec![0, 1] }
}

/// Bytes of all texts and results that are sent.
pub(crate) fn text_bytes(outgoing: &Outgoing<'_>) -> u64 {
    let length = |text: &Text| text.read(outgoing.source).len() as u64;
    let blocks = outgoing.transcript.context().flat_map(|(_, entry)| &entry.blocks);
    let of_block = |block: &Block| match block {
        Block::Text(text) | Block::Summary(text) => length(text),
        Block::Output(output) => {
            let texts = output.parts.iter().map(|part| match part {
                Part::Text(text) => length(text),
                Part::Image(_) | Part::Opaque(_) => 0,
            });
            texts.sum()
        }
        _ => 0,
    };
    blocks.map(of_block).sum()
}
