//! Sessions that are spread over many files, read as one document.
//!
//! The folders are data here; the driver opens the files.

use std::borrow::Cow;

/// A store of such sessions: `SESSIONS/<any>/<session>.json`, `MESSAGES/<session>/<message>.json`,
/// `PARTS/<message>/<part>.json`, each in the order of their names.
#[derive(Debug)]
pub struct Files {
    /// The agent that keeps it.
    pub agent: &'static str,
    /// The folder of sessions.
    pub sessions: &'static str,
    /// The folder of messages.
    pub messages: &'static str,
    /// The folder of their parts.
    pub parts: &'static str,
    /// The id of the session that a session is a part of, by its file.
    pub parent: fn(session: &[u8]) -> Option<String>,
    /// What stands between them in the document.
    pub frame: Frame,
    /// Why they are only read, as a clause.
    pub read_only: &'static str,
}

/// What stands between the files in a document. Messages and parts have commas between them.
#[derive(Debug)]
pub struct Frame {
    /// Before the session.
    pub session: &'static str,
    /// Behind it, before all messages.
    pub messages: &'static str,
    /// Before a message.
    pub message: &'static str,
    /// Behind it, before its parts.
    pub parts: &'static str,
    /// Behind its parts.
    pub message_end: &'static str,
    /// Behind all messages.
    pub end: &'static str,
}

/// A file as a value of the document. One that holds no JSON is a text: it is kept.
pub fn value(file: &[u8]) -> Cow<'_, [u8]> {
    let file = file.trim_ascii();
    if std::str::from_utf8(file).is_ok() && crate::json::check(file).is_ok() {
        return Cow::Borrowed(file);
    }
    Cow::Owned(epitome_model::encode(&String::from_utf8_lossy(file)).into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_json_is_a_text() {
        let cases: [(&[u8], &str); 4] = [
            (b" {\n \"a\": 1.0 }\n", "{\n \"a\": 1.0 }"),
            (b"{\"a\":", r#""{\"a\":""#),
            (b"{},{}", r#""{},{}""#),
            (b"", r#""""#),
        ];
        for (file, expect) in cases {
            assert_eq!(String::from_utf8_lossy(&value(file)), expect);
        }
    }
}
