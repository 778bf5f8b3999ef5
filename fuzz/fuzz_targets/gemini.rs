//! Any bytes as a session of Gemini CLI.

#![cfg_attr(fuzzing, no_main)]

epitome_fuzz::target!(properties::gemini);
