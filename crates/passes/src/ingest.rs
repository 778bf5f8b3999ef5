//! Truncates results before they are sent to the model for the first time. So a result has its
//! short form from the beginning, and the provider's prompt cache stays valid. In a stored session,
//! results are truncated afterwards, by the same rules.

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

/// The description in the stub of a truncated result.
pub const SHORTENED: &str = "shortened";

/// Results with at most this many tokens are not truncated.
const SMALL: Tokens = Tokens(150);
/// Minimum number of adjacent repeated lines that are left out.
const RUN: usize = 4;
/// A line with fewer bytes than this is not recognised as repeated.
const LINE: usize = 8;
/// Number of lines at each end of a result that are preferred to ordinary lines between them, if
/// the result is reduced to its maximum number of tokens (the cap).
const ENDS: usize = 20;
/// Bytes to which each line of a result above the cap is truncated, unless the result has few
/// lines: see [`BYTES`].
const WIDTH: usize = 400;
/// If a result above the cap has few lines, they may be longer than [`WIDTH`]: all lines together
/// may have this many bytes for each token of the cap.
const BYTES: usize = 2;

/// Settings of the ingest stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default, expecting = "a table of settings")]
pub struct IngestRule {
    /// Whether to leave out lines that the context already contains, with a note that says where.
    pub repeats: bool,
    /// The number of tokens above which a result is reduced to its most important lines.
    pub cap: Option<u64>,
    /// The number that takes the place of `cap` for results of file reads, if set: later edits of
    /// the file quote these results.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reads: Option<u64>,
    /// The rule for results of one response that are too large together.
    pub batch: Option<BatchRule>,
}

impl IngestRule {
    /// This rule as it applies to results of one kind of tool: for file reads, `reads` takes the
    /// place of `cap` if it is set.
    pub fn rule_for(&self, kind: Option<ToolKind>) -> IngestRule {
        let reads = self.reads.filter(|_| kind == Some(ToolKind::Read));
        IngestRule { cap: reads.or(self.cap), ..*self }
    }

    /// Truncates a result: leaves out runs of lines that `seen` contains and then, if the rest is
    /// above the cap, the least important lines. `None` if the result stays whole. `reference`
    /// identifies the whole text. The rule for batches is not applied.
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
        if before <= SMALL {
            return None;
        }
        let visible = without_key_blocks(text);
        let (once, mut left) =
            if self.repeats { without_repeats(&visible, seen) } else { (None, 0) };
        // Texts may have hundreds of megabytes: copy only if lines repeat.
        let mut shown = once.map_or(Cow::Borrowed(&*visible), Cow::Owned);
        if let Some(cap) = self.cap.map(Tokens)
            && counter.count(&shown) > cap
        {
            let lines: Vec<&str> = shown.split('\n').collect();
            let (short, n) = capped(&lines, cap, counter);
            // If no line was left out, a long line was truncated. A truncated line is counted as
            // one line left out.
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

/// The rule for results of one response that are too large together: the largest become previews,
/// one after the other, until all results fit or those that are left are too small.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, expecting = "a table with `chars`, `over` and `preview`")]
pub struct BatchRule {
    /// Maximum characters of all results of one response.
    pub chars: usize,
    /// Results with at most this many characters do not become previews.
    pub over: usize,
    /// Characters of the text in a preview.
    pub preview: usize,
}

impl BatchRule {
    /// The indices of the texts that become previews, in ascending order. `texts` are the results
    /// of one response, each with a flag: whether the result may become a preview. All texts are
    /// counted towards `chars`.
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

    /// The preview of a result. `reference` identifies the whole text.
    pub fn preview(&self, text: &str, reference: Ref) -> String {
        let shown = without_key_blocks(text);
        let end = shown.char_indices().nth(self.preview).map_or(shown.len(), |(end, _)| end);
        let stub = Stub::from_text(reference, text).with_what(SHORTENED);
        stub.with_body(shown[..end].to_owned()).to_string()
    }
}

/// The lines that a context contains, each with a description of the first text that contained it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeenLines {
    /// The key of each line, with the index in `sources` of the text that first contained the line.
    lines: HashMap<u64, u32>,
    /// The keys of the lines, in the order in which they were added.
    order: Vec<u64>,
    /// Descriptions of those texts that were the first to contain a line.
    sources: Vec<Box<str>>,
}

/// A state of [`SeenLines`], to which [`SeenLines::rewind`] returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SeenMark {
    lines: usize,
    sources: usize,
}

impl SeenLines {
    /// Adds the lines of a text that is sent. `what` describes the text.
    pub fn add(&mut self, text: &str, what: &str) {
        let place = self.sources.len() as u32;
        let mut used = false;
        for line in text.lines().filter_map(key) {
            self.lines.entry(line).or_insert_with(|| {
                used = true;
                self.order.push(line);
                place
            });
        }
        if used {
            self.sources.push(what.into());
        }
    }

    /// The current state, to which [`SeenLines::rewind`] can return later.
    pub fn mark(&self) -> SeenMark {
        SeenMark { lines: self.order.len(), sources: self.sources.len() }
    }

    /// Returns to an earlier state, without the texts added since.
    pub fn rewind(&mut self, mark: SeenMark) {
        for line in self.order.drain(mark.lines..) {
            self.lines.remove(&line);
        }
        self.sources.truncate(mark.sources);
    }

    /// Whether the context contains a line, whatever its line number and the white space around it
    /// are. Always false for a line that is too short to be recognised (see [`LINE`]).
    fn has(&self, line: &str) -> bool {
        key(line).is_some_and(|line| self.lines.contains_key(&line))
    }

    /// The description of the text in which most of these lines occurred first. If two texts have
    /// equally many, the earlier one is described.
    fn commonest_source(&self, lines: &[&str]) -> &str {
        let mut times: Vec<(u32, usize)> = Vec::new();
        for place in lines.iter().filter_map(|line| self.lines.get(&key(line)?)) {
            match times.iter_mut().find(|(known, _)| known == place) {
                Some((_, n)) => *n += 1,
                None => times.push((*place, 1)),
            }
        }
        let most = times.iter().max_by_key(|(place, n)| (*n, std::cmp::Reverse(*place)));
        most.map_or("", |(place, _)| &self.sources[*place as usize])
    }
}

/// The text of a result that consists of one text part and contains nothing of the user; `None` for
/// any other result.
pub fn only_text(output: &Output) -> Option<&Text> {
    match output.parts.as_slice() {
        [Part::Text(text)] if !output.from_user => Some(text),
        _ => None,
    }
}

/// Leaves out runs of at least [`RUN`] lines that `seen` contains. Returns the remaining text, and
/// the number of lines left out; the text is `None` if that number is 0.
fn without_repeats(text: &str, seen: &SeenLines) -> (Option<String>, usize) {
    if !text.split('\n').any(|line| may_go(line, seen)) {
        return (None, 0);
    }
    let mut kept = Vec::new();
    let mut run = Vec::new();
    let mut left = 0;
    for line in text.split('\n') {
        if may_go(line, seen) || !run.is_empty() && key(line).is_none() {
            run.push(line);
        } else {
            left += close_run(&mut run, &mut kept, seen);
            kept.push(line.into());
        }
    }
    left += close_run(&mut run, &mut kept, seen);
    ((left > 0).then(|| kept.join("\n")), left)
}

/// Ends a run of lines that the context contains. A long run is replaced by one line that says
/// which text contains these lines; a short run is kept. Returns the number of lines that were left
/// out.
fn close_run<'t>(run: &mut Vec<&'t str>, kept: &mut Vec<Cow<'t, str>>, seen: &SeenLines) -> usize {
    // Lines that are too short to be recognised are left out only between repeated lines. If they
    // end the run, they are kept.
    let long = run.iter().rposition(|line| key(line).is_some()).map_or(0, |at| at + 1);
    let short = run.split_off(long);
    let mut left = 0;
    if run.len() >= RUN {
        left = run.len();
        let n = Lines(run.len() as u64);
        kept.push(format!("[{n} as above: {}]", seen.commonest_source(run)).into());
    } else {
        kept.extend(run.iter().map(|line| Cow::Borrowed(*line)));
    }
    run.clear();
    kept.extend(short.into_iter().map(Cow::Borrowed));
    left
}

/// Whether a line may be left out because the context contains it. Always false for an error line,
/// whose earlier occurrence may be removed later.
fn may_go(line: &str, seen: &SeenLines) -> bool {
    seen.has(line) && !is_error_line(line)
}

/// The most important lines within the cap, in order, and their number. Long lines are truncated by
/// [`cut`].
fn capped(lines: &[&str], cap: Tokens, counter: &dyn Counter) -> (String, usize) {
    let mut order: Vec<usize> = (0..lines.len()).collect();
    order.sort_by_cached_key(|&idx| {
        let line = lines[idx];
        let worth = 3 * u8::from(is_error_line(line))
            + 2 * u8::from(is_definition(line))
            + 2 * u8::from(idx < ENDS || idx + ENDS >= lines.len());
        std::cmp::Reverse(worth)
    });
    let room = usize::try_from(cap.0).unwrap_or(usize::MAX).saturating_mul(BYTES) / lines.len();
    let mut width = room.max(WIDTH);
    // If a line has more tokens for its bytes than usual, the lines are truncated to fewer bytes.
    let first = order.first().map_or("", |&idx| lines[idx]);
    while width > WIDTH && counter.count(&cut(first, width)) >= cap {
        width = (width / 4 * 3).max(WIDTH);
    }
    let mut spent = Tokens(0);
    let mut keep = HashSet::new();
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

/// A line truncated to `width` bytes, with a mark where text is missing. If `width` is more than
/// [`WIDTH`], a quarter of these bytes is used for the end of the line.
fn cut(line: &str, width: usize) -> Cow<'_, str> {
    if line.len() <= width {
        return line.into();
    }
    let tail = if width > WIDTH { width / 4 } else { 0 };
    format!("{}…{}", first_words(line, width - tail), last_words(line, tail)).into()
}

/// The key by which a line is recognised: a hash of the line without white space around it and
/// without a line number before `→`. `None` if the rest is shorter than [`LINE`].
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
