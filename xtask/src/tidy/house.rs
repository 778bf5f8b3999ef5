//! Checks the documents that the project and every crate must have.

use super::{Findings, Repo};

/// Documents that must exist even if no page links to them.
const PAPERS: &[&str] = &[
    "README.md",
    "ARCHITECTURE.md",
    "LICENSE-MIT",
    "LICENSE-APACHE",
    "clippy.toml",
    "rustfmt.toml",
    ".ci/run",
];

/// Maximum number of lines of ARCHITECTURE.md, which should be read in one go.
const ARCHITECTURE: usize = 300;

/// The documents exist, and ARCHITECTURE.md is short and names every crate.
pub(super) fn papers_are_there(repo: &Repo, findings: &mut Findings) {
    for paper in PAPERS.iter().filter(|paper| !repo.paths.iter().any(|path| path == *paper)) {
        findings.fail(paper, 0, "is missing");
    }
    let Some(plan) = repo.file("ARCHITECTURE.md") else { return };
    let n = plan.text.lines().count();
    if n > ARCHITECTURE {
        findings.fail(&plan.path, 0, format!("{n} lines, more than {ARCHITECTURE}"));
    }
    for folder in rooms(repo).filter(|folder| !plan.text.contains(folder)) {
        findings.fail(&plan.path, 0, format!("says nothing of {folder}"));
    }
}

/// The first page of a crate says what the crate leaves out.
pub(super) fn crates_say_what_is_absent(repo: &Repo, findings: &mut Findings) {
    for folder in rooms(repo).filter(|folder| folder.starts_with("crates/")) {
        let page = format!("{folder}/src/lib.rs");
        // A program has no first page; ARCHITECTURE.md says what it leaves out.
        let Some(file) = repo.file(&page) else { continue };
        if !file.text.lines().any(|line| line == "//! # Absent") {
            findings.fail(&page, 0, "does not say what is absent (`# Absent`)");
        }
    }
}

/// The folders of the crates of the workspace.
fn rooms(repo: &Repo) -> impl Iterator<Item = &str> {
    let manifests = repo.paths.iter().filter_map(|path| path.strip_suffix("/Cargo.toml"));
    manifests.filter(|folder| folder.starts_with("crates/") || folder.starts_with("testing/"))
}

#[cfg(test)]
mod tests {
    use super::super::check;
    use super::*;

    #[test]
    fn a_missing_paper_is_found() {
        let papers: Vec<(&str, &str)> = PAPERS.iter().map(|paper| (*paper, "")).collect();
        check(papers_are_there, &papers, &[]);
        check(papers_are_there, &papers[1..], &["README.md:0: is missing"]);
    }

    #[test]
    fn a_plan_that_is_long_or_forgets_a_room_is_found() {
        let long = "x\n".repeat(ARCHITECTURE + 1);
        let mut files: Vec<(&str, &str)> = PAPERS.iter().map(|paper| (*paper, "")).collect();
        files.extend([("ARCHITECTURE.md", &*long), ("crates/attic/Cargo.toml", "")]);
        files.retain(|(path, text)| *path != "ARCHITECTURE.md" || !text.is_empty());
        let too_long = format!("ARCHITECTURE.md:0: {} lines", ARCHITECTURE + 1);
        check(
            papers_are_there,
            &files,
            &[&too_long, "ARCHITECTURE.md:0: says nothing of crates/attic"],
        );
    }

    #[test]
    fn a_crate_that_does_not_say_what_is_absent_is_found() {
        let files = [
            ("crates/a/Cargo.toml", ""),
            ("crates/a/src/lib.rs", "//! Nouns.\n"),
            ("crates/b/Cargo.toml", ""),
            ("crates/b/src/lib.rs", "//! Nouns.\n//!\n//! # Absent\n//!\n//! Verbs.\n"),
        ];
        check(crates_say_what_is_absent, &files, &["crates/a/src/lib.rs:0: "]);
    }
}
