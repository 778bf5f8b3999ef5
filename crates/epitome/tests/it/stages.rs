//! The stages of a recipe on stored sessions have the same result as on a live context.

use epitome::compaction::{Note, PreparedCompaction};
use epitome::live::{Context, MessagePart, Setup};
use epitome::ops::{Change, Compact, CompactReport};
use epitome::settings::Settings;
use epitome::{Config, Loaded};
use epitome_model::{Block, Entry, Source, Tokens, Transcript};
use epitome_passes::{BatchRule, IngestRule, Recipe, Stages, TrimRule, built_in};
use epitome_tokens::Estimate;
use serde_json::{Value, json};

/// A context with a user message and `calls` calls, each with a result of `chars` characters.
fn talk(setup: Setup, calls: usize, chars: usize) -> Context {
    let mut context = Context::in_memory(setup.with_counter(Estimate::new()));
    context.user("Read them.").expect("memory is written");
    for n in 0..calls {
        if n == 4 {
            context.user("And mind the tests.").expect("memory is written");
        }
        let id = format!("c{n}");
        let given = format!(r#"{{"path":"{n}.rs"}}"#);
        context.assistant(&[MessagePart::call(&*id, "Read", given)]).expect("memory is written");
        let text = format!("{n} ").repeat(chars / 3);
        context.tool(&[MessagePart::output(&*id, text)]).expect("memory is written");
    }
    context
}

/// The texts that are sent, in order. Before the text of a result is the id of its call.
fn texts(transcript: &Transcript, source: &dyn Source) -> Vec<String> {
    let text = |block: &Block| match block {
        Block::Text(text) => text.read(source).into_owned(),
        Block::Call(call) => format!("call {}", call.id),
        Block::Output(output) => format!("{}: {}", output.call, output.text(source)),
        other => panic!("there is none such: {other:?}"),
    };
    let entries = transcript.context().map(|(_, entry)| entry);
    entries.flat_map(|entry: &Entry| &entry.blocks).map(text).collect()
}

/// The compacted stored log, and what a live context with the same recipe sends.
fn both(recipe: &Recipe, calls: usize, chars: usize) -> (Loaded<Vec<u8>>, Vec<String>) {
    let setup = |recipe: &Recipe| Setup::new(recipe.clone());
    let mut live = talk(setup(recipe), calls, chars);
    let sent = {
        let view = live.view().expect("memory is written");
        texts(view.transcript(), view.source())
    };
    let log = talk(setup(&Recipe::default()), calls, chars).log().to_vec();
    (Loaded::read(log, None).expect("a log"), sent)
}

fn trims() -> Recipe {
    let trim = Some(TrimRule { over: 10, keep: 10, head: 3 });
    let stages = Stages { trim, ..Stages::default() };
    let stages = epitome_passes::PerKind::for_both(stages);
    Recipe { name: "trims".into(), stages, ..Recipe::default() }
}

#[test]
fn a_stored_log_is_trimmed_as_a_context_in_use_and_once() {
    let (session, sent) = both(&trims(), 12, 60);
    let planned =
        PreparedCompaction::in_default_way(&session, &trims(), &Estimate).expect("a plan");
    assert_eq!((planned.violations.clone(), planned.notes.clone()), (vec![], vec![]));
    let spliced = planned.spliced().expect("as planned");
    assert_eq!(texts(&planned.after, &spliced), sent);
    assert_eq!(planned.plan.by_pass().into_iter().collect::<Vec<_>>(), [("trim", 16)]);
    let bytes = spliced.at(epitome_model::Span { start: 0, end: Source::len(&spliced) });
    assert!(bytes.starts_with(&session.source), "a log only grows");
    let again = Loaded::read(bytes.into_owned(), None).expect("a log");
    let second = PreparedCompaction::in_default_way(&again, &trims(), &Estimate).expect("a plan");
    assert!(second.is_empty());
}

#[test]
fn what_is_kept_is_not_trimmed() {
    let mut recipe = trims();
    recipe.keep.turns = Some(1);
    let (session, _) = both(&recipe, 12, 60);
    let planned = PreparedCompaction::in_default_way(&session, &recipe, &Estimate).expect("a plan");
    assert_eq!(planned.violations, []);
    let spliced = planned.spliced().expect("as planned");
    let left = texts(&planned.after, &spliced);
    // The last turn begins with the fifth call.
    let kept = (4..12).map(|n| format!("call c{n}"));
    assert!(kept.into_iter().all(|call| left.contains(&call)), "{left:?}");
    assert!(!left.contains(&"call c2".to_owned()), "{left:?}");
}

#[test]
fn a_stored_log_has_previews_where_a_context_in_use_has_them() {
    let mut recipe = trims();
    let batch = Some(BatchRule { chars: 200, over: 50, preview: 30 });
    let ingest = Some(IngestRule { batch, ..IngestRule::default() });
    let stages = Stages { ingest, ..Stages::default() };
    recipe.stages = epitome_passes::PerKind::for_both(stages);
    // One response with results of 90, 300 and 600 characters, as one batch.
    let talk = |recipe: &Recipe| {
        let setup = Setup::new(recipe.clone()).with_counter(Estimate::new());
        let mut context = Context::in_memory(setup);
        context.user("Read them.").expect("memory is written");
        let calls = ["a", "b", "c"].map(|id| MessagePart::call(id, "Read", "{}"));
        context.assistant(&calls).expect("memory is written");
        let results = [("a", 30), ("b", 100), ("c", 200)];
        let results = results.map(|(id, n)| MessagePart::output(id, format!("{id}, ").repeat(n)));
        context.tool(&results).expect("memory is written");
        context
    };
    let mut live = talk(&recipe);
    let sent = {
        let view = live.view().expect("memory is written");
        texts(view.transcript(), view.source())
    };
    assert!(sent[4].starts_with("a: a, a, ") && sent[6].starts_with("c: [epitome k"), "{sent:?}");
    let log = talk(&Recipe::default()).log().to_vec();
    let session = Loaded::read(log, None).expect("a log");
    let planned = PreparedCompaction::in_default_way(&session, &recipe, &Estimate).expect("a plan");
    let spliced = planned.spliced().expect("as planned");
    assert_eq!((planned.violations.clone(), texts(&planned.after, &spliced)), (vec![], sent));
}

/// A session of Claude Code with this model and `results` results of `chars` characters each.
fn claude(model: &str, results: usize, chars: usize) -> Loaded<Vec<u8>> {
    let (mut text, mut parent) = (String::new(), Value::Null);
    let mut add = |role: &str, message: Value| {
        let uuid = format!("00000000-0000-4000-8000-{:012}", text.len());
        let line = json!({
            "type": role, "uuid": uuid, "parentUuid": parent, "cwd": "/p",
            "sessionId": "0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4",
            "timestamp": "2026-11-18T10:00:00.000Z", "message": message,
        });
        parent = json!(uuid);
        text.push_str(&format!("{line}\n"));
    };
    add("user", json!({"role": "user", "content": "Read them."}));
    for n in 0..results {
        let id = format!("t{n}");
        let call = json!({"type": "tool_use", "id": id, "name": "Bash", "input": {"command": "x"}});
        let reply_message = json!({"role": "assistant", "model": model, "content": [call]});
        add("assistant", reply_message);
        let lines: String = (0..chars / 20).map(|line| format!("line {line:013}\n")).collect();
        let result = json!({"type": "tool_result", "tool_use_id": id, "content": lines});
        add("user", json!({"role": "user", "content": [result]}));
    }
    Loaded::read(text.into_bytes(), None).expect("a session")
}

fn report(recipe: &str, session: &Loaded<Vec<u8>>, window: Option<u64>) -> CompactReport {
    let folder = tempfile::tempdir().expect("a folder");
    let config = Config::from_home(folder.path());
    let recipe = built_in(recipe).expect("a built-in recipe");
    let mut settings = Settings::default();
    settings.values.live.window = window;
    let run = config.begin_run("compact");
    let compact = Compact::with_settings(&settings, &recipe, &Estimate, &run);
    compact.plan_loaded(&config, "s".as_ref(), session, |_, _| ()).expect("a plan")
}

#[test]
fn per_cent_of_a_window_are_those_of_the_settings_or_of_the_sessions_model() {
    let left = |model: &str, window| {
        let report = report("ion", &claude(model, 40, 12_000), window);
        let Change { before, after } = report.file.context_tokens;
        (before, after, report.file.notes)
    };
    let (before, least, notes) = left("unheard-of", None);
    let note = "per cent of the window are left out: the window of unheard-of is not known; \
                set `live.window`";
    assert_eq!(notes, [note]);
    // The context has some 130,000 tokens. The target is 60 per cent of the window: the context is
    // below it in a window of a million tokens, and above it in one of 200,000.
    let note = format!("the context has {before} tokens, within the target of 590.4k");
    assert_eq!(left("unheard-of", Some(1_000_000)), (before, before, vec![note]));
    let (_, some, notes) = left("claude-haiku-4-5", None);
    assert_eq!(notes, [""; 0]);
    // The first pass is enough; the second one would remove more.
    assert!(least < some && some < Tokens(110_400), "{least} {some} {before}");
}

#[test]
fn an_agent_without_a_record_for_it_is_named_where_messages_are_not_trimmed() {
    let report = report("s08", &claude("claude-haiku-4-5", 40, 2_000), None);
    let note =
        Note::NoTrim { agent: "claude", why: "they have no record for messages that are left out" };
    assert_eq!(report.file.notes, [note.to_string()]);
    // The target is 40,000 characters, and not everything that can be removed.
    let edits = report.file.edits["results"];
    assert!((1..40).contains(&edits), "{edits}");
    let few = self::report("s08", &claude("claude-haiku-4-5", 4, 2_000), None);
    assert_eq!(few.file.notes, [""; 0]);
}

#[test]
fn a_recipe_that_only_asks_for_a_summary_says_so() {
    let report = report("pi", &claude("claude-haiku-4-5", 4, 2_000), None);
    let note = "the recipe does nothing but ask a model for a summary: it needs `--summarise`";
    assert_eq!((report.file.edits.len(), report.file.notes), (0, vec![note.to_owned()]));
}
