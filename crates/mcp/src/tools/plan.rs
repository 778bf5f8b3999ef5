//! `plan`: what compacting a session would do. Nothing is written.

use std::fmt::Write as _;

use epitome::ops::{Compact, CompactReport, OpenSession, Outcome, planned_losses};
use epitome::recipes;
use epitome_passes::Recipe;
use epitome_tokens::O200k;

use super::Library;
use super::losses::describe;
use crate::arguments::Arguments;
use crate::error::ToolError;
use crate::sessions::Sessions;

/// The maximum number of tools, and of files, that are listed: the ones with the largest savings.
const SAVINGS: usize = 5;

impl Library {
    pub(super) fn plan(
        &self,
        sessions: &Sessions<'_>,
        arguments: &Arguments,
    ) -> Result<String, ToolError> {
        let path = sessions.path(arguments.text("session"))?;
        let recipe = self.recipe(arguments.optional_text("recipe"))?;
        let run = self.config.begin_run("mcp");
        let counter = O200k::new();
        let session = OpenSession::new(&self.config, &path);
        let compact = Compact::with_settings(&self.settings, &recipe, &counter, &run);
        let mut losses = None;
        let report = compact.plan(&session, |planned, plan| {
            if planned == path {
                let found = planned_losses(&self.config, &self.settings, planned, plan, &counter);
                losses = Some(found);
            }
        })?;
        report.check()?;
        let mut answer = text_of(&report);
        if report.file.outcome != Outcome::Nothing
            && let Some(losses) = losses.transpose()?
        {
            describe(&mut answer, &losses);
        }
        Ok(answer)
    }

    /// The recipe with this name; without a name, the recipe of the settings or the default. A name
    /// with `/`, `\` or `.` is refused: it may be a path, and a model must not be able to read
    /// other files of this machine.
    fn recipe(&self, name: Option<&str>) -> Result<Recipe, ToolError> {
        if let Some(name) = name.filter(|name| name.contains(['/', '\\', '.'])) {
            return Err(ToolError::new(format!("`{name}` is not the name of a recipe")));
        }
        Ok(recipes::resolve(&self.config, &self.settings, name)?)
    }
}

fn text_of(report: &CompactReport) -> String {
    let mut answer = String::new();
    let file = &report.file;
    let verb = match file.outcome {
        Outcome::Nothing => "Nothing to do",
        Outcome::Planned | Outcome::Compacted => "Would compact",
    };
    let _ = writeln!(answer, "{verb}, recipe {}. Nothing was written.", report.recipe);
    for row in file.sizes(report.counter).into_iter().chain(report.sizes_with_parts()) {
        let before = &row.words.before;
        let after = &row.words.after;
        let percent = row.percent();
        let _ = writeln!(answer, "{}: {before} → {after} ({percent}) {}", row.name, row.unit);
    }
    let edits = epitome_render::edits(&file.edits);
    if !edits.is_empty() {
        let _ = writeln!(answer, "edits: {}", edits.join(", "));
    }
    for (title, savings) in [("tools", &file.savings.tools), ("files", &file.savings.files)] {
        let savings = savings.iter().take(SAVINGS);
        let savings: Vec<String> =
            savings.map(|saving| format!("{} {}", saving.of, saving.tokens)).collect();
        if !savings.is_empty() {
            let _ = writeln!(answer, "saves most by {title}: {}", savings.join(", "));
        }
    }
    for note in &file.notes {
        let _ = writeln!(answer, "note: {note}");
    }
    answer
}
