//! What becomes what, block by block.

use std::borrow::Cow;
use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};
use epitome::{Loaded, Planned};
use epitome_model::{At, Block, Change, Counter, Part, Source};
use epitome_passes::View;
use similar::{ChangeTag, TextDiff};

use crate::text::{BOLD, DIM, visible};

const GONE: Style = AnsiColor::Red.on_default();
const NEW: Style = AnsiColor::Green.on_default();

/// Lines of a run that are shown.
const RUN: usize = 8;
/// Characters of a line that are shown.
const WIDTH: usize = 160;

/// Every edit of a plan: the words that go, and those that take their place.
pub fn render<S: Source>(planned: &Planned<'_, S>, counter: &dyn Counter) -> String {
    let Loaded { source, transcript, .. } = planned.session;
    let view = View::new(transcript, source, counter);
    let mut text = String::new();
    let mut edits: Vec<_> = planned.compaction.edits.iter().collect();
    edits.sort_by_key(|edit| edit.edit.at.item());
    for edit in edits {
        let at = edit.edit.at;
        let line = transcript.items[at.item()].record().line;
        let what = visible(&view.describe(at));
        let saved = match edit.tokens.0 {
            0 => String::new(),
            _ => format!(", -{} tokens", edit.tokens),
        };
        let _ = writeln!(
            text,
            "{BOLD}line {line}: {what}{BOLD:#} {DIM}({}{saved}){DIM:#}",
            edit.edit.pass
        );
        let before = words(planned.session, at);
        let after = match &edit.edit.change {
            Change::Replace(words) => words.as_str(),
            Change::Drop => "",
            _ => "",
        };
        hunk(&mut text, &before, after);
        text.push('\n');
    }
    text
}

/// The words at a place, decoded.
fn words<S: Source>(session: &Loaded<S>, at: At) -> String {
    let Loaded { source, transcript, .. } = session;
    let item = &transcript.items[at.item()];
    let block = |idx: usize| item.entry().and_then(|entry| entry.blocks.get(idx));
    let raw = |span| String::from_utf8_lossy(&source.at(span)).into_owned();
    let image = |media: &str, len: u64| format!("{media}, {len} characters of base64");
    match at {
        At::Copy { copy, .. } => {
            item.copies().get(copy).map_or_else(String::new, |copy| raw(copy.value))
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
            Some(Block::Again(again)) => again.output.text(source),
            Some(Block::Image(picture)) => image(&picture.media, picture.data.len()),
            Some(Block::Opaque(span)) => raw(*span),
            _ => String::new(),
        },
    }
}

/// Lines that go, stay and come; the middle of a long run is counted.
fn hunk(out: &mut String, before: &str, after: &str) {
    // A last line is the same line with and without its line feed.
    let (before, after) = (ended(before), ended(after));
    let diff = TextDiff::from_lines(&*before, &*after);
    let mut run: Vec<String> = Vec::new();
    let mut tag = None;
    for change in diff.iter_all_changes() {
        if tag != Some(change.tag()) {
            flush(out, tag, &mut run);
            tag = Some(change.tag());
        }
        run.push(change.value().trim_end_matches('\n').to_owned());
    }
    flush(out, tag, &mut run);
}

fn ended(text: &str) -> Cow<'_, str> {
    match text.is_empty() || text.ends_with('\n') {
        true => Cow::Borrowed(text),
        false => Cow::Owned(format!("{text}\n")),
    }
}

fn flush(out: &mut String, tag: Option<ChangeTag>, run: &mut Vec<String>) {
    let (mark, style) = match tag {
        Some(ChangeTag::Delete) => ('-', GONE),
        Some(ChangeTag::Insert) => ('+', NEW),
        Some(ChangeTag::Equal) | None => (' ', Style::new()),
    };
    let long = run.len() > RUN + 1;
    let (head, tail) = if long { (RUN / 2, RUN / 2) } else { (run.len(), 0) };
    for line in &run[..head] {
        let _ = writeln!(out, "  {style}{mark} {}{style:#}", cut(line));
    }
    if long {
        let _ = writeln!(out, "  {DIM}{mark} … {} more lines{DIM:#}", run.len() - head - tail);
        for line in &run[run.len() - tail..] {
            let _ = writeln!(out, "  {style}{mark} {}{style:#}", cut(line));
        }
    }
    run.clear();
}

fn cut(line: &str) -> String {
    let shown = visible(line);
    let mut cut: String = shown.chars().take(WIDTH).collect();
    if shown.chars().count() > WIDTH {
        cut.pop();
        cut.push('…');
    }
    cut
}
