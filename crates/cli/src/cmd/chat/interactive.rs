//! The agent in the terminal.

use std::io::{IsTerminal, stdin, stdout};
use std::time::Duration;

use anstream::{AutoStream, ColorChoice};
use epitome_chat::history::history;
use epitome_chat::machine::Event;
use epitome_chat::tui::{Stopper, Theme};

use super::Args;
use super::start::{Started, start};
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
    let started = start(app, args)?;
    let mut first = vec![started.event()];
    let Started { agent, outside } = started;
    let machine = agent.machine();
    first.extend(history(machine.context()));
    first.push(Event::Usage { usage: machine.context().usage(), cost: machine.cost() });
    let id = outside.session.id().to_owned();
    let agent = agent.with_changes(outside);
    epitome_chat::tui::run(agent, first, theme(app), stop_on_signal)?;
    app.note(&format!("epitome chat --resume {id} goes on with this session"));
    Ok(())
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
