//! How Gemini CLI calls a program when a session ends: `settings.json`, as the page on hooks in its
//! documentation describes it.

use crate::hook::{Hook, SESSION_END, Setting, entry};

pub(crate) const HOOK: Hook = Hook {
    agent: "gemini",
    file: "settings.json",
    // In milliseconds.
    setting: Setting::Listed { list: SESSION_END, entry: |command| entry(command, 10_000) },
    afterwards: None,
};
