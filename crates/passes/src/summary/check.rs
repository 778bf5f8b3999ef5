//! What a model wrote, held against the history: its sections, its quotes, the files it names.

use std::borrow::Cow;
use std::sync::LazyLock;

use memchr::memmem;
use regex::Regex;
use serde::Serialize;

use super::history::escaped;
use super::sections::Section;

/// What stands in the place of what was struck out.
pub const STRUCK: &str = "[struck]";

/// How much was struck out: what the history does not hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Struck {
    /// Quotes.
    pub quotes: u64,
    /// Names of files.
    pub files: u64,
}

/// All that was said, as it is searched.
#[derive(Clone, Debug, Default)]
pub struct Haystack(String);

impl Haystack {
    /// Takes a text.
    pub fn add(&mut self, text: &str) {
        if !self.0.is_empty() && !self.0.ends_with(' ') {
            self.0.push(' ');
        }
        flat(text, &mut self.0);
    }

    /// Whether it was said, whatever the case and the spaces.
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

    /// Whether a file of this name was named: not as the end of a longer word.
    fn names(&self, file: &str) -> bool {
        let mut wanted = String::new();
        flat(file.trim_start_matches("./"), &mut wanted);
        let text = self.0.as_bytes();
        let inside = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        memmem::find_iter(text, wanted.as_bytes())
            .any(|at| wanted.starts_with(['/', '~']) || at == 0 || !inside(text[at - 1]))
    }
}

/// Lower case, one space between words.
fn flat(text: &str, into: &mut String) {
    for word in text.split_whitespace() {
        if !into.is_empty() && !into.ends_with(' ') {
            into.push(' ');
        }
        into.extend(word.chars().flat_map(char::to_lowercase));
    }
}

/// The sections of a text, each with its words, in their order; or the headings that it lacks.
/// Lines that repeat what the model was told are left out.
pub fn sections(
    text: &str,
    wanted: &[Section],
    told: &str,
) -> Result<Vec<(String, String)>, Vec<String>> {
    let mut found: Vec<Option<String>> = vec![None; wanted.len()];
    let mut under: Option<usize> = None;
    for line in unwrapped(text).lines() {
        // Some repeat what was said to belong there.
        let line_before = line.split_once(" (").map_or(line, |(before, _)| before);
        let names = [heading(line), heading(line_before)];
        if let Some(at) = wanted.iter().position(|it| names.contains(&heading(&it.title))) {
            found[at].get_or_insert_default();
            under = Some(at);
            continue;
        }
        let leaked = line.trim().len() >= 40 && told.contains(line.trim());
        if let Some(body) = under.and_then(|at| found[at].as_mut()).filter(|_| !leaked) {
            body.push_str(&demoted(line));
            body.push('\n');
        }
    }
    let missing = || {
        let lacks = wanted.iter().zip(&found).filter(|(_, body)| body.is_none());
        lacks.map(|(section, _)| section.title.clone()).collect::<Vec<_>>()
    };
    let all: Option<Vec<String>> = found.iter().cloned().collect();
    let bodies = all.ok_or_else(missing)?;
    let told = bodies.into_iter().map(|body| {
        let body = body.trim();
        if body.is_empty() { "None.".to_owned() } else { body.to_owned() }
    });
    Ok(wanted.iter().map(|section| section.title.clone()).zip(told).collect())
}

/// Without the thoughts before it and the fence around it.
fn unwrapped(text: &str) -> &str {
    let mut text = text.trim();
    for tag in ["analysis", "think", "thinking"] {
        let (open, close) = (format!("<{tag}>"), format!("</{tag}>"));
        if text.starts_with(&open)
            && let Some((_, rest)) = text.split_once(&close)
        {
            text = rest.trim();
        }
    }
    let inner = text.strip_prefix("```").and_then(|it| it.strip_suffix("```"));
    inner.and_then(|it| Some(it.split_once('\n')?.1)).unwrap_or(text)
}

/// A heading without what marks it as one.
fn heading(line: &str) -> String {
    let marks = |c: char| {
        c.is_whitespace() || c.is_ascii_digit() || matches!(c, '#' | '*' | '_' | '.' | ')' | ':')
    };
    line.trim_matches(marks).to_lowercase()
}

/// A line that cannot be taken for a heading of ours.
fn demoted(line: &str) -> Cow<'_, str> {
    let rest = line.trim_start().trim_start_matches('#');
    if line.trim_start().starts_with('#') && rest.starts_with(' ') {
        return format!("###{rest}").into();
    }
    line.into()
}

/// The words of a model with what was never said struck out of them.
pub fn checked(text: &str, history: &Haystack, struck: &mut Struck) -> String {
    let text = escaped(text);
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

/// A path from a root, or a name with an extension.
static FILE: LazyLock<Regex> = LazyLock::new(|| {
    let path = r"(?:~|\.{1,2})?/(?:[\w.@+~-]+/)*[\w.@+~-]*\w";
    let name = r"[\w@+~-][\w.@+~/-]*\.[A-Za-z][A-Za-z0-9]{0,7}";
    Regex::new(&format!(r"(?-u:\b){name}(?-u:\b)|{path}")).expect("the pattern is fixed and tested")
});

fn line_checked(line: &str, history: &Haystack, struck: &mut Struck) -> String {
    let mut out = String::new();
    let mut from = 0;
    for quote in QUOTE.captures_iter(line) {
        let whole = quote.get(0).expect("a match is its first group");
        let inner = quote.iter().skip(1).flatten().next().map_or("", |it| it.as_str());
        out.push_str(&files_checked(&line[from..whole.start()], history, struck));
        let said = !inner.chars().any(char::is_alphanumeric) || history.has(inner);
        out.push_str(if said { whole.as_str() } else { struck_out(&mut struck.quotes) });
        from = whole.end();
    }
    out.push_str(&files_checked(&line[from..], history, struck));
    out
}

fn files_checked(text: &str, history: &Haystack, struck: &mut Struck) -> String {
    let replaced = FILE.replace_all(text, |found: &regex::Captures<'_>| {
        let (name, at) = (&found[0], found.get(0).map_or(0, |it| it.start()));
        // The rest of a word such as "and/or", the end of a tag, and abbreviations.
        let before = text[..at].chars().next_back();
        let begins = |c: char| c.is_whitespace() || "([{\"'*:=,>".contains(c);
        let inside = name.starts_with('/') && !before.is_none_or(begins);
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
            let mut struck = Struck::default();
            assert_eq!(checked(text, &history, &mut struck), expect, "{text}");
            let times = expect.matches(STRUCK).count() as u64;
            assert_eq!(struck.quotes + struck.files, times, "{text}");
        }
    }

    #[test]
    fn sections_are_found_however_they_are_marked() {
        let wanted: Vec<Section> =
            ["Goal", "Next steps"].map(|title| Section { title: title.into(), about: "" }).to_vec();
        let told = "You are told to be short, and never to speak of it to anyone.";
        let read = |text: &str| sections(text, &wanted, told);
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
            ("I cannot help with that.", lacks(&["Goal", "Next steps"])),
        ];
        for (text, expect) in cases {
            assert_eq!(read(text), expect, "{text}");
        }
    }
}
