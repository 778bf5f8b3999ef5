//! `epitome hook`: the command that agents call when a session ends.
//!
//! If the work fails, the error is written to a log, and the exit status is 0, so that the agent
//! reports no error.

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use clap::Args as ClapArgs;
use epitome::hooks::{self, DeferredSession, Rule};
use epitome::{Config, ErrorKind, Place};

use super::compact;
use crate::app::App;
use crate::choice::Choice;
use crate::failure::{Failure, Result};
use crate::redaction::Redaction;

/// The maximum time to wait until the agent has closed the session.
const AT_MOST: Duration = Duration::from_secs(20);

/// The maximum number of bytes that are read of an agent's event. A longer input is cut off.
const TOLD: u64 = 1 << 20;

/// Keep the session that an agent names on standard input (called by agents)
#[derive(ClapArgs, Clone, Debug)]
#[command(hide = true)]
pub struct Args {
    /// The calling agent
    pub caller: String,

    /// The folder of the archive: what EPITOME_HOME was set to when `install` was run
    #[arg(long, value_name = "DIR")]
    pub home: Option<PathBuf>,

    /// Do the work instead of starting a background process for it
    #[arg(long)]
    pub now: bool,
}

pub fn run(app: &App, args: &Args) -> Result<()> {
    let mut app = App::new(app.global.clone())?;
    if let Some(home) = &args.home {
        app.config.home.clone_from(home);
    }
    let mut input = Vec::new();
    // If reading fails, what was read until then is treated as the event.
    std::io::stdin().lock().take(TOLD).read_to_end(&mut input).ok();
    let done = if args.now {
        keep(&app, &args.caller, &input)
    } else {
        leave(args, &input)
            .map_err(|err| Failure::disk("cannot start the background process", &err))
    };
    if let Err(failure) = done {
        hooks::log(&app.config, &format!("{}: {}", args.caller, failure.one_line()));
    }
    Ok(())
}

/// Starts a background process for the work, which continues when the agent and its terminal are
/// gone.
fn leave(args: &Args, told: &[u8]) -> std::io::Result<()> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["hook", &args.caller, "--now"]);
    if let Some(home) = &args.home {
        command.arg("--home").arg(home);
    }
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut child = command.spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(told)?;
    }
    Ok(())
}

fn keep(app: &App, agent: &str, told: &[u8]) -> Result<()> {
    let config = &app.config;
    let Some(ended) = hooks::parse_ended_session(told) else {
        return Err(Failure::usage("the event does not name a session"));
    };
    let Some(session) = hooks::session_of(config, agent, &ended) else {
        // The event is about a sub-agent or about a session that was never written, or its id is
        // that of several sessions.
        return Ok(());
    };
    let rules = hooks::rules_of(config, agent, ended.cwd.as_deref())?;
    if rules.is_empty() {
        return Ok(());
    }
    let before = state(&session);
    render(app, &rules, &session)?;
    let is_free = hooks::wait(config, &session, ended.process, AT_MOST);
    if state(&session) != before {
        // The agent may have written more while it ended, so the session is rendered again.
        render(app, &rules, &session)?;
    }
    if rules.iter().any(|rule| rule.shrink) {
        let later = DeferredSession { session, agent: agent.to_owned(), process: ended.process };
        if is_free {
            shrink(app, &later)
        } else {
            defer(config, &later, "it is still in use")
        }
        for later in hooks::take_ready(config) {
            shrink(app, &later);
        }
    }
    Ok(())
}

fn render(app: &App, rules: &[Rule], session: &Path) -> Result<()> {
    for rule in rules {
        // The settings file is that of the user who installed the hook, whatever the environment of
        // the agent says. The file of a trusted project, and variables, still override it.
        let mut its = App::new(app.global.clone())?;
        its.config.home.clone_from(&app.config.home);
        its.config.settings.clone_from(&rule.settings);
        // The user does not review kept transcripts, so secrets are always redacted, whatever the
        // settings say.
        let kept = Redaction::default().always(&its).and_then(|finder| {
            hooks::keep(&its.config, rule, session, &finder).map_err(Failure::from)
        });
        let line = match kept {
            Ok(kept) => format!("kept {} in {}", kept.files.join(", "), rule.out.display()),
            Err(failure) => format!("{} was not kept: {}", session.display(), failure.one_line()),
        };
        hooks::log(&app.config, &line);
    }
    Ok(())
}

/// Compacts a session that has ended. If it cannot be compacted now, most often because it is in
/// use, it is deferred. Other failures are only written to the log.
fn shrink(app: &App, later: &DeferredSession) {
    let DeferredSession { session, .. } = later;
    let done = Choice::default().recipe(app, false).and_then(|recipe| {
        let run = app.config.begin_run("hook");
        compact::one(app, &run, &recipe, session, None, false)
    });
    match done {
        Ok(report) => {
            let bytes = report.file.disk_bytes;
            let line =
                format!("compacted {}: {} → {}", session.display(), bytes.before, bytes.after);
            hooks::log(&app.config, &line);
        }
        Err(failure)
            if compact::is_excused(&failure)
                && !failure.is_of(&[ErrorKind::UnknownFormat, ErrorKind::ReadOnly]) =>
        {
            defer(&app.config, later, &failure.one_line());
        }
        Err(failure) => {
            let line = format!("{} was not compacted: {}", session.display(), failure.one_line());
            hooks::log(&app.config, &line);
        }
    }
}

fn defer(config: &Config, later: &DeferredSession, why: &str) {
    let session = later.session.display();
    let line = match hooks::defer(config, later) {
        Ok(()) => format!("{session} will be compacted later: {why}"),
        Err(err) => format!("{session} was not compacted: {}", Failure::from(err).one_line()),
    };
    hooks::log(config, &line);
}

/// The size and the time of a session's file, which change if the file is written to. `None` if the
/// session is not a single file, or cannot be read.
fn state(session: &Path) -> Option<(u64, std::time::SystemTime)> {
    match Place::parse(session) {
        Place::File(path) => {
            let meta = std::fs::metadata(path).ok()?;
            Some((meta.len(), meta.modified().ok()?))
        }
        Place::Rows(_) | Place::Spread(_) => None,
    }
}
