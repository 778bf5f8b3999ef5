//! The keys of a recipe's file, and those that earlier versions had for the same.

use serde::Deserialize;
use serde::de::Error as _;
use toml::de::Error;

use super::{Recipe, Stages, Stop};
use crate::settings::PassSettings;
use crate::{
    DigestRule, IngestRule, Keep, Level, Live, PerKind, RuleFiles, SummaryRule, Target, ToolRule,
    TrimRule, When,
};

/// A recipe as its file has it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RecipeFile {
    name: String,
    about: String,
    #[serde(default)]
    keep: KeepKeys,
    #[serde(default)]
    trigger: TriggerKeys,
    target: Option<Target>,
    #[serde(default)]
    stop: Stop,
    at_least: Option<u64>,
    #[serde(default)]
    exempt_tools: Vec<String>,
    stages: Option<StageKeys>,
    #[serde(default)]
    live: LiveKeys,
    // Of earlier versions.
    target_chars: Option<u64>,
    passes: Option<Vec<PassSettings>>,
}

/// The rules of what is kept whole, and names of files whose text stays wherever it stands.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct KeepKeys {
    turns: Option<u64>,
    results: Option<u64>,
    messages: Option<u64>,
    tokens: Option<u64>,
    share: Option<u64>,
    unanswered: bool,
    pins: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct TriggerKeys {
    stored: Option<Level>,
    live: Option<Level>,
    // Of earlier versions: of stored sessions.
    tokens: Option<u64>,
    bytes: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StageKeys {
    ingest: Option<IngestRule>,
    trim: Option<TrimRule>,
    passes: Option<Vec<PassSettings>>,
    digest: Option<DigestRule>,
    summary: Option<SummaryRule>,
    #[serde(default)]
    live: LiveStages,
}

/// What a context in use has in place of the same keys of `stages`.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct LiveStages {
    ingest: Option<IngestRule>,
    trim: Option<TrimRule>,
    passes: Option<Vec<PassSettings>>,
    digest: Option<DigestRule>,
    summary: Option<SummaryRule>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct LiveKeys {
    when: When,
    target: Option<Target>,
    reserve: Option<u64>,
    warn: Option<u64>,
    background: bool,
    tool: ToolRule,
    // Of earlier versions.
    trigger: Option<Level>,
    passes: Option<Vec<PassSettings>>,
    #[serde(alias = "birth")]
    ingest: Option<IngestRule>,
    #[serde(alias = "snip")]
    trim: Option<TrimRule>,
    summary: Option<SummaryRule>,
}

pub(super) fn parse(text: &str) -> Result<Recipe, Error> {
    let mut file: RecipeFile = toml::from_str(text)?;
    let target = file.target()?;
    let trigger = file.trigger()?;
    let stages = file.stages()?;
    let LiveKeys { when, reserve, warn, background, tool, .. } = file.live;
    let live = Live::default();
    let (reserve, warn) = (reserve.unwrap_or(live.reserve), warn.unwrap_or(live.warn));
    let KeepKeys { turns, results, messages, tokens, share, unanswered, pins } = file.keep;
    Ok(Recipe {
        name: file.name,
        about: file.about,
        keep: Keep { turns, results, messages, tokens, share, unanswered, ..Keep::default() },
        rule_files: RuleFiles::with(pins),
        trigger,
        target,
        stop: file.stop,
        at_least: file.at_least,
        exempt_tools: file.exempt_tools,
        stages,
        live: Live { when, reserve, warn, background, tool },
    })
}

impl RecipeFile {
    fn trigger(&self) -> Result<PerKind<Level>, Error> {
        let TriggerKeys { stored, live, tokens, bytes } = self.trigger;
        let before = Level { tokens, bytes, ..Level::default() };
        let before = Some(before).filter(|it| *it != Level::default());
        let stored = one(("trigger.stored", stored), ("trigger", before))?;
        let live = one(("trigger.live", live), ("live.trigger", self.live.trigger))?;
        Ok(PerKind { stored: stored.unwrap_or_default(), live: live.unwrap_or_default() })
    }

    /// A file of an earlier version has all its passes at the top, and its target there is that of
    /// stored sessions alone.
    fn target(&self) -> Result<PerKind<Option<Target>>, Error> {
        let chars = self.target.and_then(|target| target.chars);
        let chars = one(("target.chars", chars), ("target_chars", self.target_chars))?;
        let target = match (self.target, chars) {
            (None, None) => None,
            (target, chars) => Some(Target { chars, ..target.unwrap_or_default() }),
        };
        let shared = target.filter(|_| self.passes.is_none());
        Ok(PerKind { stored: target, live: self.live.target.or(shared) })
    }

    fn stages(&mut self) -> Result<PerKind<Stages>, Error> {
        if self.passes.is_none() && self.stages.is_none() {
            return Err(Error::missing_field("stages"));
        }
        let keys = self.stages.take();
        let (shared, own) = match keys {
            Some(StageKeys { ingest, trim, passes, digest, summary, live }) => {
                (LiveStages { ingest, trim, passes, digest, summary }, live)
            }
            None => Default::default(),
        };
        let before = &mut self.live;
        let passes = one(("stages.passes", shared.passes), ("passes", self.passes.take()))?;
        let summary = ("live.summary", before.summary.take());
        let stored = Stages {
            ingest: shared.ingest,
            trim: shared.trim,
            passes: passes.unwrap_or_default(),
            digest: shared.digest,
            summary: one(("stages.summary", shared.summary), summary)?,
        };
        let ingest = one(("stages.live.ingest", own.ingest), ("live.ingest", before.ingest))?;
        let trim = one(("stages.live.trim", own.trim), ("live.trim", before.trim))?;
        let passes = ("live.passes", before.passes.take());
        let passes = one(("stages.live.passes", own.passes), passes)?;
        let live = Stages {
            ingest: ingest.or(stored.ingest),
            trim: trim.or(stored.trim),
            passes: passes.unwrap_or_else(|| stored.passes.clone()),
            digest: own.digest.or_else(|| stored.digest.clone()),
            summary: own.summary.or_else(|| stored.summary.clone()),
        };
        Ok(PerKind { stored, live })
    }
}

/// The value of a key, or of the key that earlier versions had for it.
fn one<T>(now: (&str, Option<T>), before: (&str, Option<T>)) -> Result<Option<T>, Error> {
    match (now, before) {
        ((now, Some(_)), (before, Some(_))) => {
            let what = format!("`{before}` is what `{now}` was called before: leave one out");
            Err(Error::custom(what))
        }
        ((_, now), (_, before)) => Ok(now.or(before)),
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        BatchRule, IngestRule, Keep, Level, Live, PassSettings, PerKind, Recipe, RuleFiles, Stages,
        Stop, SummaryRule, Target, ToolRule, TrimRule, When,
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
        let (when, tool) = (When::Request, ToolRule { min_tokens: 3 });
        let expect = Recipe {
            trigger: PerKind {
                stored: level(None, Some(7), None),
                live: level(None, None, Some(80)),
            },
            target: PerKind::same(Some(percent)),
            stop: Stop::Pass,
            at_least: Some(5),
            exempt_tools: vec!["X".into()],
            keep: Keep { turns: Some(2), ..Keep::default() },
            rule_files: RuleFiles::with(vec!["RULES.md".into()]),
            live: Live { when, reserve: 1, warn: 2, background: true, tool },
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
            recipe(PerKind::same(stages))
        };
        // The oldest: stored sessions alone. What starts it starts a context in use, too.
        let stored = parsed("trigger = { bytes = 1, tokens = 2 }\ntarget = 3\npasses = []");
        let trigger = level(Some(2), Some(1), None);
        let target = Some(Target { tokens: Some(3), ..Target::default() });
        let expect = Recipe {
            trigger: PerKind { stored: trigger, live: Level::default() },
            target: PerKind { stored: target, live: None },
            ..of_both(&[])
        };
        assert_eq!((stored.live_trigger(), stored), (trigger, expect));
        // Two targets, which both have to be reached.
        let both = parsed("target = 3\ntarget_chars = 4\n[[passes]]\npass = 'stale'").target;
        let expect = Target { tokens: Some(3), chars: Some(4), percent: None };
        assert_eq!(both, PerKind { stored: Some(expect), live: None });
        // A live table, under its first names and under those that followed.
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
            let (when, tool) = (When::Asked, ToolRule { min_tokens: 3 });
            let expect = Recipe {
                trigger: PerKind { stored: Level::default(), live: level(None, None, Some(90)) },
                target: PerKind { stored: None, live: chars },
                live: Live { when, reserve: 1, warn: 2, background: false, tool },
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
            ("passes = []\nlive = { trigger = { token = 1 } }", "unknown field `token`"),
            ("trigger = { stored = { token = 1 } }\npasses = []", "unknown field `token`"),
            ("[stages]\npases = []", "unknown field `pases`"),
            ("[stages.live]\ncut = []", "unknown field `cut`"),
            ("keep = {}", "missing field `stages`"),
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
