//! The viewer's search: messages are found, and links lead to them.

use crate::world::{Viewer, World};
use epitome_web::Which;

fn session(id: &str, cwd: &str, words: &str) -> String {
    let message = format!(r#"{{"role":"user","content":{words:?}}}"#);
    let rest = r#""uuid":"1","parentUuid":null,"timestamp":"2026-11-20T10:00:00Z""#;
    format!(
        "{{\"type\":\"user\",\"message\":{message},\"sessionId\":{id:?},\"cwd\":{cwd:?},{rest}}}\n"
    )
}

/// The response to the script's request, once everything is indexed.
fn hits(viewer: &Viewer, query: &str) -> String {
    // Each response waits for a moment for the index.
    for _ in 0..200 {
        let answer = viewer.get(&format!("search?part=hits&{query}"));
        assert_eq!(answer.status, 200, "{answer:?}");
        if !answer.body.contains("id=\"indexing\"") {
            return answer.body;
        }
    }
    panic!("it is indexing for ever");
}

fn links(body: &str) -> Vec<String> {
    let parts = body.split("<a href=\"").skip(1);
    parts.map(|part| part.split('"').next().expect("an end").replace("&amp;", "&")).collect()
}

#[test]
fn a_hit_leads_to_the_message_on_the_page_of_its_session() {
    let world = World::new();
    world.claude("one", session("one", "/srv/app", "where does the kestrel nest?"));
    world.claude("two", session("two", "/srv/app", "nothing of that kind"));
    world.pi("0001", fixtures::get("pi", "pricing").bytes());
    let viewer = world.serve(Which::All);
    let body = hits(&viewer, "q=kestrel");
    assert!(body.contains("the <mark>kestrel</mark> nest?"), "{body}");
    let links = links(&body);
    // A link to the session, and one to the message.
    assert_eq!(links.len(), 2, "{body}");
    let answer = viewer.get(&links[1]);
    assert_eq!(answer.status, 303, "{answer:?}");
    assert!(answer.head.contains("session.html?mark=kestrel#m0"), "{answer:?}");
    let answer = viewer.get("search?q=kestrel");
    assert!(answer.head.contains("location: ./?q=kestrel&page=1"), "{answer:?}");
    let page = viewer.get("?q=kestrel");
    assert!(page.body.find("id=\"hits\"") < page.body.find("id=\"sessions\""), "{page:?}");
    assert!(page.body.contains("<mark>kestrel</mark>") && page.body.contains("<html"), "{page:?}");
    assert_eq!(hits(&viewer, "q=kestrel&agent=pi").matches("<li").count(), 0);
    assert_eq!(hits(&viewer, "q="), "");
}

#[test]
fn hits_stand_under_their_session_in_the_order_that_is_chosen() {
    let world = World::new();
    let one = session("one", "/srv/app", "a kestrel, a kestrel & a kestrel");
    world.set_age(&world.claude("one", one), 30);
    let long = format!("the kestrel and the heron{}", ". And so on".repeat(500));
    world.claude("two", session("two", "/srv/pond", &long));
    let viewer = world.serve(Which::All);
    let titles = |query: &str| {
        let body = hits(&viewer, query);
        let groups = body.split("<h3>").skip(1);
        let has = |it: &str| if it.contains("heron") { "two" } else { "one" };
        groups.map(has).collect::<Vec<_>>()
    };
    viewer.whole_list();
    assert_eq!(titles("q=kestrel"), ["one", "two"]);
    assert_eq!(titles("q=kestrel&sort=size"), ["two", "one"]);
    assert_eq!(titles("q=kestrel&state=compacted"), Vec::<&str>::new());
    assert_eq!(titles("q=kestrel&state=whole&sort=size"), ["two", "one"]);
    // Of equal sessions the newest is first, as in the list.
    assert_eq!(titles("q=kestrel&sort=saving"), ["two", "one"]);
    let body = hits(&viewer, "q=%22kestrel+%26+a%22+-cargo");
    assert!(body.contains("&amp;mark=kestrel%20a\""), "{body}");
    let none = hits(&viewer, "q=zebra&agent=claude");
    assert!(none.contains("No message has “<bdi>zebra</bdi>” in the sessions that are chosen."));
}

#[test]
fn a_query_that_makes_no_sense_is_answered_in_words() {
    let world = World::new();
    let viewer = world.serve(Which::All);
    let cases = [
        ("%22no+end", "a phrase begins with &quot; and does not end"),
        ("agent%3A%3Cb%3E", "unknown agent `&lt;b&gt;`"),
        ("*", "`*` holds no letters or digits"),
        ("%28%29%5B%5E", "there are no words to look for"),
    ];
    for (query, expect) in cases {
        let body = hits(&viewer, &format!("q={query}"));
        assert!(body.contains(expect), "{query}: {body}");
    }
}

#[test]
fn what_is_found_is_without_secrets_and_without_markup() {
    let world = World::new();
    let secret = "AKIAQ3EGRFNBVJ2WXK7T";
    let words = format!("the kestrel <script>x</script> has aws_access_key_id={secret} there");
    world.claude("one", session("one", "/srv/app", &words));
    let viewer = world.serve(Which::All);
    let body = hits(&viewer, "q=kestrel");
    assert!(body.contains("&lt;script&gt;"), "{body}");
    assert!(!body.contains("<script") && !body.contains(secret), "{body}");
}

#[test]
fn only_what_is_shown_is_searched() {
    let world = World::new();
    world.claude("one", session("one", "/srv/app", "the kestrel"));
    let elsewhere =
        world.write("elsewhere/two.jsonl", session("two", "/srv/app", "the kestrel too"));
    let folder = elsewhere.parent().expect("a folder").to_owned();
    let cases = [
        (Which::All, "the <mark>kestrel</mark></bdi>", 1),
        (Which::Of("claude".to_owned()), "the <mark>kestrel</mark></bdi>", 1),
        (Which::Of("pi".to_owned()), "No message has", 0),
        (Which::Below(folder), "the <mark>kestrel</mark> too", 1),
        (Which::All, "the <mark>kestrel</mark></bdi>", 1),
    ];
    for (which, expect, n) in cases {
        let body = hits(&world.serve(which.clone()), "q=kestrel");
        assert!(body.contains(expect), "{which:?}: {body}");
        assert_eq!(body.matches("<li class=\"hit\"").count(), n, "{which:?}: {body}");
    }
}
