//! What epitome can add to Gemini CLI's settings.

use crate::addition::{Addition, AdditionForm, MCP_SERVER, mcp_server};

/// An MCP server for all projects of the user.
pub const MCP: Addition = Addition {
    file: "settings.json",
    form: AdditionForm::Member { keys: MCP_SERVER, value: mcp_server },
};
