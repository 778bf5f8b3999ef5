//! Simulates agents that write while a session is compacted and restored.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::case::Case;
use crate::machine::{Machine, ended};
use crate::mutant::append;
use crate::numbers::Numbers;
use crate::subject::{Subject, subjects};
use crate::violation::{Kind, Violation};

/// The duration of a case.
const LIFE: Duration = Duration::from_secs(3);

/// Sessions whose agents only append.
pub(crate) struct Writers {
    start: Machine,
    subjects: Vec<Subject>,
}

impl Writers {
    pub(crate) fn new(program: &Path) -> anyhow::Result<Writers> {
        let mut subjects = subjects()?;
        subjects.retain(|it| it.files[0].0.ends_with(".jsonl") && it.files.len() == 1);
        Ok(Writers { start: Machine::new(program)?, subjects })
    }

    /// An agent appends lines at random moments while the program compacts and restores: sometimes
    /// with `--force`, sometimes killed, sometimes two runs at once. After a last restore, the file
    /// must be the original and then each line once, in order.
    pub(crate) fn case(&self, seed: u64) -> anyhow::Result<Case> {
        let mut numbers = Numbers::new(seed);
        let subject = numbers.one_of(&self.subjects);
        let machine = self.start.like()?;
        subject.put(&machine)?;
        let path = machine.home.join(&subject.files[0].0);
        let pause = 5 + numbers.below(120) as u64;
        let is_over = AtomicBool::new(false);
        let mut violations = Vec::new();
        let (written, runs) = std::thread::scope(|scope| {
            let (is_over, path, mut own) = (&is_over, &path, numbers.clone());
            let writer = scope.spawn(move || {
                let mut written = Vec::new();
                while !is_over.load(Ordering::Relaxed) {
                    let line = format!("{{\"type\":\"x\",\"n\":{}}}\n", written.len());
                    append(path, line.as_bytes())?;
                    written.push(line);
                    std::thread::sleep(Duration::from_millis(own.below(2 * pause as usize) as u64));
                }
                anyhow::Ok(written)
            });
            let mut runs = 0;
            let begin = Instant::now();
            let done = loop {
                if begin.elapsed() > LIFE {
                    break Ok(runs);
                }
                if let Err(err) = self.round(subject, &machine, &mut numbers, &mut violations) {
                    break Err(err);
                }
                runs += 1;
            };
            is_over.store(true, Ordering::Relaxed);
            let written = writer.join().unwrap_or_else(|_| Err(anyhow::anyhow!("a panic")))?;
            anyhow::Ok((written, done?))
        })?;
        // One restore must bring everything back, also if lines were appended between two
        // compactions.
        machine.run(&subject.restore())?;
        let mut expect = subject.files[0].1.clone();
        expect.extend(written.concat().into_bytes());
        if std::fs::read(&path)? != expect {
            let n = written.len();
            let what = format!("{n} lines were appended, and are not all behind the original");
            violations.push(Violation { kind: Kind::Lost, what });
        }
        let what = format!("{}: a writer every {pause} ms, {runs} commands", subject.name);
        Ok(Case { what, hit: true, violations })
    }

    fn round(
        &self,
        subject: &Subject,
        machine: &Machine,
        numbers: &mut Numbers,
        violations: &mut Vec<Violation>,
    ) -> anyhow::Result<()> {
        let commands = if numbers.once_in(4) { 2 } else { 1 };
        let mut started = Vec::new();
        for _ in 0..commands {
            let mut args = if numbers.once_in(2) { subject.compact() } else { subject.restore() };
            if numbers.once_in(3) {
                args.push("--force");
            }
            let mut command = machine.command(machine.program());
            command.args(&args);
            let life = numbers.once_in(6).then(|| Duration::from_millis(numbers.below(60) as u64));
            started.push(std::thread::spawn(move || ended(command, life)));
        }
        for command in started {
            let ended = command.join().unwrap_or_else(|_| Err(anyhow::anyhow!("a panic")))?;
            if let Some(what) = ended.misbehaved() {
                violations.push(Violation { kind: Kind::Crash, what });
            } else if ended.code() == Some(1) {
                violations.push(Violation { kind: Kind::Wrong, what: ended.beginning_of_output() });
            }
        }
        Ok(())
    }
}
