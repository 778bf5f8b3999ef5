//! Who is not answered, over HTTP as it is sent.

mod world;

use epitome_web::Which;
use world::World;

#[test]
fn a_stranger_learns_nothing_and_writes_nothing() {
    let world = World::new();
    world.pi("one", fixtures::get("pi", "pricing").bytes());
    let viewer = world.serve(Which::All);
    let list = viewer.path("");
    let page = viewer.path(&viewer.sessions("")[0]);
    let wrong = format!("/{}/", "0".repeat(64));
    let evil = format!("evil.example:{}", viewer.host().rsplit(':').next().unwrap());
    let ours = viewer.origin();
    type Case<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)], u16);
    let cases: &[Case<'_>] = &[
        ("GET", &list, &[], 200),
        ("GET", &page, &[], 200),
        ("GET", "/", &[], 403),
        ("GET", &wrong, &[], 403),
        ("GET", "/viewer.css", &[], 403),
        ("GET", &list, &[("Host", &evil)], 421),
        ("GET", &list, &[("Host", "")], 421),
        ("GET", &page, &[("Origin", "http://evil.example")], 403),
        ("GET", &page, &[("Sec-Fetch-Site", "same-site"), ("Sec-Fetch-Mode", "cors")], 403),
        ("POST", &list, &[("Origin", "http://evil.example")], 403),
        ("POST", &list, &[("Origin", "null")], 403),
        ("POST", &list, &[], 403),
        ("POST", "/", &[("Origin", &ours)], 403),
        ("PUT", &list, &[("Origin", &ours)], 405),
        ("DELETE", &page, &[("Origin", &ours)], 405),
    ];
    for (method, path, headers, status) in cases {
        let answer = viewer.ask(method, path, headers, "");
        assert_eq!(answer.status, *status, "{method} {path} {headers:?}");
        assert!(answer.head.contains("content-security-policy: default-src 'none';"));
        assert!(!answer.head.contains("access-control-"), "{}", answer.head);
        if *status != 200 {
            assert!(!answer.body.contains("pricing") && answer.body.len() < 200, "{}", answer.body);
        }
    }
}

#[test]
fn only_this_machine_can_reach_it() {
    let world = World::new();
    let viewer = world.serve(Which::All);
    assert!(viewer.host().starts_with("127.0.0.1:"), "{}", viewer.address);
    // Every other address of this machine is another door, and none is open.
    let port = viewer.host().rsplit(':').next().unwrap();
    assert!(std::net::TcpStream::connect(format!("127.0.0.2:{port}")).is_err());
}

#[test]
fn no_path_of_a_file_leads_to_it() {
    let world = World::new();
    let session = world.write("elsewhere/s.jsonl", fixtures::get("pi", "pricing").bytes());
    world.pi("one", fixtures::get("pi", "pricing").bytes());
    let viewer = world.serve(Which::All);
    let path = session.to_str().unwrap().replace('/', "%2F");
    for path in [&*format!("s/{path}/session.html"), "s/..%2F..%2Fs.jsonl/session.html"] {
        assert_eq!(viewer.get(path).status, 404, "{path}");
    }
}
