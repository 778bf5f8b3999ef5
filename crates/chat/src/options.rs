//! The options of a chat.

use epitome::{Config, Settings};
use epitome_error::{Error, ErrorKind, Result};
use epitome_model::{MicroDollars, Tokens};

use crate::permissions::Rule;

/// The smallest window for a chat.
const LEAST_WINDOW: Tokens = Tokens(4_000);

/// The options of a chat. A model or a recipe that is not given comes from the resumed session, or
/// else from the settings.
#[derive(Clone, Debug)]
pub struct ChatOptions {
    /// The folders of this machine, and the folder of the project.
    pub config: Config,
    /// The user's settings.
    pub settings: Settings,
    /// The model that answers, as PROVIDER/MODEL.
    pub model: Option<String>,
    /// The base URL of the model's service, if it differs from the provider's own URL.
    pub base_url: Option<String>,
    /// The recipe.
    pub recipe: Option<String>,
    /// The context window, if it shall differ from the model's own window.
    pub window: Option<Tokens>,
    /// The id of the session to resume; `last` means the newest of the folder.
    pub resume: Option<String>,
    /// Whether everything is allowed that the user would be asked about.
    pub yes: bool,
    /// Rules that allow calls, in addition to the rules of the settings.
    pub allow: Vec<Rule>,
    /// Rules that refuse calls, in addition to the rules of the settings.
    pub deny: Vec<Rule>,
    /// The budget of the chat: once this amount is spent, no more requests are sent.
    pub budget: Option<MicroDollars>,
}

/// What a chat waits for while it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait<'a> {
    /// The chat waits for the tools of MCP servers. The text is their names, separated by commas.
    ForServers(&'a str),
    /// The chat waits for nothing any more.
    Over,
}

impl ChatOptions {
    /// Checks options early, before anything is written.
    ///
    /// # Errors
    ///
    /// `Usage` if the window is too small.
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
