//! `epitome archive push`, `pull` and `key`: the archive in object storage.

use std::path::{Path, PathBuf};

use clap::Subcommand;

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
pub use with_storage::{key, pull, push, push_new, try_pull};
#[cfg(not(feature = "remote"))]
pub use without_storage::{absent, key, pull, push, push_new, try_pull};

/// The functions of `with_storage` in a build without the feature `remote`. Functions that carry
/// out a command of the user fail; those that run after a compaction or a failed restore do
/// nothing.
#[cfg(not(feature = "remote"))]
mod without_storage {
    use super::{App, KeyVerb, Path, Result};
    use crate::failure::Failure;

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
    use epitome::remote::{
        PullReport, PushReport, RemoteArchive, Retries, SealKey, SealKeyPlace, find_key,
        import_key, make_key, remove_key,
    };
    use epitome_model::Bytes;
    use serde::Serialize;

    use super::{App, KeyVerb, Path, Result};
    use crate::cmd::archive::key_of;
    use crate::confirm::ask_to_continue;
    use crate::failure::{Failure, Status};
    use crate::text::{BOLD, DIM, RED, count, field, path};

    #[derive(Serialize)]
    struct Pushed {
        pushed: u64,
        pushed_bytes: Bytes,
        known: u64,
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
        if app.global.json {
            return app.print_json(&Pushed { pushed, pushed_bytes: bytes, known });
        }
        let what = count(pushed, "generation");
        let to = remote.address();
        app.print(&format!("{BOLD}pushed{BOLD:#} {what} to {to}, {bytes}; {known} were there\n"))?;
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
        print(app, report.map_err(Failure::writing)?)
    }

    /// The key of a session, and its file if it is on this machine. With `--agent`, a name that
    /// refers neither to a session of this machine nor to an archived one is taken as a whole id.
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

    fn print(app: &App, report: PullReport) -> Result<()> {
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
            app.print(&text)?;
        }
        match report.unread.into_iter().next() {
            Some(err) => Err(Failure::writing(err)),
            None => Ok(()),
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
