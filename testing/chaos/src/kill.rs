//! Kills the program at a random moment.

use std::time::Duration;

use crate::case::Case;
use crate::machine::ended;
use crate::numbers::Numbers;
use crate::task::Task;

/// Starts a task and kills it after a random part of the time that it takes undisturbed; in a few
/// cases after a little more than that time.
///
/// # Errors
///
/// If the program cannot be started.
pub(crate) fn case(tasks: &[(&Task, Duration)], seed: u64) -> anyhow::Result<Case> {
    let mut numbers = Numbers::new(seed);
    let (task, time) = numbers.one_of(tasks);
    let machine = task.machine()?;
    let mut command = machine.command(machine.program());
    command.args(&task.args);
    let part = numbers.below(1_050) as u32;
    let life = *time * part / 1_000;
    let ended = ended(command, Some(life))?;
    Ok(Case {
        what: format!("{} killed after {:.1} ms", task.name, life.as_secs_f64() * 1e3),
        hit: ended.was_killed(),
        violations: task.check(&machine, &ended)?,
    })
}
