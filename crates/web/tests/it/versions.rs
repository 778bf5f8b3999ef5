//! The versions of a session, and sessions that were deleted.

use std::fs;

use epitome::keep::Keeper;
use epitome_web::Which;

use crate::world::World;

/// A session that was written in two steps, and is then deleted.
fn kept(world: &World) -> std::path::PathBuf {
    let bytes = fixtures::get("pi", "pricing").bytes();
    let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    let path = world.pi("01a1fbbd-1a90-75a1-9b38-7d1e8576fdb5", lines[..6].concat());
    let mut keeper = Keeper::open(&world.config).expect("a vault");
    keeper.scan().expect("a scan");
    fs::write(&path, &bytes).expect("a session");
    keeper.scan().expect("a scan");
    path
}

fn links(page: &str, to: &str) -> Vec<String> {
    let found = page.split("href=\"").skip(1).filter_map(|it| it.split('"').next());
    found.filter(|link| link.contains(to)).map(|link| link.replace("../", "")).collect()
}

#[test]
fn a_session_is_shown_as_it_was_at_each_version() {
    let world = World::new();
    kept(&world);
    let viewer = world.serve(Which::All);
    let page = viewer.sessions("")[0].clone();
    assert!(viewer.get(&page).body.contains("href=\"history\""));
    let history = viewer.get(&page.replace("session.html", "history"));
    assert_eq!(history.status, 200, "{}", history.body);
    let versions = links(&history.body, "v/");
    assert_eq!(versions.len(), 2, "{}", history.body);
    let (last, first) = (viewer.get(&versions[0]).body, viewer.get(&versions[1]).body);
    assert!(last.contains("This is the session as it was then."), "{last}");
    assert!(last.len() > 2 * first.len(), "the first version is shorter");
    assert!(first.contains("The tests fail since this morning."), "{first}");
    // Nothing on these pages changes the session.
    for page in [&history.body, &last, &first] {
        assert!(!page.contains("<form") && !page.contains("data-stamp"), "{page}");
    }
    for wrong in ["v/x/session.html", "v/x-1/session.html"] {
        assert_eq!(viewer.get(wrong).status, 404, "{wrong}");
    }
    let missing = versions[0].replace("-2/", "-3/");
    assert_eq!(viewer.get(&missing).status, 404, "{missing}");
}

#[test]
fn a_session_without_versions_says_how_they_are_kept() {
    let world = World::new();
    world.pi("0001", fixtures::get("pi", "pricing").bytes());
    let viewer = world.serve(Which::All);
    let page = viewer.sessions("")[0].replace("session.html", "history");
    let history = viewer.get(&page);
    assert_eq!(history.status, 200);
    assert!(history.body.contains("epitome keep --all"), "{}", history.body);
}

#[test]
fn a_deleted_session_is_in_the_list_and_its_versions_are_shown() {
    let world = World::new();
    let path = kept(&world);
    fs::remove_file(&path).expect("a session");
    let viewer = world.serve(Which::All);
    // No keeper has seen yet that it was deleted.
    let list = viewer.whole_list();
    assert!(list.contains("Deleted sessions"), "{list}");
    Keeper::open(&world.config).expect("a vault").scan().expect("a scan");
    let list = viewer.whole_list();
    assert!(list.contains("Deleted sessions"), "{list}");
    assert!(!viewer.get("?agent=claude").body.contains("Deleted sessions"));
    let history = viewer.get(&links(&list, "/history")[0]).body;
    assert!(history.contains(" · deleted"), "{history}");
    assert!(history.contains("epitome restore 01a1fbbd-1a90-75a1-9b38-7d1e8576fdb5 --at 2"));
    let version = viewer.get(&links(&list, "v/")[0]);
    assert_eq!(version.status, 200);
    assert!(version.body.contains("The tests fail since this morning."));
    // A viewer of another agent shows neither.
    let other = world.serve(Which::Of("claude".to_owned()));
    assert!(!other.get("").body.contains("Deleted sessions"));
    assert_eq!(other.get(&links(&list, "v/")[0]).status, 404);
}
