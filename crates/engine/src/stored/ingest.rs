//! The ingest stage for a request: results that no model has seen are shortened before they are
//! sent.

use std::collections::BTreeSet;

use epitome_error::Result;
use epitome_formats::Loaded;
use epitome_formats::splice::if_read;
use epitome_model::{Counter, Role, Source, Transcript};
use epitome_passes::{PerKind, Recipe, Stages, plan_edits};

use super::{Planner, PreparedCompaction, Way};

/// The items that the model has not answered yet: those after its last response.
pub fn unanswered(transcript: &Transcript) -> BTreeSet<usize> {
    let context = transcript.context().rev();
    context.take_while(|(_, entry)| entry.role != Role::Assistant).map(|(item, _)| item).collect()
}

impl<'a, S: Source> PreparedCompaction<'a, S> {
    /// Shortens results in a request that is about to be sent, with the ingest stage that the
    /// recipe has for running agents. `new` are the items whose results may be shortened. `None` if
    /// nothing is worth shortening: the request is then neither written nor read again.
    ///
    /// # Errors
    ///
    /// The errors of [`PreparedCompaction::in_way`].
    pub fn ingested(
        request: &'a Loaded<S>,
        new: &BTreeSet<usize>,
        recipe: &Recipe,
        counter: &dyn Counter,
    ) -> Result<Option<PreparedCompaction<'a, S>>> {
        let recipe = &ingest_alone(recipe);
        let planner = Planner { session: request, recipe, counter };
        let mut plan = plan_edits(&request.transcript, &request.source, recipe, &planner.options());
        plan.edits.retain(|planned| new.contains(&planned.edit.at.item()));
        let planned = match plan.edits.is_empty() {
            true => Ok(None),
            false => planner.write_and_verify(Way::Rewrite, plan).map(Some),
        };
        if_read(&request.source, planned)
    }
}

/// A recipe for stored sessions that only has an ingest stage: the one that `recipe` has for
/// running agents.
fn ingest_alone(recipe: &Recipe) -> Recipe {
    let ingest = recipe.stages.live.ingest;
    let stored = Stages { ingest, ..Stages::default() };
    Recipe {
        name: recipe.name.clone(),
        about: recipe.about.clone(),
        rule_files: recipe.rule_files.clone(),
        exempt_tools: recipe.exempt_tools.clone(),
        stages: PerKind { stored, live: Stages::default() },
        ..Recipe::default()
    }
}

#[cfg(test)]
mod tests {
    use epitome_model::Tokens;
    use epitome_passes::built_in;

    use super::*;

    /// A counter of words, which needs no vocabulary.
    struct Words;

    impl Counter for Words {
        fn name(&self) -> &'static str {
            "words"
        }

        fn count(&self, text: &str) -> Tokens {
            Tokens(text.split_whitespace().count() as u64)
        }
    }

    #[test]
    fn only_results_without_an_answer_are_shortened() {
        let log: String = (0..12_000).map(|n| format!("line {n} of a log\\n")).collect();
        let call = |id: &str| {
            let call = format!(r#"{{"type":"tool_use","id":"{id}","name":"Bash","input":{{}}}}"#);
            format!(r#"{{"role":"assistant","content":[{call}]}}"#)
        };
        let result = |id: &str| {
            let result = format!(r#""tool_use_id":"{id}","content":"{log}{id}""#);
            format!(r#"{{"role":"user","content":[{{"type":"tool_result",{result}}}]}}"#)
        };
        let user = r#"{"role":"user","content":"Go."}"#.to_owned();
        let messages = [user, call("a"), result("a"), call("b"), result("b")].join(",");
        let body = format!(r#"{{"model":"m","messages":[{messages}]}}"#).into_bytes();
        let request = Loaded::read(body, Some("anthropic")).expect("a request");
        let new = unanswered(&request.transcript);
        assert_eq!(new, BTreeSet::from([4]));
        let recipe = built_in("epitome").expect("a built-in recipe");
        let planned =
            PreparedCompaction::ingested(&request, &new, &recipe, &Words).expect("a plan");
        let planned = planned.expect("a result is shortened");
        assert_eq!(planned.violations, []);
        let items: Vec<usize> = planned.splices.iter().map(|(_, at)| at.item()).collect();
        assert_eq!(items, [4]);
        assert!(planned.tokens_after < planned.plan.tokens_before);
    }
}
