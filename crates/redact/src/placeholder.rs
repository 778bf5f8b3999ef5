//! Placeholders that replace secrets: `[REDACTED:github-pat-1]`.

use std::ops::Range;

use memchr::memmem;

/// The beginning of every placeholder.
pub(crate) const OPEN: &str = "[REDACTED:";

/// The placeholder of the `number`th secret that a rule found.
pub(crate) fn placeholder(rule: &str, number: u32) -> String {
    format!("{OPEN}{rule}-{number}]")
}

/// A rule's id as it is written in a placeholder.
pub(crate) fn name(id: &str) -> String {
    let name = id.chars().map(|c| match c {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '-' | '_' | '.' => c,
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

/// The placeholders in a text. A text that looks like one but names no rule is not a placeholder,
/// so that nothing can be hidden in it.
pub(crate) fn all<'t>(
    text: &'t [u8],
    is_rule: impl Fn(&str) -> bool + 't,
) -> impl Iterator<Item = Placed<'t>> {
    memmem::find_iter(text, OPEN).filter_map(move |start| {
        let inner = &text[start + OPEN.len()..];
        // A placeholder whose name and number are longer than this is not recognised.
        let end = memchr::memchr(b']', &inner[..inner.len().min(200)])?;
        let (rule, digits) = std::str::from_utf8(&inner[..end]).ok()?.rsplit_once('-')?;
        let plain = digits.len() <= 6 && digits.bytes().all(|byte| byte.is_ascii_digit());
        let number = digits.parse().ok().filter(|_| plain && is_rule(rule))?;
        Some(Placed { range: start..start + OPEN.len() + end + 1, rule, number })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_rules_have_placeholders() {
        let text = "a [REDACTED:x-y-12] b [REDACTED:AKIA-1] [REDACTED:x-y] [REDACTED:x-y-1x]";
        let found: Vec<_> = all(text.as_bytes(), |rule| rule == "x-y").collect();
        assert_eq!(found, [Placed { range: 2..19, rule: "x-y", number: 12 }]);
        assert_eq!(&text[2..19], placeholder("x-y", 12));
        assert_eq!(name("it's (mine)"), "it-s--mine-");
    }
}
