//! `epitome install`: adds a hook, a server, a status line or a command to an agent's settings, or
//! installs the service of `epitome keep`.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use clap::Args as ClapArgs;
use epitome::additions::{Add, AdditionKind};
use epitome::hooks::{self, HookRequest, Install, Rule};
use epitome::service::ServiceInstall;
use serde::Serialize;

use super::render::{Compact, Format, compact_value};
use crate::app::App;
use crate::confirm::ask_to_continue;
use crate::diff;
use crate::failure::{Failure, Result};
use crate::text::{self, BOLD, DIM};

const EXAMPLES: &str = "\
Examples:
  epitome install --agent claude
  epitome install --agent claude --format html --branch gh-pages
  epitome install --agent codex --all --compact --shrink --out ~/transcripts
  epitome install --mcp --agent codex
  epitome install --statusline --agent claude
  epitome install --command --agent claude
  epitome install --keep";

/// Keep transcripts: have an agent run epitome when a session ends
///
/// Shows how the agent's settings will change, and asks. From then on each session of this project
/// is rendered when it ends, with secrets and personal data redacted. With --mcp the agent can look
/// into past sessions instead, with --statusline it shows how full its context is, with --command
/// it has the command `/epitome`. With --keep a service keeps every version of every session.
/// `epitome uninstall` reverts this.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Output format; may be given more than once [default: html]
    #[arg(long, alias = "fmt", value_name = "FORMAT", value_delimiter = ',')]
    pub format: Vec<Format>,

    /// The folder for transcripts [default: .transcripts in the project]
    #[arg(long, short, visible_alias = "out-dir", value_name = "DIR")]
    pub out: Option<PathBuf>,

    /// Keep the transcripts on this branch of the repository, which contains nothing else
    #[arg(long, value_name = "NAME", conflicts_with = "all")]
    pub branch: Option<String>,

    /// Replace results and bulky arguments by their number of lines; with `=no-thinking` also leave
    /// out the model's reasoning
    #[arg(long, short, value_name = "no-thinking", num_args = 0..=1, require_equals = true,
          default_missing_value = super::render::BARE, value_parser = compact_value)]
    pub compact: Option<Compact>,

    /// Also compact the session itself when it has ended, as `epitome compact` does
    #[arg(long)]
    pub shrink: bool,

    /// Only sessions run in this folder or below it [default: the repository of this folder, or
    /// this folder]
    #[arg(long, short, value_name = "DIR", conflicts_with = "all")]
    pub project: Option<PathBuf>,

    /// The sessions of every project
    #[arg(long)]
    pub all: bool,

    /// Add the server of `epitome mcp` to the agent's settings; no transcripts are kept
    #[arg(long, conflicts_with_all = NOT_OF_ADDITIONS)]
    pub mcp: bool,

    /// Make `epitome statusline` the agent's status line; no transcripts are kept
    #[arg(long, conflicts_with = "mcp", conflicts_with_all = NOT_OF_ADDITIONS)]
    pub statusline: bool,

    /// Add the command `/epitome` to the agent: what compacting the session would free and lose
    #[arg(long, conflicts_with_all = ["mcp", "statusline"], conflicts_with_all = NOT_OF_ADDITIONS)]
    pub command: bool,

    /// Install a service that runs `epitome keep --all` (systemd, launchd), and start it
    #[arg(long, conflicts_with_all = ["mcp", "statusline", "command"],
          conflicts_with_all = NOT_OF_ADDITIONS)]
    pub keep: bool,

    /// Do not ask
    #[arg(long, short)]
    pub yes: bool,
}

/// The options about kept transcripts. They cannot be given together with an option that installs
/// something else.
const NOT_OF_ADDITIONS: [&str; 7] =
    ["format", "out", "branch", "compact", "shrink", "project", "all"];

/// The service that was installed. See `docs/json.md`.
#[derive(Serialize)]
struct Service {
    added: &'static str,
    #[serde(serialize_with = "epitome_model::lossy_path")]
    file: PathBuf,
    started: bool,
}

/// The result of `install`: the addition that was installed. See `docs/json.md`.
#[derive(Serialize)]
struct Added<'a> {
    agent: &'a str,
    added: AdditionKind,
    #[serde(serialize_with = "epitome_model::lossy_path")]
    file: PathBuf,
    #[serde(skip_serializing_if = "Option::is_none")]
    typed: Option<&'static str>,
}

impl Args {
    /// The addition that the options choose: the MCP server, the status line or the command. `None`
    /// for a hook, and for the service of `--keep`.
    fn addition(&self) -> Option<AdditionKind> {
        chosen_addition(self.mcp, self.statusline, self.command)
    }
}

/// The kind of addition whose option was given; `None` if none was. `install` and `uninstall` both
/// have these options.
pub fn chosen_addition(mcp: bool, statusline: bool, command: bool) -> Option<AdditionKind> {
    let mut options = AdditionKind::ALL.into_iter().zip([mcp, statusline, command]);
    options.find(|(_, is_given)| *is_given).map(|(kind, _)| kind)
}

pub fn run(app: &App, args: &Args) -> Result<()> {
    match args.addition() {
        _ if args.keep => install_service(app, args),
        Some(kind) => add(app, args, kind),
        None => install_hook(app, args),
    }
}

/// Shows the changes, asks, and then installs and starts the service that keeps every version of
/// every session.
fn install_service(app: &App, args: &Args) -> Result<()> {
    let plan = ServiceInstall::plan(&app.config, &program()?)?;
    let file = text::path(&plan.file);
    let mut shown = String::new();
    settings_change(&mut shown, &file, plan.before.as_deref(), &plan.after);
    let line = plan.start.line();
    let _ = writeln!(shown, "{BOLD}then runs:{BOLD:#} {line}");
    app.note(shown.trim_end());
    ask_to_continue(app, args.yes, "Install this?")?;
    plan.carry_out(&app.config).map_err(Failure::writing)?;
    let started = plan.start.run(std::env::var_os("PATH").as_deref());
    if app.global.json {
        let file = plan.file;
        return app.print_json(&Service { added: "keep", file, started: started.is_ok() });
    }
    let mut done = format!("installed: every version of every session is kept, by {file}\n");
    if let Err(err) = started {
        let why = Failure::from(err).one_line();
        let _ = writeln!(done, "{BOLD}still to do:{BOLD:#} {line}  {DIM}({why}){DIM:#}");
    }
    app.print(&done)
}

/// Adds the MCP server, the status line or the command to the agent's settings.
fn add(app: &App, args: &Args, kind: AdditionKind) -> Result<()> {
    let Some(agent) = app.agent() else {
        let known = kind.agents().join(", ");
        return Err(Failure::usage("no agent named; give --agent").hint(format!("one of: {known}")));
    };
    let plan = Add::plan(&app.config, agent, kind, &program()?)?;
    let file = text::path(&plan.file);
    let mut shown = String::new();
    settings_change(&mut shown, &file, plan.before.as_deref(), &plan.after);
    app.note(shown.trim_end());
    ask_to_continue(app, args.yes, "Install this?")?;
    let typed = plan.typed;
    let added = Added { agent, added: kind, file: plan.file.clone(), typed };
    plan.carry_out(&app.config).map_err(Failure::writing)?;
    if app.global.json {
        return app.print_json(&added);
    }
    let usage = typed.map(|typed| format!("; type {typed}")).unwrap_or_default();
    app.print(&format!("installed for {agent}: {} in {file}{usage}\n", kind.name()))
}

fn install_hook(app: &App, args: &Args) -> Result<()> {
    let Some(agent) = app.agent() else {
        let known = hooks::agents().collect::<Vec<_>>().join(", ");
        return Err(Failure::usage("no agent named; give --agent").hint(format!("one of: {known}")));
    };
    let wish = wish(args)?;
    let program = program()?;
    let plan = Install::plan(&app.config, agent, &program, &wish)?;
    app.note(describe_changes(&plan).trim_end());
    ask_to_continue(app, args.yes, "Install this?")?;
    let afterwards = plan.afterwards;
    let rule = plan.carry_out(&app.config).map_err(Failure::writing)?;
    if app.global.json {
        return app.print_json(&rule);
    }
    let mut done = format!("installed for {agent}: {}\n", describe_rule(&rule));
    if let Some(afterwards) = afterwards {
        let _ = writeln!(done, "{BOLD}still to do:{BOLD:#} {afterwards}");
    }
    app.print(&done)
}

/// The path by which agents call this program: the path by which the user called it, if that leads
/// to the program's own file, and otherwise the path of that file. A link like
/// `~/.local/bin/epitome` stays valid when an upgrade moves its target.
fn program() -> Result<PathBuf> {
    find_program().map_err(|err| Failure::disk("cannot find the file of this program", &err))
}

fn find_program() -> std::io::Result<PathBuf> {
    let own = std::env::current_exe()?;
    let called = std::env::args_os().next().map(PathBuf::from).unwrap_or_default();
    let path = std::env::var_os("PATH").filter(|_| called.components().count() == 1);
    let folders: Vec<PathBuf> = match &path {
        Some(path) => std::env::split_paths(path).collect(),
        None => vec![std::env::current_dir()?],
    };
    let mut places = folders.iter().map(|folder| folder.join(&called));
    let real = fs::canonicalize(&own)?;
    let same = places.find(|place| {
        place.is_absolute() && fs::canonicalize(place).is_ok_and(|path| path == real)
    });
    Ok(same.unwrap_or(own))
}

/// Describes the rule of a hook, such as which sessions are rendered, in which formats, and where.
pub fn describe_rule(rule: &Rule) -> String {
    let of = match &rule.project {
        Some(project) => format!("sessions in {}", text::path(project)),
        None => "all sessions".to_owned(),
    };
    let formats: Vec<String> =
        rule.formats.iter().map(|it| format!("{it:?}").to_lowercase()).collect();
    let mut line = format!("{of} → {} in {}", formats.join(", "), text::path(&rule.out));
    if let Some(branch) = &rule.branch {
        let _ = write!(line, ", on the branch {}", text::field(&branch.name));
    }
    if rule.compact.is_some() {
        line.push_str(", compacted");
    }
    if rule.shrink {
        line.push_str("; then the session itself is compacted");
    }
    line
}

fn wish(args: &Args) -> Result<HookRequest> {
    let formats = args.format.iter().map(|format| match format {
        Format::File(rendered) => Ok(*rendered),
        Format::Terminal => {
            Err(Failure::usage("the format of a kept transcript is html, markdown, json or jsonl"))
        }
    });
    let here = std::env::current_dir()
        .map_err(|err| Failure::disk("cannot determine the current folder", &err))?;
    let project = match (args.all, &args.project) {
        (true, _) => None,
        (false, Some(project)) => Some(project.clone()),
        (false, None) => Some(hooks::top(&here).unwrap_or(here)),
    };
    Ok(HookRequest {
        project,
        formats: formats.collect::<Result<_>>()?,
        out: args.out.clone(),
        branch: args.branch.clone(),
        compact: args.compact.map(|compact| compact.name().to_owned()),
        shrink: args.shrink,
    })
}

/// Describes the changes of an installation for people.
fn describe_changes(plan: &Install) -> String {
    let mut shown = String::new();
    let rule = &plan.rule;
    let file = text::path(&plan.file);
    settings_change(&mut shown, &file, plan.before.as_deref(), &plan.after);
    let _ = writeln!(shown, "{BOLD}kept:{BOLD:#} {}", describe_rule(rule));
    if let Some(branch) = rule.branch.as_ref().filter(|branch| branch.made) {
        let top = text::path(&branch.repository);
        let name = text::field(&branch.name);
        let _ = writeln!(
            shown,
            "{DIM}the branch {name} will be created in {top}, without a history{DIM:#}"
        );
    }
    if let Some(left_out) = &rule.left_out {
        let line = left_out.text.trim();
        let file = text::path(&left_out.file);
        let _ = writeln!(shown, "{DIM}{file} gets the line {}{DIM:#}", text::field(line));
    }
    shown
}

/// Describes how a file would change: its name and a diff.
fn settings_change(shown: &mut String, file: &str, before: Option<&str>, after: &str) {
    match before {
        Some(before) if before == after => {
            let _ = writeln!(shown, "{BOLD}{file}{BOLD:#} is not changed");
        }
        None => {
            let _ = writeln!(shown, "{BOLD}{file}{BOLD:#} will be created:");
            diff::lines(shown, "", after);
        }
        Some(before) => {
            let _ = writeln!(shown, "{BOLD}{file}{BOLD:#} changes:");
            diff::lines(shown, before, after);
        }
    }
}
