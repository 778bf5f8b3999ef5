//! File names of the pages of a session.

/// The name of a session's pages: the first is `NAME.html`, the others `NAME-2.html` and so on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageName(String);

/// The maximum number of characters of a name.
const LONGEST: usize = 100;

/// The maximum number of digits of a page number.
const PAGE_DIGITS: usize = 4;

impl PageName {
    /// The name for a text: its first 100 characters, with `-` in place of each character that does
    /// not belong in a file name, and without dots and dashes at both ends; `session` if nothing is
    /// left. Two texts can have the same name: [`exact`](PageName::exact) and
    /// [`with_tag`](PageName::with_tag) distinguish them.
    pub fn new(name: &str) -> PageName {
        PageName(cleaned(name, LONGEST).unwrap_or_else(|| "session".to_owned()))
    }

    /// The name, if the text is valid as it is and cannot be the name of a further page of another
    /// session.
    pub fn exact(name: &str) -> Option<PageName> {
        let is_exact = cleaned(name, LONGEST).as_deref() == Some(name) && !is_page(name);
        is_exact.then(|| PageName(name.to_owned()))
    }

    /// A name that ends in `-` and `tag`, which must be letters and digits and begin with a letter.
    pub fn with_tag(name: &str, tag: &str) -> PageName {
        let kept = cleaned(name, LONGEST.saturating_sub(tag.len() + 1));
        PageName(format!("{}-{tag}", kept.as_deref().unwrap_or("session")))
    }

    /// The file of a page; pages are numbered from 0.
    pub fn file(&self, page: usize) -> String {
        match page {
            0 => format!("{}.html", self.0),
            page => format!("{}-{}.html", self.0, page + 1),
        }
    }

    /// The name without an extension.
    pub fn stem(&self) -> &str {
        &self.0
    }
}

/// At most `longest` characters of a name, with `-` in place of invalid characters, and without
/// dots and dashes at both ends. `None` if nothing is left.
fn cleaned(name: &str, longest: usize) -> Option<String> {
    let name = name.chars().map(|c| match c {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '-' | '_' | '.' => c,
        _ => '-',
    });
    let name: String = name.take(longest).collect();
    let name = name.trim_matches(['.', '-']);
    (!name.is_empty()).then(|| name.to_owned())
}

/// Whether a name may be that of a further page of another session: `x-2` is the second page of
/// `x`.
fn is_page(name: &str) -> bool {
    let number = name.rsplit_once('-').map_or("", |(_, number)| number);
    (1..=PAGE_DIGITS).contains(&number.len()) && number.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_exact_if_no_other_is_cleaned_to_it() {
        for name in ["claude-0f3c9a52", "codex-x_y", "a.b", "x-12345"] {
            assert_eq!(PageName::exact(name), Some(PageName::new(name)), "{name}");
        }
        let long = "x".repeat(101);
        for name in ["", "x/1", "x 1", "x-", "x-2", "x-0042", "ä", ".", &*long] {
            assert_eq!(PageName::exact(name), None, "{name}");
        }
        assert_eq!(PageName::with_tag("x/1", "h0").stem(), "x-1-h0");
        assert_eq!(PageName::with_tag(&long, "h0").stem().len(), 100);
        assert_eq!(PageName::with_tag("/", "h0").stem(), "session-h0");
    }
}
