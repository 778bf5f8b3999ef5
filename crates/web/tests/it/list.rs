//! The list of sessions.

use crate::world::World;
use epitome_web::Which;
use serde_json::json;

/// A session of Claude Code of a few words.
fn session(id: &str, cwd: &str, words: &str) -> String {
    let line = json!({
        "type": "user", "uuid": format!("{id}-1"), "parentUuid": null, "sessionId": id, "cwd": cwd,
        "timestamp": "2026-11-18T10:00:00.000Z", "message": {"role": "user", "content": words},
    });
    format!("{line}\n")
}

#[test]
fn sessions_of_all_agents_stand_in_one_list_that_can_be_narrowed() {
    let world = World::new();
    world.claude("aaaa", session("aaaa", "/srv/bakery", "Count the loaves, please"));
    world.claude("bbbb", session("bbbb", "/srv/garden", "Water the roses"));
    let long = "The pond is full of frogs. ".repeat(50);
    world.claude("cccc", session("cccc", "/srv/garden", &long));
    world.pi("dddd", fixtures::get("pi", "pricing").bytes());
    let viewer = world.serve(Which::All);
    assert_eq!(viewer.sessions("").len(), 4);
    let narrowed = [
        ("?agent=pi", 1),
        ("?agent=claude", 3),
        ("?q=roses", 1),
        ("?q=WATER+garden", 1),
        ("?q=garden", 2),
        ("?q=garden&agent=pi", 0),
        ("?state=compacted", 0),
        ("?state=whole&agent=pi", 1),
        ("?q=bbbb", 1),
        ("?q=water+loaves", 0),
    ];
    viewer.whole_list();
    for (query, n) in narrowed {
        assert_eq!(viewer.sessions(query).len(), n, "{query}");
    }
    let list = viewer.whole_list();
    let garden = list.split("<option value=\"").find(|it| it.contains("/srv/garden (2)"));
    let garden = garden.and_then(|it| it.split('"').next()).expect("a project to choose");
    assert_eq!(viewer.sessions(&format!("?project={garden}")).len(), 2);
    let by_size = viewer.get("?sort=size").body;
    let at = |words: &str| by_size.find(words).expect(words);
    let (largest, frogs, roses) = (at("tests fail"), at("full of frogs"), at("Water the roses"));
    assert!(largest < frogs && frogs < roses);
}

#[test]
fn what_cannot_be_read_is_last_in_every_order() {
    let world = World::new();
    let write = |id: &str, words: &str, age: u64| {
        let path = world.claude(id, session(id, "/p", words));
        world.set_age(&path, age);
    };
    write("aaaa", "Hello one", 30);
    write("bbbb", "Hello two, and more of it", 20);
    world.write("claude/projects/-p/cccc.jsonl", "not a session\n".repeat(100));
    let viewer = world.serve(Which::All);
    viewer.whole_list();
    for (query, expect) in [
        ("", ["two", "one", "cccc"]),
        ("?sort=time", ["two", "one", "cccc"]),
        ("?sort=size", ["two", "one", "cccc"]),
        ("?sort=saving", ["two", "one", "cccc"]),
    ] {
        let list = viewer.get(query).body;
        let rows = list.split("<li class=\"row\">").skip(1);
        let name = |row: &str| expect.into_iter().find(|name| row.contains(name));
        assert_eq!(rows.map(name).collect::<Vec<_>>(), expect.map(Some), "{query}");
    }
}

#[test]
fn a_new_session_is_there_when_the_list_is_looked_at_again() {
    let world = World::new();
    let viewer = world.serve(Which::All);
    assert_eq!(viewer.sessions(""), Vec::<String>::new());
    world.claude("aaaa", session("aaaa", "/p", "Hello"));
    assert_eq!(viewer.sessions("").len(), 1);
    assert!(viewer.whole_list().contains("Hello"));
}

#[test]
fn long_lists_come_in_pages() {
    let world = World::new();
    for n in 0..230 {
        let id = format!("{n:04}");
        world.claude(&id, session(&id, "/p", "Hello"));
    }
    let viewer = world.serve(Which::All);
    let lengths = ["", "?page=2", "?page=3", "?page=99"].map(|it| viewer.sessions(it).len());
    assert_eq!(lengths, [100, 100, 30, 30]);
    let mut all: Vec<String> =
        ["", "?page=2", "?page=3"].iter().flat_map(|it| viewer.sessions(it)).collect();
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 230);
}

#[test]
fn only_sessions_of_a_folder_or_of_an_agent_are_shown_where_that_was_asked_for() {
    let world = World::new();
    world.claude("aaaa", session("aaaa", "/p", "In its place"));
    world.pi("dddd", fixtures::get("pi", "pricing").bytes());
    world.write("kept/deep/x.jsonl", session("x", "/p", "Kept elsewhere"));
    let of = |which| world.serve(which).get("").body;
    assert!(of(Which::Of("pi".to_owned())).contains("<b>1 session</b>"));
    let below = of(Which::Below(world.home.join("kept")));
    assert!(below.contains("<b>1 session</b>") && below.contains("Kept elsewhere"), "{below}");
}

#[test]
fn titles_and_projects_are_without_secrets() {
    let world = World::new();
    let token = fixtures::planted::like("ghp_[0-9a-zA-Z]{36}", 7);
    world.claude("aaaa", session("aaaa", &format!("/srv/{token}"), &format!("Use {token} now")));
    let viewer = world.serve(Which::All);
    let list = viewer.whole_list();
    assert!(list.contains("[REDACTED:"), "{list}");
    assert!(!list.contains(&token), "{list}");
}
