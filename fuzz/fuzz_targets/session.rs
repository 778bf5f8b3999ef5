//! Any bytes as a session of the format that `EPITOME_FORMAT` names, or of every format.

#![cfg_attr(fuzzing, no_main)]

epitome_fuzz::target!(properties::any_session);
