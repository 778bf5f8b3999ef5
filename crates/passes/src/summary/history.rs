//! The text of a history for a model: records in tags, escaped so that no text can forge a tag.

use epitome_model::{Block, Call, Entry, Output, Part, Role, first_words, last_words};
use regex::Regex;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::LazyLock;

use crate::evidence::is_error_line;
use crate::key_blocks::without_key_blocks;
use crate::view::View;

/// The maximum number of bytes of each kind of record; the middle of a longer record is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default, expecting = "a table of numbers of bytes")]
pub struct Caps {
    /// The maximum number of bytes of a message of the user.
    pub user: usize,
    /// The maximum number of bytes of a text of the model.
    pub assistant: usize,
    /// The maximum number of bytes of reasoning.
    pub reasoning: usize,
    /// The maximum number of bytes of the arguments of a call.
    pub arguments: usize,
    /// The maximum number of bytes of a tool result.
    pub results: usize,
}

impl Default for Caps {
    fn default() -> Caps {
        Caps { user: 12_000, assistant: 6_000, reasoning: 500, arguments: 600, results: 2_000 }
    }
}

/// A record of the history, truncated to its maximum length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryRecord {
    tag: &'static str,
    about: String,
    text: String,
    cap: usize,
    least: usize,
}

/// The first line of a summary by epitome.
pub const OPENS: &str = "[Summary of what came before]";

/// The tags in prompts and summaries.
const TAGS: [&str; 10] = [
    "history",
    "earlier",
    "notes",
    "protected",
    "focus",
    "user",
    "assistant",
    "call",
    "result",
    "pinned",
];

static TAG: LazyLock<Regex> = LazyLock::new(|| {
    let tags = TAGS.join("|");
    // A longer word that begins with one of these words is escaped, too, which does no harm.
    let pattern = format!(r"(?i)<(\s*/?\s*(?:{tags}|reasoning|agent|picture))");
    Regex::new(&pattern).expect("the tags are fixed and tested")
});

/// The text, escaped so that nothing in it looks like a tag of a prompt or a summary.
pub fn escape_tags(text: &str) -> Cow<'_, str> {
    TAG.replace_all(text, "&lt;$1")
}

impl HistoryRecord {
    /// The record as an XML element. Its maximum length is halved `halvings` times, but not below
    /// the minimum for its kind.
    pub fn text_with_halved_limit(&self, halvings: u32) -> String {
        match halvings {
            0 => self.within(usize::MAX),
            _ => self.within((self.cap >> halvings).max(self.least)),
        }
    }

    /// The record as an XML element, with at most about `most` bytes of its content.
    pub fn within(&self, most: usize) -> String {
        let HistoryRecord { tag, about, text, .. } = self;
        let text = cut(text, most);
        if text.is_empty() {
            return format!("<{tag}{about}/>");
        }
        if text.contains('\n') {
            format!("<{tag}{about}>\n{text}\n</{tag}>")
        } else {
            format!("<{tag}{about}>{text}</{tag}>")
        }
    }
}

/// The records of these items, oldest first, without summaries and repetitions.
pub fn pieces(view: &View<'_>, items: &[usize], caps: &Caps) -> Vec<HistoryRecord> {
    let mut found = Vec::new();
    let mut records_so_far = Records { view, caps, names: HashMap::new(), found: &mut found };
    for &item in items {
        if let Some(entry) = view.transcript.items[item].entry() {
            entry.blocks.iter().for_each(|block| records_so_far.block(entry, block));
        }
    }
    found
}

struct Records<'v, 'a> {
    view: &'v View<'a>,
    caps: &'v Caps,
    /// A description of each call, by its id.
    names: HashMap<&'v str, String>,
    found: &'v mut Vec<HistoryRecord>,
}

impl<'v> Records<'v, '_> {
    fn block(&mut self, entry: &'v Entry, block: &'v Block) {
        let caps = self.caps;
        match block {
            Block::Text(text) => {
                let (tag, cap, least) = match entry.role {
                    Role::User => ("user", caps.user, 1_000),
                    Role::Assistant => ("assistant", caps.assistant, 300),
                    Role::Tool | Role::System => ("agent", caps.results, 200),
                };
                self.add(tag, String::new(), &text.read(self.view.source), cap, least);
            }
            Block::Thinking(thinking) => {
                if let Some(text) = &thinking.text {
                    let text = text.read(self.view.source);
                    self.add("reasoning", String::new(), &text, caps.reasoning, 100);
                }
            }
            Block::Call(call) => self.call(call),
            Block::Output(output) => self.output(output),
            Block::Image(image) => {
                let about = format!(" kind=\"{}\"", attribute(&image.media));
                self.add("picture", about, "", 0, 0);
            }
            Block::Opaque(_) => self.add("agent", String::new(), "[a document]", 100, 0),
            // A summary is passed to the model separately, and what a repetition repeats is in the
            // history already.
            Block::Summary(_) | Block::Repeated(_) => {}
            _ => {}
        }
    }

    fn call(&mut self, call: &'v Call) {
        let source = self.view.source;
        let target = call.target.as_ref().map(|target| target.read(source));
        let mut about = format!(" tool=\"{}\"", attribute(&call.name));
        if let Some(target) = target.filter(|target| !target.trim().is_empty()) {
            let _ = write!(about, " of=\"{}\"", attribute(&target));
        }
        self.names.insert(&call.id, about.clone());
        let arguments = String::from_utf8_lossy(&source.at(call.arguments)).into_owned();
        self.add("call", about, &arguments, self.caps.arguments, 80);
    }

    fn output(&mut self, output: &'v Output) {
        let mut text = output.text(self.view.source);
        let others = output.parts.iter().filter(|part| !matches!(part, Part::Text(_))).count();
        if others > 0 {
            let _ = write!(text, "\n[and {others} pictures or documents]");
        }
        let mut about = self.names.get(&*output.call).cloned().unwrap_or_default();
        if output.error {
            about.push_str(" failed=\"yes\"");
        }
        // An answer to a question or a refusal of a call is text of the user.
        let tag = if output.from_user { "user" } else { "result" };
        let cap = if output.from_user { self.caps.user } else { self.caps.results };
        self.add(tag, about, &text, cap, 200);
    }

    fn add(&mut self, tag: &'static str, about: String, text: &str, cap: usize, least: usize) {
        let text = text.trim();
        if text.is_empty() && about.is_empty() {
            return;
        }
        // The text is truncated to the maximum length at once, to save memory.
        let text = escape_tags(&cut(&without_key_blocks(text), cap)).into_owned();
        self.found.push(HistoryRecord { tag, about, text, cap, least: least.min(cap) });
    }
}

/// A text as the value of an attribute: on one line, at most 200 characters, without `"`, `<` and
/// `>`.
fn attribute(text: &str) -> String {
    let text = epitome_model::short(text, 200);
    text.replace(['"', '<', '>'], "'")
}

/// A text truncated to about `most` bytes: its beginning, lines of the middle that report failures,
/// and its end. A text that has at most 60 bytes more than `most` stays whole.
pub fn cut(text: &str, most: usize) -> Cow<'_, str> {
    if text.len() <= most.saturating_add(60) {
        return Cow::Borrowed(text);
    }
    let head = first_words(text, most * 2 / 3);
    let tail = last_words(text, most / 3);
    let middle = &text[head.len()..text.len() - tail.len()];
    let mut errors = String::new();
    for line in middle.lines().filter(|line| is_error_line(line)) {
        if errors.len() + line.len() > most / 4 {
            break;
        }
        errors.push_str(line);
        errors.push('\n');
    }
    let left = middle.chars().count();
    Cow::Owned(if errors.is_empty() {
        format!("{head}[… {left} characters left out …]{tail}")
    } else {
        format!("{head}\n[… {left} characters left out, of them:]\n{errors}[…]{tail}")
    })
}

#[cfg(test)]
#[path = "history_tests.rs"]
mod tests;
