//! `epitome losses`: what compactions removed from the context, and what of it the agent needed.

use std::ffi::OsString;

use clap::Args as ClapArgs;
use epitome::ops::{OpenSession, session_losses};

use crate::app::App;
use crate::failure::Result;
use crate::losses::render;
use crate::session::{Input, State, file};

const EXAMPLES: &str = "\
Examples:
  epitome losses 0f3c9a52
  epitome losses --all-pieces 0f3c9a52
  epitome losses --json 0f3c9a52 | jq '.compactions[].again'";

/// Show what each compaction of a session took out of its context, and what the agent needed later
///
/// Compactions of epitome and the agent's own. `epitome compact --dry-run --losses` shows the same
/// of a compaction before it is made.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// A file, a session id, or its prefix
    #[arg(value_name = "SESSION")]
    pub session: OsString,

    /// List every text that left, instead of those that matter most
    #[arg(long)]
    pub all_pieces: bool,
}

pub fn run(app: &App, args: &Args) -> Result<()> {
    let path = file(app, &args.session)?;
    let session = OpenSession::with_agent(&app.config, &path, app.agent());
    let report = session_losses(&session, app.settings()?, app.counter())?;
    app.check_output_has_reader()?;
    if report.compactions.is_empty() {
        // If the archive of a compaction is on another machine, the report does not contain the
        // compaction. Opening the session prints a note about it.
        State::default().open(app, &Input::File(path))?;
    }
    if app.global.json {
        return app.print_json(&report);
    }
    app.page_folded(&render(&report, args.all_pieces))
}
