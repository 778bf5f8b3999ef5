//! The keys of the settings, read from the JSON Schema of the settings.

use std::sync::LazyLock;

use serde_json::Value;

use super::foreign::FOREIGN;
use super::values::schema;

/// A key that can be set.
#[derive(Clone, Debug, PartialEq)]
pub struct Key {
    /// The name of the key, with dots: `compaction.keep.results`.
    pub name: String,
    /// The description of the key.
    pub about: String,
    /// The default value, if the key has one that does not depend on the recipe.
    pub default: Option<Value>,
    /// Whether a project's file may set the key only if the user trusts the project.
    pub user_only: bool,
    /// For a value with paths: what its texts may be. `None` for other values.
    pub path: Option<PathKind>,
    /// Whether the value is a list.
    pub list: bool,
    /// Single words that the value may be: names of recipes, or words that may be written in place
    /// of a list.
    pub words: Vec<String>,
    /// A description of allowed values: `a whole number from 1 to 100`.
    pub takes: String,
    /// The schema of the value.
    schema: Value,
}

/// What the strings of a setting are if at least one of them may be a path. The value of such a
/// setting is one string or a list of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathKind {
    /// Only a path.
    File,
    /// Patterns of folders. The list has at least one, and none is empty.
    Folders,
    /// A path, or the name of a recipe.
    Recipe,
}

/// All keys, in the order of the schema.
pub static KEYS: LazyLock<Vec<Key>> = LazyLock::new(|| {
    let mut keys = Vec::new();
    collect("", &schema(), &mut keys);
    keys.retain(|key| !is_foreign(&key.name) && key.name != "$schema");
    keys
});

impl Key {
    /// The name of the environment variable that sets the key.
    pub fn variable(&self) -> String {
        format!("EPITOME_{}", self.name.replace('.', "_").to_uppercase())
    }

    /// Whether every number in a value is within the bounds of its schema.
    pub(super) fn is_within(&self, value: &toml::Value) -> bool {
        is_within(&self.schema, value)
    }
}

fn is_within(schema: &Value, value: &toml::Value) -> bool {
    let ways = schema["anyOf"].as_array();
    ways.into_iter().flatten().all(|way| is_within(way, value))
        && match value {
            toml::Value::Integer(number) => {
                schema["minimum"].as_i64().is_none_or(|least| *number >= least)
                    && schema["maximum"].as_i64().is_none_or(|most| *number <= most)
            }
            toml::Value::Table(members) => {
                members.iter().all(|(name, it)| is_within(&schema["properties"][name], it))
            }
            _ => true,
        }
}

/// The key with this name.
pub fn find(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.name == name)
}

/// A description of the values that a schema allows.
pub(super) fn takes(schema: &Value) -> String {
    let names = list(&schema["enum"]);
    let one_of = list(&schema["oneOf"]);
    let any_of = list(&schema["anyOf"]);
    if let Some(takes) = schema["x-takes"].as_str() {
        return takes.to_owned();
    }
    if schema["x-path"] == "recipe" {
        return "a recipe by name, or the path of one".to_owned();
    }
    if !names.is_empty() {
        return one_of_names(names.iter().filter_map(Value::as_str));
    }
    if one_of.iter().any(|it| it["const"].is_string()) {
        return one_of_names(one_of.iter().filter_map(|it| it["const"].as_str()));
    }
    if let Some(only) = schema["const"].as_str() {
        return format!("`{only}`");
    }
    if any_of.len() > 1 {
        return any_of.iter().map(takes).collect::<Vec<_>>().join(", or ");
    }
    let least = schema["minimum"].as_u64();
    let most = schema["maximum"].as_u64();
    match (schema["type"].as_str(), least.filter(|it| *it > 0), most) {
        (Some("integer"), None, None) => "a whole number".to_owned(),
        (Some("integer"), Some(least), None) => format!("a whole number from {least}"),
        (Some("integer"), least, Some(most)) => {
            format!("a whole number from {} to {most}", least.unwrap_or(0))
        }
        (Some("boolean"), ..) => "true or false".to_owned(),
        (Some("array"), ..) if schema["x-path"].is_string() => "a list of paths".to_owned(),
        (Some("array"), ..) if takes(&schema["items"]) == "a text" => "a list of texts".to_owned(),
        (Some("array"), ..) => format!("a list, each {}", takes(&schema["items"])),
        (Some("object"), ..) => "a table".to_owned(),
        _ if schema["x-path"].is_string() => "a path".to_owned(),
        _ => "a text".to_owned(),
    }
}

fn list(value: &Value) -> Vec<Value> {
    value.as_array().cloned().unwrap_or_default()
}

fn one_of_names<'n>(names: impl Iterator<Item = &'n str>) -> String {
    format!("one of {}", names.collect::<Vec<_>>().join(", "))
}

fn is_foreign(name: &str) -> bool {
    let table = name.split('.').next().unwrap_or_default();
    FOREIGN.iter().any(|foreign| foreign.table == table)
}

fn collect(prefix: &str, schema: &Value, keys: &mut Vec<Key>) {
    let Some(properties) = schema["properties"].as_object() else { return };
    for (name, property) in properties {
        let name = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
        if property["properties"].is_object() {
            collect(&name, property, keys);
            continue;
        }
        let about = property["description"].as_str().unwrap_or_default().replace('\n', " ");
        let ways = property["anyOf"].as_array().map_or(&[][..], Vec::as_slice);
        let list = std::iter::once(property).chain(ways).any(|it| it["type"] == "array");
        let words = ways.iter().filter_map(|it| it["enum"].as_array()).flatten();
        let words = words.filter_map(Value::as_str).map(str::to_owned);
        keys.push(Key {
            words: words.collect(),
            about,
            default: property.get("default").filter(|it| !it.is_null()).cloned(),
            user_only: property["x-yours"] == true,
            path: match property["x-path"].as_str() {
                Some("recipe") => Some(PathKind::Recipe),
                Some("folders") => Some(PathKind::Folders),
                Some(_) => Some(PathKind::File),
                None => None,
            },
            list,
            takes: takes(property),
            schema: property.clone(),
            name,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_says_what_it_is_for() {
        for key in KEYS.iter() {
            assert!(key.about.len() > 5, "{}", key.name);
        }
        assert!(KEYS.len() > 30, "{}", KEYS.len());
    }

    #[test]
    fn what_only_the_user_may_say_is_known() {
        let yours: Vec<&str> =
            KEYS.iter().filter(|key| key.user_only).map(|key| key.name.as_str()).collect();
        let expect = [
            "archive.url",
            "chat.allow",
            "chat.deny",
            "chat.mcp",
            "chat.model",
            "compaction.fallback",
            "compaction.model",
            "keep.days",
            "keep.not_projects",
            "keep.projects",
            "keep.size",
            "live.summary.focus",
            "live.summary.protected",
            "redaction.enabled",
            "redaction.find",
            "redaction.rules",
            "share.url",
            "trust.projects",
        ];
        assert_eq!(yours, expect);
    }
}
