//! `cargo lab quality`: measures what recipes keep of the open set and what they cost: with the
//! program, and with the instrument whose definitions the program follows.
//!
//! The open set and the instrument are not part of this repository (`docs/quality.md`). Without the
//! set, nothing is measured. If the instrument's `bench.sh` has not been run, the two are not
//! compared.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};
use serde_json::Value;

use xtask::{cargo, print, say};

/// The recipes that are measured if none is named.
const RECIPES: [&str; 3] = ["epitome", "digest", "clear-tool-uses"];
/// By how many percentage points the program's figure and the instrument's may differ.
const POINTS: f64 = 0.5;

/// Figures that both the program and the instrument measure: the name in the program's JSON, and
/// the number of the table and column of the instrument.
const FIGURES: [(&str, usize, usize); 8] = [
    ("kept", 0, 2),
    ("recall", 0, 3),
    ("in_line", 0, 5),
    ("recoverable", 0, 6),
    ("cost", 1, 2),
    ("cost_bp", 1, 3),
    ("call_recall", 1, 5),
    ("far_recall", 1, 6),
];

/// Measures the open set with these recipes, or with [`RECIPES`]; `--target PERCENT` may come
/// first.
///
/// # Errors
///
/// If the program does not build, a measurement fails, or two figures differ too much.
pub(crate) fn run(args: &[&str]) -> anyhow::Result<()> {
    let (target, recipes) = match args {
        ["--target", percent, recipes @ ..] => (Some(*percent), recipes),
        recipes => (None, recipes),
    };
    let recipes = if recipes.is_empty() { &RECIPES[..] } else { recipes };
    let Some(sessions) = open_set()? else { return Ok(()) };
    let epitome = cargo::epitome("release")?;
    let measure = Measure { epitome, target, recipes };
    print("\nThe open set, as this program reads it:\n");
    for (recipe, figures) in measure.ours(&sessions)? {
        let cells = FIGURES.map(|(name, ..)| format!("{name} {:.1}", points(&figures, name)));
        print(&format!("- {recipe}: {}", cells.join(", ")));
    }
    measure.compare()
}

/// The sessions of the open set. If there is no open set, reports this and returns `None`.
pub(crate) fn open_set() -> anyhow::Result<Option<Vec<PathBuf>>> {
    let corpus = folder("EVAL_CORPUS", "../shared/corpus");
    if !corpus.join("raw").is_dir() {
        say(&format!("skipped: there is no open set in {} (EVAL_CORPUS)", corpus.display()));
        return Ok(None);
    }
    unpacked(&corpus.join("raw")).map(Some)
}

/// The folder that an environment variable names, or a default relative to the repository.
fn folder(variable: &str, default: &str) -> PathBuf {
    let named = std::env::var_os(variable).map(PathBuf::from);
    named.unwrap_or_else(|| cargo::root().join(default))
}

/// Decompresses the files of a folder into the target folder, except for those that are there
/// already, and returns their paths.
fn unpacked(raw: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let to = cargo::target()?.join("quality");
    fs::create_dir_all(&to)?;
    let mut files = Vec::new();
    for entry in fs::read_dir(raw)? {
        let packed = entry?.path();
        let path = to.join(packed.file_stem().context("a file has a name")?);
        if !path.is_file() {
            let partial = path.with_extension("partial");
            let mut gzip = Command::new("gzip");
            let status = gzip.arg("-dc").arg(&packed).stdout(File::create(&partial)?).status()?;
            ensure!(status.success(), "gzip -dc {}: {status}", packed.display());
            fs::rename(partial, &path)?;
        }
        files.push(path);
    }
    files.sort();
    Ok(files)
}

struct Measure<'a> {
    epitome: PathBuf,
    target: Option<&'a str>,
    recipes: &'a [&'a str],
}

impl Measure<'_> {
    /// The figures of each recipe, measured by the program.
    fn ours(&self, sessions: &[PathBuf]) -> anyhow::Result<BTreeMap<String, Value>> {
        let mut command = Command::new(&self.epitome);
        command.args(["simulate", "--json"]).args(sessions);
        command.args(self.recipes.iter().flat_map(|recipe| ["--recipe", recipe]));
        if let Some(target) = self.target {
            command.args(["--target", target]);
        }
        let output = command.stderr(Stdio::inherit()).output()?;
        ensure!(output.status.success(), "epitome simulate: {}", output.status);
        let report: Value = serde_json::from_slice(&output.stdout)?;
        let recipes = report["recipes"].as_array().context("a report has recipes")?;
        let named = recipes.iter().skip(1).map(|recipe| {
            (recipe["recipe"].as_str().unwrap_or_default().to_owned(), recipe.clone())
        });
        Ok(named.collect())
    }

    /// Compares the figures of the program and the instrument, both over the sessions that the
    /// instrument has normalised.
    fn compare(&self) -> anyhow::Result<()> {
        let work = || std::env::temp_dir().join("eval");
        let work = std::env::var_os("EVAL_WORK").map_or_else(work, PathBuf::from);
        let (python, data) = (work.join("venv/bin/python"), work.join("data/open_norm"));
        if !python.is_file() || !data.is_dir() {
            let work = work.display();
            say(&format!("no comparison: eval/bench.sh has set nothing up in {work} (EVAL_WORK)"));
            return Ok(());
        }
        let mut sessions = Vec::new();
        for entry in fs::read_dir(&data)? {
            sessions.push(entry?.path());
        }
        sessions.sort();
        print("\nThe same as the instrument has normalised it:\n");
        print("| recipe | figure | epitome | instrument | difference |\n|---|---|---|---|---|");
        let mut apart = Vec::new();
        for (recipe, ours) in self.ours(&sessions)? {
            let theirs = self.instrument(&recipe, &work)?;
            for (name, table, column) in FIGURES {
                let is_ratio = name.starts_with("cost");
                let theirs = theirs[table][column] * if is_ratio { 100.0 } else { 1.0 };
                let ours = points(&ours, name);
                let by = ours - theirs;
                print(&format!("| {recipe} | {name} | {ours:.1} | {theirs:.1} | {by:+.1} |"));
                // The instrument's figures are rounded to a tenth: so half a tenth more is allowed.
                if by.is_nan() || by.abs() > POINTS + 0.05 {
                    apart.push(format!("{recipe} {name}"));
                }
            }
        }
        ensure!(apart.is_empty(), "more than {POINTS} points apart: {}", apart.join(", "));
        Ok(())
    }

    /// The rows of the instrument's two tables for a recipe.
    fn instrument(&self, recipe: &str, work: &Path) -> anyhow::Result<[Vec<f64>; 2]> {
        let engine = format!("{} engine --no-log --recipe {recipe}", self.epitome.display());
        let out = cargo::target()?.join("quality").join(format!("{recipe}.out"));
        let mut python = Command::new(work.join("venv/bin/python"));
        python
            .current_dir(folder("EVAL", "../shared/eval"))
            .env("EVAL_O200K", work.join("tok/o200k.json"))
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .arg("run.py")
            .arg(work.join("data/open_norm"))
            .arg(&out)
            .args(["--policies", "none", "--cmd-name", "ours", "--cmd", &engine])
            .arg("--cache")
            .arg(work.join("cache"));
        if let Some(target) = self.target {
            let percent: f64 = target.parse()?;
            python.args(["--target", &(percent / 100.0).to_string()]);
        }
        let output = python.stderr(Stdio::null()).output()?;
        ensure!(output.status.success(), "run.py: {}", output.status);
        let text = String::from_utf8_lossy(&output.stdout);
        let rows: Vec<Vec<f64>> =
            text.lines().filter(|line| line.starts_with("| ours |")).map(cells).collect();
        rows.try_into().ok().context("run.py prints two tables")
    }
}

/// The cells of a row as numbers, NaN where a cell is no number. The first column has the index 1.
fn cells(row: &str) -> Vec<f64> {
    let number = |cell: &str| cell.trim().trim_end_matches(['%', 'k']).parse().unwrap_or(f64::NAN);
    row.split('|').map(number).collect()
}

/// A figure of the program in per cent; NaN if there is none.
fn points(figures: &Value, name: &str) -> f64 {
    figures[name].as_f64().map_or(f64::NAN, |share| share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_of_the_instrument_is_read_by_its_columns() {
        let cells = cells("| ours | 33.1 | 96.8 | 1.0 | 93.4 | 66k | 3% | ok |");
        assert_eq!(cells[2..8], [33.1, 96.8, 1.0, 93.4, 66.0, 3.0]);
        assert!(cells[8].is_nan());
    }
}
