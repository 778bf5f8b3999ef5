//! A tool that a request offers to the model.

use epitome_model::encode;

/// A tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tool<'a> {
    /// The name of the tool: letters, digits, `_` and `-`, at most 64 characters.
    pub name: &'a str,
    /// What the tool does, and when to call it.
    pub description: &'a str,
    /// The JSON Schema of the tool's arguments: the text of a JSON object.
    pub parameters: &'a str,
}

/// The JSON Schema of one optional string argument.
///
/// ```
/// let schema = epitome_api::text_argument("focus", "What to keep");
/// assert_eq!(
///     schema,
///     r#"{"type":"object","properties":{"focus":{"type":"string","description":"What to keep"}}}"#
/// );
/// ```
pub fn text_argument(name: &str, description: &str) -> String {
    let name = encode(name);
    let description = encode(description);
    let text = format!(r#"{{"type":"string","description":{description}}}"#);
    format!(r#"{{"type":"object","properties":{{{name}:{text}}}}}"#)
}
