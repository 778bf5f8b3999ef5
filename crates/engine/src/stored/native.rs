//! Writes compactions in the agent's own way.

use std::collections::HashSet;

use epitome_error::{Error, ErrorKind, Result};
use epitome_formats::{Append, AppendedHiddenFields, Format, Loaded, Mark, Native};
use epitome_model::{At, Block, Bytes, Counter, Source, Span, Tokens, Verb, block_tokens};
use epitome_passes::Plan;

use super::{Note, PreparedCompaction, Way};

/// The tokens that a compaction in the agent's default way saves if a recipe removes `taken` of the
/// `before` tokens of a context. That is `taken`, or 0 if a record would be appended and the saving
/// is not worth it.
pub fn default_way_saving(format: &Format, taken: Tokens, before: Tokens) -> Tokens {
    let is_native = format.native.is_some_and(|native| native.is_default());
    let way = if is_native { Way::Native } else { Way::Rewrite };
    if pays(way, format, taken, before) { taken } else { Tokens(0) }
}

/// Removes edits that the agent's own way cannot express, and edits of items that are not sent. If
/// the remaining edits save no tokens and cut nothing from the middle, they are removed, too.
///
/// # Errors
///
/// `Refused` if the agent's own records cannot be used in this session, or if reasoning that is
/// bound to removed content would still be sent.
pub(super) fn only_what_is_reached<S: Source>(
    native: &Native,
    session: &Loaded<S>,
    plan: &mut Plan,
    counter: &dyn Counter,
) -> Result<()> {
    match native {
        Native::Append(append) => {
            if let Some(why) = (append.passed_over)(&session.transcript) {
                return Err(passed_over(session.format, why));
            }
            only_what_is_written(append, session, plan);
        }
        Native::Mark(mark) => {
            only_what_is_marked(mark, session, plan, counter);
            if let Some(model) = model_of_bound_reasoning(session, plan) {
                return Err(reasoning_is_bound(session.format, model));
            }
        }
    }
    // A record makes the file larger, so none is written if no tokens are saved and nothing is cut.
    if plan.cut().is_none() && plan.edits.iter().all(|planned| planned.tokens == Tokens(0)) {
        plan.edits.clear();
    }
    Ok(())
}

/// An appended record must save at least the context divided by this number, because it makes the
/// file larger.
const PAYS_FROM: u64 = 20;

/// Whether a saving is worth writing. For an appended record it must be large enough; in any other
/// way every saving is.
pub(super) fn pays(way: Way, format: &Format, saved: Tokens, before: Tokens) -> bool {
    let is_appended = way == Way::Native && matches!(format.native, Some(Native::Append(_)));
    !is_appended || saved.0 * PAYS_FROM >= before.0
}

/// Removes all edits and adds a note, if an appended record would save too little.
pub(super) fn only_if_it_pays<S: Source>(planned: &mut PreparedCompaction<'_, S>) {
    let Loaded { format, source, .. } = planned.session;
    let before = planned.plan.tokens_before;
    let saved = before - planned.tokens_after;
    if planned.is_empty() || pays(planned.way, format, saved, before) {
        return;
    }
    let bytes = planned.bytes_after - Bytes(source.len());
    planned.notes.push(Note::DoesNotPay { saved, of: before, bytes });
    planned.plan.edits.clear();
    planned.stands_for = None;
    planned.splices.clear();
    planned.unsent.clear();
    planned.violations.clear();
    planned.after = (format.read)(source, &mut ());
    planned.tokens_after = before;
    planned.bytes_after = Bytes(source.len());
}

/// Keeps those edits that an appended record can express. An edit of a hidden field is kept only if
/// the record with this field is appended again, and if appended records include such fields:
/// existing records never change.
fn only_what_is_written<S>(append: &Append, session: &Loaded<S>, plan: &mut Plan) {
    let transcript = &session.transcript;
    let reached = transcript.context.iter().copied();
    let sent: HashSet<usize> = reached.filter(|&it| (append.reaches)(transcript, it)).collect();
    let record = |at: At| transcript.items[at.item()].record().span;
    let is_written = |at: At| match at {
        At::HiddenField { .. } => false,
        // Cuts of items have a record of their own.
        At::Items { .. } => true,
        At::Block { .. } | At::Field { .. } | At::Part { .. } => sent.contains(&at.item()),
    };
    let edits = plan.edits.iter().map(|planned| planned.edit.at);
    let again: HashSet<Span> = match append.hidden_fields {
        AppendedHiddenFields::Included => edits.filter(|&at| is_written(at)).map(record).collect(),
        AppendedHiddenFields::Omitted => HashSet::new(),
    };
    plan.edits.retain(|planned| match planned.edit.at {
        at @ At::HiddenField { .. } => again.contains(&record(at)),
        at @ (At::Block { .. } | At::Field { .. } | At::Part { .. } | At::Items { .. }) => {
            is_written(at)
        }
    });
}

/// Keeps only the edits of results that the agent can mark, and that have more tokens than the text
/// which the agent sends for a marked result. Each of these edits then replaces its result by that
/// text.
fn only_what_is_marked<S: Source>(
    mark: &Mark,
    session: &Loaded<S>,
    plan: &mut Plan,
    counter: &dyn Counter,
) {
    let Loaded { source, transcript, .. } = session;
    let context: HashSet<usize> = transcript.context.iter().copied().collect();
    let sent = counter.count(mark.sent);
    let counted = &plan.counted;
    plan.edits.retain_mut(|planned| {
        let At::Block { item, block } = planned.edit.at else { return false };
        if !context.contains(&item) || !(mark.reaches)(transcript, source, planned.edit.at) {
            return false;
        }
        let original_block =
            transcript.items[item].entry().and_then(|entry| entry.blocks.get(block));
        let tokens = match counted.get(&(item, block)) {
            Some(tokens) => *tokens,
            None => {
                original_block.map(|block| block_tokens(block, source, counter)).unwrap_or_default()
            }
        };
        planned.edit.verb = Verb::Replace(mark.sent.to_owned());
        planned.tokens = tokens - sent;
        tokens > sent
    });
}

/// The model whose reasoning would still be sent although it is bound to a result that gets a mark:
/// marks cannot remove reasoning. `None` if there is no such reasoning.
fn model_of_bound_reasoning<'s, S>(session: &'s Loaded<S>, plan: &Plan) -> Option<&'s str> {
    let marked: HashSet<usize> = plan.edits.iter().map(|it| it.edit.at.item()).collect();
    let behind = session.transcript.context().skip_while(|(item, _)| !marked.contains(item));
    behind
        .filter(|(_, entry)| entry.blocks.iter().any(|block| matches!(block, Block::Thinking(_))))
        .filter_map(|(_, entry)| entry.model.as_deref())
        .find(|model| (session.format.thinking_is_bound)(model))
}

/// The error for a session in which the agent's own records cannot be used; `why` is the reason, as
/// a clause.
pub(super) fn passed_over(format: &Format, why: &str) -> Error {
    let what = format!("this session takes no records of {}'s own way: {why}", format.name);
    Error::new(ErrorKind::Refused, what).with_hint("--rewrite shortens it in the records it has")
}

/// The error for a session that would still send reasoning of `model` although the reasoning is
/// bound to content that a mark replaces: a mark cannot remove reasoning.
fn reasoning_is_bound(format: &Format, model: &str) -> Error {
    let what = format!(
        "{}'s own way leaves reasoning of {model} in place, which is bound to what would go",
        format.name
    );
    Error::new(ErrorKind::Refused, what).with_hint("--rewrite takes that reasoning along")
}

#[cfg(test)]
mod tests {
    use epitome_model::Edit;
    use epitome_passes::{PlannedEdit, Recipe};

    use super::*;
    use crate::{Context, Setup};

    #[test]
    fn an_appended_record_expresses_the_edits_of_what_it_says_again() {
        let mut context = Context::in_memory(Setup::new(Recipe::default()));
        context.user("Read a.rs.").expect("memory");
        context.user("And b.rs.").expect("memory");
        let session = Loaded::read(context.log().to_vec(), Some("epitome")).expect("a log");
        let Some(Native::Append(append)) = session.format.native else { panic!("it appends") };
        let [first, second] = session.transcript.context[..] else { panic!("two messages") };
        let unsent =
            (0..session.transcript.items.len()).find(|item| ![first, second].contains(item));
        let unsent = unsent.expect("a record that no model sees");
        let block = |item| At::Block { item, block: 0 };
        let places = [
            block(first),
            At::Field { item: second, block: 0, field: 0 },
            At::Part { item: second, block: 0, part: 0 },
            At::Items { item: second },
            block(unsent),
            At::HiddenField { item: unsent, field: 0 },
        ];
        let mut plan = Plan::default();
        plan.edits.extend(
            places
                .map(|at| PlannedEdit::without_count(Edit { at, verb: Verb::Drop, pass: "test" })),
        );
        only_what_is_written(&append, &session, &mut plan);
        let kept: Vec<At> = plan.edits.iter().map(|planned| planned.edit.at).collect();
        assert_eq!(kept, places[..4]);
    }
}
