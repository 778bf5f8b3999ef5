//! Any bytes as a session to be redacted.

#![cfg_attr(fuzzing, no_main)]

epitome_fuzz::target!(properties::redact);
