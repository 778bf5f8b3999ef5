//! Any bytes as a session of Codex.

#![cfg_attr(fuzzing, no_main)]

epitome_fuzz::target!(properties::codex);
