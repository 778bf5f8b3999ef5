//! A cursor over JSON text that finds the positions of values and builds no tree.
//!
//! It accepts what RFC 8259 accepts, to any depth without recursion, and works on bytes: a record
//! with a byte that is not UTF-8 can still be read. Property tests compare it with `serde_json`.

use std::ops::Range;

use epitome_model::Fault;
use memchr::memchr2;

/// A syntax error in JSON text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MalformedJson {
    /// Offset in bytes, from the beginning of the text, at which the error was found.
    pub offset: usize,
    /// A description of the error: `expected a value`.
    pub what: &'static str,
}

impl MalformedJson {
    /// The fault of a record that is not valid JSON from this offset on. `line` is the line of the
    /// record, from 1. `is_ended` says whether a line feed ends that line. If `is_ended` is false,
    /// the fault says that the line is torn: perhaps its record is still being written.
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

    /// A cursor at the beginning of the value at `range`. The cursor reads no byte after `range`.
    pub fn at(bytes: &'a [u8], range: &Range<usize>) -> Cursor<'a> {
        Cursor { bytes: &bytes[..range.end], pos: range.start }
    }

    /// The type of the next value, which is not skipped.
    pub fn kind(&mut self) -> Kind {
        self.skip_space();
        match self.bytes.get(self.pos) {
            Some(b'{') => Kind::Object,
            Some(b'[') => Kind::Array,
            Some(b'"') => Kind::String,
            Some(_) | None => Kind::Other,
        }
    }

    /// Skips the next value and returns its range.
    pub fn skip(&mut self) -> Result<Range<usize>, MalformedJson> {
        self.skip_space();
        let start = self.pos;
        match self.bytes.get(self.pos) {
            Some(b'"') => self.skip_string()?,
            Some(b'{' | b'[') => self.skip_container()?,
            Some(_) | None => self.skip_scalar()?,
        }
        Ok(start..self.pos)
    }

    /// Skips the next value, of any type. Returns its range if it is a string, otherwise `None`.
    pub fn string(&mut self) -> Result<Option<Range<usize>>, MalformedJson> {
        let is_string = self.kind() == Kind::String;
        let place = self.skip()?;
        Ok(is_string.then_some(place))
    }

    /// Skips the next value and returns whether it is `true`.
    pub fn truth(&mut self) -> Result<bool, MalformedJson> {
        Ok(self.raw()? == b"true")
    }

    /// Skips the next value and returns its bytes, with quotes and escapes as they are.
    pub fn raw(&mut self) -> Result<&'a [u8], MalformedJson> {
        let place = self.skip()?;
        Ok(&self.bytes[place])
    }

    /// Skips the next value, of any type. Returns it if it is a non-negative integer, otherwise
    /// `None`.
    pub fn integer(&mut self) -> Result<Option<u64>, MalformedJson> {
        let place = self.skip()?;
        Ok(integer(self.bytes, &place))
    }

    /// Calls `member` for each member of the next object, with the cursor before the value and with
    /// the key, without quotes and with escapes not decoded. `member` must skip the value. Returns
    /// the range of the object.
    ///
    /// If the next value is not an object, skips it, returns its range, and does not call `member`.
    pub fn object<F>(&mut self, mut member: F) -> Result<Range<usize>, MalformedJson>
    where
        F: FnMut(&mut Cursor<'a>, &'a [u8]) -> Result<(), MalformedJson>,
    {
        if self.kind() != Kind::Object {
            return self.skip();
        }
        let start = self.pos;
        self.pos += 1;
        self.skip_space();
        if self.skip_byte(b'}') {
            return Ok(start..self.pos);
        }
        loop {
            let key = self.key()?;
            member(self, key)?;
            self.skip_space();
            if self.skip_byte(b'}') {
                return Ok(start..self.pos);
            }
            self.expect(b',', "expected a comma or the end of the object")?;
        }
    }

    /// Calls `element` for each element of the next array, with the cursor before the element.
    /// `element` must skip the element. Returns the range of the array.
    ///
    /// If the next value is not an array, skips it, returns its range, and does not call `element`.
    pub fn array<F>(&mut self, mut element: F) -> Result<Range<usize>, MalformedJson>
    where
        F: FnMut(&mut Cursor<'a>) -> Result<(), MalformedJson>,
    {
        if self.kind() != Kind::Array {
            return self.skip();
        }
        let start = self.pos;
        self.pos += 1;
        self.skip_space();
        if self.skip_byte(b']') {
            return Ok(start..self.pos);
        }
        loop {
            element(self)?;
            self.skip_space();
            if self.skip_byte(b']') {
                return Ok(start..self.pos);
            }
            self.expect(b',', "expected a comma or the end of the array")?;
        }
    }

    /// Checks that nothing but white space follows.
    pub fn end(&mut self) -> Result<(), MalformedJson> {
        self.skip_space();
        if self.pos == self.bytes.len() {
            Ok(())
        } else {
            Err(self.malformed("text after the value"))
        }
    }

    /// The offset of the next byte.
    pub fn offset(&self) -> usize {
        self.pos
    }

    fn malformed(&self, what: &'static str) -> MalformedJson {
        MalformedJson { offset: self.pos, what }
    }

    fn skip_space(&mut self) {
        while matches!(self.bytes.get(self.pos), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.pos += 1;
        }
    }

    /// Skips the next byte if it is `byte`, and returns whether it is.
    fn skip_byte(&mut self, byte: u8) -> bool {
        let found = self.bytes.get(self.pos) == Some(&byte);
        self.pos += usize::from(found);
        found
    }

    fn expect(&mut self, byte: u8, what: &'static str) -> Result<(), MalformedJson> {
        if self.skip_byte(byte) { Ok(()) } else { Err(self.malformed(what)) }
    }

    /// Skips a key and the colon after it, and returns the key.
    fn key(&mut self) -> Result<&'a [u8], MalformedJson> {
        self.skip_space();
        if self.bytes.get(self.pos) != Some(&b'"') {
            return Err(self.malformed("expected a key"));
        }
        let start = self.pos + 1;
        self.skip_string()?;
        let key = &self.bytes[start..self.pos - 1];
        self.skip_space();
        self.expect(b':', "expected a colon")?;
        Ok(key)
    }

    /// Skips a string, whose first quote is the next byte.
    fn skip_string(&mut self) -> Result<(), MalformedJson> {
        self.pos += 1;
        loop {
            let rest = &self.bytes[self.pos..];
            let Some(run) = memchr2(b'"', b'\\', rest) else {
                self.pos = self.bytes.len();
                return Err(self.malformed("the text ends inside a string"));
            };
            if let Some(at) = control_in(&rest[..run]) {
                self.pos += at;
                return Err(self.malformed("a control character in a string"));
            }
            self.pos += run + 1;
            if rest[run] == b'"' {
                return Ok(());
            }
            self.skip_escape()?;
        }
    }

    /// Skips the rest of an escape, after its backslash.
    fn skip_escape(&mut self) -> Result<(), MalformedJson> {
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
                Some(_) | None => {
                    Err(self.malformed("an escape that is not four hexadecimal digits"))
                }
            },
            Some(_) | None => Err(self.malformed("an unknown escape")),
        }
    }

    /// Skips an object or array. Open containers are on an explicit stack, so that deep nesting
    /// uses memory on the heap and not the call stack.
    fn skip_container(&mut self) -> Result<(), MalformedJson> {
        let mut open: Vec<u8> = Vec::new();
        loop {
            self.skip_space();
            // Whether a value has just ended. False only at the beginning of an object or array
            // that is not empty: its first value is next.
            let is_value_over = match self.bytes.get(self.pos) {
                Some(b'{') => {
                    self.pos += 1;
                    self.skip_space();
                    let empty = self.skip_byte(b'}');
                    if !empty {
                        open.push(b'}');
                        self.key()?;
                    }
                    empty
                }
                Some(b'[') => {
                    self.pos += 1;
                    self.skip_space();
                    let empty = self.skip_byte(b']');
                    if !empty {
                        open.push(b']');
                    }
                    empty
                }
                Some(b'"') => {
                    self.skip_string()?;
                    true
                }
                Some(_) | None => {
                    self.skip_scalar()?;
                    true
                }
            };
            if is_value_over && self.close_containers(&mut open)? {
                return Ok(());
            }
        }
    }

    /// After a value, skips the ends of the containers that end here. If a container is still open,
    /// also skips the comma and (in an object) the key before the next value. Returns whether all
    /// containers are closed.
    fn close_containers(&mut self, open: &mut Vec<u8>) -> Result<bool, MalformedJson> {
        loop {
            let Some(&closer) = open.last() else { return Ok(true) };
            self.skip_space();
            if self.skip_byte(closer) {
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

    /// Skips `true`, `false`, `null` or a number.
    fn skip_scalar(&mut self) -> Result<(), MalformedJson> {
        for word in [&b"true"[..], b"false", b"null"] {
            if self.bytes[self.pos..].starts_with(word) {
                self.pos += word.len();
                return Ok(());
            }
        }
        self.skip_number()
    }

    fn skip_number(&mut self) -> Result<(), MalformedJson> {
        self.skip_byte(b'-');
        if !self.skip_byte(b'0') {
            self.skip_digits("expected a value")?;
        }
        if self.skip_byte(b'.') {
            self.skip_digits("expected a digit after the point")?;
        }
        if self.skip_byte(b'e') || self.skip_byte(b'E') {
            if !self.skip_byte(b'+') {
                self.skip_byte(b'-');
            }
            self.skip_digits("expected a digit of the exponent")?;
        }
        Ok(())
    }

    fn skip_digits(&mut self, what: &'static str) -> Result<(), MalformedJson> {
        let start = self.pos;
        while matches!(self.bytes.get(self.pos), Some(b'0'..=b'9')) {
            self.pos += 1;
        }
        if self.pos > start { Ok(()) } else { Err(self.malformed(what)) }
    }
}

/// The offset of the first control character in `run`; `None` if there is none.
fn control_in(run: &[u8]) -> Option<usize> {
    // Checks the whole run at once, which the compiler vectorises; finds the offset only if a byte
    // is bad.
    let bad = run.iter().fold(false, |bad, &byte| bad | (byte < 0x20));
    if bad { run.iter().position(|&byte| byte < 0x20) } else { None }
}

/// Checks that `bytes` are one JSON value.
pub fn check(bytes: &[u8]) -> Result<(), MalformedJson> {
    let mut cursor = Cursor::new(bytes);
    cursor.skip()?;
    cursor.end()
}

/// The value at `range`, if it is a non-negative integer of at most 64 bits, without a fraction or
/// an exponent.
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
