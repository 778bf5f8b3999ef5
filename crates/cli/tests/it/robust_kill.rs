//! `kill -9` at any moment: the session is either unchanged or completely written.

use std::fs;
use std::path::Path;
use std::process::Child;

use crate::world::World;
use crate::world::sessions::CLAUDE;
use crate::world::trouble::{self, Seeded, compacted, leftovers, same, small, start};

/// The number of pairs of a compaction and a restore, each killed once; `cargo lab chaos` kills
/// hundreds.
const ROUNDS: u64 = 30;

/// The moment at which a process is killed.
enum Moment {
    /// After this many checks of whether the process has ended.
    Asked(u64),
    /// After this many checks since the process has had a temporary file in this folder.
    Writing(&'static str, u64),
}

/// An import of versions that is killed adds them or not, and a second one completes it.
#[test]
fn a_killed_import_leaves_all_versions_of_a_machine_or_none() {
    let (first, second) = (World::new(), World::new());
    let versions = crate::vault::kept(&first);
    let tar = first.home.join("versions.tar");
    let tar = tar.to_str().expect("text");
    assert_eq!(first.status(&["archive", "export", "--vault", "--out", tar]), 0);
    let import = ["archive", "import", tar];
    let mut seeded = Seeded::new(11);
    let home = second.home.join(".local/share/epitome");
    let mut at_most = 0;
    for round in 0..ROUNDS / 2 {
        fs::remove_dir_all(home.join("vault")).ok();
        let moment = match (round, seeded.below(2)) {
            (0, _) => Moment::Asked(u64::MAX),
            (_, 0) => Moment::Writing(".local/share/epitome/vault", seeded.below(100)),
            (_, _) => Moment::Asked(seeded.below(at_most * 11 / 10)),
        };
        let (asked, ended) = kill(start(&second, &import), &second.home, &moment);
        at_most = if ended { at_most.max(asked) } else { at_most };
        assert!(!second.run(&["archive", "verify"]).contains("--- status 5"), "round {round}");
        assert_eq!(second.status(&import), 0, "round {round}: the import after the kill");
        let out = second.home.join(format!("{round}.jsonl"));
        let name = out.to_str().expect("text");
        let restore = ["restore", crate::world::sessions::PI, "--at", "2", "--out", name];
        assert_eq!(second.status(&restore), 0);
        same(&fs::read(&out).expect("a version"), &versions[1], "version 2");
    }
}

/// Kills a process. Returns the number of checks, and whether it had ended before.
fn kill(mut child: Child, home: &Path, moment: &Moment) -> (u64, bool) {
    let mut asked = 0;
    let mut since: Option<u64> = None;
    let ended = loop {
        if child.try_wait().expect("it is ours").is_some() {
            break true;
        }
        asked += 1;
        match moment {
            Moment::Asked(most) if asked >= *most => break false,
            Moment::Asked(_) => {}
            Moment::Writing(folder, most) => match &mut since {
                Some(since) if *since >= *most => break false,
                Some(since) => *since += 1,
                None if in_the_making(&home.join(folder)) => since = Some(0),
                None => {}
            },
        }
    };
    child.kill().expect("it is ours");
    child.wait().expect("it ends");
    (asked, ended)
}

fn in_the_making(folder: &Path) -> bool {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.into_iter().any(|entry| entry.path().extension().is_some_and(|it| it == "tmp"))
}

#[test]
fn a_killed_process_leaves_the_session_as_it_was_or_was_to_become() {
    let world = World::new();
    let original = trouble::turns(30).into_bytes();
    let path = world.claude(CLAUDE, &original);
    let small_bytes = compacted(&world, &path);
    assert_eq!(world.status(&["restore", CLAUDE]), 0);
    same(&fs::read(&path).expect("a session"), &original, "restored");
    let archive = format!(".local/share/epitome/archive/claude/{CLAUDE}").leak();
    let folders = [".claude/projects/-p", archive];
    let mut seeded = Seeded::new(7);
    let never = Moment::Asked(u64::MAX);
    let (mut at_most, mut killed, mut left) = ([0; 2], 0, 0);
    for round in 0..ROUNDS {
        let verbs = [small(CLAUDE, &[]), vec!["restore", CLAUDE]];
        for (idx, args) in verbs.iter().enumerate() {
            let child = start(&world, args);
            let moment = match (round, seeded.below(3)) {
                // The first round is not killed, to see how long it takes.
                (0, _) => &never,
                (_, 0) => &Moment::Writing(folders[seeded.below(2) as usize], seeded.below(200)),
                (_, _) => &Moment::Asked(seeded.below(at_most[idx] * 11 / 10)),
            };
            let (asked, ended) = kill(child, &world.home, moment);
            if ended {
                at_most[idx] = at_most[idx].max(asked);
            }
            killed += u64::from(!ended);
            let now = fs::read(&path).expect("a session");
            let whole = now == original || now == small_bytes;
            assert!(whole, "round {round}, {args:?}: {} bytes", now.len());
            left += leftovers(&world).len();
            assert_eq!(world.status(args), 0, "round {round}, {args:?}: the run after the kill");
            let wanted = [&small_bytes, &original][idx];
            same(&fs::read(&path).expect("a session"), wanted, "after a run that was let alone");
        }
    }
    eprintln!("{killed} of {} were killed in time, {left} left a file", 2 * ROUNDS);
    assert!(killed > ROUNDS / 2, "most ended before they were killed: {killed}");
    same(&fs::read(&path).expect("a session"), &original, "in the end");
    assert_eq!(world.status(&["archive", "verify"]), 0);
    assert_eq!(world.status(&["archive", "gc", "--yes"]), 0);
    assert_eq!(leftovers(&world), Vec::<std::path::PathBuf>::new());
}

#[test]
fn what_a_killed_process_left_is_collected() {
    let world = World::new();
    let path = world.claude(CLAUDE, trouble::turns(3));
    compacted(&world, &path);
    // Temporary files of a killed process: next to the session, in the archive, at its root, in the
    // cache folder, at the root of the vault, and in the folder of another machine there.
    let name = ".epitome-Ab12Cd.tmp";
    let home = ".local/share/epitome";
    let folders = [
        ".claude/projects/-p".to_owned(),
        format!("{home}/archive"),
        format!("{home}/archive/claude/{CLAUDE}"),
        format!("{home}/cache"),
        format!("{home}/vault"),
        format!("{home}/vault/0123456789abcdef"),
    ];
    for folder in &folders {
        world.write(&format!("{folder}/{name}"), "half a");
    }
    let output = world.run(&["archive", "gc"]);
    assert!(output.contains("6 files of killed processes"), "{output}");
    assert_eq!(leftovers(&world).len(), 6, "it was only asked");
    let output = world.run(&["archive", "gc", "--yes"]);
    assert!(output.contains("deleted 6 files of killed processes"), "{output}");
    assert_eq!(leftovers(&world), Vec::<std::path::PathBuf>::new());
}

#[test]
fn what_a_killed_export_or_import_left_is_removed_by_the_next_one() {
    let world = World::new();
    crate::vault::kept(&world);
    let tars = world.home.join("tars");
    let vault = world.home.join(".local/share/epitome/vault");
    let machine = fs::read_to_string(vault.join("machine")).expect("a name");
    let leave = |folder: &str| {
        world.write(&format!("{folder}/.epitome-Ab12Cd.tmp"), "half a");
    };
    leave("tars");
    leave(&format!(".local/share/epitome/vault/{machine}"));
    let tar = tars.join("versions.tar");
    let tar = tar.to_str().expect("text");
    let export = ["archive", "export", crate::world::sessions::PI, "--vault", "--out", tar];
    assert_eq!(world.status(&export), 0);
    assert_eq!(leftovers(&world), Vec::<std::path::PathBuf>::new());
    leave(".local/share/epitome/archive");
    leave(".local/share/epitome/vault");
    leave(&format!(".local/share/epitome/vault/{machine}"));
    assert_eq!(world.status(&["archive", "import", tar]), 0);
    assert_eq!(leftovers(&world), Vec::<std::path::PathBuf>::new());
}
