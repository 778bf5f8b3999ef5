//! Every command on a session whose texts contain terminal sequences: no control character and no
//! character that hides or reverses text is printed, and no secret where it was not requested.

use std::path::Path;
use std::process::Output;

use crate::world::World;
use serde_json::{Value, json};

/// Sequences for the title, the screen and a colour, C1 controls, an override, a zero-width
/// character, an isolate, and a line feed.
const HOSTILE: &str =
    "\u{1b}]0;PWNED\u{7}\u{1b}[2J\u{1b}[95mx\u{9b}2J\u{202e}\u{200b}\u{2066}\nnext\u{feff}";

/// A token in GitHub's form, joined here so that no file contains one.
fn token() -> String {
    ["gh", "p_", "Zk3vQ8sT1xW6yB4nM7cR2dF9", "gH5jK0lPqWeR"].concat()
}

/// A session of pi in which every displayed text is hostile.
fn session() -> String {
    let (hostile, token) = (HOSTILE, token());
    let mut lines = vec![
        json!({"type": "session", "version": 3, "id": format!("id{hostile}"),
               "timestamp": "2026-11-18T10:00:00.000Z", "cwd": format!("/p/{hostile}")}),
        json!({"type": "session_info", "id": "a0000000", "parentId": null,
               "timestamp": "2026-11-18T10:00:00.000Z",
               "name": format!("title {token} {hostile}")}),
    ];
    let mut parent = "a0000000".to_owned();
    let mut add = |id: String, message: Value| {
        lines.push(json!({"type": "message", "id": id, "parentId": parent,
                          "timestamp": "2026-11-18T10:00:01.000Z", "message": message}));
        parent = id;
    };
    for n in 0..6 {
        let call = format!("call{n}{hostile}");
        let name = if n % 2 == 0 { "bash".to_owned() } else { format!("tool{hostile}") };
        // Descriptions are cut in the middle of the token.
        let words = format!("findme {hostile} {} {token}", "x".repeat(n + 4));
        add(format!("b000000{n}"), json!({"role": "user", "content": words, "timestamp": 1}));
        let arguments = json!({"command": format!("curl -H 'X: {token}' {hostile}")});
        add(
            format!("c000000{n}"),
            json!({"role": "assistant", "provider": "anthropic", "api": "anthropic-messages",
                   "model": format!("model{hostile}"), "stopReason": "toolUse", "timestamp": 2,
                   "usage": {"input": 10, "output": 5, "cacheRead": 0, "cacheWrite": 0,
                             "totalTokens": 15},
                   "content": [{"type": "text", "text": format!("I look {hostile}")},
                               {"type": "toolCall", "id": call, "name": name,
                                "arguments": arguments}]}),
        );
        let result = format!("{hostile} {token} of a long result\n").repeat(80);
        add(
            format!("d000000{n}"),
            json!({"role": "toolResult", "toolCallId": call, "toolName": name, "isError": n == 3,
                   "content": [{"type": "text", "text": result}], "timestamp": 3}),
        );
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// Whether a terminal would interpret a character, or a reader would not see it.
fn is_raw(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{feff}' => true,
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        c => c.is_control(),
    }
}

/// Removes our own styles; a style of the session is kept.
fn without_styles(text: &str) -> String {
    let style =
        regex::Regex::new("\u{1b}\\[(?:[0-8]?|3[0-7]|0|1|2)(?:;\\d+)*m").expect("it is one");
    style.replace_all(text, "").into_owned()
}

fn check(args: &[&str], output: &Output, wants_content: bool) {
    for (name, bytes) in [("stdout", &output.stdout), ("stderr", &output.stderr)] {
        if wants_content && name == "stdout" {
            continue;
        }
        let text = without_styles(&String::from_utf8_lossy(bytes));
        let raw: Vec<char> = text.chars().filter(|c| is_raw(*c)).collect();
        assert!(raw.is_empty(), "{args:?}, {name}: {raw:?}\n{text}");
        let half = &token()[..12];
        assert!(!text.contains(half), "{args:?}, {name} shows a secret:\n{text}");
    }
}

fn reference(session: &Path) -> String {
    let small = std::fs::read_to_string(session).expect("a session");
    let stub = small.split("[epitome k").nth(1).expect("a stub");
    format!("k{}", &stub[..7])
}

#[test]
fn no_command_hands_texts_of_a_session_to_the_terminal_as_they_are() {
    let world = World::new();
    let path = world.pi("hostile-0001", session());
    let name = path.to_str().expect("it is one");
    let run = |args: &[&str], wants_content: bool| {
        let styled = [args, &["--color", "always"]].concat();
        let output = world.output(&styled);
        check(&styled, &output, wants_content);
        output
    };
    for args in [
        &["list"][..],
        &["list", "--json"],
        &["search", "findme"],
        &["search", "findme", "--json"],
        &["inspect", name],
        &["inspect", name, "--json"],
        &["compact", name, "--dry-run", "--keep-turns", "1"],
        &["compact", name, "--dry-run", "--diff", "--keep-turns", "1"],
        &["compact", name, "--dry-run", "--json", "--keep-turns", "1"],
        &["scan", name],
        &["scan", name, "--json"],
        &["simulate", name],
        &["simulate", name, "--json"],
        &["render", name],
        &["render", name, "--format", "markdown"],
        &["render", name, "--format", "html"],
        &["render", name, "--format", "json"],
        &["render", name, "--out", "pages", "--format", "html", "--format", "json"],
        &["render", name, "--out", "pages", "--json", "--format", "html"],
        &["index", "pages"],
        &["inspect", "no-such-\u{9b}2J\u{202e}"],
        &["compact", name, "--keep-turns", "1"],
        &["list"],
        &["list", "--json"],
        &["compact", name, "--keep-turns", "1", "--json"],
        &["archive", "ls"],
        &["archive", "ls", "--json"],
        &["archive", "verify"],
        &["inspect", name],
    ] {
        run(args, false);
    }
    let cache = world.home.join(".local/share/epitome/cache/list.json");
    let cache = std::fs::read_to_string(cache).expect("a cache");
    assert!(!cache.contains(&token()), "{cache}");
    let shown = run(&["show", &reference(&path)], true);
    assert!(String::from_utf8_lossy(&shown.stdout).contains('\u{9b}'), "a pipe gets what it was");
    for args in [&["export", name, "--to", "text"][..], &["redact", name]] {
        run(args, true);
    }
    let ported = run(&["port", name, "--to", "codex"], true);
    let expect = format!("cd '/p/{HOSTILE}' && codex resume ");
    assert!(ported.stdout.starts_with(expect.as_bytes()), "a pipe gets the exact command");
    run(&["restore", name, "--json"], false);
    run(&["compact", name, "--keep-turns", "1"], false);
    run(&["restore", name], false);
    for page in std::fs::read_dir(world.home.join("pages")).expect("pages") {
        let page = page.expect("a page").path();
        if page.is_file() {
            let text = std::fs::read_to_string(&page).expect("a page");
            let raw: Vec<char> = text.chars().filter(|c| is_raw(*c)).collect();
            assert!(raw.is_empty(), "{}: {raw:?}", page.display());
            assert!(!text.contains(&token()), "{}", page.display());
        }
    }
}
