//! Speed of the counters over text that resembles tool output.
//!
//! `cargo bench -p epitome-tokens`

use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use epitome_model::Counter;
use epitome_tokens::{Estimate, O200k};

fn main() {
    divan::main();
}

const KINDS: [&str; 6] = ["listing", "code", "json", "log", "diff", "base64"];

#[divan::bench(args = KINDS)]
fn o200k(bencher: Bencher<'_, '_>, kind: &str) {
    measure(bencher, kind, &O200k::new());
}

#[divan::bench(args = KINDS)]
fn estimate(bencher: Bencher<'_, '_>, kind: &str) {
    measure(bencher, kind, &Estimate::new());
}

fn measure(bencher: Bencher<'_, '_>, kind: &str, counter: &dyn Counter) {
    let text = generate(kind, 1_000_000);
    // Loads the vocabulary first, so that loading is not measured.
    counter.count(&text);
    bencher.counter(BytesCount::of_str(&text)).bench(|| counter.count(black_box(&text)));
}

/// A generator of the same numbers in every run, without a dependency.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % sides
    }

    fn pick<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[self.roll(words.len())]
    }
}

const WORDS: [&str; 24] = [
    "session", "token", "read", "write", "archive", "config", "parser", "request", "value",
    "error", "handler", "stream", "buffer", "commit", "branch", "update", "index", "context",
    "message", "result", "entry", "the", "of", "with",
];
const ENDINGS: [&str; 5] = ["rs", "go", "ts", "py", "md"];

/// Lines of one kind, `size` bytes or a little more.
fn generate(kind: &str, size: usize) -> String {
    let mut dice = Dice(7);
    let mut text = String::with_capacity(size + 200);
    let mut number = 0;
    while text.len() < size {
        number += 1;
        let line = match kind {
            "listing" => listing(&mut dice),
            "code" => code(&mut dice, number),
            "json" => json(&mut dice, number),
            "log" => log(&mut dice, number),
            "diff" => format!("{}{}", dice.pick(&["+", "-", " "]), code(&mut dice, number)),
            _ => base64(&mut dice),
        };
        text.push_str(&line);
        text.push('\n');
    }
    text
}

fn listing(dice: &mut Dice) -> String {
    format!(
        "./crates/{}/src/{}/{}_{}.{}",
        dice.pick(&WORDS),
        dice.pick(&WORDS),
        dice.pick(&WORDS),
        dice.pick(&WORDS),
        dice.pick(&ENDINGS)
    )
}

fn code(dice: &mut Dice, number: usize) -> String {
    let (a, b, c) = (dice.pick(&WORDS), dice.pick(&WORDS), dice.pick(&WORDS));
    match dice.roll(5) {
        0 => format!("{number:6}\u{2192}    let {a}_{b} = self.{c}.{a}({b}, {})?;", dice.roll(900)),
        1 => format!("{number:6}\u{2192}    // Keeps the {a} of every {b}, and the {c} after it."),
        2 => format!("{number:6}\u{2192}pub fn {a}_{b}({c}: &str) -> Option<usize> {{"),
        3 => format!("{number:6}\u{2192}        }}"),
        _ => format!("{number:6}\u{2192}        if {a}.is_empty() || {b} >= {c}.len() {{"),
    }
}

fn json(dice: &mut Dice, number: usize) -> String {
    format!(
        "{{\"id\":{number},\"{}\":\"{} {}\",\"ok\":{},\"elapsed_ms\":{}.{}}}",
        dice.pick(&WORDS),
        dice.pick(&WORDS),
        dice.pick(&WORDS),
        dice.roll(2) == 0,
        dice.roll(5_000),
        dice.roll(1_000)
    )
}

fn log(dice: &mut Dice, number: usize) -> String {
    format!(
        "2026-11-20T{:02}:{:02}:{:02}.{:03}Z {} {}::{}: {} {} finished id={number:08x} status={}",
        dice.roll(24),
        dice.roll(60),
        dice.roll(60),
        dice.roll(1_000),
        dice.pick(&["INFO ", "WARN ", "ERROR", "DEBUG"]),
        dice.pick(&WORDS),
        dice.pick(&WORDS),
        dice.pick(&WORDS),
        dice.pick(&WORDS),
        dice.pick(&["200", "404", "500"])
    )
}

fn base64(dice: &mut Dice) -> String {
    let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    (0..76).map(|_| char::from(letters[dice.roll(64)])).collect()
}
