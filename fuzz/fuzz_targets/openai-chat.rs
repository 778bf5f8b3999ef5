//! Any bytes as a request to OpenAI's Chat Completions.

#![cfg_attr(fuzzing, no_main)]

epitome_fuzz::target!(properties::openai_chat);
