//! Under which licences the crates come that are built in, and from where.
//!
//! `deny.toml` is the one list; this reads it, so that a machine without cargo-deny holds the same
//! line.

use anyhow::Context;
use serde::Deserialize;

use super::{Findings, Repo};
use crate::cargo;

#[derive(Deserialize)]
struct Deny {
    licenses: Licenses,
    bans: Bans,
    sources: Sources,
}

#[derive(Deserialize)]
struct Licenses {
    allow: Vec<String>,
}

#[derive(Deserialize)]
struct Bans {
    deny: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Sources {
    allow_registry: Vec<String>,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    license: Option<String>,
    /// Nothing: it is ours.
    source: Option<String>,
}

/// Every crate that is built for this system has a licence that is allowed, and comes from where
/// crates come from.
///
/// # Errors
///
/// When cargo does not say what is built, or `deny.toml` is not what it was.
pub(super) fn are_allowed(repo: &Repo, findings: &mut Findings) -> anyhow::Result<()> {
    let deny = repo.file("deny.toml").context("deny.toml is missing")?;
    let deny: Deny = toml::from_str(&deny.text).context("deny.toml")?;
    // Crates for other systems are not on this machine, and cargo would fetch them.
    let compiler = cargo::output(&["rustc", "-vV"])?;
    let host = compiler.lines().find_map(|line| line.strip_prefix("host: ")).context("no host")?;
    let line = ["cargo", "metadata", "--format-version=1", "--locked", "--filter-platform", host];
    let metadata: Metadata = serde_json::from_str(&cargo::output(&line)?)?;
    for package in &metadata.packages {
        judge(&deny, package, findings);
    }
    Ok(())
}

fn judge(deny: &Deny, package: &Package, findings: &mut Findings) {
    let name = &package.name;
    let mut fail = |what: String| findings.fail("Cargo.lock", 0, format!("{name}: {what}"));
    if deny.bans.deny.contains(&package.name) {
        fail("is not to be built in (deny.toml)".into());
    }
    let Some(source) = &package.source else { return };
    let known = |registry: &String| source.strip_prefix("registry+") == Some(registry);
    if !deny.sources.allow_registry.iter().any(known) {
        fail(format!("comes from {source}"));
    }
    match &package.license {
        Some(licence) if is_allowed(licence, &deny.licenses.allow) => {}
        Some(licence) => fail(format!("`{licence}` is not allowed by deny.toml")),
        None => fail("has no licence".into()),
    }
}

/// Whether an expression can be met: `OR` needs one side, `AND` both. Nested parentheses do not
/// occur among the crates that are used, and would be refused.
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
        let deny = Deny {
            licenses: Licenses { allow: vec!["MIT".into()] },
            bans: Bans { deny: vec!["curl".into()] },
            sources: Sources { allow_registry: vec!["https://crates".into()] },
        };
        let package = |name: &str, source: Option<&str>| Package {
            name: name.into(),
            license: Some("MIT".into()),
            source: source.map(str::to_owned),
        };
        let cases = [
            (package("a", None), 0),
            (package("a", Some("registry+https://crates")), 0),
            (package("a", Some("registry+https://elsewhere")), 1),
            (package("a", Some("git+https://crates")), 1),
            (package("curl", Some("registry+https://crates")), 1),
        ];
        for (package, n) in cases {
            let mut findings = Findings::default();
            judge(&deny, &package, &mut findings);
            assert_eq!(findings.0.len(), n, "{:?}", package.source);
        }
    }
}
