//! Forces a compaction at several points of a session.

use epitome_measure::{CutFigures, ForcedCompaction, LineId, References, line_ids};
use epitome_model::Tokens;
use epitome_passes::{PinKind, Recipe, View, pins, shorten_to_fit};

use super::command::Process;
use super::exchange::Exchange;
use super::rules::RequestTally;
use super::view::Pool;
use super::{Job, Pieces};
use crate::live::Context;

/// The measurements of the context after one forced compaction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ForcedCut {
    /// The measured quality of the compacted context.
    pub figures: CutFigures,
    /// The number of pins (texts that a compaction must keep) in the context before the compaction:
    /// rule files, skills, and texts between pin marks of the user.
    pub pins: u64,
    /// How many of the `pins` have all their rules in the context after the compaction.
    pub kept_pins: u64,
}

impl ForcedCut {
    /// The share of the tokens that stays (0 to 1).
    pub fn kept_share(&self) -> f64 {
        self.figures.after.0 as f64 / self.figures.before.0.max(1) as f64
    }
}

impl Job<'_> {
    /// Forces a compaction with a recipe at every point in `cuts`. A point is skipped if no fact
    /// from before it was used after it.
    pub(super) fn forced(
        &self,
        recipe: &Recipe,
        cuts: &[ForcedCompaction<'_>],
        tally: &mut RequestTally,
    ) -> crate::Result<Vec<ForcedCut>> {
        let mut pool = self.pool();
        let mut all = Vec::new();
        for cut in cuts {
            let mut context = Context::in_memory(self.setup(recipe));
            self.say(&mut context, 0..self.history.calls[cut.call()].entry)?;
            all.extend(self.force(recipe, &mut context, cut, pool.for_another(), tally)?);
        }
        Ok(all)
    }

    /// Has a policy command compact the context at every point in `cuts`. If the command's answer
    /// cannot be used, the uncompacted context is measured. A point is skipped if no fact from
    /// before it was used after it.
    pub(super) fn forced_of_command(
        &self,
        policy: &mut Process,
        exchange: &mut Exchange<'_>,
        cuts: &[ForcedCompaction<'_>],
        tally: &mut RequestTally,
    ) -> crate::Result<Vec<ForcedCut>> {
        let recipe = Recipe::default();
        let mut all = Vec::new();
        for cut in cuts {
            let call = cut.call();
            let entries = 0..self.history.calls[call].entry;
            let answer = policy.force(&exchange.outgoing(entries.clone()), self.with.target)?;
            let read = answer.messages().and_then(|(messages, references)| {
                let pieces = exchange.incoming(&messages)?;
                let references = references.into_iter().map(|(call, name)| (call.into(), name));
                Ok((pieces, references.collect::<References>()))
            });
            let (pieces, references) = match read {
                Ok(read) => {
                    self.judge(tally, call, &read.0);
                    read
                }
                Err(why) => {
                    tally.add_bad_answer(why, || self.place(call));
                    (self.history.blocks_sent(call).to_vec(), References::default())
                }
            };
            let mut context = Context::in_memory(self.setup(&recipe));
            self.say(&mut context, entries)?;
            let rules = self.rules(&recipe, &context);
            all.extend(measured(cut, &pieces, &references, &rules));
        }
        Ok(all)
    }

    /// Forces a compaction in a context and measures it. `None` if no fact from before the
    /// compaction was used after it.
    fn force(
        &self,
        recipe: &Recipe,
        context: &mut Context,
        cut: &ForcedCompaction<'_>,
        pool: &mut Pool,
        tally: &mut RequestTally,
    ) -> crate::Result<Option<ForcedCut>> {
        let rules = self.rules(recipe, context);
        let tokens = context.usage().tokens.0 as f64;
        let target = self.with.target.map_or(0, |share| (tokens * share) as u64);
        // Because a target is given, the compaction is made even if the context is small. With the
        // target 0, the passes remove all that they can, and the recipe determines the size of a
        // digest.
        context.ask_for_compaction(None, Some(Tokens(target)));
        let pieces = pool.pieces(context.view()?, &self.counter);
        self.judge(tally, cut.call(), &pieces);
        let named = context.references().into_iter().map(|(call, it)| (call, it.to_string()));
        let named = named.chain(context.digested_calls());
        let references: References = named.map(|(call, name)| (call.into(), name)).collect();
        Ok(measured(cut, &pieces, &references, &rules))
    }

    /// The lines of each rule file, skill, and text between pin marks in a context. Of a long text
    /// only the rules are returned, because a digest keeps only the rules of long texts.
    fn rules(&self, recipe: &Recipe, context: &Context) -> Vec<Vec<LineId>> {
        let before = context.unchanged_view();
        let view = View::new(before.transcript(), before.source(), &self.counter);
        let view = view.with_rule_files(&recipe.rule_files);
        let pins = pins(&view, &before.transcript().context);
        let pins = shorten_to_fit(pins, Tokens(0), &self.counter);
        let rules = pins.iter().filter(|pin| is_kept_verbatim(pin.kind));
        rules.map(|pin| line_ids(&pin.text)).collect()
    }
}

/// The measurements of a compacted context. `rules` are the lines of each of its pins. `None` if no
/// fact from before the compaction was used after it.
fn measured(
    cut: &ForcedCompaction<'_>,
    pieces: &Pieces,
    references: &References,
    rules: &[Vec<LineId>],
) -> Option<ForcedCut> {
    let figures = cut.measure(pieces, references)?;
    let kept_pins = rules.iter().filter(|lines| contain(pieces, lines)).count() as u64;
    Some(ForcedCut { figures, pins: rules.len() as u64, kept_pins })
}

/// Whether pins of this kind are kept word for word. A plan and a to-do list are arguments of a
/// call, and a digest writes them in another form.
fn is_kept_verbatim(kind: PinKind) -> bool {
    match kind {
        PinKind::RuleFile | PinKind::Skill | PinKind::Marked => true,
        PinKind::Plan | PinKind::Todo => false,
    }
}

/// Whether the blocks contain all these lines.
fn contain(pieces: &Pieces, lines: &[LineId]) -> bool {
    lines.iter().all(|line| pieces.iter().any(|piece| piece.lines.binary_search(line).is_ok()))
}
