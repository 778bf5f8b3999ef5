//! The invariants of the product, over generated and recorded sessions, for all formats and
//! recipes.

mod accounting;
mod generated;
mod recorded;

use std::collections::HashMap;

use epitome::archive::{Generation, Hash, UndoData};
use epitome::compaction::{PreparedCompaction, Way};
use epitome::storage::{Blobs, RestoreOutcome, RestoreTarget, Spliced, restore};
use epitome::{Error, ErrorKind, Loaded};
use epitome_formats::{Mark, Native, find_format};
use epitome_model::{At, Block, Counter, Source, Tokens, Transcript};
use epitome_passes::{self as passes, All, BUILT_IN, Keep, Recipe, built_in, is_error_line};
use epitome_tokens::Estimate;
use proptest::prelude::*;

use crate::conclusions;

/// Removed bytes in memory.
struct Removed(HashMap<Hash, Vec<u8>>);

impl Blobs for Removed {
    fn blob(&self, _generation: u64, hash: &Hash) -> Result<Vec<u8>, Error> {
        Ok(self.0[hash].clone())
    }
}

/// A built-in recipe with generated keep rules.
fn recipe() -> impl Strategy<Value = Recipe> {
    let keep = (
        proptest::option::of(0_u64..3),
        proptest::option::of(0_u64..4),
        proptest::option::of(0_u64..400),
        proptest::option::of(0_u64..101),
        any::<bool>(),
        prop_oneof![Just(All::Tail), Just(All::Kept)],
    );
    let target = proptest::option::of(0_u64..500);
    (0..BUILT_IN.len(), proptest::option::of(keep), target).prop_map(|(idx, keep, target)| {
        let mut recipe = built_in(BUILT_IN[idx].0).expect("a built-in recipe");
        if let Some((turns, results, tokens, share, unanswered, all)) = keep {
            recipe.keep = Keep { turns, results, tokens, share, unanswered, all, messages: None };
        }
        recipe.trigger = Default::default();
        recipe.target.stored = target.map(Tokens).map(passes::Target::from_tokens);
        recipe
    })
}

fn load(agent: &str, bytes: &[u8]) -> Loaded<Vec<u8>> {
    let format = find_format(agent).expect("a known agent");
    let source = bytes.to_vec();
    let mut faults = Vec::new();
    let transcript = (format.read)(&source, &mut faults);
    Loaded { format, source, transcript, faults }
}

fn bytes_of(spliced: &Spliced<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    spliced.copy_to(&mut bytes).expect("memory is written");
    bytes
}

/// Compacts a session, and checks every invariant on the way. Returns the compacted session.
fn check(
    agent: &str,
    before: &[u8],
    recipe: &Recipe,
    counter: &dyn Counter,
    appended: &[u8],
) -> Vec<u8> {
    let session = load(agent, before);
    let planned = match PreparedCompaction::new(&session, recipe, counter) {
        Ok(planned) => planned,
        // The texts that set rules do not fit into the digest's target.
        Err(err) if err.kind() == ErrorKind::Refused && recipe.stages.stored.digest.is_some() => {
            return before.to_vec();
        }
        Err(err) => panic!("the edits can be written: {err:?}"),
    };
    assert_eq!(planned.violations, [], "invariants hold");
    let spliced = planned.spliced().expect("the splices lie apart");
    let after = bytes_of(&spliced);

    // 2: Everything comes back, with what was appended since.
    let mut blobs = HashMap::new();
    for (splice, _) in &planned.splices {
        let raw = session.source.at(splice.span).into_owned();
        blobs.insert(Hash::compute(&raw), raw);
    }
    let generation = generation(UndoData::between(&session.source, &spliced).expect("in memory"));
    let now = [after.as_slice(), appended].concat();
    let back = restore(&now, &[generation], &Removed(blobs), RestoreTarget::Original)
        .expect("it comes back");
    if !planned.is_empty() {
        assert_eq!(back.outcome, RestoreOutcome::Exact { undone: vec![1] });
    }
    let restored = bytes_of(&Spliced::new(&now, back.splices).expect("the splices lie apart"));
    assert_eq!(restored, [before, appended].concat(), "everything comes back");

    // What other programs read is unchanged; an agent's own record may follow.
    let (was, is) = (accounting::values(before), accounting::values(&after));
    let changed = was.iter().enumerate().find(|(idx, value)| is.get(*idx) != Some(value));
    assert_eq!(changed, None, "accounting stays");

    // The savings by tool and by file add up to those of all edits.
    let savings = planned.savings(counter);
    let of_tools: Tokens = savings.tools.iter().map(|saving| saving.tokens).sum();
    let of_files: Tokens = savings.files.iter().map(|saving| saving.tokens).sum();
    let of_edits: Tokens = planned.plan.edits.iter().map(|edit| edit.tokens).sum();
    assert_eq!(of_tools, of_edits, "no saving is counted twice, or not at all");
    assert!(of_files <= of_tools);

    // 6: Nothing grows.
    let is_record = planned.way == Way::Summary;
    assert!(is_record || after.len() <= before.len(), "the file does not grow");
    assert!(planned.tokens_after <= planned.plan.tokens_before, "the context does not grow");
    assert_eq!(planned.tokens_after, total(&planned.after, &after, counter), "numbers are true");

    // 15: Conclusions survive.
    check_conclusions(&session, (&planned.after, &after), recipe, counter);

    // 7: A second compaction changes nothing.
    let again = load(agent, &after);
    let second =
        PreparedCompaction::new(&again, recipe, counter).expect("the edits can be written");
    assert_eq!(second.splices, [], "a compacted session is left alone");

    // 8: Same input, same bytes.
    let once_more =
        PreparedCompaction::new(&session, recipe, counter).expect("the edits can be written");
    assert_eq!(bytes_of(&once_more.spliced().expect("they lie apart")), after);
    after
}

/// Whether a session is as its agent writes it, or damaged.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Is {
    Sound,
    Damaged,
}

/// Compacts a session in the agent's own way, and checks every invariant on the way. A damaged
/// session may contain what the agent's record cannot hold; then the compaction is refused.
fn check_native(
    agent: &str,
    (before, is): (&[u8], Is),
    recipe: &Recipe,
    counter: &dyn Counter,
    appended: &[u8],
) {
    let session = load(agent, before);
    let plan = |session| PreparedCompaction::in_way(Way::Native, session, recipe, counter);
    let planned = match plan(&session) {
        Ok(planned) => planned,
        Err(err) if err.kind() == ErrorKind::Refused && is_passed_over(&session) => return,
        // The texts that set rules do not fit into the digest's target.
        Err(err) if err.kind() == ErrorKind::Refused && recipe.stages.stored.digest.is_some() => {
            return;
        }
        Err(err) if is == Is::Sound => panic!("{err:?}"),
        Err(_) => return,
    };
    if is == Is::Damaged && !planned.violations.is_empty() {
        return;
    }
    assert_eq!(planned.violations, [], "invariants hold");
    let spliced = planned.spliced().expect("the splices lie apart");
    let after = bytes_of(&spliced);

    // 1: Existing bytes do not change, or only marks are set.
    match session.format.native.expect("an own way") {
        Native::Append(_) => assert_eq!(&after[..before.len()], before, "it is appended"),
        Native::Mark(mark) => check_marks(mark, &planned),
    }
    // 2: Everything comes back, with what was appended since.
    let removed = planned.splices.iter().map(|(it, _)| session.source.at(it.span).into_owned());
    let blobs = removed.chain([Vec::new()]).map(|raw| (Hash::compute(&raw), raw)).collect();
    let generation = generation(UndoData::between(&session.source, &spliced).expect("in memory"));
    let now = [after.as_slice(), appended].concat();
    let back = restore(&now, &[generation], &Removed(blobs), RestoreTarget::Original)
        .expect("it comes back");
    let restored = bytes_of(&Spliced::new(&now, back.splices).expect("the splices lie apart"));
    assert_eq!(restored, [before, appended].concat(), "everything comes back");
    // A record that saves nothing is not written.
    let saves = planned.plan.edits.iter().any(|edit| edit.tokens > Tokens(0));
    assert!(saves || planned.is_empty() || planned.way == Way::Summary, "a record saves tokens");
    // 6: Nothing grows in the context.
    assert!(planned.tokens_after <= planned.plan.tokens_before, "the context does not grow");
    assert_eq!(planned.tokens_after, total(&planned.after, &after, counter), "numbers are true");
    // 15: Conclusions survive.
    check_conclusions(&session, (&planned.after, &after), recipe, counter);
    // 7: A second compaction changes nothing.
    let again = load(agent, &after);
    match plan(&again) {
        Ok(second) => assert_eq!(second.splices, [], "it is left alone"),
        // A digest is another kind of record: where such records are refused, nothing is written
        // either.
        Err(err) => assert_eq!((is, err.kind()), (Is::Damaged, ErrorKind::Refused), "{err:?}"),
    }
    // 8: Same input, same bytes.
    let once_more = plan(&session).expect("it can be written");
    assert_eq!(bytes_of(&once_more.spliced().expect("they lie apart")), after);
}

/// Whether the agent would not read its own kind of record in this session.
fn is_passed_over(session: &Loaded<Vec<u8>>) -> bool {
    match session.format.native {
        Some(Native::Append(append)) => (append.passed_over)(&session.transcript).is_some(),
        Some(Native::Mark(_)) | None => false,
    }
}

/// Checks that a marked result is unchanged, except that the agent sends its own text in its place.
fn check_marks(mark: Mark, planned: &PreparedCompaction<'_, Vec<u8>>) {
    let session = planned.session;
    let after = bytes_of(&planned.spliced().expect("the splices lie apart"));
    for (span, at) in &planned.unsent {
        let At::Block { item, block } = at else { panic!("{at:?} is no result") };
        let output = |transcript: &Transcript| match transcript.items[*item].entry() {
            Some(entry) => match &entry.blocks[*block] {
                Block::Output(output) => output.clone(),
                other => panic!("{other:?} is no result"),
            },
            None => panic!("it says nothing"),
        };
        assert!(!output(&session.transcript).error, "a failed result keeps its evidence");
        assert_eq!(output(&planned.after).text(&after), mark.sent);
        let raw = session.source.at(*span);
        assert!(memchr::memmem::find(&after, &raw).is_some(), "it stands where it stood");
    }
}

/// Replaces the beginning of a session by a summary, and checks every invariant on the way.
fn check_summary(agent: &str, before: &[u8], recipe: &Recipe, appended: &[u8]) {
    let text = "Words that stand for what went before: \"quoted\", and\non two lines.";
    let session = load(agent, before);
    let plan = |session| PreparedCompaction::with_summary(text, session, recipe, &Estimate);
    let planned = match plan(&session) {
        Ok(planned) => planned,
        // A short history is also shorter than any summary of it.
        Err(err) => {
            assert_eq!(err.kind(), ErrorKind::Refused);
            return;
        }
    };
    assert_eq!(planned.violations, [], "invariants hold");
    let spliced = planned.spliced().expect("the splices lie apart");
    let after = bytes_of(&spliced);
    assert_eq!(&after[..before.len()], before, "it is appended");
    let blobs = HashMap::from([(Hash::compute(b""), Vec::new())]);
    let generation = generation(UndoData::between(&session.source, &spliced).expect("in memory"));
    let now = [after.as_slice(), appended].concat();
    let back = restore(&now, &[generation], &Removed(blobs), RestoreTarget::Original)
        .expect("it comes back");
    let restored = bytes_of(&Spliced::new(&now, back.splices).expect("the splices lie apart"));
    assert_eq!(restored, [before, appended].concat(), "everything comes back");
    assert_eq!(planned.tokens_after, total(&planned.after, &after, &Estimate), "numbers are true");
    assert!(planned.tokens_after <= planned.plan.tokens_before, "the context does not grow");
    let again = load(agent, &after);
    assert_eq!(plan(&again).expect("it stands there").splices, [], "it is left alone");
    let once_more = plan(&session).expect("it can be written");
    assert_eq!(bytes_of(&once_more.spliced().expect("they lie apart")), after);
}

fn generation(way: UndoData) -> Generation {
    Generation {
        number: 1,
        agent: "a".into(),
        session: "s".into(),
        path: "p".into(),
        recipe: "r".into(),
        made: jiff::Timestamp::UNIX_EPOCH,
        run: None,
        part_of: None,
        parts: Vec::new(),
        epitome: "0".into(),
        before: way.before,
        after: way.after,
        records: way.records,
        tokens_before: Tokens(0),
        tokens_after: Tokens(0),
        edits: Default::default(),
        shared: Some(way.shared),
        forgotten: Vec::new(),
        imported: None,
    }
}

fn total(transcript: &Transcript, source: &Vec<u8>, counter: &dyn Counter) -> Tokens {
    epitome_model::weigh(transcript, source, counter).total()
}

/// Checks that every short text of the model is still sent as a whole. With a digest, only the
/// newest texts must be sent, up to a tenth of the digest's budget. A recipe that trims the middle
/// is not checked, because it removes texts together with their messages.
fn check_conclusions(
    before: &Loaded<Vec<u8>>,
    (after, bytes): (&Transcript, &Vec<u8>),
    recipe: &Recipe,
    counter: &dyn Counter,
) {
    let stages = &recipe.stages.stored;
    if stages.trim.is_some() {
        return;
    }
    let target = recipe.target.stored.and_then(|target| target.tokens);
    let budget = stages.digest.as_ref().map(|rule| Tokens(target.unwrap_or(rule.budget)));
    let sent = conclusions::sent(after, bytes);
    let short_texts =
        conclusions::short_texts(before.transcript.context(), &before.source, counter);
    assert_eq!(
        conclusions::lost(&short_texts, &sent, budget),
        Vec::<String>::new(),
        "what was concluded"
    );
}

/// Checks that every error line of a failed result is still in that result, or in a later result
/// that a resume sends.
fn check_errors(agent: &str, before: &[u8], after: &[u8]) {
    let (before, after) = (load(agent, before), load(agent, after));
    let outputs = |session: &Loaded<Vec<u8>>, item: usize| -> Vec<(bool, String)> {
        let blocks = session.transcript.items[item].entry().map(|entry| entry.blocks.as_slice());
        let texts = blocks.into_iter().flatten().filter_map(|block| match block {
            Block::Output(output) => Some((output.error, output.text(&session.source))),
            _ => None,
        });
        texts.collect()
    };
    for item in 0..before.transcript.items.len() {
        let sent = &after.transcript.context;
        let below = sent.iter().filter(|&&it| sent.contains(&item) && it > item);
        let below: Vec<String> =
            below.flat_map(|&it| outputs(&after, it)).map(|(_, text)| text).collect();
        // An entry may hold the results of several calls.
        let outputs_after = outputs(&after, item);
        let pairs = outputs(&before, item).into_iter().enumerate();
        for (idx, (_, was)) in pairs.filter(|(_, (failed, _))| *failed) {
            for line in was.lines().filter(|line| is_error_line(line)) {
                let stands = |text: &String| text.contains(line.trim());
                let here = outputs_after[idx..].iter().any(|(_, text)| stands(text));
                assert!(here || below.iter().any(stands), "the line `{line}` is lost");
            }
        }
    }
}
