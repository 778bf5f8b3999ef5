//! The agent in an editor, which speaks the Agent Client Protocol.

use std::io::{BufReader, stdin, stdout};
use std::path::Path;
use std::time::Duration;

use epitome::models::catalogue;
use epitome::recipes;
use epitome_chat::acp::{self, Choices, Sessions, Stopper};
use epitome_chat::history::history;
use epitome_chat::machine::Event;
use epitome_chat::mcp::Server;

use super::Args;
use super::models::model_name;
use super::start::{Started, check, start};
use crate::app::App;
use crate::failure::Result;
use crate::interrupt::Interrupt;

/// How often it is looked for a signal.
const LOOK: Duration = Duration::from_secs(3_600);

/// Serves an editor until it ends the connection. Standard output is the protocol's alone.
pub fn run(app: &App, args: &Args) -> Result<()> {
    check(args)?;
    // What is missing most often is said where the editor was set up.
    model_name(app, args, None)?;
    let sessions = Folders { app: app.clone(), args: args.clone() };
    acp::serve(sessions, BufReader::new(stdin()), stdout(), stop_on_signal);
    Ok(())
}

/// Makes agents as the options and the settings of a folder name them.
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
    ) -> std::result::Result<acp::Started, String> {
        let app = self.app.called_in(folder);
        let args = Args { resume: id.map(str::to_owned), ..self.args.clone() };
        begin(&app, &args, servers).map_err(|failure| failure.told())
    }
}

fn begin(app: &App, args: &Args, servers: &[Server]) -> Result<acp::Started> {
    let Started { agent, outside, notices } = start(app, args, servers)?;
    let machine = agent.machine();
    let mut first = history(machine.context());
    first.extend(notices);
    first.push(Event::Usage { usage: machine.context().usage(), cost: machine.cost() });
    let name = outside.models.answers.name();
    let of_provider = catalogue(&app.config)?;
    let of_provider = of_provider.models().filter(|known| known.name.provider == name.provider);
    let choices = Choices {
        model: name.to_string(),
        models: of_provider.map(|known| known.name.to_string()).collect(),
        recipe: outside.recipe.name.to_string(),
        recipes: recipes::known(&app.config).into_iter().map(|known| known.name).collect(),
    };
    let id = outside.session.id().to_owned();
    Ok(acp::Started { agent: agent.with_changes(outside), id, first, choices })
}

/// A signal ends the connection, and with it what runs.
fn stop_on_signal(stopper: Stopper) {
    let interrupt = Interrupt::new();
    std::thread::spawn(move || while !interrupt.wait(LOOK) || stopper.stop() {});
}
