//! Applies settings to a recipe.

use epitome_passes::{Level, Recipe, StageTiming, Stages, SummaryRule, Target};

use super::Settings;
use super::values::{Compaction, Inputs, Summary, Trigger, Values};
use crate::backup::BackupPlace;

impl Settings {
    /// The recipe for stored sessions, a name or a path, if one is set.
    pub fn recipe(&self) -> Option<&str> {
        self.values.compaction.recipe.as_deref()
    }

    /// The recipe for the contexts of running agents, as a name or a path. If only a recipe for
    /// stored sessions is set, it is that recipe.
    pub fn live_recipe(&self) -> Option<&str> {
        self.values.live.recipe.as_deref().or(self.recipe())
    }

    /// Where a whole copy of a session is kept before it is compacted; `None` if nowhere.
    pub fn backup(&self) -> Option<BackupPlace> {
        self.values.compaction.backup
    }
}

impl Values {
    /// The recipe with the changes that these values make. To combine two sets of values, apply the
    /// one that has priority last. With `summarise`, a recipe without a summary gets one.
    #[must_use]
    pub fn apply_to(&self, mut recipe: Recipe, summarise: bool) -> Recipe {
        let Values { compaction, live, .. } = self;
        let Trigger { tokens, bytes } = compaction.trigger;
        let trigger = Level { tokens, bytes, ..Level::default() };
        recipe.trigger.stored = trigger.or(recipe.trigger.stored);
        if live.trigger != Level::default() {
            recipe.trigger.live = live.trigger;
        }
        recipe.target.stored = compaction.target.or(recipe.target.stored);
        if live.target != Target::default() {
            recipe.target.live = Some(live.target);
        }
        recipe.at_least = compaction.clear_at_least.or(recipe.at_least);
        recipe.exempt_tools.extend(compaction.exempt_tools.iter().flatten().cloned());
        recipe.set_keep(compaction.keep.rules);
        if let Some(pins) = &compaction.keep.pins {
            recipe.rule_files.add(pins);
        }
        if live.auto == Some(false) {
            recipe.live.when = StageTiming::Asked;
        }
        recipe.live.reserve = live.reserve.unwrap_or(recipe.live.reserve);
        recipe.live.warn = live.warn.unwrap_or(recipe.live.warn);
        for stages in recipe.stages.both_mut() {
            compaction.change_passes(stages);
            if summarise {
                stages.summary.get_or_insert_default();
            }
            if let Some(rule) = &mut stages.summary {
                live.summary.change(rule);
            }
        }
        recipe
    }
}

impl Compaction {
    fn change_passes(&self, stages: &mut Stages) {
        if let Some(mode) = self.thinking {
            stages.set_thinking(mode);
        }
        if let Some(bytes) = self.min_bytes {
            stages.set_min_bytes(bytes);
        }
        if let Some(is_wanted) = self.repeats {
            stages.set_repeats(is_wanted);
        }
        match &self.clear_tool_inputs {
            None => {}
            Some(Inputs::All(false)) => stages.set_cleared_inputs(None),
            Some(Inputs::All(true)) => stages.set_cleared_inputs(Some(Vec::new())),
            Some(Inputs::Of(tools)) => stages.set_cleared_inputs(Some(tools.clone())),
        }
        if let Some(bytes) = self.min_result_bytes {
            stages.set_min_result_bytes(bytes);
        }
        if let Some(bytes) = self.min_content_bytes {
            stages.set_min_content_bytes(bytes);
        }
    }
}

impl Summary {
    fn change(&self, rule: &mut SummaryRule) {
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
        rule.protected.extend(self.protected.iter().flatten().cloned());
    }
}

#[cfg(test)]
mod tests {
    use epitome_passes::{BUILT_IN, DigestStyle, Keep, PassSettings, PerKind, built_in};

    use super::*;

    /// Applies the lines of a settings file to a built-in recipe.
    fn changed(recipe: &str, settings: &str) -> Recipe {
        apply(built_in(recipe).expect("a built-in recipe"), settings)
    }

    fn apply(recipe: Recipe, settings: &str) -> Recipe {
        let values: Values = toml::from_str(settings).expect("settings");
        values.apply_to(recipe, false)
    }

    #[test]
    fn what_is_not_set_changes_nothing() {
        for (name, _) in BUILT_IN {
            assert_eq!(built_in(name), Some(changed(name, "")), "{name}");
        }
    }

    #[test]
    fn results_that_are_kept_are_counted_as_the_recipe_counts_them() {
        let keep = "compaction.keep.results = 7";
        let PassSettings::Results(pass) = &changed("jcli", keep).stages.stored.passes[0] else {
            panic!("it clears results")
        };
        assert_eq!(pass.newest, 7);
        let recipe = changed("clear-tool-uses", keep);
        assert_eq!(recipe.keep, Keep { unanswered: true, ..Keep::default() });
        let recipe = changed("epitome", keep);
        let expect = Keep { results: Some(7), unanswered: true, ..Keep::default() };
        assert_eq!(recipe.keep, expect);
    }

    #[test]
    fn names_of_rule_files_are_added_and_none_are_those_of_agents() {
        let recipe = changed("epitome", "compaction.keep.pins = ['a', 'b']");
        let recipe = apply(recipe, "compaction.keep.pins = ['c']");
        assert_eq!(recipe.rule_files.added(), ["a", "b", "c"]);
        let none = apply(recipe, "compaction.keep.pins = []").rule_files;
        assert!(none.added().is_empty() && none.has("AGENTS.md"));
    }

    #[test]
    fn arguments_are_cleared_once_or_not_at_all() {
        let cleared = |recipe: &Recipe| {
            recipe.stages.stored.passes.iter().filter(|it| is_of_inputs(it)).count()
        };
        let once = changed("clear-tool-uses", "compaction.clear_tool_inputs = ['Write']");
        assert_eq!(cleared(&once), 1);
        let PassSettings::Arguments(pass) = once.stages.stored.passes.last().expect("a pass")
        else {
            panic!("it clears arguments")
        };
        assert_eq!(pass.tools, ["Write"]);
        let inputs = |all: bool| format!("compaction.clear_tool_inputs = {all}");
        assert_eq!(cleared(&apply(once.clone(), &inputs(true))), 1);
        assert_eq!(cleared(&apply(once, &inputs(false))), 0);
    }

    fn is_of_inputs(pass: &PassSettings) -> bool {
        matches!(pass, PassSettings::Arguments(pass) if pass.style == DigestStyle::Placeholder)
    }

    #[test]
    fn without_auto_a_context_in_use_is_compacted_only_when_asked() {
        assert_eq!(changed("s06", "live.auto = false").live.when, StageTiming::Asked);
        assert_eq!(changed("s06", "live.auto = true").live.when, StageTiming::Request);
    }

    #[test]
    fn passes_of_a_context_in_use_are_changed_as_those_of_a_stored_session() {
        let settings = "compaction = { min_result_bytes = 777, clear_tool_inputs = true }";
        let recipe = changed("clear-tool-uses", settings);
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
        let recipe = built_in("ion").expect("a built-in recipe");
        let level = Level { tokens: Some(9), ..Level::default() };
        let target = Some(Target { tokens: Some(9), ..Target::default() });
        let expect = PerKind { stored: target, ..recipe.target };
        let of_target = changed("ion", "compaction.target = 9");
        assert_eq!(of_target, Recipe { target: expect, ..recipe.clone() });
        let expect = PerKind { live: level, ..recipe.trigger };
        let of_trigger = changed("ion", "live.trigger.tokens = 9");
        assert_eq!(of_trigger, Recipe { trigger: expect, ..recipe });
        // The recipe has two triggers for stored sessions, in tokens and in bytes. If only one of
        // them is set, the recipe's other trigger stays.
        let both = changed("gitclaw", "compaction.trigger.tokens = 9");
        let expect = Level { bytes: Some(102_400), ..level };
        assert_eq!(both.trigger, PerKind { stored: expect, live: Level::default() });
    }

    #[test]
    fn levels_and_targets_are_in_tokens_per_cent_and_characters() {
        let target = |text: &str| changed("epitome", text).target;
        let before = built_in("epitome").expect("a built-in recipe").target;
        let (tokens, percent, chars) = (Some(7), Some(60), Some(500));
        let none = Target::default();
        for (value, expect) in [
            ("7", Target { tokens, ..none }),
            ("'60%'", Target { percent, ..none }),
            ("'500 chars'", Target { chars, ..none }),
            ("{ tokens = 7, percent = 60, chars = 500 }", Target { tokens, percent, chars }),
        ] {
            let stored = target(&format!("compaction.target = {value}"));
            assert_eq!(stored, PerKind { stored: Some(expect), ..before }, "{value}");
        }
        let live = target("live.target = { chars = 500 }");
        assert_eq!(live, PerKind { live: Some(Target { chars, ..none }), ..before });
        let level = Level { chars: Some(900), ..Level::default() };
        assert_eq!(changed("epitome", "live.trigger.chars = 900").trigger.live, level);
        let rule = changed("ion", "live.summary.over.chars = 900").stages.live.summary;
        assert_eq!(rule.map(|rule| rule.over), Some(level));
    }

    #[test]
    fn a_recipe_gets_a_summary_as_the_settings_describe_it_only_if_one_is_wanted() {
        let values: Values = toml::from_str("live.summary.max_tokens = 7").expect("settings");
        let rules = |summarise| {
            let recipe = built_in("gitclaw").expect("a built-in recipe");
            let PerKind { stored, live } = values.apply_to(recipe, summarise).stages;
            PerKind { stored: stored.summary, live: live.summary }
        };
        assert_eq!(rules(false), PerKind::for_both(None));
        let expect = SummaryRule { max_tokens: 7, ..SummaryRule::default() };
        assert_eq!(rules(true), PerKind::for_both(Some(expect)));
    }
}
