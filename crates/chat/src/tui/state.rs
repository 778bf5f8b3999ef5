//! The state of the screen, and how events change it. It does no input or output.

use std::collections::VecDeque;
use std::time::Duration;

use epitome_engine::WindowUse;
use epitome_passes::Event as ContextEvent;
use ratatui::crossterm::event::Event as TerminalEvent;

use super::editor::Editor;
use super::entry::{Answer, Card, CardState, Entry, LaidOutEntry, Tone};
use super::preview::Preview;
use super::theme::Theme;
use crate::demo::ScriptLine;
use crate::machine::{Cost, Event, Input, TurnEnd};
use crate::notices::{change, loaded, undone};

/// An event for the interface.
#[derive(Clone, Debug)]
pub enum Happening {
    /// An event of the terminal, now: a key, a paste, the mouse or a new size.
    Terminal(TerminalEvent),
    /// An event of the terminal, at this time since the interface began.
    Typed(TerminalEvent, Duration),
    /// An event of the agent. A call that would change files may come with a preview of its
    /// changes.
    Agent(Event, Option<Preview>),
    /// The lines of a demo. Each is typed for the user once the one before is done.
    Script(Vec<ScriptLine>),
    /// The time since the interface began.
    Time(Duration),
    /// The program must end.
    Terminated,
}

/// Something for the caller to do.
#[derive(Debug)]
pub enum Effect {
    /// Send this to the agent.
    Input(Input),
    /// Redraw the whole screen.
    Redraw,
    /// Suspend the program, as Ctrl-Z does, until the shell continues it.
    Suspend,
    /// Leave.
    Leave,
}

/// The whole interface as data.
pub struct State {
    pub(super) theme: Theme,
    pub(super) size: (u16, u16),
    pub(super) entries: Vec<LaidOutEntry>,
    pub(super) editor: Editor,
    /// Messages that are not in the context yet.
    pub(super) queued: VecDeque<String>,
    /// Calls that wait for the user. The question for the first one is shown.
    pub(super) asks: VecDeque<Ask>,
    pub(super) session: SessionNames,
    pub(super) usage: Option<WindowUse>,
    pub(super) cost: Cost,
    pub(super) busy: Option<Busy>,
    pub(super) now: Duration,
    /// When the current key was pressed, since the interface began.
    pub(super) typed: Duration,
    pub(super) folded: bool,
    pub(super) scroll: Scroll,
    /// The time until which a second Ctrl-C leaves.
    pub(super) armed: Option<Duration>,
    /// The remaining lines of a demo, and whether the next one must be typed.
    script: VecDeque<ScriptLine>,
    is_line_due: bool,
}

/// The scroll position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scroll {
    /// The last lines are visible, also after more lines are added.
    End,
    /// The first visible line: the index of its entry, and its own index in the entry.
    At(usize, usize),
}

/// What the status bar names: the session, the model and the recipe.
#[derive(Default)]
pub(super) struct SessionNames {
    pub(super) id: String,
    pub(super) model: String,
    pub(super) recipe: String,
}

/// A call that waits for the user.
pub(super) struct Ask {
    pub(super) id: String,
    /// The id of the call of `task` that started the sub-agent, if this is a call of a sub-agent.
    pub(super) task: Option<String>,
    pub(super) what: OpenQuestion,
    /// When the question appeared on the screen; `None` before. If the question is whether a call
    /// may run, each later key that is typed into the input sets this to the time of that key. A
    /// key answers the question only if it is pressed at least 400 ms after this time.
    pub(super) shown: Option<Duration>,
}

impl Ask {
    fn is(&self, task: Option<&str>, id: &str) -> bool {
        self.task.as_deref() == task && self.id == id
    }

    /// Wraps an answer as an input for the agent, or for its sub-agent.
    pub(super) fn input(&self, answer: Input) -> Input {
        match &self.task {
            None => answer,
            Some(task) => Input::Task(task.as_str().into(), Box::new(answer)),
        }
    }

    /// Whether the answer to the question is a line of text.
    pub(super) fn takes_text(&self) -> bool {
        matches!(self.what, OpenQuestion::Question { .. })
    }
}

/// A question to the user.
pub(super) enum OpenQuestion {
    /// Whether a call may run, and what "always" and "never" would cover.
    Permission { about: String, always: String },
    /// A question of the model, with choices.
    Question { question: String, choices: Vec<String> },
}

/// What the agent is doing, and since when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Busy {
    pub(super) since: Duration,
    pub(super) what: Work,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    Turn,
    Compaction,
}

impl State {
    /// The interface for a terminal with this size.
    pub fn new(theme: Theme, size: (u16, u16)) -> State {
        State {
            theme,
            size,
            entries: Vec::new(),
            editor: Editor::default(),
            queued: VecDeque::new(),
            asks: VecDeque::new(),
            session: SessionNames::default(),
            usage: None,
            cost: Cost::default(),
            busy: None,
            now: Duration::ZERO,
            typed: Duration::ZERO,
            folded: true,
            scroll: Scroll::End,
            armed: None,
            script: VecDeque::new(),
            is_line_due: false,
        }
    }

    /// Whether the screen changes with time, without an event.
    pub fn is_moving(&self) -> bool {
        self.busy.is_some() || self.armed.is_some()
    }

    /// Handles an event, and returns what to do.
    pub fn update(&mut self, happening: Happening) -> Vec<Effect> {
        match happening {
            Happening::Terminal(event) => {
                self.typed = self.now;
                self.terminal(event)
            }
            Happening::Typed(event, at) => {
                self.typed = at;
                self.terminal(event)
            }
            Happening::Agent(event, preview) => {
                let ends_line = matches!(
                    event,
                    Event::Usage { .. }
                        | Event::Losses { .. }
                        | Event::Window { .. }
                        | Event::Undone { .. }
                        | Event::Done { .. }
                );
                self.agent(event, preview);
                if ends_line {
                    self.type_line();
                }
                Vec::new()
            }
            Happening::Script(lines) => {
                self.script = lines.into();
                self.is_line_due = true;
                self.type_line();
                Vec::new()
            }
            Happening::Time(now) => {
                self.now = now;
                self.armed = self.armed.filter(|until| *until > now);
                Vec::new()
            }
            Happening::Terminated => vec![Effect::Leave],
        }
    }

    /// Makes the next line of a demo due. `type_line` then types it once the agent is idle.
    pub(super) fn line_sent(&mut self) {
        self.is_line_due = true;
    }

    /// Types the next line of a demo, if it is due, the agent is idle, and the user is not typing.
    fn type_line(&mut self) {
        let is_free = self.busy.is_none() && self.asks.is_empty() && self.editor.is_empty();
        if !self.is_line_due || !is_free {
            return;
        }
        let Some(ScriptLine { about, line }) = self.script.pop_front() else { return };
        self.is_line_due = false;
        self.push(Entry::Note(Tone::Guide, about));
        self.editor.set(&line);
    }

    /// If the first open question was not on the screen before, notes that it appeared at `now`.
    pub fn drawn(&mut self, now: Duration) {
        if let Some(ask) = self.asks.front_mut() {
            ask.shown.get_or_insert(now);
        }
    }

    pub(super) fn push(&mut self, entry: Entry) {
        let before = self.entries.last().map(|shown| &shown.entry);
        let shown = LaidOutEntry::new(entry, before);
        self.entries.push(shown);
    }

    pub(super) fn note(&mut self, tone: Tone, text: impl Into<String>) {
        self.push(Entry::Note(tone, text.into()));
    }

    /// Sends a message of the user to the agent.
    pub(super) fn send(&mut self, text: String) -> Effect {
        self.queued.push_back(text.clone());
        self.scroll = Scroll::End;
        if self.busy.is_none() {
            self.busy = Some(Busy { since: self.now, what: Work::Turn });
        }
        Effect::Input(Input::User(text))
    }

    fn agent(&mut self, event: Event, preview: Option<Preview>) {
        match event {
            Event::Session { id, model, recipe, summaries, .. } => {
                self.session(id, model, recipe);
                if let Some(name) = summaries {
                    self.note(Tone::Quiet, format!("summaries are written by {name}"));
                }
            }
            Event::Loaded { files } => self.note(Tone::Quiet, loaded(&files)),
            Event::User { text } => self.user(text),
            Event::Text { text } => self.text(&text),
            Event::Thinking { text } => self.thinking(&text),
            Event::Restart => self.restart(),
            Event::Retry(retrying) => self.note(Tone::Warn, retrying.to_string()),
            Event::Call { id, tool, arguments } => {
                self.close();
                self.push(Entry::Call(Card::new(id, tool, arguments, preview)));
            }
            Event::Task { id, inner } => self.task(&id, *inner, preview),
            Event::Permission { id, about, always } => {
                self.ask(None, id, OpenQuestion::Permission { about, always });
            }
            Event::Question { id, question, choices } => {
                self.ask(None, id, OpenQuestion::Question { question, choices });
            }
            Event::Permitted { id, allowed } => self.permitted(None, &id, allowed),
            Event::Progress { id, seconds, text } => self.progress(None, &id, seconds, text),
            Event::Result { id, error, text } => self.result(None, &id, error, text),
            Event::Context { event } => self.context(&event),
            Event::Undone { before, after } => {
                self.note(Tone::Good, undone(before, after));
            }
            Event::Usage { usage, cost } => {
                self.usage = Some(usage);
                self.cost = cost;
                self.busy = self.busy.filter(|busy| busy.what == Work::Turn);
            }
            Event::Window { usage, contents, window } => {
                self.usage = Some(usage);
                self.push(Entry::Window(usage, contents, window));
            }
            Event::Losses { lines } => self.note(Tone::Quiet, lines.join("\n")),
            Event::Notice { text } => self.note(Tone::Quiet, text),
            Event::Done { ended, reason, cost, .. } => self.done(ended, reason, cost),
        }
    }

    fn session(&mut self, id: String, model: String, recipe: String) {
        if self.session.id == id {
            self.note(Tone::Quiet, format!("model {model}, recipe {recipe}"));
        } else {
            self.note(Tone::Quiet, format!("session {id} · /help shows commands and keys"));
        }
        self.session = SessionNames { id, model, recipe };
    }

    fn user(&mut self, text: String) {
        self.close();
        if let Some(at) = self.queued.iter().position(|queued| *queued == text) {
            self.queued.remove(at);
            let since = self.busy.map_or(self.now, |busy| busy.since);
            self.busy = Some(Busy { since, what: Work::Turn });
        } else {
            // A message that was not queued is from a resumed session, so the history lacks it.
            self.editor.remember(&text);
        }
        self.push(Entry::User(text));
    }

    fn text(&mut self, text: &str) {
        if let Some(Entry::Thinking(thinking)) = self.last() {
            thinking.is_open = false;
        }
        match self.last() {
            Some(Entry::Answer(answer)) if answer.is_open => answer.text.push_str(text),
            _ => self.push(Entry::Answer(Answer::new(text.to_owned()))),
        }
    }

    fn thinking(&mut self, text: &str) {
        match self.last() {
            Some(Entry::Thinking(thinking)) if thinking.is_open => thinking.text.push_str(text),
            _ => self.push(Entry::Thinking(Answer::new(text.to_owned()))),
        }
    }

    /// The last entry, to be changed, if it is text or reasoning of the model.
    fn last(&mut self) -> Option<&mut Entry> {
        let last = self.entries.last_mut();
        let last =
            last.filter(|shown| matches!(shown.entry, Entry::Answer(_) | Entry::Thinking(_)));
        last.map(LaidOutEntry::change)
    }

    /// Marks the streamed entries as complete.
    fn close(&mut self) {
        for shown in self.entries.iter_mut().rev() {
            match &shown.entry {
                Entry::Answer(text) | Entry::Thinking(text) if text.is_open => {}
                _ => break,
            }
            if let Entry::Answer(text) | Entry::Thinking(text) = shown.change() {
                text.is_open = false;
            }
        }
    }

    /// Discards the streamed entries.
    fn restart(&mut self) {
        // The reasoning before a text was marked as complete when the text began.
        while let Some(LaidOutEntry { entry: Entry::Answer(text) | Entry::Thinking(text), .. }) =
            self.entries.last()
            && text.is_open
        {
            self.entries.pop();
        }
        if let Some(Entry::Thinking(_)) = self.entries.last().map(|shown| &shown.entry) {
            self.entries.pop();
        }
    }

    /// Changes the card of a call, or of a call of its sub-agent.
    fn card(&mut self, task: Option<&str>, id: &str, change: impl FnOnce(&mut Card)) {
        let outer = task.unwrap_or(id);
        let mut shown = self.entries.iter_mut().rev();
        let outer =
            shown.find(|shown| matches!(&shown.entry, Entry::Call(card) if card.id == outer));
        if let Some(shown) = outer
            && let Entry::Call(card) = shown.change()
        {
            match task {
                None => change(card),
                Some(_) => {
                    let inner = card.inside.iter_mut().rev().find(|card| card.id == id);
                    if let Some(inner) = inner {
                        change(inner);
                    }
                }
            }
        }
    }

    /// Handles an event of the sub-agent that the call `id` of the tool `task` began.
    fn task(&mut self, id: &str, event: Event, preview: Option<Preview>) {
        let task = Some(id);
        match event {
            Event::Call { id: inner, tool, arguments } => {
                let card = Card::new(inner, tool, arguments, preview);
                self.card(None, id, |task| task.inside.push(card));
            }
            Event::Permission { id: inner, about, always } => {
                self.ask(task, inner, OpenQuestion::Permission { about, always });
            }
            Event::Permitted { id: inner, allowed } => self.permitted(task, &inner, allowed),
            Event::Progress { id: inner, seconds, text } => {
                self.progress(task, &inner, seconds, text);
            }
            Event::Result { id: inner, error, text } => self.result(task, &inner, error, text),
            Event::Usage { cost, .. } => self.cost = cost,
            // Nothing else of a sub-agent is shown. Its last answer is shown as the result of the
            // call of `task`.
            _ => {}
        }
    }

    fn ask(&mut self, task: Option<&str>, id: String, what: OpenQuestion) {
        self.card(task, &id, |card| card.state = CardState::Asked);
        let task = task.map(str::to_owned);
        self.asks.push_back(Ask { id, task, what, shown: None });
    }

    fn progress(&mut self, task: Option<&str>, id: &str, seconds: u64, text: String) {
        self.card(task, id, |card| (card.seconds, card.result) = (Some(seconds), text));
    }

    fn result(&mut self, task: Option<&str>, id: &str, error: bool, text: String) {
        self.asks.retain(|ask| !ask.is(task, id));
        self.card(task, id, |card| {
            card.state = if error { CardState::Failed } else { CardState::Done };
            card.seconds = None;
            card.result = text;
        });
    }

    /// Removes and returns the first waiting call, because the user has answered its question.
    pub(super) fn answered(&mut self) -> Option<Ask> {
        let ask = self.asks.pop_front()?;
        self.next_question();
        Some(ask)
    }

    fn permitted(&mut self, task: Option<&str>, id: &str, allowed: bool) {
        let is_first = self.asks.front().is_some_and(|ask| ask.is(task, id));
        self.asks.retain(|ask| !ask.is(task, id));
        if is_first {
            self.next_question();
        }
        let state = if allowed { CardState::Running } else { CardState::Failed };
        self.card(task, id, |card| card.state = state);
    }

    /// Notes that the question which is now the first has not been on the screen yet.
    fn next_question(&mut self) {
        if let Some(next) = self.asks.front_mut() {
            next.shown = None;
        }
    }

    fn context(&mut self, event: &ContextEvent) {
        if let (ContextEvent::Started { .. }, None) = (event, self.busy) {
            self.busy = Some(Busy { since: self.now, what: Work::Compaction });
        }
        let Some(text) = change(event) else { return };
        self.close();
        match event {
            ContextEvent::Finished { .. } => {
                self.note(Tone::Good, format!("{text} · /undo · /losses"));
            }
            ContextEvent::Warning { .. } => self.note(Tone::Warn, text),
            ContextEvent::Failed { .. } | ContextEvent::Breaker { .. } => {
                self.note(Tone::Bad, text);
            }
            _ => self.note(Tone::Quiet, text),
        }
    }

    fn done(&mut self, ended: TurnEnd, reason: Option<String>, cost: Cost) {
        self.close();
        self.asks.clear();
        self.cost = cost;
        self.busy = None;
        let tone = match ended {
            TurnEnd::Answered => return,
            TurnEnd::Interrupted => Tone::Warn,
            TurnEnd::Failed | TurnEnd::Budget => Tone::Bad,
        };
        self.note(tone, reason.unwrap_or_default());
        if !self.queued.is_empty() {
            self.note(Tone::Quiet, "what you typed meanwhile goes with your next message");
        }
    }
}

#[cfg(test)]
#[path = "state_tests.rs"]
mod tests;
