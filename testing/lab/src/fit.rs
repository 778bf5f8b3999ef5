//! `cargo lab fit`: computes the weights by which facts are chosen for a digest, from the sessions
//! of the open set.
//!
//! A row is a fact that was known before a forced compaction (`epitome::simulate::known_facts`),
//! and says whether the fact was used soon after the compaction. No feature of a fact depends on
//! what comes after the compaction.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use epitome::simulate::{KnownFact, known_facts};
use epitome_passes::{FEATURES, Features};

use xtask::{cargo, print, say};

use crate::quality;

/// The program's file with the weights.
const WEIGHTS: &str = "crates/passes/src/digest/weights.toml";
/// Of each group of this number of unused facts, the first becomes a row with this number as its
/// weight.
const SAMPLED: usize = 8;
/// Maximum number of iterations of a fit; about ten are needed.
const ROUNDS: usize = 50;
/// The penalty of large weights, so that correlated features share them.
const PENALTY: f64 = 1e-6;

/// Whether to replace the weights of the program by the fitted ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Write {
    No,
    Yes,
}

/// A fact that was known before a forced compaction.
#[derive(Clone, Copy, Debug)]
struct Row {
    features: Features,
    is_used: bool,
    weight: f64,
}

/// Fits the weights to all sessions and prints them. Also prints how well the program's weights and
/// fitted weights predict uses: for each repository, the fitted weights are those of the other
/// repositories. Without the open set, does nothing.
pub(crate) fn run(write: Write) -> Result<()> {
    let Some(sessions) = quality::open_set()? else { return Ok(()) };
    let mut repositories: Vec<(String, Vec<Row>)> = Vec::new();
    for path in &sessions {
        say(&format!("reading {}", path.display()));
        let name = repository(path);
        let rows = rows(path)?;
        match repositories.iter_mut().find(|(known, _)| *known == name) {
            Some((_, all)) => all.extend(rows),
            None => repositories.push((name, rows)),
        }
    }
    let now = read()?;
    print("| repository | facts | used | area, weights of the program | fitted to the others |");
    print("|---|---|---|---|---|");
    for (name, rows) in &repositories {
        let others = repositories.iter().filter(|(other, _)| other != name);
        let others: Vec<Row> = others.flat_map(|(_, rows)| rows).copied().collect();
        let used = rows.iter().filter(|row| row.is_used).count();
        let (ours, fitted) = (area(rows, &now), area(rows, &fit(&others)));
        print(&format!("| {name} | {} | {used} | {ours:.3} | {fitted:.3} |", rows.len()));
    }
    let all: Vec<Row> = repositories.into_iter().flat_map(|(_, rows)| rows).collect();
    let fitted = fit(&all);
    let (ours, theirs) = (area(&all, &now), area(&all, &fitted));
    print(&format!("\nAll: {ours:.4} with the weights of the program, {theirs:.4} with these:\n"));
    let lines = FEATURES.iter().zip(fitted).map(|(name, weight)| format!("{name} = {weight:.3}\n"));
    let lines: String = lines.collect();
    print(&lines);
    if write == Write::Yes {
        let path = cargo::root().join(WEIGHTS);
        let text = fs::read_to_string(&path)?;
        let comment: String =
            text.lines().filter(|it| it.starts_with('#')).map(|it| format!("{it}\n")).collect();
        fs::write(&path, comment + &lines).with_context(|| format!("cannot write {WEIGHTS}"))?;
    }
    Ok(())
}

/// The repository of a session, from the name of its file.
fn repository(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.split(['-', '.']).next().unwrap_or_default().to_owned()
}

fn rows(path: &Path) -> Result<Vec<Row>> {
    let session = epitome::storage::load(path, None)?;
    let mut rows = Vec::new();
    for cut in known_facts(&session)? {
        let (used, unused): (Vec<&KnownFact>, Vec<_>) = cut.iter().partition(|fact| fact.is_used);
        let used = used.into_iter().map(|fact| (fact, 1.0));
        let unused = unused.into_iter().step_by(SAMPLED).map(|fact| (fact, SAMPLED as f64));
        rows.extend(used.chain(unused).map(|(fact, weight)| Row {
            features: fact.features,
            is_used: fact.is_used,
            weight,
        }));
    }
    Ok(rows)
}

/// The current weights of the program.
fn read() -> Result<Features> {
    let text = fs::read_to_string(cargo::root().join(WEIGHTS))?;
    let weights: toml::Table = text.parse()?;
    let weight = |name: &str| weights.get(name).and_then(toml::Value::as_float);
    let all: Option<Vec<f64>> = FEATURES.iter().map(|name| weight(name)).collect();
    all.and_then(|all| all.try_into().ok()).with_context(|| format!("{WEIGHTS} lacks a weight"))
}

/// The weights of the logistic function that fits these rows best, found by Newton's method.
fn fit(rows: &[Row]) -> Features {
    let mut weights = Features::default();
    let sum: f64 = rows.iter().map(|row| row.weight).sum();
    for _ in 0..ROUNDS {
        let mut slope = weights.map(|weight| PENALTY * weight);
        let mut curve = [Features::default(); FEATURES.len()];
        for (at, row) in curve.iter_mut().enumerate() {
            row[at] = PENALTY;
        }
        for row in rows {
            let chance = chance(&row.features, &weights);
            let weight = row.weight / sum;
            let off = weight * (chance - f64::from(u8::from(row.is_used)));
            let bend = weight * chance * (1.0 - chance);
            for (at, feature) in row.features.iter().enumerate() {
                slope[at] += off * feature;
                for (other, second) in row.features.iter().enumerate() {
                    curve[at][other] += bend * feature * second;
                }
            }
        }
        let step = solve(curve, slope);
        weights.iter_mut().zip(step).for_each(|(weight, by)| *weight -= by);
        if step.iter().all(|by| by.abs() < 1e-6) {
            break;
        }
    }
    weights
}

fn chance(features: &Features, weights: &Features) -> f64 {
    let z: f64 = features.iter().zip(weights).map(|(feature, weight)| feature * weight).sum();
    1.0 / (1.0 + (-z).exp())
}

/// Solves a system of linear equations by elimination; the matrix must be regular.
fn solve(mut matrix: [Features; FEATURES.len()], mut sides: Features) -> Features {
    let len = sides.len();
    for at in 0..len {
        let best = (at..len).max_by(|a, b| matrix[*a][at].abs().total_cmp(&matrix[*b][at].abs()));
        let best = best.unwrap_or(at);
        matrix.swap(at, best);
        sides.swap(at, best);
        for row in at + 1..len {
            let times = matrix[row][at] / matrix[at][at];
            let above = matrix[at];
            matrix[row].iter_mut().zip(above).for_each(|(it, above)| *it -= times * above);
            sides[row] -= times * sides[at];
        }
    }
    let mut solved = Features::default();
    for at in (0..len).rev() {
        let known: f64 = (at + 1..len).map(|other| matrix[at][other] * solved[other]).sum();
        solved[at] = (sides[at] - known) / matrix[at][at];
    }
    solved
}

/// The area under the ROC curve: the probability that a used fact is ranked before an unused one.
fn area(rows: &[Row], weights: &Features) -> f64 {
    let ranked = rows.iter().map(|row| (chance(&row.features, weights), row));
    let mut ranked: Vec<(f64, &Row)> = ranked.collect();
    ranked.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut below, mut pairs, mut used, mut unused) = (0.0, 0.0, 0.0, 0.0);
    for same in ranked.chunk_by(|a, b| a.0 == b.0) {
        let of = |is_used: bool| -> f64 {
            same.iter().filter(|(_, row)| row.is_used == is_used).map(|(_, row)| row.weight).sum()
        };
        let (of_used, of_unused) = (of(true), of(false));
        pairs += of_used * (below + of_unused / 2.0);
        below += of_unused;
        used += of_used;
        unused += of_unused;
    }
    pairs / (used * unused)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(second: f64, is_used: bool, weight: f64) -> Row {
        let mut features = Features::default();
        (features[0], features[1]) = (1.0, second);
        Row { features, is_used, weight }
    }

    #[test]
    fn a_fit_tells_the_chances_of_two_kinds_of_facts() {
        // Of the facts whose second feature is 0, one in four is used; of those where it is 1,
        // three in four.
        let rows =
            [row(0.0, true, 1.0), row(0.0, false, 3.0), row(1.0, true, 3.0), row(1.0, false, 1.0)];
        let fitted = fit(&rows);
        for (second, expect) in [(0.0, 0.25), (1.0, 0.75)] {
            let chance = chance(&row(second, true, 1.0).features, &fitted);
            assert!((chance - expect).abs() < 0.01, "{chance} for {expect}");
        }
        assert_eq!(fitted[2..], [0.0; FEATURES.len() - 2]);
    }

    #[test]
    fn the_area_is_how_often_what_was_used_is_ranked_first() {
        let mut weights = Features::default();
        weights[1] = 1.0;
        for (rows, expect) in [
            (vec![row(1.0, true, 1.0), row(0.0, false, 1.0)], 1.0),
            (vec![row(0.0, true, 1.0), row(1.0, false, 1.0)], 0.0),
            (vec![row(1.0, true, 1.0), row(1.0, false, 1.0)], 0.5),
            (vec![row(1.0, true, 1.0), row(0.0, false, 3.0), row(2.0, false, 1.0)], 0.75),
        ] {
            assert_eq!(area(&rows, &weights), expect, "{rows:?}");
        }
    }

    #[test]
    fn a_system_of_equations_is_solved() {
        let mut matrix = [Features::default(); FEATURES.len()];
        for (at, row) in matrix.iter_mut().enumerate() {
            row[at] = 1.0;
        }
        (matrix[0][0], matrix[0][1], matrix[1][0]) = (0.0, 2.0, 4.0);
        let mut sides = Features::default();
        (sides[0], sides[1]) = (2.0, 9.0);
        assert_eq!(solve(matrix, sides)[..2], [2.0, 1.0]);
    }
}
