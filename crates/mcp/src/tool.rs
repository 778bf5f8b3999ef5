//! The tools, and their descriptions for a model.
//!
//! An agent sends the definitions of tools with every request, so each word costs tokens. A test
//! checks that all definitions together have at most 900 tokens.

use std::sync::Arc;

use rmcp::model::{Tool as Definition, ToolAnnotations};
use serde_json::{Map, Value, json};

/// A tool that the server offers to a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// Searches all sessions.
    Search,
    /// Shows the messages around a hit of a search.
    Around,
    /// Shows the text that a stub replaced, or a call or response of a session.
    Show,
    /// Reports what compactions removed from the context of a session.
    Losses,
    /// Finds the sessions with calls that read, changed or named a file.
    Touched,
    /// Finds sessions in which an error occurred, and shows what followed.
    Failed,
    /// Lists the newest sessions of this machine.
    Sessions,
    /// Plans a compaction, and reports what it would remove and save.
    Plan,
}

/// A parameter of a tool.
pub(crate) struct Parameter {
    pub(crate) name: &'static str,
    pub(crate) kind: ParameterKind,
    pub(crate) is_required: bool,
    /// The description for the model; empty if the name is enough.
    about: &'static str,
}

/// The type of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ParameterKind {
    Text,
    Number,
}

const fn required(name: &'static str, about: &'static str) -> Parameter {
    Parameter { name, kind: ParameterKind::Text, is_required: true, about }
}

const fn text(name: &'static str, about: &'static str) -> Parameter {
    Parameter { name, kind: ParameterKind::Text, is_required: false, about }
}

const fn number(name: &'static str, about: &'static str) -> Parameter {
    Parameter { name, kind: ParameterKind::Number, is_required: false, about }
}

/// The parameter that every tool has: the cursor of the page to return.
const CURSOR: Parameter = text("cursor", "");

impl Tool {
    /// All tools.
    pub const ALL: [Tool; 8] = [
        Tool::Search,
        Tool::Around,
        Tool::Show,
        Tool::Losses,
        Tool::Touched,
        Tool::Failed,
        Tool::Sessions,
        Tool::Plan,
    ];

    /// The tool with this name; `None` if there is none.
    pub fn find(name: &str) -> Option<Tool> {
        Tool::ALL.into_iter().find(|tool| tool.name() == name)
    }

    /// The name of the tool.
    pub fn name(self) -> &'static str {
        match self {
            Tool::Search => "search",
            Tool::Around => "around",
            Tool::Show => "show",
            Tool::Losses => "losses",
            Tool::Touched => "touched",
            Tool::Failed => "failed",
            Tool::Sessions => "sessions",
            Tool::Plan => "plan",
        }
    }

    fn about(self) -> &'static str {
        match self {
            Tool::Search => {
                "Full-text search in past coding sessions of all agents on this machine. \
                 \"phrase\", pref*, -not, agent:, project:, role:, session: work."
            }
            Tool::Around => "Messages around a hit.",
            Tool::Show => {
                "The text that a stub `[epitome kREF: …]` replaced; with session also #12 (call) \
                 or @7 (response)."
            }
            Tool::Losses => "What compactions took out of a session's context.",
            Tool::Touched => "Sessions that read or changed a file.",
            Tool::Failed => "Where an error occurred before, and what followed.",
            Tool::Sessions => "Recent sessions, newest first.",
            Tool::Plan => "What compacting a session would remove and save. Changes nothing.",
        }
    }

    fn own_parameters(self) -> &'static [Parameter] {
        match self {
            Tool::Search => &const { [required("query", ""), number("limit", "")] },
            Tool::Around => {
                &const {
                    [
                        required("session", ""),
                        required("at", "as in a hit"),
                        number("messages", "before and after; default 3"),
                    ]
                }
            }
            Tool::Show => {
                &const { [required("ref", ""), text("session", ""), text("lines", "20..40")] }
            }
            Tool::Losses => &const { [required("session", "")] },
            Tool::Touched => &const { [required("path", "or its end")] },
            Tool::Failed => &const { [required("error", "its text")] },
            Tool::Sessions => {
                &const { [text("project", "folder"), text("agent", ""), number("limit", "")] }
            }
            Tool::Plan => &const { [required("session", ""), text("recipe", "")] },
        }
    }

    /// The parameters of the tool.
    pub(crate) fn parameters(self) -> impl Iterator<Item = &'static Parameter> {
        self.own_parameters().iter().chain(std::iter::once(&CURSOR))
    }

    /// The definition of the tool in the protocol.
    pub fn definition(self) -> Definition {
        let mut properties = Map::new();
        for Parameter { name, kind, about, .. } in self.parameters() {
            let kind = match kind {
                ParameterKind::Text => "string",
                ParameterKind::Number => "integer",
            };
            let mut property = Map::from_iter([("type".to_owned(), Value::from(kind))]);
            if !about.is_empty() {
                property.insert("description".to_owned(), Value::from(*about));
            }
            properties.insert((*name).to_owned(), Value::Object(property));
        }
        let needed = self.parameters().filter(|parameter| parameter.is_required);
        let needed: Vec<&str> = needed.map(|parameter| parameter.name).collect();
        let mut schema = Map::new();
        schema.insert("type".to_owned(), json!("object"));
        schema.insert("properties".to_owned(), Value::Object(properties));
        if !needed.is_empty() {
            schema.insert("required".to_owned(), json!(needed));
        }
        let reads = ToolAnnotations::new().read_only(true).open_world(false);
        Definition::new(self.name(), self.about(), Arc::new(schema)).with_annotations(reads)
    }
}

#[cfg(test)]
mod tests {
    use epitome_model::Counter as _;
    use epitome_tokens::O200k;

    use super::*;

    #[test]
    fn all_definitions_together_are_short() {
        let definitions: Vec<Definition> = Tool::ALL.into_iter().map(Tool::definition).collect();
        let text = serde_json::to_string(&definitions).expect("they are JSON");
        let tokens = O200k::new().count(&text);
        assert!(tokens.0 <= 900, "{tokens} tokens: {text}");
    }

    #[test]
    fn a_definition_is_a_schema_of_the_arguments() {
        let definition = serde_json::to_value(Tool::Around.definition()).expect("it is JSON");
        let expect = json!({
            "name": "around",
            "description": "Messages around a hit.",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "session": { "type": "string" },
                    "at": { "type": "string", "description": "as in a hit" },
                    "messages": {
                        "type": "integer", "description": "before and after; default 3",
                    },
                    "cursor": { "type": "string" },
                },
                "required": ["session", "at"],
            },
            "annotations": { "readOnlyHint": true, "openWorldHint": false },
        });
        assert_eq!(definition, expect);
    }
}
