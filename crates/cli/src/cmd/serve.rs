//! `epitome serve`: the viewer, in a web browser.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::Args as ClapArgs;
use epitome_web::{Options, Server, Which};
use serde::Serialize;
use tempfile::NamedTempFile;

use crate::app::App;
use crate::failure::{Failure, Result, Status};
use crate::redaction::Redaction;
use crate::text::{BOLD, DIM};

const EXAMPLES: &str = "\
Examples:
  epitome serve                        all sessions of all agents
  epitome serve --agent claude --open  those of one, in the browser at once
  epitome serve --dir ~/transcripts    those in a folder and below it";

/// Show sessions in a browser: read them, search them, follow a running one, compact and restore
///
/// The server answers only this machine, and only requests with the printed address, which contains
/// a secret token of this run. Ctrl-C stops it. Secrets and personal data are redacted everywhere.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// All sessions (the default); with --agent all of that agent
    #[arg(long, conflicts_with_all = ["dir", "project"])]
    pub all: bool,

    /// The sessions of a project: its folder, or its folder's name
    #[arg(long, short, value_name = "PROJECT", conflicts_with = "dir")]
    pub project: Option<String>,

    /// The sessions in a folder and below it, of any agent
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,

    /// The port on 127.0.0.1; 0 means any free port
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub port: u16,

    /// Open the address in the browser
    #[arg(long)]
    pub open: bool,

    #[command(flatten)]
    pub redaction: Redaction,
}

#[derive(Serialize)]
struct Address<'a> {
    address: &'a str,
}

pub fn run(app: &App, args: &Args) -> Result<()> {
    if let Some(dir) = args.dir.as_ref().filter(|dir| !dir.is_dir()) {
        return Err(Failure::usage(format!("not a directory: {}", dir.display())));
    }
    let which = match (&args.dir, app.agent()) {
        (Some(dir), _) => Which::Below(dir.clone()),
        (None, Some(agent)) => Which::Of(agent.to_owned()),
        (None, None) => Which::All,
    };
    let options = options(app, which, &args.redaction)?;
    let server = Server::bind(options, args.port).map_err(|err| {
        Failure::new(Status::Refused, "port", format!("cannot listen on port {}", args.port))
            .because(&err)
            .hint("--port 0 uses any free port")
    })?;
    // The project only filters the list. The other sessions can still be opened.
    let project = args.project.as_deref().map(|project| match Path::new(project).canonicalize() {
        Ok(folder) if folder.is_dir() => folder.to_string_lossy().into_owned(),
        Ok(_) | Err(_) => project.to_owned(),
    });
    let below = args.dir.as_ref().and(app.agent());
    let address = server.address_of(below, project.as_deref());
    if app.global.json {
        app.print_json(&Address { address: &address })?
    } else {
        app.print(&format!("{BOLD}{address}{BOLD:#}\n"))?
    }
    app.note(&format!("{DIM}answers only this machine; stop with Ctrl-C{DIM:#}"));
    // The browser opens a file that redirects to the address. The file is kept until the server
    // ends, because a browser may be slow to read it.
    let _opened = if args.open { open(app, &address)? } else { None };
    server
        .run()
        .map_err(|err| Failure::new(Status::Disk, "disk", "the viewer failed").because(&err))
}

/// The viewer's options.
pub fn options(app: &App, which: Which, redaction: &Redaction) -> Result<Options> {
    let mut config = app.config.clone();
    // The search index must redact with the same rules as the pages.
    config.rules = redaction.more.files(app)?;
    let settings = app.settings()?.clone();
    let finder = redaction.finder(app)?;
    let counter = app.counter();
    Ok(Options { config, settings, which, finder, counter })
}

fn open(app: &App, address: &str) -> Result<Option<NamedTempFile>> {
    match open_address(address)? {
        Ok(file) => Ok(Some(file)),
        Err(err) => {
            app.note(&format!("{DIM}no browser could be opened ({err}): open the address{DIM:#}"));
            Ok(None)
        }
    }
}

/// Opens an address of the viewer by a private file that redirects to it. A command line with the
/// address would show the token to other users of this machine. The caller keeps the file until the
/// browser has read it.
pub fn open_address(
    address: &str,
) -> Result<std::result::Result<NamedTempFile, opener::OpenError>> {
    let file = redirecting_page(address).map_err(|err| {
        Failure::new(Status::Disk, "disk", "cannot write the file that opens the viewer")
            .because(&err)
    })?;
    Ok(opener::open(file.path()).map(|()| file))
}

/// Writes a page that redirects to an address.
fn redirecting_page(address: &str) -> std::io::Result<NamedTempFile> {
    let mut file = tempfile::Builder::new().prefix("epitome-").suffix(".html").tempfile()?;
    write!(
        file,
        "<!doctype html><meta charset=\"utf-8\">\
<meta name=\"referrer\" content=\"no-referrer\">\
<meta http-equiv=\"refresh\" content=\"0;url={address}\"><title>epitome</title>"
    )?;
    file.flush()?;
    Ok(file)
}
