//! `todo`: the to-do list.

use serde::Deserialize;

use epitome_model::ToolKind;

use super::{Fold, Tool, parsed};
use crate::permissions::Access;

/// The name of the tool.
pub const TODO: &str = "todo";

pub(super) const TOOL: Tool = Tool {
    name: TODO,
    kind: ToolKind::Todo,
    subject: |_| Some(String::new()),
    fold: Fold::All,
    description: "Replaces the list of what is to be done. Use it for work of several steps, and \
                  after each step; have one item under way at a time.",
    parameters: concat!(
        r#"{"type":"object","properties":{"items":{"type":"array","items":{"type":"object","#,
        r#""properties":{"text":{"type":"string"},"state":{"type":"string","enum":["open","#,
        r#""doing","done"]}},"required":["text","state"]}}},"required":["items"]}"#,
    ),
    access: |_, _| Ok(Access::Own),
    planned: None,
    run: |_, arguments, _, _| {
        let lines: Vec<String> = todo(arguments)?.iter().map(Todo::line).collect();
        Ok(if lines.is_empty() { "the list is empty".to_owned() } else { lines.join("\n") })
    },
};

#[derive(Deserialize)]
struct Arguments {
    items: Vec<Todo>,
}

/// An item of the to-do list.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Todo {
    /// The text of the item.
    pub text: String,
    /// The progress of the item.
    pub state: TodoState,
}

/// The progress of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TodoState {
    /// The item has not been begun.
    Open,
    /// The item is in progress.
    Doing,
    /// The item is done.
    Done,
}

/// Parses the list of a call.
///
/// # Errors
///
/// Why the list is invalid, for the model.
pub fn todo(arguments: &str) -> Result<Vec<Todo>, String> {
    let Arguments { items } = parsed(arguments)?;
    Ok(items)
}

impl Todo {
    fn line(&self) -> String {
        let mark = match self.state {
            TodoState::Open => "[ ]",
            TodoState::Doing => "[>]",
            TodoState::Done => "[x]",
        };
        format!("{mark} {}", self.text)
    }
}
