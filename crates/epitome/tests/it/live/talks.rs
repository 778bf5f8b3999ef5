//! Contexts of running agents over longer conversations.

use std::sync::{Arc, Mutex};

use epitome::Loaded;
use epitome::live::{Context, MessagePart, Next, Recovery, Setup, Speaker};
use epitome::models::{SummaryJob, summary_writer};
use epitome_api::APIS;
use epitome_formats::find_format;
use epitome_llm::{Failure, Model, ModelName, Request, Response, Sink, Stop};
use epitome_model::{Block, Counter, Role, Text, Tokens, Violation};
use epitome_passes::{
    Ask, Event, EventReason, NoReply, Recipe, Reply, StopReason, SummaryRole, TokenUsage, Writer,
    built_in, is_digest,
};
use epitome_tokens::Estimate;

use super::{custom, lines, read_lines};

/// Clears results, and has everything but the last messages summarised.
const TOLD: &str = r#"
    name = "told"
    about = "Clears all results, then tells of all but the last message."
    keep = { messages = 1 }
    passes = [{ pass = "results", style = "cleared" }]
    live = { trigger = { tokens = 100_000 }, summary = { max_tokens = 1_000, sections = ["Goal"] } }
"#;

fn ask(context: &mut Context) -> Ask {
    match context.step().expect("a disk") {
        Next::Ask(question) => question.ask,
        Next::Send => panic!("nothing is asked: {:?}", context.events()),
    }
}

fn summary(context: &Context) -> String {
    let view = context.unchanged_view();
    let blocks = view.transcript().context().flat_map(|(_, entry)| &entry.blocks);
    let found = blocks.filter_map(|block| match block {
        Block::Summary(text) => Some(text.read(view.source()).into_owned()),
        _ => None,
    });
    found.collect()
}

fn context() -> Context {
    let mut context = Context::in_memory(custom(TOLD).with_window(Tokens(200_000)));
    work(&mut context);
    context
}

fn work(context: &mut Context) {
    context.user("Read them all.").expect("memory is written");
    for n in 0..5 {
        read_lines(context, &format!("{n}.rs"), 100);
    }
    context
        .assistant(&[MessagePart::text("All are read. ".repeat(200))])
        .expect("memory is written");
    context.user("And now?").expect("memory is written");
}

#[test]
fn every_question_is_accounted_whatever_came_of_it() {
    let used = TokenUsage { input: Tokens(900), output: Tokens(70), ..TokenUsage::default() };
    let says = |text: &str, stopped| Ok(Reply { text: text.into(), stopped, used: Some(used) });
    let failed = || Err(NoReply::Failed("no answer in time".into()));
    let good = || says("## Goal\nAll five are read.", StopReason::End);
    let long = "## Goal\nAll five are read.".repeat(9_000);
    let cases = [
        (vec![good()], (1, 0, 1)),
        (vec![failed()], (1, 1, 0)),
        (vec![Err(NoReply::NoModel)], (0, 0, 0)),
        (vec![Err(NoReply::TooLong), good()], (2, 1, 1)),
        (vec![Err(NoReply::TooLong), failed()], (2, 2, 0)),
        (vec![says(" ", StopReason::End)], (1, 1, 1)),
        (vec![says("## Goal\nAll f", StopReason::Length)], (1, 1, 1)),
        (vec![says("", StopReason::Call)], (1, 1, 1)),
        (vec![says("I cannot.", StopReason::Refused)], (1, 1, 1)),
        (vec![says("", StopReason::Other("safety".into()))], (1, 1, 1)),
        (vec![says("All is well.", StopReason::End)], (1, 1, 1)),
        (vec![says(&long, StopReason::End)], (1, 1, 1)),
    ];
    for (n, (replies, expect)) in cases.into_iter().enumerate() {
        let mut context = context();
        context.ask_for_compaction(None, Some(Tokens(0)));
        for reply in replies {
            ask(&mut context);
            context.answer(reply).expect("memory is written");
        }
        assert_eq!(context.step().expect("memory is written"), Next::Send, "{n}");
        let spent = context.report().summaries;
        assert_eq!((spent.asks, spent.failed, spent.used.input.0 / 900), expect, "{n}");
        assert_eq!(spent.used.output.0 / 70, expect.2, "{n}");
    }
    // A question that is replaced by another one was billed as well.
    let mut context = context();
    context.ask_for_compaction(None, Some(Tokens(0)));
    ask(&mut context);
    context.answer(Err(NoReply::TooLong)).expect("memory is written");
    assert_eq!(context.report().summaries.asks, 1);
    context.ask_for_compaction(None, Some(Tokens(0)));
    ask(&mut context);
    assert_eq!(context.report().summaries.asks, 1);
    context.answer(good()).expect("memory is written");
    assert_eq!(context.report().summaries.asks, 2);
}

#[test]
fn the_model_reads_what_was_said_and_not_what_is_left_of_it() {
    let mut context = context();
    let fact = "The port is 4711.";
    let long = format!("{}{fact}\n{}", lines("ports", 20), lines("more ports", 20));
    context.assistant(&[MessagePart::call("p", "Read", r#"{"path":"ports"}"#)]).expect("memory");
    context.tool(&[MessagePart::output("p", long)]).expect("memory is written");
    context.assistant(&[MessagePart::text("It is read. ".repeat(400))]).expect("memory is written");
    context.user("Well?").expect("memory is written");
    context.ask_for_compaction(None, Some(Tokens(0)));
    // The passes have run before the question.
    let asked = ask(&mut context);
    assert!(!context.unchanged_view().messages().contains(fact), "it is cleared");
    assert!(
        asked.prompt.contains(fact) && !asked.prompt.contains("[epitome k"),
        "{}",
        asked.prompt
    );
    let text = format!("## Goal\nHe found \"{fact}\" in ports, and \"no such thing\".");
    let reply = Reply { text, stopped: StopReason::End, used: None };
    context.answer(Ok(reply)).expect("memory is written");
    let text = summary(&context);
    assert!(text.ends_with(&format!("He found \"{fact}\" in ports, and [struck].")), "{text}");
    // What a summary replaces is not read again, even after an undo.
    context.assistant(&[MessagePart::call("q", "Read", r#"{"path":"q"}"#)]).expect("memory");
    context.tool(&[MessagePart::output("q", lines("q", 40))]).expect("memory is written");
    context.assistant(&[MessagePart::text("That, too.")]).expect("memory is written");
    context.user("Go on.").expect("memory is written");
    context.ask_for_compaction(None, Some(Tokens(0)));
    let prompt = ask(&mut context).prompt;
    assert_eq!(prompt.matches(fact).count(), 1, "in <earlier> alone: {prompt}");
    assert!(prompt.contains("line 39 of q") && !prompt.contains("of ports"), "{prompt}");
}

#[test]
fn what_was_shortened_at_birth_is_read_whole() {
    let recipe = TOLD.replace("live = {", "live = { birth = { repeats = true, cap = 200 },");
    let recipe = recipe.replace("sections =", "caps = { results = 20_000 }, sections =");
    let mut context = Context::in_memory(custom(&recipe));
    context.user("Read it.").expect("memory is written");
    read_lines(&mut context, "a.rs", 100);
    context.user("And now?").expect("memory is written");
    assert!(!context.unchanged_view().messages().contains("line 50 of"), "it is shortened");
    context.ask_for_compaction(None, Some(Tokens(0)));
    let prompt = ask(&mut context).prompt;
    assert!(prompt.contains(lines("a.rs", 100).trim()), "{prompt}");
}

#[test]
fn what_is_kept_of_a_turn_that_thinks_begins_with_reasoning() {
    // For twelve responses in one turn: which of them have reasoning, how many messages the recipe
    // keeps, and how many are kept, so that the first of them has reasoning. Nothing is kept if the
    // reasoning is too far back.
    let all = |_: usize| true;
    let first = |n: usize| n == 0;
    let third = |n: usize| n.is_multiple_of(3);
    type Thinks<'a> = &'a dyn Fn(usize) -> bool;
    let cases: [(Thinks<'_>, u64, u64); 5] =
        [(&all, 4, 4), (&third, 6, 6), (&third, 4, 6), (&third, 20, 18), (&first, 4, 0)];
    for (n, (thinks, messages, expect)) in cases.into_iter().enumerate() {
        let recipe = TOLD.replace("messages = 1", &format!("messages = {messages}"));
        let mut context = Context::in_memory(custom(&recipe));
        read_in_one_turn(&mut context, 12, &|_| ("a.rs".into(), 40), thinks);
        context.ask_for_compaction(None, Some(Tokens(0)));
        ask(&mut context);
        let text = "## Goal\nAll are read.".into();
        let reply = Reply { text, stopped: StopReason::End, used: None };
        context.answer(Ok(reply)).expect("memory is written");
        let view = context.unchanged_view();
        let kept = view.transcript().context().filter(|(_, entry)| entry.role != Role::System);
        assert_eq!(kept.count() as u64, expect, "{n}");
        assert_eq!(faults_while_thinking(&context), [], "{n}");
    }
}

#[test]
fn a_digest_in_a_turn_that_thinks_leaves_a_request_that_is_valid() {
    // Of the seven responses, only one has reasoning: one near the end, or the first.
    for (thinks, window) in [(5, 30_000), (4, 30_000), (0, 3_000)] {
        let setup = Setup::new(built_in("digest").expect("a recipe")).with_window(Tokens(window));
        let mut context = Context::in_memory(setup.with_counter(Estimate::new()));
        read_in_one_turn(&mut context, 7, &|n| (format!("{n}.rs"), 90), &|n| n == thinks);
        context.compact_to(None, Some(Tokens(0))).expect("memory is written");
        let view = context.unchanged_view();
        let mut sent = view.transcript().context().flat_map(|(_, entry)| &entry.blocks);
        assert!(sent.any(|block| is_digest(block, view.source())), "{thinks}");
        assert_eq!(faults_while_thinking(&context), [], "{thinks}");
    }
}

#[test]
fn a_digest_in_a_turn_that_hardly_thinks_reaches_its_target() {
    let recipe = built_in("epitome").expect("a recipe");
    let setup = Setup::new(recipe).with_window(Tokens(200_000)).with_counter(Estimate::new());
    let mut context = Context::in_memory(setup);
    read_in_one_turn(&mut context, 60, &|n| (format!("{n}.rs"), 40), &|n| n == 1);
    let before = context.usage().tokens;
    context.compact_to(None, Some(Tokens(4_000))).expect("memory is written");
    let after = context.usage().tokens;
    assert!(before > Tokens(12_000) && after <= Tokens(4_000), "{before} became {after}");
    assert_eq!(faults_while_thinking(&context), []);
}

/// Appends a turn with `responses` responses. Each reads the file that `file` returns for its
/// number (name and lines), and has reasoning if `thinks` returns true.
fn read_in_one_turn(
    context: &mut Context,
    responses: usize,
    file: &dyn Fn(usize) -> (String, usize),
    thinks: &dyn Fn(usize) -> bool,
) {
    context.user("Read them all.").expect("memory is written");
    for n in 0..responses {
        let id = n.to_string();
        let mut parts = Vec::new();
        if thinks(n) {
            let signed = r#"{"type":"thinking","thinking":"Well.","signature":"c2ln"}"#;
            parts.push(MessagePart::Wire(signed.into()));
        }
        let (path, length) = file(n);
        parts.push(MessagePart::call(id.clone(), "Read", format!(r#"{{"path":"{path}"}}"#)));
        context.assistant(&parts).expect("memory is written");
        context.tool(&[MessagePart::output(id, lines(&path, length))]).expect("memory is written");
    }
}

/// The violations that Anthropic would refuse in the next request, with thinking enabled.
fn faults_while_thinking(context: &Context) -> Vec<Violation> {
    let sent = context.unchanged_view().body("anthropic").expect("a wire").body;
    let mut body: serde_json::Value = serde_json::from_str(&sent).expect("JSON");
    body["model"] = "m".into();
    body["max_tokens"] = 2_000.into();
    body["thinking"] = serde_json::json!({ "type": "enabled", "budget_tokens": 1_024 });
    let body = body.to_string().into_bytes();
    let format = find_format("anthropic").expect("a format");
    let read = (format.read)(&body, &mut ());
    format.invariants.check(&read, &body)
}

/// A model that records each question, and fails without an answer.
struct Hears(ModelName, Mutex<String>);

impl Model for Hears {
    fn name(&self) -> &ModelName {
        &self.0
    }

    fn window(&self) -> Option<Tokens> {
        Some(Tokens(200_000))
    }

    fn send(
        &self,
        request: &Request<'_>,
        _: Option<Sink<'_>>,
        _: &Stop,
    ) -> Result<Response, Failure> {
        let body = request.outgoing.transcript.context().last().expect("a question").1;
        let Some(Block::Text(Text::Owned(prompt))) = body.blocks.first() else {
            panic!("{body:?}")
        };
        self.1.lock().expect("nobody panics").push_str(prompt);
        Err(Failure::Unreachable("it says nothing".into()))
    }
}

#[test]
fn a_stored_log_is_read_as_it_was_said_too() {
    let mut context = context();
    context.compact_to(None, Some(Tokens(0))).expect("memory is written");
    assert!(!context.unchanged_view().messages().contains("line 50 of"), "it is cleared");
    let source = context.log().to_vec();
    let format = find_format("epitome").expect("a format");
    let transcript = (format.read)(&source, &mut ());
    let session = Loaded { format, source, transcript, faults: Vec::new() };
    let model = Hears("compatible/nobody".parse().expect("a name"), Mutex::default());
    let recipe = Recipe::parse(TOLD).expect("a recipe");
    let asked = SummaryJob::prepare(&session, &recipe, &Estimate::new(), summary_writer(&model));
    let asked = asked.expect("a log has summaries").expect("there is something to summarise");
    asked.write_with(&model, &Stop::default()).expect_err("it says nothing");
    let question = model.1.into_inner().expect("nobody panics");
    assert!(question.contains("line 99 of 0.rs") && !question.contains("[epitome k"), "{question}");
}

/// A counter that counts a summary as this many tokens, and every other text as usual.
struct Biased(Tokens);

impl Counter for Biased {
    fn name(&self) -> &'static str {
        "biased"
    }

    fn count(&self, text: &str) -> Tokens {
        if text.starts_with("[Summary of what came before]") {
            self.0
        } else {
            Estimate::new().count(text)
        }
    }
}

fn good() -> Reply {
    Reply { text: "## Goal\nAll are read.".into(), stopped: StopReason::End, used: None }
}

fn reasons(events: &[Event]) -> Vec<&str> {
    let failed = events.iter().filter_map(|event| match event {
        Event::Failed { reason, .. } => Some(&**reason),
        _ => None,
    });
    failed.collect()
}

#[test]
fn a_summary_is_shorter_by_both_counts_than_what_it_stands_for() {
    let (short, long) = (Tokens(1), Tokens(1_000_000));
    for (ours, writers, expect) in
        [(short, short, 1), (short, long, 0), (long, short, 0), (long, long, 0)]
    {
        let recipe = Recipe::parse(TOLD).expect("a recipe");
        let writer = Writer { window: Tokens(200_000), counter: Arc::new(Biased(writers)) };
        let setup = Setup::new(recipe).with_counter(Biased(ours)).with_writer(writer);
        let mut context = Context::in_memory(setup);
        work(&mut context);
        // The passes run before the question.
        context.ask_for_compaction(None, Some(Tokens(0)));
        ask(&mut context);
        let before = (context.report().compactions, context.unchanged_view().messages());
        context.answer(Ok(good())).expect("memory is written");
        let longer = "the summary is longer than what it replaces";
        let is_refused_as_longer = reasons(&context.events()) == [longer];
        assert_eq!(context.report().compactions, before.0 + expect, "{ours} {writers}");
        assert_eq!(is_refused_as_longer, expect == 0, "{ours} {writers}");
        assert_eq!(context.unchanged_view().messages() == before.1, expect == 0);
        assert_eq!(context.report().summaries.failed, 1 - expect);
    }
}

#[test]
fn an_answer_about_what_is_there_no_more_is_not_taken() {
    let recipe =
        TOLD.replace("passes = [{ pass = \"results\", style = \"cleared\" }]", "passes = []");
    let mut context = Context::in_memory(custom(&recipe));
    work(&mut context);
    context.ask_for_compaction(None, Some(Tokens(0)));
    ask(&mut context);
    let body = "prompt is too long: 30000 tokens > 20000 maximum";
    let outcome = context.recover_from_refusal(Some(400), body).expect("memory is written");
    assert!(matches!(outcome, Recovery::Retry { .. }), "{outcome:?}");
    let before = context.unchanged_view().messages();
    let late = context.answer(Ok(good())).expect_err("it was asked about another context");
    assert_eq!(late.to_string(), "nothing was asked");
    assert_eq!(context.unchanged_view().messages(), before);
    let Next::Ask(next) = context.step().expect("memory is written") else { panic!("nothing") };
    let sent = &context.unchanged_view().transcript().context;
    assert_eq!(next.why, EventReason::Overflow);
    assert_eq!(next.items, sent[..next.items.len()], "the next question is about what is sent");
}

#[test]
fn who_has_no_model_is_told_so_once_and_goes_on() {
    let recipe = TOLD.replace("tokens = 100_000", "tokens = 3_000");
    let mut context = Context::in_memory(custom(&recipe));
    work(&mut context);
    let mut events = Vec::new();
    for n in 0..6 {
        context
            .assistant(&[MessagePart::text("More and more of it. ".repeat(600))])
            .expect("memory");
        context.user(&n.to_string()).expect("memory is written");
        context.view().expect("memory is written");
        events.extend(context.events());
    }
    assert_eq!(reasons(&events), [""; 0], "it is nobody's failure");
    let skipped = events.iter().filter_map(|event| match event {
        Event::Skipped { reason, .. } => Some(&**reason),
        _ => None,
    });
    let times = skipped.filter(|reason| *reason == "there is no model to ask").count();
    assert_eq!(times, 1, "{events:?}");
    assert_eq!(context.report().summaries.asks, 0);
}

#[test]
fn a_summary_alone_is_nothing_to_summarise_and_the_prompt_is_none_of_it() {
    let mut context = Context::in_memory(custom(TOLD));
    let prompt = Speaker { role: Role::System, prompt: true, ..Speaker::default() };
    context.push(&prompt, &[MessagePart::text("You are an agent.")]).expect("memory is written");
    work(&mut context);
    context.ask_for_compaction(None, Some(Tokens(0)));
    let Next::Ask(question) = context.step().expect("memory is written") else { panic!("nothing") };
    let sent = context.unchanged_view().transcript().context.clone();
    assert_eq!(question.items, sent[1..sent.len() - question.kept.len()]);
    assert!(!question.ask.prompt.contains("You are an agent."), "{}", question.ask.prompt);
    context.answer(Ok(good())).expect("memory is written");
    assert_eq!(context.step().expect("memory is written"), Next::Send);
    let tokens = context.usage().tokens;
    let outcome = context.compact_to(None, Some(Tokens(0))).expect("memory is written").to_string();
    let nothing = format!("No compaction needed: {tokens} tokens, nothing left to shorten.");
    assert_eq!(outcome, nothing);
}

#[test]
fn a_history_that_takes_too_many_questions_is_left() {
    let recipe = Recipe::parse(TOLD).expect("a recipe");
    let writer = Writer { window: Tokens(1_500), counter: Arc::new(Estimate::new()) };
    let setup = Setup::new(recipe).with_counter(Estimate::new()).with_writer(writer);
    let mut context = Context::in_memory(setup);
    for n in 0..200 {
        context.user(&format!("Word {n} of many. ").repeat(120)).expect("memory is written");
        context.assistant(&[MessagePart::text("Well.")]).expect("memory is written");
    }
    context.ask_for_compaction(None, Some(Tokens(0)));
    assert_eq!(context.step().expect("memory is written"), Next::Send);
    let reason = "the history is too long for a window of 1.5k tokens";
    assert_eq!(reasons(&context.events()), [reason]);
}

#[test]
fn a_faithful_model_hears_of_every_part_until_the_end() {
    for messages in [44, 52, 60, 68] {
        let recipe = TOLD.replace("max_tokens = 1_000", "max_tokens = 400");
        let writer = Writer { window: Tokens(2_400), counter: Arc::new(Estimate::new()) };
        let recipe = Recipe::parse(&recipe).expect("a recipe");
        let setup = Setup::new(recipe).with_counter(Estimate::new()).with_writer(writer);
        let mut context = Context::in_memory(setup);
        for n in 0..messages {
            // One message alone is longer than the window.
            let times = if n == 7 { 9_000 } else { 60 };
            let words = format!("fact{n}. {}", "Some words more. ".repeat(times));
            context.user(&words).expect("memory is written");
            context.assistant(&[MessagePart::text("Well.")]).expect("memory is written");
        }
        context.user("And now?").expect("memory is written");
        context.ask_for_compaction(None, Some(Tokens(0)));
        let (mut asked, mut last) = (0, String::new());
        while let Next::Ask(question) = context.step().expect("memory is written") {
            (asked, last) = (asked + 1, question.ask.prompt);
            let facts: Vec<&str> = last
                .split(|c: char| !c.is_ascii_alphanumeric())
                .filter(|word| word.starts_with("fact"))
                .collect();
            let text = format!("## Goal\n{} {}", facts.join(" "), "and so on ".repeat(110));
            let reply = Reply { text, stopped: StopReason::End, used: None };
            context.answer(Ok(reply)).expect("memory is written");
        }
        assert!(asked > 8, "{asked} questions");
        for n in 0..messages {
            let fact = format!("fact{n} ");
            assert!(last.contains(&fact), "{messages}: {fact} is lost: {last}");
        }
        assert_eq!(reasons(&context.events()), [""; 0]);
    }
}

#[test]
fn the_words_that_a_session_began_with_are_never_left_out() {
    let recipe = TOLD.replace("max_tokens = 1_000", "max_tokens = 1_000, user_tokens = 200");
    let mut context = Context::in_memory(custom(&recipe));
    context.user("It all began with a port.").expect("memory is written");
    for n in 0..9 {
        context.assistant(&[MessagePart::text("Well. ".repeat(90))]).expect("memory is written");
        context.user(&format!("Word {n} of many. ").repeat(20)).expect("memory is written");
    }
    context.assistant(&[MessagePart::text("Well. ".repeat(900))]).expect("memory is written");
    context.user("And now?").expect("memory is written");
    context.ask_for_compaction(None, Some(Tokens(0)));
    ask(&mut context);
    context.answer(Ok(good())).expect("memory is written");
    let text = summary(&context);
    let first = "<user-message n=\"1 of 10\">\nIt all began with a port.\n</user-message>";
    assert!(text.contains(first) && !text.contains("Word 3 of many."), "{text}");
    assert!(text.contains("Word 8 of many."), "the newest are kept: {text}");
}

#[test]
fn messages_say_that_a_summary_was_understood_where_the_user_speaks_behind_it() {
    let roles = |context: &Context| {
        let body =
            format!(r#"{{"messages":{}}}"#, context.unchanged_view().messages()).into_bytes();
        let wire = APIS.iter().find(|wire| wire.name == "anthropic").expect("a wire");
        let read = (wire.format.read)(&body, &mut ());
        assert_eq!(wire.format.invariants.check(&read, &body), []);
        let body_text = String::from_utf8(body).expect("text");
        let roles = body_text.split(r#"{"role":""#).skip(1);
        let roles = roles.map(|role| if role.starts_with("user") { 'u' } else { 'a' });
        (roles.collect::<String>(), body_text.matches("Understood. I go on").count())
    };
    for (role, keep, before, after) in [
        (SummaryRole::User, true, ("u", 0), ("ua", 0)),
        (SummaryRole::System, true, ("u", 0), ("ua", 0)),
        (SummaryRole::Acknowledged, true, ("uau", 1), ("uaua", 1)),
        // The model's reply follows the summary, so no acknowledgement is added.
        (SummaryRole::Acknowledged, false, ("u", 0), ("ua", 0)),
    ] {
        let recipe = if keep { TOLD.to_owned() } else { TOLD.replace("messages = 1", "") };
        let mut recipe = Recipe::parse(&recipe).expect("a recipe");
        recipe.stages.live.summary.iter_mut().for_each(|rule| rule.role = role);
        let mut context = Context::in_memory(Setup::new(recipe).with_counter(Estimate::new()));
        work(&mut context);
        context.ask_for_compaction(None, Some(Tokens(0)));
        ask(&mut context);
        context.answer(Ok(good())).expect("memory is written");
        context.view().expect("memory is written");
        let owned = |(roles, body_text): (&str, usize)| (roles.to_owned(), body_text);
        assert_eq!(roles(&context), owned(before), "{role:?} {keep}");
        context.assistant(&[MessagePart::text("The first.")]).expect("memory is written");
        assert_eq!(roles(&context), owned(after), "{role:?} {keep}");
    }
}
