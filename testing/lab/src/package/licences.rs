//! The licences of everything that is linked into a package, as one text per package.
//!
//! Most licences require that their text is distributed with the program. The texts are from the
//! crates themselves; equal texts are printed once.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use serde::Deserialize;

use xtask::cargo;

/// Beginnings of names of files with licences or notices that must be distributed, in upper case.
const NAMES: [&str; 8] = [
    "LICENSE",
    "LICENCE",
    "COPYING",
    "COPYRIGHT",
    "NOTICE",
    "UNLICENSE",
    "ACKNOWLEDG",
    "THIRD-PARTY",
];

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Crate>,
}

/// A third-party crate.
#[derive(Clone, Debug, Default, Deserialize)]
struct Crate {
    name: String,
    version: String,
    license: Option<String>,
    #[serde(default)]
    authors: Vec<String>,
    repository: Option<String>,
    source: Option<String>,
    manifest_path: PathBuf,
}

/// The text for crates of this workspace as built for a target. `what` are arguments of cargo: the
/// crates and their features.
///
/// # Errors
///
/// If cargo does not report what is linked, or a crate's files cannot be read.
pub(super) fn text(target: &str, what: &[&str]) -> anyhow::Result<String> {
    let linked = linked(target, what)?;
    let line = ["cargo", "metadata", "--format-version=1", "--locked", "--filter-platform", target];
    let metadata: Metadata = serde_json::from_str(&cargo::output(&line)?)?;
    let is_linked = |it: &Crate| linked.contains(&format!("{} v{}", it.name, it.version));
    let others = metadata.packages.into_iter().filter(|it| it.source.is_some() && is_linked(it));
    let mut found = Vec::new();
    for one in others {
        let folder = one.manifest_path.parent().context("a manifest is in a folder")?;
        found.push((files(folder)?, one));
    }
    ensure!(!found.is_empty(), "cargo names no crate that is linked for {target}");
    if linked.iter().any(|name| name.starts_with("two-face ")) {
        found.extend(syntaxes());
    }
    Ok(write(&found))
}

/// The name and version of each crate that is linked. Crates with macros are left out, because they
/// run only during the build.
fn linked(target: &str, what: &[&str]) -> anyhow::Result<BTreeSet<String>> {
    let shape = ["--edges", "normal,no-proc-macro", "--prefix", "none", "--format", "{p}"];
    let line = ["cargo", "tree", "--locked", "--target", target];
    let tree = cargo::output(&[&line[..], what, &shape].concat())?;
    let name = |line: &str| line.split(' ').take(2).collect::<Vec<_>>().join(" ");
    Ok(tree.lines().map(name).filter(|name| !name.is_empty()).collect())
}

/// The syntax definitions for highlighting: data in the program, with licences of its own.
fn syntaxes() -> Vec<(Vec<String>, Crate)> {
    let listed = two_face::acknowledgement::listing();
    let needed = listed.for_syntaxes().iter().filter(|it| it.needs_acknowledgement());
    let named = needed.map(|it| {
        let name = format!("syntax definition {}", it.rel_path.display());
        let version = "as in two-face".to_owned();
        (vec![it.text.trim_end().to_owned()], Crate { name, version, ..Crate::default() })
    });
    named.collect()
}

/// The texts of the licences in a crate's folder and in the folders directly below it, where
/// bundled code is (for example `zstd` in zstd-sys).
fn files(folder: &Path) -> anyhow::Result<Vec<String>> {
    let mut found = licence_files(folder)?;
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(licence_files(&path)?);
        }
    }
    found.sort();
    let read = |path: &PathBuf| -> anyhow::Result<String> {
        let bytes = fs::read(path).with_context(|| format!("{}", path.display()))?;
        Ok(String::from_utf8_lossy(&bytes).replace("\r\n", "\n").trim_end().to_owned())
    };
    let texts: anyhow::Result<Vec<String>> = found.iter().map(read).collect();
    Ok(texts?.into_iter().filter(|text| !text.is_empty()).collect())
}

fn licence_files(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
        let is_source = [".RS", ".TOML", ".PY"].iter().any(|end| name.ends_with(end));
        if path.is_file() && !is_source && NAMES.iter().any(|begin| name.starts_with(begin)) {
            found.push(path);
        }
    }
    Ok(found)
}

/// The list of crates with their authors, followed by each licence text with the names of the
/// crates that have it.
fn write(found: &[(Vec<String>, Crate)]) -> String {
    let mut text = String::from(
        "epitome is licensed under the MIT licence or the Apache License 2.0, at your option.\n\n\
         The program also holds the crates of others that are listed here. The texts of their\n\
         licences follow the list; where a crate has none, its licence is named in the list.\n\n",
    );
    let mut crates: Vec<&(Vec<String>, Crate)> = found.iter().collect();
    crates.sort_by_key(|(_, it)| (&it.name, &it.version));
    let mut by_text: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (texts, it) in crates {
        let name = format!("{} {}", it.name, it.version);
        let licence = it.license.as_deref().unwrap_or("see its text");
        let from = it.repository.iter().map(|place| format!(", {place}"));
        let by = match texts.is_empty() && !it.authors.is_empty() {
            true => format!(", by {}", it.authors.join(", ")),
            false => String::new(),
        };
        text.push_str(&format!("- {name}: {licence}{}{by}\n", String::from_iter(from)));
        texts.iter().for_each(|it| by_text.entry(it).or_default().push(name.clone()));
    }
    for (licence, names) in by_text {
        let line = "-".repeat(80);
        text.push_str(&format!("\n{line}\n{}\n{line}\n\n{licence}\n", names.join(", ")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_printed_once_and_what_has_none_is_named() {
        let named = |name: &str| Crate {
            name: name.into(),
            version: "1.0.0".into(),
            license: Some("MIT".into()),
            authors: vec!["A. Uthor".into()],
            ..Crate::default()
        };
        let mit = || vec!["Permission is granted".to_owned()];
        let found = [(mit(), named("b")), (Vec::new(), named("c")), (mit(), named("a"))];
        let text = write(&found);
        let (_, list) = text.split_once("in the list.\n\n").expect("a list");
        let line = "-".repeat(80);
        let expect = format!(
            "- a 1.0.0: MIT\n- b 1.0.0: MIT\n- c 1.0.0: MIT, by A. Uthor\n\n\
             {line}\na 1.0.0, b 1.0.0\n{line}\n\nPermission is granted\n"
        );
        assert_eq!(list, expect);
    }

    #[test]
    fn licences_are_found_in_a_crate_and_in_what_it_includes() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = folder.path();
        fs::create_dir(place.join("vendored")).expect("a folder");
        for (name, text) in [
            ("LICENSE-MIT", "one\r\ntwo\n"),
            ("license.rs", "mod licence;"),
            ("vendored/COPYING", "three"),
            ("LICENSE-3RD-PARTY", "\n"),
            ("README", "no licence"),
        ] {
            fs::write(place.join(name), text).expect("a file");
        }
        assert_eq!(files(place).expect("they are read"), ["one\ntwo", "three"]);
    }
}
