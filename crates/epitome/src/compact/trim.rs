//! Messages that a recipe cuts out of the middle of a stored session.

use epitome_engine::stored_middle_cut;
use epitome_formats::{CutMiddle, Native};
use epitome_model::{At, Counter, Source, Span, Splice};
use epitome_passes::{Plan, Recipe, Side, TrimRule, verify};

use super::{CompactionPlan, Note, Way};
use crate::error::{Error, ErrorKind, Result};
use crate::session::Loaded;
use crate::source::Spliced;

/// The plan with the cut before its edits, as in a context in use; or the plan with a note, if the
/// agent cannot leave messages out.
pub(super) fn trimmed<'a, S: Source>(
    mut planned: CompactionPlan<'a, S>,
    rule: &TrimRule,
    counter: &dyn Counter,
) -> Result<CompactionPlan<'a, S>> {
    let session = planned.session;
    let Loaded { format, source, transcript, .. } = session;
    if rule.middle(transcript, source).is_empty() {
        return Ok(planned);
    }
    let write = match cut_of(&planned) {
        Ok(write) => write,
        Err(why) => {
            planned.notes.push(Note::NoTrim { agent: format.name, why });
            return Ok(planned);
        }
    };
    let is_kept = |item: usize| planned.compaction.kept.items.contains(&item);
    let rule = (rule, &planned.recipe.rule_files);
    let Some(cut) = stored_middle_cut(source, rule, is_kept, counter) else { return Ok(planned) };
    let line = write(transcript, source, &cut.items, &cut.text).map_err(|why| {
        Error::new(ErrorKind::Broken, format!("messages cannot be cut out: {why}"))
    })?;
    // The edits are those of what is left.
    let end = Source::len(source);
    let behind = |with: Vec<u8>| Splice { span: Span { start: end, end }, with: with.into() };
    let spliced = Spliced::new(source, vec![behind(line.clone())])?;
    let without = Loaded {
        format,
        transcript: (format.read)(&spliced, &mut ()),
        source: spliced,
        faults: Vec::new(),
    };
    let before = Side { transcript, source };
    let after = Side { transcript: &without.transcript, source: &without.source };
    let mut violations = verify(before, after, &Plan::Cut(&cut), format.invariants, counter);
    let mut recipe: Recipe = planned.recipe.clone();
    recipe.trigger = Default::default();
    let rest = CompactionPlan::of_edits(planned.way, &without, &recipe, counter)?;
    violations.extend(rest.violations);
    let mut with = line;
    rest.splices.iter().for_each(|(splice, _)| with.extend_from_slice(&splice.with));
    let first = At::Block { item: cut.items[0], block: 0 };
    let mut compaction = rest.compaction;
    compaction.tokens_before = planned.compaction.tokens_before;
    compaction.cut = Some(cut);
    Ok(CompactionPlan {
        session,
        recipe: planned.recipe,
        way: planned.way,
        compaction,
        stands_for: None,
        notes: planned.notes,
        splices: vec![(behind(with), first)],
        removed: Vec::new(),
        violations,
        after: rest.after,
        tokens_after: rest.tokens_after,
        bytes_after: rest.bytes_after,
    })
}

/// How messages are cut out of this session; or why they are not.
fn cut_of<S>(planned: &CompactionPlan<'_, S>) -> Result<CutMiddle, &'static str> {
    match (planned.session.format.native, planned.way) {
        (Some(Native::Append(append)), way) => match (append.cut, way) {
            (Some(cut), Way::Native) => Ok(cut),
            (Some(_), Way::Rewrite | Way::Summary) => {
                Err("a session that is rewritten keeps its records")
            }
            (None, _) => Err("they have no record for messages that are left out"),
        },
        (Some(Native::Mark(_)) | None, _) => {
            Err("they have no record for messages that are left out")
        }
    }
}
