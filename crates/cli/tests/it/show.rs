//! `epitome show` on the command line.

use crate::world::World;
use crate::world::sessions::{self, CLAUDE, Claude};
use insta::assert_snapshot;
use serde_json::json;

/// The reference of the first removed text of a session.
fn first_reference(world: &World, path: &std::path::Path) -> String {
    world.run(&["compact", CLAUDE, "--keep-turns=1", "--count=estimate"]);
    let small = std::fs::read_to_string(path).expect("a session");
    let digits = small.split("[epitome k").nth(1).expect("a stub");
    format!("k{}", &digits[..7])
}

#[test]
fn removed_text_is_printed_as_it_was() {
    let world = World::new();
    let path = world.claude(CLAUDE, sessions::claude(CLAUDE));
    let reference = first_reference(&world, &path);
    let out = world.output(&["show", &reference]);
    assert_eq!(String::from_utf8(out.stdout).expect("text"), sessions::code(120));
    assert_snapshot!(world.run(&["show", &reference, "--lines", "3..5"]), @r"
    $ epitome show k951f5a2 --lines 3..5
    fn number_3() -> u32 { 3 }
    fn number_4() -> u32 { 4 }
    fn number_5() -> u32 { 5 }
    --- stderr
    Read src/a.rs, 3.6 KB, line 3 of claude 0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4
    --- status 0
    ");
    assert_snapshot!(world.run(&["show", &reference, "--grep", "number_1[12]0"]), @r"
    $ epitome show k951f5a2 --grep number_1[12]0
    110:fn number_110() -> u32 { 110 }
    120:fn number_120() -> u32 { 120 }
    --- stderr
    Read src/a.rs, 3.6 KB, line 3 of claude 0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4
    --- status 0
    ");
    assert_snapshot!(world.run(&["show", &reference, "--grep", "nothing like it"]), @r"
    $ epitome show k951f5a2 --grep nothing like it
    --- stderr
    Read src/a.rs, 3.6 KB, line 3 of claude 0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4
    --- status 0
    ");
    assert_eq!(world.status(&["show", &reference, "--grep", "("]), 2);
    assert_eq!(world.status(&["show", &reference, "--lines", "5..3"]), 2);
}

#[test]
fn a_file_that_held_the_same_is_compared() {
    let world = World::new();
    let file = world.write("src/a.rs", sessions::code(120));
    let home = world.home.to_str().expect("text").to_owned();
    let session = sessions::claude(CLAUDE).replace("\"/p", &format!("\"{home}"));
    let path = world.claude(CLAUDE, session);
    let reference = first_reference(&world, &path);
    let note = || {
        let out = world.output(&["show", &reference]);
        String::from_utf8(out.stderr).expect("text").replace(&home, "[home]")
    };
    let same = note();
    std::fs::write(&file, "other\n").expect("a file");
    let changed = note();
    std::fs::remove_file(&file).expect("a file");
    assert_snapshot!([same, changed, note()].join("\n"), @r"
    Read src/a.rs, 3.6 KB, line 3 of claude 0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4
    [home]/src/a.rs on disk is still the same

    Read src/a.rs, 3.6 KB, line 3 of claude 0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4
    [home]/src/a.rs on disk has changed since

    Read src/a.rs, 3.6 KB, line 3 of claude 0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4
    [home]/src/a.rs on disk is gone
    ");
}

#[test]
fn what_may_mean_several_is_named() {
    let world = World::new();
    assert_snapshot!(world.run(&["show", "kffffffff"]), @r"
    $ epitome show kffffffff
    --- stderr
    error: the archive has no piece kffffffff
      hint: set EPITOME_HOME if the archive is in another folder
    --- status 5
    ");
    assert_snapshot!(world.run(&["show", "everything"]), @r"
    $ epitome show everything
    --- stderr
    error: invalid value 'everything' for '<REF>': `everything` is not a reference; a stub shows one like k7f3a9c2

    For more information, try '--help'.
    --- status 2
    ");
    // So many pieces that two of their references begin with the same four digits.
    let mut session = Claude::new(CLAUDE);
    session.user("Look.");
    for n in 0..1_500 {
        let text = format!("{n}: {}", sessions::log(8));
        session.call(&format!("t{n}"), "Bash", json!({"command": "x"}), &text, false);
    }
    session.say("Done.");
    session.user("Good.");
    world.claude(CLAUDE, session.lines());
    let how = ["--keep-turns=1", "--count=estimate", "--recipe", "transcript"];
    world.run(&[&["compact", CLAUDE], how.as_slice()].concat());
    let ambiguous = (0..=0xffff).map(|n| format!("k{n:04x}")).find_map(|reference| {
        // Most prefixes match one piece or none.
        let terminal = world.run(&["show", &reference]);
        (terminal.ends_with("--- status 2\n")).then_some(terminal)
    });
    assert_snapshot!(ambiguous.expect("two pieces begin alike"), @r"
    $ epitome show k00a8
    --- stderr
    error: k00a8 is the beginning of 2 references
             k00a812328cb0d7d6  claude 0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4  Bash x
             k00a87585d99098f2  claude 0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4  Bash x
      hint: give more digits
    --- status 2
    ");
}

#[test]
fn a_picture_is_printed_as_its_bytes() {
    let world = World::new();
    let png =
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJ";
    let line = |n: usize, parent: &str, kind: &str, message: serde_json::Value| {
        json!({
            "parentUuid": if parent.is_empty() { json!(null) } else { json!(parent) },
            "isSidechain": false, "cwd": "/p", "sessionId": CLAUDE, "version": "2.1.329",
            "type": kind, "message": message, "uuid": format!("u{n}"),
            "timestamp": format!("2026-11-18T10:00:0{n}.000Z"),
        })
    };
    let call = json!({"id": "m1", "role": "assistant", "type": "message", "model": "claude-x",
    "content": [
        {"type": "tool_use", "id": "t1", "name": "Read", "input": {"file_path": "/p/a.png"}},
    ]});
    let padded = png.repeat(20);
    let padded = &padded[..padded.len() / 4 * 4];
    let picture = json!({"type": "base64", "media_type": "image/png", "data": padded});
    let result = json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1",
        "content": [{"type": "image", "source": picture}]}]});
    let reply = json!({"id": "m2", "role": "assistant", "type": "message", "model": "claude-x",
        "content": [{"type": "text", "text": "A dot."}]});
    let lines = [
        line(1, "", "user", json!({"role": "user", "content": "Look."})),
        line(2, "u1", "assistant", call),
        line(3, "u2", "user", result),
        line(4, "u3", "assistant", reply),
        line(5, "u4", "user", json!({"role": "user", "content": "Good."})),
    ];
    let session: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let path = world.claude(CLAUDE, session);
    let reference = first_reference(&world, &path);
    let out = world.output(&["show", &reference]);
    assert!(out.stdout.starts_with(b"\x89PNG\r\n"), "{}", String::from_utf8_lossy(&out.stderr));
}
