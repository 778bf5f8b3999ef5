//! Sessions that consist of many files, read as one document.
//!
//! The directories are data here; the caller opens the files.

use std::borrow::Cow;

/// How an agent stores a session in many files: `SESSIONS/<any>/<session>.json`,
/// `MESSAGES/<session>/<message>.json` and `PARTS/<message>/<part>.json`. The files of each
/// directory are read in the order of their names.
#[derive(Debug)]
pub struct Files {
    /// The agent that writes the files.
    pub agent: &'static str,
    /// The directory of sessions.
    pub sessions: &'static str,
    /// The directory of messages.
    pub messages: &'static str,
    /// The directory of the parts of messages.
    pub parts: &'static str,
    /// Returns the id of the parent session, from the content of a session's file.
    pub parent: fn(session: &[u8]) -> Option<String>,
    /// The text between the files in the document.
    pub frame: Frame,
    /// Why such sessions are read-only, as a clause.
    pub read_only: &'static str,
}

/// The text between the files in a document. Messages and parts are separated by commas.
#[derive(Debug)]
pub struct Frame {
    /// The text before the session's file.
    pub session: &'static str,
    /// The text between the session's file and the first message.
    pub messages: &'static str,
    /// The text before each message.
    pub message: &'static str,
    /// The text between a message and its parts.
    pub parts: &'static str,
    /// The text after the parts of each message.
    pub message_end: &'static str,
    /// The text after all messages.
    pub end: &'static str,
}

/// A file as a value of the document. A file that is not JSON becomes a string, so that it is kept.
pub fn value(file: &[u8]) -> Cow<'_, [u8]> {
    let file = file.trim_ascii();
    if std::str::from_utf8(file).is_ok() && epitome_json::check(file).is_ok() {
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
