//! `epitome search` on the command line.

use crate::world::sessions::{self, CLAUDE, OTHER, PI};
use crate::world::{self, World};
use insta::assert_snapshot;

fn world() -> World {
    let world = World::new();
    world.claude(CLAUDE, sessions::claude(CLAUDE));
    world.claude(OTHER, sessions::claude(OTHER));
    world.pi(PI, sessions::pi(PI));
    world
}

#[test]
fn hits_are_shown_a_line_each() {
    let world = world();
    let first = world.run(&["search", "test*", "role:user"]);
    assert_snapshot!(first);
    assert_eq!(world.run(&["search", "test*", "role:user"]), first, "the index is there");
    assert_snapshot!("narrow", {
        let mut command = world.command(&["search", "--agent", "pi", "--limit", "2", "role:tool"]);
        let out = command.env("COLUMNS", "60").output().expect("the program runs");
        String::from_utf8(out.stdout).expect("text")
    });
    assert_snapshot!("nothing", world.run(&["search", "xyzzy"]));
    assert_snapshot!("elsewhere", world.run(&["search", "--project", "/elsewhere", "role:user"]));
    world::check("search.schema.json", &world.json(&["search", "--json", "role:assistant"]));
}

#[test]
fn what_cannot_be_asked_is_a_matter_of_usage() {
    let world = world();
    assert_snapshot!(world.run(&["search", "\"no end"]));
    assert_eq!(world.status(&["search", "role:boss"]), 2);
    assert_eq!(world.status(&["search", "agent:nobody"]), 2);
    assert_eq!(world.status(&["search"]), 2);
}
