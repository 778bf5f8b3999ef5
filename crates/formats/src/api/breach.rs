//! What is told of a body that breaks the laws of its wire.

use std::fmt::Display;

use epitome_model::{Breach, Law, Source};

use crate::document::{Document, Value, whole};

/// Asks `laws` about a body.
pub fn check(source: &dyn Source, laws: fn(&mut Breaches<'_>, &Value<'_>)) -> Vec<Breach> {
    let bytes = whole(source);
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Vec::new();
    }
    let document = match Document::parse(&bytes) {
        Ok(document) if document.root.is_object() => document,
        Ok(_) | Err(_) => {
            let what = "this is no JSON object".to_owned();
            return vec![Breach { law: Law::Shape, line: 1, what }];
        }
    };
    let mut found = Breaches { document: &document, found: Vec::new() };
    laws(&mut found, &document.root);
    found.found.sort();
    found.found
}

/// The breaches found so far.
pub struct Breaches<'d> {
    document: &'d Document<'d>,
    found: Vec<Breach>,
}

impl Breaches<'_> {
    /// A law does not hold at `value`, whose place in the body is `place`.
    pub fn add(&mut self, law: Law, value: &Value<'_>, place: &str, what: impl Display) {
        let line = self.document.line(value);
        self.found.push(Breach { law, line, what: format!("{place}: {what}") });
    }

    /// An object has no members but these.
    pub fn keys(&mut self, value: &Value<'_>, place: &str, known: &[&str]) {
        for (key, member) in value.members() {
            if !known.contains(&&**key) {
                let key = epitome_model::short(key, 40);
                self.add(Law::Keys, member, place, format_args!("`{key}` is no key of this"));
            }
        }
    }

    /// A member is there and is a string.
    pub fn text(&mut self, value: &Value<'_>, place: &str, key: &str) {
        if !value.get(key).is_some_and(Value::is_text) {
            self.add(Law::Shape, value, place, format_args!("`{key}` is no text"));
        }
    }

    /// Bytes of the body.
    pub fn body_len(&self) -> usize {
        self.document.bytes().len()
    }
}

/// Whether an id or name is of these characters alone, and not too long.
pub fn is_name(text: &str, longest: usize) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    !text.is_empty() && text.len() <= longest && text.chars().all(fits)
}
