//! The viewer with malicious sessions: nothing in their text may take effect.

mod hostile;

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use epitome::{Config, Settings};
use epitome_tokens::Estimate;
use epitome_web::{Options, Server, Which};
use hostile::{HOSTILE, everywhere};

fn get(address: &str, path: &str) -> String {
    let mut parts = address.splitn(4, '/').skip(2);
    let (host, token) = (parts.next().expect("a host"), parts.next().expect("a token"));
    let mut stream = TcpStream::connect(host).expect("the viewer listens");
    let request =
        format!("GET /{token}{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("it is sent");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("an answer");
    text.split_once("\r\n\r\n").expect("a head").1.to_owned()
}

#[test]
fn nothing_of_a_hostile_session_is_carried_out_by_the_viewer() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut config = Config::from_home(dir.path());
    config.home = dir.path().join("epitome");
    let sessions = dir.path().join("sessions");
    fs::create_dir(&sessions).expect("a folder");
    for (n, text) in HOSTILE.iter().enumerate() {
        fs::write(sessions.join(format!("{n}.jsonl")), everywhere(&[text])).expect("a file");
    }
    fs::write(sessions.join("<b>&'all.jsonl"), everywhere(HOSTILE)).expect("a file");
    let options = Options {
        settings: Settings::load(&config, &[]).expect("settings"),
        config,
        which: Which::Below(sessions),
        finder: None,
        counter: &const { Estimate::new() },
    };
    let server = Server::bind(options, 0).expect("a port");
    let address = server.address();
    std::thread::spawn(move || server.run());
    let list = get(&address, "");
    properties::viewer_is_inert(&list);
    let links: Vec<&str> =
        list.split("href=\"s/").skip(1).filter_map(|it| it.split('/').next()).collect();
    assert_eq!(links.len(), HOSTILE.len() + 1);
    for key in links {
        for page in ["session.html", "plan?recipe=gitclaw", "plan?recipe=%3Cscript%3E", "%3Cb%3E"] {
            properties::viewer_is_inert(&get(&address, &format!("s/{key}/{page}")));
        }
    }
    // Every page shows such texts: as hits, titles and model names.
    for page in ["overview", "overview?days=all", "?q=x", "?q=script&sort=size&state=whole"] {
        properties::viewer_is_inert(&get(&address, page));
    }
    properties::viewer_is_inert(&get(
        &address,
        "?q=%22%3E%3Cscript%3E&agent=%27%22%3E&project=%3C",
    ));
}
