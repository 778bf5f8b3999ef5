//! Tools for tests of robustness: killed processes, concurrent writers, damaged files.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use crate::world::sessions::{self, CLAUDE, Claude};
use crate::world::{World, written};

/// The arguments of compactions in these tests: deterministic and fast.
pub const SMALL: [&str; 4] =
    ["compact", "--keep-turns=1", "--count=estimate", "--recipe=transcript"];

/// Pseudo-random numbers that are the same in every run.
pub struct Seeded(u64);

impl Seeded {
    pub fn new(seed: u64) -> Seeded {
        Seeded(seed)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        // SplitMix64, by Sebastiano Vigna.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % end.max(1)
    }

    /// So many digits that hardly compress.
    pub fn digits(&mut self, many: usize) -> String {
        (0..many).map(|_| char::from(b"0123456789abcdef"[self.below(16) as usize])).collect()
    }
}

/// The arguments of a compaction of `session`.
pub fn small<'a>(session: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    SMALL.iter().copied().chain([session]).chain(more.iter().copied()).collect()
}

/// Starts the program and does not wait for it.
pub fn start(world: &World, args: &[&str]) -> Child {
    let mut command = world.command(args);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().expect("the program runs")
}

/// Compacts the session and returns its bytes.
pub fn compacted(world: &World, path: &Path) -> Vec<u8> {
    let name = path.to_str().expect("text");
    assert_eq!(world.status(&small(name, &[])), 0);
    fs::read(path).expect("a session")
}

/// Files left by killed processes anywhere in the home folder.
pub fn leftovers(world: &World) -> Vec<PathBuf> {
    let paths = world.tree().into_iter().map(|(path, _, _)| path);
    paths.filter(|path| path.extension().is_some_and(|it| it == "tmp")).collect()
}

/// The pack of a generation of a session of Claude Code.
pub fn pack(world: &World, id: &str, number: u64) -> PathBuf {
    world.home.join(format!(".local/share/epitome/archive/claude/{id}/{number:06}.pack"))
}

/// Appends as agents do: opens the file, writes everything, closes it.
pub fn append_now(path: &Path, bytes: &[u8]) {
    let mut file = File::options().append(true).open(path).expect("a session");
    file.write_all(bytes).expect("written");
}

/// The same, three days ago.
pub fn append(path: &Path, bytes: &[u8]) {
    append_now(path, bytes);
    written(path);
}

/// Replaces the content of a session, as a user who edited it by hand three days ago.
pub fn rewrite(path: &Path, bytes: impl AsRef<[u8]>) {
    fs::write(path, bytes).expect("written");
    written(path);
}

/// A session of Claude Code with so many turns, each with a call whose result will be removed.
pub fn turns(many: usize) -> String {
    let mut session = Claude::new(CLAUDE);
    for n in 0..many {
        session.user(&format!("Run number {n}."));
        let text = format!("run {n}\n{}", sessions::log(40 + n));
        let input = serde_json::json!({"command": format!("run {n}")});
        session.call(&format!("t{n}"), "Bash", input, &text, false);
        session.say(&format!("Run {n} is done."));
    }
    session.lines()
}

/// Checks that two byte strings are equal, without printing them.
#[track_caller]
pub fn same(one: &[u8], other: &[u8], what: &str) {
    let at = one.iter().zip(other).position(|(one, other)| one != other);
    assert!(one == other, "{what}: {} and {} bytes, apart from {at:?}", one.len(), other.len());
}
