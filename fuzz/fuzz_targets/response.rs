//! Any bytes as a response of a model service.

#![cfg_attr(fuzzing, no_main)]

epitome_fuzz::target!(properties::response);
