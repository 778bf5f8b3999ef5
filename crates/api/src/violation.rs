//! Reports request bodies that violate the invariants of their API.

use std::fmt::Display;

use epitome_json::{Document, Value, read_all};
use epitome_model::{Invariant, Invariants, Source, Transcript, Violation};

/// The invariants of the request bodies of an API, as a function that reports each violation.
pub struct BodyInvariants(pub fn(&mut Violations<'_>, &Value<'_>));

impl Invariants for BodyInvariants {
    fn check(&self, _transcript: &Transcript, source: &dyn Source) -> Vec<Violation> {
        check(source, self.0)
    }
}

fn check(source: &dyn Source, invariants: fn(&mut Violations<'_>, &Value<'_>)) -> Vec<Violation> {
    let bytes = read_all(source);
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Vec::new();
    }
    let document = match Document::parse(&bytes) {
        Ok(document) if document.root.is_object() => document,
        Ok(_) | Err(_) => {
            let what = "it is not a JSON object".to_owned();
            return vec![Violation { invariant: Invariant::Shape, line: 1, what }];
        }
    };
    let mut found = Violations { document: &document, found: Vec::new() };
    invariants(&mut found, &document.root);
    found.found.sort();
    found.found
}

/// The violations found so far.
pub struct Violations<'d> {
    document: &'d Document<'d>,
    found: Vec<Violation>,
}

impl Violations<'_> {
    /// Reports a violation at the line of `value`. `place` is a path in the body, such as
    /// `messages.0`.
    pub fn add(
        &mut self,
        invariant: Invariant,
        value: &Value<'_>,
        place: &str,
        what: impl Display,
    ) {
        let line = self.document.line(value);
        self.found.push(Violation { invariant, line, what: format!("{place}: {what}") });
    }

    /// Reports each key of an object that is not in `known`.
    pub fn check_keys(&mut self, value: &Value<'_>, place: &str, known: &[&str]) {
        for (key, member) in value.members() {
            if !known.contains(&&**key) {
                let key = epitome_model::short(key, 40);
                let what = format_args!("`{key}` is not a key of this");
                self.add(Invariant::Keys, member, place, what);
            }
        }
    }

    /// Reports a member that is missing or not a string.
    pub fn text(&mut self, value: &Value<'_>, place: &str, key: &str) {
        if !value.get(key).is_some_and(Value::is_text) {
            self.add(Invariant::Shape, value, place, format_args!("`{key}` is not a string"));
        }
    }

    /// The length of the body in bytes.
    pub fn body_len(&self) -> usize {
        self.document.bytes().len()
    }
}

/// Whether a text is valid as an id or name: 1 to `longest` ASCII letters, digits, `_` and `-`.
pub fn is_name(text: &str, longest: usize) -> bool {
    let mut chars = text.chars();
    !text.is_empty()
        && text.len() <= longest
        && chars.all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
}
