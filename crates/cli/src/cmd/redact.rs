//! `epitome redact`: a copy of a session without its secrets.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args as ClapArgs;
use epitome::History;
use epitome::agents;
use epitome::storage::write_new;
use epitome_model::{Bytes, Source};
use epitome_redact::Redactor;
use serde::Serialize;

use crate::app::App;
use crate::failure::{Failure, Result};
use crate::redaction::{Redaction, RedactionCounts};
use crate::session::{Input, State};
use crate::text::{self, DIM, count};

const EXAMPLES: &str = "\
Examples:
  epitome redact 0f3c9a52 --out shared.jsonl
  epitome redact session.jsonl --redact secrets --out shared.jsonl
  epitome redact - < session.jsonl > shared.jsonl";

/// Write a copy of a session without secrets and personal data
///
/// Each one is replaced by [REDACTED:rule-1]; the same secret has the same number throughout.
/// Everything else is unchanged, to the byte, and the agent's format is kept. The session itself is
/// not touched.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// A file, a session id or its prefix, or `-` for standard input
    #[arg(value_name = "SESSION")]
    pub session: OsString,

    /// Write to a new file (required with --json)
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,

    #[command(flatten)]
    pub state: State,

    #[command(flatten)]
    pub redaction: Redaction,
}

/// The report of a redaction. See `docs/json.md`.
#[derive(Serialize)]
struct Written {
    session: String,
    agent: &'static str,
    id: Option<String>,
    #[serde(serialize_with = "epitome_model::lossy_path_option")]
    out: Option<PathBuf>,
    bytes: Bytes,
    redacted: BTreeMap<String, u64>,
    places: u64,
}

pub fn run(app: &App, args: &Args) -> Result<()> {
    if app.global.json && args.out.is_none() {
        return Err(Failure::usage("--json prints a report, so the copy needs --out"));
    }
    let input = Input::find(app, &args.session)?;
    if args.redaction.no_redact {
        return Err(Failure::usage("--no-redact cannot be used with redact"));
    }
    write(app, args, &input, &args.state.open(app, &input)?)?;
    if let Input::File(path) = &input {
        note_sub_agents(app, &agents::sub_agents(path));
    }
    Ok(())
}

/// Says that the copy has nothing of the sub-agents, whose sessions are files of their own.
fn note_sub_agents(app: &App, paths: &[PathBuf]) {
    let Some(first) = paths.first() else { return };
    app.note(&format!(
        "{DIM}left out:{DIM:#} {}; such a file can be copied alone: {}",
        count(paths.len() as u64, "sub-agent"),
        text::path(first)
    ));
}

fn write(app: &App, args: &Args, input: &Input, history: &History) -> Result<()> {
    let finder = args.redaction.always(app)?;
    let copy = history.redact(&mut Redactor::new(&finder))?;
    history.failure().map_or(Ok(()), Err)?;
    let source = &copy.session.source;
    match &args.out {
        Some(out) => write_new(out, |to| source.copy_to(to)).map_err(Failure::writing)?,
        None => app.print_content(&source.read(0..Source::len(source)))?,
    }
    let taken = RedactionCounts::count(&copy.found);
    let bytes = Bytes(Source::len(source));
    if app.global.json {
        return app.print_json(&Written {
            session: input.name(),
            agent: history.session.format.name,
            id: copy.session.transcript.head.id.as_deref().map(str::to_owned),
            out: args.out.clone(),
            bytes,
            redacted: taken.by_rule,
            places: copy.found.len() as u64,
        });
    }
    if let Some(out) = &args.out {
        let message = taken.message();
        app.note(&format!("{DIM}written:{DIM:#} {}, {bytes}; {message} redacted", text::path(out)));
    } else {
        taken.print(app);
    }
    Ok(())
}
