//! `epitome watch`: sessions are compacted when they are over.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use clap::Args as ClapArgs;
use epitome::find::{self, SessionFile};
use epitome::watch::{Facts, Trigger, Verdict};
use epitome::{Loaded, hooks, writer};
use epitome_formats::named;
use epitome_model::{Bytes, Turns, units};
use epitome_passes::Recipe;

use super::compact;
use crate::app::App;
use crate::choice::Choice;
use crate::failure::{Failure, Result};
use crate::report::{Outcome, Report};
use crate::session::{Which, parse_age, parse_size};
use crate::text::{self, BOLD, DIM, change};

const EXAMPLES: &str = "\
Examples:
  epitome watch --above 1MB
  epitome watch --once --agent pi --above 100KB --after-turns 5 --older-than 0s
  epitome watch --once --dry-run --older-than 7d";

/// Compact sessions when they are over, between the runs of their agent
///
/// Looks again and again, until it is stopped. All that is given has to hold of a session. One
/// that is in use is never touched.
#[derive(ClapArgs, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Sessions of at least N turns
    #[arg(long, value_name = "N", default_value = "0")]
    pub after_turns: u64,

    /// Sessions of at least this size: 100KB, 1MB
    #[arg(long, value_name = "SIZE", value_parser = parse_size, default_value = "0")]
    pub above: u64,

    /// Sessions last written to at least so long ago: 10m, 2h, 7d
    #[arg(long, value_name = "AGE", value_parser = parse_age, default_value = "10m")]
    pub older_than: Duration,

    #[command(flatten)]
    pub which: Which,

    /// Look once, and end
    #[arg(long)]
    pub once: bool,

    /// Between two looks
    #[arg(long, value_name = "AGE", value_parser = parse_age, default_value = "30s",
          conflicts_with = "once")]
    pub every: Duration,

    /// Change nothing, and say what would be compacted
    #[arg(long)]
    pub dry_run: bool,

    #[command(flatten)]
    pub choice: Choice,
}

pub fn run(app: &App, args: &Args) -> Result<()> {
    let recipe = args.choice.recipe(app)?;
    let trigger = Trigger {
        after_turns: Turns(args.after_turns),
        above: Bytes(args.above),
        older_than: args.older_than,
    };
    let mut watch = Watch { app, args, recipe: &recipe, trigger, seen: HashMap::new() };
    loop {
        let worst = watch.look()?;
        if args.once {
            return worst.map_or(Ok(()), Err);
        }
        std::thread::sleep(args.every.max(Duration::from_secs(1)));
    }
}

struct Watch<'a> {
    app: &'a App,
    args: &'a Args,
    recipe: &'a Recipe,
    trigger: Trigger,
    /// How sessions were when they were last dealt with: until they change, they are left.
    seen: HashMap<PathBuf, (u64, SystemTime)>,
}

impl Watch<'_> {
    /// Looks at every session once. The worst failure, which the others do not wait for.
    fn look(&mut self) -> Result<Option<Failure>> {
        let (mut worst, mut done): (Option<Failure>, u64) = (None, 0);
        let mut found = find::sessions(&self.app.config, self.app.agent());
        found.retain(|file| named(file.agent).is_some_and(|format| writer(format).is_ok()));
        if !self.args.dry_run {
            // What a hook could not compact because it was in use.
            for later in hooks::deferred(&self.app.config) {
                done += u64::from(self.compact(&later.session, &mut worst)?);
            }
        }
        for file in found {
            let stamp = (file.size.0, file.modified);
            if self.seen.get(&file.path) == Some(&stamp) || !self.is_due(&file) {
                continue;
            }
            done += u64::from(self.compact(&file.path, &mut worst)?);
            let now = std::fs::metadata(&file.path);
            let stamp =
                now.ok().and_then(|it| Some((it.len(), it.modified().ok()?))).unwrap_or(stamp);
            self.seen.insert(file.path, stamp);
        }
        if done == 0 && self.args.once && !self.app.global.json {
            self.app.print("nothing to compact\n")?;
        }
        Ok(worst)
    }

    fn is_due(&self, file: &SessionFile) -> bool {
        let now = SystemTime::from(self.app.config.now());
        let facts = Facts {
            turns: None,
            size: file.size,
            age: now.duration_since(file.modified).unwrap_or_default(),
            in_use: false,
        };
        let cheap = self.trigger.judge(&facts);
        if !matches!(cheap, Verdict::Due | Verdict::Read) {
            return false;
        }
        let by_project = self.args.which.project.is_some();
        let session = match cheap == Verdict::Read || by_project {
            true => Loaded::open(&file.path, None).ok(),
            false => None,
        };
        let cwd = session.as_ref().and_then(|it| it.transcript.head.cwd.as_deref());
        if by_project && !self.args.which.takes(cwd) {
            return false;
        }
        let turns = session.map(|it| {
            let units = units(&it.transcript);
            Turns(units.iter().filter(|unit| unit.starts_turn).count() as u64)
        });
        let in_use = !find::users(&self.app.config, &file.path).is_empty();
        self.trigger.judge(&Facts { turns, in_use, ..facts }) == Verdict::Due
    }

    /// Compacts a session and says so. Whether there was something to do.
    fn compact(&self, path: &Path, worst: &mut Option<Failure>) -> Result<bool> {
        match compact::one(self.app, self.recipe, path, self.args.dry_run) {
            Ok(report) if report.is_nothing() => Ok(false),
            Ok(report) if self.app.global.json => {
                self.app.print_json(&report)?;
                Ok(true)
            }
            Ok(report) => {
                self.app.print(&told(&report))?;
                Ok(true)
            }
            Err(failure) => {
                let failure = failure.about(path);
                let why = text::field(&failure.told());
                self.app.note(&format!("{DIM}left:{DIM:#} {why}"));
                let worse = worst.as_ref().is_none_or(|it| it.status < failure.status);
                if !compact::is_excused(&failure) && worse {
                    *worst = Some(failure);
                }
                Ok(false)
            }
        }
    }
}

fn told(report: &Report) -> String {
    let verb = match report.file.outcome {
        Outcome::Compacted | Outcome::Nothing => "compacted",
        Outcome::Planned => "would compact",
    };
    let file = &report.file;
    let tokens = file.context_tokens;
    format!(
        "{verb} {BOLD}{} {}{BOLD:#}  context {} → {} tokens ({})  disk {}\n",
        file.agent,
        text::field(file.id.as_deref().unwrap_or(&file.session)),
        tokens.before,
        tokens.after,
        change(tokens.before.0, tokens.after.0),
        text::bytes_change(file.disk_bytes.before, file.disk_bytes.after),
    )
}
