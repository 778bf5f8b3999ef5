//! The sessions that touched a file.

use std::path::{Path, PathBuf};

use epitome::render::{Member, RenderSource};
use epitome_model::{Block, Call, Source, ToolKind};
use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

use super::conditions::Conditions;
use super::query::{BadQuery, Query};
use super::{Result, Search};

/// The maximum number of sessions that are read for one file.
const READ: i64 = 50;

/// A session that touched a file. Its title is redacted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TouchedBy {
    /// The session: a file, or `DATABASE#ID`.
    pub session: PathBuf,
    /// The session's agent.
    pub agent: String,
    /// The session's id.
    pub id: String,
    /// The session's title.
    pub title: String,
    /// The calls, in order: first the calls of the session itself, then the calls of its
    /// sub-agents.
    pub touches: Vec<Touch>,
}

/// A call that touched a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Touch {
    /// What the call did.
    pub kind: TouchKind,
    /// The number of the sub-agent that made the call, from 0; `None` if the session itself made
    /// it.
    pub sub_agent: Option<usize>,
    /// The index of the call's item in the transcript.
    pub item: usize,
    /// The time, as the session writes it. `None` if the session has none for the call.
    pub time: Option<String>,
}

/// What a call did with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TouchKind {
    /// The call read the file.
    Read,
    /// The call wrote or edited the file, or is a patch that names it.
    Changed,
    /// The file is only named in the arguments of the call, for example in a command.
    Named,
}

/// The path of a file to search for, or the end of the path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilePath {
    path: String,
    /// A query for the calls and results that contain the name of the file, without its folders.
    query: Query,
}

impl FilePath {
    /// Parses a path: `/srv/app/src/main.rs`, `src/main.rs`, `main.rs`.
    ///
    /// # Errors
    ///
    /// If the last component of the path has no word that is short enough for the index.
    pub fn parse(text: &str) -> std::result::Result<FilePath, BadQuery> {
        let text = text.trim().replace('\\', "/");
        let path = text.trim_start_matches("./").trim_end_matches('/').to_owned();
        let name = path.rsplit('/').next().unwrap_or(&path);
        let query = Query::phrase(name)?.of_role("tool");
        Ok(FilePath { path, query })
    }
}

impl Search {
    /// The sessions with a call that names a file, the newest first. Of the sessions that contain
    /// the name of the file in a call or a result, the 50 newest are read; sessions that cannot be
    /// read are left out.
    ///
    /// # Errors
    ///
    /// As [`find`](Search::find).
    pub fn find_touches(&self, file: &FilePath) -> Result<Vec<TouchedBy>> {
        let mut sessions = self.read(|connection| candidates(connection, &file.query))?;
        sessions.iter_mut().for_each(|session| self.read_touches(&file.path, session));
        sessions.retain(|session| !session.touches.is_empty());
        Ok(sessions)
    }

    /// Adds the touches of a session. If the session cannot be read, adds none.
    fn read_touches(&self, path: &str, session: &mut TouchedBy) {
        let agent = Some(session.agent.as_str());
        let Ok(source) = RenderSource::open(&self.config, &session.session, agent) else { return };
        let own = std::iter::once((None, &source.session));
        let members = own.chain(source.sub_agents.iter().enumerate().map(|(n, it)| (Some(n), it)));
        session.touches = members.flat_map(|(n, member)| touches(path, n, member)).collect();
    }
}

/// The newest sessions with a message that matches, at most [`READ`], without their touches.
fn candidates(connection: &Connection, query: &Query) -> rusqlite::Result<Vec<TouchedBy>> {
    let Conditions { sql, mut values, .. } = Conditions::from_query(query);
    let sql = format!(
        "SELECT DISTINCT path, agent, id, title, modified {sql} \
         ORDER BY modified DESC, path LIMIT ?"
    );
    values.push(Value::Integer(READ));
    let mut sessions = connection.prepare(&sql)?;
    let sessions = sessions.query_map(params_from_iter(&values), |row| {
        let session: String = row.get(0)?;
        Ok(TouchedBy {
            session: PathBuf::from(session),
            agent: row.get(1)?,
            id: row.get(2)?,
            title: row.get(3)?,
            touches: Vec::new(),
        })
    })?;
    sessions.collect()
}

fn touches(path: &str, sub_agent: Option<usize>, member: &Member) -> Vec<Touch> {
    let session = &member.history.session;
    let mut touches = Vec::new();
    for (item, entry) in session.transcript.entries() {
        let calls = entry.blocks.iter().filter_map(|block| match block {
            Block::Call(call) => Some(call),
            _ => None,
        });
        for kind in calls.filter_map(|call| kind_of(path, call, &session.source)) {
            let time = entry.time.as_deref().map(str::to_owned);
            touches.push(Touch { kind, sub_agent, item, time });
        }
    }
    touches
}

/// What a call does with a file; `None` if it does not name the file.
fn kind_of(path: &str, call: &Call, source: &dyn Source) -> Option<TouchKind> {
    let target = call.target.as_ref().map(|target| target.read(source));
    if target.is_some_and(|target| is_same_file(path, &target)) {
        match call.kind {
            ToolKind::Read => return Some(TouchKind::Read),
            ToolKind::Write | ToolKind::Edit | ToolKind::Patch => return Some(TouchKind::Changed),
            _ => {}
        }
    }
    let arguments = source.at(call.arguments);
    let is_named = names(&String::from_utf8_lossy(&arguments), path);
    is_named.then_some(match call.kind {
        ToolKind::Patch => TouchKind::Changed,
        _ => TouchKind::Named,
    })
}

/// Whether two paths may name one file: they are equal, or one of them is the end of the other.
fn is_same_file(one: &str, other: &str) -> bool {
    let other = other.replace('\\', "/");
    let (one, other) = (Path::new(one), Path::new(other.trim_start_matches("./")));
    one.ends_with(other) || other.ends_with(one)
}

/// Whether a text contains this path. A place where the path is a part of a longer name does not
/// count.
fn names(text: &str, path: &str) -> bool {
    let is_of_name = |c: char| c.is_alphanumeric() || "_-".contains(c);
    text.match_indices(path).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let mut after = text[at + path.len()..].chars();
        let next = after.next();
        // `a.rs.bak` is another file than `a.rs`; but the full stop of a sentence may follow a
        // path.
        let is_longer = next == Some('.') && after.next().is_some_and(is_of_name);
        !before.is_some_and(is_of_name) && !next.is_some_and(is_of_name) && !is_longer
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_named_as_a_whole() {
        for (text, expect) in [
            ("sed -i s/a/b/ src/a.rs", true),
            ("cat /p/src/a.rs.", true),
            ("cat xsrc/a.rs", false),
            ("cat src/a.rs.bak", false),
            ("cat src/a.rst", false),
            ("", false),
        ] {
            assert_eq!(names(text, "src/a.rs"), expect, "{text}");
        }
    }

    #[test]
    fn the_end_of_a_path_is_that_of_the_same_file() {
        for (one, other, expect) in [
            ("src/a.rs", "/p/src/a.rs", true),
            ("/p/src/a.rs", "./src/a.rs", true),
            ("/p/src/a.rs", "/q/src/a.rs", false),
            ("rc/a.rs", "src/a.rs", false),
        ] {
            assert_eq!(is_same_file(one, other), expect, "{one} {other}");
        }
    }
}
