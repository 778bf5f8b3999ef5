//! `epitome render` and `epitome index` on the command line.

use std::fs;

use crate::world::sessions::{self, CLAUDE, PI};
use crate::world::{self, World};
use insta::assert_snapshot;

#[test]
fn a_session_is_told_in_a_terminal() {
    let world = World::new();
    world.claude(CLAUDE, sessions::claude(CLAUDE));
    assert_snapshot!(world.run(&["render", "0f3c", "--no-redact", "--detail", "calls"]));
    assert_snapshot!(world.run(&["render", "0f3c", "--turn", "2..3", "--detail=calls"]), @r"
    $ epitome render 0f3c --turn 2..3 --detail=calls
    Fix the failing test, please.
    claude · claude-sonnet-4-5 · 2026-11-18 10:00 · /p · 3 turns · 4 calls · 749 tokens read · at least
    $0.0022 at list prices of 2026-11-21 (output tokens of 7 of 7 requests are not recorded) · +40 −40
    in 1 file

    ── 2 ── 2026-11-18 10:00 ───────────────────────────────────────────────────────────────────────────

    User
    Show me ␛[31mthe numbers␛[0m.
      Bash seq 400                                                                             62 lines

    Assistant
    Here they are.

    ── 3 ── 2026-11-18 10:00 ───────────────────────────────────────────────────────────────────────────

    User
    Thanks. What was the first file?

    Assistant
    It was src/a.rs.
    --- status 0
    ");
    assert_eq!(world.status(&["render", "0f3c", "--turn", "0"]), 2);
    assert_eq!(world.status(&["render", "0f3c", "--turn", "4"]), 2);
    assert_eq!(world.status(&["render", "--all", "--turn", "1"]), 0);
}

#[test]
fn a_turn_is_had_in_every_format() {
    let world = World::new();
    world.claude(CLAUDE, sessions::claude(CLAUDE));
    let of = |format: &str, turn: &str| {
        let out = world.output(&["render", "0f3c", "--format", format, "--turn", turn]);
        assert!(out.status.success(), "{format}: {out:?}");
        String::from_utf8(out.stdout).expect("text")
    };
    assert_snapshot!("turn_2_markdown", of("markdown", "2"));
    let text = world.output(&["render", "0f3c", "--turn", "2"]).stdout;
    assert_eq!(of("text", "2").into_bytes(), text);
    let whole = |format: &str| {
        let out = world.output(&["render", "0f3c", "--format", format]).stdout;
        String::from_utf8(out).expect("text")
    };
    // The records are a part of the session's, in the same order.
    let (all, two) = (whole("jsonl"), of("jsonl", "2..3"));
    let mut rest = all.lines();
    assert!(!two.is_empty() && two.lines().all(|line| rest.any(|it| it == line)), "{two}");
    let (all, one): (serde_json::Value, serde_json::Value) = (
        serde_json::from_str(&whole("json")).expect("JSON"),
        serde_json::from_str(&of("json", "2")).expect("JSON"),
    );
    let entries = |of: &serde_json::Value| of["entries"].as_array().map(Vec::len);
    assert!(entries(&one) > Some(0) && entries(&one) < entries(&all));
    assert_eq!(one["facts"], all["facts"]);
    let page = of("html", "2");
    assert!(page.starts_with("<!DOCTYPE html>") && page.len() < whole("html").len());
}

#[test]
fn a_terminal_shows_all_or_without_results_or_without_reasoning() {
    let world = World::new();
    world.pi("pricing", fixtures::get("pi", "pricing").bytes());
    let shown = |more: &[&str]| world.run(&[&["render", "pricing", "--no-redact"], more].concat());
    let reasoning = "Thinking";
    let result = "18547 src/report.awk";
    for (more, has_reasoning, has_result) in [
        (&[][..], true, true),
        (&["--compact"], true, false),
        (&["--compact=no-thinking"], false, false),
        (&["--compact", "no-thinking"], false, false),
        (&["-c", "no-thinking"], false, false),
        (&["--detail", "calls"], false, false),
    ] {
        let text = shown(more);
        let has = (text.contains(reasoning), text.contains(result));
        assert_eq!(has, (has_reasoning, has_result), "{more:?}: {text}");
    }
}

#[test]
fn the_records_of_a_session_are_told_as_they_are() {
    let world = World::new();
    let session = sessions::claude(CLAUDE);
    world.claude(CLAUDE, &session);
    let output = world.output(&["render", "0f3c", "--no-redact", "--format", "jsonl"]).stdout;
    assert_eq!(String::from_utf8(output).expect("text"), session);
    world.run(&["render", "0f3c", "--no-redact", "--fmt", "jsonl", "--out", "kept"]);
    let kept = world.home.join(format!("kept/claude-{CLAUDE}.jsonl"));
    assert_eq!(fs::read_to_string(kept).expect("a file"), session);
}

#[test]
fn a_session_becomes_markdown_with_lines_counted() {
    let world = World::new();
    world.claude(CLAUDE, sessions::claude(CLAUDE));
    let args = ["render", "0f3c", "--no-redact", "--format", "markdown", "--compact"];
    assert_snapshot!(world.run(&args));
}

#[test]
fn command_lines_of_other_tools_work_word_for_word() {
    let world = World::new();
    world.write("session.jsonl", sessions::claude(CLAUDE));
    let file = ["render", "--agent", "claude", "--file", "session.jsonl", "--no-redact"];
    for (more, says) in [
        (&["--compact"][..], "[output: 120 lines]"),
        (&["--compact=no-thinking"], "[error: 92 lines]"),
        (&["--compact", "--format", "html"], "[output: 120 lines]"),
        (&["--format", "html", "--compact"], "[output: 120 lines]"),
        (&[], "120 lines"),
    ] {
        let shown = world.run(&[&file[..], more].concat());
        assert!(shown.contains(says) && shown.ends_with("--- status 0\n"), "{more:?}: {shown}");
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    let world = World::new();
    world.claude(CLAUDE, sessions::claude(CLAUDE));
    world.pi(PI, sessions::pi(PI));
    let refused = [
        &["render", "0f3c", "--redact", "nothing"][..],
        &["render", "--no-redact"],
        &["render", "0f3c", "--no-redact", "--compact=everything"],
        &["render", "0f3c", "01a1", "--no-redact", "--format", "html"],
        &["render", "0f3c", "--no-redact", "--format", "html", "--format", "markdown"],
        &["render", "0f3c", "--no-redact", "--out", "pages"],
        &["render", "--project", "elsewhere", "--no-redact"],
        &["index", "--dir", "nowhere"],
    ];
    let terminals: Vec<String> = refused.iter().map(|args| world.run(args)).collect();
    assert_snapshot!(terminals.join("\n"));
    assert!(!world.home.join("pages").exists());
}

#[test]
fn a_folder_has_a_page_a_session_and_an_index_that_can_be_made_anew() {
    let world = World::new();
    world.claude(CLAUDE, sessions::claude(CLAUDE));
    world.pi(PI, sessions::pi(PI));
    let all = ["--format", "html", "--format", "markdown", "--out", "pages", "--no-redact"];
    let args = [&["render", "--all"][..], &all].concat();
    assert_snapshot!(world.run(&args), @r"
    $ epitome render --all --format html --format markdown --out pages --no-redact
    claude-0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4.html, claude-0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4.md  Fix the failing test, please.
    pi-01a1fb3a-c450-731a-9250-9fa9d78b0d62.html, pi-01a1fb3a-c450-731a-9250-9fa9d78b0d62.md  List the functions.
    --- stderr
    2 sessions in pages/index.html
    --- status 0
    ");
    let pages = world.home.join("pages");
    // The path of the test's sessions is different in every run.
    let origin = regex::Regex::new(",\\n *\"origin\": \"[0-9a-f]{8}\"").expect("a pattern");
    let read = |name: &str| {
        let text = fs::read_to_string(pages.join(name)).expect("a file");
        origin.replace_all(&text, "").into_owned()
    };
    let (manifest, index) = (read("manifest.json"), read("index.html"));
    assert_snapshot!("manifest", manifest);
    for name in ["manifest.json", "index.html"] {
        fs::remove_file(pages.join(name)).expect("it was there");
    }
    world.run(&["index", "--dir", "pages"]);
    assert_eq!((read("manifest.json"), read("index.html")), (manifest.clone(), index.clone()));
    // A second run changes nothing.
    world.run(&args);
    assert_eq!((read("manifest.json"), read("index.html")), (manifest, index));
    fs::remove_file(pages.join(format!("claude-{CLAUDE}.html"))).expect("it was there");
    fs::remove_file(pages.join(format!("claude-{CLAUDE}.md"))).expect("it was there");
    assert_snapshot!(world.run(&["index", "--dir", "pages"]), @r"
    $ epitome index --dir pages
    1 session in pages/index.html
    --- status 0
    ");
}

#[test]
fn sessions_of_every_agent_are_told_in_every_form() {
    let world = World::new();
    for fixture in fixtures::all().iter().filter(|fixture| fixture.name == "pricing") {
        let agent = &*fixture.agent;
        let name = format!("{agent}.jsonl");
        world.write(&name, fixture.bytes());
        for path in fixture.sub_agents() {
            let file = path.file_name().expect("it has one").to_string_lossy();
            let bytes = fs::read(&path).expect("a session");
            world.write(&format!("{agent}/subagents/{file}"), bytes);
        }
        let print_as = |more: &[&str]| {
            let out = world.output(&[&["render", &name, "--no-redact"], more].concat());
            assert!(out.status.success(), "{agent} {more:?}");
            // One session was recorded in a temporary folder.
            String::from_utf8(out.stdout).expect("text").replace("/tmp", "/var")
        };
        assert_snapshot!(format!("{agent}_terminal"), print_as(&["--detail", "calls"]));
        assert_snapshot!(
            format!("{agent}_markdown"),
            print_as(&["--format", "markdown", "--compact"])
        );
        let page = print_as(&["--format", "html", "--compact=no-thinking"]);
        assert_snapshot!(format!("{agent}_html"), without_assets(&page));
        let json = print_as(&["--format", "json"]);
        let values: Vec<serde_json::Value> =
            json.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        world::check("transcript.schema.json", &values);
        assert_eq!(print_as(&["--format", "json"]), json, "the same twice");
    }
}

/// A page as lines, without the parts that are equal in all pages.
fn without_assets(page: &str) -> String {
    let (head, rest) = page.split_once("<style>").expect("a style");
    let (_, rest) = rest.split_once("</style>").expect("its end");
    let (body, _) = rest.rsplit_once("<script>").expect("a script");
    let (_, head) = head.split_once("<meta name=\"viewport\"").expect("a policy before it");
    format!("{head}{body}").replace('<', "\n<")
}

#[test]
fn lines_are_those_that_stood_there_before_any_compaction() {
    let world = World::new();
    let session = world.claude(CLAUDE, sessions::claude(CLAUDE));
    let counted = || {
        let shown = world.run(&["render", "0f3c", "--no-redact", "--compact"]);
        let lines = shown.lines().filter(|line| line.contains("[output") || line.contains("[err"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let before = counted();
    assert_eq!(before.len(), 4, "{before:?}");
    for recipe in ["transcript", "epitome", "gitclaw", "clear-tool-uses"] {
        let keep = ["--keep-turns", "0"];
        let args = [&["compact", "0f3c", "--recipe", recipe][..], &keep].concat();
        let compacted = world.run(&args);
        assert!(compacted.ends_with("--- status 0\n"), "{compacted}");
        assert_eq!(counted(), before, "{recipe}");
        world.run(&["restore", "0f3c"]);
        assert_eq!(fs::read_to_string(&session).expect("a session"), sessions::claude(CLAUDE));
    }
}

#[test]
fn what_is_written_is_what_the_schemas_say() {
    let world = World::new();
    world.claude(CLAUDE, sessions::claude(CLAUDE));
    let args = ["render", "0f3c", "--no-redact", "--format", "html", "--out", "pages", "--json"];
    world::check("render.schema.json", &world.json(&args));
    world::check("manifest.schema.json", &world.json(&["index", "--dir", "pages", "--json"]));
}

#[test]
fn sub_agents_have_their_pages_and_calls_lead_to_them() {
    let world = World::new();
    let fixture = fixtures::get("claude", "pricing");
    world.write("s.jsonl", fixture.bytes());
    for path in fixture.sub_agents() {
        let file = path.file_name().expect("it has one").to_string_lossy();
        world.write(&format!("s/subagents/{file}"), fs::read(&path).expect("a session"));
    }
    world.run(&["render", "s.jsonl", "--no-redact", "--format", "html", "--out", "pages"]);
    let mut pages: Vec<String> = fs::read_dir(world.home.join("pages"))
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .filter(|name| name.ends_with(".html") && name != "index.html")
        .collect();
    pages.sort();
    let [sub_agent, session] = &pages[..] else { panic!("two pages: {pages:?}") };
    assert!(sub_agent.starts_with(session.trim_end_matches("html")), "{pages:?}");
    let read = |name: &str| fs::read_to_string(world.home.join("pages").join(name)).expect("it");
    assert!(read(session).contains(&format!("<a href=\"{sub_agent}\">")));
    assert!(read(sub_agent).contains(&format!("<a href=\"{session}\">")));
    // On a single page, the call links to the sub-agent below.
    let whole = world.run(&["render", "s.jsonl", "--no-redact", "--format", "html"]);
    assert!(whole.contains("<a href=\"#a1\">") && whole.contains("id=\"a1\""));
}

#[test]
fn a_long_session_has_several_pages_and_a_shorter_telling_leaves_none_behind() {
    let world = World::new();
    let session = String::from_utf8(fixtures::get("claude", "pricing").bytes()).expect("text");
    world.write("long.jsonl", fixtures::grown::claude(&session, 20_000_000));
    let render = ["render", "long.jsonl", "--no-redact", "--format", "html", "--out", "pages"];
    let pages = || fs::read_dir(world.home.join("pages")).expect("a folder").count();
    world.run(&render);
    let many = pages();
    assert!(many > 4, "{many}");
    for entry in fs::read_dir(world.home.join("pages")).expect("a folder") {
        let len = entry.and_then(|entry| entry.metadata()).expect("a file").len();
        assert!(len < 2_000_000, "a page of {len} bytes opens slowly");
    }
    world.run(&[&render[..], &["--compact=no-thinking", "--detail", "conversation"]].concat());
    assert!(pages() < many);
}

#[test]
fn secrets_are_in_no_form_of_a_session() {
    // Made up, and split in two so that scanners do not report it as real.
    let secret = ["ghp_", "9aXk2LmQ7rT4vW8yZ1bC3dE5fG6hJ0kN2pR5"].concat();
    let world = World::new();
    let session = sessions::claude(CLAUDE).replace("Fix the failing", &secret);
    let session = session.replace("case_7 failed", &secret);
    world.claude(CLAUDE, session);
    for format in ["terminal", "markdown", "html", "json"] {
        for more in [&["--detail", "full"][..], &["--compact"]] {
            let args = [&["render", "0f3c", "--format", format][..], more].concat();
            let shown = world.run(&args);
            assert!(shown.contains("[REDACTED:") || shown.contains("REDACTED:"), "{args:?}");
            assert!(!shown.contains(&secret), "{args:?}");
        }
    }
    let args = ["render", "0f3c", "--format", "html,json,md", "--out", "pages"];
    let shown = world.run(&args);
    assert!(shown.contains("redacted:") && !shown.contains(&secret), "{shown}");
    for entry in fs::read_dir(world.home.join("pages")).expect("a folder") {
        let path = entry.expect("an entry").path();
        let text = fs::read_to_string(&path).expect("text");
        assert!(!text.contains(&secret), "{}", path.display());
    }
    assert!(world.run(&["render", "0f3c", "--no-redact"]).contains(&secret));
}

/// The files of a folder, each with the id in its page.
fn pages(world: &World, folder: &str) -> Vec<String> {
    let entries = fs::read_dir(world.home.join(folder)).expect("a folder");
    let names = entries.map(|it| it.expect("one").file_name().into_string().expect("text"));
    let mut pages: Vec<String> =
        names.filter(|name| name.ends_with(".html") && name != "index.html").collect();
    pages.sort();
    pages
}

fn pi_session(id: &str) -> String {
    let head = format!(
        concat!(
            r#"{{"type":"session","version":3,"id":"{id}","#,
            r#""timestamp":"2026-11-20T23:11:46.249Z","cwd":"/p"}}"#,
        ),
        id = id,
    );
    let record = format!(
        concat!(
            r#"{{"type":"message","id":"aaaaaaaa","parentId":null,"#,
            r#""timestamp":"2026-11-20T23:11:46.249Z","#,
            r#""message":{{"role":"user","content":"I am {id}","timestamp":1}}}}"#,
        ),
        id = id,
    );
    format!("{head}\n{record}\n")
}

#[test]
fn pages_of_different_sessions_never_overwrite_each_other() {
    let world = World::new();
    let ids = ["x/1", "x-1", "x 1", "X-1", "x.1", "y", "y-2", "Y", &"z".repeat(200)];
    for (n, id) in ids.iter().enumerate() {
        world.write(&format!("{n}.jsonl"), pi_session(id));
    }
    let long = format!("{}y", "z".repeat(199));
    world.write("9.jsonl", pi_session(&long));
    let names: Vec<String> = (0..10).map(|n| format!("{n}.jsonl")).collect();
    let mut args = vec!["render", "--format", "html", "--out", "pages"];
    args.extend(names.iter().map(String::as_str));
    assert_eq!(world.status(&args), 0);
    let first = pages(&world, "pages");
    assert_eq!(first.len(), 10, "{first:?}");
    assert!(first.contains(&"pi-y.html".to_owned()), "an ordinary id is a name: {first:?}");
    for id in ids.iter().copied().chain([&*long]) {
        let tells = |name: &&String| {
            let page = fs::read_to_string(world.home.join("pages").join(name)).expect("a page");
            page.contains(&format!("I am {id}<"))
        };
        assert_eq!(first.iter().filter(tells).count(), 1, "{id}");
    }
    // Rendered again one by one, each replaces its own page, whatever the order.
    for name in names.iter().rev() {
        assert_eq!(world.status(&["render", "--format", "html", "--out", "pages", name]), 0);
    }
    assert_eq!(pages(&world, "pages"), first);
}

#[test]
fn a_copy_of_a_session_has_a_page_of_its_own() {
    let world = World::new();
    world.write(".claude/projects/-a/one.jsonl", sessions::claude(CLAUDE));
    world.write(".claude/projects/-b/one.jsonl", sessions::claude(CLAUDE));
    let all = ["render", "--all", "--format", "html", "--format", "json", "--out", "pages"];
    for _ in 0..2 {
        assert_eq!(world.status(&all), 0);
        let pages = pages(&world, "pages");
        assert_eq!(pages.len(), 2, "{pages:?}");
        assert!(pages.contains(&format!("claude-{CLAUDE}.html")), "{pages:?}");
    }
    let manifest = fs::read(world.home.join("pages/manifest.json")).expect("a manifest");
    let manifest: serde_json::Value = serde_json::from_slice(&manifest).expect("JSON");
    world::check("manifest.schema.json", std::slice::from_ref(&manifest));
    assert_eq!(manifest["sessions"].as_array().map(Vec::len), Some(2));
    assert_ne!(manifest["sessions"][0]["origin"], manifest["sessions"][1]["origin"]);
}

#[test]
fn what_a_killed_run_left_among_the_pages_is_removed_by_the_next() {
    let world = World::new();
    world.claude(CLAUDE, sessions::claude(CLAUDE));
    let left = world.write("pages/.epitome-Ab12Cd.tmp", "half a page");
    let page = world.write("pages/notes.tmp", "the user's own");
    let args = ["render", CLAUDE, "--format", "html", "--out", "pages"];
    assert_eq!(world.status(&args), 0);
    assert_eq!((left.exists(), page.exists()), (false, true));
}
