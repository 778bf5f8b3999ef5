//! `epitome install`, `uninstall` and the hook that agents call.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::world::World;
use crate::world::sessions::{self, CLAUDE, PI};
use insta::assert_snapshot;
use serde_json::json;

/// Possible settings of an agent.
const SETTINGS: &[&str] = &[
    "",
    "\n",
    "{}",
    "{ }\n",
    "{\"model\":\"opus\"}",
    "// mine\n{\n  \"model\": \"opus\", // the dear one\n  \"env\": { \"A\": \"b\", },\n}\n",
    "{\n\t\"hooks\": {\n\t\t\"Stop\": [{ \"hooks\": [] }]\n\t},\n\t\"n\": 1.50e3\n}",
    "{\r\n  \"hooks\": {\r\n    \"SessionEnd\": [\r\n      { \"hooks\": [{ \"type\": \"command\", \
     \"command\": \"say bye\" }] }\r\n    ]\r\n  }\r\n}\r\n",
];

/// Agents, and the paths of their settings.
const LISTED: &[(&str, &str)] = &[
    ("claude", ".claude/settings.json"),
    ("codex", ".codex/hooks.json"),
    ("gemini", ".gemini/settings.json"),
];

#[test]
fn settings_come_back_to_the_byte() {
    for (agent, file) in LISTED {
        for settings in SETTINGS {
            let world = World::new();
            let path = world.write(file, settings);
            done(&world, &["install", "--agent", agent, "--yes"]);
            let installed = fs::read_to_string(&path).expect("settings");
            assert!(installed.contains(&format!("hook {agent}")), "{installed}");
            done(&world, &["uninstall", "--agent", agent, "--yes"]);
            let after = fs::read_to_string(&path).expect("settings");
            assert_eq!(&after, settings, "{agent}");
            assert_eq!(names(&world), [Path::new(file).parent().expect("one"), Path::new(file)]);
        }
    }
}

#[test]
fn where_there_were_no_settings_there_are_none_again() {
    for agent in ["claude", "codex", "gemini", "pi", "opencode"] {
        let world = World::new();
        done(&world, &["install", "--agent", agent, "--yes", "--all"]);
        assert!(names(&world).len() > 2, "{:?}", names(&world));
        done(&world, &["uninstall", "--yes"]);
        assert_eq!(names(&world), [] as [&Path; 0], "{agent}");
    }
}

#[cfg(unix)]
#[test]
fn a_link_to_the_program_is_what_the_agent_calls() {
    let world = World::new();
    let path = world.write(".claude/settings.json", "{}\n");
    let link = world.home.join("bin/epitome");
    fs::create_dir(link.parent().expect("a folder")).expect("a folder");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_epitome"), &link).expect("a link");
    let args = ["install", "--agent", "claude", "--yes"];
    let mut by_path = world.command(&args);
    by_path.env("PATH", link.parent().expect("a folder"));
    std::os::unix::process::CommandExt::arg0(&mut by_path, "epitome");
    assert!(by_path.status().expect("it runs").success());
    let settings = fs::read_to_string(&path).expect("settings");
    assert!(settings.contains(&format!("{} hook claude", link.display())), "{settings}");
}

#[test]
fn installing_twice_is_installing_once() {
    let world = World::new();
    let path = world.write(".claude/settings.json", "{\n  \"a\": 1\n}\n");
    done(&world, &["install", "--agent", "claude", "--yes"]);
    let once = fs::read_to_string(&path).expect("settings");
    done(&world, &["install", "--agent", "claude", "--yes", "--shrink"]);
    assert_eq!(fs::read_to_string(&path).expect("settings"), once);
    done(&world, &["install", "--agent", "claude", "--yes", "--project", "other"]);
    assert_eq!(fs::read_to_string(&path).expect("settings"), once);
    // Two projects: after one is uninstalled, the hook is still there.
    done(&world, &["uninstall", "--project", ".", "--yes"]);
    assert_eq!(fs::read_to_string(&path).expect("settings"), once);
    done(&world, &["uninstall", "--project", "other", "--yes"]);
    assert_eq!(fs::read_to_string(&path).expect("settings"), "{\n  \"a\": 1\n}\n");
}

#[test]
fn what_the_user_changed_since_stays() {
    let world = World::new();
    let path = world.write(".claude/settings.json", "{\n  \"a\": 1\n}\n");
    done(&world, &["install", "--agent", "claude", "--yes"]);
    let installed = fs::read_to_string(&path).expect("settings");
    // Elsewhere in the file.
    fs::write(&path, installed.replace("\"a\": 1", "// mine\n  \"a\": 2")).expect("settings");
    done(&world, &["uninstall", "--yes"]);
    let after = fs::read_to_string(&path).expect("settings");
    assert_eq!(after, "{\n  // mine\n  \"a\": 2\n}\n");
    // Next to the entry.
    done(&world, &["install", "--agent", "claude", "--yes"]);
    let installed = fs::read_to_string(&path).expect("settings");
    let theirs = "\"SessionEnd\": [\n      { \"hooks\": [] }, // theirs";
    fs::write(&path, installed.replacen("\"SessionEnd\": [", theirs, 1)).expect("settings");
    done(&world, &["uninstall", "--yes"]);
    assert_snapshot!(fs::read_to_string(&path).expect("settings"), @r#"
    {
      // mine
      "a": 2,
      "hooks": {
        "SessionEnd": [
          { "hooks": [] } // theirs
        ]
      }
    }
    "#);
    // The entry itself.
    done(&world, &["install", "--agent", "claude", "--yes"]);
    let changed = fs::read_to_string(&path).expect("settings").replace("10", "30");
    fs::write(&path, &changed).expect("settings");
    assert_snapshot!(run_named(&world, &["uninstall", "--yes"]), @r"
    $ epitome uninstall --yes
    uninstalled for claude
    --- stderr
    ~/.claude/settings.json is kept: epitome's entry was changed since
    not kept any more: sessions in ~ → html in ~/.transcripts
    transcripts are not removed
    --- status 0
    ");
    assert_eq!(fs::read_to_string(&path).expect("settings"), changed);
    // A file that is epitome's own.
    done(&world, &["install", "--agent", "pi", "--yes"]);
    let path = world.home.join(".pi/agent/extensions/epitome.js");
    fs::write(&path, "// mine now\n").expect("the extension");
    done(&world, &["uninstall", "--yes"]);
    assert_eq!(fs::read_to_string(&path).expect("the extension"), "// mine now\n");
    assert_snapshot!(run_named(&world, &["install", "--agent", "pi", "--yes"]), @r"
    $ epitome install --agent pi --yes
    --- stderr
    error: a file of that name is there already: [home]/.pi/agent/extensions/epitome.js
      hint: choose another name, or remove what is there
    --- status 4
    ");
}

#[test]
fn a_person_sees_what_changes_and_is_asked() {
    let world = World::new();
    let path = world.write(".claude/settings.json", SETTINGS[5]);
    git(&world.home, &["init", "-q"]);
    let args = ["install", "--agent", "claude", "--format", "html", "--compact", "--shrink"];
    assert_snapshot!(run_named(&world, &args), @r#"
    $ epitome install --agent claude --format html --compact --shrink
    --- stderr
    ~/.claude/settings.json changes:
          "model": "opus", // the dear one
          "env": { "A": "b", },
      +   "hooks": {
      +     "SessionEnd": [
      +       {
      +         "hooks": [
      +           {
      +             "command": "epitome hook claude",
      +             "timeout": 10,
      +             "type": "command"
      +           }
      +         ]
      +       }
      +     ]
      +   },
        }
    kept: sessions in ~ → html in ~/.transcripts, compacted; then the session itself is compacted
    ~/.git/info/exclude gets the line /.transcripts/
    error: standard input is not a terminal: cannot ask for confirmation
      hint: --yes goes on without asking; nothing was changed
    --- status 2
    "#);
    assert_eq!(fs::read_to_string(&path).expect("settings"), SETTINGS[5]);
    let args = [&args[..], &["--branch", "gh-pages", "--yes"]].concat();
    assert_snapshot!(run_named(&world, &args), @r#"
    $ epitome install --agent claude --format html --compact --shrink --branch gh-pages --yes
    installed for claude: sessions in ~ → html in ~/.git/epitome/gh-pages, on the branch gh-pages, compacted; then the session itself is compacted
    --- stderr
    ~/.claude/settings.json changes:
          "model": "opus", // the dear one
          "env": { "A": "b", },
      +   "hooks": {
      +     "SessionEnd": [
      +       {
      +         "hooks": [
      +           {
      +             "command": "epitome hook claude",
      +             "timeout": 10,
      +             "type": "command"
      +           }
      +         ]
      +       }
      +     ]
      +   },
        }
    kept: sessions in ~ → html in ~/.git/epitome/gh-pages, on the branch gh-pages, compacted; then the session itself is compacted
    the branch gh-pages will be created in ~, without a history
    --- status 0
    "#);
    assert_snapshot!(run_named(&world, &["uninstall", "--purge", "--yes"]), @r#"
    $ epitome uninstall --purge --yes
    uninstalled for claude
    --- stderr
    ~/.claude/settings.json changes:
          "model": "opus", // the dear one
          "env": { "A": "b", },
      -   "hooks": {
      -     "SessionEnd": [
      -       {
      -         "hooks": [
      -           {
      -             "command": "epitome hook claude",
      -             "timeout": 10,
      -             "type": "command"
      -           }
      -         ]
      -       }
      -     ]
      -   },
        }
    not kept any more: sessions in ~ → html in ~/.git/epitome/gh-pages, on the branch gh-pages, compacted; then the session itself is compacted
    removed: the working tree ~/.git/epitome/gh-pages; the branch gh-pages is removed
    --- status 0
    "#);
    assert_snapshot!(run_named(&world, &["uninstall", "--yes"]), @r"
    $ epitome uninstall --yes
    nothing is installed
    --- status 0
    ");
}

#[test]
fn what_makes_no_sense_is_refused_and_changes_nothing() {
    let world = World::new();
    world.write(".gemini/settings.json", "{ \"hooks\": [] }");
    let before = world.tree();
    let refused = [
        &["install", "--yes"][..],
        &["install", "--agent", "cursor", "--yes"],
        &["install", "--agent", "claude", "--format", "terminal", "--yes"],
        &["install", "--agent", "claude", "--branch", "b", "--yes"],
        &["install", "--agent", "gemini", "--yes"],
    ];
    let terminals: Vec<String> = refused.iter().map(|args| run_named(&world, args)).collect();
    assert_snapshot!(terminals.join("\n"), @r"
    $ epitome install --yes
    --- stderr
    error: no agent named; give --agent
      hint: one of: claude, codex, pi, opencode, gemini
    --- status 2

    $ epitome install --agent cursor --yes
    --- stderr
    error: cursor cannot run epitome when a session ends
      hint: these can: claude, codex, pi, opencode, gemini
    --- status 4

    $ epitome install --agent claude --format terminal --yes
    --- stderr
    error: the format of a kept transcript is html, markdown, json or jsonl
    --- status 2

    $ epitome install --agent claude --branch b --yes
    --- stderr
    error: a branch needs a project that is in a git repository
    --- status 4

    $ epitome install --agent gemini --yes
    --- stderr
    error: the settings are not as the agent's should be: [home]/.gemini/settings.json
      cause: `hooks` is something else
    --- status 3
    ");
    assert_eq!(world.tree(), before);
}

#[test]
fn a_session_that_ended_is_kept_and_made_small() {
    let world = World::new();
    let session = world.claude(CLAUDE, sessions::claude(CLAUDE));
    let whole = fs::read(&session).expect("a session");
    let pages = world.home.join("pages");
    done(&world, &["install", "--agent", "claude", "--all", "--out", "pages", "--yes", "--shrink"]);
    let event =
        json!({ "session_id": CLAUDE, "transcript_path": session, "cwd": "/p" }).to_string();
    let output = world.run_with(&["hook", "claude", "--now"], event.as_bytes());
    assert_eq!(output, "$ epitome hook claude --now\n--- status 0\n");
    let page = fs::read_to_string(pages.join(format!("claude-{CLAUDE}.html"))).expect("a page");
    assert!(page.starts_with("<!DOCTYPE html>"));
    assert!(pages.join("manifest.json").is_file() && pages.join("index.html").is_file());
    let small = fs::read(&session).expect("a session");
    assert!(small.len() < whole.len(), "{}", log(&world));
    assert_snapshot!(log(&world), @r"
    2026-11-21T12:00:00Z kept claude-0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4.html in [home]/pages
    2026-11-21T12:00:00Z compacted [home]/.claude/projects/-p/0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4.jsonl: 22.5 KB → 11.8 KB
    ");
    done(&world, &["restore", CLAUDE]);
    assert_eq!(fs::read(&session).expect("a session"), whole);
    done(&world, &["uninstall", "--purge", "--yes"]);
    assert!(!pages.exists());
}

#[test]
fn a_session_of_another_project_is_not_kept() {
    let world = World::new();
    let session = world.claude(CLAUDE, sessions::claude(CLAUDE));
    fs::create_dir(world.home.join("p")).expect("a folder");
    done(&world, &["install", "--agent", "claude", "--project", "p", "--yes"]);
    for (cwd, kept) in [("", false), ("p/below", true)] {
        let cwd = world.home.join(cwd);
        let event = json!({ "session_id": CLAUDE, "transcript_path": session, "cwd": cwd });
        world.run_with(&["hook", "claude", "--now"], event.to_string().as_bytes());
        assert_eq!(world.home.join("p/.transcripts/index.html").exists(), kept, "{cwd:?}");
    }
}

#[test]
fn nothing_that_goes_wrong_reaches_the_agent() {
    let world = World::new();
    let before = world.tree();
    let event = json!({ "session_id": "none", "transcript_path": "/no/such.jsonl", "cwd": "/" });
    let event = event.to_string();
    for (stdin, args) in [
        (&b""[..], &["hook", "claude", "--now"][..]),
        (b"{ no", &["hook", "claude", "--now"]),
        (event.as_bytes(), &["hook", "pi", "--now"]),
        (event.as_bytes(), &["hook", "nobody", "--now"]),
        (b"", &["hook", "claude"]),
    ] {
        let output = world.run_with(args, stdin);
        assert_eq!(output, format!("$ epitome {}\n--- status 0\n", args.join(" ")));
    }
    assert_eq!(world.tree(), before);
    // If something is installed, errors are logged.
    done(&world, &["install", "--agent", "claude", "--all", "--out", "pages", "--yes"]);
    let broken = world.write("broken.jsonl", "no session\n");
    let event = json!({ "session_id": "x", "transcript_path": broken }).to_string();
    world.run_with(&["hook", "claude", "--now"], event.as_bytes());
    assert!(log(&world).contains("broken.jsonl was not kept: "), "{}", log(&world));
}

#[test]
fn transcripts_on_a_branch_touch_nothing_of_the_users() {
    let world = World::new();
    let project = world.home.join("p");
    fs::create_dir(&project).expect("a folder");
    git(&project, &["init", "-q", "-b", "main"]);
    fs::write(project.join("a"), "one").expect("a file");
    git(&project, &["add", "a"]);
    git(&project, &["commit", "-q", "-m", "one"]);
    fs::write(project.join("a"), "two").expect("a file");
    fs::write(project.join("b"), "staged").expect("a file");
    git(&project, &["add", "b"]);
    let state = || {
        let of = |args: &[&str]| git(&project, args);
        let index = fs::read(project.join(".git/index")).expect("an index");
        (of(&["status", "--porcelain"]), of(&["rev-parse", "HEAD"]), of(&["branch"]), index)
    };
    let before = state();
    let session = world.claude(CLAUDE, sessions::claude(CLAUDE));
    let args = ["install", "--agent", "claude", "--project", "p", "--branch", "kept", "--yes"];
    done(&world, &args);
    let event = json!({ "session_id": CLAUDE, "transcript_path": session, "cwd": project });
    for _ in 0..2 {
        world.run_with(&["hook", "claude", "--now"], event.to_string().as_bytes());
    }
    let with = state();
    assert_eq!((&with.0, &with.1, &with.3), (&before.0, &before.1, &before.3));
    // Unchanged files are not committed again.
    assert_eq!(git(&project, &["rev-list", "--count", "kept"]), "2\n", "{}", log(&world));
    let page = format!("claude-{CLAUDE}.html");
    let files = git(&project, &["ls-tree", "--name-only", "kept"]);
    assert_eq!(files, format!("{page}\nindex.html\nmanifest.json\n"));
    // The history of another project cannot be used as a branch of transcripts.
    let refused = run_named(
        &world,
        &["install", "--agent", "claude", "--project", "p", "--branch", "main", "--yes"],
    );
    assert!(refused.contains("holds the history of the project"), "{refused}");
    done(&world, &["uninstall", "--purge", "--yes"]);
    assert_eq!(state(), before);
    assert!(!project.join(".git/epitome").exists());
}

#[test]
fn a_folder_of_transcripts_in_a_repository_is_left_out_of_it() {
    let world = World::new();
    git(&world.home, &["init", "-q", "-b", "main"]);
    let exclude = world.home.join(".git/info/exclude");
    for text in ["# mine", "# mine\n", ""] {
        fs::write(&exclude, text).expect("a list");
        done(&world, &["install", "--agent", "pi", "--yes"]);
        let session = world.pi(PI, sessions::pi(PI));
        let event = json!({ "transcript_path": session, "cwd": world.home }).to_string();
        world.run_with(&["hook", "pi", "--now"], event.as_bytes());
        assert!(world.home.join(".transcripts/index.html").exists(), "{}", log(&world));
        assert!(!git(&world.home, &["status", "--porcelain"]).contains("transcripts"));
        done(&world, &["uninstall", "--yes", "--purge"]);
        assert!(!world.home.join(".transcripts").exists());
        assert_eq!(fs::read_to_string(&exclude).unwrap_or_default(), text);
    }
}

#[test]
fn purging_takes_only_what_was_rendered() {
    let world = World::new();
    let project = world.home.join("p");
    fs::create_dir(&project).expect("a folder");
    // A manifest from the project may name files that are not epitome's.
    let session = |name: &str| {
        let mut event = facts();
        event["name"] = name.into();
        event["files"] = json!(["my.md"]);
        event
    };
    let sessions = [session("my"), session(""), session("claude-x")];
    let manifest = json!({ "epitome_manifest": 1, "sessions": sessions });
    world.write("p/.transcripts/manifest.json", manifest.to_string());
    let kept = [".env", "my-backup.tar", "my.md", "claude-x-notes.tar", "claude-xy.html"];
    for name in kept {
        world.write(&format!("p/.transcripts/{name}"), "mine");
    }
    world.write("p/.transcripts/claude-x.html", "rendered");
    world.write("p/.transcripts/claude-x-2.html", "rendered");
    done(&world, &["install", "--agent", "claude", "--project", "p", "--yes"]);
    done(&world, &["uninstall", "--purge", "--yes"]);
    let mut left: Vec<String> = fs::read_dir(project.join(".transcripts"))
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("text"))
        .collect();
    left.sort();
    let mut expect = kept.map(str::to_owned);
    expect.sort();
    assert_eq!(left, expect);
}

#[cfg(unix)]
#[test]
fn a_link_that_leads_out_of_the_project_is_not_followed() {
    let world = World::new();
    world.write("elsewhere/index.html", "mine");
    fs::create_dir(world.home.join("p")).expect("a folder");
    std::os::unix::fs::symlink("../elsewhere", world.home.join("p/.transcripts")).expect("a link");
    let refused = run_named(&world, &["install", "--agent", "claude", "--project", "p", "--yes"]);
    assert!(refused.contains("a link that leads out of the project"), "{refused}");
}

#[cfg(unix)]
#[test]
fn settings_that_are_read_only_or_have_two_names_are_refused() {
    use std::os::unix::fs::PermissionsExt as _;

    for (agent, file) in LISTED {
        let world = World::new();
        let path = world.write(file, "{}");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).expect("a mode");
        let refused = run_named(&world, &["install", "--agent", agent, "--yes"]);
        assert!(refused.contains("the settings are marked read-only"), "{refused}");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("a mode");
        let other = world.home.join("dotfiles.json");
        fs::hard_link(&path, &other).expect("a second name");
        let refused = run_named(&world, &["install", "--agent", agent, "--yes"]);
        assert!(refused.contains("the settings have more than one name on disk"), "{refused}");
        assert_eq!(fs::read(&other).expect("settings"), b"{}");
        fs::remove_file(&other).expect("a name");
        // Only files that a killed epitome left are removed.
        let left = path.with_file_name(".epitome-abc123.tmp");
        let theirs = path.with_file_name(".agent-abc123.tmp");
        fs::write(&left, "half").expect("a file");
        fs::write(&theirs, "half").expect("a file");
        done(&world, &["install", "--agent", agent, "--yes"]);
        assert_eq!((left.exists(), theirs.exists()), (false, true));
        fs::write(&left, "half").expect("a file");
        done(&world, &["uninstall", "--agent", agent, "--yes"]);
        assert_eq!((left.exists(), theirs.exists()), (false, true));
        assert_eq!(fs::read(&path).expect("settings"), b"{}");
    }
}

/// The facts of a session in a manifest.
fn facts() -> serde_json::Value {
    let spent = json!({ "requests": 0, "input": 0, "largest": 0, "output": null });
    json!({ "agent": "claude", "id": null, "title": "x", "cwd": null, "started": null,
        "ended": null, "models": [], "turns": 0, "calls": 0, "failed": 0, "spent": spent,
        "changes": { "added": 0, "removed": 0, "files": 0 } })
}

/// The output of a command, with the program's own path replaced by `epitome`.
fn run_named(world: &World, args: &[&str]) -> String {
    world.run(args).replace(env!("CARGO_BIN_EXE_epitome"), "epitome")
}

fn done(world: &World, args: &[&str]) {
    let out = world.output(args);
    assert!(out.status.success(), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
}

fn log(world: &World) -> String {
    let path = world.home.join(".local/share/epitome/hooks/log");
    let text = fs::read_to_string(path).unwrap_or_default();
    text.replace(world.home.to_str().expect("text"), "[home]")
}

/// Everything in the home folder, except for folders that always exist.
fn names(world: &World) -> Vec<std::path::PathBuf> {
    let names = world.tree().into_iter().map(|(path, ..)| path);
    let names = names.map(|path| path.strip_prefix(&world.home).unwrap_or(&path).to_owned());
    names.filter(|path| ![".local", ".local/share", ""].map(Path::new).contains(&&**path)).collect()
}

fn git(folder: &Path, args: &[&str]) -> String {
    let out = Command::new("git")
        .arg("-C")
        .arg(folder)
        .args(["-c", "user.name=a", "-c", "user.email=a@b"])
        .args(args)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env_remove("GIT_DIR")
        .env("GIT_OPTIONAL_LOCKS", "0")
        .output()
        .expect("git runs");
    assert!(out.status.success(), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).expect("text")
}
