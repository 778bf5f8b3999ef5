//! `epitome history`: the versions of a session.

use std::ffi::{OsStr, OsString};

use clap::Args as ClapArgs;
use epitome::Config;
use epitome::keep::{FileKey, Forgotten, Vault, VaultMatch, VersionHistory, find};

use super::keep::warn_of_damage;
use crate::app::App;
use crate::failure::{Failure, Result, Status};
use crate::session::check_name;
use crate::table::{Side, Table};
use crate::text::{self, BOLD, DIM, age};

const EXAMPLES: &str = "\
Examples:
  epitome history 0f3c9a52
  epitome history 0f3c9a52 --json | jq '.versions[] | [.version, .change]'
  epitome restore 0f3c9a52 --at 3       bring version 3 back";

/// List the versions of a session that `epitome keep` has seen, the newest last
///
/// The session may have been deleted. The files of its sub-agents follow.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// A file, a session id, or its prefix
    #[arg(value_name = "SESSION")]
    pub session: OsString,
}

pub fn run(app: &App, args: &Args) -> Result<()> {
    let vault = app.config.vault()?;
    warn_of_damage(app, &vault);
    let file = kept_file(&vault, &app.config, &args.session, app.agent())?;
    let history = VersionHistory::read(&app.config, &vault, &file)?;
    if app.global.json {
        return app.print_json(&history);
    }
    let mut text = render(app, &history);
    for other in history.parts.iter().chain(&history.elsewhere) {
        text.push('\n');
        text.push_str(&render(app, other));
    }
    app.page(&text)
}

/// Finds the session that a name means, among those of which `epitome keep` has versions.
pub fn kept_file(
    vault: &Vault,
    config: &Config,
    name: &OsStr,
    agent: Option<&str>,
) -> Result<FileKey> {
    let name = name.to_string_lossy();
    check_name(&name)?;
    match find(config, vault, &name, agent) {
        VaultMatch::Session(file) => Ok(file),
        VaultMatch::AnyOf(found) => {
            let mut what = format!("`{name}` is the beginning of {} session ids", found.len());
            for file in found.iter().take(10) {
                let path = text::path(&file.path);
                what.push_str(&format!("\n{} {}  {path}", file.agent, file.session));
            }
            Err(Failure::new(Status::Usage, "ambiguous", what)
                .hint("give more of the id, or the path"))
        }
        VaultMatch::Nothing => {
            let what = format!("no version of a session called `{name}` was kept");
            let failure = Failure::new(Status::Unreadable, "not-found", what);
            Err(match Forgotten::read(config)?.find(config, &name, agent) {
                Some(time) => {
                    let when = time.map(|time| format!(" at {time:.0}")).unwrap_or_default();
                    failure.hint(format!("it was forgotten{when}, and is not kept again"))
                }
                None => not_kept(
                    vault,
                    failure.hint("`epitome keep --all --once` keeps what is there now"),
                ),
            })
        }
    }
}

/// The failure for a session or version that the vault does not list. If a part of the vault cannot
/// be read, the failure says that the session or version may be in that part.
pub fn not_kept(vault: &Vault, failure: Failure) -> Failure {
    match vault.damaged().next() {
        None => failure,
        Some(_) => Failure::new(
            Status::Disk,
            "archive",
            format!("{}, or it is in a part of the vault that cannot be read", failure.message),
        )
        .hint("`epitome archive verify` names what is damaged"),
    }
}

fn render(app: &App, history: &VersionHistory) -> String {
    let name = match &history.part {
        Some(part) => text::field(part),
        None => format!("{} {}", history.agent, text::field(&history.session)),
    };
    let state = match (history.is_other, history.exists) {
        (true, _) => format!("  (machine {})", history.machine),
        (false, true) => String::new(),
        (false, false) => "  (deleted)".to_owned(),
    };
    let path = text::path(&history.path);
    let mut text = format!("{BOLD}{name}{BOLD:#}{state}  {DIM}{path}{DIM:#}\n");
    let sides = [Side::Right, Side::Right, Side::Right, Side::Left];
    let heads = ["version", "age", "size", "what changed"];
    let mut table = Table::new(&sides, &heads).shrinks(3, 20);
    for version in &history.versions {
        table.row(vec![
            version.version.to_string(),
            age(app.config.now(), version.seen),
            if version.has_content() { version.bytes.to_string() } else { "-".to_owned() },
            version.description(),
        ]);
    }
    text.push_str(&table.render());
    text
}
