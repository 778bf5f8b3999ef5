//! Everything that all commands need: the global options, the folders, and printing.

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use anstream::adapter::strip_str;
use anstream::{AutoStream, ColorChoice};
use clap::{Args, ValueEnum};
use epitome::ops::OpenSession;
use epitome::redact::Screen;
use epitome::{Config, Settings};
use epitome_model::Counter;
use epitome_render::{inert_json, keep_styles};
use epitome_tokens::{Estimate, O200k};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use unicode_width::UnicodeWidthStr as _;

use crate::failure::{Failure, Result};
use crate::fold::fold_lines;
use crate::progress::Progress;
use crate::text::{self, DIM, YELLOW, visible};

/// Options of every command.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Global options")]
pub struct Global {
    /// Treat sessions as those of this agent, whatever their format looks like
    #[arg(long, short, global = true, value_name = "AGENT", value_parser = agents())]
    pub agent: Option<String>,

    /// How tokens are counted: exactly with OpenAI's o200k vocabulary, or estimated
    #[arg(long, global = true, value_name = "COUNTER", default_value = "o200k")]
    pub count: Count,

    /// Print JSON, one object per session (see docs/json.md)
    #[arg(long, global = true)]
    pub json: bool,

    /// Override a setting for this run: compaction.recipe=s06. `epitome config --explain` lists all
    /// settings
    #[arg(long = "set", global = true, value_name = "KEY=VALUE")]
    pub set: Vec<String>,

    /// When to use colours
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub color: Color,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Count {
    /// Exact for models of OpenAI since GPT-4o
    O200k,
    /// Within a few per cent of o200k, faster, with less memory
    Estimate,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Color {
    Auto,
    Always,
    Never,
}

/// The global options and the configuration of a command.
#[derive(Clone)]
pub struct App {
    pub global: Global,
    pub config: Config,
    settings: OnceLock<Settings>,
    /// Where the output is collected, if it must not reach the terminal.
    captured: Option<Arc<Mutex<Captured>>>,
    /// The progress of the command.
    pub progress: Arc<Progress>,
}

/// The collected output of a command.
#[derive(Default)]
struct Captured {
    /// The output on standard output.
    out: Vec<u8>,
    /// The output on standard output and standard error, in the order in which a terminal shows it.
    all: Vec<u8>,
}

/// The output of a command, with styles, and its result.
pub struct Printed {
    /// What was printed on standard output.
    pub out: String,
    /// What was printed on standard output and standard error, in the order in which a terminal
    /// shows it.
    pub all: String,
    pub done: Result<()>,
}

impl App {
    pub fn new(global: Global) -> Result<App> {
        let settings = OnceLock::new();
        let captured = None;
        let progress = Arc::default();
        Ok(App { global, config: Config::from_env()?, settings, captured, progress })
    }

    /// An `App` for a user with this home folder. It has the options `--count` and `--color` of
    /// this one; the other options and the settings, keys and environment variables of the real
    /// user are not used.
    pub fn at_home(&self, folder: &Path) -> App {
        let global = Global { agent: None, json: false, set: Vec::new(), ..self.global.clone() };
        let config = Config::from_home(folder);
        let settings = OnceLock::new();
        App { global, config, settings, captured: None, progress: Arc::default() }
    }

    /// Runs a command, and returns what it prints. Nothing reaches the terminal.
    pub fn run_captured(&self, run: impl FnOnce(&App) -> Result<()>) -> Printed {
        let captured = Arc::new(Mutex::new(Captured::default()));
        let done = run(&App { captured: Some(captured.clone()), ..self.clone() });
        let Captured { out, all } = std::mem::take(&mut *locked(&captured));
        let out = String::from_utf8_lossy(&out).into_owned();
        let all = String::from_utf8_lossy(&all).into_owned();
        Printed { out, all, done }
    }

    /// A copy of this value with `folder` as the current folder, and with the settings of that
    /// folder.
    pub fn called_in(&self, folder: &Path) -> App {
        let mut config = self.config.clone();
        config.here = folder.to_owned();
        App {
            global: self.global.clone(),
            config,
            settings: OnceLock::new(),
            captured: self.captured.clone(),
            progress: Arc::clone(&self.progress),
        }
    }

    /// The settings. They are read on first use, so that a command that does not need them works
    /// even if they are invalid.
    pub fn settings(&self) -> Result<&Settings> {
        if let Some(settings) = self.settings.get() {
            return Ok(settings);
        }
        let settings = Settings::load(&self.config, &self.global.set)?;
        for note in &settings.notes {
            self.note(&format!("{DIM}ignored:{DIM:#} {}", visible(note)));
        }
        Ok(self.settings.get_or_init(|| settings))
    }

    /// The configuration, with the files of redaction rules that the settings name.
    pub fn with_rules(&self) -> Result<Config> {
        let mut config = self.config.clone();
        config.rules.extend(self.settings()?.values.redaction.rules.iter().flatten().cloned());
        Ok(config)
    }

    /// The redactor for titles and other texts of sessions that the program displays.
    pub fn screen(&self) -> Result<Screen> {
        Ok(Screen::new(&self.with_rules()?))
    }

    pub fn agent(&self) -> Option<&str> {
        self.global.agent.as_deref()
    }

    pub fn counter(&self) -> &'static dyn Counter {
        match self.global.count {
            Count::O200k => &const { O200k::new() },
            Count::Estimate => &const { Estimate::new() },
        }
    }

    /// Prints on standard output, with styles if `--color` and the kind of the output allow them.
    /// Collected output keeps its styles.
    pub fn print(&self, text: &str) -> Result<()> {
        if let Some(captured) = &self.captured {
            locked(captured).print(keep_styles(text).as_bytes());
            return Ok(());
        }
        let stdout = std::io::stdout().lock();
        let mut out = AutoStream::new(stdout, self.global.color.choice());
        out.write_all(keep_styles(text).as_bytes())?;
        Ok(out.flush()?)
    }

    /// A text as bytes for standard output, without styles if `--color` or the kind of the output
    /// forbids them.
    pub fn styled(&self, text: &str) -> Vec<u8> {
        let choice = match self.global.color.choice() {
            ColorChoice::Auto => AutoStream::choice(&std::io::stdout()),
            asked => asked,
        };
        let mut out = AutoStream::new(Vec::new(), choice);
        out.write_all(keep_styles(text).as_bytes()).expect("memory takes all");
        out.into_inner()
    }

    /// Prints a JSON object on a line of its own.
    pub fn print_json(&self, value: &impl Serialize) -> Result<()> {
        let mut line = serde_json::to_string(value)
            .map_err(|err| Failure::new(crate::failure::Status::Bug, "bug", err.to_string()))?;
        line.push('\n');
        self.print_bytes(inert_json(line).as_bytes())
    }

    /// Prints text of a session. To a pipe or file it is printed unchanged. On a terminal, control
    /// characters are made visible, and a text that does not fit is shown in the pager.
    pub fn print_content(&self, content: &[u8]) -> Result<()> {
        if self.is_terminal() {
            self.page(&visible(&String::from_utf8_lossy(content)))
        } else {
            self.print_bytes(content)
        }
    }

    /// Prints on standard output. On a terminal, text that does not fit is shown in the user's
    /// pager, if there is one.
    pub fn page(&self, text: &str) -> Result<()> {
        let (width, height) = terminal_size::terminal_size()
            .map_or((usize::MAX, usize::MAX), |(width, height)| (width.0.into(), height.0.into()));
        let pager = std::env::var("PAGER").unwrap_or_else(|_| "less".to_owned());
        let mut words = pager.split_whitespace();
        let program = words.next().filter(|program| *program != "cat");
        let Some(program) = program.filter(|_| self.is_terminal() && rows(text, width) >= height)
        else {
            return self.print(text);
        };
        let mut command = Command::new(program);
        command.args(words).stdin(Stdio::piped());
        if std::env::var_os("LESS").is_none() {
            // Tells `less` to keep colours, and to quit at once if the text fits.
            command.env("LESS", "FRX");
        }
        let Ok(mut child) = command.spawn() else { return self.print(text) };
        let shown = self.styled(text);
        // Leaving the pager before the end is not an error.
        child.stdin.take().map(|mut stdin| stdin.write_all(&shown).ok());
        child.wait().map_err(|err| Failure::disk("cannot wait for the pager", &err))?;
        Ok(())
    }

    /// Like [`page`](App::page), with long lines wrapped between words on a terminal.
    pub fn page_folded(&self, text: &str) -> Result<()> {
        match self.is_terminal() {
            true => self.page(&fold_lines(text, text::columns())),
            false => self.page(text),
        }
    }

    /// Prints bytes unchanged.
    pub fn print_bytes(&self, bytes: &[u8]) -> Result<()> {
        if let Some(captured) = &self.captured {
            locked(captured).print(bytes);
            return Ok(());
        }
        let mut out = std::io::stdout().lock();
        out.write_all(bytes)?;
        Ok(out.flush()?)
    }

    /// Warns, before a session is replaced, about programs that have its files open and can write
    /// to them.
    pub fn warn_of_writers(&self, session: &OpenSession<'_>) {
        for users in session.users_by_file() {
            self.warn(Failure::force_warning(&users).as_deref());
        }
    }

    /// Warns about files that should belong to a session, such as those of sub-agents, if their
    /// paths are not files.
    pub fn warn_of_no_parts(&self, session: &OpenSession<'_>) {
        for path in session.missing_files() {
            let what = "not a file, so not part of the session; left unchanged";
            self.warn(Some(&format!("{}: {what}", path.display())));
        }
    }

    /// Fails if standard output is a pipe whose reader has gone (checked on Unix only). Called
    /// before sessions are changed, among other places, so that no change is made that cannot be
    /// reported.
    #[cfg(unix)]
    pub fn check_output_has_reader(&self) -> Result<()> {
        if self.captured.is_some() {
            return Ok(());
        }
        use rustix::event::{PollFd, PollFlags, Timespec, poll};

        let out = std::io::stdout();
        let mut asked = [PollFd::new(&out, PollFlags::empty())];
        // Output that cannot be polled is assumed to have a reader.
        poll(&mut asked, Some(&Timespec::default())).ok();
        if asked[0].revents().contains(PollFlags::ERR) {
            Err(std::io::Error::from(std::io::ErrorKind::BrokenPipe).into())
        } else {
            Ok(())
        }
    }

    #[cfg(not(unix))]
    pub fn check_output_has_reader(&self) -> Result<()> {
        Ok(())
    }

    /// Prints a note on standard error. If that fails, the error is ignored.
    pub fn note(&self, text: &str) {
        let text = format!("{text}\n");
        match &self.captured {
            Some(captured) => locked(captured).all.extend_from_slice(keep_styles(&text).as_bytes()),
            None => print_error(&text, self.global.color),
        }
    }

    /// A progress bar on standard error. It is hidden with `--json`, if the output is captured, or
    /// if standard error is no terminal.
    pub fn bar(&self, template: &str, len: usize) -> ProgressBar {
        let target = if self.global.json || self.captured.is_some() {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr()
        };
        let style = ProgressStyle::with_template(template);
        ProgressBar::with_draw_target(Some(len as u64), target)
            .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
    }

    /// Prints a warning, if there is one.
    pub fn warn(&self, text: Option<&str>) {
        if let Some(text) = text {
            self.note(&format!("{YELLOW}warning:{YELLOW:#} {}", visible(text)));
        }
    }

    /// Whether output is collected for a caller, such as the browser.
    pub fn is_captured(&self) -> bool {
        self.captured.is_some()
    }

    /// Whether the output goes to a terminal. False if it is collected.
    pub fn is_terminal(&self) -> bool {
        self.captured.is_none() && std::io::stdout().is_terminal()
    }
}

/// The number of rows that a text takes on a terminal of `columns` columns.
fn rows(text: &str, columns: usize) -> usize {
    let rows = text
        .lines()
        .map(|line| strip_str(line).to_string().width().div_ceil(columns.max(1)).max(1));
    rows.sum()
}

fn locked(captured: &Mutex<Captured>) -> MutexGuard<'_, Captured> {
    captured.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Captured {
    fn print(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
        self.all.extend_from_slice(bytes);
    }
}

/// Prints on standard error.
pub fn print_error(text: &str, color: Color) {
    let stderr = std::io::stderr().lock();
    let mut out = AutoStream::new(stderr, color.choice());
    out.write_all(keep_styles(text).as_bytes()).and_then(|()| out.flush()).ok();
}

impl Color {
    pub fn choice(self) -> ColorChoice {
        match self {
            Color::Auto => ColorChoice::Auto,
            Color::Always => ColorChoice::Always,
            Color::Never => ColorChoice::Never,
        }
    }
}

fn agents() -> clap::builder::PossibleValuesParser {
    epitome_formats::FORMATS.iter().map(|format| format.name).collect::<Vec<_>>().into()
}
