//! What the history of a kept session says.

use std::fs;
use std::path::{Path, PathBuf};

use epitome::Config;
use epitome::archive::{GcMode, Hash};
use epitome::keep::{
    FileKey, Keeper, PruneReport, RestoreVersion, RetentionRules, VaultMatch, VersionHistory,
    VersionReason, deleted_sessions, file_with_version, find,
};
use epitome::ops::{Compact, OpenSession, Restore};
use epitome_model::Bytes;

/// Where an agent has a session with this id, below the home.
fn place(agent: &str, id: &str) -> PathBuf {
    let path = match agent {
        "pi" => format!(".pi/agent/sessions/--p--/2026-11-18T12-00-00-000Z_{id}.jsonl"),
        "claude" => format!(".claude/projects/-p/{id}.jsonl"),
        "codex" => format!(".codex/sessions/2026/11/18/rollout-2026-11-18T12-00-00-{id}.jsonl"),
        "gemini" => format!(".gemini/{}/p/chats/session-2026-11-18T12-00-{id}.jsonl", "tmp"),
        other => panic!("no place for {other}"),
    };
    path.into()
}

fn write(path: &Path, lines: &[&[u8]]) {
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    fs::write(path, lines.concat()).expect("a session");
}

fn kept(config: &Config, path: &Path) -> FileKey {
    let vault = config.vault().expect("a vault");
    match find(config, &vault, path.to_str().expect("text"), None) {
        VaultMatch::Session(file) => file,
        other => panic!("{other:?}"),
    }
}

/// Each version of a session in which the agent compacted it, if a scan sees each of its lines.
fn check(agent: &str, compacted_lines: &[usize]) {
    let home = tempfile::tempdir().expect("a folder");
    let config = Config::from_home(home.path());
    let path = home.path().join(place(agent, "01a1fbbd-1a90-75a1-9b38-7d1e8576fdb5"));
    let bytes = fixtures::get(agent, "own-compaction").bytes();
    let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    let mut keeper = Keeper::open(&config).expect("a vault");
    // Enough lines that the session is recognised.
    for end in 3..=lines.len() {
        write(&path, &lines[..end]);
        keeper.scan().expect("a scan");
    }
    let history = VersionHistory::read(&config, keeper.vault(), &kept(&config, &path));
    let history = history.expect("a history");
    assert_eq!(history.versions.len(), lines.len() - 2, "{agent}");
    let compacted = history.versions.iter().filter(|version| version.reason.is_some());
    let named: Vec<(usize, Option<VersionReason>)> =
        compacted.map(|it| (it.version as usize + 2, it.reason.clone())).collect();
    let by_agent = Some(VersionReason::CompactedByAgent);
    let expect: Vec<_> = compacted_lines.iter().map(|line| (*line, by_agent.clone())).collect();
    assert_eq!(named, expect, "{agent}");
}

#[test]
fn a_compaction_by_the_agent_itself_is_named() {
    check("pi", &[20]);
    check("claude", &[75]);
    check("codex", &[36]);
    check("gemini", &[40]);
}

#[test]
fn a_session_that_was_rewritten_with_a_summary_was_compacted_by_its_agent() {
    let home = tempfile::tempdir().expect("a folder");
    let config = Config::from_home(home.path());
    let path = home.path().join(place("pi", "0001"));
    let bytes = fixtures::get("pi", "own-compaction").bytes();
    let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    let mut keeper = Keeper::open(&config).expect("a vault");
    // The second line is missing in the second version, so that it is no append.
    let without = [&lines[..1], &lines[2..]].concat();
    for content in [&lines[..19], &without, &without[..10], &lines] {
        write(&path, content);
        keeper.scan().expect("a scan");
    }
    fs::remove_file(&path).expect("a session");
    keeper.scan().expect("a scan");
    let history = VersionHistory::read(&config, keeper.vault(), &kept(&config, &path));
    let versions = history.expect("a history").versions;
    let described: Vec<String> = versions.iter().map(|it| it.description()).collect();
    assert_eq!(
        described,
        [
            "first seen, 29.3 KB",
            "compacted by the agent, +7.8 KB",
            "cut, -16.6 KB",
            "compacted by the agent, +16.7 KB",
            "deleted"
        ]
    );
}

#[test]
fn a_version_is_read_like_a_session_with_its_sub_agents() {
    let home = tempfile::tempdir().expect("a folder");
    let config = Config::from_home(home.path());
    let path = home.path().join(place("claude", "0001"));
    let fixture = fixtures::get("claude", "pricing");
    write(&path, &[&fixture.bytes()]);
    let agents = path.with_extension("").join("subagents");
    for agent in fixture.sub_agents() {
        write(&agents.join(agent.file_name().expect("a name")), &[&fs::read(&agent).expect("it")]);
    }
    let mut keeper = Keeper::open(&config).expect("a vault");
    keeper.scan().expect("a scan");
    fs::remove_dir_all(home.path().join(".claude/projects/-p")).expect("a folder");
    let file = kept(&config, &path);
    let restore = RestoreVersion { file: &file, number: 1, force: false };
    let folder = restore.to_folder(&config, keeper.vault()).expect("a folder");
    let session = folder.session().to_owned();
    assert_eq!(fs::read(&session).expect("a session"), fixture.bytes());
    assert_eq!(epitome::agents::companions(&session).len(), fixture.sub_agents().len());
    drop(folder);
    assert!(!session.exists());
}

#[test]
fn a_deleted_session_is_listed_also_if_a_shorter_file_has_its_id() {
    let home = tempfile::tempdir().expect("a folder");
    let config = Config::from_home(home.path());
    let path = home.path().join(place("gemini", "dd0e649e"));
    let bytes = fixtures::get("gemini", "pricing").bytes();
    let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    write(&path, &lines);
    let other = path.with_file_name("session-2026-11-18T12-01-dd0e649e.jsonl");
    write(&other, &lines[..3]);
    let mut keeper = Keeper::open(&config).expect("a vault");
    keeper.scan().expect("a scan");
    fs::remove_file(&path).expect("a session");
    keeper.scan().expect("a scan");
    let paths = |keeper: &Keeper<'_>| -> Vec<PathBuf> {
        deleted_sessions(&config, keeper.vault(), None).into_iter().map(|it| it.path).collect()
    };
    assert_eq!(paths(&keeper), std::slice::from_ref(&path));
    assert_eq!(kept(&config, &path).path, path);
    assert_eq!(kept(&config, &other).path, other);
    // It was moved there, and appended to.
    write(&other, &[&bytes, b"{}\n"]);
    keeper.scan().expect("a scan");
    assert_eq!(paths(&keeper), Vec::<PathBuf>::new());
}

#[test]
fn a_deleted_session_is_listed_before_a_keeper_has_seen_that() {
    let home = tempfile::tempdir().expect("a folder");
    let config = Config::from_home(home.path());
    let path = home.path().join(place("pi", "0001"));
    write(&path, &[&fixtures::get("pi", "pricing").bytes()]);
    let mut keeper = Keeper::open(&config).expect("a vault");
    keeper.scan().expect("a scan");
    assert_eq!(deleted(&config, &keeper), []);
    let moved = path.with_file_name("2026-11-18T12-00-01-000Z_0001.jsonl");
    fs::rename(&path, &moved).expect("moved");
    assert_eq!(deleted(&config, &keeper), []);
    fs::remove_file(&moved).expect("deleted");
    assert_eq!(deleted(&config, &keeper), [(path.clone(), 1)]);
    keeper.scan().expect("a scan");
    assert_eq!(deleted(&config, &keeper), [(path.clone(), 1)]);
    write(&path, &[&fixtures::get("pi", "pricing").bytes()]);
    assert_eq!(deleted(&config, &keeper), []);
    // The agent's folder may be on a disk that is not mounted.
    keeper.scan().expect("a scan");
    fs::remove_dir_all(home.path().join(".pi")).expect("deleted");
    assert_eq!(deleted(&config, &keeper), []);
}

/// The versions of a history: number, what changed, and whether it was kept under an older path.
fn listed(history: &VersionHistory) -> Vec<(u64, String, bool)> {
    let versions = history.versions.iter();
    versions.map(|it| (it.version, it.description(), it.earlier_path.is_some())).collect()
}

fn numbers(report: &epitome::keep::ScanReport) -> Vec<u64> {
    report.kept.iter().map(|it| it.version).collect()
}

fn deleted(config: &Config, keeper: &Keeper<'_>) -> Vec<(PathBuf, u64)> {
    let found = deleted_sessions(config, keeper.vault(), None);
    found.into_iter().map(|it| (it.path, it.version)).collect()
}

#[test]
fn versions_that_were_kept_before_a_home_was_moved_belong_to_the_same_session() {
    let dir = tempfile::tempdir().expect("a folder");
    let dir = dir.path().canonicalize().expect("a folder");
    let (before, after) = (dir.join("before"), dir.join("after"));
    let id = "01a1fbbd-1a90-75a1-9b38-7d1e8576fdb5";
    let place = place("claude", id);
    let agent = place.with_extension("").join("subagents/agent-abc.jsonl");
    let fixture = fixtures::get("claude", "pricing");
    let bytes = fixture.bytes();
    let side = fs::read(&fixture.sub_agents()[0]).expect("a sub-agent");
    let contents = [bytes.clone(), [&bytes[..], b"{}\n"].concat()];
    let config = Config::from_home(&before);
    let mut keeper = Keeper::open(&config).expect("a vault");
    write(&before.join(&agent), &[&side]);
    for content in &contents {
        write(&before.join(&place), &[content]);
        keeper.scan().expect("a scan");
    }
    fs::rename(&before, &after).expect("moved");
    let config = Config::from_home(&after);
    let path = after.join(&place);
    let history = |name: &str| {
        let vault = config.vault().expect("a vault");
        let VaultMatch::Session(file) = find(&config, &vault, name, None) else { panic!("{name}") };
        VersionHistory::read(&config, &vault, &file).expect("a history")
    };
    let old_path = before.join(&place).to_str().expect("text").to_owned();
    let new_path = path.to_str().expect("text").to_owned();
    let mut expect = vec![
        (1, format!("first seen, {}", Bytes(bytes.len() as u64)), true),
        (2, "+3 B".to_owned(), true),
    ];
    for name in [id, &old_path, &new_path] {
        assert_eq!(listed(&history(name)), expect, "{name}");
    }
    let mut keeper = Keeper::open(&config).expect("a vault");
    assert_eq!(numbers(&keeper.plan()), [3, 2]);
    assert_eq!(numbers(&keeper.scan().expect("a scan")), [3, 2]);
    assert_eq!(numbers(&keeper.scan().expect("a scan")), [] as [u64; 0]);
    expect.push((3, "as version 2".to_owned(), false));
    for name in [id, &old_path, &new_path] {
        let history = history(name);
        assert_eq!(listed(&history), expect, "{name}");
        assert_eq!((&history.path, history.exists, history.elsewhere.len()), (&path, true, 0));
        let parts: Vec<_> = history.parts.iter().map(listed).collect();
        let first = format!("first seen, {}", Bytes(side.len() as u64));
        let same = "as version 1".to_owned();
        assert_eq!(parts, [[(1, first, true), (2, same, false)]], "{name}");
    }
    // A compaction makes it shorter.
    write(&path, &[&bytes[..bytes.len() / 2]]);
    keeper.scan().expect("a scan");
    assert_eq!(deleted(&config, &keeper), [] as [(PathBuf, u64); 0]);
    fs::remove_dir_all(path.parent().expect("a folder")).expect("deleted");
    keeper.scan().expect("a scan");
    assert_eq!(deleted(&config, &keeper), [(path.clone(), 4)]);
    // A version that was kept before the move is restored to the new place.
    let mut vault = config.vault().expect("a vault");
    let file = kept(&config, &path);
    let file = file_with_version(&config, &vault, &file, 1).expect("version 1");
    let restore = RestoreVersion { file: &file, number: 1, force: false };
    restore.run(&config, &mut vault).expect("restored");
    assert_eq!(fs::read(&path).expect("a session"), contents[0]);
    assert_eq!(fs::read(after.join(&agent)).expect("a sub-agent"), side);
    assert_eq!(
        listed(&history(id))[4..],
        [(5, "deleted".to_owned(), false), (6, "restored from version 1".to_owned(), false),]
    );
}

#[test]
fn a_session_that_was_deleted_in_a_moved_home_is_listed_there() {
    let dir = tempfile::tempdir().expect("a folder");
    let dir = dir.path().canonicalize().expect("a folder");
    let (before, after) = (dir.join("before"), dir.join("after"));
    let place = place("claude", "01a1fbbd-1a90-75a1-9b38-7d1e8576fdb5");
    write(&before.join(&place), &[&fixtures::get("claude", "pricing").bytes()]);
    Keeper::open(&Config::from_home(&before)).and_then(|mut it| it.scan()).expect("a scan");
    fs::rename(&before, &after).expect("moved");
    // A keeper has not seen it in the new home.
    let path = after.join(&place);
    fs::remove_file(&path).expect("deleted");
    let config = Config::from_home(&after);
    let keeper = Keeper::open(&config).expect("a vault");
    assert_eq!(deleted(&config, &keeper), [(path.clone(), 1)]);
    let file = kept(&config, &path);
    let history = VersionHistory::read(&config, keeper.vault(), &file).expect("a history");
    assert_eq!((history.path, history.exists), (path, false));
}

#[test]
fn what_changed_across_a_move_is_said_as_in_one_home() {
    let dir = tempfile::tempdir().expect("a folder");
    let dir = dir.path().canonicalize().expect("a folder");
    let (before, after) = (dir.join("before"), dir.join("after"));
    let place = place("claude", "01a1fbbd-1a90-75a1-9b38-7d1e8576fdb5");
    let bytes = fixtures::get("claude", "pricing").bytes();
    let scan = |home: &Path, content: &[u8]| {
        let config = Config::from_home(home);
        write(&home.join(&place), &[content]);
        Keeper::open(&config).and_then(|mut keeper| keeper.scan()).expect("a scan");
    };
    let appended = [&bytes[..], b"{}\n"].concat();
    let more = [&appended[..], b"{}\n"].concat();
    let cut = &bytes[..bytes.len() / 2];
    scan(&before, &bytes);
    scan(&before, &appended);
    fs::rename(&before, &after).expect("moved");
    scan(&after, &more);
    scan(&after, &bytes);
    // A version that was kept in the home before, once more.
    scan(&after, &appended);
    let third = dir.join("third");
    fs::rename(&after, &third).expect("moved");
    scan(&third, cut);
    let config = Config::from_home(&third);
    let file = kept(&config, &third.join(&place));
    let history = VersionHistory::read(&config, &config.vault().expect("a vault"), &file);
    let described: Vec<String> =
        history.expect("a history").versions.iter().map(|it| it.description()).collect();
    let shorter = Bytes((appended.len() - cut.len()) as u64);
    assert_eq!(
        described,
        [
            format!("first seen, {}", Bytes(bytes.len() as u64)),
            "+3 B".to_owned(),
            "+3 B".to_owned(),
            "as version 1".to_owned(),
            "as version 2".to_owned(),
            format!("cut, -{shorter}"),
        ]
    );
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder").flatten() {
        let to = to.join(entry.file_name());
        match entry.path().is_dir() {
            true => copy_folder(&entry.path(), &to),
            false => drop(fs::copy(entry.path(), to).expect("a copy")),
        }
    }
}

#[test]
fn numbers_stay_unambiguous_in_a_home_that_was_copied() {
    let dir = tempfile::tempdir().expect("a folder");
    let dir = dir.path().canonicalize().expect("a folder");
    let (before, after) = (dir.join("before"), dir.join("after"));
    let place = place("claude", "01a1fbbd-1a90-75a1-9b38-7d1e8576fdb5");
    let agent = place.with_extension("").join("subagents/agent-abc.jsonl");
    let fixture = fixtures::get("claude", "pricing");
    let bytes = fixture.bytes();
    let contents = [bytes.clone(), [&bytes[..], b"{}\n"].concat()];
    write(&before.join(&agent), &[&fs::read(&fixture.sub_agents()[0]).expect("a sub-agent")]);
    for content in &contents {
        write(&before.join(&place), &[content]);
        Keeper::open(&Config::from_home(&before)).and_then(|mut it| it.scan()).expect("a scan");
    }
    copy_folder(&before, &after);
    let config = Config::from_home(&after);
    let path = after.join(&place);
    let old_path = before.join(&place);
    // A version of the old place, by its number alone, and a scan of the new place after that.
    let mut vault = config.vault().expect("a vault");
    let file = file_with_version(&config, &vault, &kept(&config, &old_path), 1).expect("a version");
    let restore = RestoreVersion { file: &file, number: 1, force: false };
    restore.run(&config, &mut vault).expect("restored");
    assert_eq!(fs::read(&path).expect("a session"), contents[0]);
    assert_eq!(fs::read(&old_path).expect("the old one"), contents[1]);
    Keeper::open(&config).and_then(|mut it| it.scan()).expect("a scan");
    // The sub-agent was kept at both places.
    let mut vault = config.vault().expect("a vault");
    let file = kept(&config, &path);
    let restore = RestoreVersion { file: &file, number: 4, force: false };
    assert!(restore.run(&config, &mut vault).expect("nothing to do").unchanged);
    let history = VersionHistory::read(&config, &vault, &file).expect("a history");
    let described = |history: &VersionHistory| -> Vec<(u64, String)> {
        history.versions.iter().map(|it| (it.version, it.description())).collect()
    };
    let first = |content: &[u8]| format!("first seen, {}", Bytes(content.len() as u64));
    let expect = [(3, first(&contents[1])), (4, "restored from version 1".to_owned())];
    assert_eq!(described(&history), expect);
    let [old] = &history.elsewhere[..] else { panic!("{:?}", history.elsewhere) };
    assert_eq!(described(old), [(1, first(&contents[0])), (2, "+3 B".to_owned())]);
    for number in 1..=4 {
        let found = file_with_version(&config, &vault, &file, number).expect("a version");
        assert_eq!(found.path, if number < 3 { old_path.clone() } else { path.clone() });
    }
}

/// Compacts a session of pi that a scan has seen, and keeps it again.
fn kept_and_compacted(config: &Config, path: &Path, bytes: &[u8]) -> VersionReason {
    write(path, &[bytes]);
    let scan = || Keeper::open(config).and_then(|mut keeper| keeper.scan()).expect("a scan");
    scan();
    let compacted = compact(config, path);
    scan();
    compacted
}

/// Compacts a session for the first time. Returns how a history names that.
fn compact(config: &Config, path: &Path) -> VersionReason {
    let run = config.begin_run("test");
    let recipe = epitome::built_in("epitome").expect("a recipe");
    let counter = epitome_tokens::Estimate::new();
    let session = OpenSession::new(config, path);
    Compact::new(&recipe, &counter, &run).run(&session).expect("it is compacted");
    let recipe = "epitome".to_owned();
    VersionReason::Compacted { generation: 1, run: Some(run.id.clone()), recipe }
}

fn reasons(config: &Config, path: &Path) -> Vec<Option<VersionReason>> {
    let vault = config.vault().expect("a vault");
    let history = VersionHistory::read(config, &vault, &kept(config, path)).expect("a history");
    history.versions.iter().map(|it| it.reason.clone()).collect()
}

#[test]
fn a_restore_of_a_session_that_was_changed_is_no_compaction() {
    let home = tempfile::tempdir().expect("a folder");
    let config = Config::from_home(home.path());
    let path = home.path().join(place("pi", "01a1fbbd-1a90-75a1-9b38-7d1e8576fdb5"));
    let bytes = fixtures::get("pi", "pricing").bytes();
    let compacted = kept_and_compacted(&config, &path, &bytes);
    // Another program removes the last line, so that the original does not come back.
    let small = fs::read(&path).expect("a session");
    let mut lines: Vec<&[u8]> = small.split_inclusive(|byte| *byte == b'\n').collect();
    lines.pop();
    write(&path, &lines);
    Restore::default().run(&OpenSession::new(&config, &path)).expect("it is restored");
    Keeper::open(&config).and_then(|mut keeper| keeper.scan()).expect("a scan");
    let expect = [None, Some(compacted), Some(VersionReason::Restored)];
    assert_eq!(reasons(&config, &path), expect);
}

#[test]
fn an_unchanged_session_in_a_moved_home_was_not_compacted() {
    let dir = tempfile::tempdir().expect("a folder");
    let dir = dir.path().canonicalize().expect("a folder");
    let (before, after) = (dir.join("before"), dir.join("after"));
    let place = place("pi", "01a1fbbd-1a90-75a1-9b38-7d1e8576fdb5");
    let bytes = fixtures::get("pi", "pricing").bytes();
    let compacted = kept_and_compacted(&Config::from_home(&before), &before.join(&place), &bytes);
    fs::rename(&before, &after).expect("moved");
    let config = Config::from_home(&after);
    Keeper::open(&config).and_then(|mut keeper| keeper.scan()).expect("a scan");
    assert_eq!(reasons(&config, &after.join(&place)), [None, Some(compacted), None]);
}

#[test]
fn a_compaction_that_was_undone_after_an_append_is_named() {
    let home = tempfile::tempdir().expect("a folder");
    let config = Config::from_home(home.path());
    let path = home.path().join(place("pi", "01a1fbbd-1a90-75a1-9b38-7d1e8576fdb5"));
    let bytes = fixtures::get("pi", "pricing").bytes();
    write(&path, &[&bytes]);
    let mut keeper = Keeper::open(&config).expect("a vault");
    keeper.scan().expect("a scan");
    let compacted = compact(&config, &path);
    let line = bytes.split_inclusive(|byte| *byte == b'\n').next_back().expect("a line");
    write(&path, &[&fs::read(&path).expect("a session"), line]);
    keeper.scan().expect("a scan");
    Restore::default().run(&OpenSession::new(&config, &path)).expect("it is restored");
    assert_eq!(fs::read(&path).expect("a session"), [&bytes[..], line].concat());
    keeper.scan().expect("a scan");
    let file = kept(&config, &path);
    let history = VersionHistory::read(&config, keeper.vault(), &file).expect("a history");
    let reasons: Vec<_> = history.versions.iter().map(|it| it.reason.clone()).collect();
    assert_eq!(reasons, [None, Some(compacted), Some(VersionReason::Restored)]);
}

#[test]
fn a_rewrite_after_an_undone_compaction_is_no_compaction() {
    let home = tempfile::tempdir().expect("a folder");
    let config = Config::from_home(home.path());
    let path = home.path().join(place("pi", "01a1fbbd-1a90-75a1-9b38-7d1e8576fdb5"));
    let bytes = fixtures::get("pi", "pricing").bytes();
    write(&path, &[&bytes]);
    let mut keeper = Keeper::open(&config).expect("a vault");
    keeper.scan().expect("a scan");
    compact(&config, &path);
    Restore::default().run(&OpenSession::new(&config, &path)).expect("it is restored");
    assert_eq!(fs::read(&path).expect("a session"), bytes);
    // The agent takes a line out of the middle before the next scan.
    let mut lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    lines.remove(6);
    write(&path, &lines);
    keeper.scan().expect("a scan");
    assert_eq!(reasons(&config, &path), [None, None]);
}

#[test]
fn a_sub_agent_is_kept_after_the_file_of_its_session_is_gone() {
    let home = tempfile::tempdir().expect("a folder");
    let config = Config::from_home(home.path());
    let path = home.path().join(place("claude", "0001"));
    let fixture = fixtures::get("claude", "pricing");
    write(&path, &[&fixture.bytes()]);
    let agent = fixture.sub_agents().into_iter().next().expect("a sub-agent");
    let part = path.with_extension("").join("subagents").join(agent.file_name().expect("a name"));
    let bytes = fs::read(&agent).expect("a sub-agent");
    write(&part, &[&bytes]);
    let mut keeper = Keeper::open(&config).expect("a vault");
    keeper.scan().expect("a scan");
    fs::remove_file(&path).expect("a session");
    let line = bytes.split_inclusive(|byte| *byte == b'\n').next_back().expect("a line");
    let longer = [&bytes, line].concat();
    write(&part, &[&longer]);
    keeper.scan().expect("a scan");
    let file = keeper.vault().files().find(|file| file.part.is_some());
    let file = file.expect("the sub-agent").clone();
    let mut kept_bytes = Vec::new();
    keeper.vault().write_version(&file, 2, &mut kept_bytes).expect("a version");
    assert_eq!(kept_bytes, longer);
    fs::remove_file(&part).expect("a sub-agent");
    keeper.scan().expect("a scan");
    let last = keeper.vault().versions(&file).next_back().expect("a version");
    assert_eq!((last.number, last.is_deleted()), (3, true));
}

/// Lines that have nothing in common with those of another seed.
fn noise(seed: u64, lines: u64) -> Vec<u8> {
    let line = |n: u64| {
        let hash = Hash::compute(&(seed * 1000 + n).to_le_bytes());
        format!("{{\"type\":\"custom\",\"data\":\"{hash}\"}}\n").into_bytes()
    };
    (0..lines).flat_map(line).collect()
}

#[test]
fn a_dry_run_of_keep_size_removes_what_the_real_one_removes() {
    let home = tempfile::tempdir().expect("a folder");
    let config = Config::from_home(home.path());
    let path = home.path().join(place("pi", "0001"));
    let head = fixtures::get("pi", "pricing").bytes();
    let mut keeper = Keeper::open(&config).expect("a vault");
    // Each version shares lines with the one before, at another offset.
    for n in 1..16 {
        write(&path, &[&head, &noise(n, 40 * n), &noise(n - 1, 40 * n)]);
        keeper.scan().expect("a scan");
    }
    drop(keeper);
    let mut vault = config.vault().expect("a vault");
    let whole = vault.size().1;
    let mut removed = Vec::new();
    for percent in [95, 80, 60, 40, 1] {
        let size = Some(Bytes(whole * percent / 100));
        let rules = RetentionRules { size, ..RetentionRules::default() };
        let before = vault.pack_numbers(vault.machine());
        let planned = rules.prune(&config, &mut vault, GcMode::Show).expect("a plan");
        vault.refresh().expect("the same vault");
        assert_eq!(vault.pack_numbers(vault.machine()), before, "{percent}");
        let done = rules.prune(&config, &mut vault, GcMode::Remove).expect("removed");
        removed.push(done.versions);
        assert_eq!(PruneReport { dry_run: false, ..planned }, done, "{percent}");
    }
    assert!(removed.iter().filter(|versions| **versions > 0).count() > 2, "{removed:?}");
}
