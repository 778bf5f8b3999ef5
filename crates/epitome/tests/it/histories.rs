//! Histories of a session and its sub-agents: compactions, appended records, restores, undone runs
//! and garbage collections, in any order. Whatever the order, all bytes can be restored.
//!
//! `EPITOME_FUZZ=20` runs twenty times as many histories.

use std::path::{Path, PathBuf};
use std::{fmt, fs};

use epitome::archive::{Digest, GcMode, Generation, collect_garbage};
use epitome::compaction::Way;
use epitome::ops::{Compact, CompactReport, OpenSession, Restore, What};
use epitome::runs::{RunState, runs};
use epitome::storage::RestoreTarget;
use epitome::{Config, Error, ErrorKind};
use epitome_passes::{BUILT_IN, Keep, Recipe, built_in};
use epitome_tokens::Estimate;
use jiff::SignedDuration;
use proptest::collection::vec;
use proptest::prelude::*;

/// A step of a history.
#[derive(Clone, Debug)]
enum Step {
    /// Compacts a session with the built-in recipe of this number.
    Compact { session: usize, recipe: usize, keep: Keep, way: Option<Way> },
    /// The agent appends to a file.
    Append { file: usize, bytes: Vec<u8> },
    /// Restores a session.
    Restore { session: usize },
    /// Restores a session to the result of a generation, counted from the newest.
    RestoreTo { session: usize, newest: usize },
    /// Undoes a run, counted from the newest.
    Undo { newest: usize },
    /// The user copies the session to another folder of the agent.
    Copy,
    /// Removes unneeded generations from the archive, and empties the trash.
    Gc,
}

fn step() -> impl Strategy<Value = Step> {
    let keep = (prop::option::of(0_u64..3), prop::option::of(0_u64..3))
        .prop_map(|(turns, results)| Keep { turns, results, ..Keep::default() });
    let way = prop_oneof![Just(None), Just(Some(Way::Rewrite)), Just(Some(Way::Native))];
    prop_oneof![
        6 => (0_usize..2, 0..BUILT_IN.len(), keep, way)
            .prop_map(|(session, recipe, keep, way)| Step::Compact { session, recipe, keep, way }),
        3 => (0_usize..4, fixtures::generate::appended())
            .prop_map(|(file, bytes)| Step::Append { file, bytes }),
        2 => (0_usize..2).prop_map(|session| Step::Restore { session }),
        1 => (0_usize..2, 0_usize..3)
            .prop_map(|(session, newest)| Step::RestoreTo { session, newest }),
        2 => (0_usize..3).prop_map(|newest| Step::Undo { newest }),
        1 => Just(Step::Copy),
        3 => Just(Step::Gc),
    ]
}

/// A file, and everything that its agent wrote into it.
struct File {
    path: PathBuf,
    written: Vec<u8>,
}

/// The sessions in a user's home: one, and possibly a copy of it. The first file of each is the
/// session itself; the others belong to the session.
struct Home {
    _dir: tempfile::TempDir,
    config: Config,
    sessions: Vec<Vec<File>>,
    /// The paths of a copy of the session.
    copies: Vec<PathBuf>,
}

impl Home {
    /// `files` are relative to the home, the session first; `copies` are their paths in a copy.
    fn new(files: &[(&str, Vec<u8>)], copies: &[&str]) -> Home {
        let dir = tempfile::tempdir().expect("a folder");
        let user = dir.path().canonicalize().expect("a folder");
        let config = Config::from_home(&user);
        let session = files.iter().map(|(name, bytes)| {
            write(&user.join(name), bytes);
            File { path: user.join(name), written: bytes.clone() }
        });
        let sessions = vec![session.collect()];
        let copies = copies.iter().map(|name| user.join(name)).collect();
        Home { _dir: dir, config, sessions, copies }
    }

    fn session(&self, n: usize) -> &[File] {
        &self.sessions[n % self.sessions.len()]
    }

    /// The current bytes of all files.
    fn bytes(&self) -> Vec<Vec<u8>> {
        let files = self.sessions.iter().flatten();
        files.map(|file| fs::read(&file.path).expect("a session")).collect()
    }

    fn take(&mut self, step: &Step) {
        let before = self.bytes();
        match step {
            Step::Compact { session, recipe, keep, way } => {
                let keep = *keep;
                let recipe = built_in(BUILT_IN[*recipe].0).expect("a built-in recipe");
                let recipe = Recipe { keep, trigger: Default::default(), ..recipe };
                if self.compact(self.session(*session), recipe, *way).is_err() {
                    assert_eq!(self.bytes(), before, "a compaction that fails changes nothing");
                }
            }
            Step::Append { file, bytes } => self.append(*file, bytes),
            Step::Restore { session } => self.restore(self.session(*session)),
            Step::RestoreTo { session, newest } => {
                let path = &self.session(*session)[0].path;
                self.restore_to(path, *newest);
            }
            Step::Undo { newest } => self.undo(*newest),
            Step::Copy => self.copy(),
            Step::Gc => {
                let report = collect_garbage(&self.config, SignedDuration::ZERO, GcMode::Remove);
                report.expect("the archive can be read");
                assert_eq!(self.bytes(), before, "no session is touched");
            }
        }
        self.check();
    }

    fn compact(
        &self,
        session: &[File],
        recipe: Recipe,
        way: Option<Way>,
    ) -> Result<CompactReport, Error> {
        let run = self.config.begin_run("compact");
        let compact = Compact { way, ..Compact::new(&recipe, &Estimate, &run) };
        compact.run(&self.open(&session[0].path))
    }

    fn open(&self, path: &Path) -> OpenSession<'_> {
        OpenSession::new(&self.config, path)
    }

    fn append(&mut self, n: usize, bytes: &[u8]) {
        let mut files: Vec<&mut File> = self.sessions.iter_mut().flatten().collect();
        let n = n % files.len();
        let file = &mut files[n];
        file.written.extend(bytes);
        let now = [fs::read(&file.path).expect("a session"), bytes.to_vec()].concat();
        fs::write(&file.path, now).expect("a session");
    }

    fn restore(&self, session: &[File]) {
        let done = Restore::default().run(&self.open(&session[0].path));
        for file in session {
            let now = fs::read(&file.path).expect("a session");
            assert!(now == file.written, "{} is not restored: {done:?}", file.path.display());
        }
    }

    fn restore_to(&self, path: &Path, newest: usize) {
        let Some(generations) = self.generations(path) else { return };
        let Some(generation) = generations.iter().rev().nth(newest) else { return };
        let what = What::Session(RestoreTarget::Generation(generation.number));
        let back = Restore { what, ..Restore::default() };
        let before = self.bytes();
        if back.run_after(&self.open(path), |_| Ok::<_, Error>(())).is_err() {
            assert_eq!(self.bytes(), before, "a restore that fails changes nothing");
        }
    }

    fn generations(&self, path: &Path) -> Option<Vec<Generation>> {
        let key = epitome::storage::key_of(&epitome::storage::load(path, None).ok()?, path);
        Some(self.config.archive().generations(&key).expect("the archive can be read").whole)
    }

    fn undo(&self, newest: usize) {
        let log = runs(&self.config).expect("the archive can be read").runs;
        let Some(logged) = log.get(newest) else { return };
        for session in &logged.sessions {
            let before = self.bytes();
            let what = What::Run { id: &logged.id, files: &session.files };
            let back = Restore { what, ..Restore::default() };
            let done = back.run_after(&self.open(&session.path), |_| Ok::<_, Error>(()));
            if let Err(err) = done {
                let may = [ErrorKind::Changed, ErrorKind::NotArchived];
                assert!(may.contains(&err.kind()), "{err:?}");
                assert_eq!(self.bytes(), before, "a run that is not undone changes nothing");
            } else if session.state == RunState::Undone {
                assert_eq!(self.bytes(), before, "it was undone already");
            }
        }
    }

    fn copy(&mut self) {
        if self.sessions.len() > 1 || self.copies.is_empty() {
            return;
        }
        let files = self.sessions[0].iter().zip(&self.copies).map(|(file, to)| {
            write(to, &fs::read(&file.path).expect("a session"));
            File { path: to.clone(), written: file.written.clone() }
        });
        let copy = files.collect();
        self.sessions.push(copy);
    }

    /// Checks that a restore of every session would give what the agent wrote.
    fn check(&self) {
        for session in &self.sessions {
            let planned = Restore::default().plan(&self.open(&session[0].path));
            let (planned, why) = match planned {
                Ok(planned) => (planned.done, None),
                Err(err) => (Vec::new(), Some(err)),
            };
            for file in session {
                let written = Digest::from_source(&file.written).expect("in memory");
                match planned.iter().find(|back| back.path == file.path) {
                    Some(back) => assert_eq!(
                        back.after,
                        written,
                        "{} would become something else: {back:?}",
                        file.path.display()
                    ),
                    None => assert!(
                        fs::read(&file.path).expect("a session") == file.written,
                        "{} is not what its agent wrote, and would not be restored: {why:?}",
                        file.path.display()
                    ),
                }
            }
        }
    }
}

fn write(path: &Path, bytes: &[u8]) {
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    fs::write(path, bytes).expect("a session");
}

/// Runs a history and checks every step; at the end everything is restored.
fn history(mut home: Home, steps: &[Step]) {
    home.check();
    for step in steps {
        home.take(step);
    }
    for n in 0..home.sessions.len() {
        home.take(&Step::Restore { session: n });
    }
}

/// A session, rewritten as that of a sub-agent of Claude Code.
fn of_sub_agent(session: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(session);
    let id = "\"agentId\":\"a\",\"sessionId\"";
    text.replace("\"isSidechain\":false", "\"isSidechain\":true")
        .replace("\"sessionId\"", id)
        .into_bytes()
}

/// A compaction in the agent's own way that keeps `results` results.
fn append_compaction(session: usize, recipe: &str, results: Option<u64>) -> Step {
    let recipe = BUILT_IN.iter().position(|(name, _)| *name == recipe).expect("a built-in recipe");
    let keep = Keep { results, ..Keep::default() };
    Step::Compact { session, recipe, keep, way: Some(Way::Native) }
}

/// The third compaction appends the same record to the copy as the first did to the session. It
/// must not be confused with the last compaction of the session, and its generation must not be
/// removed.
#[test]
fn a_compaction_of_a_copy_is_not_undone_in_place_of_a_later_one_of_the_session() {
    let of = |day| format!(".codex/sessions/2026/01/{day}/rollout-{day}.jsonl");
    let bytes = fixtures::get("codex", "pricing").bytes();
    let mut home = Home::new(&[(&of("01"), bytes)], &[&of("02")]);
    home.take(&Step::Copy);
    home.take(&append_compaction(0, "epitome", Some(10)));
    home.take(&append_compaction(0, "transcript", None));
    home.take(&append_compaction(1, "epitome", Some(10)));
    let generations = home.generations(&home.session(0)[0].path).expect("a session");
    let [first, second, of_copy] = generations.as_slice() else { panic!("{generations:?}") };
    assert_eq!((first.before, first.after), (of_copy.before, of_copy.after));
    assert_eq!(first.after, second.before);
    for _ in 0..2 {
        home.take(&Step::Gc);
    }
    home.take(&Step::Restore { session: 0 });
    home.take(&Step::Gc);
    home.take(&Step::Restore { session: 1 });
}

/// The copy has another name, and the same id in its first record. It has no stubs, because its
/// compaction is a record at its end. The generations that the copy needs are kept, although the
/// session itself was restored.
#[test]
fn a_copy_of_another_name_keeps_what_it_needs() {
    let of = |day: &str| {
        let id = format!("00000000-0000-4000-8000-0000000000{day}");
        format!(".codex/sessions/2026/01/{day}/rollout-2026-01-{day}T00-00-00-{id}.jsonl")
    };
    let id = fixtures::get("codex", "pricing").bytes();
    let line = id.split(|byte| *byte == b'\n').next().expect("a line");
    let line: serde_json::Value = serde_json::from_slice(line).expect("JSON");
    let id = line["payload"]["id"].as_str().expect("an id");
    for own in [id, "s-codex"] {
        let text = String::from_utf8(fixtures::get("codex", "pricing").bytes()).expect("text");
        let mut home = Home::new(&[(&of("01"), text.replace(id, own).into_bytes())], &[&of("02")]);
        home.take(&append_compaction(0, "transcript", None));
        home.take(&Step::Copy);
        home.take(&Step::Undo { newest: 0 });
        home.take(&Step::Gc);
        home.take(&Step::Restore { session: 1 });
        home.take(&Step::Gc);
        assert_eq!(home.generations(&home.session(0)[0].path).map(|it| it.len()), Some(0));
    }
}

/// An export of OpenCode is one JSON document. If a line is appended to it, the session's id cannot
/// be read any more.
#[test]
fn a_run_on_a_session_that_lost_its_id_is_still_in_effect() {
    let info = r#"{"id":"ses_a","directory":"/p","title":"t","version":"1.18.33"}"#;
    let text = "a line of a file\\n".repeat(60);
    let call = format!(
        r#"{{"id":"prt_2","type":"tool","tool":"bash","callID":"c","state":{{"status":"completed",
        "input":{{}},"output":"{text}","title":"t","metadata":{{}},
        "time":{{"start":1,"end":2}}}}}}"#
    );
    let message = format!(r#"{{"info":{{"id":"msg_1","role":"assistant"}},"parts":[{call}]}}"#);
    let export = format!(r#"{{"info":{info},"messages":[{message}]}}"#);
    let mut home = Home::new(&[("s.json", export.into_bytes())], &[]);
    let before = home.bytes();
    home.take(&Step::Compact { session: 0, recipe: 2, keep: Keep::default(), way: None });
    assert_ne!(home.bytes(), before, "there was something to compact");
    home.take(&Step::Append { file: 0, bytes: b"a\n".to_vec() });
    let log = runs(&home.config).expect("the archive can be read");
    assert_eq!(log.runs[0].state, RunState::InEffect);
    home.take(&Step::Undo { newest: 0 });
    let log = runs(&home.config).expect("the archive can be read");
    assert_eq!(log.runs[0].state, RunState::Undone);
}

fn config() -> ProptestConfig {
    let times = std::env::var("EPITOME_FUZZ").ok().and_then(|it| it.parse().ok()).unwrap_or(1);
    ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(8 * times) }
}

/// A generated session, printed as text when a history fails.
#[derive(Clone)]
struct Bytes(Vec<u8>);

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "b\"{}\"", self.0.escape_ascii())
    }
}

/// A restore refuses a session with a stub whose bytes are not in the archive, so the pasted stub
/// in generated sessions is made invalid here.
fn session(agent: &'static str) -> impl Strategy<Value = Bytes> {
    let (stub, broken) = ("epitome k7f3a9c2", "epitome k7f3a9-2");
    fixtures::generate::session(agent).prop_map(move |bytes| {
        let mut bytes = bytes;
        let places: Vec<usize> = memchr::memmem::find_iter(&bytes, stub).collect();
        places.into_iter().for_each(|at| {
            bytes[at..at + stub.len()].copy_from_slice(broken.as_bytes());
        });
        Bytes(bytes)
    })
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    vec(step(), 1..9)
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn nothing_of_claude_code_is_lost(
        bytes in session("claude"), agent in session("claude"), steps in steps(),
    ) {
        let of = |folder: &str| [
            format!(".claude/projects/{folder}/s-claude.jsonl"),
            format!(".claude/projects/{folder}/s-claude/subagents/agent-a.jsonl"),
        ];
        let ([path, sub], copy) = (of("-p"), of("-q"));
        let files = [(path.as_str(), bytes.0), (sub.as_str(), of_sub_agent(&agent.0))];
        history(Home::new(&files, &copy.each_ref().map(String::as_str)), &steps);
    }

    #[test]
    fn nothing_of_gemini_is_lost(
        bytes in session("gemini"), agent in session("gemini"), steps in steps(),
    ) {
        let chats = [".gemini", "tmp", "project", "chats"].join("/");
        let path = format!("{chats}/session-2026-01-01T00-00-abcdef01.jsonl");
        let sub = format!("{chats}/abcdef01-2345-6789-abcd-ef0123456789/sub.jsonl");
        let agent = String::from_utf8_lossy(&agent.0).replace("\"s-1\"", "\"s-2\"").into_bytes();
        history(Home::new(&[(&path, bytes.0), (&sub, agent)], &[]), &steps);
    }

    #[test]
    fn nothing_of_pi_is_lost(bytes in session("pi"), steps in steps()) {
        let of = |folder: &str| format!(".pi/agent/sessions/{folder}/2026-01-01T00-00-00_s.jsonl");
        history(Home::new(&[(&of("--p--"), bytes.0)], &[&of("--q--")]), &steps);
    }

    #[test]
    fn nothing_of_codex_is_lost(bytes in session("codex"), steps in steps()) {
        let of = |day| {
            let id = "00000000-0000-4000-8000-000000000001";
            format!(".codex/sessions/2026/01/{day}/rollout-2026-01-{day}T00-00-00-{id}.jsonl")
        };
        history(Home::new(&[(&of("01"), bytes.0)], &[&of("02")]), &steps);
    }

    /// The output of `opencode export`, and rows as lines.
    #[test]
    fn nothing_of_opencode_is_lost(bytes in session("opencode"), steps in steps()) {
        history(Home::new(&[("s.json", bytes.0)], &[]), &steps);
    }
}
