use epitome_model::Role;
use serde_json::json;

use super::FORMAT;

/// The role that is read for a record of type `user` with this text.
fn role(text: &str) -> Role {
    let content = [json!(text), json!([{"type": "text", "text": text}])];
    let [told, listed] = content.map(|content| {
        let record = json!({"type": "user", "uuid": "u", "parentUuid": null,
            "message": {"role": "user", "content": content}});
        let transcript = (FORMAT.read)(&format!("{record}\n").into_bytes(), &mut Vec::new());
        transcript.context().next().expect("a message").1.role
    });
    assert_eq!(told, listed);
    told
}

#[test]
fn what_the_agent_says_in_the_role_of_the_user_begins_no_turn() {
    assert_eq!(role("[Request interrupted by user]"), Role::System);
    assert_eq!(role("[Request interrupted by user for tool use]"), Role::System);
    assert_eq!(role("<system-reminder>Go on.</system-reminder>"), Role::System);
    assert_eq!(role("[Request interrupted by user] was shown; why?"), Role::User);
    assert_eq!(role("why <system-reminder>?"), Role::User);
}
