//! `epitome cost`: what sessions cost, by day, week, project, model or agent.

use std::time::Duration;

use clap::Args as ClapArgs;
use epitome::cost::{CostBy, CostFilter, CostReport, CostSum, cost};
use jiff::SignedDuration;

use crate::app::App;
use crate::failure::Result;
use crate::session::{self, Which};
use crate::table::{Side, Table};
use crate::text::{BOLD, DIM, PLAIN, count, one_line};

const EXAMPLES: &str = "\
Examples:
  epitome cost
  epitome cost --by model --since 30d
  epitome cost --by project --agent claude
  epitome cost --json | jq '.total.cost / 1e6'";

/// The maximum number of characters of a row's name. A longer name keeps its end, which matters
/// most in the path of a project.
const NAME: usize = 48;

/// Show what sessions cost: the tokens that providers counted, at list prices
///
/// Sub-agents are included, and a request that several sessions contain, as forks do, is counted
/// once. Days are in UTC. docs/cost.md says what is counted.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The rows of the table
    #[arg(long, value_name = "BY", default_value = "day", value_parser = by())]
    pub by: CostBy,

    /// Only requests of at most this age: 7d, 12h, 2w
    #[arg(long, value_name = "AGE", value_parser = session::parse_age)]
    pub since: Option<Duration>,

    #[command(flatten)]
    pub which: Which,
}

fn by() -> impl clap::builder::TypedValueParser<Value = CostBy> {
    use clap::builder::{PossibleValuesParser, TypedValueParser as _};

    PossibleValuesParser::new(CostBy::ALL.map(CostBy::name)).map(|name| {
        let named = CostBy::ALL.into_iter().find(|by| by.name() == name);
        named.expect("the parser accepts no other name")
    })
}

pub fn run(app: &App, args: &Args) -> Result<()> {
    let since = args.since.map(|age| {
        let age = SignedDuration::try_from(age).unwrap_or(SignedDuration::MAX);
        app.config.now().saturating_sub(age).unwrap_or(jiff::Timestamp::MIN)
    });
    let filter = CostFilter { agent: app.agent(), since };
    let report = cost(&app.with_rules()?, args.by, &filter, |cwd| args.which.takes(cwd))?;
    if app.global.json {
        return app.print_json(&report);
    }
    if report.rows.is_empty() {
        app.print("no requests\n")?;
        app.note(&format!(
            "{DIM}sessions of some agents record no tokens; `epitome list` shows all{DIM:#}"
        ));
        return Ok(());
    }
    app.page(&render(&report))
}

fn render(report: &CostReport) -> String {
    use Side::{Left, Right};
    let sides = [Left, Right, Right, Right, Right, Right, Right, Right];
    let head = report.by.name();
    let heads = [head, "sessions", "requests", "input", "cached", "written", "output", "cost"];
    let table = Table::new(&sides, &heads).shrinks(0, 12);
    let mut table = table.leaves_out(&[1, 5, 2]);
    for row in &report.rows {
        let name = row.name.as_deref().map_or("-".to_owned(), |name| end(name, NAME));
        let style = if row.name.is_some() { PLAIN } else { DIM };
        table.styled(style, cells(name, &row.sum));
    }
    table.styled(BOLD, cells("total".to_owned(), &report.total));
    let mut text = table.render();
    let mut notes = vec![format!(
        "cost: what a session records, or else list prices of {}; input is without the cache",
        report.prices_of
    )];
    if report.total.unpriced > 0 {
        let requests = count(report.total.unpriced, "request");
        notes.push(format!("{requests} of unknown cost are not in it"));
    }
    if report.unreadable > 0 {
        notes.push(format!("{} could not be read", count(report.unreadable, "session file")));
    }
    for note in notes {
        text.push_str(&format!("{DIM}{note}{DIM:#}\n"));
    }
    text
}

fn cells(name: String, sum: &CostSum) -> Vec<String> {
    let cost = match sum.requests > 0 && sum.unpriced == sum.requests {
        true => "-".to_owned(),
        false => sum.cost.to_string(),
    };
    vec![
        name,
        sum.sessions.to_string(),
        sum.requests.to_string(),
        sum.input_tokens.to_string(),
        sum.cached_tokens.to_string(),
        sum.cache_written_tokens.to_string(),
        sum.output_tokens.to_string(),
        cost,
    ]
}

/// The end of a name, on one line, with at most `most` characters.
fn end(name: &str, most: usize) -> String {
    let chars = name.chars().count();
    if chars <= most {
        return one_line(name, most);
    }
    let end: String = name.chars().skip(chars + 1 - most).collect();
    format!("…{}", one_line(&end, most))
}
