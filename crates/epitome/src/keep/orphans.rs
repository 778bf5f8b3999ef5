//! Sub-agents whose session is gone: no list of sessions has their files.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::{Candidate, Forgotten, Keeper};

impl Keeper<'_> {
    /// Adds the kept files of sub-agents that still exist although the file of their session does
    /// not. With rules for projects none is added: only the session says where it was run.
    pub(super) fn add_orphans(
        &self,
        agent: Option<&str>,
        forgotten: &Forgotten,
        candidates: &mut Vec<Candidate>,
    ) {
        if self.project.is_some() || !self.rules.projects.is_empty() {
            return;
        }
        let found: BTreeSet<PathBuf> = candidates.iter().map(|it| it.path.clone()).collect();
        for file in self.vault.files().filter(|file| file.machine == self.vault.machine()) {
            let is_wanted = file.part.is_some()
                && agent.is_none_or(|agent| agent == file.agent)
                && !forgotten.has(&file.agent, &file.session);
            if is_wanted && !found.contains(&file.path) && file.path.is_file() {
                candidates.push(Candidate {
                    agent: file.agent.clone(),
                    session: file.session.clone(),
                    part: file.part.clone(),
                    path: file.path.clone(),
                    listed: None,
                });
            }
        }
    }
}
