//! The state of the browser, and the effect of each key, without any input or output.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use epitome::agents::resume_line;
use epitome::list::{ListedSession, Sort};
use epitome_model::Tokens;
use jiff::Timestamp;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::menu::{Choice, Menu};
use super::picker::{Picker, PickerOf};
use super::rows::{Row, found};
use super::view::View;
use super::worker::{Commands, Kind, Task, TaskResult};
use crate::text::{count, share};

/// The number of lines below the list: a rule, three for the current session, and the keys.
const FOOT: usize = 5;

/// The browser.
pub struct Browser {
    pub rows: Vec<Row>,
    /// The indexes of the rows that match the filter, in the order in which they are displayed.
    pub shown: Vec<usize>,
    /// The index of the current row in `shown`.
    pub at: usize,
    /// The index in `shown` of the first row on the screen.
    pub top: usize,
    pub chosen: BTreeSet<PathBuf>,
    pub sort: Sort,
    pub filter: String,
    pub mode: Mode,
    /// A note in the last line of the screen, which is shown until the next key is pressed.
    pub note: Option<Note>,
    pub work: Option<Work>,
    pub now: Timestamp,
    pub colours: bool,
    /// The number of columns and lines of the screen.
    pub size: (u16, u16),
}

/// What is on the screen. It decides what a key does.
#[derive(Clone, Debug)]
pub enum Mode {
    List,
    /// The filter is being typed.
    Filter,
    Help,
    View(View),
    Menu(Menu),
    /// A list of the versions of a session, or of deleted sessions.
    Pick(Picker),
    /// A question before something is written.
    Ask(Question),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    pub text: Vec<String>,
    pub task: Task,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    Said(String),
    Failed(String),
}

/// The work in progress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Work {
    pub what: String,
    /// The number of steps done and of all steps, if they are known.
    pub progress: Option<(usize, usize)>,
}

/// What the main loop has to do after a key or after the result of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    Start(Task),
    /// Puts a text on the clipboard of the terminal.
    Copy(String),
    /// Leaves the browser. A command that is writing is finished first.
    Leave,
    /// Leaves the browser. A command that is writing stops after the sessions in progress.
    Stop,
}

impl Browser {
    /// A browser without rows. The caller reads the sessions.
    pub fn new(now: Timestamp, colours: bool, size: (u16, u16)) -> Browser {
        Browser {
            rows: Vec::new(),
            shown: Vec::new(),
            at: 0,
            top: 0,
            chosen: BTreeSet::new(),
            sort: Sort::Saving,
            filter: String::new(),
            mode: Mode::List,
            note: None,
            work: Some(Work { what: "reading sessions".to_owned(), progress: None }),
            now,
            colours,
            size,
        }
    }

    pub fn current(&self) -> Option<&Row> {
        self.shown.get(self.at).map(|&at| &self.rows[at])
    }

    /// The rows that are compacted, restored or simulated: the selected ones, or if none is
    /// selected the current one.
    pub fn selected_rows(&self) -> Vec<&Row> {
        if self.chosen.is_empty() {
            return self.current().into_iter().collect();
        }
        self.rows.iter().filter(|row| self.chosen.contains(&row.listed.file.path)).collect()
    }

    /// Handles the result of a task.
    pub fn finish_task(&mut self, done: TaskResult) -> Option<Effect> {
        if !matches!(done, TaskResult::Refreshed(_)) {
            self.work = None;
        }
        match done {
            TaskResult::Listed(listed) | TaskResult::Refreshed(listed) => self.take(listed),
            TaskResult::Versions(history, short) => {
                self.mode = Mode::Pick(Picker::versions(&history, &short, self.now));
            }
            TaskResult::Deleted(sessions) if sessions.is_empty() => {
                let what = "no deleted session was kept (epitome keep)".to_owned();
                self.note = Some(Note::Said(what));
            }
            TaskResult::Deleted(sessions) => {
                self.mode = Mode::Pick(Picker::deleted(&sessions, self.now));
            }
            TaskResult::Note(text) => self.note = Some(Note::Said(text)),
            TaskResult::Failed(text) => self.note = Some(Note::Failed(text)),
            TaskResult::Printed { commands, text, failed } => {
                let Commands { title, lines, kind } = commands;
                if lines.iter().flatten().any(|word| word == "restore") && !failed {
                    // After a restore, the selection is cleared, so that keys act on the current
                    // session again.
                    self.chosen.clear();
                }
                let width = usize::from(self.size.0);
                // After a failure, no key offers to carry out or undo what was printed.
                let shown = if failed { Kind::Shows } else { kind };
                let mut view = View::new((title, shown), &text, self.colours, width);
                if kind == Kind::Ports && !failed {
                    view.copy = text.lines().last().map(str::to_owned);
                }
                self.mode = Mode::View(view);
                if matches!(kind, Kind::Writes | Kind::Restores) {
                    // Compacted sessions stay selected, so that `u` can undo them.
                    return self.start("reading sessions", Task::List);
                }
            }
        }
        None
    }

    /// Whether no work is under way and only the list is shown, so that the sessions may be read
    /// again.
    pub fn is_idle(&self) -> bool {
        self.work.is_none() && matches!(self.mode, Mode::List)
    }

    /// Sets new rows. The current session stays the current one if it is still shown; otherwise the
    /// first session becomes the current one.
    fn take(&mut self, listed: Vec<ListedSession>) {
        let path = self.current().map(|row| row.listed.file.path.clone());
        self.rows = Row::all(listed);
        let paths: BTreeSet<&PathBuf> = self.rows.iter().map(|it| &it.listed.file.path).collect();
        self.chosen.retain(|path| paths.contains(path));
        self.refresh(path.as_deref());
    }

    /// Filters and sorts again. The session at `path` becomes the current one if it is still shown;
    /// otherwise the first session does.
    fn refresh(&mut self, path: Option<&Path>) {
        self.shown = found(&self.rows, &self.filter, self.sort);
        let mut shown = self.shown.iter();
        let at = shown.position(|&at| Some(&*self.rows[at].listed.file.path) == path);
        self.at = at.unwrap_or(0);
    }

    /// Handles a key.
    pub fn key(&mut self, key: KeyEvent) -> Option<Effect> {
        self.note = None;
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        if is_control && key.code == KeyCode::Char('c') {
            return Some(Effect::Stop);
        }
        match &self.mode {
            Mode::List => self.list_key(key.code, is_control),
            Mode::Filter => self.filter_key(key.code, is_control),
            Mode::Help => {
                self.mode = Mode::List;
                None
            }
            Mode::View(_) => self.view_key(key.code, is_control),
            Mode::Menu(_) => self.menu_key(key.code),
            Mode::Pick(_) => self.pick_key(key.code, is_control),
            Mode::Ask(_) => self.answer(key.code),
        }
    }

    fn list_key(&mut self, code: KeyCode, is_control: bool) -> Option<Effect> {
        let page = isize::try_from(self.lines_of_list()).unwrap_or(1);
        match code {
            KeyCode::Char('d') if is_control => self.step(page / 2),
            KeyCode::Char('u') if is_control => self.step(-page / 2),
            _ if is_control => {}
            KeyCode::Char('q') => return Some(Effect::Leave),
            KeyCode::Char('j') | KeyCode::Down => self.step(1),
            KeyCode::Char('k') | KeyCode::Up => self.step(-1),
            KeyCode::PageDown => self.step(page),
            KeyCode::PageUp => self.step(-page),
            KeyCode::Char('g') | KeyCode::Home => self.at = 0,
            KeyCode::Char('G') | KeyCode::End => self.at = self.shown.len().saturating_sub(1),
            KeyCode::Char(' ') => self.choose(),
            KeyCode::Char('a') => self.choose_all(),
            KeyCode::Char('/') => self.mode = Mode::Filter,
            KeyCode::Tab => {
                let path = self.current().map(|row| row.listed.file.path.clone());
                let at = Sort::ALL.iter().position(|it| *it == self.sort).unwrap_or(0);
                self.sort = Sort::ALL[(at + 1) % Sort::ALL.len()];
                self.refresh(path.as_deref());
            }
            KeyCode::Esc if self.chosen.is_empty() => {
                self.filter.clear();
                let path = self.current().map(|row| row.listed.file.path.clone());
                self.refresh(path.as_deref());
            }
            KeyCode::Esc => self.chosen.clear(),
            KeyCode::Char('?') => self.mode = Mode::Help,
            KeyCode::Char('x') => return self.start("looking", Task::Deleted),
            KeyCode::Char('R') | KeyCode::F(5) => {
                return self.start("reading sessions", Task::List);
            }
            code => return self.command(code),
        }
        None
    }

    /// Handles a key that acts on sessions. Most of these keys run a command.
    fn command(&mut self, code: KeyCode) -> Option<Effect> {
        let row = self.current()?;
        let path = row.listed.file.path.clone();
        let short = row.short.clone();
        let one = |words: &[&str], kind| {
            let title = format!("epitome {} {short}", words.join(" "));
            let line = words.iter().map(OsString::from).chain([path.clone().into()]).collect();
            Task::Run(Commands { title, lines: vec![line], kind })
        };
        match code {
            KeyCode::Char('d') => {
                self.start("planning", one(&["compact", "--dry-run", "--losses"], Kind::Plans))
            }
            KeyCode::Char('D') => self.start("planning", one(&["compact", "--diff"], Kind::Plans)),
            KeyCode::Char('r') | KeyCode::Enter => {
                self.start("rendering", one(&["render", "--detail", "calls"], Kind::Shows))
            }
            KeyCode::Char('i') => self.start("counting", one(&["inspect"], Kind::Shows)),
            KeyCode::Char('l') => self.start("looking", one(&["losses"], Kind::Shows)),
            KeyCode::Char('o') => self.start("opening", Task::Open(path)),
            KeyCode::Char('v') => {
                let agent = row.listed.file.agent.to_owned();
                self.start("looking", Task::Versions { session: path.into(), agent, short })
            }
            KeyCode::Char('s') => self.simulate(),
            KeyCode::Char('c') => self.ask_to_compact(),
            KeyCode::Char('u') => self.ask_to_restore(),
            KeyCode::Char('p') => {
                self.mode = Mode::Menu(Menu::port(row.listed.file.agent));
                None
            }
            KeyCode::Char('e') => {
                self.mode = Mode::Menu(Menu::export());
                None
            }
            KeyCode::Char('y') => self.copy_resume(),
            _ => None,
        }
    }

    fn simulate(&mut self) -> Option<Effect> {
        let rows = self.selected_rows();
        let paths = rows.iter().map(|row| row.listed.file.path.clone().into());
        let line = [OsString::from("simulate")].into_iter().chain(paths).collect();
        let title = format!("epitome simulate {}", names(&rows));
        let lines = vec![line];
        self.start("replaying", Task::Run(Commands { title, lines, kind: Kind::Shows }))
    }

    fn ask_to_compact(&mut self) -> Option<Effect> {
        let rows = self.selected_rows();
        let (before, saving) = sums(&rows);
        let paths = rows.iter().map(|row| row.listed.file.path.clone().into());
        let words = [OsString::from("compact"), "--yes".into()];
        let lines = vec![words.into_iter().chain(paths).collect()];
        let title = format!("epitome compact {}", names(&rows));
        let text = vec![
            format!("Compact {}?", which(&rows)),
            format!(
                "~{before} → ~{} tokens of messages (−{})",
                before - saving,
                share(saving.0, before.0)
            ),
            "What is removed is archived first; u restores it.".to_owned(),
        ];
        let text = text.into_iter().chain(growing(&rows)).collect();
        self.ask(text, Commands { title, lines, kind: Kind::Writes })
    }

    fn ask_to_restore(&mut self) -> Option<Effect> {
        let rows: Vec<&Row> =
            self.selected_rows().into_iter().filter(|row| row.listed.compactions > 0).collect();
        if rows.is_empty() {
            self.note = Some(Note::Failed("it was not compacted with epitome".to_owned()));
            return None;
        }
        let lines = rows
            .iter()
            .map(|row| vec!["restore".into(), row.listed.file.path.clone().into()])
            .collect();
        // `epitome restore` takes one session, so each session has a command of its own.
        let title = rows.iter().map(|row| format!("epitome restore {}", row.short));
        let title = title.collect::<Vec<_>>().join("; ");
        let text = vec![
            format!("Restore {}?", which(&rows)),
            "To the byte, as before the first compaction; what was added since stays.".to_owned(),
        ];
        self.ask(text, Commands { title, lines, kind: Kind::Writes })
    }

    fn ask(&mut self, text: Vec<String>, commands: Commands) -> Option<Effect> {
        self.mode = Mode::Ask(Question { text, task: Task::Run(commands) });
        None
    }

    fn answer(&mut self, code: KeyCode) -> Option<Effect> {
        let Mode::Ask(question) = std::mem::replace(&mut self.mode, Mode::List) else {
            return None;
        };
        match code {
            KeyCode::Char('y' | 'Y') | KeyCode::Enter => self.start("writing", question.task),
            _ => {
                self.note = Some(Note::Said("nothing was changed".to_owned()));
                None
            }
        }
    }

    fn menu_key(&mut self, code: KeyCode) -> Option<Effect> {
        let Mode::Menu(menu) = std::mem::replace(&mut self.mode, Mode::List) else { return None };
        let KeyCode::Char(key) = code else { return None };
        let chosen = menu.entries.into_iter().find(|(it, ..)| *it == key)?.2;
        let row = self.current()?;
        let session = row.listed.file.path.clone();
        let short = row.short.clone();
        match chosen {
            Choice::Export(form) => self.start("writing", Task::Export { session, short, form }),
            Choice::Port(to) => {
                let title = format!("epitome port {short} --to {to}");
                let line = vec!["port".into(), "--to".into(), to.into(), session.into()];
                let lines = vec![line];
                self.start("writing", Task::Run(Commands { title, lines, kind: Kind::Ports }))
            }
        }
    }

    fn copy_resume(&mut self) -> Option<Effect> {
        let row = self.current()?;
        let info = row.info()?;
        match resume_line(row.listed.file.agent, &info.id, info.cwd.as_deref()) {
            Some(line) => self.copy(line),
            None => {
                let what = format!("no command is known that resumes {}", row.listed.file.agent);
                self.note = Some(Note::Failed(what));
                None
            }
        }
    }

    fn copy(&mut self, text: String) -> Option<Effect> {
        self.note = Some(Note::Said(format!("copied: {text}")));
        Some(Effect::Copy(text))
    }

    fn filter_key(&mut self, code: KeyCode, is_control: bool) -> Option<Effect> {
        match code {
            KeyCode::Enter | KeyCode::Down | KeyCode::Tab => self.mode = Mode::List,
            KeyCode::Esc => {
                self.filter.clear();
                self.mode = Mode::List;
            }
            KeyCode::Char('u') if is_control => self.filter.clear(),
            KeyCode::Char(c) if !is_control => self.filter.push(c),
            KeyCode::Backspace if self.filter.pop().is_none() => self.mode = Mode::List,
            _ => {}
        }
        self.refresh(None);
        None
    }

    fn view_key(&mut self, code: KeyCode, is_control: bool) -> Option<Effect> {
        let height = self.lines_of_view();
        let page = isize::try_from(height).unwrap_or(1);
        let Mode::View(view) = &mut self.mode else { return None };
        if view.is_typing {
            let missed = view.search_key(code, height);
            self.note = missed.then(|| Note::Failed("not found".to_owned()));
            return None;
        }
        if std::mem::take(&mut view.shows_keys) {
            return None;
        }
        match code {
            KeyCode::Char('?') => view.shows_keys = true,
            KeyCode::Char('q') | KeyCode::Esc => self.mode = Mode::List,
            KeyCode::Char('j') | KeyCode::Down | KeyCode::Enter => view.scroll(1, height),
            KeyCode::Char('k') | KeyCode::Up => view.scroll(-1, height),
            KeyCode::Char('d') if is_control => view.scroll(page / 2, height),
            KeyCode::Char('u') if is_control => view.scroll(-page / 2, height),
            KeyCode::Char(' ') | KeyCode::PageDown => view.scroll(page, height),
            KeyCode::Char('b') | KeyCode::PageUp => view.scroll(-page, height),
            KeyCode::Char('g') | KeyCode::Home => view.top = 0,
            KeyCode::Char('G') | KeyCode::End => view.scroll(isize::MAX, height),
            KeyCode::Char('/') => (view.is_typing, view.search) = (true, String::new()),
            KeyCode::Char(forward @ ('n' | 'N')) => {
                let missed = !view.find(forward == 'n', height);
                self.note = missed.then(|| Note::Failed("not found".to_owned()));
            }
            KeyCode::Char('D') if view.kind == Kind::Plans => return self.command(code),
            KeyCode::Char('u') if view.kind == Kind::Writes => return self.ask_to_restore(),
            KeyCode::Char('c') if view.kind == Kind::Plans => {
                // The plan on the screen is that of the current session, so only that one is
                // compacted.
                self.chosen.clear();
                return self.ask_to_compact();
            }
            KeyCode::Char('y') => {
                let copy = view.copy.clone()?;
                return self.copy(copy);
            }
            _ => {}
        }
        None
    }

    /// Handles a key in a list of versions or of deleted sessions.
    fn pick_key(&mut self, code: KeyCode, is_control: bool) -> Option<Effect> {
        let page = isize::try_from(self.lines_of_pick()).unwrap_or(1);
        let Mode::Pick(picker) = &mut self.mode else { return None };
        match code {
            KeyCode::Char('d') if is_control => picker.step(page / 2),
            KeyCode::Char('u') if is_control => picker.step(-page / 2),
            KeyCode::Char('q') | KeyCode::Esc => self.mode = Mode::List,
            KeyCode::Char('j') | KeyCode::Down => picker.step(1),
            KeyCode::Char('k') | KeyCode::Up => picker.step(-1),
            KeyCode::PageDown => picker.step(page),
            KeyCode::PageUp => picker.step(-page),
            KeyCode::Char('g') | KeyCode::Home => picker.at = 0,
            KeyCode::Char('G') | KeyCode::End => picker.step(isize::MAX),
            KeyCode::Char('v') | KeyCode::Enter if picker.of == PickerOf::Deleted => {
                let session = picker.current()?.session.clone();
                let (agent, short) = (session.agent, session.short);
                let session = session.path.into();
                return self.start("looking", Task::Versions { session, agent, short });
            }
            KeyCode::Char('u') => match picker.current()?.restore() {
                Some((text, task)) => self.mode = Mode::Ask(Question { text, task }),
                None => {
                    let what = "this version has no content: the session was deleted then";
                    self.note = Some(Note::Failed(what.to_owned()));
                }
            },
            _ => {}
        }
        None
    }

    fn start(&mut self, what: &str, task: Task) -> Option<Effect> {
        if let Some(work) = &self.work {
            self.note = Some(Note::Failed(format!("wait a moment: {} …", work.what)));
            return None;
        }
        self.work = Some(Work { what: what.to_owned(), progress: None });
        Some(Effect::Start(task))
    }

    fn step(&mut self, by: isize) {
        let last = self.shown.len().saturating_sub(1);
        self.at = self.at.saturating_add_signed(by).min(last);
    }

    fn choose(&mut self) {
        let Some(path) = self.current().map(|row| row.listed.file.path.clone()) else { return };
        if !self.chosen.remove(&path) {
            self.chosen.insert(path);
        }
        self.step(1);
    }

    /// Selects all rows that are shown and could be read, or clears the selection if it has exactly
    /// these rows.
    fn choose_all(&mut self) {
        let shown = self.shown.iter().map(|&at| &self.rows[at]);
        let readable = shown.filter(|row| row.info().is_some());
        let paths = readable.map(|row| row.listed.file.path.clone());
        let all: BTreeSet<PathBuf> = paths.collect();
        self.chosen = if self.chosen == all { BTreeSet::new() } else { all };
    }

    /// The number of lines of the list: all except the head, the names of the columns, and the
    /// lines below.
    pub fn lines_of_list(&self) -> usize {
        usize::from(self.size.1).saturating_sub(2 + self.lines_of_foot()).max(1)
    }

    /// The number of lines below the list. On a low screen, the first of these lines are left out,
    /// but never the last one.
    pub fn lines_of_foot(&self) -> usize {
        FOOT.min(usize::from(self.size.1).saturating_sub(3)).max(1)
    }

    /// The number of lines for the entries of a list that fills the screen: all except its title,
    /// the names of the columns, and the keys.
    pub fn lines_of_pick(&self) -> usize {
        usize::from(self.size.1).saturating_sub(3).max(1)
    }

    /// The number of lines for a text that fills the screen: all except its title and the keys.
    pub fn lines_of_view(&self) -> usize {
        usize::from(self.size.1).saturating_sub(2).max(1)
    }
}

/// The tokens of the contexts of these sessions together, and how many of them compacting would
/// save.
pub fn sums(rows: &[&Row]) -> (Tokens, Tokens) {
    let before = rows.iter().map(|row| row.context()).sum();
    (before, rows.iter().map(|row| row.saving()).sum())
}

/// A note that the files of some agents will grow, because compacting appends a record with a
/// shorter history to them. `None` if there are no such agents.
fn growing(rows: &[&Row]) -> Option<String> {
    let saving = rows.iter().filter(|row| row.saving() > Tokens(0));
    let agents = saving.map(|row| row.listed.file.agent).filter(|agent| {
        let native = epitome_formats::find_format(agent).and_then(|format| format.native);
        native.is_some_and(|native| native.is_default())
    });
    let agents: BTreeSet<&str> = agents.collect();
    let agents = agents.into_iter().collect::<Vec<_>>().join(" and ");
    (!agents.is_empty()).then(|| {
        format!("The file of {agents} grows by a record; compact --rewrite shrinks it too.")
    })
}

/// The sessions as arguments of a command: `0f3c9a52 1b7d0e44`.
fn names(rows: &[&Row]) -> String {
    rows.iter().map(|row| row.short.as_str()).collect::<Vec<_>>().join(" ")
}

/// The sessions in words: `0f3c9a52`, or `3 sessions`.
fn which(rows: &[&Row]) -> String {
    match rows {
        [row] => row.short.clone(),
        rows => count(rows.len() as u64, "session"),
    }
}
