//! A turn without a terminal: the answer on standard output, or every event as a line of JSON.

use std::sync::mpsc::Sender;
use std::time::Duration;

use epitome::live::ResponseCall;
use epitome_chat::machine::{Event, Input, TurnEnd};
use epitome_chat::{Access, Answer, Front, StartedChat};

use super::no_answer;
use crate::app::App;
use crate::failure::{Failure, Result};
use crate::interrupt::Interrupt;
use crate::text::{DIM, visible};

/// The maximum time that one call of [`Interrupt::wait`] waits. The call is repeated until the
/// program ends.
const LOOK: Duration = Duration::from_secs(3_600);

/// Runs one turn.
pub fn run(app: &App, started: StartedChat, message: &str) -> Result<()> {
    let mut front = Printed { app, ended: None, failed: None };
    front.show(&started.event());
    let StartedChat { agent, setup, notices } = started;
    notices.iter().for_each(|event| front.show(event));
    let mut agent = agent.with_changes(setup);
    cancel_on_interrupt(agent.inputs());
    let turn = agent.turn(message, &mut front);
    // This unlocks the session.
    drop(agent);
    turn?;
    if let Some(failure) = front.failed {
        return Err(failure);
    }
    match front.ended {
        Some((TurnEnd::Answered, _)) => Ok(()),
        Some((TurnEnd::Interrupted, reason)) => Err(no_answer("interrupted", &reason)),
        Some((TurnEnd::Budget, reason)) => Err(no_answer("budget", &reason)),
        Some((TurnEnd::Failed, reason)) => Err(no_answer("no-answer", &reason)),
        None => Err(no_answer("no-answer", "the turn did not end")),
    }
}

/// Interrupts the turn on the first Ctrl-C. The second one kills the program.
fn cancel_on_interrupt(inputs: Sender<Input>) {
    let interrupt = Interrupt::new();
    std::thread::spawn(move || {
        loop {
            if interrupt.wait(LOOK) && inputs.send(Input::Cancel).is_err() {
                return;
            }
        }
    });
}

/// Prints events as they come.
struct Printed<'a> {
    app: &'a App,
    ended: Option<(TurnEnd, String)>,
    /// The first error of printing.
    failed: Option<Failure>,
}

impl Front for Printed<'_> {
    fn show(&mut self, event: &Event) {
        if let Event::Done { ended, reason, .. } = event {
            self.ended = Some((*ended, reason.clone().unwrap_or_default()));
        }
        let printed =
            if self.app.global.json { self.app.print_json(event) } else { self.print(event) };
        if let Err(failure) = printed {
            self.failed.get_or_insert(failure);
        }
    }

    fn permit(&mut self, _: &ResponseCall, _: &Access) -> Option<Answer> {
        Some(Answer::Unattended)
    }

    fn is_attended(&self) -> bool {
        false
    }
}

impl Printed<'_> {
    fn print(&self, event: &Event) -> Result<()> {
        match event {
            Event::Session { id, model, recipe, summaries, .. } => {
                let by = summaries.as_ref().map(|it| format!(", summaries by {it}"));
                let by = by.unwrap_or_default();
                self.note(&format!("session {id}, model {model}, recipe {recipe}{by}"));
            }
            Event::Call { tool, arguments, .. } => {
                self.note(&format!("{tool} {}", epitome_model::short(arguments, 100)));
            }
            Event::Task { inner, .. } => {
                if let Event::Call { tool, arguments, .. } = &**inner {
                    self.note(&format!("  {tool} {}", epitome_model::short(arguments, 100)));
                }
            }
            Event::Result { error: true, text, .. } => {
                self.note(&format!("  failed: {}", epitome_model::short(text.trim(), 100)));
            }
            Event::Retry(retrying) => self.note(&retrying.to_string()),
            Event::Loaded { files } => self.note(&epitome_chat::notices::loaded(files)),
            Event::Context { event } => {
                if let Some(line) = epitome_chat::notices::change(event) {
                    self.note(&line);
                }
            }
            Event::Notice { text } => self.note(text),
            Event::Done { ended: TurnEnd::Answered, answer, .. } => {
                let end = if answer.ends_with('\n') { "" } else { "\n" };
                return self.app.print_content(format!("{answer}{end}").as_bytes());
            }
            Event::Result { error: false, .. }
            | Event::Done { .. }
            | Event::User { .. }
            | Event::Text { .. }
            | Event::Thinking { .. }
            | Event::Restart
            | Event::Progress { .. }
            | Event::Permission { .. }
            | Event::Question { .. }
            | Event::Permitted { .. }
            | Event::Undone { .. }
            | Event::Window { .. }
            | Event::Losses { .. }
            | Event::Usage { .. } => {}
        }
        Ok(())
    }

    fn note(&self, text: &str) {
        self.app.note(&format!("{DIM}{}{DIM:#}", visible(text)));
    }
}
