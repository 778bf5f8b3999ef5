//! Turns: a user message and everything until the next one.

use std::borrow::Cow;
use std::collections::HashSet;

use crate::{Block, Entry, Role, Source, Text, Transcript};

/// The indices of the items that begin a turn, in the order of the file. Turns that a resume does
/// not send are included, so the number of indices is the session's number of turns.
///
/// A turn begins at a user message that has text or a picture. User messages with no answer and no
/// result between them are one turn, and items before the first turn belong to no turn. The agent's
/// own prompts, reminders and summaries begin no turn, and neither do its copies of the history.
pub fn turns(transcript: &Transcript, source: &dyn Source) -> Vec<usize> {
    let mut found = Vec::new();
    let mut is_open = false;
    for (item, entry) in transcript.entries() {
        match entry.role {
            Role::User if !is_open && !entry.repeated && says_something(entry, source) => {
                if !transcript.head.prompt.contains(&item) {
                    found.push(item);
                    is_open = true;
                }
            }
            Role::Assistant | Role::Tool if !entry.blocks.is_empty() => is_open = false,
            Role::User | Role::Assistant | Role::Tool | Role::System => {}
        }
    }
    found
}

/// The number of turns whose first message a resume would send, itself or in a copy with the same
/// texts.
pub fn context_turns(transcript: &Transcript, source: &dyn Source) -> u64 {
    let sent: HashSet<usize> = transcript.context.iter().copied().collect();
    let copies = transcript.context().filter(|(_, entry)| entry.repeated);
    let copies: HashSet<Vec<Cow<'_, str>>> =
        copies.map(|(_, entry)| texts(entry, source)).filter(|texts| !texts.is_empty()).collect();
    let is_sent = |item: &&usize| {
        let entry = transcript.items[**item].entry();
        sent.contains(item) || entry.is_some_and(|it| copies.contains(&texts(it, source)))
    };
    turns(transcript, source).iter().filter(is_sent).count() as u64
}

/// The texts of a user message.
fn texts<'a>(entry: &'a Entry, source: &'a dyn Source) -> Vec<Cow<'a, str>> {
    let blocks = entry.blocks.iter().filter(|_| entry.role == Role::User);
    let texts = blocks.filter_map(|block| match block {
        Block::Text(text) => Some(text.read(source)),
        _ => None,
    });
    texts.collect()
}

fn says_something(entry: &Entry, source: &dyn Source) -> bool {
    entry.blocks.iter().any(|block| match block {
        // A text of more than 64 bytes is assumed not to be blank; a shorter one is decoded to find
        // out.
        Block::Text(Text::Source(span)) if span.len() > 64 => true,
        Block::Text(text) => !text.read(source).trim().is_empty(),
        Block::Image(_) => true,
        Block::Thinking(_)
        | Block::Summary(_)
        | Block::Call(_)
        | Block::Output(_)
        | Block::Repeated(_)
        | Block::Opaque(_) => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Item;

    #[test]
    fn a_turn_is_a_message_of_the_user_and_everything_until_the_next() {
        let source: &[u8] = b"";
        let turns_of = |entries: &[(Role, &str)]| {
            let entry = |(role, text): &(Role, &str)| {
                let text = Text::Owned((*text).into());
                let blocks = vec![Block::Text(text)];
                Item::Entry(Box::new(Entry { role: *role, blocks, ..Entry::default() }))
            };
            let items = entries.iter().map(entry).collect();
            turns(&Transcript { items, ..Transcript::default() }, &source)
        };
        use Role::{Assistant, System, Tool, User};
        for (entries, expect) in [
            (&[][..], &[][..]),
            (&[(System, "s"), (User, "a"), (Assistant, "b")], &[1]),
            (&[(User, "a"), (User, "b"), (Assistant, "c"), (User, "d")], &[0, 3]),
            (&[(User, "a"), (Tool, "b"), (User, "c")], &[0, 2]),
            (&[(User, "a"), (System, "b"), (User, "c")], &[0]),
            (&[(User, " \n"), (Assistant, "b"), (User, "c")], &[2]),
            (&[(Assistant, "a")], &[]),
        ] {
            assert_eq!(turns_of(entries), expect, "{entries:?}");
        }
    }
}
