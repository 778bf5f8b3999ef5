//! Questions to the user of an editor: whether a call may run, and what the model asks.

use serde_json::{Value, json};

use crate::machine::NoAnswer;
use crate::permissions::Answer;

/// The name of the only field of the form that shows a question of the model.
const ANSWER: &str = "answer";

/// The choices of the user when a call needs permission. `always` describes the calls to which
/// "always" and "never" would apply.
pub(super) fn options(always: &str) -> Value {
    json!([
        {"optionId": "once", "name": "Allow", "kind": "allow_once"},
        {"optionId": "always", "name": format!("Always allow {always}"), "kind": "allow_always"},
        {"optionId": "no", "name": "Refuse", "kind": "reject_once"},
        {"optionId": "never", "name": format!("Never allow {always}"), "kind": "reject_always"},
    ])
}

/// The user's answer to whether a call may run. [`Answer::Unattended`] if the request to the editor
/// failed. Any answer that is not an option of [`options`] refuses this call only. That includes
/// the answer of a user who cancels: the editor then also sends the notification `session/cancel`,
/// which ends the turn.
pub(super) fn answer(response: Result<Value, Value>) -> Answer {
    let Ok(response) = response else { return Answer::Unattended };
    match response["outcome"]["optionId"].as_str() {
        Some("once") => Answer::Once,
        Some("always") => Answer::Always,
        Some("never") => Answer::Never,
        _ => Answer::No,
    }
}

/// A question of the model, as a form with one field.
pub(super) fn form(session: &str, call: &str, question: &str, choices: &[String]) -> Value {
    let mut field = json!({"type": "string"});
    if !choices.is_empty() {
        field["enum"] = choices.into();
    }
    let schema = json!({"type": "object", "properties": {ANSWER: field}, "required": [ANSWER]});
    json!({
        "mode": "form", "sessionId": session, "toolCallId": call, "message": question,
        "requestedSchema": schema,
    })
}

/// The answer in a form. [`NoAnswer::Declined`] if the user did not accept the form, or if the form
/// contains no answer; [`NoAnswer::Unattended`] if the request to the editor failed.
pub(super) fn answer_from(response: Result<Value, Value>) -> Result<String, NoAnswer> {
    let response = response.map_err(|_| NoAnswer::Unattended)?;
    let is_answer = response["action"] == "accept";
    let answer = response["content"][ANSWER].as_str().filter(|_| is_answer);
    answer.map(str::to_owned).ok_or(NoAnswer::Declined)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_yes_is_a_no() {
        let chosen = |id: &str| Ok(json!({"outcome": {"outcome": "selected", "optionId": id}}));
        let cancelled = Ok(json!({"outcome": {"outcome": "cancelled"}}));
        let cases = [
            (chosen("once"), Answer::Once),
            (chosen("always"), Answer::Always),
            (chosen("no"), Answer::No),
            (chosen("never"), Answer::Never),
            (chosen("yes!"), Answer::No),
            (cancelled, Answer::No),
            (Ok(json!(7)), Answer::No),
            (Err(json!({"code": -32601})), Answer::Unattended),
        ];
        for (response, expect) in cases {
            assert_eq!(answer(response.clone()), expect, "{response:?}");
        }
    }

    #[test]
    fn a_form_has_an_answer_only_if_the_user_accepts_it() {
        let content = json!({"answer": "1.1"});
        let accepted = json!({"action": "accept", "content": content});
        let declined = json!({"action": "decline", "content": content});
        assert_eq!(answer_from(Ok(accepted)), Ok("1.1".to_owned()));
        assert_eq!(answer_from(Ok(declined)), Err(NoAnswer::Declined));
        assert_eq!(answer_from(Ok(json!({"action": "accept"}))), Err(NoAnswer::Declined));
        assert_eq!(answer_from(Err(json!({"code": -32601}))), Err(NoAnswer::Unattended));
    }
}
