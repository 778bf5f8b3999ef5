//! The program as a whole: help, versions, exit statuses, and closed outputs.

use std::process::Stdio;

use crate::world::World;
use crate::world::sessions::{self, CLAUDE};
use insta::assert_snapshot;

#[test]
fn help_is_complete() {
    let world = World::new();
    let commands: &[&[&str]] = &[
        &[],
        &["--help"],
        &["demo", "--help"],
        &["list", "--help"],
        &["inspect", "--help"],
        &["compact", "--help"],
        &["restore", "--help"],
        &["show", "--help"],
        &["losses", "--help"],
        &["export", "--help"],
        &["redact", "--help"],
        &["scan", "--help"],
        &["simulate", "--help"],
        &["serve", "--help"],
        &["wrap", "--help"],
        &["proxy", "--help"],
        &["install", "--help"],
        &["uninstall", "--help"],
        &["watch", "--help"],
        &["manifest", "--help"],
        &["archive", "--help"],
        &["recipes", "--help"],
    ];
    let terminals: Vec<String> = commands.iter().map(|args| world.run(args)).collect();
    assert_snapshot!(terminals.join("\n"));
}

#[test]
fn the_demo_compacts_and_restores_its_own_session_and_leaves_nothing_behind() {
    let world = World::new();
    let temporary = world.home.join("temporary");
    std::fs::create_dir(&temporary).expect("a folder");
    // The user's settings, and errors in them, have no effect here.
    world.write(".config/epitome/config.toml", "this is no table\n");
    let files = || world.tree().into_iter().map(|(path, _, hash)| (path, hash)).collect::<Vec<_>>();
    let before = files();
    let mut command = world.command(&["demo"]);
    command.env("TMPDIR", &temporary).env("EPITOME_COMPACTION_RECIPE", "no such recipe");
    let out = command.output().expect("the program runs");
    assert_snapshot!(world.terminal(&["demo"], &out));
    assert_eq!(files(), before, "a file was left or changed");
}

#[test]
fn recipes_are_listed_and_printed() {
    let world = World::new();
    world.write(".config/epitome/recipes/mine.toml", "name='mine'\nabout='Mine.'\npasses=[]\n");
    world.write(".config/epitome/recipes/wrong.toml", "name='wrong'\n");
    assert_snapshot!(world.run(&["recipes"]), @r"
    $ epitome recipes
    Recommended
    epitome  The default. Stored sessions: old output, outdated reads and reasoning are shortened. Running agents: a digest.
    digest   Old messages become one entry made of their own lines: those that will probably be used again.

    As other programs do it
    gitclaw                 As GITCLAW compresses sessions: previews of old tool input and output.
    transcript              As `chitragupt --compact` shows it: each result and long argument becomes its number of lines.
    transcript-no-thinking  As `chitragupt --compact=no-thinking` shows it: the same, without reasoning.
    clear-tool-uses         As Anthropic's context editing does it: old results are cleared.
    s06                     As agent s06 of learn-claude-code: an old result becomes the name of its tool.
    s08                     As agent s08 of learn-claude-code: old results are cleared, large ones previewed, the middle is cut out.
    jcli                    As J-CLI: results but the last ten become the name of their tool; lists, skills and questions stay.
    ion                     As ion, version 2: large results are cut to their ends, then old ones to their first line.
    pi                      As pi: a model summarises everything older than the last 20,000 tokens; nothing else is done.

    Yours
    mine     Mine.  ~/.config/epitome/recipes/mine.toml
    wrong    not a recipe  ~/.config/epitome/recipes/wrong.toml
    --- stderr
    folder for your own recipes: ~/.config/epitome/recipes
    --- status 0
    ");
    assert_eq!(
        world.output(&["recipes", "mine"]).stdout,
        b"name='mine'\nabout='Mine.'\npasses=[]\n"
    );
    assert_eq!(world.status(&["recipes", "nothing"]), 2);
    let objects = world.json(&["recipes", "--json"]);
    assert_eq!((&objects[0]["name"], &objects[0]["default"]), (&"epitome".into(), &true.into()));
}

#[test]
fn shells_and_man_get_what_they_need() {
    let world = World::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let out = world.output(&["completions", shell]);
        let script = String::from_utf8(out.stdout).expect("text");
        assert!(out.status.success() && script.contains("keep-turns"), "{shell}");
    }
    let page = String::from_utf8(world.output(&["man"]).stdout).expect("text");
    assert!(page.contains(".SH \"EPITOME COMPACT\"") && page.contains("keep\\-turns"), "{page}");
    assert!(page.contains(".SH \"EPITOME ARCHIVE GC\""));
}

/// Errors say how to continue.
#[test]
fn a_wrong_command_line_is_told_what_helps() {
    let world = World::new();
    world.claude(CLAUDE, sessions::claude(CLAUDE));
    std::fs::create_dir(world.home.join("folder")).expect("a folder");
    let commands: &[&[&str]] = &[
        &["compact"],
        &["restore"],
        &["inspect"],
        &["losses"],
        &["simulate"],
        &["scan"],
        &["export", CLAUDE],
        &["list", "--project", "nowhere"],
        &["list", "claude"],
        &["list", "nonsense"],
        &["f4237e82"],
        &["folder"],
        &["inspect", "folder"],
        &["config", "set"],
        &["help", "compct"],
        &["compct"],
        &["-v"],
        &["port", CLAUDE, "--dry-run"],
    ];
    let terminals: Vec<String> = commands.iter().map(|args| world.run(args)).collect();
    assert_snapshot!(terminals.join("\n"));
}

/// The statuses of `docs/exit-codes.md`.
#[test]
fn statuses_are_those_that_are_documented() {
    let world = World::new();
    world.claude(CLAUDE, sessions::claude(CLAUDE));
    world.write("empty.jsonl", "");
    world.write("taken.jsonl", "");
    let cases: &[(&[&str], i32)] = &[
        (&["--version"], 0),
        (&[], 0),
        (&["list"], 0),
        (&["compact", CLAUDE, "--dry-run", "--count=estimate"], 0),
        (&["compact", CLAUDE, "--recipe", "clear-tool-uses", "--count=estimate"], 0),
        (&["no-command"], 2),
        (&["compact"], 2),
        (&["show", "no-reference"], 2),
        (&["inspect", "empty.jsonl"], 3),
        (&["inspect", "nobody"], 3),
        (&["compact", CLAUDE, "--out", "taken.jsonl", "--count=estimate"], 4),
        (&["restore", CLAUDE], 5),
        (&["show", "kffffffff"], 5),
        (&["compact", CLAUDE, "--out", "no/folder.jsonl", "--count=estimate"], 5),
    ];
    for (args, expect) in cases {
        assert_eq!(world.status(args), *expect, "{args:?}");
    }
    let without_home = world
        .command(&["compact", CLAUDE, "--count=estimate"])
        .env("EPITOME_HOME", "/dev/null/x")
        .output();
    assert_eq!(without_home.expect("it runs").status.code(), Some(5));
}

#[test]
fn that_nobody_reads_is_no_failure() {
    let world = World::new();
    world.claude(CLAUDE, sessions::claude(CLAUDE));
    for args in [&["man"][..], &["list"], &["completions", "bash"], &["list", "--json"]] {
        let mut command = world.command(args);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program runs");
        drop(child.stdout.take());
        let out = child.wait_with_output().expect("the program ends");
        assert_eq!(
            (out.status.code(), String::from_utf8_lossy(&out.stderr).as_ref()),
            (Some(0), "")
        );
    }
}

#[test]
fn colours_come_when_asked_for_and_escapes_of_a_session_never() {
    let world = World::new();
    world.claude(CLAUDE, sessions::claude(CLAUDE));
    let args = ["inspect", CLAUDE, "--count", "estimate", "--color", "always"];
    let text = String::from_utf8(world.output(&args).stdout).expect("text");
    assert!(text.contains("\u{1b}[1m") && !text.contains("\u{1b}[31mthe numbers"), "{text:?}");
    let args = ["compact", CLAUDE, "--diff", "--dry-run", "--thinking", "drop", "--keep-turns=0"];
    let text = String::from_utf8(world.output(&args).stdout).expect("text");
    assert!(!text.contains('\u{1b}'), "{text:?}");
}
