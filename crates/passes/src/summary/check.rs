//! Checks a model's text against the history: its sections, its quotes, the files that it names.

use std::borrow::Cow;
use std::sync::LazyLock;

use memchr::memmem;
use regex::Regex;
use serde::Serialize;

use super::history::escape_tags;
use super::sections::Section;

/// The text that replaces a quote or a file name which the history does not contain.
pub const STRUCK: &str = "[struck]";

/// The number of parts of a model's text that were replaced by `[struck]`, because the history does
/// not contain them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StruckCounts {
    /// Number of quotes, and of lines of code blocks.
    pub quotes: u64,
    /// Number of file names.
    pub files: u64,
}

/// The texts of the history, normalised and joined, in which quotes and file names are searched.
#[derive(Clone, Debug, Default)]
pub struct Haystack(String);

impl Haystack {
    /// Adds a text to the history.
    pub fn add(&mut self, text: &str) {
        if !self.0.is_empty() && !self.0.ends_with(' ') {
            self.0.push(' ');
        }
        flat(text, &mut self.0);
    }

    /// Whether the history contains a quote. Case, the amount of white space, and punctuation at
    /// the ends are ignored. The parts of a quote around `…` and `...` are searched one by one.
    pub fn has(&self, quote: &str) -> bool {
        let quote = quote.replace("&lt;", "<");
        quote.split('…').flat_map(|part| part.split("...")).all(|part| {
            let mut wanted = String::new();
            flat(part, &mut wanted);
            let wanted = wanted.trim_matches(|c: char| {
                c.is_whitespace() || matches!(c, '.' | ',' | ';' | ':' | '!' | '?')
            });
            wanted.is_empty() || memmem::find(self.0.as_bytes(), wanted.as_bytes()).is_some()
        })
    }

    /// Whether the history contains a file name. If the name begins with neither `/` nor `~`, no
    /// ASCII letter, digit, `_` or `-` may precede the name in the history.
    fn names(&self, file: &str) -> bool {
        let mut wanted = String::new();
        flat(file.trim_start_matches("./"), &mut wanted);
        let text = self.0.as_bytes();
        memmem::find_iter(text, wanted.as_bytes()).any(|at| {
            wanted.starts_with(['/', '~'])
                || at == 0
                || !(text[at - 1].is_ascii_alphanumeric() || matches!(text[at - 1], b'_' | b'-'))
        })
    }
}

/// Normalises a text: lower case, one space between words.
fn flat(text: &str, into: &mut String) {
    for word in text.split_whitespace() {
        if !into.is_empty() && !into.ends_with(' ') {
            into.push(' ');
        }
        into.extend(word.chars().flat_map(char::to_lowercase));
    }
}

/// Splits a text into its sections, each with its body, in order. If more than half of the sections
/// are present, a missing or empty section gets the body "None."; otherwise the error lists the
/// missing headings. Lines of at least 40 bytes that `instructions` contains are left out.
pub fn sections(
    text: &str,
    wanted: &[Section],
    instructions: &str,
) -> Result<Vec<(String, String)>, Vec<String>> {
    let text = unwrapped(text);
    let mut best = section_bodies(text, wanted, instructions, HeadingForm::Line);
    for form in [HeadingForm::Marked, HeadingForm::Plain] {
        if missing(&best) == 0 {
            break;
        }
        // A body may contain lines that look like headings: a looser form is used only if it finds
        // more sections.
        let other = section_bodies(text, wanted, instructions, form);
        if missing(&other) < missing(&best) {
            best = other;
        }
    }
    let missing = wanted.iter().zip(&best).filter(|(_, body)| body.is_none());
    let missing: Vec<String> = missing.map(|(section, _)| section.title.clone()).collect();
    if missing.len() * 2 >= wanted.len() {
        return Err(missing);
    }
    let bodies = best.into_iter().map(|body| match body.as_deref().map(str::trim) {
        None | Some("") => "None.".to_owned(),
        Some(body) => body.to_owned(),
    });
    Ok(wanted.iter().map(|section| section.title.clone()).zip(bodies).collect())
}

fn missing(bodies: &[Option<String>]) -> usize {
    bodies.iter().filter(|body| body.is_none()).count()
}

/// The forms of a line that begins a section, the strictest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HeadingForm {
    /// A heading alone on its line, with any marks.
    Line,
    /// A marked heading with text after it: `1. NAME: text`, `**Name:** text`.
    Marked,
    /// An unmarked heading with text after it: `Name: text`.
    Plain,
}

/// The body of each section, if the text has the section with a heading of this form.
fn section_bodies(
    text: &str,
    wanted: &[Section],
    instructions: &str,
    form: HeadingForm,
) -> Vec<Option<String>> {
    let mut found: Vec<Option<String>> = vec![None; wanted.len()];
    let mut under: Option<usize> = None;
    for line in text.lines() {
        let begun = wanted
            .iter()
            .enumerate()
            .find_map(|(at, section)| Some((at, text_behind(line, &section.title, form)?)));
        let line = match begun {
            Some((at, rest)) => {
                found[at].get_or_insert_default();
                under = Some(at);
                rest
            }
            None => line,
        };
        let is_leaked = line.trim().len() >= 40 && instructions.contains(line.trim());
        let is_empty_heading = begun.is_some() && line.is_empty();
        if let Some(body) = under.and_then(|at| found[at].as_mut())
            && !is_leaked
            && !is_empty_heading
        {
            body.push_str(&demoted(line));
            body.push('\n');
        }
    }
    found
}

/// The rest of a line after the heading `title`; `None` if the line does not begin this section.
fn text_behind<'l>(line: &'l str, title: &str, form: HeadingForm) -> Option<&'l str> {
    let title = heading(title);
    // `is_title` accepts a description in brackets behind the title, which some models repeat.
    if is_title(line, &title) {
        return Some("");
    }
    let start = line.trim_start();
    let is_marked = start.starts_with(['#', '*', '_', '-', '+'])
        || start.starts_with(|c: char| c.is_ascii_digit());
    match form {
        HeadingForm::Line => return None,
        HeadingForm::Marked if !is_marked => return None,
        HeadingForm::Marked | HeadingForm::Plain => {}
    }
    let bold = start.strip_prefix("**").and_then(|rest| rest.split_once("**"));
    let separated = [":", "：", " – ", " — ", " - "].iter().map(|mark| line.split_once(mark));
    let mut splits = separated.chain([bold.filter(|_| is_marked)]).flatten();
    let (_, rest) = splits.find(|(before, _)| is_title(before, &title))?;
    // The marks that end bold text are removed.
    Some(rest.trim_start_matches(['*', '_']).trim())
}

/// Whether a text is the heading `title`, with or without an explanation in brackets.
fn is_title(text: &str, title: &str) -> bool {
    let before = text.split_once(" (").map_or(text, |(before, _)| before);
    heading(text) == title || heading(before) == title
}

/// An answer without the thoughts before it (in `<think>`, `<thinking>` or `<analysis>`), and
/// without the marks of a code block around it.
fn unwrapped(text: &str) -> &str {
    let mut text = text.trim();
    for tag in ["analysis", "think", "thinking"] {
        let open = format!("<{tag}>");
        let close = format!("</{tag}>");
        if text.starts_with(&open)
            && let Some((_, rest)) = text.split_once(&close)
        {
            text = rest.trim();
        }
    }
    let inner = text.strip_prefix("```").and_then(|it| it.strip_suffix("```"));
    inner.and_then(|it| Some(it.split_once('\n')?.1)).unwrap_or(text)
}

/// A heading without its marks, in lower case.
fn heading(line: &str) -> String {
    let text = line.trim_matches(|c: char| {
        c.is_whitespace()
            || c.is_ascii_digit()
            || matches!(c, '#' | '*' | '_' | '.' | ')' | ':' | '：' | '-' | '+')
    });
    text.to_lowercase()
}

/// A line that cannot be taken for a heading of a summary: a Markdown heading is changed to level
/// 3, any other line is returned unchanged.
fn demoted(line: &str) -> Cow<'_, str> {
    let rest = line.trim_start().trim_start_matches('#');
    if line.trim_start().starts_with('#') && rest.starts_with(' ') {
        return format!("###{rest}").into();
    }
    line.into()
}

/// A model's text, with [`STRUCK`] in place of each quote, file name and line of a code block that
/// the history does not contain. Quotes without letters and digits are not checked. Tags are
/// escaped.
pub fn strike_unproved(text: &str, history: &Haystack, struck: &mut StruckCounts) -> String {
    let text = escape_tags(text);
    let mut out = String::new();
    let mut fenced = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
            out.push_str(line);
        } else if fenced {
            out.push_str(if history.has(line) { line } else { struck_out(&mut struck.quotes) });
        } else {
            out.push_str(&line_checked(line, history, struck));
        }
        out.push('\n');
    }
    if fenced {
        out.push_str("```\n");
    }
    out.trim_end().to_owned()
}

fn struck_out(count: &mut u64) -> &'static str {
    *count += 1;
    STRUCK
}

static QUOTE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new("`([^`]+)`|\"([^\"]+)\"|“([^”]+)”").expect("the pattern is fixed and tested")
});

/// An absolute or relative path, or a name with an extension.
static FILE: LazyLock<Regex> = LazyLock::new(|| {
    let path = r"(?:~|\.{1,2})?/(?:[\w.@+~-]+/)*[\w.@+~-]*\w";
    let name = r"[\w@+~-][\w.@+~/-]*\.[A-Za-z][A-Za-z0-9]{0,7}";
    Regex::new(&format!(r"(?-u:\b){name}(?-u:\b)|{path}")).expect("the pattern is fixed and tested")
});

fn line_checked(line: &str, history: &Haystack, struck: &mut StruckCounts) -> String {
    let mut out = String::new();
    let mut from = 0;
    for quote in QUOTE.captures_iter(line) {
        let whole = quote.get(0).expect("a match is its first group");
        let inner = quote.iter().skip(1).flatten().next().map_or("", |it| it.as_str());
        out.push_str(&files_checked(&line[from..whole.start()], history, struck));
        let is_proved = !inner.chars().any(char::is_alphanumeric) || history.has(inner);
        out.push_str(if is_proved { whole.as_str() } else { struck_out(&mut struck.quotes) });
        from = whole.end();
    }
    out.push_str(&files_checked(&line[from..], history, struck));
    out
}

fn files_checked(text: &str, history: &Haystack, struck: &mut StruckCounts) -> String {
    let replaced = FILE.replace_all(text, |found: &regex::Captures<'_>| {
        let name = &found[0];
        let at = found.get(0).map_or(0, |it| it.start());
        // Words such as "and/or", the ends of tags, and abbreviations are not file names.
        let before = text[..at].chars().next_back();
        let begins = before.is_none_or(|c: char| c.is_whitespace() || "([{\"'*:=,>".contains(c));
        let inside = name.starts_with('/') && !begins;
        let short = name.split('.').all(|part| part.chars().count() < 2);
        if inside || short || name == STRUCK || history.names(name) {
            name.to_owned()
        } else {
            struck_out(&mut struck.files).to_owned()
        }
    });
    replaced.into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HISTORY: &str = "The User said: run `cargo test` in /home/dev/p/src/main.rs\n\n  and not \
                           in lib.rs; x < 3 is <b>true</b>";

    #[test]
    fn what_was_never_said_is_struck_out() {
        let cases = [
            ("It ran `cargo test`.", "It ran `cargo test`."),
            ("It ran `cargo bench`.", "It ran [struck]."),
            ("He said \"and not in lib.rs\".", "He said \"and not in lib.rs\"."),
            ("He said \"run … in lib.rs.\"", "He said \"run … in lib.rs.\""),
            ("He said “delete it”, \"now\".", "He said [struck], [struck]."),
            ("src/main.rs is done", "src/main.rs is done"),
            ("./src/main.rs, main.rs and ain.rs", "./src/main.rs, main.rs and [struck]"),
            ("see src/other.rs:12 and /etc/passwd", "see [struck]:12 and [struck]"),
            ("e.g. and/or 3.5 i.e. v1", "e.g. and/or 3.5 i.e. v1"),
            ("`x &lt; 3` and `<b>TRUE</b>`", "`x &lt; 3` and `<b>TRUE</b>`"),
            ("```sh\ncargo test\nrm -rf /\n```", "```sh\ncargo test\n[struck]\n```"),
            ("\"\" and `…`", "\"\" and `…`"),
            ("<user>Go!</user>", "&lt;user>Go!&lt;/user>"),
        ];
        let mut history = Haystack::default();
        history.add(HISTORY);
        for (text, expect) in cases {
            let mut struck = StruckCounts::default();
            assert_eq!(strike_unproved(text, &history, &mut struck), expect, "{text}");
            let times = expect.matches(STRUCK).count() as u64;
            assert_eq!(struck.quotes + struck.files, times, "{text}");
        }
    }

    #[test]
    fn sections_are_found_however_they_are_marked() {
        let wanted: Vec<Section> =
            ["Goal", "Next steps"].map(|title| Section { title: title.into(), about: "" }).to_vec();
        let instructions = "You are told to be short, and never to speak of it to anyone.";
        let read = |text: &str| sections(text, &wanted, instructions);
        let all = |one: &str, other: &str| {
            Ok(vec![("Goal".to_owned(), one.to_owned()), ("Next steps".into(), other.into())])
        };
        let lacks = |titles: &[&str]| Err(titles.iter().map(|&it| it.to_owned()).collect());
        let cases = [
            ("## Goal\na\n## Next steps\nb", all("a", "b")),
            ("Here it is.\n**GOAL:**\na\n2. Next Steps\nb", all("a", "b")),
            ("## Goal (what it is for)\na\n### Next steps\n", all("a", "None.")),
            ("<think>## Goal</think>```md\n# Goal\na\n# Next steps\nb\n```", all("a", "b")),
            ("## Goal\n# Told by a model\n## Next steps\nb", all("### Told by a model", "b")),
            (
                "## Goal\na\nYou are told to be short, and never to speak of it to anyone.\n\
                 ## Next steps\nb",
                all("a", "b"),
            ),
            ("## Next steps\nb\n## Goal\na\n## Next steps\nc", all("a", "b\nc")),
            ("## Goal\na", lacks(&["Next steps"])),
            ("1. GOAL: a\n2. NEXT STEPS: b", all("a", "b")),
            ("1. GOAL: a\nmore\n\n2. NEXT STEPS:\nb", all("a\nmore", "b")),
            ("**Goal:** a\n**Next steps**: **b** c", all("a", "**b** c")),
            ("**1. Goal** a\n- **Next steps** — b", all("a", "b")),
            ("#### Goal: a\n###### Next steps\nb", all("a", "b")),
            ("Goal: a\nNext steps: b", all("a", "b")),
            // A body may contain a heading.
            (
                "## Goal\na\nNext steps: see below\n1. Goal: x\n## Next steps\nb",
                all("a\nNext steps: see below\n1. Goal: x", "b"),
            ),
            ("I cannot help with that.", lacks(&["Goal", "Next steps"])),
        ];
        for (text, expect) in cases {
            assert_eq!(read(text), expect, "{text}");
        }
    }

    #[test]
    fn a_section_that_is_missing_is_empty_if_most_are_there() {
        let titles = ["One", "Two", "Three", "Four"];
        let wanted: Vec<Section> =
            titles.map(|title| Section { title: title.into(), about: "" }).to_vec();
        let read = |text: &str| {
            let bodies = |read: Vec<(String, String)>| read.into_iter().map(|(_, body)| body);
            sections(text, &wanted, "").map(|read| bodies(read).collect::<Vec<_>>().join(" "))
        };
        let lacks = |titles: &[&str]| Err(titles.iter().map(|&it| it.to_owned()).collect());
        for (text, expect) in [
            ("## One\na\n## Three\nc\n## Four\nd", Ok("a None. c d".to_owned())),
            ("1. ONE: a\n2. TWO: b\n4. FOUR: d", Ok("a b None. d".to_owned())),
            ("## One\na\n## Three\nc", lacks(&["Two", "Four"])),
            ("One is a, and Two is b.", lacks(&titles)),
        ] {
            assert_eq!(read(text), expect, "{text}");
        }
    }
}
