use epitome_model::{
    Call, Entry, Field, FieldRole, HiddenField, Image, Record, Thinking, ToolKind,
};

use super::*;

/// A session of two lines: the record that is edited does not begin at the first byte.
const SOURCE: &str = concat!(
    "{}\n",
    r#"{"text": "a\nb", "again": {"of": 1}, "result": "out", "results": ["one", {"image": "AA"}],"#,
    r#" "thinking": [{"text": "hm"}, 1], "input": {"command": "ls"}, "copy": "x", "more": [1, 2],"#,
    r#" "patch": "{\"path\": \"a\"}"}"#,
);

const SHAPES: Shapes = Shapes {
    output: |text| format!("[{}]", encode(text)),
    block: |text| format!(r#"{{"text":{}}}"#, encode(text)),
    thinking: BlockRemainder::Nothing,
};

/// The span of the first occurrence of `json` in [`SOURCE`].
fn span(json: &str) -> Span {
    let start = SOURCE.find(json).expect("it is in the source") as u64;
    Span { start, end: start + json.len() as u64 }
}

fn text(json: &str) -> Text {
    Text::Source(span(json))
}

fn image() -> Image {
    Image { media: "image/png".into(), data: span("\"AA\""), whole: span(r#"{"image": "AA"}"#) }
}

/// One entry, read from the second line of [`SOURCE`], with blocks of all kinds but a summary and a
/// repeated result.
fn transcript() -> Transcript {
    let result = Output { whole: span("\"out\""), ..Output::default() };
    let parts = vec![Part::Text(text("\"one\"")), Part::Image(image())];
    let results = Output { parts, whole: span(r#"["one", {"image": "AA"}]"#), ..result.clone() };
    let thinking = Thinking { text: None, whole: span(r#"{"text": "hm"}"#), removable: true };
    let command = Field { name: "command".into(), role: FieldRole::Command, text: text("\"ls\"") };
    // This text is a string literal inside a string of the record.
    let path = Field { name: "path".into(), role: FieldRole::Patch, text: text(r#"\"a\""#) };
    let call = Call {
        id: "c".into(),
        name: "bash".into(),
        kind: ToolKind::Shell,
        target: None,
        part: None,
        fields: vec![command, path],
        arguments: span(r#"{"command": "ls"}"#),
    };
    let copy = |json, left| HiddenField { name: "copy", value: span(json), left };
    let line = Span { start: 3, end: SOURCE.len() as u64 };
    let entry = Entry {
        record: Record { line: 2, span: line },
        blocks: vec![
            Block::Text(text(r#""a\nb""#)),
            Block::Output(result),
            Block::Output(results),
            Block::Thinking(thinking),
            Block::Call(call),
            Block::Image(image()),
            Block::Output(Output::default()),
            Block::Opaque(span(r#"{"of": 1}"#)),
        ],
        hidden_fields: vec![
            copy("\"x\"", FieldRemainder::Nothing),
            copy("\"x\"", FieldRemainder::EmptyText),
            copy(r#"{"of": 1}"#, FieldRemainder::EmptyObject),
            copy("[1, 2]", FieldRemainder::EmptyArray),
        ],
        ..Entry::default()
    };
    Transcript { items: vec![Item::Entry(Box::new(entry))], ..Transcript::default() }
}

fn block(block: usize) -> At {
    At::Block { item: 0, block }
}

fn field(block: usize, field: usize) -> At {
    At::Field { item: 0, block, field }
}

fn part(block: usize, part: usize) -> At {
    At::Part { item: 0, block, part }
}

fn hidden_field(field: usize) -> At {
    At::HiddenField { item: 0, field }
}

/// An edit of the position `at`: it replaces the content by a text, or removes it if `verb` is
/// `None`.
fn edit(at: At, verb: Option<&str>) -> Edit {
    Edit { at, verb: verb.map_or(Verb::Drop, |text| Verb::Replace(text.into())), pass: "test" }
}

/// The session with splices applied.
fn spliced(splices: &[(Splice, At)]) -> String {
    let splices: Vec<Splice> = splices.iter().map(|(splice, _)| splice.clone()).collect();
    let source = SOURCE.as_bytes();
    let all = Span { start: 0, end: source.len() as u64 };
    apply_splices(&source, all, &splices).expect("it is text")
}

#[test]
fn an_edit_changes_the_value_that_it_is_for() {
    let cases = [
        (block(0), Some("l\"s"), r#""a\nb""#, r#""l\"s""#),
        (block(1), Some("less"), r#""out""#, r#""less""#),
        (block(2), Some("less"), r#"["one", {"image": "AA"}]"#, r#"["less"]"#),
        (block(3), None, r#"{"text": "hm"}, "#, ""),
        (block(5), Some("less"), r#"{"image": "AA"}"#, r#"{"text":"less"}"#),
        (field(4, 0), Some("less"), r#""ls""#, r#""less""#),
        (field(4, 1), Some("l\"s"), r#"\"a\""#, r#"\"l\\\"s\""#),
        (part(2, 0), Some("less"), r#""one""#, r#""less""#),
        (part(2, 1), Some("less"), r#"{"image": "AA"}"#, r#"{"text":"less"}"#),
        (hidden_field(0), None, r#""copy": "x", "#, ""),
        (hidden_field(1), None, r#""x""#, r#""""#),
        (hidden_field(2), None, r#"{"of": 1}"#, "{}"),
        (hidden_field(3), None, "[1, 2]", "[]"),
    ];
    let source = SOURCE.as_bytes();
    for (at, verb, before, after) in cases {
        let splices = splices(&transcript(), &source, &[edit(at, verb)], &SHAPES).expect("places");
        assert_eq!(spliced(&splices), SOURCE.replacen(before, after, 1), "{at:?}");
        assert!(splices.iter().all(|(_, of)| *of == at), "{at:?}");
    }
}

#[test]
fn an_edit_without_a_place_is_refused() {
    let same_bytes = "another edit touches the same bytes";
    let cases = [
        (vec![(At::Block { item: 1, block: 0 }, None)], "there is no such record"),
        (vec![(block(8), None)], "there is no such block"),
        (vec![(block(0), None)], "it cannot be dropped alone"),
        (vec![(block(6), Some("less"))], "a block of this kind is never edited"),
        (vec![(block(7), Some("less"))], "a block of this kind is never edited"),
        (vec![(field(0, 0), Some("less"))], "only calls have arguments"),
        (vec![(field(4, 2), Some("less"))], "there is no such argument"),
        (vec![(part(0, 0), Some("less"))], "only results have parts"),
        (vec![(part(2, 2), Some("less"))], "this part is never edited"),
        (vec![(hidden_field(4), None)], "there is no such hidden field"),
        (vec![(At::Items { item: 0 }, None)], "whole items are not edited in their records"),
        (vec![(block(2), Some("less")), (part(2, 0), Some("less"))], same_bytes),
    ];
    let source = SOURCE.as_bytes();
    for (edits, why) in cases {
        let at = edits[edits.len() - 1].0;
        let edits: Vec<Edit> = edits.into_iter().map(|(at, verb)| edit(at, verb)).collect();
        let written = splices(&transcript(), &source, &edits, &SHAPES);
        assert_eq!(written, Err(Unwritable { at, why }));
    }
}

#[test]
fn values_of_one_container_are_removed_together() {
    let own = |_: &Edit| {
        let list = span("[1, 2]").start;
        let digit = |at| OwnReplacement::Child(Span { start: list + at, end: list + at + 1 });
        Some(vec![digit(1), digit(4)])
    };
    let source = SOURCE.as_bytes();
    let splices = splices_with(&transcript(), &source, &[edit(block(0), None)], &SHAPES, &own);
    assert_eq!(spliced(&splices.expect("places")), SOURCE.replace("[1, 2]", "[]"));
}

#[test]
fn a_format_writes_some_edits_in_its_own_way() {
    let source = SOURCE.as_bytes();
    let write = |piece: fn() -> OwnReplacement| {
        let own = |edit: &Edit| (edit.at == block(0)).then(|| vec![piece()]);
        let edits = [edit(block(0), None), edit(hidden_field(1), None)];
        splices_with(&transcript(), &source, &edits, &SHAPES, &own)
    };
    let member = write(|| OwnReplacement::Member(span("\"ls\""), r#""cmd": 1"#.to_owned()));
    let value = write(|| OwnReplacement::Value(span("\"ls\""), "1".to_owned()));
    for (splices, expect) in [(member, r#"{"cmd": 1}"#), (value, r#"{"command": 1}"#)] {
        let expect = SOURCE.replace(r#"{"command": "ls"}"#, expect).replace("\"x\"", "\"\"");
        assert_eq!(spliced(&splices.expect("places")), expect);
    }
    let outside = write(|| OwnReplacement::Member(span("\"command\""), String::new()));
    assert_eq!(outside, Err(Unwritable { at: block(0), why: "it is not in an object" }));
}
