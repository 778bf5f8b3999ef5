//! `epitome config`: the settings, and where each was set.

use std::path::{Path, PathBuf};

use clap::{Args as ClapArgs, Subcommand};
use epitome::Settings;
use epitome::settings::{KEYS, Scope, SetValue, import, schema};
use serde::Serialize;

use crate::app::App;
use crate::failure::Result;
use crate::table::{Side, Table};
use crate::text::{self, BOLD, DIM, field, one_line};

const EXAMPLES: &str = "\
Examples:
  epitome config
  epitome config --explain
  EPITOME_COMPACTION_RECIPE=s06 epitome config --set compaction.keep.results=5
  epitome config import .GITCLAW/compression.json >> epitome.toml";

/// Show the settings, and where each was set
///
/// Settings come from your own file, `.epitome.toml` or `epitome.toml` of the project, variables
/// `EPITOME_…`, and `--set`; later ones override earlier ones. See docs/config.md.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub struct Args {
    /// Show every setting with its description, and values that were overridden
    #[arg(long)]
    pub explain: bool,

    #[command(subcommand)]
    pub command: Option<Command>,
}

#[derive(Subcommand, Clone, Debug)]
pub enum Command {
    /// Print the JSON Schema of the settings
    Schema,
    /// Print the settings of another program (pi, OpenCode, J-CLI, ion, GITCLAW, or a request with
    /// Anthropic's context management) as a table for epitome.toml
    Import {
        /// The program's file, JSON or TOML
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
}

/// The report of all settings. See `docs/json.md`.
#[derive(Serialize)]
struct SettingsJson<'a> {
    files: Vec<FileTold<'a>>,
    settings: Vec<SettingJson<'a>>,
    left_out: &'a [String],
}

#[derive(Serialize)]
struct FileTold<'a> {
    #[serde(serialize_with = "epitome_model::lossy_path")]
    path: &'a Path,
    scope: &'static str,
}

#[derive(Serialize)]
struct SettingJson<'a> {
    key: &'a str,
    value: Option<serde_json::Value>,
    place: Option<String>,
    by: Option<&'a str>,
    variable: String,
    about: &'a str,
    /// The values that the setting takes, in words.
    takes: &'a str,
    yours_alone: bool,
    /// Values that were overridden.
    instead_of: Vec<SetTold>,
}

#[derive(Serialize)]
struct SetTold {
    value: serde_json::Value,
    place: String,
}

pub fn run(app: &App, args: &Args) -> Result<()> {
    match &args.command {
        Some(Command::Schema) => {
            let schema = serde_json::to_string_pretty(&schema()).expect("a value is JSON");
            app.print_bytes(format!("{schema}\n").as_bytes())
        }
        Some(Command::Import { file }) => {
            let (table, left) = import(file)?;
            app.print_bytes(table.as_bytes())?;
            for name in left {
                let name = field(&name);
                app.note(&format!("{DIM}ignored:{DIM:#} {name}, which has no meaning here"));
            }
            Ok(())
        }
        None if app.global.json => app.print_json(&json_of(app.settings()?)),
        None => show(app, app.settings()?, args.explain),
    }
}

fn show(app: &App, settings: &Settings, explain: bool) -> Result<()> {
    app.page(&if explain { explained(settings) } else { listed(settings) })?;
    for file in &settings.files {
        let whose = scope(file.scope);
        app.note(&format!("{DIM}read:{DIM:#} {} ({whose})", text::path(&file.path)));
    }
    let own = app.config.settings_file();
    if !settings.files.iter().any(|file| file.scope == Scope::User) {
        app.note(&format!("{DIM}your settings file:{DIM:#} {}", text::path(&own)));
    }
    Ok(())
}

/// The table of all settings that are set or have a default.
fn listed(settings: &Settings) -> String {
    let mut table = Table::new(&[Side::Left, Side::Left, Side::Left], &["key", "value", "where"])
        .shrinks(1, 16)
        .shrinks(2, 12);
    for key in KEYS.iter() {
        let first = settings.set.get(&key.name).and_then(|sets| sets.first());
        match (first, &key.default) {
            (Some(set), _) => table.row(vec![key.name.clone(), short(set), place(set)]),
            (None, Some(default)) => {
                let default = one_line(&default.to_string(), 60);
                table.styled(DIM, vec![key.name.clone(), default, "default".into()]);
            }
            (None, None) => {}
        }
    }
    table.render()
}

/// Every setting with its description, and with the values that were overridden.
fn explained(settings: &Settings) -> String {
    let mut text = String::new();
    for key in KEYS.iter() {
        let sets = settings.set.get(&key.name).map_or(&[][..], Vec::as_slice);
        let name = &key.name;
        text += &match (sets, &key.default) {
            ([set, ..], _) => {
                format!("{BOLD}{name}{BOLD:#} = {}  {DIM}{}{DIM:#}\n", short(set), place(set))
            }
            ([], Some(default)) => {
                format!("{BOLD}{name}{BOLD:#} = {default}  {DIM}default{DIM:#}\n")
            }
            ([], None) => format!("{BOLD}{name}{BOLD:#}  {DIM}not set{DIM:#}\n"),
        };
        for set in sets.iter().skip(1) {
            text += &format!("    {DIM}instead of {}  {}{DIM:#}\n", short(set), place(set));
        }
        let yours = if key.user_only {
            " Ignored in a project's file, unless you trust the project."
        } else {
            ""
        };
        let width = text::width().unwrap_or(usize::MAX).saturating_sub(4).max(20);
        for line in text::wrap_line(&format!("{}{yours}", key.about), width) {
            text += &format!("    {line}\n");
        }
        for line in text::wrap_line(&format!("takes {}", key.takes), width) {
            text += &format!("    {DIM}{line}{DIM:#}\n");
        }
    }
    text
}

fn short(set: &SetValue) -> String {
    one_line(&set.value.to_string(), 60)
}

fn place(set: &SetValue) -> String {
    let place = field(&set.place.to_string());
    match &set.by {
        Some(by) => format!("{place} ({})", one_line(by, 60)),
        None => place,
    }
}

fn scope(scope: Scope) -> &'static str {
    match scope {
        Scope::User => "yours",
        Scope::Project => "the project's",
        Scope::TrustedProject => "the project's, trusted",
    }
}

fn json_of(settings: &Settings) -> SettingsJson<'_> {
    let files = settings.files.iter();
    let value = |set: &SetValue| serde_json::to_value(&set.value).expect("a value is JSON");
    let keys = KEYS.iter().map(|key| {
        let sets = settings.set.get(&key.name).map_or(&[][..], Vec::as_slice);
        let first = sets.first();
        let others = sets.iter().skip(1);
        SettingJson {
            key: &key.name,
            value: first.map(value).or_else(|| key.default.clone()),
            place: first.map(|set| set.place.to_string()),
            by: first.and_then(|set| set.by.as_deref()),
            variable: key.variable(),
            about: &key.about,
            takes: &key.takes,
            yours_alone: key.user_only,
            instead_of: others
                .map(|set| SetTold { value: value(set), place: set.place.to_string() })
                .collect(),
        }
    });
    SettingsJson {
        files: files.map(|file| FileTold { path: &file.path, scope: scope(file.scope) }).collect(),
        settings: keys.collect(),
        left_out: &settings.notes,
    }
}
