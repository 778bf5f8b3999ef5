//! Recipes: which passes run in which order, with which settings, as data.

use serde::{Deserialize, Serialize};

use crate::settings::PassSettings;
use crate::thinking::Thinking;
use crate::{Keep, Live};

/// An ordered list of passes with their settings, what starts it, and what it keeps whole.
///
/// ```
/// use epitome_passes::Recipe;
///
/// let recipe = Recipe::parse(r#"
///     name = "mine"
///     about = "Clears old results."
///     keep = { results = 3 }
///
///     [[passes]]
///     pass = "results"
///     style = "cleared"
/// "#)?;
/// assert_eq!(recipe.name, "mine");
/// # Ok::<(), epitome_passes::RecipeError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// Its name.
    pub name: String,
    /// What it does, in a sentence.
    pub about: String,
    /// When it does anything at all.
    #[serde(default)]
    pub trigger: Trigger,
    /// What is kept whole.
    #[serde(default)]
    pub keep: Keep,
    /// Tokens of context at which it stops.
    #[serde(default)]
    pub target: Option<u64>,
    /// Characters of context at which it stops, with what a wire puts around the words.
    #[serde(default)]
    pub target_chars: Option<u64>,
    /// Where it may stop once the target is reached.
    #[serde(default)]
    pub stop: Stop,
    /// Tokens that it has to save: what saves less is not worth what a provider has cached.
    #[serde(default)]
    pub at_least: Option<u64>,
    /// Tools whose calls and results stay, whatever the pass.
    #[serde(default)]
    pub exempt_tools: Vec<String>,
    /// How it runs in a context that is in use.
    #[serde(default)]
    pub live: Live,
    /// The passes, in order. Of two that want to edit one place the first does.
    pub passes: Vec<PassSettings>,
}

/// Where a recipe may stop once its target is reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stop {
    /// After any edit.
    #[default]
    Edit,
    /// After a pass: what a pass begins it ends.
    Pass,
}

/// When a recipe does anything at all: when everything that is set here is reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Trigger {
    /// The session has at least so many bytes on disk.
    pub bytes: Option<u64>,
    /// A resume would send at least so many tokens.
    pub tokens: Option<u64>,
}

/// What is done with old reasoning, whatever the recipe says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ThinkingMode {
    /// It stays.
    Keep,
    /// It goes, whole.
    Drop,
}

/// A text that is no recipe.
#[derive(Debug, thiserror::Error)]
#[error("not a recipe")]
pub struct RecipeError(#[from] toml::de::Error);

impl Recipe {
    /// Reads a recipe from TOML.
    ///
    /// # Errors
    ///
    /// [`RecipeError`], whose source says where and what: an unknown setting is an error.
    pub fn parse(text: &str) -> Result<Recipe, RecipeError> {
        Ok(toml::from_str(text)?)
    }

    /// The same recipe with another rule for reasoning.
    #[must_use]
    pub fn with_thinking(mut self, mode: ThinkingMode) -> Recipe {
        let has = self.passes.iter().any(|pass| matches!(pass, PassSettings::Thinking(_)));
        match mode {
            ThinkingMode::Keep => {
                self.passes.retain(|pass| !matches!(pass, PassSettings::Thinking(_)));
            }
            ThinkingMode::Drop if !has => {
                self.passes.push(PassSettings::Thinking(Thinking::default()));
            }
            ThinkingMode::Drop => {}
        }
        self
    }

    /// The same recipe, leaving everything that is at most `bytes` long.
    #[must_use]
    pub fn with_min_bytes(mut self, bytes: u64) -> Recipe {
        for pass in &mut self.passes {
            match pass {
                PassSettings::Stale(pass) => pass.min_bytes = bytes,
                PassSettings::Repeats(pass) => pass.min_bytes = bytes,
                PassSettings::Results(pass) => pass.min_bytes = bytes,
                PassSettings::Arguments(pass) => pass.min_bytes = bytes,
                PassSettings::Images(pass) => pass.min_bytes = bytes,
                PassSettings::Copies(pass) => pass.min_bytes = bytes,
                PassSettings::Thinking(_) => {}
            }
        }
        self
    }
}

/// The recipes in the program, as they are written. The first is the default.
pub const BUILT_IN: [(&str, &str); 10] = [
    ("epitome", include_str!("recipes/epitome.toml")),
    ("gitclaw", include_str!("recipes/gitclaw.toml")),
    ("transcript", include_str!("recipes/transcript.toml")),
    ("transcript-no-thinking", include_str!("recipes/transcript-no-thinking.toml")),
    ("clear-tool-uses", include_str!("recipes/clear-tool-uses.toml")),
    ("s06", include_str!("recipes/s06.toml")),
    ("s08", include_str!("recipes/s08.toml")),
    ("jcli", include_str!("recipes/jcli.toml")),
    ("ion", include_str!("recipes/ion.toml")),
    ("pi", include_str!("recipes/pi.toml")),
];

/// A recipe in the program, by name.
///
/// # Panics
///
/// If a file in the program is no recipe; a test reads them all.
pub fn built_in(name: &str) -> Option<Recipe> {
    let (_, text) = BUILT_IN.iter().find(|(known, _)| *known == name)?;
    Some(Recipe::parse(text).expect("a test reads every built-in recipe"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_recipes_are_called_what_their_files_are() {
        for (name, _) in BUILT_IN {
            assert_eq!(built_in(name).map(|recipe| recipe.name).as_deref(), Some(name));
        }
    }

    #[test]
    fn unknown_settings_are_errors() {
        let texts = [
            "name='a'\nabout=''\npasses=[]\nkeeep={}",
            "name='a'\nabout=''\npasses=[{pass='results', mini=3}]",
            "name='a'\nabout=''\npasses=[{pass='unheard-of'}]",
            "name='a'\nabout=''\npasses=[]\n[keep]\nturn=1",
        ];
        for text in texts {
            assert!(Recipe::parse(text).is_err(), "{text}");
        }
    }
}
