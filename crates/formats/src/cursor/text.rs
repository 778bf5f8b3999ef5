//! Transcripts as plain text, from before they were JSON.
//!
//! ```text
//! user:
//! <user_query>
//! …
//! </user_query>
//!
//! assistant:
//! [Thinking] …
//! [Tool call] Read
//!   path: src/main.rs
//!
//! [Tool result] Read
//! …
//! ```
//!
//! A line with a speaker begins an entry. In an entry of the assistant, a line that begins with one
//! of the marks in brackets begins a part. A result ends only at the next line of either kind.

use epitome_model::{
    Block, Call, Entry, Fault, Faults, Item, Output, Part, Record, Role, Source, Span, Text,
    Thinking, Transcript,
};

use super::message::Calls;
use super::record::hidden_item;
use super::tools;
use super::transcript::first_words;
use crate::lines;

/// The beginnings of the lines that begin an entry.
const SPEAKERS: [(&[u8], Role); 3] =
    [(b"user:", Role::User), (b"assistant:", Role::Assistant), (b"A:", Role::Assistant)];

/// The beginnings of the lines that begin a part of an assistant's entry.
const PARTS: [(&[u8], Kind); 3] = [
    (b"[Thinking]", Kind::Thinking),
    (b"[Tool call]", Kind::Call),
    (b"[Tool result]", Kind::Result),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Words,
    Thinking,
    Call,
    Result,
}

/// Whether the text begins with `user:`, and continues with `<user_query>` or has a line later with
/// which a text or a call of the assistant begins.
pub fn begins(head: &[u8]) -> bool {
    let Some(rest) = head.strip_prefix(b"user:") else { return false };
    let query = rest.trim_ascii_start().starts_with(b"<user_query>");
    let answers: [&[u8]; 3] = [b"\nassistant:\n", b"\nA:\n", b"\n[Tool call]"];
    query || answers.iter().any(|words| memchr::memmem::find(rest, words).is_some())
}

/// Reads a transcript.
pub fn read(source: &dyn Source, faults: &mut dyn Faults) -> Transcript {
    let mut reader = Reader::default();
    lines(source, |line| {
        if std::str::from_utf8(line.bytes).is_err() {
            faults.report(Fault::not_utf8(line.record.line));
        }
        reader.line(line.bytes, line.record);
    });
    reader.close_entry();
    let mut transcript = reader.transcript;
    transcript.head.title = first_words(&transcript, source);
    transcript
}

#[derive(Default)]
struct Reader {
    transcript: Transcript,
    entry: Option<Entry>,
    part: Option<EntryPart>,
    calls: Calls,
}

/// A part of an entry, as far as it has been read.
struct EntryPart {
    kind: Kind,
    /// The span of the part, without its mark. It may end with empty lines.
    span: Span,
    bytes: Vec<u8>,
}

impl Reader {
    fn line(&mut self, bytes: &[u8], record: Record) {
        if let Some((role, rest)) = after_mark(bytes, &SPEAKERS) {
            self.close_entry();
            self.entry = Some(Entry { record, role, ..Entry::default() });
            self.begin(Kind::Words, rest, record.span);
            return;
        }
        let Some(entry) = &mut self.entry else {
            self.transcript.items.push(hidden_item(record));
            return;
        };
        let role = entry.role;
        entry.record.span.end = record.span.end;
        match after_mark(bytes, &PARTS) {
            Some((kind, rest)) if role == Role::Assistant => {
                self.close_part();
                self.begin(kind, rest, record.span);
            }
            // An empty line ends the arguments of a call, and so the call.
            Some(_) | None if bytes.trim_ascii().is_empty() && self.is_in(Kind::Call) => {
                self.close_part();
            }
            Some(_) | None => self.go_on(bytes, record.span),
        }
    }

    fn is_in(&self, kind: Kind) -> bool {
        self.part.as_ref().is_some_and(|part| part.kind == kind)
    }

    fn begin(&mut self, kind: Kind, rest: &[u8], line: Span) {
        let words = rest.trim_ascii_start();
        let span = Span { start: line.end - words.len() as u64, end: line.end };
        self.part = Some(EntryPart { kind, span, bytes: words.to_vec() });
    }

    fn go_on(&mut self, bytes: &[u8], line: Span) {
        match &mut self.part {
            Some(part) if !part.bytes.is_empty() => {
                part.bytes.push(b'\n');
                part.bytes.extend_from_slice(bytes);
                part.span.end = line.end;
            }
            // Empty lines before the first word do not belong to the part.
            Some(part) => {
                part.span = line;
                part.bytes.extend_from_slice(bytes);
            }
            None => self.begin(Kind::Words, bytes, line),
        }
    }

    fn close_part(&mut self) {
        let (Some(part), Some(entry)) = (self.part.take(), &mut self.entry) else { return };
        let words = String::from_utf8_lossy(part.bytes.trim_ascii_end());
        if words.is_empty() && part.kind == Kind::Words {
            return;
        }
        // The text is copied: as a span of the source, a text that begins with a quote would be
        // read as a string literal.
        let text = Text::Owned(words.as_ref().into());
        entry.blocks.push(match part.kind {
            Kind::Words => Block::Text(text),
            Kind::Thinking => {
                Block::Thinking(Thinking { text: Some(text), whole: part.span, removable: false })
            }
            Kind::Call => Block::Call(call(&words, part.span, &mut self.calls)),
            Kind::Result => {
                let (call, from_user) = self.calls.end(None);
                Block::Output(Output {
                    call,
                    parts: vec![Part::Text(text)],
                    whole: part.span,
                    from_user,
                    ..Output::default()
                })
            }
        });
    }

    fn close_entry(&mut self) {
        self.close_part();
        let Some(entry) = self.entry.take() else { return };
        if entry.blocks.is_empty() {
            self.transcript.items.push(hidden_item(entry.record));
            return;
        }
        self.transcript.context.push(self.transcript.items.len());
        self.transcript.items.push(Item::Entry(Box::new(entry)));
    }
}

/// The value of the mark with which a line begins, and the rest of the line. `None` if the line
/// begins with none of `marks`.
fn after_mark<'l, T: Clone>(bytes: &'l [u8], marks: &[(&[u8], T)]) -> Option<(T, &'l [u8])> {
    marks.iter().find_map(|(mark, what)| Some((what.clone(), bytes.strip_prefix(*mark)?)))
}

/// A call: the name of its tool, and arguments in lines `name: value`. The arguments are not JSON:
/// they are kept as text, and the first value is used as the target.
fn call(words: &str, span: Span, calls: &mut Calls) -> Call {
    let name = words.split_whitespace().next().unwrap_or("unknown");
    let kind = tools::classify(name, None).kind;
    let target = words.lines().skip(1).find_map(|line| Some(line.split_once(':')?.1.trim()));
    Call {
        id: calls.begin(None, kind == epitome_model::ToolKind::Ask),
        name: name.into(),
        kind,
        target: target.map(|target| Text::Owned(target.into())),
        part: None,
        fields: Vec::new(),
        arguments: span,
    }
}
