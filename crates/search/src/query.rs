//! Parses queries.

use std::path::{Path, PathBuf};

use epitome_formats::{FORMATS, find_format};

use super::terms;

/// The maximum number of characters of a query.
const LONGEST: usize = 1_000;
/// The maximum number of words that [`Query::from_text`] takes from a text.
const TEXT_WORDS: usize = 40;
/// The endings that a relaxed query removes from English words, and the minimum length of the stem
/// in bytes.
const ENDINGS: [&str; 5] = ["ing", "ed", "es", "s", "e"];
const STEM: usize = 4;
/// The values of `role:`.
const ROLES: [&str; 4] = ["user", "assistant", "tool", "system"];

/// A query: words, phrases, excluded words and filters. A message matches if it has all words and
/// phrases (in a relaxed query, at least one), has no excluded word or phrase, and meets all
/// filters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    pub(super) clauses: Vec<Clause>,
    /// Whether one of the words or phrases is enough.
    pub(super) is_relaxed: bool,
    pub(super) filters: Vec<(Filter, String)>,
    /// The session must have been run in one of these folders or below it. Empty: no condition.
    pub(super) folders: Vec<PathBuf>,
}

/// Why a query is invalid, as a message for users.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadQuery(String);

/// One word, or several words that must directly follow each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Clause {
    /// The words in lower case, at least one.
    pub(super) words: Vec<String>,
    /// Whether the last word is a prefix: it matches every word that begins with it.
    pub(super) is_prefix: bool,
    /// Whether messages that contain the words are excluded.
    pub(super) is_excluded: bool,
}

impl Clause {
    /// The clause for a word with any ending. The word without its English ending becomes a prefix;
    /// if this would be shorter than [`STEM`], the whole word becomes the prefix. Phrases, excluded
    /// words, words that are not ASCII, and words shorter than [`STEM`] are not changed.
    fn relaxed(&self) -> Clause {
        let [word] = self.words.as_slice() else { return self.clone() };
        if self.is_excluded || !word.is_ascii() {
            return self.clone();
        }
        let stems = ENDINGS.iter().filter_map(|ending| word.strip_suffix(ending));
        let stem = stems.into_iter().find(|stem| stem.len() >= STEM).unwrap_or(word);
        let is_prefix = self.is_prefix || stem.len() >= STEM;
        Clause { words: vec![stem.to_owned()], is_prefix, is_excluded: false }
    }
}

/// The field that `name:value` filters by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Filter {
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
    /// Parses a query: words, `"phrases"`, `prefixes*`, `-excluded`, and the filters `agent:`,
    /// `project:`, `role:` and `session:`.
    ///
    /// ```
    /// use epitome_search::Query;
    ///
    /// assert!(Query::parse("cargo \"borrow checker\" agent:claude role:tool").is_ok());
    /// let bad = Query::parse("\"no end").expect_err("the phrase has no end");
    /// assert_eq!(bad.to_string(), "a phrase begins with \" and does not end");
    /// ```
    ///
    /// # Errors
    ///
    /// A message that says what is wrong with the query.
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

    /// A query for the words of a text that is not written as a query, such as an error message:
    /// nothing in it is a filter or an operator. Uses the first 40 words that are short enough for
    /// the index.
    ///
    /// ```
    /// use epitome_search::Query;
    ///
    /// let query = Query::from_text("error[E0499]: `a` -b \"c").expect("it has words");
    /// assert_eq!(query.marked_terms(), ["error", "e0499", "a", "b", "c"]);
    /// ```
    ///
    /// # Errors
    ///
    /// If the text has no word that is short enough for the index.
    pub fn from_text(text: &str) -> Result<Query, BadQuery> {
        let words = text_words(text);
        if words.is_empty() {
            return bad("there are no words to look for");
        }
        let clause = |word| Clause { words: vec![word], is_prefix: false, is_excluded: false };
        Ok(Query { clauses: words.into_iter().map(clause).collect(), ..Query::default() })
    }

    /// A query for the words of a text as one phrase, for example the name of a file. Uses the same
    /// words as [`from_text`](Query::from_text).
    ///
    /// # Errors
    ///
    /// If the text has no word that is short enough for the index.
    pub fn phrase(text: &str) -> Result<Query, BadQuery> {
        let words = text_words(text);
        if words.is_empty() {
            return bad("there are no words to look for");
        }
        let clause = Clause { words, is_prefix: false, is_excluded: false };
        Ok(Query { clauses: vec![clause], ..Query::default() })
    }

    /// The same query for messages that have at least one of its words, also with another ending;
    /// messages with the most and the rarest of them come first. `None` if the query is relaxed
    /// already or asks for no word or phrase.
    pub(super) fn relaxed(&self) -> Option<Query> {
        if self.is_relaxed || self.clauses.iter().all(|clause| clause.is_excluded) {
            return None;
        }
        let clauses = self.clauses.iter().map(Clause::relaxed).collect();
        Some(Query { is_relaxed: true, clauses, ..self.clone() })
    }

    /// For each word or phrase that is not excluded, a query that asks for it alone, with the same
    /// filters and excluded words.
    pub(super) fn single_clauses(&self) -> impl Iterator<Item = Query> {
        let (excluded, wanted): (Vec<&Clause>, Vec<&Clause>) =
            self.clauses.iter().partition(|clause| clause.is_excluded);
        wanted.into_iter().map(move |clause| {
            let clauses = std::iter::once(clause).chain(excluded.iter().copied()).cloned();
            Query { clauses: clauses.collect(), ..self.clone() }
        })
    }

    /// Limits the query to messages of this role.
    pub(super) fn of_role(mut self, role: &str) -> Query {
        self.filters.push((Filter::Role, role.to_owned()));
        self
    }

    /// Limits the query to sessions of this agent.
    ///
    /// # Errors
    ///
    /// [`BadQuery`] if there is no such agent.
    pub fn with_agent(mut self, agent: &str) -> Result<Query, BadQuery> {
        self.filter(Filter::Agent, "agent", agent)?;
        Ok(self)
    }

    /// Limits the query to sessions that were run in one of these folders or below it. If there are
    /// no folders, the query is not limited.
    #[must_use]
    pub fn with_folders(mut self, folders: Vec<PathBuf>) -> Query {
        self.folders = folders;
        self
    }

    /// Limits the query to sessions that were run in a folder or below it. A relative path is
    /// relative to the current folder. If the path has symbolic links, sessions that name the
    /// folder without them are found, too.
    #[must_use]
    pub fn with_project(self, project: &Path) -> Query {
        let absolute = std::path::absolute(project).unwrap_or_else(|_| project.to_owned());
        let real = project.canonicalize().unwrap_or_else(|_| absolute.clone());
        // `components` drops a slash at the end, which the user may have typed.
        let folders = [absolute, real].map(|folder| folder.components().collect::<PathBuf>());
        self.with_folders(folders.to_vec())
    }

    /// The words that a page marks, in lower case: all words of the query but the excluded ones.
    ///
    /// ```
    /// use epitome_search::Query;
    ///
    /// let query = Query::parse("pars* \"Borrow checker\" -cargo role:tool").expect("a query");
    /// assert_eq!(query.marked_terms(), ["pars", "borrow", "checker"]);
    /// ```
    pub fn marked_terms(&self) -> Vec<&str> {
        let wanted = self.clauses.iter().filter(|clause| !clause.is_excluded);
        wanted.flat_map(|clause| clause.words.iter().map(String::as_str)).collect()
    }

    fn filter(&mut self, filter: Filter, name: &str, value: &str) -> Result<(), BadQuery> {
        let value = value.to_lowercase();
        if value.is_empty() {
            return bad(format!("{name}: of which?"));
        }
        match filter {
            Filter::Agent if find_format(&value).is_none() => {
                let known: Vec<&str> = FORMATS.iter().map(|format| format.name).collect();
                return bad(format!("unknown agent `{value}`: {}", known.join(", ")));
            }
            Filter::Role if !ROLES.contains(&&*value) => {
                return bad(format!("unknown role `{value}`: {}", ROLES.join(", ")));
            }
            Filter::Project if !has_word(&value) => {
                return bad(format!("`{value}` holds no name of a folder"));
            }
            Filter::Agent | Filter::Role | Filter::Project | Filter::Session => {}
        }
        self.filters.push((filter, value));
        Ok(())
    }

    fn clause(&mut self, text: &str, quoted: bool, is_excluded: bool) -> Result<(), BadQuery> {
        let is_prefix = !quoted && text.ends_with('*');
        let words = words_of(text)?;
        if !words.is_empty() {
            let clause = Clause { words, is_prefix, is_excluded };
            if !self.clauses.contains(&clause) {
                self.clauses.push(clause);
            }
        } else if quoted || is_excluded || is_prefix {
            return bad(format!("`{text}` holds no letters or digits"));
        }
        // Punctuation alone is ignored: the index does not contain it.
        Ok(())
    }
}

/// The next word or quoted phrase, whether it was quoted, and the rest of the text.
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

/// The first [`TEXT_WORDS`] words of a text. Words that are too long for the index are left out and
/// do not count.
fn text_words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    terms::each(text, |word| {
        if word.is_indexed() && words.len() < TEXT_WORDS {
            words.push(word.text.clone());
        }
    });
    words
}

/// Whether a text contains a word that can be indexed.
fn has_word(text: &str) -> bool {
    let mut has = false;
    terms::each(text, |word| has |= word.is_indexed());
    has
}

/// The words of a clause, in order.
///
/// # Errors
///
/// If a word is too long for the index.
fn words_of(text: &str) -> Result<Vec<String>, BadQuery> {
    let mut found = Vec::new();
    let mut is_indexed = true;
    terms::each(text, |word| {
        is_indexed &= word.is_indexed();
        found.push(word.text.clone());
    });
    if is_indexed {
        Ok(found)
    } else {
        bad(format!("words longer than {} are not found", terms::LONGEST))
    }
}

fn bad<T>(what: impl Into<String>) -> Result<T, BadQuery> {
    Err(BadQuery(what.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: Result<&[&str], &str>) {
        let parsed = Query::parse(text).map(|query| {
            let clauses = query.clauses.iter().map(|it| {
                let sign = if it.is_excluded { "-" } else { "" };
                format!("{sign}{}{}", it.words.join("+"), if it.is_prefix { "*" } else { "" })
            });
            let filters = query.filters.iter().map(|(filter, value)| format!("{filter:?}={value}"));
            clauses.chain(filters).collect::<Vec<_>>()
        });
        let parsed = parsed.map_err(|err| err.to_string());
        let expect = expect.map(|it| it.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>());
        assert_eq!(parsed, expect.map_err(str::to_owned), "{text}");
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
        check("a* b A* a -a -a", Ok(&["a*", "b", "a", "-a"]));
        let run = vec!["漢"; 30];
        check(&run.concat(), Ok(&[&*run.join("+")]));
    }

    #[test]
    fn what_cannot_be_asked_is_said() {
        check("", Err("there are no words to look for"));
        check(" && ", Err("there are no words to look for"));
        check("a \"b", Err("a phrase begins with \" and does not end"));
        check("a *", Err("`*` holds no letters or digits"));
        check("-agent:pi x", Err("-agent: is not known"));
        check("agent: x", Err("agent: of which?"));
        check("role:boss", Err("unknown role `boss`: user, assistant, tool, system"));
        check("project:/ x", Err("`/` holds no name of a folder"));
        check(&"x".repeat(65), Err("words longer than 64 are not found"));
        check(&format!("a_{}", "ä".repeat(33)), Err("words longer than 64 are not found"));
        check(&"x ".repeat(501), Err("a query has at most 1000 characters"));
    }

    #[test]
    fn a_relaxed_query_takes_other_endings_of_its_words() {
        let query = Query::parse("parsing files pars* api \"two words\" -tests").expect("a query");
        let relaxed = query.relaxed().expect("it has words");
        let clauses = relaxed.clauses.iter().map(|it| {
            let sign = if it.is_excluded { "-" } else { "" };
            format!("{sign}{}{}", it.words.join("+"), if it.is_prefix { "*" } else { "" })
        });
        let clauses: Vec<String> = clauses.collect();
        assert_eq!(clauses, ["pars*", "file*", "pars*", "api", "two+words", "-tests"]);
        assert_eq!(relaxed.relaxed(), None);
    }
}
