//! Any bytes as a request to Anthropic's Messages.

#![cfg_attr(fuzzing, no_main)]

epitome_fuzz::target!(properties::anthropic);
