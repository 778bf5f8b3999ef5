//! The session browser (`epitome` without arguments) in a real terminal.

use std::fs;

use crate::world::World;
use crate::world::screen::Screen;

/// A session of pi and one of Claude Code.
fn sessions() -> World {
    let world = World::new();
    world.pi("pricing", fixtures::get("pi", "pricing").bytes());
    world
        .claude("7c1f0a3e-0000-4000-8000-000000000001", fixtures::get("claude", "pricing").bytes());
    world
}

#[test]
fn a_session_is_planned_compacted_and_restored() {
    let world = sessions();
    let path = world.pi("pricing", fixtures::get("pi", "pricing").bytes());
    let before = fs::read(&path).expect("a session");
    let Some(screen) = Screen::start(&world, "a", (80, 24), &world.command(&[])) else { return };
    screen.wait_all(&["2 sessions", "? help  q quit  d plan  c compact"]);
    screen.keys(&["d"]);
    screen.wait_all(&["$ epitome compact --dry-run --losses pricing", "would compact"]);
    assert_eq!(fs::read(&path).expect("a session"), before);
    screen.keys(&["c"]);
    screen.wait("Compact pricing?");
    screen.keys(&["y"]);
    screen.wait_all(&["compacted  ", "verified ", "q back"]);
    assert!(fs::read(&path).expect("a session").len() < before.len() / 2);
    screen.keys(&["q"]);
    screen.wait_all(&["2 sessions", "done"]);
    screen.keys(&["u"]);
    screen.wait("Restore pricing?");
    screen.keys(&["y"]);
    screen.wait_all(&["exact, to the byte", "q back"]);
    assert_eq!(fs::read(&path).expect("a session"), before);
    screen.keys(&["q", "q"]);
    screen.ends("");
}

#[test]
fn a_signal_leaves_the_terminal_as_it_was() {
    let world = sessions();
    let Some(screen) = Screen::start(&world, "a", (200, 50), &world.command(&[])) else { return };
    screen.wait("2 sessions");
    screen.keys(&["e"]);
    screen.wait("2  Markdown");
    screen.keys(&["2"]);
    screen.wait("written: ~/pricing.md");
    assert!(fs::read_to_string(world.home.join("pricing.md")).is_ok_and(|it| it.starts_with('#')));
    let group = screen.tmux(&["display-message", "-p", "-t", "t", "#{pane_pid}"]);
    let group = format!("-{}", group.trim());
    let sent = std::process::Command::new("kill").args(["-TERM", "--", &group]).status();
    assert!(sent.expect("kill runs").success());
    screen.ends("");
}
