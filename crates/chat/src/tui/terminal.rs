//! The main loop: reads the terminal and the agent's events, and draws at most about sixty times a
//! second.

use std::io::{self, Stdout, stdout};
use std::panic;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use epitome_engine::ResponseCall;
use epitome_error::{Error, ErrorKind};
use epitome_model::ToolKind;
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::event::{
    self, DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste, EnableMouseCapture,
    Event as TerminalEvent, KeyboardEnhancementFlags, MouseEventKind, PopKeyboardEnhancementFlags,
    PushKeyboardEnhancementFlags,
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
use crate::demo::ScriptLine;
use crate::machine::{Event, Input};
use crate::permissions::{Access, Answer};
use crate::tools::{FileChange, Workplace, kind_of};

/// The minimum time between two frames.
const FRAME: Duration = Duration::from_millis(16);
/// The time between two frames while only the spinner moves.
const SPIN: Duration = Duration::from_millis(100);

/// Ends the interface from another thread, such as a thread that waits for signals.
#[derive(Clone)]
pub struct Stopper(Sender<Happening>);

impl Stopper {
    /// Ends the interface. Does nothing if it has ended already.
    pub fn stop(&self) {
        self.0.send(Happening::Terminated).ok();
    }
}

/// An agent, and what to show at first.
pub struct ChatScreen {
    /// The agent.
    pub agent: Agent,
    /// The events to show first.
    pub first: Vec<Event>,
    /// The lines of a demo, which are typed for the user.
    pub script: Vec<ScriptLine>,
}

/// Shows an agent in the terminal until the user leaves. `start` makes the agent while the
/// interface is already shown. `stoppable` gets a [`Stopper`], which ends the interface from
/// another thread.
///
/// # Errors
///
/// The errors of `start`; `Disk` if the terminal cannot be used, or the log cannot be written;
/// `Broken` if the agent panics. The terminal is restored in any case.
pub fn run<E: From<Error> + Send + 'static>(
    start: impl FnOnce() -> Result<ChatScreen, E> + Send + 'static,
    theme: Theme,
    stoppable: impl FnOnce(Stopper),
) -> Result<(), E> {
    let failed =
        |err: io::Error| Error::new(ErrorKind::Disk, "cannot use the terminal").because(err);
    let (tell, told) = channel();
    let (ready, inputs) = channel();
    let screen = Screen::enter().map_err(failed)?;
    let state = State::new(theme, size().map_err(failed)?);
    stoppable(Stopper(tell.clone()));
    let begin = Instant::now();
    read_terminal(tell.clone(), begin);
    let worker = thread::spawn(move || serve(start, &ready, tell));
    let mut inputs = Inputs { ready: inputs, agent: None, held: Vec::new() };
    let looped = Loop { state, happenings: told, inputs: &mut inputs, begin }.run();
    inputs.leave();
    let worked = worker.join();
    drop(screen);
    looped.map_err(failed)?;
    worked.unwrap_or_else(|_| {
        let what = "the agent failed: this is a bug of epitome";
        Err(Error::new(ErrorKind::Broken, what).into())
    })
}

/// The sender of inputs to the agent, which may not have been made yet.
struct Inputs {
    ready: Receiver<Sender<Input>>,
    agent: Option<Sender<Input>>,
    /// Inputs that wait for the agent.
    held: Vec<Input>,
}

impl Inputs {
    fn send(&mut self, input: Input) {
        self.held.push(input);
        self.flush();
    }

    fn flush(&mut self) {
        if self.agent.is_none() {
            self.agent = self.ready.try_recv().ok();
        }
        let Some(agent) = &self.agent else { return };
        for input in self.held.drain(..) {
            // Errors are ignored: an agent that has ended reports its end itself.
            let _gone = agent.send(input);
        }
    }

    /// Makes the agent interrupt everything and leave, so that every open call gets a result in the
    /// log. Waits for the agent if it is still being made.
    fn leave(&mut self) {
        if self.agent.is_none() {
            self.agent = self.ready.recv().ok();
        }
        if let Some(agent) = &self.agent {
            let _gone = agent.send(Input::Leave);
        }
    }
}

/// Reads events of the terminal on a thread, until the terminal cannot be read or the interface has
/// ended.
fn read_terminal(tell: Sender<Happening>, begin: Instant) {
    thread::spawn(move || {
        loop {
            let happening = match event::read() {
                Ok(TerminalEvent::Mouse(mouse)) if !is_wheel(mouse.kind) => continue,
                Ok(event) => Happening::Typed(event, begin.elapsed()),
                // The terminal cannot be read any more: its window was closed, for example.
                Err(_) => Happening::Terminated,
            };
            let is_end = matches!(happening, Happening::Terminated);
            if tell.send(happening).is_err() || is_end {
                return;
            }
        }
    });
}

/// Whether the wheel of the mouse was turned. Movements of the mouse are ignored.
fn is_wheel(kind: MouseEventKind) -> bool {
    matches!(kind, MouseEventKind::ScrollUp | MouseEventKind::ScrollDown)
}

/// Makes the agent, and runs it.
fn serve<E: From<Error>>(
    start: impl FnOnce() -> Result<ChatScreen, E>,
    ready: &Sender<Sender<Input>>,
    tell: Sender<Happening>,
) -> Result<(), E> {
    let _ended = Ended(tell.clone());
    let ChatScreen { mut agent, first, script } = start()?;
    let _gone = ready.send(agent.inputs());
    for event in first {
        let _gone = tell.send(Happening::Agent(event, None));
    }
    if !script.is_empty() {
        let _gone = tell.send(Happening::Script(script));
    }
    let place = agent.workplace().clone();
    Ok(agent.serve(&mut Teller { tell, place })?)
}

/// When this is dropped, the interface ends. The agent's thread drops it at its end, even by a
/// panic.
struct Ended(Sender<Happening>);

impl Drop for Ended {
    fn drop(&mut self) {
        let _gone = self.0.send(Happening::Terminated);
    }
}

/// Sends the agent's events to the interface.
struct Teller {
    tell: Sender<Happening>,
    place: Workplace,
}

impl Front for Teller {
    fn show(&mut self, event: &Event) {
        let preview = match event {
            // The changes of a call can be previewed only before it runs.
            Event::Call { tool, arguments, .. } => self.preview(tool, arguments),
            Event::Task { inner, .. } => match &**inner {
                Event::Call { tool, arguments, .. } => self.preview(tool, arguments),
                _ => None,
            },
            _ => None,
        };
        let _gone = self.tell.send(Happening::Agent(event.clone(), preview));
    }

    fn permit(&mut self, _: &ResponseCall, _: &Access) -> Option<Answer> {
        // `show` asks the user when it receives [`Event::Permission`] for this call. The answer
        // comes later, as an input.
        None
    }

    fn is_attended(&self) -> bool {
        true
    }
}

impl Teller {
    fn preview(&self, tool: &str, arguments: &str) -> Option<Preview> {
        let changes = self.place.planned_changes(tool, arguments)?;
        // The card of a call for a single file shows the file's name already.
        if let (ToolKind::Write | ToolKind::Edit, [change]) = (kind_of(tool), &changes[..]) {
            let (before, after) = texts(change);
            return Some(Preview::between(before, after));
        }
        Some(Preview::from_files(changes.iter().map(|change| {
            let (before, after) = texts(change);
            (self.place.shown_path(&change.path), before, after)
        })))
    }
}

/// The texts of a file before and after a change; empty where the file does not exist.
fn texts(change: &FileChange) -> (&str, &str) {
    let FileChange { before, after, .. } = change;
    (before.as_deref().unwrap_or_default(), after.as_deref().unwrap_or_default())
}

struct Loop<'i> {
    state: State,
    happenings: Receiver<Happening>,
    inputs: &'i mut Inputs,
    begin: Instant,
}

impl Loop<'_> {
    fn run(mut self) -> io::Result<()> {
        let begin = self.begin;
        let mut terminal = Terminal::new(CrosstermBackend::new(stdout()))?;
        terminal.draw(|frame| draw(&self.state, frame))?;
        let mut drawn = Instant::now();
        loop {
            let happening = if self.state.is_moving() {
                self.happenings.recv_timeout(SPIN)
            } else {
                self.happenings.recv().map_err(|_| RecvTimeoutError::Disconnected)
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
            // Events that come before the next frame are drawn with it.
            while let Some(left) = FRAME.checked_sub(drawn.elapsed()) {
                let Ok(more) = self.happenings.recv_timeout(left) else { break };
                if self.take(more, &mut terminal)? {
                    return Ok(());
                }
            }
            while let Ok(more) = self.happenings.try_recv() {
                if self.take(more, &mut terminal)? {
                    return Ok(());
                }
            }
            self.state.update(Happening::Time(begin.elapsed()));
            terminal.draw(|frame| draw(&self.state, frame))?;
            self.state.drawn(begin.elapsed());
            drawn = Instant::now();
        }
    }

    /// Handles an event. Returns whether to end.
    fn take(
        &mut self,
        happening: Happening,
        terminal: &mut Terminal<CrosstermBackend<Stdout>>,
    ) -> io::Result<bool> {
        let effects = self.state.update(happening);
        self.inputs.flush();
        for effect in effects {
            match effect {
                Effect::Input(input) => self.inputs.send(input),
                Effect::Redraw => {
                    // `clear` would ask the terminal for the position of the cursor, and the thread
                    // that reads keys would receive the answer.
                    let size = terminal.size()?;
                    terminal.resize(Rect::from((Position::ORIGIN, size)))?;
                }
                Effect::Suspend => {
                    suspend()?;
                    let size = terminal.size()?;
                    self.state.update(Happening::Terminal(TerminalEvent::Resize(
                        size.width,
                        size.height,
                    )));
                    terminal.resize(Rect::from((Position::ORIGIN, size)))?;
                }
                Effect::Leave => return Ok(true),
            }
        }
        Ok(false)
    }
}

/// The messages of panics of other threads, to be printed when the interface has ended.
type PanicMessages = Arc<Mutex<Vec<String>>>;
type Hook = Box<dyn Fn(&panic::PanicHookInfo<'_>) + Sync + Send + 'static>;

/// The terminal in the state of the interface. The terminal is restored when this value is dropped.
struct Screen {
    panic_messages: PanicMessages,
    hook: Arc<Hook>,
}

impl Screen {
    fn enter() -> io::Result<Screen> {
        let panic_messages = PanicMessages::default();
        let hook = Arc::new(panic::take_hook());
        let here = thread::current().id();
        let kept = panic_messages.clone();
        let before = hook.clone();
        panic::set_hook(Box::new(move |panic| report_panic(panic, here, &kept, &before)));
        let screen = Screen { panic_messages, hook };
        prepare()?;
        Ok(screen)
    }
}

/// Whether the terminal is in the state of the interface.
static IN_USE: AtomicBool = AtomicBool::new(false);

/// Switches the terminal to the state of the interface.
fn prepare() -> io::Result<()> {
    IN_USE.store(true, Ordering::SeqCst);
    enable_raw_mode()?;
    execute!(
        stdout(),
        EnterAlternateScreen,
        EnableBracketedPaste,
        EnableMouseCapture,
        // Terminals that do not support this ignore it.
        PushKeyboardEnhancementFlags(KeyboardEnhancementFlags::DISAMBIGUATE_ESCAPE_CODES)
    )
}

/// Suspends the program, as Ctrl-Z usually does, with the terminal restored.
#[cfg(unix)]
fn suspend() -> io::Result<()> {
    use rustix::process::{Signal, getpid, kill_process};

    restore();
    kill_process(getpid(), Signal::TSTP)?;
    // The shell has continued the program.
    prepare()
}

#[cfg(not(unix))]
fn suspend() -> io::Result<()> {
    Ok(())
}

/// Handles a panic. For a panic of the interface, restores the terminal and prints the message. The
/// message of another thread's panic is kept until the interface ends: such a panic need not end
/// it, and the message must not be printed onto the screen.
fn report_panic(
    panic: &panic::PanicHookInfo<'_>,
    here: ThreadId,
    panic_messages: &PanicMessages,
    before: &Hook,
) {
    if thread::current().id() == here {
        restore();
        before(panic);
    } else {
        panic_messages.lock().unwrap_or_else(PoisonError::into_inner).push(panic.to_string());
    }
}

/// Restores the terminal as far as possible, but only once: a second time could undo what another
/// program set.
fn restore() {
    if !IN_USE.swap(false, Ordering::SeqCst) {
        return;
    }
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
        let mut panic_messages = self.panic_messages.lock().unwrap_or_else(PoisonError::into_inner);
        for text in panic_messages.drain(..) {
            print_error(&text);
        }
    }
}

/// Prints the message of a panic on standard error.
fn print_error(text: &str) {
    use std::io::Write as _;

    let mut stderr = io::stderr().lock();
    let _unread = writeln!(stderr, "{}", epitome_render::visible(text));
}
