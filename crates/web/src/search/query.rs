//! What a person asks for.

use std::path::PathBuf;

use epitome_formats::{FORMATS, named};
use tantivy::Term;
use tantivy::query::{
    AllQuery, BooleanQuery, FuzzyTermQuery, Occur, PhrasePrefixQuery, PhraseQuery, TermQuery,
    TermSetQuery,
};
use tantivy::schema::{Field, IndexRecordOption};

use super::shape::{SESSION, Shape, folder};
use super::words;

/// Characters of a query.
const LONGEST: usize = 1_000;
/// How many words a beginning in a phrase may stand for.
const EXPANSIONS: u32 = 500;
/// Who can be asked for.
const ROLES: [&str; 4] = ["user", "assistant", "tool", "system"];

/// Words, phrases and filters: all must be met.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    pub(super) clauses: Vec<Clause>,
    filters: Vec<(Filter, String)>,
    /// Folders, one of which the session was run in or below.
    folders: Vec<PathBuf>,
}

/// Why something cannot be asked for, in words for whoever asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadQuery(String);

/// Words that stand beside each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Clause {
    /// In lower case, each with its place.
    pub(super) words: Vec<(usize, String)>,
    /// Whether the last one is the beginning of a word.
    pub(super) beginning: bool,
    /// Whether they must not be there.
    pub(super) without: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Filter {
    Agent,
    Project,
    Role,
    Session,
}

impl Filter {
    fn named(name: &str) -> Option<Filter> {
        match name {
            "agent" => Some(Filter::Agent),
            "project" => Some(Filter::Project),
            "role" => Some(Filter::Role),
            "session" => Some(Filter::Session),
            _ => None,
        }
    }
}

impl Query {
    /// Reads a query: words, `"phrases"`, `beginnings*`, `-without`, and the filters `agent:`,
    /// `project:`, `role:` and `session:`.
    ///
    /// ```
    /// use epitome_web::search::Query;
    ///
    /// assert!(Query::parse("cargo \"borrow checker\" agent:claude role:tool").is_ok());
    /// let bad = Query::parse("\"no end").expect_err("the phrase has no end");
    /// assert_eq!(bad.to_string(), "a phrase begins with \" and does not end");
    /// ```
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Query, BadQuery> {
        if text.chars().count() > LONGEST {
            return bad(format!("a query has at most {LONGEST} characters"));
        }
        let mut query = Query::default();
        let mut rest = text.trim_start();
        while !rest.is_empty() {
            let (without, behind) = match rest.strip_prefix('-') {
                Some(behind) if !behind.starts_with(char::is_whitespace) => (true, behind),
                Some(_) | None => (false, rest),
            };
            let filter = behind
                .split_once(':')
                .and_then(|(name, behind)| Some((Filter::named(name)?, name, behind)));
            let (value, quoted, behind) = match filter {
                Some((_, _, behind)) => value(behind)?,
                None => value(behind)?,
            };
            rest = behind.trim_start();
            match filter {
                Some((_, name, _)) if without => return bad(format!("-{name}: is not known")),
                Some((filter, name, _)) => query.filter(filter, name, value)?,
                None => query.clause(value, quoted, without)?,
            }
        }
        if query.clauses.is_empty() && query.filters.is_empty() {
            return bad("there are no words to look for");
        }
        Ok(query)
    }

    /// The same query, of sessions of this agent alone.
    ///
    /// # Errors
    ///
    /// When there is no such agent.
    pub fn of_agent(mut self, agent: &str) -> Result<Query, BadQuery> {
        self.filter(Filter::Agent, "agent", agent)?;
        Ok(self)
    }

    /// The same query, of sessions alone that were run in one of these folders or below it.
    #[must_use]
    pub fn of_folders(mut self, folders: Vec<PathBuf>) -> Query {
        self.folders = folders;
        self
    }

    fn filter(&mut self, filter: Filter, name: &str, value: &str) -> Result<(), BadQuery> {
        let value = value.to_lowercase();
        if value.is_empty() {
            return bad(format!("{name}: of which?"));
        }
        match filter {
            Filter::Agent if named(&value).is_none() => {
                let known: Vec<&str> = FORMATS.iter().map(|format| format.name).collect();
                return bad(format!("there is no agent `{value}`: {}", known.join(", ")));
            }
            Filter::Role if !ROLES.contains(&&*value) => {
                return bad(format!("there is no role `{value}`: {}", ROLES.join(", ")));
            }
            Filter::Project if words_of(&value).is_empty() => {
                return bad(format!("`{value}` holds no name of a folder"));
            }
            Filter::Agent | Filter::Role | Filter::Project | Filter::Session => {}
        }
        self.filters.push((filter, value));
        Ok(())
    }

    fn clause(&mut self, text: &str, quoted: bool, without: bool) -> Result<(), BadQuery> {
        let beginning = !quoted && text.ends_with('*');
        let words = words_of(text);
        let told =
            text.split(|c: char| !c.is_alphanumeric()).any(|word| word.len() > words::LONGEST);
        match (words.is_empty(), told) {
            (_, true) => return bad(format!("words longer than {} are not found", words::LONGEST)),
            // Signs alone are in no index, and forbid nothing.
            (true, false) if quoted || without || beginning => {
                return bad(format!("`{text}` holds no letters or digits"));
            }
            (true, false) => {}
            (false, false) => self.clauses.push(Clause { words, beginning, without }),
        }
        Ok(())
    }

    /// The query as the index understands it.
    pub(super) fn for_index(&self, shape: &Shape) -> BooleanQuery {
        let mut parts: Vec<(Occur, Box<dyn tantivy::query::Query>)> = Vec::new();
        for clause in &self.clauses {
            let occur = if clause.without { Occur::MustNot } else { Occur::Must };
            parts.push((occur, clause.for_index(shape.text)));
        }
        for (filter, value) in &self.filters {
            let query: Box<dyn tantivy::query::Query> = match filter {
                Filter::Agent => exactly(shape.agent, value),
                Filter::Role => exactly(shape.role, value),
                Filter::Session => beginning(shape.id, value),
                Filter::Project => beside(shape.project, &words_of(value)),
            };
            parts.push((Occur::Must, Box::new(tantivy::query::ConstScoreQuery::new(query, 0.0))));
        }
        if !self.folders.is_empty() {
            let terms =
                self.folders.iter().map(|it| Term::from_field_u64(shape.folder, folder(it)));
            parts.push((Occur::Must, Box::new(TermSetQuery::new(terms))));
        }
        if !self.clauses.iter().any(|clause| !clause.without) {
            parts.push((Occur::Must, Box::new(AllQuery)));
            parts.push((Occur::MustNot, exactly(shape.role, SESSION)));
        }
        BooleanQuery::new(parts)
    }
}

impl Clause {
    fn for_index(&self, field: Field) -> Box<dyn tantivy::query::Query> {
        let [.., (_, last)] = self.words.as_slice() else { return Box::new(AllQuery) };
        match (self.words.len(), self.beginning) {
            (1, true) => beginning(field, last),
            (_, true) => {
                let mut query = PhrasePrefixQuery::new_with_offset(terms(field, &self.words));
                query.set_max_expansions(EXPANSIONS);
                Box::new(query)
            }
            (_, false) => beside(field, &self.words),
        }
    }
}

/// A word or a phrase in quotes, whether it was one, and what stands behind it.
fn value(text: &str) -> Result<(&str, bool, &str), BadQuery> {
    if let Some(phrase) = text.strip_prefix('"') {
        let Some((phrase, behind)) = phrase.split_once('"') else {
            return bad("a phrase begins with \" and does not end");
        };
        return Ok((phrase, true, behind));
    }
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    Ok((&text[..end], false, &text[end..]))
}

fn words_of(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    words::each(text, |token| found.push((token.position, token.text.clone())));
    found
}

fn exactly(field: Field, word: &str) -> Box<dyn tantivy::query::Query> {
    Box::new(TermQuery::new(Term::from_field_text(field, word), IndexRecordOption::WithFreqs))
}

fn beginning(field: Field, word: &str) -> Box<dyn tantivy::query::Query> {
    Box::new(FuzzyTermQuery::new_prefix(Term::from_field_text(field, word), 0, false))
}

/// Words that stand beside each other, or one.
fn beside(field: Field, words: &[(usize, String)]) -> Box<dyn tantivy::query::Query> {
    match words {
        [(_, word)] => exactly(field, word),
        words => Box::new(PhraseQuery::new_with_offset(terms(field, words))),
    }
}

fn terms(field: Field, words: &[(usize, String)]) -> Vec<(usize, Term)> {
    words.iter().map(|(at, word)| (*at, Term::from_field_text(field, word))).collect()
}

fn bad<T>(what: impl Into<String>) -> Result<T, BadQuery> {
    Err(BadQuery(what.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: Result<&[&str], &str>) {
        let told = Query::parse(text).map(|query| {
            let clauses = query.clauses.iter().map(|it| {
                let words: Vec<&str> = it.words.iter().map(|(_, word)| &**word).collect();
                let sign = if it.without { "-" } else { "" };
                format!("{sign}{}{}", words.join("+"), if it.beginning { "*" } else { "" })
            });
            let filters = query.filters.iter().map(|(filter, value)| format!("{filter:?}={value}"));
            clauses.chain(filters).collect::<Vec<_>>()
        });
        let told = told.map_err(|err| err.to_string());
        let expect = expect.map(|it| it.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>());
        assert_eq!(told, expect.map_err(str::to_owned), "{text}");
    }

    #[test]
    fn words_phrases_beginnings_and_filters_are_read() {
        check("Borrow checker", Ok(&["borrow", "checker"]));
        check("\"borrow checker\" x", Ok(&["borrow+checker", "x"]));
        check("std::fs::read", Ok(&["std+fs+read"]));
        check("pars* foo_ba*", Ok(&["pars*", "foo+ba*"]));
        check("a -b -\"c d\"", Ok(&["a", "-b", "-c+d"]));
        check("x agent:Claude role:user", Ok(&["x", "Agent=claude", "Role=user"]));
        check("project:\"my app\" session:0f3c", Ok(&["Project=my app", "Session=0f3c"]));
        check("https://example.com a - b", Ok(&["https+example+com", "a", "b"]));
    }

    #[test]
    fn what_cannot_be_asked_is_said() {
        check("", Err("there are no words to look for"));
        check(" && ", Err("there are no words to look for"));
        check("a \"b", Err("a phrase begins with \" and does not end"));
        check("a *", Err("`*` holds no letters or digits"));
        check("-agent:pi x", Err("-agent: is not known"));
        check("agent: x", Err("agent: of which?"));
        check("role:boss", Err("there is no role `boss`: user, assistant, tool, system"));
        check("project:/ x", Err("`/` holds no name of a folder"));
        check(&"x".repeat(65), Err("words longer than 64 are not found"));
        check(&"x ".repeat(501), Err("a query has at most 1000 characters"));
    }
}
