//! The features of facts, and which facts were used later. The weights by which a digest ranks
//! facts are fitted to these data.

use std::collections::HashSet;

use epitome_measure::{History, Needs, is_generic};
use epitome_model::Source;
use epitome_passes::facts::FactId;
use epitome_passes::{Features, Recipe, View, fact_features};
use epitome_tokens::Estimate;

use super::replay::say;
use crate::Loaded;
use crate::live::{Context, Setup};

/// A fact that a context contains at the time of a compaction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KnownFact {
    /// The fact.
    pub fact: FactId,
    /// The features of the fact, from which a digest ranks it.
    pub features: Features,
    /// Whether one of the next 40 responses uses the fact before any other text brings it back.
    pub is_used: bool,
}

/// For each point at which the simulation forces a compaction, the facts in the session's context
/// at that point. Facts that occur in sessions of all kinds are left out.
///
/// # Errors
///
/// The errors of a context in memory, which would be bugs.
pub fn known_facts<S: Source>(session: &Loaded<S>) -> crate::Result<Vec<Vec<KnownFact>>> {
    let counter = Estimate::new();
    let history = History::from_transcript(&session.transcript, &session.source, &counter);
    let needs = Needs::from_history(&history);
    let mut context = Context::in_memory(Setup::new(Recipe::default()).with_counter(counter));
    let mut entries_so_far = 0;
    let mut cuts = Vec::new();
    for &cut in &needs.cuts {
        let entry = history.calls[cut].entry;
        say(&mut context, &history.entries[entries_so_far..entry], &session.source)?;
        entries_so_far = entry;
        let used: HashSet<FactId> =
            needs.used_after(&history, cut).into_iter().map(|used| used.fact).collect();
        let sent = context.unchanged_view();
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
