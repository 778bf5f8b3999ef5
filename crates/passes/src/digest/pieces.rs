//! Splits a session into pieces with lines. A piece is a text, or a call with its result.

use std::collections::HashMap;
use std::ops::Deref;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use epitome_model::{Block, Call, Counter, Entry, Output, Role, Source, Span, Tokens, ToolKind};
use serde_json::Value;

use crate::decisions::decision;
use crate::effects::has_effect;
use crate::evidence::{Sure, failing_lines};
use crate::facts::{FactId, FactKind, facts};
use crate::key_blocks::without_key_blocks;
use crate::numbers::call_numbers;
use crate::pins::rule_lines_by_words;
use crate::{View, is_error_line};

use super::DigestRule;

/// Maximum characters of a line. A line with more bytes than this is split.
const LINE: usize = 400;
/// Maximum characters of a line that are read; the rest is ignored.
const LONGEST: usize = 40_000;
/// Maximum characters of a target in a header.
const TARGET: usize = 200;
/// Maximum bytes of an argument that a header contains in addition to the target.
const ARGUMENT: usize = 160;
/// A line with at least this many bytes is taken for data, and not for the report of a failure.
const LONGEST_ERROR: usize = 300;
/// Minimum bytes of a line without its indentation. Shorter lines, such as a single brace, are left
/// out.
const SHORTEST: usize = 3;

/// The pieces of a session, in order.
pub(super) struct Pieces {
    all: Vec<Piece>,
    /// The number of pieces, counted from the first, that the digest replaces. The later pieces
    /// stay in the context, after the digest.
    old: usize,
    /// Number of model responses in the session.
    pub responses: u32,
}

/// A text, or a call with its result, and its position in a session.
pub(super) struct Piece {
    pub body: Arc<Body>,
    /// The number of the model response that the piece belongs to or follows. How long ago a fact
    /// occurred is counted in responses.
    pub response: u32,
    /// For a text of the model, the number of its response in the session, from 1, by which the
    /// text is recalled.
    pub number: u64,
}

impl Deref for Piece {
    type Target = Body;

    fn deref(&self) -> &Body {
        &self.body
    }
}

/// The content of a piece, independent of its position in a session.
#[derive(Debug)]
pub struct Body {
    pub speaker: Speaker,
    /// For a call with a result, the span of that result.
    result: Option<Span>,
    /// The short header above the lines of the piece: the speaker, or the number and tool of a
    /// call.
    pub head: String,
    pub head_tokens: Tokens,
    /// For a call with a target or short arguments, a longer header that contains them.
    pub full: Option<Full>,
    pub lines: Vec<Line>,
    /// Whether every digest contains some of the lines.
    pub has_lines_that_stay: bool,
    /// The text with its tokens, if every digest contains it whole.
    pub whole: Option<(String, Tokens)>,
    /// The text with its tokens, for a short text of the model: a digest contains it whole if there
    /// is room for such texts.
    pub brief: Option<(String, Tokens)>,
    /// Whether the piece is a call that changed something outside the working copy, or that
    /// recorded a step of the work. A digest contains the full header of such a call if there is
    /// room.
    pub has_effect: bool,
}

/// A header with the target of its call, which may be truncated, and the short arguments.
#[derive(Debug)]
pub struct Full {
    pub text: String,
    pub tokens: Tokens,
    pub facts: Box<[Fact]>,
}

/// The origin of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaker {
    User,
    Model,
    Thinking,
    /// The agent itself: a reminder or a summary.
    Agent,
    /// A call with its result.
    Call {
        /// The number of the call among the calls of the session, from 1.
        number: u64,
        reads: bool,
    },
}

/// A fact in a line or a header, identified by its number in the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fact {
    pub number: u32,
    pub kind: FactKind,
}

/// A line of a piece.
#[derive(Debug)]
pub struct Line {
    pub text: Box<str>,
    /// Whether the line is from an argument, which the model wrote, and not from the result.
    pub is_argument: bool,
    pub facts: Box<[Fact]>,
    /// The tokens of the line without indentation, plus one for the line feed; 0 before they are
    /// counted.
    tokens: AtomicU32,
    /// Whether the line looks like an error.
    pub is_error: bool,
    /// Whether the line states a decision or a finding of the model.
    pub decides: bool,
    /// Whether the line belongs to the frame of a text of the model: the headings, and the first
    /// and last paragraphs. A digest contains other lines of a long text only together with the
    /// frame.
    pub is_frame: bool,
    /// Whether every digest contains the line: it reports the failure of a call, or it is a line of
    /// a long user message that commands or forbids something or is at either end of the message.
    pub stays: bool,
}

impl Line {
    /// The tokens of the line without indentation, plus one for the line feed. They are counted
    /// once.
    pub fn tokens(&self, counter: &dyn Counter) -> u64 {
        let known = self.tokens.load(Ordering::Relaxed);
        if known > 0 {
            return known.into();
        }
        let tokens = counter.count(self.text.trim_start()).0 + 1;
        self.tokens.store(u32::try_from(tokens).unwrap_or(0), Ordering::Relaxed);
        tokens
    }
}

impl Body {
    /// Whether the body was made of the call with this number and of this result. The number is
    /// ignored if the body is not that of a call.
    pub fn is_of(&self, number: u64, result: Option<&Output>) -> bool {
        let is_number = match self.speaker {
            Speaker::Call { number: known, .. } => known == number,
            Speaker::User | Speaker::Model | Speaker::Thinking | Speaker::Agent => true,
        };
        is_number && self.result == result.map(|output| output.whole)
    }

    /// Counts the tokens of the lines with facts in advance. Does nothing for a piece of which no
    /// single line may be chosen: one that is included whole, and reasoning.
    pub fn count_lines(&self, counter: &dyn Counter) {
        let may_be = self.whole.is_none() && self.speaker != Speaker::Thinking;
        for line in self.lines.iter().filter(|line| may_be && !line.facts.is_empty()) {
            line.tokens(counter);
        }
    }
}

impl Pieces {
    /// Makes a list of pieces, of which the digest replaces the first `old`.
    pub fn new(all: Vec<Piece>, old: usize, responses: u32) -> Pieces {
        Pieces { all, old, responses }
    }

    pub fn old(&self) -> &[Piece] {
        &self.all[..self.old]
    }

    pub fn kept(&self) -> &[Piece] {
        &self.all[self.old..]
    }

    pub fn all(&self) -> &[Piece] {
        &self.all
    }
}

/// The blocks of which the pieces of a session are made.
pub(super) struct PieceOrigins<'a> {
    /// The blocks, each with its item and block index and with the number of the response that it
    /// belongs to or follows.
    pub all: Vec<((usize, usize), PieceOrigin<'a>, u32)>,
    /// The number of blocks at the beginning that the digest replaces.
    pub old: usize,
    pub responses: u32,
}

impl<'a> PieceOrigins<'a> {
    /// The blocks of the items `originals`, which the digest replaces, and `kept`, which stay.
    pub fn from_items(view: &View<'a>, originals: &[usize], kept: &[usize]) -> PieceOrigins<'a> {
        let numbers = call_numbers(view.transcript);
        let results = results(view);
        let mut all = Vec::new();
        let mut responses = 0;
        let mut last = None;
        let mut old = 0;
        for (n, &item) in originals.iter().chain(kept).enumerate() {
            if n == originals.len() {
                old = all.len();
            }
            let Some(entry) = view.transcript.items[item].entry() else { continue };
            if entry.role == Role::Assistant && (last.is_none() || last != entry.group.as_deref()) {
                responses += 1;
            }
            last = match entry.role {
                Role::Assistant => entry.group.as_deref().or(last),
                Role::User | Role::Tool | Role::System => None,
            };
            for (block, content) in entry.blocks.iter().enumerate() {
                let (number, result) = match content {
                    Block::Call(call) => {
                        let number = numbers.get(&*call.id).copied().unwrap_or_default();
                        (number, results.get(&*call.id).copied())
                    }
                    _ => (0, None),
                };
                let origin = PieceOrigin::from_block(entry, content, number, result);
                all.extend(origin.map(|origin| ((item, block), origin, responses)));
            }
        }
        let old = if kept.is_empty() { all.len() } else { old };
        PieceOrigins { all, old, responses }
    }
}

/// The first result of each call, by the id of the call. A later result of the same call may be a
/// stub.
fn results<'a>(view: &View<'a>) -> HashMap<&'a str, &'a Output> {
    let mut results = HashMap::new();
    for (_, output, _) in view.outputs() {
        results.entry(&*output.call).or_insert(output);
    }
    results
}

/// A block that becomes a piece; for a call, with its result.
pub(super) struct PieceOrigin<'a> {
    content: &'a Block,
    what: Speaker,
    result: Option<&'a Output>,
}

/// A piece whose facts are not numbered yet.
pub(super) struct UnnumberedPiece {
    pub body: Body,
    /// The facts of the full header, and of each line.
    pub of_header: PieceFacts,
    pub of_lines: Vec<PieceFacts>,
}

pub(super) type PieceFacts = Vec<(FactId, FactKind)>;

/// Lines with their facts, while a piece is read.
#[derive(Default)]
struct Lines {
    lines: Vec<Line>,
    facts: Vec<PieceFacts>,
}

/// The origin of a block. `None` for a block of which no piece is made, such as an image or a
/// result: a result belongs to the piece of its call.
fn speaker(entry: &Entry, block: &Block, number: u64) -> Option<Speaker> {
    match block {
        Block::Text(_) => Some(match entry.role {
            Role::User => Speaker::User,
            Role::Assistant => Speaker::Model,
            Role::Tool | Role::System => Speaker::Agent,
        }),
        Block::Summary(_) => Some(Speaker::Agent),
        Block::Thinking(_) => Some(Speaker::Thinking),
        Block::Call(call) => {
            let reads = matches!(call.kind, ToolKind::Read);
            Some(Speaker::Call { number, reads })
        }
        _ => None,
    }
}

impl<'a> PieceOrigin<'a> {
    /// The origin for a block; `None` if no piece is made from the block. For a call, `number` is
    /// its number and `result` its result; for other blocks they are 0 and `None`.
    pub(super) fn from_block(
        entry: &Entry,
        content: &'a Block,
        number: u64,
        result: Option<&'a Output>,
    ) -> Option<PieceOrigin<'a>> {
        Some(PieceOrigin { content, what: speaker(entry, content, number)?, result })
    }

    /// Whether a piece was made of this block.
    pub(super) fn is_of(&self, body: &Body) -> bool {
        let number = match self.what {
            Speaker::Call { number, .. } => number,
            Speaker::User | Speaker::Model | Speaker::Thinking | Speaker::Agent => 0,
        };
        body.is_of(number, self.result)
    }

    /// Makes a piece of the block: splits its texts into lines and finds the facts of the lines.
    /// `tokens` returns the number of tokens of the block.
    pub(super) fn read(
        &self,
        source: &dyn Source,
        counter: &dyn Counter,
        tokens: impl FnOnce() -> Tokens,
        rule: &DigestRule,
    ) -> UnnumberedPiece {
        let mut found = Lines::default();
        let mut full = None;
        let mut of_header = PieceFacts::new();
        let mut head = match self.what {
            Speaker::User => "User:".to_owned(),
            Speaker::Model => "Assistant:".to_owned(),
            Speaker::Thinking | Speaker::Agent | Speaker::Call { .. } => "Note:".to_owned(),
        };
        match (self.content, self.what) {
            (Block::Text(text), Speaker::Model) => found.split_reply(&text.read(source)),
            (Block::Text(text) | Block::Summary(text), _) => {
                found.split(&text.read(source), false, false);
            }
            (Block::Thinking(thinking), _) => {
                if let Some(text) = &thinking.text {
                    found.split(&text.read(source), false, false);
                }
            }
            (Block::Call(call), Speaker::Call { number, .. }) => {
                let target = arguments(source, call, &mut found);
                head = format!("#{number} {}", call.name);
                if !target.is_empty() {
                    let text = format!("{head} {target}");
                    of_header = facts(&text);
                    let tokens = counter.count(&text) + Tokens(1);
                    full = Some(Full { tokens, facts: Box::default(), text });
                }
                if let Some(output) = self.result {
                    let begins = found.lines.len();
                    found.split(&output.text(source), false, output.numbered);
                    if output.error {
                        mark_failing(&mut found.lines[begins..]);
                    }
                }
            }
            _ => {}
        }
        let whole = self.whole(source, tokens, rule);
        let (whole, brief) =
            if self.what == Speaker::Model { (None, whole) } else { (whole, None) };
        let Lines { mut lines, facts: of_lines } = found;
        if self.what == Speaker::User && whole.is_none() {
            mark_commands(&mut lines);
        }
        let body = Body {
            speaker: self.what,
            result: self.result.map(|output| output.whole),
            head_tokens: counter.count(&head) + Tokens(1),
            head,
            full,
            has_lines_that_stay: lines.iter().any(|line| line.stays),
            lines,
            whole,
            brief,
            has_effect: self.has_effect(source),
        };
        UnnumberedPiece { body, of_header, of_lines }
    }

    /// Whether the block is a call with an effect, such as a push, that did not fail.
    fn has_effect(&self, source: &dyn Source) -> bool {
        let Block::Call(call) = self.content else { return false };
        let target = call.target.as_ref().map(|target| target.read(source)).unwrap_or_default();
        let failed = self.result.is_some_and(|output| output.error);
        !failed && has_effect(call.kind, &call.name, &target)
    }

    /// The text with its tokens, if it is short enough to be included whole. `None` for a longer
    /// text, for reasoning and for a call.
    fn whole(
        &self,
        source: &dyn Source,
        tokens: impl FnOnce() -> Tokens,
        rule: &DigestRule,
    ) -> Option<(String, Tokens)> {
        match self.content {
            Block::Text(text) | Block::Summary(text) => {
                let most = match self.what {
                    Speaker::User | Speaker::Agent => rule.whole_user,
                    Speaker::Model => rule.whole_model,
                    Speaker::Thinking | Speaker::Call { .. } => return None,
                };
                let tokens = tokens();
                (tokens.0 <= most).then(|| (text.read(source).into_owned(), tokens))
            }
            _ => None,
        }
    }
}

/// Marks the lines of a failed result that report the failure.
fn mark_failing(lines: &mut [Line]) {
    let texts: Vec<&str> = lines.iter().map(|line| &*line.text).collect();
    let failing = failing_lines(&texts, Sure::Surely);
    for (line, fails) in lines.iter_mut().zip(failing) {
        line.stays = fails && line.text.len() < LONGEST_ERROR;
    }
}

/// Number of lines at each end of a long user message that every digest contains. A user who pastes
/// a long text writes the request above or below the pasted text.
const ENDS: usize = 2;

/// Marks the lines of a long user message that give commands or forbid something, and the first and
/// last lines.
fn mark_commands(lines: &mut [Line]) {
    let text: Vec<&str> = lines.iter().map(|line| &*line.text).collect();
    let commands = rule_lines_by_words(&text.join("\n"));
    let mut commands = commands.lines().peekable();
    let last = lines.len().saturating_sub(ENDS);
    for (at, line) in lines.iter_mut().enumerate() {
        let commands = commands.next_if(|command| **command == *line.text).is_some();
        line.stays = commands || at < ENDS || at >= last;
    }
}

/// The part of a call's full header that follows the number and the tool: the target and the short
/// arguments, on one line. The lines of long arguments are added to `found`.
fn arguments(source: &dyn Source, call: &Call, found: &mut Lines) -> String {
    let target = call.target.as_ref().map(|target| target.read(source).into_owned());
    let visible = target.as_deref().map(without_key_blocks);
    let mut shown: String = visible.iter().flat_map(|target| target.chars()).take(TARGET).collect();
    match serde_json::from_slice(&source.at(call.arguments)).unwrap_or_default() {
        Value::Object(arguments) => {
            for (name, value) in arguments {
                match value {
                    Value::String(text)
                        if target.as_deref() == Some(&*text)
                            || call.fields.iter().any(|field| *field.name == *name) => {}
                    Value::String(text) if text.len() <= ARGUMENT && !text.contains('\n') => {
                        shown.push_str(&format!(" {name}={text}"));
                    }
                    Value::Number(number) => shown.push_str(&format!(" {name}={number}")),
                    // Texts within this value are fields of the call; the lines of fields are added
                    // below.
                    _ if call.fields.iter().any(|field| field.name.starts_with(&name)) => {}
                    value => each_text(&value, &mut |text| found.split(text, true, false)),
                }
            }
        }
        Value::String(text) if call.fields.is_empty() => found.split(&text, true, false),
        _ => {}
    }
    for field in &call.fields {
        let text = field.text.read(source);
        let is_target = target.as_deref() == Some(&*text) && text.len() <= TARGET;
        if !is_target {
            found.split(&text, true, false);
        }
    }
    shown.trim().replace('\n', " ⏎ ")
}

/// Calls `each` with every text in a JSON value.
fn each_text(value: &Value, each: &mut impl FnMut(&str)) {
    match value {
        Value::String(text) => each(text),
        Value::Array(values) => values.iter().for_each(|value| each_text(value, each)),
        Value::Object(members) => members.values().for_each(|value| each_text(value, each)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

impl Lines {
    /// Adds the lines of a text, except those that are too short. Removes the line number at the
    /// beginning of each line if `numbered` is true, or if each of the first three lines has one.
    fn split(&mut self, text: &str, is_argument: bool, numbered: bool) {
        let text = &*without_key_blocks(text);
        let numbered = numbered || text.lines().take(3).all(|line| without_number(line) != line);
        for line in text.split('\n') {
            let line = if numbered { without_number(line) } else { line }.trim_end();
            self.add_line(line, is_argument);
        }
    }

    /// Adds the lines of a text of the model, with marks for those that belong to the frame or
    /// state a decision.
    fn split_reply(&mut self, text: &str) {
        let text = &*without_key_blocks(text);
        for (line, is_frame) in text.split('\n').zip(frame(text)) {
            let begins = self.lines.len();
            self.add_line(line.trim_end(), false);
            for line in &mut self.lines[begins..] {
                line.is_frame = is_frame;
                line.decides = decision(&line.text).is_some();
            }
        }
    }

    /// Adds a line. A long line is split; a line with fewer bytes than [`SHORTEST`] is left out.
    fn add_line(&mut self, line: &str, is_argument: bool) {
        if line.trim_start().len() < SHORTEST {
            return;
        }
        if line.len() <= LINE {
            self.add(line, is_argument);
            return;
        }
        let chars: Vec<char> = line.chars().take(LONGEST).collect();
        let parts = chars.chunks(LINE);
        parts.for_each(|part| self.add(&part.iter().collect::<String>(), is_argument));
    }

    fn add(&mut self, line: &str, is_argument: bool) {
        self.facts.push(facts(line));
        self.lines.push(Line {
            text: line.into(),
            is_argument,
            facts: Box::default(),
            tokens: AtomicU32::new(0),
            is_error: line.len() < LONGEST_ERROR && is_error_line(line),
            decides: false,
            is_frame: false,
            stays: false,
        });
    }
}

/// For each line of a text, whether it is a heading or in the first or the last paragraph. A
/// heading is a line that begins with `#` as in Markdown, or a line that is bold as a whole.
fn frame(text: &str) -> Vec<bool> {
    let lines: Vec<&str> = text.split('\n').map(str::trim).collect();
    let first = lines.iter().position(|line| is_prose(line));
    let last = lines.iter().rposition(|line| is_prose(line));
    let first = first.map(|at| paragraph(&lines, at)).unwrap_or_default();
    let last = last.map(|at| paragraph(&lines, at)).unwrap_or_default();
    let is_frame = lines
        .iter()
        .enumerate()
        .map(|(at, line)| is_heading(line) || first.contains(&at) || last.contains(&at));
    is_frame.collect()
}

fn is_heading(line: &str) -> bool {
    let words = line.trim_start_matches('#');
    let is_bold = line.len() > 4 && line.starts_with("**") && line.ends_with("**");
    is_bold || words.len() < line.len() && words.starts_with(' ')
}

fn is_prose(line: &str) -> bool {
    !line.is_empty() && !is_heading(line)
}

/// The indices of the lines of the paragraph to which the line with the index `at` belongs.
fn paragraph(lines: &[&str], at: usize) -> Range<usize> {
    let before = lines[..at].iter().rev().take_while(|line| is_prose(line)).count();
    let behind = lines[at..].iter().take_while(|line| is_prose(line)).count();
    at - before..at + behind
}

/// A line of a file without the line number that the tool put before it; the line itself if it has
/// none.
fn without_number(line: &str) -> &str {
    let rest = line.trim_start();
    let rest = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    if rest.len() == line.trim_start().len() {
        return line;
    }
    let marks = ["→", "\t"];
    marks.iter().find_map(|mark| rest.strip_prefix(mark)).unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use epitome_model::FieldRole;
    use samples::{Quarters, Sample};

    use super::*;

    #[test]
    fn a_piece_has_a_header_and_lines_of_arguments_and_results() {
        let fields = [(FieldRole::New, "let a = 1;")];
        let sample = Sample::new()
            .user("Go on.")
            .thinking("I have to look.")
            .call_with(ToolKind::Edit, "/p/a.rs", &fields)
            .output("It is done.")
            .reply("Yes.");
        let view = View::new(sample.transcript(), sample.source(), &Quarters);
        let origins = PieceOrigins::from_items(&view, &[0, 1, 2, 3, 4], &[]);
        let describe = |(_, origin, response): &(_, PieceOrigin<'_>, u32)| {
            let rule = DigestRule::default();
            let piece = origin.read(view.source, view.counter, Tokens::default, &rule);
            let Body { head, head_tokens, lines, .. } = piece.body;
            let lines = lines.iter().map(|line| {
                let mark = if line.is_argument { " < " } else { " > " };
                format!("{mark}{}", line.text)
            });
            format!("{response} {head} {head_tokens}{}", lines.collect::<String>())
        };
        assert_eq!(
            origins.all.iter().map(describe).collect::<Vec<_>>(),
            [
                "0 User: 3 > Go on.",
                "1 Note: 3 > I have to look.",
                "1 #1 Edit 3 < let a = 1; > It is done.",
                "2 Assistant: 4 > Yes.",
            ]
        );
    }
}
