//! Settings of OpenCode that take precedence over the base URLs that `epitome wrap` gives to a run.

use serde_json::Value;

use crate::address::{AddressSettings, is_other_provider};

/// The setting `model` begins with the name of its provider. `epitome wrap` gives base URLs only
/// for some providers.
pub const ADDRESS: AddressSettings = AddressSettings {
    file: "opencode.json",
    overriding: |settings| {
        let (provider, _) = settings["model"].as_str()?.split_once('/')?;
        is_other_provider(&Value::from(provider)).then(|| "model".to_owned())
    },
};
