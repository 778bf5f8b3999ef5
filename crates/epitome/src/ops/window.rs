//! What the percentages of a recipe amount to in the window of a model.

use epitome_model::Tokens;
use epitome_passes::{Recipe, Target};
use serde::Serialize;

/// The window of the model that a session is sent to, and the limits of the recipe that are
/// percentages of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct WindowLimits {
    /// The window.
    pub tokens: Tokens,
    /// The window without the reserve, the tokens that the recipe keeps free for the reply. The
    /// percentages are of this number.
    pub usable: Tokens,
    /// The size from which on the recipe removes something. `None` if the recipe has no such
    /// percentage, or a limit in tokens that is larger.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trigger: Option<WindowShare>,
    /// The size that the compaction should reach. `None` if the recipe has no such percentage, or a
    /// target in tokens that is smaller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<WindowShare>,
}

/// A percentage of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct WindowShare {
    /// The percentage.
    pub percent: u64,
    /// The same in tokens.
    pub tokens: Tokens,
}

impl WindowLimits {
    /// The limits of a recipe for stored sessions in this window. `None` if none of them is a
    /// percentage, or if limits in tokens take precedence.
    pub(super) fn from_recipe(recipe: &Recipe, window: Tokens) -> Option<WindowLimits> {
        let usable = recipe.live.usable(window);
        let in_tokens = recipe.clone().with_window(window);
        let target = recipe.target.stored.and_then(|target| target.percent);
        let target_tokens = in_tokens.target.stored.and_then(|target| target.tokens);
        let trigger = recipe.trigger.stored.percent;
        let trigger_tokens = in_tokens.trigger.stored.tokens;
        let limits = WindowLimits {
            tokens: window,
            usable,
            trigger: trigger.and_then(|percent| share(percent, usable, trigger_tokens)),
            target: target.and_then(|percent| share(percent, usable, target_tokens)),
        };
        (limits.trigger.is_some() || limits.target.is_some()).then_some(limits)
    }
}

/// A percentage of the usable window, if it is the limit that applies. `applies` is that limit in
/// tokens.
fn share(percent: u64, usable: Tokens, applies: Option<u64>) -> Option<WindowShare> {
    let target = Target { percent: Some(percent), ..Target::default() };
    let tokens = target.tokens(Some(usable))?;
    (applies == Some(tokens.0)).then_some(WindowShare { percent, tokens })
}

#[cfg(test)]
mod tests {
    use epitome_passes::{Level, PerKind};

    use super::*;

    #[test]
    fn a_percentage_is_named_if_no_limit_in_tokens_takes_precedence() {
        let share = |percent, tokens| Some(WindowShare { percent, tokens: Tokens(tokens) });
        for (target_tokens, trigger_tokens, expect) in [
            (None, None, Some((share(80, 800), share(60, 600)))),
            (Some(500), Some(700), Some((share(80, 800), None))),
            (Some(700), Some(900), Some((None, share(60, 600)))),
            (Some(500), Some(900), None),
        ] {
            let mut recipe = Recipe::default();
            recipe.live.reserve = 200;
            let target = Target { tokens: target_tokens, percent: Some(60), chars: None };
            recipe.target = PerKind::for_both(Some(target));
            let level = Level { tokens: trigger_tokens, percent: Some(80), ..Level::default() };
            recipe.trigger = PerKind::for_both(level);
            let limits = WindowLimits::from_recipe(&recipe, Tokens(1_200));
            let found = limits.map(|limits| (limits.trigger, limits.target));
            assert_eq!(found, expect, "{target_tokens:?} {trigger_tokens:?}");
            let sizes = limits.map(|limits| (limits.tokens, limits.usable));
            assert_eq!(sizes, expect.map(|_| (Tokens(1_200), Tokens(1_000))));
        }
        assert_eq!(WindowLimits::from_recipe(&Recipe::default(), Tokens(1_200)), None);
    }
}
