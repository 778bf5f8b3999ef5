//! When a session is compacted between two runs of its agent.

use std::path::Path;
use std::time::{Duration, SystemTime};

use epitome_agents::SessionFile;
use epitome_model::{Bytes, Tokens, Turns, units};

use crate::config::Config;
use crate::ops::OpenSession;

/// What has to hold of a session before it is compacted: all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trigger {
    /// It has at least so many turns.
    pub after_turns: Turns,
    /// It has at least so many bytes on disk.
    pub above: Bytes,
    /// It was last written to at least so long ago.
    pub older_than: Duration,
}

/// A share of something, in thousandths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share(pub u16);

impl Share {
    /// Whether at least this share of `before` is gone when `after` is left.
    ///
    /// # Examples
    ///
    /// ```
    /// use epitome::watch::Share;
    /// use epitome_model::Tokens;
    ///
    /// let tenth = Share(100);
    /// assert!(tenth.is_saved(Tokens(1_000), Tokens(900)));
    /// assert!(!tenth.is_saved(Tokens(1_000), Tokens(901)));
    /// ```
    pub fn is_saved(self, before: Tokens, after: Tokens) -> bool {
        let saved = u128::from(before.0.saturating_sub(after.0));
        saved * 1_000 >= u128::from(self.0) * u128::from(before.0)
    }
}

/// What is known of a session at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Its turns; nothing while it has not been read.
    pub turns: Option<Turns>,
    /// Its bytes on disk.
    pub size: Bytes,
    /// How long ago it was last written to.
    pub age: Duration,
    /// Whether a process has it open.
    pub in_use: bool,
}

/// What becomes of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is compacted.
    Due,
    /// It is, if it has the turns: it has to be read.
    Read,
    /// It is too small.
    Small,
    /// It was written to too lately.
    Fresh,
    /// It is in use.
    InUse,
    /// It has too few turns.
    Short,
}

impl Trigger {
    /// Whether a session is compacted at this moment. With `project`, only one that was run in that
    /// folder or below it. The session is read only if its turns or its folder have to be known.
    pub fn is_due(&self, config: &Config, file: &SessionFile, project: Option<&Path>) -> bool {
        let now = SystemTime::from(config.now());
        let facts = Facts {
            turns: None,
            size: file.size,
            age: now.duration_since(file.modified).unwrap_or_default(),
            in_use: false,
        };
        let session = OpenSession::at(config, &file.path);
        let cheap = self.judge(&facts);
        let turns = match (cheap, project) {
            (Verdict::Small | Verdict::Fresh | Verdict::InUse | Verdict::Short, _) => return false,
            (Verdict::Due, None) => None,
            (Verdict::Read, None) => session.loaded().ok(),
            (Verdict::Due | Verdict::Read, Some(project)) => {
                if !session.is_run_in(project).unwrap_or(false) {
                    return false;
                }
                session.loaded().ok()
            }
        };
        let turns = turns.map(|session| {
            let units = units(&session.transcript);
            Turns(units.iter().filter(|unit| unit.starts_turn).count() as u64)
        });
        let in_use = !session.users().is_empty();
        self.judge(&Facts { turns, in_use, ..facts }) == Verdict::Due
    }

    /// What becomes of a session, by what is known of it. What is cheap to know is asked first.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use epitome::watch::{Facts, Trigger, Verdict};
    /// use epitome_model::{Bytes, Turns};
    ///
    /// let trigger = Trigger {
    ///     after_turns: Turns(5),
    ///     above: Bytes(100_000),
    ///     older_than: Duration::from_secs(60),
    /// };
    /// let age = Duration::from_secs(90);
    /// let facts = Facts { turns: Some(Turns(7)), size: Bytes(200_000), age, in_use: false };
    /// assert_eq!(trigger.judge(&facts), Verdict::Due);
    /// ```
    pub fn judge(&self, facts: &Facts) -> Verdict {
        if facts.size < self.above {
            return Verdict::Small;
        }
        if facts.age < self.older_than {
            return Verdict::Fresh;
        }
        if facts.in_use {
            return Verdict::InUse;
        }
        match facts.turns {
            _ if self.after_turns == Turns(0) => Verdict::Due,
            None => Verdict::Read,
            Some(turns) if turns < self.after_turns => Verdict::Short,
            Some(_) => Verdict::Due,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_a_trigger_has_to_hold() {
        let trigger = Trigger {
            after_turns: Turns(5),
            above: Bytes(1000),
            older_than: Duration::from_secs(60),
        };
        let facts = |turns: Option<u64>, size: u64, age: u64, in_use: bool| Facts {
            turns: turns.map(Turns),
            size: Bytes(size),
            age: Duration::from_secs(age),
            in_use,
        };
        for (facts, expect) in [
            (facts(Some(5), 1000, 60, false), Verdict::Due),
            (facts(None, 1000, 60, false), Verdict::Read),
            (facts(Some(4), 1000, 60, false), Verdict::Short),
            (facts(Some(5), 999, 60, false), Verdict::Small),
            (facts(None, 1000, 59, false), Verdict::Fresh),
            (facts(Some(9), 9999, 99, true), Verdict::InUse),
        ] {
            assert_eq!(trigger.judge(&facts), expect, "{facts:?}");
        }
        let any = Trigger { after_turns: Turns(0), above: Bytes(0), older_than: Duration::ZERO };
        assert_eq!(any.judge(&facts(None, 0, 0, false)), Verdict::Due);
        assert_eq!(any.judge(&facts(None, 0, 0, true)), Verdict::InUse);
    }
}
