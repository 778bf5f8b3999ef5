//! Texts for people: shortened between words, and numbers in the plural and in per cent.
//!
//! A cut within a word is hard to read, and may leave half of a password, which a redactor may not
//! recognise. A word here is a run of letters, digits and marks as in a token, a path or an
//! address.

/// The first words of a text, at most `most` bytes.
///
/// The text is cut between two words. It is cut within a word, between two characters, only if
/// otherwise an eighth of `most` or less would remain.
///
/// ```
/// assert_eq!(epitome_model::first_words("export KEY=abc123 now", 15), "export ");
/// assert_eq!(epitome_model::first_words("abcdefgh", 5), "abcde");
/// ```
pub fn first_words(text: &str, most: usize) -> &str {
    if text.len() <= most {
        return text;
    }
    let end = text.floor_char_boundary(most);
    let word = text[..end].trim_end_matches(is_in_word).len();
    let is_cut = text[end..].starts_with(is_in_word);
    &text[..if is_cut && word > most / 8 { word } else { end }]
}

/// The last words of a text, at most `most` bytes.
///
/// The text is cut between two words. It is cut within a word, between two characters, only if
/// otherwise an eighth of `most` or less would remain.
///
/// ```
/// assert_eq!(epitome_model::last_words("KEY=abc123 is set", 10), " is set");
/// ```
pub fn last_words(text: &str, most: usize) -> &str {
    if text.len() <= most {
        return text;
    }
    let begin = text.ceil_char_boundary(text.len() - most);
    let left = text[begin..].trim_start_matches(is_in_word);
    let is_cut = text[..begin].ends_with(is_in_word);
    if is_cut && left.len() > most / 8 { left } else { &text[begin..] }
}

/// `text` on one line, in at most `max` characters: control characters become spaces, and a text
/// that is cut ends in `…`.
pub fn short(text: &str, max: usize) -> String {
    let flat: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if flat.chars().nth(max).is_none() {
        return flat;
    }
    let room = flat.char_indices().nth(max.saturating_sub(1)).map_or(0, |(end, _)| end);
    let mark = if max == 0 { "" } else { "…" };
    format!("{}{mark}", first_words(&flat, room))
}

/// A number with its noun: `1 session`, `2 sessions`, `2 entries`.
pub fn plural(n: u64, one: &str) -> String {
    match one.strip_suffix('y') {
        _ if n == 1 => format!("1 {one}"),
        Some(stem) if !stem.ends_with(['a', 'e', 'o', 'u']) => format!("{n} {stem}ies"),
        Some(_) | None => format!("{n} {one}s"),
    }
}

/// A part of a whole in per cent, rounded; 0 if the whole is 0.
pub fn percent(part: u64, whole: u64) -> u64 {
    let percent = (u128::from(part) * 100 + u128::from(whole) / 2).checked_div(u128::from(whole));
    u64::try_from(percent.unwrap_or(0)).unwrap_or(u64::MAX)
}

/// The change from one size to another in per cent: `-77.7%`. `0%` if `before` is 0 or both sizes
/// are equal.
pub fn percent_change(before: u64, after: u64) -> String {
    if before == 0 || before == after {
        return "0%".to_owned();
    }
    #[expect(clippy::cast_precision_loss, reason = "shown with one decimal")]
    let percent = (after as f64 - before as f64) * 100.0 / before as f64;
    format!("{percent:+.1}%")
}

/// Whether a character belongs to a word. Characters outside of ASCII do not, so that a text may be
/// cut between any two of them: many scripts have no spaces between words.
fn is_in_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || "-_./+=:@%#~!$^*?\\".contains(c)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_are_in_the_plural_but_for_one() {
        for (n, one, expect) in [
            (1, "entry", "1 entry"),
            (0, "session", "0 sessions"),
            (2, "entry", "2 entries"),
            (2, "key", "2 keys"),
        ] {
            assert_eq!(plural(n, one), expect);
        }
    }

    #[test]
    fn changes_are_per_cent() {
        assert_eq!(percent_change(1_000, 223), "-77.7%");
        assert_eq!(percent_change(0, 0), "0%");
        assert_eq!(percent_change(10, 10), "0%");
        assert_eq!((percent(1, 8), percent(1, 0), percent(u64::MAX, u64::MAX)), (13, 0, 100));
    }

    #[test]
    fn a_text_is_cut_before_the_word_that_does_not_fit() {
        let url = "open postgres://admin:hunter2@host now";
        let cases = [
            (url, 38, url, url),
            (url, 37, "open postgres://admin:hunter2@host ", " postgres://admin:hunter2@host now"),
            (url, 30, "open ", " now"),
            (url, 4, "open", " now"),
            // Too little would be left: the word is cut.
            ("a/long/path/of/a/file.rs b", 16, "a/long/path/of/a", "h/of/a/file.rs b"),
            (
                "b /a/long/path/of/a/file.rs",
                24,
                "b /a/long/path/of/a/file",
                "a/long/path/of/a/file.rs",
            ),
            ("aé漢字", 0, "", ""),
            ("aé漢字", 2, "a", ""),
            ("aé漢字", 3, "aé", "字"),
        ];
        for (text, most, first, last) in cases {
            assert_eq!((first_words(text, most), last_words(text, most)), (first, last), "{most}");
        }
    }

    #[test]
    fn a_short_text_is_one_line_that_ends_with_a_word() {
        let cases = [
            ("a\nb\tc", 5, "a b c"),
            ("curl -u admin:hunter2 x", 20, "curl -u …"),
            ("abcdefgh", 5, "abcd…"),
            ("漢字漢字", 3, "漢字…"),
            ("ab", 0, ""),
        ];
        for (text, max, expect) in cases {
            assert_eq!(short(text, max), expect, "{text:?} {max}");
        }
    }

    proptest! {
        #[test]
        fn parts_are_ends_of_the_text_and_fit(text in ".{0,60}", most in 0_usize..80) {
            let (first, last) = (first_words(&text, most), last_words(&text, most));
            prop_assert!(text.starts_with(first) && text.ends_with(last));
            prop_assert!(first.len() <= most && last.len() <= most);
            prop_assert!(short(&text, most).chars().count() <= most);
        }
    }
}
