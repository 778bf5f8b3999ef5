//! The main loop: reads keys, draws, and hands tasks to a worker thread.

use std::io::{Write as _, stdout};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use anstream::{AutoStream, ColorChoice};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyEventKind};

use super::draw::draw;
use super::state::{Browser, Effect};
use super::worker::{Task, TaskResult, Worker};
use crate::app::App;
use crate::failure::{Failure, Result, Status};
use crate::interrupt::Interrupt;

/// The time to wait for a key before the next check of whether the worker is done.
const WAIT: Duration = Duration::from_millis(40);

/// The time after which the sessions are read again while the list is shown.
const REFRESH: Duration = Duration::from_secs(5);

/// A message of the worker.
enum Told {
    /// The number of sessions read, and of all sessions.
    Progress(usize, usize),
    Done(Box<TaskResult>),
}

/// Shows the browser until the user leaves. The terminal is restored in any case.
pub fn run(app: &App) -> Result<()> {
    let failed = |err: std::io::Error| {
        Failure::new(Status::Disk, "terminal", "cannot use the terminal").because(&err)
    };
    let (tasks, to_do) = channel();
    let (tell, told) = channel();
    let worker = {
        let app = app.clone();
        thread::spawn(move || serve(Worker::new(app), &to_do, &tell))
    };
    let mut terminal = ratatui::try_init().map_err(failed)?;
    let looped = Loop { app, tasks, receiver: &told }.run(&mut terminal);
    ratatui::try_restore().map_err(failed)?;
    match looped.map_err(failed)? {
        Left::Idle => Ok(()),
        Left::Writing(interrupt) => {
            let done = finish(app, &told, &interrupt);
            worker.join().ok();
            done
        }
    }
}

/// Whether a command was still writing when the user left the browser.
enum Left {
    Idle,
    Writing(Interrupt),
}

impl Left {
    fn while_writing(is_writing: bool, stop: Interrupt) -> Left {
        if is_writing { Left::Writing(stop) } else { Left::Idle }
    }
}

/// Waits for a command that is writing, and shows its progress and result. Ctrl-C stops it after
/// the sessions in progress.
fn finish(app: &App, told: &Receiver<Told>, interrupt: &Interrupt) -> Result<()> {
    app.note(match app.progress.is_stopped() {
        true => "stopping after the sessions in progress; Ctrl-C ends at once",
        false => "finishing what was begun; Ctrl-C stops it after the sessions in progress",
    });
    let bar = app.bar("{bar:30} {pos}/{len} sessions {elapsed}", 1);
    let done = loop {
        match told.recv_timeout(WAIT) {
            Ok(Told::Done(done)) => break Some(*done),
            Ok(Told::Progress(..)) | Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break None,
        }
        if let Some((done, of)) = app.progress.so_far() {
            bar.set_length(of as u64);
            bar.set_position(done as u64);
        }
        if interrupt.wait(Duration::ZERO) {
            app.progress.stop();
            bar.suspend(|| app.note("stopping after the sessions in progress"));
        }
    };
    bar.finish_and_clear();
    match done {
        Some(TaskResult::Printed { text, .. }) => app.print(&end_of(&text)),
        Some(TaskResult::Note(text)) => app.print(&format!("{text}\n")),
        Some(TaskResult::Failed(text)) => Err(Failure::new(Status::Refused, "browser", text)),
        Some(
            TaskResult::Listed(_)
            | TaskResult::Refreshed(_)
            | TaskResult::Versions(..)
            | TaskResult::Deleted(_),
        )
        | None => Ok(()),
    }
}

/// The output of a command. If it has more than 24 lines, only the last four: they contain the
/// summary.
fn end_of(text: &str) -> String {
    const MOST: usize = 24;
    const SHOWN: usize = 4;
    let lines: Vec<&str> = text.lines().collect();
    let from = if lines.len() > MOST { lines.len() - SHOWN } else { 0 };
    lines[from..].iter().map(|line| format!("{line}\n")).collect()
}

fn serve(mut worker: Worker, tasks: &Receiver<Task>, tell: &Sender<Told>) {
    for task in tasks {
        let done = std::sync::atomic::AtomicUsize::new(0);
        let done = worker.run(task, |of| {
            let n = 1 + done.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            tell.send(Told::Progress(n, of)).ok();
        });
        if tell.send(Told::Done(Box::new(done))).is_err() {
            return;
        }
    }
}

struct Loop<'a> {
    app: &'a App,
    tasks: Sender<Task>,
    receiver: &'a Receiver<Told>,
}

impl Loop<'_> {
    fn start(&self, task: Task) {
        self.app.progress.begin(0);
        self.tasks.send(task).ok();
    }

    fn stopped(&self, is_writing: bool, stop: Interrupt) -> Left {
        self.app.progress.stop();
        Left::while_writing(is_writing, stop)
    }

    /// Copies the progress of a command to the browser. Returns whether it changed.
    fn shows_progress(&self, browser: &mut Browser) -> bool {
        let so_far = self.app.progress.so_far();
        let (Some(work), Some(_)) = (&mut browser.work, so_far) else { return false };
        let is_new = so_far != work.progress;
        work.progress = so_far;
        is_new
    }

    /// Runs the browser until the user leaves it. Returns whether a command is still writing.
    fn run(self, terminal: &mut DefaultTerminal) -> std::io::Result<Left> {
        let choice = match self.app.global.color.choice() {
            ColorChoice::Auto => AutoStream::choice(&stdout()),
            asked => asked,
        };
        let size = terminal.size()?;
        let colours = choice != ColorChoice::Never;
        let mut browser = Browser::new(self.app.config.now(), colours, size.into());
        let stop = Interrupt::new();
        self.tasks.send(Task::List).ok();
        let mut is_writing = false;
        // The time at which the worker last finished; `None` while it works.
        let mut done_at = None;
        terminal.draw(|frame| draw(&mut browser, frame))?;
        loop {
            let mut effects = Vec::new();
            let mut is_new = false;
            while let Ok(told) = self.receiver.try_recv() {
                is_new = true;
                match told {
                    Told::Progress(done, of) => {
                        if let Some(work) = &mut browser.work {
                            work.progress = Some((done, of));
                        }
                    }
                    Told::Done(done) => {
                        is_writing &= matches!(*done, TaskResult::Refreshed(_));
                        done_at = Some(Instant::now());
                        browser.now = self.app.config.now();
                        effects.extend(browser.finish_task(*done));
                    }
                }
            }
            is_new |= self.shows_progress(&mut browser);
            if event::poll(WAIT)? {
                is_new = true;
                match event::read()? {
                    Event::Key(key) if key.kind != KeyEventKind::Release => {
                        effects.extend(browser.key(key));
                    }
                    _ => {}
                }
            }
            if stop.wait(Duration::ZERO) {
                return Ok(self.stopped(is_writing, stop));
            }
            let is_old = done_at.is_some_and(|done| done.elapsed() >= REFRESH);
            if effects.is_empty() && browser.is_idle() && is_old {
                effects.push(Effect::Start(Task::Refresh));
            }
            for effect in effects {
                match effect {
                    Effect::Leave => return Ok(Left::while_writing(is_writing, stop)),
                    Effect::Stop => return Ok(self.stopped(is_writing, stop)),
                    Effect::Copy(text) => copy(&text)?,
                    Effect::Start(task) => {
                        is_writing = task.writes();
                        done_at = None;
                        self.start(task);
                    }
                }
            }
            if is_new {
                terminal.draw(|frame| draw(&mut browser, frame))?;
            }
        }
    }
}

/// Copies a text to the clipboard with the terminal sequence OSC 52, which also works over ssh.
fn copy(text: &str) -> std::io::Result<()> {
    let mut out = stdout().lock();
    write!(out, "\x1b]52;c;{}\x1b\\", STANDARD.encode(text))?;
    out.flush()
}
