//! Summaries that the user gives, or that a model writes.

use std::path::Path;

use epitome::Loaded;
use epitome::ops::{ModelRequest, OpenSession};

use super::Job;
use crate::failure::{Failure, Result};
use crate::session::{Input, read_stdin};
use crate::summarise;

/// The text of a summary, from a file or from standard input.
pub(super) fn text_of(path: &Path) -> Result<String> {
    let text = if path == Path::new("-") {
        std::io::read_to_string(std::io::stdin())
    } else {
        std::fs::read_to_string(path)
    };
    let text = text.map_err(|err| {
        let what = format!("the summary cannot be read: {}", path.display());
        Failure::usage(what).because(&err)
    })?;
    match text.trim() {
        "" => Err(Failure::usage("the summary is empty")),
        text => Ok(text.to_owned()),
    }
}

impl Job<'_> {
    /// Reports which model would be asked for a session's summary, with how many tokens, and at
    /// what cost.
    pub(super) fn forecast(&self, request: &ModelRequest, input: &Input) -> Result<()> {
        let config = &self.app.config;
        let would_ask = match input {
            Input::Stdin => {
                let session = Loaded::read(read_stdin()?, self.app.agent())?;
                self.compact.forecast(config, Path::new("-"), &session, request)?
            }
            Input::File(path) => {
                let session = OpenSession::with_agent(config, path, self.app.agent());
                self.compact.forecast(config, path, session.load()?, request)?
            }
        };
        if self.app.global.json {
            self.app.print_json(&would_ask)
        } else {
            self.app.print(&summarise::render(&would_ask))
        }
    }
}
