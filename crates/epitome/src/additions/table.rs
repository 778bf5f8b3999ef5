//! Adds a table to another program's TOML settings, and removes it, leaving the rest of the text as
//! it is.

use toml::{Table, Value};

use super::member::Removed;
use crate::error::{Error, ErrorKind, Result};

/// Appends the table `added`. Returns the new text, and how many tables around it were added. That
/// is always 0: the header of the table names the tables around it.
///
/// # Errors
///
/// `Exists` if there is a value at the path `keys`; `Unreadable` if the text cannot be parsed,
/// before or after the addition, or if the addition would change other values.
pub(super) fn put(text: &str, keys: &[&str], added: &str) -> Result<(String, usize)> {
    let before: Table = text.parse().map_err(unreadable)?;
    if at(&before, keys).is_some() {
        let what = format!("the settings have `{}` already", keys.join("."));
        let hint = "epitome changes only what it added itself: remove it first";
        return Err(Error::new(ErrorKind::Exists, what).with_hint(hint));
    }
    let gap = match text {
        "" => "",
        text if text.ends_with("\n\n") => "",
        text if text.ends_with('\n') => "\n",
        _ => "\n\n",
    };
    let after = format!("{text}{gap}{added}");
    let parsed: Table = after.parse().map_err(unreadable)?;
    let mut rest = parsed.clone();
    let is_so = remove(&mut rest, keys).is_some() && pruned(rest, keys) == pruned(before, keys);
    if is_so {
        Ok((after, 0))
    } else {
        let what = "the settings are not as the agent's should be";
        Err(Error::new(ErrorKind::Unreadable, what))
    }
}

/// Removes the table at the path `keys` if its content is that of the TOML text `added`. `moved` is
/// the text with the recorded insertion undone, if that was possible.
pub(super) fn take(text: &str, moved: Option<String>, keys: &[&str], added: &str) -> Removed {
    let Ok(mut now) = text.parse::<Table>() else { return Removed::Changed };
    let Some(found) = remove(&mut now, keys) else { return Removed::Missing };
    let wanted = added.parse::<Table>().ok();
    if wanted.as_ref().and_then(|wanted| at(wanted, keys)) != Some(&found) {
        return Removed::Changed;
    }
    let without = moved.or_else(|| once(text, added));
    let expect = pruned(now, keys);
    let is_it =
        |after: &String| after.parse::<Table>().is_ok_and(|after| pruned(after, keys) == expect);
    without.filter(is_it).map_or(Removed::Changed, Removed::Out)
}

/// The text without `part`. `None` if `part` does not occur in it, or more than once.
fn once(text: &str, part: &str) -> Option<String> {
    let at = text.find(part)?;
    let is_once = text.rfind(part) == Some(at);
    is_once.then(|| [&text[..at], &text[at + part.len()..]].concat())
}

fn unreadable(err: toml::de::Error) -> Error {
    Error::new(ErrorKind::Unreadable, "the settings cannot be parsed").because(err)
}

fn at<'t>(table: &'t Table, keys: &[&str]) -> Option<&'t Value> {
    let (last, before) = keys.split_last()?;
    let table = before.iter().try_fold(table, |table, key| table.get(*key)?.as_table())?;
    table.get(*last)
}

fn remove(table: &mut Table, keys: &[&str]) -> Option<Value> {
    let (last, before) = keys.split_last()?;
    let table = before.iter().try_fold(table, |table, key| table.get_mut(*key)?.as_table_mut())?;
    table.remove(*last)
}

/// The table without the empty tables on the path `keys`. The table at the end of the path is kept
/// even if it is empty.
fn pruned(mut table: Table, keys: &[&str]) -> Table {
    for end in (1..keys.len()).rev() {
        let inner = at(&table, &keys[..end]);
        if inner.and_then(Value::as_table).is_some_and(Table::is_empty) {
            remove(&mut table, &keys[..end]);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: &[&str] = &["mcp_servers", "epitome"];
    const TABLE: &str = "[mcp_servers.epitome]\ncommand = \"/bin/epitome\"\nargs = [\"mcp\"]\n";

    fn check(text: &str, expect: &str) {
        let (after, _) = put(text, KEYS, TABLE).expect("it can be added");
        assert_eq!(after, expect);
        // The user writes something in front of the table and behind it.
        let edited = format!("# mine\n{after}\n[theirs]\nx = 1\n");
        let expect = edited.replacen(TABLE, "", 1);
        assert_eq!(take(&edited, None, KEYS, TABLE), Removed::Out(expect));
    }

    #[test]
    fn a_table_is_appended_and_taken_out_of_what_the_user_wrote_since() {
        check("", TABLE);
        check("model = \"gpt-5\"", &format!("model = \"gpt-5\"\n\n{TABLE}"));
        check("model = \"gpt-5\" # dear\n", &format!("model = \"gpt-5\" # dear\n\n{TABLE}"));
        let other = "[mcp_servers.other]\ncommand = \"x\"\n\n";
        check(other, &format!("{other}{TABLE}"));
    }

    #[test]
    fn a_table_that_is_there_or_was_changed_stays() {
        let err = put(TABLE, KEYS, TABLE).expect_err("it is there");
        assert_eq!(err.kind(), ErrorKind::Exists);
        let changed = TABLE.replace("mcp\"]", "mcp\", \"--no-redact\"]");
        assert_eq!(take(&changed, None, KEYS, TABLE), Removed::Changed);
        assert_eq!(take("a = 1\n", None, KEYS, TABLE), Removed::Missing);
        for text in ["mcp_servers = { other = {} }", "a =", "mcp_servers = 1"] {
            let err = put(text, KEYS, TABLE).expect_err("it does not fit");
            assert_eq!(err.kind(), ErrorKind::Unreadable, "{text}");
        }
    }
}
