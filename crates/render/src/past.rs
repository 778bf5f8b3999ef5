//! Earlier compactions of a session, for display.

use std::collections::BTreeSet;

use epitome_model::plural;
use serde::{Deserialize, Serialize};

use crate::time;

/// The earlier compactions of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Past {
    /// The compactions that are in effect in the stored session, the oldest first.
    pub compactions: Vec<PastCompaction>,
    /// Whether the session is shown with its stubs, as it is sent, and not restored.
    pub is_as_sent: bool,
    /// The blocks of which a resume no longer sends the text or a part of it, each as the index of
    /// its item in the transcript and its index in the entry.
    pub unsent: BTreeSet<(usize, usize)>,
    /// What could not be restored, each as a sentence without a full stop.
    pub missing: Vec<String>,
}

/// A compaction of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PastCompaction {
    /// When the compaction was made, in RFC 3339.
    pub made: String,
    /// The name of the recipe.
    pub recipe: String,
    /// The index of the transcript's item before which the compaction was made.
    #[serde(skip)]
    pub item: usize,
}

impl Past {
    /// Whether there is nothing to report.
    pub fn is_empty(&self) -> bool {
        self.compactions.is_empty() && self.missing.is_empty()
    }

    /// The indices of the blocks of an item of which a resume no longer sends the text or a part of
    /// it, in ascending order.
    pub fn unsent_blocks(&self, item: usize) -> Vec<usize> {
        self.unsent.range((item, 0)..(item + 1, 0)).map(|(_, block)| *block).collect()
    }

    /// The sentences above a session, as plain text that the caller must escape. Empty if there is
    /// nothing to report.
    pub fn sentences(&self) -> Vec<String> {
        let mut sentences = Vec::new();
        if let Some(last) = self.compactions.last() {
            let when = time::parse(&last.made).map(|it| format!("{} UTC", time::display(it)));
            let when = when.unwrap_or_else(|| last.made.clone());
            sentences.push(match self.compactions.len() {
                1 => format!("Compacted on {when} by the recipe {}.", last.recipe),
                n => format!("Compacted {n} times, last on {when} by the recipe {}.", last.recipe),
            });
            sentences.push(match (self.is_as_sent, self.unsent.len() as u64) {
                (true, _) => {
                    "Shown as it is sent: with stubs in the place of what was removed.".to_owned()
                }
                (false, 0) => "Shown as it was.".to_owned(),
                (false, 1) => "Shown as it was: 1 text of it is not sent any more.".to_owned(),
                (false, n) => {
                    format!("Shown as it was: {} of it are not sent any more.", plural(n, "text"))
                }
            });
        }
        for missing in &self.missing {
            let mut chars = missing.chars();
            let first: String = chars.next().into_iter().flat_map(char::to_uppercase).collect();
            sentences.push(format!("{first}{}.", chars.as_str()));
        }
        sentences
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_compactions_did_is_said_in_sentences() {
        let compaction = |recipe: &str| PastCompaction {
            made: "2026-11-21T12:00:00Z".to_owned(),
            recipe: recipe.to_owned(),
            item: 0,
        };
        let mut past = Past::default();
        assert_eq!(past.sentences(), Vec::<String>::new());
        past.compactions.push(compaction("s06"));
        past.unsent.insert((1, 0));
        assert_eq!(
            past.sentences(),
            [
                "Compacted on 2026-11-21 12:00 UTC by the recipe s06.",
                "Shown as it was: 1 text of it is not sent any more.",
            ]
        );
        past.compactions.push(compaction("epitome"));
        past.unsent.insert((2, 0));
        past.missing.push("3 stubs stay".to_owned());
        assert_eq!(
            past.sentences(),
            [
                "Compacted 2 times, last on 2026-11-21 12:00 UTC by the recipe epitome.",
                "Shown as it was: 2 texts of it are not sent any more.",
                "3 stubs stay.",
            ]
        );
        past.is_as_sent = true;
        assert!(past.sentences()[1].starts_with("Shown as it is sent"));
    }
}
