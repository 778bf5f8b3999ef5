//! An incomplete archive: damage is reported, and wrong bytes are never written.

use std::fs;
use std::path::PathBuf;

use crate::world::World;
use crate::world::sessions::{self, CLAUDE, OTHER};
use crate::world::trouble::{self, Seeded, append, pack, same, small};

/// A session that was compacted twice, another that was compacted once, and a reference to a text
/// of the first.
struct Kept {
    world: World,
    path: PathBuf,
    original: String,
    small: Vec<u8>,
    reference: String,
}

impl Kept {
    fn new() -> Kept {
        let world = World::new();
        let original = sessions::claude(CLAUDE);
        let path = world.claude(CLAUDE, &original);
        world.claude(OTHER, sessions::claude(OTHER));
        let args = ["compact", CLAUDE, "--count=estimate", "--recipe=epitome"];
        for turns in ["--keep-turns=2", "--keep-turns=1"] {
            assert_eq!(world.status(&[&args[..], &[turns]].concat()), 0);
        }
        assert_eq!(world.status(&small(OTHER, &[])), 0);
        let text = fs::read_to_string(&path).expect("a session");
        let reference = format!("k{}", &text.split("[epitome k").nth(1).expect("a stub")[..7]);
        Kept { world, path, original, small: text.into_bytes(), reference }
    }

    fn terminal(&self, args: &[&str], status: i32, name: &str) -> String {
        let terminal = self.world.run(args);
        let wanted = format!("--- status {status}\n");
        assert!(terminal.ends_with(&wanted), "{name}: wanted {status}: {terminal}");
        assert!(!terminal.contains("panicked"), "{name}: {terminal}");
        terminal
    }

    fn unchanged(&self, name: &str) {
        same(&fs::read(&self.path).expect("a session"), &self.small, name);
    }
}

/// A change to the bytes of a pack.
type Damage = fn(&mut Vec<u8>);

const DAMAGES: &[(&str, Damage)] = &[
    ("cut in half", |bytes| bytes.truncate(bytes.len() / 2)),
    ("a byte short", |bytes| bytes.truncate(bytes.len() - 1)),
    ("empty", |bytes| bytes.clear()),
    ("longer", |bytes| bytes.extend([0; 100])),
    ("zeros in the middle", |bytes| {
        let middle = bytes.len() / 3;
        bytes[middle..middle + 200].fill(0);
    }),
    ("zeros all over", |bytes| bytes.fill(0)),
    ("something else", |bytes| *bytes = b"PK\x03\x04 this is another file\n".repeat(50)),
];

#[test]
fn a_damaged_pack_is_named_and_nothing_wrong_is_written() {
    for (name, damage) in DAMAGES {
        let kept = Kept::new();
        let pack = pack(&kept.world, CLAUDE, 1);
        let mut bytes = fs::read(&pack).expect("a pack");
        damage(&mut bytes);
        fs::write(&pack, &bytes).expect("written");
        let verified = kept.terminal(&["archive", "verify"], 5, name);
        assert!(verified.contains("000001.pack"), "{name}: {verified}");
        kept.terminal(&["archive", "ls"], 0, name);
        // Either everything is restored, or nothing.
        let terminal = kept.world.run(&["restore", CLAUDE]);
        if terminal.ends_with("--- status 0\n") {
            let now = fs::read(&kept.path).expect("a session");
            assert!(now == kept.original.as_bytes(), "{name}: {terminal}");
        } else {
            assert!(terminal.ends_with("--- status 5\n"), "{name}: {terminal}");
            kept.unchanged(name);
        }
        // The other session is not affected.
        kept.terminal(&["restore", OTHER], 0, name);
        let output = kept.terminal(&["archive", "gc", "--yes"], 0, name);
        assert!(
            output.contains("removed 0") || output.contains("nothing to remove"),
            "{name}: {output}"
        );
        assert_eq!(fs::read(&pack).expect("a pack"), bytes, "{name}: it may be needed yet");
    }
}

#[test]
fn flipped_bytes_never_come_out() {
    let kept = Kept::new();
    let shown = kept.world.output(&["show", &kept.reference]).stdout;
    let paths = [1, 2].map(|number| pack(&kept.world, CLAUDE, number));
    let packs = paths.each_ref().map(|path| fs::read(path).expect("a pack"));
    let mut seeded = Seeded::new(11);
    let (mut came, mut refused) = (0, 0);
    for round in 0..60 {
        let which = seeded.below(2) as usize;
        let mut bytes = packs[which].clone();
        for _ in 0..=seeded.below(3) {
            let at = seeded.below(bytes.len() as u64) as usize;
            bytes[at] ^= 1 << seeded.below(8);
        }
        fs::write(&paths[which], &bytes).expect("written");
        let out = kept.world.output(&["show", &kept.reference]);
        match out.status.code() {
            Some(0) => assert!(out.stdout == shown, "round {round}"),
            status => assert_eq!((status, out.stdout.len()), (Some(5), 0), "round {round}"),
        }
        let terminal = kept.world.run(&["restore", CLAUDE]);
        let now = fs::read(&kept.path).expect("a session");
        if terminal.ends_with("--- status 0\n") {
            let whole = now == kept.original.as_bytes();
            if !whole {
                // The list of the last compaction's edits is lost: this is reported, and every
                // record is one of those that the file once had.
                assert!(terminal.contains("record by record"), "round {round}: {terminal}");
                assert!(terminal.contains("damaged"), "round {round}: {terminal}");
                let known = [kept.original.as_bytes(), &kept.small].concat();
                let known: Vec<&[u8]> = known.split(|&byte| byte == b'\n').collect();
                assert!(now.split(|&byte| byte == b'\n').all(|line| known.contains(&line)));
                fs::remove_file(pack(&kept.world, CLAUDE, 3)).expect("a pack");
            }
            came += u64::from(whole);
        } else {
            assert!(terminal.ends_with("--- status 5\n"), "round {round}: {terminal}");
            kept.unchanged("refused");
            refused += 1;
        }
        fs::write(&kept.path, &kept.small).expect("written");
        fs::write(&paths[which], &packs[which]).expect("written");
    }
    assert!(came > 0 && refused > 0, "{came} came back, {refused} were refused");
}

/// A part of a chain of generations is not taken for the whole.
#[test]
fn a_missing_pack_is_told() {
    let kept = Kept::new();
    fs::remove_file(pack(&kept.world, CLAUDE, 1)).expect("a pack");
    let verified = kept.terminal(&["archive", "verify"], 5, "the first");
    assert!(verified.contains("generation 1 of this session is not in the archive"), "{verified}");
    for args in [&["restore", CLAUDE][..], &["restore", CLAUDE, "--dry-run"]] {
        let terminal = kept.terminal(args, 5, "the first");
        assert!(terminal.contains("generation 1"), "{terminal}");
        assert!(
            terminal.contains("hint: `epitome restore SESSION --partial` restores what can be"),
            "{terminal}"
        );
        kept.unchanged("the first");
    }
    let terminal = kept.terminal(&["restore", CLAUDE, "--generation", "1"], 0, "the first");
    assert!(terminal.contains("exact, to the byte: 1 compaction undone"), "{terminal}");

    let kept = Kept::new();
    fs::remove_file(pack(&kept.world, CLAUDE, 2)).expect("a pack");
    let terminal = kept.terminal(&["restore", CLAUDE], 0, "the last");
    assert!(terminal.contains("record by record"), "{terminal}");
    assert!(terminal.contains("1 is no longer where epitome left it"), "{terminal}");

    let kept = Kept::new();
    let folder = pack(&kept.world, CLAUDE, 1);
    fs::remove_dir_all(folder.parent().expect("a folder")).expect("gone");
    let terminal = kept.terminal(&["restore", CLAUDE], 5, "all gone");
    assert!(terminal.contains("the archive holds nothing of this session"), "{terminal}");
    kept.unchanged("all gone");
    // The other session had removed the same bytes; without its pack they are lost.
    kept.terminal(&["show", &kept.reference], 0, "all gone");
    let folder = pack(&kept.world, OTHER, 1);
    fs::remove_dir_all(folder.parent().expect("a folder")).expect("gone");
    kept.terminal(&["show", &kept.reference], 5, "all gone");
}

#[test]
fn foreign_files_are_left_alone() {
    let kept = Kept::new();
    let archive = ".local/share/epitome/archive";
    let foreign = [
        format!("{archive}/notes.txt"),
        format!("{archive}/claude/notes.txt"),
        format!("{archive}/claude/{CLAUDE}/notes.txt"),
        format!("{archive}/claude/{CLAUDE}/1.pack"),
        format!("{archive}/claude/{CLAUDE}/pack"),
        format!("{archive}/claude/{CLAUDE}/.epitome-mine.txt"),
        format!("{archive}/claude/mine/session.jsonl"),
        format!("{archive}/else/where/file"),
    ];
    let foreign = foreign.map(|name| kept.world.write(&name, "mine"));
    fs::create_dir(kept.path.with_extension("pack")).expect("a folder");
    kept.terminal(&["archive", "verify"], 0, "foreign");
    kept.terminal(&["archive", "gc", "--yes"], 0, "foreign");
    kept.terminal(&["show", &kept.reference], 0, "foreign");
    kept.terminal(&["restore", CLAUDE], 0, "foreign");
    same(&fs::read(&kept.path).expect("a session"), kept.original.as_bytes(), "restored");
    for path in foreign {
        assert_eq!(fs::read_to_string(path).expect("a file"), "mine");
    }
}

#[test]
fn a_pack_of_another_session_is_not_taken_for_its_own() {
    let kept = Kept::new();
    let of_other = fs::read(pack(&kept.world, OTHER, 1)).expect("a pack");
    fs::write(pack(&kept.world, CLAUDE, 3), of_other).expect("written");
    let verified = kept.terminal(&["archive", "verify"], 5, "foreign pack");
    assert!(verified.contains("000003.pack"), "{verified}");
    let terminal = kept.terminal(&["restore", CLAUDE], 0, "foreign pack");
    assert!(terminal.contains("damaged"), "{terminal}");
    same(&fs::read(&kept.path).expect("a session"), kept.original.as_bytes(), "restored");
}

#[test]
fn a_folder_in_the_place_of_a_pack_is_told() {
    let kept = Kept::new();
    let folder = pack(&kept.world, CLAUDE, 3);
    fs::create_dir(&folder).expect("a folder");
    kept.terminal(&["archive", "verify"], 5, "a folder");
    kept.terminal(&["archive", "gc", "--yes"], 0, "a folder");
    kept.terminal(&["restore", CLAUDE], 0, "a folder");
    same(&fs::read(&kept.path).expect("a session"), kept.original.as_bytes(), "restored");
    assert!(folder.is_dir());
}

#[test]
fn two_homes_share_a_session_by_export_and_import() {
    let kept = Kept::new();
    kept.terminal(&["archive", "export", CLAUDE, "--out", "part.tar"], 0, "export");
    let tar = fs::read(kept.world.home.join("part.tar")).expect("a file");
    let more = b"{\"type\":\"summary\",\"summary\":\"there\"}\n";
    let there = World::new();
    // The other machine has compacted a session with the same id already, so numbers are taken.
    let path = there.claude(CLAUDE, trouble::turns(5));
    assert_eq!(there.status(&small(CLAUDE, &[])), 0);
    fs::write(&path, &kept.small).expect("written");
    // Its stubs refer to bytes that are not in this archive yet.
    assert_eq!(there.status(&["restore", CLAUDE, "--dry-run"]), 5);
    append(&path, more);
    there.write("part.tar", &tar);
    for _ in 0..2 {
        let terminal = there.run(&["archive", "import", "part.tar"]);
        assert!(terminal.ends_with("--- status 0\n"), "twice is once: {terminal}");
    }
    assert_eq!(there.json(&["archive", "ls", "--json"]).len(), 3);
    let terminal = there.run(&["restore", CLAUDE, "--yes"]);
    assert!(terminal.contains("exact, to the byte"), "{terminal}");
    let wanted = [kept.original.as_bytes(), more].concat();
    same(&fs::read(&path).expect("a session"), &wanted, "there");
    // If the export was truncated or damaged on the way, nothing is imported.
    let mut seeded = Seeded::new(13);
    for round in 0..30 {
        let elsewhere = World::new();
        let mut bytes = tar.clone();
        match round % 2 {
            0 => bytes.truncate(seeded.below(tar.len() as u64 - 1_024) as usize),
            _ => {
                let at = seeded.below(tar.len() as u64) as usize;
                bytes[at] ^= 1 << seeded.below(8);
            }
        }
        elsewhere.write("part.tar", &bytes);
        let terminal = elsewhere.run(&["archive", "import", "part.tar"]);
        assert!(!terminal.contains("panicked"), "round {round}: {terminal}");
        let taken = elsewhere.json(&["archive", "ls", "--json"]).len();
        let done = terminal.ends_with("--- status 0\n");
        assert_eq!(done, taken > 0, "round {round}: {terminal}");
        assert_eq!(elsewhere.status(&["archive", "verify"]), 0, "round {round}");
    }
}

/// Records that epitome appends in Codex's own form look like Codex's: the damaged newest part may
/// be one.
#[test]
fn a_damaged_part_that_only_appended_is_missed() {
    let world = World::new();
    let id = "01a1fc9b-bb93-70a1-b7c3-6fcf53d36849";
    let path = world.codex(id, fixtures::get("codex", "pricing").bytes());
    for keep in ["--keep-results=4", "--keep-results=0"] {
        assert_eq!(world.status(&["compact", id, "--native", "--count=estimate", keep]), 0);
    }
    let compacted = fs::read(&path).expect("a session");
    let pack = world.home.join(format!(".local/share/epitome/archive/codex/{id}/000002.pack"));
    let bytes = fs::read(&pack).expect("a second generation");
    fs::write(&pack, &bytes[..bytes.len() / 2]).expect("damage");
    let output = world.run(&["restore", id]);
    assert!(output.contains("may be needed; nothing was changed"), "{output}");
    assert!(output.ends_with("--- status 5\n"), "{output}");
    same(&fs::read(&path).expect("a session"), &compacted, "a damaged part");
    assert_eq!(world.status(&["restore", id, "--partial"]), 0);
}
