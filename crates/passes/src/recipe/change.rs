//! Changes of a recipe by settings and options.

use epitome_model::FieldRole;

use super::{Recipe, Stages, ThinkingMode};
use crate::arguments::{Arguments, DigestStyle};
use crate::repeats::Repeats;
use crate::results::Results;
use crate::thinking::Thinking;
use crate::{Keep, PassSettings};

impl Recipe {
    /// Replaces the recipe's rules for what is kept with `keep`, unless `keep` is empty. The rule
    /// `unanswered` stays if the recipe has it. If a pass of the recipe leaves the `newest` results
    /// unchanged, `keep.results` replaces that number instead.
    ///
    /// ```
    /// use epitome_passes::{Keep, built_in};
    ///
    /// let mut recipe = built_in("epitome").expect("a built-in recipe");
    /// recipe.set_keep(Keep { results: Some(5), ..Keep::default() });
    /// assert_eq!(recipe.keep.results, Some(5));
    /// ```
    pub fn set_keep(&mut self, keep: Keep) {
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
    /// Adds or removes the pass that removes reasoning.
    pub fn set_thinking(&mut self, mode: ThinkingMode) {
        match mode {
            ThinkingMode::Keep => self.passes.retain(|pass| !is_thinking(pass)),
            ThinkingMode::Drop if !self.passes.iter().any(is_thinking) => {
                self.passes.push(PassSettings::Thinking(Thinking::default()));
            }
            ThinkingMode::Drop => {}
        }
    }

    /// Adds or removes the pass `repeats`, for texts that a later reply of the same turn repeats.
    pub fn set_repeats(&mut self, is_wanted: bool) {
        self.passes.retain(|pass| is_wanted || !is_of_repeats(pass));
        if is_wanted && !self.passes.iter().any(is_of_repeats) {
            self.passes.insert(0, PassSettings::Repeats(Repeats::default()));
        }
    }

    /// Sets the tools whose old calls get a fixed text in place of each argument that is longer
    /// than that text. An empty list means all tools, `None` means no tool.
    pub fn set_cleared_inputs(&mut self, tools: Option<Vec<String>>) {
        let style = DigestStyle::Placeholder;
        self.passes
            .retain(|pass| !matches!(pass, PassSettings::Arguments(pass) if pass.style == style));
        let roles = FieldRole::ALL.to_vec();
        let cleared = tools.map(|tools| Arguments { roles, style, tools, ..Arguments::default() });
        self.passes.extend(cleared.map(PassSettings::Arguments));
    }

    /// Sets the size in bytes up to which each pass leaves a text unchanged. The pass that removes
    /// reasoning has no such size.
    pub fn set_min_bytes(&mut self, bytes: u64) {
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
    }

    /// Sets the size in bytes up to which the passes for results leave a result unchanged.
    pub fn set_min_result_bytes(&mut self, bytes: u64) {
        for pass in &mut self.passes {
            if let PassSettings::Results(pass) = pass {
                pass.min_bytes = bytes;
            }
        }
    }

    /// Sets the size in bytes up to which arguments stay unchanged in those passes that shorten the
    /// content of written files. Passes that [`set_cleared_inputs`](Stages::set_cleared_inputs)
    /// added do not change.
    pub fn set_min_content_bytes(&mut self, bytes: u64) {
        for pass in &mut self.passes {
            if let PassSettings::Arguments(pass) = pass
                && pass.roles.contains(&FieldRole::Content)
                && pass.style != DigestStyle::Placeholder
            {
                pass.min_bytes = bytes;
            }
        }
    }
}

fn is_thinking(pass: &PassSettings) -> bool {
    matches!(pass, PassSettings::Thinking(_))
}

fn is_of_repeats(pass: &PassSettings) -> bool {
    matches!(pass, PassSettings::Repeats(_))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::built_in;

    /// The numbers of newest results that the passes of a recipe leave unchanged.
    fn newest(recipe: &mut Recipe) -> Vec<usize> {
        let stages = recipe.stages.both_mut().into_iter();
        let passes = stages.flat_map(|stages| &stages.passes).filter_map(|pass| match pass {
            PassSettings::Results(Results { newest, .. }) => Some(*newest),
            _ => None,
        });
        passes.collect()
    }

    /// A number of results is set once: for the pass that counts them, or for the recipe.
    #[test]
    fn a_number_of_results_is_set_for_the_pass_that_counts_them() {
        let keep = Keep { results: Some(5), ..Keep::default() };
        let mut with_pass = built_in("s06").expect("a built-in recipe");
        with_pass.set_keep(keep);
        assert_eq!(newest(&mut with_pass), [5, 5]);
        assert_eq!(with_pass.keep, Keep { unanswered: true, ..Keep::default() });

        let mut without_pass = built_in("transcript").expect("a built-in recipe");
        let before = newest(&mut without_pass);
        without_pass.set_keep(keep);
        assert_eq!((newest(&mut without_pass), without_pass.keep.results), (before, Some(5)));
    }
}
