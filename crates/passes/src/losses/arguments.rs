//! Extracts those parts of a call's arguments that depend on the session and not on the tool.

use epitome_model::ToolKind;
use serde_json::Value;

/// The texts in the arguments of a call, one per line. Names of parameters are left out. Numbers
/// are left out if the call has a target: they are timeouts or line ranges. Of a script that calls
/// tools, only the string literals are included.
pub(super) fn words_of(arguments: &str, kind: ToolKind, has_target: bool) -> String {
    let Ok(value) = serde_json::from_str(arguments) else {
        // Arguments that are not JSON are a patch or another plain text.
        let all = if kind.changes_file() { String::new() } else { strings(arguments) };
        return if all.is_empty() { arguments.to_owned() } else { all };
    };
    let mut text = String::new();
    add(&value, !has_target, &mut text);
    text
}

fn add(value: &Value, with_numbers: bool, text: &mut String) {
    match value {
        Value::String(it) => {
            text.push_str(it);
            text.push('\n');
        }
        Value::Number(it) if with_numbers => {
            text.push_str(&it.to_string());
            text.push('\n');
        }
        Value::Array(all) => all.iter().for_each(|it| add(it, with_numbers, text)),
        Value::Object(all) => all.values().for_each(|it| add(it, with_numbers, text)),
        Value::Number(_) | Value::Null | Value::Bool(_) => {}
    }
}

/// The string literals of a script, one per line, without keys (`"workdir": …`).
fn strings(script: &str) -> String {
    let mut text = String::new();
    let mut rest = script.chars().peekable();
    let mut last = ' ';
    while let Some(quote) = rest.next() {
        // An apostrophe after a letter is a part of a word and does not begin a string.
        let is_quote = matches!(quote, '"' | '`') || quote == '\'' && !last.is_alphanumeric();
        last = quote;
        if !is_quote {
            continue;
        }
        let start = text.len();
        while let Some(c) = rest.next() {
            match c {
                '\\' => text.extend(rest.next().map(unescaped)),
                c if c == quote => break,
                c => text.push(c),
            }
        }
        text.push('\n');
        while rest.next_if(|c| c.is_whitespace()).is_some() {}
        if rest.peek() == Some(&':') {
            text.truncate(start);
        }
    }
    text
}

fn unescaped(c: char) -> char {
    match c {
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        c => c,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_of_parameters_are_left_out() {
        use ToolKind::{Other, Patch, Read, Shell};
        let cases = [
            (
                r#"{"cmd": "cargo test", "workdir": "/p", "yield_time_ms": 30000}"#,
                Shell,
                "cargo test\n/p\n",
            ),
            (r#"{"file_path": "a.rs", "offset": 120, "limit": 40}"#, Read, "a.rs\n"),
            (r#"{"issue": 1263, "labels": ["bug", 7], "all": true}"#, Other, "1263\nbug\n7\n"),
            (
                "text(await tools.exec_command({\"cmd\":\"cat \\\"a b\\\"\\nls\",\
                 \"yield_time_ms\":30000, \"max_output_tokens\" : 20000}));",
                Shell,
                "cat \"a b\"\nls\n",
            ),
            (
                "const it = `src/x.rs`; // it isn't one\ntools.read({path: 'b.rs', n: 3})",
                Shell,
                "src/x.rs\nb.rs\n",
            ),
            // A text that is no script is returned whole.
            ("git status", Shell, "git status"),
            (
                "*** Update File: \"a.rs\"\n-old\n+new",
                Patch,
                "*** Update File: \"a.rs\"\n-old\n+new",
            ),
        ];
        for (arguments, kind, expect) in cases {
            assert_eq!(words_of(arguments, kind, kind != Other), expect, "{arguments}");
        }
    }
}
