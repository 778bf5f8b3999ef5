//! Whether what was written is what was meant: the laws that compare a transcript with what it was.
//!
//! This reads the result anew and knows nothing of how it was made.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use epitome_model::{
    At, Block, Breach, Change, Counter, Edit, Entry, Item, Law, Laws, Output, Part, Role, Source,
    Span, Text, Tokens, Transcript, block_tokens,
};

use crate::Compaction;

/// A transcript and its bytes.
#[derive(Clone, Copy)]
pub struct Side<'a> {
    /// The transcript.
    pub transcript: &'a Transcript,
    /// Its bytes.
    pub source: &'a dyn Source,
}

/// Every law that holds before a compaction and not after it.
///
/// A session that is broken already may be compacted: only what is new is told.
pub fn verify(
    before: Side<'_>,
    after: Side<'_>,
    compaction: &Compaction,
    laws: &dyn Laws,
    counter: &dyn Counter,
) -> Vec<Breach> {
    in_place(before, after, compaction, Records::Shrink, laws, counter)
}

/// Every law that holds before a compaction and not after it, when it was written as marks on
/// records: as [`verify`], but that a mark takes room of its own, and that what is sent in the
/// place of a result is what the edit says.
pub fn verify_marked(
    before: Side<'_>,
    after: Side<'_>,
    compaction: &Compaction,
    laws: &dyn Laws,
    counter: &dyn Counter,
) -> Vec<Breach> {
    let mut breaches = in_place(before, after, compaction, Records::Grow, laws, counter);
    for Edit { at, change, .. } in compaction.edits.iter().map(|planned| &planned.edit) {
        let (At::Block { item, block }, Change::Replace(words)) = (at, change) else { continue };
        let Some(new) = after.transcript.items.get(*item).and_then(Item::entry) else { continue };
        let says = match new.blocks.get(*block) {
            Some(Block::Output(output)) => output.text(after.source) == *words,
            Some(_) | None => false,
        };
        if !says {
            let what = "something else is sent than was meant".into();
            breaches.push(Breach { law: Law::Shape, line: new.record.line, what });
        }
    }
    breaches
}
/// Every law that holds before a compaction and not after it, when it was written as a record
/// behind the end of the session: what stood there stands there still, and what is sent now is what
/// was sent before but for the edits.
pub fn verify_appended(
    before: Side<'_>,
    after: Side<'_>,
    compaction: &Compaction,
    laws: &dyn Laws,
    counter: &dyn Counter,
) -> Vec<Breach> {
    let mut breaches = Vec::new();
    let sides = Sides { before, after, tokens: &compaction.counted, counter };
    let stands = |(old, new): (&Item, &Item)| old.record() == new.record();
    let (old, new) = (&before.transcript.items, &after.transcript.items);
    if old.len() > new.len() || !old.iter().zip(new).all(stands) {
        let what = "the records are not those that were there".into();
        return vec![Breach { law: Law::Tree, line: 0, what }];
    }
    let mut sent = after.transcript.context().peekable();
    for (item, old) in before.transcript.context() {
        let line = old.record.line;
        let mut breach = |law, what: &str| {
            breaches.push(Breach { law, line, what: what.into() });
        };
        if is_gone(compaction, item, old) {
            // What said nothing before may stand there still.
            let as_before = old.blocks.is_empty();
            sent.next_if(|(_, new)| as_before && new.blocks.is_empty() && new.role == old.role);
            continue;
        }
        match sent.next() {
            Some((_, new)) if old.role == new.role => blocks(&sides, item, old, new, &mut breach),
            Some(_) => breach(Law::Tree, "another entry stands in its place"),
            None => breach(Law::Tree, "it is not sent any more"),
        }
    }
    if let Some((_, new)) = sent.next() {
        let what = "something is sent that was not there".into();
        breaches.push(Breach { law: Law::Tree, line: new.record.line, what });
    }
    // The lines are others now: what was broken before is told from what is by what it is.
    let mut known: Vec<(Law, String)> = laws
        .check(before.transcript, before.source)
        .into_iter()
        .map(|breach| (breach.law, breach.what))
        .collect();
    for breach in laws.check(after.transcript, after.source) {
        let same = known.iter().position(|(law, what)| (*law, what) == (breach.law, &breach.what));
        match same {
            Some(idx) => drop(known.swap_remove(idx)),
            None => breaches.push(breach),
        }
    }
    breaches.sort();
    breaches
}

/// Every law that holds before a summary was written for the beginning of a context and not after
/// it: the summary is sent, behind it what is `kept`, as it was, and nothing else that was said but
/// words of the user.
pub fn verify_summarised(
    before: Side<'_>,
    after: Side<'_>,
    text: &str,
    kept: &[usize],
    laws: &dyn Laws,
) -> Vec<Breach> {
    let mut breaches = Vec::new();
    let mut breach = |law, line, what: &str| {
        breaches.push(Breach { law, line, what: what.into() });
    };
    let sent: Vec<&Entry> = after.transcript.context().map(|(_, entry)| entry).collect();
    let (first, tail) = sent.split_at(sent.len().saturating_sub(kept.len()));
    let says = |block: &Block| match block {
        Block::Summary(words) => words.read(after.source).contains(text),
        _ => false,
    };
    if !first.iter().any(|entry| entry.blocks.iter().any(says)) {
        breach(Law::Shape, 0, "the summary is not sent");
    }
    let mut words = before.transcript.context().map(|(_, entry)| entry);
    for entry in first {
        let may_stay = match entry.role {
            Role::System => true,
            Role::User => words.any(|old| same_said((before, old), (after, entry))),
            Role::Assistant | Role::Tool => false,
        };
        if !may_stay && !entry.blocks.iter().any(says) {
            breach(Law::Tree, entry.record.line, "something is sent that was summarised");
        }
    }
    let kept: Vec<&Entry> =
        kept.iter().filter_map(|&item| before.transcript.items[item].entry()).collect();
    if kept.len() != tail.len() {
        breach(Law::Tree, 0, "something that is kept is not sent");
    }
    for (old, new) in kept.iter().zip(tail) {
        if !same_said((before, old), (after, new)) {
            breach(Law::Tree, old.record.line, "another entry stands in its place");
        }
    }
    let known: HashSet<(Law, String)> = laws
        .check(before.transcript, before.source)
        .into_iter()
        .map(|breach| (breach.law, breach.what))
        .collect();
    let now = laws.check(after.transcript, after.source).into_iter();
    breaches.extend(now.filter(|it| !known.contains(&(it.law, it.what.clone()))));
    breaches
}

/// Whether two entries say the same. Their records may differ: an agent's own may hold several.
fn same_said((before, old): (Side<'_>, &Entry), (after, new): (Side<'_>, &Entry)) -> bool {
    let bytes = |side: Side<'_>, entry: &Entry| -> Vec<Vec<u8>> {
        entry.blocks.iter().map(|block| said_by(side.source, block)).collect()
    };
    let same =
        |(old, new): (&Block, &Block)| std::mem::discriminant(old) == std::mem::discriminant(new);
    old.role == new.role
        && old.blocks.iter().zip(&new.blocks).all(same)
        && bytes(before, old) == bytes(after, new)
}

/// A block as it stands.
fn said_by(source: &dyn Source, block: &Block) -> Vec<u8> {
    let at = |span: Span| source.at(span).into_owned();
    let output = |output: &Output| [output.call.as_bytes(), &at(output.whole)].concat();
    match block {
        Block::Text(text) | Block::Summary(text) => text.read(source).into_owned().into_bytes(),
        Block::Thinking(thinking) => at(thinking.whole),
        Block::Call(call) => {
            [call.id.as_bytes(), call.name.as_bytes(), &at(call.arguments)].concat()
        }
        Block::Output(it) => output(it),
        Block::Again(again) => output(&again.output),
        Block::Image(image) => at(image.whole),
        Block::Opaque(span) => at(*span),
        _ => Vec::new(),
    }
}

/// What becomes of the length of a record that is edited.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Records {
    Shrink,
    Grow,
}

fn in_place(
    before: Side<'_>,
    after: Side<'_>,
    compaction: &Compaction,
    records: Records,
    laws: &dyn Laws,
    counter: &dyn Counter,
) -> Vec<Breach> {
    let mut breaches = Vec::new();
    let sides = Sides { before, after, tokens: &compaction.counted, counter };
    if !are_those_that_were(before.transcript, after.transcript) {
        let what = "the records are not those that were there".into();
        return vec![Breach { law: Law::Tree, line: 0, what }];
    }
    let edited = edited(compaction);
    for &item in &edited {
        let (old, new) = (&before.transcript.items[item], &after.transcript.items[item]);
        let line = old.record().line;
        let mut breach = |law, what: &str| {
            breaches.push(Breach { law, line, what: what.into() });
        };
        if serde_valid(after.source, new.record().span).is_err() {
            breach(Law::Shape, "the record is no JSON any more");
        }
        if records == Records::Shrink && new.record().span.len() >= old.record().span.len() {
            breach(Law::Growth, "the record is not smaller than it was");
        }
        match (old.entry(), new.entry()) {
            (None, None) => {}
            (Some(old), Some(new)) => {
                entry(&sides, item, old, new, &mut breach);
            }
            _ => breach(Law::Shape, "the record is not what it was"),
        }
    }
    breaches.extend(unedited(before.transcript, after.transcript, &edited));
    breaches.extend(accounting(before, after, &edited, laws));
    let known: HashSet<Breach> = laws.check(before.transcript, before.source).into_iter().collect();
    let now = laws.check(after.transcript, after.source);
    breaches.extend(now.into_iter().filter(|breach| !known.contains(breach)));
    breaches.sort();
    breaches
}

/// Whether the items are those that were there. Behind them an agent's own records may follow which
/// say nothing to a model.
fn are_those_that_were(before: &Transcript, after: &Transcript) -> bool {
    let more = after.items.iter().skip(before.items.len());
    before.items.len() <= after.items.len()
        && before.context == after.context
        && more.into_iter().all(|item| item.entry().is_none())
}

/// Every edited record in which a value changed that other programs read.
fn accounting(
    before: Side<'_>,
    after: Side<'_>,
    edited: &BTreeSet<usize>,
    laws: &dyn Laws,
) -> Vec<Breach> {
    let values = |side: Side<'_>, item: usize| -> Vec<Vec<u8>> {
        let record = side.source.at(side.transcript.items[item].record().span);
        laws.accounting(&record).into_iter().map(|place| record[place].to_vec()).collect()
    };
    // Items may share a record.
    let mut seen = HashSet::new();
    let span = |item: usize| before.transcript.items[item].record().span;
    let records = edited.iter().filter(|&&item| seen.insert(span(item)));
    records
        .filter(|&&item| values(before, item) != values(after, item))
        .map(|&item| Breach {
            law: Law::Accounting,
            line: before.transcript.items[item].record().line,
            what: "a value that other programs read is not what it was".into(),
        })
        .collect()
}

/// Whether an entry says nothing any more: all it said was reasoning, and that went.
fn is_gone(compaction: &Compaction, item: usize, old: &Entry) -> bool {
    let dropped = |block| {
        let at = At::Block { item, block };
        compaction.edits.iter().any(|it| it.edit.at == at && it.edit.change == Change::Drop)
    };
    old.blocks.iter().enumerate().all(|(idx, block)| match block {
        Block::Thinking(_) => dropped(idx),
        _ => false,
    })
}

/// The edited items, in the order of the session.
fn edited(compaction: &Compaction) -> BTreeSet<usize> {
    compaction.edits.iter().map(|planned| planned.edit.at.item()).collect()
}

/// What a resume sends after a compaction, counted anew wherever a record was edited.
pub fn recount(compaction: &Compaction, after: Side<'_>, counter: &dyn Counter) -> Tokens {
    let edited = edited(compaction);
    let count = |item: usize, idx: usize, block: &Block| match compaction.counted.get(&(item, idx))
    {
        Some(tokens) if !edited.contains(&item) => *tokens,
        Some(_) | None => block_tokens(block, after.source, counter),
    };
    let context = after.transcript.context();
    context
        .flat_map(|(item, entry)| {
            let blocks = entry.blocks.iter().enumerate();
            blocks.map(move |(idx, block)| (item, idx, block))
        })
        .map(|(item, idx, block)| count(item, idx, block))
        .sum()
}

/// A record that no edit touches has the length that it had; its bytes are those of the base.
fn unedited(before: &Transcript, after: &Transcript, edited: &BTreeSet<usize>) -> Vec<Breach> {
    // Items may share a record.
    let edited: HashSet<Span> = edited.iter().map(|&it| before.items[it].record().span).collect();
    let pairs = before.items.iter().zip(&after.items);
    pairs
        .filter(|(old, new)| {
            let (was, is) = (old.record().span, new.record().span);
            !edited.contains(&was) && was.len() != is.len()
        })
        .map(|(old, _)| Breach {
            law: Law::Tree,
            line: old.record().line,
            what: "the record changed without an edit".into(),
        })
        .collect()
}

struct Sides<'a> {
    before: Side<'a>,
    after: Side<'a>,
    /// What was counted before, by item and block.
    tokens: &'a BTreeMap<(usize, usize), Tokens>,
    counter: &'a dyn Counter,
}

impl Sides<'_> {
    fn same(&self, old: &Text, new: &Text) -> bool {
        old.read(self.before.source) == new.read(self.after.source)
    }

    fn same_bytes(&self, old: Span, new: Span) -> bool {
        self.before.source.at(old) == self.after.source.at(new)
    }
}

fn entry(
    sides: &Sides<'_>,
    item: usize,
    old: &Entry,
    new: &Entry,
    breach: &mut dyn FnMut(Law, &str),
) {
    let same_place = old.id == new.id
        && old.parent == new.parent
        && old.role == new.role
        && old.group == new.group
        && old.time == new.time
        && old.usage == new.usage;
    if !same_place {
        breach(Law::Tree, "the entry is not the one that was there");
    }
    blocks(sides, item, old, new, breach);
}

fn blocks(
    sides: &Sides<'_>,
    item: usize,
    old: &Entry,
    new: &Entry,
    breach: &mut dyn FnMut(Law, &str),
) {
    let mut left = new.blocks.iter();
    for (idx, block) in old.blocks.iter().enumerate() {
        let mut rest = left.clone();
        match (block, rest.next()) {
            // Reasoning that is not there to the byte is gone.
            (Block::Thinking(was), Some(Block::Thinking(now)))
                if sides.same_bytes(was.whole, now.whole) =>
            {
                left = rest;
            }
            (Block::Thinking(_), _) => {}
            // So is what was said twice, or it still says the same.
            (Block::Again(was), Some(Block::Again(now)))
                if sides.same_bytes(was.whole, now.whole) =>
            {
                left = rest;
            }
            (Block::Again(_), _) => {}
            (_, Some(now)) if same_kind(block, now) => {
                left = rest;
                let tokens = sides.tokens.get(&(item, idx)).copied();
                let tokens = tokens
                    .unwrap_or_else(|| block_tokens(block, sides.before.source, sides.counter));
                compare(sides, old.role, (block, tokens), now, breach);
            }
            _ => {
                breach(Law::Shape, "a block is gone that cannot go");
                return;
            }
        }
    }
    if left.next().is_some() {
        breach(Law::Shape, "there is a block that was not there");
    }
}

fn same_kind(old: &Block, new: &Block) -> bool {
    // A picture may become words.
    std::mem::discriminant(old) == std::mem::discriminant(new)
        || matches!((old, new), (Block::Image(_), Block::Text(_)))
}

fn compare(
    sides: &Sides<'_>,
    role: Role,
    (old, tokens): (&Block, Tokens),
    new: &Block,
    breach: &mut dyn FnMut(Law, &str),
) {
    match (old, new) {
        (Block::Text(old), Block::Text(new)) | (Block::Summary(old), Block::Summary(new))
            if !sides.same(old, new) =>
        {
            let law = if role == Role::User { Law::UserWords } else { Law::Shape };
            breach(law, "words changed");
        }
        (Block::Opaque(old), Block::Opaque(new)) if !sides.same_bytes(*old, *new) => {
            breach(Law::Shape, "something opaque changed");
        }
        (Block::Call(old_call), Block::Call(new_call)) => {
            if old_call.id != new_call.id || old_call.name != new_call.name {
                breach(Law::Pairing, "a call is not the one that was there");
            }
            if names(old_call) != names(new_call) {
                breach(Law::Shape, "a call has other arguments than it had");
            }
            shrank(sides, tokens, new, breach);
        }
        (Block::Output(old_output), Block::Output(new_output)) => {
            if old_output.call != new_output.call || old_output.error != new_output.error {
                breach(Law::Pairing, "a result is not the one that was there");
            }
            if opaque(old_output, sides.before) != opaque(new_output, sides.after) {
                breach(Law::Shape, "something opaque in a result is not what it was");
            }
            shrank(sides, tokens, new, breach);
        }
        _ => {}
    }
}

fn opaque(output: &Output, side: Side<'_>) -> Vec<Vec<u8>> {
    let parts = output.parts.iter().filter_map(|part| match part {
        Part::Opaque(span) => Some(side.source.at(*span).into_owned()),
        Part::Text(_) | Part::Image(_) => None,
    });
    parts.collect()
}

fn names(call: &epitome_model::Call) -> Vec<&str> {
    call.fields.iter().map(|field| &*field.name).collect()
}

fn shrank(sides: &Sides<'_>, before: Tokens, new: &Block, breach: &mut dyn FnMut(Law, &str)) {
    if block_tokens(new, sides.after.source, sides.counter) > before {
        breach(Law::Growth, "a block has more tokens than it had");
    }
}

fn serde_valid(source: &dyn Source, span: Span) -> Result<(), serde_json::Error> {
    let bytes = source.at(span);
    let text = String::from_utf8_lossy(&bytes);
    serde_json::from_str::<&serde_json::value::RawValue>(text.as_ref()).map(|_| ())
}

#[cfg(test)]
#[path = "verify_tests.rs"]
mod tests;
