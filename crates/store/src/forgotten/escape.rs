//! Escapes of characters in JSON, C and shells, such as `\u002f`, `\x2f`, `\057`, `\e` and `\$`.

use super::json::slashes;

/// The character that the escape at `at` means, and the offset at which the escape ends. `level` is
/// the level of JSON inside of JSON: on higher levels, an escape has more backslashes.
pub(super) fn char_at(bytes: &[u8], at: usize, level: u32) -> Option<(char, usize)> {
    let slashes = slashes(level);
    if slashes_at(bytes, at) != slashes {
        return None;
    }
    let mark = at + slashes;
    let after = mark + 1;
    match *bytes.get(mark)? {
        b'u' if bytes.get(after) == Some(&b'{') => {
            let inner = &bytes[after + 1..];
            let len = inner.iter().take(7).position(|byte| *byte == b'}')?;
            Some((char::from_u32(number(&inner[..len], 16)?)?, after + len + 2))
        }
        b'u' => utf16(bytes, at, level),
        b'U' => Some((char::from_u32(number(bytes.get(after..after + 8)?, 16)?)?, after + 8)),
        b'x' | b'0'..=b'3' => utf8(bytes, at, level),
        b'a' => Some(('\u{7}', after)),
        b'e' | b'E' => Some(('\u{1b}', after)),
        byte if is_quoted_in_shells(byte) => Some((char::from(byte), after)),
        _ => None,
    }
}

/// Whether a backslash before this byte may quote it for a shell: punctuation and the space. `"`,
/// `/` and the backslash are left out, because JSON escapes them in the same way.
pub(super) fn is_quoted_in_shells(byte: u8) -> bool {
    (byte.is_ascii_punctuation() || byte == b' ') && !matches!(byte, b'"' | b'/' | b'\\')
}

/// The number of backslashes at `at`.
pub(super) fn slashes_at(bytes: &[u8], at: usize) -> usize {
    bytes[at.min(bytes.len())..].iter().take_while(|byte| **byte == b'\\').count()
}

/// The number that these digits mean.
pub(super) fn number(digits: &[u8], radix: u32) -> Option<u32> {
    let is_plain = digits.iter().all(|byte| char::from(*byte).is_digit(radix));
    is_plain.then(|| u32::from_str_radix(std::str::from_utf8(digits).ok()?, radix).ok())?
}

/// Decodes `\u002f`. A character of two UTF-16 units has two escapes, which are read together.
fn utf16(bytes: &[u8], at: usize, level: u32) -> Option<(char, usize)> {
    let (first, after) = unit(bytes, at, level)?;
    match char::decode_utf16([first]).next()? {
        Ok(char) => Some((char, after)),
        Err(_) => {
            let (second, after) = unit(bytes, after, level)?;
            let char = char::decode_utf16([first, second]).next()?.ok()?;
            Some((char, after))
        }
    }
}

fn unit(bytes: &[u8], at: usize, level: u32) -> Option<(u16, usize)> {
    let mark = at + slashes(level);
    let is_escape = slashes_at(bytes, at) == slashes(level) && bytes.get(mark) == Some(&b'u');
    let digits = bytes.get(mark + 1..mark + 5).filter(|_| is_escape)?;
    Some((u16::try_from(number(digits, 16)?).ok()?, mark + 5))
}

/// Decodes a character whose bytes in UTF-8 are written as `\x2f` or `\057`: the character, and the
/// offset at which the last of these escapes ends. If the first bytes are no UTF-8, a single byte
/// is a character of its own.
fn utf8(bytes: &[u8], at: usize, level: u32) -> Option<(char, usize)> {
    let (first, mut end) = byte(bytes, at, level)?;
    let mut whole = vec![first];
    let count = match first {
        0..=0xc1 | 0xf5.. => 1,
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
    };
    while whole.len() < count {
        let Some((next, after)) = byte(bytes, end, level) else { break };
        whole.push(next);
        end = after;
    }
    match std::str::from_utf8(&whole).ok().and_then(|text| text.chars().next()) {
        Some(char) => Some((char, end)),
        None => byte(bytes, at, level).map(|(byte, end)| (char::from(byte), end)),
    }
}

/// Decodes `\x2f` or `\057`: the byte, and the offset at which the escape ends.
fn byte(bytes: &[u8], at: usize, level: u32) -> Option<(u8, usize)> {
    let slashes = slashes(level);
    let escape = bytes.get(at..at + slashes + 3)?;
    if slashes_at(escape, 0) != slashes {
        return None;
    }
    let (digits, radix) = match escape[slashes] {
        b'x' => (&escape[slashes + 1..], 16),
        _ => (&escape[slashes..], 8),
    };
    let number = number(digits, radix)?;
    Some((u8::try_from(number).ok()?, at + escape.len()))
}
