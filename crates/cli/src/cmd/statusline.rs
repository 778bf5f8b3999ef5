//! `epitome statusline`: the line below the prompt of an agent.

use std::ffi::OsStr;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::Args as ClapArgs;
use epitome::status_line::{StatusLine, refresh, status_line};
use epitome_formats::claude::status;
use epitome_model::Tokens;

use crate::app::App;
use crate::failure::{Failure, Result};
use crate::session::unread_input;
use crate::text::{DIM, RED, YELLOW};

const EXAMPLES: &str = "\
Examples:
  epitome install --statusline --agent claude";

/// The maximum number of bytes that are read from standard input.
const INPUT: u64 = 1 << 20;
/// The shares of the window, in per cent, from which on the context is shown in yellow and in red.
const FULL: (u64, u64) = (60, 80);
/// The minimum number of tokens that compacting must free for the line to mention it.
const LEAST: Tokens = Tokens(1_000);

/// Print the status line of a running session: how full the context is, how many tokens a
/// compaction would free, and the cost of today
///
/// Claude Code runs this command and passes a JSON object on standard input. The cost is that of
/// all Claude Code sessions since midnight UTC, at list prices.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The folder of the archive: what EPITOME_HOME was set to when `install` was run
    #[arg(long, value_name = "DIR", hide = true)]
    pub home: Option<PathBuf>,

    /// Compute how many tokens a compaction of the session would free, and print nothing
    #[arg(long, value_name = "SESSION", hide = true)]
    pub refresh: Option<PathBuf>,
}

pub fn run(app: &App, args: &Args) -> Result<()> {
    let mut app = app.clone();
    if let Some(home) = &args.home {
        app.config.home.clone_from(home);
    }
    if let Some(session) = &args.refresh {
        return Ok(refresh(&app.config, app.settings()?, session)?);
    }
    let mut input = Vec::new();
    let stdin = std::io::stdin().lock();
    stdin.take(INPUT).read_to_end(&mut input).map_err(|err| unread_input(&err))?;
    let Some(status) = status(&input) else {
        return Err(Failure::usage("standard input is not the JSON of a status line")
            .hint("Claude Code runs this command: epitome install --statusline --agent claude"));
    };
    let line = status_line(&app.config, &status)?;
    if let Some(session) = status.session.as_deref().filter(|_| line.is_outdated) {
        // If no process can be started, the number of tokens that compacting would free is missing
        // from the line, or is that of an earlier time. That is not an error.
        begin_refresh(args.home.as_deref(), session.as_ref()).ok();
    }
    if app.global.json {
        return app.print_json(&line);
    }
    app.print(&format!("{}\n", render(&line)))
}

/// Starts a process that computes how many tokens compacting would free. Does not wait for it, so
/// that the line is printed at once.
fn begin_refresh(home: Option<&Path>, session: &Path) -> std::io::Result<()> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args([OsStr::new("statusline"), OsStr::new("--refresh"), session.as_os_str()]);
    if let Some(home) = home {
        command.arg("--home").arg(home);
    }
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    command.spawn().map(drop)
}

/// The line: `context 62% 124.0k of 200.0k · compacting frees ~48.0k · today $3.21`.
fn render(line: &StatusLine) -> String {
    let mut parts = Vec::new();
    if let Some(context) = line.context_tokens {
        parts.push(match (line.percent(), line.window) {
            (Some(percent), Some(window)) => {
                let style = match percent {
                    percent if percent >= FULL.1 => RED,
                    percent if percent >= FULL.0 => YELLOW,
                    _ => anstyle::Style::new(),
                };
                format!("context {style}{percent}%{style:#} {context} of {window}")
            }
            (_, _) => format!("context {context}"),
        });
    }
    if let Some(saving) = line.saving_tokens.filter(|saving| *saving >= LEAST) {
        parts.push(format!("compacting frees ~{saving}"));
    }
    if let Some(today) = line.today {
        let at_least = if line.is_partial { "≥" } else { "" };
        parts.push(format!("today {at_least}{today}"));
    }
    parts.join(&format!(" {DIM}·{DIM:#} "))
}

#[cfg(test)]
mod tests {
    use epitome_model::MicroDollars;

    use super::*;

    #[test]
    fn what_is_not_known_is_left_out() {
        let plain = |line: &StatusLine| anstream::adapter::strip_str(&render(line)).to_string();
        let line = StatusLine {
            context_tokens: Some(Tokens(124_000)),
            window: Some(Tokens(200_000)),
            saving_tokens: Some(Tokens(48_000)),
            today: Some(MicroDollars(3_210_000)),
            ..StatusLine::default()
        };
        let expect = "context 62% 124.0k of 200.0k · compacting frees ~48.0k · today $3.21";
        assert_eq!(plain(&line), expect);
        let line = StatusLine { window: None, saving_tokens: None, is_partial: true, ..line };
        assert_eq!(plain(&line), "context 124.0k · today ≥$3.21");
    }
}
