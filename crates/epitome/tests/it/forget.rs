//! Forgetting while the disk fails at any step: nothing else is lost, and a repetition completes
//! it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use epitome::archive::each_piece;
use epitome::forget::{
    ForgetAction, ForgetSession, ForgetText, FoundTexts, PlaceKind, SessionChoice,
};
use epitome::keep::{FileKey, Keeper};
use epitome::ops::{Compact, OpenSession};
use epitome::{Config, ErrorKind};
use epitome_redact::{Finder, Rules};
use epitome_store::forgotten::ForgottenText;
use epitome_store::step::{DiskStep, fault};
use epitome_tokens::Estimate;

/// A word in a result of the session, which a compaction removes.
const SECRET: &str = "the-secret-of-pricing";

/// The home of a user with two sessions, which were kept, and of which one was compacted.
struct World {
    _home: tempfile::TempDir,
    config: Config,
    original: Vec<u8>,
    other: Vec<u8>,
}

impl World {
    fn new() -> World {
        let home = tempfile::tempdir().expect("a folder");
        let config = Config::from_home(home.path());
        let folder = home.path().join(".pi/agent/sessions/--p--");
        fs::create_dir_all(&folder).expect("a folder");
        let other = fixtures::get("pi", "pricing").bytes();
        let text = String::from_utf8(other.clone()).expect("text");
        let result = text.find("\"toolResult\"").expect("a result");
        let (before, after) = text.split_at(result);
        let original = format!("{before}{}", after.replacen("\"text\":\"", &with_secret(), 1));
        let path = folder.join("2026-11-18T12-00-00-000Z_0001.jsonl");
        fs::write(&path, &original).expect("a session");
        fs::write(folder.join("2026-11-18T12-00-00-000Z_0002.jsonl"), &other).expect("a session");
        Keeper::open(&config).and_then(|mut keeper| keeper.scan()).expect("they are kept");
        let run = config.begin_run("test");
        let recipe = epitome::built_in("transcript").expect("a recipe");
        let counter = Estimate::new();
        let compact = Compact::new(&recipe, &counter, &run);
        compact.run(&OpenSession::new(&config, &path)).expect("it is compacted");
        assert!(!fs::read_to_string(&path).expect("a session").contains(SECRET));
        World { _home: home, config, original: original.into_bytes(), other }
    }

    /// The first version of a session; `None` if it is not in the vault.
    fn version(&self, id: &str) -> Option<Vec<u8>> {
        let vault = self.config.vault().expect("a vault");
        let file: Option<FileKey> = vault.files().find(|file| file.session == id).cloned();
        let mut bytes = Vec::new();
        vault.write_version(&file?, 1, &mut bytes).expect("it comes back");
        Some(bytes)
    }

    fn session(&self, id: &str) -> ForgetSession {
        match ForgetSession::find(&self.config, id, None).expect("a listing") {
            SessionChoice::One(session) => session,
            SessionChoice::AnyOf(_) | SessionChoice::Nothing => panic!("{id} is stored"),
        }
    }

    /// The paths of the session from which a compaction removed the secret, and of the other one.
    fn paths(&self) -> [PathBuf; 2] {
        let folder = self.config.agents.home.join(".pi/agent/sessions/--p--");
        ["0001", "0002"].map(|id| folder.join(format!("2026-11-18T12-00-00-000Z_{id}.jsonl")))
    }

    /// Whether a text is in any file below the home of epitome.
    fn stores(&self, text: &str) -> bool {
        let has = |bytes: &[u8]| String::from_utf8_lossy(bytes).contains(text);
        files(&self.config.home).iter().any(|file| {
            let mut found = has(&fs::read(file).expect("a file"));
            each_piece(file, |piece| found |= has(piece)).expect("it can be read");
            found
        })
    }
}

fn with_secret() -> String {
    format!("\"text\":\"{SECRET} and {}", "more of the result ".repeat(40))
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        match entry.path().is_dir() {
            true => found.extend(files(&entry.path())),
            false => found.push(entry.path()),
        }
    }
    found
}

#[test]
fn a_text_is_gone_after_a_repetition_whatever_step_failed() {
    let masked = |bytes: &[u8]| {
        let text = String::from_utf8(bytes.to_vec()).expect("text");
        text.replace(SECRET, &"*".repeat(SECRET.len())).into_bytes()
    };
    let mut failed = 0;
    for n in 0..40 {
        let world = World::new();
        assert!(world.stores(SECRET));
        let forget = ForgetText::new(SECRET).expect("a text");
        let first = fault::with(fault::full_at(n), || forget.run(&world.config));
        failed += u64::from(first.is_err());
        if let Err(err) = &first {
            let hint = err.hint().unwrap_or_default();
            assert!(hint.contains("run the same again"), "step {n}: {hint}");
            assert!(!hint.contains("nothing was changed"), "step {n}: {hint}");
        }
        // Nothing else is lost meanwhile.
        assert_eq!(world.version("0002").as_deref(), Some(&*world.other), "step {n}");
        let version = world.version("0001").expect("a version");
        assert!(version == world.original || version == masked(&world.original), "step {n}");
        forget.run(&world.config).expect("it is repeated");
        assert!(!world.stores(SECRET), "step {n}");
        assert_eq!(world.version("0001"), Some(masked(&world.original)), "step {n}");
        assert_eq!(world.version("0002").as_deref(), Some(&*world.other), "step {n}");
        let report = world.config.archive().verify().expect("a report");
        assert!(report.faults.is_empty(), "step {n}: {:?}", report.faults);
        if first.is_ok() {
            break;
        }
    }
    assert!(failed > 5, "{failed} steps");
}

#[test]
fn a_session_is_gone_after_a_repetition_whatever_step_failed() {
    let mut failed = 0;
    for n in 0..40 {
        let world = World::new();
        let find = || match ForgetSession::find(&world.config, "0001", None).expect("a listing") {
            SessionChoice::One(session) => session,
            SessionChoice::AnyOf(_) | SessionChoice::Nothing => panic!("it is stored"),
        };
        let first = fault::with(fault::full_at(n), || find().run(&world.config));
        failed += u64::from(first.is_err());
        assert_eq!(world.version("0002").as_deref(), Some(&*world.other), "step {n}");
        let report = find().run(&world.config).expect("it is repeated");
        assert_eq!(world.version("0001"), None, "step {n}");
        assert!(!world.stores(SECRET), "step {n}");
        assert_eq!(world.version("0002").as_deref(), Some(&*world.other), "step {n}");
        let remaining: Vec<PlaceKind> = report.remaining().map(|place| place.kind).collect();
        assert_eq!(remaining, [PlaceKind::Session], "step {n}");
        if first.is_ok() {
            break;
        }
    }
    assert!(failed > 3, "{failed} steps");
}

#[test]
fn a_text_of_the_records_is_refused_and_nothing_is_changed() {
    let world = World::new();
    let contents = || {
        let all = files(&world.config.home).into_iter();
        all.map(|path| (fs::read(&path).expect("a file"), path)).collect::<Vec<_>>()
    };
    let before = contents();
    // Of manifests, of the list of versions, of both, of what a removal writes, and of packs.
    let texts =
        ["\"splices\":", "\"versions\":[", ".pi/agent/sessions", "\"forgotten\"", "EPITPACK"];
    for text in texts {
        let forget = ForgetText::new(text).expect("a text");
        let planned = forget.plan(&world.config).expect_err("refused").kind();
        let done = forget.run(&world.config).expect_err("refused").kind();
        assert_eq!([planned, done], [ErrorKind::Refused; 2], "{text}");
        assert!(contents() == before, "{text}");
    }
    let refused = ForgetText::new(".pi/agent/sessions").expect("a text").plan(&world.config);
    let refused = refused.expect_err("refused");
    assert!(refused.to_string().contains("the archive of pi "), "{refused}");
    assert!(refused.hint().is_some_and(|hint| hint.contains("epitome forget SESSION")));
}

#[test]
fn a_session_that_cannot_be_changed_does_not_keep_the_text_in_the_vault() {
    let world = World::new();
    let folder = world.config.home.join("../../../.pi/agent/sessions/--p--");
    let folder = folder.canonicalize().expect("a folder");
    let path = folder.join("2026-11-18T12-00-00-000Z_0003.jsonl");
    fs::write(&path, &world.original).expect("a session");
    fs::hard_link(&path, folder.join("../../another-name")).expect("a link");
    let mut forget = ForgetText::new(SECRET).expect("a text");
    forget.sessions = true;
    let report = forget.run(&world.config).expect("all else is done");
    assert!(!world.stores(SECRET));
    let failed: Vec<_> = report.places.iter().filter(|place| place.reason.is_some()).collect();
    let [failed] = failed[..] else { panic!("{report:?}") };
    assert_eq!(failed.name, path.to_string_lossy());
    assert_eq!(failed.action, ForgetAction::Stays);
    assert!(
        failed.reason.as_ref().is_some_and(|reason| reason.contains("more than one name")),
        "{failed:?}"
    );
}

#[test]
fn a_session_that_has_the_text_in_what_is_signed_is_named_with_the_reason() {
    let world = World::new();
    let folder = world.config.agents.home.join(".claude/projects/-p");
    fs::create_dir_all(&folder).expect("a folder");
    let path = folder.join("0f3c9a52-5a3b-4a55-9f0e-000000000001.jsonl");
    let text = String::from_utf8(fixtures::get("claude", "pricing").bytes()).expect("text");
    let signed = text.replacen("\"signature\":\"", &format!("\"signature\":\"{SECRET}"), 1);
    fs::write(&path, &signed).expect("a session");
    let mut forget = ForgetText::new(SECRET).expect("a text");
    forget.sessions = true;
    let report = forget.run(&world.config).expect("all else is done");
    let sessions = report.places.iter().filter(|place| place.kind == PlaceKind::Session);
    let [left] = sessions.collect::<Vec<_>>()[..] else { panic!("{report:?}") };
    assert_eq!((left.action, left.count), (ForgetAction::Stays, 1));
    assert!(left.reason.as_ref().is_some_and(|reason| reason.contains("signed")), "{left:?}");
    assert_eq!(fs::read_to_string(&path).expect("a session"), signed);
}

/// A keeper stores a session with the text after the vault was cleaned.
#[test]
fn what_a_keeper_stores_meanwhile_is_forgotten_as_well() {
    let world = World::new();
    let folder = world.config.agents.home.join(".pi/agent/sessions/--p--");
    fs::write(folder.join("2026-11-18T12-00-00-000Z_0003.jsonl"), &world.original).expect("it");
    let config = world.config.clone();
    let text = ForgottenText::new(SECRET).expect("a text");
    let mut is_stored = false;
    let keeper = move |step| {
        let is_clean = || {
            let found = config.vault().and_then(|vault| vault.versions_with(&text));
            found.is_ok_and(|found| found.is_empty())
        };
        if step == DiskStep::Create && !is_stored && is_clean() {
            is_stored = true;
            Keeper::open(&config).and_then(|mut keeper| keeper.scan()).expect("it is kept");
        }
        Ok(())
    };
    let forget = ForgetText::new(SECRET).expect("a text");
    fault::with(keeper, || forget.run(&world.config)).expect("it is gone");
    assert!(!world.stores(SECRET));
    assert!(world.version("0003").is_some(), "it was kept meanwhile");
}

/// A killed process leaves a temporary file next to the session that it was replacing.
#[test]
fn a_temporary_file_next_to_a_session_goes_with_the_text_in_it() {
    let world = World::new();
    let left = world.paths()[0].with_file_name(".epitome-Ab12.tmp");
    fs::write(&left, &world.original).expect("written");
    let forget = ForgetText::new(SECRET).expect("a text");
    let place = |report: &epitome::forget::ForgetReport| {
        let name = left.to_string_lossy();
        let found = report.places.iter().find(|place| place.name == name);
        found.map(|place| (place.kind, place.count, place.action))
    };
    let expect = Some((PlaceKind::File, 1, ForgetAction::Deleted));
    assert_eq!(place(&forget.plan(&world.config).expect("a plan")), expect);
    assert!(left.exists());
    assert_eq!(place(&forget.run(&world.config).expect("forgotten")), expect);
    assert!(!left.exists());
}

/// A finder of these texts.
fn finder(texts: &[&str]) -> Finder {
    let rules = format!("[[rules]]\nid = 'own'\nregex = '{}'\n", texts.join("|"));
    Finder::new(Rules::parse(&rules).expect("a rule")).expect("a finder")
}

#[test]
fn a_session_that_cannot_be_searched_is_not_passed_over() {
    let world = World::new();
    // No version has the secret: it is only in what the compaction removed.
    let [path, _] = world.paths();
    fs::remove_dir_all(world.config.home.join("vault")).expect("no versions");
    Keeper::open(&world.config).and_then(|mut keeper| keeper.scan()).expect("it is kept");
    let search =
        |session: &ForgetSession| FoundTexts::search(&world.config, session, &finder(&[SECRET]));
    let mut failed = 0;
    for n in 0.. {
        let session = world.session("0001");
        let found = fault::with(fault::unreadable_at(n), || search(&session));
        let Ok(found) = found else {
            failed += 1;
            continue;
        };
        let is_warned = found.missing.iter().any(|what| what.starts_with(&*path.to_string_lossy()));
        assert!(found.forget.is_some() || is_warned, "step {n}");
        if n > 2 * failed + 20 {
            break;
        }
    }
    assert!(failed > 2, "{failed} steps");
    // What is no session has nothing to find.
    fs::write(&path, "no session").expect("written");
    assert!(search(&world.session("0001")).expect("searched").forget.is_none());
}

#[test]
fn of_what_rules_find_the_texts_of_records_stay_and_the_others_go() {
    let world = World::new();
    let [path, _] = world.paths();
    let session = String::from_utf8(world.original.clone()).expect("text");
    // The folder of the session is in its path, which the records name.
    let folder = path.parent().expect("a folder").to_string_lossy().into_owned();
    fs::write(&path, session.replace(SECRET, &format!("{SECRET} in {folder}"))).expect("written");
    Keeper::open(&world.config).and_then(|mut keeper| keeper.scan()).expect("it is kept");
    let session = world.session("0001");
    let found = FoundTexts::search(&world.config, &session, &finder(&[SECRET, &folder]));
    let found = found.expect("searched");
    assert_eq!(found.by_rule, BTreeMap::from([("own".to_owned(), 1)]));
    let report = found.forget.expect("a text").run(&world.config).expect("it is gone");
    assert_eq!(report.left_out, found.left_out);
    let [left] = &found.left_out[..] else { panic!("{:?}", found.left_out) };
    assert_eq!(left.rule, "own");
    assert!(left.reason.contains("epitome's own records"), "{left:?}");
    assert!(!left.reason.contains(&folder), "{left:?}");
    assert!(!world.stores(SECRET) && world.stores(&folder));
}
