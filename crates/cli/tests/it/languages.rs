//! Sessions in other languages than English: rules, errors and to-do lists are kept as in English.

use serde_json::{Value, json};

use crate::world::World;
use crate::world::sessions::{CLAUDE, Claude};

/// A session in a language: a long rule file, a command that fails with a long output, a to-do
/// list, a long message that ends with a request, and much after it.
fn session(words: &Value) -> Claude {
    let of = |name: &str| words[name].as_str().expect("a text").to_owned();
    let filler = |lines: usize| format!("{}\n", of("filler")).repeat(lines);
    let steps: String = (100..400).map(|n| format!("{} {n}\n", of("step"))).collect();
    let mut session = Claude::new(CLAUDE);
    let pasted = filler(200);
    session.user(&format!("{pasted}{}", of("ask")));
    let rules = format!(
        "# API\n{}\n## {}\n\n- {}\n\n## FAQ\n{}",
        filler(90),
        of("rules"),
        of("rule"),
        filler(90)
    );
    session.call("t1", "Read", json!({ "file_path": "/p/CLAUDE.md" }), &rules, false);
    let failed = match of("language").contains("no words") {
        // An error that no word marks is at the end of the output.
        true => format!("{steps}{}\n", of("error")),
        false => format!("{steps}{}\n{steps}", of("error")),
    };
    session.call("t2", "Bash", json!({ "command": "make test" }), &failed, true);
    let todos = json!([{ "content": of("todo"), "status": "pending", "activeForm": "-" }]);
    session.call("t3", "TodoWrite", json!({ "todos": todos }), "ok", false);
    for n in 0..30 {
        let file = json!({ "file_path": format!("/p/src/part_{n}.rs") });
        let code: String =
            (0..150).map(|line| format!("let value_{n}_{line} = {line};\n")).collect();
        session.call(&format!("r{n}"), "Read", file, &code, false);
    }
    session.say("ok");
    session
}

/// What a resume sends after the compaction.
fn compacted(words: &Value, options: &[&str]) -> String {
    let world = World::new();
    let path = world.claude(CLAUDE, session(words).lines());
    let before = std::fs::read_to_string(&path).expect("a session").lines().count();
    assert_eq!(world.status(&[&["compact", CLAUDE], options].concat()), 0, "{words}");
    let after = std::fs::read_to_string(&path).expect("a session");
    // A digest is an appended record, after those that it replaces.
    let is_digest = after.lines().count() > before;
    after.lines().skip(if is_digest { before } else { 0 }).collect()
}

#[test]
fn rules_errors_and_plans_stay_in_every_language() {
    let languages: Vec<Value> =
        serde_json::from_str(include_str!("languages.json")).expect("a table");
    for words in &languages {
        let is_there = |text: &str, name: &str| text.contains(words[name].as_str().expect("text"));
        let digest = compacted(words, &["--recipe", "digest", "--target", "12k"]);
        for name in ["ask", "rule", "error", "todo"] {
            assert!(is_there(&digest, name), "{name} is not in the digest: {words}");
        }
        let filler = words["filler"].as_str().expect("text");
        assert!(digest.matches(filler).count() < 20, "prose does not stay: {words}");
        let shortened = compacted(words, &["--keep-turns=0", "--keep-tokens=2000"]);
        for name in ["ask", "rule", "error", "todo"] {
            assert!(is_there(&shortened, name), "{name} is not in the session: {words}");
        }
        assert!(shortened.matches(words["step"].as_str().expect("text")).count() < 20);
    }
}
