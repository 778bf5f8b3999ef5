//! A home folder with sessions for each test, and the program run in it.

use std::fmt::Write as _;
use std::fs::{self, File, FileTimes};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, SystemTime};

use epitome_formats::FORMATS;

pub mod screen;
pub mod sessions;
pub mod trouble;

/// The time that the program sees.
pub const NOW: &str = "2026-11-21T12:00:00Z";
/// The modification time of sessions: three days before.
const WRITTEN: u64 = 1_795_003_200;

pub struct World {
    _dir: tempfile::TempDir,
    pub home: PathBuf,
}

impl World {
    pub fn new() -> World {
        let dir = tempfile::tempdir().expect("a folder");
        let home = dir.path().canonicalize().expect("a folder");
        World { _dir: dir, home }
    }

    /// Writes a file in the home folder, last modified three days ago.
    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.home.join(name);
        fs::create_dir_all(path.parent().expect("it has one")).expect("a folder");
        fs::write(&path, bytes).expect("a file");
        written(&path);
        path
    }

    /// Writes a session to Claude Code's folder.
    pub fn claude(&self, id: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        self.write(&format!(".claude/projects/-p/{id}.jsonl"), bytes)
    }

    /// Writes a session to pi's folder.
    pub fn pi(&self, id: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        self.write(&format!(".pi/agent/sessions/--p--/2026-11-18T12-00-00-000Z_{id}.jsonl"), bytes)
    }

    pub fn codex(&self, id: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        self.write(
            &format!(".codex/sessions/2026/11/20/rollout-2026-11-20T23-12-03-{id}.jsonl"),
            bytes,
        )
    }

    /// OpenCode's database, with the beginning of a recorded session.
    pub fn opencode(&self) -> PathBuf {
        let path = self.folder_of(".local/share/opencode/opencode.db");
        let session = beginning(&fixtures::get("opencode", "pricing").bytes(), 6);
        fixtures::stores::opencode(&path, &session);
        path
    }

    /// The database of Cursor's editor, with the Cursor cases of these names.
    pub fn cursor(&self, names: &[&str]) -> PathBuf {
        let path = self.folder_of(".config/Cursor/User/globalStorage/state.vscdb");
        let composers: Vec<Vec<u8>> =
            names.iter().map(|name| fixtures::case("cursor", name).bytes()).collect();
        fixtures::stores::cursor_editor(&path, &composers);
        path
    }

    /// A chat of Cursor's CLI.
    pub fn cursor_chat(&self, id: &str) -> PathBuf {
        let path = self.folder_of(&format!(".cursor/chats/0f0f/{id}/store.db"));
        fixtures::stores::cursor_chat(&path, &fixtures::case("cursor", "chat").bytes());
        written(&path);
        path
    }

    /// A path in the home folder, whose folder is made.
    fn folder_of(&self, name: &str) -> PathBuf {
        let path = self.home.join(name);
        fs::create_dir_all(path.parent().expect("it has one")).expect("a folder");
        path
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_epitome"));
        command
            .args(args)
            .current_dir(&self.home)
            .env_clear()
            .env("HOME", &self.home)
            .env("EPITOME_NOW", NOW)
            // The tests must not read the keyring of the user that runs them.
            .env("EPITOME_KEYRING", "off")
            .env("COLUMNS", "100")
            .stdin(Stdio::null());
        command
    }

    pub fn output(&self, args: &[&str]) -> Output {
        self.command(args).output().expect("the program runs")
    }

    pub fn status(&self, args: &[&str]) -> i32 {
        self.output(args).status.code().expect("it ends by itself")
    }

    /// A whole terminal: the command line, the output, and the status.
    pub fn run(&self, args: &[&str]) -> String {
        self.terminal(args, &self.output(args))
    }

    /// The same with bytes on standard input.
    pub fn run_with(&self, args: &[&str], stdin: &[u8]) -> String {
        let mut command = self.command(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program runs");
        child.stdin.take().expect("it is piped").write_all(stdin).ok();
        self.terminal(args, &child.wait_with_output().expect("the program ends"))
    }

    /// The JSON objects that the program prints, one per line.
    pub fn json(&self, args: &[&str]) -> Vec<serde_json::Value> {
        let out = self.output(args);
        let text = String::from_utf8(out.stdout).expect("text");
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }

    pub fn terminal(&self, args: &[&str], out: &Output) -> String {
        let mut text = format!("$ epitome {}\n", args.join(" "));
        text.push_str(&String::from_utf8_lossy(&out.stdout));
        if !out.stderr.is_empty() {
            let _ = write!(text, "--- stderr\n{}", String::from_utf8_lossy(&out.stderr));
        }
        let _ = writeln!(text, "--- status {}", out.status.code().expect("it ends by itself"));
        // The path of the home folder, which is different in every run and is in packs, is
        // replaced; everything else is printed unchanged.
        without_packs(&without_formats(&text.replace(self.home.to_str().expect("text"), "[home]")))
    }

    /// Every file and folder below the home folder, with its time and the hash of its bytes.
    pub fn tree(&self) -> Vec<(PathBuf, SystemTime, String)> {
        let mut found = Vec::new();
        walk(&self.home, &mut found);
        found.sort();
        found
    }
}

/// The first lines of a session, too few to compact.
pub fn beginning(session: &[u8], lines: usize) -> Vec<u8> {
    session.split_inclusive(|&byte| byte == b'\n').take(lines).flatten().copied().collect()
}

/// Sets the modification time of a file to three days ago. After a session that was written to just
/// now was replaced, the program waits for its writer.
pub fn written(path: &Path) {
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(WRITTEN);
    let times = FileTimes::new().set_modified(time).set_accessed(time);
    File::options().write(true).open(path).and_then(|f| f.set_times(times)).expect("times");
}

/// Removes numbers that depend on the length of packs, because packs contain the path of the home
/// folder, compressed.
fn without_packs(text: &str) -> String {
    let line = |line: &str| match (line.strip_prefix("net "), line.split_once(" in the archive: "))
    {
        (Some(rest), _) if line.ends_with("archive") => {
            let before = rest.split_once('→').map_or(rest, |(before, _)| before);
            format!("net {before}→  (with the archive)\n")
        }
        (_, Some((before, _))) if before.starts_with("with ") => {
            "with (a pack) in the archive\n".to_owned()
        }
        (_, _) if line.contains("  #") && line.contains("  ~/") => {
            let (numbers, path) = line.rsplit_once("  ~/").unwrap_or((line, ""));
            let known = numbers.rsplit_once('%').map_or(numbers, |(known, _)| known);
            format!("{known}%  (pack)  ~/{path}\n")
        }
        (_, _) if line.contains(" generation") && line.ends_with(" on disk") => {
            let known = line.rsplit_once(", ").map_or(line, |(known, _)| known);
            format!("{known}, (packs) on disk\n")
        }
        _ => format!("{line}\n"),
    };
    text.lines().map(line).collect()
}

/// Replaces every list of all formats by `(all formats)`, however its lines are wrapped, so that a
/// new format changes no snapshot.
fn without_formats(text: &str) -> String {
    let names: Vec<&str> = FORMATS.iter().map(|format| format.name).collect();
    let (first, names) = (format!("{}, ", names[0]), names.join(", "));
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(&first) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        match length_of(&names, rest) {
            Some(length) => {
                out.push_str("(all formats)");
                rest = &rest[length..];
            }
            None => {
                out.push_str(&first);
                rest = &rest[first.len()..];
            }
        }
    }
    out + rest
}

/// The length of the beginning of a text that consists of these words, with any white space between
/// them.
fn length_of(words: &str, text: &str) -> Option<usize> {
    let mut at = 0;
    for (idx, word) in words.split(' ').enumerate() {
        let space = text[at..].len() - text[at..].trim_start().len();
        if (idx > 0) == (space == 0) {
            return None;
        }
        at += space;
        at += text[at..].starts_with(word).then_some(word.len())?;
    }
    Some(at)
}

/// A schema file of this repository.
pub fn schema(name: &str) -> serde_json::Value {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema");
    let text = fs::read_to_string(folder.join(name)).expect("a schema");
    serde_json::from_str(&text).expect("JSON")
}

/// Validates printed objects against a schema.
pub fn check(name: &str, values: &[serde_json::Value]) {
    let schema = schema(name);
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    assert!(!values.is_empty(), "nothing was printed");
    for value in values {
        let faults: Vec<String> = validator
            .iter_errors(value)
            .map(|fault| format!("{fault} at {}", fault.instance_path()))
            .collect();
        assert_eq!(faults, Vec::<String>::new(), "{value:#}");
    }
}

fn walk(folder: &Path, found: &mut Vec<(PathBuf, SystemTime, String)>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let modified = path.metadata().and_then(|meta| meta.modified()).expect("a time");
        if path.is_dir() {
            walk(&path, found);
            found.push((path, modified, "a folder".to_owned()));
        } else {
            let bytes = fs::read(&path).expect("a file");
            found.push((path, modified, blake3::hash(&bytes).to_string()));
        }
    }
}
