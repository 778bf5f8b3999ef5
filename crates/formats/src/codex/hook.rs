//! Codex's end-of-session hook: the file `hooks.json` next to `config.toml`, documented at
//! <https://developers.openai.com/codex/hooks>.

use crate::hook::{Hook, SESSION_END, Setting, entry};

/// The hook that calls a program when a session ends.
pub const HOOK: Hook = Hook {
    file: "hooks.json",
    // The timeout is in seconds.
    setting: Setting::Listed { list: SESSION_END, entry: |command| entry(command, 10) },
    afterwards: Some("Codex runs it once you have trusted it: type /hooks in Codex"),
};
