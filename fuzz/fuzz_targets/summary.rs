//! Any lines as a talk and as what a model that writes its summary says.

#![cfg_attr(fuzzing, no_main)]

epitome_fuzz::target!(properties::summary);
