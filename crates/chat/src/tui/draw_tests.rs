//! Whole screens at several sizes.

use epitome_engine::{Content, ContentShare};
use epitome_model::Tokens;
use epitome_passes::{Event as ContextEvent, EventReason};
use epitome_render::visible;
use proptest::prelude::*;
use ratatui::crossterm::event::{Event as TerminalEvent, KeyCode, KeyModifiers};

use super::super::state::Happening;
use super::super::testing::*;
use super::super::theme::Theme;
use super::*;
use crate::machine::{Cost, Event, TurnEnd};

/// A turn with reasoning, parallel calls, a change, and an answer.
fn turn(state: &mut State) {
    shows(state, user("Why does the test fail? Fix it, please."));
    shows(state, usage(45));
    shows(state, Event::Thinking { text: "I should look at the test.\nThen fix it.".to_owned() });
    shows(state, text("I look at the project first."));
    call(state, "c1", "read", r#"{"path":"src/lib.rs"}"#);
    call(state, "c2", "shell", r#"{"command":"cargo test"}"#);
    call(state, "c3", "todo", r#"{"items":[]}"#);
    result(state, "c1", false, "fn a() {}\nfn b() {}\n");
    let lines: String = (1..=30).map(|n| format!("running test {n}\n")).collect();
    result(state, "c2", true, &format!("{lines}test a ... FAILED\nexit status: 101"));
    result(state, "c3", false, "[x] look\n[>] fix");
    edit(state, "c4", "fn a() -> u32 {\n    41\n}\n", "fn a() -> u32 {\n    42\n}\n");
    result(state, "c4", false, "edited src/lib.rs at line 2");
    let markdown = "## Done\n\nIt returns **42** now:\n\n- `a` is *fixed*\n- nothing else\n\n\
                    ```rust\nfn a() -> u32 { 42 } // the answer\n```\n";
    shows(state, text(markdown));
}

fn done(ended: TurnEnd, reason: Option<&str>) -> Event {
    let reason = reason.map(str::to_owned);
    Event::Done { ended, reason, answer: String::new(), cost: Cost::default() }
}

fn compacted() -> Event {
    let by_stage = [("results".to_owned(), 31), ("stale".to_owned(), 12)].into();
    let (before, after) = (Tokens(150_000), Tokens(42_000));
    let event = ContextEvent::Finished {
        why: EventReason::Trigger,
        before,
        after,
        by_stage,
        over_target: None,
        no_summary: None,
    };
    Event::Context { event }
}

#[test]
fn a_turn_is_shown_at_two_sizes() {
    for (width, height) in [(80, 24), (200, 50)] {
        let mut state = state(width, height);
        turn(&mut state);
        shows(&mut state, done(TurnEnd::Answered, None));
        insta::assert_snapshot!(format!("turn_{width}x{height}"), screen(&state));
    }
}

#[test]
fn a_question_shows_the_command_and_the_change() {
    let mut state = state(80, 24);
    types(&mut state, "Fix it.\n");
    shows(&mut state, user("Fix it."));
    let command = "cargo test --workspace --all-features \\\n  && git push";
    let arguments = serde_json::json!({"command": command}).to_string();
    call(&mut state, "c1", "shell", &arguments);
    edit(&mut state, "c2", "41\n", "42\n");
    asks(&mut state, "c1", &format!("run {command}"));
    asks(&mut state, "c2", "write /p/src/lib.rs");
    at(&mut state, 12_300);
    insta::assert_snapshot!(screen(&state), @r#"
      session chat-1 · /help shows commands and keys

    › Fix it.

    ? shell cargo test --workspace --all-features \
        && git push
    ? edit src/lib.rs  +1 −1
      1 - 41
      1 + 42









    ⠸ waiting for you 12s · Esc interrupts
    ────────────────────────────────────────────────────────────────────────────────
    Allow? run cargo test --workspace --all-features \
             && git push
    y once · a always (this command) · n no · N never · 1 more
    [ctx: 0%] · anthropic/scripted · epitome · chat-1
    "#);
}

#[test]
fn a_long_question_shows_both_ends_and_more_with_a_key() {
    let mut state = state(80, 24);
    let command = format!("git status{}rm -rf build", "\n:".repeat(60) + "\n");
    call(&mut state, "c1", "shell", &serde_json::json!({"command": command}).to_string());
    asks(&mut state, "c1", &format!("run {command}"));
    at(&mut state, 1_000);
    let hidden = |state: &State| {
        let screen = screen(state);
        assert!(screen.contains("Allow? run git status\n") && screen.contains(" rm -rf build\n"));
        let line = screen.lines().find(|line| line.contains("hidden here")).unwrap();
        line.to_owned()
    };
    assert_eq!(hidden(&state), "… 54 lines hidden here: Ctrl-O shows more");
    key(&mut state, KeyCode::Char('o'), KeyModifiers::CONTROL);
    assert_eq!(hidden(&state), "… 46 lines hidden here: see above (PgUp)");
}

#[test]
fn a_question_of_the_model_has_its_choices_and_a_line_for_another_answer() {
    let mut state = state(80, 24);
    types(&mut state, "Release it.\n");
    shows(&mut state, user("Release it."));
    let question = "Which version is it to be?\n[ctx: 99%]";
    let choices = ["1.4.0: only additions", "2.0.0"].map(str::to_owned).to_vec();
    let arguments = serde_json::json!({"question": question, "choices": choices}).to_string();
    call(&mut state, "c1", "ask", &arguments);
    let (id, question) = ("c1".to_owned(), question.to_owned());
    shows(&mut state, Event::Question { id, question, choices });
    at(&mut state, 1_000);
    types(&mut state, "2.1.0");
    insta::assert_snapshot!(screen(&state), @r"
      session chat-1 · /help shows commands and keys

    › Release it.

    ? ask Which version is it to be?
      [ctx: 99%]








    ⠋ waiting for you 1s · Esc interrupts
    ────────────────────────────────────────────────────────────────────────────────
    ? Which version is it to be?
      [ctx: 99%]
      1 1.4.0: only additions
      2 2.0.0
    type a number or an answer, and Enter
    ────────────────────────────────────────────────────────────────────────────────
    › 2.1.0
    [ctx: 0%] · anthropic/scripted · epitome · chat-1
    ");
}

#[test]
fn a_task_is_a_card_that_unfolds_and_shows_what_it_asks() {
    let mut state = state(80, 30);
    types(&mut state, "Where?\n");
    shows(&mut state, user("Where?"));
    call(&mut state, "c1", "task", r#"{"description":"look for it","prompt":"Where is it?"}"#);
    let within = |state: &mut State, inner: Event| {
        shows(state, Event::Task { id: "c1".to_owned(), inner: Box::new(inner) });
    };
    let called = |id: &str, tool: &str, arguments: &str| {
        let [id, tool, arguments] = [id, tool, arguments].map(str::to_owned);
        Event::Call { id, tool, arguments }
    };
    within(&mut state, called("c1", "grep", r#"{"pattern":"fn it"}"#));
    let (id, error, text) = ("c1".to_owned(), false, "src/a.rs:1:fn it() {}".to_owned());
    within(&mut state, Event::Result { id, error, text });
    within(&mut state, called("c2", "shell", r#"{"command":"cargo doc"}"#));
    insta::assert_snapshot!(screen(&state), @r"
      session chat-1 · /help shows commands and keys

    › Where?

    ● task look for it
      ⎿ 2 calls · shell cargo doc




















    ⠋ working 0s · Esc interrupts
    ────────────────────────────────────────────────────────────────────────────────
    ›
    [ctx: 0%] · anthropic/scripted · epitome · chat-1
    ");
    let [id, about, always] = ["c2", "run cargo doc", "this command"].map(str::to_owned);
    within(&mut state, Event::Permission { id, about, always });
    at(&mut state, 1_000);
    insta::assert_snapshot!(screen(&state), @r"
      session chat-1 · /help shows commands and keys

    › Where?

    ● task look for it
      ⎿ 2 calls · shell cargo doc
      ? shell cargo doc


















    ⠋ waiting for you 1s · Esc interrupts
    ────────────────────────────────────────────────────────────────────────────────
    Allow? run cargo doc
    y once · a always (this command) · n no · N never
    [ctx: 0%] · anthropic/scripted · epitome · chat-1
    ");
    let answer = types(&mut state, "y");
    let expect = r#"[Input(Task("c1", Permission("c2", Once)))]"#;
    assert_eq!(format!("{answer:?}"), expect);
    within(&mut state, Event::Permitted { id: "c2".to_owned(), allowed: true });
    within(&mut state, Event::Result { id: "c2".to_owned(), error: true, text: "no".to_owned() });
    result(&mut state, "c1", false, "It is in src/a.rs, line 1.");
    insta::assert_snapshot!(screen(&state), @r"
      session chat-1 · /help shows commands and keys

    › Where?

    ● task look for it
      ⎿ 2 calls
      ⎿ It is in src/a.rs, line 1.



















    ⠋ working 1s · Esc interrupts
    ────────────────────────────────────────────────────────────────────────────────
    ›
    [ctx: 0%] · anthropic/scripted · epitome · chat-1
    ");
    key(&mut state, KeyCode::Char('o'), KeyModifiers::CONTROL);
    insta::assert_snapshot!(screen(&state), @r"
      session chat-1 · /help shows commands and keys

    › Where?

    ● task look for it
      ● grep fn it
        ⎿ src/a.rs:1:fn it() {}
      ✗ shell cargo doc
        ⎿ no
      ⎿ It is in src/a.rs, line 1.
















    ⠋ working 1s · Esc interrupts
    ────────────────────────────────────────────────────────────────────────────────
    ›
    [ctx: 0%] · anthropic/scripted · epitome · chat-1
    ");
}

#[test]
fn a_compaction_is_one_line_and_the_status_bar_has_its_colour() {
    let mut state = state(80, 12);
    shows(&mut state, usage(45));
    shows(&mut state, compacted());
    shows(&mut state, Event::Undone { before: Tokens(42_000), after: Tokens(150_000) });
    insta::assert_snapshot!(screen(&state), @r"
      session chat-1 · /help shows commands and keys

      context compacted (150.0k → 42.0k tokens): results 31, stale 12 · /undo ·
      /losses
      compaction taken back (42.0k → 150.0k tokens)




    ────────────────────────────────────────────────────────────────────────────────
    ›
    [ctx: 45%] · 90.0k of 200.0k · $0.12 · anthropic/scripted · epitome · chat-1
    ");
    let theme = Theme { colours: true };
    for (percent, expect) in [(69, theme.good()), (70, theme.fill(70)), (80, theme.fill(80))] {
        shows(&mut state, usage(percent));
        let buffer = buffer(&state);
        let status = &buffer[(0, 11)];
        assert_eq!(status.symbol(), "[");
        assert_eq!(status.fg, expect.fg.unwrap(), "{percent}");
        assert_eq!(status.modifier, expect.add_modifier, "{percent}");
    }
    assert_ne!(theme.fill(69), theme.fill(70));
    assert_ne!(theme.fill(79), theme.fill(80));
}

#[test]
fn the_window_is_a_bar_by_kind() {
    let mut state = state(80, 24);
    let Event::Usage { usage, .. } = usage(45) else { panic!("it is one") };
    let share = |(content, tokens)| ContentShare { content, tokens: Tokens(tokens), blocks: 3 };
    let contents = [
        (Content::Overhead, 1_200),
        (Content::Prompt, 800),
        (Content::User, 3_000),
        (Content::Results, 70_000),
        (Content::Summaries, 15_000),
    ];
    types(&mut state, "/context\n");
    let contents = contents.map(share).to_vec();
    shows(&mut state, Event::Window { usage, contents, window: Some(Tokens(216_000)) });
    insta::assert_snapshot!(screen(&state), @r"
      session chat-1 · /help shows commands and keys

    › /context

      context 45%  90.0k of 200.0k tokens
      tools               1.2k   0%  █
      prompt               800   0%  █
      your messages       3.0k   1%  █
      results            70.0k  35%  █████████████████
      summary, digest    15.0k   7%  ████
      free              110.0k  55%
      16.0k of a window of 216.0k are kept for the answer









    ────────────────────────────────────────────────────────────────────────────────
    ›
    [ctx: 45%] · 90.0k of 200.0k · anthropic/scripted · epitome · chat-1
    ");
}

#[test]
fn help_lists_commands_and_keys() {
    let mut state = state(80, 50);
    types(&mut state, "/help\n");
    insta::assert_snapshot!(screen(&state));
}

#[test]
fn what_is_typed_is_shown_with_what_waits_and_what_fits() {
    let mut state = state(80, 16);
    types(&mut state, "First message.\n");
    shows(&mut state, user("First message."));
    at(&mut state, 65_000);
    types(&mut state, "And the tests, too.\n");
    types(&mut state, "/co");
    insta::assert_snapshot!(screen(&state), @r"
      session chat-1 · /help shows commands and keys

    › First message.






    ⠋ working 1m 05s · Esc interrupts
      waits: And the tests, too.
      /compact [FOCUS]    make the context small now; FOCUS weighs more
      /context            what fills the window
    ────────────────────────────────────────────────────────────────────────────────
    › /co
    [ctx: 0%] · anthropic/scripted · epitome · chat-1
    ");
    key(&mut state, KeyCode::Char('u'), KeyModifiers::CONTROL);
    state.update(Happening::Terminal(TerminalEvent::Paste("two\r\nlines 日本語".to_owned())));
    insta::assert_snapshot!(screen(&state), @r"
      session chat-1 · /help shows commands and keys

    › First message.







    ⠋ working 1m 05s · Esc interrupts
      waits: And the tests, too.
    ────────────────────────────────────────────────────────────────────────────────
    › two
      lines 日本語
    [ctx: 0%] · anthropic/scripted · epitome · chat-1
    ");
}

#[test]
fn a_small_terminal_has_the_essentials() {
    let mut state = state(20, 5);
    turn(&mut state);
    types(&mut state, "more\n");
    let expect =
        ["▏ fn a() -> u32 { 42", "▏  } // the answer", "⠋ working 0s · Esc…", "›", "[ctx: 45%]"];
    assert_eq!(screen(&state).lines().collect::<Vec<_>>(), expect);
    asks(&mut state, "c9", "run rm -rf build");
    at(&mut state, 500);
    let expect = [
        "▏  } // the answer",
        "Allow? run rm -rf bu",
        "… 1 line hidden her…",
        "y once a always n no",
        "[ctx: 45%]",
    ];
    assert_eq!(screen(&state).lines().collect::<Vec<_>>(), expect);
}

#[test]
fn without_colours_there_are_none() {
    let mut state = state(80, 24);
    state.theme = Theme { colours: false };
    turn(&mut state);
    asks(&mut state, "c4", "run ls");
    let buffer = buffer(&state);
    let is_plain = |cell: &ratatui::buffer::Cell| {
        [cell.fg, cell.bg].iter().all(|it| *it == ratatui::style::Color::Reset)
    };
    assert!(buffer.content.iter().all(is_plain));
}

/// Checks that no line, and so no cell, contains characters that a terminal would interpret or
/// hide.
fn check_inert(state: &State) {
    let width = usize::from(state.size.0);
    let entries = state.entries.iter();
    let shown = entries.flat_map(|shown| {
        shown.lines(width, state.folded, state.theme).iter().cloned().collect::<Vec<_>>()
    });
    for line in shown.chain(state.below().lines) {
        let text = line.to_string();
        assert_eq!(visible(&text), text);
        assert!(!text.contains(char::is_control), "{text:?}");
    }
    for cell in &buffer(state).content {
        assert!(!cell.symbol().contains(char::is_control), "{cell:?}");
    }
}

const HOSTILE: &str = "a\u{1b}[2J\u{1b}]0;t\u{7}b\u{9b}31mc\u{202e}d\rx\u{8}\n\t`e\u{1b}c`\n\
                       ```\n\u{1b}P\n```\n| \u{1b}x |\n|-|\n[l](\u{1b}u) \
                       👩\u{200d}👧 日本\u{301}\u{200b}";

#[test]
fn hostile_text_is_never_obeyed_wherever_it_comes_from() {
    let mut state = state(60, 60);
    state.folded = false;
    shows(&mut state, user(HOSTILE));
    shows(&mut state, text(HOSTILE));
    shows(&mut state, Event::Thinking { text: HOSTILE.to_owned() });
    call(&mut state, HOSTILE, HOSTILE, HOSTILE);
    let arguments = serde_json::json!({"command": HOSTILE}).to_string();
    call(&mut state, "c1", "shell", &arguments);
    result(&mut state, "c1", true, HOSTILE);
    edit(&mut state, "c2", HOSTILE, "x");
    asks(&mut state, "c2", HOSTILE);
    shows(&mut state, Event::Notice { text: HOSTILE.to_owned() });
    shows(&mut state, Event::Losses { lines: vec![HOSTILE.to_owned()] });
    let names = || HOSTILE.to_owned();
    shows(
        &mut state,
        Event::Session {
            id: names(),
            model: names(),
            recipe: names(),
            log: names(),
            summaries: None,
        },
    );
    check_inert(&state);
    // Visible signs are shown in place of control characters, which are not just left out.
    let escapes = |shown: &super::super::entry::LaidOutEntry| {
        let lines = shown.lines(60, false, Theme { colours: true });
        lines.iter().any(|line| line.to_string().contains('␛'))
    };
    let hidden = state.entries.iter().position(|shown| !escapes(shown));
    // The first entry belongs to the harmless session.
    assert_eq!(hidden, Some(0));
    assert!(state.entries[1..].iter().all(escapes));
    state.update(Happening::Terminal(TerminalEvent::Paste(HOSTILE.to_owned())));
    check_inert(&state);
    types(&mut state, "\n");
    check_inert(&state);
}

#[test]
fn ten_thousand_entries_cost_as_much_as_those_that_are_seen() {
    let mut state = state(80, 24);
    for n in 0..10_000 {
        shows(&mut state, user(&format!("message {n}")));
    }
    let laid_out = |state: &State| state.entries.iter().filter(|it| it.is_laid_out()).count();
    screen(&state);
    assert!(laid_out(&state) <= 24, "{}", laid_out(&state));
    for _ in 0..10 {
        key(&mut state, KeyCode::PageUp, KeyModifiers::NONE);
        screen(&state);
    }
    assert!(laid_out(&state) <= 300, "{}", laid_out(&state));
}

fn happening() -> impl Strategy<Value = Happening> {
    let codes = prop_oneof![
        Just(KeyCode::Enter),
        Just(KeyCode::Up),
        Just(KeyCode::Down),
        Just(KeyCode::Left),
        Just(KeyCode::Backspace),
        Just(KeyCode::PageUp),
        Just(KeyCode::PageDown),
        Just(KeyCode::Tab),
        Just(KeyCode::Esc),
        prop::sample::select(vec!['a', 'y', 'o', 'k', 'w', 'j', '/', '日', '\u{301}'])
            .prop_map(KeyCode::Char),
    ];
    let modifiers = prop_oneof![
        4 => Just(KeyModifiers::NONE),
        1 => Just(KeyModifiers::CONTROL),
        1 => Just(KeyModifiers::ALT),
    ];
    let key = (codes, modifiers).prop_map(|(code, modifiers)| {
        let key = ratatui::crossterm::event::KeyEvent::new(code, modifiers);
        Happening::Terminal(TerminalEvent::Key(key))
    });
    let id = || prop::sample::select(vec!["c1", "c2"]).prop_map(str::to_owned);
    let event = prop_oneof![
        Just(user(HOSTILE)),
        Just(text(HOSTILE)),
        Just(Event::Thinking { text: HOSTILE.to_owned() }),
        Just(Event::Restart),
        Just(usage(75)),
        Just(compacted()),
        Just(done(TurnEnd::Interrupted, Some("interrupted"))),
        id().prop_map(|id| Event::Call {
            id,
            tool: "shell".to_owned(),
            arguments: HOSTILE.to_owned()
        }),
        id().prop_map(|id| Event::Permission {
            id,
            about: HOSTILE.to_owned(),
            always: "this".to_owned()
        }),
        id().prop_map(|id| Event::Result { id, error: false, text: HOSTILE.to_owned() }),
    ];
    prop_oneof![
        4 => key,
        4 => event.prop_map(|event| Happening::Agent(event, None)),
        1 => (0..40_u16, 0..12_u16)
            .prop_map(|(width, height)| Happening::Terminal(TerminalEvent::Resize(width, height))),
        1 => Just(Happening::Terminal(TerminalEvent::Paste(HOSTILE.to_owned()))),
    ]
}

proptest! {
    #[test]
    fn whatever_happens_it_can_be_drawn(happenings in prop::collection::vec(happening(), 0..60)) {
        let mut state = state(20, 5);
        for happening in happenings {
            state.update(happening);
            check_inert(&state);
        }
    }
}
