//! Settings of Qwen Code that take precedence over the base URL that `epitome wrap` gives to a run.

use serde_json::Value;

use crate::address::{AddressSettings, is_other_kind};

/// A model of `modelProviders` may have a base URL of its own. With another kind of authentication
/// than OpenAI's, Qwen Code reads the base URL from another variable.
pub const ADDRESS: AddressSettings = AddressSettings {
    file: "settings.json",
    overriding: |settings| {
        let kind = &settings["security"]["auth"]["selectedType"];
        if is_other_kind(kind, &["openai", "openai-responses"]) {
            return Some("security.auth.selectedType".to_owned());
        }
        let chosen = settings["model"]["name"].as_str();
        let has_address = |model: &Value| {
            let is_chosen = chosen.is_none_or(|chosen| model["id"] == chosen);
            is_chosen && model["baseUrl"].is_string()
        };
        let models = settings["modelProviders"].as_object()?.values();
        let mut models = models.filter_map(Value::as_array).flatten();
        models.any(has_address).then(|| "modelProviders".to_owned())
    },
};
