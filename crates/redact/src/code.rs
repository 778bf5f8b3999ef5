//! Codes for characters: escapes of C and JSON, percent codes, HTML entities, full-width letters;
//! and codes that show nothing: terminal escape sequences, also in caret notation, control
//! characters, characters without width, and the end of a line that a backslash continues.

/// A code that stands for a character, or that is invisible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Code {
    /// The length of the code in bytes; at least 1.
    pub(crate) len: usize,
    /// The character; `None` if the code is invisible.
    pub(crate) to: Option<char>,
    /// Whether the code is a reason to search the decoded text.
    pub(crate) reason: Reason,
}

/// Whether a code can hide a token from the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// The code can hide a secret.
    Always,
    /// The code hides a secret only before a word, because rules take the last character of the
    /// code (the `n` of `\n`) for the first letter of that word.
    BeforeWord,
    /// The code cannot hide a secret: its last character is not a letter, so that rules see where
    /// the next word begins.
    Never,
}

/// Bytes that a code can begin with.
const FIRST: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 0x20 {
        table[byte] = !matches!(byte as u8, b'\t' | b'\n' | b'\r');
        byte += 1;
    }
    let set = b"\x7f%\\&^\xc2\xcd\xe1\xe2\xef\xf3";
    let mut idx = 0;
    while idx < set.len() {
        table[set[idx] as usize] = true;
        idx += 1;
    }
    table
};

/// The first position at or after `from` of a byte with which a [`Code`] can begin; `None` if there
/// is none.
pub(crate) fn next(text: &str, from: usize) -> Option<usize> {
    let rest = &text.as_bytes()[from..];
    rest.iter().position(|&byte| FIRST[usize::from(byte)]).map(|at| from + at)
}

/// The code that begins at `at`; `None` if none begins there.
pub(crate) fn at(text: &str, at: usize) -> Option<Code> {
    let bytes = &text.as_bytes()[at..];
    let always = |(len, to)| Code { len, to: Some(to), reason: Reason::Always };
    match *bytes.first()? {
        b'%' => many(bytes, percent).map(always),
        b'&' => entity(bytes).map(always),
        b'\\' => continued_line(&text[..at], bytes).or_else(|| escape(bytes)),
        b'^' => colour_in_carets(bytes).map(hidden),
        0x1b => Some(hidden(command(&bytes[1..]) + 1)),
        _ => {
            let c = text[at..].chars().next()?;
            match c {
                '\u{9b}' => Some(hidden(2 + control_sequence(&bytes[2..]).unwrap_or(0))),
                c if is_unseen(c) => Some(hidden(c.len_utf8())),
                // Full-width forms of ASCII characters.
                '\u{ff01}'..='\u{ff5e}' => {
                    char::from_u32(u32::from(c) - 0xfee0).map(|to| always((3, to)))
                }
                _ => None,
            }
        }
    }
}

fn hidden(len: usize) -> Code {
    Code { len, to: None, reason: Reason::Always }
}

/// Whether a character has no width on a screen.
fn is_unseen(c: char) -> bool {
    match c {
        '\t' | '\n' | '\r' => false,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{180e}' => true,
        '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' => true,
        '\u{feff}' | '\u{e0000}'..='\u{e007f}' => true,
        c => c.is_control(),
    }
}

/// The length of a terminal escape sequence (ECMA-48, section 5), of which `rest` is what follows
/// the escape character; 0 if `rest` does not complete a sequence. The escape character is not
/// counted.
fn command(rest: &[u8]) -> usize {
    /// The maximum length of a sequence with a text, such as a title or a link.
    const MOST: usize = 4096;
    match rest.first() {
        Some(b'[') => control_sequence(&rest[1..]).map_or(0, |len| len + 1),
        Some(b']' | b'P' | b'X' | b'^' | b'_') => {
            let rest = &rest[..rest.len().min(MOST)];
            let end = rest.iter().position(|&byte| matches!(byte, 7 | 0x1b));
            end.map_or(0, |end| if rest[end..].starts_with(b"\x1b\\") { end + 2 } else { end + 1 })
        }
        Some(b' '..=b'/') => {
            let end = rest.iter().position(|byte| !(b' '..=b'/').contains(byte));
            end.filter(|&end| (b'0'..=b'~').contains(&rest[end])).map_or(0, |end| end + 1)
        }
        Some(b'0'..=b'~') => 1,
        Some(_) | None => 0,
    }
}

/// The length of a control sequence: parameters, intermediate bytes and the final byte. `None` if
/// the final byte is missing or not valid.
fn control_sequence(rest: &[u8]) -> Option<usize> {
    let last = rest.iter().position(|byte| !(b' '..=b'?').contains(byte))?;
    (b'@'..=b'~').contains(&rest[last]).then_some(last + 1)
}

/// The length of `^[[1;32m` or `^[[K`: a colour, or what `grep` writes after one, in the notation
/// of `cat -v`.
fn colour_in_carets(bytes: &[u8]) -> Option<usize> {
    let rest = bytes.strip_prefix(b"^[[")?;
    let last = rest.iter().position(|byte| !(byte.is_ascii_digit() || *byte == b';'))?;
    matches!(rest[last], b'm' | b'K').then_some(3 + last + 1)
}

/// The code for a backslash at the end of a line, the line end, and the blanks after it, if `bytes`
/// begin with them: the next line continues the word that is at the end of `before`. `None` if
/// there is no such word.
fn continued_line(before: &str, bytes: &[u8]) -> Option<Code> {
    let rest = bytes.strip_prefix(b"\\")?;
    let rest = rest.strip_prefix(b"\r").unwrap_or(rest).strip_prefix(b"\n")?;
    let blanks = rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    let len = bytes.len() - rest.len() + blanks;
    let is_in_word = before.ends_with(|last: char| !last.is_whitespace());
    is_in_word.then_some(Code { len, to: None, reason: Reason::BeforeWord })
}

/// Decodes a character of one or more UTF-8 bytes, each of which has a code of its own that `one`
/// decodes. Returns the length of these codes together, and the character.
fn many(bytes: &[u8], one: impl Fn(&[u8]) -> Option<(usize, u8)>) -> Option<(usize, char)> {
    let (mut len, first) = one(bytes)?;
    if first < 0x80 {
        let c = char::from(first);
        return Some((len, c));
    }
    let count = match first {
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => return None,
    };
    let mut whole = vec![first];
    while whole.len() < count {
        let (more, byte) = one(&bytes[len..])?;
        len += more;
        whole.push(byte);
    }
    let c = std::str::from_utf8(&whole).ok()?.chars().next()?;
    Some((len, c))
}

/// Decodes `%2F`: the length of the code, and the byte.
fn percent(bytes: &[u8]) -> Option<(usize, u8)> {
    let digits = bytes.strip_prefix(b"%")?.get(..2)?;
    Some((3, number(digits, 16)? as u8))
}

/// Decodes `\x2f`: the length of the code, and the byte.
fn hex_escape(bytes: &[u8]) -> Option<(usize, u8)> {
    let digits = bytes.strip_prefix(b"\\x")?.get(..2)?;
    Some((4, number(digits, 16)? as u8))
}

fn number(digits: &[u8], radix: u32) -> Option<u32> {
    let plain = !digits.is_empty() && digits.iter().all(|&byte| char::from(byte).is_digit(radix));
    plain.then(|| u32::from_str_radix(std::str::from_utf8(digits).ok()?, radix).ok())?
}

/// Decodes a backslash escape of C, JSON, Rust, Python or a shell.
fn escape(bytes: &[u8]) -> Option<Code> {
    let code = |len, to, reason| Some(Code { len, to: Some(to), reason });
    match bytes.get(1)? {
        b'n' => code(2, '\n', Reason::BeforeWord),
        b't' => code(2, '\t', Reason::BeforeWord),
        b'r' => code(2, '\r', Reason::BeforeWord),
        b'a' | b'b' | b'f' | b'v' => code(2, ' ', Reason::BeforeWord),
        b'e' | b'E' => code(2, '\u{1b}', Reason::Always),
        sign @ (b'"' | b'\'' | b'\\' | b'/') => code(2, char::from(*sign), Reason::Never),
        b'x' => many(bytes, hex_escape).and_then(|(len, to)| code(len, to, Reason::Always)),
        b'u' | b'U' => unicode(bytes).and_then(|(len, to)| code(len, to, Reason::Always)),
        b'0'..=b'3' => {
            let octal = number(bytes.get(1..4)?, 8).and_then(char::from_u32)?;
            code(4, octal, Reason::Always)
        }
        _ => None,
    }
}

/// Decodes `\u002f`, `\u{2f}`, `\U0000002f` and surrogate pairs: the length of the code, and the
/// character.
fn unicode(bytes: &[u8]) -> Option<(usize, char)> {
    if let Some(inner) = bytes.strip_prefix(b"\\u{") {
        let end = inner.iter().take(7).position(|&byte| byte == b'}')?;
        return Some((end + 4, char::from_u32(number(&inner[..end], 16)?)?));
    }
    if let Some(inner) = bytes.strip_prefix(b"\\U") {
        return Some((10, char::from_u32(number(inner.get(..8)?, 16)?)?));
    }
    let high = code_unit(bytes)?;
    if !(0xd800..0xdc00).contains(&high) {
        return Some((6, char::from_u32(high)?));
    }
    let low = code_unit(&bytes[6..]).filter(|low| (0xdc00..0xe000).contains(low))?;
    Some((12, char::from_u32(0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00))?))
}

fn code_unit(bytes: &[u8]) -> Option<u32> {
    number(bytes.strip_prefix(b"\\u")?.get(..4)?, 16)
}

/// Decodes `&amp;`, `&#47;`, `&#x2f;`. Of the named entities, only the few in `NAMES` are decoded.
fn entity(bytes: &[u8]) -> Option<(usize, char)> {
    const NAMES: [(&[u8], char); 16] = [
        (b"amp", '&'),
        (b"lt", '<'),
        (b"gt", '>'),
        (b"quot", '"'),
        (b"apos", '\''),
        (b"nbsp", ' '),
        (b"equals", '='),
        (b"colon", ':'),
        (b"sol", '/'),
        (b"lowbar", '_'),
        (b"hyphen", '-'),
        (b"dash", '-'),
        (b"period", '.'),
        (b"commat", '@'),
        (b"Tab", '\t'),
        (b"NewLine", '\n'),
    ];
    let inner = &bytes[1..];
    let end = inner.iter().take(10).position(|&byte| byte == b';')?;
    let name = &inner[..end];
    let c = match name {
        [b'#', b'x' | b'X', digits @ ..] => char::from_u32(number(digits, 16)?)?,
        [b'#', digits @ ..] => char::from_u32(number(digits, 10)?)?,
        _ => NAMES.iter().find(|(known, _)| *known == name)?.1,
    };
    Some((end + 2, c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_read() {
        type Code = Option<(usize, Option<char>)>;
        let cases: &[(&str, Code)] = &[
            ("%3Dx", Some((3, Some('=')))),
            ("%C3%A4", Some((6, Some('ä')))),
            ("%C3x", None),
            ("%zz", None),
            ("&quot;x", Some((6, Some('"')))),
            ("&#103;", Some((6, Some('g')))),
            ("&#x67;", Some((6, Some('g')))),
            ("&x", None),
            ("\\nx", Some((2, Some('\n')))),
            ("\\u003d", Some((6, Some('=')))),
            ("\\ud83d\\ude00", Some((12, Some('😀')))),
            ("\\ud83dx", None),
            ("\\u{1b}", Some((6, Some('\u{1b}')))),
            ("\\U0000001b", Some((10, Some('\u{1b}')))),
            ("\\x1b[", Some((4, Some('\u{1b}')))),
            ("\\033[", Some((4, Some('\u{1b}')))),
            ("\\d", None),
            ("\u{1b}[01;31m\u{1b}[K", Some((8, None))),
            ("\u{1b}]0;title\u{7}x", Some((10, None))),
            ("\u{1b}]8;;http://x\u{1b}\\x", Some((15, None))),
            ("\u{1b}]open", Some((1, None))),
            ("\u{1b}(Bx", Some((3, None))),
            ("\u{9b}1mx", Some((4, None))),
            ("^[[1;32mx", Some((8, None))),
            ("^[[Kx", Some((4, None))),
            ("^[[a-z]", None),
            ("^[[0-9]", None),
            ("^x", None),
            ("\\\nx", None),
            ("\u{200b}x", Some((3, None))),
            ("\u{ad}x", Some((2, None))),
            ("\0x", Some((1, None))),
            ("ｇ", Some((3, Some('g')))),
            ("ä", None),
            ("–", None),
        ];
        for (text, expect) in cases {
            let found = at(text, 0).map(|code| (code.len, code.to));
            assert_eq!(found, *expect, "{text:?}");
            assert!(found.is_none() || next(text, 0) == Some(0), "{text:?}");
        }
        for (text, expect) in [("a\\\nb", 2), ("a\\\r\n \tb", 5), ("a\\\n", 2)] {
            assert_eq!(
                at(text, 1).map(|code| (code.len, code.to)),
                Some((expect, None)),
                "{text:?}"
            );
        }
        assert_eq!(at("a \\\nb", 2), None, "the next line begins another word");
    }
}
