//! What is refused, and what a killed restore leaves.

use super::*;

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
    // Settings and another session, kept as the session's own file and as a file that belongs
    // to it.
    let other = day.join("rollout-2026-11-20T10-00-00-01a1fb3b-0000-7601-bb99-e47e04b7ff1d.jsonl");
    for path in [codex.join("config.toml"), codex.join("hooks.json"), other] {
        for part in [None, Some("part")] {
            let file = keep(&config, part, &path, "theirs");
            fs::write(&path, "mine").expect("written");
            assert_eq!(restore(&file), Err(ErrorKind::Unsupported), "{part:?} {path:?}");
            assert_eq!(fs::read_to_string(&path).expect("a file"), "mine");
        }
    }
    // A restore of the whole session would also write the files that belong to it.
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

/// The process ends at every eleventh step that writes, and the next command completes what it
/// began. (There are about 200 steps; all of them passed, which takes five minutes.)
#[test]
fn a_restore_of_several_files_that_is_interrupted_is_completed() {
    let dir = tempfile::tempdir().expect("a folder");
    let dir = dir.path().canonicalize().expect("a folder");
    let config = Config::from_home(&dir);
    let own = dir.join(".claude/projects/-p").join(format!("{ID}.jsonl"));
    let agents = own.with_extension("").join("subagents");
    let fixture = fixtures::get("claude", "pricing");
    let agent = fs::read(&fixture.sub_agents()[0]).expect("a sub-agent");
    let files = [own.clone(), agents.join("agent-a.jsonl"), agents.join("agent-b.jsonl")];
    let first = [fixture.bytes(), agent.clone(), agent];
    let later: Vec<Vec<u8>> = first.iter().map(|it| [&it[..], b"{}\n"].concat()).collect();
    fs::create_dir_all(&agents).expect("a folder");
    let write = |contents: &[Vec<u8>]| {
        for (path, bytes) in files.iter().zip(contents) {
            fs::write(path, bytes).expect("written");
        }
    };
    let now = || files.clone().map(|path| fs::read(path).unwrap_or_default());
    let mut keeper = super::super::Keeper::open(&config).expect("a vault");
    write(&first);
    keeper.scan().expect("a scan");
    let vault = config.vault().expect("a vault");
    let file = vault.files().find(|file| file.part.is_none()).expect("a session").clone();
    let mut partly = 0;
    for step in (0..).step_by(11) {
        write(&later);
        if step % 2 == 0 {
            fs::remove_file(&files[2]).expect("deleted");
        }
        let before = now();
        keeper.scan().expect("a scan");
        let (config_there, file) = (config.clone(), file.clone());
        // A thread that panics holds no locks any more, and its record stays.
        let ended = std::thread::spawn(move || {
            let mut left = step;
            let die = move |at: crate::step::DiskStep| {
                assert!(at.is_reading() || left > 0, "the process is killed here");
                left -= usize::from(!at.is_reading());
                Ok(())
            };
            crate::step::fault::with(die, || {
                let mut vault = config_there.vault().expect("a vault");
                let restore = RestoreVersion { file: &file, number: 1, force: false };
                restore.run(&config_there, &mut vault).map(drop)
            })
        });
        match ended.join() {
            Ok(done) => {
                done.expect("it was let alone");
                break;
            }
            Err(_) => {
                let is_partly = now() != before && now()[..] != first[..];
                partly += usize::from(is_partly);
                keeper.scan().expect("a scan");
                assert!(now() == before || now()[..] == first[..], "step {step}");
            }
        }
    }
    assert!(partly > 0, "{partly}");
    assert_eq!(now()[..], first[..]);
    let left = fs::read_dir(Vault::folder_in(&config.home).join("restoring"));
    assert_eq!(left.expect("a folder").count(), 0);
}
