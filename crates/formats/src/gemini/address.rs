//! Settings of Gemini CLI that take precedence over the base URL that `epitome wrap` gives to a
//! run.

use crate::address::{AddressSettings, is_other_kind};

/// With another kind of authentication than a key or a gateway, Gemini CLI uses another service.
pub const ADDRESS: AddressSettings = AddressSettings {
    file: "settings.json",
    overriding: |settings| {
        let kind = &settings["security"]["auth"]["selectedType"];
        let is_other = is_other_kind(kind, &["gemini-api-key", "gateway"]);
        is_other.then(|| "security.auth.selectedType".to_owned())
    },
};
