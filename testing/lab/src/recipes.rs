//! `cargo lab recipes`: measures what each recipe does to a folder of sessions, prints a table, and
//! checks the tables of the documents.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use epitome::Loaded;
use epitome::compaction::PreparedCompaction;
use epitome_model::{Block, Counter, Part, Source, ToolKind, Transcript};
use epitome_passes::{All, BUILT_IN, Keep, Recipe, built_in};
use epitome_tokens::O200k;

use fixtures::skipped;
use xtask::{print, say};

use crate::quality;

/// The recorded sessions.
const RECORDED: &str = "testing/fixtures/sessions";
/// The page with the tables: first for sessions of real work, then for the recorded sessions.
const PAGE: &str = "docs/recipes.md";
/// The page that repeats how much the default recipe saves in sessions of real work.
const FRONT: &str = "README.md";
const BEGIN: [&str; 2] = [
    "<!-- begin of the table: cargo lab recipes --write, real work -->",
    "<!-- begin of the table: cargo lab recipes --write, recorded -->",
];
const END: &str = "<!-- end of the table -->";
/// Agents whose sessions of real work are in the first table.
const OF_REAL_WORK: [&str; 2] = ["claude", "pi"];

const HEAD: &str = "| recipe | sessions | refused | messages before | after | saved | disk before \
                    | after | saved | error lines | lost | user words kept |\n\
                    |---|---|---|---|---|---|---|---|---|---|---|---|";

/// Prints the table for the sessions in `folders`, or for the recorded sessions.
pub fn run(folders: &[&str]) -> Result<()> {
    let folders = if folders.is_empty() { &[RECORDED] } else { folders };
    print(HEAD);
    let files = files(folders)?;
    for (name, recipe) in recipes()? {
        print(&row(&name, &files, &recipe)?.text());
    }
    Ok(())
}

/// Compares the tables of the page, and the front page, with what this program does. For real work
/// only the default recipe is measured, which takes a minute; with `--all`, every recipe.
pub fn check(is_all: bool) -> Result<()> {
    let page = std::fs::read_to_string(PAGE).context(PAGE)?;
    let mut stale = Vec::new();
    let mut hold = |row: &Row| {
        let line = row.text();
        if !page.lines().any(|it| it == line) {
            stale.push(line);
        }
    };
    let recorded = files(&[RECORDED])?;
    for (name, recipe) in recipes()? {
        hold(&row(&name, &recorded, &recipe)?);
    }
    match real_work()? {
        Some(files) => {
            let recipes = recipes()?;
            let count = if is_all { recipes.len() } else { 1 };
            for (n, (name, recipe)) in recipes.iter().take(count).enumerate() {
                let row = row(name, &files, recipe)?;
                hold(&row);
                if n == 0 {
                    check_front(&row)?;
                }
            }
        }
        None => skipped("the table of recipes over real work", "there is no open set"),
    }
    let lines = stale.join("\n");
    ensure!(stale.is_empty(), "{PAGE} does not say (cargo lab recipes --write):\n{lines}");
    Ok(())
}

/// Writes both tables into the page. Without the open set, the table of real work stays as it is.
pub fn write() -> Result<()> {
    let mut page = std::fs::read_to_string(PAGE).context(PAGE)?;
    let sets = [real_work()?, Some(files(&[RECORDED])?)];
    for (begin, files) in BEGIN.iter().zip(sets) {
        let Some(files) = files else { continue };
        let mut table = HEAD.to_owned();
        for (name, recipe) in recipes()? {
            table.push_str(&format!("\n{}", row(&name, &files, &recipe)?.text()));
        }
        let (head, rest) = page.split_once(begin).with_context(|| format!("no {begin}"))?;
        let (_, tail) = rest.split_once(END).with_context(|| format!("no {END}"))?;
        page = format!("{head}{begin}\n\n{table}\n\n{END}{tail}");
    }
    std::fs::write(PAGE, page).context(PAGE)
}

/// Each built-in recipe, as it is and with `--keep-turns 1`.
fn recipes() -> Result<Vec<(String, Recipe)>> {
    // Like the option `--keep-turns 1`, this keeps a session of one turn whole.
    let keep = Keep { turns: Some(1), all: All::Kept, ..Keep::default() };
    let mut recipes = Vec::new();
    for (name, _) in BUILT_IN {
        let recipe = built_in(name).context("a built-in recipe")?;
        let mut one_turn = recipe.clone();
        one_turn.set_keep(keep);
        recipes.push((name.to_owned(), recipe));
        recipes.push((format!("{name} --keep-turns 1"), one_turn));
    }
    Ok(recipes)
}

/// Checks that the front page names the savings and the error lines of this row.
fn check_front(row: &Row) -> Result<()> {
    let front = std::fs::read_to_string(FRONT).context(FRONT)?;
    let front = front.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [
        format!("messages −{}", row.saved_tokens()),
        format!("disk −{}", row.saved_bytes()),
        format!("of {} error lines", row.sum.errors),
    ] {
        ensure!(front.contains(&words), "{FRONT} does not say `{words}`");
    }
    Ok(())
}

fn files(folders: &[&str]) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for folder in folders {
        collect(Path::new(folder), &mut files).with_context(|| format!("cannot list {folder}"))?;
    }
    files.sort();
    Ok(files)
}

/// The sessions of real work for the first table; `None` if the open set is not available.
fn real_work() -> Result<Option<Vec<PathBuf>>> {
    let Some(files) = quality::open_set()? else { return Ok(None) };
    let is_of = |file: &PathBuf| {
        let session = epitome::storage::load(file, None);
        session.is_ok_and(|session| OF_REAL_WORK.contains(&session.format.name))
    };
    Ok(Some(files.into_iter().filter(is_of).collect()))
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

#[derive(Clone, Copy, Default)]
struct Sum {
    sessions: u64,
    refused: u64,
    tokens: (u64, u64),
    bytes: (u64, u64),
    errors: u64,
    lost: u64,
    words_changed: u64,
}

/// A row of the table.
struct Row {
    name: String,
    sum: Sum,
}

fn row(name: &str, files: &[PathBuf], recipe: &Recipe) -> Result<Row> {
    let counter = O200k::new();
    let mut sum = Sum::default();
    for file in files {
        let Ok(session) = epitome::storage::load(file, None) else { continue };
        one(&session, file, recipe, &counter, &mut sum)?;
    }
    Ok(Row { name: name.to_owned(), sum })
}

impl Row {
    fn text(&self) -> String {
        let Sum { sessions, refused, tokens, bytes, errors, lost, words_changed } = self.sum;
        let [before, after, disk_before, disk_after] =
            [tokens.0, tokens.1, bytes.0, bytes.1].map(grouped);
        let words = if words_changed == 0 { "all" } else { "no" };
        format!(
            "| {} | {sessions} | {refused} | {before} | {after} | {} | {disk_before} \
             | {disk_after} | {} | {errors} | {lost} | {words} |",
            self.name,
            self.saved_tokens(),
            self.saved_bytes(),
        )
    }

    fn saved_tokens(&self) -> String {
        saved(self.sum.tokens)
    }

    fn saved_bytes(&self) -> String {
        saved(self.sum.bytes)
    }
}

fn saved((before, after): (u64, u64)) -> String {
    let percent = 100.0 - 100.0 * after as f64 / before.max(1) as f64;
    format!("{percent:.1}%")
}

/// A number with thousands separators.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn one(
    session: &Loaded,
    file: &Path,
    recipe: &Recipe,
    counter: &dyn Counter,
    sum: &mut Sum,
) -> Result<()> {
    let planned = PreparedCompaction::new(session, recipe, counter)
        .with_context(|| format!("{}", file.display()))?;
    sum.sessions += 1;
    for violation in &planned.violations {
        say(&format!("{}: {violation}", file.display()));
    }
    sum.refused += u64::from(!planned.violations.is_empty());
    sum.tokens.0 += planned.plan.tokens_before.0;
    sum.tokens.1 += planned.tokens_after.0;
    sum.bytes.0 += Source::len(&session.source);
    sum.bytes.1 += planned.bytes_after.0;
    let spliced = planned.spliced()?;
    let (errors, _) = error_lines(&session.transcript, &session.source);
    let (_, left) = error_lines(&planned.after, &spliced);
    for (item, lines) in errors {
        sum.errors += lines.len() as u64;
        // If an error line occurs again in a later result that is sent, it is enough that the later
        // result keeps the line.
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

/// Returns the error lines of each result, with the index of its item; and all lines of each item,
/// by index. Error lines are in results of failed calls and of commands: error words in a file or a
/// search result are no errors of the tool.
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

/// Whether a line reports a failure. In the result of a failed call any error word in the line says
/// so, in other results only an error word at the beginning of the line.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_written_as_in_the_page() {
        let sum =
            Sum { sessions: 2, tokens: (1_234_567, 200), bytes: (1_000, 999), ..Sum::default() };
        let row = Row { name: "epitome".to_owned(), sum };
        assert_eq!(
            row.text(),
            "| epitome | 2 | 0 | 1,234,567 | 200 | 100.0% | 1,000 | 999 | 0.1% | 0 | 0 | all |"
        );
    }
}
