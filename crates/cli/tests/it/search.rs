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
    assert_snapshot!(first, @r"
    $ epitome search test* role:user
    claude  0f3c1111  Fix the failing test, please.
      turn 1    user        3d  Fix the failing test, please.
      epitome render 0f3c1111 --turn 1

    claude  0f3c9a52  Fix the failing test, please.
      turn 1    user        3d  Fix the failing test, please.
      epitome render 0f3c9a52 --turn 1

    --- status 0
    ");
    assert_eq!(world.run(&["search", "test*", "role:user"]), first, "the index is there");
    assert_snapshot!({
        let mut command = world.command(&["search", "--agent", "pi", "--limit", "2", "role:tool"]);
        let out = command.env("COLUMNS", "60").output().expect("the program runs");
        String::from_utf8(out.stdout).expect("text")
    }, @r"
    pi  01a1fb3a  List the functions.
      turn 1    tool        3d  read src/a.rs fn number_1() -> …
      epitome render 01a1fb3a --turn 1
    ");
    assert_snapshot!(world.run(&["search", "xyzzy"]), @r"
    $ epitome search xyzzy
    --- stderr
    nothing found
    --- status 0
    ");
    assert_snapshot!(world.run(&["search", "--project", "/elsewhere", "role:user"]), @r"
    $ epitome search --project /elsewhere role:user
    --- stderr
    nothing found
    --- status 0
    ");
    world::check("search.schema.json", &world.json(&["search", "--json", "role:assistant"]));
}

#[test]
fn the_same_line_is_shown_once_and_its_words_whatever_the_width() {
    let world = World::new();
    let mut session = sessions::Claude::new(CLAUDE);
    session.user("Where is the wombat?");
    session.say(&format!("{}wombat {}", "It is where it was. ".repeat(4), "Elsewhere. ".repeat(9)));
    session.user("Where is the wombat?");
    session.say("Gone.");
    world.claude(CLAUDE, session.lines());
    assert_snapshot!(world.run(&["search", "wombat", "role:user"]), @r"
    $ epitome search wombat role:user
    claude  0f3c9a52  Where is the wombat?
      turn 2    user        3d  Where is the wombat?  also in turn 1
      epitome render 0f3c9a52 --turn 2

    --- status 0
    ");
    assert_eq!(world.json(&["search", "--json", "wombat", "role:user"]).len(), 2);
    for columns in ["30", "45", "60", "200"] {
        let mut command = world.command(&["search", "wombat", "role:assistant"]);
        let out = command.env("COLUMNS", columns).output().expect("the program runs");
        let text = String::from_utf8(out.stdout).expect("text");
        assert!(text.contains("wombat"), "{columns}: {text}");
    }
}

#[test]
fn what_cannot_be_asked_is_a_matter_of_usage() {
    let world = world();
    assert_snapshot!(world.run(&["search", "\"no end"]), @r#"
    $ epitome search "no end
    --- stderr
    error: a phrase begins with " and does not end
      hint: `epitome search --help` describes queries
    --- status 2
    "#);
    assert_eq!(world.status(&["search", "role:boss"]), 2);
    assert_eq!(world.status(&["search", "agent:nobody"]), 2);
    assert_eq!(world.status(&["search"]), 2);
}
