//! `cargo xtask recipes`: what each recipe does to a folder of sessions, as a table.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use epitome::Loaded;
use epitome::compaction::CompactionPlan;
use epitome_model::{Block, Counter, Part, Source, ToolKind, Transcript};
use epitome_passes::{BUILT_IN, Keep, Recipe, built_in};
use epitome_tokens::O200k;

use crate::{print, say};

/// Prints the table for the sessions in `folders`.
pub fn run(folders: &[&str]) -> Result<()> {
    let folders = if folders.is_empty() { &["testing/fixtures/sessions"] } else { folders };
    let mut files = Vec::new();
    for folder in folders {
        collect(Path::new(folder), &mut files).with_context(|| format!("cannot list {folder}"))?;
    }
    files.sort();
    print(
        "| recipe | sessions | refused | messages before | after | saved | disk before | after | \
         saved | error lines | lost | user words kept |",
    );
    print("|---|---|---|---|---|---|---|---|---|---|---|---|");
    let keep = |keep| move |recipe: Recipe| Recipe { keep, ..recipe };
    let turn = Keep { turns: Some(1), unanswered: true, ..Keep::default() };
    for (name, _) in BUILT_IN {
        let recipe = built_in(name).context("a built-in recipe")?;
        row(name, &files, &recipe)?;
        row(&format!("{name} --keep-turns 1"), &files, &keep(turn)(recipe))?;
    }
    Ok(())
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|ext| ext == "jsonl") {
            files.push(path);
        }
    }
    Ok(())
}

#[derive(Default)]
struct Sum {
    sessions: u64,
    refused: u64,
    tokens: (u64, u64),
    bytes: (u64, u64),
    errors: u64,
    lost: u64,
    words_changed: u64,
}

fn row(name: &str, files: &[PathBuf], recipe: &Recipe) -> Result<()> {
    let counter = O200k::new();
    let mut sum = Sum::default();
    for file in files {
        let Ok(session) = Loaded::open(file, None) else { continue };
        one(&session, file, recipe, &counter, &mut sum)?;
    }
    let saved = |(before, after): (u64, u64)| {
        let percent = 100.0 - 100.0 * after as f64 / before.max(1) as f64;
        format!("{percent:.1}%")
    };
    print(&format!(
        "| {name} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
        sum.sessions,
        sum.refused,
        sum.tokens.0,
        sum.tokens.1,
        saved(sum.tokens),
        sum.bytes.0,
        sum.bytes.1,
        saved(sum.bytes),
        sum.errors,
        sum.lost,
        if sum.words_changed == 0 { "all" } else { "no" },
    ));
    Ok(())
}

fn one(
    session: &Loaded,
    file: &Path,
    recipe: &Recipe,
    counter: &dyn Counter,
    sum: &mut Sum,
) -> Result<()> {
    let planned = CompactionPlan::new(session, recipe, counter)
        .with_context(|| format!("{}", file.display()))?;
    sum.sessions += 1;
    for violation in &planned.violations {
        say(&format!("{}: {violation}", file.display()));
    }
    sum.refused += u64::from(!planned.violations.is_empty());
    sum.tokens.0 += planned.compaction.tokens_before.0;
    sum.tokens.1 += planned.tokens_after.0;
    sum.bytes.0 += Source::len(&session.source);
    sum.bytes.1 += planned.bytes_after.0;
    if std::env::var_os("EPITOME_EACH").is_some() {
        say(&format!(
            "{} {} -> {} ({:.1}%) bytes {} -> {} ({:.1}%) {:?}",
            file.display(),
            planned.compaction.tokens_before.0,
            planned.tokens_after.0,
            100.0
                - 100.0 * planned.tokens_after.0 as f64
                    / planned.compaction.tokens_before.0.max(1) as f64,
            Source::len(&session.source),
            planned.bytes_after.0,
            100.0 - 100.0 * planned.bytes_after.0 as f64 / Source::len(&session.source) as f64,
            planned.kept(),
        ));
    }
    let spliced = planned.spliced()?;
    let (errors, _) = error_lines(&session.transcript, &session.source);
    let (_, left) = error_lines(&planned.after, &spliced);
    for (item, lines) in errors {
        sum.errors += lines.len() as u64;
        // What failed again further down may stand there alone, where a resume sends it.
        let sent = planned.after.context.iter().filter(|&&other| other > item);
        let below: Vec<_> = sent.map(|&other| &left[other]).collect();
        let stands = |line: &String| {
            left[item].contains(line)
                || session.transcript.context.contains(&item)
                    && below.iter().any(|left| left.contains(line))
        };
        sum.lost += lines.iter().filter(|line| !stands(line)).count() as u64;
    }
    let words = |transcript: &Transcript, source: &dyn Source| -> Vec<String> {
        let entries = transcript.entries();
        let users = entries.filter(|(_, entry)| entry.role == epitome_model::Role::User);
        users
            .flat_map(|(_, entry)| &entry.blocks)
            .filter_map(|block| match block {
                Block::Text(text) => Some(text.read(source).into_owned()),
                _ => None,
            })
            .collect()
    };
    let kept: HashSet<String> = words(&planned.after, &spliced).into_iter().collect();
    let all = words(&session.transcript, &session.source);
    sum.words_changed += all.iter().filter(|text| !kept.contains(*text)).count() as u64;
    Ok(())
}

/// Lines that carry an error, by the index of their item: those of tools that failed, and of
/// commands; the words of a file or of a search are not what happened.
#[expect(clippy::type_complexity, reason = "two views of one walk")]
fn error_lines(
    transcript: &Transcript,
    source: &dyn Source,
) -> (Vec<(usize, Vec<String>)>, Vec<HashSet<String>>) {
    let mut kinds = std::collections::HashMap::new();
    for (_, entry) in transcript.entries() {
        for block in &entry.blocks {
            if let Block::Call(call) = block {
                kinds.insert(call.id.clone(), call.kind);
            }
        }
    }
    let mut found = Vec::new();
    let mut all = vec![HashSet::new(); transcript.items.len()];
    for (item, entry) in transcript.entries() {
        for block in &entry.blocks {
            let Block::Output(output) = block else { continue };
            if !output.parts.iter().any(|part| matches!(part, Part::Text(_))) {
                continue;
            }
            let text = output.text(source);
            let kind = kinds.get(&output.call).copied().unwrap_or(ToolKind::Other);
            use ToolKind::{Edit, List, Read, Search, Write};
            let quoted = matches!(kind, Read | Search | Write | Edit | List);
            all[item].extend(text.lines().map(|line| line.trim().to_owned()));
            if output.error || !quoted {
                let lines = text.lines().filter(|line| says_failure(line, output.error));
                found.push((item, lines.map(|line| line.trim().to_owned()).collect()));
            }
        }
    }
    (found, all)
}

/// Whether a line says that something failed: of a call that failed, by any word that may mean it;
/// of others, at the beginning of a line.
fn says_failure(line: &str, failed: bool) -> bool {
    const WORDS: [&str; 12] = [
        "error",
        "fail",
        "fatal",
        "panic",
        "exception",
        "traceback",
        "undefined",
        "cannot",
        "not found",
        "denied",
        "refused",
        "timed out",
    ];
    let line = line.trim().to_lowercase();
    if failed {
        WORDS.iter().any(|word| line.contains(word))
    } else {
        ["error:", "fatal:", "panic:", "--- fail", "traceback (most"]
            .iter()
            .any(|start| line.starts_with(start))
    }
}
