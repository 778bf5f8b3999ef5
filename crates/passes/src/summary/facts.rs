//! Facts that the program reads from a history: files, commands, errors, the user's messages.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};

use epitome_model::{Block, Call, Counter, Entry, Output, Role, Stub, Tokens, ToolKind, short};

use super::history::{OPENS, cut, escape_tags};
use super::tally::Tally;
use crate::evidence::failure;
use crate::view::View;

/// The facts of a history that a summary states.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SummaryFacts {
    /// The files, by path.
    pub files: Tally<File>,
    /// The commands, by command line.
    pub commands: Tally<Command>,
    /// Number of failures with each error message.
    pub errors: Tally<u64>,
    /// The user's messages, in order.
    pub user: Vec<String>,
}

/// How often a file was used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct File {
    /// Number of successful reads.
    pub read: u64,
    /// Number of times that the whole file was written.
    pub written: u64,
    /// Number of successful edits and patches.
    pub edited: u64,
}

/// How often a command was run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Command {
    /// Number of runs.
    pub runs: u64,
    /// Number of failed runs.
    pub failed: u64,
    /// Whether the last run failed.
    pub fails: bool,
}

impl SummaryFacts {
    /// The facts of these items, oldest first.
    pub fn from_items(view: &View<'_>, items: &[usize]) -> SummaryFacts {
        let mut reading = Reading { view, facts: SummaryFacts::default(), calls: HashMap::new() };
        let mut last_group = None;
        for &item in items {
            let Some(entry) = view.transcript.items[item].entry() else { continue };
            if entry.role == Role::User {
                let group = entry.group.as_deref();
                reading.words(entry, group.is_some() && group == last_group);
                last_group = group;
            } else {
                last_group = None;
            }
            for block in &entry.blocks {
                match block {
                    Block::Call(call) => {
                        reading.calls.insert(&call.id, call);
                    }
                    Block::Output(output) => reading.output(output),
                    Block::Summary(text) => {
                        reading.facts.user.extend(words_in(&text.read(view.source)));
                    }
                    _ => {}
                }
            }
        }
        reading.facts
    }
}

struct Reading<'v, 'a> {
    view: &'v View<'a>,
    facts: SummaryFacts,
    calls: HashMap<&'v str, &'v Call>,
}

impl<'v> Reading<'v, '_> {
    fn words(&mut self, entry: &Entry, goes_on: bool) {
        let source = self.view.source;
        let texts = entry.blocks.iter().filter_map(|block| match block {
            Block::Text(text) => Some(text.read(source).trim().to_owned()),
            Block::Image(_) => Some("[a picture]".to_owned()),
            _ => None,
        });
        let message_text = texts.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n");
        if message_text.is_empty() {
            return;
        }
        match self.facts.user.last_mut().filter(|_| goes_on) {
            Some(before) => *before = format!("{before}\n{message_text}"),
            None => self.facts.user.push(message_text),
        }
    }

    fn output(&mut self, output: &'v Output) {
        let text = output.text(self.view.source);
        if output.from_user && !text.trim().is_empty() {
            self.facts.user.push(text.trim().to_owned());
        }
        let Some(&call) = self.calls.get(&*output.call) else { return };
        let failed = output.error;
        let target = call.target.as_ref().map(|target| target.read(self.view.source));
        let target = target.as_deref().map(str::trim).filter(|it| !it.is_empty());
        match call.kind {
            ToolKind::Read if !failed => self.file(target, |file| file.read += 1),
            ToolKind::Write if !failed => self.file(target, |file| file.written += 1),
            ToolKind::Edit if !failed => self.file(target, |file| file.edited += 1),
            ToolKind::Patch if !failed => {
                let mut files: Vec<String> = target.map(Into::into).into_iter().collect();
                for field in &call.fields {
                    files.extend(patched(&field.text.read(self.view.source)));
                }
                let mut seen = HashSet::new();
                for file in files.iter().filter(|file| seen.insert(file.as_str())) {
                    self.file(Some(file), |file| file.edited += 1);
                }
            }
            ToolKind::Shell => {
                if let Some(command) = target {
                    let run = self.facts.commands.touch(&short(command, 160));
                    run.runs += 1;
                    run.failed += u64::from(failed);
                    run.fails = failed;
                }
            }
            _ => {}
        }
        self.error(output, call, &text);
    }

    fn file(&mut self, path: Option<&str>, count: impl FnOnce(&mut File)) {
        if let Some(path) = path {
            let cwd = self.view.transcript.head.cwd.as_deref();
            let below = cwd.and_then(|cwd| path.strip_prefix(cwd)?.strip_prefix(['/', '\\']));
            count(self.facts.files.touch(&short(below.unwrap_or(path), 200)));
        }
    }

    /// Counts the error that an output reports: by its call and the first line that reports a
    /// failure. If the output of a failed call has no such line, the error is counted by the call
    /// alone. Among successful calls, only those of a shell can report an error.
    fn error(&mut self, output: &Output, call: &Call, text: &str) {
        let says_so = output.error || call.kind == ToolKind::Shell;
        if !says_so || output.from_user {
            return;
        }
        // A stub at the beginning is not part of the output.
        let body = match Stub::parse(text) {
            Some(_) => text.split_once('\n').map_or("", |(_, body)| body),
            None => text,
        };
        if let Some(line) = failure(body, output.error) {
            let what = short(&self.view.describe_call(Some(call)), 80);
            *self.facts.errors.touch(&format!("{what}: {}", short(line.trim(), 240))) += 1;
        } else if output.error {
            *self.facts.errors.touch(&short(&self.view.describe_call(Some(call)), 80)) += 1;
        }
    }
}

/// The paths of the files that a patch changes.
fn patched(patch: &str) -> Vec<String> {
    const MARKS: [&str; 4] = ["*** Update File: ", "*** Add File: ", "*** Delete File: ", "+++ b/"];
    let named = patch.lines().filter_map(|line| {
        MARKS.iter().find_map(|mark| line.strip_prefix(mark)).map(|path| path.trim().to_owned())
    });
    named.filter(|path| !path.is_empty()).collect()
}

/// The user's messages, each in a `<user-message>` element, oldest first. They have at most about
/// `most` tokens together: the newest messages are whole, the next older one and the first may be
/// truncated, and the others are left out. The first message is always included, at least in part.
/// If `current` is true, the last message waits for an answer and is included whole, however long
/// it is.
pub fn user_messages(
    messages: &[String],
    current: bool,
    most: Tokens,
    counter: &dyn Counter,
) -> Vec<String> {
    let counts: Vec<Tokens> = messages.iter().map(|words| counter.count(words)).collect();
    let all = counts.iter().copied().sum::<Tokens>() <= most;
    let first = Tokens(most.0 / 10);
    let mut left = if all { most } else { most - first };
    let mut shown: BTreeMap<usize, Cow<'_, str>> = BTreeMap::new();
    for (n, words) in messages.iter().enumerate().rev() {
        let waited_for = current && n + 1 == messages.len();
        if counts[n] > left && !waited_for {
            if left >= Tokens(40) {
                shown.insert(n, within(words, left));
            }
            break;
        }
        left = left - counts[n];
        shown.insert(n, words.into());
    }
    if let Some(words) = messages.first().filter(|_| !shown.contains_key(&0)) {
        shown.insert(0, within(words, first));
    }
    let of = messages.len();
    let tagged = shown.iter().map(|(n, text)| {
        format!("<user-message n=\"{} of {of}\">\n{}\n</user-message>", *n + 1, escape_tags(text))
    });
    tagged.collect()
}

/// The user's messages in a summary that epitome wrote; none for any other text.
fn words_in(summary: &str) -> Vec<String> {
    let mut found = Vec::new();
    let ours = summary.split_once(OPENS).map_or("", |(_, ours)| ours);
    for part in ours.split("\n<user-message n=\"").skip(1) {
        let text =
            part.split_once("\">\n").and_then(|(_, text)| text.split_once("\n</user-message>"));
        found.extend(text.map(|(text, _)| text.to_owned()));
    }
    found
}

/// A text truncated to about `most` bytes, so that it has at most about `most` tokens: a token has
/// at least one byte.
fn within(words: &str, most: Tokens) -> Cow<'_, str> {
    cut(words, usize::try_from(most.0).unwrap_or(usize::MAX))
}

#[cfg(test)]
#[path = "facts_tests.rs"]
mod tests;
