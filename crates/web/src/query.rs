//! The query parameters of the list.

use epitome::list::Sort;
use serde::de::IntoDeserializer as _;
use serde::{Deserialize, Deserializer};

use crate::session_cache::{CachedSession, key};

/// The query parameters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct ListQuery {
    /// Words to find in messages, and in titles, projects, ids and agents.
    pub(crate) q: String,
    pub(crate) agent: String,
    /// The [`key`] of the project's folder.
    pub(crate) project: String,
    pub(crate) state: State,
    #[serde(deserialize_with = "sort_or_best")]
    pub(crate) sort: Option<Sort>,
    /// The page number, from 1.
    pub(crate) page: Option<usize>,
    /// The script of the page sets this to get only a part of the page. `None`: the whole page.
    pub(crate) part: Option<String>,
}

/// Which sessions are listed: compacted ones, others, or both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum State {
    /// All sessions, compacted or not.
    #[default]
    #[serde(alias = "")]
    Any,
    Compacted,
    Whole,
}

/// The value of the parameter `sort` for the order "best match first".
pub(crate) const BEST: &str = "best";

/// Parses an order; `None` is the best match first.
fn sort_or_best<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Sort>, D::Error> {
    let name = String::deserialize(from)?;
    match &*name {
        "" | BEST => Ok(None),
        name => Sort::deserialize(name.into_deserializer()).map(Some),
    }
}

/// The name of an order; `None` is the best match first.
pub(crate) fn label(sort: Option<Sort>) -> &'static str {
    match sort {
        None => "best match first",
        Some(Sort::Time) => "newest first",
        Some(Sort::Size) => "largest on disk first",
        Some(Sort::Context) => "largest context first",
        Some(Sort::Saving) => "most to save first",
    }
}

impl State {
    pub(crate) const ALL: [State; 3] = [State::Any, State::Compacted, State::Whole];

    /// The value of the query parameter `state` for this choice.
    pub(crate) fn value(self) -> &'static str {
        match self {
            State::Any => "",
            State::Compacted => "compacted",
            State::Whole => "whole",
        }
    }

    pub(crate) fn label(self) -> &'static str {
        match self {
            State::Any => "compacted or not",
            State::Compacted => "compacted",
            State::Whole => "not compacted",
        }
    }
}

impl ListQuery {
    /// The words to search for.
    pub(crate) fn words(&self) -> &str {
        self.q.trim()
    }

    /// The chosen order. If none is chosen: the best match first (`None`) if there are words to
    /// search for, otherwise the newest first.
    pub(crate) fn sort(&self) -> Option<Sort> {
        self.sort.or_else(|| self.words().is_empty().then_some(Sort::Time))
    }

    /// Whether a filter by agent, project or state is set.
    pub(crate) fn is_narrowed(&self) -> bool {
        !self.agent.is_empty() || !self.project.is_empty() || self.state != State::Any
    }

    /// Whether all sessions should be read first, because the filter or the order depends on their
    /// content.
    pub(crate) fn needs_all(&self) -> bool {
        let by_content =
            !self.words().is_empty() || !self.project.is_empty() || self.state != State::Any;
        by_content || matches!(self.sort(), Some(Sort::Context | Sort::Saving))
    }

    pub(crate) fn is_of_agent(&self, session: &CachedSession) -> bool {
        self.agent.is_empty() || self.agent == session.file.agent
    }

    /// Whether a session has the chosen agent, project and state.
    pub(crate) fn is_chosen(&self, session: &CachedSession) -> bool {
        let of_state = match self.state {
            State::Any => true,
            State::Compacted => session.is_compacted(),
            State::Whole => session.seen.is_some() && !session.is_compacted(),
        };
        let is_of_project = self.project.is_empty()
            || session.project().is_some_and(|cwd| key(cwd.as_ref()) == self.project);
        of_state && self.is_of_agent(session) && is_of_project
    }

    /// Whether a session has the chosen agent, project and state, and all words are in its title,
    /// project, id or agent.
    pub(crate) fn takes(&self, session: &CachedSession) -> bool {
        if !self.is_chosen(session) {
            return false;
        }
        let title = session.info().and_then(|info| info.title.as_deref());
        let texts = [Some(session.file.agent), Some(&*session.file.id), session.project(), title];
        let texts = texts.map(|text| text.unwrap_or_default().to_lowercase()).join("\n");
        self.q.to_lowercase().split_whitespace().all(|word| texts.contains(word))
    }

    /// The address of another page of the same list.
    pub(crate) fn address(&self, page: usize) -> String {
        let members = [
            ("q", &*self.q),
            ("agent", &*self.agent),
            ("project", &*self.project),
            ("state", self.state.value()),
            ("sort", self.sort.map_or("", Sort::name)),
        ];
        let mut address = String::from("./?");
        for (name, value) in members.into_iter().filter(|(_, value)| !value.is_empty()) {
            address.push_str(&format!("{name}={}&", encoded(value)));
        }
        address.push_str(&format!("page={page}"));
        address
    }
}

/// A value encoded for an address.
pub(crate) fn encoded(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => {
                encoded.push(char::from(byte));
            }
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_fits_what_is_asked_for() {
        let sort =
            |q: &str, sort| ListQuery { q: q.to_owned(), sort, ..ListQuery::default() }.sort();
        assert_eq!(sort("", None), Some(Sort::Time));
        assert_eq!(sort("x", None), None);
        assert_eq!(sort("x", Some(Sort::Time)), Some(Sort::Time));
        assert_eq!(sort("", Some(Sort::Size)), Some(Sort::Size));
    }

    #[test]
    fn a_page_of_the_list_keeps_all_that_is_chosen() {
        let query = ListQuery {
            q: "a&b ä".to_owned(),
            agent: "pi".to_owned(),
            project: "0f".to_owned(),
            state: State::Whole,
            sort: Some(Sort::Size),
            ..ListQuery::default()
        };
        let expect = "./?q=a%26b%20%C3%A4&agent=pi&project=0f&state=whole&sort=size&page=2";
        assert_eq!(query.address(2), expect);
        assert_eq!(ListQuery::default().address(1), "./?page=1");
    }
}
