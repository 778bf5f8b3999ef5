//! `epitome manifest`: the manifest of a folder of transcripts.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{Args as ClapArgs, Subcommand};
use epitome::Version;
use epitome::agents::{self, SessionMatch};
use epitome::render::{ListPrices, RenderOptions, RenderSource, facts_of, repair, upsert};
use epitome_redact::Finder;
use epitome_render::{Detail, Listing};

use crate::app::App;
use crate::failure::{Failure, Result};
use crate::redaction::Redaction;
use crate::session::{Input, read_stdin};
use crate::text::{self, DIM, count};

const EXAMPLES: &str = "\
Examples:
  epitome manifest upsert --agent claude --file session.jsonl \\
      --manifest pages/manifest.json --href 0f3c/index.html
  epitome manifest repair --dir pages --agent claude";

/// Update the manifest of a folder of transcripts
///
/// `epitome render --out` does this by itself; this command is for pages that other programs made.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Clone, Debug)]
enum Verb {
    /// Add or update a session in the manifest
    Upsert(Upsert),
    /// Rebuild the manifest from the files in the folder
    ///
    /// For folders with pages of other programs, the session with the folder's name as its id is
    /// read. Those whose session is gone are left out.
    Repair(Repair),
}

#[derive(ClapArgs, Clone, Debug)]
struct Upsert {
    /// The session: a file, a session id or its prefix, or `-`
    #[arg(long, short, visible_alias = "session", short_alias = 's', value_name = "SESSION")]
    file: OsString,

    /// The manifest; an index page is written into its folder
    #[arg(long, short, value_name = "FILE")]
    manifest: PathBuf,

    /// The path of the session's page, relative to that folder
    #[arg(long, value_name = "PATH")]
    href: String,

    #[command(flatten)]
    redaction: Redaction,
}

#[derive(ClapArgs, Clone, Debug)]
struct Repair {
    /// The folder of transcripts
    #[arg(long, short, value_name = "DIR")]
    dir: PathBuf,

    #[command(flatten)]
    redaction: Redaction,
}

pub fn run(app: &App, args: &Args) -> Result<()> {
    match &args.verb {
        Verb::Upsert(args) => run_upsert(app, args),
        Verb::Repair(args) => run_repair(app, args),
    }
}

fn run_upsert(app: &App, args: &Upsert) -> Result<()> {
    if args.manifest.file_name().is_none_or(|name| name != "manifest.json") {
        return Err(Failure::usage("the file must be named manifest.json"));
    }
    let folder = args.manifest.parent().filter(|it| !it.as_os_str().is_empty());
    let reading = match Input::find(app, &args.file)? {
        Input::Stdin => {
            RenderSource::from_bytes(&app.config, read_stdin()?, app.agent(), Version::AsItWas)?
        }
        Input::File(path) => RenderSource::open(&app.config, &path, app.agent())?,
    };
    let finder = args.redaction.finder(app)?;
    let listing = with(app, finder.as_ref(), |how| {
        upsert(folder.unwrap_or(Path::new(".")), &reading, how, &args.href)
    })
    .map_err(Failure::writing)?;
    if app.global.json {
        app.print_json(&listing)
    } else {
        app.print(&format!("{}  {}\n", args.href, text::field(&listing.facts.title)))
    }
}

fn run_repair(app: &App, args: &Repair) -> Result<()> {
    let finder = args.redaction.finder(app)?;
    let mut session = |name: &str| -> Option<Listing> {
        let SessionMatch::File(path) = agents::find_session(&app.config.agents, name, app.agent())
        else {
            app.note(&format!("{DIM}left out:{DIM:#} {}: no such session", text::field(name)));
            return None;
        };
        let facts = RenderSource::open(&app.config, &path, app.agent())
            .and_then(|reading| with(app, finder.as_ref(), |how| facts_of(&reading, how)));
        facts
            .map_err(|err| {
                let why = Failure::from(err).one_line();
                app.note(&format!("{DIM}left out:{DIM:#} {}", text::field(&why)));
            })
            .ok()
    };
    let (index, left_out) = repair(&args.dir, &mut session)?;
    if app.global.json {
        return app.print_json(&index);
    }
    let entries = count(index.sessions.len() as u64, "entry");
    let skipped = match left_out {
        0 => String::new(),
        n => format!(" ({} left out)", count(n, "folder")),
    };
    app.print(&format!("repaired the manifest: {entries}{skipped}\n"))
}

fn with<T>(
    app: &App,
    redact: Option<&Finder>,
    what: impl FnOnce(&RenderOptions<'_>) -> epitome::Result<T>,
) -> epitome::Result<T> {
    let archive = app.config.archive();
    let prices = ListPrices::from_config(&app.config)?;
    let prices = Some(&prices);
    what(&RenderOptions { detail: Detail::Steps, redact, compact: None, archive: &archive, prices })
}
