//! A JSON document as a tree of values with their positions. It is for files that are one document,
//! and for single records of which many values are needed.

use std::borrow::Cow;
use std::ops::Range;

use epitome_model::{Source, Span, Text, decode};

use crate::cursor::{Cursor, Kind, MalformedJson};

/// Bytes per read of a source whose first read does not return all bytes.
const CHUNK: u64 = 1 << 20;

/// The number of levels of nesting that are parsed. An object or array below them is checked, but
/// has no members or elements in the tree.
const DEPTH: usize = 24;

/// A document, with the positions of its lines.
pub struct Document<'a> {
    /// The outermost value of the document.
    pub root: Value<'a>,
    bytes: &'a [u8],
    /// The offsets at which the second and all later lines begin.
    lines: Vec<usize>,
}

impl<'a> Document<'a> {
    /// Parses a document; skips a byte order mark at its beginning. If a key occurs more than once
    /// in an object, [`Value::get`] returns the last of its values.
    pub fn parse(bytes: &'a [u8]) -> Result<Document<'a>, MalformedJson> {
        Document::parse_at(bytes, 0)
    }

    /// Parses bytes that begin at the offset `base` in their source, for example one line of a
    /// file. Spans of values count from the beginning of the source. Otherwise like
    /// [`Document::parse`].
    pub fn parse_at(bytes: &'a [u8], base: u64) -> Result<Document<'a>, MalformedJson> {
        let start = if bytes.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
        let mut cursor = Cursor::at(bytes, &(start..bytes.len()));
        let root = Value::parse(&mut cursor, (bytes, base), DEPTH)?;
        cursor.end()?;
        let lines = memchr::memchr_iter(b'\n', bytes).map(|feed| feed + 1).collect();
        Ok(Document { root, bytes, lines })
    }

    /// The line of the document that a value begins on, from 1.
    pub fn line(&self, value: &Value<'_>) -> u64 {
        1 + self.lines.partition_point(|&start| start <= value.range.start) as u64
    }

    /// All bytes of the document.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }
}

/// A value of a document.
#[derive(Clone, Debug)]
pub struct Value<'a> {
    bytes: &'a [u8],
    /// The offset in the source at which the document begins.
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
    ) -> Result<Self, MalformedJson> {
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

    /// The value of the member `key`, if this value is an object that has it.
    pub fn get(&self, key: &str) -> Option<&Value<'a>> {
        self.members().iter().rev().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// The value of the first key among `keys` that this object has with a value other than `null`.
    pub fn any(&self, keys: &[&str]) -> Option<&Value<'a>> {
        keys.iter().filter_map(|key| self.get(key)).find(|value| !value.is_null())
    }

    /// The decoded text of the member `key`, if that member is a string.
    pub fn text_of(&self, key: &str) -> Option<Cow<'a, str>> {
        self.get(key)?.text()
    }

    /// The value of the member `key`, if that value is a string.
    pub fn string(&self, key: &str) -> Option<&Value<'a>> {
        self.get(key).filter(|value| value.is_text())
    }

    /// Whether the member `key` is a string equal to `word`.
    pub fn is(&self, key: &str, word: &str) -> bool {
        self.text_of(key).is_some_and(|it| it == word)
    }

    /// The members of an object; empty for any other value, and for an object that is nested too
    /// deep to be parsed.
    pub fn members(&self) -> &[(Cow<'a, str>, Value<'a>)] {
        match &self.inner {
            Inner::Object(members) => members,
            Inner::Leaf | Inner::List(_) => &[],
        }
    }

    /// The elements of an array; empty for any other value, and for an array that is nested too
    /// deep to be parsed.
    pub fn list(&self) -> &[Value<'a>] {
        match &self.inner {
            Inner::List(list) => list,
            Inner::Leaf | Inner::Object(_) => &[],
        }
    }

    /// The elements of the member `key`, if that member is an array; otherwise empty.
    pub fn list_of(&self, key: &str) -> &[Value<'a>] {
        self.get(key).map_or(&[], Value::list)
    }

    /// The decoded text of the value, if it is a string.
    pub fn text(&self) -> Option<Cow<'a, str>> {
        self.is_text().then(|| decode(self.raw()))
    }

    /// Whether the value is a string.
    pub fn is_text(&self) -> bool {
        self.raw().first() == Some(&b'"')
    }

    /// Whether the value is an object.
    pub fn is_object(&self) -> bool {
        self.raw().first() == Some(&b'{')
    }

    /// Whether the value is an array.
    pub fn is_list(&self) -> bool {
        self.raw().first() == Some(&b'[')
    }

    /// Whether the value is `null`.
    pub fn is_null(&self) -> bool {
        self.raw() == b"null"
    }

    /// Whether the value is `true`.
    pub fn is_true(&self) -> bool {
        self.raw() == b"true"
    }

    /// The bytes of the value, as they are in the document.
    pub fn raw(&self) -> &'a [u8] {
        &self.bytes[self.range.clone()]
    }

    /// The range of the value in the document, in bytes.
    pub fn range(&self) -> &Range<usize> {
        &self.range
    }

    /// The span of the value in the source, in bytes.
    pub fn span(&self) -> Span {
        Span { start: self.base + self.range.start as u64, end: self.base + self.range.end as u64 }
    }

    /// The bytes of the document that the value is in, and the offset of that document in the
    /// source.
    pub fn document(&self) -> (&'a [u8], u64) {
        (self.bytes, self.base)
    }

    /// The value as a number, if it is a non-negative integer.
    pub fn integer(&self) -> Option<u64> {
        crate::cursor::integer(self.bytes, &self.range)
    }

    /// The value of the member `key` as a number, if that value is a non-negative integer.
    pub fn integer_of(&self, key: &str) -> Option<u64> {
        self.get(key)?.integer()
    }

    /// The value at the path `keys`: the first key names a member of this value, and each later key
    /// a member of the value found before. `None` if one of these members is missing.
    pub fn get_path(&self, keys: &[&str]) -> Option<&Value<'a>> {
        keys.iter().try_fold(self, |value, key| value.get(key))
    }

    /// An owned copy of the text of the member `key`, if that member is a string.
    pub fn boxed_text_of(&self, key: &str) -> Option<Box<str>> {
        Some(self.text_of(key)?.as_ref().into())
    }

    /// A [`Text`] that refers to this value, which must be a string.
    pub fn to_source_text(&self) -> Text {
        Text::Source(self.span())
    }
}

/// All bytes of a source. If the first read returns fewer bytes than the source has, reads on until
/// a read returns none.
pub fn read_all(source: &dyn Source) -> Cow<'_, [u8]> {
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

/// The text of a key, with its escapes decoded.
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
    fn values_know_what_they_are() {
        let text =
            br#"{"word": "x", "number": 7, "below": -1, "list": [1], "object": {"a": null}}"#;
        let document = Document::parse(text).expect("a document");
        let value = |key| document.root.get(key).expect("the member is in the object");
        let (word, list, object) = (value("word"), value("list"), value("object"));
        assert_eq!([word.is_text(), word.is_list(), word.is_object()], [true, false, false]);
        assert_eq!([list.is_text(), list.is_list(), list.is_object()], [false, true, false]);
        assert_eq!([object.is_text(), object.is_list(), object.is_object()], [false, false, true]);
        assert!(document.root.is("word", "x"));
        assert!(!document.root.is("word", "y") && !document.root.is("number", "7"));
        assert_eq!(document.root.integer_of("number"), Some(7));
        assert_eq!(document.root.integer_of("below"), None);
        assert_eq!(word.span(), Span { start: 9, end: 12 });
    }

    #[test]
    fn spans_of_a_line_count_from_the_beginning_of_its_source() {
        let document = Document::parse_at(b"[\"x\"]", 100).expect("a document");
        assert_eq!(document.root.list()[0].span(), Span { start: 101, end: 104 });
    }

    /// A source whose reads return at most three bytes.
    struct Slow(&'static [u8]);

    impl Source for Slow {
        fn len(&self) -> u64 {
            self.0.len() as u64
        }

        fn read(&self, range: Range<u64>) -> Cow<'_, [u8]> {
            let (start, len) = (range.start.min(self.len()), (range.end - range.start).min(3));
            self.0.read(start..(start + len).min(self.len()))
        }
    }

    #[test]
    fn a_source_that_returns_less_than_was_asked_for_is_read_to_its_end() {
        assert_eq!(&*read_all(&Slow(b"ten bytes.")), b"ten bytes.");
        assert_eq!(&*read_all(&&b"ten bytes."[..]), b"ten bytes.");
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
