//! Scans the beginning of a file to recognise the API of a request body.

use std::collections::BTreeSet;

use epitome_json::{Cursor, Kind, MalformedJson};

/// What a scan found in one JSON object. The scanned bytes may end anywhere in the object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Skim {
    /// The keys of the object.
    pub keys: BTreeSet<String>,
    /// The keys of the elements of `messages`, `input` or `contents`.
    pub members: BTreeSet<String>,
    /// The roles of the elements of `messages`, `input` or `contents`.
    pub roles: BTreeSet<String>,
    /// The values of `type` in the elements of `messages`, `input` or `contents`, and in the
    /// elements of their `content` or `parts`.
    pub kinds: BTreeSet<String>,
    /// Keys of the elements of `tools`.
    pub tools: BTreeSet<String>,
    /// The value of `model`; empty if there is none.
    pub model: String,
    /// Whether anything but white space follows the object.
    pub more: bool,
}

impl Skim {
    /// Whether the object has the key.
    pub fn has(&self, key: &str) -> bool {
        self.keys.contains(key)
    }

    /// Whether the object has any of the keys.
    pub fn has_any(&self, keys: &[&str]) -> bool {
        keys.iter().any(|key| self.has(key))
    }
}

/// Scans the beginning of an object; `None` if it is not an object.
pub fn skim(head: &[u8]) -> Option<Skim> {
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    let mut seen = Skim::default();
    let mut cursor = Cursor::new(head);
    if cursor.kind() != Kind::Object {
        return None;
    }
    // An object that is cut off is accepted: the scan sees only the beginning of a file.
    let whole = cursor.object(|value, key| {
        let key = String::from_utf8_lossy(key).into_owned();
        seen.keys.insert(key.clone());
        match key.as_str() {
            "messages" | "input" | "contents" => skim_messages(value, head, &mut seen),
            "tools" => keys(value, &mut seen.tools),
            "model" => {
                let place = value.skip()?;
                seen.model = String::from_utf8_lossy(&head[place]).trim_matches('"').to_owned();
                Ok(())
            }
            _ => value.skip().map(|_| ()),
        }
    });
    seen.more = whole.is_ok() && cursor.end().is_err();
    Some(seen)
}

fn skim_messages(
    value: &mut Cursor<'_>,
    head: &[u8],
    seen: &mut Skim,
) -> Result<(), MalformedJson> {
    value.array(|element| {
        element.object(|value, key| {
            seen.members.insert(String::from_utf8_lossy(key).into_owned());
            match key {
                b"role" => word(value, head, &mut seen.roles),
                b"type" => word(value, head, &mut seen.kinds),
                b"content" | b"parts" => value
                    .array(|part| {
                        part.object(|value, key| match key {
                            b"type" => word(value, head, &mut seen.kinds),
                            _ => value.skip().map(|_| ()),
                        })?;
                        Ok(())
                    })
                    .map(|_| ()),
                _ => value.skip().map(|_| ()),
            }
        })?;
        Ok(())
    })?;
    Ok(())
}

fn word(
    value: &mut Cursor<'_>,
    head: &[u8],
    into: &mut BTreeSet<String>,
) -> Result<(), MalformedJson> {
    let place = value.skip()?;
    into.insert(String::from_utf8_lossy(&head[place]).trim_matches('"').to_owned());
    Ok(())
}

fn keys(value: &mut Cursor<'_>, into: &mut BTreeSet<String>) -> Result<(), MalformedJson> {
    value.array(|element| {
        element.object(|value, key| {
            into.insert(String::from_utf8_lossy(key).into_owned());
            value.skip().map(|_| ())
        })?;
        Ok(())
    })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scan_finds_the_keys_the_roles_and_the_kinds() {
        let head = br#"{"model":"m","tools":[{"name":"Read"}],"messages":[
            {"role":"user","id":"a","type":"message",
                "content":[{"type":"text","text":"b"}]}],"n":1"#;
        let set = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        let expect = Skim {
            keys: set(&["messages", "model", "n", "tools"]),
            members: set(&["content", "id", "role", "type"]),
            roles: set(&["user"]),
            kinds: set(&["message", "text"]),
            tools: set(&["name"]),
            model: "m".into(),
            more: false,
        };
        assert_eq!(skim(head), Some(expect));
    }
}
