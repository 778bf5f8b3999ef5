//! The overview: the usage and the savings of all sessions.

use crate::world::World;
use epitome_web::Which;

#[test]
fn what_sessions_used_is_summed_and_what_is_not_known_is_said() {
    let world = World::new();
    let usage = r#""usage":{"input_tokens":100000,"output_tokens":0,"cache_read_input_tokens":0}"#;
    let line = |id: &str, model: &str, usage: &str| {
        format!(
            "{{\"type\":\"assistant\",\"uuid\":\"u\",\"parentUuid\":null,\
             \"sessionId\":\"{id}\",\"cwd\":\"/srv/<b>\",\
             \"timestamp\":\"2026-11-20T10:00:00Z\",\"message\":{{\"id\":\"m\",\
             \"role\":\"assistant\",\"model\":\"{model}\",\
             \"content\":[{{\"type\":\"text\",\"text\":\"ok\"}}],{usage}}}}}\n"
        )
    };
    world.claude("aaaa", line("aaaa", "claude-haiku-4-5", usage));
    world.claude("bbbb", line("bbbb", "<i>x", usage));
    world.claude("cccc", line("cccc", "claude-haiku-4-5", "\"x\":1"));
    let viewer = world.serve(Which::All);
    viewer.whole_list();
    let page = viewer.get("overview?days=all");
    assert_eq!(page.status, 200);
    for expect in [
        "<title>Overview · epitome</title>",
        "<dt>sessions</dt><dd>2</dd>",
        "<dt>tokens read</dt><dd>200.0k</dd>",
        "<dt>cost</dt><dd>≥ $0.10</dd>",
        "The cost is known for 0 of 2 sessions, in part for 1, not for 1",
        "1 of 3 sessions record no tokens",
        "&lt;i&gt;x",
        "<span class=\"back\">/srv/&lt;b&gt;</span>",
        "aria-current=\"page\">all",
    ] {
        assert!(page.body.contains(expect), "{expect}: {}", page.body);
    }
    assert_eq!(viewer.get("overview?days=7").status, 400);
    let session = viewer.sessions("").swap_remove(0);
    assert!(viewer.get(&session).body.contains("href=\"../../overview\""));
}

#[test]
fn where_nothing_is_it_says_where_it_looked() {
    let world = World::new();
    let viewer = world.serve(Which::All);
    for page in ["overview", ""] {
        let body = viewer.get(page).body;
        assert!(body.contains("There are no sessions yet. Looked in <code>"), "{body}");
    }
    world.pi("0001", fixtures::get("pi", "pricing").bytes());
    let body = viewer.get("?q=zebra&agent=pi").body;
    let expect =
        "No session of <b>pi</b> has <b>“<bdi>zebra</bdi>”</b> in its title, project or id.";
    assert!(body.contains(expect), "{body}");
}
