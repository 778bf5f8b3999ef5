//! `epitome port`: converts a session for another agent.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args as ClapArgs;
use clap::builder::PossibleValuesParser;
use epitome::port::PortedSession;
use epitome::{Loaded, agents};
use epitome_model::Bytes;
use serde::Serialize;

use crate::app::App;
use crate::failure::{Failure, Result};
use crate::left_behind;
use crate::session::Input;
use crate::text::{self, DIM, count, shell_word};

const EXAMPLES: &str = "\
Examples:
  epitome port 0f3c9a52 --to codex
  epitome port rollout.jsonl --to claude --cwd ~/project
  epitome port request.json --to pi --out session.jsonl";

/// Convert a session for another agent, which resumes it there
///
/// The new session contains what a resume of the old one would send: messages, calls with their
/// results, pictures, summaries. It is written where the agent looks for it, under a new id; the
/// old session is not changed. Reasoning and other content that cannot be converted is left out and
/// reported on standard error.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// A file, a session id or its prefix, or `-` for standard input
    #[arg(value_name = "SESSION")]
    pub session: OsString,

    /// The agent that will resume it
    #[arg(long, value_name = "AGENT", value_parser = targets())]
    pub to: String,

    /// The working folder of the new session, if not that of the old one
    #[arg(long, value_name = "DIR")]
    pub cwd: Option<PathBuf>,

    /// Write to this new file instead of the agent's folder
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

fn targets() -> PossibleValuesParser {
    agents::resumable_agents().map(|(agent, _)| agent.name()).collect::<Vec<_>>().into()
}

/// The report of a conversion. See `docs/json.md`.
#[derive(Serialize)]
struct Carried {
    session: String,
    agent: &'static str,
    id: Option<String>,
    to: &'static str,
    new_id: String,
    #[serde(serialize_with = "epitome_model::lossy_path")]
    cwd: PathBuf,
    #[serde(serialize_with = "epitome_model::lossy_path")]
    out: PathBuf,
    bytes: Bytes,
    records: u64,
    left_behind: BTreeMap<&'static str, u64>,
    resume: Option<Vec<String>>,
}

pub fn run(app: &App, args: &Args) -> Result<()> {
    let input = Input::find(app, &args.session)?;
    let session = input.load(app)?;
    let agent = agents::find_agent(&args.to).expect("clap takes the names of agents alone");
    let ported = PortedSession::make(&app.config, &session, agent, args.cwd.as_deref());
    let Input::File(path) = &input else { return write(app, args, &input, &session, &ported?) };
    let mut ported = ported.map_err(|err| Failure::from(err).with_path(path))?;
    if let Some(failure) = session.source.failure() {
        return Err(failure.into());
    }
    ported.without_sub_agents_of(path);
    write(app, args, &input, &session, &ported)
}

fn write<S>(
    app: &App,
    args: &Args,
    input: &Input,
    session: &Loaded<S>,
    ported: &PortedSession,
) -> Result<()> {
    let out = match &args.out {
        Some(out) => out.clone(),
        None => ported.place(&app.config)?,
    };
    ported.write(&out).map_err(Failure::writing)?;
    if app.global.json {
        return app.print_json(&carried(args, input, session, ported, out));
    }
    let messages = count(ported.made.messages as u64, "record");
    let bytes = Bytes(ported.made.body.len() as u64);
    app.note(&format!("{DIM}written:{DIM:#} {messages}, {bytes}, {}", text::path(&out)));
    for (what, n) in &ported.made.left {
        app.note(&format!("{DIM}left out:{DIM:#} {}", left_behind::message(*what, *n)));
    }
    if !ported.cwd.is_dir() {
        app.note(&format!(
            "{DIM}note:{DIM:#} {} is not a directory on this machine; --cwd names another",
            text::path(&ported.cwd)
        ));
    }
    match resume(args, ported) {
        Some(command) => {
            let cwd = shell_word(&ported.cwd.to_string_lossy());
            let words: Vec<String> = command.iter().map(|word| shell_word(word)).collect();
            app.print_content(format!("cd {cwd} && {}\n", words.join(" ")).as_bytes())
        }
        None => Ok(()),
    }
}

/// The command that resumes the new session. `None` with `--out`, because the agent may not find
/// the session there.
fn resume(args: &Args, ported: &PortedSession) -> Option<Vec<String>> {
    let words = ported.resume.command.iter().map(|word| (*word).to_owned());
    args.out.is_none().then(|| words.chain([ported.id.clone()]).collect())
}

fn carried<S>(
    args: &Args,
    input: &Input,
    session: &Loaded<S>,
    ported: &PortedSession,
    out: PathBuf,
) -> Carried {
    Carried {
        session: input.name(),
        agent: session.format.name,
        id: session.transcript.head.id.as_deref().map(str::to_owned),
        to: ported.agent.name(),
        new_id: ported.id.clone(),
        cwd: ported.cwd.clone(),
        out,
        bytes: Bytes(ported.made.body.len() as u64),
        records: ported.made.messages as u64,
        left_behind: ported.made.left.iter().map(|(what, n)| (what.name(), *n)).collect(),
        resume: resume(args, ported),
    }
}
