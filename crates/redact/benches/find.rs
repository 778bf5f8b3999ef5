//! Speed of the finder over the strings of a session, and of redacting that session.
//!
//! `cargo bench -p epitome-redact`. `memchr` over the same bytes shows how fast this machine is.

use std::sync::OnceLock;

use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use epitome_redact::{Finder, Redactor, Rules};
use serde_json::Value;

fn main() {
    divan::main();
}

const SIZE: usize = 20_000_000;

fn session() -> &'static String {
    static SESSION: OnceLock<String> = OnceLock::new();
    SESSION.get_or_init(|| {
        let recorded = String::from_utf8(fixtures::get("claude", "pricing").bytes());
        fixtures::grown::claude(&recorded.expect("a recorded session is text"), SIZE)
    })
}

/// Every string of the session.
fn strings() -> &'static [String] {
    static STRINGS: OnceLock<Vec<String>> = OnceLock::new();
    STRINGS.get_or_init(|| {
        let lines = session().lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let mut open: Vec<Value> = lines.collect();
        let mut strings = Vec::new();
        while let Some(value) = open.pop() {
            match value {
                Value::String(text) => strings.push(text),
                Value::Array(values) => open.extend(values),
                Value::Object(members) => open.extend(members.into_iter().map(|(_, it)| it)),
                Value::Null | Value::Bool(_) | Value::Number(_) => {}
            }
        }
        strings
    })
}

fn len() -> BytesCount {
    BytesCount::new(strings().iter().map(String::len).sum::<usize>())
}

fn finder(kinds: &[&str]) -> Finder {
    Finder::new(Rules::built_in().only(kinds).expect("kinds")).expect("rules")
}

#[divan::bench(sample_count = 10)]
fn memchr(bencher: Bencher<'_, '_>) {
    let count = |text: &String| memchr::memchr_iter(b'\n', text.as_bytes()).count();
    bencher.counter(len()).bench(|| black_box(strings()).iter().map(count).sum::<usize>());
}

#[divan::bench(sample_count = 10, args = [&["secrets"][..], &["secrets", "pii"]])]
fn find(bencher: Bencher<'_, '_>, kinds: &&[&str]) {
    let finder = finder(kinds);
    let count = |text: &String| finder.find(text).len();
    bencher.counter(len()).bench(|| black_box(strings()).iter().map(count).sum::<usize>());
}

#[divan::bench(sample_count = 10, args = [&["secrets"][..], &["secrets", "pii"]])]
fn redact(bencher: Bencher<'_, '_>, kinds: &&[&str]) {
    let finder = finder(kinds);
    let bytes = session().as_bytes();
    let count = BytesCount::of_slice(bytes);
    bencher.counter(count).bench(|| Redactor::new(&finder).splices(&bytes, &[]).len());
}
