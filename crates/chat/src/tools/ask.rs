//! `ask`: a question to the user. The machine handles it, because only the interface can ask the
//! user.

use serde::Deserialize;

use epitome_model::ToolKind;

use super::{Fold, Tool, described, parsed};
use crate::permissions::Access;

/// The name of the tool.
pub const ASK: &str = "ask";

pub(super) const TOOL: Tool = Tool {
    name: ASK,
    kind: ToolKind::Ask,
    subject: |it| described(it, &["{question}"]),
    fold: Fold::Beginning,
    description: "Asks the user a question, and returns the answer. Use it only if you cannot \
                  find out by yourself and a wrong guess would cost work.",
    parameters: concat!(
        r#"{"type":"object","properties":{"question":{"type":"string"},"choices":{"type":"#,
        r#""array","items":{"type":"string"},"description":"Answers to choose from, at most "#,
        r#"9; the user may answer something else"}},"required":["question"]}"#,
    ),
    access: |_, arguments| {
        question(arguments)?;
        Ok(Access::Own)
    },
    planned: None,
    run: |_, _, _, _| Err("the machine has this call answered".to_owned()),
};

/// The maximum number of choices of a question.
const CHOICES: usize = 9;

/// A question to the user.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Question {
    /// The question.
    pub question: String,
    /// Answers to choose from; the user may answer something else.
    #[serde(default)]
    pub choices: Vec<String>,
}

/// The question that a call asks.
///
/// # Errors
///
/// Why the question is invalid, for the model.
pub fn question(arguments: &str) -> Result<Question, String> {
    let question: Question = parsed(arguments)?;
    if question.question.trim().is_empty() {
        return Err("the question is empty".to_owned());
    }
    if question.choices.len() > CHOICES {
        return Err(format!("there are more than {CHOICES} choices"));
    }
    Ok(question)
}
