//! Hooks: how an agent is configured to call a program when a session ends (OpenCode: after each
//! answer), and what that program receives.
//!
//! The settings are data here; the caller edits the files.

use serde_json::{Value, json};

/// The end-of-session hook of one agent. OpenCode has none: its hook runs after each answer.
#[derive(Debug)]
pub struct Hook {
    /// The file that is changed or created, relative to the agent's settings directory.
    pub file: &'static str,
    /// The setting in that file.
    pub setting: Setting,
    /// What the user still has to do after the change, as a sentence; `None` if there is nothing to
    /// do.
    pub afterwards: Option<&'static str>,
}

/// The form of the setting.
#[derive(Clone, Copy, Debug)]
pub enum Setting {
    /// An element of a list in a JSON file. The file may contain comments if the agent accepts
    /// them.
    Listed {
        /// The keys that lead to the list.
        list: &'static [&'static str],
        /// Makes the element of the list that runs a shell command.
        entry: fn(command: &str) -> Value,
    },
    /// A separate file. The function returns its content; `words` are the program that the file
    /// calls, and the arguments of the program.
    Own(fn(words: &[&str]) -> String),
}

/// A session that ended, as reported by its agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EndedSession {
    /// The id of the session.
    pub id: Option<String>,
    /// The path of the session's file.
    pub file: Option<String>,
    /// The working directory of the session.
    pub cwd: Option<String>,
    /// The id of the agent's process. Only hooks that are files written by epitome report it.
    pub process: Option<u32>,
}

/// Parses what a hook receives: a JSON object with the keys that Claude Code uses
/// (<https://code.claude.com/docs/en/hooks>). Codex and Gemini CLI have adopted these keys, and the
/// files that epitome writes use them. `None` if `input` states neither the id nor the file of a
/// session.
pub fn parse_ended_session(input: &[u8]) -> Option<EndedSession> {
    let input: Value = serde_json::from_slice(input).ok()?;
    let ended = EndedSession {
        id: text(&input["session_id"]),
        file: text(&input["transcript_path"]),
        cwd: text(&input["cwd"]),
        process: input["pid"].as_u64().and_then(|pid| pid.try_into().ok()),
    };
    (ended.id.is_some() || ended.file.is_some()).then_some(ended)
}

/// The text of a value; `None` if the value is not a string, or is empty.
fn text(value: &Value) -> Option<String> {
    value.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

/// A program and its arguments as a command line for a shell.
pub fn command(words: &[&str]) -> String {
    let quoted = words.iter().map(|word| {
        if !word.is_empty() && word.chars().all(needs_no_quotes) {
            (*word).to_owned()
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    });
    quoted.collect::<Vec<_>>().join(" ")
}

fn needs_no_quotes(c: char) -> bool {
    c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c)
}

/// The keys that lead to the list of end-of-session hooks, in settings that have the form of Claude
/// Code's.
pub(crate) const SESSION_END: &[&str] = &["hooks", "SessionEnd"];

/// An element of the list at [`SESSION_END`]. `timeout` is in the agent's unit, seconds or
/// milliseconds. A short one suffices: the command starts another process of epitome and returns at
/// once.
pub(crate) fn entry(command: &str, timeout: u64) -> Value {
    json!({ "hooks": [{ "type": "command", "command": command, "timeout": timeout }] })
}

/// A JavaScript file that epitome writes. It defines the function `tell`, which runs the command
/// `words` and passes the values of a session to it, as JSON on standard input. The code `rest`
/// follows.
pub(crate) fn script(words: &[&str], rest: &str) -> String {
    let words = Value::from(words.to_vec());
    format!(
        "// Written by `epitome install`. `epitome uninstall` removes it.\n\
         import {{ spawnSync }} from \"node:child_process\";\n\n\
         const [program, ...words] = {words};\n\n\
         function tell(told) {{\n  \
           try {{\n    \
             const input = JSON.stringify({{ ...told, pid: process.pid }});\n    \
             const stdio = [\"pipe\", \"ignore\", \"ignore\"];\n    \
             spawnSync(program, words, {{ input, stdio, timeout: 5000 }});\n  \
           }} catch {{\n    \
             // A transcript that is not kept must not disturb the agent.\n  \
           }}\n\
         }}\n\n{rest}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_agent_tells_is_read() {
        let of = |text: &str| parse_ended_session(text.as_bytes());
        let whole = r#"{"session_id":"a","transcript_path":"/s.jsonl","cwd":"/p","pid":7,
                        "hook_event_name":"SessionEnd","reason":"other"}"#;
        let some = |text: &str| Some(text.to_owned());
        let expect = EndedSession {
            id: some("a"),
            file: some("/s.jsonl"),
            cwd: some("/p"),
            process: Some(7),
        };
        assert_eq!(of(whole), Some(expect));
        let expect = EndedSession { id: some("a"), ..EndedSession::default() };
        assert_eq!(of(r#"{"session_id":"a","transcript_path":null,"pid":-1}"#), Some(expect));
        for text in ["", "{}", "[]", "nothing", r#"{"session_id":"","cwd":"/p"}"#] {
            assert_eq!(of(text), None, "{text}");
        }
    }

    #[test]
    fn a_command_means_its_words() {
        for (words, expect) in [
            (&["/usr/bin/epitome", "hook", "pi"][..], "/usr/bin/epitome hook pi"),
            (&["/a b/epitome", "it's", ""], r"'/a b/epitome' 'it'\''s' ''"),
            (&["$(x)", "a;b"], "'$(x)' 'a;b'"),
        ] {
            assert_eq!(command(words), expect);
        }
    }
}
