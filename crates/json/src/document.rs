//! A JSON document as a tree of values with their positions: for formats that are one document, not
//! lines.

use std::borrow::Cow;
use std::ops::Range;

use epitome_model::{Source, Span, Text, decode};

use crate::cursor::{Cursor, Kind, Malformed};

const CHUNK: u64 = 1 << 20;

/// Maximum nesting depth; deeper values are not parsed. The keys of all formats are above it.
const DEPTH: usize = 24;

/// A document, with the positions of its lines.
pub struct Document<'a> {
    /// Its outermost value.
    pub root: Value<'a>,
    bytes: &'a [u8],
    /// The offsets at which lines after the first begin.
    lines: Vec<usize>,
}

impl<'a> Document<'a> {
    /// Parses a document. If a key occurs more than once in an object, the last one counts.
    pub fn parse(bytes: &'a [u8]) -> Result<Document<'a>, Malformed> {
        Document::parse_at(bytes, 0)
    }

    /// Like [`Document::parse`], for bytes that begin at `base` in their source: a line of a file.
    /// Spans are those of the source.
    pub fn parse_at(bytes: &'a [u8], base: u64) -> Result<Document<'a>, Malformed> {
        let start = if bytes.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
        let mut cursor = Cursor::at(bytes, &(start..bytes.len()));
        let root = Value::parse(&mut cursor, (bytes, base), DEPTH)?;
        cursor.end()?;
        let lines = memchr::memchr_iter(b'\n', bytes).map(|feed| feed + 1).collect();
        Ok(Document { root, bytes, lines })
    }

    /// The line that a value begins on, from 1.
    pub fn line(&self, value: &Value<'_>) -> u64 {
        1 + self.lines.partition_point(|&start| start <= value.range.start) as u64
    }

    /// All bytes.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }
}

/// A value of a document.
#[derive(Clone, Debug)]
pub struct Value<'a> {
    bytes: &'a [u8],
    /// The offset of `bytes` in the source.
    base: u64,
    range: Range<usize>,
    inner: Inner<'a>,
}

#[derive(Clone, Debug)]
enum Inner<'a> {
    Leaf,
    List(Vec<Value<'a>>),
    Object(Vec<(Cow<'a, str>, Value<'a>)>),
}

impl<'a> Value<'a> {
    fn parse(
        cursor: &mut Cursor<'a>,
        (bytes, base): (&'a [u8], u64),
        depth: usize,
    ) -> Result<Self, Malformed> {
        let leaf = |range| Value { bytes, base, range, inner: Inner::Leaf };
        if depth == 0 {
            return Ok(leaf(cursor.skip()?));
        }
        match cursor.kind() {
            Kind::String | Kind::Other => Ok(leaf(cursor.skip()?)),
            Kind::Array => {
                let mut list = Vec::new();
                let range = cursor.array(|element| {
                    list.push(Value::parse(element, (bytes, base), depth - 1)?);
                    Ok(())
                })?;
                Ok(Value { bytes, base, range, inner: Inner::List(list) })
            }
            Kind::Object => {
                let mut members = Vec::new();
                let range = cursor.object(|member, key| {
                    let value = Value::parse(member, (bytes, base), depth - 1)?;
                    members.push((decoded(key), value));
                    Ok(())
                })?;
                Ok(Value { bytes, base, range, inner: Inner::Object(members) })
            }
        }
    }

    /// The member of an object with this key.
    pub fn get(&self, key: &str) -> Option<&Value<'a>> {
        self.members().iter().rev().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// The first of these members that is present and not `null`.
    pub fn any(&self, keys: &[&str]) -> Option<&Value<'a>> {
        keys.iter().filter_map(|key| self.get(key)).find(|value| !value.is_null())
    }

    /// The text of a member that is a string.
    pub fn word(&self, key: &str) -> Option<Cow<'a, str>> {
        self.get(key)?.text()
    }

    /// A member that is a string.
    pub fn string(&self, key: &str) -> Option<&Value<'a>> {
        self.get(key).filter(|value| value.is_text())
    }

    /// Whether a member is this string.
    pub fn is(&self, key: &str, word: &str) -> bool {
        self.word(key).is_some_and(|it| it == word)
    }

    /// The members of an object; empty for any other value.
    pub fn members(&self) -> &[(Cow<'a, str>, Value<'a>)] {
        match &self.inner {
            Inner::Object(members) => members,
            Inner::Leaf | Inner::List(_) => &[],
        }
    }

    /// The elements of an array; empty for any other value.
    pub fn list(&self) -> &[Value<'a>] {
        match &self.inner {
            Inner::List(list) => list,
            Inner::Leaf | Inner::Object(_) => &[],
        }
    }

    /// The elements of a member that is an array.
    pub fn list_of(&self, key: &str) -> &[Value<'a>] {
        self.get(key).map_or(&[], Value::list)
    }

    /// The text, if it is a string.
    pub fn text(&self) -> Option<Cow<'a, str>> {
        self.is_text().then(|| decode(self.raw()))
    }

    /// Whether it is a string.
    pub fn is_text(&self) -> bool {
        self.raw().first() == Some(&b'"')
    }

    /// Whether it is an object.
    pub fn is_object(&self) -> bool {
        self.raw().first() == Some(&b'{')
    }

    /// Whether it is an array.
    pub fn is_list(&self) -> bool {
        self.raw().first() == Some(&b'[')
    }

    /// Whether it is `null`.
    pub fn is_null(&self) -> bool {
        self.raw() == b"null"
    }

    /// Whether it is `true`.
    pub fn is_true(&self) -> bool {
        self.raw() == b"true"
    }

    /// Its bytes in the document.
    pub fn raw(&self) -> &'a [u8] {
        &self.bytes[self.range.clone()]
    }

    /// Its range in the document.
    pub fn range(&self) -> &Range<usize> {
        &self.range
    }

    /// Its span in the source.
    pub fn span(&self) -> Span {
        let at = |offset: usize| self.base + offset as u64;
        Span { start: at(self.range.start), end: at(self.range.end) }
    }

    /// The bytes of its document, and their offset in the source.
    pub fn document(&self) -> (&'a [u8], u64) {
        (self.bytes, self.base)
    }

    /// The number, if it is an integer that is not negative.
    pub fn integer(&self) -> Option<u64> {
        crate::cursor::integer(self.bytes, &self.range)
    }

    /// The value below these keys, each a member of the one before.
    pub fn at(&self, keys: &[&str]) -> Option<&Value<'a>> {
        keys.iter().try_fold(self, |value, key| value.get(key))
    }

    /// An owned copy of the text of a member that is a string.
    pub fn boxed(&self, key: &str) -> Option<Box<str>> {
        Some(self.word(key)?.as_ref().into())
    }

    /// A string as a text of the source.
    pub fn source(&self) -> Text {
        Text::Source(self.span())
    }
}

/// All bytes of a source.
pub fn whole(source: &dyn Source) -> Cow<'_, [u8]> {
    let first = source.read(0..source.len());
    if first.len() as u64 == source.len() {
        return first;
    }
    let mut bytes = first.into_owned();
    loop {
        let at = bytes.len() as u64;
        let more = source.read(at..at + CHUNK);
        if more.is_empty() {
            return Cow::Owned(bytes);
        }
        bytes.extend_from_slice(&more);
    }
}

/// A key with its escapes decoded.
fn decoded(key: &[u8]) -> Cow<'_, str> {
    if key.contains(&b'\\') {
        return Cow::Owned(decode(&[b"\"", key, b"\""].concat()).into_owned());
    }
    String::from_utf8_lossy(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_where_they_stand() {
        let text = b"{\"a\": [1, \"t\\u0077o\",\n{\"b\": null}],\n \"\\u0061\": {\"c\": true}}";
        let document = Document::parse(text).expect("a document");
        let (first, last) = (&document.root.members()[0].1, document.root.get("a"));
        assert_eq!(first.list()[1].text().as_deref(), Some("two"));
        assert!(first.list()[2].get("b").is_some_and(Value::is_null));
        assert_eq!(document.line(&first.list()[1]), 1);
        assert_eq!(document.line(&first.list()[2]), 2);
        assert!(last.is_some_and(|last| last.get("c").is_some_and(Value::is_true)));
        assert_eq!(last.map(|last| document.line(last)), Some(3));
    }

    #[test]
    fn depth_costs_nothing() {
        let text = [vec![b'['; 100_000], vec![b']'; 100_000]].concat();
        let document = Document::parse(&text).expect("a document");
        let mut value = &document.root;
        while let Some(inner) = value.list().first() {
            value = inner;
        }
        assert!(value.is_list() && value.list().is_empty());
    }
}
