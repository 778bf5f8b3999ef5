//! Concurrency: two compactions of a session, and an agent that writes meanwhile.

use std::fs;
use std::hint::spin_loop;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::world::World;
use crate::world::sessions::{self, CLAUDE, OTHER};
use crate::world::trouble::{self, Seeded, append_now, compacted, leftovers, same, small, start};

#[test]
fn of_two_compactions_of_a_session_one_wins() {
    let world = World::new();
    let original = trouble::turns(20).into_bytes();
    let path = world.claude(CLAUDE, &original);
    let small_bytes = compacted(&world, &path);
    assert_eq!(world.status(&["restore", CLAUDE]), 0);
    for round in 0..10 {
        let mut both = [start(&world, &small(CLAUDE, &[])), start(&world, &small(CLAUDE, &[]))];
        let mut statuses =
            both.each_mut().map(|child| child.wait().expect("it ends").code().expect("by itself"));
        statuses.sort_unstable();
        assert!(matches!(statuses, [0, 0 | 4]), "round {round}: {statuses:?}");
        same(&fs::read(&path).expect("a session"), &small_bytes, "compacted once");
        assert_eq!(world.status(&["restore", CLAUDE]), 0, "round {round}");
        same(&fs::read(&path).expect("a session"), &original, "restored");
    }
    assert_eq!(world.status(&["archive", "verify"]), 0);
    assert_eq!(leftovers(&world), Vec::<std::path::PathBuf>::new());
}

#[test]
fn two_sessions_share_an_archive() {
    for _ in 0..4 {
        let world = World::new();
        // Sessions with their own ids, and two files with the same id, which share a folder in the
        // archive.
        let sessions = [sessions::claude(CLAUDE), sessions::claude(OTHER)];
        let paths = [world.claude(CLAUDE, &sessions[0]), world.claude(OTHER, &sessions[1])];
        let copy = world.write("copy.jsonl", trouble::turns(4));
        let names = [CLAUDE, OTHER, copy.to_str().expect("text")];
        let children = names.map(|name| start(&world, &small(name, &[])));
        for mut child in children {
            assert_eq!(child.wait().expect("it ends").code(), Some(0));
        }
        assert_eq!(world.json(&["archive", "ls", "--json"]).len(), 3);
        assert_eq!(world.status(&["archive", "verify"]), 0);
        let children = names.map(|name| start(&world, &["restore", name]));
        for mut child in children {
            assert_eq!(child.wait().expect("it ends").code(), Some(0));
        }
        for (path, session) in paths.iter().zip(&sessions) {
            assert_eq!(&fs::read_to_string(path).expect("a session"), session);
        }
        assert_eq!(fs::read_to_string(&copy).expect("a session"), trouble::turns(4));
    }
}

/// Appends records until `stop` is set. Returns all appended bytes.
fn agent(path: &Path, seed: u64, stop: &AtomicBool) -> Vec<u8> {
    let mut seeded = Seeded::new(seed);
    let mut appended = Vec::new();
    while !stop.load(Ordering::Acquire) && appended.len() < 1 << 20 {
        let len = 8 + seeded.below(100);
        let words = seeded.digits(len as usize);
        let record = format!("{{\"type\":\"summary\",\"summary\":\"{words}\"}}\n").into_bytes();
        append_now(path, &record);
        appended.extend(record);
        // Pauses of all lengths, up to about that of a whole compaction.
        let pause = 1_u64 << seeded.below(23);
        for _ in 0..pause {
            spin_loop();
        }
    }
    appended
}

#[test]
fn nothing_that_an_agent_appends_meanwhile_is_lost() {
    let world = World::new();
    let mut whole = trouble::turns(20).into_bytes();
    let path = world.claude(CLAUDE, &whole);
    // The rounds restore even if their compaction was disturbed, so a generation is archived first.
    compacted(&world, &path);
    assert_eq!(world.status(&["restore", CLAUDE]), 0);
    let (mut done, mut refused) = (0, 0);
    for round in 0..20 {
        let stop = AtomicBool::new(false);
        let (statuses, appended) = thread::scope(|scope| {
            let writer = scope.spawn(|| agent(&path, round, &stop));
            let statuses =
                [small(CLAUDE, &[]), vec!["restore", CLAUDE]].map(|args| world.output(&args));
            stop.store(true, Ordering::Release);
            (statuses, writer.join().expect("it ends"))
        });
        whole.extend(appended);
        for output in &statuses {
            let status = output.status.code().expect("it ends by itself");
            assert!([0, 4].contains(&status), "round {round}: {output:?}");
            done += u64::from(status == 0);
            refused += u64::from(status == 4);
        }
        assert_eq!(world.status(&["restore", CLAUDE]), 0, "round {round}");
        same(&fs::read(&path).expect("a session"), &whole, &format!("round {round}"));
    }
    eprintln!("{done} went through, {refused} were refused, {} bytes in the end", whole.len());
    assert!(done > 0 && refused > 0, "{done} went through, {refused} were refused");
}
