//! What settings change of a recipe.

use epitome_passes::{self as passes, Changes, ThinkingMode};

use super::Settings;
use super::values::{Compaction, Inputs, Keep, Level, Live, Thinking};

impl Settings {
    /// The recipe for stored sessions, by name or path, where one is set.
    pub fn recipe(&self) -> Option<&str> {
        self.values.compaction.recipe.as_deref()
    }

    /// The recipe for contexts in use.
    pub fn live_recipe(&self) -> Option<&str> {
        self.values.live.recipe.as_deref().or(self.recipe())
    }

    /// What is otherwise than the recipe says.
    pub fn changes(&self) -> Changes {
        let Compaction { keep: Keep { turns, results, messages, tokens }, .. } =
            self.values.compaction;
        let Compaction { trigger, exempt_tools, clear_tool_inputs, .. } = &self.values.compaction;
        let compaction = &self.values.compaction;
        let Live { target, summary, .. } = &self.values.live;
        let live = &self.values.live;
        Changes {
            trigger: passes::Trigger { bytes: trigger.bytes, tokens: trigger.tokens },
            target: compaction.target,
            keep: passes::Keep { turns, results, messages, tokens, ..passes::Keep::default() },
            thinking: compaction.thinking.map(|mode| match mode {
                Thinking::Keep => ThinkingMode::Keep,
                Thinking::Drop => ThinkingMode::Drop,
            }),
            min_bytes: compaction.min_bytes,
            min_result_bytes: compaction.min_result_bytes,
            min_content_bytes: compaction.min_content_bytes,
            exempt_tools: exempt_tools.clone().unwrap_or_default(),
            at_least: compaction.clear_at_least,
            clear_inputs: clear_tool_inputs.as_ref().map(|inputs| match inputs {
                Inputs::All(true) => passes::Inputs::All,
                Inputs::All(false) => passes::Inputs::None,
                Inputs::Of(tools) => passes::Inputs::Of(tools.clone()),
            }),
            repeats: compaction.repeats,
            auto: live.auto,
            live_trigger: level(&live.trigger),
            live_target: target
                .tokens
                .map(passes::Target::Tokens)
                .or(target.percent.map(passes::Target::Percent))
                .or(target.chars.map(passes::Target::Chars)),
            reserve: live.reserve,
            warn: live.warn,
            summary: passes::SummaryChanges {
                over: level(&summary.over),
                max_tokens: summary.max_tokens,
                sections: summary.sections.clone(),
                role: summary.role,
                user_tokens: summary.user_tokens,
                focus: summary.focus.clone(),
                protected: summary.protected.clone().unwrap_or_default(),
            },
        }
    }
}

fn level(level: &Level) -> passes::Level {
    let Level { tokens, percent, bytes, chars, results, turns, messages } = *level;
    passes::Level { tokens, percent, bytes, chars, results, turns, messages }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_and_targets_may_be_in_characters() {
        let text = "live.trigger.chars = 900\nlive.target.chars = 500\n\
                    live.summary.over.chars = 700";
        let values = toml::from_str(text).expect("settings");
        let changes = Settings { values, ..Settings::default() }.changes();
        let chars = |n| passes::Level { chars: Some(n), ..passes::Level::default() };
        assert_eq!(changes.live_trigger, chars(900));
        assert_eq!(changes.live_target, Some(passes::Target::Chars(500)));
        assert_eq!(changes.summary.over, chars(700));
    }
}
