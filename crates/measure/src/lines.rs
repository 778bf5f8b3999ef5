//! Compares lines of text without the prefixes that tools put before them.

use std::hash::{DefaultHasher, Hash, Hasher};

/// A hash of a line as [`plain_line`] returns it. Only lines of at least eight characters have one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LineId(u64);

/// The minimum number of characters of a line that gets an id. Shorter lines occur in any text.
pub(crate) const SHORTEST: usize = 8;
/// The maximum number of characters of a line that are compared, from its beginning.
const LONGEST: usize = 400;

impl LineId {
    /// The id of a line. `None` if [`plain_line`] returns fewer than eight characters for it.
    pub fn from_line(line: &str) -> Option<LineId> {
        let line = plain_line(line);
        (line.chars().nth(SHORTEST - 1).is_some()).then(|| {
            let mut hasher = DefaultHasher::new();
            line.hash(&mut hasher);
            LineId(hasher.finish())
        })
    }
}

/// The ids of the distinct lines of a text, sorted.
pub fn line_ids(text: &str) -> Vec<LineId> {
    let mut ids: Vec<LineId> = text.split('\n').filter_map(LineId::from_line).collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// A line without white space at its ends, without its line number, and without a mark of omitted
/// lines (`…`) before it. Of a line with more than 400 characters, only the first 400 are returned.
///
/// ```
/// use epitome_measure::plain_line;
///
/// assert_eq!(plain_line("   12\tlet x = 1;"), "let x = 1;");
/// assert_eq!(plain_line("…  12: fn main() {"), "fn main() {");
/// ```
pub fn plain_line(line: &str) -> &str {
    let line = line.strip_prefix('…').unwrap_or(line);
    let line = without_number(line).unwrap_or(line).trim();
    line.char_indices().nth(LONGEST).map_or(line, |(end, _)| &line[..end])
}

fn without_number(line: &str) -> Option<&str> {
    let rest = line.trim_start();
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let rest = (digits > 0).then(|| &rest[digits..])?;
    let mark = ["→", "\t", ": ", ":", ". ", "| ", "|"].into_iter();
    mark.filter_map(|mark| rest.strip_prefix(mark)).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_compared_without_what_a_tool_put_before_it() {
        let cases = [
            ("let x = 1;", "let x = 1;"),
            ("    let x = 1;  ", "let x = 1;"),
            ("     3→let x = 1;", "let x = 1;"),
            ("12\tlet x = 1;", "let x = 1;"),
            ("12: let x = 1;", "let x = 1;"),
            ("12:let x = 1;", "let x = 1;"),
            ("12. let x = 1;", "let x = 1;"),
            ("12.5 seconds", "12.5 seconds"),
            ("12 | let x = 1;", "12 | let x = 1;"),
            ("…12| let x = 1;", "let x = 1;"),
        ];
        for (line, expect) in cases {
            assert_eq!(plain_line(line), expect, "{line}");
        }
        assert_eq!(plain_line(&"é".repeat(401)).chars().count(), 400);
    }

    #[test]
    fn short_lines_have_no_id() {
        let same = LineId::from_line("12345678").expect("eight characters");
        assert_eq!(line_ids("1234567\n  12345678\n12345678\n"), [same]);
    }
}
