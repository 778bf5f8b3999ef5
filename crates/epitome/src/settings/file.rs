//! Reads a settings file: its values by key, each with its line.

use std::fs;
use std::path::Path;

use toml::de::{DeTable, DeValue};
use toml::{Spanned, Table, Value};

use super::foreign::{FOREIGN, Foreign};
use super::nearest::nearest;
use super::{KEYS, Key, SetValue, SettingSource, find_key, keys, unknown, wrong};
use crate::error::{Error, ErrorKind, Result};
use crate::regular;

/// The settings in a file, in their order. Names of other programs are converted to epitome's keys.
pub(super) fn read(path: &Path) -> Result<Vec<(&'static Key, SetValue)>> {
    let text =
        regular::read_to_string(path).map_err(|err| Error::reading(err, "the settings", path))?;
    let (spans, values) = parse(&text, path)?;
    let mut reader = Reader { text: &text, path, found: Vec::new() };
    reader.table("", &spans, &values)?;
    reader.without_contradictions()
}

/// Parses a value for `key` from the environment or the command line. `8k` means 8,000. A list may
/// be written as texts with commas between them.
pub(super) fn value_of(key: &Key, text: &str) -> Value {
    if key.words.iter().any(|word| word == text) {
        return Value::String(text.to_owned());
    }
    if key.list && !text.starts_with('[') && !matches!(text, "true" | "false") {
        let words = text.split(',').map(str::trim).filter(|word| !word.is_empty());
        return Value::Array(words.map(|word| Value::String(word.to_owned())).collect());
    }
    let thousands = text.strip_suffix(['k', 'K']).and_then(|digits| digits.parse::<i64>().ok());
    match thousands.and_then(|number| number.checked_mul(1_000)) {
        Some(number) => Value::Integer(number),
        // A text that is no value of TOML is used as it is.
        None => {
            let parsed: Option<Table> = format!("value = {text}").parse().ok();
            let value = parsed.and_then(|mut table| table.remove("value"));
            value.unwrap_or_else(|| Value::String(text.to_owned()))
        }
    }
}

/// Converts the settings file of another program to a table for `epitome.toml`. Returns the text of
/// the table, and the names of the settings to which no setting of epitome corresponds.
///
/// # Errors
///
/// `Settings` if the file is neither TOML nor JSON, or contains no setting of a known program; the
/// errors of reading the file.
#[cfg_attr(
    not(test),
    expect(clippy::disallowed_methods, reason = "a person names it: it may be a pipe")
)]
pub fn import(path: &Path) -> Result<(String, Vec<String>)> {
    let text = fs::read_to_string(path).map_err(|err| Error::reading(err, "the settings", path))?;
    let value: Value = match serde_json::from_str::<Value>(&text) {
        Ok(value) => value,
        Err(_) => {
            let table: std::result::Result<Table, _> = text.parse();
            Value::Table(table.map_err(|err| {
                let what = format!("{}: neither JSON nor TOML", path.display());
                Error::new(ErrorKind::Settings, what).because(err)
            })?)
        }
    };
    let found = most_probable(&value, |foreign| &foreign.at, |_, _| true);
    // The settings may also be at the top level of the file. This is assumed only if one of their
    // names is used by one program only.
    let found = found.or_else(|| most_probable(&value, |_| &[], is_distinctive));
    let Some((foreign, table)) = found else {
        let names: Vec<&str> = FOREIGN.iter().map(|foreign| &*foreign.of).collect();
        let what = format!("{}: no settings of {}", path.display(), names.join(", "));
        return Err(Error::new(ErrorKind::Settings, what));
    };
    let (taken, left): (Vec<_>, Vec<_>) =
        table.iter().partition(|(name, _)| foreign.name(name).is_some());
    let taken: Table = taken.into_iter().map(|(name, it)| (name.clone(), it.clone())).collect();
    let mut named = Table::new();
    named.insert(foreign.table.clone(), Value::Table(taken));
    let left = left.into_iter().map(|(name, _)| name.clone()).collect();
    Ok((format!("{}\n", named.to_string().trim_end()), left))
}

/// The program to which most names in a file belong, and the table that contains them. `at` returns
/// the path of a program's table. A program is considered only if `counts` returns true for one of
/// its names in that table.
fn most_probable(
    value: &Value,
    at: impl Fn(&'static Foreign) -> &'static [String],
    counts: impl Fn(&Foreign, &str) -> bool,
) -> Option<(&'static Foreign, &Table)> {
    let known = FOREIGN.iter().filter_map(|foreign| {
        let table = inner(value, at(foreign))?;
        let of_it: Vec<&String> =
            table.keys().filter(|name| foreign.name(name).is_some()).collect();
        let counting = of_it.iter().any(|name| counts(foreign, name));
        counting.then_some((of_it.len(), foreign, table))
    });
    let best = known.reduce(|best, next| if next.0 > best.0 { next } else { best });
    best.map(|(_, foreign, table)| (foreign, table))
}

/// Whether only this program uses the name, and the name is unlikely in other programs' files.
fn is_distinctive(foreign: &Foreign, name: &str) -> bool {
    let others = FOREIGN.iter().filter(|other| other.table != foreign.table);
    !matches!(name, "type" | "model" | "auto" | "keep")
        && others.filter(|other| other.name(name).is_some()).count() == 0
}

/// The table at a path; for a list, its first table.
fn inner<'v>(value: &'v Value, at: &[String]) -> Option<&'v Table> {
    let found = at.iter().try_fold(value, |value, name| value.get(name))?;
    match found {
        Value::Table(table) => Some(table),
        Value::Array(list) => list.iter().find_map(Value::as_table),
        _ => None,
    }
}

type Spans<'t> = DeTable<'t>;

fn parse<'t>(text: &'t str, path: &Path) -> Result<(Spans<'t>, Table)> {
    let fault = |err: toml::de::Error| {
        let byte = err.span().map_or(0, |span| span.start);
        wrong(&place_at(path, text, byte), err.message())
    };
    let spans = DeTable::parse(text).map_err(fault)?.into_inner();
    Ok((spans, text.parse().map_err(fault)?))
}

struct Reader<'t> {
    text: &'t str,
    path: &'t Path,
    found: Vec<(&'static Key, SetValue)>,
}

impl Reader<'_> {
    fn table(&mut self, prefix: &str, spans: &Spans<'_>, values: &Table) -> Result<()> {
        for (key, span) in spans {
            let word: &str = key.get_ref();
            let name = if prefix.is_empty() { word.to_owned() } else { format!("{prefix}.{word}") };
            let place = self.place(key);
            let Some(value) = values.get(word) else { continue };
            // This key is no setting: editors read the address of the schema from it.
            if name == "$schema" {
                continue;
            }
            match (span.get_ref(), value, keys::find(&name)) {
                (_, _, Some(key)) => {
                    let place = self.place(span);
                    self.found.push((key, SetValue { value: value.clone(), place, by: None }));
                }
                (DeValue::Table(spans), Value::Table(values), None) if is_table(&name) => {
                    self.table(&name, spans, values)?;
                }
                (DeValue::Table(spans), Value::Table(values), None) => {
                    let foreign = Foreign::find(&name).ok_or_else(|| {
                        let tables = KEYS.iter().filter_map(|key| key.name.split_once('.'));
                        let tables = tables.map(|(table, _)| table);
                        let others = FOREIGN.iter().map(|foreign| &*foreign.table);
                        unknown(&place, &name, nearest(&name, tables.chain(others)))
                    })?;
                    self.foreign(foreign, &place, spans, values)?;
                }
                (_, _, None) => {
                    find_key(&name, &place)?;
                }
            }
        }
        Ok(())
    }

    /// Reads a table whose keys are settings as another program names them. If a recipe works like
    /// that program, the table also selects the recipe.
    fn foreign(
        &mut self,
        foreign: &'static Foreign,
        place: &SettingSource,
        spans: &Spans<'_>,
        values: &Table,
    ) -> Result<()> {
        if let Some(recipe) = &foreign.recipe {
            let value = Value::String(recipe.clone());
            let by = Some(foreign.table.clone());
            let key = find_key("compaction.recipe", place)?;
            self.found.push((key, SetValue { value, place: place.clone(), by }));
        }
        for (key, span) in spans {
            let word: &str = key.get_ref();
            let by = format!("{}.{word}", foreign.table);
            let place = self.place(key);
            let name = foreign.name(word).ok_or_else(|| {
                let near = nearest(word, foreign.names.iter().map(|name| &*name.name));
                let near = near.map(|near| format!("{}.{near}", foreign.table));
                unknown(&place, &by, near.as_deref())
            })?;
            let Some(value) = values.get(word) else { continue };
            let place = self.place(span);
            let set = name.set(value).map_err(|what| wrong(&place, &format!("{by} {what}")))?;
            for (key, value) in set {
                let set = SetValue { value, place: place.clone(), by: Some(by.clone()) };
                self.found.push((find_key(key, &place)?, set));
            }
        }
        Ok(())
    }

    /// Returns an error if two names of other programs set one key to different values, unless
    /// epitome's own key is set as well.
    fn without_contradictions(self) -> Result<Vec<(&'static Key, SetValue)>> {
        for (n, (key, set)) in self.found.iter().enumerate() {
            let Some(by) = &set.by else { continue };
            let settled = self.found.iter().any(|(it, set)| it == key && set.by.is_none());
            let other = self.found[..n].iter().find_map(|(it, other)| {
                (it == key && other.value != set.value).then_some(other.by.as_deref()?)
            });
            if let (Some(other), false) = (other, settled) {
                let what = format!("{by} and {other} set {} to different values", key.name);
                return Err(wrong(&set.place, &what)
                    .with_hint(format!("say which: set {} itself", key.name)));
            }
        }
        Ok(self.found)
    }

    fn place<T>(&self, spanned: &Spanned<T>) -> SettingSource {
        place_at(self.path, self.text, spanned.span().start)
    }
}

/// Whether this is the name of a table: the names of some keys begin with it and a dot.
fn is_table(name: &str) -> bool {
    KEYS.iter().any(|key| key.name.strip_prefix(name).is_some_and(|rest| rest.starts_with('.')))
}

/// The position of a byte offset in a file: line and column from 1; columns are in characters.
fn place_at(path: &Path, text: &str, byte: usize) -> SettingSource {
    let before = text.get(..byte).unwrap_or(text);
    let line = 1 + before.matches('\n').count() as u64;
    let in_line = before.rsplit('\n').next().unwrap_or_default();
    SettingSource::File(path.to_owned(), line, 1 + in_line.chars().count() as u64)
}
