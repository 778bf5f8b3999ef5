//! Checks settings: each value on its own, and values that limit each other.

use std::path::Path;

use epitome_passes::BUILT_IN;
use toml::{Table, Value};

use super::nearest::nearest;
use super::{Key, PathKind, SetValue, Settings, Values, put, trust, wrong};
use crate::config::Config;
use crate::error::Result;

/// The maximum number of characters of a wrong value that an error shows.
const SHOWN: usize = 60;

/// Checks one value: it must have the type and the range that its key takes. If it names a recipe,
/// the recipe must exist.
pub(super) fn alone(config: &Config, key: &Key, set: &SetValue) -> Result<()> {
    let mut table = Table::new();
    put(&mut table, &key.name, set.value.clone());
    let fits: std::result::Result<Values, toml::de::Error> = table.try_into();
    let name = set.by.as_deref().unwrap_or(&key.name);
    if fits.is_err() || !key.is_within(&set.value) {
        let what = format!("{name} is {}; it takes {}", shorten(&set.value), key.takes);
        return Err(wrong(&set.place, &what));
    }
    match (key.path, &set.value) {
        (Some(PathKind::Recipe), Value::String(text)) => recipe(config, name, text, set),
        (Some(PathKind::Recipe | PathKind::File | PathKind::Folders) | None, _) => Ok(()),
    }
}

/// Checks that a recipe exists: as a built-in one, as one of the user's own, or as a file.
fn recipe(config: &Config, name: &str, text: &str, set: &SetValue) -> Result<()> {
    if !trust::is_name(text) {
        return if Path::new(text).is_file() {
            Ok(())
        } else {
            Err(wrong(&set.place, &format!("{name}: there is no file {text}")))
        };
    }
    let folder = config.recipes();
    let is_own = folder.join(format!("{text}.toml")).is_file();
    if is_own || BUILT_IN.iter().any(|(known, _)| *known == text) {
        return Ok(());
    }
    let err = wrong(&set.place, &format!("{name}: no recipe is called `{text}`"));
    Err(match nearest(text, BUILT_IN.iter().map(|(known, _)| *known)) {
        Some(near) => err.with_hint(format!("did you mean `{near}`?")),
        None => err.with_hint(format!(
            "`epitome recipes` lists them; your own are in {}",
            folder.display()
        )),
    })
}

/// Two settings with numbers: if both are set, the first must be less than the second.
struct Bound {
    less: &'static str,
    than: &'static str,
    /// Whether the two numbers may be equal.
    or_equal: bool,
}

const fn less(less: &'static str, than: &'static str) -> Bound {
    Bound { less, than, or_equal: false }
}

const BOUNDS: &[Bound] = &[
    less("live.overhead", "live.window"),
    less("live.reserve", "live.window"),
    less("live.target.tokens", "live.window"),
    less("live.trigger.tokens", "live.window"),
    less("live.summary.max_tokens", "live.window"),
    less("live.target.tokens", "live.trigger.tokens"),
    less("live.target.percent", "live.trigger.percent"),
    less("live.target.chars", "live.trigger.chars"),
    Bound { less: "compaction.target", than: "compaction.trigger.tokens", or_equal: true },
];

/// Checks values that limit each other, also if they are set in different places.
pub(super) fn together(settings: &Settings) -> Result<()> {
    for bound in BOUNDS {
        let less = settings.set.get(bound.less).and_then(|sets| sets.first());
        let than = settings.set.get(bound.than).and_then(|sets| sets.first());
        let (Some(one), Some(other)) = (less, than) else { continue };
        let numbers = one.value.as_integer().zip(other.value.as_integer());
        let Some((small, large)) = numbers else { continue };
        if small < large || (bound.or_equal && small == large) {
            continue;
        }
        let than = if bound.or_equal { "more than" } else { "not less than" };
        let what = format!(
            "{} is {small}, which is {than} {}: {large} ({})",
            bound.less, bound.than, other.place
        );
        return Err(wrong(&one.place, &what));
    }
    Ok(())
}

fn shorten(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}
