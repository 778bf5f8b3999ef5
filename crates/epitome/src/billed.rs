//! Computes how many tokens a provider bills for a request of a session: for its messages, the
//! system prompt and the tools.
//!
//! A session file contains only the messages. If it records the token counts of the provider for
//! enough requests, the tokens of the system prompt and the tools are computed from these counts
//! (see [`calibrate`]).

use std::collections::BTreeMap;
use std::path::Path;

use epitome_model::{
    Block, CLEARED, Counter, Output, PRUNED, Part, Source, Stub, Tokens, Transcript, block_tokens,
    is_left_by_recipe,
};
use epitome_passes::SHORTENED;
use epitome_tokens::{Calibration, calibrate};
use rayon::prelude::*;

use crate::compact::PreparedCompaction;
use crate::config::Config;
use crate::restore::{Damage, RestoreOutcome, RestoreTarget, restore_from};
use crate::session::Loaded;
use crate::source::Spliced;

/// Returns how the tokens that `counter` counts in the messages of `session` (stored at `path`) are
/// converted to the tokens that the provider bills for a request. `None` if the session records too
/// few requests, if no conversion fits them well enough (see [`calibrate`]), or if the session
/// before its compactions is not known exactly.
///
/// Of a compacted session, only the requests before the first compaction are used. They contained
/// the uncompacted messages, which are taken from the archive.
pub fn calibration<S: Source>(
    session: &Loaded<S>,
    config: &Config,
    path: &Path,
    counter: &dyn Counter,
) -> Option<Calibration> {
    calibration_knowing(session, &BTreeMap::new(), config, path, counter)
}

/// Like [`calibration`], for a session that is going to be compacted. The token counts of the plan
/// are used again, so `counter` must be the counter with which the plan was made.
pub(crate) fn calibration_of_plan<S: Source>(
    planned: &PreparedCompaction<'_, S>,
    config: &Config,
    path: &Path,
    counter: &dyn Counter,
) -> Option<Calibration> {
    calibration_knowing(planned.session, &planned.plan.counted, config, path, counter)
}

/// Like [`calibration`]. `counted` has the tokens of blocks that were counted before, by the
/// indices of item and block.
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
        // There are stubs but no archived generations: for example, the session was compacted on
        // another machine, or its archive was deleted. So the texts of its earlier requests are
        // unknown.
        None if has_stubs(transcript, source) => None,
        None => calibrate(&requests(transcript, source, counted, counter, u64::MAX)),
        Some(first) => calibration_before(session, first.before.len, config, path, counter),
    }
}

/// Like [`calibration`], but without the archive: only from the session itself. `None` also if a
/// recipe left stubs in the session, because its requests contained text that is no longer in it.
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

/// The calibration of a session that was never compacted, or of the uncompacted version of a
/// session.
pub(crate) fn fitted(
    transcript: &Transcript,
    source: &dyn Source,
    counter: &dyn Counter,
) -> Option<Calibration> {
    calibrate(&requests(transcript, source, &BTreeMap::new(), counter, u64::MAX))
}

/// The calibration from the requests in the first `len` bytes of the uncompacted session. `None` if
/// the archive cannot restore that session exactly, or if the requests are too few, or no
/// conversion fits them well enough.
fn calibration_before<S: Source>(
    session: &Loaded<S>,
    len: u64,
    config: &Config,
    path: &Path,
    counter: &dyn Counter,
) -> Option<Calibration> {
    let archive = config.archive();
    let key = crate::session::key_of(session, path);
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
    if !matches!(way.outcome, RestoreOutcome::Exact { .. }) {
        return None;
    }
    let before = Spliced::new(&session.source, way.splices).ok()?;
    let transcript = (session.format.read)(&before, &mut ());
    calibrate(&requests(&transcript, &before, &BTreeMap::new(), counter, len))
}

/// Whether a result that a resume sends is a stub of a recipe, or begins with one. Results that the
/// agent itself cleared do not count: many sessions have such results, and the error that they
/// cause is part of [`Calibration::error`].
fn has_stubs(transcript: &Transcript, source: &dyn Source) -> bool {
    /// Of a result that is longer, in bytes, only the beginning is searched for a stub.
    const SHORT: u64 = 400;
    let mut blocks = transcript.context().flat_map(|(_, entry)| &entry.blocks);
    blocks.any(|block| match block {
        Block::Output(output) if output.size() <= SHORT => {
            let text = output.text(source);
            ![CLEARED, PRUNED].contains(&&*text) && is_left_by_recipe(&text)
        }
        Block::Output(output) => begins_with_stub(output, source),
        _ => false,
    })
}

/// Whether a result begins with a stub, which has kept lines below it. A result that was shortened
/// before it was sent does not count: the requests contained the short text.
fn begins_with_stub(output: &Output, source: &dyn Source) -> bool {
    /// How many bytes of the result are searched: enough for a quotation mark and the beginning of
    /// a stub.
    const BEGINNING: u64 = 16;
    let Some(Part::Text(text)) = output.parts.first() else { return false };
    let may_be_stub = text.span().is_none_or(|span| {
        let beginning = source.read(span.start..span.end.min(span.start + BEGINNING));
        memchr::memmem::find(&beginning, Stub::BEGINNING.as_bytes()).is_some()
    });
    may_be_stub
        && Stub::parse(&output.text(source)).is_some_and(|stub| stub.description() != SHORTENED)
}

/// For every request in the context that is recorded in the first `len` bytes: the tokens counted
/// in its messages, and the input tokens that the provider counted.
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
    // `before`: the tokens of all entries before the current response. `sent`: the tokens of all
    // entries so far.
    let mut before = Tokens(0);
    let mut sent = Tokens(0);
    let mut response = None;
    let mut is_counted = false;
    let mut points = Vec::new();
    for ((_, entry), tokens) in entries.iter().zip(tokens) {
        // The records of one response belong to one request, and any of them may state its usage.
        if entry.group.is_none() || entry.group != response {
            before = sent;
            is_counted = false;
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
    use epitome_model::{Entry, Item, RecordedUsage, Ref, Role, Span, Text, encode};
    use epitome_tokens::Estimate;

    use super::*;

    #[test]
    fn a_response_is_one_request_whichever_of_its_records_has_the_usage() {
        let source: &[u8] = b"";
        let counter = Estimate::new();
        let usage = |input| Some(RecordedUsage { input, ..RecordedUsage::default() });
        let entry_of = |group: Option<&str>, usage| Entry {
            role: if group.is_some() { Role::Assistant } else { Role::User },
            group: group.map(Into::into),
            blocks: vec![Block::Text(Text::Owned("word".into()))],
            usage,
            ..Entry::default()
        };
        let word = counter.count("word");
        let times = |n: u64| Tokens(word.0 * n);
        for (entries, expect) in [
            // Each record of a response holds the usage, as in Claude Code's sessions.
            (
                vec![
                    entry_of(None, None),
                    entry_of(Some("a"), usage(5)),
                    entry_of(Some("a"), usage(5)),
                ],
                vec![(times(1), 5)],
            ),
            // The last record of a response holds the usage, as in Codex's.
            (
                vec![
                    entry_of(None, None),
                    entry_of(Some("a"), None),
                    entry_of(Some("a"), usage(5)),
                    entry_of(None, None),
                    entry_of(Some("b"), usage(9)),
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

    #[test]
    fn a_stub_with_kept_lines_below_it_is_a_stub() {
        let kept = "let value = compute(input)?;\n".repeat(40);
        let stub = |what: &str| {
            let stub = Stub::new(Ref::from_bytes(b"x")).with_what(what);
            stub.with_body(kept.clone()).to_string()
        };
        for (text, expect) in [
            (stub("Read a.rs"), true),
            (stub(SHORTENED), false),
            (format!("above\n{}", stub("Read a.rs")), false),
            (kept.clone(), false),
        ] {
            let literal = encode(&text);
            let whole = Span { start: 0, end: literal.len() as u64 };
            let parts = vec![Part::Text(Text::Source(whole))];
            let output = Output { parts, whole, ..Output::default() };
            let entry = Entry { blocks: vec![Block::Output(output)], ..Entry::default() };
            let items = vec![Item::Entry(Box::new(entry))];
            let transcript = Transcript { items, context: vec![0], ..Transcript::default() };
            assert_eq!(has_stubs(&transcript, &literal.as_bytes()), expect, "{text}");
        }
    }
}
