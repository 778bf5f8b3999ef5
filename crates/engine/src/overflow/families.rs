//! The messages with which providers refuse a request as too long, as data. Each message is from a
//! public collection named below, or from the source code of the service.

/// A message, in lower case, that one or more providers use. The first of its phrases must be near
/// the beginning of the text, the others after it.
pub(super) struct Family {
    pub(super) provider: &'static str,
    pub(super) words: &'static [&'static str],
    pub(super) numbers: Numbers,
}

/// Which of the numbers after the first phrase is the limit, and which is the size of the request.
#[derive(Clone, Copy)]
pub(super) enum Numbers {
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

/// The messages, in the order in which they are tried: the first that matches is taken.
///
/// Sources: pi `packages/ai/src/utils/overflow.ts`, opencode `packages/opencode/src/session`,
/// litellm `litellm_core_utils/exception_mapping_utils.py`, letta `llm_api/error_utils.py`,
/// openhands `llm/exceptions`; the text of TGI is in its `router/src/validation.rs`, that of
/// llama.cpp in its `tools/server`, that of vLLM in `entrypoints/openai`.
pub(super) const FAMILIES: &[Family] = &[
    family("anthropic", &["prompt is too long"], AskedFirst),
    family("anthropic", &["input length and", "exceed context limit"], Unsaid),
    family("anthropic", &["request exceeds the maximum size"], Unsaid),
    family("bedrock", &["input is too long for requested model"], Unsaid),
    family("bedrock", &["too many input tokens"], LimitFirst),
    family("google", &["input token count", "exceeds the maximum"], AskedFirst),
    family("google", &["request payload size exceeds the limit"], Unsaid),
    family("xai", &["maximum prompt length is"], LimitFirst),
    family("mistral", &["too large for model with", "maximum context length"], LimitFirst),
    family("openrouter", &["endpoint's maximum context length is"], LimitFirst),
    family("openai", &["maximum context length is"], LimitFirst),
    family("openai", &["maximum context length of"], LimitFirst),
    family("openai", &["input exceeds the context window"], Unsaid),
    family("openai", &["input tokens exceed the configured limit"], LimitFirst),
    family("cerebras", &["current length is", "while limit is"], AskedFirst),
    family("groq", &["reduce the length of the messages"], Unsaid),
    family("copilot", &["prompt token count", "exceeds the limit of"], AskedFirst),
    family("tgi", &["`inputs` tokens + `max_new_tokens` must be"], LimitFirst),
    family("tgi", &["`inputs` must have less than"], LimitFirst),
    family("llama.cpp", &["exceeds the available context size"], LimitFirst),
    family("llama.cpp", &["context size has been exceeded"], Unsaid),
    family("llama.cpp", &["exceed context window of"], LimitFirst),
    family("lm-studio", &["greater than the context length"], Unsaid),
    family("lm-studio", &["context length of only"], LimitFirst),
    family("lm-studio", &["tokens to keep", "context", "overflows"], Unsaid),
    family("lm-studio", &["keep the first", "context length of only"], Unsaid),
    family("minimax", &["context window exceeds limit"], Unsaid),
    family("kimi", &["exceeded model token limit"], LimitFirst),
    family("z.ai", &["prompt exceeds max length"], Unsaid),
    family("deepseek", &["exceeds maximum model length"], Unsaid),
    family("qwen", &["range of input length should be"], LimitFirst),
    family("cohere", &["too many tokens: total number of tokens in the prompt"], LimitFirst),
    family("ollama", &["input length exceeds"], Unsaid),
    family("ollama", &["prompt too long; exceeded"], Unsaid),
    family("ollama", &["context length exceeded"], Unsaid),
    family("litellm", &["contextwindowexceedederror"], Unsaid),
    family("any", &["token limit exceeded"], Unsaid),
    family("any", &["too many tokens"], Unsaid),
];

/// Kinds, types and codes of errors that mean an overflow and nothing else.
pub(super) const CODES: &[(&str, &str)] = &[
    ("context_length_exceeded", "openai"),
    ("request_too_large", "anthropic"),
    ("model_context_window_exceeded", "anthropic"),
    ("exceed_context_size_error", "llama.cpp"),
    ("prompt_too_long", "any"),
];

/// Phrases of temporary refusals, such as those of a rate limit.
pub(super) const PASSING: [&str; 5] =
    ["rate limit", "rate_limit", "throttl", "please wait", "tokens per min"];
