//! Sessions of extreme size: a line of 100 MB, a million nested brackets, 200,000 records.

use std::fs::{self, File};
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use crate::world::World;
use crate::world::sessions::{self, CLAUDE};
use crate::world::trouble::{same, small};

const MEGABYTE: usize = 1_000_000;

/// A line of a log with escapes, which compresses neither very well nor very badly.
fn chunk() -> Vec<u8> {
    let line = r"test case_7 ... ok \u00e9 \t and \u2014 more \\ of it\n";
    line.repeat(MEGABYTE / line.len() + 1).into_bytes()
}

/// Writes a session whose second result has so many megabytes, a chunk at a time.
fn with_long_line(world: &World, megabytes: usize) -> PathBuf {
    let session = sessions::claude(CLAUDE);
    let (head, tail) = session.split_once("test case_1 ... ok").expect("a result");
    let path = world.claude(CLAUDE, "");
    let mut out = BufWriter::new(File::create(&path).expect("a file"));
    out.write_all(head.as_bytes()).expect("written");
    let chunk = chunk();
    for _ in 0..megabytes {
        out.write_all(&chunk).expect("written");
    }
    out.write_all(tail.as_bytes()).expect("written");
    out.flush().expect("written");
    path
}

fn hash(path: &Path) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    let mut file = File::open(path).expect("a file");
    let mut bytes = vec![0; MEGABYTE];
    loop {
        match file.read(&mut bytes).expect("read") {
            0 => return hasher.finalize(),
            n => hasher.update(&bytes[..n]),
        };
    }
}

#[test]
fn a_line_of_100_megabytes_goes_and_comes_back() {
    let world = World::new();
    let path = with_long_line(&world, 100);
    let original = hash(&path);
    let inspected = world.run(&["inspect", CLAUDE, "--count=estimate"]);
    assert!(inspected.ends_with("--- status 0\n"), "{inspected}");
    assert_eq!(world.status(&small(CLAUDE, &[])), 0);
    let len = path.metadata().expect("a file").len();
    assert!(len < 100_000, "{len} bytes are left");
    assert_eq!(world.status(&["restore", CLAUDE]), 0);
    assert_eq!(hash(&path), original);
}

#[test]
fn brackets_a_million_deep_are_kept() {
    let deep = format!("{}{}", "[".repeat(1_000_000), "]".repeat(1_000_000));
    let open = "{\"a\":".repeat(1_000_000);
    let whole = sessions::claude(CLAUDE);
    let cases = [
        ("a record of its own", format!("{whole}{{\"type\":\"deep\",\"x\":{deep}}}\n")),
        ("arguments", whole.replace("\"command\":\"seq 400\"", &format!("\"command\":{deep}"))),
        ("a copy", whole.replace("\"stderr\":\"\"", &format!("\"stderr\":{deep}"))),
        ("never closed", format!("{whole}{open}\n")),
        ("a line of brackets", format!("{whole}{deep}\n")),
        ("before all else", format!("{{\"type\":\"deep\",\"x\":{deep}}}\n{whole}")),
    ];
    for (name, bytes) in cases {
        let world = World::new();
        let path = world.claude(CLAUDE, &bytes);
        let inspected = world.status(&["inspect", CLAUDE, "--count=estimate"]);
        let done = world.status(&small(CLAUDE, &[]));
        assert!([0, 3].contains(&inspected), "{name}: status {inspected}");
        assert!([0, 3, 4].contains(&done), "{name}: status {done}");
        if done == 0 {
            assert!(fs::read(&path).expect("a session").len() < bytes.len(), "{name}");
            assert_eq!(world.status(&["restore", CLAUDE]), 0, "{name}");
        }
        same(&fs::read(&path).expect("a session"), bytes.as_bytes(), name);
    }
}

#[test]
fn a_session_of_200_000_records_goes_and_comes_back() {
    let world = World::new();
    let mut session = sessions::claude(CLAUDE);
    let parent = "00000000-0000-4000-8000-000000000012";
    for n in 0..200_000 {
        session.push_str(&format!(
            "{{\"type\":\"progress\",\"parentUuid\":\"{parent}\",\"uuid\":\"p{n}\",\"n\":{n}}}\n"
        ));
    }
    let path = world.claude(CLAUDE, &session);
    assert_eq!(world.status(&["inspect", CLAUDE, "--count=estimate"]), 0);
    assert_eq!(world.status(&small(CLAUDE, &[])), 0);
    assert!(fs::read(&path).expect("a session").len() < session.len());
    // Edited by hand, it is restored record by record.
    let by_hand = fs::read(&path).expect("a session");
    fs::write(&path, [b"{\"type\":\"summary\"}\n", by_hand.as_slice()].concat()).expect("written");
    assert_eq!(world.status(&["restore", CLAUDE]), 0);
    let wanted = ["{\"type\":\"summary\"}\n", &session].concat();
    same(&fs::read(&path).expect("a session"), wanted.as_bytes(), "record by record");
}
