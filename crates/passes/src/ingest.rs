//! A result is shortened once, before it is first sent, and never again for that: what a provider
//! has cached of the request stays as it is. In a stored session it is shortened as if it had been.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use epitome_model::{
    Counter, Lines, Output, Part, Ref, Stub, Text, Tokens, ToolKind, first_words, last_words,
    line_count,
};
use serde::{Deserialize, Serialize};

use crate::evidence::{is_definition, is_error_line};
use crate::key_blocks::without_key_blocks;

/// The name of the stage in edits and reports.
pub const INGEST: &str = "ingest";

/// Settings of the stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct IngestRule {
    /// Whether lines that stand in the context already are left out, with a word where they stand.
    pub repeats: bool,
    /// Results of more tokens than this are cut down to the lines that say most.
    pub cap: Option<u64>,
    /// Of a file that is read, results of more tokens than this, if it is not the same as `cap`: a
    /// later edit quotes them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reads: Option<u64>,
    /// What is done when the results of one response are too much together.
    pub batch: Option<BatchRule>,
}

/// The results of one response that are too much together: the largest become previews, until the
/// rest is little enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BatchRule {
    /// Characters that they may have together.
    pub chars: usize,
    /// Results of at most so many characters stay.
    pub over: usize,
    /// Characters that a preview shows.
    pub preview: usize,
}

impl BatchRule {
    /// Which of these texts become previews, and how much they show: `may` says which were never
    /// sent.
    pub fn too_much(&self, texts: &[(&str, bool)]) -> Vec<usize> {
        let lens: Vec<usize> = texts.iter().map(|(text, _)| text.chars().count()).collect();
        let mut left: usize = lens.iter().sum();
        let mut order: Vec<usize> = (0..texts.len()).filter(|&at| texts[at].1).collect();
        order.sort_by_key(|&at| std::cmp::Reverse(lens[at]));
        let mut found = Vec::new();
        for at in order {
            if left <= self.chars || lens[at] <= self.over.max(self.preview) {
                break;
            }
            left = left - lens[at] + self.preview;
            found.push(at);
        }
        found.sort_unstable();
        found
    }

    /// What a result is first sent as. `reference` names the whole.
    pub fn preview(&self, text: &str, reference: Ref) -> String {
        let shown = without_key_blocks(text);
        let end = shown.char_indices().nth(self.preview).map_or(shown.len(), |(end, _)| end);
        let stub = Stub::of_text(reference, text).with_what(SHORTENED);
        stub.with_body(shown[..end].to_owned()).to_string()
    }
}

/// What the stub of such a result says that it is.
pub const SHORTENED: &str = "shortened";

/// Results of fewer tokens are left as they are.
const WORTH: Tokens = Tokens(150);
/// Lines in a row that have to stand above before they are left out.
const RUN: usize = 4;
/// Characters of a line that is worth knowing again.
const LINE: usize = 8;
/// Lines at either end of a giant that are better than others.
const ENDS: usize = 20;
/// Bytes of a line that a giant of many lines keeps.
const WIDTH: usize = 400;
/// Bytes for each token of the cap that the lines of a giant of few lines have together.
const BYTES: usize = 2;

/// The lines that stand in a context, each with what said it first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeenLines {
    lines: HashMap<u64, u32>,
    /// The same lines, in the order in which they were added.
    order: Vec<u64>,
    said: Vec<Box<str>>,
}

/// How much a [`Seen`] held at some time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SeenMark {
    lines: usize,
    said: usize,
}

impl SeenLines {
    /// Takes the lines of a text that is sent; `what` said it.
    pub fn add(&mut self, text: &str, what: &str) {
        let place = self.said.len() as u32;
        let mut used = false;
        for line in text.lines().filter_map(key) {
            self.lines.entry(line).or_insert_with(|| {
                used = true;
                self.order.push(line);
                place
            });
        }
        if used {
            self.said.push(what.into());
        }
    }

    /// How much it holds now.
    pub fn mark(&self) -> SeenMark {
        SeenMark { lines: self.order.len(), said: self.said.len() }
    }

    /// Forgets the texts that were added since this mark.
    pub fn rewind(&mut self, mark: SeenMark) {
        for line in self.order.drain(mark.lines..) {
            self.lines.remove(&line);
        }
        self.said.truncate(mark.said);
    }

    fn has(&self, line: &str) -> bool {
        key(line).is_some_and(|line| self.lines.contains_key(&line))
    }

    /// What said most of these lines; of equals, the first.
    fn commonest_source(&self, lines: &[&str]) -> &str {
        let mut times: Vec<(u32, usize)> = Vec::new();
        for place in lines.iter().filter_map(|line| self.lines.get(&key(line)?)) {
            match times.iter_mut().find(|(known, _)| known == place) {
                Some((_, n)) => *n += 1,
                None => times.push((*place, 1)),
            }
        }
        let most = times.iter().max_by_key(|(place, n)| (*n, std::cmp::Reverse(*place)));
        most.map_or("", |(place, _)| &self.said[*place as usize])
    }
}

/// The text of a result that holds nothing else, and none of the user's.
pub fn only_text(output: &Output) -> Option<&Text> {
    match output.parts.as_slice() {
        [Part::Text(text)] if !output.from_user => Some(text),
        _ => None,
    }
}

impl IngestRule {
    /// The rule for the results of a tool of this kind.
    pub fn rule_for(&self, kind: Option<ToolKind>) -> IngestRule {
        let reads = self.reads.filter(|_| kind == Some(ToolKind::Read));
        IngestRule { cap: reads.or(self.cap), ..*self }
    }

    /// A result as it is first sent: nothing if it stays as it is. `reference` names the whole.
    pub fn shorten(
        &self,
        text: &str,
        reference: Ref,
        seen: &SeenLines,
        counter: &dyn Counter,
    ) -> Option<String> {
        if !self.repeats && self.cap.is_none() {
            return None;
        }
        let before = counter.count(text);
        if before <= WORTH {
            return None;
        }
        let visible = without_key_blocks(text);
        let repeats = || without_repeats(&visible, seen);
        let (once, mut left) = if self.repeats { repeats() } else { (None, 0) };
        // A text of hundreds of megabytes is not copied where nothing repeats.
        let mut shown = once.map_or(Cow::Borrowed(&*visible), Cow::Owned);
        if let Some(cap) = self.cap.map(Tokens)
            && counter.count(&shown) > cap
        {
            let lines: Vec<&str> = shown.split('\n').collect();
            let (short, n) = capped(&lines, cap, counter);
            // A long line of which a part is kept counts as well.
            left += (lines.len() - n).max(1);
            shown = Cow::Owned(short);
        }
        if left == 0 {
            return None;
        }
        let shown = shown.into_owned();
        let stub = Stub::new(reference).with_what(SHORTENED).with_lines(line_count(text));
        let shown = stub.with_body(shown).to_string();
        (shown.len() < text.len() && counter.count(&shown) < before).then_some(shown)
    }
}

/// A text without the lines that stand above, and how many went; no text if none did.
fn without_repeats<'t>(text: &'t str, seen: &SeenLines) -> (Option<String>, usize) {
    if !text.split('\n').any(|line| may_go(line, seen)) {
        return (None, 0);
    }
    let (mut kept, mut run, mut left) = (Vec::new(), Vec::new(), 0);
    let mut close = |run: &mut Vec<&'t str>, kept: &mut Vec<Cow<'t, str>>| {
        // Short lines go with those around them, and not with what comes then.
        let long = run.iter().rposition(|line| key(line).is_some()).map_or(0, |at| at + 1);
        let short = run.split_off(long);
        if run.len() >= RUN {
            left += run.len();
            let n = Lines(run.len() as u64);
            kept.push(format!("[{n} as above: {}]", seen.commonest_source(run)).into());
        } else {
            kept.extend(run.iter().map(|line| Cow::Borrowed(*line)));
        }
        run.clear();
        kept.extend(short.into_iter().map(Cow::Borrowed));
    };
    for line in text.split('\n') {
        if may_go(line, seen) || !run.is_empty() && key(line).is_none() {
            run.push(line);
        } else {
            close(&mut run, &mut kept);
            kept.push(line.into());
        }
    }
    close(&mut run, &mut kept);
    ((left > 0).then(|| kept.join("\n")), left)
}

/// Whether a line stands above. What stands above may be shortened one day, and an error has to
/// stand where it happened.
fn may_go(line: &str, seen: &SeenLines) -> bool {
    seen.has(line) && !is_error_line(line)
}

/// The lines that say most, in their order, and how many they are. Of long ones the beginning is
/// kept, and the end of those that have much room.
fn capped(lines: &[&str], cap: Tokens, counter: &dyn Counter) -> (String, usize) {
    let worth = |idx: usize| {
        let line = lines[idx];
        3 * u8::from(is_error_line(line))
            + 2 * u8::from(is_definition(line))
            + 2 * u8::from(idx < ENDS || idx + ENDS >= lines.len())
    };
    let mut order: Vec<usize> = (0..lines.len()).collect();
    order.sort_by_key(|&idx| std::cmp::Reverse(worth(idx)));
    let room = usize::try_from(cap.0).unwrap_or(usize::MAX).saturating_mul(BYTES) / lines.len();
    let mut width = room.max(WIDTH);
    // What has more tokens than such bytes have as a rule has less room.
    let first = order.first().map_or("", |&idx| lines[idx]);
    while width > WIDTH && counter.count(&cut(first, width)) >= cap {
        width = (width / 4 * 3).max(WIDTH);
    }
    let (mut spent, mut keep) = (Tokens(0), HashSet::new());
    for idx in order {
        spent += counter.count(&cut(lines[idx], width)) + Tokens(1);
        if spent > cap {
            break;
        }
        keep.insert(idx);
    }
    let mut shown = String::new();
    let mut gap = false;
    for (idx, line) in lines.iter().enumerate() {
        if keep.contains(&idx) {
            let mark = if gap { "…\n" } else { "" };
            shown += &format!("{mark}{}\n", cut(line, width));
        }
        gap = !keep.contains(&idx);
    }
    if gap {
        shown += "…\n";
    }
    shown.pop();
    (shown, keep.len())
}

/// A line of at most so many bytes, and a mark where it is cut: with room for more than the
/// beginning of most lines, its last quarter is the end of the line.
fn cut(line: &str, width: usize) -> Cow<'_, str> {
    if line.len() <= width {
        return line.into();
    }
    let tail = if width > WIDTH { width / 4 } else { 0 };
    format!("{}…{}", first_words(line, width - tail), last_words(line, tail)).into()
}

/// What a line is known again by; nothing if it is too short.
fn key(line: &str) -> Option<u64> {
    let line = line.trim();
    let line = line.split_once('→').map_or(line, |(number, rest)| {
        if number.bytes().all(|b| b.is_ascii_digit()) { rest.trim() } else { line }
    });
    (line.len() >= LINE).then(|| {
        let mut hasher = DefaultHasher::new();
        line.hash(&mut hasher);
        hasher.finish()
    })
}

#[cfg(test)]
#[path = "ingest_tests.rs"]
mod tests;
