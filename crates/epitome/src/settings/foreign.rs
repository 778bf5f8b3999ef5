//! Names that users know from other programs, and what they are here.

use serde_json::json;
use toml::Value;

use super::nearest::nearest;

/// A table of another program's names.
pub struct Foreign {
    /// What it is called in `epitome.toml`.
    pub table: &'static str,
    /// Whose names they are.
    pub of: &'static str,
    /// The recipe that does as that program does.
    pub recipe: Option<&'static str>,
    /// The names.
    pub names: &'static [Name],
    /// Where they stand in that program's own file.
    pub at: &'static [&'static str],
}

/// A name.
pub struct Name {
    /// As that program spells it.
    pub name: &'static str,
    /// What it is here.
    pub to: To,
}

/// What a name is here.
#[derive(Clone, Copy, Debug)]
pub enum To {
    /// The same value under this key.
    Key(&'static str),
    /// The same number under this key, but for 0, which says nothing.
    Positive(&'static str),
    /// The number so many times under this key.
    Times(&'static str, i64),
    /// A table of names, each the same value under a key.
    Within(&'static [(&'static str, &'static str)]),
    /// `{ type, value }`, or a number of the first type: by type, the key.
    Typed(&'static [(&'static str, &'static str)]),
    /// For `true`, these keys with these values.
    IfTrue(&'static [(&'static str, Fixed)]),
    /// For `true` and `false`, this key with one text or the other.
    Either(&'static str, &'static str, &'static str),
    /// It has to be this text.
    Exactly(&'static str),
}

/// A value that is set for `true`.
#[derive(Clone, Copy, Debug)]
pub enum Fixed {
    /// A text.
    Text(&'static str),
    /// A number.
    Number(i64),
    /// A list of one text.
    One(&'static str),
}

const fn key(name: &'static str, to: &'static str) -> Name {
    Name { name, to: To::Key(to) }
}

/// The tables.
pub const FOREIGN: &[Foreign] = &[
    // https://platform.claude.com/docs/en/build-with-claude/context-editing
    Foreign {
        table: "anthropic",
        of: "Anthropic's context editing",
        recipe: Some("clear-tool-uses"),
        names: &[
            Name { name: "type", to: To::Exactly("clear_tool_uses_20250919") },
            Name {
                name: "trigger",
                to: To::Typed(&[
                    ("input_tokens", "compaction.trigger.tokens"),
                    ("tool_uses", "live.trigger.results"),
                ]),
            },
            Name { name: "keep", to: To::Typed(&[("tool_uses", "compaction.keep.results")]) },
            Name {
                name: "clear_at_least",
                to: To::Typed(&[("input_tokens", "compaction.clear_at_least")]),
            },
            key("exclude_tools", "compaction.exempt_tools"),
            key("clear_tool_inputs", "compaction.clear_tool_inputs"),
        ],
        at: &["context_management", "edits"],
    },
    // pi's settings.json
    Foreign {
        table: "pi",
        of: "pi",
        recipe: Some("pi"),
        names: &[
            key("enabled", "live.auto"),
            key("reserveTokens", "live.reserve"),
            key("keepRecentTokens", "compaction.keep.tokens"),
        ],
        at: &["compaction"],
    },
    // OpenCode's opencode.json. What it prunes is what is older than 40,000 tokens, if that is
    // 20,000 or more; skills stay.
    Foreign {
        table: "opencode",
        of: "OpenCode",
        recipe: None,
        names: &[
            key("auto", "live.auto"),
            Name {
                name: "prune",
                to: To::IfTrue(&[
                    ("compaction.recipe", Fixed::Text("clear-tool-uses")),
                    ("compaction.keep.tokens", Fixed::Number(40_000)),
                    ("compaction.clear_at_least", Fixed::Number(20_000)),
                    ("compaction.exempt_tools", Fixed::One("skill")),
                ]),
            },
            key("reserved", "live.reserve"),
            // Of its second format: packages/core/src/config/compaction.ts.
            key("buffer", "live.reserve"),
            Name { name: "keep", to: To::Within(&[("tokens", "compaction.keep.tokens")]) },
            key("tail_turns", "compaction.keep.turns"),
            key("preserve_recent_tokens", "compaction.keep.tokens"),
        ],
        at: &["compaction"],
    },
    // J-CLI's [compact]; a threshold of 0 is its default
    Foreign {
        table: "jcli",
        of: "J-CLI",
        recipe: Some("jcli"),
        names: &[
            key("enabled", "live.auto"),
            Name { name: "token_threshold", to: To::Positive("live.summary.over.tokens") },
            key("keep_recent", "compaction.keep.results"),
            key("micro_compact_exempt_tools", "compaction.exempt_tools"),
        ],
        at: &["compact"],
    },
    // ion's [compaction]
    Foreign {
        table: "ion",
        of: "ion",
        recipe: Some("ion"),
        names: &[
            key("model", "compaction.model"),
            key("auto", "live.auto"),
            key("protected_messages", "compaction.keep.messages"),
        ],
        at: &["compaction"],
    },
    // .GITCLAW/compression.json
    Foreign {
        table: "gitclaw",
        of: "GITCLAW's session compression",
        recipe: Some("gitclaw"),
        names: &[
            key("enabled", "live.auto"),
            Name { name: "sizeThresholdKB", to: To::Times("compaction.trigger.bytes", 1_024) },
            key("turnThresholdBeforeCompress", "compaction.keep.turns"),
            key("toolCallMaxBytes", "compaction.min_content_bytes"),
            key("toolResultMaxBytes", "compaction.min_result_bytes"),
            Name { name: "stripThinking", to: To::Either("compaction.thinking", "drop", "keep") },
            key("eliminateRedundancy", "compaction.repeats"),
            Name {
                name: "keepBackup",
                to: To::IfTrue(&[("compaction.backup", Fixed::Text("archive"))]),
            },
        ],
        at: &["session"],
    },
];

impl Foreign {
    /// The table of a name.
    pub fn named(table: &str) -> Option<&'static Foreign> {
        FOREIGN.iter().find(|foreign| foreign.table == table)
    }

    /// A name of the table.
    pub fn name(&self, name: &str) -> Option<&'static Name> {
        self.names.iter().find(|known| known.name == name)
    }
}

impl Name {
    /// What a value of this name sets, or what is wrong with it.
    pub fn set(&self, value: &Value) -> Result<Vec<(&'static str, Value)>, String> {
        let number = |value: &Value| value.as_integer().filter(|it| *it >= 0);
        let truth = |value: &Value| value.as_bool().ok_or_else(|| "is true or false".to_owned());
        let positive = || "is a number".to_owned();
        match self.to {
            To::Key(key) => Ok(vec![(key, value.clone())]),
            To::Positive(key) => {
                let number = number(value).ok_or_else(positive)?;
                Ok(Vec::from_iter((number > 0).then_some((key, value.clone()))))
            }
            To::Times(key, times) => {
                let number = number(value).ok_or_else(positive)?;
                let times = number.checked_mul(times).ok_or_else(|| "is too large".to_owned())?;
                Ok(vec![(key, Value::Integer(times))])
            }
            To::Within(names) => within(names, value),
            To::Typed(types) => typed(types, value),
            To::IfTrue(set) => Ok(if truth(value)? {
                set.iter().map(|(key, fixed)| (*key, fixed.value())).collect()
            } else {
                Vec::new()
            }),
            To::Either(key, yes, no) => {
                let text = if truth(value)? { yes } else { no };
                Ok(vec![(key, Value::String(text.to_owned()))])
            }
            To::Exactly(text) if value.as_str() == Some(text) => Ok(Vec::new()),
            To::Exactly(text) => Err(format!("has to be `{text}`")),
        }
    }

    /// What it is here, for people.
    pub fn told(&self) -> String {
        match self.to {
            To::Key(key) | To::Positive(key) | To::Either(key, ..) => key.to_owned(),
            To::Times(key, times) => format!("{key}, {times} times"),
            To::Within(types) | To::Typed(types) => {
                let keys: Vec<&str> = types.iter().map(|(_, key)| *key).collect();
                keys.join(" or ")
            }
            To::IfTrue(set) => {
                let keys: Vec<&str> = set.iter().map(|(key, _)| *key).collect();
                keys.join(", ")
            }
            To::Exactly(text) => format!("nothing but `{text}`"),
        }
    }
}

impl Foreign {
    /// The schema of the table, where the schema of our own keys is known.
    pub(super) fn schema(&self, ours: &serde_json::Value) -> serde_json::Value {
        let names = self.names.iter().map(|name| (name.name.to_owned(), name.schema(ours)));
        let names: serde_json::Map<String, serde_json::Value> = names.collect();
        json!({
            "description": format!("The names of {}, as they stand there.", self.of),
            "type": "object",
            "additionalProperties": false,
            "properties": names,
        })
    }
}

impl Name {
    fn schema(&self, ours: &serde_json::Value) -> serde_json::Value {
        let of_key = |key: &str| {
            let mut place = ours;
            for part in key.split('.') {
                place = &place["properties"][part];
            }
            let mut schema = place.clone();
            if let Some(schema) = schema.as_object_mut() {
                schema.retain(|name, _| !name.starts_with("x-") && name != "default");
            }
            schema
        };
        let mut schema = match self.to {
            To::Key(key) => of_key(key),
            To::Positive(_) | To::Times(..) => json!({ "type": "integer", "minimum": 0 }),
            To::IfTrue(_) | To::Either(..) => json!({ "type": "boolean" }),
            To::Exactly(text) => json!({ "const": text }),
            To::Within(names) => {
                let names = names.iter().map(|(name, key)| ((*name).to_owned(), of_key(key)));
                let names: serde_json::Map<String, serde_json::Value> = names.collect();
                json!({ "type": "object", "additionalProperties": false, "properties": names })
            }
            To::Typed(types) => {
                let typed = types.iter().map(|(name, key)| {
                    json!({
                        "type": "object",
                        "required": ["type", "value"],
                        "properties": { "type": { "const": name }, "value": of_key(key) },
                    })
                });
                let plain = of_key(types[0].1);
                json!({ "anyOf": std::iter::once(plain).chain(typed).collect::<Vec<_>>() })
            }
        };
        schema["description"] = self.told().into();
        schema
    }
}

impl Fixed {
    fn value(self) -> Value {
        match self {
            Fixed::Text(text) => Value::String(text.to_owned()),
            Fixed::Number(number) => Value::Integer(number),
            Fixed::One(text) => Value::Array(vec![Value::String(text.to_owned())]),
        }
    }
}

/// A table of another program's.
fn within(
    names: &'static [(&'static str, &'static str)],
    value: &Value,
) -> Result<Vec<(&'static str, Value)>, String> {
    let known: Vec<&str> = names.iter().map(|(name, _)| *name).collect();
    let table = value.as_table().ok_or_else(|| format!("is a table of {}", known.join(", ")))?;
    let set = table.iter().map(|(name, value)| {
        let found = names.iter().find(|(known, _)| known == name);
        let (_, key) = found.ok_or_else(|| {
            let near = nearest(name, known.iter().copied());
            let near = near.map(|near| format!("; did you mean `{near}`?"));
            format!("has no `{name}`{}", near.unwrap_or_default())
        })?;
        Ok((*key, value.clone()))
    });
    set.collect()
}

fn typed(
    types: &'static [(&'static str, &'static str)],
    value: &Value,
) -> Result<Vec<(&'static str, Value)>, String> {
    let names: Vec<&str> = types.iter().map(|(name, _)| *name).collect();
    let wrong = || format!("is a number, or {{ type, value }} with a type of {}", names.join(", "));
    let (name, number) = match value {
        Value::Integer(_) => (names[0], Some(value)),
        Value::Table(table) => {
            (table.get("type").and_then(Value::as_str).unwrap_or_default(), table.get("value"))
        }
        _ => return Err(wrong()),
    };
    let key = types.iter().find(|(known, _)| *known == name).map(|(_, key)| *key);
    match (key, number) {
        (Some(key), Some(number @ Value::Integer(_))) => Ok(vec![(key, number.clone())]),
        _ => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::keys;

    #[test]
    fn whatever_a_name_sets_is_a_key() {
        for name in FOREIGN.iter().flat_map(|foreign| foreign.names) {
            let told = name.told();
            for key in told.split([' ', ',']).filter(|word| word.contains('.')) {
                assert!(keys::named(key).is_some(), "{}: {key}", name.name);
            }
        }
    }

    #[test]
    fn values_are_carried_over() {
        let set = |table: &str, name: &str, value: &str| {
            let value: toml::Table = format!("v = {value}").parse().expect("TOML");
            let name = Foreign::named(table).expect("a table").name(name).expect("a name");
            name.set(&value["v"]).map(|set| {
                let told = set.iter().map(|(key, value)| format!("{key} = {value}"));
                told.collect::<Vec<_>>().join("; ")
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
                (Ok(told), Ok(expect)) => assert_eq!(told, expect, "{table}.{name}"),
                (Err(told), Err(expect)) => assert!(told.starts_with(expect), "{told}"),
                (told, _) => panic!("{table}.{name}: {told:?}"),
            }
        }
    }
}
