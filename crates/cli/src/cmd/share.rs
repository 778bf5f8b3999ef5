//! `epitome share`: a redacted session for the team.

use std::ffi::OsString;

use clap::Args as ClapArgs;

use crate::app::App;
use crate::failure::Result;
use crate::redaction::MoreRules;

const EXAMPLES: &str = "\
Examples:
  epitome share 0f3c9a52
  epitome share 0f3c9a52 --redact secrets,pii,company-hosts
  epitome search --team borrow checker";

/// Share a redacted session with your team
///
/// Stores the session's page and a copy that others can resume at the address `share.url`. Secrets
/// and personal data are replaced in both. The files are not encrypted: all who may read that
/// storage may read them. `epitome search --team` searches what was shared.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// A file, a session id or its prefix
    #[arg(value_name = "SESSION")]
    pub session: OsString,

    /// Redact what these rules find: `secrets`, `pii` (personal data), or rules by name [default:
    /// secrets,pii]
    #[arg(long, short, value_name = "WHAT", value_delimiter = ',')]
    pub redact: Vec<String>,

    #[command(flatten)]
    pub more: MoreRules,
}

pub use storage::{run, sync};

#[cfg(not(feature = "remote"))]
mod storage {
    use std::path::PathBuf;

    use super::{App, Args, Result};

    pub fn run(_: &App, _: &Args) -> Result<()> {
        Err(crate::cmd::archive::remote::absent())
    }

    pub fn sync(_: &App) -> Result<PathBuf> {
        Err(crate::cmd::archive::remote::absent())
    }
}

#[cfg(feature = "remote")]
mod storage {
    use std::path::PathBuf;

    use epitome::render::{RenderOptions, RenderSource};
    use epitome::share::{SharedSession, Team, TeamSync};
    use epitome_render::Detail;
    use serde::Serialize;

    use super::{App, Args, Result};
    use crate::failure::Failure;
    use crate::session::file;
    use crate::text::{BOLD, DIM, count, field};

    /// The report with `--json`. See `docs/json.md`.
    #[derive(Serialize)]
    struct Shared {
        locations: Vec<String>,
        redacted: usize,
    }

    fn team(app: &App) -> Result<Team<'_>> {
        Team::from_settings(&app.config, app.settings()?)?.ok_or_else(|| {
            Failure::usage("`share.url` is not set").hint(
                "in your epitome.toml: [share] and url = \"s3://bucket/folder\"; docs/share.md has \
                 more",
            )
        })
    }

    pub fn run(app: &App, args: &Args) -> Result<()> {
        let team = team(app)?;
        let finder = args.more.finder(app, &args.redact)?;
        let path = file(app, &args.session)?;
        let source = RenderSource::open(&app.config, &path, app.agent())?;
        source.failure().map_or(Ok(()), Err)?;
        let archive = app.config.archive();
        let how = RenderOptions {
            detail: Detail::Steps,
            redact: Some(&finder),
            compact: None,
            archive: &archive,
            prices: None,
        };
        let SharedSession { locations, redacted } =
            team.share(&source, &how).map_err(Failure::writing)?;
        if app.global.json {
            return app.print_json(&Shared { locations, redacted });
        }
        let mut text = format!("{BOLD}shared{BOLD:#}, ");
        text.push_str(&format!("{} redacted\n", count(redacted as u64, "place")));
        for location in &locations {
            text.push_str(&format!("{}\n", field(location)));
        }
        app.print(&text)
    }

    /// Copies the new shared sessions of the team to this machine. Returns the folder with all
    /// shared sessions.
    pub fn sync(app: &App) -> Result<PathBuf> {
        let TeamSync { folder, copied, .. } = team(app)?.sync()?;
        if copied > 0 {
            let new = count(copied as u64, "shared session");
            app.note(&format!("{DIM}copied {new}{DIM:#}"));
        }
        Ok(folder)
    }
}
