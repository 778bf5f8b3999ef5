//! `epitome show`: prints a text by its reference or number, most often a removed one, for people
//! and for a model with a shell.

use std::ffi::OsString;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::Args as ClapArgs;
use epitome::archive::{FileState, Reference, ReferencedBytes};
use epitome::ops::{ArchivedText, OpenSession, archived_text, session_text};
use epitome::redact::Screen;
use epitome_passes::Name;
use regex::Regex;

use crate::app::App;
use crate::cmd::restore::parse_ref;
use crate::failure::{Failure, Result, Status};
use crate::session::file;
use crate::text::{DIM, field, visible};

const EXAMPLES: &str = "\
Examples:
  epitome show k7f3a9c2
  epitome show k7f3a9c2 --lines 120..180
  epitome show k7f3a9c2 --grep 'error|warning'
  epitome show k1c0ffee > screenshot.png
  epitome show '#12' --session 0f3c9a52
  epitome show @7 --session 0f3c9a52";

/// Print the text that a stub replaced
///
/// The text is printed unchanged, with a note about its origin on standard error. A picture is
/// printed as its bytes. With --session it may also be a text that the agent's own compaction took
/// out of the context: `epitome losses` names it. A digest names calls (`#12`: what the model said
/// with it, and its result) and responses of the model (`@7`).
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The reference in a stub: `k7f3a9c2` in `[epitome k7f3a9c2: Read a.rs, …]`; with --session
    /// also a call, #12 or #12-15, or a response of the model, @7
    #[arg(value_name = "REF", value_parser = parse_name)]
    pub name: Name,

    /// Look for it in this session, archived or not: a file, a session id, or its prefix
    #[arg(long, value_name = "SESSION")]
    pub session: Option<OsString>,

    /// Only these lines, counted from 1: 20..40, 20.., ..40, 20
    #[arg(long, value_name = "A..B", value_parser = parse_lines)]
    pub lines: Option<Range>,

    /// Only lines that match this regular expression, each with its number
    #[arg(long, value_name = "RE", value_parser = parse_regex)]
    pub grep: Option<Regex>,
}

/// A range of lines, both ends included, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    first: usize,
    last: usize,
}

pub fn run(app: &App, args: &Args) -> Result<()> {
    if let Some(session) = &args.session {
        let path = file(app, session)?;
        let session = OpenSession::with_agent(&app.config, &path, app.agent());
        let text = session_text(&session, &args.name)?.ok_or_else(|| {
            let what = format!("no text of this session is called {}", written(&args.name));
            Failure::new(Status::Disk, "not-found", what)
                .hint("`epitome losses SESSION` lists what left its context, with names")
        })?;
        return print(app, args, &text, text.as_bytes());
    }
    let Name::Text(reference) = &args.name else {
        let what = format!("{} is a number in a session", written(&args.name));
        return Err(Failure::usage(what).hint("name the session: --session SESSION"));
    };
    let ArchivedText { found, bytes } = archived_text(&app.config, reference)?;
    app.note(&describe(&found, &app.screen()?));
    if let Some(media) = &found.about.media {
        return picture(app, media, &bytes);
    }
    print(app, args, &String::from_utf8_lossy(&bytes), &bytes)
}

/// Prints the requested part of a text. `bytes` are the original bytes of the text, which may not
/// be valid UTF-8.
fn print(app: &App, args: &Args, text: &str, bytes: &[u8]) -> Result<()> {
    if args.lines.is_none() && args.grep.is_none() && !app.is_terminal() {
        return app.print_bytes(bytes);
    }
    let selected = select(text, args, app.is_terminal());
    if app.is_terminal() { app.page(&selected) } else { app.print_bytes(selected.as_bytes()) }
}

/// Describes a removed text: `Read src/main.rs, 15.2 KB, line 12 of claude 0f3c…`. If a file
/// contained the same text at the time of the compaction, a second line says whether the file is
/// still the same.
fn describe(found: &ReferencedBytes, screen: &Screen) -> String {
    let about = &found.about;
    let of = format!("{} {}", found.key.agent, field(&found.key.id));
    if about.what.is_empty() {
        let damaged = "its description is damaged, so this is the raw text of the file";
        return format!("{DIM}a removed piece, {}, of {of}: {damaged}{DIM:#}", found.raw_len);
    }
    let what = field(&screen.text(&about.what));
    let line = about.line;
    let mut text = format!("{what}, {}, line {line} of {of}", found.raw_len);
    if let Some(reference) = &about.reference {
        text.push_str(&file_state(reference));
    }
    format!("{DIM}{text}{DIM:#}")
}

fn file_state(reference: &Reference) -> String {
    let lines = match (reference.first_line, reference.lines) {
        (Some(first), Some(lines)) if lines > 0 => format!(" lines {first}..{}", first + lines - 1),
        _ => String::new(),
    };
    let path = field(&reference.path);
    match reference.file_state() {
        FileState::Same => format!("\n{path}{lines} on disk is still the same"),
        FileState::Changed => format!("\n{path} on disk has changed since"),
        FileState::Gone => format!("\n{path} on disk is gone"),
    }
}

fn picture(app: &App, media: &str, base64: &[u8]) -> Result<()> {
    let text: Vec<u8> = base64.iter().copied().filter(|b| !b.is_ascii_whitespace()).collect();
    let bytes = STANDARD.decode(text).map_err(|err| {
        Failure::new(Status::Disk, "archive", "the picture is not valid base64").because(&err)
    })?;
    if app.is_terminal() {
        let what =
            format!("this is a picture ({media}, {} bytes): redirect it to a file", bytes.len());
        return Err(Failure::usage(what).hint("epitome show REF > picture"));
    }
    app.print_bytes(&bytes)
}

fn select(text: &str, args: &Args, for_terminal: bool) -> String {
    let mut selected = String::new();
    for (idx, line) in text.split_inclusive('\n').enumerate() {
        let number = idx + 1;
        let in_range = args.lines.is_none_or(|range| range.first <= number && number <= range.last);
        let found =
            args.grep.as_ref().is_none_or(|grep| grep.is_match(line.trim_end_matches('\n')));
        if !in_range || !found {
            continue;
        }
        if args.grep.is_some() {
            selected.push_str(&format!("{number}:"));
        }
        if for_terminal { selected.push_str(&visible(line)) } else { selected.push_str(line) }
    }
    if for_terminal && !selected.is_empty() && !selected.ends_with('\n') {
        selected.push('\n');
    }
    selected
}

fn parse_name(text: &str) -> std::result::Result<Name, String> {
    match Name::parse(text) {
        Some(name @ (Name::Calls(_) | Name::Responses(_))) => Ok(name),
        Some(Name::Text(_)) | None => parse_ref(text).map(Name::Text),
    }
}

/// A name in the form in which the user types it.
fn written(name: &Name) -> String {
    match name {
        Name::Calls(numbers) => range('#', *numbers.start(), *numbers.end()),
        Name::Responses(numbers) => range('@', *numbers.start(), *numbers.end()),
        Name::Text(reference) => reference.to_string(),
    }
}

fn range(mark: char, first: u64, last: u64) -> String {
    match first == last {
        true => format!("{mark}{first}"),
        false => format!("{mark}{first}-{last}"),
    }
}

fn parse_lines(text: &str) -> std::result::Result<Range, String> {
    let wrong = || format!("`{text}` is not a range of lines; write it like 20..40, 20.. or ..40");
    let number = |digits: &str, or: usize| match digits {
        "" => Ok(or),
        digits => digits.parse().map_err(|_| wrong()),
    };
    let (first, last) = match text.split_once("..") {
        Some((first, last)) => (number(first, 1)?, number(last, usize::MAX)?),
        None => {
            let line: usize = text.parse().map_err(|_| wrong())?;
            (line, line)
        }
    };
    if first == 0 || last < first { Err(wrong()) } else { Ok(Range { first, last }) }
}

fn parse_regex(text: &str) -> std::result::Result<Regex, String> {
    Regex::new(text).map_err(|err| err.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_lines_are_read() {
        let range = |first, last| Ok(Range { first, last });
        assert_eq!(parse_lines("20..40"), range(20, 40));
        assert_eq!(parse_lines("20.."), range(20, usize::MAX));
        assert_eq!(parse_lines("..40"), range(1, 40));
        assert_eq!(parse_lines("7"), range(7, 7));
        for wrong in ["0..3", "4..3", "a..b", "", "-1"] {
            assert!(parse_lines(wrong).is_err(), "{wrong}");
        }
    }
}
