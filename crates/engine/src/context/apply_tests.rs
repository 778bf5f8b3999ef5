use epitome_formats::epitome::{blocks_of, line};
use epitome_model::{
    At, Block, Cut, Edit, Invariant, Role, Source, Summary, Tokens, Transcript, Verb,
};
use epitome_passes::{Event, EventReason, built_in};
use proptest::prelude::*;

use super::super::{MessagePart, Setup, Speaker};
use super::*;

const USER: usize = 1;
const CALL: usize = 2;
const RESULT: usize = 3;
const REPLY: usize = 4;

/// A context with a message of the user, a response with reasoning and a call, the result of the
/// call, and a reply. Item 0 is the head of the log.
fn context() -> Context {
    let setup = Setup::new(built_in("s06").expect("a built-in recipe"));
    let mut context = Context::in_memory(setup);
    let messages = [
        r#"{"role":"user","content":"the words of the user"}"#,
        r#"{"role":"assistant","content":[
            {"type":"thinking","thinking":"hm","signature":"c2ln"},
            {"type":"tool_use","id":"c1","name":"Read","input":{"path":"a.rs"}}]}"#,
        r#"{"role":"user","content":[
            {"type":"tool_result","tool_use_id":"c1","content":"a result of a few words"}]}"#,
        r#"{"role":"assistant","content":"the answer of the model"}"#,
    ];
    context.push_messages("anthropic", &messages, Some(Tokens(900))).expect("memory is written");
    context
}

/// The state of a context that must be the same after a refused change.
fn state(context: &Context) -> (Vec<u8>, Transcript, super::super::WindowUse) {
    (context.log().to_vec(), context.transcript().clone(), context.usage())
}

/// Adds a line to the log. Returns the invariant that the line violates, if any; the context must
/// then be unchanged.
fn applied(context: &mut Context, line: &str, mut plan: Plan) -> Option<String> {
    let before = state(context);
    let err = context.add_line(line.as_bytes(), &mut plan).err()?;
    assert_eq!(err.kind(), ErrorKind::Refused);
    assert_eq!(state(context), before, "{err}");
    let what = err.to_string();
    Some(what.rsplit_once('(').expect("it names an invariant").1.trim_end_matches(')').to_owned())
}

/// A plan with one edit, which may be invalid.
fn edit(item: usize, verb: Verb) -> Plan {
    Plan::from_edit(Some(Edit { at: At::Block { item, block: 0 }, verb, pass: "test" }))
}

/// A plan with a cut.
fn cut(items: &[usize], text: &str) -> Plan {
    Plan::from_edit(Edit::cut(Cut { items: items.into(), text: text.into(), messages: 1 }))
}

/// The log line that carries out a plan.
fn line_of(context: &Context, plan: &Plan) -> String {
    let line = context.line_of(plan, Batch::Compaction(None)).expect("all have an id");
    String::from_utf8(line).expect("UTF-8")
}

/// A log line that edits an entry: in its blocks, the first `from` is replaced by `to`.
fn replaced(context: &Context, item: usize, from: &str, to: &str) -> String {
    let entry = context.transcript().items[item].entry().expect("an entry");
    let record = context.log.bytes().at(entry.record.span);
    let record = String::from_utf8(record.into_owned()).expect("UTF-8");
    let (_, blocks) = record.split_once("\"blocks\":").expect("an entry has blocks");
    let blocks = blocks.strip_suffix('}').expect("blocks are last");
    assert!(blocks.contains(from), "{from} in {blocks}");
    let (id, blocks) = (entry.id.as_deref().expect("an id"), blocks.replacen(from, to, 1));
    format!("{{\"type\":\"compaction\",\"edits\":[{{\"of\":\"{id}\",\"blocks\":{blocks}}}]}}\n")
}

#[test]
fn a_live_context_refuses_edits_that_violate_an_invariant() {
    let longer = "a result of a great many more words than there were before";
    let cases = [
        (RESULT, "a result of a few words", "short", None),
        (USER, "the words of the user", "the words", Some(Invariant::UserWords)),
        (CALL, r#""thinking":"hm""#, r#""thinking":"h""#, Some(Invariant::Reasoning)),
        (CALL, "c2ln", "c2l", Some(Invariant::Reasoning)),
        (CALL, r#""call":"c1""#, r#""call":"c2""#, Some(Invariant::Pairing)),
        (RESULT, r#""output":"c1""#, r#""output":"c2""#, Some(Invariant::Pairing)),
        (RESULT, "a result of a few words", longer, Some(Invariant::Growth)),
        (REPLY, "the answer of the model", "the answer", Some(Invariant::Shape)),
    ];
    for (item, from, to, invariant) in cases {
        let mut context = context();
        let line = replaced(&context, item, from, to);
        let plan = edit(item, Verb::Replace(to.to_owned()));
        let expect = invariant.map(|it| it.to_string());
        assert_eq!(applied(&mut context, &line, plan), expect, "{from} → {to}");
    }
    // The line removes the whole entry; the plan only drops a block of it.
    let mut context = context();
    let line = r#"{"type":"compaction","edits":[{"of":"1","blocks":[]}]}"#.to_owned() + "\n";
    assert_eq!(applied(&mut context, &line, edit(USER, Verb::Drop)).as_deref(), Some("tree"));
    // The line shortens an entry that no edit of the plan names.
    let line = replaced(&context, RESULT, "a result of a few words", "short");
    let plan = edit(REPLY, Verb::Replace("less".to_owned()));
    assert_eq!(applied(&mut context, &line, plan).as_deref(), Some("tree"));
}

#[test]
fn a_live_context_refuses_cuts_that_violate_an_invariant() {
    let cases: [(&[usize], &str, &str, Option<Invariant>); 5] = [
        (&[CALL, RESULT], "two", "two", None),
        (&[USER], "one", "one", Some(Invariant::UserWords)),
        (&[CALL], "one", "one", Some(Invariant::Pairing)),
        (&[REPLY], "one", "another", Some(Invariant::Shape)),
        (&[REPLY], "as long as ten replies or more, ten", "", Some(Invariant::Growth)),
    ];
    for (items, text, meant, invariant) in cases {
        let mut context = context();
        let meant = if meant.is_empty() { text } else { meant };
        let line = line_of(&context, &cut(items, text));
        let found = applied(&mut context, &line, cut(items, meant));
        assert_eq!(found, invariant.map(|it| it.to_string()), "{text}");
    }
    // The line cuts out more than the plan.
    let mut context = context();
    let line = line_of(&context, &cut(&[CALL, RESULT, REPLY], "three"));
    let found = applied(&mut context, &line, cut(&[CALL, RESULT], "three"));
    assert_eq!(found.as_deref(), Some("tree"));
}

#[test]
fn a_live_context_refuses_a_summary_in_place_of_what_is_kept() {
    let line = |kept: &str| {
        format!("{{\"type\":\"summary\",\"id\":\"s\",\"kept\":{kept},\"text\":\"In short.\"}}\n")
    };
    let plan = |text: &str| {
        let summary = Summary { text: text.into(), kept: vec![REPLY], tokens: Tokens(900) };
        Plan::from_edit(Edit::summary(summary, &[USER, CALL, RESULT, REPLY], "summary"))
    };
    let cases = [
        (format!("\"{REPLY}\""), None),
        // The summary also replaces the entries that must be kept.
        ("null".to_owned(), Some("shape")),
        (format!("\"{RESULT}\""), Some("pairing")),
    ];
    for (kept, invariant) in cases {
        let mut context = context();
        let found = applied(&mut context, &line(&kept), plan("In short."));
        assert_eq!(found.as_deref(), invariant, "{kept}");
    }
    let mut context = context();
    let found = applied(&mut context, &line(&format!("\"{REPLY}\"")), plan("At length."));
    assert_eq!(found.as_deref(), Some("shape"));
}

#[test]
fn a_pass_that_touches_words_of_the_user_is_reported_and_changes_nothing() {
    let mut context = context();
    let (before, tokens) = (state(&context), context.tokens());
    let did = context.write_plan("bad", edit(USER, Verb::Replace("x".into())));
    context.conclude(EventReason::Manual, tokens, did).expect("memory is written");
    assert_eq!(state(&context), before);
    let reason = "words changed (user words)".to_owned();
    let failed = Event::Failed { why: EventReason::Manual, reason, over_target: None };
    assert_eq!(context.events(), [failed]);
}

#[test]
fn a_result_that_would_grow_on_ingest_is_sent_as_it_is_and_reported() {
    let mut context = context();
    let before = state(&context);
    let at = At::Block { item: RESULT, block: 0 };
    let verb = Verb::Replace("word ".repeat(90));
    let edits = vec![Edit { at, verb, pass: "ingest" }];
    assert!(!context.write_shortened(edits).expect("memory is written"));
    assert_eq!(state(&context), before);
    let what = "a block has more tokens than it had (growth)";
    let reason = format!("a result is not shortened before it is sent: {what}");
    let skipped = Event::Skipped { why: EventReason::Request, reason, over_target: None };
    assert_eq!(context.events(), [skipped]);
}

#[test]
fn what_is_said_after_a_refused_change_is_counted_as_what_it_is() {
    let mut context = context();
    let at = At::Block { item: RESULT, block: 0 };
    let edits = vec![Edit { at, verb: Verb::Replace("word ".repeat(90)), pass: "ingest" }];
    context.write_shortened(edits).expect("memory is written");
    context.user("And then?").expect("memory is written");
    let entry = context.transcript().context().next_back().map(|(_, entry)| entry.blocks.clone());
    assert!(matches!(entry.as_deref(), Some([Block::Text(_)])), "{entry:?}");
    let transcript = context.transcript();
    let counted =
        epitome_model::weigh(transcript, context.log.bytes(), &*context.setup.counter).total();
    let blocks: usize = transcript.context().map(|(_, entry)| entry.blocks.len()).sum();
    assert_eq!(context.report().sent, counted + Tokens(4 * blocks as u64));
}

/// The next message of a generated conversation, which may be invalid.
#[derive(Clone, Copy, Debug)]
enum Step {
    User,
    Response { calls: usize },
    Result { of: usize },
}

/// How a generated compaction line changes the blocks of an entry.
#[derive(Clone, Copy, Debug)]
enum Mutation {
    Shorter,
    Longer,
    OtherCall,
    OtherResult,
    Nothing,
    OneMore,
    Same,
}

/// An edit of a generated compaction line: the entry; how the line changes its blocks; and what the
/// plan, against which the line is checked, does to the first block of the entry: nothing (`None`),
/// a removal (`true`) or a replacement (`false`).
type RandomEdit = (prop::sample::Index, Mutation, Option<bool>);

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        1 => Just(Step::User),
        3 => (0..3_usize).prop_map(|calls| Step::Response { calls }),
        5 => (0..3_usize).prop_map(|of| Step::Result { of }),
    ]
}

fn random_edit() -> impl Strategy<Value = RandomEdit> {
    let mutation = prop_oneof![
        6 => Just(Mutation::Shorter),
        1 => Just(Mutation::Longer),
        1 => Just(Mutation::OtherCall),
        1 => Just(Mutation::OtherResult),
        1 => Just(Mutation::Nothing),
        1 => Just(Mutation::OneMore),
        1 => Just(Mutation::Same),
    ];
    (
        any::<prop::sample::Index>(),
        mutation,
        prop_oneof![5 => Just(Some(false)), 1 => Just(None), 1 => Just(Some(true))],
    )
}

/// A context with these messages. A result is for one of the last calls or, if there are too few
/// calls, for one that does not exist.
fn context_of(steps: &[Step]) -> Context {
    let mut context = Context::in_memory(Setup::new(built_in("s06").expect("a built-in recipe")));
    let mut calls = Vec::new();
    for (n, step) in steps.iter().enumerate() {
        let words = "word ".repeat(20);
        let (role, parts) = match step {
            Step::User => (Role::User, vec![MessagePart::text(words)]),
            Step::Response { calls: many } => {
                let new: Vec<String> = (0..*many).map(|call| format!("c{n}_{call}")).collect();
                let call =
                    |id: &String| MessagePart::call(id.clone(), "Read", r#"{"path":"a.rs"}"#);
                let parts =
                    [MessagePart::Thinking("hm".into()), MessagePart::text(words)].into_iter();
                let parts = parts.chain(new.iter().map(call)).collect();
                calls.extend(new);
                (Role::Assistant, parts)
            }
            Step::Result { of } => {
                let call = calls.iter().rev().nth(*of).cloned();
                let output = MessagePart::output(call.unwrap_or_else(|| "none".to_owned()), words);
                (Role::Tool, vec![output])
            }
        };
        context.push(&Speaker { role, ..Speaker::default() }, &parts).expect("memory is written");
    }
    context
}

/// A compaction line with these edits, and a plan that may not match it.
fn random_line(context: &Context, edits: &[RandomEdit]) -> (String, Plan) {
    let (transcript, source) = (context.transcript(), context.log.bytes());
    let (mut lines, mut planned) = (Vec::new(), Vec::new());
    for (place, mutation, in_plan) in edits {
        let item = *place.get(&transcript.context);
        let entry = transcript.items[item].entry().expect("an entry is sent");
        let record = line("", &Speaker::default(), &blocks_of(entry, source));
        let (_, blocks) = record.trim_end().split_once("\"blocks\":").expect("it has blocks");
        let blocks = blocks.strip_suffix('}').expect("blocks are last");
        let blocks = match mutation {
            Mutation::Shorter => blocks.replacen("word word word", "w", 1),
            Mutation::Longer => blocks.replacen("word", "word and many a word more", 1),
            Mutation::OtherCall => blocks.replacen("\"call\":\"c", "\"call\":\"x", 1),
            Mutation::OtherResult => blocks.replacen("\"output\":\"c", "\"output\":\"x", 1),
            Mutation::Nothing => "[]".to_owned(),
            Mutation::OneMore => blocks.replacen('[', "[{\"text\":\"more\"},", 1),
            Mutation::Same => blocks.to_owned(),
        };
        let id = entry.id.as_deref().expect("it has an id");
        lines.push(format!("{{\"of\":\"{id}\",\"blocks\":{blocks}}}"));
        let at = At::Block { item, block: 0 };
        let verb = |drop: &bool| if *drop { Verb::Drop } else { Verb::Replace("w".into()) };
        let edit = in_plan.as_ref().map(verb).map(|verb| Edit { at, verb, pass: "test" });
        planned.extend(edit.map(PlannedEdit::without_count));
    }
    let line = format!("{{\"type\":\"compaction\",\"edits\":[{}]}}\n", lines.join(","));
    (line, Plan { edits: planned, ..Plan::default() })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// To verify a line, only the part of the context that it changes is checked. A violation is
    /// found exactly if a check of the whole context finds one, and each that is found is also one
    /// of the whole context.
    #[test]
    fn what_an_excerpt_violates_is_what_the_whole_context_violates(
        steps in prop::collection::vec(step(), 1..24),
        lines in prop::collection::vec(prop::collection::vec(random_edit(), 1..4), 1..4),
    ) {
        let mut context = context_of(&steps);
        let invariants = FORMAT.invariants;
        for edits in lines {
            let (line, plan) = random_line(&context, &edits);
            let trial = context.log.try_line(line.as_bytes());
            let (after, source) = (context.transcript(), context.log.bytes());
            let before = Transcript {
                head: after.head.clone(),
                items: after.items[..trial.items()].to_vec(),
                context: trial.sent().to_vec(),
            };
            let [old, new] = [&before, after].map(|transcript| Side { transcript, source });
            let counter = &*context.setup.counter;
            let expect = verify(old, new, &plan, WriteMode::Append, invariants, counter);
            let changed = Changed { transcript: after, trial: &trial };
            let found = changed.violations(&plan, source, invariants, counter);
            prop_assert_eq!(found.is_empty(), expect.is_empty(), "{:?} {:?}", found, expect);
            // The line number is not compared: if the messages are out of order, the check of a
            // part may report another line.
            let what = |it: &Violation| (it.invariant, it.what.clone());
            let whats: Vec<_> = expect.iter().map(what).collect();
            let is_known = found.iter().all(|it| whats.contains(&what(it)));
            prop_assert!(is_known, "{:?} {:?}", found, expect);
            if expect.is_empty() {
                context.log.keep(trial).expect("memory is written");
            } else {
                context.log.discard(trial);
                prop_assert_eq!(context.transcript(), &before);
            }
        }
    }
}
