//! Any bytes as a request to Gemini's `generateContent`.

#![cfg_attr(fuzzing, no_main)]

epitome_fuzz::target!(properties::gemini_request);
