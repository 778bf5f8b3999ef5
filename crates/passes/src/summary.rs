//! A summary as a machine without input and output: it says what a model is to be asked, takes the
//! answers, and ends in one text or in the reason why there is none.
//!
//! What a program can tell (files, commands, errors, the user's words) is taken from the history
//! and asked of nobody; the model tells the rest, and is held against the history.

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

pub use check::Struck;
pub use history::Caps;
pub use rule::{SummaryRole, SummaryRule};
pub use sections::{Section, SectionSet, Sections};
pub use tool::{ToolText, compact_tool};

/// What a summary stands for.
#[derive(Clone, Copy, Debug)]
pub struct Old<'a> {
    /// Items that go, in the order in which they are sent.
    pub items: &'a [usize],
    /// The same as they were said, before they were shortened: what the model reads. Where nothing
    /// else is known, the same items.
    pub read: &'a [usize],
    /// What they said before it was shortened, and what earlier summaries stand for: of these a
    /// program tells what was done. Where nothing else is known, the same items.
    pub said: &'a [usize],
    /// Items that stay behind the summary.
    pub kept: &'a [usize],
}

/// Who writes a summary.
#[derive(Clone)]
pub struct Writer {
    /// Tokens that it takes, question and answer together.
    pub window: Tokens,
    /// Counts as it does.
    pub counter: Arc<dyn Counter + Send>,
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Writer {{ window: {}, counter: {} }}", self.window.0, self.counter.name())
    }
}

/// A summary that is being written: there is always one question open.
#[derive(Debug)]
pub struct Summarising {
    rule: SummaryRule,
    sections: Vec<Section>,
    writer: Writer,
    frame: Frame,
    pieces: Vec<HistoryRecord>,
    earlier: String,
    split: bool,
    history: Haystack,
    of: Tokens,
    ask: Ask,
    stage: Stage,
    spent: AskTotals,
    shrunk: u32,
}

#[derive(Debug)]
enum Stage {
    /// The open question is the last.
    Last,
    /// Notes of parts are written: those that were asked for already, and what is to be asked.
    Notes { done: Vec<String>, open: Vec<Ask> },
}

/// What was asked and billed, failures included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct AskTotals {
    /// Questions that somebody was asked.
    pub asks: u64,
    /// Of these, those that came to nothing: there was no answer, or none that is of use.
    pub failed: u64,
    /// What was billed for them, where it was told.
    pub used: TokenUsage,
}

impl std::ops::AddAssign for AskTotals {
    fn add_assign(&mut self, other: AskTotals) {
        self.asks += other.asks;
        self.failed += other.failed;
        self.used += other.used;
    }
}

/// What comes of an answer.
#[derive(Debug)]
pub enum SummaryProgress {
    /// The next question is open.
    Ask(Box<Summarising>),
    /// The summary is written.
    Written(WrittenSummary),
    /// There is none.
    Nothing {
        /// Why.
        reason: String,
        /// What it cost.
        spent: AskTotals,
    },
}

/// A summary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenSummary {
    /// Its text, whole.
    pub text: String,
    /// Its tokens, as its writer counts.
    pub tokens: Tokens,
    /// Tokens of what it stands for, counted the same way.
    pub of: Tokens,
    /// What was struck out of it.
    pub struck: Struck,
    /// What it cost.
    pub spent: AskTotals,
}

/// Times that a window may turn out smaller than it was said to be.
const SHRINKS: u32 = 3;
/// Tokens of the user's words in a window are at most this part of it.
const WINDOW_SHARE: u64 = 5;

impl Summarising {
    /// Begins a summary: nothing is asked yet, and [`ask`](Summarising::ask) says what is to be.
    ///
    /// # Errors
    ///
    /// Says why, if there is nothing to summarise or the window has no room for any of it.
    pub fn begin(
        view: &View<'_>,
        old: &Old<'_>,
        rule: &SummaryRule,
        writer: Writer,
    ) -> Result<Summarising, String> {
        let pieces = pieces(view, old.read, &rule.caps);
        let earlier = summary_of(view, old.items);
        if pieces.is_empty() {
            return Err("there is nothing to summarise".into());
        }
        let mut history = Haystack::default();
        for &item in old.said.iter().chain(old.items).chain(old.kept) {
            listen(view, item, &mut history);
        }
        let speaks = |item: &&usize| is_request(view, **item);
        let split = !old.kept.is_empty() && !is_request(view, old.kept[0]);
        let current = old.kept.iter().find(speaks).is_none();
        let facts = SummaryFacts::from_items(view, old.said);
        let most = Tokens(rule.user_tokens.min(writer.window.0 / WINDOW_SHARE));
        let pinned = pinned_text(&pins(view, &everything(old)));
        let frame = Frame::new(&facts, rule, pinned, (current, most), &*writer.counter);
        history.add(frame.text());
        let of = old.items.iter().filter_map(|&item| view.transcript.items[item].entry());
        let of = of.flat_map(|entry| &entry.blocks);
        let of = of.map(|block| block_tokens(block, view.source, &*writer.counter)).sum();
        let sections = rule.sections.all();
        let mut it = Summarising {
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

    /// What is asked now. It fits the window, answer included.
    pub fn ask(&self) -> &Ask {
        &self.ask
    }

    /// What was asked so far.
    pub fn spent(&self) -> AskTotals {
        self.spent
    }

    /// The answer to what is asked now.
    pub fn answer(mut self, reply: Result<Reply, NoReply>) -> SummaryProgress {
        let reply = match reply {
            Ok(reply) => reply,
            Err(NoReply::Nobody) => {
                let (reason, spent) = (NoReply::Nobody.to_string(), self.spent);
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

    /// The next question, if there is room for one.
    fn ask_again(self, next: Result<(), String>) -> SummaryProgress {
        match next {
            Ok(()) => SummaryProgress::Ask(Box::new(self)),
            Err(reason) => SummaryProgress::Nothing { reason, spent: self.spent },
        }
    }

    /// The last question came to nothing.
    fn nothing(mut self, reason: String) -> SummaryProgress {
        self.spent.failed += 1;
        SummaryProgress::Nothing { reason, spent: self.spent }
    }

    fn write(self, text: &str) -> SummaryProgress {
        let told = format!("{}{}", self.ask.system, WHOLE);
        let sections = match check::sections(text, &self.sections, &told) {
            Ok(sections) => sections,
            Err(missing) => {
                let reason = format!("the summary lacks sections: {}", missing.join(", "));
                return self.nothing(reason);
            }
        };
        if sections.iter().all(|(_, body)| body == "None.") {
            return self.nothing("the summary is empty".into());
        }
        let mut struck = Struck::default();
        let told = sections.into_iter().map(|(title, body)| {
            let body = check::checked(&body, &self.history, &mut struck);
            (title, body)
        });
        let told: Vec<(String, String)> = told.collect();
        let text = self.frame.with(&told);
        let (tokens, of, spent) = (self.writer.counter.count(&text), self.of, self.spent);
        if tokens >= of {
            return self.nothing("the summary is longer than what it stands for".into());
        }
        SummaryProgress::Written(WrittenSummary { text, tokens, of, struck, spent })
    }
}

/// The items that go, as they were said first and as they stand: what a recipe left of one says
/// nothing that sets rules.
fn everything(old: &Old<'_>) -> Vec<usize> {
    let mut items: Vec<usize> = old.said.iter().chain(old.items).copied().collect();
    items.sort_unstable();
    items.dedup();
    items
}

/// The words of an answer that is one.
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
