//! Finds a misspelt key in a recipe file, and the key that was probably meant.

use std::fmt;
use std::ops::Range;

use epitome_passes::Recipe;
use serde::Deserializer as _;
use serde::de::Visitor;
use serde_json::Value;
use toml::Spanned;
use toml::de::{DeTable, DeValue, Error, ValueDeserializer};

use crate::settings::{nearest, schema_of};

/// A key of a recipe file that no recipe has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UnknownKey {
    /// The bytes of the key in the text.
    span: Range<usize>,
    /// The key.
    name: String,
    /// The keys that its table may have.
    known: Vec<String>,
}

impl UnknownKey {
    /// The first unknown key of a text; `None` if there is none, or if the text is not TOML.
    pub(super) fn find(text: &str) -> Option<UnknownKey> {
        let file = Recipe::parse_table(text).ok()?;
        let mut found = Vec::new();
        collect(file.get_ref(), &schema_of::<Recipe>("A recipe"), &mut found);
        found.into_iter().min_by_key(|key| key.span.start)
    }

    /// The error, with the place of the key in the text.
    pub(super) fn error(&self, text: &str) -> Error {
        let message = Message(format!("unknown key `{}`", self.name));
        // A deserializer gives an error the place of its value. There is no other way.
        let value = Spanned::new(self.span.clone(), DeValue::Boolean(true));
        let Err(mut err) = ValueDeserializer::from(value).deserialize_bool(message);
        err.set_input(Some(text));
        err
    }

    /// Names the key that was probably meant, or all that are possible.
    pub(super) fn hint(&self) -> String {
        match nearest(&self.name, self.known.iter().map(String::as_str)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("the keys here are: {}", self.known.join(", ")),
        }
    }
}

/// Accepts no value.
struct Message(String);

impl Visitor<'_> for Message {
    type Value = std::convert::Infallible;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }

    fn visit_bool<E: serde::de::Error>(self, _: bool) -> Result<Self::Value, E> {
        Err(E::custom(self.0))
    }
}

/// Adds the keys of a table, and of the tables in it, that the schema does not have.
fn collect(table: &DeTable<'_>, schema: &Value, found: &mut Vec<UnknownKey>) {
    let Some(properties) = schema_of_table(schema, table)["properties"].as_object() else { return };
    for (key, value) in table {
        let name: &str = key.get_ref();
        let Some(schema) = properties.get(name) else {
            let known = properties.keys().cloned().collect();
            found.push(UnknownKey { span: key.span(), name: name.to_owned(), known });
            continue;
        };
        match value.get_ref() {
            DeValue::Table(inner) => collect(inner, schema, found),
            DeValue::Array(items) => {
                for item in items.iter().filter_map(|item| item.get_ref().as_table()) {
                    collect(item, &schema["items"], found);
                }
            }
            _ => {}
        }
    }
}

/// Of a schema with several kinds of tables, such as passes, the one for this table. `Null` if
/// there is none.
fn schema_of_table<'s>(schema: &'s Value, table: &DeTable<'_>) -> &'s Value {
    if schema["properties"].is_object() {
        return schema;
    }
    let pass = table.get("pass").and_then(|pass| pass.get_ref().as_str());
    let kinds = [&schema["oneOf"], &schema["anyOf"]].into_iter().filter_map(Value::as_array);
    let mut kinds = kinds.flatten().filter(|kind| kind["properties"].is_object());
    let kind = kinds.find(|kind| kind["properties"]["pass"]["const"].as_str() == pass);
    kind.unwrap_or(&Value::Null)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_key_that_no_recipe_has_is_found_at_its_place() {
        for (text, expect) in [
            ("keeep = {}\nstages = {}", Some(("keeep", "did you mean `keep`?"))),
            (
                "[keep]\nresult = 3\n[stages]\npases = []",
                Some(("result", "did you mean `results`?")),
            ),
            (
                "stages.passes = [{ pass = 'results', min_byte = 3 }]",
                Some(("min_byte", "`min_bytes`?")),
            ),
            ("passes = [{ pass = 'stale', min_byte = 3 }]", Some(("min_byte", "`min_bytes`?"))),
            (
                "stages.live.passes = [{ pass = 'stale', zzz = 3 }]",
                Some(("zzz", "are: min_bytes, ")),
            ),
            ("stages.summary.over.token = 3", Some(("token", "`tokens`?"))),
            ("live.trigger.token = 3\nstages = {}", Some(("token", "`tokens`?"))),
            ("target = { percnt = 3 }\nstages = {}", Some(("percnt", "`percent`?"))),
            (
                "keep.pins = ['a']\ntarget_chars = 4\npasses = [{ pass = 'unheard-of', a = 1 }]",
                None,
            ),
            ("live.summary.max_tokens = 'x'\nstages = 5", None),
        ] {
            let found = UnknownKey::find(text);
            let words = found.as_ref().map(|key| (&text[key.span.clone()], key.hint()));
            match (words, expect) {
                (Some((name, hint)), Some(expect)) => {
                    assert!(name == expect.0 && hint.contains(expect.1), "{text}: {name}, {hint}");
                }
                (words, expect) => assert_eq!((words, expect), (None, None), "{text}"),
            }
        }
    }
}
