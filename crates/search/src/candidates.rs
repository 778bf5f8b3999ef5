//! Selects the messages that a relaxed query ranks.
//!
//! FTS5 ranks by BM25, which reads the positions of all query words in a message and the length of
//! the message. A relaxed query may match half of all messages: finding them takes 1 ms, but
//! ranking all of them takes 15 ms. So only the messages with the most and the rarest query words
//! are ranked.

use rusqlite::{Connection, params_from_iter};

use super::conditions::Conditions;
use super::query::Query;

/// The minimum number of messages that are ranked. With 300, all questions of `cargo lab search`
/// find the same first session as if all messages were ranked. With 100, 4% of the questions find
/// another one.
const RANKED: usize = 300;

/// The messages that a relaxed query ranks.
#[derive(Debug, PartialEq)]
pub(super) struct Candidates {
    /// The numbers of the messages, the most promising first.
    numbers: Vec<i64>,
    /// The number of all messages that match the query, whether they are ranked or not.
    pub(super) all: usize,
}

impl Candidates {
    /// Selects the messages with the most and the rarest words of a query: at least `most`, or all
    /// matching ones if there are fewer. Of messages for which the words have the same weight,
    /// those that were indexed last are preferred.
    pub(super) fn select(
        connection: &Connection,
        query: &Query,
        most: usize,
    ) -> rusqlite::Result<Candidates> {
        let indexed: Option<i64> =
            connection.query_row("SELECT max(number) FROM messages", [], |row| row.get(0))?;
        let mut weights: Vec<(i64, f64)> = Vec::new();
        for clause in query.single_clauses() {
            let Conditions { matches, values, .. } = Conditions::from_query(&clause);
            let mut statement = connection.prepare(&format!("SELECT words.rowid {matches}"))?;
            let numbers = statement.query_map(params_from_iter(&values), |row| row.get(0))?;
            let numbers = numbers.collect::<rusqlite::Result<Vec<i64>>>()?;
            let weight = rarity(numbers.len(), indexed.unwrap_or(0));
            weights.extend(numbers.into_iter().map(|number| (number, weight)));
        }
        Ok(best(weights, most.max(RANKED)))
    }

    /// The numbers as a JSON array.
    pub(super) fn json(&self) -> String {
        let numbers: Vec<String> = self.numbers.iter().map(i64::to_string).collect();
        format!("[{}]", numbers.join(","))
    }
}

/// The weight of a word that occurs in `having` messages, of about `all`: its inverse document
/// frequency, as in BM25. More than 0.
fn rarity(having: usize, all: i64) -> f64 {
    let (having, all) = (having as f64, all as f64);
    ((all - having + 0.5).max(0.5) / (having + 0.5)).ln().max(1e-6)
}

/// The `most` messages with the highest sums of weights. `weights` contains a message once for each
/// query word that it has, with the weight of that word.
fn best(mut weights: Vec<(i64, f64)>, most: usize) -> Candidates {
    // Each word's list is sorted by number already, which makes this sort fast.
    weights.sort_by_key(|(number, _)| *number);
    let mut sums: Vec<(i64, f64)> = Vec::new();
    for (number, weight) in weights {
        match sums.last_mut().filter(|(last, _)| *last == number) {
            Some((_, sum)) => *sum += weight,
            None => sums.push((number, weight)),
        }
    }
    let all = sums.len();
    let by_sum = |a: &(i64, f64), b: &(i64, f64)| b.1.total_cmp(&a.1).then(b.0.cmp(&a.0));
    if all > most {
        sums.select_nth_unstable_by(most, by_sum);
        sums.truncate(most);
    }
    sums.sort_unstable_by(by_sum);
    Candidates { numbers: sums.into_iter().map(|(number, _)| number).collect(), all }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_with_the_most_and_the_rarest_words_are_ranked() {
        let weights = vec![(1, 0.5), (2, 0.5), (3, 0.5), (2, 3.0), (4, 3.0), (3, 0.25)];
        let expect = |numbers: &[i64]| Candidates { numbers: numbers.to_vec(), all: 4 };
        assert_eq!(best(weights.clone(), 9), expect(&[2, 4, 3, 1]));
        assert_eq!(best(weights.clone(), 2), expect(&[2, 4]));
        assert_eq!(best(vec![(1, 1.0), (2, 1.0)], 1), Candidates { numbers: vec![2], all: 2 });
        assert_eq!(best(Vec::new(), 2), Candidates { numbers: Vec::new(), all: 0 });
        assert_eq!(expect(&[2, 4]).json(), "[2,4]");
        assert_eq!(rarity(90, 100), 1e-6);
        assert!(rarity(1, 100) > rarity(2, 100));
    }
}
