//! Measures a counter over the lines of files: speed, time of the first count, peak memory, errors.
//!
//! `cargo run --release -p epitome-tokens --example measure -- o200k FILE…` (or `estimate`)

#![allow(clippy::print_stdout, clippy::disallowed_methods, reason = "a measurement, not the crate")]

use std::fs::{File, read_to_string};
use std::io::{BufRead, BufReader};
use std::time::{Duration, Instant};

use epitome_model::Counter;
use epitome_tokens::{Estimate, O200k};

fn main() -> std::io::Result<()> {
    let mut args = std::env::args().skip(1);
    let estimated = args.next().as_deref() == Some("estimate");
    let counter: &dyn Counter = if estimated { &Estimate } else { &O200k };
    println!("{}: before the first count {} KB", counter.name(), peak());
    let start = Instant::now();
    counter.count("hello world");
    println!("first count {:?}, {} KB", start.elapsed(), peak());

    let files: Vec<String> = args.collect();
    let (mut bytes, mut tokens, mut spent) = (0, 0, Duration::ZERO);
    for file in &files {
        for line in BufReader::new(File::open(file)?).lines() {
            let line = line?;
            let start = Instant::now();
            tokens += counter.count(&line).0;
            spent += start.elapsed();
            bytes += line.len();
        }
    }
    let speed = bytes as f64 / 1e6 / spent.as_secs_f64();
    println!("{bytes} bytes, {tokens} tokens, {speed:.0} MB/s, peak {} KB", peak());
    if estimated {
        errors(&files)?;
    }
    Ok(())
}

/// Prints the error of the estimate, per 2,000 characters.
fn errors(files: &[String]) -> std::io::Result<()> {
    let mut misses = Vec::new();
    for file in files {
        let text: Vec<char> = read_to_string(file)?.chars().collect();
        for piece in text.chunks(2_000) {
            let piece: String = piece.iter().collect();
            let exact = O200k.count(&piece).0 as f64;
            misses.push((Estimate.count(&piece).0 as f64 / exact - 1.0).abs());
        }
    }
    misses.sort_by(f64::total_cmp);
    let at = |share: f64| misses[((misses.len() - 1) as f64 * share) as usize] * 100.0;
    println!("median {:.1}%, 95% {:.1}%, worst {:.0}%", at(0.5), at(0.95), at(1.0));
    Ok(())
}

/// Peak memory in kilobytes; 0 where there is no `/proc`.
fn peak() -> u64 {
    let status = read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}
