//! An interface without a terminal, for tests.

use std::time::Duration;

use epitome_engine::WindowUse;
use epitome_model::{MicroDollars, TokenUsage, Tokens};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{Event as TerminalEvent, KeyCode, KeyEvent, KeyModifiers};

use super::draw::draw;
use super::preview::Preview;
use super::state::{Effect, Happening, State};
use super::theme::Theme;
use crate::machine::{Cost, Event};

/// An interface of this size, with a session.
pub(super) fn state(width: u16, height: u16) -> State {
    let mut state = State::new(Theme { colours: true }, (width, height));
    let [id, model, recipe, log] =
        ["chat-1", "anthropic/scripted", "epitome", "/logs/chat-1.jsonl"].map(str::to_owned);
    shows(&mut state, Event::Session { id, model, recipe, log, summaries: None });
    state
}

pub(super) fn shows(state: &mut State, event: Event) {
    state.update(Happening::Agent(event, None));
}

pub(super) fn key(state: &mut State, code: KeyCode, modifiers: KeyModifiers) -> Vec<Effect> {
    let key = KeyEvent::new(code, modifiers);
    state.update(Happening::Terminal(TerminalEvent::Key(key)))
}

/// Types a text, with an Enter for each line feed.
pub(super) fn types(state: &mut State, text: &str) -> Vec<Effect> {
    let code = |c| if c == '\n' { KeyCode::Enter } else { KeyCode::Char(c) };
    text.chars().flat_map(|c| key(state, code(c), KeyModifiers::NONE)).collect()
}

/// Marks the screen as drawn at the current time, and then sets the time.
pub(super) fn at(state: &mut State, milliseconds: u64) {
    state.drawn(state.now);
    state.update(Happening::Time(Duration::from_millis(milliseconds)));
}

pub(super) fn user(text: &str) -> Event {
    Event::User { text: text.to_owned() }
}

pub(super) fn text(text: &str) -> Event {
    Event::Text { text: text.to_owned() }
}

pub(super) fn call(state: &mut State, id: &str, tool: &str, arguments: &str) {
    let [id, tool, arguments] = [id, tool, arguments].map(str::to_owned);
    shows(state, Event::Call { id, tool, arguments });
}

pub(super) fn edit(state: &mut State, id: &str, before: &str, after: &str) {
    let id = id.to_owned();
    let arguments = r#"{"path":"src/lib.rs"}"#.to_owned();
    let event = Event::Call { id, tool: "edit".to_owned(), arguments };
    state.update(Happening::Agent(event, Some(Preview::between(before, after))));
}

pub(super) fn result(state: &mut State, id: &str, error: bool, text: &str) {
    let id = id.to_owned();
    let text = text.to_owned();
    shows(state, Event::Result { id, error, text });
}

pub(super) fn asks(state: &mut State, id: &str, about: &str) {
    let [id, about, always] = [id, about, "this command"].map(str::to_owned);
    shows(state, Event::Permission { id, about, always });
}

pub(super) fn usage(percent: u64) -> Event {
    let usable = Tokens(200_000);
    let tokens = Tokens(usable.0 * percent / 100);
    let usable = Some(usable);
    let percent = Some(percent);
    let usage = WindowUse { tokens, usable, percent, billed: true, error: None };
    let used = TokenUsage { input: Tokens(90_000), output: Tokens(900), ..TokenUsage::default() };
    let cost = Cost { requests: 3, used, cost: MicroDollars(123_456), unpriced: 0 };
    Event::Usage { usage, cost }
}

pub(super) fn buffer(state: &State) -> Buffer {
    let (width, height) = state.size;
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(state, frame)).unwrap();
    terminal.backend().buffer().clone()
}

/// The text of the screen, without trailing blanks.
pub(super) fn screen(state: &State) -> String {
    let buffer = buffer(state);
    let mut text = String::new();
    for y in 0..buffer.area.height {
        let mut row = String::new();
        let mut x = 0;
        while x < buffer.area.width {
            let symbol = buffer[(x, y)].symbol();
            row.push_str(symbol);
            // A wide character also takes the next cell.
            x += u16::try_from(super::text::width_of(symbol).max(1)).unwrap();
        }
        text.push_str(row.trim_end());
        text.push('\n');
    }
    text
}
