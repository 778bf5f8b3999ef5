//! Formats the arguments of a call as lines.

use epitome_model::short;
use serde_json::Value;

/// The texts and numbers in the arguments of a call, without keys, one per line. An element of an
/// array is one line with all its values. `None` if there are no texts or numbers, or if the
/// arguments are not JSON.
pub fn argument_lines(raw: &[u8]) -> Option<String> {
    let value: Value = serde_json::from_slice(raw).ok()?;
    let value = match value.as_str().map(serde_json::from_str) {
        Some(Ok(inner)) => inner,
        Some(Err(_)) | None => value,
    };
    let mut lines = Vec::new();
    list(&value, &mut lines);
    let text = lines.join("\n");
    (!text.trim().is_empty()).then_some(text)
}

/// Adds the lines of a value. Each element of an array is one line. Empty texts, truth values and
/// nulls are left out.
fn list(value: &Value, lines: &mut Vec<String>) {
    match value {
        Value::Object(members) => members.values().for_each(|value| list(value, lines)),
        Value::Array(elements) => {
            for element in elements {
                let mut words = Vec::new();
                list(element, &mut words);
                let words: Vec<String> = words.iter().map(|it| short(it, 400)).collect();
                if !words.is_empty() {
                    lines.push(format!("- {}", words.join(" · ")));
                }
            }
        }
        Value::String(text) if !text.trim().is_empty() => lines.push(text.trim().to_owned()),
        Value::Number(number) => lines.push(number.to_string()),
        Value::Bool(_) | Value::Null | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_list_has_a_line_for_each_element_whatever_its_keys_are() {
        let todos = json!([{ "a": "Write", "b": 3, "c": "done" }, { "a": " Run ", "b": true }]);
        let mixed = json!({ "plan": ["one", "", { "a": null }], "why": "because" });
        for (value, expect) in [
            (json!({ "todos": todos }), Some("- Write · 3 · done\n- Run")),
            (mixed, Some("- one\nbecause")),
            (json!(["x"]), Some("- x")),
            (json!(json!({ "a": "in a text" }).to_string()), Some("in a text")),
            (json!({ "a": null, "b": [], "c": " " }), None),
        ] {
            assert_eq!(argument_lines(value.to_string().as_bytes()).as_deref(), expect, "{value}");
        }
    }
}
