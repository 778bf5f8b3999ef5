//! Requests that must be refused, sent as raw HTTP.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use crate::world::{self, World};
use epitome_web::{Limits, Which};

/// A limit that is longer than any test.
const HOUR: Duration = Duration::from_hours(1);

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
    let (elsewhere, whole) = (format!("http://evil.example{list}"), format!("{ours}{list}"));
    type Case<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)], u16);
    let cases: &[Case<'_>] = &[
        ("GET", &list, &[], 200),
        ("GET", &page, &[], 200),
        ("GET", "/", &[], 403),
        ("GET", &wrong, &[], 403),
        ("GET", "/viewer.css", &[], 403),
        ("GET", &list, &[("Host", &evil)], 421),
        ("GET", &list, &[("Host", "")], 421),
        ("GET", &elsewhere, &[], 421),
        ("GET", &whole, &[], 200),
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
    // No other loopback address is listened on.
    let port = viewer.host().rsplit(':').next().unwrap();
    assert!(TcpStream::connect(format!("127.0.0.2:{port}")).is_err());
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

/// Connections that send nothing, or half of a request.
fn half(viewer: &world::Viewer, many: usize) -> Vec<TcpStream> {
    let connect = |n: usize| {
        let mut stream = TcpStream::connect(viewer.host()).expect("the viewer listens");
        if n.is_multiple_of(2) {
            stream.write_all(b"GET / HT").expect("it is sent");
        }
        stream
    };
    (0..many).map(connect).collect()
}

#[test]
fn connections_without_a_token_do_not_keep_it_from_answering_or_ending() {
    let world = World::new();
    let limits = Limits { connections: 8, head: HOUR, end: Duration::from_millis(100) };
    let mut viewer = world.serve_within(Which::All, limits);
    let waiting = half(&viewer, 20);
    assert_eq!(viewer.get("").status, 200, "the oldest made room");
    let took = viewer.end();
    assert!(took < Duration::from_secs(10), "nothing is waited for: {took:?}");
    drop(waiting);
}

#[test]
fn a_connection_that_knows_the_token_is_not_closed_for_others() {
    let world = World::new();
    world.pi("one", fixtures::get("pi", "pricing").bytes());
    let limits = Limits { connections: 4, head: HOUR, end: Duration::from_millis(100) };
    let mut viewer = world.serve_within(Which::All, limits);
    let page = viewer.sessions("")[0].clone();
    let tail = page.replace("session.html", "tail?file=session.html&since=never");
    let events = viewer.follow(&tail);
    events.next("changed");
    let waiting = half(&viewer, 20);
    assert_eq!(viewer.get("").status, 200);
    assert!(events.is_open(), "the page still follows");
    assert!(viewer.end() < Duration::from_secs(10), "also with a page that follows");
    drop(waiting);
}

#[test]
fn a_request_that_does_not_come_is_not_waited_for() {
    let world = World::new();
    let limits = Limits { head: Duration::from_millis(50), ..Limits::default() };
    let viewer = world.serve_within(Which::All, limits);
    let mut rest = Vec::new();
    for mut stream in half(&viewer, 4) {
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a length of time");
        assert!(stream.read_to_end(&mut rest).is_ok(), "the viewer ends the connection");
    }
    // A connection that was answered once and then is idle is closed as well.
    let mut stream = TcpStream::connect(viewer.host()).expect("the viewer listens");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a length of time");
    let head = format!("GET {} HTTP/1.1\r\nHost: {}\r\n\r\n", viewer.path(""), viewer.host());
    stream.write_all(head.as_bytes()).expect("it is sent");
    rest.clear();
    assert!(stream.read_to_end(&mut rest).is_ok(), "the viewer ends the connection");
    assert!(rest.starts_with(b"HTTP/1.1 200"));
}
