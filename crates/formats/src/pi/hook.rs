//! pi's end-of-session hook: an extension, documented in its page on extensions.

use crate::hook::{Hook, Setting, script};

/// The hook that calls a program when a session ends.
pub const HOOK: Hook =
    Hook { file: "extensions/epitome.js", setting: Setting::Own(text), afterwards: None };

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
