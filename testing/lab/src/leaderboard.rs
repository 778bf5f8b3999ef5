//! `cargo lab leaderboard`: measures every recipe over sessions that are in this repository or made
//! here, so that anyone can repeat the measurement, and keeps the tables of `docs/leaderboard.md`
//! up to date.

mod made;

use std::fs;

use anyhow::{Context, Result, bail, ensure};
use epitome::Loaded;
use epitome::simulate::{RecipeReport, Simulate, SimulateReport};
use epitome_llm::Catalogue;
use epitome_model::Tokens;
use epitome_passes::{BUILT_IN, built_in};
use rayon::prelude::*;

use xtask::print;

/// The page with the tables.
const PAGE: &str = "docs/leaderboard.md";
/// The mark after each table.
const END: &str = "<!-- end of the table -->";
/// The model whose prices the costs are computed with.
const MODEL: &str = "claude-sonnet-4-6";
/// How many seconds a provider is assumed to cache a request.
const TTL: u64 = 300;
/// The recipes of this project. All other recipes follow policies that others have published.
const OURS: [&str; 2] = ["epitome", "digest"];

const HEAD: &str = "| recipe | of | kept | recall | in line | recoverable | cost | bp | call | far \
                    | rules |\n|---|---|---|---|---|---|---|---|---|---|---|";

/// A set of sessions, and the context window in which they are replayed.
struct Set {
    /// The name of the set in the page.
    name: &'static str,
    window: Tokens,
    sessions: fn() -> Vec<(String, Vec<u8>)>,
}

const SETS: [Set; 2] = [
    // A small window: the largest recorded session has 20,000 tokens and would never fill a context
    // of an agent's usual size.
    Set { name: "recorded", window: Tokens(16_000), sessions: recorded },
    Set { name: "made", window: Tokens(200_000), sessions: made::sessions },
];

/// Prints the tables.
///
/// # Errors
///
/// If a session of the repository cannot be read or replayed.
pub(crate) fn run() -> Result<()> {
    SETS.iter().try_for_each(|set| {
        print(&format!("\n{}:\n\n{}", set.name, set.table()?));
        Ok(())
    })
}

/// Writes the tables into the page.
///
/// # Errors
///
/// As for [`run`], or if the page has no place for a table.
pub(crate) fn write() -> Result<()> {
    fs::write(PAGE, page()?).context(PAGE)
}

/// Compares the tables of the page with what this program does.
///
/// # Errors
///
/// If they differ, or as for [`write()`].
pub(crate) fn check() -> Result<()> {
    let old = fs::read_to_string(PAGE).context(PAGE)?;
    let new = page()?;
    let stale = new.lines().find(|line| !old.lines().any(|old| old == *line));
    if let Some(line) = stale {
        bail!(
            "{PAGE} is not what this program does, say: {line}\nrun `cargo lab leaderboard --write`"
        );
    }
    ensure!(old == new, "{PAGE} is not what `cargo lab leaderboard --write` makes of it");
    print(&format!("{PAGE} is what this program does"));
    Ok(())
}

/// The page with new tables.
fn page() -> Result<String> {
    let mut page = fs::read_to_string(PAGE).context(PAGE)?;
    for set in &SETS {
        let begin =
            format!("<!-- begin of the table: cargo lab leaderboard --write, {} -->", set.name);
        let table = set.table()?;
        let (head, rest) = page.split_once(&begin).with_context(|| format!("no {begin}"))?;
        let (_, tail) = rest.split_once(END).with_context(|| format!("no {END}"))?;
        page = format!("{head}{begin}\n\n{table}\n\n{END}{tail}");
    }
    Ok(page)
}

impl Set {
    /// A line that says what is measured, and the table: the recipe with the best recall comes
    /// first.
    fn table(&self) -> Result<String> {
        let report = self.report()?;
        let mut recipes: Vec<&RecipeReport> = report.recipes.iter().skip(1).collect();
        recipes.sort_by(|a, b| {
            let order = |it: &RecipeReport| it.recall.unwrap_or_default();
            order(b).total_cmp(&order(a)).then_with(|| a.recipe.cmp(&b.recipe))
        });
        let rows: Vec<String> = recipes.into_iter().map(row).collect();
        let SimulateReport { calls, tokens, cuts, window, .. } = &report;
        Ok(format!(
            "{} sessions, {calls} calls, {} tokens, {cuts} forced compactions, a window of {}.\n\n\
             {HEAD}\n{}",
            report.sessions.len(),
            tokens.0,
            window.0,
            rows.join("\n")
        ))
    }

    fn report(&self) -> Result<SimulateReport> {
        let recipes = BUILT_IN.iter().map(|(name, _)| {
            let recipe = built_in(name).context("a built-in recipe")?;
            Ok(((*name).to_owned(), recipe))
        });
        let simulate = Simulate {
            commands: Vec::new(),
            recipes: recipes.collect::<Result<_>>()?,
            window: self.window,
            overhead: Tokens(0),
            // Without a prompt: in a small window, a typical prompt would be most of the cost.
            prompt: Some(Tokens(0)),
            target: None,
            prices: Catalogue::built_in(),
            model: Some(MODEL.to_owned()),
            ttl: TTL,
            estimate: false,
        };
        let sessions = (self.sessions)();
        let simulated: Result<Vec<_>> = sessions
            .par_iter()
            .map(|(name, bytes)| {
                let session = Loaded::read(&**bytes, None).with_context(|| name.clone())?;
                simulate.session(name, &session).with_context(|| name.clone())
            })
            .collect();
        Ok(SimulateReport::from_sessions(&simulate, &simulated?))
    }
}

fn row(report: &RecipeReport) -> String {
    let percent = |share: Option<f64>| {
        share.map_or_else(|| "-".to_owned(), |share| format!("{:.1}", share * 100.0))
    };
    let name = report.recipe.as_str();
    let of = if OURS.contains(&name) { "epitome" } else { "others" };
    let figures = [
        report.kept,
        report.recall,
        report.in_line,
        report.recoverable,
        report.cost,
        report.cost_bp,
        report.call_recall,
        report.far_recall,
        report.rules,
    ];
    format!("| `{name}` | {of} | {} |", figures.map(percent).join(" | "))
}

/// The recorded sessions of the repository, without those of sub-agents.
fn recorded() -> Vec<(String, Vec<u8>)> {
    let all = fixtures::all().into_iter();
    all.map(|fixture| (format!("{}/{}", fixture.agent, fixture.name), fixture.bytes())).collect()
}
