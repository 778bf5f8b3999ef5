//! Reads the error in the body of a refused request, without the text that it quotes.

use epitome_model::Tokens;
use serde_json::Value;

/// An error of a service. All texts are in lower case.
#[derive(Debug, Default)]
pub(super) struct Refusal {
    /// The types, codes and kinds of the error.
    pub(super) kinds: Vec<String>,
    /// The message of the error, without quoted text.
    pub(super) message: String,
    /// The model's limit in tokens, if a member of the error names it.
    pub(super) limit: Option<Tokens>,
    /// Tokens of the request, if a member of the error names them.
    pub(super) asked: Option<Tokens>,
}

/// The number of characters of a message that are searched.
const LOOKED_AT: usize = 600;
/// How deep errors may be nested: a gateway wraps the error of the service behind it.
const DEEPEST: u32 = 3;

/// What gateways write before the message of a service.
const PREFIXES: [&str; 3] = ["litellm.", "error", "the model returned the following errors"];

impl Refusal {
    /// Reads the body of a refusal: JSON, an event stream, or plain text.
    pub(super) fn read(body: &str) -> Refusal {
        Refusal::from_body(body).unwrap_or_else(|| {
            let mut refusal = Refusal::default();
            refusal.add_message(body, DEEPEST);
            refusal
        })
    }

    /// Reads the error in a body, or the last error in an event stream; `None` if there is none.
    pub(super) fn from_body(body: &str) -> Option<Refusal> {
        if let Ok(value) = serde_json::from_str::<Value>(body) {
            return Refusal::from_value(&value, DEEPEST);
        }
        let data = body.lines().filter_map(|line| line.strip_prefix("data:"));
        let events = data.filter_map(|data| serde_json::from_str::<Value>(data.trim()).ok());
        events.filter_map(|event| Refusal::from_value(&event, DEEPEST)).next_back()
    }

    /// Reads a JSON value that is or contains an error.
    fn from_value(value: &Value, depth: u32) -> Option<Refusal> {
        // Google's services answer with a list of one error.
        let value = if value.is_array() { &value[0] } else { value };
        // OpenAI's event `response.failed` holds the response that failed.
        let places = ["/error", "/response/error", "/detail", "/errors/0"];
        let found = places.iter().filter_map(|place| value.pointer(place));
        let error = found.into_iter().find(|it| !it.is_null());
        let error = match error {
            Some(error) => error,
            // The object itself is the error: vLLM, Cohere, Bedrock.
            None if value["message"].is_string() && value["choices"].is_null() => value,
            None => return None,
        };
        // A list of validation errors: the message is in `msg`, and the quoted body is next to it.
        let error = if error.is_array() { &error[0] } else { error };
        let mut refusal = Refusal::default();
        for holder in [error, value] {
            for member in ["type", "code", "kind", "error_type", "status"] {
                let kind = holder[member].as_str();
                refusal.kinds.extend(kind.map(str::to_lowercase));
            }
        }
        refusal.limit = error["n_ctx"].as_u64().map(Tokens);
        refusal.asked = error["n_prompt_tokens"].as_u64().map(Tokens);
        let words = [&error["message"], &error["msg"], error];
        if let Some(words) = words.iter().find_map(|it| it.as_str()) {
            refusal.add_message(words, depth);
        }
        // OpenRouter includes the error of the provider.
        if let Some(raw) = error["metadata"]["raw"].as_str() {
            refusal.add_wrapped(raw, depth);
        }
        Some(refusal)
    }

    /// Adds a message. If it ends with JSON that holds an error, this error is added; otherwise the
    /// text of the message is.
    fn add_message(&mut self, words: &str, depth: u32) {
        let json = words.find(['{', '[']).unwrap_or(words.len());
        self.add_wrapped(&words[json..], depth);
        if self.message.is_empty() {
            let text = words.trim().to_lowercase();
            if !text.contains(char::is_whitespace) {
                self.kinds.push(text.clone());
            }
            self.message = unquoted(&text);
        }
    }

    /// Adds a wrapped error, whose message replaces that of the gateway. Does nothing if the text
    /// is no JSON with an error.
    fn add_wrapped(&mut self, text: &str, depth: u32) {
        let Some(depth) = depth.checked_sub(1) else { return };
        let value = serde_json::from_str::<Value>(text).ok();
        if let Some(inner) = value.and_then(|value| Refusal::from_value(&value, depth)) {
            self.kinds.extend(inner.kinds);
            self.message = inner.message;
            self.limit = self.limit.or(inner.limit);
            self.asked = self.asked.or(inner.asked);
        }
    }

    /// Whether the message or a kind contains `words`.
    pub(super) fn says(&self, words: &str) -> bool {
        self.message.contains(words) || self.kinds.iter().any(|kind| kind.contains(words))
    }

    /// Whether the message contains the first of these phrases within its first `within` bytes
    /// (twice as many after the text of a gateway), and the others after it, in this order.
    pub(super) fn begins_with(&self, words: &[&str], within: usize) -> bool {
        let mut rest = self.message.as_str();
        let known = PREFIXES.iter().any(|prefix| rest.starts_with(prefix));
        // Before the message of the service, the text of a gateway may take the same number of
        // bytes.
        let within = if known { within * 2 } else { within };
        words.iter().enumerate().all(|(n, word)| match rest.find(word) {
            Some(at) if n > 0 || at <= within => {
                rest = &rest[at + word.len()..];
                true
            }
            Some(_) | None => false,
        })
    }
}

/// A text without its quoted parts, which are from the request and may contain anything. A single
/// quoted word is a name, and is kept.
fn unquoted(text: &str) -> String {
    let text: String = text.chars().take(LOOKED_AT).collect();
    let mut out = String::new();
    let mut rest = text.as_str();
    let mut last = ' ';
    while let Some(c) = rest.chars().next() {
        let close = match c {
            '"' | '`' => Some(c),
            // The apostrophe in `model's` is not a quote.
            '\'' if !last.is_alphanumeric() => Some(c),
            '“' => Some('”'),
            '«' => Some('»'),
            _ => None,
        };
        let inner = &rest[c.len_utf8()..];
        let end = close.map(|close| inner.find(close).unwrap_or(inner.len()));
        match end.filter(|end| inner[..*end].contains(char::is_whitespace)) {
            Some(end) => {
                out.push('…');
                rest = &inner[end..];
                rest = rest.strip_prefix(close.unwrap_or(c)).unwrap_or(rest);
            }
            None => {
                // A quoted name is kept whole, so that its closing quote does not open another
                // quotation.
                let whole = end.map_or(0, |end| end + close.map_or(0, char::len_utf8));
                let whole = (c.len_utf8() + whole).min(rest.len());
                out.push_str(&rest[..whole]);
                rest = &rest[whole..];
            }
        }
        last = out.chars().next_back().unwrap_or(' ');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_quoted_is_left_out() {
        for (text, expect) in [
            ("plain words", "plain words"),
            ("`inputs` tokens + `max_new_tokens`", "`inputs` tokens + `max_new_tokens`"),
            ("the model's limit isn't 'a b'", "the model's limit isn't …"),
            ("role: \"prompt is too long\" is none", "role: … is none"),
            ("role: 'prompt is too long", "role: …"),
            ("'max_tokens' is too large: 'a b'", "'max_tokens' is too large: …"),
            ("“a b” ä", "… ä"),
            ("", ""),
        ] {
            assert_eq!(unquoted(text), expect, "{text}");
        }
    }
}
