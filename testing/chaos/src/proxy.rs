//! Kills the proxy in the middle of an agent's requests, and starts it again.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};

use crate::case::Case;
use crate::machine::{DEADLINE, Machine};
use crate::numbers::Numbers;
use crate::violation::{Kind, Violation};

/// The number of requests of a conversation. The first has no result; each later one has one result
/// more than the one before.
const REQUESTS: usize = 6;
/// The beginning of every stub.
const STUB: &str = "[epitome k";

/// A service that answers every request, and keeps the requests' bodies.
struct Service {
    address: SocketAddr,
    bodies: Arc<Mutex<Vec<String>>>,
}

/// A proxy that runs until it is dropped.
struct Proxy {
    child: Child,
    address: String,
}

/// The conversation that is disturbed.
pub(crate) struct Conversation {
    program: std::path::PathBuf,
    /// The bodies of the conversation's requests.
    requests: Vec<String>,
    /// The time that all requests take without a fault.
    time: Duration,
}

impl Conversation {
    /// Makes the requests, and sends them all once without a fault to measure the time.
    ///
    /// # Errors
    ///
    /// If the proxy does not start, a request fails, or the last request does not have the expected
    /// number of shortened results.
    pub(crate) fn new(program: &Path) -> anyhow::Result<Conversation> {
        let requests = (0..REQUESTS).map(body).collect();
        let program = program.to_owned();
        let mut conversation = Conversation { program, requests, time: Duration::ZERO };
        let machine = Machine::new(&conversation.program)?;
        let service = Service::start()?;
        let proxy = Proxy::start(&machine, service.address)?;
        let begin = Instant::now();
        for request in &conversation.requests {
            proxy.send(request).context("a request without a fault")?;
        }
        conversation.time = begin.elapsed();
        let bodies = service.bodies();
        let last = bodies.last().context("no request arrived")?;
        let stubs = last.matches(STUB).count();
        ensure!(stubs == REQUESTS - 2, "only {stubs} results were shortened");
        Ok(conversation)
    }

    /// Kills the proxy after a random part of the time, in half of the cases adds incomplete lines
    /// to the files in which the proxy keeps its decisions, starts another proxy, and sends the
    /// requests that were not answered.
    ///
    /// # Errors
    ///
    /// If the proxy cannot be started.
    pub(crate) fn case(&self, seed: u64) -> anyhow::Result<Case> {
        let mut numbers = Numbers::new(seed);
        let machine = Machine::new(&self.program)?;
        let service = Service::start()?;
        let life = self.time * numbers.below(1_000) as u32 / 1_000;
        let mut found = Vec::new();
        let proxy = Proxy::start(&machine, service.address)?;
        let answered = self.until_killed(proxy, life);
        let is_torn = numbers.once_in(2);
        if is_torn {
            tear(&machine, &mut numbers)?;
        }
        let proxy = Proxy::start(&machine, service.address)?;
        for request in &self.requests[answered..] {
            if let Err(err) = proxy.send(request) {
                found.push(violation(Kind::Wrong, format!("after the restart: {err:#}")));
            }
        }
        drop(proxy);
        self.check(&machine, &service.bodies(), &mut found)?;
        let torn = if is_torn { ", with half a line in its memo" } else { "" };
        Ok(Case {
            what: format!("proxy killed after {:.1} ms{torn}", life.as_secs_f64() * 1e3),
            hit: answered < self.requests.len(),
            violations: found,
        })
    }

    /// Sends requests while the proxy lives, kills the proxy after `life`, and returns how many
    /// requests were answered.
    fn until_killed(&self, mut proxy: Proxy, life: Duration) -> usize {
        let address = proxy.address.clone();
        let requests = self.requests.clone();
        let client = std::thread::spawn(move || {
            let answered = requests.iter().take_while(|request| send(&address, request).is_ok());
            answered.count()
        });
        std::thread::sleep(life);
        // SIGKILL: the proxy can do nothing more.
        proxy.child.kill().ok();
        drop(proxy);
        client.join().unwrap_or_default()
    }

    /// Checks that every request that arrived begins with the messages of the one before it, that
    /// every result but the first was shortened, and that `epitome show` prints what each stub
    /// stands for.
    fn check(
        &self,
        machine: &Machine,
        bodies: &[String],
        found: &mut Vec<Violation>,
    ) -> anyhow::Result<()> {
        for pair in bodies.windows(2) {
            let begin = pair[0].strip_suffix("]}").unwrap_or(&pair[0]);
            if !pair[1].starts_with(begin) {
                found.push(violation(Kind::Wrong, "other bytes for the same messages".to_owned()));
            }
        }
        let last = bodies.last().context("no request arrived")?;
        let whole = self.requests.last().context("there are requests")?;
        let sent: Value = serde_json::from_str(last)?;
        let original: Value = serde_json::from_str(whole)?;
        for n in 0..REQUESTS {
            let path = format!("/messages/{}/content/0/content", 2 * n + 2);
            let (Some(sent), Some(text)) = (sent.pointer(&path), original.pointer(&path)) else {
                continue;
            };
            let sent = sent.as_str().unwrap_or_default();
            let Some(stub) = sent.strip_prefix("[epitome ") else {
                if n > 0 {
                    found.push(violation(Kind::Wrong, format!("result {n} was sent whole")));
                }
                continue;
            };
            let reference = stub.split([':', ';', ']']).next().unwrap_or_default();
            let shown = machine.run(&["show", reference])?;
            if shown.code() != Some(0) || Some(&*shown.out) != text.as_str() {
                let what = format!("{reference}: {}", shown.beginning_of_output());
                found.push(violation(Kind::Lost, what));
            }
        }
        Ok(())
    }
}

/// Appends to each file in which the proxy keeps its decisions the beginning of the file's own
/// content, without a line feed at the end, as an interrupted write leaves it.
fn tear(machine: &Machine, numbers: &mut Numbers) -> anyhow::Result<()> {
    for path in machine.files(".jsonl") {
        let mut bytes = fs::read(&path)?;
        let end = numbers.below(bytes.len().saturating_sub(1));
        bytes.extend_from_within(..end);
        fs::write(&path, bytes)?;
    }
    Ok(())
}

fn violation(kind: Kind, what: String) -> Violation {
    Violation { kind, what }
}

/// The body of a request with `results` results: each has the same 150 lines and one line of its
/// own.
fn body(results: usize) -> String {
    let mut messages = vec![json!({"role": "user", "content": "Build it."})];
    for n in 0..results {
        let id = format!("toolu_{n}");
        let line = |line| format!("step {line}: compiling crate number {line} of the workspace\n");
        let mut log: String = (0..150).map(line).collect();
        log.push_str(&format!("run {n} took {} ms\n", 700 + n));
        let call = json!({"type": "tool_use", "id": id, "name": "Bash", "input": {"run": n}});
        let result = json!({"type": "tool_result", "tool_use_id": id, "content": log});
        messages.push(json!({"role": "assistant", "content": [call]}));
        messages.push(json!({"role": "user", "content": [result]}));
    }
    json!({"max_tokens": 9, "model": "claude-sonnet-4-6"})
        .to_string()
        .replace("}", &format!(r#","messages":{}}}"#, Value::Array(messages)))
}

impl Service {
    fn start() -> anyhow::Result<Service> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let bodies = Arc::new(Mutex::new(Vec::new()));
        let known = Arc::clone(&bodies);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let known = Arc::clone(&known);
                std::thread::spawn(move || serve(stream, &known));
            }
        });
        Ok(Service { address, bodies })
    }

    fn bodies(&self) -> Vec<String> {
        self.bodies.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Answers the requests of a connection until the client closes it or something is not as expected.
fn serve(stream: TcpStream, bodies: &Mutex<Vec<String>>) -> Option<()> {
    let mut writer = stream.try_clone().ok()?;
    let mut reader = BufReader::new(stream);
    loop {
        let length = length_of_body(&mut reader)?;
        let mut bytes = vec![0; length];
        reader.read_exact(&mut bytes).ok()?;
        let body = String::from_utf8(bytes).ok()?;
        bodies.lock().unwrap_or_else(PoisonError::into_inner).push(body);
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n";
        let answer = format!("{head}content-length: {}\r\n\r\n{ANSWER}", ANSWER.len());
        writer.write_all(answer.as_bytes()).ok()?;
    }
}

const ANSWER: &str = r#"{"type":"message","role":"assistant","content":[]}"#;

/// Reads the head of a request and returns the length of the body, 0 if the head does not say;
/// `None` if the head breaks off or the length is no number.
fn length_of_body(reader: &mut impl std::io::BufRead) -> Option<usize> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|count| *count > 0)?;
        let line = line.trim_end().to_lowercase();
        if line.is_empty() {
            return Some(length);
        }
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
    }
}

impl Proxy {
    fn start(machine: &Machine, service: SocketAddr) -> anyhow::Result<Proxy> {
        let mut command = machine.command(machine.program());
        command.args(["proxy", "--upstream", &format!("http://{service}")]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let mut line = String::new();
        let out = child.stdout.take().context("its output is piped")?;
        BufReader::new(out).read_line(&mut line)?;
        let address = line.trim().strip_prefix("http://").context("the proxy does not start")?;
        Ok(Proxy { child, address: address.to_owned() })
    }

    fn send(&self, body: &str) -> anyhow::Result<()> {
        send(&self.address, body)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Sends a request, and reads its response.
fn send(address: &str, body: &str) -> anyhow::Result<()> {
    let mut stream = TcpStream::connect(address)?;
    // Without a limit, a proxy that does not answer would let the client wait for ever.
    stream.set_read_timeout(Some(DEADLINE))?;
    let head = format!("POST /v1/messages HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n");
    let length = format!("content-length: {}\r\n\r\n", body.len());
    stream.write_all(&[head.as_bytes(), length.as_bytes(), body.as_bytes()].concat())?;
    let mut response = String::new();
    stream.read_to_string(&mut response)?;
    ensure!(response.starts_with("HTTP/1.1 200"), "not an answer: {response:.60}");
    ensure!(response.ends_with(ANSWER), "half an answer: {response:.60}");
    Ok(())
}
