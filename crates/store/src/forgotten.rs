//! Texts that must not be stored any more, in the spellings in which files may contain them.

mod base64;
mod coded;
mod escape;
mod html;
mod json;
mod percent;
mod unseen;

use std::borrow::Cow;

use memchr::memmem::Finder;

use base64::BrokenSpelling;
use coded::CodedText;
use epitome_error::{Error, ErrorKind, Result};
use epitome_model::Span;

/// The shortest text that can be forgotten, in bytes. A shorter text is often a part of other
/// texts.
pub const SHORTEST: usize = 8;
/// The longest text that can be forgotten, in bytes.
pub const LONGEST: usize = 64 << 10;

/// What replaces each byte of a text that is forgotten.
const MASK: u8 = b'*';
/// What replaces each character of the text in base64, which has no asterisk.
const MASK_BASE64: u8 = b'x';
/// What replaces each hexadecimal digit of the text.
const MASK_HEX: u8 = b'0';

/// A text, and its search in bytes, in these spellings:
///
/// - as it is, in UTF-8 and in UTF-16;
/// - as JSON spells it, also in JSON inside of JSON, up to three levels;
/// - with any of its characters as an escape of JSON, C or a shell (`\u002f`, `\x2f`, `\057`), as a
///   reference of HTML, or as a full-width letter;
/// - broken by what shows nothing: colours and other commands of a terminal, NUL and other control
///   characters, characters without a width, each also as an escape;
/// - as URLs spell it, with any of its bytes in per cent codes, and spaces as `+`;
/// - in base64 of UTF-8 and UTF-16, in both alphabets;
/// - in hexadecimal digits;
/// - in base64 and hexadecimal digits also in lines of 32 characters or more, which may be indented
///   and have numbers before them.
///
/// A mask is as long as the bytes that it replaces, so that nothing around the text moves.
///
/// ```
/// use epitome_store::forgotten::ForgottenText;
///
/// let text = ForgottenText::new("pass\"word")?;
/// let mut line = br#"{"text":"it is pass\"word"}"#.to_vec();
/// assert_eq!(text.mask(&mut line), 1);
/// assert_eq!(line, br#"{"text":"it is **********"}"#);
/// # Ok::<(), epitome_error::Error>(())
/// ```
pub struct ForgottenText {
    texts: Vec<String>,
    coded: Vec<CodedText>,
    spellings: Vec<Spelling>,
    broken: Vec<BrokenSpelling>,
}

/// One spelling of the text.
struct Spelling {
    finder: Finder<'static>,
    mask: u8,
}

/// Where a spelling of the text is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Occurrence {
    /// The range of bytes.
    pub range: Span,
    /// The line breaks in the range, which stay.
    breaks: Vec<Span>,
    /// What replaces each byte of the range that is not part of a line break.
    mask: u8,
}

impl Occurrence {
    /// The same occurrence in bytes in which it begins `by` bytes later.
    #[must_use]
    pub fn moved(&self, by: u64) -> Occurrence {
        let moved = |span: &Span| Span { start: span.start + by, end: span.end + by };
        let breaks = self.breaks.iter().map(moved).collect();
        Occurrence { range: moved(&self.range), breaks, mask: self.mask }
    }

    /// Masks the text in `bytes`, which begin at the offset `from` of the content and may contain
    /// only a part of the text.
    pub fn mask_in(&self, bytes: &mut [u8], from: u64) {
        let mut start = self.range.start;
        for at in &self.breaks {
            fill(bytes, from, Span { start, end: at.start }, self.mask);
            start = at.end;
        }
        fill(bytes, from, Span { start, end: self.range.end }, self.mask);
    }
}

/// Overwrites with `mask` the bytes of a range that are in `bytes`, which begin at the offset
/// `from`.
fn fill(bytes: &mut [u8], from: u64, range: Span, mask: u8) {
    let start = range.start.max(from);
    let end = range.end.min(from + bytes.len() as u64);
    if start < end {
        let inside = usize::try_from(start - from).unwrap_or(usize::MAX)
            ..usize::try_from(end - from).unwrap_or(usize::MAX);
        bytes[inside].fill(mask);
    }
}

impl ForgottenText {
    /// The text `text`, in all spellings.
    ///
    /// # Errors
    ///
    /// The errors of [`check`].
    pub fn new(text: &str) -> Result<ForgottenText> {
        check(text)?;
        Ok(ForgottenText::of_all([text]))
    }

    /// All of these texts, in all spellings, except those that [`new`](ForgottenText::new) refuses.
    /// `None` if it refuses all of them.
    pub fn all<'t>(texts: impl IntoIterator<Item = &'t str>) -> Option<ForgottenText> {
        let all = ForgottenText::of_all(texts.into_iter().filter(|text| check(text).is_ok()));
        (!all.texts.is_empty()).then_some(all)
    }

    fn of_all<'t>(texts: impl IntoIterator<Item = &'t str>) -> ForgottenText {
        let mut all = ForgottenText {
            texts: Vec::new(),
            coded: Vec::new(),
            spellings: Vec::new(),
            broken: Vec::new(),
        };
        for text in texts {
            all.add(text);
        }
        all
    }

    fn add(&mut self, text: &str) {
        let utf16 = [u16::to_le_bytes, u16::to_be_bytes]
            .map(|bytes| text.encode_utf16().flat_map(bytes).collect::<Vec<u8>>());
        let plain = json::spellings(text);
        let plain = plain.iter().map(String::as_bytes).chain(utf16.iter().map(Vec::as_slice));
        self.spellings.extend(plain.map(|it| Spelling::new(it, MASK)));
        let hex: String = text.bytes().map(|byte| format!("{byte:02x}")).collect();
        for hex in [hex.to_uppercase(), hex] {
            self.spellings.push(Spelling::new(hex.as_bytes(), MASK_HEX));
            self.broken.push(BrokenSpelling::new(hex.into_bytes(), MASK_HEX));
        }
        for encoded in [text.as_bytes(), &utf16[0], &utf16[1]].map(base64::spellings) {
            self.spellings.extend(encoded.iter().map(|it| Spelling::new(it, MASK_BASE64)));
            let broken = encoded.into_iter().map(|it| BrokenSpelling::new(it, MASK_BASE64));
            self.broken.extend(broken);
        }
        self.coded.push(CodedText::new(text));
        self.texts.push(text.to_owned());
    }

    /// The error for a text that is in epitome's own records. `place` describes where; the text is
    /// masked in this description.
    pub fn in_records(&self, place: &str) -> Error {
        let place = self.masked(place.as_bytes());
        let what = format!(
            "the text is in epitome's own records, as a part of a name, a path or their format, \
             and cannot be removed from there: {}",
            String::from_utf8_lossy(&place)
        );
        Error::new(ErrorKind::Refused, what).with_hint(
            "`epitome forget SESSION` removes all that is stored of a session, its records \
             included; nothing was changed",
        )
    }

    /// The maximum length of a spelling in bytes.
    pub fn longest(&self) -> usize {
        let plain = self.spellings.iter().map(|it| it.finder.needle().len());
        let broken = self.broken.iter().map(BrokenSpelling::longest);
        let coded = self.coded.iter().map(CodedText::longest);
        let percent = self.texts.iter().map(|text| percent::longest(text));
        plain.chain(broken).chain(coded).chain(percent).max().unwrap_or(0)
    }

    /// Whether the text is in these bytes.
    pub fn is_in(&self, bytes: &[u8]) -> bool {
        self.spellings.iter().any(|it| it.finder.find(bytes).is_some())
            || !self.find_variable(bytes).is_empty()
    }

    /// Where the text is in these bytes, in order.
    pub fn find(&self, bytes: &[u8]) -> Vec<Occurrence> {
        let mut found = self.find_variable(bytes);
        for Spelling { finder, mask } in &self.spellings {
            let len = finder.needle().len();
            let mut from = 0;
            while let Some(at) = finder.find(&bytes[from..]) {
                let start = from + at;
                let range = Span { start: start as u64, end: (start + len) as u64 };
                found.push(Occurrence { range, breaks: Vec::new(), mask: *mask });
                // Occurrences may overlap.
                from = start + 1;
            }
        }
        found.sort();
        found
    }

    /// The occurrences in spellings that are too many to be listed: in codes such as `\u002B` and
    /// per cent codes, and in digits that are broken into lines.
    fn find_variable(&self, bytes: &[u8]) -> Vec<Occurrence> {
        let mut found = Vec::new();
        let mut add = |range| found.push(Occurrence { range, breaks: Vec::new(), mask: MASK });
        coded::find(&self.coded, bytes, &mut add);
        for text in &self.texts {
            percent::find(text, bytes, &mut add);
        }
        for spelling in &self.broken {
            spelling.find(bytes, |range, breaks| {
                found.push(Occurrence { range, breaks, mask: spelling.mask });
            });
        }
        found.sort();
        found.dedup();
        found
    }

    /// Masks the text in these bytes. Returns the number of occurrences.
    pub fn mask(&self, bytes: &mut [u8]) -> u64 {
        let found = self.find(bytes);
        for occurrence in &found {
            occurrence.mask_in(bytes, 0);
        }
        found.len() as u64
    }

    /// The bytes with the text masked.
    pub fn masked<'b>(&self, bytes: &'b [u8]) -> Cow<'b, [u8]> {
        if !self.is_in(bytes) {
            return Cow::Borrowed(bytes);
        }
        let mut masked = bytes.to_vec();
        self.mask(&mut masked);
        Cow::Owned(masked)
    }
}

/// Returns an error for a text that is probably a part of many others, or too long to be searched
/// for.
///
/// # Errors
///
/// `Usage` if the text is shorter than [`SHORTEST`] or longer than [`LONGEST`] bytes, or if it
/// consists of one character again and again.
pub fn check(text: &str) -> Result<()> {
    if !(SHORTEST..=LONGEST).contains(&text.len()) {
        let what = format!("a text of {SHORTEST} to {LONGEST} bytes can be forgotten");
        return Err(Error::new(ErrorKind::Usage, what)
            .with_hint("a shorter text is a part of many others that are not meant"));
    }
    let first = text.chars().next();
    if text.chars().all(|char| Some(char) == first) {
        let what = "the text is one character again and again, which is a part of many others";
        return Err(Error::new(ErrorKind::Usage, what));
    }
    Ok(())
}

impl std::fmt::Debug for ForgottenText {
    /// Does not show the text.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ForgottenText").field("spellings", &self.spellings.len()).finish()
    }
}

impl Spelling {
    fn new(bytes: &[u8], mask: u8) -> Spelling {
        Spelling { finder: Finder::new(bytes).into_owned(), mask }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_spelling_is_found_and_masked_without_a_change_of_length() {
        let text = ForgottenText::new("a\"b<ç/key").expect("a text");
        let cases = [
            ("a\"b<ç/key", "**********"),
            (r#"{"x":"a\"b<ç/key"}"#, r#"{"x":"***********"}"#),
            (r#"{"x":"a\"b<\u00e7\/key"}"#, r#"{"x":"****************"}"#),
            (r#"{"x":"a\"b<\u00E7/key"}"#, r#"{"x":"***************"}"#),
            (r#"{"x":"a\"b\u003cç/key"}"#, r#"{"x":"****************"}"#),
            (r#""{\"x\":\"a\\\"b<\\u00e7/key\"}""#, r#""{\"x\":\"******************\"}""#),
            (r#""{\"x\":\"a\\\"b<ç/key\"}""#, r#""{\"x\":\"*************\"}""#),
            ("<p>a&quot;b&lt;ç/key", "<p>******************"),
            ("<p>a\"b&lt;ç/key", "<p>*************"),
            ("<p>a&#34;b&#60;ç&#47;key", "<p>**********************"),
            ("<p>a&#x22;b&#x3C;ç&#x2F;key", "<p>*************************"),
            ("<p>a&#034;b&#x003c;&#231;&sol;key</p>", "<p>******************************</p>"),
            ("<p>&#97;&quot;&#x62;&LT;ç/ke&#121;&amp;", "<p>********************************&amp;"),
            ("a\"b<c/key", "a\"b<c/key"),
        ];
        for (before, after) in cases {
            let mut bytes = before.as_bytes().to_vec();
            text.mask(&mut bytes);
            assert_eq!(String::from_utf8_lossy(&bytes), after);
        }
    }

    #[test]
    fn escapes_with_digits_are_masked() {
        let text = ForgottenText::new("secretAAAA+BBBB=9").expect("a text");
        for spelled in [
            r"secretAAAA\u002BBBBB=9",
            r"secretAAAA\u002bBBBB\u003d9",
            r"secretAAAA\\u002BBBBB\\u003D9",
        ] {
            let mut bytes = format!("<{spelled}>").into_bytes();
            assert!(text.is_in(&bytes), "{spelled}");
            assert_eq!(text.mask(&mut bytes), 1, "{spelled}");
            assert_eq!(bytes, format!("<{}>", "*".repeat(spelled.len())).into_bytes());
        }
    }

    #[test]
    fn a_text_is_found_in_utf_16_and_in_hexadecimal_digits() {
        let text = ForgottenText::new("clé-secret").expect("a text");
        let little: Vec<u8> = "clé-secret".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> = "clé-secret".encode_utf16().flat_map(u16::to_be_bytes).collect();
        // `powershell -EncodedCommand` takes base64 of UTF-16.
        let encoded = |bytes: &[u8]| base64::spellings(bytes).swap_remove(0);
        for (bytes, mask) in [
            (little.clone(), MASK),
            (big.clone(), MASK),
            (encoded(&little), MASK_BASE64),
            (encoded(&big), MASK_BASE64),
            (b"636cc3a92d736563726574".to_vec(), MASK_HEX),
            (b"636CC3A92D736563726574".to_vec(), MASK_HEX),
        ] {
            let mut masked = [b"0x", &bytes[..], b"+"].concat();
            assert!(bytes.len() <= text.longest());
            assert!(text.mask(&mut masked) > 0, "{bytes:?}");
            let inside = &masked[2..masked.len() - 1];
            assert!(inside.iter().all(|byte| *byte == mask), "{masked:?}");
        }
    }

    #[test]
    fn base64_is_found_wherever_the_text_begins() {
        // "secret-1" after no, one and two other bytes.
        let text = ForgottenText::new("secret-1").expect("a text");
        let cases = [
            ("c2VjcmV0LTE=", "xxxxxxxxxxE="),
            ("LHNlY3JldC0x", "LHxxxxxxxxxx"),
            ("LCxzZWNyZXQtMQ==", "LCxxxxxxxxxxxQ=="),
        ];
        for (before, after) in cases {
            let mut bytes = before.as_bytes().to_vec();
            assert_eq!(text.mask(&mut bytes), 1, "{before}");
            assert_eq!(String::from_utf8_lossy(&bytes), after);
        }
    }

    #[test]
    fn base64_that_is_broken_into_lines_is_found() {
        // A private key of 90 bytes and what is around it, in lines of 64 and of 76 characters.
        let secret: String = (0..90_u8).map(|n| char::from(b'!' + n % 90)).collect();
        let text = ForgottenText::new(&secret).expect("a text");
        for before in 0..6 {
            let whole = format!("{}{secret}\n", "k".repeat(before));
            let line = base64::spellings(whole.as_bytes()).swap_remove(0);
            let mut masked = line.clone();
            assert_eq!(text.mask(&mut masked), 1, "{before}");
            for (width, end) in [
                (64, "\n"),
                (76, "\r\n"),
                (64, "\\n"),
                (76, "\\r\\n"),
                (64, "\\\\n"),
                (64, "\n    "),
                (48, "\n    "),
                (32, "\\n\\t"),
                (64, "\n   12\t"),
                (76, "\\n    12\u{2192}"),
                (48, "\r\n12: "),
            ] {
                let broken = |line: &[u8]| -> Vec<u8> {
                    line.chunks(width).collect::<Vec<_>>().join(end.as_bytes())
                };
                let mut bytes = broken(&line);
                assert!(text.is_in(&bytes) && bytes.len() <= text.longest() + 24);
                assert_eq!(text.mask(&mut bytes), 1, "{before} {width} {end:?}");
                assert_eq!(String::from_utf8(bytes), String::from_utf8(broken(&masked)));
            }
        }
    }

    #[test]
    fn hexadecimal_digits_that_are_broken_into_lines_are_found() {
        let secret = "the password of a key that takes more than two lines of a dump";
        let text = ForgottenText::new(secret).expect("a text");
        let hex: String = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
        for (hex, end) in [(hex.clone(), "\n"), (hex.to_uppercase(), "\\n  2: ")] {
            let lines: Vec<&str> =
                hex.as_bytes().chunks(60).map(|it| std::str::from_utf8(it).expect("hex")).collect();
            let mut bytes = lines.join(end).into_bytes();
            assert_eq!(text.mask(&mut bytes), 1);
            let masked: Vec<String> = lines.iter().map(|it| "0".repeat(it.len())).collect();
            assert_eq!(String::from_utf8(bytes), Ok(masked.join(end)));
        }
    }

    #[test]
    fn several_texts_are_found_together() {
        let text = ForgottenText::all(["first-one", "short", "second-one"]).expect("two texts");
        let mut bytes = b"first-one short second&#45;one".to_vec();
        assert_eq!(text.mask(&mut bytes), 2);
        assert_eq!(bytes, b"********* short **************");
        assert!(ForgottenText::all(["short"]).is_none());
    }

    #[test]
    fn base64_for_urls_is_found() {
        let text = ForgottenText::new("secret?>?>~~1").expect("a text");
        for encoded in ["c2VjcmV0Pz4/Pn5+MQ==", "c2VjcmV0Pz4_Pn5-MQ=="] {
            assert_eq!(text.mask(&mut encoded.as_bytes().to_vec()), 1, "{encoded}");
        }
    }

    #[test]
    fn a_text_that_is_part_of_many_others_is_refused() {
        for text in ["", "short", "epitome", "aaaaaaaaaa"] {
            let refused = ForgottenText::new(text).expect_err("not a secret");
            assert_eq!(refused.kind(), ErrorKind::Usage, "{text}");
        }
    }
}
