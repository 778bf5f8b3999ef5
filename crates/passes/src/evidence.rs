//! Finds the lines of a text that matter most: errors, definitions, first and last lines.

use std::collections::HashSet;
use std::sync::LazyLock;

use epitome_model::{ToolKind, excerpt, first_words};
use regex::Regex;

use crate::key_blocks::without_key_blocks;
use crate::languages::LanguagePatterns;

/// Patterns of lines that report a failure, independent of the language of the line: a position in
/// a file with a message, error marks, output of make and test runners. Upper and lower case are
/// not distinguished.
const FAILURES: [&str; 7] = [
    r"^\s*[\w./@-]+\.\w+:\d+(:\d+)?: \S",
    r"^\s*[\w./\\:@-]+\.\w+\(\d+(,\d+)?\)\s?: \S",
    r"^\s*(✗|✕|✘|×|❌|⛔)",
    r"^\s*--- FAIL\b",
    r"^\s*not ok \d",
    r"^\s*\[[\w -]+\] error\b",
    r"\bmake(\[\d+\])?: \*\*\* ",
];

/// Patterns of failures in which upper and lower case matter: exception names, output of test
/// runners, system error codes.
const NAMED_FAILURES: [&str; 4] = [
    r"\w(Error|Exception)\b(:|$)",
    r"^\s*FAIL\b|\bFAILED\b",
    r"^E\s{2,}\S",
    concat!(
        r": E(?:NOENT|ACCES|PERM|EXIST|ISDIR|NOTDIR|NOTEMPTY|MFILE|NOSPC|PIPE|CONNREFUSED",
        r"|CONNRESET|ADDRINUSE|TIMEDOUT|NOTFOUND|HOSTUNREACH|INVAL)\b",
    ),
];

static ERROR: LazyLock<LanguagePatterns> = LazyLock::new(|| {
    let named = NAMED_FAILURES.map(|it| format!("(?-i:{it})"));
    let more: Vec<&str> = FAILURES.into_iter().chain(named.iter().map(String::as_str)).collect();
    LanguagePatterns::failures(&more)
});

/// Words that mean a failure only in the output of a failed call.
static MAY_SAY: LazyLock<LanguagePatterns> = LazyLock::new(LanguagePatterns::may_say);

/// The exit status of a command, as agents write it above or below its output.
static STATUS: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = concat!(
        r"(?i)^\W*(?:error: )?(?:process |command )?(?:exit(?:ed)?|failed)(?: with)?(?: exit)?",
        r"(?: code| status)?:? \d+\W*$",
    );
    Regex::new(pattern).expect("the words are fixed and tested")
});

/// A stack frame, in common languages.
static FRAME: LazyLock<Regex> = LazyLock::new(|| {
    let frames = [
        r"^\s+at \S",
        r#"^\s*File "[^"]+", line \d+"#,
        r"^\s+from \S+:\d+:in ",
        r"^\s*\d+: +0x[0-9a-f]+ ",
        r"^\s+\S+\.go:\d+ \+0x",
        r"^\s*#\d+ +(?:0x[0-9a-f]+|\S+\(\d+\))",
    ];
    Regex::new(&frames.join("|")).expect("the words are fixed and tested")
});

/// A line that names the file in which an agent saved a whole result: Claude Code, OpenCode and
/// Gemini CLI write such lines when they shorten results themselves.
static SAVED: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r"(?i)(?-u:\b)full (output|string|content)(?-u:\b).{0,24}: ?\S*[/\\]\S";
    Regex::new(pattern).expect("the words are fixed and tested")
});

/// Modifiers that may precede the keyword of a definition.
const MODIFIERS: &str = concat!(
    r"(?:pub(?:\([a-z]+\))? |export (?:default )?|async |static |public |private |protected ",
    r"|abstract |final |unsafe |const )*",
);

/// Keywords that begin a definition in common languages.
const KEYWORDS: &str = concat!(
    r"(?:fn|func|function|def|class|struct|enum|trait|impl|interface|type|mod|namespace|module",
    r"|object|record|protocol|extension)",
);

/// The beginning of a definition, with or without a line number before it; or a Markdown heading.
static DEFINITION: LazyLock<Regex> = LazyLock::new(|| {
    let number = r"^(?:\s*\d+(?:→|\t))?";
    let value = r"(?:export )?(?:const|let|var) \w+ = (?:async )?(?:\(|function)";
    let definition = format!(r"\s{{0,4}}{MODIFIERS}{KEYWORDS}\s+[\w(<\[*&]");
    let pattern = format!(r"{number}(?:{definition}|#{{1,3}} \S|{value})");
    Regex::new(&pattern).expect("the words are fixed and tested")
});

/// Whether a line reports a failure. A line of more than 4,000 bytes never does.
pub fn is_error_line(line: &str) -> bool {
    // A very long line is data, not a message.
    line.len() <= 4_000 && ERROR.are_in(line)
}

/// How certain it is that a line reports a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sure {
    /// The line reports a failure wherever it occurs.
    Surely,
    /// The line may report a failure, because it is in the output of a failed call.
    Maybe,
}

/// Marks the lines of a failed output that report the failure: lines with an error word or mark,
/// and lines directly above and below stack frames. With [`Sure::Maybe`], lines with a word that
/// may mean a failure are marked too. If the output has no line of any of these kinds, except its
/// exit status, the last lines are marked: the output may be in a language whose words are not
/// listed.
pub(crate) fn failing_lines(lines: &[&str], sure: Sure) -> Vec<bool> {
    let surely: Vec<bool> = lines.iter().map(|line| is_error_line(line)).collect();
    let mut failing = match sure {
        Sure::Surely => surely.clone(),
        Sure::Maybe => {
            let all = lines.iter().zip(&surely);
            all.map(|(line, surely)| *surely || may_report(line)).collect()
        }
    };
    let is_around_frames = around_frames(lines, &mut failing);
    if is_around_frames {
        return failing;
    }
    let mut all = lines.iter().zip(&surely);
    if !all.any(|(line, surely)| !is_status(line) && (*surely || may_report(line))) {
        let nonempty_lines = (0..lines.len()).rev().filter(|&idx| !lines[idx].trim().is_empty());
        nonempty_lines.take(LAST).for_each(|idx| failing[idx] = true);
    }
    failing
}

/// Whether a line of a failed output may report the failure.
fn may_report(line: &str) -> bool {
    line.len() <= 4_000 && MAY_SAY.are_in(line)
}

/// Marks the lines above and below the stack frames of a text. Returns whether it marked any.
fn around_frames(lines: &[&str], failing: &mut [bool]) -> bool {
    let frames = lines.iter().map(|line| line.len() <= 1_000 && FRAME.is_match(line));
    let frames: Vec<bool> = frames.collect();
    let mut is_any = false;
    for idx in 1..lines.len() {
        let is = frames[idx] || is_source(lines, &frames, idx);
        let was = frames[idx - 1] || is_source(lines, &frames, idx - 1);
        let around = if is { idx - 1 } else { idx };
        if is != was && !lines[around].trim().is_empty() {
            failing[around] = true;
            is_any = true;
        }
    }
    is_any
}

/// Whether a line is source code, which Python prints, indented, below each stack frame.
fn is_source(lines: &[&str], frames: &[bool], idx: usize) -> bool {
    idx > 0 && frames[idx - 1] && lines[idx].starts_with([' ', '\t'])
}

/// The first line of an output that reports a failure; `None` if no line does. If the call failed,
/// a line other than its exit status is preferred.
pub(crate) fn failure(text: &str, failed: bool) -> Option<&str> {
    if !failed {
        return text.lines().find(|line| is_error_line(line));
    }
    let lines: Vec<&str> = text.lines().collect();
    let surely = lines.iter().find(|line| is_error_line(line) && !is_status(line));
    if let Some(line) = surely {
        return Some(line);
    }
    let failing = failing_lines(&lines, Sure::Maybe);
    let mut all = lines.iter().zip(failing).filter(|(_, fails)| *fails).map(|(line, _)| *line);
    all.clone().find(|line| !is_status(line)).or_else(|| all.next())
}

fn is_status(line: &str) -> bool {
    line.len() <= 80 && STATUS.is_match(line)
}

/// Whether a line begins a definition or a heading.
pub fn is_definition(line: &str) -> bool {
    line.len() <= 4_000 && DEFINITION.is_match(line)
}

/// Number of last lines that are kept of a failed output if no other line reports the failure.
const LAST: usize = 3;

/// How much of a text is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExcerptSize {
    /// Maximum number of lines at the beginning.
    pub head: usize,
    /// Maximum number of lines at the end.
    pub tail: usize,
    /// Maximum number of definitions kept of a file that was read or written.
    pub outline: usize,
    /// Bytes to which lines are truncated; 0 leaves them whole. Some lines are never truncated,
    /// such as those that report a failure.
    pub width: usize,
    /// In the excerpt of a result with fewer lines than this, `head` counts as 0. Excerpts of
    /// arguments ignore this number.
    pub few: usize,
}

/// The distinct error lines of a result, without the white space around them, in the order of the
/// text. Each has the index of the line where it occurs first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErrorLines(Vec<(usize, Box<str>)>);

impl ErrorLines {
    /// The error lines of a result of a tool of this kind. If the call succeeded, some kinds, such
    /// as reads and searches, have none: error words in a file do not mean that the tool failed.
    pub fn new(text: &str, kind: ToolKind, failed: bool) -> ErrorLines {
        if !failed && shows_files(kind) {
            return ErrorLines::default();
        }
        let text = &*without_key_blocks(text);
        let lines: Vec<&str> = text.lines().collect();
        let failing = if failed {
            failing_lines(&lines, Sure::Maybe)
        } else {
            lines.iter().map(|line| is_error_line(line)).collect()
        };
        let mut seen = HashSet::new();
        let mut found = Vec::new();
        for (idx, line) in lines.iter().enumerate() {
            let line = line.trim();
            if failing[idx] && seen.insert(line) {
                found.push((idx, Box::from(line)));
            }
        }
        ErrorLines(found)
    }

    /// The error lines of a result that stays whole, whether or not its call failed. Lines that
    /// [`LaterLines`] ignores because they are short are left out.
    pub fn of_whole(text: &str) -> ErrorLines {
        let lines = text.lines().map(str::trim).enumerate();
        let errors = lines.filter(|(_, line)| LaterLines::counts(line) && is_error_line(line));
        ErrorLines(errors.map(|(idx, line)| (idx, Box::from(line))).collect())
    }
}

/// The error lines of the results that come later in the session than the result that is shortened
/// next. Results are shortened from the newest to the oldest.
///
/// An agent that repairs a build runs it until it succeeds, and each run prints the errors of the
/// run before. So an error line is kept only at its last occurrence.
#[derive(Debug, Default)]
pub struct LaterLines(HashSet<Box<str>>);

impl LaterLines {
    /// An error line with fewer bytes than this is kept at every occurrence, because it is short.
    const WORTH: usize = 24;

    /// Adds the error lines of a result that stays whole.
    pub fn add(&mut self, errors: ErrorLines) {
        self.0.extend(errors.0.into_iter().map(|(_, line)| line));
    }

    /// The indices of the error lines that the excerpt of a result keeps: those that do not occur
    /// again later. If all of them occur again, the first is kept nevertheless. The kept lines,
    /// except short ones, are added to `self`, so that the excerpts of earlier results leave them
    /// out.
    pub fn choose(&mut self, errors: ErrorLines) -> Vec<usize> {
        let mut kept: Vec<usize> = Vec::new();
        let first = errors.0.first().map(|(idx, _)| *idx);
        for (idx, line) in errors.0 {
            if self.0.contains(&line) {
                continue;
            }
            kept.push(idx);
            if Self::counts(&line) {
                self.0.insert(line);
            }
        }
        if kept.is_empty() {
            kept.extend(first);
        }
        kept
    }

    fn counts(line: &str) -> bool {
        line.len() >= Self::WORTH
    }
}

/// Whether a tool of this kind reads, searches, lists, writes or edits files. Error words in the
/// result of a successful call of such a tool do not report a failure.
fn shows_files(kind: ToolKind) -> bool {
    matches!(
        kind,
        ToolKind::Read | ToolKind::Search | ToolKind::Write | ToolKind::Edit | ToolKind::List
    )
}

/// An excerpt with the lines of a result that are worth keeping; empty if there are none. `errors`
/// are the indices of the error lines to keep: see [`LaterLines::choose`].
pub fn output_excerpt(
    text: &str,
    kind: ToolKind,
    failed: bool,
    amount: ExcerptSize,
    errors: &[usize],
) -> String {
    let text = &*without_key_blocks(text);
    let lines: Vec<&str> = text.lines().collect();
    let mut keep = vec![false; lines.len()];
    if failed || !shows_files(kind) {
        for &idx in errors {
            keep[idx] = true;
        }
        // Error lines matter more than the first lines, and of a short output the last lines are
        // enough.
        let few = lines.len() < amount.few;
        let head = if few || !errors.is_empty() { 0 } else { amount.head };
        ends(&lines, head, amount.tail, &mut keep);
    } else if kind == ToolKind::Read {
        outline(&lines, amount.outline, &mut keep);
    }
    saved(&lines, &mut keep);
    // Lines of a failed output are not truncated: nothing else may say why the call failed.
    shortened(text, &keep, if failed { 0 } else { amount.width })
}

/// The lines of an argument that are worth keeping, as an excerpt.
pub fn argument_excerpt(text: &str, amount: ExcerptSize) -> String {
    let text = &*without_key_blocks(text);
    let lines: Vec<&str> = text.lines().collect();
    let mut keep = vec![false; lines.len()];
    if amount.outline > 0 {
        outline(&lines, amount.outline, &mut keep);
    }
    ends(&lines, amount.head, amount.tail, &mut keep);
    shortened(text, &keep, amount.width)
}

fn ends(lines: &[&str], head: usize, tail: usize, keep: &mut [bool]) {
    let nonempty_lines: Vec<usize> =
        (0..lines.len()).filter(|idx| !lines[*idx].trim().is_empty()).collect();
    for idx in nonempty_lines.iter().take(head).chain(nonempty_lines.iter().rev().take(tail)) {
        keep[*idx] = true;
    }
}

/// Marks the lines that name the file in which the whole result was saved. Only the first four and
/// the last four lines are searched.
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

/// Marks at most `most` definitions, at equal distances in the list of all definitions.
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

/// The lines that `keep` marks, as an excerpt. Lines are truncated to `width` bytes, unless they
/// report an error or name the file with the whole result. If `width` is 0, no line is truncated.
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
            format!("{}…", first_words(line, width))
        })
        .collect();
    lines.join("\n")
}

#[cfg(test)]
#[path = "evidence_tests.rs"]
mod tests;
