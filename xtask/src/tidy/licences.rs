//! Checks the licences and the sources of all crates that are built in.
//!
//! `deny.toml` is the only list of what is allowed; it is read here, so that the check is the same
//! on a machine without cargo-deny.

use anyhow::Context;
use serde_json::Value;
use toml::Table;
use xtask::cargo;

use super::{Findings, Repo};

/// The rules in `deny.toml`.
struct Rules {
    licences: Vec<String>,
    banned: Vec<String>,
    registries: Vec<String>,
}

impl Rules {
    fn parse(text: &str) -> anyhow::Result<Rules> {
        let table: Table = text.parse()?;
        let list = |section: &str, name: &str| -> anyhow::Result<Vec<String>> {
            let list = table.get(section).and_then(|section| section.get(name)?.as_array());
            let list = list.with_context(|| format!("no {section}.{name}"))?;
            Ok(list.iter().filter_map(|it| Some(it.as_str()?.to_owned())).collect())
        };
        Ok(Rules {
            licences: list("licenses", "allow")?,
            banned: list("bans", "deny")?,
            registries: list("sources", "allow-registry")?,
        })
    }
}

/// Every crate that is built for this system has an allowed licence and an allowed source.
///
/// # Errors
///
/// If cargo does not report what is built, or `deny.toml` has an unexpected form.
pub(super) fn are_allowed(repo: &Repo, findings: &mut Findings) -> anyhow::Result<()> {
    let rules = repo.file("deny.toml").context("deny.toml is missing")?;
    let rules = Rules::parse(&rules.text).context("deny.toml")?;
    // Crates for other systems are not on this machine, and cargo would download them.
    let compiler = cargo::output(&["rustc", "-vV"])?;
    let host = compiler.lines().find_map(|line| line.strip_prefix("host: ")).context("no host")?;
    let line = ["cargo", "metadata", "--format-version=1", "--locked", "--filter-platform", host];
    let metadata: Value = serde_json::from_str(&cargo::output(&line)?)?;
    for package in metadata["packages"].as_array().context("cargo names no packages")? {
        judge(&rules, package, findings);
    }
    Ok(())
}

/// Checks a package as `cargo metadata` describes it. A package without a source is the project's
/// own; only its name is checked.
fn judge(rules: &Rules, package: &Value, findings: &mut Findings) {
    let name = package["name"].as_str().unwrap_or_default();
    let mut fail = |what: String| findings.fail("Cargo.lock", 0, format!("{name}: {what}"));
    if rules.banned.iter().any(|banned| banned == name) {
        fail("is not to be built in (deny.toml)".into());
    }
    let Some(source) = package["source"].as_str() else { return };
    let known = |registry: &String| source.strip_prefix("registry+") == Some(registry);
    if !rules.registries.iter().any(known) {
        fail(format!("comes from {source}"));
    }
    match package["license"].as_str() {
        Some(licence) if is_allowed(licence, &rules.licences) => {}
        Some(licence) => fail(format!("`{licence}` is not allowed by deny.toml")),
        None => fail("has no licence".into()),
    }
}

/// Whether a licence expression is allowed: `OR` needs one side, `AND` both. Nested parentheses do
/// not occur among the crates that are used, and would be refused.
fn is_allowed(expression: &str, allow: &[String]) -> bool {
    let expression = expression.replace('/', " OR ");
    let mut depth = 0;
    let outside: String = expression
        .chars()
        .map(|c| {
            depth += i32::from(c == '(') - i32::from(c == ')');
            if depth > 0 && c == ' ' { '_' } else { c }
        })
        .collect();
    let one = |licence: &str| allow.iter().any(|allowed| allowed == licence.trim());
    let part = |part: &str| match part.trim().strip_prefix('(').and_then(|it| it.strip_suffix(')'))
    {
        Some(inner) => inner.replace('_', " ").split(" OR ").any(one),
        None => one(part),
    };
    outside.split(" OR ").any(|side| side.split(" AND ").all(part))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn expressions_are_met_or_not() {
        let allow = ["MIT", "Apache-2.0", "Unicode-3.0", "Apache-2.0 WITH LLVM-exception"];
        let allow = allow.map(str::to_owned);
        let cases = [
            ("MIT", true),
            ("GPL-3.0", false),
            ("GPL-3.0 OR MIT", true),
            ("GPL-3.0 AND MIT", false),
            ("MIT/Apache-2.0", true),
            ("(MIT OR Apache-2.0) AND Unicode-3.0", true),
            ("(MIT OR GPL-3.0) AND GPL-3.0", false),
            ("Apache-2.0 WITH LLVM-exception OR GPL-3.0", true),
            ("", false),
        ];
        for (expression, expect) in cases {
            assert_eq!(is_allowed(expression, &allow), expect, "{expression}");
        }
    }

    #[test]
    fn foreign_sources_and_banned_crates_are_found() {
        let rules = "licenses.allow = ['MIT']\nbans.deny = ['curl']\n\
                     sources.allow-registry = ['https://crates']";
        let rules = Rules::parse(rules).expect("rules");
        let crates = "registry+https://crates";
        let cases = [
            (json!({ "name": "a", "license": "MIT", "source": null }), 0),
            (json!({ "name": "a", "license": "MIT", "source": crates }), 0),
            (json!({ "name": "a", "license": "MIT", "source": "registry+https://elsewhere" }), 1),
            (json!({ "name": "a", "license": "MIT", "source": "git+https://crates" }), 1),
            (json!({ "name": "a", "license": "GPL-3.0", "source": crates }), 1),
            (json!({ "name": "a", "license": null, "source": crates }), 1),
            (json!({ "name": "curl", "license": "MIT", "source": crates }), 1),
        ];
        for (package, n) in cases {
            let mut findings = Findings::default();
            judge(&rules, &package, &mut findings);
            assert_eq!(findings.0.len(), n, "{package}");
        }
    }
}
