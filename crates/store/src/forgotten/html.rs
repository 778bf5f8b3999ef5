//! References of HTML to characters, such as `&amp;`, `&#0039;` or `&#x2F;`.

use super::escape::number;

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

/// The reference at the beginning of these bytes: the character that it means, and its length.
pub(super) fn reference(bytes: &[u8]) -> Option<(char, usize)> {
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
    char::from_u32(number(digits.as_bytes(), radix)?)
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
