//! Messages of the protocol: messages from the editor are parsed here, messages to the editor are
//! built here.
//!
//! The protocol's own library has types for all messages. It is not used, because it would make
//! the JSON crate keep the order of keys in the whole program (`docs/why.md`). A test validates
//! the messages that are sent against the library's schema.

use std::path::PathBuf;

use serde::Deserialize;
use serde_json::{Value, json};

/// The version of the protocol.
pub(super) const VERSION: u64 = 1;

/// The JSON-RPC code for invalid parameters.
pub(super) const INVALID_PARAMS: i64 = -32602;
/// The JSON-RPC code for an internal error.
pub(super) const INTERNAL: i64 = -32603;
pub(super) const METHOD_NOT_FOUND: i64 = -32601;
pub(super) const PARSE_ERROR: i64 = -32700;

/// A JSON-RPC message: a request, a notification or a response.
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

/// The error with which a request is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Error {
    pub(super) code: i64,
    pub(super) message: String,
}

impl Error {
    /// An error for a request with invalid parameters.
    pub(super) fn wrong(message: impl Into<String>) -> Error {
        Error { code: INVALID_PARAMS, message: message.into() }
    }

    /// An internal error.
    pub(super) fn failed(message: impl Into<String>) -> Error {
        Error { code: INTERNAL, message: message.into() }
    }

    pub(super) fn value(&self) -> Value {
        json!({"code": self.code, "message": self.message})
    }
}

/// The parameters of `initialize`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Initialize {
    pub(super) client_capabilities: ClientCapabilities,
}

/// The capabilities of an editor, each an object. An editor without a capability leaves its object
/// out.
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

/// The parameters of `session/new`, `session/load` and `session/resume`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OpenSession {
    pub(super) cwd: PathBuf,
    /// The id of an existing session; `None` for a new session.
    #[serde(default)]
    pub(super) session_id: Option<String>,
    #[serde(default)]
    pub(super) mcp_servers: Vec<McpServer>,
}

/// An MCP server of the editor.
#[derive(Debug, Deserialize)]
pub(super) struct McpServer {
    pub(super) name: String,
    /// The name or path of the program, if the server is a program.
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
    /// The kind of connection: `None` or `stdio` for a program, `http` for a URL. Other kinds are
    /// not supported.
    #[serde(default, rename = "type")]
    pub(super) kind: Option<String>,
}

/// An environment variable of a program, or a header of HTTP requests.
#[derive(Debug, Deserialize)]
pub(super) struct Pair {
    pub(super) name: String,
    pub(super) value: String,
}

/// The parameters of `session/cancel` and `session/close`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OfSession {
    pub(super) session_id: String,
}

/// The parameters of `session/prompt`.
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

/// An embedded file.
#[derive(Debug, Deserialize)]
pub(super) struct Resource {
    pub(super) uri: String,
    /// The text of the file; `None` if the file is not text.
    #[serde(default)]
    pub(super) text: Option<String>,
}

/// The parameters of `session/set_config_option`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SetOption {
    pub(super) session_id: String,
    pub(super) config_id: String,
    pub(super) value: Value,
}

/// A content block of the protocol that is text.
pub(super) fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

/// An update of a session: the members of an object, to which the kind of the update is added.
pub(super) fn update(kind: &str, mut members: Value) -> Value {
    members["sessionUpdate"] = kind.into();
    members
}
