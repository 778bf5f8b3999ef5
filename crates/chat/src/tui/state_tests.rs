//! The effects of keys and events.

use ratatui::crossterm::event::{
    Event as TerminalEvent, KeyCode, KeyEvent, KeyModifiers, MouseEvent, MouseEventKind,
};

use super::super::testing::*;
use super::*;
use crate::permissions::Answer;

/// The effects as text.
fn describe(effects: &[Effect]) -> Vec<String> {
    effects.iter().map(|effect| format!("{effect:?}")).collect()
}

const CONTROL: KeyModifiers = KeyModifiers::CONTROL;

#[test]
fn messages_are_sent_and_wait_until_they_are_in_the_context() {
    let mut state = state(80, 24);
    assert_eq!(describe(&types(&mut state, "hello\n")), [r#"Input(User("hello"))"#]);
    assert_eq!(state.queued, ["hello"]);
    assert!(state.is_moving());
    shows(&mut state, user("hello"));
    assert!(state.queued.is_empty());
    // While the model works, a message waits for the next request.
    assert_eq!(describe(&types(&mut state, "more\n")), [r#"Input(User("more"))"#]);
    assert_eq!(state.queued, ["more"]);
    assert_eq!(describe(&types(&mut state, "  \n")), Vec::<String>::new());
}

#[test]
fn lines_are_broken_by_keys_that_say_so() {
    let mut state = state(80, 24);
    types(&mut state, "a");
    for (code, modifiers) in [
        (KeyCode::Enter, KeyModifiers::ALT),
        (KeyCode::Enter, KeyModifiers::SHIFT),
        (KeyCode::Char('j'), CONTROL),
    ] {
        assert_eq!(describe(&key(&mut state, code, modifiers)), Vec::<String>::new());
    }
    types(&mut state, "b");
    assert_eq!(state.editor.text(), "a\n\n\nb");
}

#[test]
fn escape_interrupts_and_control_c_twice_or_control_d_leaves() {
    let mut state = state(80, 24);
    types(&mut state, "hello\n");
    assert_eq!(describe(&key(&mut state, KeyCode::Esc, KeyModifiers::NONE)), ["Input(Cancel)"]);
    let control = |state: &mut State, c| describe(&key(state, KeyCode::Char(c), CONTROL));
    types(&mut state, "draft");
    assert_eq!(control(&mut state, 'd'), Vec::<String>::new());
    // The first Ctrl-C clears the line. The second one comes too late to leave the program, so a
    // third one is needed.
    assert_eq!(control(&mut state, 'c'), Vec::<String>::new());
    assert_eq!(state.editor.text(), "");
    at(&mut state, 2_500);
    assert_eq!(control(&mut state, 'c'), ["Input(Cancel)"]);
    assert_eq!(control(&mut state, 'c'), ["Leave"]);
    assert_eq!(control(&mut state, 'd'), ["Leave"]);
}

#[test]
fn a_key_that_was_pressed_before_a_question_was_on_the_screen_is_no_answer() {
    let mut state = state(80, 24);
    types(&mut state, "go\n");
    call(&mut state, "c1", "shell", "{}");
    asks(&mut state, "c1", "run x");
    let pressed = |state: &mut State, at: u64| {
        let key = TerminalEvent::Key(KeyEvent::new(KeyCode::Char('y'), KeyModifiers::NONE));
        state.update(Happening::Typed(key, Duration::from_millis(at))).len()
    };
    // The keys were pressed before the question was drawn, but are read late.
    state.update(Happening::Time(Duration::from_secs(5)));
    assert_eq!(pressed(&mut state, 4_900), 0);
    state.drawn(Duration::from_secs(5));
    state.update(Happening::Time(Duration::from_secs(9)));
    // A key within a text that is being typed is no answer.
    for (at, answers) in [(4_999, 0), (5_399, 0), (5_450, 0), (5_849, 0), (6_249, 1)] {
        assert_eq!(pressed(&mut state, at), answers, "{at}");
    }
    assert_eq!(state.editor.text(), "yyyyy");
}

#[test]
fn questions_are_answered_one_after_the_other_and_not_by_accident() {
    let mut state = state(80, 24);
    types(&mut state, "go\n");
    for id in ["c1", "c2", "c3"] {
        call(&mut state, id, "shell", "{}");
        asks(&mut state, id, "run x");
    }
    // Text that was being typed when the question appeared is no answer.
    assert_eq!(describe(&types(&mut state, "yes")), Vec::<String>::new());
    let permission = |id: &str, answer: Answer| format!("Input(Permission({id:?}, {answer:?}))");
    at(&mut state, 500);
    assert_eq!(describe(&types(&mut state, "x\n")), Vec::<String>::new());
    assert_eq!(describe(&types(&mut state, "y")), Vec::<String>::new());
    at(&mut state, 1_000);
    assert_eq!(describe(&types(&mut state, "y")), [permission("c1", Answer::Once)]);
    assert_eq!(describe(&types(&mut state, "y")), Vec::<String>::new());
    at(&mut state, 1_500);
    assert_eq!(describe(&types(&mut state, "a")), [permission("c2", Answer::Always)]);
    at(&mut state, 2_000);
    assert_eq!(describe(&types(&mut state, "n")), [permission("c3", Answer::No)]);
    asks(&mut state, "c4", "run x");
    at(&mut state, 2_500);
    assert_eq!(describe(&types(&mut state, "N")), [permission("c4", Answer::Never)]);
    assert_eq!(state.asks.len(), 0);
    // A question that another answer decides is not asked.
    for id in ["c1", "c2"] {
        asks(&mut state, id, "run x");
    }
    shows(&mut state, Event::Permitted { id: "c2".to_owned(), allowed: true });
    assert_eq!(state.asks.iter().map(|ask| &*ask.id).collect::<Vec<_>>(), ["c1"]);
    shows(&mut state, Event::Permitted { id: "c1".to_owned(), allowed: false });
    // The question of an interrupted call is not asked.
    asks(&mut state, "c3", "run x");
    result(&mut state, "c3", true, "interrupted");
    assert_eq!(state.asks.len(), 0);
}

#[test]
fn the_view_stays_where_it_was_scrolled_to() {
    let mut state = state(80, 12);
    for n in 0..20 {
        shows(&mut state, user(&format!("message {n}")));
    }
    key(&mut state, KeyCode::PageUp, KeyModifiers::NONE);
    let before = screen(&state);
    assert!(before.contains("message 15") && !before.contains("message 19"), "{before}");
    shows(&mut state, user("new"));
    shows(&mut state, text("an answer"));
    assert_eq!(screen(&state), before);
    let wheel = |kind| {
        let (column, row, modifiers) = (1, 1, KeyModifiers::NONE);
        Happening::Terminal(TerminalEvent::Mouse(MouseEvent { kind, column, row, modifiers }))
    };
    for _ in 0..30 {
        state.update(wheel(MouseEventKind::ScrollUp));
    }
    assert!(screen(&state).starts_with("  session chat-1"), "{}", screen(&state));
    for _ in 0..30 {
        state.update(wheel(MouseEventKind::ScrollDown));
    }
    assert_eq!(state.scroll, Scroll::End);
    assert!(screen(&state).contains("an answer"), "{}", screen(&state));
}

#[test]
fn what_is_void_goes_and_what_is_folded_unfolds() {
    let mut state = state(80, 24);
    shows(&mut state, user("go"));
    shows(&mut state, Event::Thinking { text: "one\ntwo".to_owned() });
    shows(&mut state, text("void"));
    shows(&mut state, Event::Restart);
    shows(&mut state, Event::Thinking { text: "first\nlast".to_owned() });
    shows(&mut state, text("valid"));
    let before = screen(&state);
    assert!(!before.contains("void") && !before.contains("two"), "{before}");
    assert!(before.contains("thinking: last") && !before.contains("first"), "{before}");
    key(&mut state, KeyCode::Char('o'), CONTROL);
    assert!(screen(&state).contains("first"), "{}", screen(&state));
}

#[test]
fn an_interrupted_turn_says_what_becomes_of_what_was_typed() {
    let mut state = state(80, 24);
    types(&mut state, "one\ntwo\n");
    shows(&mut state, user("one"));
    let (reason, answer) = (Some("interrupted".to_owned()), String::new());
    let ended = TurnEnd::Interrupted;
    shows(&mut state, Event::Done { ended, reason, answer, cost: Cost::default() });
    assert!(!state.is_moving());
    let shown = screen(&state);
    assert!(shown.contains("interrupted\n\n  what you typed meanwhile goes with"), "{shown}");
    assert!(shown.contains("waits: two"), "{shown}");
}

#[test]
fn commands_reach_the_agent_or_say_what_is_wrong() {
    let mut state = state(80, 24);
    let sent = |state: &mut State, text| describe(&types(state, text));
    assert_eq!(sent(&mut state, "/undo\n"), ["Input(Undo)"]);
    assert_eq!(sent(&mut state, "/compact the tests\n"), [r#"Input(Compact(Some("the tests")))"#]);
    assert!(state.is_moving());
    shows(&mut state, usage(20));
    assert!(!state.is_moving());
    assert_eq!(sent(&mut state, "/nothing\n"), Vec::<String>::new());
    assert!(screen(&state).contains("there is no command /nothing"), "{}", screen(&state));
    // A prefix is completed.
    types(&mut state, "/los");
    key(&mut state, KeyCode::Tab, KeyModifiers::NONE);
    assert_eq!(state.editor.text(), "/losses");
    assert_eq!(sent(&mut state, "\n"), ["Input(Losses)"]);
    assert_eq!(sent(&mut state, "/quit\n"), ["Leave"]);
}

#[test]
fn what_was_typed_in_a_session_that_goes_on_is_found_again() {
    let mut state = state(80, 24);
    shows(&mut state, user("of yesterday"));
    types(&mut state, "of today\n");
    for expect in ["of today", "of yesterday"] {
        key(&mut state, KeyCode::Up, KeyModifiers::NONE);
        assert_eq!(state.editor.text(), expect);
    }
}

#[test]
fn a_question_of_the_model_is_answered_by_a_number_or_a_line() {
    let mut state = state(80, 24);
    let input_of = |id: &str, answer: &str| [format!("Input(Told({id:?}, Ok({answer:?})))")];
    let asks = |state: &mut State, id: &str| {
        let choices = ["one", "two"].map(str::to_owned).to_vec();
        let (id, question) = (id.to_owned(), "Which?".to_owned());
        shows(state, Event::Question { id, question, choices });
    };
    types(&mut state, "draft");
    asks(&mut state, "c1");
    // Text that was being typed when the question appeared is no answer.
    assert_eq!(describe(&types(&mut state, "2\n")), Vec::<String>::new());
    at(&mut state, 500);
    assert_eq!(describe(&types(&mut state, "\n")), input_of("c1", "draft2"));
    assert_eq!(state.asks.len(), 0);
    asks(&mut state, "c2");
    asks(&mut state, "c3");
    at(&mut state, 1_000);
    assert_eq!(describe(&types(&mut state, "2\n")), input_of("c2", "two"));
    at(&mut state, 1_500);
    // A slash command still works.
    assert_eq!(describe(&types(&mut state, "/undo\n")), ["Input(Undo)"]);
    assert_eq!(describe(&types(&mut state, "2.1\n")), input_of("c3", "2.1"));
    asks(&mut state, "c4");
    at(&mut state, 2_000);
    assert_eq!(describe(&types(&mut state, "3\n")), input_of("c4", "3"));
    assert_eq!(describe(&types(&mut state, "1\n")), [r#"Input(User("1"))"#]);
}

#[test]
fn the_lines_of_a_demo_are_typed_one_after_the_other() {
    let mut state = state(80, 24);
    let line = |about: &str, line: &str| ScriptLine { about: about.into(), line: line.into() };
    let lines = vec![line("First.", "go"), line("Second.", "/losses"), line("The end.", "")];
    state.update(Happening::Script(lines));
    assert_eq!(state.editor.text(), "go");
    assert_eq!(describe(&types(&mut state, "\n")), [r#"Input(User("go"))"#]);
    shows(&mut state, user("go"));
    shows(&mut state, usage(10));
    assert_eq!(state.editor.text(), "", "the turn is not over");
    let (ended, cost) = (TurnEnd::Answered, Cost::default());
    shows(&mut state, Event::Done { ended, reason: None, answer: String::new(), cost });
    assert_eq!(state.editor.text(), "/losses");
    assert_eq!(describe(&types(&mut state, "\n")), ["Input(Losses)"]);
    shows(&mut state, Event::Losses { lines: Vec::new() });
    assert_eq!(state.editor.text(), "");
    let notes = state.entries.iter().filter_map(|shown| match &shown.entry {
        Entry::Note(Tone::Guide, text) => Some(&**text),
        _ => None,
    });
    assert_eq!(notes.collect::<Vec<_>>(), ["First.", "Second.", "The end."]);
}
