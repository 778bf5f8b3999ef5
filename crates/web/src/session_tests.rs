use std::fs;
use std::path::{Path as FilePath, PathBuf};
use std::sync::atomic::Ordering;

use epitome::{Config, Settings};
use epitome_redact::{Finder, Person};
use epitome_tokens::Estimate;

use super::*;
use crate::options::{Options, Which};

/// A viewer of the sessions in a temporary folder.
fn viewer(home: &FilePath) -> Viewer {
    let mut config = Config::from_home(home);
    config.home = home.join("epitome");
    config.settings = home.join("settings");
    config.person = Person::default();
    let rules = epitome::redact::rules(&config, &[]).expect("rules");
    let options = Options {
        settings: Settings::load(&config, &[]).expect("settings"),
        which: Which::Below(home.join("sessions")),
        finder: Some(Finder::new(rules).expect("rules that can be compiled")),
        counter: &const { Estimate::new() },
        config,
    };
    let (_, stopped) = tokio::sync::watch::channel(false);
    Viewer::new(options, "/".to_owned(), stopped)
}

fn write(path: PathBuf, bytes: impl AsRef<[u8]>) -> PathBuf {
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    fs::write(&path, bytes).expect("a file");
    path
}

/// A session of Claude Code of several pages: messages of the user, each of 400 kB.
fn long_session() -> String {
    let words = "All of it. ".repeat(40_000);
    let record = |n: usize| {
        let parent = n.checked_sub(1).map_or("null".to_owned(), |parent| format!("\"u{parent}\""));
        let message = format!(r#"{{"role":"user","content":"{n} {words}"}}"#);
        let head = format!(r#""sessionId":"one","uuid":"u{n}","parentUuid":{parent}"#);
        format!("{{\"type\":\"user\",{head},\"message\":{message}}}\n")
    };
    (0..4).map(record).collect()
}

#[test]
fn a_session_is_read_once_for_all_of_its_pages_until_a_file_of_it_changes() {
    let dir = tempfile::tempdir().expect("a folder");
    let fixture = fixtures::get("claude", "pricing");
    let path = write(dir.path().join("sessions/one.jsonl"), long_session());
    let agent = fs::read(&fixture.sub_agents()[0]).expect("a file");
    let agent = write(dir.path().join("sessions/one/subagents/agent-abcdef1.jsonl"), agent);
    let viewer = viewer(dir.path());
    let session = viewer.files().into_iter().find(|file| file.path == path).expect("it is there");
    let reads = |part, page| {
        let found_sheet = sheet(&viewer, &session, part, page).map_err(|problem| problem.message);
        (
            found_sheet.map(|found_sheet| found_sheet.file.clone()),
            viewer.reads.load(Ordering::Relaxed),
        )
    };
    let file = |name: &str| Ok(name.to_owned());
    assert_eq!(reads(0, 0), (file("session.html"), 1));
    assert_eq!(reads(0, 1), (file("session-2.html"), 1));
    assert_eq!(reads(1, 0), (file("agent1.html"), 1));
    assert_eq!(reads(0, 999), (Err("the session has no such page".to_owned()), 1));
    let append = |path: &FilePath| {
        let mut bytes = fs::read(path).expect("a file");
        bytes.extend_from_slice(b"\n");
        fs::write(path, bytes).expect("a file");
    };
    append(&agent);
    assert_eq!(reads(0, 1), (file("session-2.html"), 2));
    append(&path);
    assert_eq!(reads(0, 1), (file("session-2.html"), 3));
    write(agent.with_file_name("agent-abcdef2.jsonl"), fs::read(&agent).expect("a file"));
    assert_eq!(reads(2, 0), (file("agent2.html"), 4));
    assert_eq!(reads(0, 0), (file("session.html"), 4));
    assert!(sheet_alone(&viewer, &session, 0, 0).is_ok());
    assert_eq!(viewer.reads.load(Ordering::Relaxed), 5);
}

#[test]
fn of_a_long_session_the_page_that_is_asked_for_and_those_after_it_are_kept() {
    let dir = tempfile::tempdir().expect("a folder");
    write(dir.path().join("sessions/one.jsonl"), long_session());
    let viewer = viewer(dir.path());
    let session = viewer.files().swap_remove(0);
    let found_pages = viewer.with_pages(&session, |pages| {
        let kept = |most: usize| {
            let laid_out = LaidOut::from_pages(pages, (0, 1), most);
            let mut kept: Vec<usize> = laid_out.sheets.keys().map(|(_, page)| *page).collect();
            kept.sort_unstable();
            kept
        };
        let all: Vec<usize> = (0..pages[0].pages()).collect();
        assert!(all.len() > 1);
        let next = if all.len() > 2 { 2 } else { 0 };
        let both = pages[0].sheet(1).len() + pages[0].sheet(next).len();
        assert_eq!(kept(0), [1]);
        assert_eq!(kept(both - 1), [1]);
        assert_eq!(kept(both).len(), 2);
        assert_eq!(kept(usize::MAX), all);
    });
    assert!(found_pages.is_ok());
}

#[test]
fn a_compacted_session_is_shown_as_it_was_with_a_button_that_restores_it() {
    let dir = tempfile::tempdir().expect("a folder");
    let bytes = fixtures::get("claude", "pricing").bytes();
    // The file's name is not the id: the archive has the session under the id in the file.
    let path = write(dir.path().join("sessions/one.jsonl"), &bytes);
    let viewer = viewer(dir.path());
    let page = || {
        let session = viewer.files().into_iter().find(|it| it.path == path).expect("it is there");
        let page_sheet =
            sheet(&viewer, &session, 0, 0).unwrap_or_else(|_| panic!("it is laid out"));
        body(&viewer, &session, &page_sheet, &Stamp::read(&path)).into_string()
    };
    let figures = |page: &str| {
        let (_, rest) = page.split_once("<dl class=\"figures\">").expect("figures");
        rest.split_once("</dl>").expect("an end").0.to_owned()
    };
    let before = page();
    assert!(!before.contains("action=\"restore\"") && !before.contains("class=\"past\""));

    let config = &viewer.options.config;
    let recipe = epitome_passes::built_in("epitome").expect("a recipe");
    let recipe =
        epitome_passes::Recipe { keep: Default::default(), trigger: Default::default(), ..recipe };
    let run = config.begin_run("test");
    let opened = epitome::ops::OpenSession::new(config, &path);
    let compact = epitome::ops::Compact::new(&recipe, viewer.options.counter, &run);
    compact.run(&opened).unwrap_or_else(|err| panic!("{err}"));
    assert!(fs::read(&path).expect("a file").len() < bytes.len());

    let after = page();
    assert_eq!(figures(&after), figures(&before));
    assert!(after.contains("by the recipe epitome. Shown as it was:"), "{after}");
    assert!(after.contains("action=\"restore\"") && after.contains(">not sent</span>"), "{after}");
    assert!(after.contains("1 compaction</figcaption>"), "{after}");

    let reads = || viewer.reads.load(Ordering::Relaxed);
    let before = reads();
    page();
    assert_eq!(reads(), before, "it is as it was laid out");
    fs::remove_dir_all(epitome::archive::Archive::folder_in(&config.home)).expect("an archive");
    let alone = page();
    assert_eq!(reads(), before + 1, "its archive is gone");
    assert!(!alone.contains("action=\"restore\""), "{alone}");
    assert!(alone.contains("their texts are not in the archive"), "{alone}");
}
