//! Compacting and restoring by the buttons of a page.

use std::fs;
use std::io::Read as _;
use std::process::{Command, Stdio};

use crate::world::{self, Viewer, World};
use epitome::archive::Archive;
use epitome_web::Which;

/// The path of the session's pages.
fn folder(viewer: &Viewer) -> String {
    viewer.sessions("")[0].trim_end_matches("session.html").to_owned()
}

#[test]
fn a_session_is_compacted_by_its_button_and_comes_back_byte_for_byte() {
    let world = World::new();
    let fixture = fixtures::get("claude", "pricing");
    let before = fixture.bytes();
    let path = world.claude("one", &before);
    let mut agents = Vec::new();
    for agent in fixture.sub_agents() {
        let bytes = fs::read(&agent).unwrap();
        let name =
            format!("claude/projects/-p/one/subagents/{}", agent.file_name().unwrap().display());
        agents.push((world.write(&name, &bytes), bytes));
    }
    let viewer = world.serve(Which::All);
    let folder = folder(&viewer);
    let plan = viewer.get(&format!("{folder}plan?recipe=gitclaw"));
    assert_eq!(plan.status, 200, "{}", plan.body);
    assert!(plan.body.contains("<option value=\"gitclaw\" selected>"), "{}", plan.body);
    assert!(plan.body.contains("<del>- "), "{}", plan.body);
    assert!(plan.body.contains("Compact it") && !plan.body.contains("Restore it"));
    assert_eq!(fs::read(&path).unwrap(), before, "a plan writes nothing");
    assert!(!Archive::folder_in(&world.config.home).exists(), "nor anything else");

    let done = viewer.post(&format!("{folder}compact"), "recipe=gitclaw");
    assert_eq!(done.status, 200, "{}", done.body);
    assert!(done.body.contains("<h1 role=\"status\">Compacted</h1>"), "{}", done.body);
    let small = fs::read(&path).unwrap();
    assert!(small.len() < before.len(), "{} of {}", small.len(), before.len());
    let again = viewer.post(&format!("{folder}compact"), "recipe=gitclaw");
    assert!(again.body.contains("There was nothing to do"), "{}", again.body);
    assert_eq!(fs::read(&path).unwrap(), small, "twice is once");
    assert!(viewer.get(&format!("{folder}plan")).body.contains("Restore it"));
    assert!(viewer.whole_list().contains("class=\"done\">compacted"));

    let back = viewer.post(&format!("{folder}restore"), "");
    assert_eq!(back.status, 200, "{}", back.body);
    assert!(back.body.contains("identical to the original, verified by its hash"), "{}", back.body);
    assert_eq!(fs::read(&path).unwrap(), before);
    for (agent, bytes) in agents {
        assert_eq!(fs::read(agent).unwrap(), bytes);
    }
    assert!(!viewer.get(&format!("{folder}plan")).body.contains("Restore it"));
    let again = viewer.post(&format!("{folder}restore"), "");
    assert!(again.body.contains("It is what it was"), "{}", again.body);
}

/// The plan and the button do what `epitome compact` does with the same settings.
#[test]
fn recipes_are_changed_by_the_settings() {
    let world = World::new();
    let before = fixtures::get("claude", "pricing").bytes();
    let path = world.claude("one", &before);
    let default = "value=\"transcript\" selected";
    let never = "compaction = { recipe = \"transcript\", trigger = { tokens = 1000000 } }\n";
    world.write("settings/epitome.toml", never);
    let viewer = world.serve(Which::All);
    let folder = folder(&viewer);
    let plan = viewer.get(&format!("{folder}plan")).body;
    assert!(
        plan.contains(default) && plan.contains("There is nothing to do with this recipe"),
        "{plan}"
    );
    let done = viewer.post(&format!("{folder}compact"), "recipe=transcript");
    assert!(done.body.contains("There was nothing to do"), "{}", done.body);
    assert_eq!(fs::read(&path).unwrap(), before);
    // A user's own recipe, by its name, and as the default by its path.
    let own = "name = \"mine\"\nabout = \"My own words.\"\n[[passes]]\npass = \"results\"\n";
    let file = world.write("settings/recipes/mine.toml", own);
    world.write("settings/epitome.toml", format!("compaction.recipe = {file:?}\n"));
    let viewer = world.serve(Which::All);
    for address in ["plan", "plan?recipe=mine"] {
        let plan = viewer.get(&format!("{folder}{address}")).body;
        assert!(plan.contains("My own words.") && plan.contains("Compact it"), "{plan}");
        assert!(!plan.contains("mine.toml"), "{plan}");
    }
    let by_path = format!("{folder}plan?recipe={}", file.display());
    assert_eq!(viewer.get(&by_path).status, 422);
    let done = viewer.post(&format!("{folder}compact"), "recipe=");
    assert!(done.body.contains("<h1 role=\"status\">Compacted</h1>"), "{}", done.body);
}

/// A backup that the settings ask for is kept, as `epitome compact` keeps it.
#[test]
fn a_backup_is_kept_as_the_settings_say() {
    let world = World::new();
    let before = fixtures::get("claude", "pricing").bytes();
    let path = world.claude("one", &before);
    world.write("settings/epitome.toml", "compaction.backup = \"beside\"\n");
    let viewer = world.serve(Which::All);
    let folder = folder(&viewer);
    let done = viewer.post(&format!("{folder}compact"), "recipe=transcript");
    assert!(done.body.contains("<h1 role=\"status\">Compacted</h1>"), "{}", done.body);
    assert_eq!(fs::read(path.with_file_name("one.uncompressed.jsonl")).unwrap(), before);
}

/// The session is found by the path of its file, as in `epitome restore`.
#[test]
fn a_session_that_cannot_be_read_any_more_is_restored() {
    let world = World::new();
    let before = fixtures::get("claude", "pricing").bytes();
    let path = world.claude("one", &before);
    let viewer = world.serve(Which::All);
    let folder = folder(&viewer);
    viewer.post(&format!("{folder}compact"), "recipe=transcript");
    let small = fs::read(&path).unwrap();
    assert!(small.len() < before.len());
    // After this, no record can be recognised as the agent's.
    let foreign = |bytes: &[u8]| {
        String::from_utf8_lossy(bytes).replace("\"type\":", "\"kind\":").into_bytes()
    };
    let broken = foreign(&small);
    fs::write(&path, &broken).unwrap();
    assert!(epitome::storage::load(&path, None).is_err());
    let back = viewer.post(&format!("{folder}restore"), "");
    assert_eq!(back.status, 200, "{}", back.body);
}

#[test]
fn a_get_never_writes() {
    let world = World::new();
    let before = fixtures::get("pi", "pricing").bytes();
    let path = world.pi("one", &before);
    let viewer = world.serve(Which::All);
    let folder = folder(&viewer);
    for action in ["compact", "restore", "compact?recipe=epitome"] {
        assert_eq!(viewer.get(&format!("{folder}{action}")).status, 405, "{action}");
    }
    let path_of = viewer.path(&format!("{folder}compact"));
    for origin in ["http://evil.example", "null", "http://127.0.0.1:1"] {
        let answer = viewer.ask("POST", &path_of, &[("Origin", origin)], "recipe=epitome");
        assert_eq!(answer.status, 403, "{origin}");
    }
    assert_eq!(fs::read(path).unwrap(), before);
}

#[test]
fn what_is_refused_is_said_with_what_may_help() {
    let world = World::new();
    let before = fixtures::get("pi", "pricing").bytes();
    let path = world.pi("one", &before);
    let viewer = world.serve(Which::All);
    let folder = folder(&viewer);
    let (compact, restore) = (format!("{folder}compact"), format!("{folder}restore"));
    let refused = |answer: world::Answer, status: u16, words: &[&str]| {
        assert_eq!(answer.status, status, "{}", answer.body);
        for words in words {
            assert!(answer.body.contains(words), "{words}: {}", answer.body);
        }
    };
    refused(viewer.post(&restore, ""), 404, &["the archive holds nothing of this session"]);
    refused(viewer.post(&compact, "recipe=none"), 422, &["no recipe is called"]);
    // Another program has the session open.
    let holds = "exec 3>>\"$1\"; echo ready; read end";
    let mut holder = Command::new("sh")
        .args(["-c", holds, "sh"])
        .arg(&path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut ready = [0; 5];
    holder.stdout.as_mut().unwrap().read_exact(&mut ready).unwrap();
    let in_use =
        &["It was not compacted", "in use by", "close the agent that has the session open"];
    refused(viewer.post(&compact, "recipe=epitome"), 409, in_use);
    drop(holder.stdin.take());
    holder.wait().unwrap();
    // The archive cannot be written, because a file is in its place.
    let root = Archive::folder_in(&world.config.home);
    fs::create_dir_all(root.parent().unwrap()).unwrap();
    fs::write(&root, "").unwrap();
    let answer = viewer.post(&compact, "recipe=epitome");
    assert!(
        answer.status >= 400 && answer.body.contains("It was not compacted"),
        "{}",
        answer.body
    );
    assert_eq!(fs::read(&path).unwrap(), before, "nothing was changed");
}

#[test]
fn a_plan_is_shown_without_secrets_and_with_every_character_visible() {
    let world = World::new();
    let token = fixtures::planted::like("ghp_[0-9a-zA-Z]{36}", 7);
    let session = String::from_utf8(fixtures::get("pi", "pricing").bytes()).unwrap();
    let long = format!(
        "token {token} <b>bold</b> \\u202e\\u001b[31m\\n{}",
        "a line of a log\\n".repeat(300)
    );
    // A long text is inserted at the beginning of the first result.
    let at = session.find("\"role\":\"toolResult\"").unwrap();
    let text = at + session[at..].find("\"text\":\"").unwrap() + 8;
    let session = format!("{}{long}{}", &session[..text], &session[text..]);
    world.pi("one", session);
    let viewer = world.serve(Which::All);
    let plan = viewer.get(&format!("{}plan?recipe=gitclaw", folder(&viewer))).body;
    assert!(plan.contains("[REDACTED:") && !plan.contains(&token), "{plan}");
    assert!(plan.contains("&lt;b&gt;bold&lt;/b&gt;") && !plan.contains("<b>bold"), "{plan}");
    assert!(!plan.contains('\u{202e}') && !plan.contains('\u{1b}'), "{plan}");
}

#[test]
fn what_compactions_took_is_shown_without_secrets_and_with_every_character_visible() {
    let world = World::new();
    let token = fixtures::planted::like("ghp_[0-9a-zA-Z]{36}", 7);
    let session = String::from_utf8(fixtures::get("claude", "own-compaction").bytes()).unwrap();
    let first = "The tests fail since this morning.";
    let hostile = format!("<b>bold</b> \\u202e\\u001b[31m {token} {first}");
    let path = world.claude("one", session.replace(first, &hostile));
    let before = fs::read(&path).unwrap();
    let viewer = world.serve(Which::All);
    let page = viewer.get(&viewer.sessions("")[0]).body;
    assert!(page.contains("<a href=\"losses\">"), "{page}");
    let losses = viewer.get(&format!("{}losses", folder(&viewer))).body;
    assert!(losses.contains("Compaction 1 of 1, claude's own"), "{losses}");
    assert!(losses.contains("none can be put back alone"), "{losses}");
    assert!(losses.contains("<code>epitome show k"), "{losses}");
    assert!(losses.contains("[REDACTED:") && !losses.contains(&token), "{losses}");
    assert!(losses.contains("&lt;b&gt;bold&lt;/b&gt;") && !losses.contains("<b>bold"), "{losses}");
    assert!(!losses.contains('\u{202e}') && !losses.contains('\u{1b}'), "{losses}");
    // After a compaction by epitome, the page shows the command that puts a piece back.
    viewer.post(&format!("{}compact", folder(&viewer)), "recipe=gitclaw");
    if fs::read(&path).unwrap() != before {
        let losses = viewer.get(&format!("{}losses", folder(&viewer))).body;
        assert!(losses.contains("by epitome, recipe gitclaw"), "{losses}");
    }
}

/// The page has the same groups, with the same titles, as the program.
#[test]
fn what_compactions_took_is_grouped_as_the_program_groups_it() {
    let world = World::new();
    let session = String::from_utf8(fixtures::get("claude", "own-compaction").bytes()).unwrap();
    world.claude("one", session);
    let groups = |world: &World| {
        let viewer = world.serve(Which::All);
        let page = viewer.get(&format!("{}losses", folder(&viewer))).body;
        let cards = page.split("<summary><b>").skip(1);
        cards.filter_map(|it| Some(it.split_once("</b>")?.0.to_owned())).collect::<Vec<_>>()
    };
    let plain = groups(&world);
    let expect =
        ["Errors that were not resolved", "Your messages", "Texts of the model", "The rest"];
    assert_eq!(plain, expect);
    world.write("settings/epitome.toml", "compaction.keep.pins = [\"README.md\"]\n");
    let mut pinned = plain.clone();
    pinned.insert(0, "Rules and plans that left".to_owned());
    assert_eq!(groups(&world), pinned);
}

/// The texts that a page offers to put back, by their references.
fn put_back_in(page: &str) -> Vec<&str> {
    let values = page.split("name=\"block\" value=\"").skip(1);
    values.filter_map(|it| Some(it.split_once('"')?.0)).collect()
}

#[test]
fn a_piece_is_put_back_by_its_button() {
    let world = World::new();
    let before = fixtures::get("claude", "pricing").bytes();
    let path = world.claude("one", &before);
    let viewer = world.serve(Which::All);
    let folder = folder(&viewer);
    let plan = viewer.get(&format!("{folder}plan?recipe=transcript")).body;
    assert!(plan.contains("What would leave the context"), "{plan}");
    assert!(plan.contains("<b>The largest of the rest</b>"), "{plan}");
    assert_eq!(put_back_in(&plan), Vec::<&str>::new(), "nothing is gone yet");
    viewer.post(&format!("{folder}compact"), "recipe=transcript");
    let small = fs::read(&path).unwrap();

    let losses = viewer.get(&format!("{folder}losses")).body;
    let offered = put_back_in(&losses);
    let form = format!("block={}", offered[0]);
    assert!(losses.contains("<form method=\"post\" action=\"restore\">"), "{losses}");
    let done = viewer.post(&format!("{folder}restore"), &form);
    assert_eq!(done.status, 200, "{}", done.body);
    assert!(done.body.contains("<h1 role=\"status\">Put back</h1>"), "{}", done.body);
    assert!(done.body.contains("in its place; all else stays"), "{}", done.body);
    let bigger = fs::read(&path).unwrap();
    assert!(small.len() < bigger.len() && bigger.len() < before.len(), "{}", bigger.len());
    let again = viewer.post(&format!("{folder}restore"), &form);
    assert!(again.body.contains("It is there already"), "{}", again.body);
    assert_eq!(fs::read(&path).unwrap(), bigger);

    let after = viewer.get(&format!("{folder}losses")).body;
    assert!(after.contains("in the session again"), "{after}");
    assert!(!put_back_in(&after).contains(&offered[0]), "{after}");
    assert_eq!(put_back_in(&after).len(), offered.len() - 1, "{after}");

    // A text that was not removed, and a text that is no reference.
    for (form, status) in [("block=kfffffff", 404), ("block=..%2F..", 422)] {
        let refused = viewer.post(&format!("{folder}restore"), form);
        assert_eq!(refused.status, status, "{}", refused.body);
    }
    assert_eq!(fs::read(&path).unwrap(), bigger);
    viewer.post(&format!("{folder}restore"), "");
    assert_eq!(fs::read(&path).unwrap(), before);
}

/// A digest has no edits, but is still something to do.
#[test]
fn a_digest_is_planned_and_made_by_its_button() {
    let world = World::new();
    let session = String::from_utf8(fixtures::get("claude", "pricing").bytes()).unwrap();
    world.claude("one", fixtures::grown::claude(&session, 500_000));
    let viewer = world.serve(Which::All);
    let plan = viewer.get(&format!("{}plan?recipe=digest", folder(&viewer))).body;
    assert!(plan.contains("1 digest of ") && plan.contains("Compact it"), "{plan}");
    let done = viewer.post(&format!("{}compact", folder(&viewer)), "recipe=digest");
    assert!(done.body.contains("1 digest of "), "{}", done.body);
}
