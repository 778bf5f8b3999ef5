//! `epitome simulate`: what recipes would have kept of the user's own sessions, and the cost.

mod gate;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use clap::Args as ClapArgs;
use epitome::Version;
use epitome::simulate::{
    Gate, PolicyCommand, RecipeReport, Simulate, SimulateReport, SimulatedSession,
};
use epitome::storage::{Spliced, write_new};
use epitome_llm::Catalogue;
use epitome_model::Tokens;
use rayon::prelude::*;

use crate::app::{App, Count};
use crate::failure::{Failure, Result, Status};
use crate::session::{self, Input, parse_tokens};
use crate::steps::Steps;
use crate::table::{Side, Table};
use crate::text::{DIM, count, field, wrap_line};

const EXAMPLES: &str = "\
Examples:
  epitome simulate session.jsonl
  epitome simulate --recipe digest --recipe s06 --html report.html *.jsonl
  epitome simulate --recipe digest --gate recall=0.9,cost=0.6,rules=1 sessions/*.jsonl
  epitome simulate --policy-command 'python my_policy.py' --gate rules=1 session.jsonl
  epitome simulate --all";

/// The number of days that `--all` looks back.
const DAYS: u64 = 30;

/// Replay sessions call by call under recipes: what they keep of what was used later, and cost
///
/// Each session is replayed with the real engine, without a model, a network or a change. The first
/// columns are of compactions that are forced at up to eight places of a session; `cost` and those
/// behind it are of a context that the recipe keeps small while the session goes on.
/// docs/simulate.md says what the figures mean.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Files, session ids or their prefixes, or `-` for standard input
    #[arg(value_name = "SESSION", required_unless_present = "all")]
    pub sessions: Vec<OsString>,

    /// A recipe by name, or a file; may be given several times [default: the one for live contexts,
    /// epitome, clear-tool-uses]
    #[arg(long, value_name = "RECIPE")]
    pub recipe: Vec<String>,

    /// A table of models whose prices come before the others (docs/models.md)
    #[arg(long, value_name = "FILE")]
    pub prices: Option<PathBuf>,

    /// Price all sessions as those of this model [default: each session's own]
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,

    /// The context window of the model in tokens [default: 200k]
    #[arg(long, value_name = "TOKENS", value_parser = parse_tokens)]
    pub window: Option<u64>,

    /// Tokens of the system prompt and the tools in each request [default: live.overhead; if that
    /// is not set, 0 for the decision to compact, and an estimate for the cost]
    #[arg(long, value_name = "TOKENS", value_parser = parse_tokens)]
    pub overhead: Option<u64>,

    /// The size to which a forced compaction reduces the context, in per cent of its tokens
    /// [default: half of the recipe's target, at most a quarter of the window]
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u64).range(1..=100))]
    pub target: Option<u64>,

    /// Also write an HTML page with the table and plots, as one file without other resources
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,

    /// A command that decides what is sent, measured like a recipe: it answers the requests of
    /// `epitome engine` on its standard input (docs/simulate.md); may be given several times
    #[arg(long, value_name = "COMMAND")]
    pub policy_command: Vec<String>,

    /// Exit with status 7 unless the first recipe, or the first policy command if there is one,
    /// meets conditions: recall=0.9,cost=0.6,rules=1. `=` is the good direction of a figure; `>=`
    /// and `<=` name one
    #[arg(long, value_name = "CONDITIONS", value_parser = clap::value_parser!(Gate))]
    pub gate: Option<Gate>,

    /// Also write the conditions of the gate as a JUnit report, in place of an older report
    #[arg(long, value_name = "FILE", requires = "gate")]
    pub junit: Option<PathBuf>,

    /// All sessions of the last 30 days, and what they would have cost
    #[arg(long, conflicts_with = "sessions")]
    pub all: bool,
}

pub fn run(app: &App, args: &Args) -> Result<()> {
    let simulate = options(app, args)?;
    let inputs = if args.all { of_last_days(app) } else { Input::find_all(app, &args.sessions)? };
    let bar = "replaying {bar:30} {pos}/{len} sessions {elapsed}";
    let steps = Steps::new(app, bar, inputs.len()).ticking();
    let done: Vec<Result<(SimulatedSession, Vec<String>)>> = inputs
        .par_iter()
        .map(|input| {
            let done = one(app, &simulate, input);
            steps.step();
            done
        })
        .collect();
    steps.clear();
    let mut simulated = Vec::new();
    let mut failed: Vec<(String, Failure)> = Vec::new();
    for (input, done) in inputs.iter().zip(done) {
        match done {
            Ok((session, missing)) => {
                session::note_missing(app, input, missing.iter().map(String::as_str));
                simulated.push(session);
            }
            // The other sessions are simulated even if one cannot be read. A failure with the
            // status `Usage`, such as that of a policy command, ends the run.
            Err(failure) if inputs.len() > 1 && failure.status != Status::Usage => {
                app.note(failure.render().trim_end());
                failed.push((input.name(), failure));
            }
            Err(failure) => return Err(failure),
        }
    }
    if simulated.is_empty() {
        return Err(nothing(args));
    }
    let mut report = SimulateReport::from_sessions(&simulate, &simulated);
    if let Some(gate) = &args.gate {
        report.check(gate);
    }
    if let Some(path) = &args.html {
        let page = report.page(&simulated);
        write_new(path, |to| Spliced::new(&page.as_bytes(), Vec::new())?.copy_to(to))
            .map_err(Failure::writing)?;
    }
    if let Some(path) = &args.junit {
        gate::write_junit(path, &report, &failed)?;
    }
    if app.global.json {
        app.print_json(&report)?;
    } else {
        let found = if args.all { month(&report) } else { report.finding() };
        let found = wrap_line(&found, 100).join("\n");
        let gates = gate::table(&report);
        app.print(&format!("{found}\n\n{}{}{gates}", table(&report), violations(&report)))?;
    }
    if !failed.is_empty() {
        let what = format!("{} of {} sessions were not replayed", failed.len(), inputs.len());
        return Err(Failure::new(Status::Unreadable, "unreadable", what));
    }
    gate::check(&report, simulate.commands.first())
}

fn nothing(args: &Args) -> Failure {
    let failure = Failure::new(Status::Unreadable, "not-found", "there is no session to replay");
    if !args.all {
        return failure;
    }
    failure
        .hint(format!("--all takes sessions of agents on this machine of the last {DAYS} days"))
        .hint("`epitome list` shows the older ones too; name them, or files")
}

fn options(app: &App, args: &Args) -> Result<Simulate> {
    let mut simulate = Simulate::new(&app.config, app.settings()?, &args.recipe)?;
    if let Some(path) = &args.prices {
        simulate.prices = simulate.prices.with(table_of(path)?);
    }
    if let Some(model) = args.model.as_deref()
        && simulate.prices.find(model).is_none()
    {
        let what = format!("the price of `{}` is not known", field(model));
        return Err(Failure::usage(what).hint("--prices names a table that has it"));
    }
    if let Some(overhead) = args.overhead {
        simulate = simulate.with_overhead(Tokens(overhead));
    }
    Ok(Simulate {
        commands: args.policy_command.iter().map(PolicyCommand::new).collect(),
        window: args.window.map_or(simulate.window, Tokens),
        target: args.target.map(|percent| percent as f64 / 100.0),
        model: args.model.clone(),
        estimate: app.global.count == Count::Estimate,
        ..simulate
    })
}

fn table_of(path: &Path) -> Result<Catalogue> {
    let what = "the table of prices cannot be read";
    let failure = || Failure::new(Status::Usage, "usage", what).with_path(path);
    let text = std::fs::read_to_string(path).map_err(|err| failure().because(&err))?;
    Catalogue::parse(&text).map_err(|err| failure().because(&err))
}

/// The sessions of this machine that were written to in the last `DAYS` days.
fn of_last_days(app: &App) -> Vec<Input> {
    let now = SystemTime::from(app.config.now());
    let longest = Duration::from_secs(DAYS * 86_400);
    let recent = session::all(app)
        .sessions
        .into_iter()
        .filter(|file| now.duration_since(file.modified).unwrap_or_default() <= longest);
    recent.map(|file| Input::File(file.path)).collect()
}

/// Replays a session as it was before its compactions. The texts say what of it could not be put
/// back from the archive.
fn one(app: &App, simulate: &Simulate, input: &Input) -> Result<(SimulatedSession, Vec<String>)> {
    let history = input.open(app, Version::AsItWas)?;
    let done = simulate.session(&input.name(), &history.session).map_err(|err| match input {
        Input::Stdin => err,
        Input::File(path) => err.with_default_path(path),
    })?;
    history.failure().map_or(Ok((done, history.missing)), |failure| Err(failure.into()))
}

fn table(report: &SimulateReport) -> String {
    let mut sides = [Side::Right; RecipeReport::HEADS.len()];
    sides[0] = Side::Left;
    let least_needed = ["far", "call", "bp", "over", "in line", "recoverable", "pins"];
    let table = Table::new(&sides, &RecipeReport::HEADS).shrinks(column("recipe"), 16);
    let mut table = table.leaves_out(&least_needed.map(column));
    report.rows().into_iter().for_each(|cells| table.row(cells));
    let legend = RecipeReport::LEGEND.iter().filter(|(head, _)| table.is_shown(column(head)));
    let width = RecipeReport::LEGEND.iter().map(|(head, _)| head.len()).max().unwrap_or(0);
    let legend: String =
        legend.map(|(head, is)| format!("{DIM}{head:<width$}  {is}{DIM:#}\n")).collect();
    let sessions = count(report.sessions.len() as u64, "session");
    let calls = count(report.calls, "call");
    let cuts = count(report.cuts, "forced compaction");
    let tokens = report.tokens;
    format!(
        "{}{DIM}{sessions}, {calls}, {tokens} tokens, {cuts}{DIM:#}\n\n{legend}",
        table.render()
    )
}

/// The rules that requests break, as paragraphs. Empty if no request breaks a rule.
fn violations(report: &SimulateReport) -> String {
    let findings = report.rule_findings();
    let findings = findings.iter().map(|finding| wrap_line(&field(finding), 100).join("\n"));
    findings.map(|finding| format!("\n{finding}\n")).collect()
}

fn column(head: &str) -> usize {
    RecipeReport::HEADS.iter().position(|it| *it == head).expect("a column")
}

/// Describes in a paragraph what the sessions of the last days would have cost.
fn month(report: &SimulateReport) -> String {
    let [none, recipes @ ..] = report.recipes.as_slice() else { return String::new() };
    let sessions = report.sessions.len() as u64;
    let calls = report.calls;
    let other_lines = recipes.iter().map(|recipe| {
        let name = field(&recipe.recipe);
        let dollars = recipe.micro_dollars;
        let change = recipe.cost.map_or_else(String::new, |cost| {
            let more = if cost > 1.0 { "more" } else { "less" };
            format!(" ({:.0}% {more})", (cost - 1.0).abs() * 100.0)
        });
        let far = recipe.far_recall.map_or_else(String::new, |far| {
            format!(
                ", and its requests would have held {:.1}% of the facts from far back that were \
                     used",
                far * 100.0
            )
        });
        format!("With {name} they would have cost {dollars}{change}{far}.")
    });
    let sessions = count(sessions, "session");
    let calls = count(calls, "call");
    let first = format!(
        "In the last {DAYS} days, {sessions} with {calls} would have cost {} at list prices \
         without any compaction.",
        none.micro_dollars
    );
    let all: Vec<String> = std::iter::once(first).chain(other_lines).collect();
    all.join(" ")
}
