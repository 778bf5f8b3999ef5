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
mod idle;
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

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};

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

/// Declares the commands: `Name => module` is `epitome module`, which `cmd/module.rs` runs.
macro_rules! commands {
    ($($name:ident => $module:ident),* $(,)?) => {
        #[derive(Subcommand, Clone, Debug)]
        enum Command {
            $($name(cmd::$module::Args),)*
        }

        impl Command {
            fn run(&self, app: &App) -> Result<()> {
                match self {
                    $(Self::$name(args) => cmd::$module::run(app, args),)*
                }
            }
        }

        /// What clap knows of the one command of this name; `None` if there is no such command.
        fn find_command(name: &str) -> Option<clap::Command> {
            match name {
                $(stringify!($module) => {
                    let command = clap::Command::new(stringify!($module));
                    Some(cmd::$module::Args::augment_args(command))
                })*
                _ => None,
            }
        }
    };
}

commands! {
    List => list,
    Search => search,
    Inspect => inspect,
    Compact => compact,
    Restore => restore,
    Undo => undo,
    Log => log,
    Losses => losses,
    Show => show,
    Export => export,
    Port => port,
    Render => render,
    Index => index,
    Manifest => manifest,
    Install => install,
    Uninstall => uninstall,
    Keep => keep,
    History => history,
    Forget => forget,
    Watch => watch,
    Hook => hook,
    Engine => engine,
    Wrap => wrap,
    Proxy => proxy,
    Chat => chat,
    Mcp => mcp,
    Cost => cost,
    Statusline => statusline,
    Doctor => doctor,
    Redact => redact,
    Share => share,
    Scan => scan,
    Serve => serve,
    Archive => archive,
    Recipes => recipes,
    Simulate => simulate,
    Config => config,
    Key => key,
    Demo => demo,
    Completions => completions,
    Man => man,
}

fn main() -> ExitCode {
    let line: Vec<OsString> = std::env::args_os().collect();
    let cli = parse_one_command(&line).unwrap_or_else(|| parse_line(&line));
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

/// Reads a command line with the options of the one command that it begins with. To build those of
/// all commands takes more than half of the time of a start, and 3 MiB that a waiting keeper holds.
/// `None` if that fails, also for `--help`: [`parse_line`] then has all commands to say what is
/// wrong.
fn parse_one_command(line: &[OsString]) -> Option<Cli> {
    let command = find_command(line.get(1)?.to_str()?)?;
    let program = Global::augment_args(clap::Command::new("epitome")).subcommand(command);
    Cli::from_arg_matches(&program.try_get_matches_from(line).ok()?).ok()
}

/// Reads a command line. Exits after printing what was asked for, or what is wrong.
fn parse_line(line: &[OsString]) -> Cli {
    let command = overview::group_commands(Cli::command());
    let matches = command.clone().try_get_matches_from(line);
    let matches = matches.unwrap_or_else(|err| usage::with_tips(err, &command, line).exit());
    Cli::from_arg_matches(&matches).unwrap_or_else(|err| err.exit())
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Everything that clap knows of an argument.
    fn arguments(command: &clap::Command) -> Vec<String> {
        command.get_arguments().map(|argument| format!("{argument:?}")).collect()
    }

    #[test]
    fn a_command_alone_has_the_arguments_that_it_has_among_all() {
        for command in Cli::command().get_subcommands() {
            let alone = find_command(command.get_name()).expect("each command is found");
            assert_eq!(arguments(&alone), arguments(command), "{}", command.get_name());
        }
    }

    #[test]
    fn a_line_is_read_with_its_command_alone_as_with_all() {
        let line = ["epitome", "list", "--agent", "pi", "--set", "compaction.recipe=s06", "--json"];
        let line = line.map(OsString::from);
        let alone = parse_one_command(&line).expect("the line is right");
        assert_eq!(format!("{alone:?}"), format!("{:?}", parse_line(&line)));
    }

    #[test]
    fn what_is_not_a_command_line_is_left_to_all_commands() {
        for line in
            [&["epitome"][..], &["epitome", "--json", "list"], &["epitome", "list", "--help"]]
        {
            let line: Vec<OsString> = line.iter().map(OsString::from).collect();
            assert!(parse_one_command(&line).is_none(), "{line:?}");
        }
    }
}
