//! Applies edits to a transcript in memory: for the next stage of a plan, which works on the result
//! of the earlier stages, and for callers that show a session.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::ops::Range;

use crate::{
    At, Block, Call, Cut, Edit, Entry, Item, Part, ReadFailure, Role, Source, Span, Summary, Text,
    Transcript, Verb, encode, encode_as,
};

/// A transcript with edits applied, and the source of its texts: the original source, followed by
/// the texts that the edits put in.
///
/// It can be made for every format, also for those that epitome only reads, because nothing is
/// written in the agent's format. For the text of a cut or a summary, an entry is added at the end
/// of the items. `context` has the index of this entry at the position where the text is sent. No
/// record holds the entry, so its [`Record`](crate::Record) is the default one.
///
/// ```
/// use epitome_model::{At, Block, Edit, EditedTranscript, Entry, Item, Text, Transcript, Verb};
///
/// let source: &[u8] = br#""all of it""#;
/// let words = Block::Text(Text::Owned("all of it".into()));
/// let entry = Entry { blocks: vec![words], ..Entry::default() };
/// let items = vec![Item::Entry(Box::new(entry))];
/// let transcript = Transcript { items, ..Transcript::default() };
/// let at = At::Block { item: 0, block: 0 };
/// let edit = Edit { at, verb: Verb::Replace("less".into()), pass: "example" };
///
/// let applied = EditedTranscript::new(&transcript, &source, &[edit]);
/// let (_, entry) = applied.transcript.entries().next().expect("it has one");
/// let Block::Text(text) = &entry.blocks[0] else { panic!("it is still a text") };
/// assert_eq!(text.read(&applied.source), "less");
/// ```
pub struct EditedTranscript<'a> {
    /// The transcript after the edits.
    pub transcript: Transcript,
    /// The source that the spans of `transcript` point into.
    pub source: ExtendedSource<'a>,
}

impl<'a> EditedTranscript<'a> {
    /// Applies `edits`. An edit is ignored if its position does not exist, or if its verb does not
    /// suit the position.
    pub fn new(
        transcript: &Transcript,
        source: &'a dyn Source,
        edits: &[Edit],
    ) -> EditedTranscript<'a> {
        let source = ExtendedSource { base: source, more: Vec::new() };
        let mut applied = EditedTranscript { transcript: transcript.clone(), source };
        let mut by_item: BTreeMap<usize, Vec<&Edit>> = BTreeMap::new();
        for edit in edits {
            by_item.entry(edit.at.item()).or_default().push(edit);
        }
        for (item, edits) in by_item {
            match applied.transcript.items.get_mut(item) {
                Some(Item::Entry(entry)) => {
                    applied.source.edit_entry(entry, &edits);
                    drop_hidden_fields(&mut entry.hidden_fields, &edits);
                }
                Some(Item::Hidden(hidden)) => drop_hidden_fields(&mut hidden.hidden_fields, &edits),
                None => {}
            }
        }
        for edit in edits {
            match &edit.verb {
                Verb::Cut(cut) => applied.cut(cut),
                Verb::Summarise(summary) => applied.summarise(summary),
                Verb::Replace(_) | Verb::Drop => {}
            }
        }
        applied
    }

    /// Removes the items of a cut from the context, and puts an entry with the text of the cut in
    /// the place of the first removed item. If none of the items is in the context, the context
    /// does not change.
    fn cut(&mut self, cut: &Cut) {
        let text = Text::Source(self.source.put(encode(&cut.text).as_bytes()));
        let new = self.add(Role::System, Block::Text(text));
        let gone: HashSet<usize> = cut.items.iter().copied().collect();
        let context = &mut self.transcript.context;
        if let Some(first) = context.iter().position(|item| gone.contains(item)) {
            context.insert(first, new);
        }
        context.retain(|item| !gone.contains(item));
    }

    /// Replaces the context by the system prompt (`head.prompt`), if the context has it, the text
    /// of a summary, and the items that the summary keeps.
    fn summarise(&mut self, summary: &Summary) {
        let text = Text::Source(self.source.put(encode(&summary.text).as_bytes()));
        let new = self.add(Role::User, Block::Summary(text));
        let Transcript { head, context, .. } = &mut self.transcript;
        context.retain(|item| head.prompt.contains(item));
        context.push(new);
        context.extend(&summary.kept);
    }

    /// Adds an entry of one block at the end of the items. Returns its index.
    fn add(&mut self, role: Role, block: Block) -> usize {
        let entry = Entry { role, blocks: vec![block], ..Entry::default() };
        self.transcript.items.push(Item::Entry(Box::new(entry)));
        self.transcript.items.len() - 1
    }
}

/// The source of an [`EditedTranscript`]: an original source, followed by the texts that edits
/// inserted.
pub struct ExtendedSource<'a> {
    base: &'a dyn Source,
    more: Vec<u8>,
}

impl Source for ExtendedSource<'_> {
    fn len(&self) -> u64 {
        self.base.len() + self.more.len() as u64
    }

    fn read(&self, range: Range<u64>) -> Cow<'_, [u8]> {
        let base = self.base.len();
        if range.end <= base {
            return self.base.read(range);
        }
        let end = usize::try_from(range.end - base).unwrap_or(usize::MAX).min(self.more.len());
        if range.start >= base {
            let start = usize::try_from(range.start - base).unwrap_or(usize::MAX).min(end);
            return Cow::Borrowed(&self.more[start..end]);
        }
        let mut bytes = self.base.read(range.start..base).into_owned();
        bytes.extend_from_slice(&self.more[..end]);
        Cow::Owned(bytes)
    }

    fn read_failure(&self) -> Option<ReadFailure> {
        self.base.read_failure()
    }
}

/// The methods that edit blocks. They belong to the source because they append the new texts to it.
impl ExtendedSource<'_> {
    fn edit_entry(&mut self, entry: &mut Entry, edits: &[&Edit]) {
        let mut gone = vec![false; entry.blocks.len()];
        for (idx, block) in entry.blocks.iter_mut().enumerate() {
            let mut fields = BTreeMap::new();
            let mut parts = Vec::new();
            for edit in edits {
                match (edit.at, &edit.verb) {
                    (At::Block { block, .. }, Verb::Drop) if block == idx => gone[idx] = true,
                    (At::Block { block: at, .. }, Verb::Replace(text)) if at == idx => {
                        self.replace_block(block, text);
                    }
                    (At::Field { block, field, .. }, Verb::Replace(text)) if block == idx => {
                        fields.insert(field, &**text);
                    }
                    (At::Part { block, part, .. }, verb) if block == idx => {
                        parts.push((part, verb));
                    }
                    _ => {}
                }
            }
            match block {
                Block::Call(call) if !fields.is_empty() => self.replace_fields(call, &fields),
                Block::Output(output) => self.edit_parts(&mut output.parts, &parts),
                _ => {}
            }
        }
        let mut gone = gone.into_iter();
        entry.blocks.retain(|_| !gone.next().unwrap_or_default());
    }

    fn replace_block(&mut self, block: &mut Block, text: &str) {
        let span = self.put(encode(text).as_bytes());
        match block {
            Block::Output(output) => {
                output.parts = vec![Part::Text(Text::Source(span))];
                output.whole = span;
            }
            Block::Summary(words) => *words = Text::Source(span),
            _ => *block = Block::Text(Text::Source(span)),
        }
    }

    fn edit_parts(&mut self, parts: &mut Vec<Part>, edits: &[(usize, &Verb)]) {
        let mut gone = vec![false; parts.len()];
        for (idx, verb) in edits {
            let Some(part) = parts.get_mut(*idx) else { continue };
            match verb {
                Verb::Replace(text) => {
                    *part = Part::Text(Text::Source(self.put(encode(text).as_bytes())));
                }
                Verb::Drop => gone[*idx] = true,
                Verb::Cut(_) | Verb::Summarise(_) => {}
            }
        }
        let mut gone = gone.into_iter();
        parts.retain(|_| !gone.next().unwrap_or_default());
    }

    /// Replaces the texts of fields of a call. Also makes new raw arguments (`call.arguments`) with
    /// these texts, so that a caller that shows the raw arguments does not show the old ones.
    fn replace_fields(&mut self, call: &mut Call, new: &BTreeMap<usize, &str>) {
        let mut places: Vec<(Span, usize)> = call
            .fields
            .iter()
            .enumerate()
            .filter_map(|(idx, field)| Some((field.text.span()?, idx)))
            .filter(|(span, _)| call.arguments.contains(*span))
            .collect();
        places.sort();
        let mut arguments = Vec::new();
        let mut moved = Vec::new();
        let mut from = call.arguments.start;
        for (span, idx) in places.into_iter().filter(|(_, idx)| new.contains_key(idx)) {
            if span.start < from {
                continue;
            }
            arguments.extend_from_slice(&self.read(from..span.start));
            let literal = encode_as(new[&idx], &self.read(span.start..span.start + 2));
            moved.push((idx, arguments.len(), literal.len()));
            arguments.extend_from_slice(literal.as_bytes());
            from = span.end;
        }
        arguments.extend_from_slice(&self.read(from..call.arguments.end));
        let known: Vec<usize> = moved.iter().map(|(idx, ..)| *idx).collect();
        let all = new.keys().all(|idx| known.contains(idx));
        // The arguments do not contain a field that is stored outside of them, so they could not
        // show its new text. They become `{}` then.
        call.arguments = if all { self.put(&arguments) } else { self.put(b"{}") };
        for (&idx, &text) in new {
            let Some(field) = call.fields.get_mut(idx) else { continue };
            let text = match moved.iter().find(|(moved, ..)| all && *moved == idx) {
                Some((_, at, len)) => {
                    let start = call.arguments.start + *at as u64;
                    Text::Source(Span { start, end: start + *len as u64 })
                }
                None => Text::Source(self.put(encode(text).as_bytes())),
            };
            if call.target.as_ref().is_some_and(|target| *target == field.text) {
                call.target = Some(text.clone());
            }
            field.text = text;
        }
    }

    /// Appends bytes to the source, and returns their span.
    fn put(&mut self, bytes: &[u8]) -> Span {
        let start = self.len();
        self.more.extend_from_slice(bytes);
        Span { start, end: self.len() }
    }
}

fn drop_hidden_fields(hidden_fields: &mut Vec<crate::HiddenField>, edits: &[&Edit]) {
    let mut idx = 0;
    hidden_fields.retain(|_| {
        let dropped = edits.iter().any(|edit| match (edit.at, &edit.verb) {
            (At::HiddenField { field, .. }, Verb::Drop) => field == idx,
            _ => false,
        });
        idx += 1;
        !dropped
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Field, FieldRemainder, FieldRole, Head, HiddenField, Output, Thinking, ToolKind};

    const SOURCE: &[u8] = br#"{"path":"a.rs","old":"one\ntwo","new":"three"}"result""#;

    fn span(text: &str) -> Span {
        let at = SOURCE.windows(text.len()).position(|it| it == text.as_bytes());
        let start = at.expect("it stands there") as u64;
        Span { start, end: start + text.len() as u64 }
    }

    fn transcript() -> Transcript {
        let field = |name: &str, role, literal| Field {
            name: name.into(),
            role,
            text: Text::Source(span(literal)),
        };
        let call = Call {
            id: "c".into(),
            name: "edit".into(),
            kind: ToolKind::Edit,
            target: Some(Text::Source(span("\"a.rs\""))),
            part: None,
            fields: vec![
                field("old", FieldRole::Old, r#""one\ntwo""#),
                field("new", FieldRole::New, "\"three\""),
            ],
            arguments: Span { start: 0, end: span("\"result\"").start },
        };
        let whole = span("\"result\"");
        let output = Output {
            call: "c".into(),
            error: false,
            parts: vec![Part::Text(Text::Source(whole))],
            whole,
            numbered: false,
            from_user: false,
        };
        let thinking = Thinking { text: None, whole: Span::default(), removable: true };
        let blocks = vec![Block::Thinking(thinking), Block::Call(call), Block::Output(output)];
        let entry = Entry { blocks, ..Entry::default() };
        Transcript { items: vec![Item::Entry(Box::new(entry))], ..Transcript::default() }
    }

    fn edit(at: At, text: Option<&str>) -> Edit {
        let verb = text.map_or(Verb::Drop, |text| Verb::Replace(text.into()));
        Edit { at, verb, pass: "test" }
    }

    #[test]
    fn every_kind_of_edit_is_carried_out_at_once() {
        let edits = [
            edit(At::Block { item: 0, block: 0 }, None),
            edit(At::Field { item: 0, block: 1, field: 0 }, Some("[old: 2 lines]")),
            edit(At::Field { item: 0, block: 1, field: 1 }, Some("a \"word\"")),
            edit(At::Block { item: 0, block: 2 }, Some("[output: 1 line]")),
        ];
        let source = SOURCE;
        let applied = EditedTranscript::new(&transcript(), &source, &edits);
        let entry = applied.transcript.items[0].entry().expect("an entry");
        let [Block::Call(call), Block::Output(output)] = &entry.blocks[..] else {
            panic!("the reasoning went: {entry:?}");
        };
        assert_eq!(
            String::from_utf8_lossy(&applied.source.at(call.arguments)),
            r#"{"path":"a.rs","old":"[old: 2 lines]","new":"a \"word\""}"#
        );
        let fields: Vec<_> =
            call.fields.iter().map(|field| field.text.read(&applied.source)).collect();
        assert_eq!(fields, ["[old: 2 lines]", "a \"word\""]);
        assert_eq!(
            call.target.as_ref().map(|it| it.read(&applied.source)).as_deref(),
            Some("a.rs")
        );
        assert_eq!(output.text(&applied.source), "[output: 1 line]");
    }

    #[test]
    fn a_field_that_stands_outside_of_its_arguments_takes_them_along() {
        let mut transcript = transcript();
        if let Item::Entry(entry) = &mut transcript.items[0]
            && let Block::Call(call) = &mut entry.blocks[1]
        {
            call.arguments = Span { start: 0, end: 5 };
        }
        let source = SOURCE;
        let at = At::Field { item: 0, block: 1, field: 0 };
        let applied = EditedTranscript::new(&transcript, &source, &[edit(at, Some("less"))]);
        let entry = applied.transcript.items[0].entry().expect("an entry");
        let Block::Call(call) = &entry.blocks[1] else { panic!("a call") };
        assert_eq!(&*applied.source.at(call.arguments), b"{}");
        assert_eq!(call.fields[0].text.read(&applied.source), "less");
    }

    #[test]
    fn parts_of_a_result_and_hidden_fields_are_edited_one_by_one() {
        let mut transcript = transcript();
        let part = |json| Part::Text(Text::Source(span(json)));
        let hidden =
            |name| HiddenField { name, value: span("\"result\""), left: FieldRemainder::Nothing };
        if let Item::Entry(entry) = &mut transcript.items[0]
            && let Block::Output(output) = &mut entry.blocks[2]
        {
            output.parts = vec![part("\"result\""), part("\"three\""), part("\"a.rs\"")];
            entry.hidden_fields = vec![hidden("first"), hidden("second"), hidden("third")];
        }
        let edits = [
            edit(At::Part { item: 0, block: 2, part: 0 }, None),
            edit(At::Part { item: 0, block: 2, part: 1 }, Some("less")),
            edit(At::HiddenField { item: 0, field: 1 }, None),
        ];
        let source = SOURCE;
        let applied = EditedTranscript::new(&transcript, &source, &edits);
        let entry = applied.transcript.items[0].entry().expect("an entry");
        let Block::Output(output) = &entry.blocks[2] else { panic!("a result") };
        assert_eq!(output.text(&applied.source), "less\na.rs");
        assert_eq!(entry.hidden_fields, [hidden("first"), hidden("third")]);
    }

    /// A session of four messages, of which the first is the system prompt.
    fn messages() -> Transcript {
        let messages = ["prompt", "one", "two", "three"].map(|text| {
            let blocks = vec![Block::Text(Text::Owned(text.into()))];
            Item::Entry(Box::new(Entry { blocks, ..Entry::default() }))
        });
        let head = Head { prompt: vec![0], ..Head::default() };
        Transcript { head, items: messages.into(), context: vec![0, 1, 2, 3] }
    }

    /// What is sent after an edit: the role and the text of each message.
    fn context_after(edit: Option<Edit>) -> Vec<(Role, String)> {
        let source: &[u8] = b"";
        let edits = [edit.expect("it removes something")];
        let applied = EditedTranscript::new(&messages(), &source, &edits);
        let texts = applied.transcript.context().map(|(_, entry)| match &entry.blocks[..] {
            [Block::Text(text) | Block::Summary(text)] => {
                (entry.role, text.read(&applied.source).into_owned())
            }
            blocks => panic!("one text: {blocks:?}"),
        });
        texts.collect()
    }

    #[test]
    fn a_cut_sends_its_text_in_the_place_of_its_items() {
        let cut = Cut { items: vec![1, 2], text: "[cut]".into(), messages: 2 };
        let role = Entry::default().role;
        assert_eq!(
            context_after(Edit::cut(cut)),
            [
                (role, "prompt".to_owned()),
                (Role::System, "[cut]".to_owned()),
                (role, "three".to_owned())
            ]
        );
    }

    #[test]
    fn a_summary_is_sent_between_the_prompt_and_what_it_keeps() {
        let summary = Summary { text: "[sum]".into(), kept: vec![3], ..Summary::default() };
        let role = Entry::default().role;
        assert_eq!(
            context_after(Edit::summary(summary, &[0, 1, 2, 3], "stage")),
            [
                (role, "prompt".to_owned()),
                (Role::User, "[sum]".to_owned()),
                (role, "three".to_owned())
            ]
        );
    }

    #[test]
    fn bytes_are_read_across_the_end_of_the_base() {
        let base: &[u8] = b"abc";
        let longer = ExtendedSource { base: &base, more: b"def".to_vec() };
        for (range, expect) in [(0..3, "abc"), (2..5, "cde"), (4..9, "ef"), (9..12, "")] {
            assert_eq!(&*longer.read(range.clone()), expect.as_bytes(), "{range:?}");
        }
    }
}
