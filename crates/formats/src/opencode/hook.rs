//! OpenCode's hook after each answer: a plugin, documented at <https://opencode.ai/docs/plugins>.
//! OpenCode has no event for the end of a session.

use crate::hook::{Hook, Setting, script};

/// The hook that calls a program after each answer.
pub const HOOK: Hook =
    Hook { file: "plugins/epitome.js", setting: Setting::Own(text), afterwards: None };

fn text(words: &[&str]) -> String {
    script(
        words,
        r#"export const Epitome = async ({ directory }) => ({
  event: async ({ event }) => {
    if (event.type !== "session.idle") return;
    tell({ session_id: event.properties.sessionID, cwd: directory });
  },
});
"#,
    )
}
