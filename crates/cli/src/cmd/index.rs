//! `epitome index`: the page that links to rendered sessions.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use epitome::render::rebuild_index;

use crate::app::App;
use crate::failure::Result;
use crate::text::{self, DIM, count};

const EXAMPLES: &str = "\
Examples:
  epitome index --dir pages";

/// Rebuild the index of a folder of rendered sessions
///
/// The index then lists the pages that are in the folder now: without those that were removed, and
/// with those that were copied into it.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The folder that `epitome render --out` wrote
    #[arg(long, short, value_name = "DIR")]
    pub dir: PathBuf,
}

pub fn run(app: &App, args: &Args) -> Result<()> {
    let index = rebuild_index(&args.dir)?;
    if app.global.json {
        return app.print_json(&index);
    }
    let sessions = count(index.sessions.len() as u64, "session");
    let path = text::path(&args.dir.join("index.html"));
    app.print(&format!("{DIM}{sessions} in{DIM:#} {path}\n"))
}
