//! `epitome restore SESSION --at`: restores a version that `epitome keep` has seen.

use std::ffi::OsStr;

use epitome::keep::{
    FileKey, RestoreVersion, RestoredVersion, Vault, file_with_version, files_at_place,
    files_of_session, versions_at_place,
};
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{SpanRelativeTo, Timestamp};

use super::Args;
use crate::app::App;
use crate::cmd::history::{kept_file, not_kept};
use crate::cmd::keep::warn_of_damage;
use crate::confirm::ask_to_continue;
use crate::failure::{Failure, Result};
use crate::report::Lines;
use crate::text::{self, BOLD, DIM, count, short_hash};

pub fn run(app: &App, args: &Args, session: &OsStr, at: &str) -> Result<()> {
    let mut vault = app.config.vault()?;
    warn_of_damage(app, &vault);
    let file = kept_file(&vault, &app.config, session, app.agent())?;
    let (file, at) = file_and_version(app, &vault, file, at)?;
    let (file, number) = version_at(app, &vault, &file, at)?;
    let restore = RestoreVersion { file: &file, number, force: args.force };
    app.check_output_has_reader()?;
    let report = match &args.out {
        Some(out) if args.dry_run => restore.plan_copy(&vault, out)?,
        Some(out) => restore.write_copy(&vault, out)?,
        None if args.dry_run => restore.plan(&app.config, &vault)?,
        None => {
            // If the version cannot be restored, this fails before the user is asked.
            let plan = restore.plan(&app.config, &vault)?;
            let name = text::path(&plan.path);
            let deleted = plan.parts.iter().filter(|part| part.deleted).count() as u64;
            let more = match deleted {
                0 => String::new(),
                _ => format!(
                    ", and {} that did not exist then {} kept and deleted",
                    count(deleted, "file"),
                    if deleted == 1 { "is" } else { "are" },
                ),
            };
            let question =
                format!("Version {number} of {name} replaces what is there now{more}. Go on?");
            if plan.path.exists() {
                ask_to_continue(app, args.yes, &question)?;
            }
            restore.run(&app.config, &mut vault)?
        }
    };
    if app.global.json { app.print_json(&report) } else { app.page(&render(&report)) }
}

/// Splits the name of a machine off `at`: `00aa/3` is version 3 of the machine whose name begins
/// with `00aa`. Returns the file of the session on that machine, or `file` if `at` names no
/// machine, and the rest of `at`.
fn file_and_version<'a>(
    app: &App,
    vault: &Vault,
    file: FileKey,
    at: &'a str,
) -> Result<(FileKey, &'a str)> {
    let Some((machine, at)) = at.split_once('/') else { return Ok((file, at)) };
    let is_newest = |it: &FileKey| files_at_place(&app.config, vault, it).last() == Some(it);
    let same = files_of_session(vault, &file).into_iter().filter(|it| it.part == file.part);
    let found: Vec<FileKey> =
        same.filter(|it| it.machine.starts_with(machine) && is_newest(it)).collect();
    match &found[..] {
        [one] => Ok((one.clone(), at)),
        _ => {
            let machine = text::field(machine);
            let what = match found.len() {
                0 => format!("no machine `{machine}` has kept this session"),
                many => format!("`{machine}` means {many} files of this session"),
            };
            Err(Failure::usage(what).hint("`epitome history SESSION` names the machines"))
        }
    }
}

/// Finds the version that `at` means: the one with this number, or the last one that was seen by
/// this time. Returns the number of the version and the file that has it, which is `file`, or the
/// same file in a home folder that was moved since.
fn version_at(app: &App, vault: &Vault, file: &FileKey, at: &str) -> Result<(FileKey, u64)> {
    if let Ok(number) = at.parse() {
        return match file_with_version(&app.config, vault, file, number) {
            Some(file) => Ok((file, number)),
            None => {
                let what = format!("no version {number} of this session was kept");
                Err(not_kept(
                    vault,
                    Failure::usage(what).hint("`epitome history SESSION` lists the versions"),
                ))
            }
        };
    }
    let Some(time) = time(app.config.now(), at) else {
        let what = format!("`{at}` is neither a version nor a time");
        return Err(Failure::usage(what).hint("write it like 7, 2h, 2026-01-31, 2026-01-31T14:00"));
    };
    let versions = versions_at_place(&app.config, vault, file);
    let seen = versions.into_iter().rev().find(|(_, version)| version.seen <= time);
    match seen {
        Some((file, version)) => Ok((file, version.number)),
        None => {
            let failure = Failure::usage(format!("no version was seen by {time}"));
            Err(not_kept(vault, failure.hint("`epitome history SESSION` lists the versions")))
        }
    }
}

/// Parses a time: a time stamp, a local date with or without a time of day, or how long ago the
/// time was. A date alone means the end of that day.
fn time(now: Timestamp, text: &str) -> Option<Timestamp> {
    let local = |time: DateTime| Some(time.to_zoned(TimeZone::system()).ok()?.timestamp());
    if let Ok(time) = text.parse::<Timestamp>() {
        return Some(time);
    }
    // `Date` also parses a date with a time of day, and `DateTime` a date alone.
    let has_time_of_day = text.contains(':');
    if !has_time_of_day && let Ok(date) = text.parse::<Date>() {
        return local(date.at(23, 59, 59, 999_999_999));
    }
    if has_time_of_day && let Ok(time) = text.parse::<DateTime>() {
        return local(time);
    }
    let span: jiff::Span = text.parse().ok()?;
    now.checked_sub(span.to_duration(SpanRelativeTo::days_are_24_hours()).ok()?).ok()
}

fn render(report: &RestoredVersion) -> String {
    let is_unchanged = report.unchanged && report.parts.is_empty();
    let verb = match (is_unchanged, report.dry_run) {
        (true, _) => "nothing to do",
        (false, true) => "would restore",
        (false, false) => "restored",
    };
    let mut text = format!("{BOLD}{verb}{BOLD:#}  {}\n", text::path(&report.path));
    if report.dry_run {
        text.push_str(&format!("{DIM}nothing was written{DIM:#}\n"));
    }
    let mut lines = Lines::default();
    lines.add("version", format!("{}, {}", report.version, report.bytes));
    lines.add("verified", short_hash(&report.blake3.to_string()));
    if let Some(replaced) = report.replaced.filter(|_| !report.unchanged) {
        lines.add("before", format!("kept as version {replaced}; --at {replaced} brings it back"));
    }
    for part in &report.parts {
        let name = part.path.file_stem().unwrap_or_default().to_string_lossy();
        let name = text::field(&name);
        let before = part.replaced.map(|number| format!(", before kept as version {number}"));
        let before = before.unwrap_or_default();
        match part.deleted {
            true => {
                let verb = if report.dry_run { "would delete" } else { "deleted" };
                lines.add(verb, format!("{name}  did not exist then{before}"));
            }
            false => lines.add("with", format!("{name}  version {}{before}", part.version)),
        }
    }
    text.push_str(&lines.render());
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_ends_with_the_day_and_a_time_of_day_counts() {
        let now: Timestamp = "2026-11-20T12:00:00Z".parse().expect("a time");
        let local = |time: &str| {
            let time: DateTime = time.parse().expect("a time");
            time.to_zoned(TimeZone::system()).expect("a time here").timestamp()
        };
        for (text, expect) in [
            ("2026-11-19", local("2026-11-19T23:59:59.999999999")),
            ("2026-11-19T14:00", local("2026-11-19T14:00")),
            ("2026-11-19 14:00:30", local("2026-11-19T14:00:30")),
            ("2026-11-19T14:00:00Z", "2026-11-19T14:00:00Z".parse().expect("a time")),
            ("2h", "2026-11-20T10:00:00Z".parse().expect("a time")),
        ] {
            assert_eq!(time(now, text), Some(expect), "{text}");
        }
    }
}
