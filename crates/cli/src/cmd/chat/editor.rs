//! The agent in an editor, which speaks the Agent Client Protocol.

use std::io::{BufReader, stdin, stdout};
use std::path::Path;

use epitome::models::catalogue;
use epitome::recipes;
use epitome_chat::StartedChat;
use epitome_chat::acp::{self, Choices, Sessions};
use epitome_chat::mcp::Server;

use super::{Args, stop_on_signal, waits};
use crate::app::App;
use crate::failure::Result;

/// Serves an editor until it closes the connection, or until a signal. Nothing but the protocol may
/// write to standard output.
pub fn run(app: &App, args: &Args) -> Result<()> {
    let options = args.options(app)?;
    options.check()?;
    // The most frequent error, that no model is set, must be reported at the start, while the user
    // sets the editor up.
    options.model_name(None)?;
    let sessions = Folders { app: app.clone(), args: args.clone() };
    acp::serve(sessions, BufReader::new(stdin()), stdout(), |stopper: acp::Stopper| {
        stop_on_signal(move || stopper.stop());
    });
    Ok(())
}

/// Starts an agent for each session of an editor, from the options of the program and the settings
/// of the session's folder.
struct Folders {
    app: App,
    args: Args,
}

impl Sessions for Folders {
    fn start(
        &self,
        folder: &Path,
        id: Option<&str>,
        servers: &[Server],
    ) -> std::result::Result<acp::StartedSession, String> {
        let app = self.app.called_in(folder);
        let args = Args { resume: id.map(str::to_owned), ..self.args.clone() };
        begin(&app, &args, servers).map_err(|failure| failure.one_line())
    }
}

fn begin(app: &App, args: &Args, servers: &[Server]) -> Result<acp::StartedSession> {
    let started = args.options(app)?.start(servers, &waits(app))?;
    let first = started.first();
    let StartedChat { agent, setup, .. } = started;
    let name = setup.models.answers.name();
    let of_provider = catalogue(&app.config)?;
    let of_provider = of_provider.models().filter(|known| known.name.provider == name.provider);
    let choices = Choices {
        model: name.to_string(),
        models: of_provider.map(|known| known.name.to_string()).collect(),
        recipe: setup.recipe.name.to_string(),
        recipes: recipes::all(&app.config).into_iter().map(|known| known.name).collect(),
    };
    let id = setup.session.id().to_owned();
    Ok(acp::StartedSession { agent: agent.with_changes(setup), id, first, choices })
}
