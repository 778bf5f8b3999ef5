//! `task`: work for a sub-agent. The machine runs the sub-agent as a second machine.

use serde::Deserialize;

use epitome_model::ToolKind;

use super::{Fold, Tool, described, parsed};
use crate::permissions::Access;

/// The name of the tool.
pub const TASK: &str = "task";

pub(super) const TOOL: Tool = Tool {
    name: TASK,
    kind: ToolKind::Task,
    subject: |it| described(it, &["{description}"]),
    fold: Fold::Beginning,
    description: "Gives a piece of work to a sub-agent with a context of its own, and returns \
                  its answer only. Use it for searches and studies that would fill this \
                  conversation; several run at the same time. It knows nothing of this \
                  conversation: say in the prompt all it needs, and what to answer.",
    parameters: concat!(
        r#"{"type":"object","properties":{"description":{"type":"string","description":"The "#,
        r#"work in a few words"},"prompt":{"type":"string","description":"What to do and "#,
        r#"what to answer"}},"required":["description","prompt"]}"#,
    ),
    access: |_, arguments| {
        task(arguments)?;
        Ok(Access::Own)
    },
    planned: None,
    run: |_, _, _, _| Err("the machine runs this call".to_owned()),
};

/// Work for a sub-agent.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Task {
    /// What the sub-agent has to do, and what it has to answer.
    pub prompt: String,
}

/// Parses the task of a call.
///
/// # Errors
///
/// Why the task is invalid, for the model.
pub fn task(arguments: &str) -> Result<Task, String> {
    let task: Task = parsed(arguments)?;
    if task.prompt.trim().is_empty() {
        return Err("the prompt is empty".to_owned());
    }
    Ok(task)
}
