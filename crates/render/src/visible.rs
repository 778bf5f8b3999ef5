//! Makes characters visible that are invisible, or that change how other characters are displayed.

use std::fmt::Write as _;

use epitome_model::short;

/// Maximum characters of a text on one line.
const LINE: usize = 100;

/// Returns `text` with visible forms of characters that a terminal would obey or hide: control
/// characters, characters that change the direction of writing, most characters without width that
/// could hide text, and a few others, such as line separators. Line feeds and tabs stay.
///
/// ```
/// use epitome_render::visible;
///
/// assert_eq!(visible("a\u{1b}[31mb\u{202e}c"), "a␛[31mb\\u{202e}c");
/// ```
pub fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match picture(c) {
            Some(picture) => shown.push_str(&picture),
            None => shown.push(c),
        }
    }
    shown
}

/// The beginning of `text` on one line, at most 100 characters of it, with invisible characters
/// made visible.
pub(crate) fn one_line(text: &str) -> String {
    // This is enough for one line. The text may have megabytes.
    let begin = &text[..text.floor_char_boundary(16 * LINE)];
    let flat = begin.split_whitespace().collect::<Vec<_>>().join(" ");
    visible(&short(&flat, LINE))
}

/// JSON with an escape for each character from U+007F on that [`visible`] would make visible. The
/// result has the same meaning, and is safe to print on a terminal.
///
/// ```
/// use epitome_render::inert_json;
///
/// assert_eq!(inert_json("\"a\u{9b}b\u{202e}ä\"".to_owned()), "\"a\\u009bb\\u202eä\"");
/// ```
pub fn inert_json(json: String) -> String {
    if json.is_ascii() && !json.contains('\u{7f}') || !json.contains(is_escaped) {
        return json;
    }
    let mut inert = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        if is_escaped(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(inert, "\\u{unit:04x}");
            }
        } else {
            inert.push(c);
        }
    }
    inert
}

fn is_escaped(c: char) -> bool {
    c >= '\u{7f}' && !is_harmless(c)
}

/// Makes a text that contains styles safe for a terminal. Style sequences (such as `ESC [ 1 m`),
/// line feeds and tabs stay; all other characters that a terminal would obey are made visible.
pub fn keep_styles(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| !is_harmless(c)) {
        shown.push_str(&rest[..at]);
        rest = &rest[at..];
        let len = style(rest.as_bytes());
        if len > 0 {
            shown.push_str(&rest[..len]);
            rest = &rest[len..];
        } else if let Some(c) = rest.chars().next() {
            shown.extend(picture(c));
            rest = &rest[c.len_utf8()..];
        }
    }
    shown.push_str(rest);
    shown
}

/// The length of a style sequence that begins here; 0 if there is none.
fn style(bytes: &[u8]) -> usize {
    let Some(inner) = bytes.strip_prefix(b"\x1b[") else { return 0 };
    let codes = inner.iter().take_while(|byte| matches!(byte, b'0'..=b'9' | b';' | b':')).count();
    if inner.get(codes) == Some(&b'm') { codes + 3 } else { 0 }
}

/// The visible form of a character; `None` if it may be printed unchanged.
pub(crate) fn picture(c: char) -> Option<String> {
    if is_harmless(c) {
        return None;
    }
    let mut shown = String::new();
    match c {
        // The symbols for control characters have the same order, from U+2400 on.
        '\0'..='\u{1f}' => shown.extend(char::from_u32(0x2400 + u32::from(c))),
        '\u{7f}' => shown.push('␡'),
        _ => {
            let _ = write!(shown, "\\u{{{:x}}}", u32::from(c));
        }
    }
    Some(shown)
}

/// Whether a character may be printed unchanged.
fn is_harmless(c: char) -> bool {
    match c {
        '\n' | '\t' | ' '..='~' => true,
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' => false,
        // Marks, embeddings, overrides and isolates of direction: Unicode Standard Annex 9.
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            false
        }
        // Characters without width can hide text. The joiners of emoji and of scripts stay.
        '\u{200b}' | '\u{2060}'..='\u{2065}' | '\u{206a}'..='\u{206f}' | '\u{feff}' => false,
        // The line and paragraph separators: some programs take them for line ends, others do not.
        '\u{2028}' | '\u{2029}' => false,
        // Tag characters: they can hold a whole text that is invisible.
        '\u{e0000}'..='\u{e007f}' => false,
        // Noncharacters.
        '\u{fdd0}'..='\u{fdef}' => false,
        c if u32::from(c) & 0xfffe == 0xfffe => false,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_hides_or_commands_is_shown() {
        let cases = [
            ("plain\n\ttext", "plain\n\ttext"),
            ("a\rb\u{7}", "a␍b␇"),
            ("\u{9b}31m", "\\u{9b}31m"),
            ("\u{202e}gnp.exe", "\\u{202e}gnp.exe"),
            ("zero\u{200b}width\u{feff}", "zero\\u{200b}width\\u{feff}"),
            ("\u{e0041}", "\\u{e0041}"),
            ("👩\u{200d}👧 שלום", "👩\u{200d}👧 שלום"),
        ];
        for (text, expect) in cases {
            assert_eq!(visible(text), expect, "{text:?}");
        }
    }

    #[test]
    fn styles_are_all_that_a_terminal_obeys() {
        let cases = [
            ("\u{1b}[1mbold\u{1b}[0m\n", "\u{1b}[1mbold\u{1b}[0m\n"),
            ("\u{1b}]0;title\u{7}", "␛]0;title␇"),
            ("\u{1b}[2J\u{9b}2J\u{200b}", "␛[2J\\u{9b}2J\\u{200b}"),
        ];
        for (text, expect) in cases {
            assert_eq!(keep_styles(text), expect, "{text:?}");
        }
    }

    #[test]
    fn one_line_has_no_more_than_a_hundred_characters() {
        assert_eq!(one_line("  a\n\tb \u{202e} "), "a b \\u{202e}");
        assert_eq!(one_line(&"é".repeat(100)), "é".repeat(100));
        assert_eq!(one_line(&"é".repeat(101)), format!("{}…", "é".repeat(99)));
        assert_eq!(one_line(&"é".repeat(1_000_000)), format!("{}…", "é".repeat(99)));
    }

    #[test]
    fn json_says_the_same_with_escapes() {
        let cases = [
            ("\"plain ä\"", "\"plain ä\""),
            ("\"\u{7f}\"", "\"\\u007f\""),
            // Outside the basic plane an escape has two units.
            ("\"\u{e0041}\"", "\"\\udb40\\udc41\""),
        ];
        for (json, expect) in cases {
            let inert = inert_json(json.to_owned());
            assert_eq!(inert, expect);
            let read = |text: &str| serde_json::from_str::<String>(text).expect("it is JSON");
            assert_eq!(read(&inert), read(json));
        }
    }
}
