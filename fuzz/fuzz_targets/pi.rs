//! Any bytes as a session of pi.

#![cfg_attr(fuzzing, no_main)]

epitome_fuzz::target!(properties::pi);
