//! Tools of MCP servers.

use std::fmt;

use epitome_llm::Stop;

use super::Outcome;

/// A tool of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MoreTool {
    /// The name under which it is offered: `mcp__SERVER__TOOL`.
    pub name: String,
    /// The description of the tool that the model gets.
    pub description: String,
    /// The JSON Schema of its arguments.
    pub parameters: String,
    /// The server.
    pub server: String,
    /// The server's own name of the tool.
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
