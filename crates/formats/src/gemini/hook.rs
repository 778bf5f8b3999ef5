//! Gemini CLI's end-of-session hook: an entry of `settings.json`, documented in its page on hooks.

use crate::hook::{Hook, SESSION_END, Setting, entry};

/// What is written so that a program is called.
pub const HOOK: Hook = Hook {
    file: "settings.json",
    // In milliseconds.
    setting: Setting::Listed { list: SESSION_END, entry: |command| entry(command, 10_000) },
    afterwards: None,
};
