//! `cargo xtask ci --quick`: the tests of the crates that were changed.

use std::collections::BTreeSet;
use std::fs;

use xtask::{cargo, print, say};

/// The packages whose tests depend on files in a folder. For a folder that is not listed, that is
/// the package in the folder.
const SEEN_IN: &[(&str, &[&str])] = &[
    ("docs/schema/", &["epitome-cli"]),
    ("docs/library.md", &["epitome"]),
    ("testing/fixtures/", &["fixtures", "epitome-formats", "epitome", "epitome-cli"]),
    ("fuzz/seeds/", &["properties"]),
];

/// Files that concern every package.
const EVERYWHERE: &[&str] = &["Cargo.toml", "Cargo.lock", ".cargo/"];

/// Runs the tests of what differs from the main branch, committed or not.
///
/// # Errors
///
/// If a test fails, or git does.
pub(super) fn test() -> anyhow::Result<()> {
    let files = changed()?;
    let package = |folder: &str| {
        let manifest = fs::read_to_string(cargo::root().join(folder).join("Cargo.toml")).ok()?;
        let line = manifest.lines().find_map(|line| line.strip_prefix("name = "))?;
        Some(line.trim_matches('"').to_owned())
    };
    let Some(packages) = packages(&files, package) else {
        say("every package is concerned: all tests run");
        return super::test();
    };
    if packages.is_empty() {
        say("no package was changed: no test runs");
        return Ok(());
    }
    say(&format!("changed: {}", packages.iter().cloned().collect::<Vec<_>>().join(", ")));
    let named: Vec<&str> = packages.iter().flat_map(|name| ["-p", name]).collect();
    cargo::run(&[&["cargo", "test", "--locked"][..], &named].concat(), &[])
}

/// Prints what `--quick` leaves out.
pub(super) fn leaves_out() {
    print(
        "quick leaves out: the tests of packages that were not changed (those that use a changed \
         one too),\ndoc, features, tables, chaos, deny, e2e. `cargo xtask ci` runs all",
    );
}

/// The files that differ from the main branch, including untracked ones.
fn changed() -> anyhow::Result<Vec<String>> {
    let base = ["origin/main", "main"].into_iter().find_map(|name| {
        cargo::output(&["git", "merge-base", "HEAD", name]).ok().map(|it| it.trim().to_owned())
    });
    let base = base.unwrap_or_else(|| "HEAD".to_owned());
    let differ = cargo::output(&["git", "diff", "--name-only", &base])?;
    let new = cargo::output(&["git", "ls-files", "--others", "--exclude-standard"])?;
    Ok(differ.lines().chain(new.lines()).map(str::to_owned).collect())
}

/// The packages whose tests depend on these files; `None` for all packages. `package` returns the
/// name of the package in a folder.
fn packages(
    files: &[String],
    package: impl Fn(&str) -> Option<String>,
) -> Option<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    for file in files {
        if EVERYWHERE.iter().any(|it| file == it || it.ends_with('/') && file.starts_with(it)) {
            return None;
        }
        if let Some((_, names)) = SEEN_IN.iter().find(|(folder, _)| file.starts_with(folder)) {
            found.extend(names.iter().map(|&name| name.to_owned()));
            continue;
        }
        let mut parts = file.split('/');
        let folder = match parts.next() {
            Some(first @ ("crates" | "testing")) => {
                parts.next().map(|second| format!("{first}/{second}"))
            }
            Some(first @ ("fuzz" | "xtask")) => Some(first.to_owned()),
            Some(_) | None => None,
        };
        found.extend(folder.and_then(|folder| package(&folder)));
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(files: &[&str], expect: Option<&[&str]>) {
        let files: Vec<String> = files.iter().map(|&file| file.to_owned()).collect();
        let found = packages(&files, |folder| Some(folder.replace("crates/", "epitome-")));
        let found = found.map(|it| it.into_iter().collect::<Vec<_>>());
        assert_eq!(found, expect.map(|it| it.iter().map(|&name| name.to_owned()).collect()));
    }

    #[test]
    fn the_packages_of_changed_files_are_tested() {
        check(&[], Some(&[]));
        check(&["README.md", "docs/invariants.md"], Some(&[]));
        check(&["crates/model/src/stub.rs", "crates/model/Cargo.toml"], Some(&["epitome-model"]));
        check(&["xtask/src/ci.rs"], Some(&["xtask"]));
        check(&["docs/schema/list.json"], Some(&["epitome-cli"]));
        check(&["crates/model/src/stub.rs", "Cargo.lock"], None);
    }
}
