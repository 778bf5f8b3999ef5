//! Claude Code's end-of-session hook: an entry of `settings.json`, documented at
//! <https://code.claude.com/docs/en/hooks>.

use crate::hook::{Hook, SESSION_END, Setting, entry};

/// The hook that calls a program when a session ends.
pub const HOOK: Hook = Hook {
    file: "settings.json",
    // The timeout in seconds. Without one, all hooks together have 1.5 seconds when the program
    // ends.
    setting: Setting::Listed { list: SESSION_END, entry: |command| entry(command, 10) },
    afterwards: None,
};
