//! The members of JSON objects, and errors that name the member that is wrong.

use std::cell::Cell;
use std::fmt;

use epitome_error::{Error, ErrorKind, Result};
use serde::de::value::MapDeserializer;
use serde::de::{DeserializeOwned, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// A member of an object: its name and its value.
pub type Member<'a> = (&'a str, &'a RawValue);

/// The members of an object as they are written, duplicates included.
pub struct Members<'a>(pub Vec<Member<'a>>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
        struct Object;

        impl<'de> Visitor<'de> for Object {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(
                self,
                mut map: A,
            ) -> std::result::Result<Members<'de>, A::Error> {
                let mut all = Vec::new();
                while let Some(member) = map.next_entry()? {
                    all.push(member);
                }
                Ok(Members(all))
            }
        }

        from.deserialize_map(Object)
    }
}

/// Makes a `T` from the members of an object.
///
/// # Errors
///
/// If a member is unknown, missing, or has a wrong value: a sentence that names the member.
pub fn from_members<'a, T: Deserialize<'a>>(
    members: Vec<Member<'a>>,
) -> std::result::Result<T, String> {
    let mut rest = members.into_iter();
    // The member that is read when an error occurs; `None` after the last.
    let current = Cell::new(None);
    let members = std::iter::from_fn(|| {
        let member = rest.next();
        current.set(member.map(|(name, _)| format!("`{name}`")));
        member
    });
    let made = T::deserialize(MapDeserializer::<_, serde_json::Error>::new(members));
    made.map_err(|err| {
        let what = in_words(&err.to_string());
        match current.take() {
            Some(name) if !what.contains(&name) => format!("{name}: {what}"),
            Some(_) | None => what,
        }
    })
}

/// Parses options, which are a JSON object.
///
/// ```
/// use epitome_engine::pipe::parse_options;
///
/// #[derive(Debug, serde::Deserialize)]
/// struct Options {
///     window: u64,
/// }
///
/// assert_eq!(parse_options::<Options>(br#"{"window":7}"#)?.window, 7);
/// let err = parse_options::<Options>(br#"{"window":-7}"#).expect_err("no window");
/// let what = "`window`: invalid value: integer `-7`, expected a whole number of at least 0";
/// assert_eq!(err.to_string(), what);
/// # Ok::<(), epitome_error::Error>(())
/// ```
///
/// # Errors
///
/// `Usage` if the options are not a JSON object, or if an option is unknown, missing, or has a
/// wrong value. The message names the option.
pub fn parse_options<T: DeserializeOwned>(options: &[u8]) -> Result<T> {
    let Members(members) = serde_json::from_slice(options).map_err(|err| {
        Error::new(ErrorKind::Usage, format!("the options are not a JSON object: {err}"))
    })?;
    from_members(members).map_err(|what| Error::new(ErrorKind::Usage, what))
}

/// A message of serde without types of Rust, and without the line and the column: they are
/// positions within one member, and would mislead.
fn in_words(message: &str) -> String {
    let message = message.split(" at line ").next().unwrap_or_default();
    let message = message.replacen("unknown variant", "unknown value", 1);
    let Some((found, expected)) = message.rsplit_once(", expected ") else {
        return message;
    };
    let expected = match expected {
        "u64" | "u16" | "usize" => "a whole number of at least 0",
        "f64" => "a number",
        "a boolean" => "true or false",
        "a sequence" => "a list",
        other => other,
    };
    format!("{found}, expected {expected}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only errors are compared")]
    struct Options {
        api: Option<Api>,
        window: u64,
        limit: Option<usize>,
        share: Option<f64>,
        force: Option<bool>,
        find: Option<Vec<String>>,
        usage: Option<Usage>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Api {
        Anthropic,
        Gemini,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only errors are compared")]
    struct Usage {
        input: u64,
    }

    #[test]
    fn an_error_names_the_member_and_no_type_of_rust() {
        let cases = [
            (r#"{"window":"x"}"#, r#"`window`: invalid type: string "x", expected NUMBER"#),
            (r#"{"window":-1}"#, "`window`: invalid value: integer `-1`, expected NUMBER"),
            (
                r#"{"window":2e5}"#,
                "`window`: invalid type: floating point `200000.0`, expected NUMBER",
            ),
            (r#"{"window":null}"#, "`window`: invalid type: null, expected NUMBER"),
            (r#"{"window":1,"limit":-1}"#, "`limit`: invalid value: integer `-1`, expected NUMBER"),
            (r#"{"share":"x"}"#, r#"`share`: invalid type: string "x", expected a number"#),
            (r#"{"force":1}"#, "`force`: invalid type: integer `1`, expected true or false"),
            (r#"{"find":1}"#, "`find`: invalid type: integer `1`, expected a list"),
            (r#"{"usage":{"input":"x"}}"#, r#"`usage`: invalid type: string "x", expected NUMBER"#),
            (r#"{"api":"x"}"#, "`api`: unknown value `x`, expected `anthropic` or `gemini`"),
            (r#"{"usage":{"in":1}}"#, "`usage`: unknown field `in`, expected `input`"),
            (r#"{"limit":1}"#, "missing field `window`"),
            (r#"{"window":1,"window":2}"#, "duplicate field `window`"),
        ];
        for (options, what) in cases {
            let err = parse_options::<Options>(options.as_bytes()).expect_err(options);
            let what = what.replace("NUMBER", "a whole number of at least 0");
            assert_eq!(err.to_string(), what, "{options}");
        }
        let err = parse_options::<Options>(b"[]").expect_err("no object").to_string();
        assert!(err.starts_with("the options are not a JSON object: "), "{err}");
    }
}
