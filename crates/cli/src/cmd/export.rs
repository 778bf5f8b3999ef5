//! `epitome export`: a session as a request to a model, or as text.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::Args as ClapArgs;
use clap::builder::{PossibleValue, PossibleValuesParser};
use epitome::storage::{Spliced, write_new};
use epitome::{History, Loaded};
use epitome_api::RequestBody;
use epitome_model::{Bytes, Source};
use epitome_redact::{Finder, Redactor};
use serde::Serialize;

use crate::app::App;
use crate::cmd::engine::apis;
use crate::conversation;
use crate::failure::{Failure, Result, Status};
use crate::left_behind;
use crate::redaction::{Redaction, RedactionCounts};
use crate::session::{Input, State};
use crate::text::{self, DIM, count};

const EXAMPLES: &str = "\
Examples:
  epitome export --to anthropic 0f3c9a52 --out request.json
  epitome export --to openai-responses session.jsonl | jq '.input | length'
  epitome export --to transcript 0f3c9a52 | less";

/// The target that is readable text and not an API.
const TRANSCRIPT: &str = "transcript";

/// Write what a session would send as a request to another model, or as a transcript
///
/// A request holds the messages, and the system prompt if the session has it; add model, tools and
/// settings yourself. Calls keep their results, and all messages are included. Content that the API
/// does not accept is left out and reported on standard error.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// A file, a session id or its prefix, or `-` for standard input
    #[arg(value_name = "SESSION")]
    pub session: OsString,

    /// The model API that the request is for, or `transcript` for readable text
    #[arg(long, value_name = "WIRE", value_parser = wires())]
    pub to: String,

    /// Write to a new file (required with --json)
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,

    #[command(flatten)]
    pub state: State,

    #[command(flatten)]
    pub redaction: Redaction,
}

fn wires() -> PossibleValuesParser {
    apis().chain([PossibleValue::new(TRANSCRIPT)]).collect::<Vec<_>>().into()
}

/// The report of an export. See `docs/json.md`.
#[derive(Serialize)]
struct Exported {
    session: String,
    agent: &'static str,
    id: Option<String>,
    to: String,
    #[serde(serialize_with = "epitome_model::lossy_path_option")]
    out: Option<PathBuf>,
    bytes: Bytes,
    messages: u64,
    left_behind: BTreeMap<&'static str, u64>,
    /// The number of different redacted values, by rule.
    redacted: BTreeMap<String, u64>,
}

pub fn run(app: &App, args: &Args) -> Result<()> {
    if app.global.json && args.out.is_none() {
        return Err(Failure::usage("--json prints a report, so the export needs --out"));
    }
    let input = Input::find(app, &args.session)?;
    let finder = args.redaction.finder(app)?;
    let history = args.state.open(app, &input)?;
    let (made, taken) = made(args, finder.as_ref(), &history)?;
    history.failure().map_or(Ok(()), Err)?;
    write(app, args, &input, &history.session, &made, &taken)
}

/// Makes the request or the transcript. The session is redacted first, unless `finder` is `None`
/// because redaction is off.
fn made(
    args: &Args,
    finder: Option<&Finder>,
    history: &History,
) -> Result<(RequestBody, RedactionCounts)> {
    let Some(finder) = finder else {
        return Ok((make(args, &history.session), RedactionCounts::default()));
    };
    let redacted = history.redact(&mut Redactor::new(finder))?;
    Ok((make(args, &redacted.session), RedactionCounts::count(&redacted.found)))
}

fn make<S: Source>(args: &Args, session: &Loaded<S>) -> RequestBody {
    let Loaded { source, transcript, .. } = session;
    match epitome_api::find_api(&args.to) {
        Some(wire) => {
            let mut made = (wire.make)(transcript, source);
            if made.messages > 0 {
                made.body.push('\n');
            }
            made
        }
        None => {
            let (body, messages) = conversation::render(transcript, source);
            RequestBody { body, messages, ..RequestBody::default() }
        }
    }
}

fn write<S>(
    app: &App,
    args: &Args,
    input: &Input,
    session: &Loaded<S>,
    made: &RequestBody,
    taken: &RedactionCounts,
) -> Result<()> {
    if made.messages == 0 {
        let what = format!("the session sends nothing to a model: {}", input.name());
        return Err(Failure::new(Status::Unreadable, "empty", what));
    }
    let body = made.body.as_bytes();
    match &args.out {
        Some(out) => {
            write_new(out, |to| Spliced::new(&body, Vec::new())?.copy_to(to))
                .map_err(Failure::writing)?;
        }
        None => app.print_content(body)?,
    }
    if app.global.json {
        return app.print_json(&exported(args, input, session, made, taken));
    }
    if let Some(out) = &args.out {
        let messages = count(made.messages as u64, "message");
        let bytes = Bytes(body.len() as u64);
        app.note(&format!("{DIM}written:{DIM:#} {messages}, {bytes}, {}", text::path(out)));
    }
    for (what, n) in &made.left {
        app.note(&format!("{DIM}left out:{DIM:#} {}", left_behind::message(*what, *n)));
    }
    taken.print(app);
    Ok(())
}

fn exported<S>(
    args: &Args,
    input: &Input,
    session: &Loaded<S>,
    made: &RequestBody,
    taken: &RedactionCounts,
) -> Exported {
    Exported {
        session: input.name(),
        agent: session.format.name,
        id: session.transcript.head.id.as_deref().map(str::to_owned),
        to: args.to.clone(),
        out: args.out.as_deref().map(Path::to_owned),
        bytes: Bytes(made.body.len() as u64),
        messages: made.messages as u64,
        left_behind: made.left.iter().map(|(what, n)| (what.name(), *n)).collect(),
        redacted: taken.by_rule.clone(),
    }
}
