//! Any bytes as a log of a live context.

#![cfg_attr(fuzzing, no_main)]

epitome_fuzz::target!(properties::epitome);
