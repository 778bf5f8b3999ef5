//! The slash commands. [`COMMANDS`] is the only list: help and completion come from it.

use std::path::PathBuf;

use crate::machine::{Input, OutsideChange};
use crate::parse_dollars;

/// A slash command.
pub(crate) struct Command {
    pub(crate) name: &'static str,
    /// The arguments as the help shows them. Empty if the command takes none.
    pub(crate) arguments: &'static str,
    pub(crate) about: &'static str,
    /// Makes the outcome from the text after the name; from `None` if no text follows.
    make: fn(Option<&str>) -> SlashOutcome,
}

/// What a slash command leads to.
#[derive(Debug)]
pub(crate) enum SlashOutcome {
    /// An input for the agent.
    Input(Input),
    Help,
    Quit,
    /// An error message.
    Wrong(String),
}

pub(crate) static COMMANDS: &[Command] = &[
    Command {
        name: "/help",
        arguments: "",
        about: "keys and commands",
        make: |_| SlashOutcome::Help,
    },
    Command {
        name: "/compact",
        arguments: "[FOCUS]",
        about: "make the context small now; FOCUS weighs more",
        make: |focus| SlashOutcome::Input(Input::Compact(focus.map(str::to_owned))),
    },
    Command {
        name: "/context",
        arguments: "",
        about: "what fills the window",
        make: |_| SlashOutcome::Input(Input::Window),
    },
    Command {
        name: "/undo",
        arguments: "",
        about: "take the last compaction back",
        make: |_| SlashOutcome::Input(Input::Undo),
    },
    Command {
        name: "/losses",
        arguments: "",
        about: "what was shortened, and how the model gets it back",
        make: |_| SlashOutcome::Input(Input::Losses),
    },
    Command {
        name: "/model",
        arguments: "[MODEL]",
        about: "let another model answer, as PROVIDER/MODEL",
        make: |name| change(OutsideChange::Model(name.map(str::to_owned))),
    },
    Command {
        name: "/recipe",
        arguments: "[RECIPE]",
        about: "keep the context small by another recipe",
        make: |name| change(OutsideChange::Recipe(name.map(str::to_owned))),
    },
    Command {
        name: "/resume",
        arguments: "[ID]",
        about: "go on with another session; without an id, list them",
        make: |id| change(OutsideChange::Resume(id.map(str::to_owned))),
    },
    Command {
        name: "/export",
        arguments: "[FILE]",
        about: "write the session as Markdown, or as a page (.html), without secrets",
        make: |file| change(OutsideChange::Export(file.map(PathBuf::from))),
    },
    Command {
        name: "/budget",
        arguments: "[DOLLARS]",
        about: "send no request once this much is spent",
        make: budget,
    },
    Command {
        name: "/quit",
        arguments: "",
        about: "leave (also Ctrl-D)",
        make: |_| SlashOutcome::Quit,
    },
];

fn change(change: OutsideChange) -> SlashOutcome {
    SlashOutcome::Input(Input::Change(change))
}

fn budget(amount: Option<&str>) -> SlashOutcome {
    let Some(text) = amount else { return SlashOutcome::Input(Input::Budget(None)) };
    match parse_dollars(text.trim_start_matches('$')) {
        Some(amount) => SlashOutcome::Input(Input::Budget(Some(amount))),
        None => SlashOutcome::Wrong(format!("`{text}` is no amount of dollars: /budget 2.50")),
    }
}

/// Parses a slash command. An unknown command, or one with wrong arguments, becomes
/// [`SlashOutcome::Wrong`]. `None` if the text is a message, for example one that begins with a
/// path.
pub(crate) fn parse(text: &str) -> Option<SlashOutcome> {
    let line = text.trim();
    let (name, rest) = line.split_once(' ').unwrap_or((line, ""));
    let letters = name.strip_prefix('/')?;
    if letters.is_empty() || !letters.chars().all(|c| c.is_ascii_alphabetic()) {
        return None;
    }
    let rest = Some(rest.trim()).filter(|rest| !rest.is_empty());
    let Some(command) = COMMANDS.iter().find(|command| command.name.eq_ignore_ascii_case(name))
    else {
        return Some(SlashOutcome::Wrong(format!("there is no command {name}: /help lists them")));
    };
    if command.arguments.is_empty() && rest.is_some() {
        return Some(SlashOutcome::Wrong(format!("{} takes nothing behind it", command.name)));
    }
    Some((command.make)(rest))
}

/// The commands whose names begin with `text`. Empty if `text` does not begin with a slash.
pub(crate) fn completions(text: &str) -> Vec<&'static Command> {
    if !text.starts_with('/') {
        return Vec::new();
    }
    let found = COMMANDS.iter().filter(|command| {
        command.name.get(..text.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(text))
    });
    found.collect()
}

/// The commands for editors. The other commands would do what the editor itself does.
pub(crate) fn offered_to_editors() -> impl Iterator<Item = &'static Command> {
    COMMANDS.iter().filter(|it| !["/help", "/resume", "/quit"].contains(&it.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_commands_or_messages() {
        for (text, expect) in [
            ("hello", None),
            ("/home/me is full", None),
            ("/", None),
            ("/help", Some("Help")),
            ("/quit", Some("Quit")),
            ("/compact", Some("Input(Compact(None))")),
            ("/Compact", Some("Input(Compact(None))")),
            ("/EXPORT A.md", Some("Input(Change(Export(Some(\"A.md\"))))")),
            ("/compact the  tests ", Some("Input(Compact(Some(\"the  tests\")))")),
            ("/budget 2.50", Some("Input(Budget(Some(MicroDollars(2500000))))")),
            ("/budget", Some("Input(Budget(None))")),
            ("/recipe s06", Some("Input(Change(Recipe(Some(\"s06\"))))")),
            ("/export a b.md", Some("Input(Change(Export(Some(\"a b.md\"))))")),
        ] {
            let found = parse(text).map(|done| format!("{done:?}"));
            assert_eq!(found.as_deref(), expect, "{text}");
        }
        for (text, expect) in [
            ("/budget x", "`x` is no amount of dollars"),
            ("/nothing", "there is no command /nothing"),
            ("/undo 3", "/undo takes nothing"),
        ] {
            let found = parse(text);
            assert!(
                matches!(&found, Some(SlashOutcome::Wrong(why)) if why.starts_with(expect)),
                "{found:?}"
            );
        }
    }

    #[test]
    fn a_beginning_finds_its_commands() {
        let names = |text| completions(text).iter().map(|it| it.name).collect::<Vec<_>>();
        assert_eq!(names("/co"), ["/compact", "/context"]);
        assert_eq!(names("/Com"), ["/compact"]);
        assert_eq!(names("/").len(), COMMANDS.len());
        assert_eq!(names("co"), Vec::<&str>::new());
    }
}
