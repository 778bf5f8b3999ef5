//! Adds an entry to a list in another program's JSON settings, and removes it. The rest of the text
//! stays as it is.

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstArray, CstInputValue, CstObject, CstObjectProp, CstRootNode};
use serde_json::Value;

/// Why an entry cannot be added.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unfit {
    /// The text is not valid JSON, even if comments and trailing commas are allowed.
    #[error("not valid JSON: {0}")]
    NoJson(String),
    /// The text begins with a byte order mark, which agents do not skip.
    #[error("it begins with a byte order mark, which JSON does not allow")]
    Marked,
    /// The value of this key is not what the change needs: it is, for example, a text instead of a
    /// list.
    #[error("`{0}` is something else")]
    Other(String),
}

/// The result of removing an entry from a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RemovedEntry {
    /// The entry was removed. This is the new text.
    Out(String),
    /// The list has no such entry, but another one with the same command: the user edited the
    /// entry.
    Changed,
    /// There is no such entry, or the text is not valid JSON.
    Missing,
}

/// Appends an entry to the list at the path `list`. Returns the new text, and how many of the keys
/// on this path were added.
pub(crate) fn put(text: &str, list: &[&str], entry: &Value) -> Result<(String, usize), Unfit> {
    if text.trim().is_empty() {
        let mut whole = Value::from(vec![entry.clone()]);
        for key in list.iter().rev() {
            whole = Value::from_iter([((*key).to_owned(), whole)]);
        }
        return Ok((format!("{whole:#}\n"), list.len()));
    }
    let root = parse(text)?;
    let mut object = root.object_value().ok_or_else(|| unfit("the whole"))?;
    let (last, before) = list.split_last().expect("a list has a name");
    let mut made = 0;
    for key in before {
        made += usize::from(object.get(key).is_none());
        object = object.object_value_or_create(key).ok_or_else(|| unfit(key))?;
    }
    made += usize::from(object.get(last).is_none());
    let array = object.array_value_or_create(last).ok_or_else(|| unfit(last))?;
    array.append(input(entry));
    let after = root.to_string();
    let is_so = value(&after).zip(value(text)).is_some_and(|(after, before)| {
        let mut expect = before;
        let all = expect_list(&mut expect, list);
        all.push(entry.clone());
        expect == after
    });
    // The editor of JSON is another project's code, so its result is compared with the intended
    // value.
    is_so.then_some((after, made)).ok_or_else(|| unfit(last))
}

fn unfit(key: &str) -> Unfit {
    Unfit::Other(key.to_owned())
}

/// Removes an entry from the list at the path `list`. Then removes the last `made` keys on this
/// path, which were added together with the entry, as far as their values are empty now.
pub(crate) fn take(text: &str, list: &[&str], entry: &Value, made: usize) -> RemovedEntry {
    let Ok(root) = parse(text) else { return RemovedEntry::Missing };
    let Some(array) = list_of(&root, list) else { return RemovedEntry::Missing };
    let mut elements = array.elements().into_iter();
    let found = elements.rfind(|node| node.to_serde_value().as_ref() == Some(entry));
    let Some(found) = found else {
        let commands = commands(entry);
        let is_called = array.elements().into_iter().any(|node| {
            let text = node.to_string();
            commands.iter().any(|command| text.contains(&Value::from(*command).to_string()))
        });
        return if is_called { RemovedEntry::Changed } else { RemovedEntry::Missing };
    };
    found.remove();
    for depth in (list.len().saturating_sub(made)..list.len()).rev() {
        let Some(property) = property(&root, &list[..=depth]) else { break };
        let is_empty =
            property.value().is_some_and(|value| match (value.as_array(), value.as_object()) {
                (Some(array), _) => array.elements().is_empty(),
                (None, Some(object)) => object.properties().is_empty(),
                (None, None) => false,
            });
        if !is_empty {
            break;
        }
        property.remove();
    }
    RemovedEntry::Out(root.to_string())
}

/// Whether the JSON text `after` has the value of `before` with one `entry` removed from the list
/// at the path `list`. Keys on this path with empty values are ignored in both texts.
pub(crate) fn is_without(after: &str, before: &str, list: &[&str], entry: &Value) -> bool {
    let Some(mut after) = value(after) else { return false };
    let Some(mut expect) = value(before) else { return false };
    let all = expect_list(&mut expect, list);
    let Some(at) = all.iter().rposition(|it| it == entry) else { return false };
    all.remove(at);
    prune(&mut after, list);
    prune(&mut expect, list);
    after == expect
}

/// The value of a JSON text, which may have comments; `None` if it is not valid. An empty text is
/// an empty object.
pub(crate) fn value(text: &str) -> Option<Value> {
    if text.trim().is_empty() {
        return Some(Value::Object(serde_json::Map::new()));
    }
    parse(text).ok()?.to_serde_value()
}

fn expect_list<'a>(value: &'a mut Value, list: &[&str]) -> &'a mut Vec<Value> {
    let mut at = value;
    for key in list {
        if !at.is_object() {
            *at = Value::Object(serde_json::Map::new());
        }
        at = &mut at[*key];
    }
    if !at.is_array() {
        *at = Value::Array(Vec::new());
    }
    at.as_array_mut().expect("it was just made one")
}

fn prune(value: &mut Value, list: &[&str]) {
    let (Some((key, rest)), Some(object)) = (list.split_first(), value.as_object_mut()) else {
        return;
    };
    let Some(inner) = object.get_mut(*key) else { return };
    prune(inner, rest);
    let is_empty = inner.as_array().is_some_and(Vec::is_empty)
        || inner.as_object().is_some_and(serde_json::Map::is_empty);
    if is_empty {
        object.remove(*key);
    }
}

pub(crate) fn parse(text: &str) -> Result<CstRootNode, Unfit> {
    if text.starts_with('\u{feff}') {
        return Err(Unfit::Marked);
    }
    let options = ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    CstRootNode::parse(text, &options).map_err(|err| Unfit::NoJson(err.to_string()))
}

pub(crate) fn property(root: &CstRootNode, keys: &[&str]) -> Option<CstObjectProp> {
    let (last, before) = keys.split_last()?;
    let mut object: CstObject = root.object_value()?;
    for key in before {
        object = object.object_value(key)?;
    }
    object.get(last)
}

fn list_of(root: &CstRootNode, list: &[&str]) -> Option<CstArray> {
    property(root, list)?.array_value()
}

/// The strings in an entry that may be commands: those with a slash or a backslash, because a
/// command contains the path of epitome.
fn commands(entry: &Value) -> Vec<&str> {
    match entry {
        Value::String(text) if text.contains('/') || text.contains('\\') => vec![text],
        Value::Array(all) => all.iter().flat_map(commands).collect(),
        Value::Object(all) => all.values().flat_map(commands).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    }
}

pub(crate) fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(it) => CstInputValue::Bool(*it),
        Value::Number(it) => CstInputValue::Number(it.to_string()),
        Value::String(it) => CstInputValue::String(it.clone()),
        Value::Array(all) => CstInputValue::Array(all.iter().map(input).collect()),
        Value::Object(all) => CstInputValue::Object(
            all.iter().map(|(key, value)| (key.clone(), input(value))).collect(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const LIST: &[&str] = &["hooks", "SessionEnd"];

    fn entry() -> Value {
        json!({ "hooks": [{ "type": "command", "command": "/bin/epitome hook", "timeout": 10 }] })
    }

    /// Texts that a settings file may have.
    const SETTINGS: &[&str] = &[
        "{}",
        "{}\n",
        "{\n}\n",
        "{\"a\":1}",
        "{\n  \"model\": \"opus\",\n  \"env\": { \"A\": \"b\" }\n}\n",
        "{\n\t\"model\": \"opus\" // the dear one\n\t/* nothing else */\n}\n",
        "// mine\n{\n    \"hooks\": {},\n}\n",
        "{\r\n  \"hooks\": {\r\n    \"SessionEnd\": []\r\n  }\r\n}\r\n",
        "{\"hooks\":{\"Stop\":[{\"hooks\":[{\"type\":\"command\",\"command\":\"x\"}]}]}}",
        "{\n  \"hooks\": {\n    \"SessionEnd\": [\n      { \"hooks\": [] } // theirs\n    ],\n    \
         \"Stop\": []\n  },\n  \"z\": 1e400\n}",
    ];

    #[test]
    fn an_entry_stands_behind_the_others_and_nothing_else_moves() {
        let shown: Vec<String> = SETTINGS
            .iter()
            .map(|text| put(text, LIST, &entry()).expect("it can be put in").0)
            .collect();
        insta::assert_snapshot!(shown.join("\n----\n"));
    }

    #[test]
    fn an_entry_is_taken_out_of_what_others_wrote_since() {
        for text in SETTINGS {
            let (with, made) = put(text, LIST, &entry()).expect("it can be put in");
            let theirs = json!({ "hooks": [{ "type": "command", "command": "/their own" }] });
            let (with, _) = put(&with, LIST, &theirs).expect("it can be put in");
            let RemovedEntry::Out(without) = take(&with, LIST, &entry(), made) else {
                panic!("it is there: {with}")
            };
            let (expect, _) = put(text, LIST, &theirs).expect("it can be put in");
            assert_eq!(value(&without), value(&expect), "{text}");
            let comments = ["// mine", "// the dear one", "/* nothing else */", "// theirs"];
            for comment in comments.iter().filter(|comment| text.contains(**comment)) {
                assert!(without.contains(comment), "{without}");
            }
            assert!(is_without(&without, &with, LIST, &entry()));
        }
    }

    #[test]
    fn an_entry_that_somebody_changed_stays() {
        let (with, made) = put("{}", LIST, &entry()).expect("it can be put in");
        let changed = with.replace("10", "20");
        assert_eq!(take(&changed, LIST, &entry(), made), RemovedEntry::Changed);
        assert_eq!(take("{}", LIST, &entry(), made), RemovedEntry::Missing);
        assert_eq!(take("{ no", LIST, &entry(), made), RemovedEntry::Missing);
    }

    #[test]
    fn what_is_something_else_is_left_alone() {
        for (text, expect) in [
            ("[]", "`the whole` is something else"),
            ("{\"hooks\":[]}", "`hooks` is something else"),
            ("{\"hooks\":{\"SessionEnd\":{}}}", "`SessionEnd` is something else"),
            ("{'a':1}", "not valid JSON: "),
            ("\u{feff}{}", "it begins with a byte order mark, which JSON does not allow"),
            ("{\"a\":1", "not valid JSON: "),
        ] {
            let err = put(text, LIST, &entry()).expect_err("it does not fit").to_string();
            assert!(err.starts_with(expect), "{text}: {err}");
        }
    }
}
