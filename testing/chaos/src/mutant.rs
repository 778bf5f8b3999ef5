//! Damages sessions: many for the library, some for the program.

use std::cell::RefCell;
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::time::Instant;

use epitome_formats::{FORMATS, Format};
use fixtures::damage;
use fixtures::generate;
use proptest::strategy::{BoxedStrategy, Strategy as _, ValueTree as _};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use crate::case::Case;
use crate::machine::{DEADLINE, Machine};
use crate::numbers::Numbers;
use crate::subject::{Subject, subjects};
use crate::violation::{Kind, Violation};

/// A format with a strategy for damaged sessions.
type Damaged = (&'static Format, BoxedStrategy<Vec<u8>>);

/// Tests of the library with damaged sessions.
pub(crate) struct Library {
    kinds: Vec<Damaged>,
}

thread_local! {
    /// The place and the message of the last panic.
    static PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

impl Library {
    /// Prepares sessions of every format: recorded ones, corpus cases and, where a generator
    /// exists, generated ones. From now on a panic in a thread named `mutants` is noted and not
    /// printed.
    pub(crate) fn new() -> Library {
        let mut kinds = Vec::new();
        for format in FORMATS {
            kinds.push((format, damage::damaged(damage::part_of(format.name))));
            if let Some(agent) = generate::AGENTS.iter().find(|agent| **agent == format.name) {
                kinds.push((format, damage::damaged(generate::session(agent))));
            }
            if let Some(wire) = generate::WIRES.iter().find(|wire| **wire == format.name) {
                kinds.push((format, damage::damaged(generate::body(wire))));
            }
        }
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| match std::thread::current().name() {
            Some("mutants") => PANIC.with_borrow_mut(|said| *said = info.to_string()),
            Some(_) | None => before(info),
        }));
        Library { kinds }
    }

    /// Checks the properties of sessions (`properties::session`) with a damaged session. A panic is
    /// a violation, and so is a duration beyond the deadline.
    pub(crate) fn case(&self, seed: u64) -> anyhow::Result<Case> {
        let (format, strategy) = Numbers::new(seed).one_of(&self.kinds);
        let mutant = value(strategy, seed)?;
        let begin = Instant::now();
        let format: &'static Format = format;
        // A thread of its own, so that panics of other threads are still reported.
        let worker = std::thread::Builder::new().name("mutants".to_owned()).spawn(move || {
            let held =
                panic::catch_unwind(AssertUnwindSafe(|| properties::session(format, &mutant)));
            held.map_err(|_| PANIC.with_borrow(String::clone))
        })?;
        let held = worker.join().unwrap_or_else(|_| Err("the thread died".to_owned()));
        let mut violations = Vec::new();
        if let Err(what) = held {
            violations.push(Violation { kind: Kind::Wrong, what });
        }
        if begin.elapsed() > DEADLINE {
            let what = format!("takes {} s", begin.elapsed().as_secs());
            violations.push(Violation { kind: Kind::Crash, what });
        }
        let what = format!("a damaged session of {}, in the library", format.name);
        Ok(Case { what, hit: true, violations })
    }
}

/// The value of a strategy for a seed.
fn value<T: std::fmt::Debug>(strategy: &BoxedStrategy<T>, seed: u64) -> anyhow::Result<T> {
    let mut numbers = Numbers::new(seed);
    let bytes: Vec<u8> = (0..4).flat_map(|_| numbers.next().to_le_bytes()).collect();
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let tree = strategy.new_tree(&mut runner);
    Ok(tree.map_err(|err| anyhow::anyhow!("no value: {err}"))?.current())
}

/// Commands of which each case runs one after the compaction and the restore. `{}` is the session.
const QUESTIONS: &[&str] = &[
    "inspect {}",
    "inspect {} --json",
    "list",
    "list --json",
    "render {}",
    "render {} --format html",
    "render {} --format markdown --compact",
    "render {} --format json",
    "redact {}",
    "scan {}",
    "export {} --to transcript",
    "port {} --to claude",
    "port {} --to codex",
    "compact {} --dry-run --recipe=epitome",
    "compact {} --diff --dry-run",
    "archive ls",
    "archive verify",
];

/// Sessions that a case damages and then lets the program compact and restore.
pub(crate) struct Program {
    start: Machine,
    subjects: Vec<Subject>,
}

impl Program {
    pub(crate) fn new(program: &Path) -> anyhow::Result<Program> {
        Ok(Program { start: Machine::new(program)?, subjects: subjects()? })
    }

    /// Damages one file of a subject and compacts it; then, in some cases, appends a line to the
    /// session's own file; then restores. The files must be as before, apart from the line. At the
    /// end, one of [`QUESTIONS`] is asked.
    pub(crate) fn case(&self, seed: u64) -> anyhow::Result<Case> {
        let mut numbers = Numbers::new(seed);
        let mut subject = numbers.one_of(&self.subjects).clone();
        let is_text = subject.files[0].0.ends_with(".jsonl");
        let which = numbers.below(subject.files.len());
        let (name, bytes) = subject.files[which].clone();
        let mutant = value(&damage::damaged(proptest::strategy::Just(bytes).boxed()), seed)?;
        subject.files[which].1 = mutant;
        let machine = self.start.like()?;
        subject.put(&machine)?;
        let mut violations = Vec::new();
        let mut say = |kind, what| violations.push(Violation { kind, what });
        let mut original = subject.state(&machine)?;
        let compact = machine.run(&subject.compact())?;
        let more: &[u8] = if is_text && numbers.once_in(2) { b"{\"type\":\"x\"}\n" } else { b"" };
        if !more.is_empty() && compact.code() == Some(0) {
            append(&machine.home.join(&subject.files[0].0), more)?;
        }
        let restore = machine.run(&subject.restore())?;
        for ended in [&compact, &restore] {
            if let Some(what) = ended.misbehaved() {
                say(Kind::Crash, what);
            } else if ended.code() == Some(1) {
                say(
                    Kind::Wrong,
                    format!("reports a bug of its own: {}", ended.beginning_of_output()),
                );
            }
        }
        if compact.code() == Some(0) {
            let first = original.get_mut(&subject.files[0].0).and_then(Option::as_mut);
            first.into_iter().for_each(|it| it.extend_from_slice(more));
        }
        if subject.state(&machine)? != original {
            let what = format!(
                "not as before: {} / {}",
                compact.beginning_of_output(),
                restore.beginning_of_output()
            );
            say(Kind::Lost, what);
        }
        let question = numbers.one_of(QUESTIONS).replace("{}", &subject.target);
        let ended = machine.run(&question.split(' ').collect::<Vec<_>>())?;
        if let Some(what) = ended.misbehaved() {
            say(Kind::Crash, format!("{question}: {what}"));
        } else if ended.code() == Some(1) {
            say(Kind::Wrong, format!("{question}: reports a bug: {}", ended.beginning_of_output()));
        }
        let what = format!("{}: {name} damaged; {question}", subject.name);
        Ok(Case { what, hit: true, violations })
    }
}

/// Appends as agents do: opens the file, writes all bytes with one call, and closes it.
pub(crate) fn append(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    use std::io::Write as _;
    let mut file = std::fs::File::options().append(true).open(path)?;
    Ok(file.write_all(bytes)?)
}
