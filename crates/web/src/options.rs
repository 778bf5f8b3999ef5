//! The options of the viewer: which sessions it shows, and how.

use std::path::PathBuf;

use epitome::agents::{self, SessionFile};
use epitome::{Config, Settings};
use epitome_model::Counter;
use epitome_redact::Finder;

/// The sessions that are shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Which {
    /// The sessions of all agents on this machine.
    All,
    /// The sessions of one agent.
    Of(String),
    /// The sessions whose files are in this folder or below it.
    Below(PathBuf),
}

/// The options of the viewer.
pub struct Options {
    /// The folders of this machine.
    pub config: Config,
    /// The user's settings, which change recipes as in `epitome compact`.
    pub settings: Settings,
    /// The sessions to show.
    pub which: Which,
    /// Finds the texts that are redacted on all pages. `None`: nothing is redacted.
    pub finder: Option<Finder>,
    /// Counts tokens of compactions that are planned or made, and of what compactions removed.
    pub counter: &'static dyn Counter,
}

/// The sessions that `which` selects, as they are on the disk now.
pub(crate) fn files(config: &Config, which: &Which) -> Vec<SessionFile> {
    match which {
        Which::All => agents::sessions(&config.agents, None),
        Which::Of(agent) => agents::sessions(&config.agents, Some(agent)),
        Which::Below(folder) => agents::sessions_below(folder),
    }
}
