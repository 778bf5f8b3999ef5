//! Servers that are scripts, and one over HTTP: they answer, fail, hang, crash and lie.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::Command;

use super::*;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mcp/server.sh");

fn scripted(folder: &Path, args: &[&str]) -> Server {
    let args = [&[SCRIPT], args].concat();
    let env = [("TOKEN", "secret"), ("CANCELLED", "cancelled")];
    Server {
        name: "srv".to_owned(),
        place: ServerAddress::Program {
            command: "sh".to_owned(),
            args: args.iter().map(|arg| (*arg).to_owned()).collect(),
            env: env.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
            folder: folder.to_owned(),
        },
        timeout: TIMEOUT,
    }
}

fn start(servers: Vec<Server>) -> Servers {
    Servers::start(servers, Path::new("/"), &["ANTHROPIC_API_KEY".to_owned()]).unwrap()
}

fn call(servers: &Servers, tool: &str, arguments: &str) -> Result<String, String> {
    call_until(servers, tool, arguments, &Stop::default())
}

fn call_until(
    servers: &Servers,
    tool: &str,
    arguments: &str,
    stop: &Stop,
) -> Result<String, String> {
    let tools = servers.tools();
    let tool = tools.iter().find(|it| it.tool == tool).unwrap();
    servers.call(tool, arguments, stop)
}

fn is_there(pid: &str) -> bool {
    let mut kill = Command::new("kill");
    kill.args(["-0", pid]).stderr(std::process::Stdio::null()).status().unwrap().success()
}

#[test]
fn a_server_has_tools_which_are_called_and_what_it_began_ends_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let servers = start(vec![scripted(folder.path(), &[])]);
    assert_eq!(servers.failed(), []);
    let names: Vec<String> = servers.tools().into_iter().map(|tool| tool.name).collect();
    let expect = ["child", "die", "echo", "env", "fail", "garbage", "hang", "more"];
    assert_eq!(names, expect.map(|name| format!("mcp__srv__{name}")));
    assert_eq!(call(&servers, "echo", r#"{"text":"hello"}"#), Ok("hello".to_owned()));
    assert_eq!(call(&servers, "fail", ""), Err("MCP server srv: no".to_owned()));
    assert_eq!(call(&servers, "garbage", "{}"), Ok("still there".to_owned()));
    let here = folder.path().canonicalize().unwrap();
    assert_eq!(call(&servers, "env", "{}"), Ok(format!("secret  {}", here.display())));
    let bad = call(&servers, "echo", "[1]").unwrap_err();
    assert!(bad.starts_with("bad arguments: "), "{bad}");
    let child = call(&servers, "child", "{}").unwrap();
    assert!(is_there(&child));
    drop(servers);
    while is_there(&child) {}
}

#[test]
fn a_server_that_hangs_or_dies_fails_its_calls_alone() {
    let folder = tempfile::tempdir().unwrap();
    let slow = Server { timeout: Duration::from_millis(300), ..scripted(folder.path(), &[]) };
    let other = Server { name: "z".to_owned(), ..scripted(folder.path(), &[]) };
    let servers = start(vec![slow, other]);
    let late = call(&servers, "hang", "{}");
    assert!(late.unwrap_err().contains("time-out after"));
    let cancelled = folder.path().join("cancelled");
    // The server was notified, but may not have read the notification yet.
    while !cancelled.exists() {}
    let stop = Stop::default();
    stop.stop();
    assert_eq!(call_until(&servers, "hang", "{}", &stop), Err("[stopped]".to_owned()));
    let died = call(&servers, "die", "{}").unwrap_err();
    assert!(died.starts_with("MCP server srv: it has ended"), "{died}");
    let gone = call(&servers, "echo", r#"{"text":"x"}"#).unwrap_err();
    assert!(gone.starts_with("MCP server srv: it has ended"), "{gone}");
    let tools = servers.tools();
    let echo = tools.iter().find(|it| it.name == "mcp__z__echo").unwrap();
    let result = servers.call(echo, r#"{"text":"here"}"#, &Stop::default());
    assert_eq!(result, Ok("here".to_owned()));
}

#[test]
fn a_server_that_cannot_be_started_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let mut missing = scripted(folder.path(), &[]);
    if let ServerAddress::Program { command, .. } = &mut missing.place {
        *command = "no-such-program-anywhere".to_owned();
    }
    let url = "http://example.org/mcp".to_owned();
    let plain = ServerAddress::Address { url, headers: Vec::new() };
    let plain = Server { name: "plain".to_owned(), place: plain, timeout: TIMEOUT };
    let broken = Server { name: "broken".to_owned(), ..scripted(folder.path(), &["broken"]) };
    let servers = start(vec![missing, broken, plain]);
    assert_eq!(servers.tools(), []);
    let failed = servers.failed();
    let names: Vec<&str> = failed.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["srv", "broken", "plain"]);
    assert!(failed[0].1.starts_with("no-such-program-anywhere cannot be started"), "{failed:?}");
    assert!(failed[1].1.ends_with("exit status: 3; it said: no module named server"), "{failed:?}");
    assert_eq!(failed[2].1, "http://example.org/mcp is neither https nor on this machine");
}

#[test]
fn a_list_that_changes_is_there_when_it_is_asked_for_again() {
    let folder = tempfile::tempdir().unwrap();
    let servers = start(vec![scripted(folder.path(), &[])]);
    assert_eq!(servers.tools().len(), 8);
    assert_eq!(call(&servers, "more", "{}"), Ok("one more".to_owned()));
    while servers.tools().len() == 8 {}
    assert!(servers.tools().iter().any(|tool| tool.name == "mcp__srv__another"));
}

#[test]
fn a_server_at_an_address_gets_the_headers_that_are_set() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || answer_http(stream));
        }
    });
    let headers = vec![("Authorization".to_owned(), "Bearer x".to_owned())];
    let place = ServerAddress::Address { url, headers };
    let server = Server { name: "web".to_owned(), place, timeout: TIMEOUT };
    let servers = start(vec![server]);
    assert_eq!(servers.failed(), []);
    assert_eq!(call(&servers, "whoami", "{}"), Ok("Bearer x".to_owned()));
}

/// Answers the requests of one connection.
fn answer_http(stream: std::net::TcpStream) {
    let mut to = stream.try_clone().unwrap();
    let mut from = BufReader::new(stream);
    loop {
        let (mut length, mut who, mut first) = (0, String::new(), String::new());
        if from.read_line(&mut first).unwrap_or(0) == 0 {
            return;
        }
        loop {
            let mut line = String::new();
            from.read_line(&mut line).unwrap();
            let Some((name, value)) = line.trim_end().split_once(": ") else { break };
            match &*name.to_lowercase() {
                "content-length" => length = value.parse().unwrap(),
                "authorization" => who = value.to_owned(),
                _ => {}
            }
        }
        let mut body = vec![0; length];
        from.read_exact(&mut body).unwrap();
        let request: serde_json::Value = serde_json::from_slice(&body).unwrap_or_default();
        let result = match request["method"].as_str() {
            Some("initialize") => serde_json::json!({
                "protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                "serverInfo": {"name": "web", "version": "1"},
            }),
            Some("tools/list") => {
                let schema = serde_json::json!({"type": "object"});
                serde_json::json!({"tools": [{"name": "whoami", "inputSchema": schema}]})
            }
            Some("tools/call") => {
                serde_json::json!({"content": [{"type": "text", "text": who}]})
            }
            _ => serde_json::Value::Null,
        };
        let (status, body) = match (first.starts_with("POST"), result.is_null()) {
            (true, false) => {
                let id = &request["id"];
                let answer = serde_json::json!({"jsonrpc": "2.0", "id": id, "result": result});
                ("200 OK", answer.to_string())
            }
            (true, true) => ("202 Accepted", String::new()),
            (false, _) => ("405 Method Not Allowed", String::new()),
        };
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        to.write_all(format!("{head}{body}").as_bytes()).unwrap();
    }
}
