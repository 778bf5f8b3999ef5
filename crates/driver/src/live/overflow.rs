//! A provider that refuses a request as too long: how that is known, and the one retry.
//!
//! The texts are those that providers send, as collections of them in public agents tell.

use epitome_model::{Block, Tokens};
use epitome_passes::{Recipe, Why};
use serde::Serialize;

use super::Context;
use crate::error::{Error, ErrorKind, Result};

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

/// What becomes of a request that was refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "recovery", rename_all = "kebab-case")]
pub enum Recovery {
    /// It was not too long: the context is as it was.
    NotAnOverflow,
    /// The context is smaller now: send it once more.
    Retry {
        /// What the refused request sent.
        before: Tokens,
        /// What the next one sends.
        after: Tokens,
    },
    /// Only a summary can make it fit, and there is somebody to write one: do what
    /// [`step`](Context::step) says, then send it once more.
    Summarise {
        /// What the refused request sent.
        before: Tokens,
        /// What the next one would send without a summary.
        after: Tokens,
    },
    /// It cannot be made to fit.
    Final {
        /// What is too big, largest first.
        because: Vec<String>,
    },
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
/// use epitome::live::overflow;
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

/// What is tried in turn when the recipe is not enough: everything but what was not answered yet,
/// then that, too.
const HARDER: [&str; 2] = [
    r#"
        name = "overflow"
        about = "All that can go."
        keep = { unanswered = true }
        passes = [
            { pass = "results", style = "evidence", width = 200, again = true },
            { pass = "arguments", min_bytes = 200, width = 40 },
            { pass = "images" },
            { pass = "thinking" },
        ]
    "#,
    r#"
        name = "overflow"
        about = "The newest results, too."

        [[passes]]
        pass = "results"
        style = "ends"
        head = 20
        tail = 20
        min_bytes = 4000
        everywhere = true

        [[passes]]
        pass = "results"
        style = "beginning"
        width = 1000
        min_bytes = 4000
        everywhere = true
        again = true
    "#,
];

/// Of what fitted last, or of the limit that was told, in per cent: the provider counts
/// differently than we do, or there would have been no overflow.
const MARGIN: u64 = 90;

impl Context {
    /// What to do with a request that was refused. An overflow is tried once more with a smaller
    /// context; the next overflow before a response is final.
    ///
    /// # Errors
    ///
    /// `Disk` if the log cannot be written.
    pub fn refused(&mut self, status: Option<u16>, body: &str) -> Result<Recovery> {
        let Some(told) = overflow(status, body) else { return Ok(Recovery::NotAnOverflow) };
        self.overflows += 1;
        if self.overflows > 1 {
            return Ok(Recovery::Final { because: self.largest() });
        }
        let before = self.tokens();
        let wanted = self.fitting(&told);
        let stands = self.log.log().compactions();
        self.machine.force(Why::Overflow);
        let gauge = self.gauge();
        self.machine.step(&gauge);
        let mut recipes = vec![self.recipe.clone()];
        for text in HARDER {
            let recipe = Recipe::parse(text).map_err(|err| {
                Error::new(ErrorKind::Broken, "a built-in recipe is broken").because(err)
            })?;
            recipes.push(recipe);
        }
        let mut by_tier = std::collections::BTreeMap::new();
        for recipe in recipes {
            let target = Some(self.in_counts(wanted).0);
            let recipe = Recipe { target, trigger: Default::default(), ..recipe };
            for (tier, n) in self.carry_out(&recipe)? {
                *by_tier.entry(tier).or_default() += n;
            }
            let after = self.tokens();
            if after <= wanted && after < before {
                let gauge = self.gauge();
                self.machine.ran(Why::Overflow, before, &gauge, by_tier);
                return Ok(Recovery::Retry { before, after });
            }
        }
        if self.writer.is_some() && self.machine.live().summary.is_some() {
            let (gauge, after) = (self.gauge(), self.tokens());
            self.machine.ran(Why::Overflow, before, &gauge, by_tier);
            self.machine.summarise(Why::Overflow);
            return Ok(Recovery::Summarise { before, after });
        }
        let because = self.largest();
        // What did not help is taken back.
        while self.log.log().compactions() > stands {
            self.undo()?;
        }
        let reason = "the context cannot be made to fit".to_owned();
        self.machine.failed(Why::Overflow, before, reason);
        Ok(Recovery::Final { because })
    }

    /// What a request may come to after an overflow.
    fn fitting(&self, told: &Overflow) -> Tokens {
        let now = self.tokens();
        let share = |tokens: Tokens| Tokens(tokens.0 * MARGIN / 100);
        // What the provider counted for it tells how our count compares.
        let limit = told.limit.map(|limit| match told.asked.filter(|asked| *asked > Tokens(0)) {
            Some(asked) => super::scaled(limit, now.0, asked.0),
            None => limit,
        });
        let reserved = self.machine.usable();
        [Some(now), limit, reserved].into_iter().flatten().map(share).min().unwrap_or(now)
    }

    /// What is largest in the context, in words.
    fn largest(&self) -> Vec<String> {
        let transcript = self.transcript();
        let mut all: Vec<(Tokens, String)> = Vec::new();
        for (item, entry) in transcript.context() {
            for (block, said) in entry.blocks.iter().enumerate() {
                let tokens = self.counts.items()[item].get(block).copied().unwrap_or_default();
                let what = match said {
                    Block::Output(output) => {
                        let call = self.calls.get(&output.call).map_or("a call", |call| call);
                        format!("the result of {call}")
                    }
                    Block::Call(call) => format!("a call of {}", call.name),
                    Block::Image(_) => "a picture".to_owned(),
                    Block::Thinking(_) => "reasoning".to_owned(),
                    Block::Summary(_) => "the summary".to_owned(),
                    _ => format!("words of the {:?}", entry.role).to_lowercase(),
                };
                all.push((tokens, what));
            }
        }
        if self.overhead > Tokens(0) {
            all.push((self.overhead, "the system prompt and the tools".to_owned()));
        }
        all.sort_by(|one, other| other.cmp(one));
        all.truncate(3);
        all.into_iter().map(|(tokens, what)| format!("{what}: {tokens} tokens")).collect()
    }
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

    #[test]
    fn what_is_tried_at_last_are_recipes() {
        for text in HARDER {
            assert!(Recipe::parse(text).is_ok(), "{text}");
        }
    }
}
