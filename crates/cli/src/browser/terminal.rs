//! The loop: reads keys, draws, and lets a worker carry out what they ask for.

use std::io::{Write as _, stdout};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use anstream::{AutoStream, ColorChoice};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyEventKind};

use super::draw::draw;
use super::state::{Browser, Effect};
use super::work::{Done, Task, Worker};
use crate::app::App;
use crate::failure::{Failure, Result, Status};
use crate::interrupt::Interrupt;

/// How long a key is waited for before it is looked whether the worker is done.
const WAIT: Duration = Duration::from_millis(40);

/// How long the list is shown before it is read again.
const REFRESH: Duration = Duration::from_secs(5);

/// What the worker says.
enum Told {
    /// So many of so many sessions are read.
    Progress(usize, usize),
    Done(Box<Done>),
}

/// Shows the browser until the user leaves. The terminal is as it was in any case.
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
    let looped = Loop { app, tasks, told }.run(&mut terminal);
    ratatui::try_restore().map_err(failed)?;
    let is_writing = looped.map_err(failed)?;
    if is_writing {
        app.note("finishing what was begun …");
        worker.join().ok();
    }
    Ok(())
}

fn serve(mut worker: Worker, tasks: &Receiver<Task>, tell: &Sender<Told>) {
    for task in tasks {
        let done = std::sync::atomic::AtomicUsize::new(0);
        let looked = |of| {
            let n = 1 + done.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            tell.send(Told::Progress(n, of)).ok();
        };
        let done = worker.run(task, looked);
        if tell.send(Told::Done(Box::new(done))).is_err() {
            return;
        }
    }
}

struct Loop<'a> {
    app: &'a App,
    tasks: Sender<Task>,
    told: Receiver<Told>,
}

impl Loop<'_> {
    /// Returns whether something is still being written.
    fn run(self, terminal: &mut DefaultTerminal) -> std::io::Result<bool> {
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
        // When the worker last finished; none while it works.
        let mut done_at = None;
        terminal.draw(|frame| draw(&mut browser, frame))?;
        loop {
            let mut effects = Vec::new();
            let mut is_new = false;
            while let Ok(told) = self.told.try_recv() {
                is_new = true;
                match told {
                    Told::Progress(done, of) => {
                        if let Some(work) = &mut browser.work {
                            work.progress = Some((done, of));
                        }
                    }
                    Told::Done(done) => {
                        is_writing &= matches!(*done, Done::Refreshed(_));
                        done_at = Some(Instant::now());
                        browser.now = self.app.config.now();
                        effects.extend(browser.done(*done));
                    }
                }
            }
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
                return Ok(is_writing);
            }
            let is_old = |done: Instant| done.elapsed() >= REFRESH;
            if effects.is_empty() && browser.is_idle() && done_at.is_some_and(is_old) {
                effects.push(Effect::Start(Task::Refresh));
            }
            for effect in effects {
                match effect {
                    Effect::Leave => return Ok(is_writing),
                    Effect::Copy(text) => {
                        copy(&text)?;
                    }
                    Effect::Start(task) => {
                        is_writing = task.writes();
                        done_at = None;
                        self.tasks.send(task).ok();
                    }
                }
            }
            if is_new {
                terminal.draw(|frame| draw(&mut browser, frame))?;
            }
        }
    }
}

/// Puts a text on the clipboard, by the sequence OSC 52 of terminals, which works over ssh too.
fn copy(text: &str) -> std::io::Result<()> {
    let mut out = stdout().lock();
    write!(out, "\x1b]52;c;{}\x1b\\", STANDARD.encode(text))?;
    out.flush()
}
