//! `losses`: what compactions took out of a session's context.

use std::fmt::Write as _;

use epitome::ops::{
    CompactionLosses, LossGroup, LossMembers, LossReport, OpenSession, session_losses,
};
use epitome_tokens::O200k;

use super::{Library, one_line};
use crate::arguments::Arguments;
use crate::error::ToolError;
use crate::sessions::Sessions;

/// The maximum number of characters of a name: of a removed text, or of the program that made the
/// compaction.
const NAME: usize = 100;

impl Library {
    pub(super) fn losses(
        &self,
        sessions: &Sessions<'_>,
        arguments: &Arguments,
    ) -> Result<String, ToolError> {
        let path = sessions.path(arguments.text("session"))?;
        let session = OpenSession::new(&self.config, &path);
        let report = session_losses(&session, &self.settings, &O200k::new())?;
        Ok(text_of(&report))
    }
}

fn text_of(report: &LossReport) -> String {
    let mut answer = String::new();
    if report.compactions.is_empty() {
        answer.push_str("No compaction is known of this session.\n");
    }
    for (idx, compaction) in report.compactions.iter().enumerate() {
        let maker = one_line(&compaction.maker(report.agent), NAME);
        let tokens = compaction.context_tokens;
        let _ = writeln!(
            answer,
            "Compaction {} of {}, {maker}: {} → {} tokens",
            idx + 1,
            report.compactions.len(),
            tokens.before,
            tokens.after
        );
        describe(&mut answer, compaction);
    }
    for note in &report.notes {
        let _ = writeln!(answer, "Note: {note}");
    }
    answer
}

/// Describes what a compaction removed, or would remove, in groups, the most important group first.
/// Most removed texts have a reference, with which the tool `show` returns them.
pub(super) fn describe(answer: &mut String, compaction: &CompactionLosses) {
    let verb = if compaction.is_planned() { "It would take" } else { "Left the context" };
    let _ = writeln!(answer, "{verb}: {}.", compaction.amounts());
    let _ = writeln!(answer, "{}", compaction.facts_sentence());
    for LossGroup { title, members, .. } in compaction.groups() {
        match members {
            LossMembers::Pieces(pieces) => {
                let _ = writeln!(answer, "{title}:");
                for piece in pieces {
                    let reference = piece.lost.references.first();
                    let reference = reference.map(ToString::to_string).unwrap_or_default();
                    let name = one_line(&piece.lost.name, NAME);
                    let details = piece.details().join(" · ");
                    let _ = writeln!(answer, "  {reference} {name} ({details})");
                }
            }
            LossMembers::Facts(names) | LossMembers::Files(names) => {
                let _ = writeln!(answer, "{title}: {}", names.join(", "));
            }
            LossMembers::None => {
                let _ = writeln!(answer, "{title}");
            }
        }
    }
}
