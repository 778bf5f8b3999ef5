use super::*;

/// Provider, limit, asked.
type Told = Option<(&'static str, Option<u64>, Option<u64>)>;

fn check(status: u16, body: &str, expect: Told) {
    let told = overflow(Some(status), body);
    let told = told.map(|it| (it.provider, it.limit.map(|it| it.0), it.asked.map(|it| it.0)));
    assert_eq!(told, expect, "{status} {body}");
}

#[test]
fn refusals_of_providers_are_told_apart() {
    let some = |provider, limit, asked| Some((provider, limit, asked));
    let plain = |provider| Some((provider, None, None));
    let error = |message: &str| serde_json::json!({ "error": { "message": message } }).to_string();
    let cases: &[(u16, &str, Told)] = &[
        (
            400,
            "prompt is too long: 213462 tokens > 200000 maximum",
            some("anthropic", Some(200_000), Some(213_462)),
        ),
        (
            400,
            "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000",
            plain("anthropic"),
        ),
        (413, "Request exceeds the maximum size", plain("anthropic")),
        (400, "Input is too long for requested model.", plain("bedrock")),
        (
            400,
            "The model returned the following errors: Input is too long for requested model",
            plain("bedrock"),
        ),
        (
            400,
            "This model's maximum context length is 128000 tokens. However, your messages \
             resulted in 128,004 tokens.",
            some("openai", Some(128_000), Some(128_004)),
        ),
        (400, "Your input exceeds the context window of this model", plain("openai")),
        (
            400,
            "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in \
             300000 tokens.",
            some("openai", Some(272_000), Some(300_000)),
        ),
        (
            400,
            "The input token count (1196265) exceeds the maximum number of tokens allowed \
             (1048575).",
            some("google", Some(1_048_575), Some(1_196_265)),
        ),
        (
            400,
            "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
            some("xai", Some(131_072), Some(537_812)),
        ),
        (
            400,
            "Prompt contains 40959 tokens and 0 draft tokens, too large for model with 32768 \
             maximum context length",
            some("mistral", Some(32_768), None),
        ),
        (
            400,
            "This endpoint's maximum context length is 32768 tokens. However, you requested about \
             33768 tokens (900 of text input, 100 of tool input, 32768 in the output).",
            some("openrouter", Some(32_768), Some(33_768)),
        ),
        (
            400,
            "'max_tokens' or 'max_completion_tokens' is too large: 2000. This model's maximum \
             context length is 4096 tokens and your request has 2104 input tokens (2000 > 4096 - \
             2104).",
            some("openai", Some(4_096), None),
        ),
        (
            400,
            "Please reduce the length of the messages or completion. Current length is 9000 while \
             limit is 8192",
            some("cerebras", Some(8_192), Some(9_000)),
        ),
        (400, "Please reduce the length of the messages or completion.", plain("groq")),
        (
            400,
            "prompt token count of 129000 exceeds the limit of 128000",
            some("copilot", Some(128_000), Some(129_000)),
        ),
        (
            422,
            "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: \
             8509 `inputs` tokens and 64 `max_new_tokens`",
            some("tgi", Some(4_096), Some(8_509)),
        ),
        (
            422,
            "Input validation error: `inputs` must have less than 1024 tokens. Given: 1872",
            some("tgi", Some(1_024), Some(1_872)),
        ),
        (
            400,
            "the request exceeds the available context size, try increasing it",
            plain("llama.cpp"),
        ),
        (
            500,
            "Requested tokens (11280) exceed context window of 2048",
            some("llama.cpp", Some(2_048), None),
        ),
        (
            400,
            "The number of tokens to keep from the initial prompt is greater than the context \
             length.",
            plain("lm-studio"),
        ),
        (400, "invalid params, context window exceeds limit (2013)", plain("minimax")),
        (
            400,
            "Invalid request: Your request exceeded model token limit: 262144",
            some("kimi", Some(262_144), None),
        ),
        (400, "Prompt exceeds max length", plain("z.ai")),
        (
            400,
            "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 98304]",
            some("qwen", Some(98_304), None),
        ),
        (
            400,
            "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received \
             4140.",
            some("cohere", Some(4_081), Some(4_140)),
        ),
        (500, "input length exceeds context length", plain("ollama")),
        (400, "prompt too long; exceeded max context length by 4 tokens", plain("ollama")),
    ];
    for (status, words, expect) in cases {
        check(*status, words, *expect);
        check(*status, &error(words), *expect);
    }
    for (status, body, expect) in [(400, "", plain("cerebras")), (413, "", plain("any"))] {
        check(status, body, expect);
    }
}

#[test]
fn errors_are_read_where_services_put_them() {
    let plain = |provider| Some((provider, None, None));
    let cases: &[(u16, &str, Told)] = &[
        (413, r#"{"type":"error","error":{"type":"request_too_large"}}"#, plain("anthropic")),
        (400, r#"{"error":{"code":"context_length_exceeded","message":"No."}}"#, plain("openai")),
        (400, "context_length_exceeded", plain("openai")),
        // OpenAI's stream begins with a status of 200 and fails in it.
        (
            200,
            "event: response.created\ndata: {\"type\":\"response.created\",\"response\":\
             {\"status\":\"in_progress\",\"error\":null}}\n\nevent: response.failed\ndata: \
             {\"type\":\"response.failed\",\"response\":{\"status\":\"failed\",\"error\":{\"code\":\
             \"context_length_exceeded\",\"message\":\"Your input exceeds the context window of \
             this model.\"}}}\n\n",
            plain("openai"),
        ),
        (
            200,
            r#"{"status":"failed","output":[],"error":{"code":"context_length_exceeded",
                "message":"No."}}"#,
            plain("openai"),
        ),
        (
            422,
            r#"{"error":"Input validation error: `inputs` must have less than 1024 tokens. Given: 1872","error_type":"validation"}"#,
            Some(("tgi", Some(1_024), Some(1_872))),
        ),
        (
            400,
            r#"{"object":"error","message":"This model's maximum context length is 8192 tokens.","type":"BadRequestError","code":400}"#,
            Some(("openai", Some(8_192), None)),
        ),
        (
            400,
            r#"{"error":{"code":400,"message":"too big","type":"exceed_context_size_error","n_prompt_tokens":40000,"n_ctx":32768}}"#,
            Some(("llama.cpp", Some(32_768), Some(40_000))),
        ),
        (
            400,
            r#"{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"error\":{\"message\":\"prompt is too long: 9000 tokens > 8000 maximum\"}}"}}}"#,
            Some(("anthropic", Some(8_000), Some(9_000))),
        ),
        (
            400,
            r#"{"error":{"message":"litellm.BadRequestError: AnthropicException - {\"error\":{\"message\":\"prompt is too long: 9000 tokens > 8000 maximum\"}}"}}"#,
            Some(("anthropic", Some(8_000), Some(9_000))),
        ),
        (
            400,
            r#"[{"error":{"code":400,"message":"The input token count (2000) exceeds the maximum number of tokens allowed (1000).","status":"INVALID_ARGUMENT"}}]"#,
            Some(("google", Some(1_000), Some(2_000))),
        ),
    ];
    for (status, body, expect) in cases {
        check(*status, body, *expect);
    }
}

#[test]
fn what_only_quotes_such_words_is_no_overflow() {
    let long = format!("messages.0: {} prompt is too long", "a word ".repeat(30));
    let cases = [
        (429, "prompt is too long"),
        (401, "prompt is too long"),
        (400, "Too many tokens, please wait before trying again."),
        (413, "Request too large for model `x`: tokens per minute (TPM): Limit 6000"),
        (400, "max_tokens: 100000 > 8192, the maximum allowed number of output tokens"),
        (400, "invalid tool schema"),
        (422, "Input validation error: `max_new_tokens` must be <= 1024. Given: 2048"),
        (500, ""),
        (503, "the model is loading"),
        (200, "prompt is too long"),
        (200, r#"{"choices":[{"message":{"content":"prompt is too long"}}]}"#),
        (200, r#"{"status":"completed","error":null,"output":[{"text":"prompt is too long"}]}"#),
        (200, "data: {\"type\":\"response.output_text.delta\",\"delta\":\"prompt is too long\"}"),
        (400, r#"{"error":{"message":"messages.1.role: 'prompt is too long' is no role"}}"#),
        (400, r#"{"error":{"message":"Invalid value: \"context length exceeded\"."}}"#),
        (
            400,
            r#"{"error":{"type":"invalid_request_error","message":"bad","param":"prompt is too long"}}"#,
        ),
        (
            422,
            r#"{"detail":[{"loc":["body"],"msg":"Input should be a list","input":"prompt is too long"}]}"#,
        ),
        (
            400,
            r#"{"error":{"message":"bad"},"request":{"messages":[{"content":"context_length_exceeded"}]}}"#,
        ),
        (400, &*long),
    ];
    for (status, body) in cases {
        check(status, body, None);
    }
}

#[test]
fn a_refusal_without_a_word_is_known_by_that_alone() {
    let known = |status, body| overflow(Some(status), body).map(|it| it.known);
    assert_eq!(known(400, "  "), Some(KnownBy::Silence));
    assert_eq!(known(413, ""), Some(KnownBy::Status));
    assert_eq!(known(400, "prompt is too long"), Some(KnownBy::Words));
    assert_eq!(overflow(None, "prompt is too long").map(|it| it.known), Some(KnownBy::Words));
}
