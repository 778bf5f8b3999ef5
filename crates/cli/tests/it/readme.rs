//! The README shows the actual output of the program.

use std::fs;
use std::path::Path;

use crate::world::World;

#[test]
fn the_demo_in_readme_is_what_the_program_prints() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let readme = fs::read_to_string(path).expect("a file");
    let block = readme.split("```text\n").nth(1).and_then(|rest| rest.split("```").next());
    let printed = World::new().run(&["demo"]);
    let printed: Vec<&str> = printed.lines().collect();
    for line in block.expect("a block of text").lines() {
        // The size of the archive depends on the path of the demo's folder.
        let is_printed = match line.split_once("→") {
            Some((start, _)) if line.starts_with("net ") => {
                printed.iter().any(|it| it.starts_with(start))
            }
            _ => printed.contains(&line),
        };
        assert!(is_printed || line.is_empty(), "the demo does not print `{line}`:\n{printed:#?}");
    }
}
