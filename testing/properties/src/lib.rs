//! What must hold of any bytes whatever: one function a reader.
//!
//! The fuzz targets call these functions, and so do the plain tests of this crate, over recorded
//! sessions and what is left of them after damage. Each panics when something does not hold.
//!
//! # Absent
//!
//! What holds of whole sessions only, such as that a second compaction finds nothing to do: that is
//! tested beside the engine.

mod packs;
mod pages;
mod secrets;
mod sessions;
mod summaries;
mod texts;

pub use packs::pack;
pub use pages::{html_is_inert, page, viewer_is_inert};
pub use secrets::redact;
pub use sessions::{
    anthropic, claude, codex, copilot, cursor, epitome, gemini, gemini_request, mini_swe,
    openai_chat, openai_responses, opencode, pi, swe_agent,
};
pub use summaries::summary;
pub use texts::{json, recipe, stub};

/// What is asked of any bytes.
pub type Body = fn(&[u8]);

/// Each of these functions, by the name of its fuzz target.
pub const BODIES: &[(&str, Body)] = &[
    ("anthropic", anthropic),
    ("claude", claude),
    ("codex", codex),
    ("copilot", copilot),
    ("cursor", cursor),
    ("epitome", epitome),
    ("gemini", gemini),
    ("gemini-request", gemini_request),
    ("json", json),
    ("mini-swe", mini_swe),
    ("openai-chat", openai_chat),
    ("openai-responses", openai_responses),
    ("opencode", opencode),
    ("pack", pack),
    ("pi", pi),
    ("recipe", recipe),
    ("redact", redact),
    ("stub", stub),
    ("summary", summary),
    ("swe-agent", swe_agent),
];
