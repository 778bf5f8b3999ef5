//! Any bytes as a session of OpenCode.

#![cfg_attr(fuzzing, no_main)]

epitome_fuzz::target!(properties::opencode);
