//! Damages archives: a restore must give the original back, or fail and change nothing.

use std::fs;

use anyhow::{Context as _, ensure};

use crate::case::Case;
use crate::machine::Machine;
use crate::numbers::Numbers;
use crate::subject::{State, Subject, gone};
use crate::violation::{Kind, Violation};

/// A machine with a session that was compacted once or several times, and another session.
pub(crate) struct Archived {
    subject: Subject,
    machine: Machine,
    original: State,
    compacted: State,
}

impl Archived {
    /// Compacts another session, and then a subject `rounds` times. If `rounds` is 1, the subject's
    /// own options are used; otherwise the last round keeps no result whole. `None` if nothing was
    /// removed from the subject.
    ///
    /// # Errors
    ///
    /// If a command fails.
    pub(crate) fn new(
        program: &std::path::Path,
        subject: &Subject,
        rounds: usize,
    ) -> anyhow::Result<Option<Archived>> {
        let machine = Machine::new(program)?;
        subject.put(&machine)?;
        let original = subject.state(&machine)?;
        let other = gone();
        other.put(&machine)?;
        let done = machine.run(&other.compact())?;
        ensure!(done.code() == Some(0), "{}", done.beginning_of_output());
        for round in 0..rounds {
            let mut args = subject.compact();
            if rounds > 1 {
                // Use the default recipe, whose stubs have references. With other stubs, the
                // program could not notice that the newest part of the archive is missing. The
                // first round removes less, so that the second has something left to remove.
                args.retain(|arg| !arg.starts_with("--recipe") && !arg.starts_with("--keep-turns"));
                args.push(if round == 0 { "--keep-results=4" } else { "--keep-results=0" });
            }
            let done = machine.run(&args)?;
            ensure!(done.code() == Some(0), "{}", done.beginning_of_output());
        }
        let compacted = subject.state(&machine)?;
        let is_compacted = compacted != original;
        let archived = Archived { subject: subject.clone(), machine, original, compacted };
        Ok(is_compacted.then_some(archived))
    }
}

/// Damages a pack of an archive, and checks what `archive verify` and a restore make of it.
///
/// # Errors
///
/// If the program cannot be started, or a file cannot be changed.
pub(crate) fn case(several: &[Archived], seed: u64) -> anyhow::Result<Case> {
    let mut numbers = Numbers::new(seed);
    let archived = numbers.one_of(several);
    let machine = archived.machine.like()?;
    let packs = machine.files(".pack");
    let done = damage(&packs, &mut numbers)?;
    let mut violations = Vec::new();
    let mut say = |kind, what| violations.push(Violation { kind, what });
    let verify = machine.run(&["archive", "verify"])?;
    if let Some(what) = verify.misbehaved() {
        say(Kind::Crash, format!("archive verify: {what}"));
    } else if !done.is_whole && verify.code() != Some(5) {
        say(Kind::Wrong, format!("archive verify sees nothing: {}", verify.beginning_of_output()));
    }
    let ended = machine.run(&archived.subject.restore())?;
    if let Some(what) = ended.misbehaved() {
        say(Kind::Crash, what);
    }
    let now = archived.subject.state(&machine)?;
    match ended.code() {
        Some(0) if now != archived.original => {
            say(
                Kind::Wrong,
                format!("status 0, and it is not the original: {}", ended.beginning_of_output()),
            );
        }
        Some(0) => {}
        _ if now != archived.compacted => {
            say(
                Kind::Lost,
                format!("refused, and something was changed: {}", ended.beginning_of_output()),
            );
        }
        _ => {}
    }
    let what = format!("{} of the archive, {}", done.what, archived.subject.name);
    Ok(Case { what, hit: true, violations })
}

/// The damage done to an archive.
struct Done {
    what: String,
    /// Whether every pack that still exists is intact: nothing changed, or a pack was removed.
    is_whole: bool,
}

fn damage(packs: &[std::path::PathBuf], numbers: &mut Numbers) -> anyhow::Result<Done> {
    let path = numbers.one_of(packs);
    let name = path.file_name().context("a name")?.to_string_lossy().into_owned();
    let before = fs::read(path)?;
    let mut bytes = before.clone();
    let at = numbers.below(bytes.len());
    let what = match numbers.below(7) {
        0..3 => {
            bytes[at] ^= 1 << numbers.below(8);
            format!("a bit flipped at {at} in {name}")
        }
        3 => {
            bytes.truncate(at);
            format!("{name} cut at {at}")
        }
        4 => {
            fs::remove_file(path)?;
            return Ok(Done { what: format!("{name} removed"), is_whole: true });
        }
        5 => {
            let end = (at + 1 + numbers.below(400)).min(bytes.len());
            bytes[at..end].fill(0);
            format!("zeros from {at} to {end} in {name}")
        }
        _ => {
            let other = numbers.one_of(packs);
            bytes = fs::read(other)?;
            let other = other.file_name().context("a name")?.to_string_lossy();
            // A pack names its session, so the program must notice this.
            format!("{other} copied over {name}")
        }
    };
    fs::write(path, &bytes)?;
    Ok(Done { what, is_whole: bytes == before })
}
