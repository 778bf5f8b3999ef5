//! A text as HTML may spell it: any of its characters as a reference, such as `&amp;`, `&#0039;` or
//! `&#x2F;`.

use epitome_model::Span;

use super::json;

/// The longest reference in bytes.
const LONGEST: usize = 16;

/// The named references for characters of ASCII and for the no-break space.
const NAMES: [(&str, char); 44] = [
    ("AMP", '&'),
    ("GT", '>'),
    ("Hat", '^'),
    ("LT", '<'),
    ("NewLine", '\n'),
    ("QUOT", '"'),
    ("Tab", '\t'),
    ("UnderBar", '_'),
    ("amp", '&'),
    ("apos", '\''),
    ("ast", '*'),
    ("bsol", '\\'),
    ("colon", ':'),
    ("comma", ','),
    ("commat", '@'),
    ("dollar", '$'),
    ("equals", '='),
    ("excl", '!'),
    ("grave", '`'),
    ("gt", '>'),
    ("lbrace", '{'),
    ("lbrack", '['),
    ("lcub", '{'),
    ("lowbar", '_'),
    ("lpar", '('),
    ("lsqb", '['),
    ("lt", '<'),
    ("midast", '*'),
    ("nbsp", '\u{a0}'),
    ("num", '#'),
    ("percnt", '%'),
    ("period", '.'),
    ("plus", '+'),
    ("quest", '?'),
    ("quot", '"'),
    ("rbrace", '}'),
    ("rbrack", ']'),
    ("rcub", '}'),
    ("rpar", ')'),
    ("rsqb", ']'),
    ("semi", ';'),
    ("sol", '/'),
    ("verbar", '|'),
    ("vert", '|'),
];

/// The maximum length in bytes of a text as HTML, also of HTML in JSON.
pub(super) fn longest(text: &str) -> usize {
    json::longest(text).max(text.chars().count() * LONGEST)
}

/// Calls `each` with each occurrence of a text in HTML in which at least one character is a
/// reference. The HTML may be in JSON, where other characters are escaped.
pub(super) fn find(text: &str, bytes: &[u8], mut each: impl FnMut(Span)) {
    let coded = |at: usize, char| match reference(&bytes[at..]) {
        Some((found, len)) if found == char => vec![at + len],
        Some(_) | None => Vec::new(),
    };
    for at in memchr::memchr_iter(b'&', bytes) {
        let Some((char, len)) = reference(&bytes[at..]) else { continue };
        // The reference may be any character of the text that equals `char`. The characters before
        // it must be written plainly.
        for (before, _) in text.match_indices(char) {
            let (plain, rest) = text.split_at(before);
            if let Some(start) = json::start(plain, bytes, at)
                && let Some(end) = json::end(&rest[char.len_utf8()..], bytes, at + len, coded)
            {
                each(Span { start: start as u64, end: end as u64 });
            }
        }
    }
}

/// The reference at the beginning of these bytes: the character that it means, and its length.
fn reference(bytes: &[u8]) -> Option<(char, usize)> {
    let inside = bytes.strip_prefix(b"&")?;
    let len = inside.iter().take(LONGEST - 1).position(|byte| *byte == b';')?;
    let name = std::str::from_utf8(&inside[..len]).ok()?;
    let char = match name.strip_prefix('#') {
        None => NAMES.iter().find(|(known, _)| *known == name)?.1,
        Some(number) => match number.strip_prefix(['x', 'X']) {
            Some(digits) => from_digits(digits, 16)?,
            None => from_digits(number, 10)?,
        },
    };
    Some((char, len + 2))
}

fn from_digits(digits: &str, radix: u32) -> Option<char> {
    if digits.starts_with('+') {
        return None;
    }
    char::from_u32(u32::from_str_radix(digits, radix).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_characters_may_have_escapes_of_json() {
        let text = "pass\"word>9";
        for bytes in ["pass\\\"word&gt;9", "pass\\\\\\\"word&gt;9", "pass&quot;word>9"] {
            let mut found = Vec::new();
            find(text, bytes.as_bytes(), |span| found.push(span));
            assert_eq!(found, [Span { start: 0, end: bytes.len() as u64 }], "{bytes}");
        }
    }

    #[test]
    fn references_mean_characters() {
        let cases = [
            ("&amp;", Some(('&', 5))),
            ("&#39;x", Some(('\'', 5))),
            ("&#0000039;", Some(('\'', 10))),
            ("&#x0027;", Some(('\'', 8))),
            ("&#X2f;", Some(('/', 6))),
            ("&#231;", Some(('ç', 6))),
            ("&commat;", Some(('@', 8))),
            ("&#xd800;", None),
            ("&#+39;", None),
            ("&unknown;", None),
            ("&amp", None),
            ("amp;", None),
        ];
        for (bytes, expect) in cases {
            assert_eq!(reference(bytes.as_bytes()), expect, "{bytes}");
        }
    }
}
