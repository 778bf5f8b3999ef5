//! The lines of a text that say what happened: errors, definitions, beginning and end.

use std::collections::HashSet;
use std::sync::LazyLock;

use epitome_model::{ToolKind, excerpt};
use regex::Regex;

/// Words that say that something failed, in any case. Each was seen in recorded sessions.
const FAILURES: [&str; 17] = [
    r"\berror(\[|:|\s*=)",
    r"\berror\s+(TS|code)?\d",
    r"^\s*error\b",
    r"\b(fatal|panic|exception|traceback)\b[:( ]",
    r"panicked at|npm err!|segmentation fault",
    r"command not found|no such file|permission denied",
    r"\bcannot (find|open|read|resolve|import)\b",
    r"\bnot found:",
    r"\bundefined reference\b|\bundefined: \w",
    // Compilers and linters: a place in a file, then what is wrong there.
    r"^\s*[\w./@-]+\.\w+:\d+(:\d+)?: \S",
    r"\bfailed (to|with)\b|\bfailed: ",
    r"\bstring to replace not found\b|\bnot found in file\b|\bis not (defined|recognized)\b",
    r"\bunexpected (token|end|identifier)\b|\btimed out\b",
    r"^\s*\[[\w -]+\] error\b",
    r"exit (code|status) [1-9]",
    r"^\s*(✗|✕|×|❌)",
    r"^\s*--- FAIL\b",
];

/// The same, where capitals count: names of exceptions, and what test runners print.
const NAMED_FAILURES: [&str; 3] =
    [r"\w(Error|Exception)\b(:|$)", r"^\s*FAIL\b|\bFAILED\b", r"^E\s{2,}\S"];

static ERROR: LazyLock<Regex> = LazyLock::new(|| {
    let any = FAILURES.join("|");
    let named = NAMED_FAILURES.join("|");
    // Words end where letters of English end: much faster, and the words are English.
    let pattern = format!("(?i:{any})|{named}").replace(r"\b", r"(?-u:\b)");
    Regex::new(&pattern).expect("the words are fixed and tested")
});

/// Words that may say what went wrong, in the output of what did go wrong.
static MAY_SAY: LazyLock<Regex> = LazyLock::new(|| {
    let words = concat!(
        "(?i:error|fail|fatal|panic|exception|traceback|undefined|cannot|not found|denied",
        "|refused|timed out)",
    );
    Regex::new(words).expect("the words are fixed and tested")
});

/// A line that says in which file an agent saved the whole of a result: Claude Code, OpenCode and
/// Gemini CLI write such lines when they shorten results themselves.
static SAVED: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r"(?i)(?-u:\b)full (output|string|content)(?-u:\b).{0,24}: ?\S*[/\\]\S";
    Regex::new(pattern).expect("the words are fixed and tested")
});

/// What may stand before the word that begins a definition.
const MODIFIERS: &str = concat!(
    r"(?:pub(?:\([a-z]+\))? |export (?:default )?|async |static |public |private |protected ",
    r"|abstract |final |unsafe |const )*",
);

/// The words that begin a definition in common languages.
const KEYWORDS: &str = concat!(
    r"(?:fn|func|function|def|class|struct|enum|trait|impl|interface|type|mod|namespace|module",
    r"|object|record|protocol|extension)",
);

/// The beginning of a definition, maybe behind the number of its line; or a heading of Markdown.
static DEFINITION: LazyLock<Regex> = LazyLock::new(|| {
    let number = r"^(?:\s*\d+(?:→|\t))?";
    let value = r"(?:export )?(?:const|let|var) \w+ = (?:async )?(?:\(|function)";
    let definition = format!(r"\s{{0,4}}{MODIFIERS}{KEYWORDS}\s+[\w(<\[*&]");
    let pattern = format!(r"{number}(?:{definition}|#{{1,3}} \S|{value})");
    Regex::new(&pattern).expect("the words are fixed and tested")
});

/// Whether a line says that something failed.
pub fn is_error_line(line: &str) -> bool {
    // A line of a megabyte is data, not a message.
    line.len() <= 4_000 && ERROR.is_match(line)
}

/// Whether a line begins a definition or a heading.
pub fn is_definition(line: &str) -> bool {
    line.len() <= 4_000 && DEFINITION.is_match(line)
}

/// How much of a text is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// Lines at the beginning.
    pub head: usize,
    /// Lines at the end.
    pub tail: usize,
    /// Definitions of a file that was read or written, at most.
    pub outline: usize,
    /// Lines are cut at so many bytes; 0 leaves them whole. A line that says what failed is whole.
    pub width: usize,
    /// A result of fewer lines is shown by its end alone.
    pub few: usize,
}

/// Lines that say what failed and stand in a result further down.
///
/// Who mends a build runs it until it passes, and each run prints what the one before has printed:
/// a line is kept where it was said last.
#[derive(Debug, Default)]
pub struct SaidLater(HashSet<Box<str>>);

impl SaidLater {
    /// Shorter lines cost less than what they tell.
    const WORTH: usize = 24;

    /// Takes the lines of a result that stays whole.
    pub fn add(&mut self, text: &str) {
        let errors = text.lines().map(str::trim);
        self.0
            .extend(errors.filter(|line| Self::counts(line) && is_error_line(line)).map(Box::from));
    }

    fn counts(line: &str) -> bool {
        line.len() >= Self::WORTH
    }

    fn has(&self, line: &str) -> bool {
        self.0.contains(line)
    }

    fn insert(&mut self, line: &str) {
        if Self::counts(line) {
            self.0.insert(line.into());
        }
    }
}

/// The lines of a result that are worth keeping, as an excerpt; nothing if none are. Those that
/// are kept are said later for what is above.
pub fn of_output(
    text: &str,
    kind: ToolKind,
    failed: bool,
    amount: Amount,
    later: &mut SaidLater,
) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let mut keep = vec![false; lines.len()];
    match kind {
        // The words of a file or of a search are not what happened to the tool.
        ToolKind::Read | ToolKind::Search if !failed => {
            if kind == ToolKind::Read {
                outline(&lines, amount.outline, &mut keep);
            }
        }
        ToolKind::Write | ToolKind::Edit | ToolKind::List if !failed => {}
        _ => {
            errors(&lines, failed, &mut keep, later);
            // What failed says more than how it began, and of a few lines the last says enough.
            let few = lines.len() < amount.few;
            let head = if few || keep.contains(&true) { 0 } else { amount.head };
            ends(&lines, head, amount.tail, &mut keep);
        }
    }
    saved(&lines, &mut keep);
    // The last words of what failed may be all that it says.
    shortened(text, &keep, if failed { 0 } else { amount.width })
}

/// The lines of an argument that are worth keeping.
pub fn of_argument(text: &str, amount: Amount) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let mut keep = vec![false; lines.len()];
    if amount.outline > 0 {
        outline(&lines, amount.outline, &mut keep);
    }
    ends(&lines, amount.head, amount.tail, &mut keep);
    shortened(text, &keep, amount.width)
}

fn ends(lines: &[&str], head: usize, tail: usize, keep: &mut [bool]) {
    let said = |idx: &usize| !lines[*idx].trim().is_empty();
    for idx in (0..lines.len()).filter(said).take(head) {
        keep[idx] = true;
    }
    for idx in (0..lines.len()).rev().filter(said).take(tail) {
        keep[idx] = true;
    }
}

/// Marks where an agent says which file holds the whole: near the beginning or the end.
fn saved(lines: &[&str], keep: &mut [bool]) {
    const NEAR: usize = 4;
    let far = NEAR..lines.len().saturating_sub(NEAR);
    for idx in (0..lines.len()).filter(|idx| !far.contains(idx)) {
        keep[idx] |= is_where_saved(lines[idx]);
    }
}

fn is_where_saved(line: &str) -> bool {
    line.len() <= 1_000 && SAVED.is_match(line)
}

/// Marks error lines; one that stands there already is not kept twice. One of them stays even if
/// all are said later: that something failed here is said here.
fn errors(lines: &[&str], failed: bool, keep: &mut [bool], later: &mut SaidLater) {
    let mut seen = HashSet::new();
    let mut first = None;
    let mut kept = Vec::new();
    for (idx, line) in lines.iter().enumerate() {
        let says = is_error_line(line) || failed && MAY_SAY.is_match(line);
        let line = line.trim();
        if !says || !seen.insert(line) {
            continue;
        }
        first.get_or_insert(idx);
        if !later.has(line) {
            kept.push(idx);
        }
    }
    if kept.is_empty() {
        kept.extend(first);
    }
    for idx in kept {
        keep[idx] = true;
        later.insert(lines[idx].trim());
    }
}

/// Marks definitions, spread over the file when there are more than `most`.
fn outline(lines: &[&str], most: usize, keep: &mut [bool]) {
    if most == 0 {
        return;
    }
    let found: Vec<usize> =
        (0..lines.len()).filter(|&idx| DEFINITION.is_match(lines[idx])).collect();
    let step = found.len().div_ceil(most).max(1);
    for idx in found.into_iter().step_by(step) {
        keep[idx] = true;
    }
}

/// The excerpt, with lines cut at `width`.
fn shortened(text: &str, keep: &[bool], width: usize) -> String {
    let shown = excerpt(text, keep);
    if width == 0 || shown.lines().all(|line| line.len() <= width) {
        return shown;
    }
    let lines: Vec<String> = shown
        .lines()
        .map(|line| {
            if line.len() <= width || is_error_line(line) || is_where_saved(line) {
                return line.to_owned();
            }
            format!("{}…", beginning(line, width))
        })
        .collect();
    lines.join("\n")
}

/// The first `most` bytes of a text, or a little less, so that no character is cut.
pub fn beginning(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|&at| text.is_char_boundary(at));
    &text[..end.unwrap_or(0)]
}

#[cfg(test)]
#[path = "evidence_tests.rs"]
mod tests;
