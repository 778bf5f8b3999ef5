//! How a chat is begun, as its caller says it.

use epitome::{Config, Settings};
use epitome_error::{Error, ErrorKind, Result};
use epitome_model::{MicroDollars, Tokens};

use crate::permissions::Rule;

/// The smallest window in which a chat can begin.
const LEAST_WINDOW: Tokens = Tokens(4_000);

/// How a chat is begun. What is not said is as the settings have it.
#[derive(Clone, Debug)]
pub struct ChatOptions {
    /// The folders of this machine, and the folder of the project.
    pub config: Config,
    /// The user's settings.
    pub settings: Settings,
    /// The model that answers, as PROVIDER/MODEL.
    pub model: Option<String>,
    /// The base URL of that model, if not its provider's.
    pub base_url: Option<String>,
    /// The recipe.
    pub recipe: Option<String>,
    /// The context window, if not the model's.
    pub window: Option<Tokens>,
    /// The session that goes on; `last` is the newest of the folder.
    pub resume: Option<String>,
    /// Allows everything that would be asked.
    pub yes: bool,
    /// Rules that allow.
    pub allow: Vec<Rule>,
    /// Rules that refuse.
    pub deny: Vec<Rule>,
    /// Sends no request once so much is spent.
    pub budget: Option<MicroDollars>,
}

/// What a start waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait<'a> {
    /// For the tools of these MCP servers.
    ForServers(&'a str),
    /// For nothing any more.
    Over,
}

impl ChatOptions {
    /// Refuses what could only fail later, before anything is written.
    ///
    /// # Errors
    ///
    /// `Usage` if nothing fits into the window.
    pub fn check(&self) -> Result<()> {
        if let Some(window) = self.window.filter(|window| *window < LEAST_WINDOW) {
            let what = format!("the context window is {} tokens: nothing fits into it", window.0);
            let hint = format!(
                "give at least {}: tools and prompt take about 1,500, and up to half is kept for \
                 the answer\nwithout --window it is the model's",
                LEAST_WINDOW.0
            );
            return Err(Error::new(ErrorKind::Usage, what).with_hint(hint));
        }
        Ok(())
    }
}
