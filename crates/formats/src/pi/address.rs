//! Settings of pi because of which a run does not use the base URLs that it is given.

use crate::address::{AddressSettings, is_other_provider};

/// The provider with which pi starts.
pub const ADDRESS: AddressSettings = AddressSettings {
    file: "settings.json",
    overriding: |settings| {
        is_other_provider(&settings["defaultProvider"]).then(|| "defaultProvider".to_owned())
    },
};
