//! The agent in the terminal.

use std::io::{IsTerminal, stdin, stdout};
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anstream::{AutoStream, ColorChoice};
use epitome_chat::demo::{Guided, guided};
use epitome_chat::history::history;
use epitome_chat::machine::Event;
use epitome_chat::tui::{self, Stopper, Theme};

use super::Args;
use super::models::model_name;
use super::start::{Started, check, start};
use crate::app::App;
use crate::failure::{Failure, Result};
use crate::interrupt::Interrupt;

/// How often it is looked for a signal.
const LOOK: Duration = Duration::from_secs(3_600);

pub fn run(app: &App, args: &Args) -> Result<()> {
    if app.global.json || !stdin().is_terminal() || !stdout().is_terminal() {
        return Err(Failure::usage("no message is given, and this is no terminal to talk in")
            .hint("give one: epitome chat -p MESSAGE"));
    }
    // What is missing most often is said before the screen changes.
    check(args)?;
    if args.resume.is_none() {
        model_name(app, args, None)?;
    }
    let id = Arc::new(OnceLock::new());
    let (own, options, found) = (app.clone(), args.clone(), id.clone());
    let start = move || -> Result<tui::Started> {
        let started = start(&own, &options, &[])?;
        let mut first = vec![started.event()];
        let Started { agent, outside, notices } = started;
        found.get_or_init(|| outside.session.id().to_owned());
        let machine = agent.machine();
        first.extend(history(machine.context()));
        first.extend(notices);
        first.push(Event::Usage { usage: machine.context().usage(), cost: machine.cost() });
        let agent = agent.with_changes(outside);
        Ok(tui::Started { agent, first, script: Vec::new() })
    };
    tui::run(start, theme(app), stop_on_signal)?;
    if let Some(id) = id.get() {
        app.note(&format!("epitome chat --resume {id} goes on with this session"));
    }
    Ok(())
}

/// Shows the demo, in a temporary folder, which is deleted at the end.
pub fn demo(app: &App, folder: &Path) -> Result<()> {
    let folder = folder.to_owned();
    let start = move || -> Result<tui::Started> {
        let Guided { agent, first, script } = guided(&folder, true)?;
        Ok(tui::Started { agent, first, script })
    };
    tui::run(start, theme(app), stop_on_signal)
}

fn theme(app: &App) -> Theme {
    let choice = match app.global.color.choice() {
        ColorChoice::Auto => AutoStream::choice(&stdout()),
        asked => asked,
    };
    Theme { colours: choice != ColorChoice::Never }
}

/// A signal ends the interface, which leaves the terminal as it was.
fn stop_on_signal(stopper: Stopper) {
    let interrupt = Interrupt::new();
    std::thread::spawn(move || while !interrupt.wait(LOOK) || stopper.stop() {});
}
