//! Names of settings that users know from other programs, and the keys that correspond to them.

use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::json;
use toml::Value;

use super::nearest::nearest;

/// The settings of another program.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Foreign {
    /// The name of the program's table in `epitome.toml`.
    pub table: String,
    /// The name of the program.
    pub of: String,
    /// The name of the recipe that works like that program.
    pub recipe: Option<String>,
    /// The settings of the program that correspond to settings of epitome.
    pub names: Vec<Name>,
    /// The keys that lead to the settings in that program's own file.
    pub at: Vec<String>,
}

/// A setting of another program.
#[derive(Deserialize)]
pub struct Name {
    /// The name as that program spells it.
    pub name: String,
    /// How a value of this setting is converted to settings of epitome.
    #[serde(flatten)]
    pub to: To,
}

/// Pairs of a name and the key that corresponds to it.
type Keys = Vec<(String, String)>;

/// How a value of another program is converted.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum To {
    /// This key gets the same value.
    Key(String),
    /// This key gets the same number. The number 0 sets nothing.
    Positive(String),
    /// This key gets the number, multiplied by this factor.
    Times(String, i64),
    /// The value is a table. Each name in the table has a key, which gets the value of that name.
    Within(Keys),
    /// The value is `{ type, value }`, or a number alone, which means the first type in the list.
    /// Each type has a key, which gets the number.
    Typed(Keys),
    /// If the value is `true`, these keys get these values. The value `false` sets nothing.
    IfTrue(Vec<(String, Value)>),
    /// This key gets the first text for `true`, and the second for `false`.
    Either(String, String, String),
    /// The value must be this text, and sets nothing.
    Exactly(String),
}

/// The settings of all known programs.
pub static FOREIGN: LazyLock<Vec<Foreign>> = LazyLock::new(|| {
    #[derive(Deserialize)]
    struct Programs {
        program: Vec<Foreign>,
    }
    let programs: Programs =
        toml::from_str(include_str!("foreign.toml")).expect("a test reads the table");
    programs.program
});

impl Foreign {
    /// The program whose table in `epitome.toml` has this name.
    pub fn find(table: &str) -> Option<&'static Foreign> {
        FOREIGN.iter().find(|foreign| foreign.table == table)
    }

    /// The setting that the program calls `name`.
    pub fn name(&self, name: &str) -> Option<&Name> {
        self.names.iter().find(|known| known.name == name)
    }
}

impl Name {
    /// The settings that a value of this name sets, or what is wrong with the value.
    pub fn set(&self, value: &Value) -> Result<Vec<(&str, Value)>, String> {
        match &self.to {
            To::Key(key) => Ok(vec![(key, value.clone())]),
            To::Positive(key) => {
                let number = number(value)?;
                Ok(Vec::from_iter((number > 0).then_some((&**key, value.clone()))))
            }
            To::Times(key, times) => {
                let number = number(value)?;
                let times = number.checked_mul(*times).ok_or_else(|| "is too large".to_owned())?;
                Ok(vec![(key, Value::Integer(times))])
            }
            To::Within(names) => within(names, value),
            To::Typed(types) => typed(types, value),
            To::IfTrue(set) => Ok(if truth(value)? {
                set.iter().map(|(key, value)| (&**key, value.clone())).collect()
            } else {
                Vec::new()
            }),
            To::Either(key, yes, no) => {
                let text = if truth(value)? { yes } else { no };
                Ok(vec![(key, Value::String(text.clone()))])
            }
            To::Exactly(text) if value.as_str() == Some(text) => Ok(Vec::new()),
            To::Exactly(text) => Err(format!("has to be `{text}`")),
        }
    }

    /// A description of the settings of epitome that correspond to this name.
    pub fn message(&self) -> String {
        match &self.to {
            To::Key(key) | To::Positive(key) | To::Either(key, ..) => key.clone(),
            To::Times(key, times) => format!("{key}, {times} times"),
            To::Within(types) | To::Typed(types) => {
                let keys: Vec<&str> = types.iter().map(|(_, key)| &**key).collect();
                keys.join(" or ")
            }
            To::IfTrue(set) => {
                let keys: Vec<&str> = set.iter().map(|(key, _)| &**key).collect();
                keys.join(", ")
            }
            To::Exactly(text) => format!("nothing but `{text}`"),
        }
    }
}

fn number(value: &Value) -> Result<i64, String> {
    let number = value.as_integer().filter(|number| *number >= 0);
    number.ok_or_else(|| "is a number".to_owned())
}

fn truth(value: &Value) -> Result<bool, String> {
    value.as_bool().ok_or_else(|| "is true or false".to_owned())
}

impl Foreign {
    /// The JSON Schema of the program's table, made from the schema of epitome's own keys.
    pub(super) fn schema(&self, ours: &serde_json::Value) -> serde_json::Value {
        let names = self.names.iter().map(|name| (name.name.clone(), name.schema(ours)));
        let names: serde_json::Map<String, serde_json::Value> = names.collect();
        json!({
            "description": format!("The names of {}, as in its own settings.", self.of),
            "type": "object",
            "additionalProperties": false,
            "properties": names,
        })
    }
}

impl Name {
    fn schema(&self, ours: &serde_json::Value) -> serde_json::Value {
        let mut schema = match &self.to {
            To::Key(key) => schema_of(ours, key),
            To::Positive(_) | To::Times(..) => json!({ "type": "integer", "minimum": 0 }),
            To::IfTrue(_) | To::Either(..) => json!({ "type": "boolean" }),
            To::Exactly(text) => json!({ "const": text }),
            To::Within(names) => {
                let names = names.iter().map(|(name, key)| (name.clone(), schema_of(ours, key)));
                let names: serde_json::Map<String, serde_json::Value> = names.collect();
                json!({ "type": "object", "additionalProperties": false, "properties": names })
            }
            To::Typed(types) => {
                let typed = types.iter().map(|(name, key)| {
                    json!({
                        "type": "object",
                        "required": ["type", "value"],
                        "properties": { "type": { "const": name }, "value": schema_of(ours, key) },
                    })
                });
                let plain = schema_of(ours, &types[0].1);
                json!({ "anyOf": std::iter::once(plain).chain(typed).collect::<Vec<_>>() })
            }
        };
        schema["description"] = self.message().into();
        schema
    }
}

/// The schema of one of epitome's own keys, without its default and without epitome's own members
/// (`x-…`).
fn schema_of(ours: &serde_json::Value, key: &str) -> serde_json::Value {
    let mut place = ours;
    for part in key.split('.') {
        place = &place["properties"][part];
    }
    let mut schema = place.clone();
    if let Some(schema) = schema.as_object_mut() {
        schema.retain(|name, _| !name.starts_with("x-") && name != "default");
    }
    schema
}

/// Converts a table whose names correspond to the keys in `names`. Returns the settings, or what is
/// wrong with the table.
fn within<'n>(
    names: &'n [(String, String)],
    value: &Value,
) -> Result<Vec<(&'n str, Value)>, String> {
    let known: Vec<&str> = names.iter().map(|(name, _)| &**name).collect();
    let table = value.as_table().ok_or_else(|| format!("is a table of {}", known.join(", ")))?;
    let set = table.iter().map(|(name, value)| {
        let found = names.iter().find(|(known, _)| known == name);
        let (_, key) = found.ok_or_else(|| {
            let near = nearest(name, known.iter().copied());
            let near = near.map(|near| format!("; did you mean `{near}`?"));
            format!("has no `{name}`{}", near.unwrap_or_default())
        })?;
        Ok((&**key, value.clone()))
    });
    set.collect()
}

fn typed<'n>(
    types: &'n [(String, String)],
    value: &Value,
) -> Result<Vec<(&'n str, Value)>, String> {
    let (name, number) = match value {
        Value::Integer(_) => (&*types[0].0, Some(value)),
        Value::Table(table) => {
            (table.get("type").and_then(Value::as_str).unwrap_or_default(), table.get("value"))
        }
        _ => ("", None),
    };
    let key = types.iter().find(|(known, _)| known == name).map(|(_, key)| &**key);
    match (key, number) {
        (Some(key), Some(number @ Value::Integer(_))) => Ok(vec![(key, number.clone())]),
        _ => {
            let names: Vec<&str> = types.iter().map(|(name, _)| &**name).collect();
            Err(format!("is a number, or {{ type, value }} with a type of {}", names.join(", ")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::keys;

    #[test]
    fn whatever_a_name_sets_is_a_key() {
        for name in FOREIGN.iter().flat_map(|foreign| &foreign.names) {
            let message = name.message();
            for key in message.split([' ', ',']).filter(|word| word.contains('.')) {
                assert!(keys::find(key).is_some(), "{}: {key}", name.name);
            }
        }
    }

    #[test]
    fn values_are_carried_over() {
        let set = |table: &str, name: &str, value: &str| {
            let value: toml::Table = format!("v = {value}").parse().expect("TOML");
            let name = Foreign::find(table).expect("a table").name(name).expect("a name");
            name.set(&value["v"]).map(|set| {
                let settings_text = set.iter().map(|(key, value)| format!("{key} = {value}"));
                settings_text.collect::<Vec<_>>().join("; ")
            })
        };
        let cases = [
            ("anthropic", "trigger", "50", Ok("compaction.trigger.tokens = 50")),
            ("anthropic", "trigger", "{type='tool_uses',value=9}", Ok("live.trigger.results = 9")),
            ("anthropic", "keep", "{type='tokens',value=9}", Err("is a number, or")),
            ("anthropic", "type", "'compact'", Err("has to be `clear_tool_uses_20250919`")),
            ("pi", "reserveTokens", "16384", Ok("live.reserve = 16384")),
            ("opencode", "prune", "false", Ok("")),
            ("opencode", "prune", "1", Err("is true or false")),
            ("opencode", "keep", "{tokens=8000}", Ok("compaction.keep.tokens = 8000")),
            ("opencode", "keep", "{token=8000}", Err("has no `token`; did you mean `tokens`?")),
            ("opencode", "keep", "8000", Err("is a table of tokens")),
            ("opencode", "buffer", "20000", Ok("live.reserve = 20000")),
            ("jcli", "token_threshold", "0", Ok("")),
            ("gitclaw", "sizeThresholdKB", "100", Ok("compaction.trigger.bytes = 102400")),
            ("gitclaw", "stripThinking", "false", Ok("compaction.thinking = \"keep\"")),
        ];
        for (table, name, value, expect) in cases {
            match (set(table, name, value), expect) {
                (Ok(settings_text), Ok(expect)) => {
                    assert_eq!(settings_text, expect, "{table}.{name}")
                }
                (Err(settings_text), Err(expect)) => {
                    assert!(settings_text.starts_with(expect), "{settings_text}")
                }
                (settings_text, _) => panic!("{table}.{name}: {settings_text:?}"),
            }
        }
    }
}
