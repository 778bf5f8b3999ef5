//! The TOML file of a recipe. Its keys are the members of [`Recipe`], with a few shorter forms and
//! the keys of earlier versions.

use std::fmt;

use serde::de::{Error as _, Unexpected, Visitor};
use serde::{Deserialize, Deserializer as _};
use toml::Spanned;
use toml::de::{DeTable, DeValue, Deserializer, Error, ValueDeserializer};

use super::Recipe;

/// Keys of earlier versions, with their current names.
const RENAMED: [(&str, &str); 9] = [
    ("passes", "stages.passes"),
    ("target_chars", "target.chars"),
    ("live.trigger", "trigger.live"),
    ("live.passes", "stages.live.passes"),
    ("live.birth", "stages.live.ingest"),
    ("live.ingest", "stages.live.ingest"),
    ("live.snip", "stages.live.trim"),
    ("live.trim", "stages.live.trim"),
    ("live.summary", "stages.summary"),
];

type Value<'i> = Spanned<DeValue<'i>>;

/// Parses a recipe file.
pub(super) fn parse(text: &str) -> Result<Recipe, Error> {
    let recipe = table(text).and_then(|file| {
        check_required(file.get_ref())?;
        Recipe::deserialize(Deserializer::from(file))
    });
    recipe.map_err(|mut err| {
        err.set_input(Some(text));
        err
    })
}

/// The tables of a recipe file, with the values at the positions that they have in [`Recipe`].
pub(super) fn table(text: &str) -> Result<Spanned<DeTable<'_>>, Error> {
    let mut file = DeTable::parse(text)?;
    check_percentages(file.get_ref())?;
    move_members(file.get_mut())?;
    Ok(file)
}

/// Returns an error if a recipe lacks a key that each needs.
fn check_required(file: &DeTable<'_>) -> Result<(), Error> {
    const REQUIRED: [&str; 3] = ["name", "about", "stages"];
    match REQUIRED.into_iter().find(|key| !file.contains_key(*key)) {
        None => Ok(()),
        Some(missing) => Err(Error::custom(format!(
            "missing field `{missing}`: a recipe needs `name` and `about`, which are texts, and \
             `stages`, a table that may be empty"
        ))),
    }
}

/// Returns an error if a target in per cent of the window is no share of it. Recipes that are part
/// of stored data are not checked.
fn check_percentages(file: &DeTable<'_>) -> Result<(), Error> {
    for path in ["target.percent", "live.target.percent"] {
        if let Some(value) = value_at(file, path)
            && value.get_ref().is_integer()
        {
            ValueDeserializer::from(value.clone()).deserialize_any(Percentage)?;
        }
    }
    Ok(())
}

/// Accepts a whole number from 1 to 100.
struct Percentage;

impl Visitor<'_> for Percentage {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number from 1 to 100")
    }

    fn visit_i64<E: serde::de::Error>(self, percent: i64) -> Result<(), E> {
        if (1..=100).contains(&percent) {
            return Ok(());
        }
        Err(E::invalid_value(Unexpected::Signed(percent), &self))
    }
}

/// The value at a path; `None` if there is no value.
fn value_at<'t, 'i>(table: &'t DeTable<'i>, path: &str) -> Option<&'t Value<'i>> {
    let Some((first, rest)) = path.split_once('.') else { return table.get(path) };
    match table.get(first)?.get_ref() {
        DeValue::Table(inner) => value_at(inner, rest),
        _ => None,
    }
}

/// Moves the values of a file to the positions that they have in [`Recipe`].
fn move_members(file: &mut DeTable<'_>) -> Result<(), Error> {
    // In files of an earlier version, the target applies to stored sessions only.
    let is_target_shared = !file.contains_key("passes");
    let is_number = matches!(file.get("target").map(Spanned::get_ref), Some(DeValue::Integer(_)));
    if is_number && let Some(tokens) = take(file, "target") {
        put(file, "target.tokens", tokens);
    }
    // Files of earlier versions have these two keys directly in `trigger`. There, the keys are for
    // stored sessions.
    let mut stored = DeTable::new();
    for key in ["trigger.tokens", "trigger.bytes"] {
        if let Some(value) = take(file, key) {
            put(&mut stored, key, value);
        }
    }
    if let Some(trigger) = take(&mut stored, "trigger") {
        put_renamed(file, ("trigger", "trigger.stored"), trigger)?;
    }
    for (before, now) in RENAMED {
        if let Some(value) = take(file, before) {
            put_renamed(file, (before, now), value)?;
        }
    }
    if let Some(pins) = take(file, "keep.pins") {
        put_renamed(file, ("keep.pins", "rule_files"), pins)?;
    }
    let target = take(file, "target");
    let own = take(file, "live.target");
    if let Some(live) = own.or_else(|| target.clone().filter(|_| is_target_shared)) {
        put(file, "target.live", live);
    }
    if let Some(stored) = target {
        put(file, "target.stored", stored);
    }
    if let Some(stages) = take(file, "stages") {
        put_stages(file, stages);
    }
    Ok(())
}

/// Copies the stages for stored sessions to the stages for live contexts. A stage that the file
/// sets separately for live contexts is not replaced.
fn put_stages<'i>(file: &mut DeTable<'i>, mut stages: Value<'i>) {
    let own = match stages.get_mut() {
        DeValue::Table(stages) => stages.remove("live"),
        _ => None,
    };
    let mut live = stages.clone();
    match (live.get_mut(), own.map(Spanned::into_inner)) {
        (DeValue::Table(live), Some(DeValue::Table(own))) => live.extend(own),
        (live, Some(own)) => *live = own,
        (_, None) => {}
    }
    put(file, "stages.stored", stages);
    put(file, "stages.live", live);
}

/// Moves a value that the file has under the earlier name of its key to the current key. Reports an
/// error if the current key already has a value.
fn put_renamed<'i>(
    file: &mut DeTable<'i>,
    (before, now): (&str, &'static str),
    value: Value<'i>,
) -> Result<(), Error> {
    if put(file, now, value) {
        return Ok(());
    }
    Err(Error::custom(format!("`{before}` is what `{now}` was called before: leave one out")))
}

/// Removes the value at a path, and returns it; `None` if there is no value.
fn take<'i>(table: &mut DeTable<'i>, path: &str) -> Option<Value<'i>> {
    let Some((first, rest)) = path.split_once('.') else { return table.remove(path) };
    match table.get_mut(first)?.get_mut() {
        DeValue::Table(inner) => take(inner, rest),
        _ => None,
    }
}

/// Puts a value at a path. Returns false and does nothing if there is a value already. If a part of
/// the path is not a table, the value is dropped, and the parser reports the error.
fn put<'i>(table: &mut DeTable<'i>, path: &'static str, value: Value<'i>) -> bool {
    let Some((first, rest)) = path.split_once('.') else {
        let is_free = !table.contains_key(path);
        if is_free {
            table.insert(Spanned::new(0..0, path.into()), value);
        }
        return is_free;
    };
    let inner = table.entry(Spanned::new(0..0, first.into()));
    let inner = inner.or_insert_with(|| Spanned::new(value.span(), DeValue::Table(DeTable::new())));
    match inner.get_mut() {
        DeValue::Table(inner) => put(inner, rest, value),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        BatchRule, IngestRule, Keep, Level, Live, PassSettings, PerKind, Recipe, RuleFiles,
        StageTiming, Stages, Stop, SummaryRule, Target, ToolRule, TrimRule,
    };

    fn passes(names: &[&str]) -> Vec<PassSettings> {
        let pass = |name: &&str| format!("[[stages.passes]]\npass = '{name}'\n");
        let text: String = names.iter().map(pass).collect();
        parsed(&format!("[stages]\n{text}")).stages.stored.passes
    }

    fn parsed(text: &str) -> Recipe {
        Recipe::parse(&format!("name = 'a'\nabout = 'b'\n{text}")).expect("a recipe")
    }

    fn level(tokens: Option<u64>, bytes: Option<u64>, percent: Option<u64>) -> Level {
        Level { tokens, bytes, percent, ..Level::default() }
    }

    fn recipe(stages: PerKind<Stages>) -> Recipe {
        Recipe { name: "a".into(), about: "b".into(), stages, ..Recipe::default() }
    }

    #[test]
    fn a_recipe_has_stages_for_both_places_and_some_of_a_context_in_use_alone() {
        let text = "
            target = { percent = 60 }
            stop = 'pass'
            at_least = 5
            exempt_tools = ['X']
            trigger = { stored = { bytes = 7 }, live = { percent = 80 } }
            keep = { turns = 2, pins = ['RULES.md'] }
            [live]
            when = 'request'
            reserve = 1
            warn = 2
            background = true
            priced = true
            tool = { min_tokens = 3 }
            [stages]
            ingest = { cap = 9 }
            trim = { over = 5, keep = 4, head = 1 }
            summary = { max_tokens = 8 }
            [[stages.passes]]
            pass = 'copies'
            [stages.live]
            ingest = { repeats = true }
            [[stages.live.passes]]
            pass = 'stale'
        ";
        let ingest = IngestRule { cap: Some(9), ..IngestRule::default() };
        let summary = Some(SummaryRule { max_tokens: 8, ..SummaryRule::default() });
        let trim = Some(TrimRule { over: 5, keep: 4, head: 1 });
        let copies = passes(&["copies"]);
        let stored = Stages { ingest: Some(ingest), trim, passes: copies, digest: None, summary };
        let live = Stages {
            ingest: Some(IngestRule { repeats: true, ..IngestRule::default() }),
            passes: passes(&["stale"]),
            ..stored.clone()
        };
        let percent = Target { percent: Some(60), ..Target::default() };
        let (when, tool) = (StageTiming::Request, ToolRule { min_tokens: 3 });
        let expect = Recipe {
            trigger: PerKind {
                stored: level(None, Some(7), None),
                live: level(None, None, Some(80)),
            },
            target: PerKind::for_both(Some(percent)),
            stop: Stop::Pass,
            at_least: Some(5),
            exempt_tools: vec!["X".into()],
            keep: Keep { turns: Some(2), ..Keep::default() },
            rule_files: RuleFiles::with_patterns(vec!["RULES.md".into()]),
            live: Live { when, reserve: 1, warn: 2, background: true, priced: true, tool },
            ..recipe(PerKind { stored, live })
        };
        assert_eq!(parsed(text), expect);
    }

    #[test]
    fn a_context_in_use_may_have_a_target_of_its_own() {
        let target = |tokens| Some(Target { tokens: Some(tokens), ..Target::default() });
        let text = "target = 5\nlive.target = { tokens = 6 }\n[stages]";
        let (stored, live) = (target(5), target(6));
        assert_eq!(parsed(text).target, PerKind { stored, live });
    }

    #[test]
    fn files_of_earlier_versions_mean_what_they_did() {
        let of_both = |names: &[&str]| {
            let stages = Stages { passes: passes(names), ..Stages::default() };
            recipe(PerKind::for_both(stages))
        };
        // In the oldest form, the target applies to stored sessions only, and the trigger to both
        // kinds of contexts.
        let stored = parsed("trigger = { bytes = 1, tokens = 2 }\ntarget = 3\npasses = []");
        let trigger = level(Some(2), Some(1), None);
        let target = Some(Target { tokens: Some(3), ..Target::default() });
        let expect = Recipe {
            trigger: PerKind { stored: trigger, live: Level::default() },
            target: PerKind { stored: target, live: None },
            ..of_both(&[])
        };
        assert_eq!((stored.live_trigger(), stored), (trigger, expect));
        // Two limits of one target, which must both be reached.
        let both = parsed("target = 3\ntarget_chars = 4\n[[passes]]\npass = 'stale'").target;
        let expect = Target { tokens: Some(3), chars: Some(4), percent: None };
        assert_eq!(both, PerKind { stored: Some(expect), live: None });
        // The table `live`, with the first names of two of its keys, and with the names that they
        // had later.
        for (ingest, trim) in [("birth", "snip"), ("ingest", "trim")] {
            let text = format!(
                "passes = [{{ pass = 'copies' }}]
                [live]
                when = 'asked'
                trigger = {{ percent = 90 }}
                target = {{ chars = 4 }}
                reserve = 1
                warn = 2
                {ingest} = {{ repeats = true, batch = {{ chars = 3, over = 2, preview = 1 }} }}
                {trim} = {{ over = 5, keep = 4, head = 1 }}
                tool = {{ min_tokens = 3 }}
                [live.summary]
                max_tokens = 8
                [[live.passes]]
                pass = 'stale'"
            );
            let summary = Some(SummaryRule { max_tokens: 8, ..SummaryRule::default() });
            let batch = Some(BatchRule { chars: 3, over: 2, preview: 1 });
            let copies = passes(&["copies"]);
            let stored = Stages { passes: copies, summary, ..Stages::default() };
            let live = Stages {
                ingest: Some(IngestRule { repeats: true, batch, ..IngestRule::default() }),
                trim: Some(TrimRule { over: 5, keep: 4, head: 1 }),
                passes: passes(&["stale"]),
                ..stored.clone()
            };
            let chars = Some(Target { chars: Some(4), ..Target::default() });
            let (when, tool) = (StageTiming::Asked, ToolRule { min_tokens: 3 });
            let expect = Recipe {
                trigger: PerKind { stored: Level::default(), live: level(None, None, Some(90)) },
                target: PerKind { stored: None, live: chars },
                live: Live { when, reserve: 1, warn: 2, background: false, priced: false, tool },
                ..recipe(PerKind { stored, live })
            };
            assert_eq!(parsed(&text), expect, "{ingest}");
        }
    }

    #[test]
    fn a_key_that_is_unknown_or_set_twice_is_an_error_that_names_it() {
        let twice = |before: &str, now: &str| {
            format!("`{before}` is what `{now}` was called before: leave one out")
        };
        for (text, expect) in [
            ("passes = []\nkeeep = {}", "unknown field `keeep`"),
            ("passes = [{ pass = 'results', mini = 3 }]", "unknown field `mini`"),
            ("passes = [{ pass = 'unheard-of' }]", "unknown variant `unheard-of`"),
            ("passes = []\n[keep]\nturn = 1", "unknown field `turn`"),
            ("passes = []\ntarget = { tokns = 1 }", "unknown field `tokns`"),
            ("passes = []\ntarget = -1", "invalid value: integer `-1`"),
            ("target = { percent = 101 }\nstages = {}", "`101`, expected a whole number from 1 to"),
            ("target.percent = 0\nstages = {}", "`0`, expected a whole number from 1 to 100"),
            ("live.target.percent = 101\nstages = {}", "`101`, expected a whole number from 1 to"),
            ("target = '101%'\nstages = {}", "a percentage from \"1%\" to \"100%\""),
            ("passes = []\nlive = { trigger = { token = 1 } }", "unknown field `token`"),
            ("trigger = { stored = { token = 1 } }\npasses = []", "unknown field `token`"),
            ("[stages]\npases = []", "unknown field `pases`"),
            ("[stages.live]\ncut = []", "unknown field `cut`"),
            ("keep = {}", "missing field `stages`: a recipe needs `name` and `about`"),
            ("trigger = 5\nstages = {}", "expected a table with `stored` and `live`"),
            ("trigger = { live = 5 }\nstages = {}", "expected a table of limits"),
            ("stages = 5", "expected a table of stages"),
            ("stages = { passes = [5] }", "expected a table with `pass`"),
            ("passes = []\n[stages]\npasses = []", &twice("passes", "stages.passes")),
            (
                "target = { chars = 1 }\ntarget_chars = 1\n[stages]",
                &twice("target_chars", "target.chars"),
            ),
            (
                "trigger = { tokens = 1, stored = { bytes = 1 } }\n[stages]",
                &twice("trigger", "trigger.stored"),
            ),
            (
                "trigger = { live = { bytes = 1 } }\nlive = { trigger = { bytes = 1 } }\n[stages]",
                &twice("live.trigger", "trigger.live"),
            ),
            (
                "[stages]\nsummary = {}\n[live]\nsummary = {}",
                &twice("live.summary", "stages.summary"),
            ),
        ] {
            let text = format!("name = 'a'\nabout = ''\n{text}");
            let err = Recipe::parse(&text).expect_err("no recipe").into_cause();
            assert!(err.message().contains(expect), "{text}: {}", err.message());
        }
    }
}
