//! What settings change of a recipe.

use epitome_model::Tokens;
use epitome_passes::{self as passes, Level, Overlay, PerKind, SummaryOverlay, Target};

use super::Settings;
use super::values::{Backup, Compaction, Inputs, Keep, Live};
use crate::backup::BackupPlace;

impl Settings {
    /// The recipe for stored sessions, by name or path, where one is set.
    pub fn recipe(&self) -> Option<&str> {
        self.values.compaction.recipe.as_deref()
    }

    /// The recipe for contexts in use.
    pub fn live_recipe(&self) -> Option<&str> {
        self.values.live.recipe.as_deref().or(self.recipe())
    }

    /// Where a whole copy of a session is kept before it is compacted, if one is.
    pub fn backup(&self) -> Option<BackupPlace> {
        self.values.compaction.backup.map(|backup| match backup {
            Backup::Archive => BackupPlace::Archive,
            Backup::Beside => BackupPlace::Beside,
        })
    }

    /// What they change of a recipe.
    pub fn overlay(&self) -> Overlay {
        let Keep { turns, results, messages, tokens, ref pins } = self.values.compaction.keep;
        let Compaction { trigger, exempt_tools, clear_tool_inputs, .. } = &self.values.compaction;
        let compaction = &self.values.compaction;
        let Live { summary, .. } = &self.values.live;
        let live = &self.values.live;
        let live_target = Some(live.target).filter(|it| *it != Target::default());
        Overlay {
            trigger: PerKind {
                stored: Level { bytes: trigger.bytes, tokens: trigger.tokens, ..Level::default() },
                live: live.trigger,
            },
            target: PerKind {
                stored: compaction.target.map(Tokens).map(Target::of_tokens),
                live: live_target,
            },
            keep: passes::Keep { turns, results, messages, tokens, ..passes::Keep::default() },
            pins: pins.clone(),
            thinking: compaction.thinking,
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
            reserve: live.reserve,
            warn: live.warn,
            summary: SummaryOverlay {
                over: summary.over,
                max_tokens: summary.max_tokens,
                sections: summary.sections.clone(),
                role: summary.role,
                user_tokens: summary.user_tokens,
                focus: summary.focus.clone(),
                protected: summary.protected.clone().unwrap_or_default(),
            },
            summarise: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_and_targets_may_be_in_characters() {
        let text = "live.trigger.chars = 900\nlive.target.chars = 500\n\
                    live.summary.over.chars = 700";
        let values = toml::from_str(text).expect("settings");
        let overlay = Settings { values, ..Settings::default() }.overlay();
        let chars = |n| Level { chars: Some(n), ..Level::default() };
        let target = Target { chars: Some(500), ..Target::default() };
        assert_eq!(overlay.trigger, PerKind { stored: Level::default(), live: chars(900) });
        assert_eq!(overlay.target, PerKind { stored: None, live: Some(target) });
        assert_eq!(overlay.summary.over, chars(700));
    }
}
