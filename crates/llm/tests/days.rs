//! Successes and failures of every API format, with a server on this machine.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use epitome_api::{SummaryAs, anthropic};
use epitome_llm::{
    Auth, CallTotals, Catalogue, Client, ClientSetup, Clock, Delta, Endpoint, Failure, HttpRequest,
    Key, Model, ModelName, Outgoing, Request, Response, RetryPolicy, RetryingModel, Stop, Tool,
};
use epitome_model::{
    Block, Entry, Item, MicroDollars, Output, Part, Role, Source, Span, StopReason, Text,
    TokenUsage, Tokens, Transcript,
};
use epitome_passes::{Ask, Reply};
use model_server::{Answer, Break, Ending, Rough, Step, ToolCall};

const KEY: &str = "sk-test-0123456789abcdefghij";
const MODELS: [&str; 7] = [
    "anthropic/claude-haiku-4-5",
    "openai/gpt-6-luna",
    "google/gemini-3.1-flash-lite",
    "groq/openai/gpt-oss-120b",
    "openrouter/anthropic/claude-haiku-4.5",
    "ollama/qwen3:8b",
    "compatible/local",
];

fn ask() -> Ask {
    let prompt = "What happened?\n".repeat(40);
    Ask { system: "You write summaries.".into(), prompt, max_tokens: 700 }
}

fn client(model: &str, server: &Rough, timeout: Duration) -> Client {
    let name: ModelName = model.parse().expect("a name");
    let setup = ClientSetup::new(name, &Catalogue::built_in());
    let setup = setup.with_key(Key::new(KEY)).with_address(server.url()).with_timeout(timeout);
    Client::new(setup).expect("a client")
}

fn answer(model: &str, server: &Rough) -> Result<Reply, Failure> {
    client(model, server, Duration::from_secs(20)).ask(&ask(), &Stop::default())
}

fn server(answers: impl IntoIterator<Item = Answer>) -> Rough {
    Rough::start(answers).expect("a server")
}

#[test]
fn every_provider_is_asked_on_its_own_wire() {
    let paths = [
        "/v1/messages",
        "/v1/responses",
        "/v1beta/models/gemini-3.1-flash-lite:generateContent",
        "/v1/chat/completions",
        "/v1/chat/completions",
        "/api/chat",
        "/v1/chat/completions",
    ];
    for (model, path) in MODELS.into_iter().zip(paths) {
        let server = server([Answer::Says(Step::text("All is well."))]);
        let reply = answer(model, &server).unwrap_or_else(|err| panic!("{model}: {err}"));
        assert_eq!((&*reply.text, &reply.stopped), ("All is well.", &StopReason::End), "{model}");
        let used = reply.used.expect("it is said");
        assert!(used.input > Tokens(100) && used.output > Tokens(0), "{model} {used:?}");
        let exchange = &server.exchanges()[0];
        assert_eq!(exchange.path, path, "{model}");
        let body = exchange.body.to_string();
        assert!(body.contains("You write summaries."), "{model}: {body}");
        assert!(!body.contains("\"tools\"") && !body.contains("\"store\":true"), "{body}");
        assert_eq!(server.headers().iter().filter(|it| it.contains(KEY)).count(), 1, "{model}");
    }
}

#[test]
fn an_answer_says_why_it_ended() {
    let call = ToolCall { name: "Bash".into(), input: serde_json::json!({ "command": "ls" }) };
    let calling = Step { calls: vec![call], ..Step::text("I look.") };
    let half = Step::text("## Task\nIt was");
    let cases = [
        (Step::text("Done."), "End"),
        (half.clone().ending(Ending::Length), "Length"),
        (half.ending(Ending::Refused), "Refused"),
        (calling, "Call"),
        (Step::default(), "End"),
    ];
    for model in MODELS {
        for (step, expect) in &cases {
            let server = server([Answer::Says(step.clone())]);
            let reply = answer(model, &server).unwrap_or_else(|err| panic!("{model}: {err}"));
            let stopped = format!("{:?}", reply.stopped);
            // Ollama has no stop reason for a refusal.
            let known = match (model, *expect) {
                ("ollama/qwen3:8b", "Refused") => "End",
                (_, expect) => expect,
            };
            assert_eq!(stopped, known, "{model} {step:?}");
            assert_eq!(reply.text, step.text.clone().unwrap_or_default(), "{model}");
        }
    }
}

#[test]
fn a_bad_day_is_told_as_whose_fault_it_is() {
    let error = |words: &str| format!(r#"{{"error":{{"message":"{words}"}}}}"#);
    let cases = [
        (Answer::status(429, error("slow")).with_header("Retry-After", "7"), "Rate", Some(7)),
        (Answer::status(500, error("oops")), "Overloaded", None),
        (Answer::status(529, error("busy")).with_header("retry-after", "3"), "Overloaded", Some(3)),
        (Answer::status(401, error("wrong key")), "Auth", None),
        (Answer::status(404, error("no such model")), "NoSuchModel", None),
        (Answer::status(400, error("prompt is too long: 9 tokens > 8 maximum")), "TooLong", None),
        (Answer::status(200, "{\"half\":"), "Half", None),
        (Answer::Half(Step::text("A summary that is cut in two.")), "Half", None),
        (Answer::status(200, "gibberish"), "BadAnswer", None),
        (Answer::status(200, "<html>").with_header("content-type", "text/html"), "BadAnswer", None),
        (Answer::status(302, "").with_header("location", "http://127.0.0.1:9/"), "Setup", None),
    ];
    for model in MODELS {
        for (day, expect, after) in &cases {
            let server = server([day.clone()]);
            let failure = answer(model, &server).expect_err("there is no answer");
            let debug_text = format!("{failure:?}");
            assert!(debug_text.starts_with(expect), "{model} {day:?}: {debug_text}");
            assert_eq!(failure.after(), after.map(Duration::from_secs), "{model} {day:?}");
            assert_eq!(server.exchanges().len(), 1, "a client asks once");
        }
    }
}

#[test]
fn an_empty_object_is_no_answer() {
    for model in MODELS {
        let server = server([Answer::status(200, "{}")]);
        let failure = answer(model, &server).expect_err("there is no answer");
        assert_eq!(failure, Failure::BadAnswer("it contains no answer".into()), "{model}");
    }
}

#[test]
fn ollama_is_asked_for_a_window_that_holds_the_question() {
    let server = server([Answer::Says(Step::text("All is well."))]);
    answer("ollama/qwen3:8b", &server).expect("an answer");
    let options = server.exchanges()[0].body["options"].clone();
    assert_eq!(options, serde_json::json!({ "num_predict": 700, "num_ctx": 4_096 }));
}

#[test]
fn a_service_that_says_nothing_is_not_waited_for() {
    let server = server([Answer::Silence]);
    let short = Duration::from_millis(80);
    let client = client(MODELS[0], &server, short);
    assert_eq!(client.ask(&ask(), &Stop::default()), Err(Failure::TimedOut(short)));
}

#[test]
fn a_question_is_stopped_while_nobody_answers() {
    let server = server([Answer::Silence]);
    let client = client(MODELS[0], &server, Duration::from_secs(600));
    let stop = Stop::default();
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| client.ask(&ask(), &stop));
        while server.exchanges().is_empty() {
            std::thread::yield_now();
        }
        stop.stop();
        assert_eq!(asking.join().expect("it ends"), Err(Failure::Stopped));
    });
    assert_eq!(client.ask(&ask(), &stop), Err(Failure::Stopped));
    assert_eq!(server.exchanges().len(), 1);
}

#[test]
fn nobody_there_is_told_without_the_address() {
    let name: ModelName = MODELS[0].parse().expect("a name");
    let setup = ClientSetup::new(name, &Catalogue::built_in()).with_key(Key::new(KEY));
    // No process listens on a port that the system has just assigned and released.
    let free = std::net::TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr());
    let client = Client::new(setup.with_address(format!("http://{}", free.expect("a port"))));
    let failure = client.expect("a client").ask(&ask(), &Stop::default());
    let failure = failure.expect_err("nobody is there");
    assert!(matches!(failure, Failure::Unreachable(_)), "{failure:?}");
    assert!(!failure.to_string().contains("127.0.0.1:"), "{failure}");
}

#[test]
fn a_service_that_echoes_the_key_does_not_make_it_known() {
    let pieces = format!("wrong key {KEY}, or {}…, or …{}", &KEY[..12], &KEY[KEY.len() - 9..]);
    let days = [
        Answer::status(401, format!(r#"{{"error":{{"message":"{pieces}"}}}}"#)),
        Answer::status(500, pieces.clone()),
        Answer::status(429, format!("{}{KEY}", "x".repeat(290))),
        Answer::status(200, pieces.clone()),
        Answer::status(200, pieces.clone()).with_header("content-type", KEY),
        Answer::status(307, pieces).with_header("location", &format!("http://127.0.0.1/{KEY}")),
        Answer::Says(Step::text(format!("The key is {KEY}."))),
    ];
    for model in MODELS {
        for day in &days {
            let server = server([day.clone()]);
            let patient = RetryingModel::new(
                client(model, &server, Duration::from_secs(20)),
                Catalogue::built_in(),
            )
            .with_policy(RetryPolicy { tries: 1, ..RetryPolicy::default() });
            let answer = patient.ask(&ask(), &Stop::default());
            let shown = match &answer {
                Ok(reply) => format!("{reply:?}"),
                Err(failure) => format!("{failure} {failure:?}"),
            };
            let all = format!("{shown} {patient:?} {:?} {:?}", patient.attempts(), patient.spent());
            assert!(!all.contains(&KEY[8..20]) && !all.contains(KEY), "{model} {day:?}: {all}");
        }
    }
}

/// The service splits the key over several events.
#[test]
fn a_key_in_a_streamed_response_is_not_shown() {
    for model in MODELS {
        let server = server([Answer::Says(Step::text(format!("It is {KEY}, and {KEY}. Äs")))]);
        let (response, seen) = sent(&client(model, &server, Duration::from_secs(20)), true);
        let response = response.unwrap_or_else(|err| panic!("{model}: {err}"));
        assert_eq!(response.text(), "It is [key], and [key]. Äs", "{model}");
        let pieces = KEY.as_bytes().windows(8).map(|piece| String::from_utf8_lossy(piece));
        let shown: Vec<_> = pieces.filter(|piece| seen.contains(&**piece)).collect();
        assert_eq!(shown, Vec::<&str>::new(), "{model}: {seen}");
        assert!(seen.starts_with("It is ") && seen.ends_with("[key]. Äs"), "{model}: {seen}");
    }
}

#[test]
fn a_question_that_was_read_in_part_only_has_no_answer() {
    let short = r#"{"choices":[{"message":{"content":"A summary."},"finish_reason":"stop"}],
        "usage":{"prompt_tokens":20,"completion_tokens":4}}"#;
    let server = server([Answer::status(200, short)]);
    let model = client("compatible/local", &server, Duration::from_secs(20));
    let patient = RetryingModel::new(model, Catalogue::built_in());
    let failure = patient.ask(&ask(), &Stop::default()).expect_err("it has read only a part");
    assert_eq!(
        failure.to_string(),
        "the request is too long (the limit is 20 tokens): only 20 tokens of it were read"
    );
    assert_eq!(patient.spent().used.output, Tokens(4));
}

#[test]
fn what_a_cache_had_to_do_with_it_is_told_apart() {
    let anthropic = r#"{"content":[{"type":"text","text":"A."}],"stop_reason":"end_turn","usage":{
        "input_tokens":100,"cache_read_input_tokens":20,"cache_creation_input_tokens":3,
        "output_tokens":4}}"#;
    let openai = r#"{"status":"completed","output":[{"type":"message","content":[
        {"type":"output_text","text":"A."}]}],"usage":{"input_tokens":120,
        "input_tokens_details":{"cached_tokens":20},"output_tokens":4}}"#;
    let google = r#"{"candidates":[{"content":{"parts":[{"text":"Hm.","thought":true},
        {"text":"A."}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":120,
        "cachedContentTokenCount":20,"candidatesTokenCount":1,"thoughtsTokenCount":3}}"#;
    for (model, body, written) in
        [(MODELS[0], anthropic, 3), (MODELS[1], openai, 0), (MODELS[2], google, 0)]
    {
        let server = server([Answer::status(200, body)]);
        let reply = answer(model, &server).expect("an answer");
        let (input, cached) = (Tokens(100), Tokens(20));
        let used = TokenUsage { input, cached, cache_written: Tokens(written), output: Tokens(4) };
        assert_eq!((&*reply.text, reply.used), ("A.", Some(used)), "{model}");
    }
}

/// Records the waiting times, and does not wait.
#[derive(Clone, Default)]
struct Noted(Arc<Mutex<Vec<Duration>>>);

impl Clock for Noted {
    fn wait(&self, time: Duration, _: &Stop) {
        self.0.lock().expect("nobody panics with it").push(time);
    }
}

#[test]
fn what_may_pass_is_asked_again_as_often_as_the_policy_allows() {
    let busy = || Answer::status(529, "busy");
    let rate = |after: &str| Answer::status(429, "slow").with_header("retry-after", after);
    let good = || Answer::Says(Step::text("Done."));
    let cases = [
        (vec![good()], "Done.", vec![]),
        (vec![busy(), good()], "Done.", vec![2]),
        (vec![busy(), busy(), good()], "Done.", vec![2, 4]),
        (vec![busy(), busy(), busy(), good()], "Overloaded", vec![2, 4]),
        (vec![rate("9"), good()], "Done.", vec![9]),
        // The service's waiting time is used, but at least that of the policy.
        (vec![rate("1"), rate("1"), good()], "Done.", vec![2, 4]),
        (vec![rate("3600"), good()], "Rate", vec![]),
        (vec![Answer::Half(Step::text("A long summary.")), good()], "Done.", vec![2]),
        (vec![Answer::status(401, ""), good()], "Auth", vec![]),
        (vec![Answer::status(400, "no"), good()], "Rejected", vec![]),
    ];
    for (days, expect, waits) in cases {
        let server = server(days.clone());
        let clock = Noted::default();
        let patient = RetryingModel::new(
            client(MODELS[0], &server, Duration::from_secs(20)),
            Catalogue::built_in(),
        )
        .with_clock(clock.clone());
        let reply_text = match patient.ask(&ask(), &Stop::default()) {
            Ok(reply) => reply.text,
            Err(failure) => format!("{failure:?}"),
        };
        assert!(reply_text.starts_with(expect), "{days:?}: {reply_text}");
        let waited: Vec<u64> = clock.0.lock().expect("it").iter().map(Duration::as_secs).collect();
        assert_eq!(waited, waits, "{days:?}");
    }
}

#[test]
fn those_who_were_refused_at_once_do_not_come_back_at_once() {
    let server = server([Answer::status(529, "busy")]);
    let waits = |_| {
        let clock = Noted::default();
        let model = client(MODELS[0], &server, Duration::from_secs(20));
        let patient = RetryingModel::new(model, Catalogue::built_in()).with_clock(clock.clone());
        drop(patient.ask(&ask(), &Stop::default()));
        let waited = clock.0.lock().expect("it").clone();
        let least = [Duration::from_secs(2), Duration::from_secs(4)];
        assert_eq!(waited.len(), 2);
        for (waited, least) in waited.iter().zip(least) {
            assert!(*waited >= least && *waited < least * 5 / 4, "{waited:?}");
        }
        waited
    };
    let all: Vec<Vec<Duration>> = (0..8).map(waits).collect();
    assert!(all.iter().any(|waited| *waited != all[0]), "{all:?}");
}

#[test]
fn another_model_is_asked_when_the_first_has_no_answer_and_all_is_accounted() {
    let (first, second) = (
        server([Answer::status(529, "busy")]),
        server([Answer::Says(Step::text("From the second."))]),
    );
    let time = Duration::from_secs(20);
    let patient = RetryingModel::new(client(MODELS[0], &first, time), Catalogue::built_in())
        .or(client("openai/gpt-4.1-mini", &second, time))
        .with_clock(Noted::default());
    let reply = patient.ask(&ask(), &Stop::default()).expect("an answer");
    assert_eq!(reply.text, "From the second.");
    let spent = patient.spent();
    let used = reply.used.expect("it is said");
    assert_eq!((spent.calls, spent.failed, spent.unsaid, spent.unpriced), (4, 3, 3, 0));
    assert_eq!(spent.used, used);
    // A million tokens cost $0.40 of input and $1.60 of output.
    let cost = (used.input.0 * 400 + used.output.0 * 1_600 + 500) / 1_000;
    assert_eq!(spent.cost, MicroDollars(cost));
    let models: Vec<String> = patient.attempts().iter().map(|it| it.model.to_string()).collect();
    assert_eq!(models[2..], [MODELS[0], "openai/gpt-4.1-mini"]);
}

#[test]
fn an_answer_that_is_cut_off_is_accounted_too() {
    let cut = Step::text("## Task").ending(Ending::Length);
    let server = server([Answer::Says(cut)]);
    let patient = RetryingModel::new(
        client(MODELS[0], &server, Duration::from_secs(20)),
        Catalogue::built_in(),
    );
    let reply = patient.ask(&ask(), &Stop::default()).expect("an answer");
    let spent = patient.spent();
    assert_eq!((spent.calls, spent.failed), (1, 0));
    assert_eq!(Some(spent.used), reply.used);
    assert!(spent.cost > MicroDollars(0));
}

/// A streamed request with a tool: the response or failure, and what the sink received.
fn sent(model: &dyn Model, sink: bool) -> (Result<Response, Failure>, String) {
    let body = br#"{"system":"You look things up.","messages":[
        {"role":"user","content":"What is in a.txt?"}]}"#;
    let body = body.to_vec();
    let transcript = (anthropic::FORMAT.read)(&body, &mut ());
    let summary = SummaryAs::User;
    let outgoing = Outgoing { transcript: &transcript, source: &body, summary };
    let parameters = r#"{"type":"object","properties":{"path":{"type":"string"}}}"#;
    let tools = [Tool { name: "Read", description: "Reads a file.", parameters }];
    let request = Request { outgoing, tools: &tools, max_tokens: 700 };
    let mut seen = String::new();
    let mut watch = |delta: Delta<'_>| match delta {
        Delta::Text(text) => seen.push_str(text),
        Delta::Thinking(text) => seen.push_str(&format!("({text})")),
        Delta::Call(name) => seen.push_str(&format!("<{name}>")),
        Delta::Restart => seen.push_str("<again>"),
        Delta::Retry(_) => {}
    };
    let response = model.send(&request, sink.then_some(&mut watch), &Stop::default());
    (response, seen)
}

fn looks() -> Step {
    let input = serde_json::json!({ "path": "a.txt", "n": 12345678901234567890_u64 });
    let call = |path: &str| ToolCall {
        name: "Read".into(),
        input: serde_json::json!({ "path": path, "deep": [{ "ä\"": input }] }),
    };
    Step { calls: vec![call("a.txt"), call("b.txt")], ..Step::text("I look.\nÄ \"b\" 🦀") }
}

#[test]
fn a_streamed_response_is_the_one_that_comes_whole() {
    for model in MODELS {
        let server = server([Answer::Says(looks())]);
        let client = client(model, &server, Duration::from_secs(20));
        let (whole, unseen) = sent(&client, false);
        let (streamed, seen) = sent(&client, true);
        let whole = whole.unwrap_or_else(|err| panic!("{model}: {err}"));
        let streamed = streamed.unwrap_or_else(|err| panic!("{model}: {err}"));
        assert_eq!(unseen, "", "{model}");
        assert_eq!(seen, "I look.\nÄ \"b\" 🦀<Read><Read>", "{model}");
        assert_eq!(streamed.text(), "I look.\nÄ \"b\" 🦀", "{model}");
        assert_eq!(
            (&whole.stop, &streamed.stop),
            (&StopReason::Call, &StopReason::Call),
            "{model}"
        );
        assert_eq!(describe(&streamed), describe(&whole), "{model}");
        assert_eq!(streamed.usage.map(|it| it.input), whole.usage.map(|it| it.input), "{model}");
        let tools = server.exchanges()[1].body["tools"].to_string();
        assert!(tools.contains("Reads a file."), "{model}: {tools}");
    }
}

/// Each text and each call with its arguments.
fn describe(response: &Response) -> Vec<String> {
    let blocks = response.entry.blocks.iter().map(|block| match block {
        Block::Text(text) => text.read(&response.source).into_owned(),
        Block::Call(call) => {
            let raw = response.source.at(call.arguments).into_owned();
            let text = serde_json::from_slice::<String>(&raw).map_or(raw, String::into_bytes);
            let arguments: serde_json::Value = serde_json::from_slice(&text).expect("JSON");
            format!("{} {arguments}", call.name)
        }
        other => panic!("{other:?}"),
    });
    blocks.collect()
}

#[test]
fn a_response_goes_back_with_the_results_of_its_calls() {
    for model in MODELS {
        let server = server([Answer::Says(looks()), Answer::Says(Step::text("It is empty."))]);
        let client = client(model, &server, Duration::from_secs(20));
        let (response, _) = sent(&client, true);
        let response = response.unwrap_or_else(|err| panic!("{model}: {err}"));
        let results = response.calls().map(|call| {
            Block::Output(Output {
                call: call.id.clone(),
                error: false,
                parts: vec![Part::Text(Text::Owned("nothing".into()))],
                whole: Span::default(),
                numbered: false,
                from_user: false,
            })
        });
        let results: Vec<Block> = results.collect();
        let entry =
            |role, blocks| Item::Entry(Box::new(Entry { role, blocks, ..Entry::default() }));
        let question = vec![Block::Text(Text::Owned("What is in a.txt?".into()))];
        let items = vec![
            entry(Role::User, question),
            Item::Entry(Box::new(response.entry.clone())),
            entry(Role::Tool, results),
        ];
        let transcript = Transcript { items, context: vec![0, 1, 2], ..Transcript::default() };
        let summary = SummaryAs::User;
        let outgoing = Outgoing { transcript: &transcript, source: &response.source, summary };
        let parameters = r#"{"type":"object"}"#;
        let tools = [Tool { name: "Read", description: "Reads a file.", parameters }];
        let request = Request { outgoing, tools: &tools, max_tokens: 700 };
        let next = client.send(&request, None, &Stop::default());
        let next = next.unwrap_or_else(|err| panic!("{model}: {err}"));
        assert_eq!((&*next.text(), next.stop), ("It is empty.", StopReason::End), "{model}");
    }
}

#[test]
fn a_broken_stream_is_no_response() {
    let cases = [
        (Break::Half, "Half"),
        (Break::Error, "Overloaded|BadAnswer"),
        (Break::Empty, "Half"),
        (Break::Backwards, "BadAnswer|Half|Ok"),
        (Break::Garbled, "BadAnswer"),
        (Break::Pings, "Ok"),
    ];
    for model in MODELS {
        for (broken, expect) in cases {
            let server = server([Answer::Broken(looks(), broken)]);
            let client = client(model, &server, Duration::from_secs(20));
            let result_text = match sent(&client, true).0 {
                Ok(response) => format!("Ok {response:?}"),
                Err(failure) => format!("{failure:?}"),
            };
            let fits = expect.split('|').any(|expect| result_text.starts_with(expect));
            assert!(fits, "{model} {broken:?}: {result_text}");
            if model == MODELS[0] && broken == Break::Backwards {
                assert!(result_text.starts_with("BadAnswer"), "{result_text}");
            }
        }
        // The connection itself breaks.
        let server = server([Answer::Half(looks())]);
        let failure = sent(&client(model, &server, Duration::from_secs(20)), true).0;
        assert!(matches!(failure, Err(Failure::Half(_))), "{model}: {failure:?}");
    }
}

#[test]
fn what_was_shown_of_a_broken_stream_is_void_before_it_is_sent_again() {
    let broken = Answer::Broken(looks(), Break::Error);
    let server = server([broken, Answer::Says(Step::text("All is well."))]);
    let client = client(MODELS[0], &server, Duration::from_secs(20));
    let patient = RetryingModel::new(client, Catalogue::built_in()).with_clock(Noted::default());
    let (response, seen) = sent(&patient, true);
    assert_eq!(response.expect("a response").text(), "All is well.");
    assert_eq!(seen, "I look.\nÄ \"b\" 🦀<Read><again>All is well.");
    let spent = patient.spent();
    assert_eq!((spent.calls, spent.failed), (2, 1));
}

/// Signs the whole request, as AWS SigV4 does.
#[derive(Debug)]
struct Signature;

impl Auth for Signature {
    fn authorize(&self, request: &mut HttpRequest) -> Result<(), String> {
        let path = request.url.split_once("127.0.0.1").expect("an address").1;
        let path = path.split_once('/').expect("a path").1;
        let signed = format!("{} /{path} {}", request.method, request.body.len());
        request.headers.push(("x-signature".into(), signed));
        Ok(())
    }
}

#[test]
fn a_request_is_signed_with_its_body_and_sent_to_another_endpoint() {
    let server = server([Answer::Says(Step::text("All is well."))]);
    let name: ModelName = MODELS[0].parse().expect("a name");
    let bedrock = Endpoint {
        path: |_, _| "messages?on=bedrock".into(),
        members: r#""anthropic_version":"bedrock-2023-05-31","#,
        ..anthropic::ENDPOINT
    };
    let setup = ClientSetup::new(name, &Catalogue::built_in()).with_address(server.url());
    let client = Client::new(setup.with_auth(Signature).with_endpoint(bedrock));
    let reply = client.expect("a client").ask(&ask(), &Stop::default()).expect("a reply");
    assert_eq!(reply.text, "All is well.");
    let headers = server.headers();
    let value = |name: &str| {
        let line = headers.iter().find_map(|line| line.strip_prefix(name));
        line.expect("a header").trim().to_owned()
    };
    let expect = format!("POST /v1/messages?on=bedrock {}", value("content-length:"));
    assert_eq!(value("x-signature:"), expect);
    assert!(!headers.iter().any(|line| line.starts_with("x-api-key")), "{headers:?}");
    assert_eq!(server.exchanges()[0].body["anthropic_version"], "bedrock-2023-05-31");
}

/// Cannot authenticate a request.
#[derive(Debug)]
struct Expired;

impl Auth for Expired {
    fn authorize(&self, _: &mut HttpRequest) -> Result<(), String> {
        Err("the token has expired".into())
    }
}

#[test]
fn a_request_that_cannot_be_authenticated_is_no_call_of_the_service() {
    let server = server([]);
    let name: ModelName = MODELS[0].parse().expect("a name");
    let setup = ClientSetup::new(name, &Catalogue::built_in()).with_address(server.url());
    let client = Client::new(setup.with_auth(Expired)).expect("a client");
    let model = RetryingModel::new(client, Catalogue::built_in());
    let failure = model.ask(&ask(), &Stop::default()).expect_err("it is not sent");
    assert_eq!(failure, Failure::Setup("the token has expired".into()));
    assert_eq!(model.spent(), CallTotals::default());
}
