//! Translates a query to SQL.

use rusqlite::types::Value;

use super::query::{Clause, Filter, Query};
use super::tables;
use super::terms;

/// The condition of a query in SQL: the part of a statement after `SELECT …`, and its values.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Conditions {
    /// The SQL from `FROM` on, with the tables `messages` and `sessions`.
    pub(super) sql: String,
    /// Like `sql`, but only for statements that select `words.rowid` or `count(*)`. For a query
    /// that has only words and phrases, it reads the index of words alone, which is faster.
    pub(super) matches: String,
    pub(super) values: Vec<Value>,
    /// An SQL expression for how well a message matches: a higher value is a better match.
    pub(super) score: &'static str,
}

impl Conditions {
    pub(super) fn from_query(query: &Query) -> Conditions {
        let (excluded, wanted): (Vec<&Clause>, Vec<&Clause>) =
            query.clauses.iter().partition(|clause| clause.is_excluded);
        let all = "FROM messages CROSS JOIN sessions ON key = session WHERE true";
        let mut conditions = Conditions {
            sql: all.to_owned(),
            matches: all.to_owned(),
            values: Vec::new(),
            score: "1.0",
        };
        if !wanted.is_empty() {
            conditions.score = "-bm25(words)";
            // `CROSS JOIN` makes SQLite go through the tables in this order.
            conditions.sql = "FROM words CROSS JOIN messages ON number = words.rowid \
                CROSS JOIN sessions ON key = session WHERE words MATCH ?"
                .to_owned();
            "FROM words WHERE words MATCH ?".clone_into(&mut conditions.matches);
            let between = if query.is_relaxed { " OR " } else { " AND " };
            conditions.values.push(expression(&wanted, between));
        }
        if !excluded.is_empty() {
            let sql = "number NOT IN (SELECT rowid FROM words WHERE words MATCH ?)";
            conditions.add(sql, [expression(&excluded, " OR ")]);
        }
        for (filter, value) in &query.filters {
            conditions.filter(*filter, value);
        }
        if !query.folders.is_empty() {
            let marks = vec!["?"; query.folders.len()].join(", ");
            let sql = format!("key IN (SELECT session FROM folders WHERE folder IN ({marks}))");
            let folders = query.folders.iter().map(|folder| tables::path(folder).into());
            conditions.add(&sql, folders);
        }
        conditions
    }

    fn filter(&mut self, filter: Filter, value: &str) {
        let text = value.to_owned();
        match filter {
            Filter::Agent => self.add("agent = ?", [text.into()]),
            Filter::Role => self.add("role = ?", [text.into()]),
            Filter::Session => {
                let length = i64::try_from(value.chars().count()).unwrap_or(i64::MAX);
                self.add("substr(id_lower, 1, ?) = ?", [length.into(), text.into()]);
            }
            Filter::Project => {
                self.add("instr(project_words, ?) > 0", [spaced(&terms::normalized(value)).into()]);
            }
        }
    }

    fn add(&mut self, condition: &str, values: impl IntoIterator<Item = Value>) {
        self.sql.push_str(" AND ");
        self.sql.push_str(condition);
        self.matches.clone_from(&self.sql);
        self.values.extend(values);
    }
}

/// Puts a space at both ends of a text whose words are separated by single spaces. If one such text
/// contains another, then it contains it as whole words.
pub(super) fn spaced(normalized: &str) -> String {
    format!(" {normalized} ")
}

/// An expression for `MATCH`. Words are put in quotes; nothing in them needs an escape, because
/// they consist of letters and digits only.
fn expression(clauses: &[&Clause], between: &str) -> Value {
    let all = clauses.iter().map(|clause| {
        let star = if clause.is_prefix { " *" } else { "" };
        format!("\"{}\"{star}", clause.words.join(" "))
    });
    all.collect::<Vec<_>>().join(between).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(query: &str, expect: &[&str], expect_sql: &str) {
        check_query(&Query::parse(query).expect("a query"), expect, expect_sql);
    }

    fn check_query(query: &Query, expect: &[&str], expect_sql: &str) {
        let Conditions { sql, matches, values, score } = Conditions::from_query(query);
        let words = "FROM words WHERE words MATCH ?";
        let has_only_words = values.len() == 1 && sql.starts_with("FROM words");
        assert_eq!(matches, if has_only_words { words } else { expect_sql }, "{query:?}");
        let texts: Vec<Value> = expect.iter().map(|text| (*text).to_owned().into()).collect();
        assert_eq!((values, sql.as_str()), (texts, expect_sql), "{query:?}");
        let is_ranked = query.clauses.iter().any(|clause| !clause.is_excluded);
        assert_eq!(score, if is_ranked { "-bm25(words)" } else { "1.0" }, "{query:?}");
    }

    #[test]
    fn each_word_of_a_query_is_quoted_and_each_value_is_a_parameter() {
        let found = "FROM words CROSS JOIN messages ON number = words.rowid \
            CROSS JOIN sessions ON key = session WHERE words MATCH ?";
        check("Borrow NOT checker", &[r#""borrow" AND "not" AND "checker""#], found);
        check("foo_bar text:a*", &[r#""foo bar" AND "text a" *"#], found);
        check("(a) ^b {c} d+e", &[r#""a" AND "b" AND "c" AND "d e""#], found);
        let excluded = " AND number NOT IN (SELECT rowid FROM words WHERE words MATCH ?)";
        let expect = [r#""a""#, r#""b c" OR "d" *"#];
        check("a -\"b c\" -d*", &expect, &format!("{found}{excluded}"));
        let all = "FROM messages CROSS JOIN sessions ON key = session WHERE true";
        let expect = [r#""a""#, "user", " my app "];
        let filters = " AND role = ? AND instr(project_words, ?) > 0";
        check("-a role:user project:my-app", &expect, &format!("{all}{excluded}{filters}"));
    }

    #[test]
    fn a_relaxed_query_needs_one_of_its_words() {
        let query = Query::parse("a b -c role:tool").expect("a query");
        let found = "FROM words CROSS JOIN messages ON number = words.rowid \
            CROSS JOIN sessions ON key = session WHERE words MATCH ? \
            AND number NOT IN (SELECT rowid FROM words WHERE words MATCH ?) AND role = ?";
        let expect = [r#""a" OR "b""#, r#""c""#, "tool"];
        check_query(&query.relaxed().expect("it has two words"), &expect, found);
        assert_eq!(Query::parse("-a").expect("a query").relaxed(), None);
    }
}
