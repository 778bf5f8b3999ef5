//! Versions on a second machine: exported and imported.

use std::fs;
use std::path::PathBuf;

use crate::vault::{at, kept, place};
use crate::world::World;
use crate::world::sessions::{self, PI};

/// Exports from `world` to a new file.
fn export(world: &World, name: &str, args: &[&str]) -> PathBuf {
    let tar = world.home.join(name);
    let out = ["--out", tar.to_str().expect("text")];
    let exported = world.run(&[&["archive", "export"], args, &out[..]].concat());
    assert!(exported.ends_with("--- status 0\n"), "{exported}");
    tar
}

fn import(world: &World, tar: &std::path::Path) -> String {
    world.run(&["archive", "import", tar.to_str().expect("text")])
}

/// Checks that each version of another machine comes back on this one, in the agent's own place.
fn check(world: &World, versions: &[Vec<u8>]) {
    let path = place(world);
    for (n, expect) in versions.iter().enumerate() {
        let number = (n + 1).to_string();
        let out = world.home.join(format!("v{number}.jsonl"));
        let name = out.to_str().expect("text");
        assert_eq!(world.status(&["restore", PI, "--at", &number, "--out", name]), 0);
        assert_eq!(&fs::read(&out).expect("a version"), expect, "version {number}");
    }
    let restored = world.run(&["restore", PI, "--at", "2", "--yes"]);
    assert!(restored.ends_with("--- status 0\n"), "{restored}");
    assert_eq!(fs::read(&path).expect("a session"), versions[1]);
}

#[test]
fn every_version_of_a_machine_comes_back_on_an_empty_one() {
    let (first, second) = (World::new(), World::new());
    let versions = kept(&first);
    let tar = export(&first, "versions.tar", &["--vault"]);
    let imported = import(&second, &tar);
    assert!(imported.contains(&format!("pi {PI}: 5 versions of machine ")), "{imported}");
    assert!(imported.contains("imported 5 versions, 0 were here already"), "{imported}");
    let deleted = second.json(&["list", "--deleted", "--json"]);
    assert_eq!((&deleted[0]["session"], &deleted[0]["version"]), (&PI.into(), &4.into()));
    let history = second.run(&["history", PI]);
    assert!(history.contains("(machine "), "{history}");
    assert!(second.run(&["archive", "verify"]).contains("all bytes match their hashes"));
    check(&second, &versions);
    let again = import(&second, &tar);
    assert!(again.contains("imported 0 versions, 5 were here already"), "{again}");
    // The session is now here as well, with a version of its own.
    at(&second, "11:00", &["keep", "--all", "--once"]);
    let history = second.json(&["history", PI, "--json"]);
    assert_eq!(history[0]["versions"].as_array().map(Vec::len), Some(1));
    let other = &history[0]["elsewhere"][0];
    assert_eq!(other["versions"].as_array().map(Vec::len), Some(5));
    assert_eq!(other["other_machine"], true);
    let machine = other["machine"].as_str().expect("a machine");
    assert_eq!(
        second.status(&["restore", PI, "--at", &format!("{}/1", &machine[..4]), "--yes"]),
        0
    );
    assert_eq!(fs::read(place(&second)).expect("a session"), versions[0]);
    // What was there before is kept under this machine's name.
    assert_eq!(second.status(&["restore", PI, "--at", "1", "--yes"]), 0);
    assert_eq!(fs::read(place(&second)).expect("a session"), versions[1]);
    assert_eq!(second.json(&["list", "--deleted", "--json"]), Vec::<serde_json::Value>::new());
}

#[test]
fn a_session_is_exported_with_its_versions_alone() {
    let (first, second) = (World::new(), World::new());
    first.claude(sessions::CLAUDE, sessions::claude(sessions::CLAUDE));
    let versions = kept(&first);
    let tar = export(&first, "session.tar", &[PI, "--vault"]);
    let imported = import(&second, &tar);
    assert!(imported.contains("imported 5 versions, 0 were here already"), "{imported}");
    assert!(imported.contains("joins neither the archive nor the session's file"), "{imported}");
    assert_eq!(second.status(&["history", sessions::CLAUDE]), 3);
    check(&second, &versions);
    // Now the session is here, and what a compaction had removed joins it.
    let again = import(&second, &tar);
    assert!(again.contains("imported 1 generation, 0 were here already"), "{again}");
    let refused = second.run(&["archive", "export", sessions::CLAUDE, "--vault"]);
    assert!(refused.contains("no version of"), "{refused}");
}

#[test]
fn what_was_forgotten_is_not_imported_again() {
    let (first, second) = (World::new(), World::new());
    kept(&first);
    let tar = export(&first, "session.tar", &[PI, "--vault"]);
    import(&second, &tar);
    // With the session here, the compaction of the archive is imported as well.
    assert_eq!(second.status(&["restore", PI, "--at", "2", "--yes"]), 0);
    let joined = import(&second, &tar);
    assert!(joined.contains("imported 1 generation, 0 were here already"), "{joined}");
    assert_eq!(second.status(&["forget", PI, "--yes"]), 0);
    let again = import(&second, &tar);
    assert!(again.contains("1 generation of sessions that were forgotten here"), "{again}");
    assert!(again.contains("5 versions of sessions that were forgotten here"), "{again}");
    assert_eq!(second.status(&["history", PI]), 3);
}

/// The packs were lost, and the home is another one now: what is imported is of this machine, under
/// paths of the old home.
#[test]
fn versions_of_a_moved_home_are_imported_as_those_of_its_sessions() {
    let (first, second) = (World::new(), World::new());
    let versions = kept(&first);
    let tar = export(&first, "versions.tar", &["--vault"]);
    let name = ".local/share/epitome/vault/machine";
    second.write(name, fs::read(first.home.join(name)).expect("a name"));
    let imported = import(&second, &tar);
    assert!(imported.contains("imported 5 versions, 0 were here already"), "{imported}");
    let numbers = |history: &serde_json::Value| -> Vec<u64> {
        let versions = history["versions"].as_array().expect("versions").iter();
        versions.filter_map(|it| it["version"].as_u64()).collect()
    };
    let history = second.json(&["history", PI, "--json"]);
    crate::world::check("history.schema.json", &history);
    assert_eq!(
        (numbers(&history[0]), &history[0]["other_machine"]),
        (vec![1, 2, 3, 4, 5], &serde_json::Value::Null)
    );
    let deleted = second.json(&["list", "--deleted", "--json"]);
    assert_eq!((deleted.len(), &deleted[0]["version"]), (1, &4.into()));
    check(&second, &versions);
    at(&second, "11:00", &["keep", "--all", "--once"]);
    assert_eq!(second.json(&["list", "--deleted", "--json"]), Vec::<serde_json::Value>::new());
    let history = second.json(&["history", PI, "--json"]);
    crate::world::check("history.schema.json", &history);
    assert_eq!(numbers(&history[0]), [1, 2, 3, 4, 5, 6]);
    let last = &history[0]["versions"][5];
    assert_eq!(last["reason"], serde_json::json!({"restored_version": {"version": 2}}));
    let path = first.home.join(place(&first).strip_prefix(&first.home).expect("below it"));
    assert_eq!(history[0]["versions"][4]["earlier_path"], path.to_str().expect("text"));
    // A session has one line, although it was kept at two paths.
    let third = World::new();
    let imported = import(&third, &export(&second, "both.tar", &["--vault"]));
    assert_eq!(imported.matches(&format!("pi {PI}: ")).count(), 1, "{imported}");
    assert!(imported.contains(&format!("pi {PI}: 6 versions of machine ")), "{imported}");
    // The full old path and the new one name the same session.
    for name in [path.to_str(), place(&second).to_str()] {
        let again = second.json(&["history", name.expect("text"), "--json"]);
        assert_eq!(again, history, "{name:?}");
    }
}

#[test]
fn an_import_of_damaged_versions_adds_the_others_and_fails() {
    let (first, second) = (World::new(), World::new());
    kept(&first);
    let vault = first.home.join(".local/share/epitome/vault");
    let machine = fs::read_to_string(vault.join("machine")).expect("a name");
    let pack = vault.join(machine.trim()).join("000003.pack");
    let mut bytes = fs::read(&pack).expect("a pack");
    bytes[100] ^= 1;
    fs::write(&pack, bytes).expect("a pack");
    let tar = export(&first, "versions.tar", &[PI, "--vault"]);
    let imported = import(&second, &tar);
    assert!(imported.contains("2 versions cannot be restored from it"), "{imported}");
    assert!(imported.contains("imported 3 versions, 0 were here already"), "{imported}");
    assert!(imported.ends_with("--- status 5\n"), "{imported}");
}

#[test]
fn imported_generations_are_named_even_if_the_versions_cannot_be_added() {
    let (first, second) = (World::new(), World::new());
    kept(&first);
    let tar = export(&first, "session.tar", &[PI, "--vault"]);
    import(&second, &tar);
    // With the session here, the generation joins it.
    assert_eq!(second.status(&["restore", PI, "--at", "2", "--yes"]), 0);
    let name = second.home.join(".local/share/epitome/vault/machine");
    fs::remove_file(&name).expect("a name");
    fs::create_dir(&name).expect("a folder");
    let imported = import(&second, &tar);
    assert!(imported.contains("imported 1 generation, 0 were here already"), "{imported}");
    assert!(!imported.ends_with("--- status 0\n"), "{imported}");
}

#[test]
fn an_export_without_its_end_is_refused() {
    let (first, second) = (World::new(), World::new());
    kept(&first);
    let tar = export(&first, "versions.tar", &["--vault"]);
    let bytes = fs::read(&tar).expect("an export");
    // All packs are whole, but there may have been more.
    fs::write(&tar, &bytes[..bytes.len() - 1024]).expect("written");
    let refused = import(&second, &tar);
    assert!(refused.contains("the export is cut off"), "{refused}");
    assert_eq!(second.status(&["history", PI]), 3);
    assert_eq!(crate::world::trouble::leftovers(&second), Vec::<PathBuf>::new());
}
