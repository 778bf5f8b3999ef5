//! What the history of a kept session says.

use std::fs;
use std::path::{Path, PathBuf};

use epitome::Config;
use epitome::keep::{
    FileKey, Keeper, RestoreVersion, VaultMatch, VersionHistory, VersionReason, deleted_sessions,
    find,
};

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
    let folder = restore.to_folder(keeper.vault()).expect("a folder");
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
