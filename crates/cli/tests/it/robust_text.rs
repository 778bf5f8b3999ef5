//! Bytes that look like something else: pasted stubs, repeated ids, cycles, invalid text, torn
//! lines. Compacted, appended to and restored, they are unchanged.

use std::fs;

use crate::world::World;
use crate::world::sessions::{self, CLAUDE, Claude, PI};
use crate::world::trouble::{append, compacted, same, small};
use serde_json::json;

/// A reference that is in the archive, and the text that it refers to.
fn known_reference(world: &World) -> (String, Vec<u8>) {
    let path = world.claude(CLAUDE, sessions::claude(CLAUDE));
    assert_eq!(world.status(&["compact", CLAUDE, "--keep-turns=1", "--count=estimate"]), 0);
    let small = fs::read_to_string(&path).expect("a session");
    let reference = format!("k{}", &small.split("[epitome k").nth(1).expect("a stub")[..7]);
    let shown = world.output(&["show", &reference]).stdout;
    (reference, shown)
}

#[test]
fn a_pasted_stub_is_text_like_any_other() {
    let world = World::new();
    let (reference, shown) = known_reference(&world);
    let stub = format!("[epitome {reference}: Read src/a.rs, 120 lines, 4 KB]");
    // Another session, into which the stub was pasted everywhere.
    let mut session = Claude::new("pasted-0001");
    session.user(&stub);
    let result = format!("{stub}\n{}{stub}\n", sessions::log(60));
    session.call("t1", "Bash", json!({"command": stub}), &result, false);
    session.call("t2", "Read", json!({"file_path": "/p/b.rs"}), &stub, false);
    session.call("t3", "Write", json!({"file_path": "/p/c.rs", "content": result}), "ok", false);
    session.say(&stub);
    session.user("[output: 3 lines]");
    let original = session.lines();
    let path = world.claude("pasted-0001", &original);
    for recipe in ["epitome", "transcript", "transcript-no-thinking"] {
        let args = ["compact", "pasted-0001", "--keep-turns=1", "--count=estimate", "--recipe"];
        assert_eq!(world.status(&[&args[..], &[recipe]].concat()), 0, "{recipe}");
        let small = fs::read_to_string(&path).expect("a session");
        assert!(small.len() < original.len(), "{recipe}");
        assert!(small.contains(&format!("\"content\":\"{stub}\"")), "{recipe}: words of the user");
        // The reference still refers to the other session's text, and to nothing in this one.
        assert_eq!(world.output(&["show", &reference]).stdout, shown, "{recipe}");
        let block = world.run(&["restore", "pasted-0001", "--block", &reference]);
        assert!(block.ends_with("--- status 5\n"), "{recipe}: {block}");
        same(&fs::read(&path).expect("a session"), small.as_bytes(), recipe);
        assert_eq!(world.status(&["restore", "pasted-0001"]), 0, "{recipe}");
        same(&fs::read(&path).expect("a session"), original.as_bytes(), recipe);
    }
}

/// Unusual sessions, each with a description.
fn odd() -> Vec<(String, Vec<u8>)> {
    let whole = sessions::claude(CLAUDE);
    let swap = |from: &str, to: &str| whole.replace(from, to).into_bytes();
    let raw = |from: &str, to: &[u8]| {
        let mut bytes = whole.clone().into_bytes();
        while let Some(at) = bytes.windows(from.len()).position(|it| it == from.as_bytes()) {
            bytes.splice(at..at + from.len(), to.iter().copied());
        }
        bytes
    };
    let uuid = |n: usize| format!("00000000-0000-4000-8000-{n:012}");
    let loop_of_two = whole
        .replace(&format!("\"parentUuid\":\"{}\"", uuid(3)), "\"parentUuid\":\"x\"")
        .replace("\"parentUuid\":\"x\"", &format!("\"parentUuid\":\"{}\"", uuid(4)));
    let lines: Vec<&str> = whole.lines().collect();
    let twice: String = lines.iter().flat_map(|line| [line, "\n", line, "\n"]).collect();
    let backwards: String = lines.iter().rev().flat_map(|line| [*line, "\n"]).collect();
    let mixed: String = lines
        .iter()
        .enumerate()
        .flat_map(|(n, line)| [*line, ["\n", "\r\n", "\r\n\r\n", " \n"][n % 4]])
        .collect();
    let own = |n: usize, line: &str| line.replace(&uuid(n), &uuid(n + 1));
    let own_parents: String =
        lines.iter().enumerate().map(|(n, line)| own(n.max(1) - 1, line) + "\n").collect();
    let named = |name: &str, bytes: Vec<u8>| (name.to_owned(), bytes);
    let text = |name: &str, text: String| (name.to_owned(), text.into_bytes());
    vec![
        named("one id everywhere", {
            (0..20).fold(whole.clone(), |it, n| it.replace(&uuid(n), &uuid(0))).into_bytes()
        }),
        named("one call id everywhere", {
            ["t2", "t3", "t4"].iter().fold(whole.clone(), |it, id| it.replace(id, "t1")).into()
        }),
        text("a loop of two", loop_of_two),
        text("its own parent", own_parents),
        text("every record twice", twice),
        text("backwards", backwards),
        text("all ends of line", mixed),
        named("invalid UTF-8", raw("case_1", b"\xff\xfe\xc0\x80\xed\xa0\x80")),
        named("invalid UTF-8 in names", raw("toolUseResult", b"tool\xffResult")),
        named("NUL", raw("case_2", b"\0\0")),
        named("lone surrogates", swap("case_1", r"\ud83e\udd16\udd16\ud83e \uDEAD")),
        named("surrogates in names", swap("toolUseResult", r"tool\ud83eResult")),
        text("CRLF and a BOM", format!("\u{feff}{}", whole.replace('\n', "\r\n"))),
        text("a BOM a line", lines.iter().map(|line| format!("\u{feff}{line}\n")).collect()),
        text("no line feed at the end", whole.trim_end().to_owned()),
        text("a torn escape", format!("{whole}{{\"type\":\"user\",\"message\":\"\\ud8")),
        named("a torn character", [whole.as_bytes(), b"{\"type\":\"\xe2\x82"].concat()),
        text("only line feeds behind", format!("{whole}\n\n\r\n\n")),
        text("other line separators", swap_all(&whole)),
        named("numbers without end", swap("\"input_tokens\":1", "\"input_tokens\":1e999,\"x\":1")),
        named("members twice", swap("\"type\":\"user\"", "\"type\":\"user\",\"type\":\"user\"")),
    ]
}

fn swap_all(whole: &str) -> String {
    whole.replace("case_3", "case\u{2028}3\u{2029}\u{85}")
}

/// What an agent may append after a compaction: whole records, a torn one, or the rest of one.
const APPENDED: [&[u8]; 4] = [
    b"{\"type\":\"summary\",\"summary\":\"more\"}\n",
    b"{\"type\":\"user\",\"mess",
    b"age\":1}\r\n\r\n{}\n",
    b"\xff\n\xef\xbb\xbf{\"type\":\"summary\"}",
];

#[test]
fn odd_sessions_come_back_with_what_was_appended() {
    for (name, mut bytes) in odd() {
        let world = World::new();
        let path = world.claude(CLAUDE, &bytes);
        let mut smaller = false;
        for more in APPENDED {
            let status = world.status(&small(CLAUDE, &[]));
            assert!([0, 4].contains(&status), "{name}: status {status}");
            let now = fs::read(&path).expect("a session");
            smaller |= now.len() < bytes.len();
            if status == 4 {
                same(&now, &bytes, &name);
            }
            append(&path, more);
            bytes.extend(more);
            if now.len() + more.len() < bytes.len() {
                let terminal = world.run(&["restore", CLAUDE]);
                assert!(terminal.ends_with("--- status 0\n"), "{name}: {terminal}");
                assert!(terminal.contains("exact, to the byte"), "{name}: {terminal}");
            }
            same(&fs::read(&path).expect("a session"), &bytes, &name);
        }
        eprintln!("{name}: {}", if smaller { "smaller" } else { "as before" });
    }
}

#[test]
fn compactions_one_upon_the_other_come_back_in_one_step() {
    let world = World::new();
    let mut bytes = sessions::pi(PI).into_bytes();
    let path = world.pi(PI, &bytes);
    for (n, more) in APPENDED.iter().enumerate() {
        let recipe = ["--recipe", ["transcript", "gitclaw", "epitome"][n % 3]];
        let args = [&["compact", PI, "--keep-turns=1", "--count=estimate"][..], &recipe].concat();
        assert_eq!(world.status(&args), 0, "{n}");
        append(&path, more);
        bytes.extend(*more);
    }
    assert!(fs::read(&path).expect("a session").len() < bytes.len());
    assert_eq!(world.status(&["restore", PI]), 0);
    same(&fs::read(&path).expect("a session"), &bytes, "all at once");
}

#[test]
fn recorded_sessions_come_back_whatever_the_recipe() {
    for fixture in fixtures::all() {
        let world = World::new();
        let original = fixture.bytes();
        let path = world.write(&format!("{}.jsonl", fixture.name), &original);
        let small = compacted(&world, &path);
        assert!(small != original, "{}", fixture.name);
        let more = b"{\"type\":\"later\"}\n";
        append(&path, more);
        assert_eq!(world.status(&["restore", path.to_str().expect("text")]), 0);
        let wanted = [&original[..], more].concat();
        same(&fs::read(&path).expect("a session"), &wanted, &fixture.name);
    }
}
