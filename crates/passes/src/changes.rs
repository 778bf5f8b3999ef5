//! What somebody's settings change of a recipe, whatever recipe it is.

use epitome_model::FieldRole;

use crate::arguments::{Arguments, DigestStyle};
use crate::repeats::Repeats;
use crate::results::Results;
use crate::{Keep, Level, PassSettings, Recipe, Sections, SummaryRole, SummaryRule};
use crate::{Target, ThinkingMode, Trigger, When};

/// What is other than the recipe says; what is not set stays as it is there.
///
/// ```
/// use epitome_passes::{Changes, Keep, built_in};
///
/// let keep = Keep { results: Some(5), ..Keep::default() };
/// let recipe = built_in("epitome").expect("a built-in recipe");
/// let recipe = recipe.with(&Changes { keep, ..Changes::default() });
/// assert_eq!(recipe.keep.results, Some(5));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// When it does anything to a stored session.
    pub trigger: Trigger,
    /// Tokens of context at which it stops.
    pub target: Option<u64>,
    /// What is kept whole. Any of these replaces all rules of the recipe but the one for results
    /// that the model has not answered; a recipe that leaves the newest results alone one by one
    /// leaves `results` of them.
    pub keep: Keep,
    /// What is done with old reasoning.
    pub thinking: Option<ThinkingMode>,
    /// Bytes of whatever is left as it is.
    pub min_bytes: Option<u64>,
    /// Bytes of results that are left as they are.
    pub min_result_bytes: Option<u64>,
    /// Bytes of written files in calls that are left as they are.
    pub min_content_bytes: Option<u64>,
    /// Tools whose results and arguments stay, beside those of the recipe.
    pub exempt_tools: Vec<String>,
    /// Tokens that a compaction has to save.
    pub at_least: Option<u64>,
    /// Whose calls are cleared of their arguments once their results are old.
    pub clear_inputs: Option<Inputs>,
    /// Whether texts that stand twice are made one.
    pub repeats: Option<bool>,
    /// Whether a context that is in use is compacted before anybody asks.
    pub auto: Option<bool>,
    /// What starts a compaction of a context that is in use.
    pub live_trigger: Level,
    /// What that should come to.
    pub live_target: Option<Target>,
    /// Tokens of the window that are kept for the reply.
    pub reserve: Option<u64>,
    /// Per cent of the window at which the user is warned.
    pub warn: Option<u64>,
    /// What summaries are like, of recipes that have them.
    pub summary: SummaryChanges,
}

/// What summaries are to be like.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SummaryChanges {
    /// What the context has to reach before one is asked for.
    pub over: Level,
    /// Tokens that the model's part of it may have.
    pub max_tokens: Option<u64>,
    /// What it tells of.
    pub sections: Option<Sections>,
    /// As whose words it is sent.
    pub role: Option<SummaryRole>,
    /// Tokens of the user's words that are kept word for word.
    pub user_tokens: Option<u64>,
    /// What it should look at.
    pub focus: Option<String>,
    /// Texts that stand in it as they are, beside those of the recipe.
    pub protected: Vec<String>,
}

/// Calls that are cleared of their arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Inputs {
    /// None.
    None,
    /// All.
    All,
    /// Those of these tools.
    Of(Vec<String>),
}

impl Recipe {
    /// The same recipe with what somebody wants otherwise.
    #[must_use]
    pub fn with(mut self, changes: &Changes) -> Recipe {
        let live = self.live.passes.take();
        let live = live.map(|passes| Recipe { passes, ..self.clone() }.with(changes).passes);
        self.trigger.tokens = changes.trigger.tokens.or(self.trigger.tokens);
        self.trigger.bytes = changes.trigger.bytes.or(self.trigger.bytes);
        self.target = changes.target.or(self.target);
        self.at_least = changes.at_least.or(self.at_least);
        self.exempt_tools.extend(changes.exempt_tools.iter().cloned());
        self.keep_otherwise(changes.keep);
        if let Some(mode) = changes.thinking {
            self = self.with_thinking(mode);
        }
        if let Some(bytes) = changes.min_bytes {
            self = self.with_min_bytes(bytes);
        }
        if let Some(found) = changes.repeats {
            self.passes.retain(|pass| found || !is_of_repeats(pass));
            if found && !self.passes.iter().any(is_of_repeats) {
                self.passes.insert(0, PassSettings::Repeats(Repeats::default()));
            }
        }
        if let Some(inputs) = &changes.clear_inputs {
            self.passes.retain(|pass| !is_of_inputs(pass));
            self.passes.extend(inputs.pass().map(PassSettings::Arguments));
        }
        for pass in &mut self.passes {
            change_pass(pass, changes);
        }
        self.live_otherwise(changes);
        self.live.passes = live;
        self
    }

    fn keep_otherwise(&mut self, mut keep: Keep) {
        if keep == Keep::default() {
            return;
        }
        if let Some(results) = keep.results {
            for pass in &mut self.passes {
                if let PassSettings::Results(Results { newest, .. }) = pass
                    && *newest > 0
                {
                    *newest = results as usize;
                    keep.results = None;
                }
            }
        }
        self.keep = Keep { unanswered: self.keep.unanswered || keep.unanswered, ..keep };
    }

    fn live_otherwise(&mut self, changes: &Changes) {
        let live = &mut self.live;
        if changes.auto == Some(false) {
            live.when = When::Asked;
        }
        if changes.live_trigger != Level::default() {
            live.trigger = changes.live_trigger;
        }
        live.target = changes.live_target.or(live.target);
        live.reserve = changes.reserve.unwrap_or(live.reserve);
        live.warn = changes.warn.unwrap_or(live.warn);
        live.summary = live.summary.take().map(|rule| changes.summary.of(rule));
    }
}

impl SummaryChanges {
    /// A rule with what is wanted otherwise.
    #[must_use]
    pub fn of(&self, mut rule: SummaryRule) -> SummaryRule {
        if self.over != Level::default() {
            rule.over = self.over;
        }
        rule.max_tokens = self.max_tokens.unwrap_or(rule.max_tokens);
        rule.user_tokens = self.user_tokens.unwrap_or(rule.user_tokens);
        rule.role = self.role.unwrap_or(rule.role);
        if let Some(sections) = &self.sections {
            rule.sections = sections.clone();
        }
        if self.focus.is_some() {
            rule.focus.clone_from(&self.focus);
        }
        rule.protected.extend(self.protected.iter().cloned());
        rule
    }
}

impl Inputs {
    /// The pass that clears them; the results of the same calls are what it keeps.
    fn pass(&self) -> Option<Arguments> {
        let tools = match self {
            Inputs::None => return None,
            Inputs::All => Vec::new(),
            Inputs::Of(tools) => tools.clone(),
        };
        let style = DigestStyle::Placeholder;
        Some(Arguments { roles: FieldRole::ALL.to_vec(), style, tools, ..Arguments::default() })
    }
}

fn change_pass(pass: &mut PassSettings, changes: &Changes) {
    match pass {
        PassSettings::Results(pass) => {
            pass.min_bytes = changes.min_result_bytes.unwrap_or(pass.min_bytes);
        }
        PassSettings::Arguments(pass) => {
            if pass.roles.contains(&FieldRole::Content) && pass.style != DigestStyle::Placeholder {
                pass.min_bytes = changes.min_content_bytes.unwrap_or(pass.min_bytes);
            }
        }
        PassSettings::Stale(_)
        | PassSettings::Repeats(_)
        | PassSettings::Images(_)
        | PassSettings::Thinking(_)
        | PassSettings::Copies(_) => {}
    }
}

fn is_of_repeats(pass: &PassSettings) -> bool {
    matches!(pass, PassSettings::Repeats(_))
}

fn is_of_inputs(pass: &PassSettings) -> bool {
    matches!(pass, PassSettings::Arguments(pass) if pass.style == DigestStyle::Placeholder)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::built_in;

    fn changed(recipe: &str, changes: Changes) -> Recipe {
        built_in(recipe).expect("a built-in recipe").with(&changes)
    }

    #[test]
    fn nothing_set_changes_nothing() {
        for (name, _) in crate::BUILT_IN {
            assert_eq!(built_in(name), Some(changed(name, Changes::default())), "{name}");
        }
    }

    #[test]
    fn results_that_are_kept_are_counted_as_the_recipe_counts_them() {
        let keep = Keep { results: Some(7), ..Keep::default() };
        let changes = || Changes { keep, ..Changes::default() };
        let PassSettings::Results(pass) = &changed("jcli", changes()).passes[0] else {
            panic!("it clears results")
        };
        assert_eq!(pass.newest, 7);
        let recipe = changed("clear-tool-uses", changes());
        assert_eq!(recipe.keep, Keep { unanswered: true, ..Keep::default() });
        let recipe = changed("epitome", changes());
        let expect = Keep { results: Some(7), unanswered: true, ..Keep::default() };
        assert_eq!(recipe.keep, expect);
    }

    #[test]
    fn arguments_are_cleared_once_and_not_at_all_when_nobody_wants_it() {
        let inputs = |inputs| Changes { clear_inputs: Some(inputs), ..Changes::default() };
        let cleared = |recipe: &Recipe| recipe.passes.iter().filter(|it| is_of_inputs(it)).count();
        let once = changed("clear-tool-uses", inputs(Inputs::Of(vec!["Write".into()])));
        assert_eq!(cleared(&once), 1);
        let PassSettings::Arguments(pass) = once.passes.last().expect("a pass") else {
            panic!("it clears arguments")
        };
        assert_eq!(pass.tools, ["Write"]);
        assert_eq!(cleared(&once.clone().with(&inputs(Inputs::All))), 1);
        assert_eq!(cleared(&once.with(&inputs(Inputs::None))), 0);
    }

    #[test]
    fn whoever_does_not_want_it_is_not_compacted_before_they_ask() {
        let recipe = changed("s06", Changes { auto: Some(false), ..Changes::default() });
        assert_eq!(recipe.live.when, When::Asked);
        let recipe = changed("s06", Changes { auto: Some(true), ..Changes::default() });
        assert_eq!(recipe.live.when, When::Request);
    }

    #[test]
    fn passes_of_a_context_in_use_are_changed_as_those_of_a_stored_session() {
        let inputs = Some(Inputs::All);
        let changes =
            Changes { min_result_bytes: Some(777), clear_inputs: inputs, ..Changes::default() };
        let recipe = changed("epitome", changes);
        let live = recipe.live.passes.expect("the default has passes of its own");
        for passes in [&live, &recipe.passes] {
            let results = passes.iter().find_map(|pass| match pass {
                PassSettings::Results(pass) => Some(pass.min_bytes),
                _ => None,
            });
            assert_eq!(results, Some(777));
            assert!(passes.last().is_some_and(is_of_inputs));
        }
    }
}
