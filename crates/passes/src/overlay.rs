//! What settings and options change of a recipe, whichever recipe it is.

use epitome_model::FieldRole;

use crate::arguments::{Arguments, DigestStyle};
use crate::repeats::Repeats;
use crate::results::Results;
use crate::{Keep, Level, PassSettings, PerKind, Recipe, Sections, Stages, SummaryRole};
use crate::{SummaryRule, Target, ThinkingMode, When};

/// Values that take the place of those of a recipe; what is not set stays as the recipe has it.
///
/// ```
/// use epitome_passes::{Keep, Overlay, built_in};
///
/// let keep = Keep { results: Some(5), ..Keep::default() };
/// let recipe = built_in("epitome").expect("a built-in recipe");
/// let recipe = recipe.with(&Overlay { keep, ..Overlay::default() });
/// assert_eq!(recipe.keep.results, Some(5));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overlay {
    /// What starts it: of stored sessions each member that is set, in a context in use all of the
    /// level if any member is.
    pub trigger: PerKind<Level>,
    /// What it should come to.
    pub target: PerKind<Option<Target>>,
    /// What is kept whole. Any of these replaces all rules of the recipe but the one for results
    /// that the model has not answered; a recipe that leaves the newest results alone one by one
    /// leaves `results` of them.
    pub keep: Keep,
    /// Names of files that set rules, in addition to those of the recipe; none: those that the
    /// recipe adds are not added. See [`RuleFiles`](crate::RuleFiles).
    pub pins: Option<Vec<String>>,
    /// What is done with old reasoning.
    pub thinking: Option<ThinkingMode>,
    /// Bytes of whatever is left as it is.
    pub min_bytes: Option<u64>,
    /// Bytes of results that are left as they are.
    pub min_result_bytes: Option<u64>,
    /// Bytes of written files in calls that are left as they are.
    pub min_content_bytes: Option<u64>,
    /// Tools whose results and arguments stay, in addition to those of the recipe.
    pub exempt_tools: Vec<String>,
    /// Tokens that a compaction has to save.
    pub at_least: Option<u64>,
    /// The calls that are cleared of their arguments once their results are old.
    pub clear_inputs: Option<Inputs>,
    /// Whether texts that the reply repeats are kept once.
    pub repeats: Option<bool>,
    /// Whether a context in use is compacted without being asked.
    pub auto: Option<bool>,
    /// Tokens of the window that are kept for the reply.
    pub reserve: Option<u64>,
    /// Per cent of the window at which the user is warned.
    pub warn: Option<u64>,
    /// What summaries are like, of recipes that have them.
    pub summary: SummaryOverlay,
    /// Whether a recipe without a summary gets one.
    pub summarise: bool,
}

/// What summaries are to be like.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SummaryOverlay {
    /// What the context has to exceed before one is asked for.
    pub over: Level,
    /// Tokens that the model's part of it may have.
    pub max_tokens: Option<u64>,
    /// Its sections.
    pub sections: Option<Sections>,
    /// The role in which it is sent.
    pub role: Option<SummaryRole>,
    /// Tokens of the user's messages that are kept verbatim.
    pub user_tokens: Option<u64>,
    /// What it should look at.
    pub focus: Option<String>,
    /// Texts that it repeats verbatim, in addition to those of the recipe.
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
    /// The same recipe with what an overlay sets. Of two overlays the one that counts more is
    /// applied last.
    #[must_use]
    pub fn with(mut self, overlay: &Overlay) -> Recipe {
        self.trigger.stored = overlay.trigger.stored.or(self.trigger.stored);
        if overlay.trigger.live != Level::default() {
            self.trigger.live = overlay.trigger.live;
        }
        self.target.stored = overlay.target.stored.or(self.target.stored);
        self.target.live = overlay.target.live.or(self.target.live);
        self.at_least = overlay.at_least.or(self.at_least);
        self.exempt_tools.extend(overlay.exempt_tools.iter().cloned());
        self.set_keep(overlay.keep);
        self.rule_files.overlay(overlay.pins.as_deref());
        if overlay.auto == Some(false) {
            self.live.when = When::Asked;
        }
        self.live.reserve = overlay.reserve.unwrap_or(self.live.reserve);
        self.live.warn = overlay.warn.unwrap_or(self.live.warn);
        for stages in self.stages.both_mut() {
            stages.set_passes(overlay);
            if overlay.summarise {
                stages.summary.get_or_insert_default();
            }
            if let Some(rule) = &mut stages.summary {
                overlay.summary.apply_to(rule);
            }
        }
        self
    }

    fn set_keep(&mut self, keep: Keep) {
        if keep == Keep::default() {
            return;
        }
        let mut counted_by_pass = false;
        if let Some(results) = keep.results {
            let stages = self.stages.both_mut().into_iter();
            for pass in stages.flat_map(|stages| &mut stages.passes) {
                if let PassSettings::Results(Results { newest, .. }) = pass
                    && *newest > 0
                {
                    *newest = results as usize;
                    counted_by_pass = true;
                }
            }
        }
        let results = keep.results.filter(|_| !counted_by_pass);
        let unanswered = self.keep.unanswered || keep.unanswered;
        self.keep = Keep { results, unanswered, ..keep };
    }
}

impl Stages {
    fn set_passes(&mut self, overlay: &Overlay) {
        if let Some(mode) = overlay.thinking {
            self.set_thinking(mode);
        }
        if let Some(bytes) = overlay.min_bytes {
            self.set_min_bytes(bytes);
        }
        if let Some(is_wanted) = overlay.repeats {
            self.passes.retain(|pass| is_wanted || !is_of_repeats(pass));
            if is_wanted && !self.passes.iter().any(is_of_repeats) {
                self.passes.insert(0, PassSettings::Repeats(Repeats::default()));
            }
        }
        if let Some(inputs) = &overlay.clear_inputs {
            self.passes.retain(|pass| !is_of_inputs(pass));
            self.passes.extend(inputs.pass().map(PassSettings::Arguments));
        }
        for pass in &mut self.passes {
            set_minima(pass, overlay);
        }
    }
}

impl SummaryOverlay {
    fn apply_to(&self, rule: &mut SummaryRule) {
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

fn set_minima(pass: &mut PassSettings, overlay: &Overlay) {
    match pass {
        PassSettings::Results(pass) => {
            pass.min_bytes = overlay.min_result_bytes.unwrap_or(pass.min_bytes);
        }
        PassSettings::Arguments(pass) => {
            if pass.roles.contains(&FieldRole::Content) && pass.style != DigestStyle::Placeholder {
                pass.min_bytes = overlay.min_content_bytes.unwrap_or(pass.min_bytes);
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

    fn changed(recipe: &str, overlay: Overlay) -> Recipe {
        built_in(recipe).expect("a built-in recipe").with(&overlay)
    }

    #[test]
    fn nothing_set_overlay_nothing() {
        for (name, _) in crate::BUILT_IN {
            assert_eq!(built_in(name), Some(changed(name, Overlay::default())), "{name}");
        }
    }

    #[test]
    fn results_that_are_kept_are_counted_as_the_recipe_counts_them() {
        let keep = Keep { results: Some(7), ..Keep::default() };
        let overlay = || Overlay { keep, ..Overlay::default() };
        let PassSettings::Results(pass) = &changed("jcli", overlay()).stages.stored.passes[0]
        else {
            panic!("it clears results")
        };
        assert_eq!(pass.newest, 7);
        let recipe = changed("clear-tool-uses", overlay());
        assert_eq!(recipe.keep, Keep { unanswered: true, ..Keep::default() });
        let recipe = changed("epitome", overlay());
        let expect = Keep { results: Some(7), unanswered: true, ..Keep::default() };
        assert_eq!(recipe.keep, expect);
    }

    #[test]
    fn names_of_rule_files_are_added_and_none_are_those_of_agents() {
        let pins = |pins: &[&str]| {
            let pins = Some(pins.iter().map(|name| (*name).to_owned()).collect());
            Overlay { pins, ..Overlay::default() }
        };
        let recipe = changed("epitome", pins(&["a", "b"])).with(&pins(&["c"]));
        assert_eq!(recipe.rule_files.added(), ["a", "b", "c"]);
        let none = recipe.with(&pins(&[])).rule_files;
        assert!(none.added().is_empty() && none.has("AGENTS.md"));
    }

    #[test]
    fn arguments_are_cleared_once_or_not_at_all() {
        let inputs = |inputs| Overlay { clear_inputs: Some(inputs), ..Overlay::default() };
        let cleared = |recipe: &Recipe| {
            recipe.stages.stored.passes.iter().filter(|it| is_of_inputs(it)).count()
        };
        let once = changed("clear-tool-uses", inputs(Inputs::Of(vec!["Write".into()])));
        assert_eq!(cleared(&once), 1);
        let PassSettings::Arguments(pass) = once.stages.stored.passes.last().expect("a pass")
        else {
            panic!("it clears arguments")
        };
        assert_eq!(pass.tools, ["Write"]);
        assert_eq!(cleared(&once.clone().with(&inputs(Inputs::All))), 1);
        assert_eq!(cleared(&once.with(&inputs(Inputs::None))), 0);
    }

    #[test]
    fn without_auto_a_context_in_use_is_compacted_only_when_asked() {
        let recipe = changed("s06", Overlay { auto: Some(false), ..Overlay::default() });
        assert_eq!(recipe.live.when, When::Asked);
        let recipe = changed("s06", Overlay { auto: Some(true), ..Overlay::default() });
        assert_eq!(recipe.live.when, When::Request);
    }

    #[test]
    fn passes_of_a_context_in_use_are_changed_as_those_of_a_stored_session() {
        let inputs = Some(Inputs::All);
        let overlay =
            Overlay { min_result_bytes: Some(777), clear_inputs: inputs, ..Overlay::default() };
        let recipe = changed("clear-tool-uses", overlay);
        for passes in [&recipe.stages.live.passes, &recipe.stages.stored.passes] {
            let results = passes.iter().find_map(|pass| match pass {
                PassSettings::Results(pass) => Some(pass.min_bytes),
                _ => None,
            });
            assert_eq!(results, Some(777));
            assert!(passes.last().is_some_and(is_of_inputs));
        }
    }

    #[test]
    fn a_target_and_a_trigger_of_one_place_leave_those_of_the_other() {
        let target = Some(Target { tokens: Some(9), ..Target::default() });
        let level = Level { tokens: Some(9), ..Level::default() };
        let recipe = changed("ion", Overlay::default());
        let targets = PerKind { stored: target, live: None };
        let of_target = changed("ion", Overlay { target: targets, ..Overlay::default() });
        let expect = PerKind { stored: target, ..recipe.target };
        assert_eq!(of_target, Recipe { target: expect, ..recipe.clone() });
        let triggers = PerKind { stored: Level::default(), live: level };
        let of_trigger = changed("ion", Overlay { trigger: triggers, ..Overlay::default() });
        let expect = PerKind { live: level, ..recipe.trigger };
        assert_eq!(of_trigger, Recipe { trigger: expect, ..recipe });
        // Of stored sessions, both of the recipe's members stay if one is set.
        let triggers = PerKind { stored: level, live: Level::default() };
        let both = changed("gitclaw", Overlay { trigger: triggers, ..Overlay::default() });
        let expect = Level { bytes: Some(102_400), ..level };
        assert_eq!(both.trigger, PerKind { stored: expect, live: Level::default() });
    }

    #[test]
    fn a_recipe_gets_a_summary_as_the_settings_describe_it_only_if_one_is_wanted() {
        let summary = SummaryOverlay { max_tokens: Some(7), ..SummaryOverlay::default() };
        let summarise =
            |summarise| Overlay { summary: summary.clone(), summarise, ..Overlay::default() };
        let rule = |overlay| {
            let PerKind { stored, live } = changed("gitclaw", overlay).stages;
            PerKind { stored: stored.summary, live: live.summary }
        };
        assert_eq!(rule(summarise(false)), PerKind::same(None));
        let expect = SummaryRule { max_tokens: 7, ..SummaryRule::default() };
        assert_eq!(rule(summarise(true)), PerKind::same(Some(expect)));
    }
}
