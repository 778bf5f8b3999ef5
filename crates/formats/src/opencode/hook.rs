//! How OpenCode calls a program when it has answered: a plugin, as
//! <https://opencode.ai/docs/plugins> describes it. It knows no end of a session.

use crate::hook::{Hook, Setting, script};

pub(crate) const HOOK: Hook = Hook {
    agent: "opencode",
    file: "plugins/epitome.js",
    setting: Setting::Own(text),
    afterwards: None,
};

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
