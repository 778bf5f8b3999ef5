//! The archive in object storage, here a folder: two machines, and two keys.

use std::fs;
use std::path::PathBuf;

use crate::world::World;
use crate::world::sessions::{self, CLAUDE, PI};

/// A machine with the setting `archive.url`. Its `[home]` is not part of the address.
fn machine(url: &str) -> World {
    let world = World::new();
    world.write(".config/epitome/epitome.toml", format!("[archive]\nurl = \"{url}\"\n"));
    world
}

fn session(world: &World) -> PathBuf {
    world.home.join(format!(".claude/projects/-p/{CLAUDE}.jsonl"))
}

const COMPACT: [&str; 4] = ["compact", CLAUDE, "--keep-turns=1", "--count=estimate"];

#[test]
fn a_session_is_restored_on_a_second_machine_that_has_the_key() {
    let storage = tempfile::tempdir().expect("a folder");
    let url = format!("file://{}", storage.path().display());
    let (first, second) = (machine(&url), machine(&url));
    first.claude(CLAUDE, sessions::claude(CLAUDE));
    // The compaction pushes what it archived.
    assert_eq!(first.status(&COMPACT), 0);
    let pushed = first.run(&["archive", "push"]);
    assert!(pushed.contains("pushed 0 generations to file://"), "{pushed}");
    assert!(pushed.contains("; 1 were there"), "{pushed}");

    // The session came without its archive, and this machine without the key.
    let small = fs::read(session(&first)).expect("a session");
    let path = second.claude(CLAUDE, &small);
    let refused = second.run(&["archive", "pull"]);
    assert!(refused.contains("and this machine has no key"), "{refused}");
    assert!(refused.contains("epitome archive key import FILE"), "{refused}");
    assert!(refused.ends_with("--- status 4\n"), "{refused}");
    let key = first.output(&["archive", "key", "export"]).stdout;
    let imported = second.run_with(&["archive", "key", "import", "-"], &key);
    assert!(imported.contains("age1"), "{imported}");

    // What a restore misses it pulls.
    let restored = second.run(&["restore", CLAUDE]);
    assert!(restored.contains("pulled 1 generation"), "{restored}");
    assert_eq!(fs::read_to_string(&path).expect("a session"), sessions::claude(CLAUDE));
    let pulled = second.run(&["archive", "pull"]);
    assert!(pulled.contains("pulled 0 generations, 1 were here already"), "{pulled}");
    assert!(second.run(&["archive", "verify"]).contains("all bytes match their hashes"));
}

#[test]
fn another_key_is_refused_and_does_not_stop_a_compaction() {
    let storage = tempfile::tempdir().expect("a folder");
    let url = format!("file://{}", storage.path().display());
    let (first, second) = (machine(&url), machine("s3://"));
    first.claude(CLAUDE, sessions::claude(CLAUDE));
    assert_eq!(first.status(&COMPACT), 0);
    second.write(".config/epitome/epitome.toml", format!("[archive]\nurl = \"{url}\"\n"));
    second.claude(CLAUDE, sessions::claude(CLAUDE));
    assert_eq!(second.status(&["archive", "key"]), 0);
    let compacted = second.run(&COMPACT);
    assert!(compacted.contains("not pushed yet: the remote archive is sealed with age1"));
    assert!(compacted.ends_with("--- status 0\n"), "{compacted}");
    assert_eq!(second.status(&["archive", "push"]), 4);
    // After the right key is imported, it catches up.
    let key = first.output(&["archive", "key", "export"]).stdout;
    let other = second.run_with(&["archive", "key", "import", "-"], &key);
    assert!(other.contains("this machine has another key"), "{other}");
    assert_eq!(second.status(&["archive", "key", "remove", "--yes"]), 0);
    // No file has a key any more, and the keyring, which may have one, is switched off.
    let removed = second.run(&["archive", "key", "remove", "--yes"]);
    assert!(removed.contains("the keyring cannot be used, and no file has a key"), "{removed}");
    assert!(removed.ends_with("--- status 4\n"), "{removed}");
    second.run_with(&["archive", "key", "import", "-"], &key);
    let pushed = second.run(&["archive", "push"]);
    assert!(pushed.contains("pushed 1 generation"), "{pushed}");
}

#[test]
fn a_failed_push_to_one_address_does_not_pause_pushes_to_another() {
    let storage = tempfile::tempdir().expect("a folder");
    // The first address can never be written.
    let world = machine("file:///dev/null/x");
    assert_eq!(world.status(&["archive", "key"]), 0);
    world.claude(CLAUDE, sessions::claude(CLAUDE));
    let compacted = world.run(&COMPACT);
    assert!(compacted.contains("not pushed yet"), "{compacted}");
    let url = format!("file://{}", storage.path().display());
    world.write(".config/epitome/epitome.toml", format!("[archive]\nurl = \"{url}\"\n"));
    world.pi(PI, sessions::pi(PI));
    assert_eq!(world.status(&["compact", PI, "--keep-turns=1", "--count=estimate"]), 0);
    let pushed = world.run(&["archive", "push"]);
    assert!(pushed.contains("; 2 were there"), "{pushed}");
}

/// The key of the first machine comes to the second.
fn share_key(first: &World, second: &World) {
    let key = first.output(&["archive", "key", "export"]).stdout;
    assert!(second.run_with(&["archive", "key", "import", "-"], &key).contains("age1"));
}

#[test]
fn versions_come_to_a_second_machine() {
    let storage = tempfile::tempdir().expect("a folder");
    let url = format!("file://{}", storage.path().display());
    let (first, second) = (machine(&url), machine(&url));
    let versions = crate::vault::kept(&first);
    let pushed = first.run(&["archive", "push"]);
    assert!(pushed.contains("pushed 5 packs of the vault"), "{pushed}");
    let again = first.json(&["archive", "push", "--json"]);
    assert_eq!((&again[0]["vault"]["pushed"], &again[0]["vault"]["known"]), (&0.into(), &5.into()));
    share_key(&first, &second);
    let pulled = second.run(&["archive", "pull"]);
    assert!(pulled.contains("pulled 5 versions, 0 were here already"), "{pulled}");
    assert_eq!(second.status(&["restore", PI, "--at", "4", "--yes"]), 0);
    for (n, expect) in versions.iter().enumerate() {
        let number = (n + 1).to_string();
        // What was restored is a version of this machine, so the other one is named.
        let other = second.json(&["history", PI, "--json"])[0]["elsewhere"][0]["machine"].clone();
        let at = format!("{}/{number}", other.as_str().expect("a machine"));
        assert_eq!(second.status(&["restore", PI, "--at", &at, "--yes"]), 0);
        assert_eq!(&fs::read(crate::vault::place(&second)).expect("a session"), expect);
    }
}

#[test]
fn what_is_forgotten_is_deleted_at_the_address_now_or_with_the_next_push() {
    for is_offline in [false, true] {
        let storage = tempfile::tempdir().expect("a folder");
        let (there, away) = (storage.path().join("there"), storage.path().join("away"));
        fs::create_dir(&there).expect("a folder");
        let url = format!("file://{}", there.display());
        let (first, second) = (machine(&url), machine(&url));
        crate::vault::kept(&first);
        first.claude(CLAUDE, sessions::claude(CLAUDE));
        assert_eq!(first.status(&COMPACT), 0);
        assert_eq!(first.status(&["archive", "push"]), 0);
        share_key(&first, &second);
        if is_offline {
            fs::rename(&there, &away).expect("renamed");
            fs::write(&there, "no folder").expect("a file");
        }
        let forgotten = first.run(&["forget", PI, "--yes"]);
        assert!(forgotten.ends_with("--- status 0\n"), "{forgotten}");
        if is_offline {
            assert!(forgotten.contains("are still there"), "{forgotten}");
            fs::remove_file(&there).expect("a file");
            fs::rename(&away, &there).expect("renamed");
            assert_eq!(first.status(&["archive", "push"]), 0);
        } else {
            assert!(forgotten.contains("(archive.url)"), "{forgotten}");
            assert!(forgotten.contains("deleted 6 packs at"), "{forgotten}");
        }
        // The other session's part joins nothing there, so it is only named.
        second.claude(CLAUDE, fs::read(session(&first)).expect("a session"));
        let pulled = second.run(&["archive", "pull", "--json"]);
        assert!(pulled.contains(CLAUDE) && !pulled.contains(PI), "{pulled}");
        assert_eq!(second.status(&["history", PI]), 3);
    }
}

#[test]
fn without_an_address_a_push_says_where_to_set_one() {
    let world = World::new();
    let refused = world.run(&["archive", "push"]);
    assert!(refused.contains("`archive.url` is not set"), "{refused}");
    assert!(refused.ends_with("--- status 2\n"), "{refused}");
}

#[test]
fn a_team_finds_what_was_shared_without_its_secrets() {
    let storage = tempfile::tempdir().expect("a folder");
    let setting = format!("[share]\nurl = \"file://{}\"\n", storage.path().display());
    let (first, second) = (World::new(), World::new());
    for world in [&first, &second] {
        world.write(".config/epitome/epitome.toml", &setting);
    }
    let token = concat!("ghp_", "9fK2mQ7xV4bN8sL1tR6wY3zA5cE0dHjUiOpG");
    let session = sessions::claude(CLAUDE).replace("please.", &format!("please. It is {token}."));
    first.claude(CLAUDE, session);
    let shared = first.run(&["share", CLAUDE]);
    assert!(shared.contains("shared, 1 place redacted\nfile://"), "{shared}");
    let place = storage.path().join("sessions/claude").join(CLAUDE);
    let names: Vec<PathBuf> =
        fs::read_dir(&place).expect("files").map(|it| it.expect("a file").path()).collect();
    assert_eq!(names.len(), 2, "a page and a copy: {names:?}");
    for name in &names {
        let text = fs::read_to_string(name).expect("text");
        assert!(!text.contains(token) && text.contains("REDACTED:github-pat-1"), "{name:?}");
    }

    // The other machine has no session of its own.
    let found = second.run(&["search", "--team", "failing", "test", "please"]);
    assert!(found.contains("copied 1 shared session"), "{found}");
    assert!(found.contains("Fix the failing test, please."), "{found}");
    assert!(second.run(&["search", "failing"]).contains("nothing found"));
    // What is found can be rendered: the command names the copy.
    let command = found.lines().find(|line| line.contains("epitome render")).expect("a command");
    let path = command.split_whitespace().nth(2).expect("a path");
    let path = path.replace("[home]", &second.home.display().to_string());
    let page = second.run(&["render", &path, "--turn", "1"]);
    assert!(page.contains("Fix the failing test"), "{page}");
    // A session that is shared again replaces the old one; one that is gone is no longer found.
    first.claude(CLAUDE, sessions::claude(CLAUDE).replace("please", "now"));
    assert_eq!(first.status(&["share", CLAUDE]), 0);
    assert!(second.run(&["search", "--team", "please"]).contains("nothing found"));
    assert!(second.run(&["search", "--team", "now"]).contains("Fix the failing test, now."));
    fs::remove_dir_all(storage.path().join("sessions")).expect("removed");
    assert!(second.run(&["search", "--team", "now"]).contains("nothing found"));
}

#[test]
fn without_an_address_nothing_is_shared() {
    let world = World::new();
    world.claude(CLAUDE, sessions::claude(CLAUDE));
    let refused = world.run(&["share", CLAUDE]);
    assert!(refused.contains("`share.url` is not set"), "{refused}");
    assert!(refused.ends_with("--- status 2\n"), "{refused}");
}
