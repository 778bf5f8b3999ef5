//! `epitome serve`: what it prints, whom it answers, and how it ends.

mod world;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use world::World;
use world::sessions::{CLAUDE, claude};

/// The viewer, and the address that it printed.
fn serve(world: &World, args: &[&str]) -> (Child, String) {
    let args = [&["serve", "--json"], args].concat();
    let mut child = world
        .command(&args)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program runs");
    let mut line = String::new();
    let stdout = child.stdout.take().expect("it is piped");
    BufReader::new(stdout).read_line(&mut line).expect("an address");
    let printed: Value = serde_json::from_str(&line).expect("JSON");
    (child, printed["address"].as_str().expect("an address").to_owned())
}

fn get(address: &str) -> String {
    let (host, path) = address["http://".len()..].split_once('/').expect("a path");
    let mut stream = TcpStream::connect(host).expect("it listens");
    write!(stream, "GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")
        .expect("it is sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

#[cfg(unix)]
#[test]
fn it_answers_until_it_is_interrupted_and_leaves_nothing_behind_but_its_cache() {
    let world = World::new();
    let session = world.claude(CLAUDE, claude(CLAUDE));
    let before = std::fs::read(&session).expect("a file");
    let (mut child, address) = serve(&world, &[]);
    let list = get(&address);
    assert!(list.starts_with("HTTP/1.1 200"), "{list}");
    assert!(list.contains("Fix the failing test, please."), "{list}");
    // Who follows a session does not keep it from ending.
    let key = list.split("href=\"s/").nth(1).and_then(|it| it.split('/').next()).expect("a key");
    let host = address.split('/').nth(2).expect("a host");
    let path = address.split_once(host).expect("a path").1;
    let mut follower = TcpStream::connect(host).expect("it listens");
    let tail = format!("{path}s/{key}/tail?file=session.html&since=before");
    write!(follower, "GET {tail} HTTP/1.1\r\nHost: {host}\r\n\r\n").expect("it is sent");
    let mut first = [0; 12];
    follower.read_exact(&mut first).expect("an answer");
    assert_eq!(&first, b"HTTP/1.1 200");
    let pid = child.id().to_string();
    let sent =
        Command::new("sh").args(["-c", "kill -INT $1", "sh", &pid]).status().expect("kill runs");
    assert!(sent.success());
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
    assert_eq!(std::fs::read(&session).expect("a file"), before);
    let ours = world.home.join(".local/share/epitome");
    let left: Vec<_> = std::fs::read_dir(ours).expect("a folder").flatten().collect();
    let names: Vec<_> = left.iter().map(|it| it.file_name()).collect();
    assert_eq!(names, ["cache"]);
}

#[test]
fn what_it_cannot_do_is_said() {
    let world = World::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("an address").port().to_string();
    let refused = world.run(&["serve", "--port", &port]);
    assert!(refused.contains(&format!("error: cannot listen on port {port}")), "{refused}");
    assert!(refused.contains("--- status 4"), "{refused}");
    assert_eq!(world.status(&["serve", "--dir", "nowhere"]), 2);
    assert_eq!(world.status(&["serve", "--dir", ".", "--agent", "pi"]), 2);
    assert_eq!(world.status(&["serve", "--all", "--agent", "pi"]), 2);
}
