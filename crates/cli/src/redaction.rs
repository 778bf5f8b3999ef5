//! What is taken out of what leaves this machine.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use clap::Args;
use epitome::rules;
use epitome_redact::{Finder, Found, Kind, RuleFault};

use crate::app::App;
use crate::failure::{Failure, Result, Status};
use crate::text::{DIM, count};

/// Options of commands that write for others.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "What is taken out")]
pub struct Redaction {
    /// Take out what these find: `secrets`, `pii` (personal data), or rules by name [default:
    /// secrets,pii]
    #[arg(long, short, value_name = "WHAT", value_delimiter = ',')]
    pub redact: Vec<String>,

    /// Take nothing out
    #[arg(long, conflicts_with = "redact")]
    pub no_redact: bool,

    #[command(flatten)]
    pub more: MoreRules,
}

/// Rules beside those of the program.
#[derive(Args, Clone, Debug, Default)]
pub struct MoreRules {
    /// Rules of your own beside epitome's, in the form of gitleaks' (docs/redact.md)
    #[arg(long, value_name = "FILE")]
    pub rules: Vec<PathBuf>,
}

impl Redaction {
    /// What looks for it, if anything is to be taken out.
    pub fn finder(&self, app: &App) -> Result<Option<Finder>> {
        let off = app.settings()?.values.redaction.enabled == Some(false);
        if self.no_redact {
            return Ok(None);
        }
        if off && self.redact.is_empty() {
            app.note(&format!("{DIM}note:{DIM:#} nothing is taken out: redaction.enabled is off"));
            return Ok(None);
        }
        self.always(app).map(Some)
    }

    /// What looks for it, whether or not the settings want it of others.
    pub fn always(&self, app: &App) -> Result<Finder> {
        let set = &app.settings()?.values.redaction.find;
        let default = || vec!["secrets".to_owned(), "pii".to_owned()];
        match self.redact.is_empty() {
            false => self.more.finder(app, &self.redact),
            true => self.more.finder(app, &set.clone().unwrap_or_else(default)),
        }
    }
}

impl MoreRules {
    /// The files of rules that were named, and those of the settings.
    pub fn files(&self, app: &App) -> Result<Vec<PathBuf>> {
        let set = app.settings()?.values.redaction.rules.iter().flatten();
        Ok(set.chain(&self.rules).cloned().collect())
    }

    /// What looks for kinds and rules of these names.
    pub fn finder(&self, app: &App, names: &[String]) -> Result<Finder> {
        let files = self.files(app)?;
        let rules = rules(&app.config, &files).map_err(|err| {
            let failure = Failure::from(err);
            Failure { status: Status::Usage, kind: "usage", ..failure }
        })?;
        let rules = rules.only(names).map_err(wrong)?;
        Finder::new(rules).map_err(wrong)
    }
}

fn wrong(fault: RuleFault) -> Failure {
    let hint = match &fault {
        RuleFault::Unknown(_) => "there are `secrets`, `pii`, and the rules in docs/redact.md",
        RuleFault::NoRules(_) | RuleFault::Expression { .. } => "docs/redact.md says what they are",
    };
    Failure::usage(fault.to_string()).hint(hint)
}

/// What was taken out.
#[derive(Clone, Debug, Default)]
pub struct Taken {
    /// Different secrets and personal data, by rule.
    pub by_rule: BTreeMap<String, u64>,
    secrets: u64,
    personal: u64,
}

impl Taken {
    pub fn of(found: &[Found]) -> Taken {
        let different: BTreeSet<(Kind, &str, u32)> =
            found.iter().map(|it| (it.kind, &*it.rule, it.number)).collect();
        let mut taken = Taken::default();
        for (kind, rule, _) in different {
            *taken.by_rule.entry(rule.to_owned()).or_default() += 1;
            match kind {
                Kind::Secrets => taken.secrets += 1,
                Kind::Personal => taken.personal += 1,
            }
        }
        taken
    }

    /// How many secrets and personal data.
    pub fn told(&self) -> String {
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

    /// Tells a person, if there was anything.
    pub fn tell(&self, app: &App) {
        if !self.by_rule.is_empty() {
            app.note(&format!("{DIM}taken out:{DIM:#} {}", self.told()));
        }
    }
}
