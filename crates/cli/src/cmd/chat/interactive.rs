//! The agent in the terminal.

use std::io::{IsTerminal, stdin, stdout};
use std::path::Path;
use std::sync::{Arc, OnceLock};

use anstream::{AutoStream, ColorChoice};
use epitome_chat::StartedChat;
use epitome_chat::demo::{Guided, guided};
use epitome_chat::tui::{self, Theme};

use super::{Args, stop_on_signal, waits};
use crate::app::App;
use crate::failure::{Failure, Result};

pub fn run(app: &App, args: &Args) -> Result<()> {
    if app.global.json || !stdin().is_terminal() || !stdout().is_terminal() {
        return Err(Failure::usage("no message is given, and this is no terminal to talk in")
            .hint("give one: epitome chat -p MESSAGE"));
    }
    // Frequent errors must be printed before the interface takes over the screen.
    let options = args.options(app)?;
    options.check()?;
    if args.resume.is_none() {
        options.model_name(None)?;
    }
    let id = Arc::new(OnceLock::new());
    let own = app.clone();
    let found = id.clone();
    show(app, move || {
        let started = options.start(&[], &waits(&own))?;
        let mut first = vec![started.event()];
        first.extend(started.first());
        let StartedChat { agent, setup, .. } = started;
        found.get_or_init(|| setup.session.id().to_owned());
        let agent = agent.with_changes(setup);
        Ok(tui::ChatScreen { agent, first, script: Vec::new() })
    })?;
    if let Some(id) = id.get() {
        app.note(&format!("epitome chat --resume {id} goes on with this session"));
    }
    Ok(())
}

/// Shows the demo in a folder, which the caller deletes afterwards.
pub fn demo(app: &App, folder: &Path) -> Result<()> {
    let folder = folder.to_owned();
    show(app, move || {
        let Guided { agent, first, script } = guided(&folder, true)?;
        Ok(tui::ChatScreen { agent, first, script })
    })
}

fn show(app: &App, start: impl FnOnce() -> Result<tui::ChatScreen> + Send + 'static) -> Result<()> {
    tui::run(start, theme(app), |stopper| stop_on_signal(move || stopper.stop()))
}

fn theme(app: &App) -> Theme {
    let choice = match app.global.color.choice() {
        ColorChoice::Auto => AutoStream::choice(&stdout()),
        asked => asked,
    };
    Theme { colours: choice != ColorChoice::Never }
}
