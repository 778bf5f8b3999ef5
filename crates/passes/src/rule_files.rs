//! Names of files that set rules for an agent.

use memchr::memmem;

/// Names of rule files that agents read. A name with a slash is the end of a path; `*` matches any
/// text within a name.
const BUILT_IN: [&str; 12] = [
    "AGENTS.md",
    "AGENTS.override.md",
    "CLAUDE.md",
    "CLAUDE.local.md",
    "GEMINI.md",
    "QWEN.md",
    ".cursorrules",
    ".windsurfrules",
    ".clinerules",
    "SKILL.md",
    ".cursor/rules/*.mdc",
    "copilot-instructions.md",
];

/// Folders that contain installed packages: their files set no rules for the agent.
const FOREIGN: [&str; 4] = ["node_modules", "site-packages", "dist-packages", "bower_components"];

/// Patterns for the names of rule files: built-in ones, and those that recipes and settings add.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct RuleFiles {
    added: Vec<String>,
}

impl RuleFiles {
    /// The built-in patterns, and `added` ones. A pattern is a file name, or the end of a path if
    /// it has a slash; `*` matches any text within a name. Case is ignored.
    pub fn with_patterns(added: Vec<String>) -> RuleFiles {
        RuleFiles { added }
    }

    /// The built-in patterns.
    pub fn built_in() -> &'static RuleFiles {
        static NONE_ADDED: RuleFiles = RuleFiles { added: Vec::new() };
        &NONE_ADDED
    }

    /// The added patterns.
    pub fn added(&self) -> &[String] {
        &self.added
    }

    /// Adds patterns. An empty list removes all that were added before.
    pub fn add(&mut self, names: &[String]) {
        match names {
            [] => self.added.clear(),
            more => self.added.extend(more.iter().cloned()),
        }
    }

    /// Whether a path is that of a rule file. Always false for a file on the web or in a folder of
    /// installed packages.
    pub fn has(&self, path: &str) -> bool {
        if !self.may_name(path) || path.contains("://") {
            return false;
        }
        let path: Vec<String> = path.split(['/', '\\']).map(str::to_lowercase).collect();
        let is_foreign = path.iter().any(|folder| FOREIGN.contains(&folder.as_str()));
        !is_foreign && self.patterns().any(|pattern| is_end_of(&path, pattern))
    }

    /// Whether a text may contain the name of a rule file: a quick check that excludes most texts.
    pub(crate) fn may_name(&self, text: &str) -> bool {
        let text = text.to_ascii_lowercase();
        self.patterns().any(|pattern| {
            let pieces = pattern.split(['/', '*']);
            let longest = pieces.max_by_key(|piece| piece.len()).unwrap_or_default();
            !longest.is_ascii()
                || memmem::find(text.as_bytes(), longest.to_ascii_lowercase().as_bytes()).is_some()
        })
    }

    fn patterns(&self) -> impl Iterator<Item = &str> {
        BUILT_IN.into_iter().chain(self.added.iter().map(String::as_str))
    }
}

/// Whether the last components of a path match a pattern.
fn is_end_of(path: &[String], pattern: &str) -> bool {
    let pattern = pattern.trim_start_matches("./").to_lowercase();
    let parts: Vec<&str> = pattern.split('/').filter(|part| !part.is_empty()).collect();
    let Some(from) = path.len().checked_sub(parts.len()) else { return false };
    !parts.is_empty()
        && parts.iter().zip(&path[from..]).all(|(pattern, name)| matches(pattern, name))
}

/// Whether a name matches a pattern.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(name) = name.strip_prefix(head) else { return false };
    (0..=name.len()).any(|at| name.is_char_boundary(at) && matches(rest, &name[at..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_that_of_a_rule_file_whatever_its_folder_and_capitals() {
        let added = ["docs/rules/*.md".to_owned(), "STYLE*".to_owned()];
        let (files, more) = (RuleFiles::default(), RuleFiles::with_patterns(added.to_vec()));
        for (path, built_in, with_added) in [
            ("AGENTS.md", true, true),
            ("/p/sub/agents.MD", true, true),
            (r"C:\p\CLAUDE.md", true, true),
            ("MY-AGENTS.md", false, false),
            ("AGENTS.md.bak", false, false),
            ("/p/.cursor/rules/a.mdc", true, true),
            ("/p/rules/a.mdc", false, false),
            ("/p/.github/copilot-instructions.md", true, true),
            ("skills/x/SKILL.md", true, true),
            ("docs/rules/names.md", false, true),
            ("docs/rules/deep/names.md", false, false),
            ("STYLE.txt", false, true),
            ("https://evil.example/AGENTS.md", false, false),
            ("/p/node_modules/x/AGENTS.md", false, false),
            ("", false, false),
        ] {
            assert_eq!((files.has(path), more.has(path)), (built_in, with_added), "{path}");
        }
    }

    #[test]
    fn a_list_adds_and_an_empty_one_removes_what_was_added() {
        let mut files = RuleFiles::with_patterns(vec!["a".into()]);
        for (list, expect) in [(vec!["b".to_owned()], vec!["a", "b"]), (vec![], vec![])] {
            files.add(&list);
            assert_eq!(files.added(), expect);
        }
        assert!(files.has("AGENTS.md"), "what is built in stays");
    }
}
