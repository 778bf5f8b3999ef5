//! `cargo lab chaos`: injects faults and checks the promises of the program.

use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use chaos::Campaign;

use fixtures::skipped;
use xtask::{cargo, print, say};

/// The duration of a campaign in minutes, unless `--minutes` gives another one.
const MINUTES: f64 = 10.0;

/// Runs a campaign: `--minutes N`, `--seed S`, `--only PART`, `--cases N`, each at most once.
///
/// # Errors
///
/// If the program does not build, an option is unknown, or a promise does not hold.
pub(crate) fn run(options: &[&str]) -> anyhow::Result<()> {
    let time = Duration::from_secs_f64(MINUTES * 60.0);
    let program = std::env::var_os("EPITOME_PROGRAM").map(Into::into);
    let program = program.map_or_else(|| cargo::epitome("dev"), Ok)?;
    let mut campaign = Campaign { program, time, seed: 1, only: None, cases: None };
    for option in options.chunks(2) {
        let [name, value] = option else { bail!("{} wants a value", option[0]) };
        let wrong = || format!("{name} {value}");
        match *name {
            "--minutes" => {
                let minutes: f64 = value.parse().with_context(wrong)?;
                campaign.time = Duration::try_from_secs_f64(minutes * 60.0).with_context(wrong)?;
            }
            "--seed" => campaign.seed = value.parse().with_context(wrong)?,
            "--only" => campaign.only = Some(value.parse()?),
            "--cases" => campaign.cases = Some(value.parse().with_context(wrong)?),
            _ => bail!("chaos has no option {name}"),
        }
    }
    let begin = Instant::now();
    let report = chaos::run(&campaign, &mut |line| say(line))?;
    for (what, why) in &report.left_out {
        skipped(what, why);
    }
    print(report.table().trim_end());
    let minutes = begin.elapsed().as_secs_f64() / 60.0;
    let points = report.points;
    print(&format!(
        "{minutes:.1} minutes; {points} system calls and faults to be tried one by one"
    ));
    ensure!(report.is_clean(), "promises were broken: see above");
    Ok(())
}
