//! A session as turns with their pieces (displayed elements, such as a message or a call), in the
//! order of display.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::{Range, RangeInclusive};

use epitome_model::{
    Block, Call, Entry, Image, Item, Output, Part, Role, Source, Span, Text, Thinking, Transcript,
    turns,
};
use jiff::SignedDuration;

use crate::reminder::without_reminders;
use crate::visible::one_line;
use crate::{Changes, Past, Prices, time};

/// A session with the settings of its display.
#[derive(Clone, Copy)]
pub struct StorySession<'a> {
    /// The name of the session's agent.
    pub agent: &'a str,
    /// The transcript of the session.
    pub transcript: &'a Transcript,
    /// The bytes of the transcript's texts.
    pub source: &'a dyn Source,
    /// The changes of files, counted before the session was compacted.
    pub changes: Changes,
    /// The addresses of the pages of sub-agents, by the ids of the calls that started them.
    pub sub_agents: &'a BTreeMap<String, String>,
    /// The level of detail.
    pub detail: Detail,
    /// Prices of requests, for sessions that do not record costs.
    pub prices: Option<&'a dyn Prices>,
    /// The earlier compactions of the session, if the stored session has any.
    pub past: Option<&'a Past>,
}

impl<'a> StorySession<'a> {
    /// The folder the session was run in.
    pub(crate) fn cwd(&self) -> Option<&'a str> {
        self.transcript.head.cwd.as_deref()
    }
}

/// The level of detail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Detail {
    /// The messages of the user and the final answer of each turn.
    Conversation,
    /// In addition, what the agent wrote before the final answer, summaries, and each call of a
    /// tool on one line.
    Calls,
    /// In addition, system messages, reasoning, arguments and results; long ones are shortened.
    Steps,
    /// In addition, the system prompt and blocks that epitome does not know; only the longest texts
    /// are shortened.
    Full,
}

/// A session in turns.
pub struct Story<'a> {
    /// The session.
    pub session: StorySession<'a>,
    /// The turns of the session, in order.
    pub turns: Vec<Turn>,
    pub(crate) pieces: Vec<StoryItem<'a>>,
    /// The selected turns; `None` if all are shown.
    pub(crate) chosen: Option<ChosenTurns>,
}

/// A selection of turns.
pub(crate) struct ChosenTurns {
    numbers: RangeInclusive<usize>,
    /// The number of the session's last turn.
    last: usize,
    /// The title of the whole session.
    title: String,
}

/// A message of the user and everything until the next one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    /// The number of the turn, from 1; it is the same in all outputs. What precedes the first user
    /// message is shown as a turn with the number 0.
    pub number: usize,
    /// The beginning of the user message on one line, with invisible characters made visible.
    pub title: String,
    /// When the turn began, as written in the session.
    pub time: Option<Box<str>>,
    /// The range of the transcript's items that belong to the turn.
    pub(crate) items: Range<usize>,
    /// The range of the turn's pieces.
    pub(crate) pieces: Range<usize>,
    /// The index of the first piece of the final answer. Without an answer it is the end of
    /// `pieces`.
    pub(crate) answer: usize,
}

/// A piece: one displayed element.
#[derive(Clone, Copy)]
pub(crate) struct StoryItem<'a> {
    pub(crate) item: usize,
    pub(crate) block: usize,
    pub(crate) entry: &'a Entry,
    pub(crate) what: StoryItemKind<'a>,
    /// The branch of the history to which the piece belongs.
    pub(crate) branch: Branch,
    /// The estimated size of the piece on a page, in bytes.
    pub(crate) weight: u64,
    /// Whether a resume no longer sends the piece, or a part of it.
    pub(crate) is_unsent: bool,
}

impl StoryItem<'_> {
    /// The anchor of the piece on a page of the session.
    pub(crate) fn anchor(&self) -> String {
        match self.block {
            0 => format!("m{}", self.item),
            block => format!("m{}.{block}", self.item),
        }
    }

    /// Whether the piece is a failed call, or a failed result without a call.
    pub(crate) fn is_failed(&self) -> bool {
        match self.what {
            StoryItemKind::Call(_, output) => output.is_some_and(|output| output.error),
            StoryItemKind::Result(output) => output.error,
            StoryItemKind::Words(_)
            | StoryItemKind::Summary(_)
            | StoryItemKind::Thinking(_)
            | StoryItemKind::Image(_)
            | StoryItemKind::Opaque(_) => false,
        }
    }
}

/// The kind of a piece.
#[derive(Clone, Copy)]
pub(crate) enum StoryItemKind<'a> {
    Words(&'a Text),
    Summary(&'a Text),
    Thinking(&'a Thinking),
    Call(&'a Call, Option<&'a Output>),
    /// A result without its call.
    Result(&'a Output),
    Image(&'a Image),
    Opaque(Span),
}

/// A branch of the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Branch {
    /// The main branch: what a resume sends, or sent before a compaction.
    Main,
    /// Another branch, such as one that the user left.
    Aside,
}

impl<'a> Story<'a> {
    /// Divides a session into turns.
    pub fn new(session: StorySession<'a>) -> Story<'a> {
        let pieces = pieces(&session);
        let mut story = Story { session, turns: Vec::new(), pieces, chosen: None };
        let mut starts: Vec<usize> = vec![0];
        let begins = turns(session.transcript, session.source);
        let numbers: HashMap<usize, usize> =
            begins.into_iter().enumerate().map(|(idx, item)| (item, idx + 1)).collect();
        for (idx, pair) in story.pieces.windows(2).enumerate() {
            // What precedes the first user message is shown as a turn of its own.
            if pair[1].item != pair[0].item && numbers.contains_key(&pair[1].item) {
                starts.push(idx + 1);
            }
        }
        let ends = starts.iter().skip(1).copied().chain([story.pieces.len()]);
        story.turns = starts
            .iter()
            .zip(ends)
            .filter(|(start, end)| *start < end)
            .map(|(&start, end)| {
                let number = numbers.get(&story.pieces[start].item).copied().unwrap_or(0);
                story.turn(number, start..end)
            })
            .collect();
        story.bound_items();
        if story.session.detail == Detail::Conversation {
            story.only_conversation();
        }
        story
    }

    /// The session with only those turns whose numbers are in this range. Totals, such as costs,
    /// stay those of the whole session.
    #[must_use]
    pub fn select_turns(&self, numbers: RangeInclusive<usize>) -> Story<'a> {
        let last = self.turns.last().map_or(0, |turn| turn.number);
        let mut turns = Vec::new();
        let mut pieces = Vec::new();
        for turn in self.turns.iter().filter(|turn| numbers.contains(&turn.number)) {
            let Range { start, end } = turn.pieces;
            let begin = pieces.len();
            pieces.extend_from_slice(&self.pieces[start..end]);
            let answer = turn.answer - start + begin;
            turns.push(Turn { pieces: begin..pieces.len(), answer, ..turn.clone() });
        }
        let chosen = Some(ChosenTurns { numbers, last, title: self.title() });
        Story { session: self.session, turns, pieces, chosen }
    }

    /// Whether an item of the transcript is in a displayed turn.
    pub(crate) fn has_item(&self, item: usize) -> bool {
        self.chosen.is_none() || self.turns.iter().any(|turn| turn.items.contains(&item))
    }

    /// The records of the displayed turns, in the agent's format.
    pub fn records(&self) -> Vec<u8> {
        let source = self.session.source;
        if self.chosen.is_none() {
            return source.read(0..source.len()).into_owned();
        }
        let items = self.session.transcript.items.iter().enumerate();
        let mut records = Vec::new();
        for (_, item) in items.filter(|(item, _)| self.has_item(*item)) {
            records.extend_from_slice(&source.at(item.record().span));
            records.push(b'\n');
        }
        records
    }

    /// The chosen turns, as `turn 21 of 22`; `None` if all turns are displayed.
    pub(crate) fn chosen_in_words(&self) -> Option<String> {
        let ChosenTurns { numbers, last, .. } = self.chosen.as_ref()?;
        let first = *numbers.start();
        let end = *numbers.end().min(last);
        Some(match first == end {
            true => format!("turn {first} of {last}"),
            false => format!("turns {first} to {end} of {last}"),
        })
    }

    /// The pieces of the user's message at the beginning of a turn.
    pub(crate) fn prompt(&self, turn: &Turn) -> Range<usize> {
        let pieces = &self.pieces[turn.pieces.clone()];
        let prompt_pieces = pieces
            .iter()
            .take_while(|piece| piece.entry.role == Role::User && (is_words(&piece.what)));
        turn.pieces.start..turn.pieces.start + prompt_pieces.count()
    }

    /// The turns that contain one of these pieces.
    pub(crate) fn turns_on(&self, pieces: &Range<usize>) -> impl Iterator<Item = &Turn> {
        let Range { start, end } = pieces.clone();
        self.turns.iter().filter(move |turn| turn.pieces.start < end && start < turn.pieces.end)
    }

    /// The steps of a turn: the pieces between the user's message and the answer.
    pub(crate) fn steps(&self, turn: &Turn) -> Range<usize> {
        let begin = self.prompt(turn).end;
        begin..turn.answer.max(begin)
    }

    /// The indices in `pieces` of the failed calls, and of the failed results without a call.
    pub(crate) fn failed(&self) -> Vec<usize> {
        let pieces = self.pieces.iter().enumerate();
        pieces.filter(|(_, piece)| piece.is_failed()).map(|(idx, _)| idx).collect()
    }

    /// The time that agent and user worked on some items of the transcript: the sum of the times
    /// between records, without pauses (see [`time::PAUSE`]). `None` if it is zero or not recorded.
    pub(crate) fn active(&self, items: &Range<usize>) -> Option<SignedDuration> {
        let items = self.session.transcript.items.get(items.clone()).unwrap_or_default();
        let entries = items.iter().filter_map(Item::entry).filter(|entry| !entry.repeated);
        time::active(entries.filter_map(|entry| time::parse(entry.time.as_deref()?)).collect())
    }

    /// The session's title, or else the beginning of the first user message with text, or else a
    /// fixed text.
    pub fn title(&self) -> String {
        if let Some(chosen) = &self.chosen {
            return chosen.title.clone();
        }
        let head = &self.session.transcript.head;
        let title = head.title.as_deref().map(one_line).filter(|title| !title.is_empty());
        title
            .or_else(|| self.turns.iter().map(|turn| turn.title.clone()).find(|it| !it.is_empty()))
            .unwrap_or_else(|| "A session without words".to_owned())
    }

    fn turn(&self, number: usize, pieces: Range<usize>) -> Turn {
        let turn_pieces = &self.pieces[pieces.clone()];
        let title = turn_pieces.iter().find_map(|piece| match piece.what {
            StoryItemKind::Words(text) if piece.entry.role == Role::User => {
                let text = text.read(self.session.source);
                let command = epitome_model::typed_command(&text);
                let words = without_reminders(&text).0;
                Some(one_line(command.as_deref().unwrap_or(&words)))
            }
            _ => None,
        });
        let steps = turn_pieces.iter().rposition(|piece| !is_answer(piece)).map_or(0, |at| at + 1);
        Turn {
            number,
            title: title.unwrap_or_default(),
            time: turn_pieces.iter().find_map(|piece| piece.entry.time.clone()),
            items: turn_pieces.first().map_or(0, |piece| piece.item)..0,
            answer: pieces.start + steps,
            pieces,
        }
    }

    /// Sets where the items of each turn end: where the next turn begins.
    fn bound_items(&mut self) {
        let mut end = self.session.transcript.items.len();
        for turn in self.turns.iter_mut().rev() {
            turn.items.end = end;
            end = turn.items.start;
        }
    }

    /// Removes everything except messages of the user and answers.
    fn only_conversation(&mut self) {
        let mut kept = Vec::new();
        let mut pieces: Vec<Option<StoryItem<'a>>> = self.pieces.drain(..).map(Some).collect();
        for turn in &mut self.turns {
            let start = kept.len();
            let answer = turn.answer;
            for idx in turn.pieces.clone() {
                kept.extend(pieces[idx].take_if(|piece| {
                    idx >= answer || piece.entry.role == Role::User && is_words(&piece.what)
                }));
                if idx < answer {
                    turn.answer = kept.len();
                }
            }
            turn.pieces = start..kept.len();
        }
        self.turns.retain(|turn| !turn.pieces.is_empty());
        self.pieces = kept;
    }
}

fn pieces<'a>(session: &StorySession<'a>) -> Vec<StoryItem<'a>> {
    let StorySession { transcript, source, detail, .. } = *session;
    let mut outputs: HashMap<&str, (&Output, (usize, usize))> = HashMap::new();
    let mut calls: HashSet<&str> = HashSet::new();
    for (item, entry) in transcript.entries() {
        for (idx, block) in entry.blocks.iter().enumerate() {
            match block {
                Block::Output(output) => {
                    outputs.entry(&output.call).or_insert((output, (item, idx)));
                }
                Block::Call(call) => {
                    calls.insert(&call.id);
                }
                _ => {}
            }
        }
    }
    let prompt: HashSet<usize> = transcript.head.prompt.iter().copied().collect();
    let sent: HashSet<usize> = transcript.context.iter().copied().collect();
    let first = transcript.context.iter().copied().min().unwrap_or(usize::MAX);
    let mut seen: HashSet<&str> = HashSet::new();
    let mut pieces = Vec::new();
    for (item, entry) in transcript.entries() {
        if prompt.contains(&item) && detail < Detail::Full {
            continue;
        }
        let branch =
            if item < first || sent.contains(&item) { Branch::Main } else { Branch::Aside };
        for (block, said) in entry.blocks.iter().enumerate() {
            let mut at_output = None;
            let what = match said {
                Block::Text(text) => StoryItemKind::Words(text),
                Block::Summary(text) => StoryItemKind::Summary(text),
                Block::Thinking(thinking) => StoryItemKind::Thinking(thinking),
                // The result is displayed with the first call that has its id.
                Block::Call(call) if seen.insert(&call.id) => {
                    let output = outputs.get(&*call.id).copied();
                    at_output = output.map(|(_, at)| at);
                    StoryItemKind::Call(call, output.map(|(output, _)| output))
                }
                Block::Call(call) => StoryItemKind::Call(call, None),
                Block::Output(output) if calls.contains(&*output.call) => continue,
                Block::Output(output) => StoryItemKind::Result(output),
                Block::Image(image) => StoryItemKind::Image(image),
                Block::Opaque(span) => StoryItemKind::Opaque(*span),
                // A repeated output is displayed only where it occurs first.
                Block::Repeated(_) => continue,
                _ => continue,
            };
            if is_told(&what, entry, detail) && !is_blank(&what, source) {
                let weight = weight(&what);
                let is_unsent = session.past.is_some_and(|past| {
                    let at = [Some((item, block)), at_output];
                    at.into_iter().flatten().any(|at| past.unsent.contains(&at))
                });
                pieces.push(StoryItem { item, block, entry, what, branch, weight, is_unsent });
            }
        }
    }
    pieces
}

fn is_told(what: &StoryItemKind<'_>, entry: &Entry, detail: Detail) -> bool {
    match what {
        StoryItemKind::Words(_) | StoryItemKind::Image(_) => {
            entry.role != Role::System || detail >= Detail::Steps
        }
        StoryItemKind::Summary(_) => true,
        StoryItemKind::Call(..) => true,
        StoryItemKind::Thinking(_) | StoryItemKind::Result(_) => detail >= Detail::Steps,
        StoryItemKind::Opaque(_) => detail >= Detail::Full,
    }
}

fn is_blank(what: &StoryItemKind<'_>, source: &dyn Source) -> bool {
    match what {
        // A text of this length is taken to be not blank without being read.
        StoryItemKind::Words(Text::Source(span)) if span.len() > 64 => false,
        StoryItemKind::Words(text) => text.read(source).trim().is_empty(),
        // Encrypted reasoning has no text to display.
        StoryItemKind::Thinking(Thinking { text: None, .. }) => true,
        StoryItemKind::Thinking(Thinking { text: Some(text), .. }) => {
            text.read(source).trim().is_empty()
        }
        StoryItemKind::Summary(_)
        | StoryItemKind::Call(..)
        | StoryItemKind::Result(_)
        | StoryItemKind::Image(_)
        | StoryItemKind::Opaque(_) => false,
    }
}

fn is_words(what: &StoryItemKind<'_>) -> bool {
    matches!(what, StoryItemKind::Words(_) | StoryItemKind::Image(_))
}

/// Whether a piece can be part of the answer at the end of a turn.
fn is_answer(piece: &StoryItem<'_>) -> bool {
    piece.entry.role == Role::Assistant
        && matches!(piece.what, StoryItemKind::Words(_) | StoryItemKind::Image(_))
}

fn weight(what: &StoryItemKind<'_>) -> u64 {
    /// Approximate bytes of HTML around a piece.
    const AROUND: u64 = 400;
    AROUND
        + match what {
            StoryItemKind::Words(words) | StoryItemKind::Summary(words) => text_weight(words),
            StoryItemKind::Thinking(thinking) => thinking.text.as_ref().map_or(0, text_weight),
            StoryItemKind::Call(call, answer) => {
                call.arguments.len().min(128 << 10) + answer.map_or(0, output_weight)
            }
            StoryItemKind::Result(result) => output_weight(result),
            StoryItemKind::Image(image) => image.data.len(),
            StoryItemKind::Opaque(span) => span.len(),
        }
}

fn text_weight(text: &Text) -> u64 {
    text.span().map_or(0, Span::len)
}

fn output_weight(output: &Output) -> u64 {
    let parts = output.parts.iter().map(|part| match part {
        Part::Text(words) => text_weight(words).min(64 << 10),
        Part::Image(image) => image.data.len(),
        Part::Opaque(span) => span.len(),
    });
    parts.sum()
}

#[cfg(test)]
#[path = "story_tests.rs"]
mod tests;
