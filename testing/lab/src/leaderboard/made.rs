//! Sessions that no agent wrote: long enough to fill contexts, and the same on every machine.
//!
//! In each session an agent works on a small repository: it reads files, searches, runs tests and
//! edits. The agent's texts and edits use names and lines that it has read before, most of them
//! lately and some long ago.

use std::fmt::Write as _;

use serde_json::{Value, json};

/// The number of sessions. Each has another seed.
const SESSIONS: u64 = 4;
/// The number of steps of a session: a call or two, their results, and a text.
const STEPS: usize = 130;
/// The number of files in the repository.
const FILES: usize = 60;
/// The number of steps after which the user asks for something else.
const PER_REQUEST: usize = 18;
/// How many of a hundred choices of a file that was read are made among all such files. The others
/// are made among the last four.
const FAR_OF_100: u64 = 30;

const VERBS: [&str; 12] = [
    "parse", "merge", "render", "split", "load", "store", "check", "count", "find", "sort", "fold",
    "trace",
];
const NOUNS: [&str; 14] = [
    "Ledger", "Invoice", "Column", "Window", "Packet", "Digest", "Budget", "Cursor", "Header",
    "Bucket", "Margin", "Signal", "Vector", "Ticket",
];
const AREAS: [&str; 6] = ["billing", "layout", "network", "storage", "report", "search"];
const RULES: &str = "# Rules\n\n\
                     - Always run `make check-ledger` before you say that you are done.\n\
                     - Never edit files below vendor/upstream.\n- You must keep TOML keys sorted.";

/// The sessions, with their names.
pub(super) fn sessions() -> Vec<(String, Vec<u8>)> {
    (1..=SESSIONS).map(|seed| (format!("made-{seed}"), Agent::new(seed).session())).collect()
}

/// A file of the repository.
struct File {
    path: String,
    names: Vec<String>,
    lines: Vec<String>,
}

struct Agent {
    random: u64,
    files: Vec<File>,
    /// The indices of the files that were read, in the order of reading.
    seen: Vec<usize>,
    records: String,
    /// The number of records so far.
    count: usize,
    calls: usize,
}

impl Agent {
    fn new(seed: u64) -> Agent {
        let mut agent = Agent {
            random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15),
            files: Vec::new(),
            seen: Vec::new(),
            records: String::new(),
            count: 0,
            calls: 0,
        };
        for n in 0..FILES {
            let file = agent.file(n);
            agent.files.push(file);
        }
        agent
    }

    /// A random number below `end`, from the upper bits of the generator of Knuth's MMIX.
    fn below(&mut self, end: usize) -> usize {
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((self.random >> 33) as usize) % end
    }

    fn pick<'t>(&mut self, texts: &[&'t str]) -> &'t str {
        texts[self.below(texts.len())]
    }

    fn file(&mut self, n: usize) -> File {
        let area = self.pick(&AREAS);
        let path = format!("src/{area}/{}_{n}.rs", self.pick(&VERBS));
        let mut names = Vec::new();
        let mut lines = Vec::new();
        for function in 0..4 + self.below(10) {
            let name = format!("{}_{}_{n}", self.pick(&VERBS), self.pick(&NOUNS).to_lowercase());
            let name = format!("{name}x{function}");
            let kind = format!("{}{}", self.pick(&NOUNS), self.below(900) + 100);
            lines.push(format!("pub fn {name}(input: &{kind}) -> Result<{kind}, Error> {{"));
            for _ in 0..3 + self.below(9) {
                let verb = self.pick(&VERBS);
                let limit = self.below(9_000) + 1_000;
                lines.push(format!("    let value = {verb}(input, {limit}).map(|it| it + {n})?;"));
            }
            lines.push("}".to_owned());
            names.extend([name, kind]);
        }
        File { path, names, lines }
    }

    fn session(mut self) -> Vec<u8> {
        self.user(json!("Invoices of March have the wrong totals. Find out why, and mend it."));
        self.call("Read", json!({ "file_path": "/home/dev/project/CLAUDE.md" }), RULES);
        for step in 0..STEPS {
            if step > 0 && step % PER_REQUEST == 0 {
                let file = self.known_file();
                let path = self.files[file].path.clone();
                self.user(json!(format!("Good. Now look at {path}: it should report its errors.")));
            }
            match self.below(10) {
                0..=4 => self.read(),
                5..=6 => self.search(),
                7 => self.test(),
                _ => self.edit(),
            }
            self.explain();
        }
        self.records.into_bytes()
    }

    /// The index of a file that was read: one of the last four, or now and then any. 0 if none was
    /// read.
    fn known_file(&mut self) -> usize {
        if self.seen.is_empty() {
            return 0;
        }
        let is_far = (self.below(100) as u64) < FAR_OF_100;
        let back = if is_far { self.seen.len() } else { self.seen.len().min(4) };
        let at = self.seen.len() - 1 - self.below(back);
        self.seen[at]
    }

    fn read(&mut self) {
        let file = self.below(FILES);
        self.seen.push(file);
        let File { path, lines, .. } = &self.files[file];
        let mut text = String::new();
        for (n, line) in lines.iter().enumerate() {
            let _ = writeln!(text, "{:>6}\t{line}", n + 1);
        }
        let input = json!({ "file_path": format!("/home/dev/project/{path}") });
        self.call("Read", input, &text);
    }

    fn search(&mut self) {
        let file = self.known_file();
        let name = self.name(file);
        let mut text = String::new();
        for _ in 0..4 + self.below(30) {
            let other = self.below(FILES);
            let line = self.below(400) + 1;
            let _ = writeln!(text, "{}:{line}:    {name}(&input)?;", self.files[other].path);
        }
        self.call("Grep", json!({ "pattern": name, "path": "/home/dev/project/src" }), &text);
    }

    fn test(&mut self) {
        let failing = self.known_file();
        let failing = self.name(failing);
        let mut text = String::new();
        for _ in 0..30 + self.below(80) {
            let file = self.below(FILES);
            let name = self.name(file);
            let _ = writeln!(text, "test {name} ... ok ({} ms)", self.below(900));
        }
        let (left, right) = (self.below(90_000), self.below(90_000));
        let _ = write!(text, "test {failing} ... FAILED\nassertion failed: {left} == {right}");
        self.call("Bash", json!({ "command": "make check-ledger" }), &text);
    }

    fn edit(&mut self) {
        let file = self.known_file();
        let at = self.below(self.files[file].lines.len() - 1);
        let File { path, lines, .. } = &self.files[file];
        let (old, path) = (lines[at..at + 2].join("\n"), format!("/home/dev/project/{path}"));
        let new = format!("{old}\n    trace(input, {at});");
        let input = json!({ "file_path": path, "old_string": old, "new_string": new });
        self.call("Edit", input, "The file has been updated.");
    }

    /// The model writes a text about two files that it has read.
    fn explain(&mut self) {
        let (one, other) = (self.known_file(), self.known_file());
        let (caller, callee) = (self.name(one), self.name(other));
        let path = &self.files[other].path;
        let text = format!("{caller} passes its totals on to {callee} in {path}; that is next.");
        self.record("assistant", json!([{ "type": "text", "text": text }]));
    }

    fn name(&mut self, file: usize) -> String {
        let at = self.below(self.files[file].names.len());
        self.files[file].names[at].clone()
    }

    fn user(&mut self, content: Value) {
        self.record("user", content);
    }

    fn call(&mut self, name: &str, input: Value, result: &str) {
        self.calls += 1;
        let id = format!("toolu_{:06}", self.calls);
        let call = json!([{ "type": "tool_use", "id": id, "name": name, "input": input }]);
        self.record("assistant", call);
        let result = json!([{ "type": "tool_result", "tool_use_id": id, "content": result }]);
        self.record("user", result);
    }

    fn record(&mut self, role: &str, content: Value) {
        self.count += 1;
        let id = |n: usize| format!("00000000-0000-4000-8000-{n:012}");
        let parent = if self.count == 1 { Value::Null } else { id(self.count - 1).into() };
        let time = format!(
            "2026-03-{:02}T{:02}:{:02}:00.000Z",
            2 + self.count / 1440,
            self.count / 60 % 24,
            self.count % 60
        );
        let record = json!({
            "type": role,
            "uuid": id(self.count),
            "parentUuid": parent,
            "sessionId": id(0),
            "timestamp": time,
            "cwd": "/home/dev/project",
            "version": "2.0.0",
            "isSidechain": false,
            "message": { "role": role, "content": content },
        });
        let _ = writeln!(self.records, "{record}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sessions_are_the_same_each_time() {
        let all = sessions();
        assert_eq!(all, sessions());
        assert_eq!(all.len() as u64, SESSIONS);
        let text = String::from_utf8_lossy(&all[0].1);
        assert!(text.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()));
    }
}
