//! Handles keys, pastes and the mouse.

use std::time::Duration;

use ratatui::crossterm::event::{
    Event as TerminalEvent, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseEventKind,
};

use super::editor::Move;
use super::entry::{Entry, Tone};
use super::state::{Ask, Busy, Effect, OpenQuestion, Scroll, State, Work};
use crate::commands::{SlashOutcome, completions, parse};
use crate::machine::Input;
use crate::permissions::Answer;

/// The time within which a second Ctrl-C leaves the program.
const ARMED: Duration = Duration::from_secs(2);
/// A key that is pressed within this time after a question appears is no answer, because it was
/// probably meant for something else. For the question whether a call may run, this time begins
/// again with each key that is typed into the input.
const UNSEEN: Duration = Duration::from_millis(400);
/// The lines that a notch of the mouse wheel scrolls.
const NOTCH: isize = 3;

impl State {
    pub(super) fn terminal(&mut self, event: TerminalEvent) -> Vec<Effect> {
        match event {
            TerminalEvent::Key(key) if key.kind != KeyEventKind::Release => self.key(key),
            TerminalEvent::Paste(text) => {
                self.editor.insert(&text);
                Vec::new()
            }
            TerminalEvent::Mouse(mouse) => {
                match mouse.kind {
                    MouseEventKind::ScrollUp => self.scroll_by(-NOTCH),
                    MouseEventKind::ScrollDown => self.scroll_by(NOTCH),
                    _ => {}
                }
                Vec::new()
            }
            TerminalEvent::Resize(width, height) => {
                self.size = (width, height);
                vec![Effect::Redraw]
            }
            TerminalEvent::Key(_) | TerminalEvent::FocusGained | TerminalEvent::FocusLost => {
                Vec::new()
            }
        }
    }

    fn key(&mut self, key: KeyEvent) -> Vec<Effect> {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        if let (KeyCode::Char('c'), true) = (key.code, control) {
            return self.control_c();
        }
        self.armed = None;
        if let Some(effects) = self.anywhere(key, control) {
            return effects;
        }
        match self.asks.front().map(|ask| &ask.what) {
            Some(OpenQuestion::Permission { .. }) => self.answer(key, control),
            Some(OpenQuestion::Question { .. }) | None => self.edit(key, control),
        }
    }

    /// The first Ctrl-C clears the input, or interrupts if the input is empty. A second one within
    /// two seconds leaves.
    fn control_c(&mut self) -> Vec<Effect> {
        if self.armed.is_some_and(|until| until > self.now) {
            return vec![Effect::Leave];
        }
        self.armed = Some(self.now + ARMED);
        if !self.editor.is_empty() {
            self.editor.take();
            return Vec::new();
        }
        vec![Effect::Input(Input::Cancel)]
    }

    /// Handles keys that work everywhere; `None` if this key is none of them.
    fn anywhere(&mut self, key: KeyEvent, control: bool) -> Option<Vec<Effect>> {
        let page = isize::try_from(self.transcript_height().saturating_sub(1).max(1)).unwrap_or(1);
        match key.code {
            KeyCode::Esc => return Some(vec![Effect::Input(Input::Cancel)]),
            KeyCode::PageUp => self.scroll_by(-page),
            KeyCode::PageDown => self.scroll_by(page),
            KeyCode::Home if control => self.scroll = Scroll::At(0, 0),
            KeyCode::End if control => self.scroll = Scroll::End,
            KeyCode::Char('o') if control => self.folded = !self.folded,
            KeyCode::Char('l') if control => return Some(vec![Effect::Redraw]),
            KeyCode::Char('z') if control => return Some(vec![Effect::Suspend]),
            _ => return None,
        }
        Some(Vec::new())
    }

    /// Handles a key while the user is asked whether a call may run. Keys are no answer while the
    /// user is typing, so that a letter within a text does not answer the question.
    fn answer(&mut self, key: KeyEvent, control: bool) -> Vec<Effect> {
        let Some(ask) = self.asks.front_mut() else { return Vec::new() };
        let answer = match key.code {
            KeyCode::Char('y') => Some(Answer::Once),
            KeyCode::Char('a') => Some(Answer::Always),
            KeyCode::Char('n') => Some(Answer::No),
            KeyCode::Char('N') => Some(Answer::Never),
            _ => None,
        };
        let Some(answer) = answer.filter(|_| !control && ask.is_seen(self.typed)) else {
            if let (KeyCode::Char(_) | KeyCode::Backspace, false) = (key.code, control) {
                ask.shown = ask.shown.map(|shown| shown.max(self.typed));
                return self.edit(key, control);
            }
            return Vec::new();
        };
        let Some(ask) = self.answered() else { return Vec::new() };
        let input = Input::Permission(ask.id.as_str().into(), answer);
        vec![Effect::Input(ask.input(input))]
    }

    /// Answers the model's question with the typed text, or with the choice whose number was typed.
    fn answer_question(&mut self, typed: String) -> Vec<Effect> {
        let Some(ask) = self.answered() else { return Vec::new() };
        let answer = match &ask.what {
            OpenQuestion::Question { choices, .. } => chosen(&typed, choices).unwrap_or(typed),
            OpenQuestion::Permission { .. } => typed,
        };
        vec![Effect::Input(Input::Told(ask.id.into(), Ok(answer)))]
    }

    fn edit(&mut self, key: KeyEvent, control: bool) -> Vec<Effect> {
        let alt = key.modifiers.contains(KeyModifiers::ALT);
        let shift = key.modifiers.contains(KeyModifiers::SHIFT);
        let width = self.editor_width();
        match key.code {
            KeyCode::Enter if alt || shift || control => self.editor.insert("\n"),
            KeyCode::Enter => return self.enter(),
            KeyCode::Tab => self.complete(),
            KeyCode::Char(c) if control => return self.control(c),
            KeyCode::Char('b') if alt => self.editor.go(Move::WordLeft),
            KeyCode::Char('f') if alt => self.editor.go(Move::WordRight),
            KeyCode::Char('d') if alt => self.editor.delete(Move::WordRight),
            KeyCode::Char(c) => self.editor.insert(c.encode_utf8(&mut [0; 4])),
            KeyCode::Backspace if alt || control => self.editor.delete(Move::WordLeft),
            KeyCode::Backspace => self.editor.delete(Move::Left),
            KeyCode::Delete => self.editor.delete(Move::Right),
            KeyCode::Left if alt || control => self.editor.go(Move::WordLeft),
            KeyCode::Right if alt || control => self.editor.go(Move::WordRight),
            KeyCode::Left => self.editor.go(Move::Left),
            KeyCode::Right => self.editor.go(Move::Right),
            KeyCode::Home => self.editor.go(Move::LineStart),
            KeyCode::End => self.editor.go(Move::LineEnd),
            KeyCode::Up => self.editor.up(width),
            KeyCode::Down => self.editor.down(width),
            _ => {}
        }
        Vec::new()
    }

    fn control(&mut self, c: char) -> Vec<Effect> {
        let width = self.editor_width();
        match c {
            'd' if self.editor.is_empty() => return vec![Effect::Leave],
            'd' => self.editor.delete(Move::Right),
            'j' => self.editor.insert("\n"),
            'a' => self.editor.go(Move::LineStart),
            'e' => self.editor.go(Move::LineEnd),
            'b' => self.editor.go(Move::Left),
            'f' => self.editor.go(Move::Right),
            'p' => self.editor.up(width),
            'n' => self.editor.down(width),
            'h' => self.editor.delete(Move::Left),
            'w' => self.editor.delete(Move::WordLeft),
            'u' => self.editor.delete(Move::LineStart),
            'k' => self.editor.delete(Move::LineEnd),
            _ => {}
        }
        Vec::new()
    }

    fn enter(&mut self) -> Vec<Effect> {
        if self.editor.text().trim().is_empty() {
            return Vec::new();
        }
        let is_question = self.asks.front().is_some_and(Ask::takes_text);
        // An Enter that was pressed too soon after the question appeared does not send the text as
        // an answer.
        if is_question && !self.asks.front().is_some_and(|ask| ask.is_seen(self.typed)) {
            return Vec::new();
        }
        let text = self.editor.take();
        self.line_sent();
        let Some(done) = parse(&text) else {
            return if is_question { self.answer_question(text) } else { vec![self.send(text)] };
        };
        self.scroll = Scroll::End;
        self.push(Entry::User(text.trim().to_owned()));
        match done {
            SlashOutcome::Input(input) => {
                if let (Input::Compact(_), None) = (&input, self.busy) {
                    self.busy = Some(Busy { since: self.now, what: Work::Compaction });
                }
                vec![Effect::Input(input)]
            }
            SlashOutcome::Help => {
                self.push(Entry::Help);
                Vec::new()
            }
            SlashOutcome::Quit => vec![Effect::Leave],
            SlashOutcome::Wrong(why) => {
                self.note(Tone::Bad, why);
                Vec::new()
            }
        }
    }

    /// Completes a command to the longest prefix that all matching commands have in common.
    fn complete(&mut self) {
        let found = completions(self.editor.text());
        let Some((first, others)) = found.split_first() else { return };
        let common = others.iter().fold(first.name, |common, other| {
            let alike = common.bytes().zip(other.name.bytes()).take_while(|(a, b)| a == b).count();
            &common[..alike]
        });
        let blank = if others.is_empty() && !first.arguments.is_empty() { " " } else { "" };
        self.editor.set(&format!("{common}{blank}"));
    }
}

impl Ask {
    /// Whether the question was on the screen for long enough when a key was pressed at `at`, so
    /// that the key is an answer to it.
    pub(super) fn is_seen(&self, at: Duration) -> bool {
        self.shown.is_some_and(|shown| at >= shown + UNSEEN)
    }
}

/// The choice whose number, from 1, was typed; `None` for any other text.
fn chosen(typed: &str, choices: &[String]) -> Option<String> {
    let number: usize = typed.trim().parse().ok()?;
    choices.get(number.checked_sub(1)?).cloned()
}
