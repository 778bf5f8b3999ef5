//! Any bytes as a trajectory of mini-swe-agent.

#![cfg_attr(fuzzing, no_main)]

epitome_fuzz::target!(properties::mini_swe);
