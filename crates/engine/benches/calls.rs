//! A long session, call by call: measures processor time and memory, and whether the cost of a call
//! is independent of the number of earlier calls.
//!
//! `cargo bench -p epitome-engine --bench calls` prints a table; each row is a process of its own.
//! Numbers after `--` replace the default numbers of calls.

#![expect(clippy::print_stdout, reason = "it prints what it measures")]

use std::fs;
use std::process::Command;

use epitome_engine::{Context, Setup};
use epitome_model::Tokens;
use epitome_passes::built_in;

/// The number of calls in each row, by default.
const ROWS: [usize; 4] = [500, 1_000, 2_000, 3_000];
/// The argument by which a process knows that it is a row.
const ROW: &str = "--row";
/// Number of lines of a result, with about 45 bytes each.
const LINES: usize = 30;
/// Number of lines that repeat the result before, and are left out before it is sent.
const AGAIN: usize = 14;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let mut numbers = args.iter().filter_map(|arg| arg.parse::<usize>().ok());
    if args.iter().any(|arg| arg == ROW) {
        return row(numbers.next().unwrap_or_default());
    }
    let mut rows: Vec<usize> = numbers.collect();
    if rows.is_empty() {
        rows = ROWS.to_vec();
    }
    println!("| calls | processor seconds | ms a call, of the last 200 | peak MiB | compactions |");
    println!("|---:|---:|---:|---:|---:|");
    let program = std::env::current_exe().expect("a program knows where it is");
    for calls in rows {
        let status = Command::new(&program).args([ROW, &calls.to_string()]).status();
        assert!(status.expect("it starts again").success());
    }
}

/// What an agent does over the pipe: it adds a response and the result of its call, and asks what
/// to send.
fn row(calls: usize) {
    let recipe = built_in("epitome").expect("a built-in recipe");
    let mut context = Context::in_memory(Setup::new(recipe).with_window(Tokens(200_000)));
    context.user("Read all of it.").expect("memory is written");
    let (mut compactions, mut last) = (0, 0.0);
    for n in 0..calls {
        if n + 200 == calls {
            last = processor_seconds();
        }
        let call = format!(
            r#"{{"role":"assistant","content":[{{"type":"text","text":"Now module {n}."}},
            {{"type":"tool_use","id":"c{n}","name":"Read","input":{{"path":"src/m_{n}.rs"}}}}]}}"#
        );
        let again = (LINES - AGAIN..LINES).filter(|_| n > 0).map(|line| text(n - 1, line));
        let lines: String = again.chain((0..LINES).map(|line| text(n, line))).collect();
        let result = format!(
            r#"{{"role":"user","content":[
            {{"type":"tool_result","tool_use_id":"c{n}","content":"{lines}"}}]}}"#
        );
        context.push_messages("anthropic", &[&call, &result], None).expect("memory is written");
        context.view().expect("memory is written");
        std::hint::black_box((context.unchanged_view().messages(), context.references()));
        std::hint::black_box(context.digested_calls());
        compactions += u64::from(!context.events().is_empty());
    }
    let seconds = processor_seconds();
    let (each, peak) = ((seconds - last) * 1_000.0 / calls.min(200) as f64, peak());
    println!("| {calls} | {seconds:.2} | {each:.2} | {peak:.0} | {compactions} |");
}

fn text(n: usize, line: usize) -> String {
    format!(r"    let value_{n}_{line} = compute(input_{n}, {line})?;\n")
}

/// Processor time of this process so far, on Linux.
fn processor_seconds() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(") ").next().unwrap_or_default().split(' ');
    let ticks: f64 = fields.skip(11).take(2).filter_map(|it| it.parse::<f64>().ok()).sum();
    ticks / 100.0
}

/// The largest resident memory of this process in MiB, on Linux.
fn peak() -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = peak.and_then(|it| it.trim().split(' ').next()?.parse::<f64>().ok());
    number.unwrap_or_default() / 1024.0
}
