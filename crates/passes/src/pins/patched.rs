//! Finds what a patch changes in rule files.

use crate::rule_files::RuleFiles;

/// The text before a file's path in patches of Codex and of `diff`.
const MARKS: [&str; 4] = ["*** Update File: ", "*** Add File: ", "*** Delete File: ", "+++ b/"];

/// The rule files that a patch changes: for each its path and its part of the patch.
pub fn patched_rule_files(patch: &str, files: &RuleFiles) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    if !files.may_name(patch) {
        return found;
    }
    let mut is_in = false;
    for line in patch.lines() {
        if let Some(path) = MARKS.iter().find_map(|mark| line.strip_prefix(mark)) {
            is_in = files.has(path.trim());
            if is_in {
                found.push((path.trim().to_owned(), String::new()));
            }
        }
        let ends = line.starts_with("*** End Patch") || line.starts_with("diff --git ");
        is_in = is_in && !ends;
        if let Some((_, part)) = found.last_mut().filter(|_| is_in) {
            part.push_str(line);
            part.push('\n');
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_rule_files_are_taken() {
        let patch = "*** Begin Patch\n*** Add File: AGENTS.md\n+No tabs.\n*** Update File: a.rs\n\
                     +x\n*** Update File: sub/CLAUDE.md\n-a\n+b\n*** End Patch\n";
        let part = |path: &str, text: &str| (path.to_owned(), text.to_owned());
        let expect = [
            part("AGENTS.md", "*** Add File: AGENTS.md\n+No tabs.\n"),
            part("sub/CLAUDE.md", "*** Update File: sub/CLAUDE.md\n-a\n+b\n"),
        ];
        assert_eq!(patched_rule_files(patch, RuleFiles::built_in()), expect);
        let diff = "--- a/GEMINI.md\n+++ b/GEMINI.md\n+x\ndiff --git a/b b/b\n+++ b/b\n+y\n";
        let expect = [part("GEMINI.md", "+++ b/GEMINI.md\n+x\n")];
        assert_eq!(patched_rule_files(diff, RuleFiles::built_in()), expect);
        assert_eq!(patched_rule_files("+AGENTS.md\n", RuleFiles::built_in()), []);
    }

    #[test]
    fn a_part_may_add_a_line_that_ends_like_a_patch() {
        let part = "*** Update File: AGENTS.md\n+End it with *** End Patch\n+No tabs.\n";
        let patch = format!("*** Begin Patch\n{part}*** End Patch\n");
        let expect = [("AGENTS.md".to_owned(), part.to_owned())];
        assert_eq!(patched_rule_files(&patch, RuleFiles::built_in()), expect);
    }
}
