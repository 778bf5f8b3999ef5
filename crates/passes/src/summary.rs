//! Writes a summary, as a state machine without input and output. It makes questions for a model,
//! takes the answers, and ends with a text or with the reason why there is none.
//!
//! The program takes files, commands, errors and the user's words from the history, without a
//! model. The model writes the rest; the quotes and file names in it are checked against the
//! history.

mod check;
mod facts;
mod frame;
mod history;
mod parts;
mod question;
mod rule;
mod sections;
mod tally;
mod tool;
mod transcript;

use std::fmt;
use std::sync::Arc;

use epitome_model::{Counter, Tokens, block_tokens};
use serde::Serialize;

use crate::ask::{Ask, NoReply, Reply, StopReason, TokenUsage};
use crate::pins::{pinned_text, pins};
use crate::view::View;

use check::Haystack;
use facts::SummaryFacts;
use frame::Frame;
use history::{HistoryRecord, pieces};
use question::WHOLE;
use transcript::{is_request, listen, summary_of};

pub use check::StruckCounts;
pub use history::Caps;
pub use rule::{SummaryRole, SummaryRule};
pub use sections::{Section, SectionSet, Sections};
pub use tool::{ToolText, compact_tool};

/// What a summary replaces.
#[derive(Clone, Copy, Debug)]
pub struct ReplacedHistory<'a> {
    /// The items that the summary replaces, in the order in which they are sent.
    pub items: &'a [usize],
    /// The original versions of these items, from before they were shortened. The model reads them.
    /// An item that was not shortened is its own original.
    pub originals: &'a [usize],
    /// All original items, including those that earlier summaries replaced. The program reads facts
    /// from them. If nothing was summarised before, they may be the same as `originals`.
    pub all_originals: &'a [usize],
    /// The items that follow the summary.
    pub kept: &'a [usize],
}

/// A model that writes summaries.
#[derive(Clone)]
pub struct Writer {
    /// The window of the model in tokens, for question and answer together.
    pub window: Tokens,
    /// The tokenizer of the model.
    pub counter: Arc<dyn Counter + Send>,
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Writer {{ window: {}, counter: {} }}", self.window.0, self.counter.name())
    }
}

/// A summary that is being written. It always has exactly one open question.
#[derive(Debug)]
pub struct SummaryInProgress {
    rule: SummaryRule,
    /// The sections that the model has to write.
    sections: Vec<Section>,
    writer: Writer,
    /// The part of the summary that the program writes.
    frame: Frame,
    /// The records of the history that the model reads.
    pieces: Vec<HistoryRecord>,
    /// The text of the earlier summary, without the part that the program wrote; empty if there is
    /// no earlier summary.
    earlier: String,
    /// Whether the history ends within a turn.
    split: bool,
    /// The texts in which the quotes and file names of the answer must occur.
    history: Haystack,
    /// Tokens of what the summary replaces.
    of: Tokens,
    /// The open question.
    ask: Ask,
    stage: Stage,
    spent: AskTotals,
    /// How often questions were made shorter because the model refused one as too long.
    shrunk: u32,
}

#[derive(Debug)]
enum Stage {
    /// The open question is the last one.
    Last,
    /// Notes are being written: about parts of the history, or about groups of notes. `done` are
    /// the finished notes; `open` are the questions that follow the open question.
    Notes { done: Vec<String>, open: Vec<Ask> },
}

/// The number of questions that were sent to the model, and the tokens billed for them. Failed
/// questions are included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct AskTotals {
    /// Number of questions that were asked.
    pub asks: u64,
    /// Number of questions that failed, because there was no answer or the answer was unusable.
    pub failed: u64,
    /// Billed tokens, if reported.
    pub used: TokenUsage,
}

impl std::ops::AddAssign for AskTotals {
    fn add_assign(&mut self, other: AskTotals) {
        self.asks += other.asks;
        self.failed += other.failed;
        self.used += other.used;
    }
}

/// What follows after an answer.
#[derive(Debug)]
pub enum SummaryProgress {
    /// Another question is open.
    Ask(Box<SummaryInProgress>),
    /// The summary is finished.
    Written(WrittenSummary),
    /// There is no summary.
    Nothing {
        /// Why there is no summary.
        reason: String,
        /// The number of questions that were asked, and their billed tokens.
        spent: AskTotals,
    },
}

/// A finished summary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenSummary {
    /// The whole text of the summary.
    pub text: String,
    /// Tokens of the text, as counted by the writer's tokenizer.
    pub tokens: Tokens,
    /// Tokens of what the summary replaces, as counted by the writer's tokenizer.
    pub of: Tokens,
    /// How many quotes and file names were removed from the model's text because the history does
    /// not contain them.
    pub struck: StruckCounts,
    /// The number of questions that were asked, and their billed tokens.
    pub spent: AskTotals,
}

/// Maximum number of times that questions are made shorter because the model refuses one as too
/// long.
const SHRINKS: u32 = 3;
/// The window divided by this number is the maximum size of the user's messages in a summary.
const WINDOW_SHARE: u64 = 5;

impl SummaryInProgress {
    /// Begins a summary; [`ask`](SummaryInProgress::ask) returns the first question.
    ///
    /// # Errors
    ///
    /// The reason, if there is nothing to summarise or the window is too small.
    pub fn begin(
        view: &View<'_>,
        old: &ReplacedHistory<'_>,
        rule: &SummaryRule,
        writer: Writer,
    ) -> Result<SummaryInProgress, String> {
        let pieces = pieces(view, old.originals, &rule.caps);
        let earlier = summary_of(view, old.items);
        if pieces.is_empty() {
            return Err("there is nothing to summarise".into());
        }
        let mut history = Haystack::default();
        for &item in old.all_originals.iter().chain(old.items).chain(old.kept) {
            listen(view, item, &mut history);
        }
        let split = !old.kept.is_empty() && !is_request(view, old.kept[0]);
        let current = !old.kept.iter().any(|&item| is_request(view, item));
        let facts = SummaryFacts::from_items(view, old.all_originals);
        let most = Tokens(rule.user_tokens.min(writer.window.0 / WINDOW_SHARE));
        let pinned = pinned_text(&pins(view, &everything(old)));
        let frame = Frame::new(&facts, rule, pinned, (current, most), &*writer.counter);
        history.add(frame.text());
        let of = old.items.iter().filter_map(|&item| view.transcript.items[item].entry());
        let of = of.flat_map(|entry| &entry.blocks);
        let of = of.map(|block| block_tokens(block, view.source, &*writer.counter)).sum();
        let sections = rule.sections.all();
        let mut it = SummaryInProgress {
            rule: rule.clone(),
            sections,
            writer,
            frame,
            pieces,
            earlier: earlier.map(|text| frame::narrative(&text).to_owned()).unwrap_or_default(),
            split,
            history,
            of,
            ask: Ask { system: String::new(), prompt: String::new(), max_tokens: 0 },
            stage: Stage::Last,
            spent: AskTotals::default(),
            shrunk: 0,
        };
        it.plan()?;
        Ok(it)
    }

    /// The open question. The question and its answer together fit the window.
    pub fn ask(&self) -> &Ask {
        &self.ask
    }

    /// The number of questions so far, and their billed tokens.
    pub fn spent(&self) -> AskTotals {
        self.spent
    }

    /// Takes the answer to the open question, and returns what follows.
    pub fn answer(mut self, reply: Result<Reply, NoReply>) -> SummaryProgress {
        let reply = match reply {
            Ok(reply) => reply,
            Err(NoReply::NoModel) => {
                let reason = NoReply::NoModel.to_string();
                let spent = self.spent;
                return SummaryProgress::Nothing { reason, spent };
            }
            Err(NoReply::TooLong) if self.shrunk < SHRINKS => {
                self.shrunk += 1;
                self.spent.asks += 1;
                self.spent.failed += 1;
                self.writer.window = Tokens(self.writer.window.0 / 2);
                return self.planned();
            }
            Err(failure) => {
                self.spent.asks += 1;
                return self.nothing(failure.to_string());
            }
        };
        self.spent.asks += 1;
        if let Some(used) = reply.used {
            self.spent.used += used;
        }
        let text = match text_of_reply(reply) {
            Ok(text) => text,
            Err(reason) => return self.nothing(reason),
        };
        match std::mem::replace(&mut self.stage, Stage::Last) {
            Stage::Last => self.write(&text),
            Stage::Notes { mut done, open } => {
                done.push(text);
                let next = self.next(done, open);
                self.ask_again(next)
            }
        }
    }

    fn planned(mut self) -> SummaryProgress {
        let plan = self.plan();
        self.ask_again(plan)
    }

    /// Continues with the next question, or ends with the reason why none can be asked.
    fn ask_again(self, next: Result<(), String>) -> SummaryProgress {
        match next {
            Ok(()) => SummaryProgress::Ask(Box::new(self)),
            Err(reason) => SummaryProgress::Nothing { reason, spent: self.spent },
        }
    }

    /// Ends without a summary, because the last question failed.
    fn nothing(mut self, reason: String) -> SummaryProgress {
        self.spent.failed += 1;
        SummaryProgress::Nothing { reason, spent: self.spent }
    }

    fn write(self, text: &str) -> SummaryProgress {
        let section_source = format!("{}{}", self.ask.system, WHOLE);
        let sections = match check::sections(text, &self.sections, &section_source) {
            Ok(sections) => sections,
            Err(missing) => {
                let reason = format!("the summary lacks sections: {}", missing.join(", "));
                return self.nothing(reason);
            }
        };
        if sections.iter().all(|(_, body)| body == "None.") {
            return self.nothing("the summary is empty".into());
        }
        let mut struck = StruckCounts::default();
        let section_source = sections.into_iter().map(|(title, body)| {
            let body = check::strike_unproved(&body, &self.history, &mut struck);
            (title, body)
        });
        let section_source: Vec<(String, String)> = section_source.collect();
        let text = self.frame.with(&section_source);
        let tokens = self.writer.counter.count(&text);
        let of = self.of;
        let spent = self.spent;
        if tokens >= of {
            return self.nothing("the summary is longer than what it replaces".into());
        }
        SummaryProgress::Written(WrittenSummary { text, tokens, of, struck, spent })
    }
}

/// The items that the summary replaces, both the original and the current ones: a text that sets
/// rules may be only a stub in the current version.
fn everything(old: &ReplacedHistory<'_>) -> Vec<usize> {
    let mut items: Vec<usize> = old.all_originals.iter().chain(old.items).copied().collect();
    items.sort_unstable();
    items.dedup();
    items
}

/// The text of an answer, or the reason why it cannot be used.
fn text_of_reply(reply: Reply) -> Result<String, String> {
    let reason = match reply.stopped {
        StopReason::End if reply.text.trim().is_empty() => "the summary is empty".into(),
        StopReason::End => return Ok(reply.text),
        StopReason::Length => "the summary was cut off by its length".into(),
        StopReason::Call => "the model called a tool".into(),
        StopReason::Refused => "the model declined to answer".into(),
        StopReason::Other(why) => format!("the model stopped: {why}"),
    };
    Err(reason)
}

#[cfg(test)]
#[path = "summary_tests.rs"]
mod tests;
