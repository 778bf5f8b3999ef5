//! `epitome mcp`: a server that lets agents look into earlier sessions.

use std::path::PathBuf;

use clap::Args as ClapArgs;

use crate::app::App;
use crate::failure::{Failure, Result, Status};
use crate::redaction::Redaction;

const EXAMPLES: &str = "\
Examples:
  epitome install --mcp --agent claude
  claude mcp add epitome -- epitome mcp";

/// Serve past sessions to agents: search, what compactions removed, plans (MCP on standard input
/// and output)
///
/// Agents start it; docs/mcp.md lists its tools. They only read. Secrets and personal data are
/// redacted, and answers are marked as quoted data.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(flatten)]
    pub redaction: Redaction,

    /// The folder of the archive: what EPITOME_HOME was set to when `install` was run
    #[arg(long, value_name = "DIR", hide = true)]
    pub home: Option<PathBuf>,
}

pub fn run(app: &App, args: &Args) -> Result<()> {
    // Only an option turns redaction off. A setting that did so would show secrets to models
    // unnoticed.
    let finder = match args.redaction.no_redact {
        true => None,
        false => Some(args.redaction.always(app)?),
    };
    let settings = app.settings()?.clone();
    let mut config = app.with_rules()?;
    if let Some(home) = &args.home {
        config.home.clone_from(home);
    }
    epitome_mcp::serve_stdio(config, settings, finder).map_err(|err| {
        Failure::new(Status::Unreadable, "unreadable", "the client ended the connection")
            .because(&err)
            .hint("an agent starts this program; docs/mcp.md says how to add it to one")
    })
}
