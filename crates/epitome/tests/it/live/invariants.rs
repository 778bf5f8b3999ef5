//! The invariants over random histories, in four API formats.

use std::collections::HashSet;
use std::sync::Arc;

use epitome::live::{Context, Setup};
use epitome_api::{APIS, Api};
use epitome_formats::find_format;
use epitome_model::{Block, Role, Stub, Text, Tokens, weigh};
use epitome_passes::{
    BUILT_IN, BatchRule, Event, EventReason, IngestRule, Level, PassSettings, Recipe, StageTiming,
    Target, TrimRule, Writer, built_in, is_digest, is_error_line,
};
use epitome_tokens::Estimate;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::conclusions;

/// A recipe, and a small window.
fn small() -> impl Strategy<Value = (Recipe, u64)> {
    (0..BUILT_IN.len(), 60_u64..3_000, any::<bool>()).prop_map(|(idx, window, birth)| {
        let mut recipe = built_in(BUILT_IN[idx].0).expect("a built-in recipe");
        recipe.trigger = Default::default();
        recipe.live.reserve = 0;
        recipe.stages.live.summary.get_or_insert_default();
        let batch = recipe.stages.live.ingest.and_then(|birth| birth.batch);
        let batch = batch.map(|_| BatchRule { chars: 200, over: 60, preview: 40 });
        let cap = birth.then_some(200);
        recipe.stages.live.ingest = Some(IngestRule { repeats: birth, cap, batch, reads: None });
        if recipe.stages.live.trim.is_some() {
            recipe.stages.live.trim = Some(TrimRule { over: 6, keep: 6, head: 2 });
            recipe.trigger.live = Level { chars: Some(5 * window), ..Level::default() };
            let chars = Some(4 * window);
            recipe.target.live = Some(Target { chars, ..Target::default() });
        }
        recipe.keep.tokens = recipe.keep.tokens.map(|_| 100);
        (recipe, window)
    })
}

/// Pushes a history message by message, and checks every view.
fn check(
    wire: &Api,
    messages: &[Value],
    recipe: &Recipe,
    (window, model): (u64, Model),
) -> Vec<u8> {
    let setup = Setup::new(recipe.clone()).with_counter(Estimate::new());
    // A window into which all user messages fit.
    let writer = Writer { window: Tokens(200_000), counter: Arc::new(Estimate::new()) };
    let mut context = Context::in_memory(setup.with_window(Tokens(window)).with_writer(writer));
    let rule = recipe.stages.live.summary.clone().unwrap_or_default();
    let mut before: Option<(u64, Vec<String>, Vec<Sent>)> = None;
    let mut cached: Option<(u64, String)> = None;
    let mut log: Vec<u8> = Vec::new();
    for message in messages {
        context.push_json(wire.name, &message.to_string()).expect("a message of the wire");
        if is_reply(message) {
            continue;
        }
        drive(&mut context, model, &rule);
        let view = describe(&context.unchanged_view());
        let compactions = context.report().compactions;
        let now = sent(&context);
        // The log is append-only, and nothing that was shortened grows.
        assert!(context.log().starts_with(&log), "the log is only added to");
        context.log().clone_into(&mut log);
        // A context that does not fit the window is shortened by more than clearing old results.
        let mut only_slid = true;
        for event in context.events() {
            if let Event::Finished { why, before, after, .. } = event {
                assert!(after < before, "{after} after {before}");
                only_slid &= why == EventReason::Request;
            }
        }
        if let Some((then, sent, results)) = &before {
            check_no_growth(results, &now);
            // A prefix that was sent is never changed outside a compaction.
            if *then == compactions {
                assert_eq!(view[..sent.len()], sent[..], "the view only grows");
            }
            let is_sliding = recipe.live.when == StageTiming::Request && only_slid;
            if is_sliding && summaries(results) == summaries(&now) {
                check_slid(recipe, results, &now);
            }
        }
        before = Some((compactions, view, now));
        // No request is sent while results are missing.
        if is_answered(&context) {
            let prefix = cached.filter(|(then, _)| *then == compactions);
            let text = list(wire, &context);
            if let Some((_, sent)) = prefix.filter(|_| recipe.live.when != StageTiming::Request) {
                check_cached(wire, &sent, &text);
            }
            cached = Some((compactions, text));
        }
        check_view(wire, &context);
    }
    let log = context.log().to_vec();
    let is_digested = matches!((&*recipe.name, model), ("epitome" | "digest", Model::None));
    if is_digested {
        // Checked before everything possible is removed: a tenth of that would be less than a text.
        check_conclusions(&context, recipe, Tokens(window));
    }
    check_end(wire, &mut context);
    if is_digested {
        check_errors(&context);
    }
    check_all_is_there(wire, messages, recipe, &mut context);
    log
}

/// Checks that the log gives the same context, and that compacting twice is compacting once.
fn check_end(wire: &Api, context: &mut Context) {
    let again = (find_format("epitome").expect("a format").read)(&context.log(), &mut ());
    assert_eq!(again, *context.unchanged_view().transcript(), "the log says what is sent");
    context.compact_to(None, Some(Tokens(0))).expect("memory is written");
    let once = context.log().len();
    context.compact_to(None, Some(Tokens(0))).expect("memory is written");
    assert_eq!(context.log().len(), once, "a compacted context is left alone");
    check_view(wire, context);
}

/// Checks that every line with an error, of a result that failed, is still in a result or in a
/// digest. A very long line may have been truncated on ingest.
fn check_errors(context: &Context) {
    let view = context.unchanged_view();
    let text_of = |block: &Block| match block {
        Block::Output(output) => Some(output.text(view.source())),
        Block::Summary(text) if is_digest(block, view.source()) => {
            Some(text.read(view.source()).into_owned())
        }
        _ => None,
    };
    let sent = view.transcript().context().flat_map(|(_, entry)| &entry.blocks);
    let sent: Vec<String> = sent.filter_map(text_of).collect();
    // In the log, a whole result comes before its shortened versions.
    let mut calls = HashSet::new();
    let content = view.transcript().entries().flat_map(|(_, entry)| &entry.blocks);
    let first = content.filter_map(|block| match block {
        Block::Output(output) if calls.insert(&*output.call) => Some(output),
        _ => None,
    });
    for content in first.filter(|output| output.error).map(|output| output.text(view.source())) {
        for line in content.lines().filter(|line| line.len() < 150 && is_error_line(line)) {
            let stands = sent.iter().any(|text| text.contains(line.trim()));
            assert!(stands, "the line `{line}` is lost");
        }
    }
}

/// Checks that every short text of the model is sent as a whole: at least the newest that take a
/// tenth of the target.
fn check_conclusions(context: &Context, recipe: &Recipe, window: Tokens) {
    let view = context.unchanged_view();
    let target = recipe.target.live.and_then(|target| target.tokens(Some(window)));
    let sent = conclusions::sent(view.transcript(), view.source());
    let short_texts =
        conclusions::short_texts(view.transcript().entries(), view.source(), &Estimate::new());
    assert_eq!(
        conclusions::lost(&short_texts, &sent, target),
        Vec::<String>::new(),
        "it was concluded"
    );
}

/// Checks that everything comes back: after all compactions are undone, every message is sent in
/// its order, and results that were truncated on ingest are found by their references.
fn check_all_is_there(wire: &Api, messages: &[Value], recipe: &Recipe, context: &mut Context) {
    while context.undo().expect("memory is written") {}
    let mut whole = Context::in_memory(Setup::new(Recipe {
        trigger: Default::default(),
        target: Default::default(),
        live: Default::default(),
        stages: Default::default(),
        ..recipe.clone()
    }));
    for message in messages {
        whole.push_json(wire.name, &message.to_string()).expect("a message of the wire");
    }
    let contents_of = |context: &Context| -> Vec<(Role, Vec<String>)> {
        let view = context.unchanged_view();
        let words = |block: &Block| match block {
            Block::Output(output) => {
                let text = output.text(view.source());
                let born = Stub::parse(&text).and_then(|stub| context.recall(stub.reference()));
                format!("{} = {}", output.call, born.unwrap_or(text))
            }
            Block::Call(call) => {
                let given = view.source().at(call.arguments);
                format!("{} {} {}", call.id, call.name, String::from_utf8_lossy(&given))
            }
            Block::Text(text) => text.read(view.source()).into_owned(),
            Block::Thinking(thinking) => {
                let text = thinking.text.as_ref();
                text.map(|text| text.read(view.source()).into_owned()).unwrap_or_default()
            }
            Block::Image(image) => {
                String::from_utf8_lossy(&view.source().at(image.data)).into_owned()
            }
            _ => "something else".to_owned(),
        };
        let context = view.transcript().context();
        context.map(|(_, entry)| (entry.role, entry.blocks.iter().map(words).collect())).collect()
    };
    assert_eq!(contents_of(context), contents_of(&whole), "{}: all is there again", wire.name);
}

/// Checks that everything up to the end of the last block is sent again byte for byte. In Chat
/// Completions a message of one text is a string, and becomes a list when another text is added.
fn check_cached(wire: &Api, sent: &str, now: &str) {
    if wire.name != "openai-chat" {
        let prefix = sent.trim_end_matches([']', '}']);
        assert!(now.starts_with(prefix), "{}: {sent}\n{now}", wire.name);
        return;
    }
    let blocks = |list: &str| -> Vec<Value> {
        if list.is_empty() {
            return Vec::new();
        }
        let body = format!("{{\"messages\":[{list}");
        let body: Value = serde_json::from_str(&body).expect("the messages end the body");
        let list = body["messages"].as_array().expect("a list").clone();
        let blocks = list.into_iter().flat_map(|mut message| match message["content"].take() {
            Value::Array(parts) => {
                parts.into_iter().map(|part| json!([message["role"], part])).collect()
            }
            Value::String(text) if message["role"] == "user" => {
                vec![json!(["user", { "type": "text", "text": text }])]
            }
            content => vec![json!([content, message])],
        });
        blocks.collect()
    };
    let (sent, now) = (blocks(sent), blocks(now));
    assert!(now.starts_with(&sent), "{}: {sent:?}\n{now:?}", wire.name);
}

/// The messages that are sent, as bytes.
fn list(wire: &Api, context: &Context) -> String {
    let body = context.unchanged_view().body(wire.name).expect("a wire").body;
    let open = format!("\"{}\":[", wire.list);
    body.split_once(&open).map_or_else(String::new, |(_, list)| list.to_owned())
}

fn is_answered(context: &Context) -> bool {
    let view = context.unchanged_view();
    let blocks = view.transcript().context().flat_map(|(_, entry)| &entry.blocks);
    let (mut calls, mut results) = (HashSet::new(), HashSet::new());
    for block in blocks {
        match block {
            Block::Call(call) => drop(calls.insert(call.id.clone())),
            Block::Output(output) => drop(results.insert(output.call.clone())),
            _ => {}
        }
    }
    calls.is_subset(&results)
}

/// Checks that no result is longer than it was before.
fn check_no_growth(before: &[Sent], now: &[Sent]) {
    for then in before.iter().filter(|it| it.result_of.is_some()) {
        // A call whose id occurs twice has two results.
        let same = |it: &&Sent| it.result_of == then.result_of;
        if before.iter().filter(same).count() == 1 {
            for now in now.iter().filter(same) {
                assert!(now.tokens <= then.tokens, "{then:?} grew: {now:?}");
            }
        }
    }
}

/// Checks that only results that are no longer among the last ones have changed: each of these is
/// now the recipe's stub, was sent as a whole before, and does not change again.
fn check_slid(recipe: &Recipe, before: &[Sent], now: &[Sent]) {
    let [PassSettings::Results(pass)] = recipe.stages.live.passes.as_slice() else {
        panic!("a sliding recipe has one pass")
    };
    let results: Vec<usize> = (0..now.len()).filter(|&at| now[at].result_of.is_some()).collect();
    let newest = &results[results.len().saturating_sub(pass.newest)..];
    for (at, (then, now)) in before.iter().zip(now).enumerate() {
        if then == now {
            continue;
        }
        assert!(then.result_of.is_some() && then.result_of == now.result_of, "{then:?} {now:?}");
        assert!(!newest.contains(&at), "one of the last {} has changed: {then:?}", pass.newest);
        assert!(now.words.starts_with("[Previous: used ") && now.words.ends_with(']'), "{now:?}");
        assert!(!then.words.starts_with("[Previous: used "), "twice: {then:?} {now:?}");
        assert!(then.words.chars().count() > pass.min_chars, "{then:?} was short enough");
    }
    assert!(now.len() >= before.len(), "nothing goes");
}

fn is_reply(message: &Value) -> bool {
    let replies = ["assistant", "model"];
    message["role"].as_str().is_some_and(|role| replies.contains(&role))
        || message["type"]
            .as_str()
            .is_some_and(|kind| kind.ends_with("_call") || kind == "reasoning")
}

/// Checks that a view is valid in its API, that the user's texts are unchanged, and that the
/// numbers are true.
fn check_view(wire: &Api, context: &Context) {
    let view = context.unchanged_view();
    let made = view.body(wire.name).expect("a wire");
    if made.messages > 0 {
        let body = made.body.into_bytes();
        let read = (wire.format.read)(&body, &mut ());
        assert_eq!(wire.format.invariants.check(&read, &body), [], "the wire takes it");
    }
    let counted = weigh(view.transcript(), view.source(), &Estimate::new()).total();
    let blocks: usize = view.transcript().context().map(|(_, entry)| entry.blocks.len()).sum();
    assert_eq!(context.report().sent, counted + Tokens(4 * blocks as u64), "numbers are true");
    let sent: Vec<usize> = view.transcript().context.clone();
    let users = view.transcript().entries().filter(|(_, entry)| entry.role == Role::User);
    let blocks = view.transcript().context().flat_map(|(_, entry)| &entry.blocks);
    let summary = blocks.filter_map(|block| match block {
        Block::Summary(text) => Some(text.read(view.source()).into_owned()),
        _ => None,
    });
    let summary: String = summary.collect();
    for (item, entry) in users.filter(|(_, entry)| entry.blocks.iter().all(is_words)) {
        let words = entry.blocks.iter().map(|block| match block {
            Block::Text(text) => text.read(view.source()).trim().to_owned(),
            _ => String::new(),
        });
        // The stub of a picture is not the user's text.
        let words = words.filter(|words| Stub::parse(words).is_none());
        for words in words.filter(|_| !sent.contains(&item)) {
            assert!(
                summary.contains(&words),
                "the user's words are sacred: {words:?} in {summary}"
            );
        }
    }
    for made_up in ["I never did", "no/such/file.rs", "\n<user>"] {
        assert!(!summary.contains(made_up), "nothing is made up: {summary}");
    }
}

fn is_words(block: &Block) -> bool {
    matches!(block, Block::Text(Text::Source(_)))
}

/// The seeds of failures are not stored, because each failure is made a test of its own.
fn config() -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(24) }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn invariants_hold_live_with_four_apis(
        anthropic in fixtures::generate::body("anthropic"),
        chat in fixtures::generate::body("openai-chat"),
        responses in fixtures::generate::body("openai-responses"),
        gemini in fixtures::generate::body("gemini-request"),
        (recipe, window) in small(),
        model in prop::sample::select(vec![Model::None, Model::Tells, Model::Fails]),
    ) {
        for (wire, body) in APIS.iter().zip([anthropic, chat, responses, gemini]) {
            let messages = messages(wire, &body);
            let log = check(wire, &messages, &recipe, (window, model));
            // Same input, same bytes.
            prop_assert_eq!(check(wire, &messages, &recipe, (window, model)), log);
        }
    }
}

/// The output of a command: few lines of few kinds, so that results repeat each other's lines.
fn printed() -> impl Strategy<Value = String> {
    let line = prop::sample::select(vec![
        "<returncode>0</returncode>",
        "<returncode>1</returncode>",
        "error: cannot find value `x` in this scope",
        "Traceback (most recent call last):",
        "ValueError: no such price",
        "FAILED tests/test_price.py::test_sunday",
        "    return price * 2",
        "total 24",
        "ok",
        "the quick brown fox jumps over the lazy dog and goes on for quite a while after that",
        "",
    ]);
    let lines = prop::collection::vec((line, 1_usize..12), 0..8);
    lines.prop_map(|lines| {
        lines.into_iter().flat_map(|(line, n)| vec![line; n]).collect::<Vec<_>>().join("\n")
    })
}

/// A call that reads, writes or runs something; some calls repeat.
fn command() -> impl Strategy<Value = (&'static str, String)> {
    let file = prop::sample::select(vec!["a.py", "b.py", "tests/test_price.py"]);
    prop_oneof![
        file.clone().prop_map(|file| ("bash", json!({"command": format!("cat {file}")}))),
        (file.clone(), printed()).prop_map(|(file, text)| {
            ("bash", json!({"command": format!("cat <<'EOF' > {file}\n{text}\nEOF")}))
        }),
        file.clone().prop_map(|file| ("Read", json!({"path": file}))),
        (file.clone(), printed())
            .prop_map(|(file, text)| ("Write", json!({"path": file, "content": text}))),
        // One long line without characters that JSON escapes.
        (file, 40_usize..400).prop_map(|(file, n)| {
            ("Write", json!({"path": file, "content": "one long line ".repeat(n / 10)}))
        }),
    ]
    .prop_map(|(name, arguments)| (name, arguments.to_string()))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..config() })]

    /// A short session that is compacted twice on request, with its recipe's own settings.
    #[test]
    fn a_forced_compaction_of_a_short_session_leaves_nothing_to_do(
        steps in prop::collection::vec((command(), printed(), any::<bool>()), 1..20),
        recipe in 0..BUILT_IN.len(),
        percent in 0_u64..100,
    ) {
        let log = logged_again(BUILT_IN[recipe].0, &steps, percent.saturating_sub(20));
        prop_assert!(log.is_empty(), "{}: {log}", BUILT_IN[recipe].0);
    }
}

/// What a second compaction adds to the log, after a first one to `percent` per cent of the tokens.
/// A step is a call: the tool and its arguments, the result, and whether the call failed.
fn logged_again(recipe: &str, steps: &[((&str, String), String, bool)], percent: u64) -> String {
    let mut context = Context::in_memory(setup(recipe, 200_000));
    context.user("Mend the prices of Sundays.").expect("memory is written");
    for (n, ((name, arguments), text, failed)) in steps.iter().enumerate() {
        let id = format!("c{n}");
        let call = MessagePart::call(id.clone(), *name, arguments.clone());
        context.assistant(&[MessagePart::text("Next."), call]).expect("memory is written");
        let result = if *failed {
            MessagePart::failure(id, text.clone())
        } else {
            MessagePart::output(id, text.clone())
        };
        context.tool(&[result]).expect("memory is written");
    }
    let target = Tokens(context.usage().tokens.0 * percent / 100);
    context.compact_to(None, Some(target)).expect("memory is written");
    let once = context.log().len();
    context.compact_to(None, Some(target)).expect("memory is written");
    String::from_utf8_lossy(&context.log()[once..]).into_owned()
}

/// Found by the test above.
#[test]
fn a_forced_digest_of_a_short_session_leaves_nothing_to_do() {
    let cat =
        |text: &str| (("bash", json!({"command": "cat a.py"}).to_string()), text.to_owned(), false);
    let read = (("Read", json!({"path": "a.py"}).to_string()), String::new(), false);
    let mut steps = vec![cat(""); 5];
    steps.extend([read.clone(), read, cat(""), cat(""), cat("    return price * 2"), cat("")]);
    steps.extend([
        cat("the quick brown fox jumps over the lazy dog and goes on for quite a while after that"),
        cat("Traceback (most recent call last):"),
    ]);
    assert_eq!(logged_again("digest", &steps, 1), "");
}

/// Found in an evaluation of a session of mini-swe-agent: the savings of edits in arguments were
/// estimated from their texts, so that the first run stopped a little above its target.
#[test]
fn a_forced_compaction_comes_down_to_its_target_in_one_run() {
    for recipe in ["epitome", "transcript", "gitclaw"] {
        for percent in (20..100).step_by(2) {
            let mut context = Context::in_memory(setup(recipe, 200_000));
            context.user("Write them all.").expect("memory is written");
            for n in 0..16 {
                let text = "one long line ".repeat(20 + n);
                let arguments = json!({"path": format!("{n}.py"), "content": text}).to_string();
                let call = MessagePart::call(format!("c{n}"), "Write", arguments);
                context.assistant(&[call]).expect("memory is written");
                context
                    .tool(&[MessagePart::output(format!("c{n}"), "ok")])
                    .expect("memory is written");
            }
            let target = Tokens(context.usage().tokens.0 * percent / 100);
            context.compact_to(None, Some(target)).expect("memory is written");
            let once = context.log().len();
            context.compact_to(None, Some(target)).expect("memory is written");
            let log = String::from_utf8_lossy(&context.log()[once..]).into_owned();
            assert_eq!(log, "", "{recipe} to {percent} per cent");
        }
    }
}

#[test]
fn sliding_recipes_change_nothing_but_what_slid_out() {
    for (recipe, reads) in [("s06", 9), ("jcli", 16)] {
        let mut context = talk(recipe, 200_000, 0);
        let recipe = built_in(recipe).expect("a built-in recipe");
        let mut before: Vec<Sent> = Vec::new();
        let mut slid = 0;
        for n in 0..reads {
            // Every third result is too short to be replaced.
            let text = if n % 3 == 2 { "short".to_owned() } else { lines("a.rs", 100) };
            read(&mut context, n, "a.rs", &text);
            context.view().expect("memory is written");
            let now = sent(&context);
            check_slid(&recipe, &before, &now);
            slid += before.iter().zip(&now).filter(|(then, now)| then != now).count();
            before = now;
        }
        assert_eq!(slid, 4, "{}", recipe.name);
    }
}
