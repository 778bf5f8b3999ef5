//! Any bytes as a stub.

#![cfg_attr(fuzzing, no_main)]

epitome_fuzz::target!(properties::stub);
