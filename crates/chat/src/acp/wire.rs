//! Messages of the protocol: what an editor sends is parsed here, what it gets is made here.
//!
//! The protocol's own library has types for all of it, and switches on that JSON keeps the order of
//! keys, in the whole program (`docs/why.md`). A test checks what is sent against the schema that
//! the library has of it.

use std::path::PathBuf;

use serde::Deserialize;
use serde_json::{Value, json};

/// The version of the protocol.
pub(super) const VERSION: u64 = 1;

/// The request was wrong.
pub(super) const INVALID_PARAMS: i64 = -32602;
/// Something went wrong here.
pub(super) const INTERNAL: i64 = -32603;
pub(super) const METHOD_NOT_FOUND: i64 = -32601;
pub(super) const PARSE_ERROR: i64 = -32700;

/// A message, whatever it is.
#[derive(Debug, Deserialize)]
pub(super) struct Message {
    #[serde(default)]
    pub(super) id: Option<Value>,
    #[serde(default)]
    pub(super) method: Option<String>,
    #[serde(default)]
    pub(super) params: Option<Value>,
    #[serde(default)]
    pub(super) result: Option<Value>,
    #[serde(default)]
    pub(super) error: Option<Value>,
}

/// Why a request has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Error {
    pub(super) code: i64,
    pub(super) message: String,
}

impl Error {
    /// A request that is wrong, and why.
    pub(super) fn wrong(message: impl Into<String>) -> Error {
        Error { code: INVALID_PARAMS, message: message.into() }
    }

    /// Something failed here.
    pub(super) fn failed(message: impl Into<String>) -> Error {
        Error { code: INTERNAL, message: message.into() }
    }

    pub(super) fn value(&self) -> Value {
        json!({"code": self.code, "message": self.message})
    }
}

/// `initialize`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Initialize {
    pub(super) client_capabilities: ClientCapabilities,
}

/// What an editor can do. What is there is an object, whatever it holds.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ClientCapabilities {
    pub(super) session: Option<ClientSession>,
    pub(super) elicitation: Option<Elicitation>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ClientSession {
    pub(super) compaction: Option<Value>,
    pub(super) notices: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Elicitation {
    pub(super) form: Option<Value>,
}

/// `session/new`, `session/load` and `session/resume`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OpenSession {
    pub(super) cwd: PathBuf,
    /// None for a new one.
    #[serde(default)]
    pub(super) session_id: Option<String>,
    #[serde(default)]
    pub(super) mcp_servers: Vec<McpServer>,
}

/// An MCP server that an editor names.
#[derive(Debug, Deserialize)]
pub(super) struct McpServer {
    pub(super) name: String,
    /// A program, if it has one.
    #[serde(default)]
    pub(super) command: Option<String>,
    #[serde(default)]
    pub(super) args: Vec<String>,
    #[serde(default)]
    pub(super) env: Vec<Pair>,
    #[serde(default)]
    pub(super) url: Option<String>,
    #[serde(default)]
    pub(super) headers: Vec<Pair>,
    /// None for a program.
    #[serde(default, rename = "type")]
    pub(super) kind: Option<String>,
}

/// A variable or a header.
#[derive(Debug, Deserialize)]
pub(super) struct Pair {
    pub(super) name: String,
    pub(super) value: String,
}

/// `session/cancel` and `session/close`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OfSession {
    pub(super) session_id: String,
}

/// `session/prompt`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Prompt {
    pub(super) session_id: String,
    pub(super) prompt: Vec<ContentBlock>,
}

/// A part of a message of the user.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum ContentBlock {
    Text {
        text: String,
    },
    ResourceLink {
        uri: String,
    },
    Resource {
        resource: Resource,
    },
    Image,
    Audio,
    #[serde(other)]
    Unknown,
}

/// A file that is sent along.
#[derive(Debug, Deserialize)]
pub(super) struct Resource {
    pub(super) uri: String,
    /// None if it is no text.
    #[serde(default)]
    pub(super) text: Option<String>,
}

/// `session/set_config_option`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SetOption {
    pub(super) session_id: String,
    pub(super) config_id: String,
    pub(super) value: Value,
}

/// A block of text.
pub(super) fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

/// An update of a session.
pub(super) fn update(kind: &str, mut members: Value) -> Value {
    members["sessionUpdate"] = kind.into();
    members
}
