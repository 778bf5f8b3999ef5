//! The features of facts, and which of them were used later: the data to which the weights of a
//! digest are fitted.

use std::collections::HashSet;

use epitome_measure::{History, Needs, is_generic};
use epitome_model::Source;
use epitome_passes::facts::FactId;
use epitome_passes::{Features, Recipe, View, fact_features};
use epitome_tokens::Estimate;

use super::replay::say;
use crate::Loaded;
use crate::live::{Context, Setup};

/// A fact in the context at a cut.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KnownFact {
    /// The fact.
    pub fact: FactId,
    /// Its features, from which a digest ranks it.
    pub features: Features,
    /// Whether one of the next 40 responses uses it before anything brought it back.
    pub is_used: bool,
}

/// The facts of a session at each of its cuts.
///
/// # Errors
///
/// Errors of a context in memory: these are bugs.
pub fn known_facts<S: Source>(session: &Loaded<S>) -> crate::Result<Vec<Vec<KnownFact>>> {
    let counter = Estimate::new();
    let history = History::from_transcript(&session.transcript, &session.source, &counter);
    let needs = Needs::from_history(&history);
    let mut context = Context::in_memory(Setup::new(Recipe::default()).with_counter(counter));
    let (mut said, mut cuts) = (0, Vec::new());
    for &cut in &needs.cuts {
        let entry = history.calls[cut].entry;
        say(&mut context, &history.entries[said..entry], &session.source)?;
        said = entry;
        let used: HashSet<FactId> =
            needs.used_after(&history, cut).into_iter().map(|used| used.fact).collect();
        let sent = context.as_it_is();
        let facts = fact_features(&View::new(sent.transcript(), sent.source(), &counter));
        let facts = facts.into_iter().filter(|(fact, _)| !is_generic(*fact));
        let known = facts.map(|(fact, features)| {
            let is_used = used.contains(&fact);
            KnownFact { fact, features, is_used }
        });
        cuts.push(known.collect());
    }
    Ok(cuts)
}
