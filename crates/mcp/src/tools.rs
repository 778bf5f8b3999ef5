//! The answers of the tools: reports of the library and of the search index, as text for a model.

mod losses;
mod plan;
mod search;
mod sessions;
mod show;

use epitome::{Config, Settings};
use epitome_redact::Redactor;

use crate::arguments::Arguments;
use crate::error::ToolError;
use crate::index::SessionIndex;
use crate::sessions::Sessions;
use crate::tool::Tool;

/// What the tools use: the configuration, the settings and the search index.
pub(crate) struct Library {
    pub(crate) config: Config,
    pub(crate) settings: Settings,
    pub(crate) index: SessionIndex,
}

impl Library {
    /// The answer of a tool. For [`Tool::Show`], the redactor first reads the whole session of the
    /// text that is shown, if that session is found. So it also recognises secrets that it would
    /// not find in the text alone.
    pub(crate) fn answer(
        &self,
        tool: Tool,
        arguments: &Arguments,
        redactor: Option<&mut Redactor<'_>>,
    ) -> Result<String, ToolError> {
        let sessions = Sessions::find(&self.config);
        match tool {
            Tool::Search => self.search(&sessions, arguments),
            Tool::Around => self.around(&sessions, arguments),
            Tool::Show => self.show(&sessions, arguments, redactor),
            Tool::Losses => self.losses(&sessions, arguments),
            Tool::Touched => self.touched(&sessions, arguments),
            Tool::Failed => self.failed(&sessions, arguments),
            Tool::Sessions => self.sessions(sessions, arguments),
            Tool::Plan => self.plan(&sessions, arguments),
        }
    }
}

/// A text on one line, without control characters, of at most `most` characters.
pub(crate) fn one_line(text: &str, most: usize) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    epitome_model::short(&words.join(" "), most)
}
