//! Forces a compaction at several points of a session.

use epitome_measure::{CutFigures, ForcedCompaction, LineId, References, line_ids};
use epitome_model::Tokens;
use epitome_passes::{PinKind, Recipe, View, pins, shorten_to_fit};

use super::view::Pool;
use super::{Job, Pieces};
use crate::live::Context;

/// The measurements of one forced compaction: what it kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ForcedCut {
    /// The measured quality, by what was used later.
    pub figures: CutFigures,
    /// The number of rule files, skills and texts between the user's pin marks in the context
    /// before the compaction.
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
    ) -> crate::Result<Vec<ForcedCut>> {
        let mut pool = self.pool();
        let mut all = Vec::new();
        for cut in cuts {
            let mut context = Context::in_memory(self.setup(recipe));
            self.say(&mut context, 0..self.history.calls[cut.call()].entry)?;
            all.extend(self.force(recipe, &mut context, cut, pool.for_another())?);
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
    ) -> crate::Result<Option<ForcedCut>> {
        let counter = &self.counter;
        let before = context.unchanged_view();
        let view = View::new(before.transcript(), before.source(), counter);
        let view = view.with_rule_files(&recipe.rule_files);
        let pins = pins(&view, &before.transcript().context);
        // Of long pins only the rules are compared, because a digest keeps only these.
        let pins = shorten_to_fit(pins, Tokens(0), counter);
        let rules = pins.iter().filter(|pin| is_kept_verbatim(pin.kind));
        let rules: Vec<_> = rules.map(|pin| line_ids(&pin.text)).collect();
        let tokens = context.usage().tokens.0 as f64;
        let target = self.with.target.map_or(0, |share| (tokens * share) as u64);
        // With a target, even of 0, the compaction is made whatever the size; 0 leaves the target
        // to the recipe.
        context.ask_for_compaction(None, Some(Tokens(target)));
        let pieces = pool.pieces(context.view()?, counter);
        let named = context.references().into_iter().map(|(call, it)| (call, it.to_string()));
        let named = named.chain(context.digested_calls());
        let references: References = named.map(|(call, name)| (call.into(), name)).collect();
        let Some(figures) = cut.measure(&pieces, &references) else { return Ok(None) };
        let kept_pins = rules.iter().filter(|lines| contain(&pieces, lines)).count() as u64;
        Ok(Some(ForcedCut { figures, pins: rules.len() as u64, kept_pins }))
    }
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
