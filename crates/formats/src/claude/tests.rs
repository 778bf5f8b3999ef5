use epitome_model::{Block, Role};
use serde_json::json;

use super::FORMAT;

/// The role that is read for a record of type `user` with this text.
fn role(text: &str) -> Role {
    let content = [json!(text), json!([{"type": "text", "text": text}])];
    let [inline, listed] = content.map(|content| {
        let record = json!({"type": "user", "uuid": "u", "parentUuid": null,
            "message": {"role": "user", "content": content}});
        let transcript = (FORMAT.read)(&format!("{record}\n").into_bytes(), &mut Vec::new());
        transcript.context().next().expect("a message").1.role
    });
    assert_eq!(inline, listed);
    inline
}

#[test]
fn what_the_agent_says_in_the_role_of_the_user_begins_no_turn() {
    assert_eq!(role("[Request interrupted by user]"), Role::System);
    assert_eq!(role("[Request interrupted by user for tool use]"), Role::System);
    assert_eq!(role("<system-reminder>Go on.</system-reminder>"), Role::System);
    assert_eq!(role("[Request interrupted by user] was shown; why?"), Role::User);
    assert_eq!(role("why <system-reminder>?"), Role::User);
}

/// Whether the reasoning in each record with reasoning may be removed. `records` are the records of
/// one response, each given by the kind of its content and its output tokens.
fn may_go(model: &str, records: &[(&str, u64)]) -> Vec<bool> {
    let line = |(n, (holds, output)): (usize, &(&str, u64))| {
        let block = match *holds {
            "thinking" => json!([{"type": "thinking", "thinking": "Hm.", "signature": "s"}]),
            "text" => json!([{"type": "text", "text": "Yes."}]),
            _ => json!([]),
        };
        let usage = json!({"input_tokens": 1, "output_tokens": output});
        let message = json!({"id": "m", "role": "assistant", "model": model, "content": block,
            "stop_reason": null, "usage": usage});
        let parent = n.checked_sub(1).map(|n| n.to_string());
        let record = json!({"type": "assistant", "uuid": n.to_string(), "parentUuid": parent,
            "requestId": "r", "message": message});
        format!("{record}\n")
    };
    let session: String = records.iter().enumerate().map(line).collect();
    let transcript = (FORMAT.read)(&session.into_bytes(), &mut Vec::new());
    let blocks = transcript.entries().flat_map(|(_, entry)| &entry.blocks);
    let thinking = blocks.filter_map(|block| match block {
        Block::Thinking(thinking) => Some(thinking.removable),
        _ => None,
    });
    thinking.collect()
}

#[test]
fn reasoning_stays_where_another_record_of_the_response_would_be_counted_instead() {
    let (old, bound) = ("claude-opus-4-5", "claude-fable-5");
    for (model, records, expect) in [
        (old, &[("thinking", 8), ("text", 8)][..], &[true][..]),
        (old, &[("thinking", 1), ("text", 8)], &[false]),
        (old, &[("thinking", 1), ("thinking", 8), ("text", 8)], &[false, false]),
        (old, &[("thinking", 8), ("text", 8), ("thinking", 9)], &[true, true]),
        (old, &[("thinking", 8)], &[false]),
        (old, &[("nothing", 1), ("thinking", 8), ("text", 8)], &[true]),
        (bound, &[("thinking", 1), ("text", 8)], &[true]),
    ] {
        assert_eq!(may_go(model, records), expect, "{model} {records:?}");
    }
}
