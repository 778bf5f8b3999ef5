//! Settings of agents that take precedence over the base URL that `epitome wrap` gives to a run.

use serde_json::Value;

/// A file of an agent's settings that may choose another service than the one at the base URL of
/// `epitome wrap`.
#[derive(Debug)]
pub struct AddressSettings {
    /// The file, relative to the folder of the agent's settings. It is TOML if its name ends with
    /// `.toml`, and JSON otherwise.
    pub file: &'static str,
    /// Returns the setting, as a path of keys (`env.ANTHROPIC_BASE_URL`), that makes a run ignore
    /// the base URL of `epitome wrap`. `None` if there is no such setting.
    pub overriding: fn(settings: &Value) -> Option<String>,
}

/// The providers whose base URLs `epitome wrap` sets for OpenCode and pi.
const PROVIDERS: [&str; 3] = ["anthropic", "openai", "google"];

/// Whether `provider` is a text that is not in [`PROVIDERS`].
pub(crate) fn is_other_provider(provider: &Value) -> bool {
    provider.as_str().is_some_and(|provider| !PROVIDERS.contains(&provider))
}

/// Whether `kind` is the name of a kind of authentication that is not in `kinds`.
pub(crate) fn is_other_kind(kind: &Value, kinds: &[&str]) -> bool {
    kind.as_str().is_some_and(|kind| !kinds.contains(&kind))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::{claude, codex, gemini, opencode, pi, qwen};

    #[test]
    fn what_takes_precedence_over_a_base_url_is_found() {
        let url = "https://gateway.example";
        for (address, settings, expect) in [
            (&claude::ADDRESS, json!({ "env": { "A": "1" } }), None),
            (
                &claude::ADDRESS,
                json!({ "env": { "ANTHROPIC_BASE_URL": url } }),
                Some("env.ANTHROPIC_BASE_URL"),
            ),
            (
                &claude::ADDRESS,
                json!({ "env": { "CLAUDE_CODE_USE_BEDROCK": "1" } }),
                Some("env.CLAUDE_CODE_USE_BEDROCK"),
            ),
            (&claude::ADDRESS, json!({ "env": { "CLAUDE_CODE_USE_VERTEX": "" } }), None),
            (&codex::ADDRESS, json!({ "model_provider": "openai" }), None),
            (&codex::ADDRESS, json!({ "model_provider": "azure" }), Some("model_provider")),
            (
                &codex::ADDRESS,
                json!({ "profile": "work", "profiles": { "work": { "model_provider": "azure" } } }),
                Some("profiles.work.model_provider"),
            ),
            (
                &codex::ADDRESS,
                json!({ "profiles": { "work": { "model_provider": "azure" } } }),
                None,
            ),
            (&gemini::ADDRESS, json!({ "security": { "auth": {} } }), None),
            (
                &gemini::ADDRESS,
                json!({ "security": { "auth": { "selectedType": "oauth-personal" } } }),
                Some("security.auth.selectedType"),
            ),
            (&opencode::ADDRESS, json!({ "model": "anthropic/claude-sonnet-4-6" }), None),
            (&opencode::ADDRESS, json!({ "model": "mine/model" }), Some("model")),
            (&pi::ADDRESS, json!({ "defaultProvider": "openai" }), None),
            (&pi::ADDRESS, json!({ "defaultProvider": "groq" }), Some("defaultProvider")),
            (&qwen::ADDRESS, json!({ "modelProviders": { "openai": [{ "id": "a" }] } }), None),
            (
                &qwen::ADDRESS,
                json!({ "modelProviders": { "openai": [{ "id": "a", "baseUrl": url }] } }),
                Some("modelProviders"),
            ),
            (
                &qwen::ADDRESS,
                json!({ "security": { "auth": { "selectedType": "anthropic" } } }),
                Some("security.auth.selectedType"),
            ),
        ] {
            let found = (address.overriding)(&settings);
            assert_eq!(found.as_deref(), expect, "{settings}");
        }
        assert_eq!((claude::ADDRESS.overriding)(&json!([])), None);
    }
}
