//! Any bytes as a recipe.

#![cfg_attr(fuzzing, no_main)]

epitome_fuzz::target!(properties::recipe);
