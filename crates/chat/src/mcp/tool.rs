//! The tools of a server, as they are offered to the model.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::tools::MoreTool;

/// The prefix of the names of tools. The names of the server and of the tool follow.
const PREFIX: &str = "mcp__";

/// The maximum number of characters of a name that every provider accepts.
const NAME: usize = 64;
/// The maximum number of characters of a description.
const ABOUT: usize = 8_000;
/// The maximum number of bytes of the schema of the arguments.
const SCHEMA: usize = 64 << 10;

/// The tools of all servers, ordered by the names that the model sees. Each gets a unique name that
/// providers accept. A tool whose parameters are invalid or too long is left out.
pub(super) fn named<'s>(
    listed: impl Iterator<Item = (&'s str, Vec<rmcp::model::Tool>)>,
) -> Vec<MoreTool> {
    let mut taken = HashSet::new();
    let mut all = Vec::new();
    for (server, mut tools) in listed {
        // A server may list its tools in a different order each time.
        tools.sort_by(|one, other| one.name.cmp(&other.name));
        for tool in tools {
            let Some(parameters) = parameters(&tool) else { continue };
            let name = free(&name(server, &tool.name), &mut taken);
            let description = clean(tool.description.as_deref().unwrap_or_default(), ABOUT);
            let server = server.to_owned();
            let tool = tool.name.into_owned();
            all.push(MoreTool { name, description, parameters, server, tool });
        }
    }
    all.sort_by(|one, other| one.name.cmp(&other.name));
    all
}

fn name(server: &str, tool: &str) -> String {
    let tool = tool.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' });
    let name = format!("{PREFIX}{server}__{}", tool.collect::<String>());
    name[..name.len().min(NAME)].to_owned()
}

/// Returns a name that is not in `taken`, and adds it to `taken`. It is `name`, truncated to
/// [`NAME`] characters. If that is taken, the name ends in the first free number from 2 on.
fn free(name: &str, taken: &mut HashSet<String>) -> String {
    let mut names = (1..).map(|n| {
        let end = if n == 1 { String::new() } else { format!("_{n}") };
        format!("{}{end}", &name[..name.len().min(NAME - end.len())])
    });
    let free = names.find(|name| !taken.contains(name)).unwrap_or_default();
    taken.insert(free.clone());
    free
}

/// The schema of a tool's arguments; `None` if it is invalid or too long.
fn parameters(tool: &rmcp::model::Tool) -> Option<String> {
    let mut schema = Value::Object((*tool.input_schema).clone());
    if schema["type"].is_null() {
        schema["type"] = json!("object");
    }
    cleaned(&mut schema);
    let text = schema.to_string();
    (schema["type"] == "object" && text.len() <= SCHEMA).then_some(text)
}

/// Cleans all texts of a schema. Its keys, among them the names of arguments, must not change.
fn cleaned(value: &mut Value) {
    match value {
        Value::String(text) => *text = clean(text, ABOUT),
        Value::Array(list) => list.iter_mut().for_each(cleaned),
        Value::Object(members) => members.values_mut().for_each(cleaned),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Removes control characters other than line feeds and tabs from a text of a server, and
/// characters that hide, reverse or tag text. If the result has more than `longest` characters,
/// truncates it to `longest` and adds `…`.
pub(super) fn clean(text: &str, longest: usize) -> String {
    let mut seen = text.chars().filter(|c| {
        let hides = matches!(*c,
'\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
| '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
| '\u{e0000}'..='\u{e007f}');
        !hides && (!c.is_control() || matches!(c, '\n' | '\t'))
    });
    let mut short: String = seen.by_ref().take(longest).collect();
    if seen.next().is_some() {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str, about: &str, schema: Value) -> rmcp::model::Tool {
        let tool = json!({"name": name, "description": about, "inputSchema": schema});
        serde_json::from_value(tool).unwrap()
    }

    #[test]
    fn names_and_texts_of_others_are_cleaned_and_each_name_is_there_once() {
        let about = "Reads\u{1b}[2J\u{202e} it.\u{e0041}\n";
        let nested = json!({"properties": {"a": {"description": "x\u{7}\u{200b}y"}}});
        let tools = vec![
            tool("b/c d", about, nested),
            tool("b.c\u{1b}d", "", json!({"type": "object"})),
            tool(&"x".repeat(100), "", json!({})),
            tool(&"x".repeat(101), "", json!({})),
            tool("list", "", json!({"type": "array"})),
            tool("long", "", json!({"title": "x".repeat(SCHEMA)})),
        ];
        let named = named([("srv", tools)].into_iter());
        let names: Vec<&str> = named.iter().map(|tool| tool.name.as_str()).collect();
        let long = format!("mcp__srv__{}", "x".repeat(54));
        let second = format!("mcp__srv__{}_2", "x".repeat(52));
        let expect = ["mcp__srv__b_c_d", "mcp__srv__b_c_d_2", "mcp__srv__long", &second, &long];
        assert_eq!(names, expect);
        let first = named.iter().find(|tool| tool.tool == "b/c d").unwrap();
        assert_eq!(first.description, "Reads[2J it.\n");
        let schema = r#"{"properties":{"a":{"description":"xy"}},"type":"object"}"#;
        assert_eq!(first.parameters, schema);
    }
}
