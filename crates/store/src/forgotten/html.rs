//! A text as HTML may spell it: any of its characters as a reference, such as `&amp;`, `&#0039;` or
//! `&#x2F;`.

use epitome_model::Span;

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

/// The most bytes that a text takes as HTML.
pub(super) fn longest(text: &str) -> usize {
    text.chars().count() * LONGEST
}

/// Calls `each` with each occurrence of a text in HTML in which at least one character is a
/// reference.
pub(super) fn find(text: &str, bytes: &[u8], mut each: impl FnMut(Span)) {
    for at in memchr::memchr_iter(b'&', bytes) {
        let Some((char, len)) = reference(&bytes[at..]) else { continue };
        // The reference may be any character of the text that equals `char`. The characters before
        // it must be written plainly.
        for (before, _) in text.match_indices(char) {
            let (plain, rest) = text.split_at(before);
            if !bytes[..at].ends_with(plain.as_bytes()) {
                continue;
            }
            if let Some(end) = end(&rest[char.len_utf8()..], bytes, at + len) {
                each(Span { start: (at - before) as u64, end: end as u64 });
            }
        }
    }
}

/// The offset at which the text `rest` ends in HTML, if it begins at `at`; otherwise `None`.
fn end(rest: &str, bytes: &[u8], mut at: usize) -> Option<usize> {
    for char in rest.chars() {
        let mut plain = [0; 4];
        let plain = char.encode_utf8(&mut plain).as_bytes();
        at += match reference(&bytes[at..]) {
            Some((found, len)) if found == char => len,
            Some(_) | None if bytes[at..].starts_with(plain) => plain.len(),
            Some(_) | None => return None,
        };
    }
    Some(at)
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
