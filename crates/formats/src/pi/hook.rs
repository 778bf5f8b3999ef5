//! How pi calls a program when a session ends: an extension, as the page on extensions in its
//! documentation describes it.

use crate::hook::{Hook, Setting, script};

pub(crate) const HOOK: Hook = Hook {
    agent: "pi",
    file: "extensions/epitome.js",
    setting: Setting::Own(text),
    afterwards: None,
};

fn text(words: &[&str]) -> String {
    script(
        words,
        r#"export default function (pi) {
  pi.on("session_shutdown", (_event, ctx) => {
    const sessions = ctx.sessionManager;
    const transcript_path = sessions.getSessionFile();
    if (!transcript_path) return;
    tell({ session_id: sessions.getSessionId(), transcript_path, cwd: sessions.getCwd() });
  });
}
"#,
    )
}
