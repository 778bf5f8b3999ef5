use epitome_model::{Call, Item, Output, Part, Span, Text, ToolKind};

use super::*;

fn entry(role: Role, blocks: Vec<Block>) -> Item {
    let group = (role == Role::Assistant).then(|| format!("{blocks:?}").into());
    Item::Entry(Box::new(Entry { role, group, blocks, ..Entry::default() }))
}

fn says(role: Role, text: &str) -> Item {
    entry(role, vec![Block::Text(Text::Owned(text.into()))])
}

fn calls(id: &str) -> Item {
    let call = Call {
        id: id.into(),
        name: "Read".into(),
        kind: ToolKind::Read,
        target: None,
        part: None,
        fields: Vec::new(),
        arguments: Span::default(),
    };
    entry(Role::Assistant, vec![Block::Call(call)])
}

fn answers(id: &str) -> Item {
    let output = Output {
        call: id.into(),
        error: false,
        parts: vec![Part::Text(Text::Owned("x".into()))],
        whole: Span::default(),
        numbered: false,
        from_user: false,
    };
    entry(Role::Tool, vec![Block::Output(output)])
}

fn middle(snip: TrimRule, items: Vec<Item>) -> Vec<usize> {
    let context = (0..items.len()).collect();
    let transcript = Transcript { items, context, ..Transcript::default() };
    snip.items_to_remove(&transcript, &Vec::new())
}

/// A question and `n` calls with their results.
fn talk(n: usize) -> Vec<Item> {
    let mut items = vec![says(Role::User, "Do it.")];
    for call in 0..n {
        items.extend([calls(&call.to_string()), answers(&call.to_string())]);
    }
    items
}

const TEN: TrimRule = TrimRule { over: 10, keep: 10, head: 3 };

#[test]
fn as_many_messages_as_there_may_be_stay() {
    assert_eq!(middle(TEN, talk(4)), [0; 0]);
}

#[test]
fn replies_go_with_their_results_and_what_the_user_said_stays() {
    let mut items = talk(8);
    items.insert(5, says(Role::User, "And mind the tests."));
    // Of 18 entries the first three and the last six stay, and between them the user's message.
    assert_eq!(middle(TEN, items), [3, 4, 6, 7, 8, 9, 10, 11]);
}

#[test]
fn a_cut_lies_between_a_reply_and_the_next() {
    let odd = TrimRule { keep: 11, ..TEN };
    assert_eq!(middle(odd, talk(8)), [3, 4, 5, 6, 7, 8]);
    let first = TrimRule { head: 2, ..TEN };
    assert_eq!(middle(first, talk(8)).first(), Some(&3));
}

#[test]
fn what_an_earlier_cut_left_goes_with_more_and_not_alone() {
    let left = "[epitome k7f3a9c2: 6 messages left out]";
    let mut items = talk(8);
    items.splice(3..11, [says(Role::System, left), says(Role::User, "Mind the tests.")]);
    assert_eq!(middle(TEN, items.clone()), [0; 0]);
    items.extend([calls("8"), answers("8")]);
    assert_eq!(middle(TEN, items.clone()), [3, 5, 6]);
    // There is one message too many, but everything that could be removed is the user's.
    let few = TrimRule { over: 8, ..TEN };
    items.truncate(11);
    assert_eq!(middle(few, items), [0; 0]);
}

#[test]
fn neighbours_of_one_side_are_one_message() {
    use Role::{Assistant, System, Tool, User};

    let begins = |roles: &[Role]| {
        let entry = |&role| Entry { role, ..Entry::default() };
        let entries: Vec<Entry> = roles.iter().map(entry).collect();
        messages(entries.iter())
    };
    assert_eq!(begins(&[]), [0; 0]);
    assert_eq!(begins(&[User, System, Tool]), [0]);
    assert_eq!(begins(&[User, Assistant, Assistant, Tool, User, Assistant]), [0, 1, 3, 5]);
}

#[test]
fn a_summary_in_the_middle_stays_and_other_notes_of_the_agent_go() {
    let mut items = talk(8);
    let summary = entry(Role::System, vec![Block::Summary(Text::Owned("In short.".into()))]);
    items.splice(5..5, [summary, says(Role::System, "A note.")]);
    assert_eq!(middle(TEN, items), [3, 4, 6, 7, 8, 9, 10, 11, 12]);
}

#[test]
fn the_prompt_is_no_message_and_stays() {
    let mut items = vec![says(Role::System, "You are an agent.")];
    items.extend(talk(8));
    let context = (0..items.len()).collect();
    let mut transcript = Transcript { items, context, ..Transcript::default() };
    transcript.head.prompt = vec![0];
    // The same items as without the prompt, each shifted by one.
    let expect: Vec<usize> = middle(TEN, talk(8)).iter().map(|item| item + 1).collect();
    assert_eq!(TEN.items_to_remove(&transcript, &Vec::new()), expect);
    assert_eq!(expect, [4, 5, 6, 7, 8, 9, 10, 11]);
    // The prompt (item 0) and the user's message (item 1) stay.
    let all = TrimRule { over: 1, keep: 1, head: 0 };
    assert_eq!(all.items_to_remove(&transcript, &Vec::new()).first(), Some(&2));
}

#[test]
fn parallel_calls_are_never_parted_from_their_results() {
    let mut items = talk(2);
    items.extend([calls("a"), calls("b"), answers("a"), answers("b")]);
    items.extend(talk(4).split_off(1));
    for head in 0..6 {
        let gone = middle(TrimRule { over: 6, keep: 6, head }, items.clone());
        let has = |id: usize| gone.contains(&id);
        assert!([5, 6, 7, 8].iter().all(|&it| has(it)) || ![5, 6, 7, 8].iter().any(|&it| has(it)));
    }
}

#[test]
fn only_a_stub_alone_in_a_note_of_the_agent_says_what_an_earlier_cut_took() {
    let stub = "[epitome k7f3a9c2: 6 messages left out]";
    let is = |item: Item| item.entry().is_some_and(|entry| is_cut(entry, &Vec::new()));
    assert!(is(says(Role::System, stub)));
    assert!(!is(says(Role::User, stub)));
    assert!(!is(says(Role::System, "6 messages left out")));
    let two = vec![Block::Text(Text::Owned(stub.into())), Block::Text(Text::Owned("x".into()))];
    assert!(!is(entry(Role::System, two)));
}
