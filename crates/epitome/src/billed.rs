//! What a provider bills for a request of a session: its messages, the system prompt and the tools.
//!
//! A session file holds the messages alone. Where it records what the provider counted for its
//! requests, the rest follows from that (see [`calibrate`]).

use std::collections::BTreeMap;
use std::path::Path;

use epitome_model::{
    Block, CLEARED, Counter, PRUNED, Source, Tokens, Transcript, block_tokens, is_left_by_recipe,
};
use epitome_tokens::{Calibration, calibrate};
use rayon::prelude::*;

use crate::compact::CompactionPlan;
use crate::config::Config;
use crate::restore::{Damage, RestoreTarget, Restored, restore_from};
use crate::session::Loaded;
use crate::source::Spliced;

/// How the provider's tokens of a request follow from those that `counter` counts in the
/// messages of `session` at `path`; none if the session does not record enough requests.
///
/// What was recorded before a compaction is of the session as it was then: of a compacted
/// session, the requests before the first compaction are compared with what the archive holds.
pub fn calibration<S: Source>(
    session: &Loaded<S>,
    config: &Config,
    path: &Path,
    counter: &dyn Counter,
) -> Option<Calibration> {
    calibration_knowing(session, &BTreeMap::new(), config, path, counter)
}

/// As [`calibration`], for the session before a compaction. What was counted for the plan is not
/// counted again: `counter` must be that of the plan.
pub(crate) fn calibration_of_plan<S: Source>(
    planned: &CompactionPlan<'_, S>,
    config: &Config,
    path: &Path,
    counter: &dyn Counter,
) -> Option<Calibration> {
    calibration_knowing(planned.session, &planned.compaction.counted, config, path, counter)
}

/// As [`calibration`], with the tokens that were counted before, by item and block.
fn calibration_knowing<S: Source>(
    session: &Loaded<S>,
    counted: &BTreeMap<(usize, usize), Tokens>,
    config: &Config,
    path: &Path,
    counter: &dyn Counter,
) -> Option<Calibration> {
    let Loaded { source, transcript, .. } = session;
    if transcript.entries().all(|(_, entry)| entry.usage.is_none()) {
        return None;
    }
    let compactions = epitome_store::state::compactions(session, &config.archive(), path).ok()?;
    match compactions.first() {
        // It was compacted elsewhere, or its archive is damaged: what was sent is not known.
        None if has_stubs(transcript, source) => None,
        None => calibrate(&requests(transcript, source, counted, counter, u64::MAX)),
        Some(first) => calibration_before(session, first.before.len, config, path, counter),
    }
}

/// As [`calibration`], of a session of which the archive is not known: none of one in which a
/// recipe left stubs, because what was sent is not what it holds.
pub(crate) fn fitted_alone(
    transcript: &Transcript,
    source: &dyn Source,
    counter: &dyn Counter,
) -> Option<Calibration> {
    if has_stubs(transcript, source) {
        return None;
    }
    fitted(transcript, source, counter)
}

/// The same of a context that was never compacted, or of one as it was then.
pub(crate) fn fitted(
    transcript: &Transcript,
    source: &dyn Source,
    counter: &dyn Counter,
) -> Option<Calibration> {
    calibrate(&requests(transcript, source, &BTreeMap::new(), counter, u64::MAX))
}

/// The same from the first `len` bytes of the session as it was before it was compacted.
fn calibration_before<S: Source>(
    session: &Loaded<S>,
    len: u64,
    config: &Config,
    path: &Path,
    counter: &dyn Counter,
) -> Option<Calibration> {
    let (archive, key) = (config.archive(), crate::session::key_of(session, path));
    let known = archive.generations(&key).ok()?;
    let way = restore_from(
        &archive,
        &key,
        &known,
        &session.source,
        RestoreTarget::Original,
        Damage::Refuse,
    )
    .ok()?;
    if !matches!(way.outcome, Restored::Exact { .. }) {
        return None;
    }
    let before = Spliced::new(&session.source, way.splices).ok()?;
    let transcript = (session.format.read)(&before, &mut ());
    calibrate(&requests(&transcript, &before, &BTreeMap::new(), counter, len))
}

/// Whether a result that a resume sends was left by a recipe. What an agent itself clears is none:
/// it does so in many sessions, and a fit says how far it is off.
fn has_stubs(transcript: &Transcript, source: &dyn Source) -> bool {
    /// A stub is short; longer texts are not read.
    const LONGEST: u64 = 400;
    let blocks = transcript.context().flat_map(|(_, entry)| &entry.blocks);
    let outputs = blocks.filter_map(|block| match block {
        Block::Output(output) if output.size() <= LONGEST => Some(output.text(source)),
        _ => None,
    });
    outputs.into_iter().any(|text| ![CLEARED, PRUNED].contains(&&*text) && is_left_by_recipe(&text))
}

/// For every request of the context that is recorded in the first `len` bytes: the tokens that we
/// count in its messages, and the input tokens that the provider counted.
fn requests(
    transcript: &Transcript,
    source: &dyn Source,
    counted: &BTreeMap<(usize, usize), Tokens>,
    counter: &dyn Counter,
    len: u64,
) -> Vec<(Tokens, u64)> {
    let entries: Vec<_> =
        transcript.context().filter(|(_, entry)| entry.record.span.end <= len).collect();
    let tokens: Vec<Tokens> = entries
        .par_iter()
        .map(|(item, entry)| {
            let blocks = entry.blocks.iter().enumerate();
            let tokens = blocks.map(|(idx, block)| match counted.get(&(*item, idx)) {
                Some(tokens) => *tokens,
                None => block_tokens(block, source, counter),
            });
            tokens.sum()
        })
        .collect();
    // What was sent before the response that is being read, and before the next entry.
    let (mut before, mut sent) = (Tokens(0), Tokens(0));
    let mut response = None;
    let mut is_counted = false;
    let mut points = Vec::new();
    for ((_, entry), tokens) in entries.iter().zip(tokens) {
        // The records of one response answer one request. Any of them may have its usage.
        if entry.group.is_none() || entry.group != response {
            (before, is_counted) = (sent, false);
        }
        if let (Some(usage), false) = (entry.usage, is_counted) {
            points.push((before, usage.input));
            is_counted = true;
        }
        response.clone_from(&entry.group);
        sent += tokens;
    }
    points
}

#[cfg(test)]
mod tests {
    use epitome_model::{Block, Entry, Item, Role, Text, Usage};
    use epitome_tokens::Estimate;

    use super::*;

    #[test]
    fn a_response_is_one_request_whichever_of_its_records_has_the_usage() {
        let source: &[u8] = b"";
        let counter = Estimate::new();
        let usage = |input| Some(Usage { input, ..Usage::default() });
        let said = |group: Option<&str>, usage| Entry {
            role: if group.is_some() { Role::Assistant } else { Role::User },
            group: group.map(Into::into),
            blocks: vec![Block::Text(Text::Made("word".into()))],
            usage,
            ..Entry::default()
        };
        let word = counter.count("word");
        let times = |n: u64| Tokens(word.0 * n);
        for (entries, expect) in [
            // Each record says it, as in Claude Code's sessions.
            (
                vec![said(None, None), said(Some("a"), usage(5)), said(Some("a"), usage(5))],
                vec![(times(1), 5)],
            ),
            // The last says it, as in Codex's.
            (
                vec![
                    said(None, None),
                    said(Some("a"), None),
                    said(Some("a"), usage(5)),
                    said(None, None),
                    said(Some("b"), usage(9)),
                ],
                vec![(times(1), 5), (times(4), 9)],
            ),
        ] {
            let context = (0..entries.len()).collect();
            let items = entries.into_iter().map(|entry| Item::Entry(Box::new(entry))).collect();
            let transcript = Transcript { items, context, ..Transcript::default() };
            assert_eq!(
                requests(&transcript, &source, &BTreeMap::new(), &counter, u64::MAX),
                expect
            );
        }
    }
}
