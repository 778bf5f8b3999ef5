//! Any bytes as a pack of the archive.

#![cfg_attr(fuzzing, no_main)]

epitome_fuzz::target!(properties::pack);
