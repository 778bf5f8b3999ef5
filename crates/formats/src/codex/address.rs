//! Settings of Codex that take precedence over the base URL that `epitome wrap` gives to a run.

use serde_json::Value;

use crate::address::AddressSettings;

/// `epitome wrap` gives a run a base URL for the provider `openai`; any other provider has a base
/// URL of its own.
pub const ADDRESS: AddressSettings = AddressSettings {
    file: "config.toml",
    overriding: |settings| {
        let is_other = |settings: &Value| {
            settings["model_provider"].as_str().is_some_and(|provider| provider != "openai")
        };
        if let Some(profile) = settings["profile"].as_str()
            && is_other(&settings["profiles"][profile])
        {
            return Some(format!("profiles.{profile}.model_provider"));
        }
        is_other(settings).then(|| "model_provider".to_owned())
    },
};
