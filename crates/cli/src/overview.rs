//! The commands in groups: the output of `epitome --help`, and of `epitome` alone if there is no
//! terminal for the browser. The help of each command has the global options on one line.

use std::fmt::Write as _;

use clap::Command;

use crate::text::{self, BOLD};

/// Commands that belong together, under a heading.
const GROUPS: [(&str, &[&str]); 8] = [
    ("Look", &["list", "inspect", "search", "cost", "serve", "mcp", "demo"]),
    (
        "Shrink",
        &["compact", "restore", "undo", "log", "losses", "show", "watch", "archive", "recipes"],
    ),
    ("Keep every version", &["keep", "history", "forget"]),
    ("Share", &["render", "redact", "share", "scan", "index", "manifest"]),
    ("Move", &["port", "export"]),
    ("On the way to the model", &["wrap", "proxy"]),
    ("Build and run agents", &["engine", "simulate", "chat"]),
    (
        "Set up",
        &["doctor", "install", "uninstall", "statusline", "config", "key", "completions", "man"],
    ),
];

const GET_STARTED: &str = "  \
  epitome demo                   what it does, on a sample session
  epitome list                   your sessions, largest savings first
  epitome compact ID --dry-run   what would happen to one; nothing is written

epitome COMMAND --help shows the options and examples of a command.
";

/// The template of a command's help: its examples come before its options.
const TEMPLATE: &str =
    "{about-with-newline}\n{usage-heading} {usage}\n\n{before-help}{all-args}{after-help}";

/// The width of the column with the names of commands.
const NAME: usize = 13;

/// The command of the program, with a help that lists its subcommands in groups.
pub fn group_commands(command: Command) -> Command {
    let groups = groups(&command);
    // clap's own list of commands is left out.
    let about = "{about-with-newline}\n{usage-heading} {usage}\n\n";
    let template = format!("{about}{groups}{{all-args}}{{after-help}}");
    let mut command = command.help_template(template).override_usage("epitome [OPTIONS] <COMMAND>");
    command.build();
    command.mut_subcommands(|it| without_global_options(it).hide(true))
}

/// The output of `epitome` alone if there is no terminal for the browser.
pub fn overview(command: &Command) -> String {
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let about = text::wrap_line(&about, text::columns()).join("\n");
    let groups = groups(command);
    format!("{about}\n\n{groups}{BOLD}Get started:{BOLD:#}\n{GET_STARTED}")
}

fn groups(command: &Command) -> String {
    let width = text::columns().min(100).saturating_sub(NAME + 2).max(20);
    let mut text = String::new();
    for (heading, names) in GROUPS {
        let _ = writeln!(text, "{BOLD}{heading}:{BOLD:#}");
        for name in names {
            let of_name = command.find_subcommand(name).and_then(Command::get_about);
            let about = of_name.map(ToString::to_string).unwrap_or_default();
            for (n, line) in text::wrap_line(&about, width).into_iter().enumerate() {
                let _ = writeln!(text, "  {:NAME$}{line}", if n == 0 { name } else { "" });
            }
        }
        text.push('\n');
    }
    text
}

/// Changes the help of a command and of its subcommands: the examples come first, and the global
/// options are on one line.
fn without_global_options(command: Command) -> Command {
    let globals: Vec<String> = command
        .get_arguments()
        .filter(|arg| arg.is_global_set())
        .filter_map(|arg| arg.get_long().map(|name| format!("--{name}")))
        .collect();
    let examples = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let line = format!("Global options: {} (see epitome --help)", globals.join(", "));
    let command = command.help_template(TEMPLATE).before_help(examples).after_help(line);
    let hidden = command.mut_args(|arg| {
        let is_global = arg.is_global_set();
        if is_global { arg.hide(true) } else { arg }
    });
    hidden.mut_subcommands(without_global_options)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn every_command_is_in_one_group() {
        let command = crate::Cli::command();
        let visible = command.get_subcommands().filter(|it| !it.is_hide_set());
        let mut commands: Vec<&str> = visible.map(Command::get_name).collect();
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
        commands.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(grouped, commands);
    }
}
