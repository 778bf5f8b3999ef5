//! Removed texts that are also in a file or in the project's repository get a reference to it.

use std::fs;
use std::path::Path;
use std::process::Command;

use epitome::Loaded;
use epitome::archive::{Archive, SessionKey};
use epitome::compaction::{PreparedCompaction, apply};
use epitome::storage::Store;
use epitome_passes::{Keep, Recipe, built_in};
use epitome_tokens::Estimate;
use jiff::Timestamp;
use serde_json::{Value, json};

/// A file of forty lines.
fn text() -> String {
    (1..=40).map(|n| format!("line {n} of a file that was read and then written again\n")).collect()
}

/// A session of pi in `project`: it reads `read.txt` and writes `written.txt`.
fn session(project: &Path) -> String {
    let call = |id: &str, name: &str, arguments: Value| {
        let mut call = json!({"type": "toolCall", "id": id, "name": name});
        call["arguments"] = arguments;
        call
    };
    let result = |id: &str, text: &str| {
        json!({"role": "toolResult", "toolCallId": id, "toolName": "t", "isError": false,
            "content": [{"type": "text", "text": text}]})
    };
    let calls = [
        call("a", "read", json!({"path": "read.txt"})),
        call("b", "write", json!({"path": "written.txt", "content": text()})),
    ];
    let messages = [
        json!({"role": "user", "content": "go on"}),
        json!({"role": "assistant", "content": calls}),
        result("a", &text()),
        result("b", "done"),
        json!({"role": "assistant", "content": [{"type": "text", "text": "done"}]}),
    ];
    let mut lines = vec![json!({"type": "session", "version": 3, "id": "s", "cwd": project})];
    for (n, message) in messages.into_iter().enumerate() {
        let parent = n.checked_sub(1).map(|n| n.to_string());
        let id = n.to_string();
        lines.push(json!({"type": "message", "id": id, "parentId": parent, "message": message}));
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// The reference of each removed text: the file's name, and whether a git blob is named.
fn references(project: &Path, home: &Path) -> Vec<(String, bool)> {
    let path = project.join("session.jsonl");
    fs::write(&path, session(project)).expect("the session is written");
    let store = Store::new(home);
    let file = store.open_for_edit(&path).expect("nobody else works on it");
    let session = Loaded::read(file.source(), None).expect("it is a session");
    let keep = Keep { tokens: Some(10), ..Keep::default() };
    let recipe = Recipe { keep, ..built_in("epitome").expect("the default") };
    let planned =
        PreparedCompaction::new(&session, &recipe, &Estimate).expect("the edits can be written");
    let archive = Archive::new(home);
    let made = Timestamp::UNIX_EPOCH;
    let generation = apply(&planned, &file, &archive, &Estimate, made).expect("it is applied");
    let key = SessionKey::new("pi", "s");
    assert_eq!(generation.key(), key);
    let mut found = Vec::new();
    for blob in generation.blobs() {
        for it in archive.find(&blob.reference()).expect("the archive can be read") {
            let reference = it.about.reference.map(|reference| {
                let name = Path::new(&reference.path).file_name().expect("a file").to_owned();
                (name.to_string_lossy().into_owned(), reference.blob.is_some())
            });
            found.extend(reference);
        }
    }
    found.sort();
    found
}

#[test]
fn bodies_that_equal_a_file_name_it() {
    let (project, home) = (tempfile::tempdir().expect("a"), tempfile::tempdir().expect("b"));
    fs::write(project.path().join("read.txt"), text()).expect("written");
    assert_eq!(references(project.path(), home.path()), [("read.txt".to_owned(), true)]);
}

#[test]
fn bodies_that_git_keeps_name_their_blob() {
    let (project, home) = (tempfile::tempdir().expect("a"), tempfile::tempdir().expect("b"));
    let git = |args: &[&str]| {
        let mut git = Command::new("git");
        git.env("GIT_CONFIG_GLOBAL", "/dev/null").env_remove("GIT_DIR");
        let done = git.args(args).current_dir(project.path()).output();
        assert!(done.expect("git is installed").status.success(), "{args:?}");
    };
    git(&["init", "--quiet"]);
    fs::write(project.path().join("read.txt"), text()).expect("written");
    git(&["add", "."]);
    fs::write(project.path().join("read.txt"), "something else\n").expect("written");
    // Both texts have a reference: that which was read, and that which was written.
    let both = ["read.txt", "written.txt"].map(|name| (name.to_owned(), true));
    assert_eq!(references(project.path(), home.path()), both);
}

#[test]
fn bodies_that_nobody_holds_name_nothing() {
    let (project, home) = (tempfile::tempdir().expect("a"), tempfile::tempdir().expect("b"));
    assert_eq!(references(project.path(), home.path()), []);
}
