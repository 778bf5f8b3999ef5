//! Tests of restoring versions: what is refused, and what a killed restore leaves.

use super::*;
use crate::keep::VersionHistory;

const ID: &str = "01a1fb3b-31f2-7601-bb99-e47e04b7ff1d";

/// Writes `content` to `path`, and keeps it as a version of a session of Codex or of its file
/// `part`.
fn keep(config: &Config, part: Option<&str>, path: &Path, content: &str) -> FileKey {
    let mut vault = config.create_vault().expect("a vault");
    let file = FileKey {
        machine: vault.machine().to_owned(),
        agent: "codex".to_owned(),
        session: ID.to_owned(),
        part: part.map(str::to_owned),
        path: path.to_owned(),
    };
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    fs::write(path, content).expect("written");
    let mut batch = vault.begin(config.now());
    batch.put_file(&file, path).expect("put");
    batch.commit().expect("kept");
    file
}

#[test]
fn a_version_never_replaces_a_file_that_is_no_session_of_its_agent() {
    let dir = tempfile::tempdir().expect("a folder");
    let config = Config::from_home(dir.path());
    let codex = dir.path().join(".codex");
    let day = codex.join("sessions/2026/11/20");
    let session = fixtures::get("codex", "pricing").bytes();
    let session = String::from_utf8(session).expect("text");
    let own = day.join(format!("rollout-2026-11-20T23-12-03-{ID}.jsonl"));
    let own = keep(&config, None, &own, &session);
    let restore = |file: &FileKey| {
        let mut vault = config.vault().expect("a vault");
        let number = vault.versions(file).next_back().expect("a version").number;
        let restore = RestoreVersion { file, number, force: false };
        let planned = restore.plan(&config, &vault).map(drop).map_err(|err| err.kind());
        let done = restore.run(&config, &mut vault).map(drop).map_err(|err| err.kind());
        assert_eq!(planned, done);
        done
    };
    fs::remove_file(&own.path).expect("deleted");
    assert_eq!(restore(&own), Ok(()));
    assert_eq!(fs::read_to_string(&own.path).expect("made again"), session);
    // The agent's settings and the file of another session are in the vault, once as the own file
    // of the session `ID` and once as a file that belongs to it.
    let other = day.join("rollout-2026-11-20T10-00-00-01a1fb3b-0000-7601-bb99-e47e04b7ff1d.jsonl");
    for path in [codex.join("config.toml"), codex.join("hooks.json"), other] {
        for part in [None, Some("part")] {
            let file = keep(&config, part, &path, "theirs");
            fs::write(&path, "mine").expect("written");
            assert_eq!(restore(&file), Err(ErrorKind::Unsupported), "{part:?} {path:?}");
            assert_eq!(fs::read_to_string(&path).expect("a file"), "mine");
        }
    }
    // A restore of the session `ID` is refused, too, because it would also write these files.
    let own = keep(&config, None, &own.path, &format!("{session}\n"));
    fs::write(&own.path, &session).expect("written");
    assert_eq!(restore(&own), Err(ErrorKind::Unsupported));
}

/// What cannot be replaced is refused before anything is written, also in a dry run.
#[cfg(unix)]
#[test]
fn a_file_that_cannot_be_replaced_is_refused_by_the_plan() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().expect("a folder");
    let config = Config::from_home(dir.path());
    let session = fixtures::get("codex", "pricing").bytes();
    let session = String::from_utf8(session).expect("text");
    let day = dir.path().join(".codex/sessions/2026/11/20");
    let path = day.join(format!("rollout-2026-11-20T23-12-03-{ID}.jsonl"));
    let file = keep(&config, None, &path, &session);
    let now = format!("{session}{{}}\n");
    fs::write(&path, &now).expect("written");
    let mode = |bits: u32| {
        fs::set_permissions(&path, fs::Permissions::from_mode(bits)).expect("a mode");
    };
    let restore = RestoreVersion { file: &file, number: 1, force: false };
    let check = |expect: ErrorKind| {
        let mut vault = config.vault().expect("a vault");
        let planned = restore.plan(&config, &vault).expect_err("refused");
        let copy = restore.plan_copy(&vault, &day.join("copy")).expect("a copy");
        let done = restore.run(&config, &mut vault).expect_err("refused");
        assert_eq!((planned.kind(), done.kind()), (expect, expect));
        assert!(copy.dry_run && !copy.path.exists());
        assert_eq!(fs::read_to_string(&path).expect("a session"), now);
    };
    mode(0o444);
    check(ErrorKind::NoPermission);
    mode(0o644);
    let other = dir.path().join("other");
    fs::hard_link(&path, &other).expect("a second name");
    check(ErrorKind::HardLinked);
    fs::remove_file(&other).expect("removed");
    // Nothing is written to a session that has the content already.
    fs::write(&path, &session).expect("written");
    mode(0o444);
    let vault = config.vault().expect("a vault");
    assert!(restore.plan(&config, &vault).expect("a plan").unchanged);
}

/// A session with two sub-agents whose files are restored to their first versions.
struct Interrupted {
    _dir: tempfile::TempDir,
    config: Config,
    paths: [PathBuf; 3],
    first: [Vec<u8>; 3],
    /// The session's own file.
    file: FileKey,
}

impl Interrupted {
    fn new() -> Interrupted {
        let temp = tempfile::tempdir().expect("a folder");
        let dir = temp.path().canonicalize().expect("a folder");
        let config = Config::from_home(&dir);
        let own = dir.join(".claude/projects/-p").join(format!("{ID}.jsonl"));
        let agents = own.with_extension("").join("subagents");
        let fixture = fixtures::get("claude", "pricing");
        let agent = fs::read(&fixture.sub_agents()[0]).expect("a sub-agent");
        let paths = [own, agents.join("agent-a.jsonl"), agents.join("agent-b.jsonl")];
        let first = [fixture.bytes(), agent.clone(), agent];
        fs::create_dir_all(&agents).expect("a folder");
        for (path, bytes) in paths.iter().zip(&first) {
            fs::write(path, bytes).expect("written");
        }
        scan(&config);
        let vault = config.vault().expect("a vault");
        let file = vault.files().find(|file| file.part.is_none()).expect("a session").clone();
        Interrupted { _dir: temp, config, paths, first, file }
    }

    /// Writes other contents, deletes the last file if `delete_last`, and keeps this as versions.
    /// Returns the contents.
    fn change(&self, delete_last: bool) -> [Vec<u8>; 3] {
        for (path, bytes) in self.paths.iter().zip(&self.first) {
            fs::write(path, [&bytes[..], b"{}\n"].concat()).expect("written");
        }
        if delete_last {
            fs::remove_file(&self.paths[2]).expect("deleted");
        }
        scan(&self.config);
        self.now()
    }

    fn now(&self) -> [Vec<u8>; 3] {
        self.paths.clone().map(|path| fs::read(path).unwrap_or_default())
    }

    /// Begins a restore of all files to their first versions, and replaces only the first file, as
    /// a process does that is killed then. `before` are the present contents.
    fn begin(&self, before: &[Vec<u8>; 3]) {
        let digest = |bytes: &[u8]| Some(Digest::new(bytes.len() as u64, &blake3::hash(bytes)));
        let vault = self.config.vault().expect("a vault");
        let mut files = Vec::new();
        for ((path, before), first) in self.paths.iter().zip(before).zip(&self.first) {
            let file = vault.files().find(|file| file.path == *path).expect("a file").clone();
            let file = FileKey { machine: String::new(), ..file };
            let (before, after) = (digest(before), digest(first));
            files.push(IntendedFile { file, before, after, is_deleted: false });
        }
        let records = RestoreRecords::lock(&self.config).expect("a lock");
        records.add(&Intention::new(&self.file, 1, files)).expect("a record");
        fs::write(&self.paths[0], &self.first[0]).expect("written");
    }

    /// Moves the sessions and the folder of epitome to another home.
    fn move_home(self) -> Interrupted {
        let temp = tempfile::tempdir().expect("a folder");
        let dir = temp.path().canonicalize().expect("a folder");
        let from = self._dir.path().canonicalize().expect("a folder");
        for entry in fs::read_dir(&from).expect("a folder").flatten() {
            fs::rename(entry.path(), dir.join(entry.file_name())).expect("moved");
        }
        let config = Config::from_home(&dir);
        let paths = self
            .paths
            .clone()
            .map(|path| dir.join(path.strip_prefix(&from).expect("a path in the home")));
        Interrupted { _dir: temp, config, paths, ..self }
    }

    fn restore(&self) -> Result<RestoredVersion> {
        let mut vault = self.config.vault().expect("a vault");
        let restore = RestoreVersion { file: &self.file, number: 1, force: false };
        restore.run(&self.config, &mut vault)
    }

    /// Checks that all files are restored and their histories say so, or that none is.
    fn check(&self, before: &[Vec<u8>; 3], step: usize) {
        let now = self.now();
        if now == *before {
            return;
        }
        assert_eq!(now, self.first, "step {step}");
        let vault = self.config.vault().expect("a vault");
        for path in &self.paths {
            let file = vault.files().find(|file| file.path == *path).expect("a file");
            let last = vault.versions(file).next_back().expect("a version");
            assert_eq!(last.cause, Some(Cause::Restored(1)), "step {step}: {path:?}");
        }
    }

    fn records(&self) -> usize {
        let folder = Vault::folder_in(&self.config.home).join("restoring");
        fs::read_dir(folder).map_or(0, |records| records.count())
    }
}

/// Keeps the present contents, and returns the errors of unfinished restores.
fn scan(config: &Config) -> Vec<Error> {
    let mut keeper = super::super::Keeper::open(config).expect("a vault");
    keeper.scan().expect("a scan").unfinished
}

/// Restores again and again, each time with `fault` 23 steps later (only steps that write are
/// counted), and checks that the next scan leaves all files restored or none. Returns how often
/// only some were restored before the scan. (All of the about 200 steps were tried once, which
/// takes five minutes.)
fn restore_with(fault: impl Fn() -> std::io::Result<()> + Copy + Send + 'static) -> usize {
    let session = Interrupted::new();
    let mut partly = 0;
    // A sub-agent that did not exist in the first version.
    let later = session.paths[1].with_file_name("agent-c.jsonl");
    for step in (0..).step_by(23) {
        let before = session.change(step % 2 == 0);
        fs::write(&later, &session.first[1]).expect("written");
        scan(&session.config);
        let is_met = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        let met = is_met.clone();
        std::thread::scope(|scope| {
            let mut left = step;
            let at_step = move |at: crate::step::DiskStep| {
                if at.is_reading() {
                    return Ok(());
                }
                if left == 0 {
                    met.store(true, std::sync::atomic::Ordering::Relaxed);
                    return fault();
                }
                left -= 1;
                Ok(())
            };
            let session = &session;
            // A panic has the effects of a killed process: its locks are released, and its record
            // stays.
            scope
                .spawn(move || crate::step::fault::with(at_step, || session.restore()))
                .join()
                .ok();
        });
        let now = session.now();
        let is_deleted = !later.exists();
        partly += usize::from(now != before && (now != session.first || !is_deleted));
        assert_eq!(scan(&session.config).len(), 0, "step {step}");
        session.check(&before, step);
        assert_eq!(later.exists(), session.now() == before, "step {step}");
        if !is_met.load(std::sync::atomic::Ordering::Relaxed) {
            break;
        }
    }
    assert_eq!(session.now(), session.first);
    assert_eq!(session.records(), 0);
    partly
}

/// The names of the files that a restore deletes, each with the version that has its content.
fn deleted(report: &RestoredVersion) -> Vec<(String, Option<u64>)> {
    let deleted = report.parts.iter().filter(|part| part.deleted);
    let name = |part: &RestoredVersion| part.path.file_stem().map(|it| it.to_string_lossy().into());
    deleted.map(|part| (name(part).unwrap_or_default(), part.replaced)).collect()
}

#[test]
fn a_sub_agent_that_did_not_exist_when_a_version_was_seen_is_kept_and_deleted() {
    let session = Interrupted::new();
    let before = session.change(false);
    let [later, never_kept] =
        ["agent-c.jsonl", "agent-d.jsonl"].map(|name| session.paths[1].with_file_name(name));
    fs::write(&later, &session.first[1]).expect("written");
    scan(&session.config);
    fs::write(&never_kept, &session.first[1]).expect("written");
    let vault = session.config.vault().expect("a vault");
    let restore = RestoreVersion { file: &session.file, number: 1, force: false };
    let planned = restore.plan(&session.config, &vault).expect("a plan");
    let [c, d] = ["agent-c", "agent-d"].map(str::to_owned);
    assert_eq!(deleted(&planned), [(c.clone(), None), (d.clone(), None)]);
    assert!(later.exists() && never_kept.exists());

    let done = session.restore().expect("restored");
    assert_eq!(deleted(&done), [(c, Some(1)), (d, Some(1))]);
    assert_eq!(session.now(), session.first);
    assert!(!later.exists() && !never_kept.exists());
    // A restore of the version from before gives the deleted files back.
    let number = done.replaced.expect("a version");
    let mut vault = session.config.vault().expect("a vault");
    let restore = RestoreVersion { file: &session.file, number, force: false };
    restore.run(&session.config, &mut vault).expect("restored");
    assert_eq!(session.now(), before);
    for path in [&later, &never_kept] {
        assert_eq!(fs::read(path).expect("a file"), session.first[1]);
    }
}

#[test]
fn a_deleted_session_that_cannot_come_back_whole_does_not_come_back() {
    let session = Interrupted::new();
    let [own, first_agent, _] = &session.paths;
    let folder = own.with_extension("");
    fs::remove_dir_all(&folder).expect("deleted");
    fs::remove_file(own).expect("deleted");
    // In the place of the folder of the sub-agents is a file.
    fs::write(&folder, "mine").expect("written");
    session.restore().expect_err("the sub-agents cannot be made");
    assert!(!own.exists() && !first_agent.exists());
    assert_eq!(session.records(), 0);
    fs::remove_file(&folder).expect("deleted");
    session.restore().expect("restored");
    assert_eq!(session.now(), session.first);
}

#[test]
fn copies_that_a_killed_restore_left_are_removed_and_no_others() {
    let session = Interrupted::new();
    let left = session.config.home.join("epitome-a1b2c3/.codex/sessions/s.jsonl");
    let vault = session.config.vault().expect("a vault");
    let restore = RestoreVersion { file: &session.file, number: 1, force: false };
    let used = restore.to_folder(&session.config, &vault).expect("a folder");
    fs::create_dir_all(left.parent().expect("a folder")).expect("a folder");
    fs::write(&left, "a whole session").expect("written");
    scan(&session.config);
    assert!(!session.config.home.join("epitome-a1b2c3").exists());
    assert_eq!(fs::read(used.session()).expect("a copy"), session.first[0]);
    let path = used.session().to_owned();
    drop(used);
    assert!(!path.parent().expect("a folder").exists());
}

#[test]
fn a_sub_agent_that_was_deleted_when_a_version_was_seen_is_deleted_again() {
    for is_made_before_the_next_version in [false, true] {
        let session = Interrupted::new();
        let [own, _, last] = &session.paths;
        let without = session.change(true);
        let make_again = || {
            fs::write(last, &session.first[2]).expect("written");
            scan(&session.config);
        };
        if is_made_before_the_next_version {
            make_again();
        }
        fs::write(own, &session.first[0]).expect("written");
        scan(&session.config);
        make_again();
        let mut vault = session.config.vault().expect("a vault");
        let restore = RestoreVersion { file: &session.file, number: 2, force: false };
        let done = restore.run(&session.config, &mut vault).expect("restored");
        if is_made_before_the_next_version {
            assert_eq!(deleted(&done), []);
            assert_eq!(session.now()[..2], without[..2]);
            assert_eq!(session.now()[2], session.first[2]);
        } else {
            assert_eq!(deleted(&done), [("agent-b".to_owned(), Some(3))]);
            assert_eq!(session.now(), without);
            assert!(!last.exists());
        }
    }
}

/// A project's folder was copied: the session is in two folders under one id.
#[test]
fn a_session_in_two_folders_is_restored_with_its_own_sub_agents_alone() {
    let session = Interrupted::new();
    let projects = session.config.agents.home.join(".claude/projects");
    let of_copy = |path: &PathBuf| {
        projects.join("-q").join(path.strip_prefix(projects.join("-p")).expect("below -p"))
    };
    let copies = session.paths.each_ref().map(of_copy);
    fs::create_dir_all(copies[1].parent().expect("a folder")).expect("a folder");
    for (path, copy) in session.paths.iter().zip(&copies) {
        fs::copy(path, copy).expect("copied");
    }
    scan(&session.config);
    let changed = session.change(false);
    let later = session.paths[1].with_file_name("agent-c.jsonl");
    for (path, bytes) in [(&copies[0], "{}\n{}\n"), (&copies[1], "{}\n"), (&later, "{}\n")] {
        fs::write(path, [&session.first[0], bytes.as_bytes()].concat()).expect("written");
    }
    scan(&session.config);
    let now_of_copy = || copies.each_ref().map(|path| fs::read(path).expect("a file"));
    let changed_copy = now_of_copy();
    let mut vault = session.config.vault().expect("a vault");
    let files: Vec<FileKey> = vault.files().cloned().collect();
    let file_at = |path: &Path| files.iter().find(|it| it.path == path).expect("a file");
    let parts = |file: &FileKey, vault: &Vault| {
        let history = VersionHistory::read(&session.config, vault, file).expect("a history");
        history.parts.into_iter().map(|part| part.path).collect::<Vec<_>>()
    };
    let restored = |file: &FileKey, vault: &mut Vault| {
        let restore = RestoreVersion { file, number: 1, force: false };
        let done = restore.run(&session.config, vault).expect("restored");
        done.parts.into_iter().map(|part| part.path).collect::<Vec<_>>()
    };
    let copy = file_at(&copies[0]);
    assert_eq!(parts(copy, &vault), copies[1..]);
    assert_eq!(restored(copy, &mut vault), copies[1..2]);
    assert_eq!((now_of_copy(), session.now()), (session.first.clone(), changed));
    assert!(later.exists());
    for (path, bytes) in copies.iter().zip(&changed_copy) {
        fs::write(path, bytes).expect("written");
    }
    let own = [&session.paths[1..], std::slice::from_ref(&later)].concat();
    assert_eq!(parts(&session.file, &vault), own);
    assert_eq!(restored(&session.file, &mut vault), own);
    assert_eq!((now_of_copy(), session.now()), (changed_copy, session.first.clone()));
    assert!(!later.exists());
    // A sub-agent alone is restored next to its own session.
    for part in [&copies[1], &session.paths[1]] {
        assert_eq!(restored(file_at(part), &mut vault), Vec::<PathBuf>::new());
        assert_eq!(fs::read(part).expect("a file"), session.first[1]);
    }
}

#[test]
fn a_file_that_is_no_part_of_its_session_is_not_deleted() {
    let session = Interrupted::new();
    let settings = session.config.agents.home.join(".claude/settings.json");
    fs::write(&settings, "{}").expect("written");
    let mut vault = session.config.vault().expect("a vault");
    let file = FileKey {
        part: Some("settings".to_owned()),
        path: settings.clone(),
        ..session.file.clone()
    };
    let mut batch = vault.begin(session.config.now());
    batch.put_file(&file, &settings).expect("put");
    batch.commit().expect("kept");
    session.change(false);
    let done = session.restore().expect("restored");
    assert_eq!(deleted(&done), []);
    assert_eq!(fs::read_to_string(&settings).expect("a file"), "{}");
}

#[test]
fn a_restore_of_several_files_that_is_killed_is_completed() {
    assert!(restore_with(|| panic!("the process is killed here")) > 0);
}

#[test]
fn a_restore_of_several_files_that_fails_is_undone_or_completed() {
    restore_with(|| Err(std::io::ErrorKind::StorageFull.into()));
}

#[test]
fn an_interrupted_restore_is_completed_before_the_session_is_restored_again() {
    let session = Interrupted::new();
    let before = session.change(false);
    session.begin(&before);
    // Another epitome has locked the file of a sub-agent: neither the interrupted restore nor the
    // new one can be carried out, and the record stays.
    let store = crate::store::Store::new(&session.config.home);
    let lock = store.lock_file(&session.paths[1]).expect("a lock");
    let err = session.restore().expect_err("locked");
    let what = "a restore of this session to version 1 was interrupted, and cannot be completed";
    let what = format!("{what}: {}", session.paths[0].display());
    assert_eq!((err.kind(), err.to_string()), (ErrorKind::Locked, what));
    // The error names both files that are not restored, and not only the one that is locked.
    let causes: Vec<String> = crate::error::causes(&err).map(ToString::to_string).collect();
    let [_, one, other] = session.paths.each_ref().map(|path| path.display());
    assert_eq!(causes[0], format!("these files are not restored yet: {one}, {other}"));
    assert_eq!((session.records(), scan(&session.config).len()), (1, 1));
    drop(lock);
    assert!(session.restore().expect("restored").unchanged);
    assert_eq!((session.records(), session.now()), (0, session.first.clone()));
}

#[test]
fn an_interrupted_restore_is_completed_in_a_home_that_was_moved() {
    let session = Interrupted::new();
    let before = session.change(false);
    session.begin(&before);
    let session = session.move_home();
    assert_eq!(scan(&session.config).iter().map(Error::to_string).collect::<Vec<_>>(), [""; 0]);
    assert_eq!((session.records(), session.now()), (0, session.first.clone()));
}

#[test]
fn a_scan_names_the_restore_that_it_completed() {
    let session = Interrupted::new();
    let before = session.change(false);
    session.begin(&before);
    let scan = || {
        let mut keeper = super::super::Keeper::open(&session.config).expect("a vault");
        keeper.scan().expect("a scan").completed
    };
    let file = super::super::KeptFile::from(&session.file);
    assert_eq!(scan(), [InterruptedRestore { file, version: 1 }]);
    assert_eq!(scan(), []);
}

#[test]
fn an_interrupted_restore_is_not_completed_by_a_restore_of_another_session() {
    let session = Interrupted::new();
    let before = session.change(false);
    session.begin(&before);
    let part = session.now();
    let other = session.paths[0].with_file_name("0000.jsonl");
    fs::write(&other, &session.first[0]).expect("written");
    let vault = || session.config.vault().expect("a vault");
    let mut batch_vault = vault();
    let file = FileKey { session: "0000".to_owned(), path: other, ..session.file.clone() };
    let mut batch = batch_vault.begin(session.config.now());
    batch.put_file(&file, &file.path).expect("put");
    batch.commit().expect("kept");
    let restore = RestoreVersion { file: &file, number: 1, force: false };
    restore.run(&session.config, &mut vault()).ok();
    assert_eq!((session.records(), session.now()), (1, part));
}

#[test]
fn an_interrupted_restore_is_completed_after_a_text_in_it_was_forgotten() {
    let session = Interrupted::new();
    let before = session.change(false);
    session.begin(&before);
    let text =
        epitome_store::forgotten::ForgottenText::new("Count the lines of tests").expect("a text");
    session.config.vault().and_then(|mut vault| vault.mask(&text)).expect("masked");
    assert_eq!(scan(&session.config).iter().map(Error::to_string).collect::<Vec<_>>(), [""; 0]);
    let mut expect = session.first.clone();
    let masked: u64 = expect[1..].iter_mut().map(|bytes| text.mask(bytes)).sum();
    assert!(masked > 0);
    assert_eq!((session.records(), session.now()), (0, expect));
}

#[test]
fn a_file_that_was_changed_since_a_restore_was_interrupted_is_named() {
    let session = Interrupted::new();
    let before = session.change(false);
    session.begin(&before);
    fs::write(&session.paths[1], "{}\n").expect("written");
    let errors = scan(&session.config);
    let [err] = &errors[..] else { panic!("{errors:?}") };
    let sentence = crate::error::sentence(err);
    let changed = format!("stays: {}", session.paths[1].display());
    assert!(sentence.contains(&changed), "{sentence}");
    let [own, _, last] = session.first.clone();
    assert_eq!(session.now(), [own, b"{}\n".to_vec(), last]);
    assert_eq!((session.records(), scan(&session.config).len()), (0, 0));
}

#[test]
fn all_files_that_were_changed_since_a_restore_was_interrupted_are_named() {
    let session = Interrupted::new();
    let before = session.change(false);
    session.begin(&before);
    let [_, one, other] = &session.paths;
    fs::write(one, "{}\n").expect("written");
    fs::write(other, "{}\n").expect("written");
    let errors = scan(&session.config);
    let [err] = &errors[..] else { panic!("{errors:?}") };
    let sentence = crate::error::sentence(err);
    let changed = format!("stay: {}, {}", one.display(), other.display());
    assert!(sentence.ends_with(&changed), "{sentence}");
}

fn forget_session(config: &Config) -> Result<crate::forget::ForgetReport> {
    let found = crate::forget::ForgetSession::find(config, ID, None).expect("a listing");
    let crate::forget::SessionChoice::One(found) = found else { panic!("one session") };
    let planned = found.plan(config).expect("a plan");
    let done = found.run(config)?;
    assert_eq!(planned.completed, done.completed);
    Ok(done)
}

#[test]
fn an_interrupted_restore_is_completed_before_its_session_is_forgotten() {
    let session = Interrupted::new();
    let before = session.change(false);
    session.begin(&before);
    // What a killed process leaves while it writes the session.
    let left = session.paths[0].with_file_name(".epitome-Ab12.tmp");
    fs::write(&left, &session.first[0]).expect("written");
    let report = forget_session(&session.config).expect("forgotten");
    let file = super::super::KeptFile::from(&session.file);
    assert_eq!(report.completed, [InterruptedRestore { file, version: 1 }]);
    assert!(!left.exists());
    let files = report.places.iter().filter(|it| it.kind == crate::forget::PlaceKind::File);
    let names: Vec<&str> = files.map(|it| &*it.name).collect();
    assert_eq!(names, [left.to_string_lossy()]);
    assert_eq!((session.records(), session.now()), (0, session.first.clone()));
    assert_eq!(scan(&session.config).len(), 0);
    assert_eq!(session.config.vault().expect("a vault").files().count(), 0);
}

#[test]
fn a_session_is_not_forgotten_while_its_interrupted_restore_cannot_be_completed() {
    let session = Interrupted::new();
    let before = session.change(false);
    session.begin(&before);
    let part = session.now();
    let store = crate::store::Store::new(&session.config.home);
    let lock = store.lock_file(&session.paths[1]).expect("a lock");
    let err = forget_session(&session.config).expect_err("locked");
    assert_eq!(err.kind(), ErrorKind::Locked);
    let hint = "wait until the other epitome is done; nothing was forgotten: run the same again";
    assert_eq!(err.hint(), Some(hint));
    assert_eq!((session.records(), session.now()), (1, part));
    assert!(session.config.vault().expect("a vault").files().count() > 0);
    drop(lock);
    forget_session(&session.config).expect("forgotten");
    assert_eq!((session.records(), session.now()), (0, session.first.clone()));
}
