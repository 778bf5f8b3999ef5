//! Adds a member to an object in another program's JSON settings, and removes it, leaving the rest
//! of the text as it is.

use jsonc_parser::cst::CstObject;
use serde_json::{Map, Value};

use crate::error::{Error, ErrorKind, Result};
use crate::hooks::settings::{Unfit, input, parse, property, value};

/// The result of removing what was added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Removed {
    /// The text without the addition.
    Out(String),
    /// The addition cannot be removed: the user changed it, its removal would change other
    /// settings, or TOML settings cannot be parsed.
    Changed,
    /// The settings do not contain the addition, or JSON settings cannot be parsed.
    Missing,
}

/// Adds a member with the value `added` at the path `keys`. Returns the new text, and how many of
/// the objects around the member were added.
///
/// # Errors
///
/// `Exists` if there is a member at this path; `Unreadable` if the text is not valid JSON,
/// something on the path is not an object, or the new text would not have the intended value.
pub(super) fn put(text: &str, keys: &[&str], added: &Value) -> Result<(String, usize)> {
    if text.trim().is_empty() {
        let nested = keys.iter().rev().fold(added.clone(), |inner, key| {
            Value::Object(Map::from_iter([((*key).to_owned(), inner)]))
        });
        return Ok((format!("{nested:#}\n"), keys.len() - 1));
    }
    let root = parse(text).map_err(unreadable)?;
    let other = |key: &str| unreadable(Unfit::Other(key.to_owned()));
    let mut object: CstObject = root.object_value().ok_or_else(|| other("the whole"))?;
    let (last, before) = keys.split_last().expect("a member has a name");
    let mut made = 0;
    for key in before {
        made += usize::from(object.get(key).is_none());
        object = object.object_value_or_create(key).ok_or_else(|| other(key))?;
    }
    if object.get(last).is_some() {
        let what = format!("the settings have `{}` already", keys.join("."));
        let hint = "epitome changes only what it added itself: remove it first";
        return Err(Error::new(ErrorKind::Exists, what).with_hint(hint));
    }
    object.append(last, input(added));
    let after = root.to_string();
    // The JSON editor is a foreign crate: its result is compared with the intended value.
    let is_so = value(&after).zip(value(text)).is_some_and(|(after, mut expect)| {
        set(&mut expect, keys, added.clone());
        expect == after
    });
    if is_so { Ok((after, made)) } else { Err(other(last)) }
}

/// Removes the member at the path `keys` if its value is `added`. Then removes the innermost `made`
/// objects around it, which were added together with it, as far as they are empty now.
///
/// `moved` is `text` with the recorded insertion undone, if that was possible. It is returned if
/// the values in it are the intended ones: unlike an edit of the JSON, it also restores the white
/// space.
pub(super) fn take(
    text: &str,
    moved: Option<String>,
    keys: &[&str],
    added: &Value,
    made: usize,
) -> Removed {
    let Some(now) = value(text) else { return Removed::Missing };
    match at(&now, keys) {
        None => return Removed::Missing,
        Some(value) if value != added => return Removed::Changed,
        Some(_) => {}
    }
    let is_without = |after: &String| {
        let Some(mut after) = value(after) else { return false };
        let mut expect = now.clone();
        remove(&mut expect, keys);
        prune(&mut expect, keys);
        prune(&mut after, keys);
        after == expect
    };
    if let Some(after) = moved.filter(is_without) {
        return Removed::Out(after);
    }
    let Ok(root) = parse(text) else { return Removed::Missing };
    for depth in (keys.len() - 1 - made.min(keys.len() - 1)..keys.len()).rev() {
        let Some(property) = property(&root, &keys[..=depth]) else { break };
        let object = property.value().and_then(|value| value.as_object());
        if depth + 1 < keys.len() && object.is_none_or(|it| !it.properties().is_empty()) {
            break;
        }
        property.remove();
    }
    let after = root.to_string();
    if is_without(&after) { Removed::Out(after) } else { Removed::Changed }
}

fn unreadable(err: Unfit) -> Error {
    let what = "the settings are not as the agent's should be";
    Error::new(ErrorKind::Unreadable, what).because(err)
}

fn at<'v>(value: &'v Value, keys: &[&str]) -> Option<&'v Value> {
    keys.iter().try_fold(value, |value, key| value.get(key))
}

fn set(value: &mut Value, keys: &[&str], added: Value) {
    let Some((key, rest)) = keys.split_first() else {
        *value = added;
        return;
    };
    if let Some(object) = value.as_object_mut() {
        let inner = object.entry((*key).to_owned()).or_insert_with(|| Value::Object(Map::new()));
        set(inner, rest, added);
    }
}

fn remove(value: &mut Value, keys: &[&str]) {
    let Some((last, before)) = keys.split_last() else { return };
    let inner = before.iter().try_fold(value, |value, key| value.get_mut(*key));
    if let Some(object) = inner.and_then(Value::as_object_mut) {
        object.remove(*last);
    }
}

/// Removes those objects on the path `keys` that are empty, the innermost first.
fn prune(value: &mut Value, keys: &[&str]) {
    for end in (1..keys.len()).rev() {
        if at(value, &keys[..end]).and_then(Value::as_object).is_some_and(Map::is_empty) {
            remove(value, &keys[..end]);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const KEYS: &[&str] = &["mcpServers", "epitome"];

    /// Texts that a settings file may have.
    const SETTINGS: &[&str] = &[
        "{}",
        "{\n}\n",
        "{\"a\":1}",
        "{\n\t\"model\": \"opus\" // the dear one\n}\n",
        "// mine\n{\n    \"mcpServers\": {},\n}\n",
        "{\r\n  \"mcpServers\": {\r\n    \"x\": { \"command\": \"x\" }\r\n  }\r\n}\r\n",
    ];

    fn server() -> Value {
        json!({ "command": "/bin/epitome", "args": ["mcp"] })
    }

    #[test]
    fn a_member_is_taken_out_of_what_others_wrote_since() {
        for text in SETTINGS {
            let (with, made) = put(text, KEYS, &server()).expect("it can be added");
            let (with, _) = put(&with, &["theirs"], &json!(1)).expect("it can be added");
            let Removed::Out(without) = take(&with, None, KEYS, &server(), made) else {
                panic!("it is there: {with}")
            };
            let (expect, _) = put(text, &["theirs"], &json!(1)).expect("it can be added");
            assert_eq!(value(&without), value(&expect), "{text}");
            for comment in ["// mine", "// the dear one"] {
                assert_eq!(without.contains(comment), text.contains(comment), "{without}");
            }
        }
    }

    #[test]
    fn a_member_of_that_name_is_not_replaced() {
        let text = "{\"mcpServers\":{\"epitome\":{\"command\":\"mine\"}}}";
        let err = put(text, KEYS, &server()).expect_err("it is there");
        assert_eq!(err.kind(), ErrorKind::Exists);
        assert_eq!(err.to_string(), "the settings have `mcpServers.epitome` already");
    }

    #[test]
    fn a_member_that_the_user_changed_stays() {
        let (with, made) = put("{}", KEYS, &server()).expect("it can be added");
        let changed = with.replace("[\"mcp\"]", "[\"mcp\", \"--no-redact\"]");
        let changed = if changed == with { with.replace("\"mcp\"", "\"x\"") } else { changed };
        assert_eq!(take(&changed, None, KEYS, &server(), made), Removed::Changed);
        assert_eq!(take("{}", None, KEYS, &server(), made), Removed::Missing);
    }

    #[test]
    fn what_is_something_else_is_left_alone() {
        for (text, expect) in [
            ("[]", "`the whole` is something else"),
            ("{\"mcpServers\":[]}", "`mcpServers` is something else"),
            ("{'a':1}", "not valid JSON"),
        ] {
            let err = put(text, KEYS, &server()).expect_err("it does not fit");
            let sentence = crate::error::sentence(&err);
            assert!(sentence.contains(expect), "{text}: {sentence}");
        }
    }
}
