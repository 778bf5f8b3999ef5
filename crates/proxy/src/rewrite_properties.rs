//! Tests of properties that hold for all conversations. The conversations are generated, and sent
//! as agents send them: they grow, go back to an earlier message, have old results changed, run two
//! at a time, and their proxy is restarted.

use std::collections::HashMap;
use std::time::Duration;

use epitome::Config;
use epitome::ops::archived_text;
use epitome_model::{Block, Output, Part, Ref, Role, Source as _, Transcript};
use epitome_passes::{IngestRule, Keep, Side, built_in, new_violations};
use fixtures::generate;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{Config as Settings, RngAlgorithm, TestRng, TestRunner};

use bytes::Bytes;
use epitome_api::{Api, find_api};
use epitome_llm::Catalogue;
use epitome_model::{Counter, Stub, Tokens};
use epitome_passes::Recipe;
use std::time::Instant;

use crate::block::span_of;
use crate::body::{Messages, sole_text};
use crate::rewrite::Rewriter;

/// The four API formats: the name for the generator, and the name of the API.
const FORMATS: [(&str, &str); 4] = [
    ("anthropic", "anthropic"),
    ("openai-chat", "openai-chat"),
    ("openai-responses", "openai-responses"),
    ("gemini-request", "gemini-api"),
];

/// The number of generated cases for each API in each test.
const CASES: u32 = 40;

/// Counts one token for every two bytes, because the generated results are short.
struct Halves;

impl Counter for Halves {
    fn name(&self) -> &'static str {
        "halves"
    }

    fn count(&self, text: &str) -> Tokens {
        Tokens(text.len() as u64 / 2)
    }
}

/// How the requests are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cuts {
    None,
    Passes,
    Digest,
    /// By a digest, and only because the model's window is nearly full.
    Full,
}

/// Models with windows so small that the generated conversations fill them.
const SMALL_WINDOWS: &str = r#"
    [[model]]
    provider = "anthropic"
    name = "claude-opus-4-5"
    window = 900
    output = 100
    price = { input = 5, output = 25 }
    [[model]]
    provider = "openai"
    name = "gpt-5"
    window = 900
    output = 100
    price = { input = 1, output = 10 }
"#;

fn recipe(cuts: Cuts) -> Recipe {
    let mut recipe = built_in("epitome").expect("a recipe");
    recipe.stages.live.ingest =
        Some(IngestRule { repeats: true, cap: Some(200), ..IngestRule::default() });
    recipe.trigger.live.tokens = Some(match cuts {
        Cuts::None | Cuts::Full => u64::MAX,
        Cuts::Passes | Cuts::Digest => 400,
    });
    recipe.target.live = None;
    match &mut recipe.stages.live.digest {
        Some(rule) if matches!(cuts, Cuts::Digest | Cuts::Full) => rule.budget = 200,
        digest => *digest = None,
    }
    recipe.keep = Keep { results: Some(1), ..Keep::default() };
    recipe
}

fn rewriter(config: &Config, cuts: Cuts) -> Rewriter {
    let catalogue = match cuts {
        Cuts::Full => Catalogue::parse(SMALL_WINDOWS).expect("a table"),
        Cuts::None | Cuts::Passes | Cuts::Digest => Catalogue::built_in(),
    };
    Rewriter::new(Some(config.wire_memo()), recipe(cuts), &Halves, catalogue)
}

/// A conversation as an agent has it: the body of a request, divided at its messages.
#[derive(Clone, Debug)]
struct Talk {
    api: &'static Api,
    head: Vec<u8>,
    messages: Vec<Vec<u8>>,
    tail: Vec<u8>,
}

impl Talk {
    fn parse(api: &'static Api, body: &[u8]) -> Talk {
        // No agent sends a byte order mark.
        let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
        let found = Messages::find(body, api.list).expect("a generated body has messages");
        Talk {
            api,
            head: body[..=found.list.start].to_vec(),
            messages: found.all.iter().map(|it| body[it.span.clone()].to_vec()).collect(),
            tail: body[found.list.end - 1..].to_vec(),
        }
    }

    fn body(&self) -> Bytes {
        [self.head.as_slice(), &self.messages.join(b", ".as_slice()), &self.tail].concat().into()
    }

    fn transcript(&self) -> (Transcript, Vec<u8>) {
        let body = self.body().to_vec();
        ((self.api.format.read)(&body, &mut ()), body)
    }

    /// The conversation up to a message.
    fn beginning(&self, count: usize) -> Talk {
        Talk { messages: self.messages[..count].to_vec(), ..self.clone() }
    }

    /// Whether every call has its result.
    fn is_settled(&self) -> bool {
        let (transcript, _) = self.transcript();
        let mut open = 0_i64;
        for (_, entry) in transcript.context() {
            for block in &entry.blocks {
                match block {
                    Block::Call(_) => open += 1,
                    Block::Output(_) => open -= 1,
                    _ => {}
                }
            }
        }
        open == 0
    }

    /// The same conversation with other ids of its calls, because no two conversations of an agent
    /// have the same ids.
    fn with_other_ids(&self) -> Talk {
        let other = |message: &Vec<u8>| {
            let text = String::from_utf8(message.clone()).expect("text");
            text.replace("toolu_", "toolv_").replace("call_1", "call_x1").into_bytes()
        };
        Talk { messages: self.messages.iter().map(other).collect(), ..self.clone() }
    }

    fn user(&self, text: &str) -> Vec<u8> {
        let message = match self.api.list {
            "contents" => format!(r#"{{"role":"user","parts":[{{"text":"{text}"}}]}}"#),
            _ => format!(r#"{{"role":"user","content":"{text}"}}"#),
        };
        message.into_bytes()
    }
}

/// What an agent does before its next request.
#[derive(Clone, Debug)]
enum Step {
    /// It adds messages until every call has its result, this many times.
    Grow(usize),
    /// It goes back to an earlier message, and continues from there with another question.
    Rewind(Index),
    /// It clears an old result, as agents do to make room.
    Clear(Index),
    /// It sends the same request again.
    Repeat,
    /// The proxy ends, and another one begins.
    Restart,
}

fn steps() -> impl Strategy<Value = Vec<(bool, Step)>> {
    let step = prop_oneof![
        6 => (1_usize..4).prop_map(Step::Grow),
        1 => any::<Index>().prop_map(Step::Rewind),
        1 => any::<Index>().prop_map(Step::Clear),
        1 => Just(Step::Repeat),
        2 => Just(Step::Restart),
    ];
    vec((any::<bool>(), step), 4..16)
}

/// An agent: the whole conversation that it will have sent in the end, and what it sends now.
struct Agent {
    source: Talk,
    now: Talk,
    /// The number of messages of `source` that the agent has used so far.
    at: usize,
    questions: usize,
}

impl Agent {
    fn new(source: Talk) -> Agent {
        let now = source.beginning(0);
        Agent { source, now, at: 0, questions: 0 }
    }

    fn perform(&mut self, step: &Step) {
        match step {
            Step::Grow(places) => {
                for _ in 0..*places {
                    self.grow();
                }
            }
            Step::Rewind(index) => self.rewind(index),
            Step::Clear(index) => self.clear(index),
            Step::Repeat | Step::Restart => {}
        }
        if self.now.messages.is_empty() {
            self.grow();
        }
    }

    fn grow(&mut self) {
        while let Some(message) = self.source.messages.get(self.at) {
            self.now.messages.push(message.clone());
            self.at += 1;
            if self.now.is_settled() {
                return;
            }
        }
    }

    fn rewind(&mut self, index: &Index) {
        let places: Vec<usize> =
            (1..=self.at).filter(|at| self.source.beginning(*at).is_settled()).collect();
        if self.questions > 0 || places.is_empty() {
            return;
        }
        self.questions += 1;
        self.at = *index.get(&places);
        self.now = self.source.beginning(self.at);
        let question = self.now.user("Do it in another way.");
        self.now.messages.push(question);
    }

    fn clear(&mut self, index: &Index) {
        let (transcript, body) = self.now.transcript();
        let outputs: Vec<&Output> = outputs(&transcript).collect();
        // No agent clears the newest result: its model has not seen it.
        let Some((_, old)) = outputs.split_last().filter(|(_, old)| !old.is_empty()) else {
            return;
        };
        let span = index.get(old).whole;
        if span.is_empty() {
            return;
        }
        let (start, end) = (span.start as usize, span.end as usize);
        let cleared = [&body[..start], b"\"gone\"", &body[end..]].concat();
        self.now = Talk::parse(self.now.api, &cleared);
        // The later messages of the source stay the same.
        let rest = self.source.messages.split_off(self.at);
        self.source.messages = [self.now.messages.clone(), rest].concat();
        self.at = self.now.messages.len();
    }
}

fn outputs(transcript: &Transcript) -> impl Iterator<Item = &Output> {
    let blocks = transcript.context().flat_map(|(_, entry)| &entry.blocks);
    blocks.filter_map(|block| match block {
        Block::Output(output) => Some(output),
        _ => None,
    })
}

/// The body of a request as the agent made it, and as it was sent.
struct Sent {
    original: Talk,
    made: Talk,
}

/// Everything that was sent through proxies with one folder.
struct World {
    cuts: Cuts,
    config: Config,
    rewriter: Rewriter,
    now: Instant,
    sent: Vec<Sent>,
    /// What was sent in place of each result, by the id of its call and its text.
    results: HashMap<(String, Vec<u8>), Vec<u8>>,
    has_cut: bool,
}

impl World {
    fn new(cuts: Cuts, home: &std::path::Path) -> World {
        let config = Config::from_home(home);
        let rewriter = rewriter(&config, cuts);
        let (sent, results) = Default::default();
        World { cuts, config, rewriter, now: Instant::now(), sent, results, has_cut: false }
    }

    fn restart(&mut self) {
        self.rewriter = rewriter(&self.config, self.cuts);
    }

    /// Sends a request, and checks the body that is sent.
    fn send(&mut self, original: &Talk) -> Talk {
        // The cache of the provider is cold from time to time.
        self.now += Duration::from_mins(self.sent.len() as u64 % 3 * 4);
        let body = original.body();
        let rewritten = self.rewriter.rewrite(original.api, &body, self.now).expect("it is read");
        assert_eq!(rewritten.effect.failure, None);
        // With `Cuts::Full` no cut is prepared, so that a request that nearly fills the window is
        // cut itself.
        if let Some(next) = rewritten.next_cut.filter(|_| self.cuts != Cuts::Full) {
            self.rewriter.prepare(original.api, &body, next).expect("it is read");
        }
        let made = rewritten.body.unwrap_or_else(|| body.clone());
        let is_cut = rewritten.effect.cut.is_some();
        self.has_cut |= is_cut;
        let made = Talk::parse(original.api, &made);
        match self.cuts {
            Cuts::Digest | Cuts::Full if self.has_cut => check_digested(original, &made),
            Cuts::None | Cuts::Passes | Cuts::Digest | Cuts::Full => {
                check_untouched(original, &made, self.has_cut);
            }
        }
        self.check_shown(original, &made);
        if !is_cut {
            self.check_prefix(original, &made);
        }
        if !self.has_cut {
            self.check_results(original, &made);
        }
        self.sent.push(Sent { original: original.clone(), made: made.clone() });
        made
    }

    /// Checks that the messages that a request shares with an earlier one are sent as they were.
    /// After a cut this is checked for the longest earlier request that this one begins with.
    fn check_prefix(&self, original: &Talk, made: &Talk) {
        let shared = |sent: &Sent| {
            let pairs = sent.original.messages.iter().zip(&original.messages);
            pairs.take_while(|(one, other)| one == other).count()
        };
        if !self.has_cut {
            for sent in &self.sent {
                let count = shared(sent);
                assert!(sent.made.messages[..count] == made.messages[..count], "{count} messages");
            }
            return;
        }
        let whole = self.sent.iter().filter(|it| shared(it) == it.original.messages.len());
        let Some(longest) = whole.max_by_key(|it| it.original.messages.len()) else { return };
        assert!(made.messages.starts_with(&longest.made.messages), "a known request");
    }

    /// Checks that a result is sent as it was sent before, even if it is now in another message.
    fn check_results(&mut self, original: &Talk, made: &Talk) {
        // The generated requests to Gemini state no ids.
        if original.api.list == "contents" {
            return;
        }
        for (id, before, after) in results(original, made) {
            let known = self.results.entry((id, before)).or_insert_with(|| after.clone());
            assert!(*known == after, "a result is sent as it was");
        }
    }

    /// Checks that each text which is no longer sent can be shown by its reference.
    fn check_shown(&self, original: &Talk, made: &Talk) {
        for (_, before, after) in results(original, made) {
            let text = |json: &[u8]| {
                let text = sole_text(json, &(0..json.len())).expect("a text");
                epitome_model::decode(&json[text]).into_owned()
            };
            if before == after || self.has_cut {
                continue;
            }
            let stub = Stub::parse(&text(&after)).expect("a stub");
            assert_eq!(stub.reference(), &Ref::from_bytes(&before));
            let shown = archived_text(&self.config, stub.reference()).expect("it is kept");
            assert!(shown.bytes == text(&before).as_bytes(), "it is whole");
        }
        let text = String::from_utf8_lossy(&made.body()).into_owned();
        let whole = String::from_utf8_lossy(&original.body()).into_owned();
        let stubs = text.match_indices("[epitome k");
        for (at, begin) in stubs.chain(text.match_indices("`epitome show k")) {
            let end = at + begin.len() + Ref::DIGITS;
            let reference = &text[at + begin.len() - 1..end];
            if !whole.contains(reference) {
                let reference = reference.parse().expect("a reference");
                archived_text(&self.config, &reference).expect("it is kept");
            }
        }
    }
}

/// The results of a request: the id of the call, and the JSON before and after rewriting.
fn results(original: &Talk, made: &Talk) -> Vec<(String, Vec<u8>, Vec<u8>)> {
    let (before, after) = (original.transcript(), made.transcript());
    let pairs = outputs(&before.0).zip(outputs(&after.0));
    pairs
        .map(|(one, other)| {
            let before = before.1.at(one.whole).into_owned();
            (one.call.to_string(), before, after.1.at(other.whole).into_owned())
        })
        .collect()
}

/// Without a cut, checks that everything except results is sent byte for byte as it came. After a
/// cut, checks only what a cut may not change: see [`texts`].
fn check_untouched(original: &Talk, made: &Talk, has_cut: bool) {
    assert!(original.head == made.head && original.tail == made.tail, "outside of the messages");
    assert_eq!(original.messages.len(), made.messages.len());
    if has_cut {
        let after = texts(made);
        let mut rest = after.iter();
        let lost = texts(original).into_iter().find(|text| !rest.any(|other| text == other));
        assert_eq!(lost, None);
    } else {
        assert_eq!(without_results(original), without_results(made));
    }
}

/// Checks a request with a digest. What the digest does not replace is sent as it came, in its
/// order, except for shortened results. The digest is a message of the user. The service accepts
/// the request if it accepts the original.
fn check_digested(original: &Talk, made: &Talk) {
    assert!(original.head == made.head && original.tail == made.tail, "outside of the messages");
    let before = kinds(original);
    let mut rest = before.iter();
    let new: Vec<_> = kinds(made)
        .into_iter()
        .filter(|kind| !rest.clone().any(|other| kind == other) || !rest.any(|other| kind == other))
        .collect();
    let is_digest = |kind: &(Role, String)| {
        kind.0 == Role::User && kind.1.contains("[Digest of the conversation so far")
    };
    // Where no digest is possible, passes put stubs into results, arguments and pictures.
    let is_stub = |kind: &(Role, String)| kind.1.contains("[epitome k");
    assert!(new.iter().all(|kind| is_digest(kind) || is_stub(kind)), "{new:?}");
    assert!(new.iter().filter(|kind| is_digest(kind)).count() <= 1, "{new:?}");
    let (before, after) = (original.transcript(), made.transcript());
    let before = Side { transcript: &before.0, source: &before.1 };
    let after = Side { transcript: &after.0, source: &after.1 };
    assert_eq!(new_violations(before, after, original.api.format.invariants), []);
}

/// The blocks of a request, in order: the text of each, but only a placeholder for a result.
fn kinds(talk: &Talk) -> Vec<(Role, String)> {
    let (transcript, body) = talk.transcript();
    let raw = |span| String::from_utf8_lossy(&body.at(span)).into_owned();
    let blocks = transcript
        .context()
        .flat_map(|(_, entry)| entry.blocks.iter().map(|block| (entry.role, block)));
    let text = |(role, block): (Role, &Block)| match block {
        Block::Output(_) => (role, "a result".to_owned()),
        _ => (role, span_of(block).map(raw).unwrap_or_default()),
    };
    blocks.map(text).collect()
}

/// A body with a placeholder for each result that is one text.
fn without_results(talk: &Talk) -> String {
    let (transcript, body) = talk.transcript();
    let is_text = |output: &&Output| matches!(output.parts.as_slice(), [Part::Text(_)]);
    let mut left = String::new();
    let mut from = 0;
    for output in outputs(&transcript).filter(is_text) {
        let (start, end) = (output.whole.start as usize, output.whole.end as usize);
        left.push_str(&String::from_utf8_lossy(&body[from..start]));
        left.push_str("(result)");
        from = end;
    }
    left + &String::from_utf8_lossy(&body[from..])
}

/// What a cut may not change, in order: texts, reasoning, blocks of an unknown kind, and the ids of
/// calls and results.
fn texts(talk: &Talk) -> Vec<String> {
    let (transcript, body) = talk.transcript();
    let raw = |span| String::from_utf8_lossy(&body.at(span)).into_owned();
    let blocks = transcript.context().flat_map(|(_, entry)| &entry.blocks);
    let text = |block: &Block| match block {
        Block::Text(text) => text.span().map(raw),
        Block::Thinking(thinking) => Some(raw(thinking.whole)),
        Block::Opaque(span) => Some(raw(*span)),
        Block::Call(call) => Some(call.id.to_string()),
        Block::Output(output) => Some(output.call.to_string()),
        _ => None,
    };
    blocks.filter_map(text).collect()
}

fn check(name: &str, property: impl Fn(Talk, Talk, Vec<(bool, Step)>)) {
    let (_, api) = FORMATS.iter().find(|(known, _)| *known == name).expect("a format");
    let api = find_api(api).expect("an API");
    let wire = FORMATS.iter().find(|(known, _)| *known == name).expect("a format").0;
    let settings = Settings { cases: CASES, failure_persistence: None, ..Settings::default() };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let text = || generate::body(wire).prop_map(|body| String::from_utf8(body).expect("text"));
    let conversations = (text(), text(), steps());
    let outcome = TestRunner::new_with_rng(settings, rng).run(&conversations, |(a, b, steps)| {
        property(
            Talk::parse(api, a.as_bytes()),
            Talk::parse(api, b.as_bytes()).with_other_ids(),
            steps,
        );
        Ok(())
    });
    if let Err(err) = outcome {
        panic!("{name}: {err}");
    }
}

/// Plays the steps of two agents that use one proxy. The flag of a step says which agent takes it.
fn play(world: &mut World, agents: &mut [Agent; 2], steps: &[(bool, Step)]) {
    for (which, step) in steps {
        if matches!(step, Step::Restart) {
            world.restart();
        }
        let agent = &mut agents[usize::from(*which)];
        agent.perform(step);
        world.send(&agent.now);
    }
}

#[test]
fn what_was_sent_is_sent_again_and_nothing_else_changes() {
    for (wire, _) in FORMATS {
        check(wire, |a, b, steps| {
            let home = tempfile::tempdir().expect("a folder");
            let mut world = World::new(Cuts::None, home.path());
            play(&mut world, &mut [Agent::new(a), Agent::new(b)], &steps);
        });
    }
}

#[test]
fn a_cut_is_a_new_beginning_that_stays() {
    for (wire, _) in FORMATS {
        check(wire, |a, _, steps| {
            let home = tempfile::tempdir().expect("a folder");
            let mut world = World::new(Cuts::Passes, home.path());
            let steps: Vec<_> = steps.into_iter().map(|(_, step)| (false, step)).collect();
            let other = Agent::new(a.clone());
            play(&mut world, &mut [Agent::new(a), other], &steps);
        });
    }
}

/// Plays conversations whose cuts are digests. Returns the number of conversations in which a cut
/// was made.
fn digests(cuts: Cuts) -> usize {
    let digests = std::cell::Cell::new(0);
    for (wire, _) in FORMATS {
        check(wire, |a, _, steps| {
            let home = tempfile::tempdir().expect("a folder");
            let mut world = World::new(cuts, home.path());
            let steps: Vec<_> = steps.into_iter().map(|(_, step)| (false, step)).collect();
            let other = Agent::new(a.clone());
            play(&mut world, &mut [Agent::new(a), other], &steps);
            digests.set(digests.get() + usize::from(world.has_cut));
        });
    }
    digests.get()
}

#[test]
fn a_digest_is_a_new_beginning_that_stays() {
    let digests = digests(Cuts::Digest);
    assert!(digests > 40, "{digests}");
}

#[test]
fn a_digest_because_of_a_full_window_is_a_new_beginning_that_stays() {
    let digests = digests(Cuts::Full);
    assert!(digests > 20, "{digests}");
}

/// A body in which the result of a call is `result`, with a text in place of `%` that is so long
/// that the result is shortened.
fn request(api: &Api, result: &str) -> String {
    let text: String = (0..200).map(|n| format!("{n} lines of a log\\n")).collect();
    let result = result.replace('%', &text);
    let turns = match api.name {
        "anthropic" => format!(
            r#"{{"role":"user","content":"Go."}},{{"role":"assistant","content":[{{"type":
            "tool_use","id":"a","name":"Bash","input":{{}}}}]}},{{"role":"user","content":[{{
            "type":"tool_result","tool_use_id":"a","content":{result}}}]}}"#
        ),
        "openai-chat" => format!(
            r#"{{"role":"user","content":"Go."}},{{"role":"assistant","tool_calls":[{{"id":"a",
            "type":"function","function":{{"name":"bash","arguments":"{{}}"}}}}]}},
            {{"role":"tool","tool_call_id":"a","content":{result}}}"#
        ),
        "openai-responses" => format!(
            r#"{{"role":"user","content":"Go."}},{{"type":"function_call","call_id":"a","name":
            "bash","arguments":"{{}}"}},{{"type":"function_call_output","call_id":"a","output":
            {result}}}"#
        ),
        _ => format!(
            r#"{{"role":"user","parts":[{{"text":"Go."}}]}},{{"role":"model","parts":[{{
            "functionCall":{{"name":"bash","args":{{}}}}}}]}},{{"role":"user","parts":[{{
            "functionResponse":{{"name":"bash","response":{{"output":{result}}}}}}}]}}"#
        ),
    };
    format!(r#"{{"model":"m","{}":[{turns}]}}"#, api.list)
}

#[test]
fn hostile_bodies_pass_unchanged() {
    let home = tempfile::tempdir().expect("a folder");
    let rewriter = rewriter(&Config::from_home(home.path()), Cuts::None);
    let changes = |api: &'static Api, body: &[u8]| {
        let body = Bytes::copy_from_slice(body);
        // After an error the caller sends the original.
        rewriter.rewrite(api, &body, Instant::now()).is_ok_and(|made| made.body.is_some())
    };
    for (_, name) in FORMATS {
        let api = find_api(name).expect("an API");
        let good = request(api, r#""%""#);
        assert!(changes(api, good.as_bytes()), "{name}: a result is shortened");
        let list = format!(r#""{}":["#, api.list);
        let (first, rest) = api.list.split_at(1);
        let escaped = format!(r#""\u{:04x}{rest}":["#, first.as_bytes()[0]);
        let output = if name == "openai-responses" { "output" } else { "content" };
        let twice = format!(r#""{output}":"x","{output}":"#);
        let deep = "[".repeat(200_000) + &"]".repeat(200_000);
        let bodies = [
            ("torn", good[..good.len() - 3].to_owned()),
            ("not JSON", good.replace("\"model\":", "model:")),
            ("more behind it", format!("{good} {good}")),
            ("the list twice", good.replace(&list, &format!("{list}],{list}"))),
            ("the list under an escaped name", good.replace(&list, &escaped)),
            ("a deep result", request(api, &deep)),
            ("a lone surrogate", request(api, r#""%\ud800 %""#)),
        ];
        for (what, body) in bodies {
            assert!(!changes(api, body.as_bytes()), "{name}: {what}");
        }
        if name != "gemini-api" {
            let body = good.replace(&format!(r#""{output}":"#), &twice);
            assert!(!changes(api, body.as_bytes()), "{name}: a result twice");
        }
        let mut bytes = good.clone().into_bytes();
        let at = good.find("100 lines").expect("it is there");
        bytes[at] = 0xff;
        assert!(!changes(api, &bytes), "{name}: not UTF-8");
        // A body that is only large or deeply nested is read like any other.
        let long = good.replace("Go.", &"x".repeat(31_000_000));
        assert!(changes(api, long.as_bytes()), "{name}: 31 MB");
        let below = good.replace("\"m\"", &deep);
        assert!(changes(api, below.as_bytes()), "{name}: deep");
    }
}
