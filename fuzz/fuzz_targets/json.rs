//! Any bytes as JSON.

#![cfg_attr(fuzzing, no_main)]

epitome_fuzz::target!(properties::json);
