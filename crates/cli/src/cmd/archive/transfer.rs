//! `epitome archive export` and `import`: a tar file with parts of the archive and of the vault,
//! which has the versions that `epitome keep` has stored.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use epitome::archive::{Generation, ImportReport, SessionKey};
use epitome::keep::{
    FileKey, Forgotten, ReceivedVersions, StagedVersions, VaultMatch, VaultPack, files_of_session,
    find, receive_versions,
};
use epitome::storage::write_new;
use epitome::{agents, causes};
use epitome_model::{Bytes, Source};
use serde::Serialize;

use super::{key_of, not_in_archive};
use crate::app::App;
use crate::cmd::keep::warn_of_damage;
use crate::failure::{Failure, Result, Status};
use crate::text::{self, BOLD, RED, count, field};

/// What is exported into a tar file: the generations of a session, and packs of the vault.
struct Export {
    key: Option<SessionKey>,
    packs: Vec<VaultPack>,
    /// The number of versions in the packs.
    versions: u64,
}

pub fn export(app: &App, session: Option<&str>, vault: bool, out: Option<&Path>) -> Result<()> {
    let archive = app.config.archive();
    let Export { key, packs, versions } = match (session, vault) {
        (Some(session), false) => {
            let key = Some(key_of(app, session)?);
            Export { key, packs: Vec::new(), versions: 0 }
        }
        (Some(session), true) => session_with_versions(app, session)?,
        (None, _) => all_versions(app)?,
    };
    if packs.is_empty()
        && let Some(key) = &key
    {
        check_readable(app, key)?;
    }
    match out {
        Some(out) => {
            let mut generations = 0;
            write_new(out, |to| {
                generations = archive.export_with(key.as_ref(), &packs, to)?;
                Ok(())
            })
            .map_err(Failure::writing)?;
            let what = match (generations, versions) {
                (_, 0) => count(generations, "generation"),
                (0, _) => count(versions, "version"),
                (_, _) => {
                    format!("{}, {}", count(generations, "generation"), count(versions, "version"))
                }
            };
            app.print(&format!("{BOLD}exported{BOLD:#} {what} to {}\n", text::path(out)))
        }
        None if app.is_terminal() => {
            Err(Failure::usage("a tar file cannot be printed to a terminal").hint("use --out FILE"))
        }
        None => {
            let out = &mut std::io::stdout().lock();
            archive.export_with(key.as_ref(), &packs, out).map_err(stdout)?;
            Ok(())
        }
    }
}

/// The key of a session, and the packs of the vault that contain the session's versions.
fn session_with_versions(app: &App, session: &str) -> Result<Export> {
    let vault = app.config.vault()?;
    warn_of_damage(app, &vault);
    let key = key_of(app, session);
    let file = match find(&app.config, &vault, session, app.agent()) {
        VaultMatch::Session(file) => file,
        VaultMatch::AnyOf(_) | VaultMatch::Nothing => {
            let what = format!("no version of `{}` was kept", field(session));
            return Err(Failure::new(Status::Unreadable, "not-found", what)
                .hint("give the whole id; without --vault its part of the archive is exported"));
        }
    };
    let files = files_of_session(&vault, &file);
    let versions = files.iter().map(|file| vault.versions(file).count() as u64).sum();
    let (packs, missing) = vault.packs_of_files(&files).map_err(Failure::writing)?;
    if missing > 0 {
        let what = count(missing, "chunk");
        app.note(&format!("{RED}damaged{RED:#}  {what}: some versions cannot be restored from it"));
    }
    let archived = key.ok().filter(|key| {
        let sizes = app.config.archive().size_with_trash(key);
        sizes.is_ok_and(|(packs, _)| packs > 0)
    });
    let key = archived.or_else(|| Some(SessionKey::new(file.agent, file.session)));
    Ok(Export { key, packs, versions })
}

fn all_versions(app: &App) -> Result<Export> {
    let mut vault = app.config.vault()?;
    warn_of_damage(app, &vault);
    let packs = vault.open_packs().map_err(Failure::writing)?;
    if packs.is_empty() {
        return Err(Failure::new(Status::Unreadable, "not-found", "no version was ever kept")
            .hint("`epitome keep --all --once` keeps what is there now"));
    }
    let files: Vec<_> = vault.files().cloned().collect();
    let versions = files.iter().map(|file| vault.versions(file).count() as u64).sum();
    Ok(Export { key: None, packs, versions })
}

/// Fails, before an export writes anything, if neither the session nor one of its parts has a
/// generation that can be read.
fn check_readable(app: &App, key: &SessionKey) -> Result<()> {
    let archive = app.config.archive();
    for key in archive.with_parts(key).map_err(Failure::writing)? {
        if !archive.generations(&key).map_err(Failure::writing)?.whole.is_empty() {
            return Ok(());
        }
    }
    let failed = archive.export(key, &mut std::io::sink()).err();
    Err(not_in_archive(failed.unwrap_or_else(|| {
        epitome::Error::from(std::io::Error::other("no generation of it can be read"))
    })))
}

/// The failure of an export to standard output. If the reader closed the output, it is a failure
/// for which nothing is printed.
fn stdout(err: epitome::Error) -> Failure {
    let is_closed = causes(&err).any(|cause| {
        let io = cause.downcast_ref::<std::io::Error>();
        io.is_some_and(|io| io.kind() == std::io::ErrorKind::BrokenPipe)
    });
    if is_closed {
        return Failure::new(Status::Quiet, "quiet", "the output is closed");
    }
    Failure::writing(err)
}

#[derive(Serialize)]
struct ImportedGeneration {
    agent: String,
    id: String,
    generation: u64,
    stored_bytes: Bytes,
}

#[derive(Serialize)]
struct ImportedVersions {
    agent: String,
    id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    part: Option<String>,
    machine: String,
    #[serde(serialize_with = "epitome_model::lossy_path")]
    path: PathBuf,
    versions: u64,
}

pub fn import(app: &App, path: &Path, session: Option<&Path>) -> Result<()> {
    let mut staged = StagedVersions::new(&app.config.home);
    let report = match path.to_str() {
        Some("-") => read(app, &mut std::io::stdin().lock(), session, &mut staged)?,
        _ => {
            let source = epitome::storage::FileSource::open(path)?;
            debug_assert!(source.len() < u64::MAX, "a file has a length");
            let file = File::open(path).map_err(|err| {
                let what = format!("cannot read the file: {}", path.display());
                Failure::new(Status::Unreadable, "unreadable", what).because(&err)
            })?;
            read(app, &mut BufReader::new(file), session, &mut staged)?
        }
    };
    note_refused_generations(app, &report);
    let received = match staged.is_empty() {
        true => Ok(ReceivedVersions::default()),
        false => receive_versions(&app.config, staged),
    };
    let versions = match received {
        Ok(versions) => versions,
        Err(err) => {
            // The generations are in the archive already.
            if !report.added.is_empty() {
                print_imported(app, report, ReceivedVersions::default())?;
            }
            return Err(Failure::writing(err));
        }
    };
    note_refused_versions(app, &versions);
    if report.unwanted > 0 {
        let what = count(report.unwanted, "generation");
        app.note(&format!("left out  {what} of sessions that were forgotten here"));
    }
    let is_known = report.known + versions.known > 0;
    if report.added.is_empty() && versions.added.is_empty() && !is_known {
        check_damage(&versions)?;
        check_numbers(&versions)?;
        let what =
            "nothing in it joins the archive or a session of this machine; nothing was imported";
        return Err(Failure::new(Status::Refused, "refused", what)
            .hint("copy the session to this machine first, or name its file with --session FILE"));
    }
    let checked = check_damage(&versions).and_then(|()| check_numbers(&versions));
    print_imported(app, report, versions)?;
    checked
}

/// Returns a failure if some of the received versions cannot be restored, because parts of them are
/// damaged or missing.
pub fn check_damage(received: &ReceivedVersions) -> Result<()> {
    let damaged: u64 = received.damaged.iter().map(|(_, versions)| versions).sum();
    if damaged == 0 {
        return Ok(());
    }
    let what = format!("{} cannot be restored from it", count(damaged, "version"));
    Err(Failure::new(Status::Disk, "archive", what).hint(
        "everything else is here; `epitome archive verify` on the machine that it comes from says \
         what is damaged",
    ))
}

/// Returns a failure if versions were not added because the vault has other versions with their
/// numbers.
fn check_numbers(received: &ReceivedVersions) -> Result<()> {
    let refused: u64 = received.refused.iter().map(|(_, versions)| versions).sum();
    if refused == 0 {
        return Ok(());
    }
    let what = format!("{} of it have numbers that others have here", count(refused, "version"));
    Err(Failure::new(Status::Refused, "refused", what).hint("everything else is here"))
}

/// Reads a tar file: imports its packs of the archive, and adds its packs of the vault to `staged`,
/// which the caller puts into the vault.
fn read(
    app: &App,
    from: &mut dyn Read,
    session: Option<&Path>,
    staged: &mut StagedVersions,
) -> Result<ImportReport> {
    let files = |generation: &Generation| {
        let mut files = agents::files_of(&app.config.agents, generation);
        files.extend(session.map(Path::to_owned));
        files.extend(session.map(agents::companions).into_iter().flatten());
        files
    };
    let forgotten = Forgotten::read(&app.config)?;
    let is_wanted = |key: &SessionKey| !forgotten.has(&key.agent, &key.id);
    let archive = app.config.archive();
    let read = archive.import_with(from, app.config.now(), &files, &is_wanted, Some(staged));
    read.map_err(Failure::writing)
}

/// Says which generations were not imported.
fn note_refused_generations(app: &App, report: &ImportReport) {
    for it in &report.refused {
        let agent = &it.key.agent;
        let id = field(&it.key.id);
        let what = "joins neither the archive nor the session's file: not imported";
        app.note(&format!("{RED}refused{RED:#}  {agent} {id} #{} {what}", it.number));
    }
}

/// Says which received versions were not added.
pub fn note_refused_versions(app: &App, received: &ReceivedVersions) {
    let damaged = received.damaged.iter().map(|it| (it, "damaged", "cannot be restored from it"));
    let refused = received.refused.iter().map(|it| (it, "refused", "not what is here as these"));
    for ((file, versions), state, why) in damaged.chain(refused) {
        let what = count(*versions, "version");
        let (agent, id) = (&file.agent, field(&file.session));
        app.note(&format!("{RED}{state}{RED:#}  {agent} {id}: {what} {why}"));
    }
    if received.unwanted > 0 {
        let what = count(received.unwanted, "version");
        app.note(&format!(
            "left out  {what} of sessions that were forgotten here, or of files that are in no \
             folder of their agent"
        ));
    }
}

fn print_imported(app: &App, report: ImportReport, received: ReceivedVersions) -> Result<()> {
    if app.global.json {
        for it in report.added {
            app.print_json(&ImportedGeneration {
                agent: it.key.agent,
                id: it.key.id,
                generation: it.number,
                stored_bytes: it.stored,
            })?;
        }
        return print_versions_json(app, received);
    }
    let mut text = String::new();
    for it in &report.added {
        let agent = &it.key.agent;
        let id = field(&it.key.id);
        text.push_str(&format!("{agent} {id} #{}, {}\n", it.number, it.stored));
    }
    text.push_str(&version_lines(&received));
    let added = count(report.added.len() as u64, "generation");
    let known = report.known;
    let is_vault = received.versions() + received.known > 0;
    if !is_vault || !report.added.is_empty() || known > 0 {
        text.push_str(&format!("{BOLD}imported{BOLD:#} {added}, {known} were here already\n"));
    }
    if is_vault {
        let added = count(received.versions(), "version");
        let known = received.known;
        text.push_str(&format!("{BOLD}imported{BOLD:#} {added}, {known} were here already\n"));
    }
    app.print(&text)
}

/// One line for each file that has new versions. Files that differ only in their paths share a
/// line: they are one file, whose home folder was moved.
pub fn version_lines(received: &ReceivedVersions) -> String {
    let mut added: Vec<(&FileKey, u64)> = Vec::new();
    for (file, versions) in &received.added {
        let is_same = |(it, _): &&mut (&FileKey, u64)| {
            (&it.machine, &it.agent, &it.session, &it.part)
                == (&file.machine, &file.agent, &file.session, &file.part)
        };
        match added.iter_mut().find(is_same) {
            Some((_, sum)) => *sum += versions,
            None => added.push((file, *versions)),
        }
    }
    let mut text = String::new();
    for (file, versions) in added {
        let part = file.part.as_ref().map(|part| format!(" / {}", field(part)));
        text.push_str(&format!(
            "{} {}{}: {} of machine {}\n",
            file.agent,
            field(&file.session),
            part.unwrap_or_default(),
            count(versions, "version"),
            file.machine,
        ));
    }
    text
}

/// Prints a JSON object for each file that has new versions.
pub fn print_versions_json(app: &App, received: ReceivedVersions) -> Result<()> {
    received.added.into_iter().try_for_each(|(file, versions)| {
        app.print_json(&ImportedVersions {
            agent: file.agent,
            id: file.session,
            part: file.part,
            machine: file.machine,
            path: file.path,
            versions,
        })
    })
}
