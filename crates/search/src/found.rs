//! The results of a search.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use rusqlite::types::Value;
use rusqlite::{Connection, Row, Statement, params_from_iter};
use serde::Serialize;

use super::candidates::Candidates;
use super::conditions::Conditions;
use super::query::{Clause, Query};
use super::snippet::{Run, snippet};
use super::tables::{MessagePlace, count};
use super::text;

/// The hits of a query, the best first.
#[derive(Clone, Debug, PartialEq)]
pub struct Hits {
    /// The best hits.
    pub hits: Vec<Hit>,
    /// The number of all hits of the query, also of those that are not in `hits`.
    pub all: usize,
}

impl Hits {
    /// The hits of each session, in the order of their best hits.
    pub fn by_session(&self) -> Vec<Vec<&Hit>> {
        let mut places: HashMap<&Path, usize> = HashMap::new();
        let mut sessions: Vec<Vec<&Hit>> = Vec::new();
        for hit in &self.hits {
            let place = *places.entry(&hit.session).or_insert(sessions.len());
            if place == sessions.len() {
                sessions.push(Vec::new());
            }
            sessions[place].push(hit);
        }
        sessions
    }
}

/// A message that matches. Serialised, it is the JSON of `epitome search --json` (`docs/json.md`):
/// later versions may add members, but change and remove none.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Hit {
    /// The session: a file, or `DATABASE#ID`.
    #[serde(serialize_with = "epitome_model::lossy_path")]
    pub session: PathBuf,
    /// The agent that wrote the session.
    pub agent: String,
    /// The id of the session.
    pub id: String,
    /// The folder in which the session was run. `None` if the session does not name it.
    pub project: Option<String>,
    /// The title of the session.
    pub title: String,
    /// The number of the sub-agent that the message is from, counted from 0 in the order of the
    /// session's [`RenderSource`](epitome::render::RenderSource). `None` if it is from the session
    /// itself.
    pub sub_agent: Option<usize>,
    /// The turn, from 1; 0 before the first message of the user.
    pub turn: usize,
    /// The anchor of the message on the session's pages. For a sub-agent, the prefix of its anchors
    /// is left out.
    pub anchor: String,
    /// The index of the message's item in the transcript.
    #[serde(skip)]
    pub item: usize,
    /// The author: `user`, `assistant` or `system`; `tool` for a call or a result.
    pub role: String,
    /// The kind of text: `words`, `summary`, `thinking` or `call`.
    pub kind: String,
    /// The time, as the session writes it. `None` if the session has none for the message.
    pub time: Option<String>,
    /// Whether a compaction removed the message, or a part of it, from what a resume sends.
    pub archived: bool,
    /// How well the message matches: a higher value is a better match.
    #[serde(skip)]
    pub score: f32,
    /// A part of the text, with the matching words marked.
    pub snippet: Vec<Run>,
}

/// Returns the best hits of a query, at most `most`. Of equally good hits the newest comes first;
/// hits with the same time are in the order of their sessions' paths.
pub(super) fn find(connection: &Connection, query: &Query, most: usize) -> rusqlite::Result<Hits> {
    // All reads are in one transaction, so that they see the same state of the index.
    let reading = connection.unchecked_transaction()?;
    let Conditions { mut sql, matches, mut values, score } = Conditions::from_query(query);
    let all = if query.is_relaxed {
        let candidates = Candidates::select(&reading, query, most)?;
        sql.push_str(" AND +words.rowid IN (SELECT value FROM json_each(?))");
        values.push(candidates.json().into());
        candidates.all
    } else {
        let counted = format!("SELECT count(*) {matches}");
        reading.query_row(&counted, params_from_iter(&values), |row| count(0, row.get(0)?))?
    };
    if all == 0 {
        return Ok(Hits { hits: Vec::new(), all });
    }
    let order = "score DESC, time DESC, path, sub_agent, item";
    let best = format!("SELECT number, {score} AS score {sql} ORDER BY {order} LIMIT ?");
    values.push(Value::Integer(i64::try_from(most).unwrap_or(i64::MAX)));
    let mut best = reading.prepare(&best)?;
    let best = best.query_map(params_from_iter(&values), |row| Ok((row.get(0)?, row.get(1)?)))?;
    let place = MessagePlace::COLUMNS;
    let mut message = reading.prepare(&format!(
        "SELECT {place}, path, agent, id, project, title, text FROM messages \
         JOIN sessions ON key = session JOIN texts ON message = number WHERE number = ?"
    ))?;
    let hits = best.map(|best| hit(&mut message, best?, &query.clauses));
    Ok(Hits { hits: hits.collect::<rusqlite::Result<_>>()?, all })
}

/// Does what [`find`] does; but if no message matches and the query can be relaxed, returns the
/// hits of the relaxed query. The flag says whether the query was relaxed.
pub(super) fn find_or_relax(
    connection: &Connection,
    query: &Query,
    most: usize,
) -> rusqlite::Result<(Hits, bool)> {
    let hits = find(connection, query, most)?;
    match query.relaxed() {
        Some(relaxed) if hits.all == 0 => Ok((find(connection, &relaxed, most)?, true)),
        Some(_) | None => Ok((hits, false)),
    }
}

fn hit(
    message: &mut Statement<'_>,
    (number, score): (i64, f64),
    clauses: &[Clause],
) -> rusqlite::Result<Hit> {
    message.query_row([number], |row: &Row<'_>| {
        let MessagePlace { role, kind, sub_agent, anchor, item, turn, time, archived } =
            MessagePlace::read(row)?;
        let session: String = row.get(8)?;
        Ok(Hit {
            session: PathBuf::from(session),
            agent: row.get(9)?,
            id: row.get(10)?,
            project: row.get(11)?,
            title: row.get(12)?,
            sub_agent,
            anchor,
            item,
            turn,
            role,
            kind,
            time,
            archived,
            score: score as f32,
            snippet: snippet(&text::read(row.get_ref(13)?)?, clauses),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hit(session: &str, item: usize) -> Hit {
        let text = String::new;
        Hit {
            session: session.into(),
            agent: text(),
            id: text(),
            project: None,
            title: text(),
            sub_agent: None,
            turn: 0,
            anchor: text(),
            item,
            role: text(),
            kind: text(),
            time: None,
            archived: false,
            score: 0.0,
            snippet: Vec::new(),
        }
    }

    #[test]
    fn sessions_stand_in_the_order_of_their_best_hits() {
        let [b, a, b2, c] = [("b", 4), ("a", 1), ("b", 2), ("c", 9)].map(|(s, n)| hit(s, n));
        let hits = Hits { all: 4, hits: [&b, &a, &b2, &c].map(Clone::clone).to_vec() };
        assert_eq!(hits.by_session(), [vec![&b, &b2], vec![&a], vec![&c]]);
    }
}
