//! Settings of Claude Code that take precedence over the base URL that `epitome wrap` gives to a
//! run.

use crate::address::AddressSettings;

/// Variables in `env` of the settings override the variables with which the process was started.
pub const ADDRESS: AddressSettings = AddressSettings {
    file: "settings.json",
    overriding: |settings| {
        let set = VARIABLES
            .iter()
            .find(|name| settings["env"][**name].as_str().is_some_and(|value| !value.is_empty()));
        set.map(|name| format!("env.{name}"))
    },
};

/// The base URL, and the variables that choose other services.
const VARIABLES: [&str; 4] = [
    "ANTHROPIC_BASE_URL",
    "CLAUDE_CODE_USE_BEDROCK",
    "CLAUDE_CODE_USE_VERTEX",
    "CLAUDE_CODE_USE_FOUNDRY",
];
