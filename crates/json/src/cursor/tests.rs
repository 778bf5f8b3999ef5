use proptest::prelude::*;
use serde_json::Value;

use super::*;

#[test]
fn it_accepts_and_refuses_what_serde_json_does() {
    let texts = [
        "",
        " ",
        "{}",
        "[]",
        "{",
        "[1,]",
        "[1 2]",
        r#"{"a":1,}"#,
        r#"{"a" 1}"#,
        r#"{a:1}"#,
        "tru",
        "true",
        "truex",
        "nul",
        "01",
        "-",
        "-1.5e+3",
        "1.",
        ".5",
        "1e",
        r#""\x""#,
        r#""\u12g4""#,
        r#""\ug234""#,
        r#""\ud800""#,
        "\"tab\there\"",
        r#""open"#,
        "[[[[[[]]]]]]",
        "1 2",
        r#"{"a":{"b":[1,"x",{"c":null}]},"d":false}"#,
        "{}}",
        r#"[{"a":[]},[],{}]"#,
        r#"{"":""}"#,
        "\u{feff}{}",
        "[\"\u{7f}\"]",
        "\u{0}",
    ];
    for text in texts {
        let theirs = serde_json::from_str::<&serde_json::value::RawValue>(text).is_ok();
        assert_eq!(check(text.as_bytes()).is_ok(), theirs, "{text:?}");
    }
}

#[test]
fn depth_does_not_matter() {
    let deep = [vec![b'['; 1_000_000], vec![b']'; 1_000_000]].concat();
    assert_eq!(check(&deep), Ok(()));
    assert!(check(&deep[1..]).is_err());
}

#[test]
fn children_are_cut_out_with_their_commas() {
    let cases: &[(&str, &[usize], &str)] = &[
        ("[1, 2, 3]", &[0], "[2, 3]"),
        ("[1, 2, 3]", &[1], "[1, 3]"),
        ("[1, 2, 3]", &[2], "[1, 2]"),
        ("[1, 2, 3]", &[1, 2], "[1]"),
        ("[1, 2, 3]", &[0, 2], "[2]"),
        ("[ 1 , 2 ]", &[0, 1], "[]"),
        ("[1]", &[], "[1]"),
    ];
    for (text, dropped, expect) in cases {
        let mut children = Vec::new();
        let whole = Cursor::new(text.as_bytes())
            .array(|element| {
                children.push(element.skip()?);
                Ok(())
            })
            .expect("the cases are JSON");
        let drop: Vec<bool> = (0..children.len()).map(|idx| dropped.contains(&idx)).collect();
        let mut left = (*text).to_owned();
        for cut in without(&whole, &children, &drop).into_iter().rev() {
            left.replace_range(cut, "");
        }
        assert_eq!(left, *expect, "{text} without {dropped:?}");
    }
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<i32>().prop_map(|n| Value::from(f64::from(n) / 4.0)),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 6, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            proptest::collection::vec((any::<String>(), inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    /// JSON text in which one byte was changed is accepted exactly if serde_json accepts it.
    #[test]
    fn damage_is_seen(value in value(), at: prop::sample::Index, byte: u8) {
        let mut text = serde_json::to_vec(&value).expect("a value serialises");
        let at = at.index(text.len());
        text[at] = byte;
        if let Ok(text) = std::str::from_utf8(&text) {
            let theirs = serde_json::from_str::<&serde_json::value::RawValue>(text).is_ok();
            prop_assert_eq!(check(text.as_bytes()).is_ok(), theirs, "{:?}", text);
        }
    }

    /// `check` never panics, whatever the input is.
    #[test]
    fn any_bytes_are_looked_at(bytes: Vec<u8>) {
        let _ = check(&bytes);
    }

    /// The ranges of members and elements contain the values that serde_json wrote, in order.
    #[test]
    fn children_are_found(value in value()) {
        let text = serde_json::to_string_pretty(&value).expect("a value serialises");
        let mut found = Vec::new();
        let mut cursor = Cursor::new(text.as_bytes());
        let all = match &value {
            Value::Array(elements) => {
                cursor.array(|element| { found.push(element.skip()?); Ok(()) })
                    .expect("it is JSON");
                elements.clone()
            }
            Value::Object(members) => {
                cursor.object(|member, _| { found.push(member.skip()?); Ok(()) })
                    .expect("it is JSON");
                members.values().cloned().collect()
            }
            _ => Vec::new(),
        };
        let read: Vec<Value> = found.into_iter()
            .map(|range| serde_json::from_str(&text[range]).expect("it is a value"))
            .collect();
        prop_assert_eq!(read, all);
    }
}
