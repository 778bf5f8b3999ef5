//! How agents are told to call a program when a session ends, and what they tell it then.
//!
//! What is written is data here; the driver edits the files.

use serde_json::{Value, json};

/// How one agent calls a program when a session ends.
#[derive(Debug)]
pub struct Hook {
    /// The agent, as its format is called.
    pub agent: &'static str,
    /// Where it is told to, below the folder of its settings.
    pub file: &'static str,
    /// What stands there.
    pub setting: Setting,
    /// What the user has still to do, as a sentence.
    pub afterwards: Option<&'static str>,
}

/// What an agent reads.
#[derive(Clone, Copy, Debug)]
pub enum Setting {
    /// An entry of a list in a file of JSON, with comments where the agent takes them.
    Listed {
        /// The keys that lead to the list.
        list: &'static [&'static str],
        /// The entry that calls a command of the shell.
        entry: fn(command: &str) -> Value,
    },
    /// A file of its own that calls a program with arguments.
    Own(fn(words: &[&str]) -> String),
}

/// A session that ended, as its agent tells it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ended {
    /// Its id.
    pub id: Option<String>,
    /// Its file.
    pub file: Option<String>,
    /// The folder it was run in.
    pub cwd: Option<String>,
    /// The number of the process that ran it, where our own words tell it.
    pub process: Option<u32>,
}

/// Reads what an agent tells a hook: the keys are those of Claude Code, which Codex and Gemini CLI
/// took over (<https://code.claude.com/docs/en/hooks>), and which our own files use.
pub fn ended(told: &[u8]) -> Option<Ended> {
    let told: Value = serde_json::from_slice(told).ok()?;
    let text = |key: &str| told[key].as_str().filter(|it| !it.is_empty()).map(str::to_owned);
    let ended = Ended {
        id: text("session_id"),
        file: text("transcript_path"),
        cwd: text("cwd"),
        process: told["pid"].as_u64().and_then(|pid| pid.try_into().ok()),
    };
    (ended.id.is_some() || ended.file.is_some()).then_some(ended)
}

/// A program with its arguments as a command of the shell.
pub fn command(words: &[&str]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    let quoted = words.iter().map(|word| match !word.is_empty() && word.chars().all(plain) {
        true => (*word).to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    });
    quoted.collect::<Vec<_>>().join(" ")
}

/// The keys that lead to what runs when a session ends, in settings that are like Claude Code's.
pub(crate) const SESSION_END: &[&str] = &["hooks", "SessionEnd"];

/// An entry there. Seconds or milliseconds, as the agent counts: the command returns at once.
pub(crate) fn entry(command: &str, timeout: u64) -> Value {
    json!({ "hooks": [{ "type": "command", "command": command, "timeout": timeout }] })
}

/// The beginning of a file of ours: words in JavaScript.
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
    use crate::HOOKS;

    #[test]
    fn what_an_agent_tells_is_read() {
        let of = |text: &str| ended(text.as_bytes());
        let whole = r#"{"session_id":"a","transcript_path":"/s.jsonl","cwd":"/p","pid":7,
                        "hook_event_name":"SessionEnd","reason":"other"}"#;
        let some = |text: &str| Some(text.to_owned());
        let expect =
            Ended { id: some("a"), file: some("/s.jsonl"), cwd: some("/p"), process: Some(7) };
        assert_eq!(of(whole), Some(expect));
        let expect = Ended { id: some("a"), ..Ended::default() };
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

    #[test]
    fn every_agent_is_told_in_its_own_way() {
        let mut told = String::new();
        for hook in HOOKS {
            let text = match hook.setting {
                Setting::Listed { list, entry } => {
                    format!("{} += {}\n", list.join("."), entry("/bin/epitome hook"))
                }
                Setting::Own(text) => text(&["/bin/epitome", "hook"]),
            };
            told.push_str(&format!("== {} {}\n{text}", hook.agent, hook.file));
        }
        insta::assert_snapshot!(told);
    }
}
