//! The pages of a session, and turns that are appended while a page is open.

use std::fs;

use crate::world::{Viewer, World, append};
use epitome_web::Which;
use serde_json::{Value, json};

fn lines(session: &[u8]) -> Vec<&[u8]> {
    session.split_inclusive(|&byte| byte == b'\n').collect()
}

/// The address of the events of a session's page, if that is the only page of the session.
fn tail(viewer: &Viewer, page: &str) -> String {
    let body = viewer.get(page).body;
    let stamp = body.split("data-stamp=\"").nth(1).and_then(|it| it.split('"').next());
    let folder = page.trim_end_matches("session.html");
    format!("{folder}tail?file=session.html&since={}", stamp.expect("the page follows"))
}

#[test]
fn a_session_is_shown_as_it_is_rendered_without_its_secrets() {
    let world = World::new();
    let fixture = fixtures::get("claude", "pricing");
    let path = world.claude("one", fixture.bytes());
    let folder = path.with_extension("").join("subagents");
    fs::create_dir_all(&folder).unwrap();
    for agent in fixture.sub_agents() {
        fs::copy(&agent, folder.join(agent.file_name().unwrap())).unwrap();
    }
    let viewer = world.serve(Which::All);
    let page = viewer.sessions("")[0].clone();
    let response = viewer.get(&page);
    assert_eq!(response.status, 200);
    assert!(response.body.contains("The tests fail since this morning."));
    assert!(response.body.contains("<section class=\"turn\" id=\"t1\""));
    assert!(
        !response.body.contains("<style") && !response.body.contains("style=\""),
        "the policy forbids"
    );
    let agent = page.replace("session.html", "agent1.html");
    assert!(response.body.contains("href=\"agent1.html\""), "{}", response.body);
    assert!(viewer.get(&agent).body.contains("A sub-agent of <a href=\"session.html\">"));
    assert_eq!(viewer.get(&page.replace("session.html", "session-2.html")).status, 404);
    assert_eq!(viewer.get(&page.replace("session.html", "agent2.html")).status, 404);
}

#[test]
fn an_address_that_asks_for_nothing_known_is_answered_with_a_page() {
    let world = World::new();
    world.claude("one", fixtures::get("claude", "pricing").bytes());
    let viewer = world.serve(Which::All);
    let page = viewer.sessions("")[0].clone();
    for name in ["tail", "tail?file=session.html", "at", "at?m=1&part=x"] {
        let answer = viewer.get(&page.replace("session.html", name));
        let has_problem = answer.body.contains("That did not work");
        assert_eq!((answer.status, has_problem), (400, true), "{name}: {}", answer.body);
    }
}

#[test]
fn the_links_of_an_error_page_work_at_every_depth() {
    let world = World::new();
    world.claude("one", fixtures::get("claude", "pricing").bytes());
    let viewer = world.serve(Which::All);
    let page = viewer.sessions("")[0].clone();
    for path in ["?q=1&q=2", "search?q=1&q=2", &page.replace("session.html", "tail")] {
        let error = viewer.get(path);
        assert_eq!(error.status, 400, "{path}");
        let links = error.body.split("href=\"").skip(1).filter_map(|it| it.split('"').next());
        let links: Vec<&str> = links.filter(|link| !link.starts_with("data:")).collect();
        assert!(links.contains(&&*viewer.path("viewer.css")), "{path}: {links:?}");
        for link in links {
            assert_eq!(viewer.ask("GET", link, &[], "").status, 200, "{path}: {link}");
        }
    }
}

#[test]
fn a_message_is_found_on_its_page_by_its_place() {
    let world = World::new();
    let session = String::from_utf8(fixtures::get("claude", "pricing").bytes()).unwrap();
    world.claude("one", fixtures::grown::claude(&session, 8_000_000));
    let viewer = world.serve(Which::All);
    let page = viewer.sessions("")[0].clone();
    let second = viewer.get(&page.replace("session.html", "session-2.html")).body;
    assert!(second.contains("page 2 of "), "{second}");
    let anchor = second.split(" id=\"m").nth(1).and_then(|it| it.split('"').next()).unwrap();
    let at = viewer.get(&page.replace("session.html", &format!("at?m={anchor}")));
    assert_eq!(at.status, 303);
    assert!(at.head.contains(&format!("location: session-2.html#m{anchor}\r")), "{}", at.head);
}

#[test]
fn what_is_appended_is_told_to_who_reads() {
    let world = World::new();
    let session = fixtures::get("pi", "pricing").bytes();
    let records = lines(&session);
    let asks = |line: &&[u8]| {
        let record: Value = serde_json::from_slice(line).unwrap_or_default();
        record["message"]["role"] == json!("user")
    };
    let second = records.iter().skip(6).position(asks).expect("a second turn") + 6;
    let path = world.pi("one", records[..second].concat());
    let viewer = world.serve(Which::All);
    let page = viewer.sessions("")[0].clone();
    let events = viewer.follow(&tail(&viewer, &page));
    append(&path, &records[second..].concat());
    // The viewer may read the file while it is appended to, and then tells of it in several parts.
    let mut turns = serde_json::Map::new();
    loop {
        let change: Value = serde_json::from_str(&events.next("changed")).unwrap();
        turns.extend(change["turns"].as_object().unwrap().clone());
        if change["order"] == json!(["t1", "t2", "t3", "t4", "t5"]) {
            break;
        }
    }
    assert!(turns["t2"].as_str().unwrap().contains("Now write docs/manual.md"), "{turns:?}");
    // The session was replaced by a shorter one: removed turns are missing from the order, and
    // unchanged turns are not sent again.
    let put = |bytes: &[u8]| {
        let new = world.write("new", bytes);
        fs::rename(new, &path).unwrap();
    };
    put(&records[..second].concat());
    let change: Value = serde_json::from_str(&events.next("changed")).unwrap();
    assert_eq!((&change["order"], &change["turns"]), (&json!(["t1"]), &json!({})));
    put(b"");
    assert!(events.next("unreadable").contains("the file is empty"));
    put(&session);
    let change: Value = serde_json::from_str(&events.next("changed")).unwrap();
    assert_eq!(change["order"], json!(["t1", "t2", "t3", "t4", "t5"]));
}

#[test]
fn a_page_of_a_long_session_leads_to_a_search_of_that_session() {
    let world = World::new();
    let message = |session: &str, n: u32, text: &str| {
        let record = json!({
            "type": "user", "uuid": format!("u{n}"), "parentUuid": Value::Null,
            "sessionId": session, "cwd": "/srv/app", "timestamp": "2026-11-20T10:00:00Z",
            "message": { "role": "user", "content": text },
        });
        format!("{record}\n")
    };
    let long = "word ".repeat(80_000);
    let one = [message("one", 0, &long), message("one", 1, &long), message("one", 2, "a kestrel")];
    world.claude("one", one.concat());
    world.claude("two", message("two", 0, "a kestrel"));
    let viewer = world.serve(Which::All);
    let bodies = viewer.sessions("").into_iter().map(|page| viewer.get(&page).body);
    let links: Vec<String> = bodies
        .filter_map(|body| Some(body.split_once("data-search=\"../../")?.1.to_owned()))
        .map(|rest| rest.split('"').next().expect("an end").to_owned())
        .collect();
    assert_eq!(links, ["search?q=session%3Aone%20"], "of the session that has pages");
    // The response to the script's request.
    let answers = (0..200).map(|_| viewer.get(&format!("{}kestrel&part=hits", links[0])).body);
    let found = answers.into_iter().find(|body| !body.contains("id=\"indexing\""));
    assert_eq!(found.expect("it is indexed").matches("<li class=\"hit\"").count(), 1);
}
