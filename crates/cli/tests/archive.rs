//! `epitome archive`, as a person sees it.

mod world;

use std::fs;

use insta::assert_snapshot;
use world::World;
use world::sessions::{self, CLAUDE, PI};

fn compacted() -> World {
    let world = World::new();
    world.claude(CLAUDE, sessions::claude(CLAUDE));
    world.pi(PI, sessions::pi(PI));
    for id in [CLAUDE, PI] {
        world.run(&["compact", id, "--keep-turns=1", "--count=estimate", "--recipe=transcript"]);
    }
    world
}

#[test]
fn it_lists_what_was_compacted() {
    assert_snapshot!("empty", World::new().run(&["archive", "ls"]));
    let world = compacted();
    assert_snapshot!(world.run(&["archive", "ls"]));
    let objects = world.json(&["archive", "ls", "--json"]);
    assert_eq!(objects.len(), 2);
    assert_eq!(objects[0]["generation"], 1);
}

#[test]
fn it_says_whether_every_byte_is_there() {
    let world = compacted();
    assert!(world.run(&["archive", "verify"]).ends_with("says\n--- status 0\n"));
    let pack = world.home.join(format!(".local/share/epitome/archive/claude/{CLAUDE}/000001.pack"));
    fs::write(&pack, "damaged").expect("a pack");
    assert_snapshot!(world.run(&["archive", "verify"]));
}

#[test]
fn it_removes_only_what_no_session_refers_to_and_says_so_first() {
    let world = compacted();
    assert_snapshot!("nothing", world.run(&["archive", "gc"]));
    let session = world.home.join(format!(".claude/projects/-p/{CLAUDE}.jsonl"));
    // A session that was moved is still one.
    let moved = world.home.join(".claude/projects/-q");
    fs::create_dir_all(&moved).expect("a folder");
    fs::rename(&session, moved.join(format!("{CLAUDE}.jsonl"))).expect("a move");
    assert!(world.run(&["archive", "gc"]).contains("nothing to remove"));
    fs::remove_dir_all(&moved).expect("a folder");
    let said = world.run(&["archive", "gc"]);
    assert!(said.contains("would remove 1 session,"), "{said}");
    assert_eq!(world.json(&["archive", "ls", "--json"]).len(), 2);
    let done = world.run(&["archive", "gc", "--yes"]);
    assert!(done.contains("removed 1 session,"), "{done}");
    assert_eq!(world.json(&["archive", "ls", "--json"]).len(), 1);
}

#[test]
fn a_session_is_carried_to_another_machine() {
    let world = compacted();
    let original = sessions::claude(CLAUDE);
    let exported = world.run(&["archive", "export", "0f3c", "--out", "part.tar"]);
    assert!(exported.contains("exported 1 generation to part.tar"), "{exported}");
    let other = World::new();
    let small = fs::read(world.home.join(format!(".claude/projects/-p/{CLAUDE}.jsonl")));
    let path = other.claude(CLAUDE, small.expect("a session"));
    let tar = fs::read(world.home.join("part.tar")).expect("a file");
    let imported = other.run_with(&["archive", "import", "-"], &tar);
    assert!(imported.contains("imported 1 generation, 0 were here already"), "{imported}");
    assert_eq!(other.status(&["restore", CLAUDE]), 0);
    assert_eq!(fs::read_to_string(path).expect("a session"), original);
    other.write("no.tar", "this is no tar file");
    assert_snapshot!("no_tar", other.run(&["archive", "import", "no.tar"]));
    assert_snapshot!("nothing_to_export", other.run(&["archive", "export", "nobody"]));
}
