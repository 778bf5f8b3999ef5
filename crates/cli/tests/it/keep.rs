//! `epitome watch` and `epitome manifest` on the command line.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

use crate::world::World;
use crate::world::sessions::{self, CLAUDE, CODEX, OTHER, PI};
use insta::assert_snapshot;

#[test]
fn a_session_is_compacted_when_all_of_the_trigger_holds() {
    let world = World::new();
    let session = world.claude(CLAUDE, sessions::claude(CLAUDE));
    let whole = fs::read(&session).expect("a session");
    // The session is three days old and has 22 KB and two turns.
    for args in [
        &["watch", "--once", "--above", "1MB"][..],
        &["watch", "--once", "--older-than", "4d"],
        &["watch", "--once", "--after-turns", "50"],
        &["watch", "--once", "--agent", "pi"],
        &["watch", "--once", "--project", "/elsewhere"],
    ] {
        let output = world.run(args);
        assert!(output.ends_with("\nnothing to compact\n--- status 0\n"), "{output}");
    }
    let args = ["watch", "--once", "--above", "20KB", "--older-than", "2d", "--after-turns", "2"];
    let dry = [&args[..], &["--dry-run"]].concat();
    let output = [world.run(&dry), world.run(&args), world.run(&args)];
    let run = world.json(&["log", "--json"])[0]["run"].as_str().expect("an id").to_owned();
    assert_snapshot!(output.join("\n").replace(&run, "[run]"), @r"
    $ epitome watch --once --above 20KB --older-than 2d --after-turns 2 --dry-run
    would compact claude 0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4  context 3.7k → 2.2k tokens (-38.8%)  disk 22.5 KB → 11.8 KB
    1 session would be compacted: messages 3.7k → 2.2k tokens (-38.8%), disk 22.5 KB → 11.8 KB
    --- status 0

    $ epitome watch --once --above 20KB --older-than 2d --after-turns 2
    compacted claude 0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4  context 3.7k → 2.2k tokens (-38.8%)  disk 22.5 KB → 11.8 KB
    1 session compacted: messages 3.7k → 2.2k tokens (-38.8%), disk 22.5 KB → 11.8 KB
    undo  epitome undo [run]
    --- status 0

    $ epitome watch --once --above 20KB --older-than 2d --after-turns 2
    nothing to compact
    --- status 0
    ");
    assert!(fs::read(&session).expect("a session").len() < whole.len());
    assert_eq!(world.status(&["restore", CLAUDE]), 0);
    assert_eq!(fs::read(&session).expect("a session"), whole);
}

#[test]
#[cfg(target_os = "linux")]
fn a_session_in_use_is_left() {
    let world = World::new();
    let session = world.claude(CLAUDE, sessions::claude(CLAUDE));
    let before = fs::read(&session).expect("a session");
    // This process has it open, so it is in use.
    let open = fs::OpenOptions::new().append(true).open(&session).expect("a session");
    let output = world.run(&["watch", "--once", "--older-than", "0s"]);
    assert!(output.ends_with("\nnothing to compact\n--- status 0\n"), "{output}");
    assert_eq!(fs::read(&session).expect("a session"), before);
    drop(open);
    let output = world.run(&["watch", "--once", "--older-than", "0s"]);
    assert!(output.contains("compacted claude"), "{output}");
}

#[test]
fn watch_wants_to_be_told_which_sessions() {
    let world = World::new();
    world.claude(CLAUDE, sessions::claude(CLAUDE));
    let before = world.tree();
    assert_snapshot!(world.run(&["watch"]), @r"
    $ epitome watch
    --- stderr
    error: no sessions selected; watch needs a filter or --all
      hint: `epitome watch --above 1MB` compacts those of at least 1 MB when they end
      hint: `epitome watch --all --once --dry-run` says what it would do to all
    --- status 2
    ");
    for args in [&["watch", "--once"][..], &["watch", "--existing", "--dry-run"]] {
        assert_eq!(world.status(args), 2, "{args:?}");
    }
    // Without a terminal, `watch` cannot ask whether to begin with existing sessions.
    let output = world.run(&["watch", "--all", "--existing"]);
    assert!(output.contains("--yes") && output.ends_with("--- status 2\n"), "{output}");
    assert_eq!(world.tree(), before);
    assert_snapshot!(world.run(&["watch", "--all", "--once", "--dry-run"]), @r"
    $ epitome watch --all --once --dry-run
    would compact claude 0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4  context 3.7k → 2.2k tokens (-38.8%)  disk 22.5 KB → 11.8 KB
    1 session would be compacted: messages 3.7k → 2.2k tokens (-38.8%), disk 22.5 KB → 11.8 KB
    --- status 0
    ");
    assert_eq!(world.tree(), before);
}

#[test]
fn what_gains_little_is_left() {
    let world = World::new();
    world.claude(CLAUDE, sessions::claude(CLAUDE));
    world.codex(CODEX, sessions::codex(CODEX));
    let sessions = || -> Vec<_> {
        let all = world.tree().into_iter();
        all.filter(|(path, ..)| path.extension().is_some_and(|it| it == "jsonl")).collect()
    };
    let before = sessions();
    let args = ["watch", "--all", "--once", "--min-saving", "99%"];
    assert_snapshot!(world.run(&args), @r"
    $ epitome watch --all --once --min-saving 99%
    1 session skipped: too little of the context would be removed
    nothing to compact
    --- status 0
    ");
    assert_eq!(sessions(), before);
    for wrong in ["-1%", "101%", "ten"] {
        let min = format!("--min-saving={wrong}");
        assert_eq!(world.status(&["watch", "--all", "--once", &min]), 2, "{wrong}");
    }
}

#[test]
#[cfg(unix)]
fn watch_begins_with_what_ends_after_it_began() {
    let world = World::new();
    let old = world.claude(CLAUDE, sessions::claude(CLAUDE));
    let args = ["watch", "--above", "1KB", "--older-than", "2d", "--every", "1s"];
    let mut command = world.command(&args);
    let mut child =
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program runs");
    let mut errors = BufReader::new(child.stderr.take().expect("it is piped"));
    let mut out = BufReader::new(child.stdout.take().expect("it is piped"));
    let mut line = String::new();
    errors.read_line(&mut line).expect("text");
    assert_eq!(line, "watching 1 session every 1s (Ctrl-C to stop)\n");
    // Moved there in one step, because `watch` scans every second.
    let new = world.write("elsewhere.jsonl", sessions::claude(OTHER));
    let place = world.home.join(format!(".claude/projects/-p/{OTHER}.jsonl"));
    fs::rename(new, &place).expect("a session");
    let mut first_line = String::new();
    out.read_line(&mut first_line).expect("text");
    assert!(first_line.starts_with(&format!("compacted claude {OTHER}")), "{first_line}");
    let interrupt = ["-INT", &child.id().to_string()].map(str::to_owned);
    assert!(Command::new("kill").args(interrupt).status().expect("kill is there").success());
    let mut rest = String::new();
    out.read_to_string(&mut rest).expect("text");
    assert!(rest.starts_with("1 session compacted: messages 3.7k → "), "{rest}");
    assert!(rest.contains("epitome undo "), "{rest}");
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
    assert_eq!(fs::read_to_string(old).expect("a session"), sessions::claude(CLAUDE));
    assert_eq!(world.status(&["undo"]), 0);
    assert_eq!(fs::read_to_string(place).expect("a session"), sessions::claude(OTHER));
}

#[test]
fn pages_of_other_programs_come_into_the_manifest() {
    let world = World::new();
    let session = world.claude(CLAUDE, sessions::claude(CLAUDE));
    world.write(&format!(".transcripts/{CLAUDE}/index.html"), "<!DOCTYPE html><title>x</title>");
    world.write(".transcripts/gone/index.md", "# gone");
    world.write(".transcripts/empty/.keep", "");
    let href = format!("{CLAUDE}/index.html");
    let manifest = ".transcripts/manifest.json";
    let file = session.to_str().expect("text");
    let upsert = [
        "manifest",
        "upsert",
        "--agent",
        "claude",
        "--file",
        file,
        "--manifest",
        manifest,
        "--href",
        &href,
    ];
    let outputs = [world.run(&upsert), world.run(&upsert)];
    assert_eq!(outputs[0], outputs[1]);
    // The origin is a hash of the path, which is different in every run.
    let read = || {
        let text = fs::read_to_string(world.home.join(manifest)).expect("a manifest");
        match text.split_once("\"origin\": \"") {
            Some((before, rest)) => format!("{before}\"origin\": \"(hash){}", &rest[8..]),
            None => text,
        }
    };
    let after_upsert = read();
    assert_snapshot!("manifest_upsert", format!("{}\n{after_upsert}", outputs[0]));
    let index = fs::read_to_string(world.home.join(".transcripts/index.html")).expect("an index");
    assert!(index.contains(&format!("href=\"{href}\"")));
    // A manifest that is rebuilt from the files has the same content.
    for left in ["", "{ broken"] {
        fs::write(world.home.join(manifest), left).expect("a manifest");
        let repair = ["manifest", "repair", "--dir", ".transcripts/", "--agent", "claude"];
        insta::allow_duplicates! {
            assert_snapshot!(world.run(&repair), @r"
            $ epitome manifest repair --dir .transcripts/ --agent claude
            repaired the manifest: 1 entry (2 folders left out)
            --- stderr
            left out: gone: no such session
            --- status 0
            ");
        }
        assert_eq!(read(), after_upsert);
    }
    for (args, status) in [
        (&["manifest", "repair", "--dir", "nowhere"][..], 3),
        (&["manifest", "upsert", "-f", file, "-m", "m.json", "--href", "x"], 2),
        (&["manifest", "upsert", "-f", file, "-m", manifest, "--href", "../x"], 4),
        (&["manifest", "upsert", "-f", "nothing", "-m", manifest, "--href", "x"], 3),
    ] {
        assert_eq!(world.status(args), status, "{args:?}");
    }
    assert_eq!(read(), after_upsert);
}

#[test]
fn pages_of_epitome_in_folders_of_their_own_come_into_the_manifest() {
    let world = World::new();
    world.pi(PI, sessions::pi(PI));
    let args = ["render", PI, "--format", "html", "--format", "json", "--out", "pages/one"];
    assert_eq!(world.status(&args), 0);
    let report = world.json(&["manifest", "repair", "--dir", "pages", "--json"]);
    let files = serde_json::json!([format!("one/pi-{PI}.html"), format!("one/pi-{PI}.json")]);
    assert_eq!(report[0]["sessions"][0]["files"], files);
    assert_eq!(report[0]["sessions"].as_array().map(Vec::len), Some(1));
}

#[test]
fn what_somebody_else_keeps_in_a_folder_stays() {
    let world = World::new();
    let session = world.claude(CLAUDE, sessions::claude(CLAUDE));
    let file = session.to_str().expect("text").to_owned();
    let foreign = [
        ("site/index.html", "<h1>Mine</h1>"),
        ("app/manifest.json", r#"{"name":"an app"}"#),
        ("later/manifest.json", r#"{"epitome_manifest":2,"sessions":[]}"#),
        ("torn/manifest.json", r#"{"epitome_manifest":1,"sess"#),
    ];
    for (name, text) in foreign {
        let path = world.write(name, text);
        let folder = path.parent().expect("a folder").to_str().expect("text").to_owned();
        let manifest = format!("{folder}/manifest.json");
        for line in [
            vec!["render", &file, "--format", "html", "--out", &folder],
            vec!["index", "--dir", &folder],
            vec!["manifest", "upsert", "-f", &file, "-m", &manifest, "--href", "a.html"],
            vec!["install", "--agent", "claude", "--all", "--out", &folder, "--yes"],
        ] {
            // `index` is the command that rebuilds a damaged manifest.
            if line[0] == "index" && name.starts_with("torn") {
                continue;
            }
            let output = world.output(&line);
            assert!(!output.status.success(), "{line:?}: {output:?}");
        }
        assert_eq!(fs::read_to_string(&path).expect("it is there"), text);
        assert_eq!(fs::read_dir(folder).expect("a folder").count(), 1);
    }
}

#[test]
fn of_two_at_once_neither_entry_is_lost() {
    let world = World::new();
    let upserts: Vec<_> = (0..8)
        .map(|n| {
            let id = format!("{n}f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4");
            let file = world.claude(&id, sessions::claude(&id));
            let href = format!("{id}/index.html");
            world.write(&format!("pages/{href}"), "");
            let args = [
                "manifest",
                "upsert",
                "--file",
                file.to_str().expect("text"),
                "--manifest",
                "pages/manifest.json",
                "--href",
                &href,
            ];
            world.command(&args).spawn().expect("the program runs")
        })
        .collect();
    for mut upsert in upserts {
        assert!(upsert.wait().expect("it ends").success());
    }
    let text = fs::read_to_string(world.home.join("pages/manifest.json")).expect("a manifest");
    let manifest: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(manifest["sessions"].as_array().map(Vec::len), Some(8));
}
