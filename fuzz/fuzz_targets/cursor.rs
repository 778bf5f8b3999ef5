//! Any bytes as a conversation of Cursor.

#![cfg_attr(fuzzing, no_main)]

epitome_fuzz::target!(properties::cursor);
