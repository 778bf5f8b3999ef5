//! Tips after a command line that cannot be parsed. clap says what is wrong, the tips say what to
//! do.

use std::ffi::OsString;
use std::path::Path;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, Error};

/// Adds tips to the error, if there are any.
pub fn with_tips(mut err: Error, command: &Command, line: &[OsString]) -> Error {
    let tips = tips(&err, command, line);
    if !tips.is_empty() {
        let tips = tips.into_iter().map(StyledStr::from).collect();
        err.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
    }
    err
}

fn tips(err: &Error, command: &Command, line: &[OsString]) -> Vec<String> {
    let words: Vec<&str> = line.iter().skip(1).filter_map(|word| word.to_str()).collect();
    let called = words.iter().find_map(|word| command.find_subcommand(word));
    let wrong = match err.get(ContextKind::InvalidArg).or(err.get(ContextKind::InvalidSubcommand)) {
        Some(ContextValue::String(wrong)) => vec![wrong.as_str()],
        Some(ContextValue::Strings(wrong)) => wrong.iter().map(String::as_str).collect(),
        Some(_) | None => Vec::new(),
    };
    match (err.kind(), called) {
        (ErrorKind::MissingRequiredArgument, Some(called)) => {
            wrong.iter().flat_map(|missing| of_missing(called, missing)).collect()
        }
        (ErrorKind::UnknownArgument, called) => {
            wrong.first().map_or_else(Vec::new, |word| of_unknown(called, word))
        }
        (ErrorKind::InvalidSubcommand, _) => {
            wrong.first().map_or_else(Vec::new, |word| of_no_command(command, &words, word))
        }
        _ => Vec::new(),
    }
}

/// Tips on how to give a missing argument. `missing` is the argument as clap prints it:
/// `<SESSION>...`, `--to <FORMAT>`.
fn of_missing(called: &Command, missing: &str) -> Vec<String> {
    let name = called.get_name();
    if missing.contains("<SESSION>") {
        let mut tips = vec![format!(
            "`epitome list` shows the sessions of this machine; the beginning of an id is enough: \
             `epitome {name} 0f3c9a52`"
        )];
        let all = called.get_arguments().find(|arg| arg.get_long() == Some("all"));
        tips.extend(all.map(|_| format!("`epitome {name} --all` takes all that there are")));
        return tips;
    }
    let mut arguments = called.get_arguments();
    let arg = arguments.find(|arg| arg.get_long().is_some_and(|long| is_option(missing, long)));
    let Some(arg) = arg else { return Vec::new() };
    let values = arg.get_possible_values();
    let values: Vec<&str> =
        values.iter().filter(|it| !it.is_hide_set()).map(|it| it.get_name()).collect();
    let long = arg.get_long().unwrap_or_default();
    if values.is_empty() {
        Vec::new()
    } else {
        vec![format!("--{long} takes {}", values.join(", "))]
    }
}

fn is_option(missing: &str, long: &str) -> bool {
    missing
        .strip_prefix("--")
        .and_then(|rest| rest.strip_prefix(long))
        .is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '=', '<']))
}

/// Tips on what the user may have meant by an unknown option.
fn of_unknown(called: Option<&Command>, word: &str) -> Vec<String> {
    let name = called.map(Command::get_name);
    let is_agent = epitome_formats::find_format(word).is_some();
    match (name, word) {
        (_, "-v" | "--verbose") => vec![
            "`epitome --version` prints the version".to_owned(),
            "EPITOME_LOG=epitome=debug prints what happens on the way".to_owned(),
        ],
        (Some("port" | "export" | "redact"), "--dry-run") => vec![format!(
            "{} never changes the session: it writes a new one, so there is nothing to try first",
            name.unwrap_or_default()
        )],
        (Some("list"), _) if is_agent => vec![format!("`epitome list --agent {word}`")],
        (Some("list"), _) if !word.starts_with('-') => vec![
            format!("`epitome list --project {word}` lists the sessions of a folder"),
            format!("`epitome search {word}` finds sessions by what was said in them"),
        ],
        (Some("config"), _) => of_config(),
        (Some(_) | None, _) => Vec::new(),
    }
}

/// Tips on what the user may have meant by a word in the place of a command.
fn of_no_command(command: &Command, words: &[&str], word: &str) -> Vec<String> {
    if words.first() == Some(&"config") {
        return of_config();
    }
    if Path::new(word).is_dir() {
        return vec![
            format!("`epitome serve --dir {word}` shows the sessions in a folder"),
            format!("`epitome list --project {word}` lists those that were run in it"),
        ];
    }
    if is_session(word) {
        return ["inspect", "render", "compact --dry-run"]
            .map(|verb| format!("a command comes first: `epitome {verb} {word}`"))
            .into();
    }
    // `epitome help compct` has the same tip as `epitome compct`.
    if words.first() == Some(&"help") {
        let name = command.get_name().to_owned();
        let known = command.clone().try_get_matches_from([&*name, word]);
        let suggested =
            known.err().and_then(|err| match err.get(ContextKind::SuggestedSubcommand) {
                Some(ContextValue::Strings(names)) => names.last().cloned(),
                Some(ContextValue::String(name)) => Some(name.clone()),
                Some(_) | None => None,
            });
        return suggested.map(|name| format!("`epitome help {name}`")).into_iter().collect();
    }
    Vec::new()
}

fn of_config() -> Vec<String> {
    vec![
        "settings are lines of a file, which `epitome config` names at its end".to_owned(),
        "--set KEY=VALUE sets one for a run; `epitome config --explain` lists all".to_owned(),
    ]
}

/// Whether a word is a file, or looks like the id of a session.
fn is_session(word: &str) -> bool {
    let has_digit = word.contains(|c: char| c.is_ascii_digit());
    let is_id = word.len() >= 4 && word.chars().all(|c| c.is_ascii_hexdigit() || c == '-');
    Path::new(word).is_file() || has_digit && is_id
}
