//! Which sessions the viewer shows, and how.

use std::path::PathBuf;

use epitome::find::{self, SessionFile};
use epitome::{Config, Settings};
use epitome_model::Counter;
use epitome_redact::Finder;

/// Which sessions are shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Which {
    /// Those of all agents on this machine.
    All,
    /// Those of one agent.
    Of(String),
    /// Those in a folder and below it.
    Below(PathBuf),
}

/// How sessions are shown.
pub struct Options {
    /// Where everything is.
    pub config: Config,
    /// What the user has set: recipes are changed by it as `epitome compact` changes them.
    pub settings: Settings,
    /// Which sessions.
    pub which: Which,
    /// Looks for what is taken out of everything that is shown.
    pub finder: Option<Finder>,
    /// Counts what compacting would save.
    pub counter: &'static dyn Counter,
}

/// The sessions that exist now.
pub(crate) fn files(config: &Config, which: &Which) -> Vec<SessionFile> {
    match which {
        Which::All => find::sessions(config, None),
        Which::Of(agent) => find::sessions(config, Some(agent)),
        Which::Below(folder) => find::below(folder),
    }
}
