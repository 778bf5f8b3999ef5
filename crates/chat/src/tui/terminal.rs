//! The loop: reads the terminal and what the agent shows, and draws at most sixty times a second.

use std::io::{self, Stdout, stdout};
use std::panic;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle, ThreadId};
use std::time::{Duration, Instant};

use epitome_engine::Called;
use epitome_error::{Error, ErrorKind, Result};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::event::{
    self, DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste, EnableMouseCapture,
    KeyboardEnhancementFlags, PopKeyboardEnhancementFlags, PushKeyboardEnhancementFlags,
};
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode, size,
};
use ratatui::crossterm::{cursor, execute};
use ratatui::layout::{Position, Rect};

use super::draw::draw;
use super::preview::Preview;
use super::state::{Effect, Happening, State};
use super::theme::Theme;
use crate::agent::{Agent, Front};
use crate::machine::{Event, Input};
use crate::permissions::{Access, Answer};
use crate::tools::Workplace;

/// The time between two frames, at least.
const FRAME: Duration = Duration::from_millis(16);
/// The time between two frames while only the spinner moves.
const SPIN: Duration = Duration::from_millis(100);

/// Ends the interface from elsewhere, as a signal does.
#[derive(Clone)]
pub struct Stopper(Sender<Happening>);

impl Stopper {
    /// Ends it. Whether it was still there.
    pub fn stop(&self) -> bool {
        self.0.send(Happening::Terminated).is_ok()
    }
}

/// Shows the agent in the terminal until the user leaves. `first` are the events with which it
/// begins, and `stoppable` gets what ends it from elsewhere.
///
/// # Errors
///
/// `Disk` if the terminal cannot be used, or the log cannot be written. The terminal is as it was
/// in any case.
pub fn run(
    agent: Agent,
    first: Vec<Event>,
    theme: Theme,
    stoppable: impl FnOnce(Stopper),
) -> Result<()> {
    let failed =
        |err: io::Error| Error::new(ErrorKind::Disk, "cannot use the terminal").because(err);
    let (tell, told) = channel();
    let inputs = agent.inputs();
    let screen = Screen::enter().map_err(failed)?;
    let mut state = State::new(theme, size().map_err(failed)?);
    for event in first {
        state.update(Happening::Agent(event, None));
    }
    stoppable(Stopper(tell.clone()));
    read_terminal(tell.clone());
    let worker = serve(agent, tell);
    let looped = Loop { state, told, inputs: inputs.clone(), worker: &worker }.run();
    // What is under way ends with its calls closed, in the log as well.
    let _gone = inputs.send(Input::Leave);
    let worked = worker.join();
    drop(screen);
    looped.map_err(failed)?;
    worked.unwrap_or_else(|_| Err(Error::new(ErrorKind::Broken, "the agent failed: this is a bug")))
}

/// Reads keys until the program ends.
fn read_terminal(tell: Sender<Happening>) {
    thread::spawn(move || {
        loop {
            let happening = match event::read() {
                Ok(event) => Happening::Terminal(event),
                // The terminal has gone.
                Err(_) => Happening::Terminated,
            };
            let is_end = matches!(happening, Happening::Terminated);
            if tell.send(happening).is_err() || is_end {
                return;
            }
        }
    });
}

/// Runs the agent on a thread of its own.
fn serve(mut agent: Agent, tell: Sender<Happening>) -> JoinHandle<Result<()>> {
    thread::spawn(move || {
        let place = agent.workplace().clone();
        let ended = Ended(tell.clone());
        let served = agent.serve(&mut Teller { tell, place });
        drop(ended);
        served
    })
}

/// Ends the interface if the agent ends by itself, even by a panic.
struct Ended(Sender<Happening>);

impl Drop for Ended {
    fn drop(&mut self) {
        let _gone = self.0.send(Happening::Terminated);
    }
}

/// Hands what the agent shows to the interface.
struct Teller {
    tell: Sender<Happening>,
    place: Workplace,
}

impl Front for Teller {
    fn show(&mut self, event: &Event) {
        let preview = match event {
            // What a call would change is known before it runs only.
            Event::Call { tool, arguments, .. } => self.preview(tool, arguments),
            _ => None,
        };
        let _gone = self.tell.send(Happening::Agent(event.clone(), preview));
    }

    fn permit(&mut self, _: &Called, _: &Access) -> Option<Answer> {
        // The event says so: the answer comes as an input.
        None
    }
}

impl Teller {
    fn preview(&self, tool: &str, arguments: &str) -> Option<Preview> {
        let path = self.place.path_to_write(tool, arguments)?;
        Preview::of(tool, arguments, &path)
    }
}

struct Loop<'w> {
    state: State,
    told: Receiver<Happening>,
    inputs: Sender<Input>,
    worker: &'w JoinHandle<Result<()>>,
}

impl Loop<'_> {
    fn run(mut self) -> io::Result<()> {
        let begin = Instant::now();
        let mut terminal = Terminal::new(CrosstermBackend::new(stdout()))?;
        terminal.draw(|frame| draw(&self.state, frame))?;
        let mut drawn = Instant::now();
        loop {
            let happening = if self.state.is_moving() {
                self.told.recv_timeout(SPIN)
            } else {
                self.told.recv().map_err(|_| RecvTimeoutError::Disconnected)
            };
            self.state.update(Happening::Time(begin.elapsed()));
            match happening {
                Ok(happening) => {
                    if self.take(happening, &mut terminal)? {
                        return Ok(());
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
            // What comes before the next frame is in it.
            while let Some(left) = FRAME.checked_sub(drawn.elapsed()) {
                let Ok(more) = self.told.recv_timeout(left) else { break };
                if self.take(more, &mut terminal)? {
                    return Ok(());
                }
            }
            while let Ok(more) = self.told.try_recv() {
                if self.take(more, &mut terminal)? {
                    return Ok(());
                }
            }
            self.state.update(Happening::Time(begin.elapsed()));
            terminal.draw(|frame| draw(&self.state, frame))?;
            drawn = Instant::now();
        }
    }

    /// Whether it is over.
    fn take(
        &mut self,
        happening: Happening,
        terminal: &mut Terminal<CrosstermBackend<Stdout>>,
    ) -> io::Result<bool> {
        for effect in self.state.update(happening) {
            match effect {
                Effect::Input(input) => {
                    if self.inputs.send(input).is_err() || self.worker.is_finished() {
                        return Ok(true);
                    }
                }
                Effect::Redraw => {
                    // Not `clear`: it asks the terminal where the cursor is, and the answer goes
                    // to the thread that reads keys.
                    let size = terminal.size()?;
                    terminal.resize(Rect::from((Position::ORIGIN, size)))?;
                }
                Effect::Leave => return Ok(true),
            }
        }
        Ok(false)
    }
}

/// What panics elsewhere said: the screen is not the place for it.
type Said = Arc<Mutex<Vec<String>>>;
type Hook = Box<dyn Fn(&panic::PanicHookInfo<'_>) + Sync + Send + 'static>;

/// The terminal as the interface uses it. Dropped, it is as it was.
struct Screen {
    said: Said,
    hook: Arc<Hook>,
}

impl Screen {
    fn enter() -> io::Result<Screen> {
        let said = Said::default();
        let hook = Arc::new(panic::take_hook());
        let (here, kept, before) = (thread::current().id(), said.clone(), hook.clone());
        panic::set_hook(Box::new(move |panic| told(panic, here, &kept, &before)));
        let screen = Screen { said, hook };
        enable_raw_mode()?;
        execute!(
            stdout(),
            EnterAlternateScreen,
            EnableBracketedPaste,
            EnableMouseCapture,
            // Terminals that do not know it ignore it.
            PushKeyboardEnhancementFlags(KeyboardEnhancementFlags::DISAMBIGUATE_ESCAPE_CODES)
        )?;
        Ok(screen)
    }
}

/// A panic of the interface is printed on a terminal that is as it was. One of another thread is
/// kept until the interface ends: a tool that fails does not end it.
fn told(panic: &panic::PanicHookInfo<'_>, here: ThreadId, said: &Said, before: &Hook) {
    if thread::current().id() == here {
        restore();
        before(panic);
    } else {
        said.lock().unwrap_or_else(PoisonError::into_inner).push(panic.to_string());
    }
}

/// Makes the terminal as it was, as far as it can be.
fn restore() {
    let _as_it_is = execute!(
        stdout(),
        PopKeyboardEnhancementFlags,
        DisableMouseCapture,
        DisableBracketedPaste,
        LeaveAlternateScreen,
        cursor::Show
    );
    let _as_it_is = disable_raw_mode();
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
        if thread::panicking() {
            return;
        }
        let hook = self.hook.clone();
        panic::set_hook(Box::new(move |panic| hook(panic)));
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        for text in said.drain(..) {
            print_error(&text);
        }
    }
}

/// What a panic said, on standard error.
fn print_error(text: &str) {
    use std::io::Write as _;

    let mut stderr = io::stderr().lock();
    let _unread = writeln!(stderr, "{}", epitome_render::visible(text));
}
