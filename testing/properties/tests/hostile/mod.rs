//! Malicious texts, and sessions with them.

use serde_json::{Value, json};

/// Texts that a careless program would execute or follow.
pub const HOSTILE: &[&str] = &[
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>",
    "' onmouseover='alert(1)",
    "[x](javascript:alert(1)) <javascript:alert(1)> [y]\n\n[y]: data:text/html,x",
    "[\\[x](JaVaScRiPt:alert(1)) [x]( javascript:alert(1))",
    "![x](http://example.com/x.png) ![y][z]\n\n[z]: //example.com/z.png",
    "</pre></details></section></main><h1>mine</h1>",
    "</details>\n\n</details>\n<iframe src=//example.com>",
    "<!-- --><![CDATA[ <?php",
    "```\n</details>\n",
    "~~~~\n<b>never ended",
    "</style><style>*{display:none}</style></title></textarea>",
    "<svg/onload=alert(1)><math><mi//xlink:href=\"data:x,<script>alert(1)</script>\">",
    "&lt;script&gt;alert(1)&lt;/script&gt; &#60;b&#62; &amp;lt;",
    "\u{1b}[31mred\u{1b}]8;;http://example.com\u{7}link\u{1b}]8;;\u{7}\u{1b}[2J\u{9b}5n\u{8}\u{8}",
    "\u{202e}gnp.exe\u{2066}\u{2069}\u{200f}\u{61c}\u{200b}\u{feff}\u{e0041}",
    "> > > > > > > > > > > > > > > > > > > > > > > > > > > > > > > > > > > > > > > > > > > > > x",
    "| a | b |\n|---|---|\n| <b> | `|` |\n\n- [ ] x\n  1. y\n",
    "--- \n<details open ontoggle=alert(1)>\n<summary>x",
    "../../../etc/passwd?x=<>\u{0}",
];

/// A session of Claude Code with each text wherever a session has text.
pub fn everywhere(texts: &[&str]) -> String {
    let mut lines = Vec::new();
    for (n, text) in texts.iter().enumerate() {
        let entry = |kind: &str, n: usize, message: Value| {
            let uuid = format!("{kind}{n}");
            json!({"type": kind, "uuid": uuid, "sessionId": "s", "cwd": text, "message": message})
        };
        let input = json!({*text: text, "file_path": text, "command": text});
        let call = json!({"type": "tool_use", "id": format!("c{n}"), "name": text, "input": input});
        let hostile_content = json!([
            {"type": "thinking", "thinking": text, "signature": "x"},
            {"type": "text", "text": text},
            call,
        ]);
        let result =
            json!([{"type": "tool_result", "tool_use_id": format!("c{n}"), "content": text}]);
        let answer =
            json!({"id": text, "model": text, "role": "assistant", "content": hostile_content});
        lines.push(entry("user", n, json!({"role": "user", "content": text})).to_string());
        lines.push(entry("assistant", n, answer).to_string());
        lines
            .push(entry("user", 1_000 + n, json!({"role": "user", "content": result})).to_string());
    }
    lines.join("\n")
}
