//! Summaries: given by somebody, or to be asked of a model.

use std::path::Path;

use epitome::{Loaded, Planned};
use epitome_model::Source;

use super::Job;
use crate::failure::{Failure, Result};
use crate::session::{Input, read_stdin};
use crate::summarise::Wish;

/// The words of a summary: of a file, or of standard input.
pub(super) fn words_of(path: &Path) -> Result<String> {
    let text = match path == Path::new("-") {
        true => std::io::read_to_string(std::io::stdin()),
        false => std::fs::read_to_string(path),
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
    /// Refuses a session that no summary can be written into, before a model is asked for one.
    pub(super) fn check_holds_a_summary<S: Source>(&self, session: &Loaded<S>) -> Result<()> {
        let any = "What was done.";
        Ok(Planned::summarised(any, session, self.recipe, self.app.counter()).map(drop)?)
    }

    /// Says what a model would be asked about a session.
    pub(super) fn forecast(&self, wish: &Wish, input: &Input) -> Result<()> {
        match input {
            Input::Stdin => {
                self.forecast_of(wish, input, &Loaded::read(read_stdin()?, self.app.agent())?)
            }
            Input::File(path) => self.forecast_of(wish, input, &self.open(path)?),
        }
    }

    fn forecast_of<S: Source>(
        &self,
        wish: &Wish,
        input: &Input,
        session: &Loaded<S>,
    ) -> Result<()> {
        let name = input.name();
        let told = self
            .check_holds_a_summary(session)
            .and_then(|()| wish.forecast(self.app, session, self.recipe, &name))
            .map_err(|failure| failure.about(Path::new(&name)))?;
        match self.app.global.json {
            true => self.app.print_json(&told),
            false => self.app.print(&told.render()),
        }
    }
}
