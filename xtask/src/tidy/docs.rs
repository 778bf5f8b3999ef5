//! Checks the references in documents.

use super::{Findings, Repo};

/// Links between documents lead to existing files.
pub(super) fn links_lead_somewhere(repo: &Repo, findings: &mut Findings) {
    for file in repo.files.iter().filter(|file| file.path.ends_with(".md")) {
        for (line, text) in file.lines() {
            for target in links(text) {
                let path = joined(&file.path, target.split('#').next().unwrap_or(target));
                let folder = format!("{path}/");
                let found = |known: &String| *known == path || known.starts_with(&folder);
                if !path.is_empty() && !repo.paths.iter().any(found) {
                    findings.fail(&file.path, line, format!("`{target}` leads nowhere"));
                }
            }
        }
    }
}

/// A test that a document names, as `folder/file.rs::name`, exists.
pub(super) fn tests_that_are_named_exist(repo: &Repo, findings: &mut Findings) {
    for file in repo.files.iter().filter(|file| file.path.ends_with(".md")) {
        for (line, text) in file.lines() {
            let code = text.split('`').skip(1).step_by(2);
            for (path, name) in code.filter_map(|code| code.split_once(".rs::")) {
                let path = format!("{path}.rs");
                let has = |text: &str| {
                    text.contains(&format!("fn {name}(")) || text.contains(&format!("fn {name}<"))
                };
                if !repo.file(&path).is_some_and(|file| has(&file.text)) {
                    findings.fail(&file.path, line, format!("there is no `{path}::{name}`"));
                }
            }
        }
    }
}

/// The targets of links that stay in the repository.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    targets.filter(|target| !target.contains("://") && !target.starts_with(['#', '<']))
}

/// A path relative to the folder of `page`.
fn joined(page: &str, target: &str) -> String {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in target.trim_end_matches('/').split('/') {
        match part {
            "." | "" => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    if target.is_empty() { String::new() } else { parts.join("/") }
}

#[cfg(test)]
mod tests {
    use super::super::check;
    use super::*;

    #[test]
    fn a_link_that_leads_nowhere_is_found() {
        let files = [
            ("docs/a.md", "[b](b.md) [up](../README.md#x) [c](formats/) [w](https://x.y) [h](#h)"),
            ("README.md", "see [gone](docs/gone.md)\n[a](docs/a.md)"),
            ("docs/b.md", ""),
            ("docs/formats/pi.md", ""),
        ];
        check(links_lead_somewhere, &files, &["README.md:1: `docs/gone.md`"]);
    }

    #[test]
    fn a_test_that_is_not_there_is_found() {
        let files = [
            ("docs/invariants.md", "`a/b.rs::holds` and `a/b.rs::gone`\n`c.rs::x`, `b.rs`"),
            ("a/b.rs", "#[test]\nfn holds() {}\n"),
        ];
        let expect =
            ["docs/invariants.md:1: there is no `a/b.rs::gone`", "docs/invariants.md:2: there"];
        check(tests_that_are_named_exist, &files, &expect);
    }
}
