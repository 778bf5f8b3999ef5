//! Checks the layers of the crates, which are numbered in ARCHITECTURE.md.

use std::collections::BTreeMap;

use toml::{Table, Value};

use super::{Findings, Repo};

/// The page with the table: lines with the number of a layer, followed by its crates.
const PAGE: &str = "ARCHITECTURE.md";
/// The layer that tests of every crate may use, in addition to the layers below their own.
const FOR_TESTS: u8 = 12;
/// The highest layer that does no input or output.
const PURE: u8 = 5;
/// The lint that the library of a crate without input and output must have.
const LINT: &str = "#![deny(clippy::disallowed_methods, clippy::disallowed_types)]";

/// A crate of the workspace depends only on those of lower layers.
pub(super) fn dependencies_go_down(repo: &Repo, findings: &mut Findings) {
    let layers = layers(repo);
    let manifests: Vec<(&str, Table)> = manifests(repo).collect();
    let layer = |folder: &str| layers.get(folder).copied();
    let of_package: BTreeMap<&str, u8> = manifests
        .iter()
        .filter_map(|(folder, manifest)| Some((name(manifest)?, layer(folder)?)))
        .collect();
    for (folder, manifest) in &manifests {
        let path = format!("{folder}/Cargo.toml");
        let Some(layer) = layer(folder) else {
            findings.fail(&path, 0, format!("{folder} has no layer in {PAGE}"));
            continue;
        };
        for table in ["dependencies", "build-dependencies", "dev-dependencies"] {
            for dependency in dependencies(manifest, table) {
                let Some(&other) = of_package.get(dependency) else { continue };
                let is_for_tests = table == "dev-dependencies" && other == FOR_TESTS;
                if other >= layer && !is_for_tests {
                    let what = format!("layer {layer} may not depend on {dependency} of {other}");
                    findings.fail(&path, 0, what);
                }
            }
        }
        let inherits = manifest.get("lints").and_then(|lints| lints.get("workspace"));
        if inherits != Some(&Value::Boolean(true)) {
            findings.fail(&path, 0, "the lints of the workspace are not switched on");
        }
    }
}

/// Crates of the layers without input and output must have the lint `LINT`.
pub(super) fn pure_layers_deny_io(repo: &Repo, findings: &mut Findings) {
    for (folder, _) in layers(repo).into_iter().filter(|(_, layer)| *layer <= PURE) {
        let library = format!("{folder}/src/lib.rs");
        if !repo.file(&library).is_some_and(|file| file.text.contains(LINT)) {
            findings.fail(&library, 0, format!("layers 1 to {PURE} do no IO: {LINT}"));
        }
    }
}

/// The layer of each folder that the page names. 1 is the lowest.
fn layers(repo: &Repo) -> BTreeMap<&str, u8> {
    let mut layers = BTreeMap::new();
    for line in repo.file(PAGE).into_iter().flat_map(|page| page.text.lines()) {
        let mut words = line.split_whitespace();
        let Some(layer) = words.next().and_then(|word| word.parse().ok()) else { continue };
        layers.extend(words.take_while(|word| is_folder(word)).map(|folder| (folder, layer)));
    }
    layers
}

fn is_folder(word: &str) -> bool {
    word == "xtask" || word.starts_with("crates/") || word.starts_with("testing/")
}

/// The crates of the workspace: their folders and manifests.
fn manifests(repo: &Repo) -> impl Iterator<Item = (&str, Table)> {
    repo.files.iter().filter_map(|file| {
        let folder = file.path.strip_suffix("/Cargo.toml").filter(|folder| is_folder(folder))?;
        Some((folder, file.text.parse().ok()?))
    })
}

fn name(manifest: &Table) -> Option<&str> {
    manifest.get("package")?.get("name")?.as_str()
}

/// The packages in a table of dependencies, including those for one system only.
fn dependencies<'a>(manifest: &'a Table, table: &str) -> Vec<&'a str> {
    let targets = manifest.get("target").and_then(Value::as_table).into_iter().flatten();
    let tables = targets.filter_map(|(_, target)| target.get(table));
    let tables = manifest.get(table).into_iter().chain(tables).filter_map(Value::as_table);
    let package = |(name, value): (&'a String, &'a Value)| {
        value.get("package").and_then(Value::as_str).unwrap_or(name)
    };
    tables.flatten().map(package).collect()
}

#[cfg(test)]
mod tests {
    use super::super::check;
    use super::*;

    const TABLE: &str = "1. No row\n
        12  testing/fixtures                data
         2  crates/json  crates/passes      json
         1  crates/model                    nouns";

    fn manifest(name: &str, tables: &str) -> String {
        format!("[package]\nname = \"{name}\"\n[lints]\nworkspace = true\n{tables}")
    }

    #[test]
    fn a_dependency_that_goes_up_or_sideways_is_found() {
        let [model, passes, fixtures] =
            ["epitome-model", "epitome-passes", "fixtures"].map(|name| manifest(name, ""));
        let cases = [
            ("[dependencies]\nepitome-model.workspace = true\nserde = \"1\"", 0),
            ("[dependencies]\nepitome-passes = { path = \"x\" }", 1),
            ("[dependencies]\nfixtures.workspace = true", 1),
            ("[dev-dependencies]\nfixtures.workspace = true", 0),
            ("[dev-dependencies]\nepitome-passes.workspace = true", 1),
            ("[dependencies]\nx = { package = \"fixtures\", path = \".\" }", 1),
            ("[target.'cfg(unix)'.dependencies]\nfixtures.workspace = true", 1),
        ];
        for (tables, n) in cases {
            let files = [
                (PAGE, TABLE),
                ("crates/json/Cargo.toml", &manifest("epitome-json", tables)),
                ("crates/model/Cargo.toml", &model),
                ("crates/passes/Cargo.toml", &passes),
                ("testing/fixtures/Cargo.toml", &fixtures),
            ];
            check(dependencies_go_down, &files, &vec!["crates/json/Cargo.toml:0: layer 2 may"; n]);
        }
    }

    #[test]
    fn a_crate_without_a_layer_or_without_lints_is_found() {
        let files = [
            (PAGE, TABLE),
            ("crates/json/Cargo.toml", "[package]\nname = \"json\""),
            ("xtask/Cargo.toml", &manifest("xtask", "")),
        ];
        let expect = ["crates/json/Cargo.toml:0: the lints", "xtask/Cargo.toml:0: xtask has no"];
        check(dependencies_go_down, &files, &expect);
    }

    #[test]
    fn a_pure_crate_without_the_lint_is_found() {
        let page = (PAGE, "     1  crates/model    nouns");
        let library = "crates/model/src/lib.rs";
        check(pure_layers_deny_io, &[page, (library, "//! Nouns")], &[&format!("{library}:0: ")]);
        check(pure_layers_deny_io, &[page, (library, LINT)], &[]);
    }
}
