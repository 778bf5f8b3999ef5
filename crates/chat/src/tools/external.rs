//! Tools of MCP servers.

use std::fmt;

use epitome_llm::Stop;

use super::Outcome;

/// A tool of an MCP server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MoreTool {
    /// The name that the model sees: `mcp__SERVER__TOOL`.
    pub name: String,
    /// The description of the tool that the model gets.
    pub description: String,
    /// The JSON Schema of the tool's arguments.
    pub parameters: String,
    /// The name of the server.
    pub server: String,
    /// The name that the server itself gives the tool.
    pub tool: String,
}

/// A source of further tools.
pub trait MoreTools: fmt::Debug + Send + Sync {
    /// The current tools, in a stable order.
    fn tools(&self) -> Vec<MoreTool>;

    /// Calls a tool, and waits for its result.
    ///
    /// # Errors
    ///
    /// The error, for the model.
    fn call(&self, tool: &MoreTool, arguments: &str, stop: &Stop) -> Outcome;
}
