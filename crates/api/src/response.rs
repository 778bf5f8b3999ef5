//! The response of a model service, as an [`Entry`].

use std::ops::Range;

use epitome_json::{Document, Value};
use epitome_model::{
    Block, Call, Entry, Fault, Record, Role, Span, StopReason, TokenUsage, Tokens,
};

use super::Api;

/// The response of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct Response {
    /// The blocks of the response, in order: texts, reasoning, calls, and values that epitome does
    /// not understand. No blocks if the response is empty.
    pub entry: Entry,
    /// The bytes that contain the texts of `entry`: the body of a request to the same API (for
    /// Ollama, to Chat Completions) with the response as its only content.
    pub source: Vec<u8>,
    /// Why the model stopped.
    pub stop: StopReason,
    /// The tokens that the service counted. `None` if it reports no input tokens, or an impossibly
    /// high number.
    pub usage: Option<TokenUsage>,
    /// The range in `source` of each message of the response.
    elements: Vec<Range<usize>>,
}

impl Response {
    /// The response as the next request sends it back: the elements of that request's list of
    /// messages, as JSON. Values are byte for byte as in the body that was parsed, except for
    /// Ollama, whose messages are converted.
    pub fn messages(&self) -> Vec<&str> {
        let texts = self.elements.iter().map(|range| &self.source[range.clone()]);
        texts.map(|text| std::str::from_utf8(text).expect("it was made from text")).collect()
    }

    /// The texts of the response, joined without a separator; no reasoning.
    pub fn text(&self) -> String {
        let texts = self.entry.blocks.iter().filter_map(|block| match block {
            Block::Text(text) => Some(text.read(&self.source)),
            _ => None,
        });
        texts.collect()
    }

    /// The tool calls of the response, in order.
    pub fn calls(&self) -> impl Iterator<Item = &Call> {
        self.entry.blocks.iter().filter_map(|block| match block {
            Block::Call(call) => Some(call),
            _ => None,
        })
    }
}

/// Why a body is not a valid response, though the service reported success.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BadResponse {
    /// The body is cut off; the text says what is incomplete.
    Cut(String),
    /// The body is not a response of this API; the text says why.
    Unreadable(String),
    /// The body is an error of the service, as JSON.
    Error(String),
}

/// What the parser of an API finds in the body of a response.
#[derive(Debug, Default)]
pub(crate) struct Parsed {
    /// The messages, as JSON, with which the next request repeats the response.
    pub(crate) messages: Vec<String>,
    /// The model that responded.
    pub(crate) model: Option<String>,
    pub(crate) stop: Option<StopReason>,
    pub(crate) usage: Option<TokenUsage>,
}

impl Api {
    /// Parses the body of a response: as the service sends it without streaming, or as
    /// [`Stream::finish`](crate::Stream::finish) returns it.
    ///
    /// ```
    /// use epitome_api::{BadResponse, find_api};
    ///
    /// let api = find_api("anthropic").expect("an API");
    /// let body = br#"{"content":[{"type":"text","text":"Hi"}],"stop_reason":"end_turn"}"#;
    /// let response = api.response(body).expect("a response");
    /// assert_eq!(response.text(), "Hi");
    /// let sent_back = r#"{"role":"assistant","content":[{"type":"text","text":"Hi"}]}"#;
    /// assert_eq!(response.messages(), [sent_back]);
    /// assert!(matches!(api.response(&body[..40]), Err(BadResponse::Cut(_))));
    /// ```
    ///
    /// # Errors
    ///
    /// [`BadResponse`] if the body is cut off, is not a response of this API, or is an error of the
    /// service.
    pub fn response(&self, body: &[u8]) -> Result<Response, BadResponse> {
        let text = String::from_utf8_lossy(body);
        let document = Document::parse(text.as_bytes()).map_err(|_| unreadable(&text))?;
        let root = &document.root;
        if root.any(&["error"]).is_some() {
            return Err(BadResponse::Error(text.into_owned()));
        }
        let parsed = (self.parse_response)(root);
        let parsed = parsed.ok_or_else(|| wrong("it contains no answer"))?;
        let Parsed { messages, model, stop, usage } = parsed;
        let usage = usage.filter(is_plausible);
        let mut source = format!(r#"{{"{}":["#, self.list);
        let mut elements = Vec::new();
        for message in &messages {
            if !elements.is_empty() {
                source.push(',');
            }
            elements.push(source.len()..source.len() + message.len());
            source.push_str(message);
        }
        let whole = elements.first().map_or(0, |it| it.start)..source.len();
        source.push_str("]}");
        let source = source.into_bytes();
        let mut faults: Vec<Fault> = Vec::new();
        let transcript = (self.format.read)(&source, &mut faults);
        if let Some(Fault { what, .. }) = faults.into_iter().next() {
            return Err(BadResponse::Unreadable(what));
        }
        let span = Span { start: whole.start as u64, end: whole.end as u64 };
        let record = Record { line: 1, span };
        let mut entry = Entry { record, role: Role::Assistant, ..Entry::default() };
        entry.model = model.map(Into::into);
        entry.usage = usage.map(Into::into);
        for (_, part) in transcript.context() {
            entry.blocks.extend(part.blocks.iter().cloned());
        }
        let calls = entry.blocks.iter().any(|block| matches!(block, Block::Call(_)));
        let stop = match stop {
            Some(StopReason::End) if calls => StopReason::Call,
            Some(stop) => stop,
            None if calls => StopReason::Call,
            None => StopReason::Other("it does not say why it ended".into()),
        };
        Ok(Response { entry, source, stop, usage, elements })
    }
}

fn unreadable(text: &str) -> BadResponse {
    match serde_json::from_str::<serde_json::Value>(text) {
        Err(err) if err.is_eof() => BadResponse::Cut("its JSON is cut off".into()),
        Ok(_) | Err(_) => wrong("it is not JSON"),
    }
}

/// The error for a body that is not a response of its API; `why` is the reason.
pub(super) fn wrong(why: impl Into<String>) -> BadResponse {
    BadResponse::Unreadable(why.into())
}

/// The bytes of a value as text.
pub(super) fn raw(value: &Value<'_>) -> String {
    String::from_utf8_lossy(value.raw()).into_owned()
}

/// The value of a member that is a number of tokens; `None` if there is no such member, or if it is
/// no whole number.
pub(super) fn count(object: Option<&Value<'_>>, key: &str) -> Option<Tokens> {
    let value = object?.get(key)?;
    let bytes = value.raw();
    let count = epitome_json::integer(bytes, &(0..bytes.len()))?;
    // The count is limited, so that sums of counts do not overflow.
    Some(Tokens(count.min(u64::from(u32::MAX))))
}

/// A number of tokens that no request has. A usage with so many tokens or more is ignored.
const IMPLAUSIBLE: Tokens = Tokens(100_000_000);

/// Whether a service can have counted so many tokens in one request.
fn is_plausible(usage: &TokenUsage) -> bool {
    usage.all_input() + usage.output < IMPLAUSIBLE
}

/// The usage in a response of a service that counts cached tokens as part of the input. `input`,
/// `output` and `details` are the names of members. `None` if the input is not reported.
pub(super) fn usage(
    usage: Option<&Value<'_>>,
    input: &str,
    output: &str,
    details: &str,
) -> Option<TokenUsage> {
    let details = usage.and_then(|usage| usage.get(details));
    let cached = count(details, "cached_tokens").unwrap_or_default();
    let cache_written = count(details, "cache_write_tokens").unwrap_or_default();
    Some(TokenUsage {
        input: count(usage, input)? - cached - cache_written,
        cached,
        cache_written,
        output: count(usage, output).unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{anthropic, gemini_api, ollama, openai_chat, openai_responses};

    /// Describes the response in a body: the kinds of its blocks, the reason why it stopped, and
    /// its input and output tokens.
    fn describe(api: &Api, body: &str) -> String {
        let response = match api.response(body.as_bytes()) {
            Ok(response) => response,
            Err(bad) => return format!("{bad:?}"),
        };
        let kinds = response.entry.blocks.iter().map(|block| match block {
            Block::Text(text) => format!("text {}", text.read(&response.source)),
            Block::Thinking(_) => "thinking".to_owned(),
            Block::Call(call) => format!("call {} {}", call.id, call.name),
            _ => "opaque".to_owned(),
        });
        let kinds: Vec<String> = kinds.collect();
        let usage = response.usage.map(|it| (it.all_input().0, it.output.0));
        format!("{} | {:?} | {usage:?}", kinds.join(", "), response.stop)
    }

    #[test]
    fn an_impossible_count_is_no_count() {
        let cases: &[(&Api, &str, &str)] = &[
            (
                &anthropic::API,
                r#"{"content":[],"stop_reason":"end_turn","usage":{"input_tokens":1,
                    "cache_read_input_tokens":99999998}}"#,
                " | End | Some((99999999, 0))",
            ),
            (
                &anthropic::API,
                r#"{"content":[],"stop_reason":"end_turn","usage":{"input_tokens":1,
                    "output_tokens":18446744073709551615}}"#,
                " | End | None",
            ),
            (
                &gemini_api::API,
                r#"{"candidates":[{"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":1,
                    "candidatesTokenCount":18446744073709551615,
                    "thoughtsTokenCount":18446744073709551615}}"#,
                " | End | None",
            ),
        ];
        for (api, body, expect) in cases {
            assert_eq!(describe(api, body), *expect, "{body}");
        }
    }

    #[test]
    fn what_a_response_says_is_found_in_every_api() {
        let (claude, chat) = (&anthropic::API, &openai_chat::API);
        let (responses, gemini, ollama) = (&openai_responses::API, &gemini_api::API, &ollama::API);
        let cases: &[(&Api, &str, &str)] = &[
            (claude, r#"{"content":[],"stop_reason":"refusal"}"#, " | Refused | None"),
            (
                claude,
                r#"{"content":[{"type":"thinking","thinking":"a","signature":"b"},
                    {"type":"tool_use","id":"t","name":"Read","input":{}}],
                    "stop_reason":"tool_use","usage":{"input_tokens":1,"output_tokens":2,
                    "cache_creation_input_tokens":4}}"#,
                "thinking, call t Read | Call | Some((5, 2))",
            ),
            (
                claude,
                r#"{"content":[],"stop_reason":"pause_turn"}"#,
                r#" | Other("pause_turn") | None"#,
            ),
            (claude, r#"{"content":"text"}"#, r#"Unreadable("it contains no answer")"#),
            (claude, r#"{"content":[{"type":"te"#, r#"Cut("its JSON is cut off")"#),
            (claude, "busy", r#"Unreadable("it is not JSON")"#),
            (claude, r#"{"error":"a"}"#, r#"Error("{\"error\":\"a\"}")"#),
            (
                chat,
                r#"{"error":null,"choices":[{"message":{"content":"a","refusal":null,
                    "reasoning":"b"},"finish_reason":"length"}]}"#,
                "thinking, text a | Length | None",
            ),
            (chat, r#"{"choices":[]}"#, r#"Unreadable("it contains no answer")"#),
            (
                chat,
                r#"{"choices":[{"message":{"content":""}}]}"#,
                r#" | Other("it does not say why it ended") | None"#,
            ),
            (
                responses,
                r#"{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},
                    "output":[{"type":"reasoning","summary":[],"encrypted_content":"a"},
                    {"type":"message","role":"assistant","content":[{"type":"output_text",
                    "text":"b"}]}]}"#,
                "thinking, text b | Length | None",
            ),
            (
                responses,
                r#"{"status":"completed","output":[{"type":"message","role":"assistant",
                    "content":[{"type":"refusal","refusal":"no"}]}]}"#,
                "opaque | Refused | None",
            ),
            (
                gemini,
                r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"Read"}}]},
                    "finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":9,
                    "cachedContentTokenCount":4,"thoughtsTokenCount":2}}"#,
                "call call 1 Read | Call | Some((9, 2))",
            ),
            (gemini, r#"{"candidates":[{"finishReason":"SAFETY"}]}"#, " | Refused | None"),
            (
                ollama,
                r#"{"message":{"content":"a"},"done_reason":"load"}"#,
                r#"text a | Other("load") | None"#,
            ),
        ];
        for (api, body, expect) in cases {
            assert_eq!(&describe(api, body), expect, "{api:?} {body}");
        }
    }

    #[test]
    fn a_filter_ends_a_completion_and_calls_without_ids_are_numbered() {
        let body = r#"{"choices":[{"message":{"content":"a"},"finish_reason":"content_filter"}]}"#;
        assert_eq!(describe(&openai_chat::API, body), "text a | Refused | None");
        // Older versions of Ollama give no ids.
        let body = r#"{"message":{"tool_calls":[{"function":{"name":"Read"}},
            {"function":{"name":"Grep"}}]},"done_reason":"length"}"#;
        let expect = "call call_0 Read, call call_1 Grep | Length | None";
        assert_eq!(describe(&ollama::API, body), expect);
    }

    #[test]
    fn ollama_counts_the_tokens_of_a_response() {
        let body = r#"{"message":{"content":"a"},"done_reason":"stop","prompt_eval_count":9,
            "eval_count":2}"#;
        assert_eq!(describe(&ollama::API, body), "text a | End | Some((9, 2))");
    }

    #[test]
    fn null_members_of_a_completion_are_not_sent_back() {
        let body = r#"{"choices":[{"message":{"content":"a","refusal":null,"tool_calls":null},
            "finish_reason":"stop"}]}"#;
        let response = openai_chat::API.response(body.as_bytes()).expect("a response");
        assert_eq!(response.messages(), [r#"{"role":"assistant","content":"a"}"#]);
    }
}
