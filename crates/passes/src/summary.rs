//! A summary as a machine without input and output: it says what a model is to be asked, takes the
//! answers, and ends in one text or in the reason why there is none.
//!
//! What a program can tell (files, commands, errors, the user's words) is taken from the history
//! and asked of nobody; the model tells the rest, and is held against the history.

mod check;
mod facts;
mod history;
mod offer;
mod sections;
mod tally;
mod written;

use std::fmt;
use std::sync::Arc;

use epitome_model::{Block, Counter, Role, Tokens, block_tokens};
use serde::{Deserialize, Serialize};

use crate::ask::{Ask, NoReply, Reply, Stopped, Used};
use crate::live::Level;
use crate::view::View;

use check::Haystack;
use facts::Facts;
use history::{Piece, cut, escaped, pieces};
use written::Frame;

pub use check::Struck;
pub use history::Caps;
pub use offer::{ToolText, compact_tool};
pub use sections::{Section, SectionSet, Sections};

/// A summary: when it is asked for, what it is like, and as whose words it is sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SummaryRule {
    /// What the context has to reach, after the passes, before a summary is asked for; without it,
    /// whatever is over the target.
    pub over: Level,
    /// Tokens that the model's part of it may have.
    pub max_tokens: u64,
    /// What it tells of.
    pub sections: Sections,
    /// As whose words it is sent.
    pub role: SummaryRole,
    /// Tokens of the user's words that are kept word for word, the newest first.
    pub user_tokens: u64,
    /// What every summary should look at.
    pub focus: Option<String>,
    /// Texts that stand in every summary as they are.
    pub protected: Vec<String>,
    /// How much of each record the model reads.
    pub caps: Caps,
}

impl std::ops::AddAssign for Spent {
    fn add_assign(&mut self, other: Spent) {
        self.asks += other.asks;
        self.used = self.used + other.used;
    }
}

impl Default for SummaryRule {
    fn default() -> SummaryRule {
        SummaryRule {
            over: Level::default(),
            max_tokens: 8_000,
            sections: Sections::default(),
            role: SummaryRole::default(),
            user_tokens: 20_000,
            focus: None,
            protected: Vec::new(),
            caps: Caps::default(),
        }
    }
}

/// As whose words a summary is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SummaryRole {
    /// The user's: every wire takes them.
    #[default]
    User,
    /// The user's, and the model says that it has understood.
    Acknowledged,
    /// What the model is told before the conversation.
    System,
}

/// What a summary stands for.
#[derive(Clone, Copy, Debug)]
pub struct Old<'a> {
    /// Items that go, in the order in which they are sent.
    pub items: &'a [usize],
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
    pieces: Vec<Piece>,
    earlier: String,
    split: bool,
    history: Haystack,
    of: Tokens,
    ask: Ask,
    stage: Stage,
    spent: Spent,
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
pub struct Spent {
    /// Questions that were answered.
    pub asks: u64,
    /// What was billed for them, where it was told.
    pub used: Used,
}

/// What comes of an answer.
#[derive(Debug)]
pub enum Answered {
    /// The next question is open.
    Ask(Box<Summarising>),
    /// The summary is written.
    Written(Written),
    /// There is none.
    Nothing {
        /// Why.
        reason: String,
        /// What it cost.
        spent: Spent,
    },
}

/// A summary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// Its text, whole.
    pub text: String,
    /// Its tokens, as its writer counts.
    pub tokens: Tokens,
    /// Tokens of what it stands for, counted the same way.
    pub of: Tokens,
    /// What was struck out of it.
    pub struck: Struck,
    /// What it cost.
    pub spent: Spent,
}

/// Questions for one summary, at most: a session that needs more is told in less detail.
const MOST_ASKS: usize = 24;
/// Halvings of what is shown of each record.
const HALVINGS: u32 = 4;
/// Times that a window may turn out smaller than it was said to be.
const SHRINKS: u32 = 3;
/// Tokens of the user's words in a window are at most this part of it.
const WINDOW_SHARE: u64 = 5;

const SYSTEM: &str = include_str!("prompts/system.md");
const WHOLE: &str = include_str!("prompts/whole.md");
const PART: &str = include_str!("prompts/part.md");
const MERGE: &str = include_str!("prompts/merge.md");
const JOINED: &str = include_str!("prompts/joined.md");

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
        let pieces = pieces(view, old.items, &rule.caps);
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
        let facts = Facts::of(view, old.said);
        let most = Tokens(rule.user_tokens.min(writer.window.0 / WINDOW_SHARE));
        let frame = Frame::new(&facts, rule, current, most, &*writer.counter);
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
            earlier: earlier.map(|text| written::narrative(&text).to_owned()).unwrap_or_default(),
            split,
            history,
            of,
            ask: Ask { system: String::new(), prompt: String::new(), max_tokens: 0 },
            stage: Stage::Last,
            spent: Spent::default(),
            shrunk: 0,
        };
        it.plan()?;
        Ok(it)
    }

    /// What is asked now. It fits the window, answer included.
    pub fn ask(&self) -> &Ask {
        &self.ask
    }

    /// The answer to what is asked now.
    pub fn answer(mut self, reply: Result<Reply, NoReply>) -> Answered {
        let reply = match reply {
            Ok(reply) => reply,
            Err(NoReply::TooLong) if self.shrunk < SHRINKS => {
                self.shrunk += 1;
                self.writer.window = Tokens(self.writer.window.0 / 2);
                return self.planned();
            }
            Err(failure) => return self.nothing(failure.to_string()),
        };
        self.spent.asks += 1;
        if let Some(used) = reply.used {
            self.spent.used = self.spent.used + used;
        }
        let text = match told(reply) {
            Ok(text) => text,
            Err(reason) => return self.nothing(reason),
        };
        match std::mem::replace(&mut self.stage, Stage::Last) {
            Stage::Last => self.write(&text),
            Stage::Notes { mut done, open } => {
                done.push(text);
                match self.next(done, open) {
                    Ok(()) => Answered::Ask(Box::new(self)),
                    Err(reason) => self.nothing(reason),
                }
            }
        }
    }

    fn planned(mut self) -> Answered {
        match self.plan() {
            Ok(()) => Answered::Ask(Box::new(self)),
            Err(reason) => self.nothing(reason),
        }
    }

    fn nothing(self, reason: String) -> Answered {
        Answered::Nothing { reason, spent: self.spent }
    }

    /// The whole history in one question, with more or less of each record; or else in parts.
    fn plan(&mut self) -> Result<(), String> {
        for halvings in 0..=HALVINGS {
            let history = join(self.pieces.iter().map(|piece| piece.shown(halvings)));
            if let Some(ask) = self.fits(WHOLE, &[("history", history)]) {
                (self.ask, self.stage) = (ask, Stage::Last);
                return Ok(());
            }
        }
        let parts = (0..=HALVINGS).find_map(|halvings| self.parts(halvings));
        let parts = parts.ok_or_else(|| {
            format!("the history is too long for a window of {} tokens", self.writer.window)
        })?;
        let of = parts.len().to_string();
        let asks: Option<Vec<Ask>> = parts
            .into_iter()
            .enumerate()
            .map(|(n, history)| {
                let n = (n + 1).to_string();
                self.fits(PART, &[("history", history), ("n", n), ("of", of.clone())])
            })
            .collect();
        let asks = asks.ok_or_else(|| self.no_room())?;
        self.next(Vec::new(), asks)
    }

    /// The history in parts that fit, if that are not too many.
    fn parts(&self, halvings: u32) -> Option<Vec<String>> {
        let empty = self.question(PART, &[("n", "99".into()), ("of", "99".into())]);
        let room = self.room(empty.max_tokens) - self.count(&empty);
        let mut parts: Vec<String> = Vec::new();
        let mut filled = Tokens(0);
        for piece in &self.pieces {
            let (mut text, mut cap) = (piece.shown(halvings), 4_096);
            let mut tokens = self.writer.counter.count(&text) + Tokens(2);
            while tokens > room {
                if cap == 0 {
                    return None;
                }
                cap /= 2;
                text = piece.within(cap);
                tokens = self.writer.counter.count(&text) + Tokens(2);
            }
            match parts.last_mut().filter(|_| filled + tokens <= room) {
                Some(part) => {
                    part.push('\n');
                    part.push_str(&text);
                    filled += tokens;
                }
                None => {
                    parts.push(text);
                    filled = tokens;
                }
            }
        }
        let fit = |part: &String| self.fits(PART, &[("history", part.clone())]).is_some();
        (parts.len() <= MOST_ASKS && parts.iter().all(fit)).then_some(parts)
    }

    /// The next question about parts; or, when all are answered, about their notes.
    fn next(&mut self, done: Vec<String>, mut open: Vec<Ask>) -> Result<(), String> {
        if open.is_empty() {
            return self.join(done);
        }
        self.ask = open.remove(0);
        self.stage = Stage::Notes { done, open };
        Ok(())
    }

    /// Notes into the summary, or into fewer notes.
    fn join(&mut self, notes: Vec<String>) -> Result<(), String> {
        let of = ("of", notes.len().to_string());
        if let Some(ask) = self.fits(JOINED, &[("notes", tagged(&notes)), of]) {
            (self.ask, self.stage) = (ask, Stage::Last);
            return Ok(());
        }
        if notes.len() == 1 {
            // Merged again it would be one again.
            self.ask = self.cut_to_fit(JOINED, &notes).ok_or_else(|| self.no_room())?;
            self.stage = Stage::Last;
            return Ok(());
        }
        let mut groups: Vec<Ask> = Vec::new();
        let mut group: Vec<String> = Vec::new();
        for note in notes {
            group.push(note);
            if group.len() < 2 {
                continue;
            }
            match self.merge(&group) {
                // It may have room for one more.
                Some(ask) if group.len() > 2 => {
                    groups.pop();
                    groups.push(ask);
                }
                Some(ask) => groups.push(ask),
                None if group.len() > 2 => group = group.split_off(group.len() - 1),
                None => {
                    // Two notes that do not fit together are cut until they do.
                    let cut = self.cut_to_fit(MERGE, &group).ok_or_else(|| self.no_room())?;
                    groups.push(cut);
                    group.clear();
                }
            }
        }
        if let [alone] = group.as_slice() {
            let ask = self.merge(std::slice::from_ref(alone));
            let ask = ask.or_else(|| self.cut_to_fit(MERGE, &group));
            groups.push(ask.ok_or_else(|| self.no_room())?);
        }
        self.next(Vec::new(), groups)
    }

    fn merge(&self, notes: &[String]) -> Option<Ask> {
        let of = ("of", notes.len().to_string());
        self.fits(MERGE, &[("notes", tagged(notes)), of])
    }

    fn cut_to_fit(&self, template: &str, notes: &[String]) -> Option<Ask> {
        let longest = notes.iter().map(String::len).max().unwrap_or(0);
        let of = notes.len().to_string();
        (1..24).find_map(|halvings| {
            let notes: Vec<String> =
                notes.iter().map(|note| cut(note, longest >> halvings).into_owned()).collect();
            self.fits(template, &[("notes", tagged(&notes)), ("of", of.clone())])
        })
    }

    fn write(self, text: &str) -> Answered {
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
        Answered::Written(Written { text, tokens, of, struck, spent })
    }

    /// A question, if it fits.
    fn fits(&self, template: &str, values: &[(&str, String)]) -> Option<Ask> {
        let ask = self.question(template, values);
        (self.count(&ask) <= self.room(ask.max_tokens)).then_some(ask)
    }

    fn question(&self, template: &str, values: &[(&str, String)]) -> Ask {
        let whole = template == WHOLE || template == JOINED;
        let share = if whole { 4 } else { 6 };
        let max_tokens = self.rule.max_tokens.min(self.writer.window.0 / share).max(1);
        let prompt = fill(template, |name| match name {
            "sections" => self.headings(),
            "earlier" if !self.earlier.is_empty() => {
                let most = usize::try_from(self.writer.window.0 / 4).unwrap_or(usize::MAX);
                format!("<earlier>\n{}\n</earlier>\n\n", escaped(&cut(&self.earlier, most * 2)))
            }
            "update" if !self.earlier.is_empty() => UPDATE.into(),
            "split" if self.split => SPLIT.into(),
            "focus" => self.focus(),
            "protected" => self.protected(),
            name => {
                let value = values.iter().find(|(known, _)| *known == name);
                value.map(|(_, value)| value.clone()).unwrap_or_default()
            }
        });
        Ask { system: SYSTEM.trim_end().into(), prompt: prompt.trim_end().into(), max_tokens }
    }

    fn headings(&self) -> String {
        let line = |section: &Section| match section.about {
            "" => format!("## {}", section.title),
            about => format!("## {} ({about})", section.title),
        };
        self.sections.iter().map(line).collect::<Vec<_>>().join("\n")
    }

    fn focus(&self) -> String {
        let Some(focus) = self.rule.focus.as_deref() else { return String::new() };
        let focus = escaped(&cut(focus.trim(), ASIDE.min(self.share()))).into_owned();
        format!("\n\nThe summary is asked to look at this above all:\n<focus>\n{focus}\n</focus>")
    }

    fn protected(&self) -> String {
        if self.rule.protected.is_empty() {
            return String::new();
        }
        let text = self.rule.protected.join("\n");
        let text = escaped(&cut(text.trim(), ASIDE.min(self.share()))).into_owned();
        format!("{PROTECTED}\n<protected>\n{text}\n</protected>")
    }

    fn share(&self) -> usize {
        usize::try_from(self.writer.window.0 / 8).unwrap_or(usize::MAX)
    }

    /// What a question may have of the window: the answer, and what a wire puts around both, come
    /// on top.
    fn room(&self, max_tokens: u64) -> Tokens {
        let window = self.writer.window;
        window - Tokens(max_tokens) - Tokens(window.0 / 20 + 32)
    }

    fn count(&self, ask: &Ask) -> Tokens {
        self.writer.counter.count(&ask.system) + self.writer.counter.count(&ask.prompt)
    }

    fn no_room(&self) -> String {
        format!("a window of {} tokens has no room for a summary", self.writer.window)
    }
}

/// Characters of what is said aside.
const ASIDE: usize = 4_000;

const UPDATE: &str = ", and bring the summary in <earlier> up to date with it: what still holds \
     stays, with all its names and values; what was done since is done; \
     what no longer matters goes";

const SPLIT: &str = "\n\nThe history ends in the middle of a turn: what follows it is given to the \
     agent as it is. Say what the end of this history leaves open, so that \
     the rest can be understood.";

const PROTECTED: &str =
    "\n\nThis is kept beside your text as it is. Write nothing that contradicts it:";

/// The words of an answer that is one.
fn told(reply: Reply) -> Result<String, String> {
    let reason = match reply.stopped {
        Stopped::End if reply.text.trim().is_empty() => "the summary is empty".into(),
        Stopped::End => return Ok(reply.text),
        Stopped::Length => "the summary was cut off by its length".into(),
        Stopped::Call => "the model called a tool".into(),
        Stopped::Refused => "the model declined to answer".into(),
        Stopped::Other(why) => format!("the model stopped: {why}"),
    };
    Err(reason)
}

fn join(texts: impl Iterator<Item = String>) -> String {
    texts.collect::<Vec<_>>().join("\n")
}

fn tagged(notes: &[String]) -> String {
    let of = notes.len();
    let note = |(n, note): (usize, &String)| {
        format!("<notes part=\"{} of {of}\">\n{}\n</notes>", n + 1, escaped(note.trim()))
    };
    join(notes.iter().enumerate().map(note))
}

/// A template with its names in braces replaced; what is put in is not looked at again.
fn fill(template: &str, value: impl Fn(&str) -> String) -> String {
    let mut out = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        let (name, behind) = after.split_once('}').expect("templates close their braces");
        out.push_str(before);
        out.push_str(&value(name));
        rest = behind;
    }
    out.push_str(rest);
    out
}

/// The last summary among these items.
fn summary_of(view: &View<'_>, items: &[usize]) -> Option<String> {
    let entries = items.iter().rev().filter_map(|&item| view.transcript.items[item].entry());
    entries.flat_map(|entry| &entry.blocks).find_map(|block| match block {
        Block::Summary(text) => Some(text.read(view.source).into_owned()),
        _ => None,
    })
}

/// Whether an item holds words of the user that begin a turn.
fn is_request(view: &View<'_>, item: usize) -> bool {
    let entry = view.transcript.items[item].entry();
    entry.is_some_and(|entry| {
        let words = entry.blocks.iter().any(|block| matches!(block, Block::Text(_)));
        entry.role == Role::User && words
    })
}

/// All that an item says.
fn listen(view: &View<'_>, item: usize, history: &mut Haystack) {
    let Some(entry) = view.transcript.items[item].entry() else { return };
    for block in &entry.blocks {
        match block {
            Block::Text(text) | Block::Summary(text) => history.add(&text.read(view.source)),
            Block::Thinking(thinking) => {
                if let Some(text) = &thinking.text {
                    history.add(&text.read(view.source));
                }
            }
            Block::Call(call) => {
                history.add(&call.name);
                let raw = view.source.at(call.arguments);
                history.add(&String::from_utf8_lossy(&raw));
                let texts = call.target.iter().chain(call.fields.iter().map(|field| &field.text));
                texts.for_each(|text| history.add(&text.read(view.source)));
            }
            Block::Output(output) => history.add(&output.text(view.source)),
            _ => {}
        }
    }
}
