//! Checks a message of this API, a `content`: whether each part of it is understood.

use epitome_json::Value;
use epitome_model::encode;

use super::read::TEXTS;
use crate::message::{
    self, CheckResult, Replacements, has_only, is_nothing, list, object, reject, text,
};

/// The keys of a part's data that are understood, each in both spellings.
const PARTS: [[&str; 2]; 7] = [
    ["text", "text"],
    ["functionCall", "function_call"],
    ["functionResponse", "function_response"],
    ["inlineData", "inline_data"],
    ["fileData", "file_data"],
    ["executableCode", "executable_code"],
    ["codeExecutionResult", "code_execution_result"],
];

/// The keys of opaque parts that are sent unchanged, to this API only. A picture is opaque if its
/// bytes are not in the body.
pub const CARRIED: &[[&str; 2]] = PARTS.split_at(3).1;

pub fn check_message(content: &Value<'_>, instead: &mut Replacements) -> CheckResult {
    let role = match content.get("role") {
        Some(_) => message::role(content, &["user", "model", "function"])?,
        None => "user",
    };
    has_only(content, &["parts"])?;
    match content.get("parts") {
        Some(parts) if parts.is_list() => list(parts, "parts", |it| part(it, role, instead)),
        Some(_) => reject("a `parts` that is not a list"),
        None => reject("no `parts`"),
    }
}

fn part(part: &Value<'_>, role: &str, instead: &mut Replacements) -> CheckResult {
    let mut present_keys = PARTS.iter().filter(|keys| part.any(&keys[..]).is_some());
    let (Some(keys), None) = (present_keys.next(), present_keys.next()) else {
        let known: Vec<&str> = PARTS.iter().map(|keys| keys[0]).collect();
        return reject(format_args!("not one of `{}`", known.join("`, `")));
    };
    has_only(part, &keys[..])?;
    match (keys[0], part.any(&keys[..])) {
        ("text", _) => text(part, "text"),
        ("functionCall", Some(_)) if role != "model" => reject("a call that is not of the model"),
        ("functionResponse", Some(_)) if role == "model" => reject("a result of the model"),
        ("functionCall", Some(call)) => {
            has_only(call, &["args"])?;
            text(call, "name")?;
            match call.get("args") {
                Some(args) if !args.is_null() => object(call, "args").map(|_| ()),
                Some(_) | None => Ok(()),
            }
        }
        ("functionResponse", Some(response)) => {
            has_only(response, &["response", "parts"])?;
            text(response, "name")?;
            returned(object(response, "response")?, instead);
            Ok(())
        }
        (key, _) => object(part, if part.get(key).is_some() { key } else { keys[1] }).map(|_| ()),
    }
}

/// Replaces the result of a function by its JSON as text, unless the result is empty or has only a
/// text under one of the keys [`TEXTS`].
fn returned(response: &Value<'_>, instead: &mut Replacements) {
    let members: Vec<_> =
        response.members().iter().filter(|(_, value)| !is_nothing(value)).collect();
    match members.as_slice() {
        [] => {}
        [(key, value)] if TEXTS.contains(&&**key) && value.is_text() => {}
        [..] => {
            let key = if response.any(&["error"]).is_some() { "error" } else { "output" };
            let json = encode(&String::from_utf8_lossy(response.raw()));
            instead.replace(response, format!(r#"{{"{key}":{json}}}"#));
        }
    }
}
