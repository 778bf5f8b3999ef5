//! A provider that refuses a request as too long: how that is known.
//!
//! The texts are those that providers send, as collections of them in public agents tell.

use epitome_model::Tokens;
use serde::Serialize;

/// A request that was too long for its model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Overflow {
    /// Whose words said so, or who else speaks like that.
    pub provider: &'static str,
    /// Tokens that the model takes, if it was told.
    pub limit: Option<Tokens>,
    /// Tokens that the request had, if it was told.
    pub asked: Option<Tokens>,
}

/// One way of saying it: all of these words, in lower case.
struct Family {
    provider: &'static str,
    words: &'static [&'static str],
    numbers: Numbers,
}

/// Which of the numbers in a text is which.
#[derive(Clone, Copy)]
enum Numbers {
    LimitFirst,
    AskedFirst,
    Unsaid,
}

use Numbers::{AskedFirst, LimitFirst, Unsaid};

const fn family(
    provider: &'static str,
    words: &'static [&'static str],
    numbers: Numbers,
) -> Family {
    Family { provider, words, numbers }
}

/// The first that fits counts.
const FAMILIES: &[Family] = &[
    family("anthropic", &["prompt is too long"], AskedFirst),
    family("anthropic", &["request_too_large"], Unsaid),
    family("anthropic", &["model_context_window_exceeded"], Unsaid),
    family("anthropic", &["input length and", "exceed context limit"], Unsaid),
    family("bedrock", &["input is too long for requested model"], Unsaid),
    family("bedrock", &["too many input tokens"], Unsaid),
    family("google", &["input token count", "exceeds the maximum"], AskedFirst),
    family("google", &["request payload size exceeds the limit"], Unsaid),
    family("xai", &["maximum prompt length is"], LimitFirst),
    family("openrouter", &["endpoint's maximum context length is"], LimitFirst),
    family("openai", &["maximum context length is"], LimitFirst),
    family("openai", &["exceeds the context window"], Unsaid),
    family("openai", &["context_length_exceeded"], Unsaid),
    family("groq", &["reduce the length of the messages"], Unsaid),
    family("copilot", &["prompt token count", "exceeds the limit of"], AskedFirst),
    family("llama.cpp", &["exceeds the available context size"], Unsaid),
    family("lm-studio", &["greater than the context length"], Unsaid),
    family("minimax", &["context window exceeds limit"], Unsaid),
    family("kimi", &["exceeded model token limit"], LimitFirst),
    family("mistral", &["too large for model", "maximum context length"], Unsaid),
    family("z.ai", &["prompt exceeds max length"], Unsaid),
    family("deepseek", &["exceeds maximum model length"], Unsaid),
    family("ollama", &["context length exceeded"], Unsaid),
    family("any", &["prompt_too_long"], Unsaid),
    family("any", &["token limit exceeded"], Unsaid),
    family("any", &["too many tokens"], Unsaid),
];

/// Words of refusals that pass by themselves: a quota, a rate.
const PASSING: [&str; 5] = ["rate limit", "rate_limit", "throttl", "please wait", "tokens per min"];

/// Whether a refusal says that the request was too long: its status if there is one, and its body.
///
/// ```
/// use epitome_llm::overflow;
/// use epitome_model::Tokens;
///
/// let body = r#"{"error":{"message":"prompt is too long: 213462 tokens > 200000 maximum"}}"#;
/// let told = overflow(Some(400), body).expect("it is one");
/// assert_eq!((told.provider, told.limit), ("anthropic", Some(Tokens(200_000))));
/// assert_eq!(overflow(Some(429), body), None);
/// ```
pub fn overflow(status: Option<u16>, body: &str) -> Option<Overflow> {
    let text = body.to_lowercase();
    let passing = PASSING.iter().any(|words| text.contains(words));
    if status == Some(429) || passing || status.is_some_and(|status| status < 400) {
        return None;
    }
    let found = FAMILIES.iter().find(|it| it.words.iter().all(|words| text.contains(words)));
    let (limit, asked) = match found.map(|it| (it.numbers, it)) {
        Some((Unsaid, _)) | None => (None, None),
        Some((order, family)) => {
            let from = text.find(family.words[0]).unwrap_or(0);
            let mut numbers = numbers(&text[from..]);
            let (first, second) = (numbers.next(), numbers.next());
            if matches!(order, LimitFirst) { (first, second) } else { (second, first) }
        }
    };
    match found {
        Some(family) => Some(Overflow { provider: family.provider, limit, asked }),
        // A body that is too large for the wire; Cerebras and Mistral say nothing at all.
        None if status == Some(413) => Some(Overflow { provider: "any", limit, asked }),
        None if status == Some(400) && text.trim().is_empty() => {
            Some(Overflow { provider: "cerebras", limit, asked })
        }
        None => None,
    }
}

/// Numbers of at least three digits; commas between digits are none.
fn numbers(text: &str) -> impl Iterator<Item = Tokens> {
    let plain = text.replace(',', "");
    let found: Vec<Tokens> = plain
        .split(|c: char| !c.is_ascii_digit())
        .filter(|digits| digits.len() >= 3)
        .filter_map(|digits| digits.parse().ok().map(Tokens))
        .collect();
    found.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_of_providers_are_told_apart() {
        type Told = Option<(&'static str, Option<u64>)>;
        let cases: &[(u16, &str, Told)] = &[
            (
                400,
                "prompt is too long: 213462 tokens > 200000 maximum",
                Some(("anthropic", Some(200_000))),
            ),
            (
                413,
                r#"{"type":"error","error":{"type":"request_too_large"}}"#,
                Some(("anthropic", None)),
            ),
            (400, "Input is too long for requested model.", Some(("bedrock", None))),
            (
                400,
                "This model's maximum context length is 128000 tokens. However, your messages \
                resulted in 128,004 tokens.",
                Some(("openai", Some(128_000))),
            ),
            (400, r#"{"error":{"code":"context_length_exceeded"}}"#, Some(("openai", None))),
            (400, "Your input exceeds the context window of this model", Some(("openai", None))),
            (
                400,
                "The input token count (1196265) exceeds the maximum number of tokens allowed \
                (1048575).",
                Some(("google", Some(1_048_575))),
            ),
            (
                400,
                "This model's maximum prompt length is 131072 but the request contains 537812 \
                tokens.",
                Some(("xai", Some(131_072))),
            ),
            (400, "Please reduce the length of the messages or completion.", Some(("groq", None))),
            (
                400,
                "prompt token count of 129000 exceeds the limit of 128000",
                Some(("copilot", Some(128_000))),
            ),
            (
                400,
                "the request exceeds the available context size, try increasing it",
                Some(("llama.cpp", None)),
            ),
            (400, "", Some(("cerebras", None))),
            (413, "", Some(("any", None))),
            (429, "prompt is too long", None),
            (400, "Too many tokens, please wait before trying again.", None),
            (400, "max_tokens: 100000 > 8192, the maximum allowed number of output tokens", None),
            (400, "invalid tool schema", None),
            (500, "", None),
            (200, "prompt is too long", None),
        ];
        for (status, body, expect) in cases {
            let told = overflow(Some(*status), body);
            let told = told.map(|it| (it.provider, it.limit.map(|limit| limit.0)));
            assert_eq!(told, *expect, "{status} {body}");
        }
    }
}
