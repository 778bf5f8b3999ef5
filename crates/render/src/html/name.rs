//! What the pages of a session are called.

/// What the pages of a session are called: the first `NAME.html`, the others `NAME-2.html` and on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageName(String);

impl PageName {
    /// A name. What has no place in a file's name becomes `-`.
    pub fn new(name: &str) -> PageName {
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let name: String = name.chars().map(|c| if fits(c) { c } else { '-' }).take(100).collect();
        let name = name.trim_matches(['.', '-']);
        PageName(if name.is_empty() { "session".to_owned() } else { name.to_owned() })
    }

    /// The file of a page, from 0.
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
