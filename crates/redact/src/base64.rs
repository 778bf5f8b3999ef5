//! Finds and decodes text in base64 (RFC 4648, both alphabets, with and without padding, on one or
//! many lines; UTF-8 or UTF-16) and in hexadecimal digits, and encodes it again in the same form.

use std::ops::Range;

use base64::Engine;
use base64::alphabet::{STANDARD, URL_SAFE};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// The minimum number of base64 characters in a row that are decoded. A shorter run may be a word.
const LEAST: usize = 24;

const LENIENT: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_decode_padding_mode(DecodePaddingMode::Indifferent)
    .with_decode_allow_trailing_bits(true);
const PADDED: GeneralPurpose = GeneralPurpose::new(&STANDARD, LENIENT);
const BARE: GeneralPurpose = GeneralPurpose::new(&STANDARD, LENIENT.with_encode_padding(false));
const URL: GeneralPurpose = GeneralPurpose::new(&URL_SAFE, LENIENT.with_encode_padding(false));

/// How a text is encoded in a run of characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Coding {
    Base64,
    /// Base64 of UTF-16 in little-endian order, as `powershell -EncodedCommand` takes it.
    Base64Utf16Le,
    /// Base64 of UTF-16 in big-endian order.
    Base64Utf16Be,
    Hex,
}

/// Decodes a run as hexadecimal digits, as base64 of UTF-8 or as base64 of UTF-16: in the first of
/// these codings that gives a text. Also returns the coding. `None` if none gives a text.
pub(crate) fn decode_any(run: &[u8]) -> Option<(String, Coding)> {
    if let Some(text) = decode_hex(run) {
        return Some((text, Coding::Hex));
    }
    if let Some(text) = decode(run) {
        return Some((text, Coding::Base64));
    }
    decode_utf16(run)
}

/// Encodes a text in this coding and in the form of `like`: in lines of the same length, and in the
/// same alphabet (base64) or case (hexadecimal).
pub(crate) fn encode_as(text: &str, coding: Coding, like: &[u8]) -> String {
    match coding {
        Coding::Base64 => encode(text.as_bytes(), like),
        Coding::Base64Utf16Le => {
            let bytes: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
            encode(&bytes, like)
        }
        Coding::Base64Utf16Be => {
            let bytes: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
            encode(&bytes, like)
        }
        Coding::Hex => {
            let is_upper = like.iter().any(u8::is_ascii_uppercase);
            let digits = text.bytes().map(|byte| match is_upper {
                true => format!("{byte:02X}"),
                false => format!("{byte:02x}"),
            });
            in_lines(digits.collect(), like)
        }
    }
}

fn decode_hex(run: &[u8]) -> Option<String> {
    if !run.len().is_multiple_of(2) || !run.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    let bytes: Vec<u8> =
        run.chunks(2).map(|pair| hex_digit(pair[0]) << 4 | hex_digit(pair[1])).collect();
    if !bytes.iter().all(|byte| *byte >= b' ' || byte.is_ascii_whitespace()) {
        return None;
    }
    String::from_utf8(bytes).ok()
}

fn hex_digit(byte: u8) -> u8 {
    char::from(byte).to_digit(16).map_or(0, |digit| digit as u8)
}

fn decode_utf16(run: &[u8]) -> Option<(String, Coding)> {
    let engine = if run.iter().any(|byte| matches!(byte, b'-' | b'_')) { URL } else { PADDED };
    // In UTF-16, one of the two bytes of an ASCII character is 0. Only a text that begins with
    // mostly ASCII is recognised.
    let head = engine.decode(run.get(..24)?).ok()?;
    let even = head.iter().step_by(2).filter(|&&byte| byte == 0).count();
    let odd = head.iter().skip(1).step_by(2).filter(|&&byte| byte == 0).count();
    let coding = match (even, odd) {
        (..3, 6..) => Coding::Base64Utf16Le,
        (6.., ..3) => Coding::Base64Utf16Be,
        _ => return None,
    };
    let bytes = engine.decode(run).ok()?;
    let units = bytes.chunks_exact(2).map(|pair| match coding {
        Coding::Base64Utf16Be => u16::from_be_bytes([pair[0], pair[1]]),
        Coding::Base64Utf16Le | Coding::Base64 | Coding::Hex => {
            u16::from_le_bytes([pair[0], pair[1]])
        }
    });
    let text: String = char::decode_utf16(units).collect::<Result<_, _>>().ok()?;
    bytes.len().is_multiple_of(2).then_some((text, coding))
}

/// Decodes base64 characters; `None` if they are not base64, if the bytes are not UTF-8, or if more
/// than one byte in twenty is a control character other than white space.
pub(crate) fn decode(run: &[u8]) -> Option<String> {
    let engine = if run.iter().any(|byte| matches!(byte, b'-' | b'_')) { URL } else { PADDED };
    // Decodes the beginning first: images are long, and their first bytes are not text.
    if let Some(head) = run.get(..64) {
        let head = engine.decode(head).ok()?;
        let valid = match std::str::from_utf8(&head) {
            Ok(_) => true,
            Err(err) => err.error_len().is_none(),
        };
        if !valid || !is_text(&head) {
            return None;
        }
    }
    String::from_utf8(engine.decode(run).ok()?).ok().filter(|text| is_text(text.as_bytes()))
}

fn is_text(bytes: &[u8]) -> bool {
    let odd = bytes.iter().filter(|&&byte| byte < 0x20 && !byte.is_ascii_whitespace()).count();
    odd * 20 <= bytes.len()
}

/// Encodes bytes in base64 in the form of `like`: in the same alphabet, and in lines of the same
/// length. In the standard alphabet, the padding is left out only if `like` leaves it out; the
/// other alphabet gets none.
fn encode(bytes: &[u8], like: &[u8]) -> String {
    let flat: Vec<u8> = like.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let engine = if flat.iter().any(|byte| matches!(byte, b'-' | b'_')) {
        URL
    } else if flat.ends_with(b"=") || flat.len().is_multiple_of(4) {
        PADDED
    } else {
        BARE
    };
    in_lines(engine.encode(bytes), like)
}

/// Breaks a run into lines that are as long as the first line of `like`.
fn in_lines(encoded: String, like: &[u8]) -> String {
    let Some(width) = like.iter().position(u8::is_ascii_whitespace) else { return encoded };
    let feed = if like[width] == b'\r' { "\r\n" } else { "\n" };
    let lines = encoded.as_bytes().chunks(width).map(String::from_utf8_lossy);
    lines.collect::<Vec<_>>().join(feed)
}

/// The ranges that may be a text in base64 or hexadecimal digits: long runs of base64 characters,
/// on one or several lines.
pub(crate) fn runs(text: &[u8]) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    let mut at = 0;
    // A run of the minimum length cannot lie between two positions that are checked here.
    while at + LEAST <= text.len() {
        let probe = at + LEAST - 1;
        if !is_digit(text[probe]) {
            at = probe + 1;
            continue;
        }
        let start = (at..probe).rev().find(|&idx| !is_digit(text[idx])).map_or(at, |idx| idx + 1);
        let end = (probe..text.len()).find(|&idx| !is_digit(text[idx])).unwrap_or(text.len());
        let padding = text[end..].iter().take(2).take_while(|&&byte| byte == b'=').count();
        if end - start >= LEAST {
            join(&mut runs, text, start..end + padding);
        }
        at = end.max(at + 1);
    }
    runs
}

/// Adds a run, or extends the last run by it if both are lines of one text: `run` is on the next
/// line and not longer, and the last run consists of lines of equal length, at least 60 characters,
/// without padding.
fn join(runs: &mut Vec<Range<usize>>, text: &[u8], run: Range<usize>) {
    if let Some(last) = runs.last_mut() {
        let between = &text[last.end..run.start];
        let width = text[last.clone()].iter().position(u8::is_ascii_whitespace);
        let width = width.unwrap_or(last.len());
        let line = text[last.clone()].rsplit(|&byte| byte == b'\n').next().map_or(0, <[u8]>::len);
        let ended = text[last.clone()].ends_with(b"=");
        let same = width >= 60 && line == width && run.len() <= width && !ended;
        if same && matches!(between, b"\n" | b"\r\n") {
            last.end = run.end;
            return;
        }
    }
    runs.push(run);
}

/// The characters of a run without its line breaks.
pub(crate) fn flat(run: &[u8]) -> Vec<u8> {
    run.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect()
}

fn is_digit(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_')
}

/// Whether a string is one run of at least 80 base64 characters, as a signature or an image is.
pub(crate) fn is_opaque(text: &[u8]) -> bool {
    const SEALED: usize = 80;
    let body = text.strip_suffix(b"==").or(text.strip_suffix(b"=")).unwrap_or(text);
    body.len() >= SEALED && body.iter().all(|&byte| is_digit(byte))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn runs_are_found_with_their_padding_and_over_lines() {
        let encoded = PADDED.encode("a password: hunter2 and more of it");
        let text = format!("x {encoded} y short");
        assert_eq!(runs(text.as_bytes()).first(), Some(&(2..2 + encoded.len())));
        let long = PADDED.encode("word ".repeat(40));
        let like = format!("{}\n", "A".repeat(76));
        let wrapped = encode("word ".repeat(40).as_bytes(), like.as_bytes());
        assert_eq!(wrapped.lines().next().map(str::len), Some(76));
        let text = format!("{wrapped}\nend");
        assert_eq!(runs(text.as_bytes()).first(), Some(&(0..wrapped.len())));
        assert_eq!(flat(wrapped.as_bytes()), long.as_bytes());
    }

    #[test]
    fn pictures_are_no_text() {
        let picture = PADDED.encode([0x89, b'P', b'N', b'G', 0, 1, 2, 3].repeat(40));
        assert_eq!(decode(picture.as_bytes()), None);
    }

    proptest! {
        /// Base64 in every variant decodes to the encoded text.
        #[test]
        fn encoding_and_decoding_are_inverse(text in "[ -~\n]{1,200}", like in 0_usize..4) {
            let like: &[u8] = [&b"QQ=="[..], b"-_x", b"abc", b"abcd\nef"][like];
            let encoded = encode(text.as_bytes(), like);
            prop_assert_eq!(decode(&flat(encoded.as_bytes())), Some(text));
        }

        /// Hexadecimal digits and base64 of UTF-16 decode to the encoded text and to their coding.
        #[test]
        fn codings_are_kept(text in "[ -~]{16,100}", upper: bool, which in 0_usize..3) {
            let coding = [Coding::Hex, Coding::Base64Utf16Le, Coding::Base64Utf16Be][which];
            let like: &[u8] = if upper { b"AB" } else { b"ab" };
            let encoded = encode_as(&text, coding, like);
            prop_assert_eq!(decode_any(encoded.as_bytes()), Some((text, coding)));
        }
    }
}
