//! `epitome archive`: manage the archive of removed bytes.

mod ls;
pub mod remote;
mod transfer;

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args as ClapArgs, Subcommand};
use epitome::archive::{GcMode, GcReport, Reason, SessionKey, VerifyReport, collect_garbage};
use epitome::keep::VaultReport;
use epitome::storage::Store;
use epitome::{ErrorKind, sentence};
use epitome_model::Bytes;
use jiff::SignedDuration;
use serde::Serialize;

use crate::app::App;
use crate::confirm::ask_to_continue;
use crate::failure::{Failure, Result, Status};
use crate::session::file;
use crate::table::{Side, Table};
use crate::text::{self, BOLD, DIM, RED, count, field, one_line};

const EXAMPLES: &str = "\
Examples:
  epitome archive ls
  epitome archive verify
  epitome archive gc                     show what no session needs any more
  epitome archive gc --yes               and move it to the trash
  epitome archive rm 0f3c9a52            move everything archived of one session to the trash
  epitome archive export 0f3c9a52 --out session.tar
  epitome archive export --vault --out versions.tar   every version that `epitome keep` has
  epitome archive import session.tar
  epitome archive push                   copy what is new to `archive.url`, encrypted
  epitome archive pull                   copy what other machines pushed";

/// The grace period of `archive gc`, if none is given.
const GRACE: &str = "14d";

/// List, verify, clean up, export, import, push and pull the archive of removed bytes
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(subcommand)]
    pub verb: Verb,
}

#[derive(Subcommand, Clone, Debug)]
pub enum Verb {
    /// List the archived compactions, by session
    Ls,
    /// Read everything, and report what is missing or damaged
    Verify,
    /// Show what no session needs any more; with --yes move it to the trash
    ///
    /// What cannot be read, or cannot be proved unneeded, stays. The trash is a folder in the
    /// archive; a later gc deletes from it what is older than the grace period.
    Gc {
        /// Move unneeded data to the trash, and delete what has been there for the grace period
        #[arg(long)]
        yes: bool,
        /// The grace period: how long unneeded data stays in the archive, and then in the trash
        #[arg(long, value_name = "TIME", default_value = GRACE,
              value_parser = crate::session::parse_age)]
        grace: Duration,
    },
    /// Move a session's part of the archive to the trash, even if it is needed; asks first
    Rm {
        /// A file, a session id, or its prefix
        #[arg(value_name = "SESSION")]
        session: String,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// Write a session's part of the archive to a tar file, for another machine
    Export {
        /// A file, a session id, or its prefix
        #[arg(value_name = "SESSION", required_unless_present = "vault")]
        session: Option<String>,
        /// Also write the versions that `epitome keep` has of it; without SESSION: of all sessions
        #[arg(long)]
        vault: bool,
        /// Write to a new file instead of standard output
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Import an exported part, if it belongs to a session of this machine
    ///
    /// The session has to be on this machine. What is imported is marked: restore asks before it
    /// uses it. Versions of the vault need no session; they stay those of their machine.
    Import {
        /// The tar file, or `-` for standard input
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// The session's file, if it is not where its agent keeps sessions
        #[arg(long, value_name = "FILE")]
        session: Option<PathBuf>,
    },
    /// Copy what is not there yet to the storage at `archive.url`, encrypted
    ///
    /// Includes the vault of `epitome keep`. A compaction does this, too, for what it archives.
    /// Nothing is deleted there but packs of the vault that others replace, and what was forgotten.
    Push,
    /// Copy what other machines pushed from `archive.url`
    ///
    /// Each part is proved by its hash. Without SESSION, everything is copied but what was removed
    /// here on purpose, also versions of other machines.
    Pull {
        /// A file, a session id, or its prefix; with --agent also the whole id of a session that is
        /// not on this machine
        #[arg(value_name = "SESSION")]
        session: Option<String>,
    },
    /// Show the public part of the key of `archive.url`; export, import or remove the key
    Key {
        #[command(subcommand)]
        verb: Option<remote::KeyVerb>,
    },
}

pub fn run(app: &App, args: &Args) -> Result<()> {
    match &args.verb {
        Verb::Ls => ls::ls(app),
        Verb::Verify => verify(app),
        Verb::Gc { yes, grace } => {
            gc(app, if *yes { GcMode::Remove } else { GcMode::Show }, *grace)
        }
        Verb::Rm { session, yes } => rm(app, session, *yes),
        Verb::Export { session, vault, out } => {
            transfer::export(app, session.as_deref(), *vault, out.as_deref())
        }
        Verb::Import { file, session } => transfer::import(app, file, session.as_deref()),
        Verb::Push => remote::push(app),
        Verb::Pull { session } => remote::pull(app, session.as_deref()),
        Verb::Key { verb } => remote::key(app, verb.as_ref()),
    }
}

/// The result of `archive verify`, in JSON.
#[derive(Serialize)]
struct Verified<'a> {
    #[serde(flatten)]
    archive: &'a VerifyReport,
    vault: &'a VaultReport,
}

fn verify(app: &App) -> Result<()> {
    let report = app.config.archive().verify().map_err(Failure::writing)?;
    let vault = app.config.vault().map_err(Failure::writing)?.verify();
    if app.global.json {
        app.print_json(&Verified { archive: &report, vault: &vault })?;
    } else {
        let VerifyReport { sessions, packs, blobs, raw, stored, ref faults } = report;
        let mut text = format!(
            "{} in {} of {}: {raw}, {stored} on disk\n",
            count(blobs, "piece"),
            count(packs, "generation"),
            count(sessions, "session"),
        );
        if vault.packs > 0 {
            text.push_str(&format!(
                "{} in {} of {} in the vault: {}, {} on disk\n",
                count(vault.chunks, "chunk"),
                count(vault.versions, "version"),
                count(vault.files, "file"),
                vault.raw,
                vault.stored,
            ));
        }
        for fault in faults.iter().chain(&vault.faults) {
            text.push_str(&format!("{RED}damaged{RED:#}  {}\n", field(&sentence(fault))));
        }
        if faults.is_empty() && vault.faults.is_empty() {
            text.push_str("all bytes match their hashes\n");
        }
        app.print(&text)?;
    }
    let faults = report.faults.len() + vault.faults.len();
    if faults == 0 {
        return Ok(());
    }
    let what = format!("the archive has {}", count(faults as u64, "fault"));
    Err(Failure::new(Status::Disk, "archive", what).hint(
        "everything else can be read; copy the damaged files back from a backup if there is one",
    ))
}

#[derive(Serialize)]
struct Gone<'a> {
    agent: &'a str,
    id: &'a str,
    #[serde(serialize_with = "epitome_model::lossy_path")]
    session: &'a Path,
    generations: u64,
    stored_bytes: Bytes,
    removed: bool,
    reason: Reason,
}

fn gc(app: &App, mode: GcMode, grace: Duration) -> Result<()> {
    let grace = SignedDuration::try_from(grace).unwrap_or(SignedDuration::MAX);
    let report = collect_garbage(&app.config, grace, mode).map_err(Failure::writing)?;
    if app.global.json {
        if report.sessions.is_empty() {
            // Standard output has an object for each session, and there is none.
            app.note(totals(&report, mode, grace).trim_end());
        }
        return report.sessions.iter().try_for_each(|it| {
            app.print_json(&Gone {
                agent: &it.key.agent,
                id: &it.key.id,
                session: &it.path,
                generations: it.packs,
                stored_bytes: it.stored,
                removed: mode == GcMode::Remove,
                reason: it.reason,
            })
        });
    }
    app.print(&(session_table(&report) + &totals(&report, mode, grace)))
}

/// The option for a grace period, with a space before it; empty for the default.
fn grace_option(grace: SignedDuration) -> String {
    match whole_days(grace) {
        grace if grace == GRACE => String::new(),
        grace => format!(" --grace {}", text::shell_word(&grace)),
    }
}

/// A duration as `14d` if it is a number of whole days, or else in hours and smaller units.
fn whole_days(grace: SignedDuration) -> String {
    match (grace.as_hours(), grace.as_secs() % 86_400) {
        (24.., 0) => format!("{}d", grace.as_hours() / 24),
        _ => format!("{grace:#}"),
    }
}

/// The sessions of which generations go.
fn session_table(report: &GcReport) -> String {
    use Side::{Left, Right};
    let mut table = Table::new(&[Left, Left, Right, Right, Left, Left], &[]);
    for it in &report.sessions {
        table.row(vec![
            it.key.agent.clone(),
            one_line(&it.key.id, 40),
            count(it.packs, "generation"),
            it.stored.to_string(),
            match it.reason {
                Reason::Restored => "restored".to_owned(),
                Reason::Gone => "gone".to_owned(),
            },
            text::path(&it.path),
        ]);
    }
    table.render()
}

/// How much goes and how much stays. If nothing was removed yet, also the command that removes it.
fn totals(report: &GcReport, mode: GcMode, grace: SignedDuration) -> String {
    let stored: Bytes = report.sessions.iter().map(|it| it.stored).sum();
    let (trash, delete) = match mode {
        GcMode::Show => ("would move to the trash", "would delete"),
        GcMode::Remove => ("moved to the trash", "deleted"),
    };
    let mut text = String::new();
    if !report.sessions.is_empty() {
        let what = count(report.sessions.iter().map(|it| it.packs).sum(), "generation");
        let sessions = count(report.sessions.len() as u64, "session");
        text.push_str(&format!("{BOLD}{trash}{BOLD:#} {what} of {sessions}, {stored}\n"));
    }
    if report.emptied > 0 {
        let what = count(report.emptied, "generation");
        let bytes = report.emptied_bytes;
        text.push_str(&format!("{BOLD}{delete}{BOLD:#} {what} from the trash, {bytes}\n"));
    }
    if report.leftovers > 0 {
        let what = count(report.leftovers, "file");
        let bytes = report.leftover_bytes;
        text.push_str(&format!("{BOLD}{delete}{BOLD:#} {what} of killed processes, {bytes}\n"));
    }
    let nothing = report.sessions.is_empty() && report.emptied + report.leftovers == 0;
    match (nothing, mode) {
        (true, _) => text.push_str("nothing to remove\n"),
        (false, GcMode::Show) => {
            text.push_str(&format!(
                "to do this: `epitome archive gc{} --yes`\n",
                grace_option(grace)
            ));
        }
        (false, GcMode::Remove) => {}
    }
    let mut kept = format!("{} kept", count(report.kept, "session"));
    if report.young > 0 {
        let what = count(report.young, "generation");
        let grace = whole_days(grace);
        kept.push_str(&format!(
            ", {what} unneeded but younger than the grace period of {grace} (`--grace 0s` removes \
             them too)"
        ));
    }
    if report.trash_bytes > Bytes(0) {
        kept.push_str(&format!(", {} in the trash", report.trash_bytes));
    }
    text.push_str(&format!("{DIM}{kept}{DIM:#}\n"));
    for unread in &report.unread {
        let line = Failure::from(unread.clone()).one_line();
        text.push_str(&format!("{RED}not proved{RED:#}  {}\n", field(&line)));
    }
    text
}

#[derive(Serialize)]
struct Removed<'a> {
    agent: &'a str,
    id: &'a str,
    generations: u64,
    stored_bytes: Bytes,
    removed: bool,
}

fn rm(app: &App, session: &str, yes: bool) -> Result<()> {
    let archive = app.config.archive();
    let key = key_of(app, session)?;
    // A session is restored together with its parts, such as the sessions of its sub-agents. So
    // they are also removed together.
    let parts = parts_of(app, &key)?;
    let mut packs = 0;
    let mut stored = Bytes(0);
    for key in std::iter::once(&key).chain(&parts) {
        let sizes = archive.sizes(key).map_err(Failure::writing)?;
        packs += sizes.len() as u64;
        stored += sizes.iter().map(|(_, it)| *it).sum::<Bytes>();
    }
    let what = count(packs, "generation");
    let id = field(&key.id);
    let with = match parts.len() as u64 {
        0 => String::new(),
        n => format!(" and {} of it", count(n, "part")),
    };
    if packs > 0 {
        let question = format!(
            "{what} of {id}{with}, {stored}: if the session is compacted, it cannot be restored \
             after that. Move to the trash?"
        );
        ask_to_continue(app, yes, &question)?;
    }
    let now = app.config.now();
    let mut all: Vec<&SessionKey> = parts.iter().collect();
    if parts.is_empty() || !archive.sizes(&key).map_err(Failure::writing)?.is_empty() {
        all.push(&key);
    }
    // Sessions that can be opened are locked, so that no other process of epitome compacts them in
    // the meantime.
    let mut held = Vec::new();
    for key in &all {
        if let Some(generation) = archive.generations(key).map_err(Failure::writing)?.whole.last() {
            match Store::new(&app.config.home).open_for_edit(&generation.path) {
                Err(err) if err.kind() == ErrorKind::Locked => return Err(Failure::writing(err)),
                opened => held.extend(opened),
            }
        }
    }
    let mut generations = 0;
    let mut stored_bytes = Bytes(0);
    for key in all {
        let (packs, bytes) = archive.remove(key, now).map_err(not_in_archive)?;
        generations += packs;
        stored_bytes += bytes;
    }
    if app.global.json {
        let agent = key.agent.as_str();
        let id = key.id.as_str();
        return app.print_json(&Removed { agent, id, generations, stored_bytes, removed: true });
    }
    app.print(&format!(
        "{BOLD}moved to the trash{BOLD:#} {what} of {id}{with}, {stored}; a later `epitome archive \
         gc --yes` empties it\n"
    ))
}

fn not_in_archive(err: epitome::Error) -> Failure {
    Failure::writing(err).hint("`epitome archive ls` shows what it holds")
}

/// The keys of the archived sessions that are parts of a session, such as those of its sub-agents.
fn parts_of(app: &App, key: &SessionKey) -> Result<Vec<SessionKey>> {
    let archive = app.config.archive();
    let mut parts = Vec::new();
    for other in archive.sessions().map_err(Failure::writing)? {
        let known = archive.generations(&other).map_err(Failure::writing)?;
        if other != *key && known.whole.iter().any(|it| it.part_of.as_ref() == Some(key)) {
            parts.push(other);
        }
    }
    Ok(parts)
}

/// The key of a session in the archive. `name` is the beginning of the id of exactly one archived
/// session, even if its file is gone, or else a path, an id or the beginning of an id of a session
/// on this machine.
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
    let path = file(app, name.as_ref())?;
    let session = epitome::storage::load(&path, app.agent())?;
    Ok(epitome::storage::key_of(&session, &path))
}
