//! A program in a real terminal (tmux). Without tmux, such tests print that they are skipped.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;

use super::World;

/// The most checks of the screen before a test fails; each takes some milliseconds.
const LOOKS: usize = 10_000;

/// Runs the program, and prints its status and whether the terminal edits lines again.
const SHELL: &str = "trap : TERM; \"$@\"; echo \"status $?\"; \
                     stty -a | grep -o -e '-*icanon'; exec sleep 1000";

/// The program in a terminal of its own.
pub struct Screen {
    socket: PathBuf,
    home: String,
}

impl Screen {
    /// Starts a program in a terminal of this size; none if there is no tmux. Each screen of one
    /// home needs its own name.
    pub fn start(world: &World, name: &str, size: (u16, u16), program: &Command) -> Option<Screen> {
        if Command::new("tmux").arg("-V").output().is_err() {
            writeln!(std::io::stderr(), "skipped: there is no tmux").expect("it is written");
            return None;
        }
        let settings = world.write("tmux.conf", "set -g status off\n");
        let screen = Screen {
            socket: world.home.join(format!("tmux-{name}")),
            home: world.home.to_str().expect("text").to_owned(),
        };
        let mut tmux = Command::new("tmux");
        tmux.arg("-u").arg("-f").arg(settings).arg("-S").arg(&screen.socket);
        let (width, height) = (size.0.to_string(), size.1.to_string());
        tmux.args(["new-session", "-d", "-s", "t", "-x", &width, "-y", &height, "--"]);
        tmux.args(["sh", "-c", SHELL, "sh"]).arg(program.get_program()).args(program.get_args());
        tmux.current_dir(program.get_current_dir().unwrap_or(&world.home)).env_clear();
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

    pub fn tmux(&self, args: &[&str]) -> String {
        let output = Command::new("tmux").arg("-u").arg("-S").arg(&self.socket).args(args).output();
        String::from_utf8(output.expect("tmux runs").stdout).expect("text")
    }

    /// The text on the screen, with the home folder replaced by a name.
    pub fn text(&self) -> String {
        let screen = self.tmux(&["capture-pane", "-p", "-t", "t"]);
        let lines = screen.lines().map(|line| line.trim_end().replace(&self.home, "[home]") + "\n");
        lines.collect()
    }

    /// Waits for a text on the screen.
    pub fn wait(&self, text: &str) -> String {
        self.wait_all(&[text])
    }

    /// Waits for a screen with all of these texts. A screen may be captured half drawn, so every
    /// text that is needed must be waited for.
    pub fn wait_all(&self, texts: &[&str]) -> String {
        let looks = std::iter::repeat_with(|| self.text()).take(LOOKS);
        let mut last = String::new();
        for screen in looks {
            if texts.iter().all(|text| screen.contains(text)) {
                return screen;
            }
            last = screen;
        }
        panic!("{texts:?} do not come:\n{last}");
    }

    pub fn keys(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys", "-t", "t"], keys].concat());
    }

    /// Types a line, and sends it.
    pub fn line(&self, text: &str) {
        self.keys(&["-l", text]);
        self.keys(&["Enter"]);
    }

    /// Pastes a text, and sends it.
    pub fn paste(&self, text: &str) {
        self.tmux(&["set-buffer", text]);
        self.tmux(&["paste-buffer", "-p", "-t", "t"]);
        self.keys(&["Enter"]);
    }

    /// Waits for the end of the program, whose last screen must show `text`. The terminal must be
    /// restored: no alternate screen, no mouse, a visible cursor, and line editing.
    pub fn ends(&self, text: &str) {
        self.wait(&format!("{text}status 0\nicanon\n"));
        let modes = "#{alternate_on} #{mouse_any_flag} #{cursor_flag}";
        assert_eq!(self.tmux(&["display-message", "-p", "-t", "t", modes]), "0 0 1\n");
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}
