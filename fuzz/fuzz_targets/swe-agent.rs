//! Any bytes as a trajectory of SWE-agent.

#![cfg_attr(fuzzing, no_main)]

epitome_fuzz::target!(properties::swe_agent);
