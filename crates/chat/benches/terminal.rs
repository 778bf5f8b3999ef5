//! The cost of the terminal interface in a long session, at 200 columns and 50 rows: a key, a page
//! up, and a chunk of a streamed answer, each with the frame that shows it.

use divan::Bencher;
use epitome_chat::Event;
use epitome_chat::tui::{Happening, State, Theme, draw};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{Event as TerminalEvent, KeyCode, KeyEvent, KeyModifiers};

const SIZE: (u16, u16) = (200, 50);

fn main() {
    divan::main();
}

/// A session of 10,000 entries.
fn session() -> State {
    let mut state = State::new(Theme { colours: true }, SIZE);
    let mut shows = |event| drop(state.update(Happening::Agent(event, None)));
    for n in 0..2_500 {
        let id = n.to_string();
        shows(Event::User { text: format!("message {n}") });
        let text = "An **answer** of `some` words.\n\n```rust\nfn a() {}\n```\n".to_owned();
        shows(Event::Text { text });
        let (tool, arguments) = ("shell".to_owned(), r#"{"command":"ls"}"#.to_owned());
        shows(Event::Call { id: id.clone(), tool, arguments });
        shows(Event::Result { id, error: false, text: "a\nb\nc\n".to_owned() });
        shows(Event::Notice { text: "a note".to_owned() });
    }
    state
}

/// Measures an event together with the frame that shows it.
fn frames(bencher: Bencher<'_, '_>, happening: &Happening) {
    let mut state = session();
    let mut terminal = Terminal::new(TestBackend::new(SIZE.0, SIZE.1)).expect("memory");
    terminal.draw(|frame| draw(&state, frame)).expect("memory");
    bencher.bench_local(move || {
        state.update(happening.clone());
        terminal.draw(|frame| draw(&state, frame)).expect("memory");
    });
}

fn key(code: KeyCode) -> Happening {
    Happening::Terminal(TerminalEvent::Key(KeyEvent::new(code, KeyModifiers::NONE)))
}

#[divan::bench(sample_count = 100, sample_size = 1)]
fn a_key(bencher: Bencher<'_, '_>) {
    frames(bencher, &key(KeyCode::Char('a')));
}

#[divan::bench(sample_count = 100, sample_size = 1)]
fn a_page_up(bencher: Bencher<'_, '_>) {
    frames(bencher, &key(KeyCode::PageUp));
}

#[divan::bench(sample_count = 1_000, sample_size = 1)]
fn a_piece_of_an_answer(bencher: Bencher<'_, '_>) {
    let text = "some words of a paragraph, ".to_owned();
    frames(bencher, &Happening::Agent(Event::Text { text }, None));
}
