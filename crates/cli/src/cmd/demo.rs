//! `epitome demo`: compacts and restores a sample session that is built in.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::Path;

use clap::Args as ClapArgs;
use epitome_model::{Bytes, Ref, Stub};

use crate::app::App;
use crate::failure::{Failure, Result, Status};
use crate::text::{self, BOLD, DIM, bytes_change};

/// A recorded session of pi, on a small project.
const SESSION: &[u8] = include_bytes!("../../../../testing/fixtures/sessions/pi/pricing.jsonl");
/// The name of the file with the demo's copy of the sample session.
const NAME: &str = "session.jsonl";

const EXAMPLES: &str = "\
Examples:
  epitome demo
  epitome demo --color never";

/// Compact and restore a sample session, to see what epitome does
///
/// The sample is part of the program: a recorded session of the agent pi. The demo works on a copy
/// in a temporary folder, which it deletes at the end. It reads and changes nothing of yours.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {}

pub fn run(app: &App, _: &Args) -> Result<()> {
    let folder = tempfile::Builder::new().prefix("epitome-demo-").tempdir();
    let folder = folder.map_err(|err| Failure::disk("cannot create a temporary folder", &err))?;
    let session = folder.path().join(NAME);
    fs::write(&session, SESSION).map_err(|err| Failure::disk("cannot write the sample", &err))?;
    // The commands below name the session relative to the folder that it is in.
    env::set_current_dir(folder.path())
        .map_err(|err| Failure::disk("cannot enter the temporary folder", &err))?;
    let size = Bytes(SESSION.len() as u64);
    app.print(&lines(&format!(
        "This demo compacts and restores a recorded session of the coding agent pi ({size}). It \
         works on a copy in a temporary folder, and deletes the folder at the end."
    )))?;

    explain(app, 1, "What takes up space in the session?")?;
    epitome(app, folder.path(), &["inspect", NAME])?;

    explain(app, 2, "Compact it. What is removed is stored in an archive first.")?;
    epitome(app, folder.path(), &["compact", NAME])?;
    let compacted = read(&session)?;

    let Some(reference) = first_reference(&compacted) else {
        return Err(broken("the compacted sample contains no stub"));
    };
    let next = "Each removed text left a stub, a line with a reference. Show what the first one \
                stands for.";
    explain(app, 3, next)?;
    epitome(app, folder.path(), &["show", &reference.to_string(), "--lines", "1..5"])?;

    explain(app, 4, "Restore the session: put everything back.")?;
    epitome(app, folder.path(), &["restore", NAME])?;
    if read(&session)? != SESSION {
        return Err(broken("the restored sample differs from the original"));
    }
    let small = bytes_change(size, Bytes(compacted.len() as u64));
    let same = lines(&format!(
        "{BOLD}{small} → {size}.{BOLD:#} The restored file is identical to the original, byte for \
         byte."
    ));
    app.print(&format!(
        "\n{same}\n\
         Next, with your own sessions; neither command changes a file:\n  \
         epitome compact SESSION --dry-run\n  \
         epitome list\n\n\
         Now yours: epitome\n"
    ))
}

/// The content of the sample in the temporary folder.
fn read(session: &Path) -> Result<Vec<u8>> {
    fs::read(session).map_err(|err| Failure::disk("cannot read the sample", &err))
}

/// Prints the headline of a step.
fn explain(app: &App, step: u32, text: &str) -> Result<()> {
    let text = lines(&format!("{step}. {text}"));
    app.print(&format!("\n{BOLD}{}{BOLD:#}\n", text.trim_end()))
}

/// A paragraph as lines that fit on the screen.
fn lines(text: &str) -> String {
    let lines = text::wrap_line(text, text::columns().min(100));
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// Runs a command with `folder` as the home of the user, and prints the command and its output.
fn epitome(app: &App, folder: &Path, args: &[&str]) -> Result<()> {
    app.print(&format!("{DIM}$ epitome {}{DIM:#}\n", args.join(" ")))?;
    // The user's settings and keys are not used in the demo.
    let home = app.at_home(folder);
    let words: Vec<OsString> = args.iter().map(OsString::from).collect();
    let printed = home.run_captured(|app| crate::run_line(app, &words));
    app.print(&printed.all)?;
    printed.done
}

/// The reference in the first stub of a compacted session.
fn first_reference(session: &[u8]) -> Option<Ref> {
    let text = String::from_utf8_lossy(session);
    text.match_indices("[epitome ").find_map(|(at, _)| {
        let rest = &text[at..];
        let stub = Stub::parse(&rest[..=rest.find(']')?])?;
        Some(stub.reference().clone())
    })
}

fn broken(what: &str) -> Failure {
    Failure::new(Status::Bug, "bug", what)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(session: &str, expect: Option<&str>) {
        let found = first_reference(session.as_bytes()).map(|it| it.to_string());
        assert_eq!(found.as_deref(), expect, "{session}");
    }

    #[test]
    fn the_first_reference_is_that_of_the_first_whole_stub() {
        check("", None);
        check("\"[epitome is a word]\"", None);
        check("\"[epitome k495d399", None);
        let stubs = "{\"text\":\"[epitome x] [epitome k495d399: ls, 12 lines]\\n.:\"}\n\
                     {\"text\":\"[epitome kaaaaaaa]\"}";
        check(stubs, Some("k495d399"));
    }
}
