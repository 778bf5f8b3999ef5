//! `cargo xtask tidy`: checks the project's rules that no compiler checks.
//!
//! Checks are functions of the [`Repo`], which holds the tracked files in memory: their tests are
//! tables. A check reports [`Finding`]s; all checks run to their ends.

mod dialect;
mod docs;
mod forbidden;
mod house;
mod layers;
mod licences;
mod lines;
mod modules;

use anyhow::{Context, ensure};

use xtask::{cargo, print, say};

/// A tracked file that is text.
#[derive(Clone, Debug)]
struct File {
    /// The path of the file in the repository, with `/` between folders.
    path: String,
    text: String,
}

/// The tracked files.
struct Repo {
    files: Vec<File>,
    /// All paths, including those of files that are not text.
    paths: Vec<String>,
}

/// A violation of a rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Finding {
    level: Level,
    path: String,
    /// The line, from 1; 0 if the finding concerns the whole file.
    line: usize,
    what: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Fail,
    Warn,
}

/// A list of findings.
#[derive(Default)]
struct Findings(Vec<Finding>);

impl Findings {
    fn fail(&mut self, path: &str, line: usize, what: impl Into<String>) {
        self.add(Level::Fail, path, line, what.into());
    }

    fn warn(&mut self, path: &str, line: usize, what: impl Into<String>) {
        self.add(Level::Warn, path, line, what.into());
    }

    fn add(&mut self, level: Level, path: &str, line: usize, what: String) {
        self.0.push(Finding { level, path: path.into(), line, what });
    }
}

type Check = fn(&Repo, &mut Findings);

const CHECKS: &[Check] = &[
    layers::dependencies_go_down,
    layers::pure_layers_deny_io,
    modules::modules_form_no_circles,
    lines::files_are_short,
    lines::lines_fit,
    lines::functions_are_short,
    forbidden::names_say_what_things_are,
    forbidden::nothing_is_left_undone,
    forbidden::no_machine_is_named,
    dialect::words_are_of_the_field,
    house::papers_are_there,
    house::crates_say_what_is_absent,
    docs::links_lead_somewhere,
    docs::tests_that_are_named_exist,
];

/// Runs every check.
///
/// # Errors
///
/// If there are findings, or git or cargo fails.
pub(crate) fn run() -> anyhow::Result<()> {
    let repo = Repo::open()?;
    let mut findings = Findings::default();
    for check in CHECKS {
        check(&repo, &mut findings);
    }
    licences::are_allowed(&repo, &mut findings)?;
    let mut findings = findings.0;
    findings.sort();
    for Finding { level, path, line, what } in &findings {
        let level = if *level == Level::Fail { "error" } else { "warning" };
        say(&format!("{level}: {path}:{line}: {what}"));
    }
    let n = findings.iter().filter(|finding| finding.level == Level::Fail).count();
    ensure!(n == 0, "{n} things are untidy");
    print(&format!("tidy: {} files, {} warnings", repo.paths.len(), findings.len()));
    Ok(())
}

impl Repo {
    fn open() -> anyhow::Result<Repo> {
        let listed = cargo::output(&["git", "ls-files", "-z"]).context("cannot list the files")?;
        let paths: Vec<String> =
            listed.split('\0').filter(|path| !path.is_empty()).map(str::to_owned).collect();
        let mut files = Vec::new();
        for path in &paths {
            // Files that are deleted but not committed, and files that are not text, are left out.
            let bytes = std::fs::read(cargo::root().join(path)).unwrap_or_default();
            if let Ok(text) = String::from_utf8(bytes) {
                files.push(File { path: path.clone(), text });
            }
        }
        Ok(Repo { files, paths })
    }

    #[cfg(test)]
    fn from_files(files: &[(&str, &str)]) -> Repo {
        let file = |(path, text): &(&str, &str)| File {
            path: (*path).to_owned(),
            text: (*text).to_owned(),
        };
        let paths = files.iter().map(|(path, _)| (*path).to_owned()).collect();
        Repo { files: files.iter().map(file).collect(), paths }
    }

    fn file(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }

    fn rust(&self) -> impl Iterator<Item = &File> {
        self.files.iter().filter(|file| file.path.ends_with(".rs"))
    }
}

impl File {
    /// Lines with their numbers, from 1.
    fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        (1..).zip(self.text.lines())
    }

    /// Lines with their numbers, from 1, without the texts of inline snapshots: a program printed
    /// these texts.
    fn written_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        let mut end_mark: Option<String> = None;
        self.lines().filter(move |(_, line)| {
            if let Some(mark) = &end_mark {
                if !line.trim_start().starts_with(mark) {
                    return false;
                }
                end_mark = None;
            } else {
                end_mark = end_of_snapshot(line);
            }
            true
        })
    }
}

/// How the last line of an inline snapshot begins, if one opens at the end of this line.
fn end_of_snapshot(line: &str) -> Option<String> {
    let (_, opening) = line.rsplit_once("@r")?;
    let hashes = opening.strip_suffix('"')?;
    hashes.chars().all(|c| c == '#').then(|| format!("\"{hashes})"))
}

/// Checks that the findings in these files, as `path:line: what` and sorted, begin with `expect`.
#[cfg(test)]
fn check(check: Check, files: &[(&str, &str)], expect: &[&str]) {
    let mut findings = Findings::default();
    check(&Repo::from_files(files), &mut findings);
    let mut found: Vec<String> = (findings.0.iter())
        .map(|Finding { path, line, what, .. }| format!("{path}:{line}: {what}"))
        .collect();
    found.sort();
    assert_eq!(found.len(), expect.len(), "{found:?}");
    for (found, expect) in found.iter().zip(expect) {
        assert!(found.starts_with(expect), "{found:?} for {expect:?}");
    }
}
