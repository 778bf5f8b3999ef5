//! Gemini CLI's end-of-session hook: an entry of `settings.json`, documented in its page on hooks.

use crate::hook::{Hook, SESSION_END, Setting, entry};

/// The hook that calls a program when a session ends.
pub const HOOK: Hook = Hook {
    file: "settings.json",
    // The timeout is in milliseconds.
    setting: Setting::Listed { list: SESSION_END, entry: |command| entry(command, 10_000) },
    afterwards: None,
};
