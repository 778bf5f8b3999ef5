//! Any bytes as a log of Copilot CLI.

#![cfg_attr(fuzzing, no_main)]

epitome_fuzz::target!(properties::copilot);
