//! `sessions`: the newest sessions of this machine.

use std::fmt::Write as _;
use std::path::Path;

use epitome::list::{ListedSession, Sort, list};
use epitome::ops::is_run_in;
use epitome::recipes;

use super::Library;
use super::search::session_line;
use crate::arguments::Arguments;
use crate::error::ToolError;
use crate::sessions::Sessions;

/// The default and the maximum number of sessions that are listed.
const SESSIONS: (usize, usize) = (20, 200);

impl Library {
    pub(super) fn sessions(
        &self,
        sessions: Sessions<'_>,
        arguments: &Arguments,
    ) -> Result<String, ToolError> {
        let agent = arguments.optional_text("agent");
        let project = arguments.optional_text("project").map(Path::new);
        let limit = arguments.number("limit", SESSIONS.0, SESSIONS.1);
        let recipe = recipes::resolve(&self.config, &self.settings, None)?;
        let files = sessions.files.iter().filter(|file| agent.is_none_or(|it| it == file.agent));
        let mut listed = list(&self.config, files.cloned().collect(), &recipe, || {});
        listed.retain(|listed| match (&listed.seen, project) {
            (Ok(seen), Some(project)) => is_run_in(project, seen.cwd.as_deref()),
            (Err(_), Some(_)) => false,
            (Ok(_) | Err(_), None) => true,
        });
        Sort::Time.order(&mut listed, |listed| (&listed.file, Some(listed)));
        let mut answer = String::new();
        if listed.is_empty() {
            answer.push_str("No sessions.\n");
        } else if listed.len() > limit {
            let _ = writeln!(answer, "The newest {limit} of {} sessions:", listed.len());
        }
        for listed in listed.iter().take(limit) {
            one(&mut answer, &sessions, listed);
        }
        Ok(answer)
    }
}

fn one(answer: &mut String, sessions: &Sessions<'_>, listed: &ListedSession) {
    let file = &listed.file;
    let id = sessions.short_id(&file.path, &file.id);
    let seen = match &listed.seen {
        Ok(seen) => seen,
        Err(why) => {
            session_line(answer, file.agent, id, why, None);
            return;
        }
    };
    let title = seen.title.as_deref().unwrap_or("");
    session_line(answer, file.agent, id, title, seen.cwd.as_deref());
    let time = jiff::Timestamp::try_from(file.modified).ok();
    let time = time.map(|time| time.strftime("%Y-%m-%d %H:%M").to_string());
    let turns = seen.turns.map(|turns| epitome_model::plural(turns, "turn"));
    let context = seen.context.map(|context| format!("~{context} tokens of context"));
    let compacted = listed.is_compacted().then(|| "compacted".to_owned());
    let facts: Vec<String> = [time, turns, context, compacted].into_iter().flatten().collect();
    let _ = writeln!(answer, "  {}", facts.join(" · "));
}
