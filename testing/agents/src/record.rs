//! Records a session by playing a scenario in a real agent.

use crate::agent::Agent;
use crate::sandbox::{Placed, Sandbox};
use crate::scenario::{Play, Scenario};
use crate::{Finished, project};
use anyhow::{Context, bail, ensure};
use model_server::{Outcome, Script, Server};
use std::fs;
use std::path::{Path, PathBuf};

/// A recorded session, in the home where it was recorded.
#[derive(Debug)]
pub struct Recording {
    /// The home, with the project as the session left it.
    pub sandbox: Sandbox,
    /// The model server of the home.
    pub server: Server,
    /// The session.
    pub session: Placed,
}

/// A file of a recording without this machine's paths.
#[derive(Debug)]
pub struct Scrubbed {
    /// The file's name, or its path below the folder that is named like the session.
    pub name: PathBuf,
    /// The file's text.
    pub text: String,
}

/// Plays a scenario: one run of the agent for each user turn.
///
/// # Errors
///
/// If the agent cannot run, a turn fails, a history is refused or a step is not played.
pub fn record(agent: &'static dyn Agent, scenario: &Scenario) -> anyhow::Result<Recording> {
    record_in(agent, scenario, |_| Ok(()))
}

/// Does what [`record`] does, in a home that `prepare` has changed first.
pub(crate) fn record_in(
    agent: &'static dyn Agent,
    scenario: &Scenario,
    prepare: impl FnOnce(&Sandbox) -> anyhow::Result<()>,
) -> anyhow::Result<Recording> {
    // The script contains paths of the home, and the home contains the server's address: so the
    // server is started first.
    let server = Server::start(Script::default())?;
    let sandbox = Sandbox::new(agent, &server.url())?;
    project::write(sandbox.home(), scenario.scale)?;
    if scenario.play == Play::OwnCompaction {
        sandbox.compact_early()?;
    }
    prepare(&sandbox)?;
    server.play(scenario.script(&sandbox));
    let mut session: Option<Placed> = None;
    for turn in &scenario.turns {
        let done = match &session {
            None => sandbox.new_session(&turn.prompt)?,
            Some(session) => sandbox.resume(&session.id, &turn.prompt)?,
        };
        accept(&done).with_context(|| format!("the turn “{}”", turn.prompt))?;
        let latest = sandbox.latest()?;
        if let Some(before) = session.filter(|before| before.path != latest.path) {
            bail!("the agent left {} for {}", before.path.display(), latest.path.display());
        }
        session = Some(latest);
    }
    played_to_the_end(&server, scenario)?;
    let session = session.context("a scenario has turns")?;
    Ok(Recording { sandbox, server, session })
}

fn accept(done: &Finished) -> anyhow::Result<()> {
    ensure!(done.success(), "{:?}\n{}\n{}", done.status, done.stdout, done.stderr);
    Ok(())
}

fn played_to_the_end(server: &Server, scenario: &Scenario) -> anyhow::Result<()> {
    let mut last = None;
    for exchange in server.exchanges() {
        match exchange.outcome {
            Outcome::Refused(why) => bail!("refused: {why}"),
            Outcome::Played { track, step } if track.is_empty() => last = Some(step),
            Outcome::Played { .. } | Outcome::Canned | Outcome::Other => {}
        }
    }
    let steps: usize = scenario.turns.iter().map(|turn| turn.moves.len()).sum();
    ensure!(last == steps.checked_sub(1), "of {steps} steps the last played is {last:?}");
    Ok(())
}

impl Recording {
    /// The session's file and the files of its sub-agents in the folder next to it, without this
    /// machine's paths.
    ///
    /// # Errors
    ///
    /// If a file cannot be read.
    pub fn scrubbed(&self) -> anyhow::Result<Vec<Scrubbed>> {
        let file = &self.session.path;
        let name = file.file_name().context("a session is a file")?;
        let mut found = vec![Scrubbed { name: name.into(), text: self.text(file)? }];
        let folder_of_session = self.sandbox.beside(&self.session);
        if folder_of_session.is_dir() {
            // Recorded sessions have their sub-agents in a folder with this name, for every agent.
            let flat =
                fs::read_dir(&folder_of_session)?.flatten().all(|entry| entry.path().is_file());
            let below = Path::new(if flat { "subagents" } else { "" });
            self.collect(&folder_of_session, below, &mut found)?;
        }
        Ok(found)
    }

    fn collect(&self, folder: &Path, below: &Path, to: &mut Vec<Scrubbed>) -> anyhow::Result<()> {
        let mut entries: Vec<_> = fs::read_dir(folder)?.collect::<Result<_, _>>()?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let (path, name) = (entry.path(), below.join(entry.file_name()));
            if path.is_dir() {
                self.collect(&path, &name, to)?;
            } else {
                to.push(Scrubbed { text: self.text(&path)?, name });
            }
        }
        Ok(())
    }

    fn text(&self, path: &Path) -> anyhow::Result<String> {
        Ok(self.sandbox.home().scrub(&self.sandbox.text(path)?))
    }
}
