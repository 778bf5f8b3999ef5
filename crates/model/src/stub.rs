//! The texts that edits leave in a session. Printing and parsing a [`Stub`] are inverse functions.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use crate::shorten::short;
use crate::{Bytes, Lines};

/// The id of removed bytes: `k` and the first hexadecimal digits of their blake3 hash. epitome
/// writes seven digits.
///
/// ```
/// use epitome_model::Ref;
///
/// let reference = Ref::from_bytes(b"removed");
/// assert_eq!(reference.to_string().len(), 8);
/// assert_eq!(reference.to_string().parse(), Ok(reference));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ref(Box<str>);

/// The error of parsing a text that is not a [`Ref`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoRef;

impl Ref {
    /// The number of hash digits in a reference that epitome writes.
    pub const DIGITS: usize = 7;

    /// The reference of `removed`.
    pub fn from_bytes(removed: &[u8]) -> Ref {
        Ref(blake3::hash(removed).to_hex()[..Ref::DIGITS].into())
    }

    /// The digits: the beginning of a blake3 hash in lower case.
    pub fn digits(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Ref {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "k{}", self.0)
    }
}

impl Serialize for Ref {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl FromStr for Ref {
    type Err = NoRef;

    /// Parses references with 4 to 64 digits (the whole hash), with or without the `k`.
    fn from_str(text: &str) -> Result<Ref, NoRef> {
        let digits = text.strip_prefix('k').unwrap_or(text);
        let known = (4..=64).contains(&digits.len())
            && digits.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        if known { Ok(Ref(digits.into())) } else { Err(NoRef) }
    }
}

/// The reason why something could be removed, other than its age.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Note {
    /// A later call reads the same file again.
    ReadAgain,
    /// A later call changes the file.
    Changed,
    /// The reply that follows repeats the removed text.
    Repeated,
}

impl Note {
    const ALL: [Note; 3] = [Note::ReadAgain, Note::Changed, Note::Repeated];

    fn words(self) -> &'static str {
        match self {
            Note::ReadAgain => "; read again below",
            Note::Changed => "; changed below",
            Note::Repeated => "; repeated in the reply below",
        }
    }
}

/// The text left in place of removed text: a reference to it, and a short description.
///
/// A stub takes the position of the removed text, for example in a result or in an argument.
///
/// ```
/// use epitome_model::{Lines, Ref, Stub};
///
/// let reference = Ref::from_bytes(b"x");
/// let stub = Stub::new(reference).with_what("Read src/main.rs").with_lines(Lines(369));
/// let text = stub.to_string();
/// assert!(text.ends_with(": Read src/main.rs, 369 lines]"));
/// assert_eq!(Stub::parse(&text), Some(stub));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stub {
    reference: Ref,
    what: String,
    lines: Option<u64>,
    /// The size as it is printed: the number is rounded, so the number of bytes cannot be
    /// recovered.
    size: Option<String>,
    note: Option<Note>,
    body: String,
}

impl Stub {
    /// The bytes with which every stub begins, before the digits of its reference.
    pub const BEGINNING: &str = "[epitome k";

    /// A stub with only the reference.
    pub fn new(reference: Ref) -> Stub {
        let what = String::new();
        Stub { reference, what, lines: None, size: None, note: None, body: String::new() }
    }

    /// A stub for `text`, with its number of lines, or with its number of bytes if it has at most
    /// one line.
    pub fn from_text(reference: Ref, text: &str) -> Stub {
        match line_count(text) {
            Lines(0 | 1) => Stub::new(reference).with_size(Bytes(text.len() as u64)),
            lines => Stub::new(reference).with_lines(lines),
        }
    }

    /// Adds a description of the removed text. Control characters in it become spaces, and it is
    /// truncated to 120 characters.
    #[must_use]
    pub fn with_what(mut self, what: &str) -> Stub {
        self.what = short(what, 120);
        self
    }

    /// Adds the number of lines of the original text.
    #[must_use]
    pub fn with_lines(mut self, lines: Lines) -> Stub {
        self.lines = Some(lines.0);
        self
    }

    /// Adds the size of the original text.
    #[must_use]
    pub fn with_size(mut self, size: Bytes) -> Stub {
        self.size = Some(size.to_string());
        self
    }

    /// Adds the reason for the removal.
    #[must_use]
    pub fn with_note(mut self, note: Note) -> Stub {
        self.note = Some(note);
        self
    }

    /// Adds the lines that are kept below the stub.
    #[must_use]
    pub fn with_body(mut self, body: String) -> Stub {
        self.body = body;
        self
    }

    /// The reference to what was removed.
    pub fn reference(&self) -> &Ref {
        &self.reference
    }

    /// The description; empty if there is none.
    pub fn description(&self) -> &str {
        &self.what
    }

    /// The lines that are kept below the stub.
    pub fn body(&self) -> &str {
        &self.body
    }

    /// The number of lines of the original text; `None` if the stub does not have it.
    pub fn lines(&self) -> Option<Lines> {
        self.lines.map(Lines)
    }

    /// Whether the stub is in place of a picture: a picture is described by its media type alone.
    pub fn is_of_picture(&self) -> bool {
        self.body.is_empty() && self.what.starts_with("image/")
    }

    /// Parses a text whose first line is a stub. `None` unless the stub prints as the same text.
    pub fn parse(text: &str) -> Option<Stub> {
        let (head, body) = text.split_once('\n').unwrap_or((text, ""));
        let inner = head.strip_prefix(Stub::BEGINNING)?.strip_suffix(']')?;
        let (digits, rest) = inner.split_once(": ").unwrap_or((inner, ""));
        let reference = digits.parse().ok()?;
        let (note, rest) = Note::ALL
            .into_iter()
            .find_map(|note| Some((Some(note), rest.strip_suffix(note.words())?)))
            .unwrap_or((None, rest));
        let (rest, size) = last_part(rest, |part| is_size(part).then(|| part.to_owned()));
        let (what, lines) = last_part(rest, line_words);
        let what = what.into();
        let body = body.into();
        let stub = Stub { reference, what, lines, size, note, body };
        (stub.to_string() == text).then_some(stub)
    }
}

/// Parses with `read` what follows the last `, ` of `text`, or all of `text` if it has none.
/// Returns what is before the `, `, and the value; or, if `read` cannot parse it, all of `text` and
/// `None`.
fn last_part<T>(text: &str, read: impl Fn(&str) -> Option<T>) -> (&str, Option<T>) {
    let (rest, part) = text.rsplit_once(", ").unwrap_or(("", text));
    match read(part) {
        Some(value) => (rest, Some(value)),
        None => (text, None),
    }
}

fn is_size(text: &str) -> bool {
    text.split_once(' ').is_some_and(|(n, unit)| {
        n.bytes().all(|b| b.is_ascii_digit() || b == b'.')
            && ["B", "KB", "MB", "GB"].contains(&unit)
    })
}

impl fmt::Display for Stub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = self.lines.map(|lines| Lines(lines).to_string()).unwrap_or_default();
        let size = self.size.as_deref().unwrap_or_default();
        let parts: Vec<&str> =
            [&self.what, &*lines, size].into_iter().filter(|part| !part.is_empty()).collect();
        write!(f, "[epitome {}", self.reference)?;
        if !parts.is_empty() || self.note.is_some() {
            write!(f, ": {}{}", parts.join(", "), self.note.map_or("", Note::words))?;
        }
        write!(f, "]")?;
        if !self.body.is_empty() {
            write!(f, "\n{}", self.body)?;
        }
        Ok(())
    }
}

/// The lines of `text` whose flag in `keep` is true. A line `…` replaces each run of other lines
/// that has a kept line after it.
///
/// The lines after the last kept line are left out without a mark. Returns an empty text if no line
/// is kept.
pub fn excerpt(text: &str, keep: &[bool]) -> String {
    let mut shown = String::new();
    let mut in_gap = false;
    for (line, &kept) in text.lines().zip(keep) {
        if kept {
            for line in in_gap.then_some(GAP).into_iter().chain([line]) {
                if !shown.is_empty() {
                    shown.push('\n');
                }
                shown.push_str(line);
            }
        }
        in_gap = !kept;
    }
    shown
}

/// The line that [`excerpt`] puts in place of lines that it leaves out. It does not say how many.
const GAP: &str = "…";

/// The text `[output: 245 lines]`, which the `transcript` recipes put in place of a result or an
/// argument. It has no reference: only the archive records which bytes it replaced.
pub fn line_count_stub(what: &str, lines: Lines) -> String {
    format!("[{what}: {lines}]")
}

/// The text `[Previous: used bash]`, which the recipes `s06` and `jcli` put in place of a result,
/// like the agents whose rules they copy (`docs/recipes.md`).
pub fn previous_tool_stub(tool: &str) -> String {
    format!("{PREVIOUS}{}]", short(tool, 80))
}

/// The text `[Output removed: 245 lines, starting with: …]`, which the recipe `ion` puts in place
/// of an old result.
pub fn removed_output_stub(lines: Lines, first: &str) -> String {
    format!("{REMOVED}{lines}, starting with: {}...]", short(first.trim(), 100))
}

/// The line `... [245 lines truncated] ...`, which the recipe `ion` puts in place of lines that it
/// leaves out.
pub fn truncation_mark(lines: Lines) -> String {
    format!("... [{lines} truncated] ...")
}

/// The text left in place of a result that was cleared as Anthropic's context editing does it.
pub const CLEARED: &str = "[cleared to save context]";

/// The text that OpenCode and Claude Code send in place of an old result.
pub const PRUNED: &str = "[Old tool result content cleared]";

const PREVIOUS: &str = "[Previous: used ";
const REMOVED: &str = "[Output removed: ";

/// Whether a text has a line as [`truncation_mark`] writes it.
pub fn has_truncation_mark(text: &str) -> bool {
    text.contains(" truncated] ...")
        && text.lines().any(|line| {
            let inner =
                line.strip_prefix("... [").and_then(|it| it.strip_suffix(" truncated] ..."));
            inner.and_then(line_words).is_some()
        })
}

/// Whether a text is one of those that other programs put in place of a result. Some recipes put
/// the same texts.
fn is_borrowed(text: &str) -> bool {
    let one_line = !text.contains('\n');
    text == CLEARED
        || text == PRUNED
        || one_line && text.starts_with(PREVIOUS) && text.ends_with(']')
        || one_line && text.starts_with(REMOVED) && text.ends_with("...]")
}

/// Whether `text` is what a recipe puts in place of removed text: a [`Stub`], a
/// [`line_count_stub`], or one of the texts that other programs put there.
pub fn is_left_by_recipe(text: &str) -> bool {
    if text.starts_with(Stub::BEGINNING) {
        return Stub::parse(text).is_some();
    }
    if is_borrowed(text) {
        return true;
    }
    text.strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .and_then(|inner| inner.split_once(": "))
        .is_some_and(|(what, lines)| {
            !what.is_empty()
                && what.bytes().all(|b| b.is_ascii_alphanumeric() || b"_[].".contains(&b))
                && line_words(lines).is_some()
        })
}

/// The number of line feeds, plus one if the text is not empty and does not end with a line feed.
pub fn line_count(text: &str) -> Lines {
    let feeds = text.bytes().filter(|&b| b == b'\n').count() as u64;
    Lines(feeds + u64::from(!text.is_empty() && !text.ends_with('\n')))
}

fn line_words(text: &str) -> Option<u64> {
    let (n, unit) = text.split_once(' ')?;
    let n: u64 = n.parse().ok()?;
    (unit == if n == 1 { "line" } else { "lines" }).then_some(n)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn stubs_of_pictures_are_recognised() {
        for (text, expect) in [
            ("[epitome k7f3a9c2: image/png, 15.2 KB]", true),
            ("[epitome k7f3a9c2: image/png, 15.2 KB]\na line", false),
            ("[epitome k7f3a9c2: Read a.rs, 3 lines, 10 B]", false),
        ] {
            assert!(text.starts_with(Stub::BEGINNING));
            let stub = Stub::parse(text).expect("a stub");
            assert_eq!(stub.is_of_picture(), expect, "{text}");
        }
    }

    #[test]
    fn texts_left_by_recipes_are_recognised() {
        let cases: &[(&str, bool)] = &[
            ("[output: 245 lines]", true),
            ("[Previous: used bash]", true),
            ("[Previous: used bash]\n", false),
            ("[Output removed: 1 line, starting with: fn main() {...]", true),
            ("[Output removed: 1 line, starting with: fn main() {...] he said", false),
            ("he said [Output removed: 1 line, starting with: fn main() {...]", false),
            ("he said [Previous: used bash]", false),
            ("[cleared to save context]", true),
            ("[cleared to save context], he said", false),
            ("[error: 1 line]", true),
            ("[old_string: 0 lines]", true),
            ("[edits[2].oldText: 15 lines]", true),
            ("[output: 1 lines]", false),
            ("[output: many lines]", false),
            ("[output: 245 lines]\n", false),
            ("output: 245 lines", false),
            ("[epitome k7f3a9c2: Read a.rs, 3 lines, 10 B]", true),
            ("[epitome k7f3a9c2: Read a.rs, 3 lines, 10 B]\nfn main()", true),
            ("[epitome k7f3a9c2: image/png, 15.2 KB]", true),
            ("[epitome k7f3a9c2: 101 lines]", true),
            ("[epitome k7f3a9c2: 3.1 KB]\nfirst", true),
            ("[epitome k7f3a9c2: Read a.rs, 3 lines, 10 B; read again below]", true),
            ("[epitome kXYZ: Read a.rs, 3 lines, 10 B]", false),
            ("[epitome k7f3a9c2]", true),
            ("[epitome k7f3a9c2: ]", false),
            ("see [epitome k7f3a9c2: Read a.rs, 3 lines, 10 B]", false),
        ];
        for (text, expect) in cases {
            assert_eq!(is_left_by_recipe(text), *expect, "{text}");
        }
    }

    #[test]
    fn a_stub_is_parsed_into_its_parts() {
        let reference = "k7f3a9c2".parse::<Ref>().expect("a reference");
        let stub = Stub::new(reference).with_what("Read a.rs").with_lines(Lines(3));
        let stub =
            stub.with_size(Bytes(10)).with_note(Note::ReadAgain).with_body("fn main()".into());
        let text = "[epitome k7f3a9c2: Read a.rs, 3 lines, 10 B; read again below]\nfn main()";
        assert_eq!(stub.to_string(), text);
        assert_eq!(Stub::parse(text), Some(stub));
    }

    #[test]
    fn a_reference_is_four_to_64_hexadecimal_digits() {
        let whole = "0123456789abcdef".repeat(4);
        for text in ["k7f3a", "7f3a", &whole] {
            let digits = text.trim_start_matches('k');
            assert_eq!(text.parse::<Ref>(), Ok(Ref(digits.into())), "{text}");
        }
        for text in ["", "k", "k7f3", "k7F3A", "7f3g", "kk7f3a", &format!("{whole}0")] {
            assert_eq!(text.parse::<Ref>(), Err(NoRef), "{text}");
        }
    }

    #[test]
    fn words_of_other_programs_are_recognised_where_they_are_left() {
        for text in [
            previous_tool_stub("a\nb"),
            removed_output_stub(Lines(3), " x\ny "),
            CLEARED.to_owned(),
            PRUNED.to_owned(),
        ] {
            assert!(is_left_by_recipe(&text), "{text}");
        }
        assert!(has_truncation_mark(&format!("a\n\n{}\n\nb", truncation_mark(Lines(9)))));
        assert!(!has_truncation_mark("a\n... [some lines truncated] ...\nb"));
    }

    #[test]
    fn lines_are_counted_by_one_rule() {
        let cases = [("", 0), ("a", 1), ("a\n", 1), ("a\nb", 2), ("\n", 1), ("a\n\n", 2)];
        for (text, expect) in cases {
            assert_eq!(line_count(text), Lines(expect), "{text:?}");
        }
    }

    #[test]
    fn an_excerpt_says_how_much_it_leaves_out() {
        let keep = [true, false, false, true, false];
        assert_eq!(excerpt("a\nb\nc\nd\ne", &keep), "a\n…\nd");
        assert_eq!(excerpt("a\nb", &[false, false]), "");
    }

    proptest! {
        /// Printing and parsing are inverse.
        #[test]
        fn printing_and_parsing_are_inverse(
            removed: Vec<u8>, what: String, lines in proptest::option::of(0_u64..9999),
            size in proptest::option::of(0_u64..10_000_000), note in 0_usize..4,
            body in "[a-z\n ]{0,40}",
        ) {
            let mut stub = Stub::new(Ref::from_bytes(&removed)).with_what(&what);
            if let Some(lines) = lines {
                stub = stub.with_lines(Lines(lines));
            }
            if let Some(size) = size {
                stub = stub.with_size(Bytes(size));
            }
            if let Some(note) = Note::ALL.get(note) {
                stub = stub.with_note(*note);
            }
            stub = stub.with_body(body);
            let text = stub.to_string();
            let parsed = Stub::parse(&text);
            prop_assert_eq!(parsed.map(|stub| stub.to_string()), Some(text));
        }
    }
}
