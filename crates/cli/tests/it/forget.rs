//! `epitome forget`: what is stored of a session or of a text goes, and nothing else.

use std::fs;
use std::path::{Path, PathBuf};

use epitome::archive::each_piece;
use insta::assert_snapshot;

use crate::world::sessions::{self, CLAUDE, CODEX, PI};
use crate::world::{self, World};

const SECRET: &str = "hunter2 is \"my\" pass/phrase";

/// Where pi keeps the session.
fn place(world: &World) -> PathBuf {
    world.home.join(format!(".pi/agent/sessions/--p--/2026-11-18T12-00-00-000Z_{PI}.jsonl"))
}

/// A session of pi in whose longest result the text is, and that was kept, compacted, kept again
/// and searched; and one of Claude Code. Returns the original.
fn stored(world: &World) -> String {
    let spelled = serde_json::to_string(SECRET).expect("JSON");
    let spelled = spelled.trim_matches('"');
    let session = sessions::pi(PI).replacen("fn ", &format!("{spelled} fn "), 1);
    assert!(session.contains(spelled), "the text is in the session");
    let path = world.pi(PI, &session);
    world.claude(CLAUDE, sessions::claude(CLAUDE));
    let keep = ["keep", "--all", "--once"];
    world.run(&keep);
    let small = ["compact", PI, "--keep-turns=1", "--count=estimate", "--recipe", "transcript"];
    assert_eq!(world.status(&small), 0);
    assert!(!fs::read_to_string(&path).expect("a session").contains(spelled), "it is compacted");
    world.run(&keep);
    world.run(&["search", "functions"]);
    world.write(".local/share/epitome/hooks/log", format!("a log of {PI} with {SECRET}\n"));
    session
}

/// The output without what depends on the path of the home folder: the name of the search index,
/// and how much was read.
fn stable(terminal: &str) -> String {
    let line =
        |line: &str| match (line.split_once("cache/search/"), line.split_once(" files with ")) {
            (Some((before, _)), _) => format!("{before}cache/search/[index]\n"),
            (_, Some((before, after))) => {
                let after = after.split_once(" were").map_or("", |(_, after)| after);
                format!("{before} files with [bytes] were{after}\n")
            }
            (None, None) => format!("{line}\n"),
        };
    terminal.lines().map(line).collect()
}

/// The files below the home of epitome in which a text is, as it is or in a pack.
fn files_with(world: &World, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (path, _, _) in world.tree() {
        if path.is_dir() || !path.starts_with(world.home.join(".local/share/epitome")) {
            continue;
        }
        let has = |bytes: &[u8]| String::from_utf8_lossy(bytes).contains(text);
        let mut is_here = has(&fs::read(&path).expect("a file"));
        each_piece(&path, |piece| is_here |= has(piece)).expect("it can be read");
        if is_here {
            let name = path.strip_prefix(&world.home).unwrap_or(Path::new("")).to_string_lossy();
            found.push(name.into_owned());
        }
    }
    found
}

#[test]
fn all_that_is_stored_of_a_session_goes() {
    let world = World::new();
    stored(&world);
    let before = world.tree();
    assert_snapshot!(stable(&world.run(&["forget", PI])), @r"
    $ epitome forget 01a1fb3a-c450-731a-9250-9fa9d78b0d62
    would delete  vault      2 versions  pi 01a1fb3a-c450-731a-9250-9fa9d78b0d62
    would delete  archive  1 generation  pi 01a1fb3a-c450-731a-9250-9fa9d78b0d62
    would delete  cache          1 file  ~/.local/share/epitome/cache/search/[index]
    would mask    file           1 file  ~/.local/share/epitome/hooks/log
    stays         session        1 file  ~/.pi/agent/sessions/--p--/2026-11-18T12-00-00-000Z_01a1fb3a-c450-731a-9250-9fa9d78b0d62.jsonl
    --- stderr
    the compaction of pi 01a1fb3a-c450-731a-9250-9fa9d78b0d62 becomes final: what was removed cannot be restored
    the session stays where its agent keeps it, and is not kept again
    error: standard input is not a terminal: cannot ask for confirmation
      hint: --yes goes on without asking; nothing was changed
    --- status 2
    ");
    assert_eq!(world.tree(), before);
    assert_snapshot!(stable(&world.run(&["forget", PI, "--yes"])), @r"
    $ epitome forget 01a1fb3a-c450-731a-9250-9fa9d78b0d62 --yes
    deleted  vault      2 versions  pi 01a1fb3a-c450-731a-9250-9fa9d78b0d62
    deleted  archive  1 generation  pi 01a1fb3a-c450-731a-9250-9fa9d78b0d62
    deleted  cache          1 file  ~/.local/share/epitome/cache/search/[index]
    masked   file           1 file  ~/.local/share/epitome/hooks/log
    stays    session        1 file  ~/.pi/agent/sessions/--p--/2026-11-18T12-00-00-000Z_01a1fb3a-c450-731a-9250-9fa9d78b0d62.jsonl
    forgotten: 8 files with [bytes] were read again, and it is in none
    --- stderr
    the compaction of pi 01a1fb3a-c450-731a-9250-9fa9d78b0d62 became final: what was removed cannot be restored
    the session stays where its agent keeps it, and is not kept again
    --- status 0
    ");
    assert_snapshot!(world.run(&["forget", PI]), @r"
    $ epitome forget 01a1fb3a-c450-731a-9250-9fa9d78b0d62
    stays  session  1 file  ~/.pi/agent/sessions/--p--/2026-11-18T12-00-00-000Z_01a1fb3a-c450-731a-9250-9fa9d78b0d62.jsonl
    epitome stores nothing of it
    --- stderr
    the session stays where its agent keeps it, and is not kept again
    --- status 0
    ");
    assert_eq!(files_with(&world, "fn f150"), Vec::<String>::new());
    // The session stays, and is not kept again; others are as they were.
    assert!(place(&world).exists());
    assert_snapshot!(world.run(&["keep", "--all", "--once"]), @r"
    $ epitome keep --all --once
    0 versions kept, of 1 file
    --- status 0
    ");
    assert_snapshot!(world.run(&["history", PI]), @r"
    $ epitome history 01a1fb3a-c450-731a-9250-9fa9d78b0d62
    --- stderr
    error: no version of a session called `01a1fb3a-c450-731a-9250-9fa9d78b0d62` was kept
      hint: it was forgotten at 2026-11-21T12:00:00Z, and is not kept again
    --- status 3
    ");
    fs::remove_file(world.claude(CLAUDE, "")).expect("a session");
    assert_eq!(world.status(&["restore", CLAUDE, "--at", "1", "--yes"]), 0);
    assert_eq!(world.status(&["archive", "verify"]), 0);
    // What was removed from the session is gone.
    assert_snapshot!(world.run(&["restore", PI, "--yes"]), @r"
    $ epitome restore 01a1fb3a-c450-731a-9250-9fa9d78b0d62 --yes
    --- stderr
    error: the archive holds nothing of this session: [home]/.pi/agent/sessions/--p--/2026-11-18T12-00-00-000Z_01a1fb3a-c450-731a-9250-9fa9d78b0d62.jsonl
      hint: `epitome archive ls` shows the sessions that were compacted on this machine; EPITOME_HOME says where the archive is, if it is not the usual place
    --- status 5
    ");
}

#[test]
fn a_secret_goes_from_everything_and_all_else_comes_back() {
    let world = World::new();
    let original = stored(&world);
    let before = world.tree();
    let plan = world.run_with(&["forget", "--secret"], SECRET.as_bytes());
    assert_snapshot!(stable(&plan), @r"
    $ epitome forget --secret
    would mask    vault       1 version  pi 01a1fb3a-c450-731a-9250-9fa9d78b0d62
    would delete  archive       1 piece  pi 01a1fb3a-c450-731a-9250-9fa9d78b0d62
    would delete  cache          1 file  ~/.local/share/epitome/cache/search/[index]
    would mask    file     1 occurrence  ~/.local/share/epitome/hooks/log
    --- stderr
    the compaction of pi 01a1fb3a-c450-731a-9250-9fa9d78b0d62 becomes final: the removed pieces that have the text cannot be restored
    error: standard input is not a terminal: cannot ask for confirmation
      hint: --yes goes on without asking; nothing was changed
    --- status 2
    ");
    assert_eq!(world.tree(), before);
    let spelled = serde_json::to_string(SECRET).expect("JSON");
    let spelled = spelled.trim_matches('"');
    assert_eq!(files_with(&world, spelled).len(), 2, "a pack of the vault, one of the archive");
    let done = world.run_with(&["forget", "--secret", "--yes"], SECRET.as_bytes());
    assert_snapshot!(stable(&done), @r"
    $ epitome forget --secret --yes
    masked   vault       1 version  pi 01a1fb3a-c450-731a-9250-9fa9d78b0d62
    deleted  archive       1 piece  pi 01a1fb3a-c450-731a-9250-9fa9d78b0d62
    deleted  cache          1 file  ~/.local/share/epitome/cache/search/[index]
    masked   file     1 occurrence  ~/.local/share/epitome/hooks/log
    forgotten: 7 files with [bytes] were read again, and it is in none
    --- stderr
    the compaction of pi 01a1fb3a-c450-731a-9250-9fa9d78b0d62 became final: the removed pieces that have the text cannot be restored
    --- status 0
    ");
    for text in [SECRET, spelled] {
        assert_eq!(files_with(&world, text), Vec::<String>::new());
    }
    let again = world.run_with(&["forget", "--secret"], SECRET.as_bytes());
    assert_snapshot!(again, @r"
    $ epitome forget --secret
    epitome stores nothing of it
    --- status 0
    ");
    assert_eq!(world.status(&["archive", "verify"]), 0);
    // The stub names bytes that were forgotten; version 1 has all but the secret.
    assert_snapshot!(world.run(&["restore", PI, "--yes"]), @r"
    $ epitome restore 01a1fb3a-c450-731a-9250-9fa9d78b0d62 --yes
    --- stderr
    error: the bytes 6b9164de3cf3ba6a888d810dd278a6906ed485cf8ab13f4e975be15507ced039 were forgotten on purpose and cannot come back: [home]/.local/share/epitome/archive/pi/01a1fb3a-c450-731a-9250-9fa9d78b0d62/000001.pack
      hint: `epitome restore SESSION --partial` restores everything else
    --- status 5
    ");
    assert_snapshot!(world.run(&["restore", PI, "--partial", "--yes"]), @r"
    $ epitome restore 01a1fb3a-c450-731a-9250-9fa9d78b0d62 --partial --yes
    nothing to do  ~/.pi/agent/sessions/--p--/2026-11-18T12-00-00-000Z_01a1fb3a-c450-731a-9250-9fa9d78b0d62.jsonl
    disk     1.5 KB → 1.5 KB
    how      record by record: 0 edits undone
             1 edit not restored: changed since, forgotten, or damaged in the archive
    --- status 0
    ");
    assert_snapshot!(world.run(&["history", PI]), @r"
    $ epitome history 01a1fb3a-c450-731a-9250-9fa9d78b0d62
    pi 01a1fb3a-c450-731a-9250-9fa9d78b0d62  ~/.pi/agent/sessions/--p--/2026-11-18T12-00-00-000Z_01a1fb3a-c450-731a-9250-9fa9d78b0d62.jsonl
    version  age    size  what changed
          1  now  7.7 KB  first seen, 7.7 KB; 1 text forgotten
          2  now  1.5 KB  compacted by epitome (run b111607c), -6.2 KB
    --- status 0
    ");
    assert_eq!(world.status(&["restore", PI, "--at", "1", "--yes"]), 0);
    let masked = original.replace(spelled, &"*".repeat(spelled.len()));
    assert_eq!(fs::read_to_string(place(&world)).expect("a session"), masked);
    world::check("forget.schema.json", &[forget_json(&world)]);
}

fn forget_json(world: &World) -> serde_json::Value {
    let json = world.run_with(&["forget", "--secret", "--json"], b"List the functions");
    let line = json.lines().nth(1).expect("a line");
    serde_json::from_str(line).expect("JSON")
}

#[test]
fn a_secret_is_replaced_in_sessions_only_if_that_was_said() {
    let world = World::new();
    let session = sessions::pi(PI).replace("I look.", "I look for hunter2-hunter2.");
    let path = world.pi(PI, &session);
    let forget = ["forget", "--secret", "--yes"];
    assert_snapshot!(world.run_with(&forget, b"hunter2-hunter2"), @r"
    $ epitome forget --secret --yes
    stays  session  1 occurrence  ~/.pi/agent/sessions/--p--/2026-11-18T12-00-00-000Z_01a1fb3a-c450-731a-9250-9fa9d78b0d62.jsonl
    nothing found: epitome stores nothing of it (0 files with 0 B were read)
    --- stderr
    1 session file still has the text, and epitome will store it again from there; --sessions replaces it, except in what is signed
    --- status 0
    ");
    assert_eq!(fs::read_to_string(&path).expect("a session"), session);
    let in_sessions = [&forget[..], &["--sessions"]].concat();
    assert_snapshot!(world.run_with(&in_sessions, b"hunter2-hunter2"), @r"
    $ epitome forget --secret --yes --sessions
    masked  session  1 occurrence  ~/.pi/agent/sessions/--p--/2026-11-18T12-00-00-000Z_01a1fb3a-c450-731a-9250-9fa9d78b0d62.jsonl
    forgotten: 1 file with 0 B were read again, and it is in none
    --- status 0
    ");
    let replaced = session.replace("hunter2-hunter2", "[REDACTED:forgotten-1]");
    assert_eq!(fs::read_to_string(&path).expect("a session"), replaced);
    assert_snapshot!(world.run_with(&["forget", "--secret"], b"word"), @r"
    $ epitome forget --secret
    --- stderr
    error: a text of 8 to 65536 bytes can be forgotten
      hint: a shorter text is a part of many others that are not meant
    --- status 2
    ");
    assert_snapshot!(world.run(&["forget", "nothing-of-this-name"]), @r"
    $ epitome forget nothing-of-this-name
    --- stderr
    error: nothing is stored of a session called `nothing-of-this-name`
      hint: `epitome list --deleted` and `epitome archive ls` list what is stored
    --- status 3
    ");
}

#[test]
fn nothing_is_forgotten_without_a_yes() {
    let world = World::new();
    stored(&world);
    let before = world.tree();
    assert_eq!(world.status(&["forget", PI]), 2);
    assert_eq!(world.status(&["forget", PI, "--dry-run"]), 0);
    assert_eq!(world.status(&["forget", PI, "--sessions", "--yes"]), 2);
    assert_eq!(world.tree(), before);
}

#[test]
fn what_the_rules_find_in_a_session_is_forgotten() {
    let world = World::new();
    let (key, password) = ("AKIAQ3EGRXLTPN2MWVJD", "tr0ub4dor-and-3");
    let secrets = format!("X-Key: {key} and DB_PASSWORD={password} fn ");
    let path = world.pi(PI, sessions::pi(PI).replacen("fn ", &secrets, 1));
    let keep = ["keep", "--all", "--once"];
    world.run(&keep);
    // The agent removed them, but the first version has them.
    fs::write(&path, sessions::pi(PI)).expect("a session");
    world.run(&keep);
    let before = world.tree();
    let planned = world.run(&["forget", PI, "--found", "--dry-run"]);
    let found = "2 texts found: 1 by aws-access-key, 1 by password-assignment";
    assert!(planned.contains(found) && planned.contains("would mask"), "{planned}");
    assert_eq!(world.tree(), before);
    assert_eq!(world.status(&["forget", PI, "--rule", "aws-access-key", "--yes"]), 0);
    assert_eq!(files_with(&world, key), [] as [String; 0]);
    assert_eq!(files_with(&world, password).len(), 1);
    let done = world.run(&["forget", PI, "--found", "--yes"]);
    assert!(done.contains("1 text found: 1 by password-assignment"), "{done}");
    assert_eq!(files_with(&world, password), [] as [String; 0]);
    let nothing = world.run(&["forget", PI, "--found"]);
    assert!(nothing.contains("the rules find nothing"), "{nothing}");
    assert_eq!(
        world.json(&["history", PI, "--json"])[0]["versions"].as_array().map(Vec::len),
        Some(2)
    );
    for wrong in [&["forget", PI, "--rule", "no-such-rule"][..], &["forget", PI, "--sessions"]] {
        assert_eq!(world.status(wrong), 2, "{wrong:?}");
    }
}

#[test]
fn what_the_rules_find_in_compressed_versions_is_named() {
    let world = World::new();
    let key = "AKIAQ3EGRXLTPN2MWVJD";
    let session = sessions::codex(CODEX);
    let secret = session.replacen("fn ", &format!("X-Key: {key} fn "), 1);
    assert_ne!(secret, session);
    let name = format!(".codex/sessions/2026/11/20/rollout-2026-11-20T23-12-03-{CODEX}.jsonl.zst");
    // The agent removed the key, but the first version has it.
    for content in [secret, session] {
        world.write(&name, zstd::encode_all(content.as_bytes(), 3).expect("compressed"));
        world.run(&["keep", "--all", "--once"]);
    }
    let done = world.run(&["forget", CODEX, "--rule", "aws-access-key", "--yes"]);
    assert!(done.contains("1 text found: 1 by aws-access-key"), "{done}");
    let left = format!("codex {CODEX}: these versions are compressed, and cannot be masked");
    assert!(done.contains(&left) && done.ends_with("--- status 4\n"), "{done}");
}

#[test]
fn a_text_that_is_nowhere_is_not_said_to_be_forgotten() {
    let world = World::new();
    let path = world.pi(PI, sessions::pi(PI));
    world.write(".local/share/epitome/hooks/log", "a log\n");
    let forget = ["forget", "--secret", "--yes"];
    let output = |text: &str| {
        let out = world.run_with(&forget, text.as_bytes());
        out.lines().skip(1).map(str::to_owned).collect::<Vec<_>>()
    };
    let nothing = "nothing found: epitome stores nothing of it (1 file with 6 B were read)";
    assert_eq!(output("hunter2-hunter2"), [nothing, "--- status 0"]);
    // The search index may have it, and says nothing about that.
    world.run(&["search", "functions"]);
    let out = output("hunter2-hunter2");
    assert!(
        out[1].starts_with("nothing found except in caches, which may have had it: "),
        "{out:?}"
    );
    // Two sessions that have it.
    let text = sessions::pi(PI).replace("I look.", "I look for hunter2-hunter2.");
    fs::write(&path, &text).expect("a session");
    world.claude(CLAUDE, sessions::claude(CLAUDE).replace("Thanks.", "hunter2-hunter2."));
    let out = output("hunter2-hunter2").join("\n");
    assert!(out.contains("2 session files still have the text"), "{out}");
}

#[test]
fn the_error_for_a_forgotten_session_says_that_it_was_forgotten() {
    let world = World::new();
    stored(&world);
    let mut forget = world.command(&["forget", PI, "--yes"]);
    let done = forget.env("EPITOME_NOW", "2026-11-20T12:00:00Z").output();
    assert!(done.expect("the program runs").status.success());
    let hint = "hint: it was forgotten at 2026-11-20T12:00:00Z, and is not kept again";
    for command in [&["history", PI][..], &["restore", PI, "--at", "1"], &["history", &PI[..8]]] {
        let shown = world.run(command);
        assert!(shown.contains(hint) && !shown.contains("keep --all"), "{shown}");
        assert!(shown.ends_with("--- status 3\n"), "{shown}");
    }
    // Where the session does not exist any more, its full id is known.
    fs::remove_file(place(&world)).expect("deleted");
    let shown = world.run(&["history", PI]);
    assert!(shown.contains(hint), "{shown}");
}

#[test]
fn a_run_is_undone_although_a_text_that_it_left_was_forgotten() {
    let world = World::new();
    let session = stored(&world);
    let forget = ["forget", "--secret", "--yes", "--sessions"];
    assert!(world.run_with(&forget, b"There are 200.").ends_with("--- status 0\n"));
    let undone = world.run(&["undo", "--yes"]);
    assert!(undone.ends_with("--- status 0\n"), "{undone}");
    let masked = session.replace("There are 200.", "[REDACTED:forgotten-1]");
    assert_eq!(fs::read_to_string(place(&world)).expect("a session"), masked);
}

#[test]
fn undo_says_that_a_text_that_it_needs_was_forgotten() {
    let world = World::new();
    stored(&world);
    world.run_with(&["forget", "--secret", "--yes", "--sessions"], SECRET.as_bytes());
    let undone = world.run(&["undo", "--yes"]);
    assert!(undone.contains("were forgotten on purpose"), "{undone}");
    assert!(undone.contains("hint: `epitome restore SESSION --partial` restores"), "{undone}");
}

/// What is lost for good, and what epitome does not remove, is said before and afterwards, where
/// it applies.
#[test]
fn a_final_compaction_and_what_may_be_shared_are_named() {
    let world = World::new();
    stored(&world);
    let notes = |args: &[&str]| {
        let terminal = world.run_with(args, SECRET.as_bytes());
        let lines = terminal.lines().filter(|it| it.contains("final") || it.contains("shared"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let becomes = format!("the compaction of pi {PI} becomes final: ");
    let became = format!("the compaction of pi {PI} became final: ");
    let pieces = "the removed pieces that have the text cannot be restored";
    assert_eq!(notes(&["forget", "--secret", "--dry-run"]), [format!("{becomes}{pieces}")]);
    let all = "what was removed cannot be restored";
    assert_eq!(notes(&["forget", PI, "--dry-run"]), [format!("{becomes}{all}")]);
    let settings = "[share]\nurl = \"s3://team/epitome/\"\n";
    world.write(".config/epitome/epitome.toml", settings);
    let text_shared = "what was shared in s3://team/epitome/sessions is not searched: `epitome \
                       share SESSION` again replaces the page and the transcript of a session";
    assert_eq!(
        notes(&["forget", "--secret", "--dry-run"]),
        [format!("{becomes}{pieces}"), text_shared.to_owned()]
    );
    let shared = "if it was shared, its page and transcript stay in s3://team/epitome/sessions: \
                  delete the folder of its id there";
    assert_eq!(notes(&["forget", PI, "--yes"]), [format!("{became}{all}"), shared.to_owned()]);
    // The session has no compaction in the archive any more.
    assert_eq!(notes(&["forget", PI, "--dry-run"]), [shared]);
}

#[test]
fn a_compaction_that_was_undone_does_not_become_final() {
    let world = World::new();
    stored(&world);
    assert_eq!(world.status(&["restore", PI, "--yes"]), 0);
    let plan = world.run(&["forget", PI, "--dry-run"]);
    assert!(plan.contains("archive") && !plan.contains("final"), "{plan}");
}

#[test]
fn a_compaction_by_an_appended_record_is_undone_after_its_session_was_masked() {
    let world = World::new();
    let secret = "hunter2-hunter2";
    let original = sessions::codex(CODEX).replace("fn ", &format!("{secret} fn "));
    let path = world.codex(CODEX, &original);
    let compacted = world.run(&["compact", CODEX, "--keep-turns=1", "--count=estimate"]);
    assert!(compacted.ends_with("--- status 0\n"), "{compacted}");
    let record = fs::read_to_string(&path).expect("a session");
    assert!(record.starts_with(&original) && record.len() > original.len(), "a record is appended");

    let forget = ["forget", "--secret", "--sessions", "--yes"];
    let done = world.run_with(&forget, secret.as_bytes());
    assert!(done.ends_with("--- status 0\n") && !done.contains("final"), "{done}");

    let restored = world.run(&["restore", CODEX]);
    assert!(restored.contains("exact, to the byte: 1 compaction undone"), "{restored}");
    let masked = original.replace(secret, "[REDACTED:forgotten-1]");
    assert_eq!(fs::read_to_string(&path).expect("a session"), masked);
}

/// `compact --keep-backup` copies the whole session into the folder of the archive.
#[test]
fn a_whole_copy_next_to_the_archive_is_masked_and_deleted() {
    let world = World::new();
    let secret = "hunter2-hunter2";
    let session = sessions::pi(PI).replace("There are 200.", &format!("There are {secret}."));
    world.pi(PI, &session);
    let backup = world.home.join(format!(
        ".local/share/epitome/archive/pi/{PI}/2026-11-18T12-00-00-000Z_{PI}.uncompressed.jsonl"
    ));
    world.run(&["compact", PI, "--keep-turns=1", "--count=estimate", "--keep-backup"]);
    assert_eq!(fs::read_to_string(&backup).expect("a copy"), session);
    let forget = ["forget", "--secret", "--sessions", "--yes"];
    let done = world.run_with(&forget, secret.as_bytes());
    assert!(done.ends_with("--- status 0\n") && done.contains("uncompressed.jsonl"), "{done}");
    let masked = session.replace(secret, &"*".repeat(secret.len()));
    assert_eq!(fs::read_to_string(&backup).expect("a copy"), masked);
    let done = world.run(&["forget", PI, "--yes"]);
    assert!(done.contains("uncompressed.jsonl") && !backup.exists(), "{done}");
}

/// The second of two compactions is undone, although a text that the first removed is forgotten.
#[test]
fn a_run_is_undone_without_what_only_an_older_one_needs() {
    let world = World::new();
    let secret = "hunter2-hunter2";
    let read = |path: &Path| fs::read_to_string(path).expect("a session");
    let mut session = sessions::Claude::new(CLAUDE);
    let call = |session: &mut sessions::Claude, n: u32, output: &str| {
        session.user(&format!("Read the file {n}, please."));
        let input = serde_json::json!({ "file_path": format!("/p/src/{n}.rs") });
        session.call(&format!("t{n}"), "Read", input, output, false);
        session.say("It is read.");
    };
    let code = |name: &str| format!("fn {name}() {{ return 1; }}\n").repeat(200);
    call(&mut session, 1, &code(secret));
    call(&mut session, 2, &code("two"));
    let begun = session.lines();
    call(&mut session, 3, &code("three"));
    call(&mut session, 4, &code("four"));
    let path = world.claude(CLAUDE, &begun);
    let small = ["compact", CLAUDE, "--keep-turns=1", "--count=estimate", "--recipe", "transcript"];
    // The id of a run is made of its time.
    let first = world.command(&small).env("EPITOME_NOW", "2026-11-20T10:00:00Z").output();
    assert!(first.expect("the program runs").status.success());
    let continued = read(&path) + session.lines().strip_prefix(&begun).expect("it goes on");
    fs::write(&path, &continued).expect("a session");
    assert_eq!(world.status(&small), 0);
    assert_ne!(read(&path), continued);
    let done = world.run_with(&["forget", "--secret", "--yes"], secret.as_bytes());
    assert!(done.contains("2 pieces"), "{done}");
    let undone = world.run(&["undo", "--yes"]);
    assert!(undone.ends_with("--- status 0\n"), "{undone}");
    assert_eq!(read(&path), continued);
}
