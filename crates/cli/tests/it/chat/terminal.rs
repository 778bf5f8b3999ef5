//! The chat agent in a real terminal.

use std::process::Command;

use model_server::{Script, Step};
use serde_json::json;

use super::{Chat, calls};
use crate::world::screen::Screen;

/// Starts the chat in a terminal; none if there is no tmux.
fn start(chat: &Chat, size: (u16, u16), args: &[&str]) -> Option<Screen> {
    // A test may have several screens.
    Screen::start(&chat.world, &args.join("-"), size, &chat.command("anthropic", args))
}

/// Pastes a message, and sends it. The scripted server needs long ones.
fn say(screen: &Screen, text: &str) {
    screen.paste(&format!("{text}{}", " Take your time.".repeat(40)));
}

/// The last output of the chat.
const END: &str = "goes on with this session\n";

/// A turn that reads, asks, changes a file, runs a command, and answers.
fn fix() -> Chat {
    Chat::new([
        calls(&[
            ("read", json!({"path": "src/lib.rs"})),
            ("edit", json!({"path": "src/lib.rs", "old_string": "41", "new_string": "42"})),
        ]),
        calls(&[("shell", json!({"command": "cat src/lib.rs && exit 3"}))]),
        Step::text(
            "It returns **42** now, \u{1b}[31mred\u{1b}[0m and \u{1b}]0;owned\u{7} 日本語:\n\n\
             ```rust\npub fn answer() -> u32 {\n    42\n}\n```\n",
        ),
    ])
}

#[test]
fn a_turn_with_questions_is_shown_and_the_terminal_is_as_it_was() {
    for size in [(80, 24), (200, 50)] {
        let chat = fix();
        let Some(screen) = start(&chat, size, &[]) else { return };
        let name = |part: &str| format!("terminal_{}x{}_{part}", size.0, size.1);
        let first = screen.wait("of 184.0k · anthropic/scripted · epitome · chat-2");
        insta::assert_snapshot!(name("first"), first);
        say(&screen, "Fix the answer.");
        let change = "  2 -     41\n  2 +     42\n";
        screen.wait_all(&[change, "Allow? write [home]/project/src/lib.rs\n", "y once"]);
        screen.keys(&["y"]);
        screen.wait_all(&["Allow? run cat src/lib.rs && exit 3\n", "(this command)"]);
        screen.keys(&["a"]);
        screen.wait("日本語");
        insta::assert_snapshot!(name("turn"), screen.wait("\n\n──"));
        assert_eq!(chat.refused(), Vec::<String>::new());
        assert_ne!(screen.tmux(&["display-message", "-p", "-t", "t", "#{pane_title}"]), "owned\n");
        screen.keys(&["C-d"]);
        screen.ends(END);
    }
}

#[test]
fn the_model_asks_and_patches_and_what_is_refused_for_good_is_asked_no_more() {
    let lines = ["*** Update File: src/lib.rs", "-    41", "+    42", "*** Add File: b.txt", "+b"];
    let patch = format!("*** Begin Patch\n{}\n*** End Patch", lines.join("\n"));
    let chat = Chat::new([
        calls(&[("ask", json!({"question": "Which one?", "choices": ["the first", "the last"]}))]),
        calls(&[("patch", json!({"patch": patch}))]),
        calls(&[("shell", json!({"command": "touch ran"}))]),
        calls(&[("shell", json!({"command": "touch ran"}))]),
        Step::text("So be it."),
    ]);
    let Some(screen) = start(&chat, (80, 24), &[]) else { return };
    screen.wait("  session chat-");
    say(&screen, "Do it.");
    let question = "? Which one?\n  1 the first\n  2 the last\n";
    screen.wait_all(&[question, "type a number or an answer, and Enter"]);
    screen.line("2");
    let patch = "? patch src/lib.rs, b.txt  +2 −1\n  src/lib.rs\n";
    let always = "always (writing in this project)";
    screen.wait_all(&["● ask Which one?\n  ⎿ the last\n", patch, always]);
    screen.keys(&["y"]);
    screen.wait("always (this command)");
    screen.keys(&["N"]);
    let done = screen.wait("So be it.");
    assert_eq!(done.matches("✗ shell touch ran").count(), 2, "{done}");
    screen.keys(&["C-d"]);
    screen.ends(END);
    assert_eq!(chat.refused(), Vec::<String>::new());
    assert!(chat.sent()[1].contains("the last"));
    let project = chat.world.home.join("project");
    let text = std::fs::read_to_string(project.join("src/lib.rs")).expect("a file");
    assert!(text.contains("42") && project.join("b.txt").exists() && !project.join("ran").exists());
}

#[test]
fn a_task_asks_is_interrupted_and_leaves_a_session_that_goes_on() {
    let prompt = format!("Run it. {}", "Take your time. ".repeat(40));
    let chat = Chat::new([
        calls(&[("task", json!({"description": "run it", "prompt": prompt}))]),
        calls(&[("shell", json!({"command": "echo $$ > pid; exec sleep 600"}))]),
    ]);
    let Some(screen) = start(&chat, (80, 24), &[]) else { return };
    screen.wait("  session chat-");
    say(&screen, "Do it.");
    screen.wait_all(&["● task run it\n  ⎿ 1 call · shell echo $$ > pid;", "y once"]);
    screen.keys(&["y"]);
    let pid = chat.world.home.join("project/pid");
    let begun = || std::fs::read_to_string(&pid).ok().filter(|pid| pid.ends_with('\n'));
    let pid = std::iter::repeat_with(begun).flatten().next().expect("it is asked until it is");
    screen.keys(&["Escape"]);
    screen.wait("✗ task run it\n  ⎿ 1 call\n  ⎿ Interrupted by the user");
    screen.keys(&["C-o"]);
    screen.wait("  ✗ shell echo $$ > pid; exec sleep 600\n    ⎿ Interrupted by the user");
    chat.server.play(Script::new([Step::text("As you like.")]));
    say(&screen, "Go on.");
    screen.wait("As you like.");
    screen.keys(&["C-d"]);
    screen.ends(END);
    let alive = Command::new("kill").args(["-0", pid.trim()]).output().expect("kill runs");
    assert!(!alive.status.success(), "{pid} still runs");
    assert_eq!(chat.refused(), Vec::<String>::new());
}

#[test]
fn a_context_is_compacted_looked_at_and_taken_back() {
    let long = "cat /dev/zero | head -c 40000 | tr '\\0' 'x' | fold -w 79";
    let call = |n: u64| calls(&[("shell", json!({"command": format!("{long} # {n}")}))]);
    let mut steps: Vec<Step> = (1..6).map(call).collect();
    steps.push(Step::text("I have seen it all."));
    let chat = Chat::new(steps);
    let args = ["--recipe", "clear-tool-uses", "--yes"];
    let Some(screen) = start(&chat, (80, 24), &args) else { return };
    screen.wait("  session chat-");
    say(&screen, "Look at it.");
    screen.wait("I have seen it all.");
    screen.line("/compact");
    screen.wait_all(&["context compacted (", "· /undo · /losses"]);
    screen.line("/losses");
    screen.wait("shortened: recall gives them back");
    screen.line("/context");
    screen.wait("  results ");
    screen.line("/undo");
    screen.wait("compaction taken back (");
    screen.line("/undo");
    screen.wait("there is no compaction to take back");
    screen.line("/budget 2.50");
    screen.wait("no request is sent once $2.50 are spent");
    screen.line("/export story.md");
    screen.wait("written: story.md");
    let story = chat.world.home.join("project/story.md");
    let story = std::fs::read_to_string(story).expect("a file");
    assert!(story.contains("I have seen it all."), "{story}");
    screen.line("/recipe s06");
    screen.wait("recipe s06");
    screen.line("/recipe none-such");
    screen.wait("none-such");
    screen.line("/model openai/gpt-4o");
    screen.wait("model openai/gpt-4o, recipe s06");
    screen.line("/resume nothing");
    screen.wait("there is no session nothing");
    screen.line("/quit");
    screen.ends(END);
    // The earlier messages are shown when the session is resumed.
    let Some(screen) = start(&chat, (80, 24), &["--resume", "last"]) else { return };
    screen.wait("I have seen it all.");
    assert_eq!(chat.refused(), Vec::<String>::new());
}

#[test]
fn a_turn_is_interrupted_and_a_signal_leaves_the_terminal_as_it_was() {
    let chat = Chat::new([
        calls(&[("shell", json!({"command": "echo begun > begun; exec sleep 600"}))]),
        Step::text("As you like."),
    ]);
    let Some(screen) = start(&chat, (80, 24), &["--yes"]) else { return };
    screen.wait("  session chat-");
    say(&screen, "Wait for it.");
    screen.wait("● shell");
    // A message that is typed meanwhile waits.
    screen.line("And this.");
    screen.wait("waits: And this.");
    screen.keys(&["Escape"]);
    screen.wait("Interrupted by the user");
    screen.wait("goes with your next message");
    say(&screen, "Go on.");
    screen.wait("As you like.");
    let sent = chat.sent().pop().expect("a request");
    assert!(sent.contains("And this.") && sent.contains("Go on."), "{sent}");
    let pid = screen.tmux(&["display-message", "-p", "-t", "t", "#{pane_pid}"]);
    // The process group of the shell, which ignores the signal, and of the program.
    let group = format!("-{}", pid.trim());
    Command::new("kill").args(["-TERM", "--", &group]).status().expect("it is sent");
    screen.ends(END);
}

#[test]
fn leaving_ends_what_runs_and_the_session_goes_on_later() {
    let chat =
        Chat::new([calls(&[("shell", json!({"command": "echo $$ > pid; exec sleep 600"}))])]);
    let Some(screen) = start(&chat, (80, 24), &["--yes"]) else { return };
    screen.wait("  session chat-");
    say(&screen, "Wait for it.");
    let pid = chat.world.home.join("project/pid");
    let begun = || std::fs::read_to_string(&pid).ok().filter(|pid| pid.ends_with('\n'));
    let pid = std::iter::repeat_with(begun).flatten().next().expect("it is asked until it is");
    screen.keys(&["C-d"]);
    screen.ends(END);
    let alive = Command::new("kill").args(["-0", pid.trim()]).output().expect("kill runs");
    assert!(!alive.status.success(), "{pid} still runs");
    let Some(screen) = start(&chat, (80, 24), &["--resume", "last"]) else { return };
    screen.wait("✗ shell echo $$ > pid; exec sleep 600\n  ⎿ Interrupted by the user");
}

#[test]
fn a_terminal_may_be_tiny_and_change_its_size() {
    let chat = fix();
    let Some(screen) = start(&chat, (20, 5), &["--yes"]) else { return };
    screen.wait("[ctx: 0%]");
    say(&screen, "Fix it.");
    screen.wait("  42");
    for (width, height) in [("1", "1"), ("3", "2"), ("120", "30")] {
        screen.tmux(&["resize-window", "-t", "t", "-x", width, "-y", height]);
    }
    screen.wait("It returns 42 now");
    screen.keys(&["C-c", "C-c"]);
    screen.ends(END);
}
