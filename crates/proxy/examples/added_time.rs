//! How long a request of about 100,000 tokens takes from the client to the service, directly and
//! through the proxy, alone and with 50 sessions at once, and how much memory the proxy takes then:
//! `cargo run --release -p epitome-proxy --example added_time`.

// Only a part of it is used here.
#[allow(dead_code)]
#[path = "../tests/it/exchange.rs"]
mod exchange;

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use epitome_passes::Recipe;
use exchange::{Client, Running, Service, send};
use serde_json::{Value, json};

/// Requests of each kind.
const TIMES: usize = 60;
/// Calls of the conversation; each with its result is about 500 tokens.
const CALLS: usize = 200;
/// Sessions at once, requests of each after its first, and the time between two of them: a model
/// needs at least as long for an answer.
const SESSIONS: usize = 50;
const TURNS: usize = 10;
const PAUSE: Duration = Duration::from_secs(1);

fn turn(id: &str, lines: usize) -> [Value; 2] {
    let line = |n| format!("part {n} of run {id} took {} ms\n", 37 * n % 900);
    let text: String = (0..lines).map(line).collect();
    let call = json!({"type": "tool_use", "id": id, "name": "Bash", "input": {"command": id}});
    let result = json!({"type": "tool_result", "tool_use_id": id, "content": text});
    [json!({"role": "assistant", "content": [call]}), json!({"role": "user", "content": [result]})]
}

fn body(messages: &[Value]) -> String {
    json!({"model": "claude-sonnet-4-6", "max_tokens": 9, "messages": messages}).to_string()
}

fn conversation(name: &str) -> Vec<Value> {
    let mut messages = vec![json!({"role": "user", "content": format!("Refactor {name}.")})];
    for n in 0..CALLS {
        messages.extend(turn(&format!("{name}{n}"), 52));
    }
    messages
}

/// Sends bodies, and returns how long each took to arrive, the fastest first.
fn times(
    client: &mut Client,
    arrived: &Receiver<Instant>,
    headers: &[(&str, &str)],
    bodies: impl Iterator<Item = String>,
) -> Vec<Duration> {
    let mut times = Vec::new();
    for body in bodies {
        let begin = Instant::now();
        client.send("POST", "/v1/messages", headers, body.as_bytes());
        times.push(arrived.recv().expect("it arrives") - begin);
        client.response().expect("a response");
    }
    times.sort_unstable();
    times
}

fn report(name: &str, times: &[Duration], direct: &[Duration]) {
    let millis = |times: &[Duration], percent: usize| {
        times[(times.len() - 1) * percent / 100].as_secs_f64() * 1_000.0
    };
    let added = |percent| millis(times, percent) - millis(direct, percent);
    let line = format!(
        "{name:<32} p50 {:>6.2} ms  p99 {:>6.2} ms  added p50 {:>6.2} ms  p99 {:>6.2} ms\n",
        millis(times, 50),
        millis(times, 99),
        added(50),
        added(99)
    );
    print(&line);
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, service, folder] = arguments.as_slice() {
        let proxy = Running::start(service, folder.as_ref(), without_cuts);
        print(&format!("{}\n", proxy.address));
        // The parent ends this process.
        std::thread::park();
    }
    alone();
    at_once();
}

/// A proxy in a process of its own, which has the service's address and a folder as arguments.
struct Process {
    child: Child,
    address: String,
}

impl Process {
    fn start(service: &str, folder: &std::path::Path) -> Process {
        let mut command = Command::new(std::env::current_exe().expect("it has a path"));
        command.arg(service).arg(folder).stdout(Stdio::piped());
        let mut child = command.spawn().expect("it runs");
        let mut line = String::new();
        let out = child.stdout.take().expect("it is piped");
        BufReader::new(out).read_line(&mut line).expect("an address");
        Process { child, address: line.trim().to_owned() }
    }

    /// A line of its status (Linux), in MiB: `VmRSS`, `VmHWM`.
    fn memory(&self, name: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()));
        let status = status.unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
        kib.unwrap_or_default() / 1024
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Many sessions at once: each sends its whole conversation, and then turns of 1,000 tokens.
fn at_once() {
    let arrivals: Arc<Mutex<HashMap<String, Instant>>> = Arc::default();
    let known = Arc::clone(&arrivals);
    let service = Service::quiet(move |message, stream| {
        let id = message.header("x-id").unwrap_or_default().to_owned();
        known.lock().expect("no thread panics").insert(id, Instant::now());
        send(stream, 200, "application/json", "{}");
    });
    let folder = tempfile::tempdir().expect("a folder");
    let process = Process::start(&service.url(), folder.path());
    print(&format!("memory: idle {} MiB\n", process.memory("VmRSS")));
    let sessions = |address: &str, name: &str| -> Vec<Duration> {
        let times = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for session in 0..SESSIONS {
                let (times, arrivals) = (&times, &arrivals);
                let name = format!("{name}{session}x");
                scope.spawn(move || {
                    // They do not begin all at once.
                    std::thread::sleep(PAUSE * session as u32 / SESSIONS as u32);
                    let mut client = Client::to(address);
                    let mut messages = conversation(&name);
                    for request in 0..=TURNS {
                        let id = format!("{name}-{request}");
                        let body = body(&messages);
                        let begin = Instant::now();
                        client.send("POST", "/v1/messages", &[("x-id", &id)], body.as_bytes());
                        client.response().expect("a response");
                        let arrived = arrivals.lock().expect("no thread panics")[&id];
                        // The first request of a session is read in full.
                        if request > 0 {
                            times.lock().expect("no thread panics").push(arrived - begin);
                        }
                        messages.extend(turn(&id, 80));
                        std::thread::sleep(PAUSE);
                    }
                });
            }
        });
        let mut times = times.into_inner().expect("no thread panics");
        times.sort_unstable();
        times
    };
    let direct = sessions(&service.url(), "d");
    let through = sessions(&process.address, "p");
    let name = format!("{SESSIONS} sessions, ");
    report(&format!("{name}direct"), &direct, &direct);
    report(&format!("{name}new results"), &through, &direct);
    let (now, peak) = (process.memory("VmRSS"), process.memory("VmHWM"));
    print(&format!("memory: {now} MiB after {SESSIONS} sessions, {peak} MiB at most\n"));
}

fn print(text: &str) {
    let mut out = std::io::stdout();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).expect("it is read");
}

/// Without cuts.
fn without_cuts(options: epitome_proxy::Options) -> epitome_proxy::Options {
    let mut recipe: Recipe = options.recipe.clone();
    recipe.trigger.live.tokens = Some(u64::MAX);
    recipe.live.priced = false;
    epitome_proxy::Options { recipe, ..options }
}

/// One request at a time.
fn alone() {
    let (arrive, arrived) = channel();
    let arrive = Arc::new(Mutex::new(arrive));
    let service = Service::start(move |_, _, stream| {
        let now = Instant::now();
        arrive.lock().expect("no thread panics").send(now).ok();
        send(stream, 200, "application/json", "{}");
    });
    let folder = tempfile::tempdir().expect("a folder");
    let plain = Running::start(&service.url(), folder.path(), without_cuts);
    let messages = conversation("a");
    let same = body(&messages);
    let again = || (0..TIMES).map(|_| same.clone());
    let direct = times(&mut Client::to(&service.url()), &arrived, &[], again());
    report(&format!("direct, {} bytes", same.len()), &direct, &direct);
    let bypass = [("x-epitome-bypass", "1")];
    report("pass-through", &times(&mut plain.connect(), &arrived, &bypass, again()), &direct);
    times(&mut plain.connect(), &arrived, &[], again().take(1));
    report("known", &times(&mut plain.connect(), &arrived, &[], again()), &direct);
    for (name, lines) in
        [("a new result of 1,000 tokens", 80), ("a new result of 14,000 tokens", 1_100)]
    {
        let mut growing = messages.clone();
        let bodies = (0..TIMES).map(|n| {
            // The result before is answered, and the next one is new; the length stays.
            growing.truncate(messages.len());
            growing.extend(turn(&format!("{}{n}", &name[..5].replace(' ', "x")), lines));
            body(&growing)
        });
        report(name, &times(&mut plain.connect(), &arrived, &[], bodies), &direct);
    }
    let cutting = Running::start(&service.url(), folder.path(), |options| options);
    let mut client = cutting.connect();
    let mut conversations: Vec<_> = (0..TIMES).map(|n| conversation(&format!("c{n}x"))).collect();
    let bodies = conversations.iter().map(|messages| body(messages));
    report("a first request, with a cut", &times(&mut client, &arrived, &[], bodies), &direct);
    // Each grows until a cut is worth it again, and then by the request that it is made in.
    let cuts = cutting.proxy.totals().cuts;
    let mut with_a_cut = Vec::new();
    for (n, messages) in conversations.iter_mut().enumerate() {
        for request in 0..CALLS {
            messages.extend(turn(&format!("c{n}y{request}"), 80));
            let before = cutting.proxy.totals().cuts;
            let time = times(&mut client, &arrived, &[], std::iter::once(body(messages)));
            // While an agent's model answers, the next cut is planned.
            std::thread::sleep(Duration::from_millis(200));
            if cutting.proxy.totals().cuts > before {
                with_a_cut.extend(time);
                break;
            }
        }
        if with_a_cut.len() == TIMES / 3 {
            break;
        }
    }
    with_a_cut.sort_unstable();
    report("a later request, with a cut", &with_a_cut, &direct);
    assert!(cutting.proxy.totals().cuts > cuts, "a cut was made");
}
