//! How long a request of about 100,000 tokens takes from the client to the service, directly and
//! through the proxy: `cargo run --release -p epitome-proxy --example added_time`.

// Only a part of it is used here.
#[allow(dead_code)]
#[path = "../tests/it/exchange.rs"]
mod exchange;

use std::io::Write as _;
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
        "{name:<32} p50 {:>6.2} ms  p95 {:>6.2} ms  added p50 {:>6.2} ms\n",
        millis(times, 50),
        millis(times, 95),
        added(50)
    );
    std::io::stdout().write_all(line.as_bytes()).expect("it is read");
}

fn main() {
    let (arrive, arrived) = channel();
    let arrive = Arc::new(Mutex::new(arrive));
    let service = Service::start(move |_, _, stream| {
        let now = Instant::now();
        arrive.lock().expect("no thread panics").send(now).ok();
        send(stream, 200, "application/json", "{}");
    });
    let folder = tempfile::tempdir().expect("a folder");
    let without_cuts = |recipe: Recipe| {
        let mut recipe = recipe;
        recipe.trigger.live.tokens = Some(u64::MAX);
        recipe
    };
    let plain = Running::start(&service.url(), folder.path(), |options| epitome_proxy::Options {
        recipe: without_cuts(options.recipe.clone()),
        ..options
    });
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
    let bodies = (0..TIMES).map(|n| body(&conversation(&format!("c{n}x"))));
    report("with a cut", &times(&mut cutting.connect(), &arrived, &[], bodies), &direct);
    assert!(cutting.proxy.totals().cuts > 0, "a cut was made");
}
