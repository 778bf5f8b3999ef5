//! Writes a digest as text.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use epitome_model::{Block, Counter, Source};

use crate::numbers::{TO, calls_of_name, response_name};

use super::Digest;
use super::choose::{Chosen, ChosenLines};
use super::pieces::{Piece, Pieces, Speaker};
use crate::pins::HEADING;

/// The first words of a digest.
const BEGIN: &str = "[Digest of the conversation so far, with";
/// The first words of a digest must begin before this byte offset in their block: an agent may put
/// its own text before a summary.
const BEGIN_WITHIN: usize = 2_000;
/// The number of bytes of a block's JSON literal that are decoded to find the first line of a
/// digest: an escape has up to six bytes for a character.
const LITERAL_BYTES: usize = 6 * BEGIN_WITHIN + 1_000;
/// The mark before a line if lines directly above it are left out of the digest.
const GAP: &str = "…";

/// Whether a block is a digest.
pub fn is_digest(block: &Block, source: &dyn Source) -> bool {
    calls_of(block, source).is_some()
}

/// The number of tool calls that the digest in a block replaces, including those of earlier
/// digests; `None` if the block is not a digest.
pub(crate) fn calls_of(block: &Block, source: &dyn Source) -> Option<u64> {
    let Block::Summary(text) = block else { return None };
    let text = match text.beginning(source, LITERAL_BYTES) {
        Some(beginning) => Cow::Owned(beginning),
        None => text.read(source),
    };
    let at = text.find(BEGIN)?;
    let begins_line = at == 0 || text.as_bytes()[at - 1] == b'\n';
    if at >= BEGIN_WITHIN || !begins_line {
        return None;
    }
    let (calls, _) = text[at + BEGIN.len()..].lines().next()?.split_once(" tool calls")?;
    calls.trim_start().parse().ok()
}

/// Writes a digest, with the rules at its end.
pub(super) fn digest(
    pieces: &Pieces,
    chosen: &Chosen,
    rules: Option<&str>,
    counter: &dyn Counter,
) -> Digest {
    let old = pieces.old();
    let calls = old.iter().filter(|piece| matches!(piece.speaker, Speaker::Call { .. })).count();
    let mut text = format!(
        "{BEGIN} {calls} tool calls: lines of it in their order. {GAP} = lines left out, #N = the \
         Nth call, @N = your Nth response.]"
    );
    let mut shown = 0;
    let mut unshown = Unshown::default();
    let mut follows_brief = false;
    for (n, piece) in old.iter().enumerate() {
        let of_piece = chosen.get(&n);
        if of_piece.is_none() && piece.whole.is_none() {
            unshown.add(piece);
            continue;
        }
        let brief = piece.brief.as_ref().filter(|_| of_piece.is_some_and(|it| it.whole));
        if let Some((brief, _)) = brief {
            // A short text that follows another has no header of its own. The calls between such
            // texts are named below the last of them.
            if !follows_brief {
                unshown.line().iter().for_each(|line| push_line(&mut text, line));
                push_line(&mut text, &piece.head);
            }
            push_line(&mut text, &as_content(brief.trim()));
            shown += piece.lines.len() as u64;
            follows_brief = true;
            continue;
        }
        follows_brief = false;
        unshown.line().iter().for_each(|line| push_line(&mut text, line));
        if let Some((whole, _)) = &piece.whole {
            push_line(&mut text, &piece.head);
            push_line(&mut text, &as_content(whole));
            shown += piece.lines.len() as u64;
        }
        let Some(ChosenLines { full, lines, .. }) = of_piece else { continue };
        match &piece.full {
            Some(whole) if *full => push_line(&mut text, &whole.text),
            Some(_) | None => match numbered_head(piece, lines) {
                Some(head) => push_line(&mut text, &head),
                None => push_line(&mut text, &piece.head),
            },
        }
        // Adjacent lines lose the indentation that they have in common.
        for run in runs(lines) {
            let indent = run.iter().map(|&at| indent(&piece.lines[at].text)).min().unwrap_or(0);
            for &at in &run {
                let is_gap = at == run[0] && at > 0;
                let gap = if is_gap { format!("{GAP} ") } else { String::new() };
                push_line(
                    &mut text,
                    &as_content(&format!("{gap}{}", &piece.lines[at].text[indent..])),
                );
            }
        }
        shown += lines.len() as u64;
    }
    unshown.line().iter().for_each(|line| push_line(&mut text, line));
    rules.iter().for_each(|rules| push_line(&mut text, rules));
    let of = old.iter().map(|piece| piece.lines.len() as u64).sum();
    let tokens = counter.count(&text);
    Digest { text, tokens, lines: shown, of, rules_left_out: Vec::new() }
}

fn push_line(text: &mut String, line: &str) {
    text.push('\n');
    text.push_str(line);
}

/// A text of the session, escaped so that no line of it looks like the first line or the rules of a
/// digest.
fn as_content(text: &str) -> Cow<'_, str> {
    const MARKS: [&str; 4] = [HEADING, "<pinned ", "</pinned>", BEGIN];
    if !MARKS.iter().any(|mark| text.contains(mark)) {
        return Cow::Borrowed(text);
    }
    let lines = text.split('\n').map(|line| {
        let is_ours = MARKS.iter().any(|mark| line.trim_start().starts_with(mark));
        let before = if is_ours { "> " } else { "" };
        format!("{before}{line}")
    });
    Cow::Owned(lines.collect::<Vec<_>>().join("\n"))
}

/// The header above a text of the model of which lines are left out. It contains the number by
/// which the whole text is recalled. `None` for a whole text, for a text without a number, and for
/// other pieces.
fn numbered_head(piece: &Piece, lines: &BTreeSet<usize>) -> Option<String> {
    let is_part = piece.speaker == Speaker::Model && lines.len() < piece.lines.len();
    let head = piece.head.trim_end_matches(':');
    (is_part && piece.number > 0).then(|| format!("{head} {}:", response_name(piece.number)))
}

/// Groups line numbers into runs of adjacent lines.
fn runs(lines: &BTreeSet<usize>) -> Vec<Vec<usize>> {
    let mut runs: Vec<Vec<usize>> = Vec::new();
    for &at in lines {
        match runs.last_mut() {
            Some(run) if run.last() == Some(&(at - 1)) => run.push(at),
            Some(_) | None => runs.push(vec![at]),
        }
    }
    runs
}

/// The number of bytes of white space before a line.
fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// Calls of which the digest contains no line, until they are named. Consecutive calls of the same
/// tool are named together.
#[derive(Default)]
struct Unshown<'p> {
    runs: Vec<(u64, u64, &'p str)>,
}

impl<'p> Unshown<'p> {
    fn add(&mut self, piece: &'p Piece) {
        let Speaker::Call { number, .. } = piece.speaker else { return };
        let tool = piece.head.split_once(' ').map_or("", |(_, tool)| tool);
        match self.runs.last_mut() {
            Some((_, last, of)) if *last + 1 == number && *of == tool => *last = number,
            Some(_) | None => self.runs.push((number, number, tool)),
        }
    }

    /// Returns the line that names the calls, and clears the list; `None` if there are no calls.
    fn line(&mut self) -> Option<String> {
        let runs = std::mem::take(&mut self.runs).into_iter();
        let run_texts: Vec<String> =
            runs.map(|(first, last, tool)| format!("{} {tool}", range(first, last))).collect();
        (!run_texts.is_empty()).then(|| run_texts.join(", "))
    }
}

/// The name of a range of calls: `#4`, or `#4–6`.
fn range(first: u64, last: u64) -> String {
    if first == last { format!("#{first}") } else { format!("#{first}{TO}{last}") }
}

/// The calls that a digest names, by number, each with its name in the digest: `#4`, or `#4–6` for
/// a call in a range.
pub fn named_calls(digest: &str) -> BTreeMap<u64, String> {
    let mut named = BTreeMap::new();
    for line in digest.lines().filter(|line| line.starts_with('#')) {
        for name in line.split(", ").filter_map(|part| part.split(' ').next()) {
            for number in calls_of_name(name).into_iter().flatten() {
                named.entry(number).or_insert_with(|| name.to_owned());
            }
        }
    }
    named
}
