//! The program `epitome`: its commands, one line each.
//!
//! `cmd/<verb>.rs` is one command: it reads arguments, calls the library, and lays the result out.
//! `choice.rs` reads the options that several commands share (the recipe, its target, what is kept)
//! and `session.rs` the sessions that they name. `failure.rs` turns an error into a message, hints
//! and an exit status; `docs/exit-codes.md` lists them.
//!
//! For people, results are laid out by the commands and by modules that several commands share,
//! such as `report.rs`, `losses.rs` and `table.rs`; for programs, they are printed as the library's
//! reports (`docs/json.md`). `browser` is the list of sessions in a terminal.
//!
//! # Absent
//!
//! - Decisions: what the program can do, the library can do. `epitome::ops` compacts and restores.
//! - Pages of sessions: `epitome-render`. The viewer: `epitome-web`. The agent: `epitome-chat`.
//! - Reading settings and folders from the environment: `epitome::Config` does. Here only what
//!   concerns the terminal and started programs is read, such as `PAGER`, `COLUMNS` and `PATH`.

mod app;
mod browser;
mod choice;
mod cmd;
mod confirm;
mod conversation;
mod diff;
mod failure;
mod fold;
mod interrupt;
mod left_behind;
mod losses;
mod overview;
mod progress;
mod redaction;
mod report;
mod session;
mod steps;
mod summarise;
mod table;
mod text;
mod trace;
mod usage;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use app::{App, Global, print_error};
use epitome::Config;
use failure::{Failure, Result, Status};
use text::YELLOW;

#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Shrinks the stored sessions of AI coding agents, keeps them valid, and can restore every byte
#[derive(Parser, Clone, Debug)]
#[command(name = "epitome", version, max_term_width = 100)]
struct Cli {
    #[command(flatten)]
    global: Global,

    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand, Clone, Debug)]
enum Command {
    List(cmd::list::Args),
    Search(cmd::search::Args),
    Inspect(cmd::inspect::Args),
    Compact(cmd::compact::Args),
    Restore(cmd::restore::Args),
    Undo(cmd::undo::Args),
    Log(cmd::log::Args),
    Losses(cmd::losses::Args),
    Show(cmd::show::Args),
    Export(cmd::export::Args),
    Port(cmd::port::Args),
    Render(cmd::render::Args),
    Index(cmd::index::Args),
    Manifest(cmd::manifest::Args),
    Install(cmd::install::Args),
    Uninstall(cmd::uninstall::Args),
    Keep(cmd::keep::Args),
    History(cmd::history::Args),
    Forget(cmd::forget::Args),
    Watch(cmd::watch::Args),
    Hook(cmd::hook::Args),
    Engine(cmd::engine::Args),
    Wrap(cmd::wrap::Args),
    Proxy(cmd::proxy::Args),
    Chat(cmd::chat::Args),
    Mcp(cmd::mcp::Args),
    Cost(cmd::cost::Args),
    Statusline(cmd::statusline::Args),
    Doctor(cmd::doctor::Args),
    Redact(cmd::redact::Args),
    Share(cmd::share::Args),
    Scan(cmd::scan::Args),
    Serve(cmd::serve::Args),
    Archive(cmd::archive::Args),
    Recipes(cmd::recipes::Args),
    Simulate(cmd::simulate::Args),
    Config(cmd::config::Args),
    Key(cmd::key::Args),
    Demo(cmd::demo::Args),
    Completions(cmd::completions::Args),
    Man(cmd::man::Args),
}

fn main() -> ExitCode {
    let command = overview::group_commands(Cli::command());
    let line: Vec<OsString> = std::env::args_os().collect();
    let matches = command.clone().try_get_matches_from(&line);
    let matches = matches.unwrap_or_else(|err| usage::with_tips(err, &command, &line).exit());
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|err| err.exit());
    let color = cli.global.color;
    if let Some(Command::Chat(_)) = &cli.command
        && let Err(err) = Config::take_keys_from_environment()
    {
        let text = format!("{YELLOW}warning:{YELLOW:#} keys stay in the environment: {err}\n");
        print_error(&text, color);
    }
    // A panic is a bug, and bugs have a status of their own.
    let done = std::panic::catch_unwind(|| run(cli)).unwrap_or_else(|_| {
        Err(Failure::new(Status::Bug, "bug", "internal error")
            .hint("please report the message above, and the command"))
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            print_error(&failure.render(), color);
            failure.exit()
        }
    }
}

fn run(cli: Cli) -> Result<()> {
    let app = App::new(cli.global)?;
    trace::begin(&app.config)?;
    match &cli.command {
        Some(command) => command.run(&app),
        None if app.is_terminal() && confirm::can_ask() => browser::run(&app),
        None => app.print(&overview::overview(&Cli::command())),
    }
}

/// Runs a command line, which begins with the name of a command. Global options in it are ignored.
fn run_line(app: &App, line: &[OsString]) -> Result<()> {
    let words = [OsString::from("epitome")].into_iter().chain(line.iter().cloned());
    let cli = Cli::try_parse_from(words).map_err(|err| Failure::usage(err.to_string()))?;
    cli.command.map_or(Ok(()), |command| command.run(app))
}

impl Command {
    fn run(&self, app: &App) -> Result<()> {
        match self {
            Command::List(args) => cmd::list::run(app, args),
            Command::Search(args) => cmd::search::run(app, args),
            Command::Inspect(args) => cmd::inspect::run(app, args),
            Command::Compact(args) => cmd::compact::run(app, args),
            Command::Restore(args) => cmd::restore::run(app, args),
            Command::Undo(args) => cmd::undo::run(app, args),
            Command::Log(args) => cmd::log::run(app, args),
            Command::Losses(args) => cmd::losses::run(app, args),
            Command::Show(args) => cmd::show::run(app, args),
            Command::Export(args) => cmd::export::run(app, args),
            Command::Port(args) => cmd::port::run(app, args),
            Command::Render(args) => cmd::render::run(app, args),
            Command::Index(args) => cmd::index::run(app, args),
            Command::Manifest(args) => cmd::manifest::run(app, args),
            Command::Install(args) => cmd::install::run(app, args),
            Command::Uninstall(args) => cmd::uninstall::run(app, args),
            Command::Keep(args) => cmd::keep::run(app, args),
            Command::History(args) => cmd::history::run(app, args),
            Command::Forget(args) => cmd::forget::run(app, args),
            Command::Watch(args) => cmd::watch::run(app, args),
            Command::Hook(args) => cmd::hook::run(app, args),
            Command::Engine(args) => cmd::engine::run(app, args),
            Command::Wrap(args) => cmd::wrap::run(app, args),
            Command::Proxy(args) => cmd::proxy::run(app, args),
            Command::Chat(args) => cmd::chat::run(app, args),
            Command::Mcp(args) => cmd::mcp::run(app, args),
            Command::Cost(args) => cmd::cost::run(app, args),
            Command::Statusline(args) => cmd::statusline::run(app, args),
            Command::Doctor(args) => cmd::doctor::run(app, args),
            Command::Redact(args) => cmd::redact::run(app, args),
            Command::Share(args) => cmd::share::run(app, args),
            Command::Scan(args) => cmd::scan::run(app, args),
            Command::Serve(args) => cmd::serve::run(app, args),
            Command::Archive(args) => cmd::archive::run(app, args),
            Command::Recipes(args) => cmd::recipes::run(app, args),
            Command::Simulate(args) => cmd::simulate::run(app, args),
            Command::Config(args) => cmd::config::run(app, args),
            Command::Key(args) => cmd::key::run(app, args),
            Command::Demo(args) => cmd::demo::run(app, args),
            Command::Completions(args) => cmd::completions::run(app, args),
            Command::Man(args) => cmd::man::run(app, args),
        }
    }
}
