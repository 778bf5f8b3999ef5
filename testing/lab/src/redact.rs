//! `cargo lab redact`: plants thirty credentials in a session, lets epitome and other programs
//! search for them, and prints how many each finds.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result};
use epitome_redact::{Finder, Redactor, Rules};
use fixtures::planted::like;
use serde_json::Value;

use xtask::{print, say};

/// The minimum length of the session in bytes.
const SIZE: usize = 2_500_000;

/// The planted texts, with the pattern of the secret between `«` and `»`. Patterns are from the
/// services' documentation.
const PLANTED: [&str; 30] = [
    "aws configure set aws_access_key_id «AKIA[A-Z2-7]{16}»",
    "aws_secret_access_key = «[A-Za-z0-9/+]{40}»",
    "export GITHUB_TOKEN=«ghp_[A-Za-z0-9]{36}»",
    "remote: https://oauth2:«github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59}»@github.com/a/b",
    "the token is «glpat-[A-Za-z0-9_-]{20}», use it",
    "SLACK_BOT_TOKEN=«xoxb-[0-9]{12}-[0-9]{12}-[A-Za-z0-9]{24}»",
    "post to https://«hooks\\.slack\\.com/services/T[A-Z0-9]{8}/B[A-Z0-9]{8}/[A-Za-z0-9]{24}»",
    "stripe.api_key = '«sk_live_[A-Za-z0-9]{24}»'",
    "OPENAI_API_KEY=«sk-proj-[A-Za-z0-9_-]{74}T3BlbkFJ[A-Za-z0-9_-]{73}»",
    "ANTHROPIC_API_KEY: «sk-ant-api03-[A-Za-z0-9_-]{93}AA»",
    "curl 'https://maps.googleapis.com/x?key=«AIza[A-Za-z0-9_-]{35}»'",
    "client_secret: «GOCSPX-[A-Za-z0-9_-]{28}»",
    "AccountName=shop;AccountKey=«[A-Za-z0-9+/]{86}==»;EndpointSuffix=core.windows.net",
    "token «eyJhbGciOiJIUzI1NiJ9\\.eyJ[A-Za-z0-9_-]{40}\\.[A-Za-z0-9_-]{43}» expired",
    "-----BEGIN RSA PRIVATE KEY-----\n«([A-Za-z0-9+/]{64}\n){12}[A-Za-z0-9+/]{30}==»\n\
     -----END RSA PRIVATE KEY-----",
    "-----BEGIN OPENSSH PRIVATE KEY-----\n«([A-Za-z0-9+/]{70}\n){6}»",
    "DATABASE_URL=postgres://shop:«[A-Za-z0-9]{14}»@db.shop.internal:5432/shop",
    "mongodb+srv://admin:«[A-Za-z0-9]{16}»@cluster0.mongodb.net/test",
    "Authorization: Bearer «[A-Za-z0-9]{40}»",
    "Authorization: Basic «YWRtaW46([Y-d][GHWX][FJNRVZdhlp][h-z]){4}»",
    "curl -u admin:«[A-Za-z0-9]{12}» https://ci.shop.internal/api",
    "DB_PASSWORD=«[A-Za-z0-9]{12}[0-9]»",
    "//registry.npmjs.org/:_authToken=«npm_[A-Za-z0-9]{36}»",
    "TWINE_PASSWORD=«pypi-AgEIcHlwaS5vcmc[A-Za-z0-9_-]{80}»",
    "SENDGRID_API_KEY=«SG\\.[A-Za-z0-9_-]{22}\\.[A-Za-z0-9_-]{43}»",
    "twilio: «SK[a-f0-9]{32}»",
    "HF_TOKEN=«hf_[A-Za-z]{34}»",
    "doctl auth init -t «dop_v1_[a-f0-9]{64}»",
    "heroku api key: «[a-f0-9]{8}-[a-f0-9]{4}-4[a-f0-9]{3}-a[a-f0-9]{3}-[a-f0-9]{12}»",
    "DISCORD=https://discord.com/api/webhooks/«[0-9]{18}/[A-Za-z0-9_-]{68}»",
];

/// A credential with the text around it.
struct Plant {
    text: String,
    secret: String,
}

/// Prints the table.
///
/// # Errors
///
/// If a file cannot be written.
pub(crate) fn run() -> Result<()> {
    let recorded = String::from_utf8(fixtures::get("claude", "pricing").bytes())?;
    let clean = fixtures::grown::claude(&recorded, SIZE);
    let plants: Vec<Plant> = PLANTED.iter().zip(1..).map(|(words, n)| plant(words, n)).collect();
    let dirty = planted(&clean, &plants);
    let folder = tempfile::tempdir()?;
    let write = |name: &str, text: &str| -> Result<()> {
        fs::write(folder.path().join(name), text).context("cannot write the sessions")
    };
    write("clean.jsonl", &clean)?;
    write("dirty.jsonl", &dirty)?;
    write("clean.txt", &decoded(&clean))?;
    write("dirty.txt", &decoded(&dirty))?;
    print("| tool | looks at | found of 30 | hits on the clean session | seconds |");
    print("|---|---|---:|---:|---:|");
    epitome(&clean, &dirty, &plants)?;
    for look in ["txt", "jsonl"] {
        gitleaks(folder.path(), look, &plants);
        detect_secrets(folder.path(), look, &plants);
    }
    Ok(())
}

fn plant(words: &str, seed: u64) -> Plant {
    let (before, rest) = words.split_once('«').expect("a shape");
    let (shape, after) = rest.split_once('»').expect("a shape");
    let secret = like(shape, seed);
    Plant { text: format!("{before}{secret}{after}"), secret }
}

/// Returns the session with the credentials in it: each after a tool result, far from the others.
fn planted(clean: &str, plants: &[Plant]) -> String {
    let results = clean.lines().filter(|line| line.contains("\"tool_result\"")).count();
    let every = results / (plants.len() * 2);
    let (mut seen, mut next) = (0, plants.iter());
    let mut dirty = String::new();
    for line in clean.lines() {
        let mut record: Value = serde_json::from_str(line).unwrap_or_default();
        let content = record.pointer_mut("/message/content/0/content");
        let here = line.contains("\"tool_result\"") && {
            seen += 1;
            seen % every.max(1) == 0
        };
        match (here, content, next.as_slice().first()) {
            (true, Some(Value::String(text)), Some(plant)) => {
                text.push_str(&format!("\n{}\n", plant.text));
                next.next();
                dirty.push_str(&record.to_string());
            }
            _ => dirty.push_str(line),
        }
        dirty.push('\n');
    }
    assert_eq!(next.len(), 0, "the session has room for all");
    dirty
}

/// The strings of a session, each on a line, for programs that do not read JSON.
fn decoded(session: &str) -> String {
    let lines = session.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut text = String::new();
    for line in lines {
        let mut open = vec![line];
        while let Some(value) = open.pop() {
            match value {
                Value::String(string) => {
                    text.push_str(&string);
                    text.push('\n');
                }
                Value::Array(values) => open.extend(values),
                Value::Object(members) => open.extend(members.into_iter().map(|(_, it)| it)),
                Value::Null | Value::Bool(_) | Value::Number(_) => {}
            }
        }
    }
    text
}

fn epitome(clean: &str, dirty: &str, plants: &[Plant]) -> Result<()> {
    let finder = Finder::new(Rules::built_in().only(&["secrets"])?)?;
    let redact = |session: &str| {
        let bytes = session.as_bytes();
        let mut redactor = Redactor::new(&finder);
        let mut text = session.to_owned();
        for splice in redactor.splices(&bytes, &[]).into_iter().rev() {
            let with = String::from_utf8_lossy(&splice.with).into_owned();
            text.replace_range(splice.span.start as usize..splice.span.end as usize, &with);
        }
        (text, redactor.found().len())
    };
    let start = Instant::now();
    let left = decoded(&redact(dirty).0);
    let seconds = start.elapsed().as_secs_f64();
    let missed: Vec<&Plant> = plants.iter().filter(|it| left.contains(&it.secret)).collect();
    let found = plants.len() - missed.len();
    let hits = redact(clean).1;
    print(&format!("| epitome | decoded strings | {found} | {hits} | {seconds:.2} |"));
    for plant in missed {
        say(&format!("missed: {}", plant.text));
    }
    Ok(())
}

fn gitleaks(folder: &Path, look: &str, plants: &[Plant]) {
    let scan = |name: &str| -> Option<(Vec<Value>, f64)> {
        let report = folder.join(format!("{name}.{look}.json"));
        let start = Instant::now();
        Command::new("gitleaks")
            .args(["detect", "--no-git", "--exit-code", "0", "--no-banner", "-f", "json", "-r"])
            .arg(&report)
            .arg("-s")
            .arg(folder.join(format!("{name}.{look}")))
            .output()
            .ok()?;
        let seconds = start.elapsed().as_secs_f64();
        Some((serde_json::from_slice(&fs::read(report).ok()?).ok()?, seconds))
    };
    let rows = scan("dirty").zip(scan("clean"));
    row(
        "gitleaks, its own rules",
        look,
        rows.map(|((dirty, seconds), (clean, _))| {
            let is_found = |plant: &&Plant| {
                dirty.iter().any(|hit| {
                    let secret = hit["Secret"].as_str().unwrap_or_default();
                    !secret.is_empty()
                        && (plant.secret.contains(secret) || secret.contains(&plant.secret))
                })
            };
            (plants.iter().filter(is_found).count(), clean.len(), seconds)
        }),
    );
}

fn detect_secrets(folder: &Path, look: &str, plants: &[Plant]) {
    let scan = |name: &str| -> Option<(Vec<u64>, f64)> {
        let file = format!("{name}.{look}");
        let start = Instant::now();
        let out = Command::new("detect-secrets")
            .args(["scan", &file])
            .current_dir(folder)
            .output()
            .ok()?;
        let seconds = start.elapsed().as_secs_f64();
        let report: Value = serde_json::from_slice(&out.stdout).ok()?;
        let hits = report["results"][&file].as_array().cloned().unwrap_or_default();
        Some((hits.iter().filter_map(|hit| hit["line_number"].as_u64()).collect(), seconds))
    };
    let rows = scan("dirty").zip(scan("clean"));
    row(
        "detect-secrets",
        look,
        rows.map(|((dirty, seconds), (clean, _))| {
            let text = fs::read_to_string(folder.join(format!("dirty.{look}"))).unwrap_or_default();
            let lines: Vec<&str> = text.lines().collect();
            let hit: BTreeSet<u64> = dirty.into_iter().collect();
            // detect-secrets reports only the number of a line. The line must contain the first
            // line of the secret, or be the header of a key.
            let is_found = |plant: &&Plant| {
                let begins = plant.secret.lines().next().unwrap_or_default();
                let header = plant.text.lines().next().unwrap_or_default();
                hit.iter().any(|&n| {
                    let line = lines.get(n as usize - 1).copied().unwrap_or_default();
                    line.contains(begins) || (line.contains(header) && header.starts_with("-----"))
                })
            };
            (plants.iter().filter(is_found).count(), clean.len(), seconds)
        }),
    );
}

fn row(tool: &str, look: &str, result: Option<(usize, usize, f64)>) {
    let at = if look == "txt" { "decoded strings, as text" } else { "the file" };
    print(&match result {
        Some((found, hits, seconds)) => {
            format!("| {tool} | {at} | {found} | {hits} | {seconds:.2} |")
        }
        None => format!("| {tool} | {at} | not installed here | | |"),
    });
}
