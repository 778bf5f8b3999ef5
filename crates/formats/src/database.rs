//! Sessions that are rows of an SQLite database, read as documents of lines.
//!
//! The statements are data here: they spell an agent's tables and columns, and the driver carries
//! them out. A document has a line for each row, with the row's own JSON in it to the byte, so that
//! readers, edits, laws and archive work as they do for files.

/// A kind of database.
#[derive(Debug)]
pub struct Database {
    /// The agent that keeps it.
    pub agent: &'static str,
    /// Tables that every such database has.
    pub tables: &'static [&'static str],
    /// All sessions, with these columns: `id`; `parent`, the id of the session that it is a part
    /// of, or NULL; `modified`, the time of the last write in milliseconds since 1970, or NULL:
    /// that of the file; `size`, the bytes of its rows. Those of [`Glance::Told`] have `title`,
    /// `folder` (a path or a `file:` URL) and `context`, the tokens of its context, as well, each
    /// of which may be NULL.
    pub sessions: &'static str,
    /// What a list shows of a session.
    pub glance: Glance,
    /// What a session is read as; the first is the conversation.
    pub documents: &'static [Document],
}

/// What a list shows of a session of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Glance {
    /// What is found by reading it.
    Read,
    /// What the database says of it: for sessions that are only read, so that reading all of them
    /// would tell nothing more.
    Told,
}

/// Rows of one session as lines.
#[derive(Debug)]
pub struct Document {
    /// Names it behind the session's id. The conversation has no name.
    pub name: &'static str,
    /// The rows of the session `?1`: index into `tables`, rowid, and a JSON object of what tells
    /// the row from others. New rows come last.
    pub rows: &'static str,
    /// The tables that the rows are in.
    pub tables: &'static [Table],
    /// Whether this line is one that epitome made: only such rows are added and taken away.
    pub is_made: fn(line: &[u8]) -> bool,
}

/// How the JSON of one row is read and written.
#[derive(Debug)]
pub struct Table {
    /// What the lines of its rows begin with.
    pub begins: &'static str,
    /// Reads it from the row `?1`.
    pub select: &'static str,
    /// Puts `?2` in the place of it in the row `?1`. Without it the row is only read.
    pub update: Option<&'static str>,
    /// Adds a row to the session `?1`: `?2` tells it from others, `?3` is its JSON.
    pub add: Option<&'static str>,
    /// Takes the row `?1` away.
    pub remove: Option<&'static str>,
}

impl Table {
    /// A table of which nothing is written.
    pub const fn only_read(select: &'static str) -> Table {
        Table { begins: "", select, update: None, add: None, remove: None }
    }
}

/// What a line says of its row beside its JSON ends so.
const DATA: &[u8] = b",\"data\":";

/// The line of a row: `head` is a JSON object, `data` what stands in the row.
///
/// What would break the line is written as a text: it is kept, and never edited.
pub fn line(head: &str, data: Option<&[u8]>) -> Vec<u8> {
    let mut line = beginning(head, data);
    match data {
        None => line.extend_from_slice(b"null"),
        Some(data) if is_whole(data) => line.extend_from_slice(data),
        Some(data) => {
            let text = epitome_model::encode(&String::from_utf8_lossy(data));
            line.extend_from_slice(text.as_bytes());
        }
    }
    line.push(b'}');
    line
}

/// What stands in the row now, if `line` is a line of that row: `before` is what stood in it.
pub fn data<'l>(line: &'l [u8], head: &str, before: Option<&[u8]>) -> Option<&'l [u8]> {
    line.strip_prefix(beginning(head, before).as_slice())?.strip_suffix(b"}")
}

/// The folder that a path or a `file:` URL names.
pub fn folder(place: &str) -> String {
    let Some(path) = place.strip_prefix("file://") else { return place.to_owned() };
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let [byte, after @ ..] = rest {
        let digits = after.get(..2).filter(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        match (byte, digits.and_then(|digits| u8::from_str_radix(digits, 16).ok())) {
            (b'%', Some(escaped)) => {
                bytes.push(escaped);
                rest = &after[2..];
            }
            _ => {
                bytes.push(*byte);
                rest = after;
            }
        }
    }
    let path = String::from_utf8_lossy(&bytes).into_owned();
    // `/c:/project` is a path of Windows.
    match path.strip_prefix('/') {
        Some(drive) if drive.as_bytes().get(1) == Some(&b':') => drive.to_owned(),
        Some(_) | None => path,
    }
}

/// What tells a row from others, and its JSON: what [`line()`] made a line of.
pub fn split(line: &[u8]) -> Option<(String, &str)> {
    let line = std::str::from_utf8(line).ok()?;
    let (head, data) = line.strip_suffix('}')?.split_once(",\"data\":")?;
    Some((format!("{head}}}"), data))
}

fn beginning(head: &str, data: Option<&[u8]>) -> Vec<u8> {
    let mut line = head.strip_suffix('}').unwrap_or(head).as_bytes().to_vec();
    line.extend_from_slice(match data {
        Some(data) if !is_whole(data) => b",\"text\":",
        Some(_) | None => DATA,
    });
    line
}

/// Whether it can stand in a line as it is.
fn is_whole(data: &[u8]) -> bool {
    memchr::memchr2(b'\n', b'\r', data).is_none()
        && std::str::from_utf8(data).is_ok()
        && crate::json::check(data).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(head: &str, data: Option<&[u8]>, expect: &str) {
        assert_eq!(String::from_utf8_lossy(&line(head, data)), expect);
    }

    #[test]
    fn a_row_is_a_line_with_its_json_to_the_byte() {
        check(r#"{"id":"a"}"#, Some(b"{\"x\" : 1.0}"), r#"{"id":"a","data":{"x" : 1.0}}"#);
        check(r#"{"id":"a"}"#, None, r#"{"id":"a","data":null}"#);
    }

    #[test]
    fn what_would_break_a_line_is_a_text() {
        check(r#"{"id":"a"}"#, Some(b"{\n}"), r#"{"id":"a","text":"{\n}"}"#);
        check(r#"{"id":"a"}"#, Some(b"{}},{"), r#"{"id":"a","text":"{}},{"}"#);
        check(r#"{"id":"a"}"#, Some(b"\xff"), "{\"id\":\"a\",\"text\":\"\u{fffd}\"}");
    }

    #[test]
    fn a_folder_is_a_path_or_a_url() {
        for (place, expect) in [
            ("/home/dev/a%20b", "/home/dev/a%20b"),
            ("file:///home/dev/a%20b%C3%A9", "/home/dev/a bé"),
            ("file:///c%3A/project", "c:/project"),
            ("file:///100%/%zz%+f%4", "/100%/%zz%+f%4"),
            ("", ""),
        ] {
            assert_eq!(folder(place), expect);
        }
    }

    #[test]
    fn a_line_says_what_stands_in_its_row() {
        let (head, before) = (r#"{"id":"a"}"#, Some(b"{}".as_slice()));
        let cases: &[(&str, Option<&str>)] = &[
            (r#"{"id":"a","data":{"new":1}}"#, Some(r#"{"new":1}"#)),
            (r#"{"id":"b","data":{}}"#, None),
            (r#"{"id":"a","data":{}"#, Some("{")),
            ("", None),
        ];
        for (line, expect) in cases {
            assert_eq!(data(line.as_bytes(), head, before), expect.map(str::as_bytes), "{line}");
        }
    }
}
