//! `epitome archive`: look after the removed bytes.

use std::collections::HashSet;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use clap::{Args as ClapArgs, Subcommand};
use epitome::{GcMode, GcReport, Generation, Loaded, SessionKey, VerifyReport, find, write_new};
use epitome_model::{Bytes, Source};
use jiff::Timestamp;
use serde::Serialize;

use crate::app::App;
use crate::failure::{Failure, Result, Status};
use crate::report::Change;
use crate::session::file;
use crate::text::{self, BOLD, DIM, RED, Side, Table, age, change, count, one_line, visible};

const EXAMPLES: &str = "\
Examples:
  epitome archive ls
  epitome archive verify
  epitome archive gc                     say what no session refers to any more
  epitome archive gc --yes               and remove it
  epitome archive export 0f3c9a52 --out session.tar
  epitome archive import session.tar";

/// Look after the archive of removed bytes
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(subcommand)]
    pub verb: Verb,
}

#[derive(Subcommand, Clone, Debug)]
pub enum Verb {
    /// List the compactions whose bytes are kept, by session
    Ls,
    /// Read everything, and say what is missing or damaged
    Verify,
    /// Say what no session refers to any more, and with --yes remove it
    Gc {
        /// Remove it
        #[arg(long)]
        yes: bool,
    },
    /// Write a session's part of the archive to a tar file, for another machine
    Export {
        /// A file, an id, or the beginning of an id
        #[arg(value_name = "SESSION")]
        session: String,
        /// Write it to a new file, and not to standard output
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Take an exported part in
    Import {
        /// The tar file, or `-` for standard input
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
}

pub fn run(app: &App, args: &Args) -> Result<()> {
    match &args.verb {
        Verb::Ls => ls(app),
        Verb::Verify => verify(app),
        Verb::Gc { yes } => gc(app, if *yes { GcMode::Remove } else { GcMode::Show }),
        Verb::Export { session, out } => export(app, session, out.as_deref()),
        Verb::Import { file } => import(app, file),
    }
}

/// A compaction in JSON.
#[derive(Serialize)]
struct Row<'a> {
    agent: &'a str,
    id: &'a str,
    generation: u64,
    #[serde(serialize_with = "crate::text::lossy")]
    session: &'a Path,
    recipe: &'a str,
    made: Timestamp,
    disk_bytes: Change<u64>,
    context_tokens: Change<u64>,
    blake3: Change<String>,
}

impl<'a> Row<'a> {
    fn of(it: &'a Generation) -> Row<'a> {
        Row {
            agent: &it.agent,
            id: &it.session,
            generation: it.number,
            session: &it.path,
            recipe: &it.recipe,
            made: it.made,
            disk_bytes: Change { before: it.before.len, after: it.after.len },
            context_tokens: Change { before: it.tokens_before.0, after: it.tokens_after.0 },
            blake3: Change {
                before: it.before.blake3.to_string(),
                after: it.after.blake3.to_string(),
            },
        }
    }
}

fn ls(app: &App) -> Result<()> {
    use Side::{Left, Right};
    let archive = app.config.archive();
    let heads = ["agent", "session", "", "age", "recipe", "disk", "", "after", "", "file"];
    let sides = [Left, Left, Right, Right, Left, Right, Left, Right, Right, Left];
    let mut table = Table::new(&sides, &heads);
    let mut rows = 0_u64;
    let mut damaged = 0_u64;
    for key in archive.sessions().map_err(Failure::writing)? {
        let found = archive.generations(&key).map_err(Failure::writing)?;
        damaged += found.damaged.len() as u64;
        for it in &found.whole {
            rows += 1;
            if app.global.json {
                app.print_json(&Row::of(it))?;
                continue;
            }
            let (before, after) = (it.before.len, it.after.len);
            let gone = if epitome::exists(&it.path) { "" } else { " (gone)" };
            table.row(vec![
                it.agent.clone(),
                one_line(&it.session, 40),
                format!("#{}", it.number),
                age(app.config.now(), it.made),
                one_line(&it.recipe, 24),
                Bytes(before).to_string(),
                "→".to_owned(),
                Bytes(after).to_string(),
                change(before, after),
                format!("{}{gone}", text::path(&it.path)),
            ]);
        }
    }
    if damaged > 0 {
        let what = count(damaged, "damaged part");
        app.note(&format!("{RED}{what}{RED:#}: `epitome archive verify` names them"));
    }
    match (app.global.json, rows) {
        (true, _) => Ok(()),
        (false, 0) => app.print("the archive is empty\n"),
        (false, _) => app.print(&table.render()),
    }
}

#[derive(Serialize)]
struct Verified {
    sessions: u64,
    generations: u64,
    pieces: u64,
    raw_bytes: Bytes,
    stored_bytes: Bytes,
    faults: Vec<String>,
}

fn verify(app: &App) -> Result<()> {
    let VerifyReport { sessions, packs, blobs, raw, stored, faults } =
        app.config.archive().verify().map_err(Failure::writing)?;
    let shown: Vec<String> =
        faults.iter().map(|fault| Failure::from(fault.clone()).told()).collect();
    if app.global.json {
        app.print_json(&Verified {
            sessions,
            generations: packs,
            pieces: blobs,
            raw_bytes: raw,
            stored_bytes: stored,
            faults: shown.clone(),
        })?;
    } else {
        let mut text = format!(
            "{} in {} of {}: {raw}, {stored} on disk\n",
            count(blobs, "piece"),
            count(packs, "generation"),
            count(sessions, "session"),
        );
        for fault in &shown {
            text.push_str(&format!("{RED}damaged{RED:#}  {}\n", visible(fault)));
        }
        if shown.is_empty() {
            text.push_str("every byte is what its hash says\n");
        }
        app.print(&text)?;
    }
    if faults.is_empty() {
        return Ok(());
    }
    let what = format!("the archive has {}", count(faults.len() as u64, "fault"));
    Err(Failure::new(Status::Disk, "archive", what).hint(
        "everything else can be read; copy the damaged files back from a backup if there is one",
    ))
}

#[derive(Serialize)]
struct Gone<'a> {
    agent: &'a str,
    id: &'a str,
    #[serde(serialize_with = "crate::text::lossy")]
    session: &'a Path,
    generations: u64,
    stored_bytes: Bytes,
    removed: bool,
}

fn gc(app: &App, mode: GcMode) -> Result<()> {
    // A session that was moved is still one.
    let known: HashSet<SessionKey> = find::sessions(&app.config, None)
        .into_iter()
        .map(|file| SessionKey::new(file.agent, file.id))
        .collect();
    // One that was forked bears another id, and the stubs of the first.
    let stubs = find::stubs(&app.config);
    let named = |it: &Generation| it.blobs().any(|blob| stubs.contains(&blob.reference()));
    let referred =
        |it: &Generation| epitome::exists(&it.path) || known.contains(&it.key()) || named(it);
    let report = app.config.archive().gc(referred, mode).map_err(Failure::writing)?;
    if app.global.json {
        return report.sessions.iter().try_for_each(|it| {
            app.print_json(&Gone {
                agent: &it.key.agent,
                id: &it.key.id,
                session: &it.path,
                generations: it.packs,
                stored_bytes: it.stored,
                removed: mode == GcMode::Remove,
            })
        });
    }
    app.print(&collected(&report, mode))
}

fn collected(report: &GcReport, mode: GcMode) -> String {
    use Side::{Left, Right};
    let mut table = Table::new(&[Left, Left, Right, Right, Left], &[]);
    for it in &report.sessions {
        table.row(vec![
            it.key.agent.clone(),
            one_line(&it.key.id, 40),
            count(it.packs, "generation"),
            it.stored.to_string(),
            text::path(&it.path),
        ]);
    }
    let stored: Bytes =
        report.sessions.iter().map(|it| it.stored).sum::<Bytes>() + report.leftover_bytes;
    let mut what = vec![count(report.sessions.len() as u64, "session")];
    if report.leftovers > 0 {
        what.push(format!("{} of killed processes", count(report.leftovers, "file")));
    }
    let mut text = table.render();
    let nothing = report.sessions.is_empty() && report.leftovers == 0;
    text.push_str(&match (nothing, mode) {
        (true, _) => "nothing to remove\n".to_owned(),
        (false, GcMode::Show) => format!(
            "{BOLD}would remove{BOLD:#} {}, {stored}; `epitome archive gc --yes` removes them for \
             good\n",
            what.join(" and ")
        ),
        (false, GcMode::Remove) => {
            format!("{BOLD}removed{BOLD:#} {}, {stored}\n", what.join(" and "))
        }
    });
    text.push_str(&format!("{DIM}{} kept{DIM:#}\n", count(report.kept, "session")));
    for unread in &report.unread {
        let line = visible(&unread.to_string());
        text.push_str(&format!("{RED}cannot be read{RED:#}, and stays: {line}\n"));
    }
    text
}

fn export(app: &App, session: &str, out: Option<&Path>) -> Result<()> {
    let archive = app.config.archive();
    let key = key_of(app, session)?;
    let missing = |err: epitome::Error| {
        let mut failure = Failure::writing(err);
        failure.hints.push("`epitome archive ls` shows what it holds".to_owned());
        failure
    };
    // Asked before anything is written.
    if archive.generations(&key).map_err(Failure::writing)?.whole.is_empty() {
        return Err(missing(archive.export(&key, &mut std::io::sink()).err().unwrap_or_else(
            || epitome::Error::from(std::io::Error::other("no generation of it can be read")),
        )));
    }
    match out {
        Some(out) => {
            let mut packs = 0;
            write_new(out, |to| {
                packs = archive.export(&key, to)?;
                Ok(())
            })
            .map_err(Failure::writing)?;
            let (what, out) = (count(packs, "generation"), text::path(out));
            app.print(&format!("{BOLD}exported{BOLD:#} {what} to {out}\n"))
        }
        None if app.is_terminal() => {
            Err(Failure::usage("a tar file is nothing for a terminal").hint("use --out FILE"))
        }
        None => {
            archive.export(&key, &mut std::io::stdout().lock()).map_err(stdout)?;
            Ok(())
        }
    }
}

/// That nobody reads the output is no failure.
fn stdout(err: epitome::Error) -> Failure {
    let mut cause: Option<&dyn std::error::Error> = Some(&err);
    while let Some(err) = cause {
        let io = err.downcast_ref::<std::io::Error>();
        if io.is_some_and(|io| io.kind() == std::io::ErrorKind::BrokenPipe) {
            return Failure::new(Status::Quiet, "quiet", "nobody reads the output");
        }
        cause = err.source();
    }
    Failure::writing(err)
}

/// The session as the archive knows it. Its file may be gone: then its id has to do.
fn key_of(app: &App, name: &str) -> Result<SessionKey> {
    let archived: Vec<SessionKey> = app.config.archive().sessions().map_err(Failure::writing)?;
    let by_id: Vec<&SessionKey> = archived
        .iter()
        .filter(|key| !name.is_empty() && key.id.starts_with(name))
        .filter(|key| app.agent().is_none_or(|agent| key.agent == agent))
        .collect();
    if let [key] = by_id.as_slice() {
        return Ok((*key).clone());
    }
    let path = file(app, name)?;
    let session = Loaded::open(&path, app.agent())?;
    Ok(session.key(&path))
}

#[derive(Serialize)]
struct Taken {
    agent: String,
    id: String,
    generation: u64,
    stored_bytes: Bytes,
}

fn import(app: &App, path: &Path) -> Result<()> {
    let archive = app.config.archive();
    let report = match path.to_str() {
        Some("-") => archive.import(&mut std::io::stdin().lock()),
        _ => {
            let source = epitome::FileSource::open(path)?;
            debug_assert!(source.len() < u64::MAX, "a file has a length");
            let file = File::open(path).map_err(|err| {
                let what = format!("cannot read the file: {}", path.display());
                Failure::new(Status::Unreadable, "unreadable", what).because(&err)
            })?;
            archive.import(&mut BufReader::new(file))
        }
    };
    let report = report.map_err(Failure::writing)?;
    if app.global.json {
        return report.added.into_iter().try_for_each(|it| {
            app.print_json(&Taken {
                agent: it.key.agent,
                id: it.key.id,
                generation: it.number,
                stored_bytes: it.stored,
            })
        });
    }
    let mut text = String::new();
    for it in &report.added {
        let (agent, id) = (&it.key.agent, visible(&it.key.id));
        text.push_str(&format!("{agent} {id} #{}, {}\n", it.number, it.stored));
    }
    let (added, known) = (count(report.added.len() as u64, "generation"), report.known);
    text.push_str(&format!("{BOLD}imported{BOLD:#} {added}, {known} were here already\n"));
    app.print(&text)
}
