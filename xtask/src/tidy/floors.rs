//! The floors of the house, and the arrows between its rooms.

use toml::{Table, Value};

use super::{Findings, Repo};

/// A room: what it may be built on, and what its tests may use beside.
struct Room {
    name: &'static str,
    /// 1 is the lowest. Rooms on one floor do not know each other.
    floor: u8,
    on: &'static [&'static str],
    tests: &'static [&'static str],
}

/// The floor of what stands beside the house: recorded sessions, real agents, checks.
const BESIDE: u8 = u8::MAX;

/// Every room and every arrow that is allowed. A new one is made here first.
const ROOMS: &[Room] = &[
    Room { name: "epitome-model", floor: 1, on: &[], tests: &[] },
    Room { name: "epitome-error", floor: 1, on: &[], tests: &[] },
    Room { name: "epitome-formats", floor: 2, on: &[MODEL], tests: &["fixtures"] },
    Room { name: "epitome-passes", floor: 2, on: &[MODEL], tests: &["fixtures", "samples"] },
    Room { name: "epitome-tokens", floor: 2, on: &[MODEL], tests: &["fixtures"] },
    Room { name: "epitome-render", floor: 2, on: &[MODEL], tests: &["fixtures", "samples"] },
    Room { name: "epitome-redact", floor: 2, on: &[MODEL], tests: &["fixtures"] },
    Room {
        name: "epitome-engine",
        floor: 3,
        on: &[MODEL, ERROR, "epitome-formats", "epitome-passes", "epitome-tokens"],
        tests: &["fixtures"],
    },
    Room {
        name: "epitome-llm",
        floor: 4,
        on: &[MODEL, ENGINE, "epitome-formats", "epitome-passes"],
        tests: &["fixtures", "model-server"],
    },
    Room {
        name: "epitome-store",
        floor: 5,
        on: &[MODEL, ERROR, "epitome-formats"],
        tests: &["fixtures"],
    },
    Room { name: "epitome", floor: 6, on: BELOW_DRIVER, tests: &["fixtures", "model-server"] },
    Room { name: "epitome-web", floor: 7, on: BELOW_WEB, tests: &["fixtures"] },
    Room { name: "epitome-cli", floor: 8, on: BELOW_CLI, tests: &["fixtures", "model-server"] },
    Room { name: "fixtures", floor: BESIDE, on: &[], tests: &[] },
    Room { name: "samples", floor: BESIDE, on: &[MODEL], tests: &[] },
    Room { name: "model-server", floor: BESIDE, on: &[], tests: &[] },
    Room { name: "agents", floor: BESIDE, on: &["model-server"], tests: &["fixtures"] },
    Room { name: "browser", floor: BESIDE, on: &["agents"], tests: &["fixtures"] },
    Room { name: "properties", floor: BESIDE, on: WHOLE_HOUSE, tests: &[] },
    Room {
        name: "chaos",
        floor: BESIDE,
        on: &["epitome-formats", "fixtures", "properties"],
        tests: &[],
    },
    Room { name: "xtask", floor: BESIDE, on: XTASK, tests: &[] },
];

const MODEL: &str = "epitome-model";
const ERROR: &str = "epitome-error";
const ENGINE: &str = "epitome-engine";
const STORE: &str = "epitome-store";
const REDACT: &str = "epitome-redact";
const LLM: &str = "epitome-llm";
const BELOW_DRIVER: &[&str] = &[
    MODEL,
    ERROR,
    "epitome-formats",
    "epitome-passes",
    "epitome-tokens",
    "epitome-render",
    REDACT,
    ENGINE,
    STORE,
    LLM,
];
const BELOW_WEB: &[&str] = &[
    MODEL,
    ERROR,
    ENGINE,
    STORE,
    "epitome-formats",
    "epitome-passes",
    "epitome-tokens",
    "epitome-render",
    REDACT,
    LLM,
    "epitome",
];
const BELOW_CLI: &[&str] = &[
    MODEL,
    ERROR,
    ENGINE,
    STORE,
    "epitome-formats",
    "epitome-passes",
    "epitome-tokens",
    "epitome-render",
    REDACT,
    LLM,
    "epitome",
    "epitome-web",
];
const WHOLE_HOUSE: &[&str] = &[
    MODEL,
    ERROR,
    ENGINE,
    STORE,
    "epitome-formats",
    "epitome-passes",
    "epitome-tokens",
    "epitome-render",
    "epitome-redact",
    LLM,
    "epitome",
    "epitome-web",
    "fixtures",
];
const XTASK: &[&str] = &[
    MODEL,
    ERROR,
    ENGINE,
    STORE,
    "epitome-formats",
    "epitome-passes",
    "epitome-tokens",
    "epitome-redact",
    LLM,
    "epitome",
    "epitome-web",
    "fixtures",
    "agents",
    "browser",
    "chaos",
];

/// The highest floor that does no input or output.
const PURE: u8 = 3;
/// What a crate of these floors begins with.
const WALL: &str = "#![deny(clippy::disallowed_methods, clippy::disallowed_types)]";

/// A crate of the workspace depends only on those that its line in [`ROOMS`] names.
pub(super) fn arrows_go_down(repo: &Repo, findings: &mut Findings) {
    for (path, manifest) in manifests(repo) {
        let Some(name) = name(&manifest) else { continue };
        let Some(room) = ROOMS.iter().find(|room| room.name == name) else {
            findings.fail(path, 0, format!("{name} has no floor: give it a line in ROOMS"));
            continue;
        };
        let tables: [(&str, &[&str]); 3] =
            [("dependencies", &[]), ("build-dependencies", &[]), ("dev-dependencies", room.tests)];
        for (table, more) in tables {
            let allowed = [more, room.on].concat();
            for dependency in dependencies(&manifest, table) {
                if is_ours(&dependency) && !allowed.contains(&&*dependency) {
                    let what = format!("{name} may not know {dependency} ({table})");
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

/// Crates of the floors without input and output switch the lint on that names it.
pub(super) fn pure_floors_are_walled(repo: &Repo, findings: &mut Findings) {
    for (path, manifest) in manifests(repo) {
        let Some(name) = name(&manifest) else { continue };
        let is_pure = ROOMS.iter().any(|room| room.name == name && room.floor <= PURE);
        let library = path.replace("Cargo.toml", "src/lib.rs");
        let walled = repo.file(&library).is_some_and(|file| file.text.contains(WALL));
        if is_pure && !walled {
            findings.fail(&library, 0, format!("floors 1 to {PURE} do no IO: {WALL}"));
        }
    }
}

fn is_ours(name: &str) -> bool {
    ROOMS.iter().any(|room| room.name == name)
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
    fn no_arrow_in_the_table_goes_up_or_sideways() {
        let floor = |name: &str| ROOMS.iter().find(|room| room.name == name).map(|room| room.floor);
        for room in ROOMS.iter().filter(|room| room.floor != BESIDE) {
            for on in room.on {
                assert!(floor(on) < Some(room.floor), "{} on {on}", room.name);
            }
        }
    }

    #[test]
    fn an_arrow_that_is_not_in_the_table_is_found() {
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
            check(arrows_go_down, &[("crates/x/Cargo.toml", &text)], &expect);
        }
    }

    #[test]
    fn a_pure_crate_without_its_wall_is_found() {
        let text = manifest("epitome-model", "");
        let files = [("crates/model/Cargo.toml", &*text), ("crates/model/src/lib.rs", "//! Nouns")];
        check(pure_floors_are_walled, &files, &["crates/model/src/lib.rs:0: floors 1"]);
        let walled = [files[0], ("crates/model/src/lib.rs", WALL)];
        check(pure_floors_are_walled, &walled, &[]);
    }
}
