//! Recognises to-do lists in arguments, whatever keys an agent uses.

use serde_json::Value;

/// The state of a to-do item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Open,
    Active,
    Done,
}

/// The to-do list in the arguments of a call: the first array of objects that all have a state.
pub(crate) fn list(arguments: &Value) -> Option<Vec<(State, String)>> {
    match arguments {
        Value::Array(values) => {
            let items: Option<Vec<_>> = values.iter().map(item).collect();
            items.filter(|items| !items.is_empty())
        }
        Value::Object(members) => members.values().find_map(|value| match value {
            Value::Array(_) => list(value),
            _ => None,
        }),
        _ => None,
    }
}

/// Parses an item: its state, which is one of the words that agents use, and the longest of its
/// other texts. `None` if it has no state.
fn item(value: &Value) -> Option<(State, String)> {
    let texts = value.as_object()?.values().filter_map(Value::as_str);
    let mut state = None;
    let mut words = "";
    for text in texts {
        match (self::state(text), state) {
            (Some(found), None) => state = Some(found),
            _ if text.len() > words.len() => words = text,
            _ => {}
        }
    }
    Some((state?, words.to_owned()))
}

fn state(text: &str) -> Option<State> {
    match text {
        "pending" | "todo" | "open" | "not_started" => Some(State::Open),
        "in_progress" | "in-progress" | "active" | "doing" => Some(State::Active),
        "completed" | "done" | "complete" | "cancelled" => Some(State::Done),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_several_agents_are_found() {
        let items = |json: &str| list(&serde_json::from_str(json).unwrap());
        assert_eq!(
            items(r#"{"todos":[{"content":"Write it","status":"completed","activeForm":"W"}]}"#),
            Some(vec![(State::Done, "Write it".to_owned())])
        );
        assert_eq!(
            items(r#"{"explanation":"x","plan":[{"step":"A","status":"in_progress"}]}"#),
            Some(vec![(State::Active, "A".to_owned())])
        );
        assert_eq!(items(r#"{"todos":[{"content":"no state"}]}"#), None);
        assert_eq!(items("[]"), None);
    }
}
