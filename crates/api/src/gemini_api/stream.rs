//! Chunks of `streamGenerateContent`: each is a response with the next parts.

use epitome_json::Value;
use epitome_model::encode;

use crate::response::raw;
use crate::stream::{Assembler, unfinished};
use crate::{BadResponse, Delta, OnDelta};

#[derive(Default)]
pub struct Chunks {
    parts: Vec<StreamedPart>,
    /// The last `promptFeedback` with a `blockReason` that a chunk contained.
    feedback: Option<String>,
    usage: Option<String>,
    model: Option<String>,
    finish: Option<String>,
}

enum StreamedPart {
    /// The text as far as it has arrived, and whether it is reasoning.
    Text { text: String, thought: bool },
    /// Any other part. Such a part arrives as a whole.
    Whole(String),
}

impl Assembler for Chunks {
    fn event(&mut self, event: &Value<'_>, on: OnDelta<'_>) -> Result<(), BadResponse> {
        keep(&mut self.usage, event.get("usageMetadata"));
        keep(&mut self.model, event.get("modelVersion"));
        let feedback = event.get("promptFeedback").filter(|it| it.get("blockReason").is_some());
        keep(&mut self.feedback, feedback);
        let Some(candidate) = event.list_of("candidates").first() else { return Ok(()) };
        keep(&mut self.finish, candidate.any(&["finishReason"]));
        let parts = candidate.get("content").map_or(&[][..], |content| content.list_of("parts"));
        parts.iter().for_each(|part| self.part(part, &mut *on));
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<String, BadResponse> {
        if self.finish.is_none() && self.feedback.is_none() {
            return Err(unfinished());
        }
        let parts: Vec<String> = self.parts.into_iter().map(StreamedPart::json).collect();
        let finish = self.finish.map(|it| format!(r#","finishReason":{it}"#)).unwrap_or_default();
        let content = format!(r#"{{"content":{{"parts":[{}]}}{finish}}}"#, parts.join(","));
        let mut members = vec![format!(r#""candidates":[{content}]"#)];
        let others = [
            ("promptFeedback", self.feedback),
            ("usageMetadata", self.usage),
            ("modelVersion", self.model),
        ];
        let others = others.into_iter().filter_map(|(key, value)| Some((key, value?)));
        members.extend(others.map(|(key, value)| format!(r#""{key}":{value}"#)));
        Ok(format!("{{{}}}", members.join(",")))
    }
}

fn keep(place: &mut Option<String>, value: Option<&Value<'_>>) {
    if let Some(value) = value {
        *place = Some(raw(value));
    }
}

impl Chunks {
    fn part(&mut self, part: &Value<'_>, on: OnDelta<'_>) {
        let thought = part.get("thought").is_some_and(Value::is_true);
        let call = part.any(&["functionCall", "function_call"]);
        if let Some(name) = call.and_then(|call| call.text_of("name")) {
            on(Delta::Call(&name));
        }
        let text = part.get("text").and_then(Value::text);
        if let Some(text) = &text {
            on(if thought { Delta::Thinking(text) } else { Delta::Text(text) });
        }
        // A part with other members, such as a signature, is not joined with others.
        let plain = part.members().iter().all(|(key, _)| matches!(&**key, "text" | "thought"));
        match (text, self.parts.last_mut()) {
            (Some(text), Some(StreamedPart::Text { text: before, thought: was }))
                if plain && *was == thought =>
            {
                before.push_str(&text);
            }
            (Some(text), _) if plain => {
                self.parts.push(StreamedPart::Text { text: text.into_owned(), thought });
            }
            (Some(_) | None, _) => self.parts.push(StreamedPart::Whole(raw(part))),
        }
    }
}

impl StreamedPart {
    fn json(self) -> String {
        match self {
            StreamedPart::Whole(raw) => raw,
            StreamedPart::Text { text, thought } => {
                let thought = if thought { r#","thought":true"# } else { "" };
                format!(r#"{{"text":{}{thought}}}"#, encode(&text))
            }
        }
    }
}
