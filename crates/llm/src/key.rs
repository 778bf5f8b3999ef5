//! API keys that are never printed.

use std::collections::HashSet;
use std::fmt;

/// A provider's API key. Formatting it with `Debug` or `Display` shows no part of it.
///
/// ```
/// use epitome_llm::Key;
///
/// let key = Key::new("sk-proj-4711-0815-4242").expect("it is one");
/// assert_eq!(format!("{key:?} {key}"), "[key] [key]");
/// assert_eq!(key.hide("the key sk-proj-4711-0815-4242 is wrong"), "the key [key] is wrong");
/// assert_eq!(Key::new("  "), None);
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Key(String);

/// [`Key::hide`] replaces every part of a key with at least this many characters.
pub(crate) const SHOWN: usize = 8;
/// Services show the first or the last characters of a key, with stars or dots in place of the
/// rest. These characters are removed if they are at least this many and not part of a word.
const END: usize = 4;

impl Key {
    /// Makes a key from a text; spaces around the text are left out. `None` if the rest is empty,
    /// or contains anything but visible ASCII characters.
    pub fn new(text: impl AsRef<str>) -> Option<Key> {
        let text = text.as_ref().trim();
        let sendable = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
        sendable.then(|| Key(text.to_owned()))
    }

    /// Replaces in a text the key, every part of it with at least eight characters, and the shorter
    /// ends that services show to identify a key, by `[key]`. A key of less than eight characters
    /// is not replaced: no provider gives such keys.
    pub fn hide(&self, text: &str) -> String {
        let key = self.0.as_bytes();
        if key.len() < SHOWN {
            // Local servers take any text as a key, such as `x` or `none`. It is no secret, and may
            // be part of any word.
            return text.to_owned();
        }
        let pieces: HashSet<&[u8]> = key.windows(SHOWN).collect();
        let bytes = text.as_bytes();
        let mut out = String::new();
        let mut copied = 0;
        let mut at = 0;
        while let Some(piece) = bytes.get(at..at + SHOWN) {
            if !pieces.contains(piece) {
                at += 1;
                continue;
            }
            // A key is ASCII, so `at` and `end` are character boundaries.
            let mut end = at + SHOWN;
            while bytes.get(end + 1 - SHOWN..=end).is_some_and(|piece| pieces.contains(piece)) {
                end += 1;
            }
            out.push_str(&text[copied..at]);
            out.push_str("[key]");
            copied = end;
            at = end;
        }
        out.push_str(&text[copied..]);
        self.without_ends(&out)
    }

    /// Replaces the ends of the key that services show to identify it: the last characters, if no
    /// letter or digit is next to them, except an `x` before them; and the first characters, if a
    /// masking character such as `*` follows them.
    fn without_ends(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for length in (END..SHOWN).rev() {
            let begin = &self.0[..length];
            let end = &self.0[self.0.len() - length..];
            for (piece, is_end) in [(end, true), (begin, false)] {
                let mut from = 0;
                while let Some(at) = text[from..].find(piece).map(|at| from + at) {
                    let before = &text[..at];
                    let behind = &text[at + length..];
                    let last = before.chars().next_back();
                    let next = behind.chars().next();
                    // Some services write `x` for the hidden characters.
                    let hidden = last == Some('x') || last == Some('X');
                    let alone = if is_end {
                        is_border(next) && (is_border(last) || hidden)
                    } else {
                        hides(next) && is_border(last)
                    };
                    from = at + length;
                    if alone {
                        text.replace_range(at..at + length, "[key]");
                        from = at + "[key]".len();
                    }
                }
            }
        }
        text
    }

    /// Replaces the whole key in a text by `[key]`, unless it has less than eight characters. Parts
    /// of the key stay in the text.
    pub fn hide_whole(&self, text: String) -> String {
        match self.secret() {
            Some(key) => text.replace(key, "[key]"),
            None => text,
        }
    }

    /// The key; `None` if it has less than eight characters and is therefore no secret.
    pub(crate) fn secret(&self) -> Option<&str> {
        (self.0.len() >= SHOWN).then_some(&*self.0)
    }

    /// The key itself: for the request that it is sent with, and for the platform's keyring.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

fn is_border(c: Option<char>) -> bool {
    c.is_none_or(|c| !c.is_ascii_alphanumeric())
}

/// Whether a character stands for the hidden part of a key.
fn hides(c: Option<char>) -> bool {
    c.is_some_and(|c| matches!(c, '*' | '.' | '…' | '•' | '·'))
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[key]")
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[key]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_a_key_are_hidden_too() {
        let key = Key::new("sk-ant-0123456789abcdef").expect("a key");
        let cases = [
            ("", ""),
            ("nothing here", "nothing here"),
            ("sk-ant-0123456789abcdef", "[key]"),
            ("x sk-ant-0123456789abcdefsk-ant-0123456789abcdef y", "x [key][key] y"),
            ("sk-ant-01234***", "[key]***"),
            ("ends in 89abcdef", "ends in [key]"),
            ("ends in …bcdef", "ends in …[key]"),
            ("sk-a****************cdef.", "[key]****************[key]."),
            ("sk-an...abcdef", "[key]...[key]"),
            ("xxxxxxxxcdef", "xxxxxxxx[key]"),
            ("ends with cdef", "ends with [key]"),
            // Pieces of three characters remain: they reveal next to nothing, and are common in
            // words.
            ("…def, abcdefg, sk-and more", "…def, abcdefg, sk-and more"),
            ("ä 0123456789 ö", "ä [key]89 ö"),
        ];
        for (text, expect) in cases {
            let expect = expect.replace("[key]89", "[key]");
            assert_eq!(key.hide(text), expect, "{text}");
        }
    }

    #[test]
    fn a_key_that_is_shorter_than_any_is_no_secret() {
        let key = Key::new("k").expect("a key");
        assert_eq!(key.hide("Incorrect API key: k"), "Incorrect API key: k");
        assert_eq!(key.hide_whole("key".into()), "key");
        let key = Key::new("abcdefgh").expect("a key");
        assert_eq!(key.hide("abcdefghi"), "[key]i");
    }

    #[test]
    fn what_cannot_be_sent_is_no_key() {
        for text in ["", " ", "a b", "a\nb", "schlüssel"] {
            assert_eq!(Key::new(text), None, "{text:?}");
        }
    }
}
