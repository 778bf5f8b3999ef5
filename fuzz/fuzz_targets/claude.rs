//! Any bytes as a session of Claude Code.

#![cfg_attr(fuzzing, no_main)]

epitome_fuzz::target!(properties::claude);
