//! A cursor over JSON text that finds the positions of values and builds no tree.
//!
//! It accepts what RFC 8259 accepts, to any depth without recursion, and works on bytes: a record
//! with a byte that is not UTF-8 can still be read. Property tests compare it with `serde_json`.

use std::ops::Range;

use epitome_model::Fault;
use memchr::memchr2;

/// A syntax error in JSON text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// Offset in bytes, from the beginning of the text, of the first byte that is not allowed.
    pub offset: usize,
    /// A description of the error: `expected a value`.
    pub what: &'static str,
}

impl Malformed {
    /// The fault of a record that is not valid JSON from this offset on. `line` is the line of the
    /// record, from 1. `is_ended` says whether a line feed ends that line: a line without one may
    /// still be in the middle of being written.
    pub fn fault(&self, line: u64, is_ended: bool) -> Fault {
        let torn = if is_ended { "" } else { " (the last line is torn)" };
        Fault { line, what: format!("no record: {} at byte {}{torn}", self.what, self.offset) }
    }
}

/// A position in JSON text.
#[derive(Clone, Debug)]
pub struct Cursor<'a> {
    bytes: &'a [u8],
    pos: usize,
}

/// The type of a value, by its first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `{`
    Object,
    /// `[`
    Array,
    /// `"`
    String,
    /// Any other value (a number, `true`, `false`, `null`), or no value at all.
    Other,
}

impl<'a> Cursor<'a> {
    /// A cursor at the beginning of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Cursor<'a> {
        Cursor { bytes, pos: 0 }
    }

    /// A cursor at the beginning of the value at `range`. It sees no byte behind `range`.
    pub fn at(bytes: &'a [u8], range: &Range<usize>) -> Cursor<'a> {
        Cursor { bytes: &bytes[..range.end], pos: range.start }
    }

    /// The type of the next value.
    pub fn kind(&mut self) -> Kind {
        self.space();
        match self.bytes.get(self.pos) {
            Some(b'{') => Kind::Object,
            Some(b'[') => Kind::Array,
            Some(b'"') => Kind::String,
            Some(_) | None => Kind::Other,
        }
    }

    /// Skips the next value and returns its range.
    pub fn skip(&mut self) -> Result<Range<usize>, Malformed> {
        self.space();
        let start = self.pos;
        match self.bytes.get(self.pos) {
            Some(b'"') => self.literal()?,
            Some(b'{' | b'[') => self.container()?,
            Some(_) | None => self.scalar()?,
        }
        Ok(start..self.pos)
    }

    /// Skips the next value and returns its range if it is a string.
    pub fn string(&mut self) -> Result<Option<Range<usize>>, Malformed> {
        let is_string = self.kind() == Kind::String;
        let place = self.skip()?;
        Ok(is_string.then_some(place))
    }

    /// Skips the next value and returns whether it is `true`.
    pub fn truth(&mut self) -> Result<bool, Malformed> {
        Ok(self.raw()? == b"true")
    }

    /// Skips the next value and returns its text.
    pub fn raw(&mut self) -> Result<&'a [u8], Malformed> {
        let place = self.skip()?;
        Ok(&self.bytes[place])
    }

    /// Skips the next value and returns it if it is an integer.
    pub fn integer(&mut self) -> Result<Option<u64>, Malformed> {
        let place = self.skip()?;
        Ok(integer(self.bytes, &place))
    }

    /// Calls `member` for each member of the next object with its key, without quotes and with
    /// escapes not decoded. `member` must skip the value.
    ///
    /// A value that is not an object is skipped, and `member` is not called.
    pub fn object<F>(&mut self, mut member: F) -> Result<Range<usize>, Malformed>
    where
        F: FnMut(&mut Cursor<'a>, &'a [u8]) -> Result<(), Malformed>,
    {
        if self.kind() != Kind::Object {
            return self.skip();
        }
        let start = self.pos;
        self.pos += 1;
        self.space();
        if self.take(b'}') {
            return Ok(start..self.pos);
        }
        loop {
            let key = self.key()?;
            member(self, key)?;
            self.space();
            if self.take(b'}') {
                return Ok(start..self.pos);
            }
            self.expect(b',', "expected a comma or the end of the object")?;
        }
    }

    /// Calls `element` for each element of the next array. `element` must skip the value.
    ///
    /// A value that is not an array is skipped, and `element` is not called.
    pub fn array<F>(&mut self, mut element: F) -> Result<Range<usize>, Malformed>
    where
        F: FnMut(&mut Cursor<'a>) -> Result<(), Malformed>,
    {
        if self.kind() != Kind::Array {
            return self.skip();
        }
        let start = self.pos;
        self.pos += 1;
        self.space();
        if self.take(b']') {
            return Ok(start..self.pos);
        }
        loop {
            element(self)?;
            self.space();
            if self.take(b']') {
                return Ok(start..self.pos);
            }
            self.expect(b',', "expected a comma or the end of the array")?;
        }
    }

    /// Checks that nothing but white space is left.
    pub fn end(&mut self) -> Result<(), Malformed> {
        self.space();
        if self.pos == self.bytes.len() { Ok(()) } else { Err(self.bad("text after the value")) }
    }

    /// The offset of the next byte.
    pub fn offset(&self) -> usize {
        self.pos
    }

    fn bad(&self, what: &'static str) -> Malformed {
        Malformed { offset: self.pos, what }
    }

    fn space(&mut self) {
        while matches!(self.bytes.get(self.pos), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.pos += 1;
        }
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.bytes.get(self.pos) == Some(&byte);
        self.pos += usize::from(found);
        found
    }

    fn expect(&mut self, byte: u8, what: &'static str) -> Result<(), Malformed> {
        if self.take(byte) { Ok(()) } else { Err(self.bad(what)) }
    }

    /// A key and the colon after it.
    fn key(&mut self) -> Result<&'a [u8], Malformed> {
        self.space();
        if self.bytes.get(self.pos) != Some(&b'"') {
            return Err(self.bad("expected a key"));
        }
        let start = self.pos + 1;
        self.literal()?;
        let key = &self.bytes[start..self.pos - 1];
        self.space();
        self.expect(b':', "expected a colon")?;
        Ok(key)
    }

    fn literal(&mut self) -> Result<(), Malformed> {
        self.pos += 1;
        loop {
            let rest = &self.bytes[self.pos..];
            let Some(run) = memchr2(b'"', b'\\', rest) else {
                self.pos = self.bytes.len();
                return Err(self.bad("the text ends inside a string"));
            };
            if let Some(at) = control(&rest[..run]) {
                self.pos += at;
                return Err(self.bad("a control character in a string"));
            }
            self.pos += run + 1;
            if rest[run] == b'"' {
                return Ok(());
            }
            self.escape()?;
        }
    }

    fn escape(&mut self) -> Result<(), Malformed> {
        match self.bytes.get(self.pos) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                self.pos += 1;
                Ok(())
            }
            Some(b'u') => match self.bytes.get(self.pos + 1..self.pos + 5) {
                Some(hex) if hex.iter().all(u8::is_ascii_hexdigit) => {
                    self.pos += 5;
                    Ok(())
                }
                Some(_) | None => Err(self.bad("an escape that is not four hexadecimal digits")),
            },
            Some(_) | None => Err(self.bad("an unknown escape")),
        }
    }

    /// Skips an object or array. Open containers are on an explicit stack: depth uses heap, not
    /// stack.
    fn container(&mut self) -> Result<(), Malformed> {
        let mut open: Vec<u8> = Vec::new();
        loop {
            self.space();
            let closed_empty = match self.bytes.get(self.pos) {
                Some(b'{') => {
                    self.pos += 1;
                    self.space();
                    let empty = self.take(b'}');
                    if !empty {
                        open.push(b'}');
                        self.key()?;
                    }
                    empty
                }
                Some(b'[') => {
                    self.pos += 1;
                    self.space();
                    let empty = self.take(b']');
                    if !empty {
                        open.push(b']');
                    }
                    empty
                }
                Some(b'"') => {
                    self.literal()?;
                    true
                }
                Some(_) | None => {
                    self.scalar()?;
                    true
                }
            };
            if closed_empty && self.close(&mut open)? {
                return Ok(());
            }
        }
    }

    /// Closes the containers that end after a value, and returns whether the outermost one was
    /// closed.
    fn close(&mut self, open: &mut Vec<u8>) -> Result<bool, Malformed> {
        loop {
            let Some(&closer) = open.last() else { return Ok(true) };
            self.space();
            if self.take(closer) {
                open.pop();
                continue;
            }
            self.expect(b',', "expected a comma or the end of the value")?;
            if closer == b'}' {
                self.key()?;
            }
            return Ok(false);
        }
    }

    fn scalar(&mut self) -> Result<(), Malformed> {
        for word in [&b"true"[..], b"false", b"null"] {
            if self.bytes[self.pos..].starts_with(word) {
                self.pos += word.len();
                return Ok(());
            }
        }
        self.number()
    }

    fn number(&mut self) -> Result<(), Malformed> {
        self.take(b'-');
        if !self.take(b'0') {
            self.digits("expected a value")?;
        }
        if self.take(b'.') {
            self.digits("expected a digit after the point")?;
        }
        if self.take(b'e') || self.take(b'E') {
            if !self.take(b'+') {
                self.take(b'-');
            }
            self.digits("expected a digit of the exponent")?;
        }
        Ok(())
    }

    fn digits(&mut self, what: &'static str) -> Result<(), Malformed> {
        let start = self.pos;
        while matches!(self.bytes.get(self.pos), Some(b'0'..=b'9')) {
            self.pos += 1;
        }
        if self.pos > start { Ok(()) } else { Err(self.bad(what)) }
    }
}

/// The offset of the first control character in `run`.
fn control(run: &[u8]) -> Option<usize> {
    // Checks the whole run at once, which the compiler vectorises; finds the offset only if needed.
    let bad = run.iter().fold(false, |bad, &byte| bad | (byte < 0x20));
    if bad { run.iter().position(|&byte| byte < 0x20) } else { None }
}

/// Whether `bytes` are one JSON value.
pub fn check(bytes: &[u8]) -> Result<(), Malformed> {
    let mut cursor = Cursor::new(bytes);
    cursor.skip()?;
    cursor.end()
}

/// The value at `range`, if it is a non-negative integer.
pub fn integer(bytes: &[u8], range: &Range<usize>) -> Option<u64> {
    std::str::from_utf8(&bytes[range.clone()]).ok()?.parse().ok()
}

/// The ranges of bytes to remove from an object or array so that the children marked in `drop` are
/// gone and the rest is still valid JSON.
///
/// `whole` is the range of the object or array. `children` are the ranges of its members or
/// elements, in order; the range of a member begins at its key. `drop` has one flag for each child.
pub fn without(
    whole: &Range<usize>,
    children: &[Range<usize>],
    drop: &[bool],
) -> Vec<Range<usize>> {
    let mut cuts = Vec::new();
    let mut last_kept: Option<usize> = None;
    let mut idx = 0;
    while idx < children.len() {
        if !drop[idx] {
            last_kept = Some(idx);
            idx += 1;
            continue;
        }
        let next_kept = (idx..children.len()).find(|&later| !drop[later]);
        cuts.push(match (next_kept, last_kept) {
            (Some(next), _) => children[idx].start..children[next].start,
            (None, Some(last)) => children[last].end..children[children.len() - 1].end,
            (None, None) => whole.start + 1..whole.end - 1,
        });
        idx = next_kept.unwrap_or(children.len());
    }
    cuts
}

#[cfg(test)]
mod tests;
