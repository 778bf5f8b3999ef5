//! A transcript as passes see it.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{OnceLock, PoisonError, RwLock};

use epitome_model::{
    At, Block, CHARS_AROUND, Call, Counter, Edit, Entry, Lines, Output, Part, Ref, Role, Source,
    Stub, Text, Tokens, ToolKind, Transcript, Verb, block_chars, block_tokens, decode, encode,
    encode_as, has_at_least, is_left_by_recipe, line_count, literal_as_text, parallel, short,
};

use crate::ingest::SHORTENED;
use crate::level::ContextSize;
use crate::rule_files::RuleFiles;
use crate::trim::messages;

/// A transcript with what passes need to know: its source, the items that are kept whole, the call
/// of each result.
pub struct View<'a> {
    /// The transcript.
    pub transcript: &'a Transcript,
    /// The source into which the transcript's spans point.
    pub source: &'a dyn Source,
    /// The tokenizer.
    pub counter: &'a dyn Counter,
    /// Whether each item is kept whole.
    kept: Vec<bool>,
    /// Whether each item is in the context.
    in_context: Vec<bool>,
    /// The item and the block of each call, by the call's id.
    calls: HashMap<&'a str, (usize, usize)>,
    /// Whether the result of each call is an error, by the call's id. The map has no entry for a
    /// call without a result.
    answered: HashMap<&'a str, bool>,
    /// The positions that earlier passes edit.
    edited: HashSet<At>,
    /// The blocks that no pass may edit because they set rules, by item and block index.
    pinned: HashSet<(usize, usize)>,
    rule_files: &'a RuleFiles,
    /// Looks up numbers of lines. Set only in a view for a person who reads a session: see
    /// [`View::for_reading`].
    reading: Option<LinesOf<'a>>,
    /// Token counts that the caller already knew, by item and block index.
    known: &'a [Vec<Tokens>],
    /// The first result of each call, computed when first needed.
    first: OnceLock<HashMap<&'a str, &'a Output>>,
    /// The tokens that have been counted, by item and block index.
    tokens: RwLock<HashMap<(usize, usize), Tokens>>,
}

impl<'a> View<'a> {
    /// A view in which no item is kept whole yet.
    pub fn new(
        transcript: &'a Transcript,
        source: &'a dyn Source,
        counter: &'a dyn Counter,
    ) -> View<'a> {
        let mut calls = HashMap::new();
        let mut answered = HashMap::new();
        for (item, entry) in transcript.entries() {
            for (block, said) in entry.blocks.iter().enumerate() {
                match said {
                    Block::Call(call) => {
                        calls.insert(&*call.id, (item, block));
                    }
                    Block::Output(output) => {
                        answered.insert(&*output.call, output.error);
                    }
                    _ => {}
                }
            }
        }
        let mut in_context = vec![false; transcript.items.len()];
        for &item in &transcript.context {
            in_context[item] = true;
        }
        let kept = vec![false; transcript.items.len()];
        View {
            transcript,
            source,
            counter,
            kept,
            in_context,
            calls,
            answered,
            edited: HashSet::new(),
            pinned: HashSet::new(),
            rule_files: RuleFiles::built_in(),
            reading: None,
            known: &[],
            first: OnceLock::new(),
            tokens: RwLock::default(),
        }
    }

    /// A view for edits that are shown to a person and never written. In such a view, even short
    /// texts are replaced, calls without a result are treated like calls with one, and a stub shows
    /// the number of lines of its original, which `lines_of` looks up.
    pub fn for_reading(
        transcript: &'a Transcript,
        source: &'a dyn Source,
        lines_of: LinesOf<'a>,
    ) -> View<'a> {
        View { reading: Some(lines_of), ..View::new(transcript, source, &Nothing) }
    }

    /// Sets token counts that are known, by item and block index.
    #[must_use]
    pub fn with_counts(mut self, known: &'a [Vec<Tokens>]) -> View<'a> {
        self.known = known;
        self
    }

    /// Sets the patterns for the names of files that set rules for the agent.
    #[must_use]
    pub fn with_rule_files(mut self, files: &'a RuleFiles) -> View<'a> {
        self.rule_files = files;
        self
    }

    /// The patterns for the names of files that set rules for the agent.
    pub fn rule_files(&self) -> &'a RuleFiles {
        self.rule_files
    }

    /// Protects blocks, given by item and block index, from edits. If a block is a result, its call
    /// is protected, too: the call names the file that was printed, and the next compaction needs
    /// that name.
    pub fn pin(&mut self, blocks: impl IntoIterator<Item = (usize, usize)>) {
        for (item, block) in blocks {
            let entry = self.transcript.items[item].entry();
            if let Some(Block::Output(output)) = entry.and_then(|entry| entry.blocks.get(block)) {
                self.pinned.extend(self.calls.get(&*output.call));
            }
            self.pinned.insert((item, block));
        }
    }

    /// Whether a position, or the block around it, is protected from edits by [`View::pin`]. Always
    /// false for whole items and for hidden fields.
    pub fn is_pinned(&self, at: At) -> bool {
        match at {
            At::Block { item, block }
            | At::Field { item, block, .. }
            | At::Part { item, block, .. } => self.pinned.contains(&(item, block)),
            At::Items { .. } | At::HiddenField { .. } => false,
        }
    }

    /// Marks these items as kept whole.
    pub fn keep(&mut self, items: impl IntoIterator<Item = usize>) {
        for item in items {
            self.kept[item] = true;
        }
    }

    /// Whether an item is kept whole.
    pub fn is_kept(&self, item: usize) -> bool {
        self.kept[item]
    }

    /// Whether an item is in the context.
    pub fn is_sent(&self, item: usize) -> bool {
        self.in_context[item]
    }

    /// The call that a result answers; `None` if the session does not contain that call.
    pub fn call_of(&self, output: &Output) -> Option<&'a Call> {
        let &(item, block) = self.calls.get(&*output.call)?;
        match &self.transcript.items[item].entry()?.blocks[block] {
            Block::Call(call) => Some(call),
            _ => None,
        }
    }

    /// Whether the session contains the result of a call. In a view for reading, this is always
    /// true.
    pub fn is_answered(&self, call: &Call) -> bool {
        self.reading.is_some() || self.answered.contains_key(&*call.id)
    }

    /// Whether a call has a result that is not an error.
    pub fn succeeded(&self, call: &Call) -> bool {
        self.answered.get(&*call.id) == Some(&false)
    }

    /// Every entry that is not kept whole, oldest first.
    pub fn entries_not_kept(&self) -> impl Iterator<Item = (usize, &'a Entry)> {
        self.transcript.entries().filter(|(item, _)| !self.kept[*item])
    }

    /// Every result that is not kept whole, oldest first, with the call that it answers.
    pub fn old_outputs(&self) -> impl Iterator<Item = (At, &'a Output, Option<&'a Call>)> {
        self.entries_not_kept().flat_map(move |(item, entry)| self.of_entry(item, entry))
    }

    /// Every result, oldest first, with the call that it answers.
    pub fn outputs(&self) -> impl Iterator<Item = (At, &'a Output, Option<&'a Call>)> {
        self.transcript.entries().flat_map(move |(item, entry)| self.of_entry(item, entry))
    }

    /// The positions of the newest `n` results in the context.
    pub fn newest_outputs(&self, n: usize) -> HashSet<At> {
        self.newest_outputs_of(n, |_| true)
    }

    /// The positions of the newest `n` results, among those in items for which `counts` returns
    /// true. All are in the context.
    pub fn newest_outputs_of(&self, n: usize, counts: impl Fn(usize) -> bool) -> HashSet<At> {
        let entries = self.transcript.context().rev().filter(|(item, _)| counts(*item));
        let outputs = entries.flat_map(|(item, entry)| {
            let found: Vec<_> = self.of_entry(item, entry).collect();
            found.into_iter().rev()
        });
        outputs.map(|(at, ..)| at).take(n).collect()
    }

    fn of_entry(
        &self,
        item: usize,
        entry: &'a Entry,
    ) -> impl Iterator<Item = (At, &'a Output, Option<&'a Call>)> {
        entry.blocks.iter().enumerate().filter_map(move |(block, said)| match said {
            Block::Output(output) => {
                Some((At::Block { item, block }, output, self.call_of(output)))
            }
            _ => None,
        })
    }

    /// The tokens of a block. They are counted once.
    pub fn tokens(&self, item: usize, block: usize) -> Tokens {
        if let Some(tokens) = self.known_tokens(item, block) {
            return tokens;
        }
        let tokens = match self.transcript.items[item].entry() {
            Some(entry) => block_tokens(&entry.blocks[block], self.source, self.counter),
            None => Tokens(0),
        };
        self.remember([((item, block), tokens)]);
        tokens
    }

    /// The tokens of an item.
    pub fn item_tokens(&self, item: usize) -> Tokens {
        let blocks = self.transcript.items[item].entry().map_or(0, |entry| entry.blocks.len());
        (0..blocks).map(|block| self.tokens(item, block)).sum()
    }

    /// The tokens of a block; `None` if they have not been counted yet.
    fn known_tokens(&self, item: usize, block: usize) -> Option<Tokens> {
        let known = self.known.get(item).and_then(|blocks| blocks.get(block)).copied();
        let counted = || {
            let tokens = self.tokens.read().unwrap_or_else(PoisonError::into_inner);
            tokens.get(&(item, block)).copied()
        };
        known.or_else(counted)
    }

    fn remember(&self, counted: impl IntoIterator<Item = ((usize, usize), Tokens)>) {
        self.tokens.write().unwrap_or_else(PoisonError::into_inner).extend(counted);
    }

    /// The tokens that a resume would send. Blocks without a count are counted, on all cores.
    pub fn context_tokens(&self) -> Tokens {
        let context = self.transcript.context();
        let blocks = context.flat_map(|(item, entry)| {
            let blocks = entry.blocks.iter().enumerate();
            blocks.map(move |(block, said)| ((item, block), said))
        });
        let mut total = Tokens(0);
        let mut open = Vec::new();
        for (at, said) in blocks {
            match self.known_tokens(at.0, at.1) {
                Some(tokens) => total += tokens,
                None => open.push((at, said)),
            }
        }
        let source = self.source;
        let counter = self.counter;
        let counted = on_all_cores(open, |(at, said)| (at, block_tokens(said, source, counter)));
        total += counted.iter().map(|(_, tokens)| *tokens).sum();
        self.remember(counted);
        total
    }

    /// The characters of a block, as written in JSON.
    pub fn chars(&self, item: usize, block: usize) -> u64 {
        let entry = self.transcript.items[item].entry();
        entry.map_or(0, |entry| block_chars(&entry.blocks[block], self.source))
    }

    /// The characters that a resume would send, including what the API format adds around texts.
    pub fn context_chars(&self) -> u64 {
        let context = self.transcript.context();
        let blocks = context.flat_map(|(_, entry)| &entry.blocks);
        blocks.map(|block| block_chars(block, self.source) + CHARS_AROUND).sum()
    }

    /// The size of the context. The bytes are those of the source; characters are not counted (0).
    pub fn size(&self) -> ContextSize {
        let entries = || self.transcript.context().map(|(_, entry)| entry);
        let blocks = entries().flat_map(|entry| &entry.blocks);
        let tokens = self.context_tokens();
        ContextSize {
            tokens,
            bytes: self.source.len(),
            chars: 0,
            results: blocks.filter(|block| matches!(block, Block::Output(_))).count() as u64,
            turns: entries().filter(|entry| entry.role == Role::User).count() as u64,
            messages: messages(entries()).len() as u64,
            counted: tokens,
        }
    }

    /// Sets token counts that another view of this transcript has: its [`View::known_counts`].
    #[must_use]
    pub fn with_known_counts(self, counts: &BTreeMap<(usize, usize), Tokens>) -> View<'a> {
        self.remember(counts.iter().map(|(at, tokens)| (*at, *tokens)));
        self
    }

    /// The tokens of the blocks that this view has counted, and those that
    /// [`View::with_known_counts`] set, by item and block index. Counts that [`View::with_counts`]
    /// set are not included.
    pub fn known_counts(&self) -> BTreeMap<(usize, usize), Tokens> {
        let tokens = self.tokens.read().unwrap_or_else(PoisonError::into_inner);
        tokens.iter().map(|(at, tokens)| (*at, *tokens)).collect()
    }

    /// Marks the positions of edits, so that later passes do not edit them.
    pub fn mark_edited(&mut self, edits: &[Edit]) {
        self.edited.extend(edits.iter().map(|edit| edit.at));
    }

    /// Whether an earlier pass edits this position or the block around it.
    pub fn is_edited(&self, at: At) -> bool {
        self.edited.contains(&at)
            || match at {
                At::Field { item, block, .. } | At::Part { item, block, .. } => {
                    self.edited.contains(&At::Block { item, block })
                }
                At::Block { .. } | At::Items { .. } | At::HiddenField { .. } => false,
            }
    }

    /// Whether a result may be replaced by a stub: it has text (or this is a view for reading),
    /// none of which is the user's; it has no part of an unknown kind; and no recipe has replaced
    /// it before, except by truncation on ingest.
    pub fn stubbable(&self, output: &Output) -> bool {
        self.is_words(output)
            && (!self.left_by_recipe(output) || self.ingest_original(output).is_some())
    }

    fn is_words(&self, output: &Output) -> bool {
        let opaque = output.parts.iter().any(|part| matches!(part, Part::Opaque(_)));
        let words =
            self.reading.is_some() || output.parts.iter().any(|part| matches!(part, Part::Text(_)));
        !opaque && words && !output.from_user && !output.whole.is_empty()
    }

    /// The original of a result that was truncated on ingest: the first result of the same call, if
    /// it has the hash that the stub names. `None` if the transcript does not contain the original,
    /// for any other result, and in a view for reading.
    pub fn ingest_original(&self, output: &Output) -> Option<&'a Output> {
        self.whole_of(output, |stub| stub.description() == SHORTENED)
    }

    /// The original of a result that is a stub with lines below it: the first result of the same
    /// call, if it has the hash that the stub names. `None` if the transcript does not contain the
    /// original, for any other result, and in a view for reading.
    pub fn stub_original(&self, output: &Output) -> Option<&'a Output> {
        self.whole_of(output, |stub| !stub.body().is_empty())
    }

    fn whole_of(&self, output: &Output, is_it: impl Fn(&Stub) -> bool) -> Option<&'a Output> {
        if self.reading.is_some() || !self.left_by_recipe(output) {
            return None;
        }
        let stub = Stub::parse(&output.text(self.source)).filter(is_it)?;
        let first = *self.first().get(&*output.call)?;
        let is_whole = Ref::from_bytes(&self.source.at(first.whole)) == *stub.reference();
        (first.whole != output.whole && is_whole).then_some(first)
    }

    fn first(&self) -> &HashMap<&'a str, &'a Output> {
        self.first.get_or_init(|| {
            let mut first = HashMap::new();
            for (_, output, _) in self.outputs() {
                first.entry(&*output.call).or_insert(output);
            }
            first
        })
    }

    fn left_by_recipe(&self, output: &Output) -> bool {
        match output.parts.as_slice() {
            [Part::Text(text)] => self.is_recipe_text(text),
            _ => false,
        }
    }

    /// Whether a recipe wrote this text in place of another one. Always false for a stub in a view
    /// for reading.
    pub fn is_recipe_text(&self, text: &Text) -> bool {
        let begins = match text {
            Text::Source(span) => {
                let head = self.source.read(span.start..span.start + 3);
                let head = head.strip_prefix(b"\\").unwrap_or(&head);
                matches!(head, [b'"' | b'\'' | b'`', b'[', ..])
            }
            Text::Owned(text) => text.starts_with('['),
        };
        begins && {
            let text = text.read(self.source);
            is_left_by_recipe(&text) && (self.reading.is_none() || Stub::parse(&text).is_none())
        }
    }

    /// The number of lines of a text. In a view for reading, a stub has the number of lines of its
    /// original.
    pub fn lines(&self, text: &str) -> Lines {
        let Some(lines_of) = self.reading else { return line_count(text) };
        match Stub::parse(text) {
            // A stub states no number of lines if its original has only one.
            Some(stub) => stub.lines().or_else(|| lines_of(stub.reference())).unwrap_or(Lines(1)),
            None => line_count(text),
        }
    }

    /// A short description of a call: the name of the tool and the target. `result` if there is no
    /// call.
    pub fn describe_call(&self, call: Option<&Call>) -> String {
        let Some(call) = call else { return "result".into() };
        match &call.target {
            Some(target) => {
                format!("{} {}", call.name, self.target(&target.read(self.source), 60))
            }
            None => call.name.to_string(),
        }
    }

    /// A target on one line, in at most `most` characters. A path is relative to the session's
    /// folder if it is in that folder.
    fn target(&self, target: &str, most: usize) -> String {
        let below = self.transcript.head.cwd.as_deref().and_then(|cwd| {
            target.strip_prefix(cwd).and_then(|rest| rest.strip_prefix(['/', '\\']))
        });
        short(below.unwrap_or(target), most)
    }

    /// The call that contains a position, or whose result contains it; `None` if there is no such
    /// call.
    pub fn call_at(&self, at: At) -> Option<&'a Call> {
        let block = match at {
            At::Block { block, .. } | At::Field { block, .. } | At::Part { block, .. } => block,
            At::Items { .. } | At::HiddenField { .. } => return None,
        };
        match self.transcript.items[at.item()].entry()?.blocks.get(block)? {
            Block::Call(call) => Some(call),
            Block::Output(output) => self.call_of(output),
            Block::Repeated(again) => self.call_of(&again.output),
            _ => None,
        }
    }

    /// The file that a call reads or changes, relative to the session's folder, on one line of at
    /// most 200 characters. `None` if the call does neither, or if its target is unknown.
    pub fn file_of(&self, call: &Call) -> Option<String> {
        let is_of_file = call.kind == ToolKind::Read || call.kind.changes_file();
        let target = call.target.as_ref().filter(|_| is_of_file)?;
        Some(self.target(&target.read(self.source), 200))
    }

    /// A short description of the content at a position.
    pub fn describe(&self, at: At) -> String {
        let item = &self.transcript.items[at.item()];
        let block = |block: usize| item.entry().and_then(|entry| entry.blocks.get(block));
        match at {
            At::HiddenField { field, .. } => {
                item.hidden_fields().get(field).map_or("copy", |field| field.name).to_owned()
            }
            At::Part { .. } => "image".into(),
            At::Items { .. } => "messages".into(),
            At::Field { block: idx, field, .. } => match block(idx) {
                Some(Block::Call(call)) => {
                    let name = call.fields.get(field).map_or("argument", |field| &*field.name);
                    format!("{name} of {}", self.describe_call(Some(call)))
                }
                _ => "argument".into(),
            },
            At::Block { block: idx, .. } => match block(idx) {
                Some(Block::Output(output)) => self.describe_call(self.call_of(output)),
                Some(Block::Repeated(again)) => {
                    format!("{}, said again", self.describe_call(self.call_of(&again.output)))
                }
                Some(Block::Thinking(_)) => "thinking".into(),
                Some(Block::Image(image)) => image.media.to_string(),
                Some(_) | None => "block".into(),
            },
        }
    }

    /// The path of the file that was read or written at a position, and its text as in the file.
    /// `None` for any other position, and if the path is unknown.
    pub fn file_text(&self, at: At) -> Option<(String, String)> {
        let (At::Block { item, block } | At::Field { item, block, .. }) = at else { return None };
        let content = self.transcript.items[item].entry()?.blocks.get(block)?;
        let (call, text) = match (content, at) {
            (Block::Output(output), At::Block { .. }) => {
                let call = self.call_of(output).filter(|call| call.kind == ToolKind::Read)?;
                let text = output.text(self.source);
                (call, if output.numbered { without_numbers(&text) } else { text })
            }
            (Block::Call(call), At::Field { field, .. }) if call.kind == ToolKind::Write => {
                (call, call.fields.get(field)?.text.read(self.source).into_owned())
            }
            _ => return None,
        };
        Some((call.target.as_ref()?.read(self.source).into_owned(), text))
    }

    /// A stub for a result. If the result has a call, the stub needs no description, because the
    /// call before it shows what was done.
    pub fn stub(&self, output: &Output, call: Option<&Call>, text: &str) -> Stub {
        let stub = Stub::from_text(Ref::from_bytes(&self.source.at(output.whole)), text);
        if call.is_some() { stub } else { stub.with_what("result") }
    }

    /// A stub for `text`; `words` is the same text, decoded.
    pub fn stub_of_text(&self, text: &Text, words: &str) -> Stub {
        Stub::from_text(self.reference(text), words)
    }

    /// The reference of a text that is removed.
    pub fn reference(&self, text: &Text) -> Ref {
        match text {
            Text::Source(span) => Ref::from_bytes(&self.source.at(*span)),
            Text::Owned(text) => Ref::from_bytes(text.as_bytes()),
        }
    }

    /// An edit that replaces an argument. `None` unless the argument becomes shorter in bytes, and
    /// by at least 4 tokens: a text may have a few more tokens next to other arguments than on its
    /// own. In a view for reading, sizes do not matter.
    pub fn replace_argument(
        &self,
        at: At,
        text: &Text,
        new: String,
        pass: &'static str,
    ) -> Option<Edit> {
        const MARGIN: Tokens = Tokens(4);
        let old = match text {
            Text::Source(span) => self.source.at(*span),
            Text::Owned(text) => Cow::Owned(encode(text).into_bytes()),
        };
        let with = encode_as(&new, &old);
        let (was, is) = if self.is_all_arguments(at, text) {
            (decode(&old), Cow::Borrowed(&*new))
        } else {
            (literal_as_text(&old), literal_as_text(with.as_bytes()))
        };
        let smaller = self.reading.is_some()
            || with.len() < old.len()
                && self.counter.count(&is) + MARGIN <= self.counter.count(&was);
        smaller.then_some(Edit { at, verb: Verb::Replace(new), pass })
    }

    /// Whether this text is the only argument of a call and is sent as plain text: a script, a
    /// patch.
    fn is_all_arguments(&self, at: At, text: &Text) -> bool {
        let At::Field { item, block, .. } = at else { return false };
        let content = self.transcript.items[item].entry().and_then(|entry| entry.blocks.get(block));
        matches!(content, Some(Block::Call(call)) if Some(call.arguments) == text.span())
    }

    /// An edit that replaces `old` by `new`. `None` unless `new` has fewer bytes than `old`, as
    /// text and as JSON, and not more tokens. In a view for reading, sizes do not matter.
    pub fn replace(&self, at: At, old: &str, new: String, pass: &'static str) -> Option<Edit> {
        // The texts are compared as JSON, in which a line feed takes two bytes. `old` is encoded
        // only if its length and two quotes do not decide.
        let written = encode(&new).len();
        let shorter = || written < old.len() + 2 || written < encode(old).len();
        let fewer = || self.has_at_least(at, old, self.counter.count(&new));
        let smaller = self.reading.is_some() || new.len() < old.len() && shorter() && fewer();
        smaller.then_some(Edit { at, verb: Verb::Replace(new), pass })
    }

    /// Whether the text at `at` has at least `least` tokens. If `at` is a block, but not a result
    /// with exactly one text, the whole block must also have at least `least` tokens.
    fn has_at_least(&self, at: At, text: &str, least: Tokens) -> bool {
        let At::Block { item, block } = at else {
            return has_at_least(text, least, self.counter);
        };
        let entry = self.transcript.items[item].entry();
        let is_one_text = entry.and_then(|entry| entry.blocks.get(block)).is_some_and(|said| {
            matches!(said, Block::Output(output) if matches!(output.parts[..], [Part::Text(_)]))
        });
        if !is_one_text {
            // The parts of a result may have fewer tokens than their joined text.
            return least <= self.tokens(item, block) && has_at_least(text, least, self.counter);
        }
        match self.known_tokens(item, block) {
            Some(tokens) => least <= tokens,
            None => has_at_least(text, least, self.counter),
        }
    }

    /// The text of a block or field, decoded.
    pub fn text<'t>(&'t self, text: &'t Text) -> Cow<'t, str> {
        text.read(self.source)
    }
}

/// Returns the number of lines of the archived text under a reference, if it is known.
pub type LinesOf<'a> = &'a (dyn Fn(&Ref) -> Option<Lines> + Sync);

/// The results of `each`, in order. Many results are computed on all cores; for a few, starting
/// threads takes longer than the work.
pub fn on_all_cores<T: Send, R: Send>(all: Vec<T>, each: impl Fn(T) -> R + Sync + Send) -> Vec<R> {
    const ENOUGH: usize = 64;
    if all.len() < ENOUGH { all.into_iter().map(each).collect() } else { parallel::map(all, each) }
}

/// A counter that always returns 0, for views that are shown to a person without token counts.
struct Nothing;

impl Counter for Nothing {
    fn name(&self) -> &'static str {
        "nothing"
    }

    fn count(&self, _: &str) -> Tokens {
        Tokens(0)
    }
}

/// The text of a file, without the line numbers that a tool put before the lines. The returned text
/// ends before the first line without a number.
pub(crate) fn without_numbers(text: &str) -> String {
    let lines = text.lines().map_while(|line| {
        let line = line.trim_start();
        let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
        let has_number = rest.len() < line.len();
        rest.strip_prefix(['→', '\t']).filter(|_| has_number)
    });
    lines.flat_map(|line| [line, "\n"]).collect()
}

#[cfg(test)]
#[path = "view_tests.rs"]
mod tests;
