//! How Claude Code calls a program when a session ends: `settings.json`, as
//! <https://code.claude.com/docs/en/hooks> describes it.

use crate::hook::{Hook, SESSION_END, Setting, entry};

pub(crate) const HOOK: Hook = Hook {
    agent: "claude",
    file: "settings.json",
    // In seconds. Without it a hook has a second and a half in all when the program ends.
    setting: Setting::Listed { list: SESSION_END, entry: |command| entry(command, 10) },
    afterwards: None,
};
