//! The options of commands that redact, and counts of what was redacted.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use clap::Args;
use epitome::redact::finder;
use epitome_redact::{Finder, Found, Kind};

use crate::app::App;
use crate::failure::Result;
use crate::text::{DIM, count};

/// Redaction options of commands whose output other people or programs may read.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Redaction")]
pub struct Redaction {
    /// Redact what these rules find: `secrets`, `pii` (personal data), or rules by name [default:
    /// secrets,pii]
    #[arg(long, short, value_name = "WHAT", value_delimiter = ',')]
    pub redact: Vec<String>,

    /// Redact nothing
    #[arg(long, conflicts_with = "redact")]
    pub no_redact: bool,

    #[command(flatten)]
    pub more: MoreRules,
}

/// Rules in addition to those of the program.
#[derive(Args, Clone, Debug, Default)]
pub struct MoreRules {
    /// A file of additional rules, in the form of gitleaks' (docs/redact.md)
    #[arg(long, value_name = "FILE")]
    pub rules: Vec<PathBuf>,
}

impl Redaction {
    /// The finder of what must be redacted; `None` if redaction is off.
    pub fn finder(&self, app: &App) -> Result<Option<Finder>> {
        let off = app.settings()?.values.redaction.enabled == Some(false);
        if self.no_redact {
            return Ok(None);
        }
        if off && self.redact.is_empty() {
            app.note(&format!("{DIM}note:{DIM:#} nothing is redacted: redaction.enabled is off"));
            return Ok(None);
        }
        self.always(app).map(Some)
    }

    /// The finder of what must be redacted, even if the settings disable redaction.
    pub fn always(&self, app: &App) -> Result<Finder> {
        self.more.finder(app, &self.redact)
    }
}

impl MoreRules {
    /// The rule files that the settings and the command line name.
    pub fn files(&self, app: &App) -> Result<Vec<PathBuf>> {
        let set = app.settings()?.values.redaction.rules.iter().flatten();
        Ok(set.chain(&self.rules).cloned().collect())
    }

    /// The finder for the kinds and rules in `names`, or for those of the settings if `names` is
    /// empty.
    pub fn finder(&self, app: &App, names: &[String]) -> Result<Finder> {
        Ok(finder(&app.config, app.settings()?, names, &self.rules)?)
    }
}

/// Counts of what was redacted.
#[derive(Clone, Debug, Default)]
pub struct RedactionCounts {
    /// The number of different secrets and personal data, by rule.
    pub by_rule: BTreeMap<String, u64>,
    secrets: u64,
    personal: u64,
}

impl RedactionCounts {
    pub fn count(found: &[Found]) -> RedactionCounts {
        let different: BTreeSet<(Kind, &str, u32)> =
            found.iter().map(|it| (it.kind, &*it.rule, it.number)).collect();
        let mut taken =
            RedactionCounts { by_rule: Found::count_by_rule(found), ..RedactionCounts::default() };
        for (kind, ..) in different {
            match kind {
                Kind::Secrets => taken.secrets += 1,
                Kind::Personal => taken.personal += 1,
            }
        }
        taken
    }

    /// The counts in words.
    pub fn message(&self) -> String {
        let secrets = count(self.secrets, "secret");
        let personal = count(self.personal, "piece of personal data");
        let personal = personal.replace("piece of personal datas", "pieces of personal data");
        match (self.secrets, self.personal) {
            (0, 0) => "nothing".to_owned(),
            (_, 0) => secrets,
            (0, _) => personal,
            (_, _) => format!("{secrets}, {personal}"),
        }
    }

    /// Prints the counts to standard error, if anything was redacted.
    pub fn print(&self, app: &App) {
        if !self.by_rule.is_empty() {
            app.note(&format!("{DIM}redacted:{DIM:#} {}", self.message()));
        }
    }
}
