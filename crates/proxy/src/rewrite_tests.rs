use std::collections::BTreeSet;

use epitome::wire::ledger::Treatment;
use epitome_api::find_api;
use epitome_model::{Block, Ref, Role, Stub};
use epitome_passes::{Target, built_in};
use serde_json::{Value, json};

use super::*;
use crate::explain::Reason;

/// Counts words: this is quick, and needs no vocabulary.
struct Words;

impl Counter for Words {
    fn name(&self) -> &'static str {
        "words"
    }

    fn count(&self, text: &str) -> Tokens {
        Tokens(text.split_whitespace().count() as u64)
    }
}

/// A cut that is made only if it is worth its price.
const PRICED: NextCut = NextCut { must_cut: false };

fn rewriter(folder: Option<PathBuf>) -> Rewriter {
    Rewriter::new(folder, built_in("epitome").expect("a recipe"), &Words, Catalogue::built_in())
}

fn api(name: &str) -> &'static Api {
    find_api(name).expect("an API")
}

/// A log with more words than a result may have.
fn log(name: &str) -> String {
    (0..4_000).map(|n| format!("{name} wrote line {n} of its log\n")).collect()
}

/// A call and its result, in the messages of an API.
fn turn(api: &str, id: &str, result: &str) -> Vec<Value> {
    let input = json!({"command": format!("make {id}")});
    match api {
        "anthropic" => vec![
            json!({"role": "assistant", "content": [
                {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
                {"type": "tool_use", "id": id, "name": "Bash", "input": input}]}),
            json!({"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": id, "content": result}]}),
        ],
        "openai-chat" => vec![
            json!({"role": "assistant", "content": null, "tool_calls": [
                {"id": id, "type": "function",
                 "function": {"name": "bash", "arguments": input.to_string()}}]}),
            json!({"role": "tool", "tool_call_id": id, "content": result}),
        ],
        "openai-responses" => vec![
            json!({"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "ZW5j"}),
            json!({"type": "function_call", "call_id": id, "name": "shell",
                   "arguments": input.to_string()}),
            json!({"type": "function_call_output", "call_id": id, "output": result}),
        ],
        _ => vec![
            json!({"role": "model", "parts": [
                {"functionCall": {"name": "run_shell_command", "args": input}}]}),
            json!({"role": "user", "parts": [
                {"functionResponse": {"name": "run_shell_command",
                                      "response": {"output": result}}}]}),
        ],
    }
}

fn first(api: &str) -> Value {
    match api {
        "gemini-api" => json!({"role": "user", "parts": [{"text": "Build it."}]}),
        _ => json!({"role": "user", "content": "Build it."}),
    }
}

fn body(api: &'static Api, messages: &[Value]) -> Bytes {
    let list = serde_json::to_string(messages).expect("JSON");
    format!(r#"{{"model": "m","{}":{list}, "stream":true}}"#, api.list).into()
}

/// Rewrites a request, and then prepares the next cut, as the proxy does while a request is under
/// way.
fn rewritten(rewriter: &Rewriter, api: &'static Api, body: &Bytes) -> Rewritten {
    let rewritten = rewriter.rewrite(api, body, Instant::now()).expect("it is rewritten");
    if let Some(next) = rewritten.next_cut {
        rewriter.prepare(api, body, next).expect("it is read");
    }
    rewritten
}

fn sent(rewriter: &Rewriter, api: &'static Api, messages: &[Value]) -> Bytes {
    let body = body(api, messages);
    rewritten(rewriter, api, &body).body.unwrap_or(body)
}

const APIS: [&str; 4] = ["anthropic", "openai-chat", "openai-responses", "gemini-api"];

#[test]
fn a_new_result_is_shortened_and_stays_what_it_became() {
    for name in APIS {
        let api = api(name);
        let rewriter = rewriter(None);
        let mut messages = vec![first(name)];
        messages.extend(turn(name, "a", &log("a")));
        let once = sent(&rewriter, api, &messages);
        let whole = body(api, &messages);
        assert!(once.len() < whole.len(), "{name}");
        assert!(String::from_utf8_lossy(&once).contains("[epitome k"), "{name}");
        // The same request gets the same bytes.
        assert_eq!(sent(&rewriter, api, &messages), once, "{name}");
        messages.extend(turn(name, "b", "ok"));
        let more = sent(&rewriter, api, &messages);
        let shared = once.len() - r#"], "stream":true}"#.len();
        assert_eq!(more[..shared], once[..shared], "{name}");
        assert!(String::from_utf8_lossy(&more).ends_with(r#"], "stream":true}"#), "{name}");
    }
}

#[test]
fn what_is_left_is_byte_for_byte_the_original() {
    let api = api("anthropic");
    let rewriter = rewriter(None);
    let mut messages = vec![first("anthropic")];
    messages.extend(turn("anthropic", "a", &log("a")));
    let original = String::from_utf8(body(api, &messages).to_vec()).expect("text");
    let made = String::from_utf8(sent(&rewriter, api, &messages).to_vec()).expect("text");
    let value: Value = serde_json::from_str(&made).expect("JSON");
    let text = value["messages"][2]["content"][0]["content"].as_str().expect("a text");
    let stub = Stub::parse(text).expect("a stub");
    assert_eq!(stub.description(), "shortened (`epitome show` prints all)");
    let encoded = serde_json::to_string(&log("a")).expect("JSON");
    assert_eq!(stub.reference(), &Ref::from_bytes(encoded.as_bytes()));
    assert_eq!(made, original.replace(&encoded, &epitome_model::encode(text)));
}

#[test]
fn what_a_model_has_seen_is_sent_as_it_was() {
    for name in APIS {
        let api = api(name);
        let rewriter = rewriter(None);
        let mut messages = vec![first(name)];
        messages.extend(turn(name, "a", &log("a")));
        messages.extend(turn(name, "b", "ok"));
        // This proxy has not seen the first request, in which the long result was sent whole.
        assert_eq!(sent(&rewriter, api, &messages), body(api, &messages), "{name}");
        messages.extend(turn(name, "c", &log("c")));
        let made = String::from_utf8(sent(&rewriter, api, &messages).to_vec()).expect("text");
        assert!(
            made.contains("a wrote line 2000") && !made.contains("c wrote line 2000"),
            "{name}"
        );
    }
}

#[test]
fn a_restart_sends_the_same_bytes() {
    for name in APIS {
        let folder = tempfile::tempdir().expect("a folder");
        let rewriter = || rewriter(Some(folder.path().to_owned()));
        let api = api(name);
        let mut messages = vec![first(name)];
        messages.extend(turn(name, "a", &log("a")));
        let before = rewriter();
        let once = sent(&before, api, &messages);
        assert_eq!(sent(&rewriter(), api, &messages), once, "{name}");
        messages.extend(turn(name, "b", &log("b")));
        let more = sent(&rewriter(), api, &messages);
        assert_eq!(sent(&before, api, &messages), more, "{name}");
    }
}

#[test]
fn a_result_behind_a_change_keeps_what_was_sent_for_it() {
    let api = api("anthropic");
    let rewriter = rewriter(None);
    let mut messages = vec![first("anthropic")];
    messages.extend(turn("anthropic", "a", "ok"));
    messages.extend(turn("anthropic", "b", &log("b")));
    let once = sent(&rewriter, api, &messages);
    let stub = |body: &Bytes, at: usize| {
        let value: Value = serde_json::from_slice(body).expect("JSON");
        value["messages"][at]["content"][0]["content"].clone()
    };
    let expect = stub(&once, 4);
    assert!(expect.as_str().expect("a text").starts_with("[epitome k"));
    // The client clears an old result: each message from there on has another chain.
    messages.extend(turn("anthropic", "c", "ok"));
    messages[2]["content"][0]["content"] = "[Old tool result content cleared]".into();
    let made = sent(&rewriter, api, &messages);
    assert!(stub(&made, 4) == expect, "the result is sent as it was");
    assert_eq!(stub(&made, 2), "[Old tool result content cleared]");
}

#[test]
fn cache_marks_wander_and_nothing_else_changes() {
    let api = api("anthropic");
    let rewriter = rewriter(None);
    let mut messages = vec![first("anthropic")];
    messages.extend(turn("anthropic", "a", &log("a")));
    let plain = sent(&rewriter, api, &messages);
    let mark = json!({"type": "ephemeral"});
    messages[2]["content"][0]["cache_control"] = mark.clone();
    let value: Value = serde_json::from_slice(&sent(&rewriter, api, &messages)).expect("JSON");
    let result = &value["messages"][2]["content"][0];
    assert_eq!(result["cache_control"], mark);
    let plain: Value = serde_json::from_slice(&plain).expect("JSON");
    assert_eq!(result["content"], plain["messages"][2]["content"][0]["content"]);
}

#[test]
fn the_array_around_a_text_and_a_mark_in_it_stay() {
    let mark = json!({"type": "ephemeral"});
    // A client adds a cache mark to the text of the last result, and moves the mark to another
    // message in its next request.
    for (name, path, is_marked) in
        [("anthropic", "/content/0/content", false), ("openai-chat", "/content", true)]
    {
        let api = api(name);
        let rewriter = rewriter(None);
        let plain = json!([{"type": "text", "text": log("a"), "x": 1}]);
        let marked = json!([{"type": "text", "text": log("a"), "x": 1, "cache_control": mark}]);
        let mut messages = vec![first(name)];
        messages.extend(turn(name, "a", &log("a")));
        let contents = if is_marked { [&marked, &plain] } else { [&plain, &marked] };
        let made = contents.map(|content| {
            *messages[2].pointer_mut(path).expect("a result") = content.clone();
            let made = sent(&rewriter, api, &messages);
            messages.extend(turn(name, "b", "ok"));
            let value: Value = serde_json::from_slice(&made).expect("JSON");
            value["messages"][2].pointer(path).expect("a result").clone()
        });
        let text = made[0][0]["text"].as_str().expect("a text").to_owned();
        assert!(text.starts_with("[epitome k"), "{name}");
        let plain = json!([{"type": "text", "text": text, "x": 1}]);
        let marked = json!([{"type": "text", "text": text, "x": 1, "cache_control": mark}]);
        assert_eq!(made, if is_marked { [marked, plain] } else { [plain, marked] }, "{name}");
    }
}

#[test]
fn only_results_that_are_one_text_are_changed() {
    let api = api("anthropic");
    let long = log("x");
    let blocks = [
        json!({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"q": long}}),
        json!({"type": "web_search_tool_result", "tool_use_id": "s",
               "content": [{"type": "web_search_result", "encrypted_content": long}]}),
        json!({"type": "thinking", "thinking": long, "signature": "c2ln"}),
        json!({"type": "compaction", "content": long}),
        json!({"type": "of_tomorrow", "content": long}),
        json!({"type": "text", "text": long}),
    ];
    let rewriter = rewriter(None);
    let messages = [first("anthropic"), json!({"role": "assistant", "content": blocks})];
    assert_eq!(sent(&rewriter, api, &messages), body(api, &messages));
    let mut messages = messages.to_vec();
    messages.extend(turn("anthropic", "a", "ok"));
    messages.push(json!({"role": "user", "content": long}));
    assert_eq!(sent(&rewriter, api, &messages), body(api, &messages));
}

#[test]
fn a_body_that_is_no_request_passes() {
    let rewriter = rewriter(None);
    for body in ["", "{", "null", r#"{"messages":{}}"#, r#"{"messages":[1,null,"x",[]]}"#] {
        let made = rewriter
            .rewrite(api("anthropic"), &Bytes::from(body), Instant::now())
            .map(|it| it.body);
        assert_eq!(made.ok().flatten(), None, "{body}");
    }
}

#[test]
fn removed_texts_are_on_disk_before_they_are_not_sent() {
    let folder = tempfile::tempdir().expect("a folder");
    let api = api("openai-chat");
    let rewriter = rewriter(Some(folder.path().to_owned()));
    let mut messages = vec![first("openai-chat")];
    messages.extend(turn("openai-chat", "a", &log("a")));
    sent(&rewriter, api, &messages[..1]);
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 0, "nothing to keep");
    sent(&rewriter, api, &messages);
    let files = std::fs::read_dir(folder.path()).expect("a folder").flatten();
    let names: BTreeSet<PathBuf> = files.map(|file| file.path()).collect();
    assert_eq!(names.len(), 1, "{names:?}");
    let text = std::fs::read_to_string(names.first().expect("a memo")).expect("a memo");
    let lines: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let raw = lines[0]["removed"][0]["raw"].as_str().expect("a text");
    assert_eq!(raw, serde_json::to_string(&log("a")).expect("JSON"));
}

/// A conversation of many calls with results of some hundred words.
fn long(api: &str, calls: usize) -> Vec<Value> {
    let mut messages = vec![first(api)];
    for n in 0..calls {
        let line = |line| format!("part {line} of run {n} took {} ms\n", 7 * n + line);
        let result: String = (0..60).map(line).collect();
        messages.extend(turn(api, &format!("c{n}"), &result));
    }
    messages
}

/// A rewriter with a recipe that tries a cut at 2,000 tokens and keeps two results.
fn cutting(folder: Option<PathBuf>) -> Rewriter {
    let mut recipe = built_in("epitome").expect("a recipe");
    recipe.trigger.live.tokens = Some(2_000);
    recipe.target.live = None;
    recipe.stages.live.digest = None;
    recipe.keep = epitome_passes::Keep { results: Some(2), ..epitome_passes::Keep::default() };
    Rewriter::new(folder, recipe, &Words, Catalogue::built_in())
}

#[test]
fn a_cut_is_made_once_when_it_is_worth_it_and_stays() {
    for name in APIS {
        let folder = tempfile::tempdir().expect("a folder");
        let api = api(name);
        let rewriter = cutting(Some(folder.path().to_owned()));
        let messages = long(name, 30);
        let whole = body(api, &messages);
        let rewritten = rewriter.rewrite(api, &whole, Instant::now()).expect("it is rewritten");
        assert!(rewritten.effect.cut.is_some(), "{name}");
        let made = rewritten.effect.cut.expect("a cut");
        let cuts = rewritten.effect.cuts;
        let saved = rewritten.effect.saved_before + rewritten.effect.saved_now;
        assert_eq!((cuts.as_slice(), made.is_warm), ([(made.id, saved)].as_slice(), true));
        assert_eq!(rewritten.effect.treatment, Treatment::Cut);
        let cut = rewritten.body.expect("it is cut");
        assert!(cut.len() < whole.len() / 2, "{name}: {} of {}", cut.len(), whole.len());
        let text = String::from_utf8_lossy(&cut);
        // The last two results stay, and so does all reasoning.
        assert!(text.contains("part 40 of run 29") && text.contains("part 40 of run 28"), "{name}");
        for kept in ["c2ln", "ZW5j"] {
            let count = |body: &Bytes| String::from_utf8_lossy(body).matches(kept).count();
            assert_eq!(count(&cut), count(&whole), "{name}");
        }
        // Later requests begin with the same bytes, also after a restart.
        let mut more = messages.clone();
        more.extend(turn(name, "new", "ok"));
        let longer = sent(&rewriter, api, &more);
        let shared = cut.len() - r#"], "stream":true}"#.len();
        assert!(longer[..shared] == cut[..shared], "{name}");
        let again = cutting(Some(folder.path().to_owned()));
        let later = again.rewrite(api, &body(api, &more), Instant::now()).expect("rewritten");
        assert!(later.body.expect("it is cut") == longer, "{name}");
        assert_eq!((later.effect.cuts, later.effect.cut), (cuts, None), "{name}");
        assert_eq!(later.effect.treatment, Treatment::Known, "{name}");
    }
}

/// A rewriter with a recipe that digests conversations of 2,000 tokens and more down to 1,000.
fn digesting(folder: Option<PathBuf>) -> Rewriter {
    let mut recipe = built_in("epitome").expect("a recipe");
    recipe.trigger.live.tokens = Some(2_000);
    recipe.target.live = Some(Target { tokens: Some(1_000), ..Target::default() });
    Rewriter::new(folder, recipe, &Words, Catalogue::built_in())
}

/// The role of each message in a body, with its texts, its results and the names of its calls.
fn words(api: &'static Api, body: &[u8]) -> Vec<(Role, String)> {
    let body = body.to_vec();
    let transcript = (api.format.read)(&body, &mut ());
    let text = |block: &Block| match block {
        Block::Text(text) => text.read(&body).into_owned(),
        Block::Output(output) => output.text(&body),
        Block::Call(call) => call.name.to_string(),
        _ => String::new(),
    };
    let entries = transcript.context();
    entries.map(|(_, entry)| (entry.role, entry.blocks.iter().map(text).collect())).collect()
}

#[test]
fn a_digest_stands_for_old_messages_and_stays() {
    for name in APIS {
        let folder = tempfile::tempdir().expect("a folder");
        let api = api(name);
        let rewriter = digesting(Some(folder.path().to_owned()));
        let messages = long(name, 30);
        let whole = body(api, &messages);
        let rewritten = rewriter.rewrite(api, &whole, Instant::now()).expect("it is rewritten");
        assert_eq!(rewritten.effect.failure, None);
        assert!(rewritten.effect.cut.is_some(), "{name}");
        let cut = rewritten.body.expect("it is cut");
        let before = words(api, &whole);
        let after = words(api, &cut);
        // What is sent: the request of the user, the digest, and the last responses unchanged.
        let kept = after.len() - 2;
        assert_eq!(after[0], before[0], "{name}");
        assert!(kept > 0 && after[2..] == before[before.len() - kept..], "{name}");
        let (role, digest) = &after[1];
        assert_eq!(*role, Role::User, "{name}");
        let begin = "[Digest of the conversation so far, with ";
        assert!(digest.starts_with(begin), "{name}: {digest}");
        let tokens = |words: &[(Role, String)]| {
            words.iter().map(|(_, text)| Words.count(text).0).sum::<u64>()
        };
        assert!((900..1_050).contains(&tokens(&after)), "{name}: {}", tokens(&after));
        let saved = (rewritten.effect.saved_before + rewritten.effect.saved_now).0;
        assert!(saved.abs_diff(tokens(&before) - tokens(&after)) < 200, "{name}: {saved}");
        // Later requests begin with the same bytes, also after a restart.
        let mut more = messages.clone();
        more.extend(turn(name, "new", "ok"));
        let longer = sent(&rewriter, api, &more);
        let shared = cut.len() - r#"], "stream":true}"#.len();
        assert!(longer[..shared] == cut[..shared], "{name}");
        let again = digesting(Some(folder.path().to_owned()));
        assert!(sent(&again, api, &more) == longer, "{name}");
    }
}

/// Results that were shortened before a digest was made are not changed by it if it keeps them.
#[test]
fn what_a_cut_leaves_as_it_was_sent_is_explained_as_that() {
    let api = api("anthropic");
    let mut recipe = digesting(None).recipe;
    recipe.stages.live.ingest.as_mut().expect("a stage").cap = Some(100);
    recipe.stages.live.digest.as_mut().expect("a stage").keep_share = 50;
    let rewriter = Rewriter::new(None, recipe, &Words, Catalogue::built_in());
    let rewriter = rewriter.with_explanations(true);
    let mut requests = (2..200)
        .map(|calls| rewritten(&rewriter, api, &body(api, &long("anthropic", calls))))
        .inspect(|rewritten| assert_eq!(rewritten.effect.failure, None));
    let cut = requests.find(|rewritten| rewritten.effect.cut.is_some()).expect("a cut");
    let blocks = cut.explanation.expect("it is explained").blocks;
    let results = blocks.iter().filter(|block| block.what.starts_with("result of"));
    let mut reasons: Vec<Reason> = results.map(|block| block.reason).collect();
    reasons.dedup();
    assert_eq!(reasons, [Reason::Digested, Reason::AsBefore, Reason::Ingest]);
}

#[test]
fn two_proxies_that_take_turns_go_on_from_each_other() {
    for name in APIS {
        let folder = tempfile::tempdir().expect("a folder");
        let api = api(name);
        let proxies = [0, 1].map(|_| digesting(Some(folder.path().to_owned())));
        let mut messages = long(name, 4);
        messages.extend(turn(name, "a", &log("a")));
        let mut before = Bytes::new();
        let mut cuts = 0;
        for n in 0..60 {
            let whole = body(api, &messages);
            let rewritten = rewritten(&proxies[n % 2], api, &whole);
            let made = rewritten.body.unwrap_or(whole);
            match rewritten.effect.cut {
                Some(_) => cuts += 1,
                None => assert!(made.starts_with(&before), "{name}, request {n}"),
            }
            before = made.slice(..made.len() - r#"], "stream":true}"#.len());
            messages.extend(turn(name, &format!("t{n}"), "ok, that is done: 17 passed, 3 failed"));
        }
        assert!((1..4).contains(&cuts), "{name}: {cuts} cuts");
    }
}

#[test]
fn a_second_digest_is_made_from_the_original_messages() {
    for name in APIS {
        let api = api(name);
        let rewriter = digesting(None);
        sent(&rewriter, api, &long(name, 30));
        let cuts = [90, 91].map(|calls| {
            let rewritten = rewritten(&rewriter, api, &body(api, &long(name, calls)));
            assert_eq!(rewritten.effect.failure, None, "{name}");
            (rewritten.effect.cut.is_some(), rewritten.body)
        });
        // The cut is planned while the first request is under way, and made in the second.
        let [(false, _), (true, Some(cut))] = cuts else { panic!("{name}: {cuts:?}") };
        let after = words(api, &cut);
        let digests = after.iter().filter(|(_, text)| text.starts_with("[Digest of"));
        let calls: Vec<&str> = digests.filter_map(|(_, text)| text.split(' ').nth(7)).collect();
        let kept = after.iter().filter(|(role, _)| *role == Role::Tool).count();
        assert_eq!(calls, [(91 - kept).to_string()], "{name}");
    }
}

#[test]
fn a_cut_that_was_planned_before_another_one_is_not_made() {
    let api = api("anthropic");
    let rewriter = digesting(None);
    let request = |calls: usize| body(api, &long("anthropic", calls));
    let has_cut = |calls: usize| {
        let rewritten = rewriter.rewrite(api, &request(calls), Instant::now());
        rewritten.expect("it is rewritten").effect.cut.is_some()
    };
    assert!(has_cut(30));
    assert!(!has_cut(90) && !has_cut(91), "none is planned yet");
    rewriter.prepare(api, &request(90), PRICED).expect("it is read");
    // A plan that is begun before the next cut, and is complete only after it.
    let conversation = {
        let messages = Messages::find(&request(91), api.list).expect("messages");
        let chains = messages.chains(&request(91), api.name);
        rewriter.memos.of_conversation(messages.root(&chains)).expect("memory")
    };
    let first = locked(&conversation).prepared.take().expect("a plan");
    rewriter.prepare(api, &request(91), PRICED).expect("it is read");
    let late = locked(&conversation).prepared.replace(first);
    assert!(has_cut(92));
    locked(&conversation).prepared = late;
    // By now a cut is due again, and the late plan is of no use for it.
    assert!(!has_cut(200));
    rewriter.prepare(api, &request(200), PRICED).expect("it is read");
    assert!(has_cut(201));
}

#[test]
fn a_long_text_of_the_user_is_a_part_of_each_digest() {
    let api = api("anthropic");
    let rewriter = digesting(None);
    let paste: String = (0..400).map(|n| format!("pasted line {n} of this\n")).collect();
    let with_paste = |calls: usize| {
        let mut messages = long("anthropic", calls);
        messages.insert(9, json!({"role": "user", "content": paste}));
        messages
    };
    let mut digests = 0;
    for calls in [30, 90, 91] {
        let body = body(api, &with_paste(calls));
        let rewritten = rewritten(&rewriter, api, &body);
        let Some(made) = rewritten.body.filter(|_| rewritten.effect.cut.is_some()) else {
            continue;
        };
        digests += 1;
        let digest = &words(api, &made)[1].1;
        let lines = digest.matches("pasted line").count();
        assert!((1..100).contains(&lines), "{calls} calls: {lines} lines");
    }
    assert_eq!(digests, 2);
}

#[test]
fn what_a_digest_stands_for_is_listed_and_shown() {
    let home = tempfile::tempdir().expect("a folder");
    let config = epitome::Config::from_home(home.path());
    let api = api("anthropic");
    let rewriter = digesting(Some(config.wire_memo()));
    let cut = sent(&rewriter, api, &long("anthropic", 30));
    let digest = words(api, &cut)[1].1.clone();
    let shown = |reference: &str| {
        let reference = reference.parse().expect("a reference");
        let shown = epitome::ops::archived_text(&config, &reference).expect("it is kept");
        String::from_utf8(shown.bytes).expect("text")
    };
    let (_, hint) = digest.rsplit_once("[`epitome show ").expect("a hint");
    let list = shown(&hint[..=Ref::DIGITS]);
    let line = list.lines().find(|line| line.ends_with("result of Bash make c3")).expect("a line");
    assert!(shown(&line[..=Ref::DIGITS]).starts_with("part 0 of run 3 took 21 ms\n"));
    assert!(list.contains(" #4 call of Bash make c3\n"), "{list}");
}

/// A removed picture keeps its media type, so that `epitome show` writes it as a picture.
#[test]
fn a_picture_that_a_digest_stands_for_keeps_its_media_type() {
    let home = tempfile::tempdir().expect("a folder");
    let config = epitome::Config::from_home(home.path());
    let api = api("anthropic");
    let image = json!({"type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": "aWNvbg=="}});
    let mut messages = long("anthropic", 30);
    messages.insert(3, json!({"role": "user", "content": [image]}));
    messages[7]["content"][0]["content"] = json!([image]);
    let cut = sent(&digesting(Some(config.wire_memo())), api, &messages);
    let digest = words(api, &cut)[1].1.clone();
    let (_, hint) = digest.rsplit_once("[`epitome show ").expect("a hint");
    let shown = |reference: &str| {
        let reference = reference.parse().expect("a reference");
        epitome::ops::archived_text(&config, &reference).expect("it is kept")
    };
    let list = String::from_utf8(shown(&hint[..=Ref::DIGITS]).bytes).expect("text");
    let pictures: Vec<(Option<String>, Vec<u8>)> = list
        .lines()
        .filter(|line| line.ends_with(" image/png") || line.ends_with("with a picture"))
        .map(|line| shown(&line[..=Ref::DIGITS]))
        .map(|text| (text.found.about.media, text.bytes))
        .collect();
    let expected = (Some("image/png".to_owned()), b"aWNvbg==".to_vec());
    assert_eq!(pictures, [expected.clone(), expected], "{list}");
}

#[test]
fn messages_with_blocks_of_an_unknown_kind_are_not_digested() {
    let api = api("anthropic");
    let search = json!({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}});
    let mut messages = long("anthropic", 30);
    messages.insert(1, json!({"role": "assistant", "content": [search]}));
    let rewritten = digesting(None).rewrite(api, &body(api, &messages), Instant::now());
    let made = rewritten.expect("it is rewritten").body.expect("passes cut it");
    let text = String::from_utf8_lossy(&made).into_owned();
    assert!(text.contains("server_tool_use") && !text.contains("[Digest of"));
}

#[test]
fn a_conversation_that_is_held_out_is_not_changed() {
    let folder = tempfile::tempdir().expect("a folder");
    let api = api("anthropic");
    let share = Holdout::from_percent(100).expect("a share");
    let all = |folder: Option<PathBuf>| cutting(folder).with_holdout(share);
    let messages = long("anthropic", 30);
    let whole = body(api, &messages);
    let held_out = all(None).rewrite(api, &whole, Instant::now()).expect("it is read");
    assert_eq!((held_out.body, held_out.effect.group), (None, Group::Holdout));
    // A conversation that was changed before stays changed, or the provider's cache would be lost.
    let treated = sent(&cutting(Some(folder.path().to_owned())), api, &messages);
    assert!(treated != whole);
    let again = all(Some(folder.path().to_owned()));
    let again = again.rewrite(api, &whole, Instant::now()).expect("it is read");
    assert!(again.body.expect("it is changed") == treated);
    assert_eq!(again.effect.group, Group::Treated);
}

#[test]
fn the_first_request_after_a_restart_is_not_cut() {
    let folder = tempfile::tempdir().expect("a folder");
    let api = api("anthropic");
    sent(&cutting(Some(folder.path().to_owned())), api, &long("anthropic", 30));
    let again = cutting(Some(folder.path().to_owned()));
    let mut cuts = Vec::new();
    for calls in [90, 91] {
        let body = body(api, &long("anthropic", calls));
        cuts.push(rewritten(&again, api, &body).effect.cut.is_some());
    }
    assert_eq!(cuts, [false, true]);
}

#[test]
fn a_short_conversation_is_not_cut() {
    let api = api("anthropic");
    let rewriter = cutting(None);
    let messages = long("anthropic", 2);
    assert!(sent(&rewriter, api, &messages) == body(api, &messages));
}

#[test]
fn reasoning_that_is_bound_to_its_prefix_forbids_a_cut() {
    let api = api("anthropic");
    let rewriter = cutting(None);
    let plain = body(api, &long("anthropic", 30));
    let bound = String::from_utf8_lossy(&plain)
        .replace(r#""model": "m""#, r#""model": "claude-fable-5-1""#);
    let bound = Bytes::from(bound);
    let rewritten = rewriter.rewrite(api, &bound, Instant::now()).expect("it is read");
    assert_eq!((rewritten.body, rewritten.effect.cut), (None, None));
}

/// Whether a cut is made in a request, which must be rewritten without a failure.
fn is_cut(rewriter: &Rewriter, api: &'static Api, body: &Bytes) -> bool {
    let rewritten = rewritten(rewriter, api, body);
    assert_eq!(rewritten.effect.failure, None);
    rewritten.effect.cut.is_some()
}

#[test]
fn after_an_edit_of_an_old_message_the_request_is_cut_at_once() {
    for name in APIS {
        let api = api(name);
        let rewriter = digesting(None);
        assert!(is_cut(&rewriter, api, &body(api, &long(name, 30))), "{name}");
        let mut messages = long(name, 31);
        assert!(!is_cut(&rewriter, api, &body(api, &messages)), "{name}");
        // The client clears an old result: the provider's cache does not have what follows.
        let cleared = turn(name, "c1", "[Old tool result content cleared]");
        let at = 1 + cleared.len();
        messages.splice(at..at + cleared.len(), cleared);
        assert!(is_cut(&rewriter, api, &body(api, &messages)), "{name}");
    }
}

#[test]
fn each_branch_of_a_conversation_is_cut_by_itself() {
    let api = api("anthropic");
    let rewriter = digesting(None);
    assert!(is_cut(&rewriter, api, &body(api, &long("anthropic", 30))));
    // The user goes back to the fifth call.
    let branch = |calls: usize| {
        let mut messages = long("anthropic", 5);
        messages.push(json!({"role": "user", "content": "Build it in another way."}));
        messages.extend(long("anthropic", calls).split_off(11));
        body(api, &messages)
    };
    assert!(is_cut(&rewriter, api, &branch(7)), "what is behind the fifth call is new");
    // The first branch goes on as it was.
    assert!(!is_cut(&rewriter, api, &body(api, &long("anthropic", 31))));
}

#[test]
fn a_request_that_nearly_fills_the_window_is_cut_whatever_it_costs() {
    let api = api("anthropic");
    let mut recipe = built_in("epitome").expect("a recipe");
    recipe.trigger.live.tokens = Some(u64::MAX);
    recipe.live.priced = false;
    let rewriter = Rewriter::new(None, recipe, &Words, Catalogue::built_in());
    let request = |model: &str, calls: usize| {
        let body = body(api, &long("anthropic", calls));
        let text = std::str::from_utf8(&body).expect("UTF-8");
        Bytes::from(text.replacen(r#""model": "m""#, &format!(r#""model": "{model}""#), 1))
    };
    let cuts = |model: &str| [250, 270, 400].map(|n| is_cut(&rewriter, api, &request(model, n)));
    assert_eq!(cuts("unknown"), [false, false, false]);
    assert_eq!(cuts("claude-sonnet-4-5"), [false, false, true]);
}
