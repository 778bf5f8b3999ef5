//! Sessions that still refer to a part of the archive: gc never removes it, and a restore finds it.

use std::fs;

use crate::world::World;
use crate::world::sessions::{self, CLAUDE, OTHER};
use crate::world::trouble::{pack, same};

const COMPACT: [&str; 3] = ["--count=estimate", "--recipe=epitome", "--keep-turns=1"];

/// A fork is a session with another id that begins like the first one, with its stubs.
#[test]
fn gc_keeps_what_a_fork_stands_for() {
    let world = World::new();
    let path = world.claude(CLAUDE, sessions::claude(CLAUDE));
    assert_eq!(world.status(&[&["compact", CLAUDE], &COMPACT[..]].concat()), 0);
    let fork = fs::read_to_string(&path).expect("a session").replace(CLAUDE, OTHER);
    world.claude(OTHER, fork);
    fs::remove_file(&path).expect("the first goes");
    assert_eq!(world.status(&["archive", "gc", "--yes", "--grace", "0s"]), 0);
    assert!(pack(&world, CLAUDE, 1).exists(), "the fork's stubs stand for something");

    // Another session must exist: a folder without any could be on a disk that is not mounted.
    world
        .write(".claude/projects/-q/x.jsonl", sessions::claude("99999999-7d1e-4c55-9f0e-2b8d7a61"));
    fs::remove_dir_all(path.parent().expect("a folder")).expect("the fork goes too");
    assert_eq!(world.status(&["archive", "gc", "--yes", "--grace", "0s"]), 0);
    assert!(!pack(&world, CLAUDE, 1).exists(), "nobody refers to it any more");
}

/// A session that was named by a relative path is found from any other folder.
#[test]
fn gc_keeps_what_was_written_elsewhere() {
    let world = World::new();
    let original = sessions::claude(CLAUDE);
    let args = [&["compact", "-", "--out", "out.jsonl"], &COMPACT[..]].concat();
    let terminal = world.run_with(&args, original.as_bytes());
    assert!(terminal.ends_with("--- status 0\n"), "{terminal}");
    let mut gc = world.command(&["archive", "gc", "--yes"]);
    assert!(gc.current_dir("/").output().expect("it runs").status.success());
    assert_eq!(world.status(&["restore", "out.jsonl"]), 0);
    let out = world.write("beside", "").with_file_name("out.jsonl");
    same(&fs::read(out).expect("a session"), original.as_bytes(), "it comes back");
}

/// Of two copies of a session with one id, the archive of one may be damaged.
#[test]
fn a_damaged_twin_does_not_stand_in_the_way() {
    let world = World::new();
    let original = sessions::claude(CLAUDE);
    let (one, two) = (world.write("one.jsonl", &original), world.write("two.jsonl", &original));
    for path in [&one, &two] {
        let path = path.to_str().expect("a name");
        assert_eq!(world.status(&[&["compact", path], &COMPACT[..]].concat()), 0);
    }
    let newer = pack(&world, CLAUDE, 2);
    let mut bytes = fs::read(&newer).expect("a pack");
    let middle = bytes.len() / 3;
    bytes[middle..middle + 64].fill(0);
    fs::write(&newer, bytes).expect("written");
    assert_eq!(world.status(&["restore", "one.jsonl"]), 0);
    same(&fs::read(&one).expect("a session"), original.as_bytes(), "it comes back");
}
