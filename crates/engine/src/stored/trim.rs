//! Plans which messages are cut from the middle of a stored session, as the recipe says, and what
//! the passes edit in the rest.

use epitome_formats::Loaded;
use epitome_model::{Cut, Edit, EditedTranscript, Source, WriteMode};
use epitome_passes::{KeptParts, Plan, PlannedEdit, Recipe, TrimRule, View, add_edits, begin};

use super::{Note, Planner};
use crate::middle::stored_middle_cut;

impl<S: Source> Planner<'_, '_, S> {
    /// The cut that a rule makes; `None` if it would remove nothing or save nothing. `None`, and a
    /// note, if the agent has no record that removes messages, or if `mode` appends no records.
    pub(super) fn cut(
        &self,
        rule: &TrimRule,
        mode: WriteMode,
        kept: &KeptParts,
        notes: &mut Vec<Note>,
    ) -> Option<Cut> {
        let Loaded { format, source, transcript, .. } = self.session;
        if rule.items_to_remove(transcript, source).is_empty() {
            return None;
        }
        let can_cut = match (format.capabilities(transcript).cut, mode) {
            (Ok(()), WriteMode::Splice | WriteMode::Mark) => {
                Err("a session that is rewritten keeps its records")
            }
            (can_cut, _) => can_cut,
        };
        if let Err(why) = can_cut {
            notes.push(Note::NoTrim { agent: format.name, why });
            return None;
        }
        let rule = (rule, &self.recipe.rule_files);
        stored_middle_cut(source, rule, |item| kept.items.contains(&item), self.counter)
    }

    /// The plan of a cut, followed by the edits that the passes plan for what the cut leaves.
    /// `begun` is the plan that was begun before the cut.
    pub(super) fn plan_after_cut(&self, cut: Cut, begun: Plan) -> Plan {
        let Loaded { source, transcript, .. } = self.session;
        let edits = Vec::from_iter(Edit::cut(cut));
        let applied = EditedTranscript::new(transcript, source, &edits);
        let mut view = View::new(&applied.transcript, &applied.source, self.counter)
            .with_rule_files(&self.recipe.rule_files);
        // The trigger was checked before the cut.
        let recipe = Recipe { trigger: Default::default(), ..self.recipe.clone() };
        let mut plan = begin(&mut view, &recipe, &self.options());
        add_edits(&mut plan, &mut view, &recipe, &self.options());
        let edits = edits.into_iter().map(PlannedEdit::without_count).chain(plan.edits).collect();
        Plan { edits, tokens_before: begun.tokens_before, ..plan }
    }
}
