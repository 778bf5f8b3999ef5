//! Scans a text for facts.

use serde::Serialize;

/// The kind of a fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FactKind {
    /// An address: `https://example.org/a`.
    Url,
    /// A path, or its last one to three components: `src/lib.rs`, `lib.rs`.
    Path,
    /// A line of a file, by number: `lib.rs:12`.
    Line,
    /// A name that is not a plain word: `readFile`, `max_len`, `utf8ToText`.
    Identifier,
    /// A name with hyphens: `content-type`.
    Hyphenated,
    /// A hexadecimal hash or a UUID.
    Hash,
    /// A number of three to nine digits, or digits with points between them: `0.25`, `1.2.3`.
    Number,
}

/// Maximum bytes of a token, which here is the text between two separators. Longer tokens are
/// ignored.
const LONGEST: usize = 400;

/// Calls `each` with every fact of a text, in order; a fact that occurs twice is reported twice.
///
/// ```
/// use epitome_passes::facts::{FactKind, each_fact};
///
/// let mut found = Vec::new();
/// each_fact("see src/lib.rs:12, maxLen", |kind, fact| found.push((kind, fact)));
/// assert_eq!(found, [
///     (FactKind::Line, "lib.rs:12"),
///     (FactKind::Path, "lib.rs"),
///     (FactKind::Path, "src/lib.rs"),
///     (FactKind::Identifier, "maxLen"),
/// ]);
/// ```
pub fn each_fact<'t>(text: &'t str, mut each: impl FnMut(FactKind, &'t str)) {
    if text.is_ascii() {
        let mut begin = 0;
        for (at, byte) in text.bytes().enumerate() {
            if SEPARATORS[usize::from(byte)] {
                token(&text[begin..at], &mut each);
                begin = at + 1;
            }
        }
        token(&text[begin..], &mut each);
    } else {
        text.split(is_separator).for_each(|part| token(part, &mut each));
    }
}

fn token<'t>(token: &'t str, each: &mut impl FnMut(FactKind, &'t str)) {
    if (3..=LONGEST).contains(&token.len()) && !is_word(token) {
        classify(token, each);
    }
}

/// Characters other than white space that end a token.
const MARKS: &str = "\"'`<>(){}[],;|*\\=!?^";

/// Whether an ASCII character ends a token.
const SEPARATORS: [bool; 128] = {
    let mut separators = [false; 128];
    let mut at = 0;
    let marks = MARKS.as_bytes();
    while at < marks.len() {
        separators[marks[at] as usize] = true;
        at += 1;
    }
    let mut byte = 0;
    while byte < 128 {
        separators[byte] |= (byte as u8 as char).is_whitespace();
        byte += 1;
    }
    separators
};

/// Whether a character ends a token. Characters of Chinese, Japanese and Korean end a token,
/// because these languages put no space around a path or a name.
fn is_separator(c: char) -> bool {
    if let Some(is_separator) = SEPARATORS.get(c as usize) {
        return *is_separator;
    }
    let is_east_asian = matches!(c,
        '\u{1100}'..='\u{11ff}' | '\u{2e80}'..='\u{a4cf}' | '\u{ac00}'..='\u{d7ff}'
        | '\u{f900}'..='\u{faff}' | '\u{ff00}'..='\u{ffef}' | '\u{20000}'..='\u{3ffff}');
    let is_quote = matches!(c, '“' | '”' | '‘' | '’' | '«' | '»' | '…');
    is_east_asian || is_quote || c.is_whitespace()
}

/// Whether a token is a plain word and thus not a fact: ASCII letters, of which only the first may
/// be a capital. Most tokens are plain words.
fn is_word(token: &str) -> bool {
    let bytes = token.as_bytes();
    bytes[0].is_ascii_alphabetic() && bytes[1..].iter().all(u8::is_ascii_lowercase)
}

fn classify<'t>(token: &'t str, each: &mut impl FnMut(FactKind, &'t str)) {
    let is_rooted = ["/", "./", "~", "--"].iter().any(|it| token.starts_with(it));
    let mut name = token.trim_end_matches(is_edge);
    if !is_rooted {
        name = name.trim_start_matches(is_edge);
    }
    if name.len() < 3 || is_word(name) {
        return;
    }
    if name.contains("://") {
        if let Some(at) = name.find("http") {
            let url = name[at..].trim_end_matches(['.', ':', ',', '/']);
            if url.len() > 10 {
                each(FactKind::Url, url);
            }
        }
        return;
    }
    if is_hash(name) {
        return each(FactKind::Hash, name);
    }
    if is_number(name) {
        if name.bytes().any(|byte| byte != b'0') {
            each(FactKind::Number, name);
        }
        return;
    }
    if let Some((path, end)) = line_of_file(name) {
        let base = path.rfind('/').map_or(0, |at| at + 1);
        each(FactKind::Line, &name[base..end]);
        name = path;
    }
    if name.contains('/') && name.len() >= 5 {
        paths(name, each);
    } else if has_extension(name) && name.len() >= 5 {
        each(FactKind::Path, name);
    }
    identifiers(name, each);
    hyphenated(name, each);
}

fn is_edge(c: char) -> bool {
    matches!(c, '.' | ':' | ',' | '-' | '~' | '#' | '&' | '$' | '@' | '%' | '+' | '/')
}

/// Reports the last two and three components of a path, the last one alone if it has an extension
/// or is an identifier, and the whole path. Reports nothing if `name` is not a path.
fn paths<'t>(name: &'t str, each: &mut impl FnMut(FactKind, &'t str)) {
    let path = name.strip_prefix("./").unwrap_or(name).trim_matches('/');
    let parts = path.split('/').filter(|it| !it.is_empty()).count();
    let last = path.rsplit('/').next().unwrap_or(path);
    let is_path = parts >= 2
        && path.chars().any(char::is_alphabetic)
        && path.len() < 240
        && (parts > 2 || last.contains('.') || path.len() >= 10);
    if !is_path {
        return;
    }
    let mut start = path.len();
    for n in 1..=3.min(parts) {
        start = path[..start].trim_end_matches('/').rfind('/').map_or(0, |at| at + 1);
        let tail = &path[start..];
        if n > 1 || has_extension(tail) || is_identifier(tail) {
            each(FactKind::Path, tail);
        }
    }
    if parts > 3 {
        each(FactKind::Path, path);
    }
}

/// Reports the identifiers in a token.
fn identifiers<'t>(text: &'t str, each: &mut impl FnMut(FactKind, &'t str)) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if !in_word(bytes[at]) || bytes[at].is_ascii_digit() {
            at += 1;
            continue;
        }
        let end = at + bytes[at..].iter().take_while(|byte| in_word(**byte)).count();
        if is_identifier(&text[at..end]) {
            each(FactKind::Identifier, &text[at..end]);
        }
        at = end;
    }
}

fn in_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$'
}

/// Reports the names in a token that contain a hyphen and have at least eight characters.
fn hyphenated<'t>(text: &'t str, each: &mut impl FnMut(FactKind, &'t str)) {
    if !text.contains('-') {
        return;
    }
    for run in text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-') {
        let start = run.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(run.len());
        // A hyphen at the end, or two hyphens in a row, end the name and do not belong to it.
        let run = &run[start..];
        let end = run.find("--").unwrap_or(run.len());
        let name = run[..end].trim_end_matches('-');
        if name.len() >= 8 && name.contains('-') {
            each(FactKind::Hyphenated, name);
        }
    }
}

/// Whether a word is an identifier: it has 5 to 80 bytes, and an inner underscore, a capital after
/// a small letter, or at least one digit and three letters.
fn is_identifier(word: &str) -> bool {
    if !(5..=80).contains(&word.len()) {
        return false;
    }
    let core = word.trim_matches(['_', '$']);
    if core.len() >= 5 && core.contains('_') {
        return true;
    }
    let bytes = word.as_bytes();
    if bytes.windows(2).any(|two| two[0].is_ascii_lowercase() && two[1].is_ascii_uppercase()) {
        return true;
    }
    bytes.iter().any(u8::is_ascii_digit)
        && bytes.iter().filter(|byte| byte.is_ascii_alphabetic()).count() >= 3
}

/// Whether a text is a hash (7 to 64 lower-case hex digits, with a letter and a digit), or a UUID.
fn is_hash(text: &str) -> bool {
    let bytes = text.as_bytes();
    let is_hex = bytes.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if (7..=64).contains(&bytes.len()) && is_hex {
        return bytes.iter().any(u8::is_ascii_digit) && !bytes.iter().all(u8::is_ascii_digit);
    }
    bytes.len() == 36
        && bytes.iter().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

/// Whether a text is a number of three to nine digits, or consists of digits with points between
/// them.
fn is_number(text: &str) -> bool {
    if text.contains('.') {
        text.split('.').all(is_digits)
    } else {
        (3..=9).contains(&text.len()) && is_digits(text)
    }
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// For a text such as `src/file.rs:12` or `file.rs:12:5`: the path before the line number, and the
/// offset at which the line number ends. `None` for any other text.
fn line_of_file(text: &str) -> Option<(&str, usize)> {
    let mut from = 0;
    while let Some(at) = text[from..].find(':').map(|at| from + at) {
        let digits = text[at + 1..].bytes().take_while(u8::is_ascii_digit).count();
        let end = at + 1 + digits;
        let rest = &text[end..];
        let is_end = rest.is_empty()
            || rest.strip_prefix(':').is_some_and(|column| {
                !column.is_empty() && column.bytes().all(|it| it.is_ascii_digit())
            });
        if digits > 0 && is_end && ends_in_extension(&text[..at]) {
            return Some((&text[..at], end));
        }
        from = at + 1;
    }
    None
}

/// Whether a text ends in a file extension: a point, a letter, and up to five letters or digits.
fn ends_in_extension(text: &str) -> bool {
    let Some((_, extension)) = text.rsplit_once('.') else { return false };
    (1..=6).contains(&extension.len())
        && extension.as_bytes()[0].is_ascii_alphabetic()
        && extension.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// Whether a text is a file name with an extension: `lib.rs`, but not `.bashrc`.
fn has_extension(text: &str) -> bool {
    let Some((stem, _)) = text.rsplit_once('.') else { return false };
    ends_in_extension(text)
        && stem.starts_with(may_begin_name)
        && stem.chars().all(|c| may_begin_name(c) || c == '.')
}

fn may_begin_name(c: char) -> bool {
    c.is_alphanumeric() || "_@+-".contains(c)
}

#[cfg(test)]
#[path = "scan_tests.rs"]
mod tests;
