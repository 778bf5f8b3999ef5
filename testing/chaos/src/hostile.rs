//! Homes with things that no agent makes: pipes, sockets, loops, unreadable folders, odd names.

use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::ensure;

use crate::case::Case;
use crate::machine::Machine;
use crate::numbers::Numbers;
use crate::subject::{State, Subject, subjects};
use crate::violation::{Kind, Violation};

/// Paths of files that epitome opens: files of agents, of the user and of epitome itself. In a
/// case, some of them are something else than a file.
const PLACES: &[&str] = &[
    ".claude/projects/-home-dev-project/00000000-7d1e-4c55-9f0e-2b8d7a61c3d4.jsonl",
    ".claude/projects/-other",
    ".claude/settings.json",
    ".claude/history.jsonl",
    concat!(
        ".codex/sessions/2026/11/20/",
        "rollout-2026-11-20T23-12-03-01a1fb3b-31f2-7601-bb99-ffffffffffff.jsonl"
    ),
    concat!(
        ".codex/sessions/2026/11/20/",
        "rollout-2026-11-20T23-12-03-01a1fb3b-31f2-7601-bb99-eeeeeeeeeeee.jsonl.zst"
    ),
    concat!(
        ".codex/archived_sessions/",
        "rollout-2026-11-20T23-12-03-01a1fb3b-31f2-7601-bb99-dddddddddddd.jsonl"
    ),
    ".codex/config.toml",
    ".codex/hooks.json",
    ".pi/agent/sessions/--p--/2026-11-18T12-00-00-000Z_01a1fb3a-c450-731a-9250-9fa9d78b0d99.jsonl",
    ".gemini/settings.json",
    concat!(".gemini/", "tmp", "/project/chats/session-2026-11-20T23-12-00000000.jsonl"),
    concat!(".gemini/", "tmp", "/project/.project_root"),
    ".local/share/opencode/opencode-x.db",
    ".local/share/opencode/storage/session/global/ses_x.json",
    ".cursor/chats/0f0f/5ce2be00-0000-4000-8000-000000000001/store.db",
    ".config/Cursor/User/globalStorage/state.vscdb",
    ".copilot/session-state/00000000-0000-4000-8000-000000000001/events.jsonl",
    ".local/share/epitome/live/x.jsonl",
    ".local/share/epitome/cache/list.json",
    ".local/share/epitome/hooks/installed.json",
    ".local/share/epitome/archive/pi/x/000001.pack",
    ".config/epitome/epitome.toml",
    ".config/epitome/rules.toml",
    ".config/epitome/models.toml",
    ".config/epitome/recipes/x.toml",
    ".gitconfig",
    "pages/manifest.json",
];

/// Commands that run in a hostile home; most read the whole home. `{}` is a good session.
const COMMANDS: &[&str] = &[
    "list",
    "list --json",
    "search functions",
    "inspect {}",
    "compact {} --dry-run",
    "compact --all --dry-run",
    "render --all --format html --out pages",
    "index --dir pages",
    "scan --all",
    "archive ls",
    "archive verify",
    "archive gc",
    "watch --once --dry-run",
    "config",
    "recipes",
    "install --agent claude --all --yes",
    "uninstall --yes",
    "inspect 01a1fb3b",
];

/// A home with good sessions of several agents.
pub(crate) struct Homes {
    start: Machine,
    subjects: Vec<(Subject, State)>,
}

impl Homes {
    pub(crate) fn new(program: &Path) -> anyhow::Result<Homes> {
        let start = Machine::new(program)?;
        let mut kept = Vec::new();
        for subject in subjects()? {
            subject.put(&start)?;
            kept.push(subject);
        }
        // Two subjects with the same path are one session.
        kept.dedup_by(|one, other| one.files[0].0 == other.files[0].0);
        let subjects = kept
            .into_iter()
            .map(|subject| Ok((subject.clone(), subject.state(&start)?)))
            .collect::<anyhow::Result<_>>()?;
        Ok(Homes { start, subjects })
    }

    /// Puts hostile things into a home, runs one of [`COMMANDS`] there, and compacts and restores a
    /// good session. Afterwards every good session must be as before.
    pub(crate) fn case(&self, seed: u64) -> anyhow::Result<Case> {
        let mut numbers = Numbers::new(seed);
        let machine = self.start.like()?;
        let (subject, _) = numbers.one_of(&self.subjects);
        let mut sockets = Vec::new();
        let mut messages = Vec::new();
        for _ in 0..1 + numbers.below(5) {
            let place = *numbers.one_of(PLACES);
            // What is already in the home stays: if it were replaced, the good session could not be
            // compacted.
            if machine.home.join(place).symlink_metadata().is_err() {
                messages.push(hostile(&machine.home.join(place), &mut numbers, &mut sockets)?);
            }
        }
        let question = numbers.one_of(COMMANDS).replace("{}", &subject.target);
        let mut violations = Vec::new();
        let mut say = |kind, what| violations.push(Violation { kind, what });
        let compact = subject.compact();
        let restore = subject.restore();
        for args in [question.split(' ').collect::<Vec<_>>(), compact, restore] {
            let ended = machine.run(&args)?;
            if let Some(what) = ended.misbehaved() {
                say(Kind::Crash, format!("{}: {what}", args.join(" ")));
            } else if ended.code() == Some(1) {
                say(
                    Kind::Wrong,
                    format!("{}: reports a bug: {}", args.join(" "), ended.beginning_of_output()),
                );
            }
        }
        for (other, state) in &self.subjects {
            if other.state(&machine)? != *state {
                say(Kind::Lost, format!("{} is not what it was", other.name));
            }
        }
        open_again(&machine.home);
        let what = format!("{}; {question}; {}", messages.join(", "), subject.name);
        Ok(Case { what, hit: true, violations })
    }
}

/// Makes at a path something that is not a plain file, or an unreadable file, or next to the path a
/// file with an odd name. Returns a description; "nothing" if the folder cannot be made.
fn hostile(
    path: &Path,
    numbers: &mut Numbers,
    sockets: &mut Vec<UnixListener>,
) -> anyhow::Result<String> {
    let Some(folder) = path.parent() else { return Ok(String::new()) };
    if fs::create_dir_all(folder).is_err() {
        return Ok("nothing".to_owned());
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let what = match numbers.below(10) {
        0..3 => {
            let made = Command::new("mkfifo").arg(path).status()?;
            ensure!(made.success(), "mkfifo {}", path.display());
            "a pipe"
        }
        3 => {
            // A failure is ignored: the path of a socket has a small maximum length.
            sockets.extend(UnixListener::bind(path));
            "a socket"
        }
        4 => {
            symlink(path, path)?;
            "a link to itself"
        }
        5 => {
            symlink("/dev/zero", path)?;
            "a link to /dev/zero"
        }
        6 => {
            symlink("..", path)?;
            "a link to the folder above"
        }
        7 => {
            fs::create_dir(path)?;
            fs::set_permissions(path, Permissions::from_mode(0o000))?;
            "an unreadable folder"
        }
        8 => {
            let odd: [&[u8]; 4] =
                [b"a\nb.jsonl", b"\xff\xfe.jsonl", b"\x1b]0;x\x07.jsonl", b"-rf --all.jsonl"];
            let path: PathBuf = folder.join(OsStr::from_bytes(numbers.one_of::<&[u8]>(&odd)));
            fs::write(path, b"{\"type\":\"session\"}\n")?;
            "an odd name"
        }
        _ => {
            fs::write(path, [0xff, 0xfe, 0, 0, b'{'].repeat(200))?;
            fs::set_permissions(path, Permissions::from_mode(0o000))?;
            "an unreadable file of garbage"
        }
    };
    Ok(format!("{what} as {name}"))
}

/// Gives the folders back their permissions: without them, only the administrator could remove the
/// home.
fn open_again(home: &Path) {
    for place in PLACES {
        let path = home.join(place);
        if path.symlink_metadata().is_ok_and(|meta| meta.is_dir()) {
            let _ = fs::set_permissions(path, Permissions::from_mode(0o755));
        }
    }
}
