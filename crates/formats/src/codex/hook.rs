//! How Codex calls a program when a session ends: `hooks.json` beside its `config.toml`, as
//! <https://developers.openai.com/codex/hooks> describes it.

use crate::hook::{Hook, SESSION_END, Setting, entry};

pub(crate) const HOOK: Hook = Hook {
    agent: "codex",
    file: "hooks.json",
    // In seconds.
    setting: Setting::Listed { list: SESSION_END, entry: |command| entry(command, 10) },
    afterwards: Some("Codex runs it once you have trusted it: type /hooks in Codex"),
};
