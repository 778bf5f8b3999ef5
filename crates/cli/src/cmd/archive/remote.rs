//! `epitome archive push`, `pull` and `key`: the archive in object storage.

use std::path::{Path, PathBuf};

use clap::Subcommand;
use epitome::forget::ForgottenCopy;

use crate::app::App;
use crate::failure::Result;

#[derive(Subcommand, Clone, Debug)]
pub enum KeyVerb {
    /// Print the key, or write it to a new file that only you can read
    Export {
        /// Write to a new file instead of standard output
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Take the key of another machine
    Import {
        /// The file of `export`, or `-` for standard input
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Remove the key from this machine; asks first
    Remove {
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
}

#[cfg(feature = "remote")]
pub use with_storage::{forget_copies, key, pull, push, push_new, remember_copies, try_pull};
#[cfg(not(feature = "remote"))]
pub use without_storage::{
    absent, forget_copies, key, pull, push, push_new, remember_copies, try_pull,
};

/// The same functions in a build without the feature `remote`. `push`, `pull` and `key`, which the
/// user calls, fail. `push_new`, `try_pull` and `remember_copies` do nothing, and `forget_copies`
/// only notes that the copies stay.
#[cfg(not(feature = "remote"))]
mod without_storage {
    use super::{App, ForgottenCopy, KeyVerb, Path, Result};
    use crate::failure::Failure;
    use crate::text::{DIM, field};

    pub fn push(_: &App) -> Result<()> {
        Err(absent())
    }

    pub fn pull(_: &App, _: Option<&str>) -> Result<()> {
        Err(absent())
    }

    pub fn key(_: &App, _: Option<&KeyVerb>) -> Result<()> {
        Err(absent())
    }

    pub fn push_new(_: &App) {}

    pub fn try_pull(_: &App, _: &Path) -> bool {
        false
    }

    pub fn remember_copies(_: &App, _: &[ForgottenCopy]) -> Result<()> {
        Ok(())
    }

    pub fn forget_copies(app: &App) {
        let url = app.settings().ok().and_then(|settings| settings.values.archive.url.as_deref());
        if let Some(url) = url {
            let url = field(url);
            app.note(&format!(
                "{DIM}copies at {url} (archive.url) stay: this epitome was built without the \
                 feature `remote`; delete them there{DIM:#}"
            ));
        }
    }

    pub fn absent() -> Failure {
        Failure::usage("this epitome was built without the feature `remote`")
            .hint("`cargo install --path crates/cli --features remote`, or a package")
    }
}

#[cfg(feature = "remote")]
mod with_storage {
    use std::fs::OpenOptions;
    use std::io::{Read as _, Write as _};

    use epitome::archive::SessionKey;
    use epitome::keep::ReceivedVersions;
    use epitome::remote::{
        PullReport, PushReport, RemoteArchive, Retries, SealKey, SealKeyPlace, VaultPushReport,
        find_key, import_key, make_key, remove_key,
    };
    use epitome_model::Bytes;
    use serde::Serialize;

    use super::{App, ForgottenCopy, KeyVerb, Path, Result};
    use crate::cmd::archive::key_of;
    use crate::cmd::archive::transfer::{
        check_damage, note_refused_versions, print_versions_json, version_lines,
    };
    use crate::confirm::ask_to_continue;
    use crate::failure::{Failure, Status};
    use crate::text::{BOLD, DIM, RED, count, field, path};

    #[derive(Serialize)]
    struct Pushed {
        pushed: u64,
        pushed_bytes: Bytes,
        known: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        vault: Option<PushedVersions>,
    }

    /// The numbers of packs of the vault that a push copied (`pushed`), found in the storage
    /// already (`known`), or deleted from it.
    #[derive(Serialize)]
    struct PushedVersions {
        pushed: u64,
        pushed_bytes: Bytes,
        known: u64,
        deleted: u64,
    }

    #[derive(Serialize)]
    struct Pulled {
        agent: String,
        id: String,
        generation: u64,
        stored_bytes: Bytes,
    }

    #[derive(Serialize)]
    struct KeyJson {
        recipient: String,
        /// `keyring` or `file`.
        place: &'static str,
    }

    fn remote(app: &App, retries: Retries) -> Result<RemoteArchive<'_>> {
        let found = RemoteArchive::from_settings(&app.config, app.settings()?, retries)?;
        found.ok_or_else(|| {
            Failure::usage("`archive.url` is not set").hint(
                "in your epitome.toml: [archive] and url = \"s3://bucket/folder\"; docs/archive.md \
                 has more",
            )
        })
    }

    pub fn push(app: &App) -> Result<()> {
        let remote = remote(app, Retries::LONG)?;
        let had_key = find_key(&app.config)?.is_some();
        let PushReport { pushed, bytes, known } = remote.push().map_err(Failure::writing)?;
        let versions = remote.push_versions().map_err(Failure::writing)?;
        for err in &versions.damaged {
            app.warn(Some(&Failure::from(err.clone()).one_line()));
        }
        let is_vault = versions.pushed + versions.known + versions.deleted > 0;
        if app.global.json {
            let vault = is_vault.then_some(PushedVersions {
                pushed: versions.pushed,
                pushed_bytes: versions.bytes,
                known: versions.known,
                deleted: versions.deleted,
            });
            return app.print_json(&Pushed { pushed, pushed_bytes: bytes, known, vault });
        }
        let what = count(pushed, "generation");
        let to = remote.address();
        app.print(&format!("{BOLD}pushed{BOLD:#} {what} to {to}, {bytes}; {known} were there\n"))?;
        if is_vault {
            let VaultPushReport { pushed, bytes, known, deleted, .. } = versions;
            let what = count(pushed, "pack");
            let replaced = match deleted {
                0 => String::new(),
                deleted => format!(", {deleted} that these replace were deleted there"),
            };
            app.print(&format!(
                "{BOLD}pushed{BOLD:#} {what} of the vault, {bytes}; {known} were there{replaced}\n"
            ))?;
        }
        if !had_key {
            app.note(
                "a key was made: without it nothing there can be read. `epitome archive key export \
                 --out FILE` saves it, and other machines import it",
            );
        }
        Ok(())
    }

    /// Pushes what a compaction archived. A failure is only noted, because the next push copies
    /// what was not pushed.
    pub fn push_new(app: &App) {
        let pushed = app.settings().and_then(|settings| {
            match RemoteArchive::from_settings(&app.config, settings, Retries::SHORT)? {
                Some(remote) => Ok(remote.push_new()?.pushed),
                None => Ok(0),
            }
        });
        if let Err(failure) = pushed {
            let why = field(&failure.one_line());
            app.note(&format!("{DIM}not pushed yet:{DIM:#} {why}"));
        }
    }

    pub fn pull(app: &App, session: Option<&str>) -> Result<()> {
        let remote = remote(app, Retries::LONG)?;
        let report = match session {
            None => remote.pull(None, None),
            Some(name) => {
                let (key, file) = session_of(app, name)?;
                remote.pull(Some(&key), file.as_deref())
            }
        };
        let versions = match session {
            None => remote.pull_versions().map_err(Failure::writing)?,
            // Versions are not pulled for one session alone: a pack of the vault contains versions
            // of several sessions.
            Some(_) => Default::default(),
        };
        let mut report = report.map_err(Failure::writing)?;
        report.unread.extend(versions.1);
        print(app, report, versions.0)
    }

    /// The key of a session, and its file if it is on this machine. A name that matches neither a
    /// session of this machine nor an archived one is taken as the whole id of a session of
    /// `--agent`; without `--agent` it is an error.
    fn session_of(app: &App, name: &str) -> Result<(SessionKey, Option<std::path::PathBuf>)> {
        if let Ok(file) = crate::session::file(app, name.as_ref()) {
            let session = epitome::storage::load(&file, app.agent())?;
            return Ok((epitome::storage::key_of(&session, &file), Some(file)));
        }
        match (key_of(app, name), app.agent()) {
            (Ok(key), _) => Ok((key, None)),
            (Err(_), Some(agent)) => Ok((SessionKey::new(agent, name), None)),
            (Err(failure), None) => {
                Err(failure.hint("for a session that is only there: --agent and its whole id"))
            }
        }
    }

    /// Pulls the packs of a session that could not be restored. Returns whether any pack was added
    /// to the archive.
    pub fn try_pull(app: &App, file: &Path) -> bool {
        let pulled = app.settings().and_then(|settings| {
            let found = RemoteArchive::from_settings(&app.config, settings, Retries::SHORT)?;
            let Some(remote) = found else { return Ok(0) };
            let session = epitome::storage::load(file, app.agent())?;
            let key = epitome::storage::key_of(&session, file);
            Ok(remote.pull(Some(&key), Some(file))?.packs.added.len())
        });
        match pulled {
            Ok(0) => false,
            Ok(packs) => {
                app.note(&format!("pulled {}", count(packs as u64, "generation")));
                true
            }
            Err(failure) => {
                let why = field(&failure.one_line());
                app.note(&format!("{DIM}the remote archive could not be read:{DIM:#} {why}"));
                false
            }
        }
    }

    /// Stores a list of the remote copies that must be deleted. Called before the originals are
    /// deleted.
    pub fn remember_copies(app: &App, copies: &[ForgottenCopy]) -> Result<()> {
        let settings = app.settings()?;
        match RemoteArchive::from_settings(&app.config, settings, Retries::SHORT)? {
            Some(remote) => remote.remember_forgotten(copies).map(drop).map_err(Failure::writing),
            None => Ok(()),
        }
    }

    /// Deletes the remote copies that are on the list of [`remember_copies`]. A failure is only
    /// noted, because the next push deletes them.
    pub fn forget_copies(app: &App) {
        let deleted = app.settings().and_then(|settings| {
            match RemoteArchive::from_settings(&app.config, settings, Retries::SHORT)? {
                Some(remote) if find_key(&app.config)?.is_some() => {
                    Ok(Some((remote.forget()?, remote.address().to_string())))
                }
                Some(_) | None => Ok(None),
            }
        });
        match deleted {
            Ok(None) => {}
            Ok(Some(((archive, vault), url))) => {
                let packs = count(archive + vault, "pack");
                app.note(&format!(
                    "{DIM}deleted {packs} at {url} (archive.url); what other machines have pushed \
                     of the vault stays, and was not searched{DIM:#}"
                ));
            }
            Err(failure) => {
                let why = field(&failure.one_line());
                app.note(&format!(
                    "copies at `archive.url` are still there: {why}. The next `epitome archive \
                     push` deletes them"
                ));
            }
        }
    }

    fn print(app: &App, report: PullReport, versions: ReceivedVersions) -> Result<()> {
        for it in &report.packs.refused {
            let what = "joins neither the archive nor the session's file: not pulled";
            let agent = &it.key.agent;
            app.note(&format!(
                "{RED}refused{RED:#}  {agent} {} #{} {what}",
                field(&it.key.id),
                it.number
            ));
        }
        for err in &report.unread {
            let why = Failure::from(err.clone()).one_line();
            app.note(&format!("{RED}not read{RED:#}  {}", field(&why)));
        }
        note_refused_versions(app, &versions);
        let checked = check_damage(&versions);
        let packs = report.packs;
        if app.global.json {
            packs.added.into_iter().try_for_each(|it| {
                app.print_json(&Pulled {
                    agent: it.key.agent,
                    id: it.key.id,
                    generation: it.number,
                    stored_bytes: it.stored,
                })
            })?;
            print_versions_json(app, versions)?;
        } else {
            let mut text = String::new();
            for it in &packs.added {
                let id = field(&it.key.id);
                text.push_str(&format!("{} {id} #{}, {}\n", it.key.agent, it.number, it.stored));
            }
            let added = count(packs.added.len() as u64, "generation");
            text.push_str(&format!(
                "{BOLD}pulled{BOLD:#} {added}, {} were here already",
                packs.known
            ));
            if report.removed > 0 {
                text.push_str(&format!(", {} were removed here on purpose", report.removed));
            }
            text.push('\n');
            text.push_str(&version_lines(&versions));
            if versions.versions() + versions.known > 0 {
                let (added, known) = (count(versions.versions(), "version"), versions.known);
                text.push_str(&format!(
                    "{BOLD}pulled{BOLD:#} {added}, {known} were here already\n"
                ));
            }
            app.print(&text)?;
        }
        match report.unread.into_iter().next() {
            Some(err) => Err(Failure::writing(err)),
            None => checked,
        }
    }

    pub fn key(app: &App, verb: Option<&KeyVerb>) -> Result<()> {
        match verb {
            None => show(app, &make_key(&app.config).map_err(Failure::writing)?),
            Some(KeyVerb::Export { out }) => export(app, out.as_deref()),
            Some(KeyVerb::Import { file }) => {
                let key = read_key(file)?;
                show(app, &import_key(&app.config, &key).map_err(Failure::writing)?)
            }
            Some(KeyVerb::Remove { yes }) => {
                let question = "Without this key, and a copy of it elsewhere, nothing in the \
                                remote archive can ever be read. Remove it from this machine?";
                ask_to_continue(app, *yes, question)?;
                let had = remove_key(&app.config).map_err(Failure::writing)?;
                app.note(if had { "removed" } else { "this machine has no key" });
                Ok(())
            }
        }
    }

    fn show(app: &App, (key, place): &(SealKey, SealKeyPlace)) -> Result<()> {
        let recipient = key.recipient();
        if app.global.json {
            let place = match place {
                SealKeyPlace::Keyring => "keyring",
                SealKeyPlace::File(_) => "file",
            };
            return app.print_json(&KeyJson { recipient, place });
        }
        let place = match place {
            SealKeyPlace::Keyring => "the keyring".to_owned(),
            SealKeyPlace::File(file) => path(file),
        };
        app.print(&format!("{BOLD}{recipient}{BOLD:#}, in {place}\n"))
    }

    fn export(app: &App, out: Option<&Path>) -> Result<()> {
        let Some((key, _)) = find_key(&app.config)? else {
            return Err(Failure::usage("this machine has no key")
                .hint("`epitome archive key` makes one, `epitome archive key import` takes one"));
        };
        let text = format!("# public key: {}\n{}\n", key.recipient(), key.reveal());
        let Some(out) = out else { return app.print_content(text.as_bytes()) };
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let written = options.open(out).and_then(|mut file| file.write_all(text.as_bytes()));
        written.map_err(|err| {
            let what = format!("cannot write {}", path(out));
            Failure::new(Status::Disk, "disk", what).because(&err)
        })?;
        app.note(&format!("written to {}; it decrypts everything", path(out)));
        Ok(())
    }

    fn read_key(file: &Path) -> Result<SealKey> {
        let mut text = String::new();
        let read = match file.to_str() {
            Some("-") => std::io::stdin().lock().take(4096).read_to_string(&mut text),
            _ => epitome::storage::regular::open(file)
                .and_then(|file| file.take(4096).read_to_string(&mut text)),
        };
        read.map_err(|err| Failure::usage("cannot read the key").because(&err))?;
        text.parse().map_err(|err| Failure::usage("cannot use the key").because(&err))
    }
}
