//! Searches: `search`, `around`, `touched` and `failed`.

use std::fmt::Write as _;

use epitome_search::{ErrorText, FilePath, Hit, Message, Query, Touch, TouchKind, TouchedBy};

use super::{Library, one_line};
use crate::arguments::Arguments;
use crate::error::ToolError;
use crate::index::Coverage;
use crate::sessions::Sessions;

/// The default and the maximum number of hits of a search.
const HITS: (usize, usize) = (10, 100);
/// The default and the maximum number of messages on each side of a hit.
const AROUND: (usize, usize) = (3, 50);
/// The maximum number of sessions that `failed` lists.
const FAILED: usize = 5;
/// The maximum number of characters that `around` shows of a message before or after the requested
/// one.
const NEIGHBOUR: usize = 1_500;
/// The maximum number of characters that `failed` shows of a message that followed an error.
const FOLLOWED: usize = 400;
/// The maximum number of calls that `touched` lists for one session: the last ones. Calls of the
/// session's sub-agents are listed after its own.
const TOUCHES: usize = 12;
/// The maximum number of characters of a title.
const TITLE: usize = 100;

/// The position of a message, as a hit names it: `ITEM`, or `SUB-AGENT:ITEM` in the session of a
/// sub-agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct At {
    sub_agent: Option<usize>,
    item: usize,
}

impl At {
    fn parse(text: &str) -> Option<At> {
        let (sub_agent, item) = match text.trim().split_once(':') {
            Some((sub_agent, item)) => (Some(sub_agent.parse().ok()?), item),
            None => (None, text.trim()),
        };
        Some(At { sub_agent, item: item.parse().ok()? })
    }
}

impl std::fmt::Display for At {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.sub_agent {
            Some(sub_agent) => write!(f, "{sub_agent}:{}", self.item),
            None => write!(f, "{}", self.item),
        }
    }
}

impl Library {
    pub(super) fn search(
        &self,
        sessions: &Sessions<'_>,
        arguments: &Arguments,
    ) -> Result<String, ToolError> {
        let query = Query::parse(arguments.text("query"))?;
        let limit = arguments.number("limit", HITS.0, HITS.1);
        let find = |index: &epitome_search::Search| index.find_or_relax(&query, limit);
        let ((hits, is_relaxed), coverage) = self.index.look(&sessions.files, find)?;
        let mut answer = String::new();
        note_coverage(&mut answer, coverage);
        if hits.hits.is_empty() {
            answer.push_str("Nothing found.\n");
            return Ok(answer);
        }
        if is_relaxed {
            answer.push_str("No message has all words. These have some of them:\n");
        } else if hits.all > hits.hits.len() {
            let _ = writeln!(answer, "The best {} of {} hits:", hits.hits.len(), hits.all);
        }
        for of_session in hits.by_session() {
            let first = of_session[0];
            let id = sessions.short_id(&first.session, &first.id);
            session_line(&mut answer, &first.agent, id, &first.title, first.project.as_deref());
            of_session.iter().for_each(|hit| hit_line(&mut answer, hit));
        }
        Ok(answer)
    }

    pub(super) fn around(
        &self,
        sessions: &Sessions<'_>,
        arguments: &Arguments,
    ) -> Result<String, ToolError> {
        let path = sessions.path(arguments.text("session"))?;
        let at = arguments.text("at");
        let at = At::parse(at)
            .ok_or_else(|| ToolError::new(format!("`{at}` is not the `at` of a hit")))?;
        let near = arguments.number("messages", AROUND.0, AROUND.1);
        let look =
            |index: &epitome_search::Search| index.around(&path, at.sub_agent, at.item, near, near);
        let (messages, coverage) = self.index.look(&sessions.files, look)?;
        if !messages.iter().any(|message| message.item == at.item) {
            return Err(ToolError::new(format!("this session has no message at {at}")));
        }
        let mut answer = String::new();
        note_coverage(&mut answer, coverage);
        for message in &messages {
            let most = if message.item == at.item { usize::MAX } else { NEIGHBOUR };
            message_text(&mut answer, message, at.sub_agent, most);
        }
        Ok(answer)
    }

    pub(super) fn touched(
        &self,
        sessions: &Sessions<'_>,
        arguments: &Arguments,
    ) -> Result<String, ToolError> {
        let file = FilePath::parse(arguments.text("path"))?;
        let (found, coverage) =
            self.index.look(&sessions.files, |index| index.find_touches(&file))?;
        let mut answer = String::new();
        note_coverage(&mut answer, coverage);
        if found.is_empty() {
            answer.push_str("No session touched such a file.\n");
        }
        for session in &found {
            let id = sessions.short_id(&session.session, &session.id);
            session_line(&mut answer, &session.agent, id, &session.title, None);
            touches(&mut answer, session);
        }
        Ok(answer)
    }

    pub(super) fn failed(
        &self,
        sessions: &Sessions<'_>,
        arguments: &Arguments,
    ) -> Result<String, ToolError> {
        let error = ErrorText::parse(arguments.text("error"))?;
        let (found, coverage) =
            self.index.look(&sessions.files, |index| index.find_failures(&error, FAILED))?;
        let mut answer = String::new();
        note_coverage(&mut answer, coverage);
        if found.failed.is_empty() {
            answer.push_str("No session has such an error.\n");
        } else if found.is_relaxed {
            answer.push_str("No result has all words of it. These have some of them:\n");
        }
        for failed in &found.failed {
            let hit = &failed.hit;
            let id = sessions.short_id(&hit.session, &hit.id);
            session_line(&mut answer, &hit.agent, id, &hit.title, hit.project.as_deref());
            hit_line(&mut answer, hit);
            answer.push_str("  Then:\n");
            for message in &failed.followed {
                message_text(&mut answer, message, hit.sub_agent, FOLLOWED);
            }
        }
        Ok(answer)
    }
}

fn note_coverage(answer: &mut String, coverage: Coverage) {
    match coverage {
        Coverage::All => {}
        Coverage::Part => {
            answer.push_str("The index is being built: this is not from all sessions yet.\n");
        }
    }
}

/// Writes an empty line, and the line of a session: `claude 0f3c9a52 · Fix the parser · /srv/app`.
pub(super) fn session_line(
    answer: &mut String,
    agent: &str,
    id: &str,
    title: &str,
    project: Option<&str>,
) {
    let _ = write!(answer, "\n{agent} {id}");
    let title = one_line(title, TITLE);
    for part in [Some(&*title), project].into_iter().flatten().filter(|part| !part.is_empty()) {
        let _ = write!(answer, " · {part}");
    }
    answer.push('\n');
}

fn hit_line(answer: &mut String, hit: &Hit) {
    let at = At { sub_agent: hit.sub_agent, item: hit.item };
    let time = hit.time.as_deref().map(minute);
    let _ = write!(answer, "  at {at} · turn {} · {}", hit.turn, author(&hit.role, &hit.kind));
    if let Some(time) = time {
        let _ = write!(answer, " · {time}");
    }
    if hit.archived {
        answer.push_str(" · archived");
    }
    answer.push_str("\n    ");
    for run in &hit.snippet {
        let mark = if run.marked { "**" } else { "" };
        let _ = write!(answer, "{mark}{}{mark}", run.text);
    }
    answer.push('\n');
}

fn message_text(answer: &mut String, message: &Message, sub_agent: Option<usize>, most: usize) {
    let at = At { sub_agent, item: message.item };
    let author = author(&message.role, &message.kind);
    let _ = writeln!(answer, "--- at {at} · turn {} · {author}", message.turn);
    let text = message.text.trim_end();
    let chars = text.chars().count();
    if chars <= most {
        let _ = writeln!(answer, "{text}");
    } else {
        let shown: String = text.chars().take(most).collect();
        let _ = writeln!(answer, "{shown}\n[{} more characters]", chars - most);
    }
}

fn touches(answer: &mut String, session: &TouchedBy) {
    let hidden = session.touches.len().saturating_sub(TOUCHES);
    if hidden > 0 {
        let _ = writeln!(answer, "  [{hidden} more calls]");
    }
    for Touch { kind, sub_agent, item, time } in &session.touches[hidden..] {
        let kind = match kind {
            TouchKind::Read => "read",
            TouchKind::Changed => "changed",
            TouchKind::Named => "named",
        };
        let at = At { sub_agent: *sub_agent, item: *item };
        let time = time.as_deref().map(|time| format!(" · {}", minute(time)));
        let _ = writeln!(answer, "  at {at} · {kind}{}", time.unwrap_or_default());
    }
}

/// The author of a message, and the kind of its text if that is a summary or reasoning:
/// `assistant, thinking`.
fn author(role: &str, kind: &str) -> String {
    match kind {
        "words" | "call" => role.to_owned(),
        kind => format!("{role}, {kind}"),
    }
}

/// A recorded time, to the minute and in UTC; if it cannot be parsed, at most its first 20
/// characters.
fn minute(time: &str) -> String {
    match time.parse::<jiff::Timestamp>() {
        Ok(time) => time.strftime("%Y-%m-%d %H:%M").to_string(),
        Err(_) => one_line(time, 20),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_calls_of_a_session_are_listed() {
        let touch = |sub_agent, item| Touch { kind: TouchKind::Read, sub_agent, item, time: None };
        let own = (0..3).map(|item| touch(None, item));
        let session = TouchedBy {
            session: "s.jsonl".into(),
            agent: "claude".into(),
            id: "s".into(),
            title: String::new(),
            touches: own.chain((0..11).map(|item| touch(Some(0), item))).collect(),
        };
        let mut answer = String::new();
        touches(&mut answer, &session);
        let of_sub_agent: String = (0..11).map(|item| format!("  at 0:{item} · read\n")).collect();
        assert_eq!(answer, format!("  [2 more calls]\n  at 2 · read\n{of_sub_agent}"));
    }

    #[test]
    fn a_place_is_read_as_it_is_written() {
        for (text, expect) in [
            ("45", Some(At { sub_agent: None, item: 45 })),
            ("2:45", Some(At { sub_agent: Some(2), item: 45 })),
            ("", None),
            ("a:1", None),
            ("-1", None),
        ] {
            let at = At::parse(text);
            assert_eq!(at, expect, "{text}");
            assert_eq!(at.map_or(String::new(), |at| at.to_string()), expect.map_or("", |_| text));
        }
    }
}
