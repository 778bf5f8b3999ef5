//! Settings of pi that take precedence over the base URLs that `epitome wrap` gives to a run.

use crate::address::{AddressSettings, is_other_provider};

/// If the settings name a default provider, pi starts with it. `epitome wrap` gives base URLs only
/// for some providers.
pub const ADDRESS: AddressSettings = AddressSettings {
    file: "settings.json",
    overriding: |settings| {
        is_other_provider(&settings["defaultProvider"]).then(|| "defaultProvider".to_owned())
    },
};
