//! Verifies a change: compares the transcripts before and after it with the plan.
//!
//! Both transcripts are read from bytes, so that nothing here depends on how the change was made.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use epitome_model::{
    At, Block, Counter, Cut, Edit, Entry, Invariant, Invariants, Item, Output, Part, Role, Source,
    Span, Summary, TOKENS_AROUND, Text, Tokens, Transcript, Verb, Violation, WriteMode,
    block_has_at_least, block_tokens, parallel,
};

use crate::Plan;
use crate::view::on_all_cores;

/// A transcript and the source of its texts: the session before or after a change.
#[derive(Clone, Copy)]
pub struct Side<'a> {
    /// The transcript.
    pub transcript: &'a Transcript,
    /// The source into which the transcript's spans point.
    pub source: &'a dyn Source,
}

/// The invariants that a change violates; empty if the change is valid. Stored sessions and live
/// contexts are verified by the same function, for every kind of change.
///
/// - Entries without an edit are as before. If records are edited in place, only the length of the
///   records without an edit is compared, because their bytes are copied. An entry without an edit
///   in an edited record is compared as an edited entry is.
/// - In an edited entry, messages, content of an unknown kind, and the calls, results and images
///   without an edit are unchanged. Reasoning and repeated results are unchanged or removed. Calls
///   and results are the same ones in the same order. No block has more tokens than before.
/// - A record that is edited in place is JSON, has the same values for other programs, and is
///   smaller than before, except with [`WriteMode::Mark`].
/// - A summary, the text in place of a middle cut, and the text that [`WriteMode::Mark`] puts in
///   place of a result are as planned.
/// - The format's own invariants hold if they held before.
///
/// A session that has violations already may be compacted. A violation is new if, after the change,
/// there are more with the same invariant and description. Line numbers, and positions in a list at
/// the beginning of a description, are ignored.
pub fn verify(
    before: Side<'_>,
    after: Side<'_>,
    plan: &Plan,
    mode: WriteMode,
    invariants: &dyn Invariants,
    counter: &dyn Counter,
) -> Vec<Violation> {
    let positions = plan.edits.iter().map(|planned| planned.edit.at);
    let edited = positions.filter_map(|at| Some((at.item(), at.block()?))).collect();
    let sides = Sides { before, after, edited, tokens: &plan.counted, counter };
    let found = match (plan.summary(), mode) {
        (Some(summary), _) => Some(summarised(before, after, summary)),
        (None, WriteMode::Append) => appended(&sides, plan),
        (None, WriteMode::Splice) => in_place(&sides, plan, Records::Shrink, invariants),
        (None, WriteMode::Mark) => marked(&sides, plan, invariants),
    };
    let Some(mut violations) = found else {
        let what = "the records are not those that were there".into();
        return vec![Violation { invariant: Invariant::Tree, line: 0, what }];
    };
    violations.extend(new_violations(before, after, invariants));
    violations.sort();
    violations
}

/// The violations of a format's own invariants in `after` that are more frequent than in `before`.
pub fn new_violations(
    before: Side<'_>,
    after: Side<'_>,
    invariants: &dyn Invariants,
) -> Vec<Violation> {
    let mut found =
        parallel::map(vec![before, after], |side| invariants.check(side.transcript, side.source));
    let new = found.pop().unwrap_or_default();
    let old = found.pop().unwrap_or_default();
    added(&old, new)
}

/// The violations in `after` that are more frequent than in `before`. A description may begin with
/// a position in a list (`input.6: …`). The position is ignored, because the change may move a
/// message that stays.
fn added(before: &[Violation], after: Vec<Violation>) -> Vec<Violation> {
    let mut known: HashMap<(Invariant, String), usize> = HashMap::new();
    let key = |violation: &Violation| {
        let what = match violation.what.split_once(": ") {
            Some((place, what)) if !place.contains(' ') => what,
            Some(_) | None => &violation.what,
        };
        (violation.invariant, what.to_owned())
    };
    for violation in before {
        *known.entry(key(violation)).or_default() += 1;
    }
    let new = after.into_iter().filter(|violation| match known.get_mut(&key(violation)) {
        Some(n) if *n > 0 => {
            *n -= 1;
            false
        }
        Some(_) | None => true,
    });
    new.collect()
}

// One check for each kind of plan. A check returns `None` if the records are not the original ones,
// because then nothing else can be compared.

/// Checks edits that are written as marks: bytes that are added to a record, for which the agent
/// sends other text. In place of a result that was replaced, the agent must send the text of the
/// edit. `None` if the records are not the original ones.
fn marked(sides: &Sides<'_>, plan: &Plan, invariants: &dyn Invariants) -> Option<Vec<Violation>> {
    let after = sides.after;
    let mut violations = in_place(sides, plan, Records::Grow, invariants)?;
    for Edit { at, verb, .. } in plan.edits.iter().map(|planned| &planned.edit) {
        let (At::Block { item, block }, Verb::Replace(words)) = (at, verb) else { continue };
        let Some(new) = after.transcript.items.get(*item).and_then(Item::entry) else { continue };
        let says = match new.blocks.get(*block) {
            Some(Block::Output(output)) => output.text(after.source) == *words,
            Some(_) | None => false,
        };
        if !says {
            let what = "something else is sent than was meant".into();
            violations.push(Violation { invariant: Invariant::Shape, line: new.record.line, what });
        }
    }
    Some(violations)
}

/// Checks edits that are written as an appended record: the agent must send the earlier context
/// with the edits applied. No user message may be cut out, and the text that is sent in place of
/// what was cut out must not be longer. `None` if the earlier records are not the original ones.
fn appended(sides: &Sides<'_>, plan: &Plan) -> Option<Vec<Violation>> {
    let before = sides.before;
    let after = sides.after;
    if !has_all_records(before.transcript, after.transcript) {
        return None;
    }
    let dropped: HashSet<At> = plan
        .edits
        .iter()
        .filter(|planned| planned.edit.verb == Verb::Drop)
        .map(|planned| planned.edit.at)
        .collect();
    let edited: HashSet<usize> = edited(plan).into_iter().collect();
    let mut cut = CutOut::new(plan.cut(), sides);
    let mut violations = Vec::new();
    let mut sent = after.transcript.context().peekable();
    for (item, old) in before.transcript.context() {
        let line = old.record.line;
        let mut violation = |invariant, what: &str| {
            violations.push(Violation { invariant, line, what: what.into() });
        };
        if cut.items.contains(&item) {
            if old.role == Role::User {
                violation(Invariant::UserWords, "a user message is cut out");
            }
            let was_met = std::mem::replace(&mut cut.is_met, true);
            if !was_met && !sent.next().is_some_and(|(_, new)| cut.is_text(new)) {
                let what = "the text that was meant is not sent in its place";
                violation(Invariant::Shape, what);
            }
            cut.free(old);
            continue;
        }
        if is_gone(&dropped, item, old) {
            // An entry that was empty before the change may stay as an empty entry of its role.
            let as_before = old.blocks.is_empty();
            sent.next_if(|(_, new)| as_before && new.blocks.is_empty() && new.role == old.role);
            continue;
        }
        match sent.next() {
            Some((_, new)) if same_said((before, old), (after, new)) => {}
            Some((_, new)) if old.role == new.role && edited.contains(&item) => {
                blocks(sides, item, old, new, &mut violation);
            }
            Some(_) => violation(Invariant::Tree, "another entry is in its place"),
            None => violation(Invariant::Tree, "it is not sent any more"),
        }
    }
    if let Some((_, new)) = sent.next() {
        let what = "something is sent that was not there".into();
        violations.push(Violation { invariant: Invariant::Tree, line: new.record.line, what });
    }
    if cut.grows() {
        let what = "the text is longer than what is cut out".into();
        violations.push(Violation { invariant: Invariant::Growth, line: 0, what });
    }
    Some(violations)
}

/// A middle cut, and how much of it has been reached in a comparison of the context before the
/// change with the context after it.
struct CutOut<'a> {
    sides: &'a Sides<'a>,
    items: HashSet<usize>,
    text: Option<&'a str>,
    /// Whether one of the items of the cut has been reached.
    is_met: bool,
    /// The tokens of those items of the cut that have been reached.
    freed: Tokens,
}

impl<'a> CutOut<'a> {
    fn new(cut: Option<&'a Cut>, sides: &'a Sides<'a>) -> CutOut<'a> {
        let items = cut.into_iter().flat_map(|cut| &cut.items).copied().collect();
        let text = cut.map(|cut| &*cut.text);
        CutOut { sides, items, text, is_met: false, freed: Tokens(0) }
    }

    /// Whether an entry is the text that is sent in place of the items of the cut.
    fn is_text(&self, entry: &Entry) -> bool {
        match (entry.role, entry.blocks.as_slice()) {
            (Role::System, [Block::Text(text)]) => {
                self.text.is_some_and(|meant| text.read(self.sides.after.source) == meant)
            }
            _ => false,
        }
    }

    fn free(&mut self, entry: &Entry) {
        let Sides { before, counter, .. } = self.sides;
        let blocks = entry.blocks.iter();
        let tokens =
            blocks.map(|block| block_tokens(block, before.source, *counter) + TOKENS_AROUND);
        self.freed += tokens.sum();
    }

    fn grows(&self) -> bool {
        let text = self.text.map(|text| self.sides.counter.count(text) + TOKENS_AROUND);
        text.is_some_and(|text| text > self.freed)
    }
}

/// Checks a summary of the beginning. The context must consist of the summary, system messages, and
/// user messages from before, followed by the kept entries, unchanged.
fn summarised(before: Side<'_>, after: Side<'_>, summary: &Summary) -> Vec<Violation> {
    let Summary { text, kept, .. } = summary;
    let mut violations = Vec::new();
    let mut violation = |invariant, line, what: &str| {
        violations.push(Violation { invariant, line, what: what.into() });
    };
    let sent: Vec<&Entry> = after.transcript.context().map(|(_, entry)| entry).collect();
    let (first, tail) = sent.split_at(sent.len().saturating_sub(kept.len()));
    if !first.iter().any(|entry| has_summary(after, entry, text)) {
        violation(Invariant::Shape, 0, "the summary is not sent");
    }
    let mut words = before.transcript.context().map(|(_, entry)| entry);
    for entry in first {
        let may_stay = match entry.role {
            Role::System => true,
            Role::User => words.any(|old| same_said((before, old), (after, entry))),
            Role::Assistant | Role::Tool => false,
        };
        if !may_stay && !has_summary(after, entry, text) {
            violation(Invariant::Tree, entry.record.line, "something is sent that was summarised");
        }
    }
    let kept: Vec<&Entry> =
        kept.iter().filter_map(|&item| before.transcript.items[item].entry()).collect();
    if kept.len() != tail.len() {
        violation(Invariant::Tree, 0, "something that is kept is not sent");
    }
    for (old, new) in kept.iter().zip(tail) {
        if !same_said((before, old), (after, new)) {
            violation(Invariant::Tree, old.record.line, "another entry is in its place");
        }
    }
    violations
}

/// Whether an entry is a summary that contains this text.
fn has_summary(side: Side<'_>, entry: &Entry, text: &str) -> bool {
    entry.blocks.iter().any(|block| match block {
        Block::Summary(words) => words.read(side.source).contains(text),
        _ => false,
    })
}

/// Whether every record is still in its place; further records may follow.
fn has_all_records(before: &Transcript, after: &Transcript) -> bool {
    let old = &before.items;
    let new = &after.items;
    old.len() <= new.len() && old.iter().zip(new).all(|(old, new)| old.record() == new.record())
}

/// Whether two entries have the same content. Their records are not compared, because one record
/// may hold several entries.
fn same_said((before, old): (Side<'_>, &Entry), (after, new): (Side<'_>, &Entry)) -> bool {
    let mut blocks = old.blocks.iter().zip(&new.blocks);
    old.role == new.role
        && old.blocks.len() == new.blocks.len()
        && blocks.all(|(old, new)| same_block((before, old), (after, new)))
}

/// Whether the bytes of two spans are equal. If both sides have the same source, as in a live
/// context, equal spans are not read.
fn same_bytes((before, old): (Side<'_>, Span), (after, new): (Side<'_>, Span)) -> bool {
    let is_one = std::ptr::addr_eq(before.source, after.source) && old == new;
    is_one || before.source.at(old) == after.source.at(new)
}

fn same_block((before, old): (Side<'_>, &Block), (after, new): (Side<'_>, &Block)) -> bool {
    let same_bytes = |old: Span, new: Span| same_bytes((before, old), (after, new));
    let same_output = |old: &Output, new: &Output| {
        old.call == new.call && old.error == new.error && same_bytes(old.whole, new.whole)
    };
    match (old, new) {
        (Block::Text(old), Block::Text(new)) | (Block::Summary(old), Block::Summary(new)) => {
            let literal = old.span().zip(new.span());
            literal.is_some_and(|(old, new)| same_bytes(old, new))
                || old.read(before.source) == new.read(after.source)
        }
        (Block::Thinking(old), Block::Thinking(new)) => same_bytes(old.whole, new.whole),
        (Block::Call(old), Block::Call(new)) => {
            old.id == new.id && old.name == new.name && same_bytes(old.arguments, new.arguments)
        }
        (Block::Output(old), Block::Output(new)) => same_output(old, new),
        (Block::Repeated(old), Block::Repeated(new)) => same_output(&old.output, &new.output),
        (Block::Image(old), Block::Image(new)) => same_bytes(old.whole, new.whole),
        (Block::Opaque(old), Block::Opaque(new)) => same_bytes(*old, *new),
        _ => false,
    }
}

/// How edits may change the length of a record.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Records {
    Shrink,
    Grow,
}

/// Checks edits that are written into the records. `None` if the records are not the original ones.
fn in_place(
    sides: &Sides<'_>,
    plan: &Plan,
    records: Records,
    invariants: &dyn Invariants,
) -> Option<Vec<Violation>> {
    let before = sides.before;
    let after = sides.after;
    if !are_those_that_were(before.transcript, after.transcript) {
        return None;
    }
    let items = &before.transcript.items;
    let edited = edited(plan);
    let spans: HashSet<Span> = edited.iter().map(|&item| items[item].record().span).collect();
    // Several items may be read from one record, and some of them may have no edit.
    let in_edited_records: Vec<usize> =
        (0..items.len()).filter(|&item| spans.contains(&items[item].record().span)).collect();
    let mut seen = HashSet::new();
    let is_first = |&item: &usize| seen.insert(items[item].record().span);
    let edited_records: Vec<usize> = edited.into_iter().filter(is_first).collect();
    let mut violations =
        on_all_cores(edited_records.clone(), |item| edited_record(sides, item, records)).concat();
    violations.extend(on_all_cores(in_edited_records, |item| same_item(sides, item)).concat());
    violations.extend(unedited(before.transcript, after.transcript, &spans));
    violations.extend(accounting(before, after, edited_records, invariants));
    Some(violations)
}

/// The violations of one edited record, without those of the items that are read from it.
fn edited_record(sides: &Sides<'_>, item: usize, records: Records) -> Vec<Violation> {
    let Sides { before, after, .. } = sides;
    let old = before.transcript.items[item].record();
    let new = after.transcript.items[item].record();
    let violation =
        |invariant, what: &str| Violation { invariant, line: old.line, what: what.into() };
    let mut violations = Vec::new();
    if serde_valid(after.source, new.span).is_err() {
        violations.push(violation(Invariant::Shape, "the record is no JSON any more"));
    }
    if records == Records::Shrink && new.span.len() >= old.span.len() {
        violations.push(violation(Invariant::Growth, "the record is not smaller than it was"));
    }
    violations
}

/// The violations of one item that is read from an edited record. It may have no edit itself.
fn same_item(sides: &Sides<'_>, item: usize) -> Vec<Violation> {
    let old = &sides.before.transcript.items[item];
    let new = &sides.after.transcript.items[item];
    let line = old.record().line;
    let mut violations = Vec::new();
    let mut violation = |invariant, what: &str| {
        violations.push(Violation { invariant, line, what: what.into() });
    };
    match (old.entry(), new.entry()) {
        (None, None) => {}
        (Some(old), Some(new)) => entry(sides, item, old, new, &mut violation),
        _ => violation(Invariant::Shape, "the record is not what it was"),
    }
    violations
}

/// Whether the context has the same items as before, and all items that were added are records that
/// no model sees.
fn are_those_that_were(before: &Transcript, after: &Transcript) -> bool {
    let more = after.items.iter().skip(before.items.len());
    before.items.len() <= after.items.len()
        && before.context == after.context
        && more.into_iter().all(|item| item.entry().is_none())
}

/// Checks the values in edited records that other programs read. `records` has one item of each
/// edited record. Returns a violation for each record in which such a value changed.
fn accounting(
    before: Side<'_>,
    after: Side<'_>,
    records: Vec<usize>,
    invariants: &dyn Invariants,
) -> Vec<Violation> {
    let record = |side: Side<'_>, item: usize| {
        let span = side.transcript.items[item].record().span;
        side.source.at(span).into_owned()
    };
    let same = |&item: &usize| {
        let old = record(before, item);
        let new = record(after, item);
        let was = invariants.accounting(&old);
        let is = invariants.accounting(&new);
        was.len() == is.len() && was.into_iter().zip(is).all(|(was, is)| old[was] == new[is])
    };
    let changed = on_all_cores(records, |item| (!same(&item)).then_some(item));
    let violation = |item: usize| Violation {
        invariant: Invariant::Accounting,
        line: before.transcript.items[item].record().line,
        what: "a value that other programs read is not what it was".into(),
    };
    changed.into_iter().flatten().map(violation).collect()
}

/// Whether an entry need not be sent after the change, because the plan drops all its blocks, which
/// are reasoning. True for an entry without blocks.
fn is_gone(dropped: &HashSet<At>, item: usize, old: &Entry) -> bool {
    old.blocks.iter().enumerate().all(|(block, said)| match said {
        Block::Thinking(_) => dropped.contains(&At::Block { item, block }),
        _ => false,
    })
}

/// The items that are edited, in the order of the session.
fn edited(plan: &Plan) -> Vec<usize> {
    let items: BTreeSet<usize> = plan.edits.iter().map(|planned| planned.edit.at.item()).collect();
    items.into_iter().collect()
}

/// Counts the tokens that a resume sends after a compaction. Only the blocks of edited items, and
/// blocks that the plan did not count, are counted again.
pub fn recount(plan: &Plan, after: Side<'_>, counter: &dyn Counter) -> Tokens {
    let edited = edited(plan);
    let count = |item: usize, idx: usize, block: &Block| match plan.counted.get(&(item, idx)) {
        Some(tokens) if edited.binary_search(&item).is_err() => *tokens,
        Some(_) | None => block_tokens(block, after.source, counter),
    };
    let context: Vec<(usize, &Entry)> = after.transcript.context().collect();
    let entries = on_all_cores(context, |(item, entry)| {
        let blocks = entry.blocks.iter().enumerate();
        blocks.map(|(idx, block)| count(item, idx, block)).sum::<Tokens>()
    });
    entries.into_iter().sum()
}

/// Checks that records without an edit have their old length. Their bytes are not compared: they
/// are copied from the original. `edited` has the spans of the edited records.
fn unedited(before: &Transcript, after: &Transcript, edited: &HashSet<Span>) -> Vec<Violation> {
    let pairs = before.items.iter().zip(&after.items);
    pairs
        .filter(|(old, new)| {
            let was = old.record().span;
            let is = new.record().span;
            !edited.contains(&was) && was.len() != is.len()
        })
        .map(|(old, _)| Violation {
            invariant: Invariant::Tree,
            line: old.record().line,
            what: "the record changed without an edit".into(),
        })
        .collect()
}

struct Sides<'a> {
    before: Side<'a>,
    after: Side<'a>,
    /// The blocks with an edit, by item and block.
    edited: HashSet<(usize, usize)>,
    /// The tokens of blocks before the change, by item and block, as far as they are known.
    tokens: &'a BTreeMap<(usize, usize), Tokens>,
    counter: &'a dyn Counter,
}

impl Sides<'_> {
    fn same(&self, old: &Text, new: &Text) -> bool {
        old.read(self.before.source) == new.read(self.after.source)
    }

    fn same_bytes(&self, old: Span, new: Span) -> bool {
        same_bytes((self.before, old), (self.after, new))
    }
}

fn entry(
    sides: &Sides<'_>,
    item: usize,
    old: &Entry,
    new: &Entry,
    violation: &mut dyn FnMut(Invariant, &str),
) {
    let same_place = old.id == new.id
        && old.parent == new.parent
        && old.role == new.role
        && old.group == new.group
        && old.time == new.time
        && old.usage == new.usage;
    if !same_place {
        violation(Invariant::Tree, "the entry is not the one that was there");
    }
    blocks(sides, item, old, new, violation);
}

fn blocks(
    sides: &Sides<'_>,
    item: usize,
    old: &Entry,
    new: &Entry,
    violation: &mut dyn FnMut(Invariant, &str),
) {
    let mut left = new.blocks.iter();
    for (idx, block) in old.blocks.iter().enumerate() {
        let mut rest = left.clone();
        match (block, rest.next()) {
            // Reasoning that is not identical is taken to be removed.
            (Block::Thinking(was), Some(Block::Thinking(now)))
                if sides.same_bytes(was.whole, now.whole) =>
            {
                left = rest;
            }
            (Block::Thinking(was), _) if !was.removable => {
                violation(Invariant::Reasoning, "reasoning is gone that cannot go alone");
            }
            (Block::Thinking(_), _) => {}
            // A repetition must be removed or unchanged.
            (Block::Repeated(was), Some(Block::Repeated(now)))
                if sides.same_bytes(was.whole, now.whole) =>
            {
                left = rest;
            }
            (Block::Repeated(_), _) => {}
            (_, Some(now)) if same_kind(block, now) => {
                left = rest;
                let has_edit = sides.edited.contains(&(item, idx));
                if !has_edit {
                    if same_block((sides.before, block), (sides.after, now)) {
                        continue;
                    }
                    violation(Invariant::Shape, "a block changed without an edit");
                }
                let tokens = sides.tokens.get(&(item, idx)).copied();
                compare(sides, old.role, (block, tokens), now, violation);
            }
            (_, Some(Block::Thinking(_))) => {
                violation(Invariant::Reasoning, "reasoning is not what it was");
                return;
            }
            (Block::Text(_), _) if old.role == Role::User => {
                violation(Invariant::UserWords, "words of the user are gone");
                return;
            }
            _ => {
                violation(Invariant::Shape, "a block is gone that cannot go");
                return;
            }
        }
    }
    match left.next() {
        Some(Block::Thinking(_)) => {
            violation(Invariant::Reasoning, "reasoning is not what it was");
        }
        Some(_) => violation(Invariant::Shape, "there is a block that was not there"),
        None => {}
    }
}

fn same_kind(old: &Block, new: &Block) -> bool {
    // A text may take the place of an image.
    std::mem::discriminant(old) == std::mem::discriminant(new)
        || matches!((old, new), (Block::Image(_), Block::Text(_)))
}

fn compare(
    sides: &Sides<'_>,
    role: Role,
    (old, tokens): (&Block, Option<Tokens>),
    new: &Block,
    violation: &mut dyn FnMut(Invariant, &str),
) {
    match (old, new) {
        (Block::Text(old), Block::Text(new)) | (Block::Summary(old), Block::Summary(new))
            if !sides.same(old, new) =>
        {
            let invariant =
                if role == Role::User { Invariant::UserWords } else { Invariant::Shape };
            violation(invariant, "words changed");
        }
        (Block::Opaque(old), Block::Opaque(new)) if !sides.same_bytes(*old, *new) => {
            violation(Invariant::Shape, "something opaque changed");
        }
        (Block::Call(old_call), Block::Call(new_call)) => {
            if old_call.id != new_call.id || old_call.name != new_call.name {
                violation(Invariant::Pairing, "a call is not the one that was there");
            }
            if names(old_call) != names(new_call) {
                violation(Invariant::Shape, "a call has other arguments than it had");
            }
            shrank(sides, (old, tokens), new, violation);
        }
        (Block::Image(old), Block::Image(new)) if !sides.same_bytes(old.whole, new.whole) => {
            violation(Invariant::Shape, "a picture is not what it was");
        }
        (Block::Image(_), Block::Text(_)) => shrank(sides, (old, tokens), new, violation),
        (Block::Output(old_output), Block::Output(new_output)) => {
            if old_output.call != new_output.call || old_output.error != new_output.error {
                violation(Invariant::Pairing, "a result is not the one that was there");
            }
            let texts =
                || (old_output.text(sides.before.source), new_output.text(sides.after.source));
            if old_output.from_user && texts().0 != texts().1 {
                violation(Invariant::UserWords, "words of the user changed");
            }
            if opaque(old_output, sides.before) != opaque(new_output, sides.after) {
                violation(Invariant::Shape, "something opaque in a result is not what it was");
            }
            shrank(sides, (old, tokens), new, violation);
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

/// Reports a block that has more tokens than before. `tokens` is the count of `old`, if it is
/// known.
fn shrank(
    sides: &Sides<'_>,
    (old, tokens): (&Block, Option<Tokens>),
    new: &Block,
    violation: &mut dyn FnMut(Invariant, &str),
) {
    let Sides { before, after, counter, .. } = sides;
    let now = block_tokens(new, after.source, *counter);
    let as_many = match tokens {
        Some(tokens) => tokens >= now,
        None => block_has_at_least(old, now, before.source, *counter),
    };
    if !as_many {
        violation(Invariant::Growth, "a block has more tokens than it had");
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
