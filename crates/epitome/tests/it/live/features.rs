//! One test for each feature.

use epitome::live::{self, Context, MessagePart, Next, Recovery, Setup};
use epitome::settings::Values;
use epitome_formats::find_format;
use epitome_model::{Block, Ref, Role, Stub, Tokens};
use epitome_passes::{
    Event, EventReason, NoReply, Reply, StageTiming, StopReason, TrimRule, built_in,
};
use epitome_tokens::Estimate;
use serde_json::{Value, json};

use super::*;

#[test]
fn s06_leaves_the_last_three_results() {
    let mut context = talk("s06", 200_000, 5);
    context.view().expect("memory is written");
    let results = results(&context);
    assert_eq!(results[..2], ["[Previous: used Read]", "[Previous: used Read]"]);
    assert_eq!(results[2..], [lines("2.rs", 100), lines("3.rs", 100), lines("4.rs", 100)]);
    let sliding = built_in("s06").expect("a recipe").live.when;
    assert_eq!(sliding, StageTiming::Request);
}

#[test]
fn the_reasoning_that_an_open_turn_began_with_stays_until_the_turn_is_over() {
    let mut context = Context::in_memory(with_stored_passes("epitome"));
    let say = |context: &mut Context, message: Value| {
        context.push_json("anthropic", &message.to_string()).expect("a message");
    };
    let kinds = |context: &Context| -> Vec<String> {
        let body = context.unchanged_view().body("anthropic").expect("a wire").body;
        let body: Value = serde_json::from_str(&body).expect("JSON");
        let messages = body["messages"].as_array().expect("a list").clone();
        let replies = messages.into_iter().filter(|it| it["role"] == "assistant");
        replies.map(|it| it["content"][0]["type"].as_str().expect("a type").to_owned()).collect()
    };
    say(&mut context, json!({ "role": "user", "content": "Read them all." }));
    for n in 0..9 {
        let thinking = json!({ "type": "thinking", "thinking": "Well.", "signature": "c2ln" });
        let call = json!({ "type": "tool_use", "id": n.to_string(), "name": "Read",
            "input": { "path": format!("{n}.rs") } });
        say(&mut context, json!({ "role": "assistant", "content": [thinking, call] }));
        let result = json!({ "type": "tool_result", "tool_use_id": n.to_string(),
            "content": lines("a.rs", 40) });
        say(&mut context, json!({ "role": "user", "content": [result] }));
    }
    context.compact_to(None, Some(Tokens(0))).expect("memory is written");
    let open = kinds(&context);
    assert_eq!(open[..3], ["thinking", "tool_use", "tool_use"], "{open:?}");
    say(&mut context, json!({ "role": "assistant", "content": "All are read." }));
    say(&mut context, json!({ "role": "user", "content": "Thank you." }));
    context.compact_to(None, Some(Tokens(0))).expect("memory is written");
    assert_eq!(kinds(&context)[..3], ["tool_use", "tool_use", "tool_use"]);
}

#[test]
fn what_somebody_wants_otherwise_holds_live() {
    let talk = |settings: &str| {
        let settings = format!("live.trigger.tokens = 2_000\n{settings}");
        let values: Values = toml::from_str(&settings).expect("settings");
        let recipe = built_in("clear-tool-uses").expect("a recipe");
        let recipe = values.apply_to(recipe, false);
        let mut context = Context::in_memory(Setup::new(recipe).with_counter(Estimate::new()));
        context.user("Read them all.").expect("memory is written");
        let content = json!({ "path": "out.rs", "content": lines("out.rs", 20) }).to_string();
        context.assistant(&[MessagePart::call("w", "Write", content)]).expect("memory is written");
        context.tool(&[MessagePart::output("w", "written")]).expect("memory is written");
        for n in 0..5 {
            read(&mut context, n, &format!("{n}.rs"), &lines(&format!("{n}.rs"), 100));
        }
        context.view().expect("memory is written");
        context
    };
    let cleared = |context: &Context| {
        let stubs = results(context).iter().filter(|text| Stub::parse(text).is_some()).count();
        let sent = context.unchanged_view().messages();
        (stubs, sent.contains("[cleared to save context]"))
    };
    for (settings, expect) in [
        ("", (2, false)),
        ("compaction.clear_at_least = 500", (2, false)),
        ("compaction.clear_at_least = 50_000", (0, false)),
        ("compaction.exempt_tools = ['read']", (0, false)),
        ("compaction.clear_tool_inputs = true", (2, true)),
        ("compaction.clear_tool_inputs = ['Bash']", (2, false)),
        ("compaction.clear_tool_inputs = false", (2, false)),
        ("live.auto = false", (0, false)),
    ] {
        assert_eq!(cleared(&talk(settings)), expect, "{settings}");
    }
    // A compaction that is requested is not held to the minimum.
    let mut context = talk("compaction.clear_at_least = 50_000");
    context.compact_to(None, Some(Tokens(0))).expect("memory is written");
    assert_eq!(cleared(&context), (2, false));
}

#[test]
fn ion_cuts_large_results_and_then_removes_old_ones() {
    let mut context = Context::in_memory(setup("ion", 60_000));
    context.user("Read them all.").expect("memory is written");
    for n in 0..40 {
        read(&mut context, n, "a.rs", &lines("a.rs", 100));
    }
    read(&mut context, 40, "a.rs", &lines("a.rs", 400));
    context.view().expect("memory is written");
    let results = results(&context);
    assert_eq!(
        results[0],
        "[Output removed: 100 lines, starting with: line 0 of a.rs says something...]"
    );
    assert!(results[40].contains("\n\n... [351 lines truncated] ...\n\n"), "{}", results[40]);
    let events = context.events();
    let ends = matches!(&events[..], [.., Event::Finished { why: EventReason::Trigger, .. }])
        || matches!(&events[..], [.., Event::Finished { .. }, Event::Skipped { .. }]);
    assert!(ends, "{events:?}");
}

#[test]
fn lines_that_stand_above_are_not_sent_again_and_can_be_had() {
    let mut context = talk("epitome", 200_000, 1);
    let text = format!("{}}}\nThat was the end.\n", lines("0.rs", 100));
    read(&mut context, 1, "0.rs", &text);
    context.view().expect("memory is written");
    let shown = results(&context).pop().expect("a result");
    let stub = Stub::parse(&shown).expect("a stub");
    assert!(
        shown.ends_with("\n[100 lines as above: Read 0.rs]\n}\nThat was the end.\n"),
        "{shown}"
    );
    assert_eq!(context.recall(stub.reference()).as_deref(), Some(&*text));
    assert_eq!(context.recall(&Ref::from_bytes(b"something else")), None);
    // The result was shortened before it was sent, so there is nothing to undo.
    assert!(!context.undo().expect("memory is written"));
}

#[test]
fn a_compaction_is_taken_back() {
    let mut context = talk("clear-tool-uses", 200_000, 5);
    let before = results(&context);
    context.compact_to(None, Some(Tokens(0))).expect("memory is written");
    let stub = Stub::parse(&results(&context)[0]).expect("a stub");
    assert_eq!(context.recall(stub.reference()).as_deref(), Some(&*before[0]));
    assert!(context.undo().expect("memory is written"));
    assert_eq!(results(&context), before);
}

#[test]
fn a_summary_is_asked_for_and_stands_for_what_is_old() {
    let mut context = talk("pi", 50_000, 40);
    let before = context.usage().tokens;
    let Next::Ask(question) = context.step().expect("memory is written") else {
        panic!("nothing is asked at {before}")
    };
    assert_eq!(question.why, EventReason::Hard);
    assert_eq!(question.ask.max_tokens, 12_500);
    assert!(question.ask.prompt.contains("<user>Read them all.</user>"), "{}", question.ask.prompt);
    // A second call returns the same question.
    assert_eq!(context.step().expect("memory is written"), Next::Ask(question.clone()));
    let answer = reply(&rule("pi"), "Forty files were to be read.");
    context.answer(Ok(answer)).expect("memory is written");
    assert_eq!(context.step().expect("memory is written"), Next::Send);
    let view = describe(&context.unchanged_view());
    assert!(view[0].contains("Forty files were to be read."), "{}", view[0]);
    assert!(view[0].contains("Read them all."), "{}", view[0]);
    assert!(view[0].contains("0.rs: read 1"), "{}", view[0]);
    assert_eq!(view.len(), 1 + question.kept.len());
    assert!(context.usage().tokens < Tokens(25_000));
    assert!(context.undo().expect("memory is written"));
    assert_eq!(context.usage().tokens, before);
}

#[test]
fn a_summary_that_is_no_use_leaves_everything() {
    let long = lines("a summary", 20_000);
    let ended = |text: &str, stopped| Reply { text: text.into(), stopped, used: None };
    let whole = |body: &str| reply(&rule("pi"), body);
    let call = Reply { stopped: StopReason::Call, ..whole("All is well.") };
    let other = Reply { stopped: StopReason::Other("safety".into()), ..whole("All is well.") };
    let cut = Reply { stopped: StopReason::Length, ..whole("All is well.") };
    let lacks = "the summary lacks sections: Goal, Constraints & Preferences, Key Decisions, \
                 Next Steps, Critical Context";
    for (answer, reason) in [
        (Ok(ended("  \n", StopReason::End)), "the summary is empty"),
        (Ok(whole("None.")), "the summary is empty"),
        (Ok(whole(&long)), "the summary is longer than what it replaces"),
        (Ok(cut), "the summary was cut off by its length"),
        (Ok(call), "the model called a tool"),
        (Ok(other), "the model stopped: safety"),
        (Ok(ended("## Progress\nIt went well.", StopReason::End)), lacks),
        (Err(NoReply::Failed("no answer in time".to_owned())), "no answer in time"),
    ] {
        let mut context = talk("pi", 200_000, 40);
        let before = context.usage().tokens;
        context.ask_for_compaction(None, Some(Tokens(0)));
        let Next::Ask(_) = context.step().expect("memory is written") else {
            panic!("no question")
        };
        let log = context.log().len();
        context.answer(answer.clone()).expect("memory is written");
        assert_eq!(context.step().expect("memory is written"), Next::Send);
        assert_eq!(context.log().len(), log, "nothing is written");
        let failed =
            Event::Failed { why: EventReason::Manual, reason: reason.into(), over_target: None };
        let events = context.events();
        assert!(events.contains(&failed), "{reason}: {events:?}");
        // If the summary does not fit the window, a digest replaces it, with the reason.
        let mut context = talk("pi", 50_000, 40);
        let Next::Ask(_) = context.step().expect("memory is written") else {
            panic!("no question")
        };
        let log = context.log().len();
        context.answer(answer).expect("memory is written");
        assert_eq!(context.log().len(), log, "nothing is written");
        assert_eq!(context.step().expect("memory is written"), Next::Send);
        let events = context.events();
        let digest = events.iter().any(|event| match event {
            Event::Finished {
                why: EventReason::Hard, by_stage, no_summary: Some(because), ..
            } => by_stage.contains_key("digest") && because == reason,
            _ => false,
        });
        assert!(digest, "{reason}: {events:?}");
        assert!(!events.iter().any(|it| matches!(it, Event::Failed { .. })), "{events:?}");
        assert!(context.usage().tokens <= Tokens(50_000 - 16_384), "it fits");
        assert!(context.undo().expect("memory is written"));
        assert_eq!(context.usage().tokens, before, "everything comes back");
    }
}

#[test]
fn an_overflow_is_tried_once_more_with_less() {
    let mut context = talk("epitome", 200_000, 20);
    let before = context.usage().tokens;
    let body = "prompt is too long: 30000 tokens > 15000 maximum";
    let Recovery::Retry { before: was, after } =
        context.recover_from_refusal(Some(400), body).expect("memory")
    else {
        panic!("it can be made to fit")
    };
    assert_eq!(was, before);
    assert!(after.0 <= before.0 / 2 * 9 / 10, "{after} of {before}");
    let again = context.recover_from_refusal(Some(400), body).expect("memory is written");
    assert!(matches!(again, Recovery::Final { .. }), "{again:?}");
    // A response resets the count of refusals.
    context.assistant(&[MessagePart::text("Done.")]).expect("memory is written");
    assert!(matches!(context.recover_from_refusal(Some(429), body), Ok(Recovery::NotAnOverflow)));
}

#[test]
fn a_refusal_without_a_word_is_an_overflow_only_where_the_window_fills() {
    let mut small = talk("epitome", 200_000, 2);
    assert_eq!(small.recover_from_refusal(Some(400), "").expect("memory"), Recovery::NotAnOverflow);
    let before = describe(&small.unchanged_view());
    assert_eq!(describe(&small.view().expect("memory")), before, "nothing was done");
    let tokens = talk("epitome", 200_000, 20).usage().tokens.0;
    let mut full = talk("epitome", tokens * 3 / 2, 20);
    let told_so = full.recover_from_refusal(Some(400), "").expect("memory");
    assert!(matches!(told_so, Recovery::Retry { .. }), "{told_so:?}");
}

#[test]
fn what_cannot_fit_is_named_and_left() {
    let mut context = Context::in_memory(setup("epitome", 200_000));
    context.user(&lines("a long request", 4_000)).expect("memory is written");
    let before = describe(&context.unchanged_view());
    let told_so = context.recover_from_refusal(Some(413), "").expect("memory is written");
    let Recovery::Final { because } = told_so else { panic!("{told_so:?}") };
    assert!(because[0].starts_with("words of the user: "), "{because:?}");
    assert_eq!(describe(&context.unchanged_view()), before, "nothing overlay");
}

#[test]
fn what_a_provider_counted_is_the_anchor_until_something_changes_before_it() {
    let mut context = talk("clear-tool-uses", 200_000, 5);
    let counted = context.usage();
    assert!(!counted.billed && counted.error.is_none());
    context.report_billed_tokens(Tokens(counted.tokens.0 * 2));
    let billed = context.usage();
    assert!(billed.billed && billed.tokens == Tokens(counted.tokens.0 * 2));
    assert_eq!(billed.error, Some(-500));
    context.user("Go on.").expect("memory is written");
    assert!(context.usage().tokens > billed.tokens && context.usage().billed);
    context.compact_to(None, Some(Tokens(0))).expect("memory is written");
    let after = context.usage();
    assert!(!after.billed, "an edit before it ends it");
    assert!(after.tokens > context.report().sent, "but the count is scaled as it was billed");
}

#[test]
fn a_log_goes_on_where_it_was_left() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("live/talk.jsonl");
    let mut context = live::create(&path, setup("s06", 200_000)).expect("a log");
    context.user("Read them all.").expect("a disk");
    for n in 0..5 {
        read(&mut context, n, "a.rs", &lines("a.rs", 50));
    }
    let sent = describe(&context.view().expect("a disk"));
    drop(context);
    assert!(live::create(&path, setup("s06", 200_000)).is_err(), "a log is never replaced");
    // An incomplete last line, as a killed process leaves it.
    let mut bytes = std::fs::read(&path).expect("a log");
    bytes.extend_from_slice(b"{\"type\":\"entry\",\"id\":\"99\",\"role\":\"us");
    std::fs::write(&path, &bytes).expect("a disk");
    let mut context = live::open(&path, setup("s06", 200_000)).expect("a log");
    assert_eq!(describe(&context.unchanged_view()), sent);
    context.user("And now?").expect("a disk");
    let view = describe(&context.view().expect("a disk"));
    assert_eq!(view.len(), sent.len() + 1);
    drop(context);
    let context = live::open(&path, setup("s06", 200_000)).expect("a log");
    assert_eq!(describe(&context.unchanged_view()), view);
}

#[test]
fn messages_that_were_cut_out_come_back_by_their_reference_and_by_undo() {
    let mut recipe = built_in("s08").expect("a built-in recipe");
    recipe.stages.live.trim = Some(TrimRule { over: 10, keep: 10, head: 3 });
    let mut context = Context::in_memory(Setup::new(recipe).with_counter(Estimate::new()));
    context.user("Read them all.").expect("memory is written");
    for n in 0..8 {
        if n == 2 {
            context.user("And mind the tests.").expect("memory is written");
        }
        read(&mut context, n, &format!("{n}.rs"), &format!("fn number_{n}() {{}}"));
        context.view().expect("memory is written");
    }
    let cut = |context: &Context| {
        let sent = context.unchanged_view();
        let entries = sent.transcript().context().map(|(_, entry)| entry);
        let system = entries.filter(|entry| entry.role == Role::System);
        let texts = system.flat_map(|entry| &entry.blocks).filter_map(|block| match block {
            Block::Text(text) => Stub::parse(&text.read(sent.source())),
            _ => None,
        });
        texts.collect::<Vec<_>>()
    };
    let stubs = cut(&context);
    assert_eq!(stubs.len(), 1, "one stub stands for all that went");
    assert!(stubs[0].to_string().ends_with(": 8 messages left out]"), "{}", stubs[0]);
    let back = context.recall(stubs[0].reference()).expect("it stands in the log");
    let back: Vec<Value> = serde_json::from_str(&back).expect("it is a list of messages");
    assert_eq!(back.len(), 8);
    for n in 1..5 {
        assert!(back.iter().any(|it| it.to_string().contains(&format!("number_{n}()"))), "{n}");
    }
    // Parsed again, the log gives the same context.
    let format = find_format("epitome").expect("a format");
    let again = (format.read)(&context.log().to_vec(), &mut ());
    assert_eq!(again.context, context.unchanged_view().transcript().context);
    while context.undo().expect("memory is written") {}
    assert_eq!(cut(&context), []);
    let results = results(&context);
    assert_eq!(results, (0..8).map(|n| format!("fn number_{n}() {{}}")).collect::<Vec<_>>());
}

#[test]
fn results_that_the_model_has_not_seen_outlive_a_summary() {
    for name in ["s06", "s08", "jcli", "pi"] {
        let mut recipe = built_in(name).expect("a built-in recipe");
        // Fewer tokens than a single result.
        recipe.keep.tokens = recipe.keep.tokens.map(|_| 100);
        recipe.stages.live.summary.get_or_insert_default();
        let rule = recipe.stages.live.summary.clone().expect("it was just set");
        let mut context = Context::in_memory(Setup::new(recipe).with_counter(Estimate::new()));
        context.user("Read them all.").expect("memory is written");
        for n in 0..9 {
            read(&mut context, n, &format!("{n}.rs"), &lines(&format!("{n}.rs"), 100));
        }
        context.ask_for_compaction(None, Some(Tokens(0)));
        drive(&mut context, Model::Tells, &rule);
        let left = results(&context);
        let stands =
            context.unchanged_view().transcript().context().any(|(_, entry)| {
                entry.blocks.iter().any(|block| matches!(block, Block::Summary(_)))
            });
        assert!(stands, "{name}: there is a summary");
        assert_eq!(left.last(), Some(&lines("8.rs", 100)), "{name}");
        let sent = context.unchanged_view();
        let invariants = find_format("epitome").expect("a format").invariants;
        assert_eq!(invariants.check(sent.transcript(), sent.source()), [], "{name}");
    }
}

#[test]
fn what_is_not_sent_as_it_was_said_can_be_had_whether_the_view_names_it_or_not() {
    let mut context = talk("s06", 200_000, 4);
    context.view().expect("memory is written");
    let references = context.references();
    assert_eq!(references.iter().map(|(call, _)| *call).collect::<Vec<_>>(), ["c0"]);
    assert_eq!(context.recall(&references[0].1), Some(lines("0.rs", 100)));
}

#[test]
fn a_picture_that_went_comes_back_as_an_address_that_holds_it() {
    let mut context = Context::in_memory(with_stored_passes("epitome"));
    let data = "iVBOR".repeat(400);
    let source = json!({ "type": "base64", "media_type": "image/png", "data": data });
    let picture = json!({ "type": "image", "source": source });
    let words = json!({ "type": "text", "text": "Look at it." });
    let message = json!({ "role": "user", "content": [words, picture] }).to_string();
    context.push_json("anthropic", &message).expect("memory is written");
    for n in 0..8 {
        read(&mut context, n, &format!("{n}.rs"), &lines("a file", 900));
        context.assistant(&[MessagePart::text("It is read.")]).expect("memory is written");
        context.user("Go on.").expect("memory is written");
    }
    context.compact(None).expect("memory is written");
    let view = context.unchanged_view().messages();
    let stub = view.split('"').find(|it| it.contains(": image/png")).expect("a stub");
    let reference = Stub::parse(stub).expect("a stub").reference().clone();
    assert_eq!(context.recall(&reference), Some(format!("data:image/png;base64,{data}")));
}

#[test]
fn a_file_that_is_read_has_a_cap_of_its_own_when_it_arrives() {
    let recipe = "name = 'x'\nabout = ''\n[stages.live]\npasses = []\n\
                  ingest = { cap = 50, reads = 9_000 }\n[stages]";
    let mut context = Context::in_memory(custom(recipe));
    context.user("Read it.").expect("memory is written");
    let text = lines("a.rs", 100);
    read(&mut context, 0, "a.rs", &text);
    let arguments = r#"{"command":"cat a.rs"}"#;
    context.assistant(&[MessagePart::call("b", "Bash", arguments)]).expect("memory is written");
    context.tool(&[MessagePart::output("b", lines("b.rs", 100))]).expect("memory is written");
    let results = results(&context);
    assert_eq!(results[0], text);
    assert!(results[1].len() < text.len() / 4, "{}", results[1]);
}
