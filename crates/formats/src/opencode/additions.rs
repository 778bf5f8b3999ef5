//! What epitome can add to OpenCode's settings.

use serde_json::json;

use crate::addition::{Addition, AdditionForm};

/// An MCP server for all projects of the user (<https://opencode.ai/docs/mcp-servers/>).
pub const MCP: Addition = Addition {
    file: "opencode.json",
    form: AdditionForm::Member {
        keys: &["mcp", "epitome"],
        value: |words| json!({ "type": "local", "command": words, "enabled": true }),
    },
};
