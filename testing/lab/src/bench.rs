//! `cargo lab bench`: measures speed and memory use of the program, and prints a table.
//!
//! A process of its own starts and measures each command. The printed time is the best of several
//! runs, the peak the largest of them. The seconds of two machines cannot be compared; so the table
//! also has the ratio to the time in which one core of the same machine parses the same bytes as
//! JSON.

mod baseline;
mod sessions;

use std::cell::RefCell;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, ensure};
use nix::sys::resource::{UsageWho, getrusage};

use baseline::{Baseline, Row};
use sessions::{Sessions, Size};
use xtask::{cargo, print, say};

/// The command with which this program calls itself.
pub(crate) const MEASURE: &str = "measure-one";

const MIB: f64 = 1_048_576.0;

/// The time that a command took, and its peak of memory.
#[derive(Clone, Copy, Debug)]
struct Taken {
    seconds: f64,
    peak_mib: f64,
}

/// Runs every command over sessions that are made from the sessions in `folder`, or from the
/// recorded sessions, and prints the table.
///
/// # Errors
///
/// If the program does not build, or a command fails.
pub(crate) fn run(folder: Option<&Path>) -> anyhow::Result<()> {
    let bench = Bench::new("dist", folder, Size::Full)?;
    say(&format!(
        "one session of {:.1} MB; {} sessions of {:.1} MB",
        bench.sessions.large_len as f64 / 1e6,
        bench.sessions.many,
        bench.sessions.many_len as f64 / 1e6,
    ));
    head();
    bench.start()?;
    bench.one_large()?;
    bench.compacted()?;
    bench.many()
}

fn head() {
    print("| what | seconds | of parsing | MB/s | peak MiB | aim |");
    print("|---|---|---|---|---|---|");
}

/// The factor by which a command may exceed its baseline.
const TIMES: f64 = 1.5;
/// The factor by which reading a compacted session may exceed reading the original.
const COMPACTED: f64 = 1.3;

/// What to do with the result of a small run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Held {
    /// Compare it with the baseline.
    Check,
    /// Make it the baseline.
    Write,
}

/// Runs the commands over one small session, with the program of `profile`, and compares their
/// times with the baseline in the repository.
///
/// # Errors
///
/// If the program does not build, a command fails or takes too long, or the file of the baseline
/// cannot be read or written.
pub(crate) fn hold(held: Held, profile: &str) -> anyhow::Result<()> {
    let bench = Bench::new(profile, None, Size::Small)?;
    head();
    bench.one_large()?;
    bench.compacted()?;
    let rows = bench.rows.take();
    let mut baseline = Baseline::read()?;
    if held == Held::Write {
        return baseline.write(profile, rows);
    }
    let slow = baseline.slower(profile, &rows, TIMES);
    ensure!(slow.is_empty(), "slower than {}:\n{}", baseline::PATH, slow.join("\n"));
    Ok(())
}

struct Bench {
    epitome: String,
    sessions: Sessions,
    /// Seconds in which one core parses a megabyte of JSON.
    parsing: f64,
    /// What was measured.
    rows: RefCell<Vec<Row>>,
}

/// The seconds per megabyte that one core needs to parse a session as JSON, the best of several
/// runs.
fn parsing(session: &Path, len: u64) -> anyhow::Result<f64> {
    let bytes = std::fs::read(session)?;
    let mut seconds = f64::INFINITY;
    for _ in 0..5 {
        let begin = Instant::now();
        for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            std::hint::black_box(serde_json::from_slice::<serde_json::Value>(line)?);
        }
        seconds = seconds.min(begin.elapsed().as_secs_f64());
    }
    Ok(seconds / (len as f64 / 1e6))
}

impl Bench {
    fn new(profile: &str, folder: Option<&Path>, size: Size) -> anyhow::Result<Bench> {
        let epitome = cargo::epitome(profile)?.to_string_lossy().into_owned();
        let sessions = Sessions::make(folder, size)?;
        let parsing = parsing(&sessions.large, sessions.large_len)?;
        Ok(Bench { epitome, sessions, parsing, rows: RefCell::default() })
    }

    /// Compacts the large session and measures how long commands take to read it before and after.
    /// The commands restore what was removed, and should not take much longer than with the
    /// original.
    fn compacted(&self) -> anyhow::Result<()> {
        let len = self.sessions.large_len;
        let file = self.sessions.large.to_string_lossy();
        let pages = self.sessions.folder().join("pages");
        let pages = pages.to_string_lossy();
        let render = ["render", "--file", &file, "--json", "--out", &pages, "--format"];
        let readers = [
            ("inspect", vec!["inspect", &file, "--json"]),
            ("markdown", [&render[..], &["markdown"]].concat()),
            ("html", [&render[..], &["html"]].concat()),
        ];
        let times = || -> anyhow::Result<Vec<Taken>> {
            readers.iter().map(|(_, line)| self.best(5, line)).collect()
        };
        let before = times()?;
        self.once(&["compact", &file, "--json", "--keep-turns", "1"])?;
        for (((name, _), before), after) in readers.iter().zip(before).zip(times()?) {
            self.row(&format!("{name} of it, compacted"), after, len, "");
            let ratio = after.seconds / before.seconds;
            print(&format!("| the same, of the time before | {ratio:.2} | | | | < {COMPACTED} |"));
            self.rows.borrow_mut().push(Row::of_limit(name, ratio, COMPACTED));
        }
        Ok(())
    }

    fn start(&self) -> anyhow::Result<()> {
        let taken = self.best(10, &["--version"])?;
        self.row("`epitome --version`", taken, 0, "< 0.010 s");
        Ok(())
    }

    fn one_large(&self) -> anyhow::Result<()> {
        let (file, len) = (self.sessions.large.to_string_lossy(), self.sessions.large_len);
        self.row("read and split into lines with memchr", self.floor()?, len, "the floor");
        let aims = [("o200k", "< 0.6 s, < 96 MiB"), ("estimate", "< 0.6 s, < 48 MiB")];
        for (count, aim) in aims {
            let taken = self.best(5, &["inspect", &file, "--json", "--count", count])?;
            self.row(&format!("`inspect --count {count}`"), taken, len, aim);
        }
        for (count, aim) in aims {
            let line = ["compact", &file, "--dry-run", "--json", "--count", count];
            let taken = self.best(5, &line)?;
            self.row(&format!("`compact --dry-run --count {count}`"), taken, len, aim);
        }
        let out = self.sessions.folder().join("out.jsonl");
        let line = ["compact", &file, "--json", "--out", &out.to_string_lossy()];
        self.row("`compact --out`", self.best(1, &line)?, len, "");
        let pages = out.with_extension("pages");
        let pages = pages.to_string_lossy();
        let render = ["render", "--file", &file, "--json", "--out", &pages, "--format"];
        let aim = "< 2 s, < 200 MiB";
        self.row(
            "`render --format html --out`",
            self.best(3, &[&render[..], &["html"]].concat())?,
            len,
            aim,
        );
        for (format, aim) in [("html", aim), ("markdown", ""), ("json", "")] {
            let line = [&render[..], &[format, "--no-redact"]].concat();
            self.row(&format!("the same, {format}, `--no-redact`"), self.best(3, &line)?, len, aim);
        }
        Ok(())
    }

    fn many(&self) -> anyhow::Result<()> {
        let len = self.sessions.many_len;
        self.row("`list`, cold", self.best(1, &["list", "--json"])?, len, "< 2 s");
        self.row("`list`, warm", self.best(5, &["list", "--json"])?, len, "< 0.2 s");
        let line = ["compact", "--all", "--json"];
        self.row("`compact --all`", self.best(1, &line)?, len, "< 10 s");
        Ok(())
    }

    /// The time to read the large session and count its lines, as a lower bound for every command.
    fn floor(&self) -> anyhow::Result<Taken> {
        let mut seconds = f64::INFINITY;
        for _ in 0..5 {
            let begin = Instant::now();
            let bytes = std::fs::read(&self.sessions.large)?;
            let n = memchr::memchr_iter(b'\n', &bytes).count();
            ensure!(n > 0, "a session has lines");
            seconds = seconds.min(begin.elapsed().as_secs_f64());
        }
        Ok(Taken { seconds, peak_mib: self.sessions.large_len as f64 / MIB })
    }

    /// The best of `n` runs of the program.
    fn best(&self, n: u32, args: &[&str]) -> anyhow::Result<Taken> {
        let mut best = Taken { seconds: f64::INFINITY, peak_mib: 0.0 };
        for _ in 0..n {
            let taken = self.once(args)?;
            best.seconds = best.seconds.min(taken.seconds);
            best.peak_mib = best.peak_mib.max(taken.peak_mib);
        }
        Ok(best)
    }

    fn once(&self, args: &[&str]) -> anyhow::Result<Taken> {
        let home = self.sessions.folder();
        let output = Command::new(std::env::current_exe()?)
            .args([MEASURE, &self.epitome])
            .args(args)
            .env("HOME", home)
            .env("EPITOME_HOME", home.join("epitome"))
            .env("EPITOME_CONFIG", home.join("settings"))
            .env_remove("CLAUDE_CONFIG_DIR")
            .env_remove("PI_CODING_AGENT_DIR")
            .env_remove("PI_CODING_AGENT_SESSION_DIR")
            .stderr(Stdio::inherit())
            .output()?;
        ensure!(output.status.success(), "{}: {}", args.join(" "), output.status);
        let printed = String::from_utf8(output.stdout)?;
        let mut numbers = printed.split_whitespace().map(str::parse);
        let (Some(seconds), Some(peak_mib)) = (numbers.next(), numbers.next()) else {
            anyhow::bail!("{MEASURE} said {printed:?}");
        };
        Ok(Taken { seconds: seconds?, peak_mib: peak_mib? })
    }
}

/// Runs a command, and prints how many seconds it took and its peak of memory in MiB.
///
/// # Errors
///
/// If the command cannot be run or fails.
pub(crate) fn measure(command: &[&str]) -> anyhow::Result<()> {
    let (program, args) = command.split_first().context("which command?")?;
    let begin = Instant::now();
    let status = Command::new(program).args(args).stdout(Stdio::null()).status()?;
    let seconds = begin.elapsed().as_secs_f64();
    ensure!(status.success(), "{}: {status}", command.join(" "));
    // The peak is reported in bytes on macOS, in KiB elsewhere.
    let unit = if cfg!(target_os = "macos") { 1.0 } else { 1024.0 };
    let peak = getrusage(UsageWho::RUSAGE_CHILDREN)?.max_rss() as f64 * unit / MIB;
    print(&format!("{seconds} {peak}"));
    Ok(())
}

impl Bench {
    fn row(&self, what: &str, taken: Taken, bytes: u64, aim: &str) {
        let Taken { seconds, peak_mib } = taken;
        let megabytes = bytes as f64 / 1e6;
        let (ratio, speed) = match bytes {
            0 => (String::new(), String::new()),
            _ => (
                format!("{:.2}", seconds / (megabytes * self.parsing)),
                format!("{:.0}", megabytes / seconds),
            ),
        };
        if bytes > 0 {
            let ratio = seconds / (megabytes * self.parsing);
            self.rows.borrow_mut().push(Row::new(what, ratio));
        }
        print(&format!("| {what} | {seconds:.3} | {ratio} | {speed} | {peak_mib:.1} | {aim} |"));
    }
}
