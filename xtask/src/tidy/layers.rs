//! The layers of the crates, and which crate may depend on which.

use toml::{Table, Value};

use super::{Findings, Repo};

/// A crate: what it may depend on, and what its tests may use in addition.
struct Crate {
    name: &'static str,
    /// 1 is the lowest. Crates of one layer do not depend on each other.
    layer: u8,
    on: &'static [&'static str],
    tests: &'static [&'static str],
}

/// The layer of what is not part of the product: recorded sessions, real agents, checks.
const OUTSIDE: u8 = u8::MAX;

/// Every crate and every dependency that is allowed. A new one is added here first.
const LAYERS: &[Crate] = &[
    Crate { name: "epitome-model", layer: 1, on: &[], tests: &[] },
    Crate { name: "epitome-error", layer: 1, on: &[], tests: &[] },
    Crate { name: "epitome-json", layer: 2, on: &[MODEL], tests: &[] },
    Crate { name: "epitome-passes", layer: 2, on: &[MODEL], tests: &["fixtures", "samples"] },
    Crate { name: "epitome-tokens", layer: 2, on: &[MODEL], tests: &["fixtures"] },
    Crate { name: "epitome-render", layer: 2, on: &[MODEL], tests: &["fixtures", "samples"] },
    Crate { name: "epitome-redact", layer: 2, on: &[MODEL], tests: &["fixtures"] },
    Crate { name: "epitome-api", layer: 3, on: &[MODEL, JSON], tests: &[] },
    Crate {
        name: "epitome-measure",
        layer: 3,
        on: &[MODEL, JSON, "epitome-passes"],
        tests: &["samples"],
    },
    Crate { name: "epitome-formats", layer: 4, on: &[MODEL, JSON, API], tests: &["fixtures"] },
    Crate {
        name: "epitome-engine",
        layer: 5,
        on: &[MODEL, ERROR, API, "epitome-formats", "epitome-passes", "epitome-tokens"],
        tests: &["fixtures", "samples"],
    },
    Crate {
        name: "epitome-llm",
        layer: 6,
        on: &[MODEL, ENGINE, API, "epitome-passes"],
        tests: &["fixtures", "model-server"],
    },
    Crate {
        name: "epitome-store",
        layer: 6,
        on: &[MODEL, ERROR, "epitome-formats"],
        tests: &["fixtures"],
    },
    Crate {
        name: "epitome-agents",
        layer: 7,
        on: &[MODEL, ERROR, "epitome-formats", STORE],
        tests: &["fixtures"],
    },
    Crate { name: "epitome", layer: 8, on: BELOW_DRIVER, tests: &["fixtures", "model-server"] },
    Crate { name: "epitome-search", layer: 9, on: BELOW_SEARCH, tests: &["fixtures"] },
    Crate { name: "epitome-web", layer: 10, on: BELOW_WEB, tests: &["fixtures"] },
    Crate { name: "epitome-chat", layer: 10, on: BELOW_CHAT, tests: &[] },
    Crate { name: "epitome-cli", layer: 11, on: BELOW_CLI, tests: &["fixtures", "model-server"] },
    Crate { name: "fixtures", layer: OUTSIDE, on: &[], tests: &[] },
    Crate { name: "samples", layer: OUTSIDE, on: &[MODEL], tests: &[] },
    Crate { name: "model-server", layer: OUTSIDE, on: &[], tests: &[] },
    Crate { name: "agents", layer: OUTSIDE, on: &["model-server"], tests: &["fixtures"] },
    Crate { name: "browser", layer: OUTSIDE, on: &["agents"], tests: &["fixtures"] },
    Crate { name: "properties", layer: OUTSIDE, on: WHOLE_PRODUCT, tests: &[] },
    Crate {
        name: "chaos",
        layer: OUTSIDE,
        on: &["epitome-formats", "fixtures", "properties"],
        tests: &[],
    },
    Crate { name: "xtask", layer: OUTSIDE, on: &[], tests: &[] },
    Crate { name: "lab", layer: OUTSIDE, on: LAB, tests: &[] },
];

const MODEL: &str = "epitome-model";
const JSON: &str = "epitome-json";
const API: &str = "epitome-api";
const ERROR: &str = "epitome-error";
const ENGINE: &str = "epitome-engine";
const MEASURE: &str = "epitome-measure";
const STORE: &str = "epitome-store";
const REDACT: &str = "epitome-redact";
const AGENTS: &str = "epitome-agents";
const SEARCH: &str = "epitome-search";
const LLM: &str = "epitome-llm";
const CHAT: &str = "epitome-chat";
const BELOW_DRIVER: &[&str] = &[
    MODEL,
    MEASURE,
    API,
    ERROR,
    "epitome-formats",
    "epitome-passes",
    "epitome-tokens",
    "epitome-render",
    REDACT,
    ENGINE,
    STORE,
    AGENTS,
    LLM,
];
const BELOW_SEARCH: &[&str] =
    &[MODEL, ERROR, STORE, AGENTS, "epitome-formats", "epitome-render", REDACT, "epitome"];
const BELOW_WEB: &[&str] = &[
    MODEL,
    ERROR,
    ENGINE,
    STORE,
    AGENTS,
    "epitome-formats",
    "epitome-passes",
    "epitome-tokens",
    "epitome-render",
    REDACT,
    LLM,
    "epitome",
    SEARCH,
];
const BELOW_CHAT: &[&str] = &[
    MODEL,
    API,
    ERROR,
    ENGINE,
    "epitome-passes",
    "epitome-tokens",
    "epitome-render",
    LLM,
    "epitome",
];
const BELOW_CLI: &[&str] = &[
    CHAT,
    MODEL,
    API,
    ERROR,
    ENGINE,
    STORE,
    AGENTS,
    "epitome-formats",
    "epitome-passes",
    "epitome-tokens",
    "epitome-render",
    REDACT,
    LLM,
    "epitome",
    SEARCH,
    "epitome-web",
];
const WHOLE_PRODUCT: &[&str] = &[
    MODEL,
    JSON,
    API,
    ERROR,
    ENGINE,
    STORE,
    AGENTS,
    "epitome-formats",
    "epitome-passes",
    "epitome-tokens",
    "epitome-render",
    "epitome-redact",
    LLM,
    "epitome",
    SEARCH,
    "epitome-web",
    "fixtures",
];
const LAB: &[&str] = &[
    MODEL,
    ERROR,
    ENGINE,
    STORE,
    AGENTS,
    "epitome-formats",
    "epitome-passes",
    "epitome-tokens",
    "epitome-redact",
    LLM,
    "epitome",
    SEARCH,
    "epitome-web",
    "fixtures",
    "agents",
    "browser",
    "chaos",
    "xtask",
];

/// The highest layer that does no input or output.
const PURE: u8 = 5;
/// What the library of such a crate begins with.
const LINT: &str = "#![deny(clippy::disallowed_methods, clippy::disallowed_types)]";

/// A crate of the workspace depends only on those that its line in [`LAYERS`] names.
pub(super) fn dependencies_go_down(repo: &Repo, findings: &mut Findings) {
    for (path, manifest) in manifests(repo) {
        let Some(name) = name(&manifest) else { continue };
        let Some(it) = LAYERS.iter().find(|it| it.name == name) else {
            findings.fail(path, 0, format!("{name} has no layer: give it a line in LAYERS"));
            continue;
        };
        let tables: [(&str, &[&str]); 3] =
            [("dependencies", &[]), ("build-dependencies", &[]), ("dev-dependencies", it.tests)];
        for (table, more) in tables {
            let allowed = [more, it.on].concat();
            for dependency in dependencies(&manifest, table) {
                if is_ours(&dependency) && !allowed.contains(&&*dependency) {
                    let what = format!("{name} may not depend on {dependency} ({table})");
                    findings.fail(path, 0, what);
                }
            }
        }
        let inherits = manifest.get("lints").and_then(|lints| lints.get("workspace"));
        if inherits != Some(&Value::Boolean(true)) {
            findings.fail(path, 0, "the lints of the workspace are not switched on");
        }
    }
}

/// Crates of the layers without input and output deny the lint that names it.
pub(super) fn pure_layers_deny_io(repo: &Repo, findings: &mut Findings) {
    for (path, manifest) in manifests(repo) {
        let Some(name) = name(&manifest) else { continue };
        let is_pure = LAYERS.iter().any(|it| it.name == name && it.layer <= PURE);
        let library = path.replace("Cargo.toml", "src/lib.rs");
        let denies = repo.file(&library).is_some_and(|file| file.text.contains(LINT));
        if is_pure && !denies {
            findings.fail(&library, 0, format!("layers 1 to {PURE} do no IO: {LINT}"));
        }
    }
}

fn is_ours(name: &str) -> bool {
    LAYERS.iter().any(|it| it.name == name)
}

/// The crates of the workspace.
fn manifests(repo: &Repo) -> impl Iterator<Item = (&str, Table)> {
    let files = repo
        .files
        .iter()
        .filter(|file| file.path.ends_with("/Cargo.toml") && !file.path.starts_with("fuzz/"));
    files.filter_map(|file| Some((&*file.path, file.text.parse().ok()?)))
}

fn name(manifest: &Table) -> Option<String> {
    Some(manifest.get("package")?.get("name")?.as_str()?.to_owned())
}

/// The packages of a table of dependencies, those for one system only included.
fn dependencies(manifest: &Table, table: &str) -> Vec<String> {
    let targets = manifest.get("target").and_then(Value::as_table).into_iter().flatten();
    let tables = targets.filter_map(|(_, target)| target.get(table));
    let tables = manifest.get(table).into_iter().chain(tables).filter_map(Value::as_table);
    let named = |(name, value): (&String, &Value)| {
        let package = value.get("package").and_then(Value::as_str);
        package.unwrap_or(name).to_owned()
    };
    tables.flatten().map(named).collect()
}

#[cfg(test)]
mod tests {
    use super::super::check;
    use super::*;

    fn manifest(name: &str, tables: &str) -> String {
        format!("[package]\nname = \"{name}\"\n[lints]\nworkspace = true\n{tables}")
    }

    #[test]
    fn no_dependency_in_the_table_goes_up_or_sideways() {
        let layer = |name: &str| LAYERS.iter().find(|it| it.name == name).map(|it| it.layer);
        for it in LAYERS.iter().filter(|it| it.layer != OUTSIDE) {
            for on in it.on {
                assert!(layer(on) < Some(it.layer), "{} on {on}", it.name);
            }
        }
    }

    #[test]
    fn a_dependency_that_is_not_in_the_table_is_found() {
        let cases = [
            ("epitome-model", "[dependencies]\nepitome-formats.workspace = true", 1),
            ("epitome-passes", "[dependencies]\nepitome-formats = { path = \"x\" }", 1),
            ("epitome-formats", "[dependencies]\nfixtures.workspace = true", 1),
            ("epitome-formats", "[dev-dependencies]\nfixtures.workspace = true", 0),
            ("epitome-tokens", "[dev-dependencies]\nepitome.workspace = true", 1),
            ("epitome-tokens", "[dependencies]\nx = { package = \"epitome\", path = \".\" }", 1),
            ("epitome-tokens", "[target.'cfg(unix)'.dependencies]\nepitome.workspace = true", 1),
            ("epitome", "[dependencies]\nepitome-formats.workspace = true\nserde = \"1\"", 0),
            ("newcomer", "", 1),
        ];
        for (name, tables, n) in cases {
            let text = manifest(name, tables);
            let expect = vec!["crates/x/Cargo.toml:0: "; n];
            check(dependencies_go_down, &[("crates/x/Cargo.toml", &text)], &expect);
        }
    }

    #[test]
    fn a_pure_crate_without_the_lint_is_found() {
        let text = manifest("epitome-model", "");
        let files = [("crates/model/Cargo.toml", &*text), ("crates/model/src/lib.rs", "//! Nouns")];
        check(pure_layers_deny_io, &files, &["crates/model/src/lib.rs:0: layers 1"]);
        let denied = [files[0], ("crates/model/src/lib.rs", LINT)];
        check(pure_layers_deny_io, &denied, &[]);
    }
}
