//! Tests of compacting and restoring a session with sub-agents. In most of them, a step of the disk
//! fails: then the files either all stay as they were, or all become what was planned.

use std::cell::Cell;
use std::fs::{self, File, FileTimes};
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, SystemTime};

use epitome_passes::Recipe;
use epitome_tokens::Estimate;
use serde_json::{Value, json};

use super::*;
use crate::config::Config;
use crate::error::{Error, ErrorKind};
use crate::runs::{RunState, runs};
use crate::step::{DiskStep, fault};

const ID: &str = "0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4";

/// A session of Claude Code and two sub-agents. In a `short` case, the session's own file has
/// nothing to compact.
struct Case {
    _dir: tempfile::TempDir,
    config: Config,
    files: Vec<(PathBuf, Vec<u8>)>,
}

impl Case {
    fn new(short: bool) -> Case {
        let dir = tempfile::tempdir().expect("a folder");
        let user = dir.path().canonicalize().expect("a folder");
        let config =
            Config::from_folders(&user, &user.join("data"), &user.join("config"), |_| None);
        let projects = user.join(".claude/projects/-p");
        let agent = |name: &str| projects.join(ID).join("subagents").join(name);
        let files = [
            (projects.join(format!("{ID}.jsonl")), if short { 0 } else { 60 }),
            (agent("agent-a.jsonl"), 40),
            (agent("agent-b.jsonl"), 50),
        ];
        let files = files.map(|(path, lines)| {
            let bytes = session(lines).into_bytes();
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(&path, &bytes).expect("a session");
            let old = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
            let file = File::options().write(true).open(&path).expect("a session");
            file.set_times(FileTimes::new().set_modified(old)).expect("a time");
            (path, bytes)
        });
        Case { _dir: dir, config, files: files.into() }
    }

    fn path(&self) -> &Path {
        &self.files[0].0
    }

    fn session(&self) -> OpenSession<'_> {
        OpenSession::new(&self.config, self.path())
    }

    fn compact(&self) -> Result<CompactReport> {
        let recipe = recipe();
        let run = self.config.begin_run("compact");
        Compact::new(&recipe, &Estimate, &run).run(&self.session())
    }

    fn restore(&self) -> Result<RestoreReport> {
        Restore::default().run(&self.session())
    }

    /// For each file, whether it holds what the agent wrote.
    fn originals(&self) -> Vec<bool> {
        self.files.iter().map(|(path, was)| fs::read(path).expect("a session") == *was).collect()
    }
}

fn recipe() -> Recipe {
    let text = "name = \"r\"\nabout = \"Results.\"\n[[passes]]\npass = \"results\"\n\
                style = \"cleared\"\n";
    Recipe::parse(text).expect("a recipe")
}

fn session(lines: usize) -> String {
    let mut parent = Value::Null;
    let mut text = String::new();
    let mut add = |n: usize, role: &str, content: Value| {
        let uuid = format!("00000000-0000-4000-8000-{n:012}");
        let line = json!({
            "type": role, "uuid": uuid, "parentUuid": parent, "sessionId": ID, "cwd": "/p",
            "timestamp": "2026-11-18T10:00:00.000Z", "message": {"role": role, "content": content},
        });
        parent = json!(uuid);
        text.push_str(&format!("{line}\n"));
    };
    add(0, "user", json!("List the files."));
    for n in 0..3 {
        let (id, at) = (format!("t{n}"), 1 + 2 * n);
        let call = json!({"type": "tool_use", "id": id, "name": "Bash",
                          "input": {"command": format!("ls {n}")}});
        add(at, "assistant", json!([call]));
        let output: String = (0..lines).map(|line| format!("{n}: file number {line}\n")).collect();
        let result = json!({"type": "tool_result", "tool_use_id": id, "content": output});
        add(at + 1, "user", json!([result]));
    }
    add(7, "assistant", json!([{"type": "text", "text": "Those are all."}]));
    add(8, "user", json!("Thanks."));
    text
}

/// Returns a hook that makes write number `n` fail, counted from 0, and with `from_then_on` all
/// later writes, too; and a flag that is set when a write fails.
fn failing(
    n: usize,
    from_then_on: bool,
) -> (impl FnMut(DiskStep) -> io::Result<()> + 'static, Rc<Cell<bool>>) {
    let failed = Rc::new(Cell::new(false));
    let (mut seen, told) = (0, Rc::clone(&failed));
    let hook = move |step: DiskStep| {
        seen += usize::from(!step.is_reading());
        if !step.is_reading() && (seen == n + 1 || (from_then_on && seen > n)) {
            told.set(true);
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(())
    };
    (hook, failed)
}

/// Runs `work` on new cases: in the first run write number 0 fails, in the second write number 1,
/// until none fails. After each run, calls `check`, and checks that another compaction succeeds and
/// that a restore gives all files back. Returns the number of writes.
fn every_step(
    short: bool,
    from_then_on: bool,
    prepare: impl Fn(&Case),
    work: impl Fn(&Case) -> Result<()>,
    check: impl Fn(&Case, &Result<()>, usize),
) -> usize {
    for n in 0.. {
        let case = Case::new(short);
        prepare(&case);
        let (hook, failed) = failing(n, from_then_on);
        let done = fault::with(hook, || work(&case));
        check(&case, &done, n);
        let kind = done.as_ref().err().map(Error::kind);
        assert!(kind.is_none_or(|it| !is_our_bug(it)), "step {n}: {done:?}");
        case.compact().expect("the next compaction");
        let compacted = [short, false, false];
        assert_eq!(case.originals(), compacted, "step {n}, {done:?}: compacted again");
        case.restore().expect("the restore");
        assert_eq!(case.originals(), [true; 3], "step {n}, {done:?}: restored");
        if !failed.get() {
            done.expect("nothing failed");
            return n;
        }
    }
    unreachable!("a compaction has an end")
}

/// Whether an error blames epitome or the session, and not the disk.
fn is_our_bug(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Broken | ErrorKind::Invariant | ErrorKind::UnknownFormat)
}

/// Runs `work` on a prepared case again and again. In the first run the first read fails, in the
/// second run the fourth, in the third the seventh, until no read fails. A failed run changes
/// nothing, so the next run uses the same case.
fn every_read<T>(
    prepare: impl Fn() -> Case,
    work: impl Fn(&Case) -> Result<T>,
    check: impl Fn(&Case, &Result<T>, usize),
) {
    let mut case = prepare();
    for n in (0..).step_by(3) {
        let before = case.originals();
        let failed = Rc::new(Cell::new(false));
        let was_reached = Rc::clone(&failed);
        let mut unreadable = fault::unreadable_at(n);
        let hook = move |step| unreadable(step).inspect_err(|_| was_reached.set(true));
        let done = fault::with(hook, || work(&case));
        check(&case, &done, n);
        match done {
            Err(err) => {
                assert_eq!(case.originals(), before, "read {n}: {err:?}");
                assert!(!is_our_bug(err.kind()), "read {n}: {err:?}");
            }
            Ok(_) if failed.get() => case = prepare(),
            Ok(_) => {
                assert!(n > 10, "{n} reads");
                return;
            }
        }
    }
}

fn compacted(short: bool) -> Case {
    let case = Case::new(short);
    case.compact().expect("it is compacted");
    case
}

#[test]
fn a_failing_read_changes_nothing_of_a_family() {
    for short in [false, true] {
        let compact = |case: &Case| case.compact().map(drop);
        every_read(
            || Case::new(short),
            compact,
            |case, done, n| {
                let expect = [short || done.is_err(), done.is_err(), done.is_err()];
                assert_eq!(case.originals(), expect, "compact, read {n}: {done:?}");
            },
        );
        let restore = |case: &Case| case.restore().map(drop);
        every_read(
            || compacted(short),
            restore,
            |case, done, n| {
                let expect = [short || done.is_ok(), done.is_ok(), done.is_ok()];
                assert_eq!(case.originals(), expect, "restore, read {n}: {done:?}");
            },
        );
    }
}

#[test]
fn a_run_that_cannot_be_read_is_neither_undone_nor_a_part_of_itself() {
    let last = |case: &Case| runs(&case.config)?.last_in_effect();
    every_read(
        || compacted(false),
        last,
        |case, last, n| {
            let Ok(run) = last else { return };
            let run = run.as_ref().unwrap_or_else(|| panic!("read {n}: the run is in effect"));
            assert_eq!(run.state, RunState::InEffect, "read {n}");
            let files: Vec<&PathBuf> = run.sessions.iter().flat_map(|it| &it.files).collect();
            let mut expect: Vec<&PathBuf> = case.files.iter().map(|(path, _)| path).collect();
            expect.sort();
            assert_eq!(files, expect, "read {n}");
        },
    );
}

#[test]
fn a_plan_of_a_file_that_cannot_be_read_is_the_error_of_the_disk() {
    let plan = |case: &Case| {
        let recipe = recipe();
        let run = case.config.begin_run("compact");
        Compact::new(&recipe, &Estimate, &run).plan(&case.session(), |_, _| {}).map(drop)
    };
    every_read(
        || Case::new(false),
        plan,
        |_, planned, n| {
            let Err(err) = planned else { return };
            assert_eq!(err.kind(), ErrorKind::Unreadable, "read {n}: {err:?}");
            assert!(err.path().is_some(), "read {n}: {err:?}");
        },
    );
}

#[test]
fn a_failing_step_of_a_compaction_changes_nothing_of_a_family() {
    for short in [false, true] {
        let steps = every_step(
            short,
            false,
            |_| {},
            |case| case.compact().map(drop),
            |case, done, n| {
                let compacted = [short, false, false];
                let expect = if done.is_ok() { compacted } else { [true; 3] };
                assert_eq!(case.originals(), expect, "step {n}: {done:?}");
            },
        );
        assert!(steps > 20, "{steps} steps");
    }
}

#[test]
fn a_failing_step_of_a_restore_changes_nothing_of_a_family() {
    for short in [false, true] {
        let compacted = [short, false, false];
        let steps = every_step(
            short,
            false,
            |case| drop(case.compact().expect("it is compacted")),
            |case| case.restore().map(drop),
            |case, done, n| {
                let expect = if done.is_ok() { [true; 3] } else { compacted };
                assert_eq!(case.originals(), expect, "step {n}: {done:?}");
            },
        );
        assert!(steps > 8, "{steps} steps");
    }
}

#[test]
fn what_cannot_be_taken_back_is_named_and_given_back_later() {
    let named = Cell::new(0);
    every_step(
        false,
        true,
        |_| {},
        |case| case.compact().map(drop),
        |case, done, n| {
            let Err(err) = done else { return };
            let changed = case.originals().contains(&false);
            let message = err.to_string();
            assert_eq!(message.contains("could not be taken back"), changed, "step {n}: {message}");
            assert!(!changed || !err.hint().unwrap_or_default().contains("nothing was changed"));
            named.set(named.get() + usize::from(changed));
        },
    );
    assert!(named.get() > 0, "no step failed between two replacements");
}

#[test]
fn a_restore_of_a_session_that_was_never_compacted_gives_its_sub_agents_back() {
    let case = Case::new(true);
    let done = case.compact().expect("it is compacted");
    assert_eq!(done.all().map(|it| it.generation).collect::<Vec<_>>(), [None, Some(1), Some(1)]);
    assert_eq!(case.originals(), [true, false, false]);
    assert_eq!(case.session().undoable().len(), 1);
    let back = case.restore().expect("it is restored");
    assert_eq!(back.done.len(), 2);
    assert_eq!(case.originals(), [true; 3]);
    assert_eq!(case.session().undoable().len(), 0);
}

/// The session, its sub-agents and the archive are exported to another machine.
#[test]
fn what_is_exported_gives_a_session_back_with_its_sub_agents() {
    for short in [false, true] {
        let (here, there) = (Case::new(short), Case::new(short));
        here.compact().expect("it is compacted");
        let session = crate::session::load(here.path(), None).expect("a session");
        let key = crate::session::key_of(&session, here.path());
        let mut tar = Vec::new();
        let packs = here.config.archive().export(&key, &mut tar).expect("it is exported");
        assert_eq!(packs, if short { 2 } else { 3 });
        for ((from, _), (to, _)) in here.files.iter().zip(&there.files) {
            fs::copy(from, to).expect("a copy");
        }
        let archive = there.config.archive();
        let files = |it: &Generation| crate::agents::files_of(&there.config.agents, it);
        let report = archive.import(&mut &*tar, there.config.now(), &files).expect("imported");
        assert_eq!((report.added.len() as u64, report.refused), (packs, Vec::new()));
        let before = there.originals();
        assert_eq!(before, [short, false, false]);
        let err = there.restore().expect_err("nobody agreed to what was imported");
        assert_eq!(err.kind(), ErrorKind::Refused, "{err}");
        assert_eq!(there.originals(), before, "{short}: {err}");
        // The user who is asked sees all imported generations, those of sub-agents too.
        let mut shown = 0;
        let agreed = |done: &[FileRestore]| {
            shown = done.iter().map(|it| it.imported.len()).sum();
            Ok::<_, Error>(())
        };
        Restore::default().run_after(&there.session(), agreed).expect("it is restored");
        assert_eq!((shown as u64, there.originals()), (packs, vec![true; 3]), "{short}");
    }
}

/// One removed text is put back, and then the run is undone: all files are as the agent wrote them.
#[test]
fn a_run_is_undone_after_one_block_of_it_was_put_back() {
    let case = Case::new(false);
    let done = case.compact().expect("it is compacted");
    let text = fs::read_to_string(case.path()).expect("a session");
    let stub = text.split("[epitome k").nth(1).expect("a stub");
    let digits = stub.split([':', ']']).next().expect("a name");
    let name: epitome_model::Ref = format!("k{digits}").parse().expect("a reference");
    let block = Restore { what: What::Block(&name), ..Restore::default() };
    block.run(&case.session()).expect("it is put back");
    assert_eq!(case.originals(), [false; 3]);
    let log = runs(&case.config).expect("a log");
    let logged = log.last_in_effect().expect("it is known").expect("a run");
    let files: Vec<PathBuf> = case.files.iter().map(|(path, _)| path.clone()).collect();
    let what = What::Run { id: &logged.id, files: &files };
    Restore { what, ..Restore::default() }.run(&case.session()).expect("it is undone");
    assert_eq!(case.originals(), [true; 3], "{done:?}");
}

/// The number of packs in the archive, and their bytes on disk.
fn stored(case: &Case) -> (usize, u64) {
    let archive = case.config.archive();
    let keys = archive.sessions().expect("the archive can be listed");
    let sizes = keys.iter().flat_map(|key| archive.sizes(key).expect("packs"));
    sizes.fold((0, 0), |(packs, sum), (_, bytes)| (packs + 1, sum + bytes.0))
}

/// Compacting, restoring and compacting again stores the removed bytes once.
#[test]
fn the_same_bytes_are_stored_once_however_often_they_are_tried() {
    let case = Case::new(false);
    case.compact().expect("it is compacted");
    let (packs, once) = stored(&case);
    for _ in 0..3 {
        case.restore().expect("it is given back");
        assert_eq!(case.originals(), [true; 3]);
        case.compact().expect("it is compacted again");
        let (now, bytes) = stored(&case);
        // The packs of the two compactions may differ a little, because times and run ids differ in
        // length.
        assert!(now == packs && bytes <= once + once / 20, "{now} packs with {bytes} of {once}");
        let found = case.session().undoable();
        assert_eq!(found.len(), 1, "{found:?}");
    }
    let report = case.config.archive().verify().expect("the archive can be read");
    assert!(report.faults.is_empty(), "{report:?}");
    let log = runs(&case.config).expect("a log");
    assert_eq!(log.runs.len(), 1, "{log:?}");
    assert_eq!(log.runs[0].state, RunState::InEffect);
    case.restore().expect("it is given back");
    assert_eq!(case.originals(), [true; 3]);
}

/// A copy of a compacted session is restored, although the session itself was restored and
/// compacted again since.
#[test]
fn a_copy_is_given_back_although_its_first_compaction_was_repeated() {
    let case = Case::new(false);
    case.compact().expect("it is compacted");
    let copy = case.path().with_file_name("copy.jsonl");
    fs::copy(case.path(), &copy).expect("a copy");
    case.restore().expect("it is given back");
    case.compact().expect("it is compacted again");
    let restored = Restore::default().run(&OpenSession::new(&case.config, &copy));
    restored.expect("the copy is given back");
    assert_eq!(fs::read(&copy).expect("a session"), case.files[0].1);
}

/// Secrets in the names of files are hidden: reports are pasted into issues.
#[test]
fn a_report_hides_secrets_in_names() {
    let case = Case::new(false);
    let token = ["ghp_", "9aKfQ2mZx7LwT4vBn8RcY1sHd6JpE3uGo5Wi"].concat();
    let text = String::from_utf8(case.files[0].1.clone()).expect("text");
    let text = text.replace("\"Bash\"", "\"Read\"").replace("\"command\"", "\"file_path\"");
    let text = text.replace("ls 0", &format!("/p/{token}/a.txt"));
    fs::write(case.path(), text).expect("a session");
    let done = case.compact().expect("it is compacted");
    let json = serde_json::to_string(&done).expect("JSON");
    assert!(!json.contains(&token[..20]), "{json}");
    assert!(done.file.savings.files.iter().any(|it| it.of.ends_with("/a.txt")), "{json}");
}
