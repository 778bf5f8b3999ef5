//! Sessions that are rows of an SQLite database, read as documents with one line per row.
//!
//! The SQL statements are data here: they name an agent's tables and columns, and the caller runs
//! them. Each line of a document contains the JSON of its row, byte for byte, so that readers,
//! edits, invariants and archive work as they do for files.

/// A kind of database.
#[derive(Debug)]
pub struct Database {
    /// The agent that writes databases of this kind.
    pub agent: &'static str,
    /// Tables that every such database has.
    pub tables: &'static [&'static str],
    /// Selects all sessions, with these columns: `id`; `parent`, the id of the session that this
    /// session is a part of, or NULL; `modified`, the time of the last write in milliseconds since
    /// 1970, or NULL to use the time of the file; `size`, the number of bytes of the session's
    /// rows. With [`ListedBy::Database`] also `title`, `folder` (a path or a `file:` URL) and
    /// `context`, the tokens of the session's context; each of these three may be NULL.
    pub sessions: &'static str,
    /// Where a list of sessions gets its details, such as titles.
    pub glance: ListedBy,
    /// The documents of a session; the first is the conversation.
    pub documents: &'static [Document],
}

/// Where a list of sessions gets its details, such as titles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListedBy {
    /// From reading each session.
    Transcript,
    /// From the columns of the database. Used for read-only sessions: reading them would give no
    /// further details.
    Database,
}

/// How rows of one session are read as the lines of a document.
#[derive(Debug)]
pub struct Document {
    /// The suffix of the document's name after the session's id; empty for the conversation.
    pub name: &'static str,
    /// Selects the rows of the session `?1`, with three columns: an index into `tables`, the rowid,
    /// and a JSON object that identifies the row. New rows come last.
    pub rows: &'static str,
    /// The tables of the rows. The first column of `rows` is an index into this list.
    pub tables: &'static [Table],
    /// Returns whether the row of a line is one that epitome made. epitome adds and removes only
    /// such rows.
    pub is_made: fn(line: &[u8]) -> bool,
}

/// How the JSON of one row is read and written.
#[derive(Debug)]
pub struct Table {
    /// The beginning of the lines of this table's rows. A new row is inserted into the first table
    /// whose `begins` is the beginning of the row's line. Empty for a read-only table, which gets
    /// no new rows.
    pub begins: &'static str,
    /// Selects the JSON of the row `?1`.
    pub select: &'static str,
    /// Sets the JSON of the row `?1` to `?2`. `None` if the row is read-only.
    pub update: Option<&'static str>,
    /// Inserts a row into the session `?1`: `?2` identifies it, `?3` is its JSON.
    pub add: Option<&'static str>,
    /// Deletes the row `?1`.
    pub remove: Option<&'static str>,
}

impl Table {
    /// A read-only table.
    pub const fn only_read(select: &'static str) -> Table {
        Table { begins: "", select, update: None, add: None, remove: None }
    }
}

/// The text between the members that identify a row and the row's JSON.
const DATA: &[u8] = b",\"data\":";

/// The line of a row: `head` is a JSON object that identifies it, `data` its content.
///
/// Content that is not JSON on one line is written as a string under the key `text`: it is kept,
/// and never edited.
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

/// The new content of a row: the JSON in `line`. `before` is the content so far. `None` if `line`
/// is not a line of the row that `head` identifies.
pub fn data<'l>(line: &'l [u8], head: &str, before: Option<&[u8]>) -> Option<&'l [u8]> {
    line.strip_prefix(beginning(head, before).as_slice())?.strip_suffix(b"}")
}

/// The directory that a path or a `file:` URL names.
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
    // `/c:/project` is a Windows path.
    match path.strip_prefix('/') {
        Some(drive) if drive.as_bytes().get(1) == Some(&b':') => drive.to_owned(),
        Some(_) | None => path,
    }
}

/// Splits a line made by [`line()`] into the object that identifies the row and its JSON. `None` if
/// the content of the row is not JSON, and so is stored as a string.
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

/// Whether the content of a row is valid JSON on one line, so that it can be written unchanged.
fn is_whole(data: &[u8]) -> bool {
    memchr::memchr2(b'\n', b'\r', data).is_none()
        && std::str::from_utf8(data).is_ok()
        && epitome_json::check(data).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(head: &str, data: Option<&[u8]>, expect: &str) {
        assert_eq!(String::from_utf8_lossy(&line(head, data)), expect);
    }

    #[test]
    fn a_line_is_split_into_the_row_and_its_json() {
        let expect = |head: &str, data| Some((head.to_owned(), data));
        let whole = line(r#"{"id":"a"}"#, Some(br#"{"data":1}"#));
        assert_eq!(split(&whole), expect(r#"{"id":"a"}"#, r#"{"data":1}"#));
        assert_eq!(split(&line(r#"{"id":"a"}"#, Some(b"no JSON"))), None);
        assert_eq!(split(b"no line"), None);
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
