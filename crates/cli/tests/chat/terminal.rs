//! The chat agent in a real terminal: tmux. Without tmux these tests say that they are skipped.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;

use model_server::{Script, Step};
use serde_json::json;

use super::{Chat, calls};

/// Looks at the screen before it is given up: each takes some milliseconds.
const LOOKS: usize = 10_000;

/// Runs the program, says how it ended, and whether lines are edited by the terminal again.
const SHELL: &str = "trap : TERM; \"$@\"; echo \"status $?\"; \
                     stty -a | grep -o -e '-*icanon'; exec sleep 1000";

/// The program in a terminal of its own.
struct Screen {
    socket: PathBuf,
    home: String,
}

impl Screen {
    /// Starts the program; none if there is no tmux.
    fn start(chat: &Chat, size: (u16, u16), args: &[&str]) -> Option<Screen> {
        if Command::new("tmux").arg("-V").output().is_err() {
            writeln!(std::io::stderr(), "skipped: there is no tmux").expect("it is written");
            return None;
        }
        let settings = chat.world.write("tmux.conf", "set -g status off\n");
        let screen = Screen {
            // Of one test there may be several.
            socket: chat.world.home.join(format!("tmux-{}", args.join("-"))),
            home: chat.world.home.to_str().expect("text").to_owned(),
        };
        let program = chat.command("anthropic", args);
        let mut tmux = Command::new("tmux");
        tmux.arg("-u").arg("-f").arg(settings).arg("-S").arg(&screen.socket);
        let (width, height) = (size.0.to_string(), size.1.to_string());
        tmux.args(["new-session", "-d", "-s", "t", "-x", &width, "-y", &height, "--"]);
        tmux.args(["sh", "-c", SHELL, "sh"]).arg(program.get_program()).args(program.get_args());
        tmux.current_dir(program.get_current_dir().expect("a folder")).env_clear();
        let set = program.get_envs().filter_map(|(name, value)| Some((name, value?)));
        tmux.envs(set).env("LANG", "C.UTF-8").env("TERM", "xterm-256color");
        if let Some(path) = std::env::var_os("PATH") {
            tmux.env("PATH", path);
        }
        tmux.env_remove("COLUMNS");
        let started = tmux.output().expect("tmux runs");
        assert!(started.status.success(), "{}", String::from_utf8_lossy(&started.stderr));
        Some(screen)
    }

    fn tmux(&self, args: &[&str]) -> String {
        let output = Command::new("tmux").arg("-u").arg("-S").arg(&self.socket).args(args).output();
        String::from_utf8(output.expect("tmux runs").stdout).expect("text")
    }

    /// What is on the screen, with the home folder named so.
    fn shown(&self) -> String {
        let screen = self.tmux(&["capture-pane", "-p", "-t", "t"]);
        let lines = screen.lines().map(|line| line.trim_end().replace(&self.home, "[home]") + "\n");
        lines.collect()
    }

    /// Waits for a text on the screen.
    fn wait(&self, text: &str) -> String {
        let looks = std::iter::repeat_with(|| self.shown()).take(LOOKS);
        let mut last = String::new();
        for screen in looks {
            if screen.contains(text) {
                return screen;
            }
            last = screen;
        }
        panic!("`{text}` does not come:\n{last}");
    }

    fn keys(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys", "-t", "t"], keys].concat());
    }

    /// Pastes a message, and sends it. The scripted server wants long ones.
    fn say(&self, text: &str) {
        self.tmux(&["set-buffer", &format!("{text}{}", " Take your time.".repeat(40))]);
        self.tmux(&["paste-buffer", "-p", "-t", "t"]);
        self.keys(&["Enter"]);
    }

    /// Types a line, and sends it.
    fn line(&self, text: &str) {
        self.keys(&["-l", text]);
        self.keys(&["Enter"]);
    }

    /// Waits for the end of the program. The terminal is as a program finds it: no alternate
    /// screen, no mouse, a cursor, and lines are edited.
    fn ends(&self) {
        let last = self.wait("icanon");
        assert!(last.contains("goes on with this session\nstatus 0\nicanon\n"), "{last}");
        let modes = "#{alternate_on} #{mouse_any_flag} #{cursor_flag}";
        assert_eq!(self.tmux(&["display-message", "-p", "-t", "t", modes]), "0 0 1\n");
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}

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
        let Some(screen) = Screen::start(&chat, size, &[]) else { return };
        let name = |part: &str| format!("terminal_{}x{}_{part}", size.0, size.1);
        let first = screen.wait("of 184.0k · anthropic/scripted · epitome · chat-2");
        insta::assert_snapshot!(name("first"), first);
        screen.say("Fix the answer.");
        let asked = screen.wait("y once");
        assert!(asked.contains("Allow? write [home]/project/src/lib.rs\n"), "{asked}");
        assert!(asked.contains("  2 -     41\n  2 +     42\n"), "{asked}");
        screen.keys(&["y"]);
        let asked = screen.wait("(this command)");
        assert!(asked.contains("Allow? run cat src/lib.rs && exit 3\n"), "{asked}");
        screen.keys(&["a"]);
        screen.wait("日本語");
        insta::assert_snapshot!(name("turn"), screen.wait("\n\n──"));
        assert_eq!(chat.refused(), Vec::<String>::new());
        assert_ne!(screen.tmux(&["display-message", "-p", "-t", "t", "#{pane_title}"]), "owned\n");
        screen.keys(&["C-d"]);
        screen.ends();
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
    let Some(screen) = Screen::start(&chat, (80, 24), &[]) else { return };
    screen.wait("  session chat-");
    screen.say("Do it.");
    let asked = screen.wait("type a number or an answer, and Enter");
    assert!(asked.contains("? Which one?\n  1 the first\n  2 the last\n"), "{asked}");
    screen.line("2");
    let asked = screen.wait("always (writing in this project)");
    assert!(asked.contains("● ask Which one?\n  ⎿ the last\n"), "{asked}");
    assert!(asked.contains("? patch src/lib.rs, b.txt  +2 −1\n  src/lib.rs\n"), "{asked}");
    screen.keys(&["y"]);
    screen.wait("always (this command)");
    screen.keys(&["N"]);
    let done = screen.wait("So be it.");
    assert_eq!(done.matches("✗ shell touch ran").count(), 2, "{done}");
    screen.keys(&["C-d"]);
    screen.ends();
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
    let Some(screen) = Screen::start(&chat, (80, 24), &[]) else { return };
    screen.wait("  session chat-");
    screen.say("Do it.");
    let asked = screen.wait("y once");
    assert!(asked.contains("● task run it\n  ⎿ 1 call · shell echo $$ > pid;"), "{asked}");
    screen.keys(&["y"]);
    let pid = chat.world.home.join("project/pid");
    let begun = || std::fs::read_to_string(&pid).ok().filter(|pid| pid.ends_with('\n'));
    let pid = std::iter::repeat_with(begun).flatten().next().expect("it is asked until it is");
    screen.keys(&["Escape"]);
    screen.wait("✗ task run it\n  ⎿ 1 call\n  ⎿ Interrupted by the user");
    screen.keys(&["C-o"]);
    screen.wait("  ✗ shell echo $$ > pid; exec sleep 600\n    ⎿ Interrupted by the user");
    chat.server.play(Script::new([Step::text("As you like.")]));
    screen.say("Go on.");
    screen.wait("As you like.");
    screen.keys(&["C-d"]);
    screen.ends();
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
    let Some(screen) = Screen::start(&chat, (80, 24), &args) else { return };
    screen.wait("  session chat-");
    screen.say("Look at it.");
    screen.wait("I have seen it all.");
    screen.line("/compact");
    let compacted = screen.wait("· /undo · /losses");
    assert!(compacted.contains("context compacted ("), "{compacted}");
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
    screen.ends();
    // What was said is there when the session goes on.
    let Some(screen) = Screen::start(&chat, (80, 24), &["--resume", "last"]) else { return };
    screen.wait("I have seen it all.");
    assert_eq!(chat.refused(), Vec::<String>::new());
}

#[test]
fn a_turn_is_interrupted_and_a_signal_leaves_the_terminal_as_it_was() {
    let chat = Chat::new([
        calls(&[("shell", json!({"command": "echo begun > begun; exec sleep 600"}))]),
        Step::text("As you like."),
    ]);
    let Some(screen) = Screen::start(&chat, (80, 24), &["--yes"]) else { return };
    screen.wait("  session chat-");
    screen.say("Wait for it.");
    screen.wait("● shell");
    // What is typed meanwhile waits.
    screen.line("And this.");
    screen.wait("waits: And this.");
    screen.keys(&["Escape"]);
    screen.wait("Interrupted by the user");
    screen.wait("goes with your next message");
    screen.say("Go on.");
    screen.wait("As you like.");
    let sent = chat.sent().pop().expect("a request");
    assert!(sent.contains("And this.") && sent.contains("Go on."), "{sent}");
    let pid = screen.tmux(&["display-message", "-p", "-t", "t", "#{pane_pid}"]);
    // The group of the shell, which takes no notice, and the program.
    let group = format!("-{}", pid.trim());
    Command::new("kill").args(["-TERM", "--", &group]).status().expect("it is sent");
    screen.ends();
}

#[test]
fn leaving_ends_what_runs_and_the_session_goes_on_later() {
    let chat =
        Chat::new([calls(&[("shell", json!({"command": "echo $$ > pid; exec sleep 600"}))])]);
    let Some(screen) = Screen::start(&chat, (80, 24), &["--yes"]) else { return };
    screen.wait("  session chat-");
    screen.say("Wait for it.");
    let pid = chat.world.home.join("project/pid");
    let begun = || std::fs::read_to_string(&pid).ok().filter(|pid| pid.ends_with('\n'));
    let pid = std::iter::repeat_with(begun).flatten().next().expect("it is asked until it is");
    screen.keys(&["C-d"]);
    screen.ends();
    let alive = Command::new("kill").args(["-0", pid.trim()]).output().expect("kill runs");
    assert!(!alive.status.success(), "{pid} still runs");
    let Some(screen) = Screen::start(&chat, (80, 24), &["--resume", "last"]) else { return };
    screen.wait("✗ shell echo $$ > pid; exec sleep 600\n  ⎿ Interrupted by the user");
}

#[test]
fn a_terminal_may_be_tiny_and_change_its_size() {
    let chat = fix();
    let Some(screen) = Screen::start(&chat, (20, 5), &["--yes"]) else { return };
    screen.wait("[ctx: 0%]");
    screen.say("Fix it.");
    screen.wait("  42");
    for (width, height) in [("1", "1"), ("3", "2"), ("120", "30")] {
        screen.tmux(&["resize-window", "-t", "t", "-x", width, "-y", height]);
    }
    screen.wait("It returns 42 now");
    screen.keys(&["C-c", "C-c"]);
    screen.ends();
}
