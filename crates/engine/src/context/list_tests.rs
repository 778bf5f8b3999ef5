use epitome_formats::find_format;
use epitome_model::Tokens;
use epitome_passes::{EventReason, built_in};
use proptest::prelude::*;

use super::super::{Next, Pending, Setup};
use super::*;
use crate::journal::Nowhere;

fn setup() -> Setup {
    let recipe = built_in("epitome").expect("a built-in recipe");
    Setup::new(recipe).with_window(Tokens(200_000))
}

fn user(text: &str) -> String {
    format!(r#"{{"role":"user","content":"{text}"}}"#)
}

/// A response with a call, and its result of this many lines.
fn call(id: &str, lines: usize) -> [String; 2] {
    let text: String =
        (0..lines).map(|n| format!(r"let value_{n} = compute_all_of_it({n})?;\n")).collect();
    let call = format!(
        r#"{{"role":"assistant","content":[{{"type":"text","text":"I look."}},
        {{"type":"tool_use","id":"{id}","name":"Read","input":{{"path":"{id}.rs"}}}}]}}"#
    );
    let result = format!(
        r#"{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"{id}",
        "content":"{text}"}}]}}"#
    );
    [call, result]
}

fn strs(list: &[String]) -> Vec<&str> {
    list.iter().map(String::as_str).collect()
}

fn sync(context: &mut Context, list: &[String]) -> ListChange {
    context.sync("anthropic", &strs(list), None).expect("a list of messages")
}

fn change(known: u64, left: u64, new: u64) -> ListChange {
    ListChange { known, left, new }
}

fn is_valid(context: &Context) -> bool {
    let invariants = find_format("epitome").expect("our own format").invariants;
    invariants.check(context.transcript(), context.log.bytes()).is_empty()
}

/// The messages that a context sends after the messages of `list` were added one by one.
fn said_one_by_one(list: &[String]) -> String {
    let mut context = Context::in_memory(setup());
    for message in list {
        context.push_json("anthropic", message).expect("a message");
        context.view().expect("memory");
    }
    context.unchanged_view().messages()
}

#[test]
fn a_list_that_is_given_again_changes_nothing_and_one_that_goes_on_adds_what_is_new() {
    let mut context = Context::in_memory(setup());
    let [first, result] = call("c1", 40);
    let [second, again] = call("c2", 40);
    let mut list = vec![user("Look."), first, result];
    assert_eq!(sync(&mut context, &list), change(0, 0, 3));
    let (log, sent) = (context.log().to_vec(), context.unchanged_view().messages());
    assert_eq!(sync(&mut context, &list), change(3, 0, 0));
    assert_eq!(context.log(), log);
    list.extend([second, again, user("And?")]);
    assert_eq!(sync(&mut context, &list), change(3, 0, 3));
    assert!(context.log().starts_with(&log));
    // What was sent before is a prefix, so that the provider's cache stays valid.
    let begun = sent.strip_suffix(']').expect("a list");
    assert!(context.unchanged_view().messages().starts_with(begun), "{begun}");
    assert!(String::from_utf8_lossy(context.log()).contains("birth"), "c2 repeats c1");
    assert_eq!(context.unchanged_view().messages(), said_one_by_one(&list));
    // A resumed log recognises the same list, even if the client formats its JSON differently.
    let mut resumed =
        Context::resume(context.log().to_vec(), Box::new(Nowhere), setup()).expect("a log");
    let marked = r#""text":"I look.","cache_control":{"type":"ephemeral"}"#;
    let spelled: Vec<String> =
        list.iter().map(|it| it.replace(r#""text":"I look.""#, marked)).collect();
    for list in [&list, &spelled, &spelled, &list] {
        assert_eq!(sync(&mut resumed, list), change(6, 0, 0));
    }
    assert_eq!(resumed.log(), context.log());
}

#[test]
fn a_list_that_ends_before_or_differs_goes_back_to_that_place() {
    let mut context = Context::in_memory(setup());
    let [first, result] = call("c1", 3);
    let [second, again] = call("c2", 4);
    let all = vec![user("Look."), first.clone(), result.clone(), second, again, user("And?")];
    sync(&mut context, &all);
    let log = context.log().to_vec();
    assert_eq!(sync(&mut context, &all[..3]), change(3, 3, 0));
    assert_eq!(context.unchanged_view().messages(), said_one_by_one(&all[..3]));
    assert_eq!((context.message_count(), context.open_calls()), (3, Vec::new()));
    let other = vec![user("Look!"), first, result, user("And now?")];
    assert_eq!(sync(&mut context, &other), change(0, 3, 4));
    assert_eq!(context.unchanged_view().messages(), said_one_by_one(&other));
    // Go back to a call without its result, which is open then. A list that differs from its first
    // message on replaces everything.
    assert_eq!(sync(&mut context, &other[..2]), change(2, 2, 0));
    assert_eq!(context.open_calls(), [("c1".into(), "Read".into())]);
    assert_eq!(sync(&mut context, &all), change(0, 2, 6));
    assert_eq!(context.unchanged_view().messages(), said_one_by_one(&all));
    assert!(context.log().starts_with(&log), "nothing is lost");
    assert!(is_valid(&context));
    assert_eq!(context.report().entries, 6);
}

#[test]
fn a_compaction_is_taken_back_only_where_it_is_of_what_the_list_has_no_more() {
    let mut context = Context::in_memory(setup());
    let mut list = vec![user("Look.")];
    list.extend((0..12).flat_map(|n| call(&format!("c{n}"), 40)));
    list.extend([r#"{"role":"assistant","content":"All is read."}"#.to_owned(), user("And?")]);
    sync(&mut context, &list);
    let whole = context.unchanged_view().messages();
    context.compact_to(None, Some(Tokens(900))).expect("memory");
    let small = context.unchanged_view().messages();
    assert!(small.len() < whole.len());
    // The last question is replaced by another one.
    *list.last_mut().expect("a message") = user("And now?");
    let known = list.len() as u64 - 1;
    assert_eq!(sync(&mut context, &list), change(known, 1, 1));
    assert_eq!(context.unchanged_view().messages(), small.replace("And?", "And now?"));
    assert_eq!(context.report().compactions, 1);
    // Go back to a place within the part that the digest replaces.
    assert_eq!(sync(&mut context, &list[..5]), change(5, known + 1 - 5, 0));
    assert_eq!(context.unchanged_view().messages(), said_one_by_one(&list[..5]));
    assert_eq!(context.report().compactions, 0);
    assert!(is_valid(&context));
    let resumed = Context::resume(context.log().to_vec(), Box::new(Nowhere), setup());
    let mut resumed = resumed.expect("a log");
    assert_eq!(resumed.unchanged_view().messages(), context.unchanged_view().messages());
    assert_eq!(sync(&mut resumed, &list[..5]), change(5, 0, 0));
}

/// The result of a call of the tool `compact` is the context's own: it belongs to the call, and the
/// list of the client does not have it.
#[test]
fn the_result_of_a_compaction_that_the_model_asked_for_stays_with_its_call() {
    let mut context = Context::in_memory(setup());
    let call = r#"{"role":"assistant","content":[
        {"type":"tool_use","id":"k1","name":"compact","input":{}}]}"#;
    let mut list = vec![user("Look."), call.to_owned()];
    sync(&mut context, &list);
    context.view().expect("memory");
    assert_eq!(context.open_calls(), []);
    list.push(user("And?"));
    assert_eq!(sync(&mut context, &list), change(2, 0, 1));
    let sent = context.unchanged_view().messages();
    list[2] = user("And now?");
    assert_eq!(sync(&mut context, &list), change(2, 1, 1));
    assert_eq!(context.open_calls(), []);
    assert_eq!(context.unchanged_view().messages(), sent.replace("And?", "And now?"));
}

#[test]
fn what_is_no_list_changes_nothing() {
    let mut context = Context::in_memory(setup());
    let [first, result] = call("c1", 3);
    let list = vec![user("Look."), first, result];
    sync(&mut context, &list);
    let state = |it: &Context| (it.log().to_vec(), it.usage(), it.message_count(), it.open_calls());
    let before = state(&context);
    let bad = [
        (vec![&*list[0], "{}"], "message 2 of 2 is none of anthropic"),
        (vec![&*list[0], &*list[2]], "message 2 of 2: a result of `c1`, but there is no such call"),
        (vec!["[]", &*list[1]], "message 1 of 2 is none of anthropic"),
    ];
    for (list, why) in bad {
        let err = context.sync("anthropic", &list, None).expect_err("it is no list");
        assert_eq!(err.kind(), ErrorKind::Unreadable);
        assert!(err.to_string().starts_with(why), "{err}");
        assert_eq!(state(&context), before, "{why}");
    }
    assert_eq!(sync(&mut context, &list), change(3, 0, 0));
}

#[test]
fn an_open_question_is_dropped_only_if_the_context_goes_back() {
    let mut recipe = built_in("ion").expect("a built-in recipe");
    recipe.keep.messages = None;
    let mut context = Context::in_memory(Setup::new(recipe).with_window(Tokens(200_000)));
    let mut list = vec![user("Look.")];
    list.extend((0..12).flat_map(|n| call(&format!("c{n}"), 40)));
    list.push(r#"{"role":"assistant","content":"All is read."}"#.to_owned());
    sync(&mut context, &list);
    let pending = context.begin(EventReason::Manual).expect("a question");
    let asked = Some(pending.question());
    context.ask.pending = Some(pending);
    let open = |context: &Context| context.ask.pending.as_ref().map(Pending::question);
    // A result without its call.
    context.sync("anthropic", &[&*list[0], &*list[2]], None).expect_err("it is no list");
    assert_eq!(open(&context), asked);
    assert_eq!(sync(&mut context, &list[..3]), change(3, 23, 0));
    assert_eq!(open(&context), None);
}

#[test]
fn a_prompt_that_says_something_else_is_given_that_text() {
    let mut context = Context::in_memory(setup());
    let list = |prompt: &str| {
        let prompt = format!(r#"{{"role":"system","content":"{prompt}"}}"#);
        [prompt, user("Hello."), r#"{"role":"assistant","content":"Hi."}"#.to_owned()]
    };
    let mut sync = |prompt: &str| {
        let list = list(prompt);
        let change = context.sync("openai-chat", &strs(&list), None).expect("a list");
        let body = context.unchanged_view().body("openai-chat").expect("an API").body;
        (change, body.contains(&format!("{prompt}\"")), context.log().len())
    };
    assert_eq!(sync("It is Monday."), (change(0, 0, 3), true, sync("It is Monday.").2));
    let tuesday = sync("It is Tuesday.");
    assert_eq!((tuesday.0, tuesday.1), (change(3, 0, 0), true));
    assert_eq!(sync("It is Tuesday.").2, tuesday.2);
}

#[test]
fn results_without_ids_are_known_again() {
    let mut context = Context::in_memory(setup());
    let part = |role: &str, part: &str| format!(r#"{{"role":"{role}","parts":[{part}]}}"#);
    let text = |text: &str| format!(r#"{{"text":"{text}"}}"#);
    let call = r#"{"functionCall":{"name":"read","args":{"path":"a.rs"}}}"#;
    let result = |text: &str| {
        format!(r#"{{"functionResponse":{{"name":"read","response":{{"output":"{text}"}}}}}}"#)
    };
    let mut list = vec![part("user", &text("Look."))];
    for n in 0..3 {
        list.extend([part("model", call), part("user", &result(&format!("result {n}")))]);
    }
    let mut sync = |list: &[String]| context.sync("gemini-api", &strs(list), None);
    assert_eq!(sync(&list).expect("a list"), change(0, 0, 7));
    let mut resumed =
        Context::resume(context.log().to_vec(), Box::new(Nowhere), setup()).expect("a log");
    assert_eq!(resumed.sync("gemini-api", &strs(&list), None).expect("a list"), change(7, 0, 0));
    assert_eq!(resumed.log(), context.log());
}

/// What happens before the next list is passed.
#[derive(Clone, Debug)]
enum Edit {
    /// The list grows: by a message of the user if `calls` is 0, otherwise by this many calls, each
    /// with a result of `lines` lines.
    More {
        calls: usize,
        lines: usize,
    },
    /// The list is truncated to this many messages.
    Back(prop::sample::Index),
    /// This message of the user is replaced.
    Other(prop::sample::Index),
    Compact,
    Resume,
}

fn edit() -> impl Strategy<Value = Edit> {
    prop_oneof![
        5 => (0..4_usize, 0..40_usize).prop_map(|(calls, lines)| Edit::More { calls, lines }),
        2 => any::<prop::sample::Index>().prop_map(Edit::Back),
        2 => any::<prop::sample::Index>().prop_map(Edit::Other),
        1 => Just(Edit::Compact),
        1 => Just(Edit::Resume),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// While no compaction is in effect, the same is sent for a list as if its messages had been
    /// added one by one, whatever lists were passed before.
    #[test]
    fn a_list_is_sent_as_if_it_were_said_message_by_message(
        edits in prop::collection::vec(edit(), 1..12),
    ) {
        let mut context = Context::in_memory(setup());
        let (mut list, mut made, mut compacted) = (vec![user("Look.")], 0, false);
        for edit in edits {
            match edit {
                Edit::More { calls: 0, .. } => {
                    made += 1;
                    list.push(user(&format!("Question {made}?")));
                }
                Edit::More { calls, lines } => for _ in 0..calls {
                    made += 1;
                    list.extend(call(&format!("c{made}"), lines));
                },
                Edit::Back(place) => {
                    list.truncate(place.index(list.len()) + 1);
                    // A user message must come after the result of a call.
                    if list.last().is_some_and(|it| it.contains("tool_use\"")) {
                        list.pop();
                    }
                }
                Edit::Other(place) => {
                    made += 1;
                    let place = place.index(list.len());
                    if list[place].contains(r#""role":"user","content":""#) {
                        list[place] = user(&format!("Question {made}!"));
                    }
                }
                Edit::Compact => {
                    context.compact_to(None, Some(Tokens(100))).expect("memory");
                    compacted = true;
                }
                Edit::Resume => {
                    let log = context.log().to_vec();
                    context = Context::resume(log, Box::new(Nowhere), setup()).expect("a log");
                }
            }
            let log = context.log().to_vec();
            let change = sync(&mut context, &list);
            prop_assert_eq!(change.known + change.new, list.len() as u64);
            prop_assert!(context.log().starts_with(&log));
            prop_assert!(is_valid(&context));
            prop_assert_eq!(context.message_count(), list.len() as u64);
            let log = context.log().to_vec();
            prop_assert_eq!(sync(&mut context, &list).known, list.len() as u64);
            prop_assert_eq!(context.log(), &log);
            compacted &= context.report().compactions > 0;
            let sent = context.unchanged_view().messages();
            if !compacted {
                prop_assert_eq!(&sent, &said_one_by_one(&list));
            }
            let read = Context::resume(log, Box::new(Nowhere), setup()).expect("a log");
            prop_assert_eq!(read.unchanged_view().messages(), sent);
            prop_assert_eq!(read.counts.total(), context.counts.total());
            prop_assert_eq!(context.step().expect("memory"), Next::Send);
        }
    }
}
