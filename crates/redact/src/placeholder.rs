//! Placeholders that replace secrets: `[REDACTED:github-pat-1]`, and `REDACTED-github-pat-1` for an
//! id.

use std::ops::Range;

use memchr::memmem;

/// The beginning of every placeholder, except for placeholders of ids.
pub(crate) const OPEN: &str = "[REDACTED:";

/// The word in every placeholder.
const WORD: &str = "REDACTED";

/// The placeholder of the `number`th secret that a rule found.
pub(crate) fn placeholder(rule: &str, number: u32) -> String {
    format!("{OPEN}{rule}-{number}]")
}

/// The placeholder that replaces a whole id. It has no brackets and no colon, which APIs do not
/// permit in an id.
pub(crate) fn placeholder_of_id(rule: &str, number: u32) -> String {
    format!("{WORD}-{rule}-{number}")
}

/// A rule's id as it is written in a placeholder: characters that APIs do not permit in an id
/// become hyphens.
pub(crate) fn name(id: &str) -> String {
    let name = id.chars().map(|c| match c {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '-' | '_' => c,
        _ => '-',
    });
    name.collect()
}

/// A placeholder in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Placed<'t> {
    pub(crate) range: Range<usize>,
    pub(crate) rule: &'t str,
    pub(crate) number: u32,
}

/// The placeholders in a text. What looks like a placeholder but names no rule is not one:
/// otherwise a secret could be hidden in it.
pub(crate) fn all<'t>(
    text: &'t [u8],
    is_rule: impl Fn(&str) -> bool + 't,
) -> impl Iterator<Item = Placed<'t>> {
    memmem::find_iter(text, WORD).filter_map(move |word| {
        let from = word + WORD.len() + 1;
        // A placeholder with more than 200 bytes after `REDACTED:` is not recognised.
        let inner = text.get(from..)?;
        let inner = &inner[..inner.len().min(200)];
        let (start, len, end) = match text[from - 1] {
            b':' if text[..word].ends_with(b"[") => {
                let len = memchr::memchr(b']', inner)?;
                (word - 1, len, from + len + 1)
            }
            b'-' => {
                let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_".contains(byte);
                let len = inner.iter().take_while(|byte| is_name(byte)).count();
                (word, len, from + len)
            }
            _ => return None,
        };
        let (rule, digits) = std::str::from_utf8(&inner[..len]).ok()?.rsplit_once('-')?;
        let plain = digits.len() <= 6 && digits.bytes().all(|byte| byte.is_ascii_digit());
        let number = digits.parse().ok().filter(|_| plain && is_rule(rule))?;
        Some(Placed { range: start..end, rule, number })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_rules_have_placeholders() {
        let text = "a [REDACTED:x-y-12] b [REDACTED:AKIA-1] [REDACTED:x-y] [REDACTED:x-y-1x] \
                    REDACTED:x-y-1] REDACTED-AKIA-1 REDACTED-x-y-1x REDACTED REDACTED-x-y-3";
        let found: Vec<_> = all(text.as_bytes(), |rule| rule == "x-y").collect();
        let placed = |range, number| Placed { range, rule: "x-y", number };
        assert_eq!(found, [placed(2..19, 12), placed(130..144, 3)]);
        assert_eq!(&text[2..19], placeholder("x-y", 12));
        assert_eq!(&text[130..144], placeholder_of_id("x-y", 3));
        assert_eq!(name("it's (mine).v2"), "it-s--mine--v2");
    }
}
