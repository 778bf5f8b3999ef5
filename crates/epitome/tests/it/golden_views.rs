//! What each recipe sends for one history. The history contains results just around the limits of
//! the programs that the recipes imitate.

use std::fmt::Write as _;

use epitome::live::{Context, MessagePart, Next, Setup};
use epitome_model::{Block, Role, Tokens};
use epitome_passes::{Recipe, Reply, StopReason, built_in};
use epitome_tokens::Estimate;
use insta::assert_snapshot;

/// A result with `bytes` bytes. No two of its lines are equal.
fn text(name: &str, bytes: usize) -> String {
    let mut text = String::new();
    let mut line = 1;
    while text.len() < bytes {
        writeln!(text, "{name} {line}: what line {line} of it has to say").expect("memory");
        line += 1;
    }
    text.truncate(bytes);
    text
}

fn call(context: &mut Context, id: &str, tool: &str, given: &str, result: &MessagePart<'_>) {
    context.assistant(&[MessagePart::call(id, tool, given)]).expect("memory is written");
    context.tool(std::slice::from_ref(result)).expect("memory is written");
}

fn read(context: &mut Context, n: usize, bytes: usize) {
    let (id, name) = (format!("c{n}"), format!("{n}.rs"));
    let given = format!(r#"{{"path":"{name}"}}"#);
    let result = MessagePart::output(id.clone(), text(&name, bytes));
    call(context, &id, "Read", &given, &result);
}

/// Results just below and above each limit of these programs, exempt tools, an error, a very long
/// result, and at the end three results that no response follows.
fn history(setup: Setup) -> Context {
    let mut context = Context::in_memory(setup);
    context.user("Read them all, and say what is in them.").expect("memory is written");
    for (n, bytes) in [(1, 100), (2, 101), (3, 800), (4, 801)] {
        read(&mut context, n, bytes);
    }
    for (id, tool) in [("skill", "LoadSkill"), ("list", "TodoWrite"), ("question", "Ask")] {
        call(&mut context, id, tool, "{}", &MessagePart::output(id, text(id, 900)));
    }
    let failed = format!("{}error: no such file: x.rs\n{}", text("log", 700), text("log", 300));
    call(
        &mut context,
        "failed",
        "Bash",
        r#"{"command":"make"}"#,
        &MessagePart::failure("failed", failed),
    );
    for (n, bytes) in [(5, 30_000), (6, 30_040), (7, 9_000)] {
        read(&mut context, n, bytes);
    }
    let given = serde_json::json!({ "path": "out.rs", "content": text("new", 900) }).to_string();
    call(&mut context, "write", "Write", &given, &MessagePart::output("write", "written"));
    for n in 8..16 {
        read(&mut context, n, 2_000);
    }
    context.assistant(&[MessagePart::text("Sixteen are read. Three are left.")]).expect("memory");
    context.user("Go on.").expect("memory is written");
    let calls: Vec<MessagePart<'_>> = (16..19)
        .map(|n| MessagePart::call(format!("c{n}"), "Read", format!(r#"{{"path":"{n}.rs"}}"#)))
        .collect();
    context.assistant(&calls).expect("memory is written");
    let results: Vec<MessagePart<'_>> = (16..19)
        .map(|n| MessagePart::output(format!("c{n}"), text(&format!("{n}.rs"), 2_000)))
        .collect();
    context.tool(&results).expect("memory is written");
    context
}

/// The context that is sent, a line per block; of long texts the beginning and the size.
fn view(context: &Context) -> String {
    let sent = context.unchanged_view();
    let source = sent.source();
    let mut shown = String::new();
    for (_, entry) in sent.transcript().context() {
        for block in &entry.blocks {
            let (what, words) = match block {
                Block::Text(words) => ("says".to_owned(), words.read(source).into_owned()),
                Block::Summary(words) => ("summary".to_owned(), words.read(source).into_owned()),
                Block::Call(call) => {
                    let given = String::from_utf8_lossy(&source.at(call.arguments)).into_owned();
                    (format!("{} {}", call.id, call.name), given)
                }
                Block::Output(output) => (format!("{} =", output.call), output.text(source)),
                _ => ("else".to_owned(), String::new()),
            };
            let role = match entry.role {
                Role::User => "user",
                Role::Assistant => "assistant",
                Role::Tool => "tool",
                Role::System => "system",
            };
            writeln!(shown, "{role:9} {what} {}", short(&words)).expect("memory");
        }
    }
    shown
}

/// A text on one line, as a whole if it is short or was left by a recipe.
fn short(text: &str) -> String {
    let line = text.replace('\n', "↵");
    let chars = line.chars().count();
    if chars <= 100 || text.starts_with("[epitome k") && chars <= 400 {
        return line;
    }
    let head: String = line.chars().take(40).collect();
    let tail: String = line.chars().skip(chars - 20).collect();
    let left_out = text.lines().find(|line| line.starts_with("... [")).unwrap_or_default();
    format!("{head}⋯{left_out}⋯{tail} ({chars} chars)")
}

/// The numbers in a recipe that say when it compacts, and how much.
fn numbers(recipe: &Recipe) -> String {
    let json = |value: serde_json::Value| match value {
        serde_json::Value::Object(object) => {
            let set = object.into_iter().filter(|(_, it)| !it.is_null() && *it != false);
            serde_json::Value::Object(set.collect()).to_string()
        }
        other => other.to_string(),
    };
    let value = |value: serde_json::Result<serde_json::Value>| json(value.expect("it is data"));
    let mut description = format!("keep {}", value(serde_json::to_value(recipe.keep)));
    let live = &recipe.live;
    write!(description, "; when {}", value(serde_json::to_value(live.when))).expect("memory");
    write!(description, "; trigger {}", value(serde_json::to_value(recipe.trigger.live)))
        .expect("memory");
    write!(description, "; target {}", value(serde_json::to_value(recipe.target.live)))
        .expect("memory");
    write!(description, "; reserve {}", live.reserve).expect("memory");
    if let Some(rule) = &recipe.stages.live.summary {
        let over = value(serde_json::to_value(rule.over));
        write!(description, "; summary over {over}, {} tokens", rule.max_tokens).expect("memory");
    }
    description
}

/// What a recipe sends for the history in a window of `window` tokens. With `asked`, a compaction
/// is requested, because none would be due.
fn golden(name: &str, window: u64, asked: bool) -> String {
    let recipe = built_in(name).expect("a built-in recipe");
    let setup = Setup::new(recipe.clone()).with_counter(Estimate::new());
    let mut context = history(setup.with_window(Tokens(window)));
    let before = context.usage();
    if asked {
        context.compact_to(None, Some(Tokens(0))).expect("memory is written");
    }
    while let Next::Ask(question) = context.step().expect("memory is written") {
        let rule = recipe.stages.live.summary.as_ref().expect("who asks has a rule");
        assert!(question.ask.max_tokens <= rule.max_tokens);
        let sections = rule.sections.all();
        let text = sections.iter().map(|it| format!("## {}\nFiles were read.\n\n", it.title));
        let reply = Reply { text: text.collect(), stopped: StopReason::End, used: None };
        context.answer(Ok(reply)).expect("memory is written");
    }
    let (shown, after) = (view(&context), context.usage());
    let events: Vec<String> = context.events().iter().map(|it| format!("{it:?}")).collect();
    format!(
        "{}\n{} of {} tokens before, {} after\n\n{shown}\n{}\n",
        numbers(&recipe),
        before.tokens,
        before.usable.expect("there is a window"),
        after.tokens,
        events.join("\n"),
    )
}

#[test]
fn s06() {
    assert_snapshot!(golden("s06", 200_000, false));
}

#[test]
fn s08() {
    assert_snapshot!(golden("s08", 200_000, false));
}

#[test]
fn s08_previews_the_largest_of_a_batch_and_then_of_all_if_that_is_not_enough() {
    let recipe = built_in("s08").expect("a built-in recipe");
    let mut context = Context::in_memory(Setup::new(recipe).with_counter(Estimate::new()));
    context.user("Read them.").expect("memory is written");
    let sizes = [90_000, 30_000, 80_000, 40_000, 100];
    let ids: Vec<String> = (1..=sizes.len()).map(|n| format!("c{n}")).collect();
    let given = |n: usize| format!(r#"{{"path":"{n}.rs"}}"#);
    let calls: Vec<MessagePart<'_>> = ids
        .iter()
        .enumerate()
        .map(|(n, id)| MessagePart::call(&**id, "Read", given(n + 1)))
        .collect();
    context.assistant(&calls).expect("memory is written");
    let results: Vec<MessagePart<'_>> = ids
        .iter()
        .zip(sizes)
        .enumerate()
        .map(|(n, (id, size))| MessagePart::output(&**id, text(&format!("{}.rs", n + 1), size)))
        .collect();
    context.tool(&results).expect("memory is written");
    // 240,100 characters in one batch: only the largest is shortened to its beginning, but the
    // others still have more than 50,000.
    context.view().expect("memory is written");
    let first = view(&context);
    // Previews are removed as well, once they are answered and older than the last three results.
    for n in 6..10 {
        read(&mut context, n, 12_000);
    }
    context.view().expect("memory is written");
    assert_snapshot!(format!("{first}\n{}", view(&context)), @r#"
    user      says Read them.
    assistant c1 Read {"path":"1.rs"}
    assistant c2 Read {"path":"2.rs"}
    assistant c3 Read {"path":"3.rs"}
    assistant c4 Read {"path":"4.rs"}
    assistant c5 Read {"path":"5.rs"}
    tool      c1 = [epitome k7113b48: shortened, 2145 lines⋯⋯what line 52 of it h (2042 chars)
    tool      c2 = 2.rs 1: what line 1 of it has to say↵2.r⋯⋯737 of it has to say (30000 chars)
    tool      c3 = [epitome ka69c9af: 1912 lines]↵3.rs 1: w⋯⋯f it has to say↵3.rs (1031 chars)
    tool      c4 = [epitome k42ae5b9: 981 lines]↵4.rs 1: wh⋯⋯f it has to say↵4.rs (1030 chars)
    tool      c5 = 5.rs 1: what line 1 of it has to say↵5.rs 2: what line 2 of it has to say↵5.rs 3: what line 3 of it 

    user      says Read them.
    assistant c1 Read {"path":"1.rs"}
    assistant c2 Read {"path":"2.rs"}
    assistant c3 Read {"path":"3.rs"}
    assistant c4 Read {"path":"4.rs"}
    assistant c5 Read {"path":"5.rs"}
    tool      c1 = [epitome k7113b48: 2145 lines]
    tool      c2 = [epitome k4a15ffd: 737 lines]
    tool      c3 = [epitome ka69c9af: 1912 lines]
    tool      c4 = [epitome k42ae5b9: 981 lines]
    tool      c5 = 5.rs 1: what line 1 of it has to say↵5.rs 2: what line 2 of it has to say↵5.rs 3: what line 3 of it 
    assistant c6 Read {"path":"6.rs"}
    tool      c6 = [epitome kbe368a5: 298 lines]↵6.rs 1: wh⋯⋯f it has to say↵6.rs (1030 chars)
    assistant c7 Read {"path":"7.rs"}
    tool      c7 = [epitome k0d9293f: 298 lines]↵7.rs 1: wh⋯⋯f it has to say↵7.rs (1030 chars)
    assistant c8 Read {"path":"8.rs"}
    tool      c8 = 8.rs 1: what line 1 of it has to say↵8.r⋯⋯ 298 of it has to sa (12000 chars)
    assistant c9 Read {"path":"9.rs"}
    tool      c9 = 9.rs 1: what line 1 of it has to say↵9.r⋯⋯ 298 of it has to sa (12000 chars)
    "#);
}

#[test]
fn s08_cuts_the_middle_out_of_more_than_50_messages() {
    let recipe = built_in("s08").expect("a built-in recipe");
    let mut context = Context::in_memory(Setup::new(recipe).with_counter(Estimate::new()));
    context.user("Read them.").expect("memory is written");
    for n in 1..=24 {
        if n == 4 {
            context.user("And mind the tests.").expect("memory is written");
        }
        read(&mut context, n, 100);
        context.view().expect("memory is written");
    }
    let before = view(&context).lines().count();
    read(&mut context, 25, 100);
    context.view().expect("memory is written");
    let first = view(&context);
    read(&mut context, 26, 100);
    context.view().expect("memory is written");
    let events: Vec<String> = context.events().iter().map(|it| format!("{it:?}")).collect();
    let second = view(&context);
    let events = events.join("\n");
    assert_snapshot!(format!("{before} blocks before\n\n{first}\n{second}\n{events}\n"));
}

#[test]
fn jcli() {
    assert_snapshot!(golden("jcli", 200_000, false));
}

#[test]
fn ion() {
    assert_snapshot!(golden("ion", 44_000, false));
}

#[test]
fn pi() {
    assert_snapshot!(golden("pi", 40_000, false));
}

#[test]
fn clear_tool_uses() {
    assert_snapshot!(golden("clear-tool-uses", 200_000, true));
}

#[test]
fn epitome() {
    assert_snapshot!(golden("epitome", 40_000, false), @r#"
    keep {"results":3,"share":25,"tokens":20000,"unanswered":true}; when "trigger"; trigger {"percent":80}; target {"percent":45,"tokens":36000}; reserve 16000; summary over {"percent":70}, 8000 tokens
    37.4k of 24.0k tokens before, 10.8k after

    system    summary [Digest of the conversation so far, with⋯⋯at line 24↵</pinned> (22580 chars)
    assistant c16 Read {"path":"16.rs"}
    assistant c17 Read {"path":"17.rs"}
    assistant c18 Read {"path":"18.rs"}
    tool      c16 = 16.rs 1: what line 1 of it has to say↵16⋯⋯y↵16.rs 51: what lin (2000 chars)
    tool      c17 = 17.rs 1: what line 1 of it has to say↵17⋯⋯y↵17.rs 51: what lin (2000 chars)
    tool      c18 = 18.rs 1: what line 1 of it has to say↵18⋯⋯y↵18.rs 51: what lin (2000 chars)

    Started { why: Hard, tokens: Tokens(37395), target: None, usable: None }
    Finished { why: Hard, before: Tokens(37395), after: Tokens(10786), by_stage: {"digest": 1}, over_target: None, no_summary: None }
    "#);
}

#[test]
fn gitclaw() {
    assert_snapshot!(golden("gitclaw", 40_000, false));
}

#[test]
fn transcript() {
    assert_snapshot!(golden("transcript", 200_000, true));
}

#[test]
fn transcript_no_thinking() {
    assert_snapshot!(golden("transcript-no-thinking", 200_000, true));
}
