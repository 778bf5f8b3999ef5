//! `epitome scan`: finds secrets and personal data in sessions.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::iter;

use clap::Args as ClapArgs;
use epitome::History;
use epitome::agents;
use epitome_redact::{Finder, Found, Redactor};
use serde::Serialize;

use crate::app::App;
use crate::failure::{Failure, Result, Status};
use crate::redaction::{MoreRules, RedactionCounts};
use crate::session::{self, Input, State, Which};
use crate::text::{BOLD, DIM, count, field};

const EXAMPLES: &str = "\
Examples:
  epitome scan session.jsonl
  epitome scan --for secrets,pii 0f3c9a52
  epitome scan --all
  epitome scan --json transcripts/*.jsonl | jq -r '.found[] | \"\\(.line) \\(.rule)\"'";

/// Report whether sessions hold secrets, without showing them
///
/// For each place it prints the line, the rule that matched and the length. The sessions of
/// sub-agents are scanned, too. The status is 6 if anything is found.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Files, session ids or their prefixes, or `-` for standard input
    #[arg(value_name = "SESSION", required_unless_present_any = ["all", "project"],
          conflicts_with_all = ["all", "project"])]
    pub sessions: Vec<OsString>,

    /// All sessions of this machine (with --agent: of that agent); those with nothing are counted
    #[arg(long)]
    pub all: bool,

    #[command(flatten)]
    pub which: Which,

    /// What to look for: `secrets`, `pii` (personal data), or rules by name
    #[arg(long = "for", value_name = "WHAT", value_delimiter = ',', default_value = "secrets")]
    pub what: Vec<String>,

    #[command(flatten)]
    pub state: State,

    #[command(flatten)]
    pub more: MoreRules,
}

/// The report of a session. See `docs/json.md`.
#[derive(Serialize)]
struct Scanned {
    session: String,
    agent: &'static str,
    id: Option<String>,
    found: Vec<RuleMatch>,
}

/// A place where a rule matched.
#[derive(Serialize)]
struct RuleMatch {
    rule: String,
    kind: &'static str,
    /// The number of the secret among the secrets of its rule. Equal secrets have equal numbers.
    number: u32,
    line: u64,
    /// The id of the entry that contains the match.
    entry: Option<String>,
    /// The length of the match in characters.
    chars: usize,
}

pub fn run(app: &App, args: &Args) -> Result<()> {
    let finder = args.more.finder(app, &args.what)?;
    let is_each = !args.sessions.is_empty();
    let names: Vec<OsString> = match is_each {
        true => args.sessions.clone(),
        false => session::all(app).sessions.into_iter().map(|it| it.path.into()).collect(),
    };
    let mut all = 0;
    let mut clean = 0;
    let mut worst: Option<Failure> = None;
    let inputs = with_sub_agents(app, &names);
    let is_one = inputs.len() == 1;
    for input in inputs {
        match input.and_then(|input| session(app, &finder, &input, args)) {
            Ok(Some(0)) => clean += 1,
            Ok(places) => all += places.unwrap_or(0),
            // The other sessions are scanned even if one fails.
            Err(failure) if !is_one => {
                if is_each {
                    app.note(failure.render().trim_end());
                } else {
                    // Hints are left out: the same hint for each of many files is noise.
                    app.note(&format!("{DIM}not scanned:{DIM:#} {}", field(&failure.one_line())));
                }
                failure.add_to(&mut worst);
            }
            Err(failure) => return Err(failure),
        }
    }
    if !is_each && !app.global.json {
        app.print(&format!("{}: nothing found\n", count(clean, "other session")))?;
    }
    if all > 0 {
        let what = format!("something was found in {}", count(all, "place"));
        return Err(Failure::new(Status::Found, "found", what)
            .hint("`epitome redact` writes a copy of a session without it"));
    }
    match worst {
        None => Ok(()),
        Some(Failure { status, kind, .. }) => {
            Err(Failure::new(status, kind, "some sessions could not be read"))
        }
    }
}

/// The named sessions, each followed by those of its sub-agents. A session that is named twice is
/// returned once.
fn with_sub_agents(app: &App, names: &[OsString]) -> Vec<Result<Input>> {
    let mut inputs = Vec::new();
    let mut seen = HashSet::new();
    for name in names {
        let path = match Input::find(app, name) {
            Ok(Input::File(path)) => path,
            other => {
                inputs.push(other);
                continue;
            }
        };
        let parts = agents::sub_agents(&path);
        let new = iter::once(path).chain(parts).filter(|path| seen.insert(path.clone()));
        inputs.extend(new.map(|path| Ok(Input::File(path))));
    }
    inputs
}

/// The number of places found in a session. `None` if the session was not run in the requested
/// project.
fn session(app: &App, finder: &Finder, input: &Input, args: &Args) -> Result<Option<u64>> {
    let shows_all = !args.sessions.is_empty();
    let history = args.state.open(app, input)?;
    if !args.which.takes(history.session.transcript.head.cwd.as_deref()) {
        return Ok(None);
    }
    let places = scan(app, finder, input, &history, shows_all)?;
    history.failure().map_or(Ok(Some(places)), |failure| Err(failure.into()))
}

/// Prints what was found in a session, and returns the number of places. A session in which nothing
/// was found is printed only with `--json` or if `shows_all`.
fn scan(
    app: &App,
    finder: &Finder,
    input: &Input,
    history: &History,
    shows_all: bool,
) -> Result<u64> {
    let session = &history.session;
    let redacted = history.redact(&mut Redactor::new(finder))?;
    // The ids of entries are taken from the redacted session, because an id may be a secret.
    let entries = &redacted.session.transcript.items;
    let items = &session.transcript.items;
    let entry = |found: &Found| {
        let idx = items.partition_point(|item| item.record().span.end <= found.at);
        let inside = items.get(idx).is_some_and(|item| item.record().span.start <= found.at);
        let entry = entries.get(idx).filter(|_| inside)?.entry()?;
        Some(entry.id.as_deref()?.to_owned())
    };
    let found = redacted.found.iter().map(|found| RuleMatch {
        rule: found.rule.clone(),
        kind: found.kind.name(),
        number: found.number,
        line: found.line,
        entry: entry(found),
        chars: found.chars,
    });
    let scanned = Scanned {
        session: input.name(),
        agent: session.format.name,
        id: redacted.session.transcript.head.id.as_deref().map(str::to_owned),
        found: found.collect(),
    };
    if app.global.json {
        app.print_json(&scanned)?
    } else if shows_all || !scanned.found.is_empty() {
        app.print(&render(&scanned, &RedactionCounts::count(&redacted.found)))?
    }
    Ok(scanned.found.len() as u64)
}

fn render(scanned: &Scanned, taken: &RedactionCounts) -> String {
    let mut text = String::new();
    let name = field(&scanned.session);
    if scanned.found.is_empty() {
        let _ = writeln!(text, "{BOLD}{name}{BOLD:#}: nothing found");
        return text;
    }
    let places = count(scanned.found.len() as u64, "place");
    let _ = writeln!(text, "{BOLD}{name}{BOLD:#}: {} in {places}", taken.message());
    for place in &scanned.found {
        let rule = format!("{}-{}", place.rule, place.number);
        let long = count(place.chars as u64, "character");
        let entry = place.entry.as_deref().map(|id| format!(", entry {}", field(id)));
        let entry = entry.unwrap_or_default();
        let line = place.line;
        let _ = writeln!(text, "  {rule}  {DIM}line {line}{entry}, {long}{DIM:#}");
    }
    text
}
