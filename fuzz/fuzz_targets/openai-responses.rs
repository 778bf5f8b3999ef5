//! Any bytes as a request to OpenAI's Responses.

#![cfg_attr(fuzzing, no_main)]

epitome_fuzz::target!(properties::openai_responses);
