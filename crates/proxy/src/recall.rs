//! Removed texts that a model asks for.

use epitome_api::Response;
use epitome_model::{Block, Ref};

/// The references in the arguments of the calls of a response, for example that of the shell
/// command `epitome show k7f3a9c2`.
pub(crate) fn named_references(response: &Response) -> Vec<Ref> {
    let source = &response.source;
    let calls = response.entry.blocks.iter().filter_map(|block| match block {
        Block::Call(call) => Some(call),
        _ => None,
    });
    let texts = calls.flat_map(|call| &call.fields).map(|field| field.text.read(source));
    let mut found = Vec::new();
    for text in texts {
        let words = text.split(|c: char| !c.is_ascii_alphanumeric());
        // Shorter words are no references: a reference has `k` and at least `Ref::DIGITS` digits.
        let long = words.filter(|word| word.len() > Ref::DIGITS && word.starts_with('k'));
        found.extend(long.filter_map(|word| word.parse::<Ref>().ok()));
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn references_in_calls_are_found() {
        let api = epitome_api::find_api("anthropic").expect("an API");
        let body = json!({"type": "message", "role": "assistant", "content": [
            {"type": "text", "text": "See k0000001."},
            {"type": "tool_use", "id": "a", "name": "Bash",
                "input": {"command": "epitome show k7f3a9c2 | grep kernel"}},
            {"type": "tool_use", "id": "b", "name": "mcp__epitome__show",
                "input": {"ref": "k1c0ffee", "lines": "1..40"}},
        ]});
        let response = api.response(body.to_string().as_bytes()).expect("a response");
        let found: Vec<String> =
            named_references(&response).iter().map(ToString::to_string).collect();
        assert_eq!(found, ["k7f3a9c2", "k1c0ffee"]);
    }
}
