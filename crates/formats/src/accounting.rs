//! The values that other programs read from a session: tokens, costs, ids, times, models, folders.
//! They are called accounting values.
//!
//! A format lists these values as paths of keys. No edit may change them. So a reader does not
//! report a part of a record as a hidden field, which may be removed, if the part contains such a
//! value (see [`hidden_fields`]); and a compaction that would change such a value is refused
//! (`Invariant::Accounting`).

use std::ops::Range;

use epitome_json::{Cursor, Kind, MalformedJson, Value};
use epitome_model::{FieldRemainder, HiddenField};

use crate::place::RecordBytes;

/// The keys that lead from a record to a value, separated by points. [`EACH`] in place of a key
/// means every element of an array.
pub type Path = &'static str;

/// In a path, every element of an array.
const EACH: &str = "*";

/// If a value that no model sees contains accounting values, its strings, arrays and objects of at
/// most this many bytes are kept: emptying them would save little, and they explain the accounting
/// values.
const SHORT: usize = 64;

/// The positions of the values at `paths`, in the order of the record. Malformed JSON ends the
/// search.
pub fn values(record: &[u8], paths: &[Path]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    // In a malformed record, only the values before the error are found.
    let _ = find_values(&mut Cursor::new(record), paths, &mut found);
    found
}

/// Reads the next value. Adds to `found` the positions of the values inside it to which `paths`
/// lead from it.
fn find_values(
    value: &mut Cursor<'_>,
    paths: &[Path],
    found: &mut Vec<Range<usize>>,
) -> Result<(), MalformedJson> {
    if paths.iter().any(|path| path.is_empty()) {
        found.push(value.skip()?);
        return Ok(());
    }
    match value.kind() {
        Kind::Object => value.object(|member, key| match below(paths, key) {
            inner if inner.is_empty() => member.skip().map(drop),
            inner => find_values(member, &inner, found),
        })?,
        Kind::Array => match below(paths, EACH.as_bytes()) {
            inner if inner.is_empty() => value.skip()?,
            inner => value.array(|element| find_values(element, &inner, found))?,
        },
        Kind::String | Kind::Other => value.skip()?,
    };
    Ok(())
}

/// For each path that begins with `keys`, the part of the path after `keys`.
pub fn inside(paths: &[Path], keys: &[&str]) -> Vec<Path> {
    keys.iter().fold(paths.to_vec(), |paths, key| below(&paths, key.as_bytes()))
}

/// For each path that begins with `key`, the part of the path after `key`.
fn below(paths: &[Path], key: &[u8]) -> Vec<Path> {
    paths.iter().filter_map(|path| path_after(path, key)).collect()
}

/// The part of a path after its first key; `None` if the first key is not `key`. This function is
/// called for every key of every record. Most paths begin with another byte than `key`, so these
/// bytes are compared first.
fn path_after(path: Path, key: &[u8]) -> Option<Path> {
    if path.as_bytes().first() != key.first() {
        return None;
    }
    let rest = path.as_bytes().strip_prefix(key).filter(|_| !key.contains(&b'.'))?;
    match rest {
        [] => Some(""),
        [b'.', ..] => Some(&path[key.len() + 1..]),
        [_, ..] => None,
    }
}

/// The parts of a value that may be removed, as hidden fields. No model sees the value. `paths`
/// lead from it to accounting values.
///
/// If the value contains no accounting value, the whole value may be removed, and `left` remains.
/// Otherwise its strings, arrays and objects that are longer than [`SHORT`] and contain no
/// accounting value may be removed; an empty value of the same type remains of each, so that
/// programs can still parse the record. Malformed JSON has no hidden fields, because it may contain
/// an accounting value.
pub fn hidden_fields(
    at: &RecordBytes<'_>,
    (name, place, left): (&'static str, &Range<usize>, FieldRemainder),
    paths: &[Path],
) -> Vec<HiddenField> {
    let mut kept = Vec::new();
    if find_values(&mut Cursor::at(at.line, place), paths, &mut kept).is_err() {
        return Vec::new();
    }
    if kept.is_empty() {
        return vec![HiddenField { name, value: at.span(place), left }];
    }
    let mut bulk = Vec::new();
    if find_bulk(&mut Cursor::at(at.line, place), paths, &mut bulk).is_err() {
        return Vec::new();
    }
    bulk.into_iter()
        .map(|(value, left)| HiddenField { name, value: at.span(&value), left })
        .collect()
}

/// A value that no model sees, as a hidden field.
pub fn hidden(name: &'static str, value: &Value<'_>, left: FieldRemainder) -> HiddenField {
    HiddenField { name, value: value.span(), left }
}

/// Reads the next value. Adds to `bulk` the strings, arrays and objects in it that may be removed:
/// those that are longer than [`SHORT`] and contain no value at `paths`. Of nested ones only the
/// outermost is added. Each has the empty value that remains of it. An object or array into which a
/// path leads is not added itself, even if there is no value at the path.
fn find_bulk(
    value: &mut Cursor<'_>,
    paths: &[Path],
    bulk: &mut Vec<(Range<usize>, FieldRemainder)>,
) -> Result<(), MalformedJson> {
    let left = match value.kind() {
        Kind::String => FieldRemainder::EmptyText,
        Kind::Array => FieldRemainder::EmptyArray,
        Kind::Object => FieldRemainder::EmptyObject,
        Kind::Other => return value.skip().map(drop),
    };
    if paths.iter().any(|path| path.is_empty()) {
        return value.skip().map(drop);
    }
    match left {
        FieldRemainder::EmptyObject if !paths.is_empty() => {
            value.object(|member, key| find_bulk(member, &below(paths, key), bulk))?;
        }
        FieldRemainder::EmptyArray if !below(paths, EACH.as_bytes()).is_empty() => {
            let inner = below(paths, EACH.as_bytes());
            value.array(|element| find_bulk(element, &inner, bulk))?;
        }
        _ => {
            let place = value.skip()?;
            if place.len() > SHORT {
                bulk.push((place, left));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use epitome_model::Source;

    use super::*;

    const PATHS: &[Path] = &["usage", "results.*.usage"];

    fn check(value: &str, expected: &[(&str, FieldRemainder)]) {
        let at = RecordBytes { line: value.as_bytes(), base: 0 };
        let whole = 0..value.len();
        let hidden_fields = hidden_fields(&at, ("details", &whole, FieldRemainder::Nothing), PATHS);
        let found: Vec<(String, FieldRemainder)> = hidden_fields
            .iter()
            .map(|copy| {
                let bytes = Source::at(&value.as_bytes(), copy.value).into_owned();
                (String::from_utf8(bytes).expect("text"), copy.left)
            })
            .collect();
        let found: Vec<(&str, FieldRemainder)> =
            found.iter().map(|(it, left)| (&**it, *left)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_path_begins_with_whole_keys_only() {
        let after = |key: &str| path_after("results.*.usage", key.as_bytes());
        assert_eq!(after("results"), Some("*.usage"));
        assert_eq!([after("result"), after("results.*"), after("usage")], [None; 3]);
        assert_eq!(path_after("usage", b"usage"), Some(""));
    }

    #[test]
    fn a_value_without_accounting_goes_whole() {
        let value = r#"{"diff":"short","usage_note":1}"#;
        check(value, &[(value, FieldRemainder::Nothing)]);
    }

    #[test]
    fn nothing_of_malformed_json_goes() {
        check(r#"{"usage":{"input":1},"out" "text"}"#, &[]);
        check(r#"{"out" "text","usage":{"input":1}}"#, &[]);
    }

    #[test]
    fn what_is_next_to_accounting_is_emptied() {
        let long = format!("\"{}\"", "a".repeat(100));
        let list = format!("[{long}]");
        let value =
            format!(r#"{{"status":"done","usage":{{"text":{long}}},"out":{long},"all":{list}}}"#);
        check(&value, &[(&long, FieldRemainder::EmptyText), (&list, FieldRemainder::EmptyArray)]);
    }

    #[test]
    fn accounting_within_lists_is_found() {
        let long = format!("\"{}\"", "a".repeat(100));
        let value = format!(r#"{{"results":[{{"usage":{{"input":1}},"said":{long}}},7]}}"#);
        check(&value, &[(&long, FieldRemainder::EmptyText)]);
        let places = values(value.as_bytes(), PATHS);
        let found: Vec<&str> = places.into_iter().map(|place| &value[place]).collect();
        assert_eq!(found, [r#"{"input":1}"#]);
    }
}
