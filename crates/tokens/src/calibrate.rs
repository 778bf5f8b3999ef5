//! What a provider counted, against what we count.

use epitome_model::Tokens;

/// How a provider's tokens follow from ours: `recorded ≈ factor × ours + fixed`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Calibration {
    /// The provider's tokens per 1,000 of ours.
    pub factor: u32,
    /// Tokens of every request that we do not see: system prompt, tools.
    pub fixed: Tokens,
    /// How many points the fit rests on; 0 for a default.
    pub points: usize,
    /// Expected relative error, in thousandths.
    pub error: u32,
}

/// Who made a model's tokenizer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// OpenAI.
    OpenAi,
    /// Anthropic.
    Anthropic,
    /// Google.
    Google,
    /// Anyone else.
    Other,
}

/// The family of a model's name.
pub fn family(model: &str) -> Family {
    let name = model.to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
    if has(&["claude", "sonnet", "opus", "haiku"]) {
        Family::Anthropic
    } else if has(&["gemini", "gemma"]) {
        Family::Google
    } else if has(&["gpt", "codex", "o1", "o3", "o4"]) {
        Family::OpenAi
    } else {
        Family::Other
    }
}

/// Fits one session's points.
pub fn calibrate(_points: &[(Tokens, u64)]) -> Option<Calibration> {
    None
}
