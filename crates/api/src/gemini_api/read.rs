//! Converts a request body into a transcript.

use epitome_json::Value;
use epitome_model::{Block, Image, Output, Part, Role, Thinking};

use crate::Body;

/// Keys under which a function returns its result as text.
pub const TEXTS: [&str; 5] = ["output", "error", "result", "content", "text"];

/// Whether the bytes are a request of this API, or the beginning of one: an object whose `contents`
/// have `parts`, and nothing after it. The object has none of the keys `messages`, `input`,
/// `sessionId` and `projectHash`, which requests of other APIs and agents' files have.
pub fn sniff(head: &[u8]) -> bool {
    let Some(seen) = crate::skim(head) else { return false };
    let other = ["messages", "sessionId", "projectHash", "input"];
    !seen.more && seen.has("contents") && seen.members.contains("parts") && !seen.has_any(&other)
}

/// Reads a request body.
pub fn body(body: &mut Body<'_>, root: &Value<'_>) {
    body.model_and_tools(root);
    if let Some(system) = root.any(&["systemInstruction", "system_instruction"]) {
        let parts = system.list_of("parts").iter();
        let words = parts.map(|part| match part.string("text") {
            Some(text) => Block::Text(text.to_source_text()),
            None => Block::Opaque(part.span()),
        });
        body.prompt(system, words.collect());
    }
    messages(body, root.list_of("contents"));
}

/// Reads the contents of a request.
pub fn messages(body: &mut Body<'_>, contents: &[Value<'_>]) {
    let prompt = contents.iter().rposition(|it| !it.is("role", "model") && !answers(it));
    let mut reader = Reader { open: Vec::new(), calls: 0 };
    for (idx, content) in contents.iter().enumerate() {
        // Reasoning after the last user message without results must be sent back unchanged.
        reader.content(body, content, prompt.is_some_and(|prompt| idx < prompt));
    }
}

fn answers(content: &Value<'_>) -> bool {
    content.list_of("parts").iter().any(|part| function_response(part).is_some())
}

fn function_call<'v, 'd>(part: &'v Value<'d>) -> Option<&'v Value<'d>> {
    part.any(&["functionCall", "function_call"])
}

fn function_response<'v, 'd>(part: &'v Value<'d>) -> Option<&'v Value<'d>> {
    part.any(&["functionResponse", "function_response"])
}

struct Reader {
    /// The calls in the last response that have no result yet: the id and the function name of
    /// each.
    open: Vec<(Box<str>, Box<str>)>,
    /// The number of calls so far. A call without an id gets an id from this number.
    calls: usize,
}

impl Reader {
    fn content(&mut self, body: &mut Body<'_>, content: &Value<'_>, past: bool) {
        let parts = content.list_of("parts");
        let role = match content.text_of("role").as_deref() {
            Some("model") => Role::Assistant,
            Some("system") => Role::System,
            Some(_) | None => Role::User,
        };
        let results = parts.iter().filter(|part| function_response(part).is_some()).count();
        if role == Role::Assistant {
            self.open.clear();
        }
        if results > 0 && results < parts.len() {
            for part in parts {
                let is_result = function_response(part).is_some();
                let block = self.convert_block(part, false);
                body.say(part, if is_result { Role::Tool } else { role }, vec![block]);
            }
            return;
        }
        let alone = parts.iter().all(|part| part.get("thought").is_some_and(Value::is_true));
        let blocks = parts.iter().map(|part| self.convert_block(part, past && !alone)).collect();
        body.say(content, if results > 0 { Role::Tool } else { role }, blocks);
    }

    fn convert_block(&mut self, part: &Value<'_>, past: bool) -> Block {
        let whole = part.span();
        if let Some(call) = function_call(part) {
            return self.call(part, call, past).unwrap_or(Block::Opaque(whole));
        }
        if let Some(response) = function_response(part) {
            return Block::Output(self.output(response));
        }
        let text = part.string("text");
        match (text, image(part)) {
            (Some(text), _) if part.get("thought").is_some_and(Value::is_true) => {
                let removable = past;
                Block::Thinking(Thinking { text: Some(text.to_source_text()), whole, removable })
            }
            (Some(text), _) => Block::Text(text.to_source_text()),
            (None, Some(image)) => Block::Image(image),
            (None, None) => Block::Opaque(whole),
        }
    }

    fn call(&mut self, part: &Value<'_>, call: &Value<'_>, past: bool) -> Option<Block> {
        let name = call.text_of("name")?;
        self.calls += 1;
        let id = match call.text_of("id") {
            Some(id) => id.into_owned(),
            None => format!("call {}", self.calls),
        };
        let arguments = call.get("args").unwrap_or(call);
        let mut made = crate::call(&id, &name, arguments);
        let signed = part.any(&["thoughtSignature", "thought_signature"]).is_some();
        if signed && !past {
            made.fields.clear();
        }
        self.open.push((id.into(), name.as_ref().into()));
        Some(Block::Call(made))
    }

    fn output(&mut self, response: &Value<'_>) -> Output {
        let response_value = response.get("response");
        let text = response_value
            .and_then(|response_value| response_value.any(&TEXTS))
            .filter(|text| text.is_text());
        let mut parts = match (text, response_value) {
            (Some(text), _) => vec![Part::Text(text.to_source_text())],
            (None, Some(response_value)) => vec![Part::Opaque(response_value.span())],
            (None, None) => Vec::new(),
        };
        parts.extend(response.list_of("parts").iter().map(|part| Part::Opaque(part.span())));
        Output {
            call: self.answered(response),
            error: response_value
                .is_some_and(|response_value| response_value.any(&["error"]).is_some()),
            parts,
            whole: text.or(response_value).map(Value::span).unwrap_or_default(),
            ..Output::default()
        }
    }

    /// The id of the call that a result belongs to: the id in the result; without one, the id of
    /// the first call of the same function that has no result yet; without such a call, a text that
    /// names the function.
    fn answered(&mut self, response: &Value<'_>) -> Box<str> {
        let id = response.text_of("id");
        let name = response.text_of("name").unwrap_or_default();
        let found = match &id {
            Some(id) => self.open.iter().position(|(open, _)| **open == **id),
            None => self.open.iter().position(|(_, open)| **open == *name),
        };
        match (found, id) {
            (Some(found), _) => self.open.remove(found).0,
            (None, Some(id)) => id.as_ref().into(),
            (None, None) => format!("no call of {name}").into(),
        }
    }
}

/// The picture in a part; `None` if the part is no picture, or if its bytes are not in the body.
fn image(part: &Value<'_>) -> Option<Image> {
    let inline = part.any(&["inlineData", "inline_data"])?;
    let data = inline.string("data")?;
    let media = inline.any(&["mimeType", "mime_type"])?.text()?;
    if !media.starts_with("image/") {
        return None;
    }
    Some(Image { media: media.as_ref().into(), data: data.span(), whole: part.span() })
}
