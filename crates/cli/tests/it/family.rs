//! A session and the files that belong to it, when one of them is missing, damaged or unusual: it
//! is named, and nothing is reported as restored that was not.

use std::fs;
use std::path::PathBuf;

use crate::world::World;
use crate::world::sessions::{self, CLAUDE};

const SMALL: [&str; 5] =
    ["compact", CLAUDE, "--keep-turns=1", "--count=estimate", "--recipe=transcript"];

/// A session and its sub-agent, both compacted.
struct Compacted {
    world: World,
    files: [(PathBuf, String); 2],
}

impl Compacted {
    fn new() -> Compacted {
        let made = Compacted::whole();
        assert_eq!(made.world.status(&SMALL), 0);
        assert_eq!(made.given_back(), [false; 2]);
        made
    }

    fn whole() -> Compacted {
        let world = World::new();
        let session = sessions::claude(CLAUDE);
        let agent = session.replace("\"isSidechain\":false", "\"isSidechain\":true");
        let name = format!(".claude/projects/-p/{CLAUDE}/subagents/agent-abc.jsonl");
        let files =
            [(world.claude(CLAUDE, &session), session), (world.write(&name, &agent), agent)];
        Compacted { world, files }
    }

    fn given_back(&self) -> [bool; 2] {
        let is_back = |(path, was): &(PathBuf, String)| {
            fs::read_to_string(path).is_ok_and(|text| text == *was)
        };
        [is_back(&self.files[0]), is_back(&self.files[1])]
    }

    fn archive_of(&self, part: &str) -> PathBuf {
        let name = format!(".local/share/epitome/archive/claude/{CLAUDE}{part}");
        self.world.home.join(name)
    }

    fn says(&self, args: &[&str], status: i32) -> String {
        let output = self.world.run(args);
        assert!(output.ends_with(&format!("--- status {status}\n")), "wanted {status}: {output}");
        output
    }

    fn log(&self) -> String {
        self.world.run(&["log"])
    }
}

/// The session names its parts, so that a part whose archive is missing or damaged is noticed.
#[test]
fn a_part_without_its_archive_is_named_and_nothing_changes() {
    for damaged in [false, true] {
        let made = Compacted::new();
        // A part without a stub, so that the file does not show that it was compacted.
        let agent = &made.files[1].0;
        let text = fs::read_to_string(agent).expect("a session");
        fs::write(agent, text.replace("[epitome k", "[another k")).expect("a session");
        let folder = made.archive_of(".agent-abc");
        if damaged {
            fs::write(folder.join("000001.pack"), b"EPITPACK").expect("a pack");
        } else {
            fs::remove_dir_all(&folder).expect("removed");
        }
        for args in [&["restore", CLAUDE][..], &["restore", "--all", "--yes"], &["undo"]] {
            let output = made.says(args, 5);
            assert!(output.contains("agent-abc"), "{output}");
            assert_eq!(made.given_back(), [false; 2]);
        }
        assert!(!made.log().contains("undone"), "{}", made.log());
        let output = made.says(&["restore", CLAUDE, "--partial"], 0);
        assert!(output.contains("agent-abc"), "{output}");
        assert_eq!(made.given_back(), [true, false]);
    }
}

/// A part that was restored by hand needs no archive.
#[test]
fn a_part_that_is_what_it_was_needs_no_archive() {
    let made = Compacted::new();
    fs::remove_dir_all(made.archive_of(".agent-abc")).expect("removed");
    let (agent, was) = &made.files[1];
    fs::write(agent, format!("{was}{{\"type\":\"summary\",\"summary\":\"more\"}}\n")).expect("it");
    made.says(&["restore", CLAUDE], 0);
    assert!(made.given_back()[0]);
}

#[test]
fn what_is_no_file_is_no_part() {
    for before in [true, false] {
        let made = if before { Compacted::whole() } else { Compacted::new() };
        let folder = made.files[1].0.parent().expect("a folder").to_owned();
        fs::create_dir(folder.join("agent-folder.jsonl")).expect("a folder");
        #[cfg(unix)]
        std::os::unix::fs::symlink("nowhere", folder.join("agent-link.jsonl")).expect("a link");
        if before {
            let output = made.says(&SMALL, 0);
            assert!(output.contains("agent-folder"), "{output}");
            assert_eq!(made.given_back(), [false; 2]);
        }
        let output = made.says(&["restore", CLAUDE], 0);
        assert!(output.contains("agent-folder"), "{output}");
        assert_eq!(made.given_back(), [true; 2]);
    }
}

#[test]
fn a_run_is_undone_without_a_file_that_is_gone() {
    for gone in [0, 1] {
        let made = Compacted::new();
        fs::remove_file(&made.files[gone].0).expect("removed");
        let output = made.says(&["undo"], 0);
        assert!(output.contains("it is gone"), "{output}");
        assert_eq!(made.given_back(), [gone != 0, gone != 1]);
        assert!(made.log().contains("undone"), "{}", made.log());
        assert!(made.says(&["undo"], 0).contains("nothing to undo"));
    }
}

/// Copies in two folders with the same id are restored as separate sessions.
#[test]
fn copies_of_a_session_come_back_each() {
    for at_once in [true, false] {
        let world = World::new();
        let text = sessions::claude(CLAUDE);
        let path = |folder: &str| format!(".claude/projects/{folder}/{CLAUDE}.jsonl");
        let files = [world.write(&path("-a"), &text), world.write(&path("-b"), &text)];
        let is_whole = |it: &PathBuf| fs::read_to_string(it).expect("a session") == text;
        let whole = || files.iter().map(is_whole).collect::<Vec<bool>>();
        let small = ["--keep-turns=1", "--count=estimate", "--recipe=transcript"];
        let compact = |now: &str, what: &[&str]| {
            let args = [&["compact"][..], what, &small].concat();
            let done = world.command(&args).env("EPITOME_NOW", now).status().expect("it runs");
            assert!(done.success());
        };
        let names = files.each_ref().map(|it| it.to_str().expect("text"));
        let again = || {
            if at_once {
                return compact("2026-11-21T10:00:00Z", &["--all", "--yes"]);
            }
            compact("2026-11-21T10:00:00Z", &[names[0]]);
            compact("2026-11-21T11:00:00Z", &[names[1]]);
        };
        again();
        assert_eq!(whole(), [false; 2]);
        assert_eq!(world.status(&["restore", names[1]]), 0);
        assert_eq!(whole(), [false, true]);
        assert_eq!(world.status(&["undo", "--yes"]), 0);
        assert_eq!(whole(), [true; 2], "{}", world.run(&["log"]));
        assert!(world.run(&["undo"]).contains("nothing to undo"));
        again();
        assert_eq!(world.status(&["restore", names[1]]), 0);
        assert_eq!(world.status(&["restore", "--all", "--yes"]), 0);
        assert_eq!(whole(), [true; 2]);
    }
}

#[test]
fn a_session_in_a_renamed_folder_is_found() {
    let args = [&["undo"][..], &["restore", "--all", "--yes"], &["restore", "--since", "1h"]];
    for args in args {
        let mut made = Compacted::new();
        let projects = made.world.home.join(".claude/projects");
        fs::rename(projects.join("-p"), projects.join("-q")).expect("renamed");
        for (path, _) in &mut made.files {
            let below = path.strip_prefix(projects.join("-p")).expect("it is there").to_owned();
            *path = projects.join("-q").join(below);
        }
        assert!(!made.log().contains("gone"), "{}", made.log());
        made.says(args, 0);
        assert_eq!(made.given_back(), [true; 2], "{args:?}");
        assert!(made.log().contains("undone"), "{}", made.log());
    }
}

#[test]
fn a_report_says_only_what_is_true() {
    let made = Compacted::new();
    let output = made.says(&["restore", CLAUDE, "--dry-run", "--out", "x.jsonl"], 0);
    assert!(output.contains("nothing was written") && !output.contains("\nwritten"), "{output}");
    let pack = made.archive_of("").join("000001.pack");
    let mut bytes = fs::read(&pack).expect("a pack");
    let middle = bytes.len() / 3;
    bytes[middle..middle + 200].fill(0);
    fs::write(&pack, bytes).expect("a pack");
    let output = made.says(&["restore", CLAUDE, "--partial"], 0);
    assert!(output.contains("not restored") && !output.contains("epitome show"), "{output}");
}
