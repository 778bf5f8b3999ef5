//! The text of a summary: facts taken from the history, followed by the model's text.

use epitome_model::{Counter, Tokens};

use super::SummaryRule;
use super::facts::{Command, File, SummaryFacts, user_messages};
use super::history::{OPENS, escape_tags};
use super::tally::Tally;

/// The introduction for the model that reads the summary.
const ABOUT: &str = include_str!("../prompts/about.md");

/// The heading of the part that the program wrote.
const TAKEN: &str = "# Taken from the session";
/// The heading of the part that the model wrote.
const TOLD: &str = "# Told by a model";

const FILES: usize = 80;
const COMMANDS: usize = 40;
const ERRORS: usize = 30;

/// The part of a summary that the program writes, without a model.
#[derive(Clone, Debug)]
pub struct Frame(String);

impl Frame {
    /// Makes the program's part from the facts; `pinned` is included unchanged. `current` is
    /// whether the user's last message waits for an answer, and `most` the maximum tokens of the
    /// user's messages.
    pub fn new(
        facts: &SummaryFacts,
        settings: &SummaryRule,
        pinned: Option<String>,
        (current, most): (bool, Tokens),
        counter: &dyn Counter,
    ) -> Frame {
        let mut parts = vec![format!("{OPENS}\n\n{ABOUT}\n{TAKEN}")];
        parts.extend(pinned);
        if let Some(focus) = settings.focus.as_deref().map(str::trim).filter(|it| !it.is_empty()) {
            parts.push(format!("## Asked to look at\n{}", escape_tags(focus)));
        }
        if !settings.protected.is_empty() {
            parts.push(format!("## Kept as it is\n{}", settings.protected.join("\n\n")));
        }
        parts.extend(user(facts, current, most, counter));
        parts.extend(files(&facts.files));
        parts.extend(commands(&facts.commands));
        parts.extend(list("Errors", &facts.errors, ERRORS, |line, times| match times {
            1 => line.to_owned(),
            times => format!("{line} ({times} times)"),
        }));
        Frame(parts.join("\n\n"))
    }

    /// The text of the program's part.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// The whole summary: the program's part, and the sections that the model wrote.
    pub fn with(&self, section_texts: &[(String, String)]) -> String {
        let section_texts = section_texts.iter().map(|(title, body)| format!("## {title}\n{body}"));
        let section_texts = section_texts.collect::<Vec<_>>().join("\n\n");
        format!("{}\n\n{TOLD}\n\n{section_texts}", self.0)
    }
}

/// The part of a summary that the model wrote, if epitome made the summary; otherwise the whole
/// text.
pub fn narrative(text: &str) -> &str {
    if !text.contains(OPENS) {
        return text;
    }
    text.rsplit_once(&format!("\n{TOLD}\n")).map_or(text, |(_, told)| told.trim())
}

fn user(
    facts: &SummaryFacts,
    current: bool,
    most: Tokens,
    counter: &dyn Counter,
) -> Option<String> {
    if facts.user.is_empty() {
        return None;
    }
    let shown = user_messages(&facts.user, current, most, counter);
    let all = facts.user.len();
    let n = shown.len();
    let mut heading = match all - n {
        0 => "## What the user said, word for word".to_owned(),
        left => format!("## What the user said, word for word ({left} of {all} left out)"),
    };
    if current {
        heading.push_str("\nThe last of these messages is the one to be answered.");
    }
    Some(format!("{heading}\n{}", shown.join("\n")))
}

fn files(files: &Tally<File>) -> Option<String> {
    let all = files.all();
    let read = all.iter().map(|(_, file)| file.read).sum();
    let written = all.iter().map(|(_, file)| file.written).sum();
    let edited = all.iter().map(|(_, file)| file.edited).sum();
    let heading = format!("Files: {}", times(read, written, edited));
    list(&heading, files, FILES, |path, file| {
        format!("{path}: {}", times(file.read, file.written, file.edited))
    })
}

fn times(read: u64, written: u64, edited: u64) -> String {
    let counts_by_kind = [("read", read), ("written", written), ("edited", edited)];
    let counts_by_kind =
        counts_by_kind.iter().filter(|(_, n)| *n > 0).map(|(what, n)| format!("{what} {n}"));
    counts_by_kind.collect::<Vec<_>>().join(", ")
}

fn commands(commands: &Tally<Command>) -> Option<String> {
    let all = commands.all();
    let runs: u64 = all.iter().map(|(_, it)| it.runs).sum();
    let failed: u64 = all.iter().map(|(_, it)| it.failed).sum();
    let heading = format!("Commands: run {runs}, failed {failed}");
    list(&heading, commands, COMMANDS, |line, Command { runs, failed, fails }| {
        let last = match (runs, failed, fails) {
            (1, 0, _) => "ran".to_owned(),
            (1, _, _) => "failed".to_owned(),
            (runs, 0, _) => format!("ran {runs} times"),
            (runs, failed, true) => format!("failed {failed} of {runs} times, the last one too"),
            (runs, failed, false) => format!("failed {failed} of {runs} times, the last one ran"),
        };
        format!("`{line}`: {last}")
    })
}

/// A list of the newest `most` names below a heading. If older names are left out, the list states
/// how many. `None` if there are no names.
fn list<T: Default>(
    heading: &str,
    tally: &Tally<T>,
    most: usize,
    line: impl Fn(&str, &T) -> String,
) -> Option<String> {
    if tally.is_empty() {
        return None;
    }
    let left = tally.len().saturating_sub(most);
    let mut lines = vec![format!("## {heading}")];
    if left > 0 {
        lines.push(format!("- {left} older ones are not named here"));
    }
    let shown = tally.all();
    lines.extend(
        shown[left..].iter().map(|(name, it)| format!("- {}", escape_tags(&line(name, it)))),
    );
    Some(lines.join("\n"))
}

#[cfg(test)]
#[path = "frame_tests.rs"]
mod tests;
