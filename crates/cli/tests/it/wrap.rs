//! `epitome wrap`: a program in place of an agent.

use crate::world::World;

/// The exit status of a shell script behind the proxy, and what it printed.
fn run(world: &World, agent: &str, script: &str, variables: &[(&str, &str)]) -> (i32, String) {
    let mut command = world.command(&["wrap", agent, "--program", "/bin/sh", "--", "-c", script]);
    let done = command.envs(variables.iter().copied()).output().expect("the program runs");
    let printed = String::from_utf8(done.stdout).expect("text");
    (done.status.code().expect("it ended by itself"), printed)
}

#[test]
fn the_agent_has_the_address_of_the_proxy_and_its_own_end() {
    let world = World::new();
    let (status, printed) = run(&world, "claude", "echo $ANTHROPIC_BASE_URL; exit 7", &[]);
    assert_eq!(status, 7);
    let address = printed.trim_end();
    assert!(address.starts_with("http://127.0.0.1:"), "{address}");
    let (status, _) = run(&world, "claude", "kill -9 $$", &[]);
    assert_eq!(status, 128 + 9);
}

#[test]
fn a_base_url_that_is_set_keeps_its_path() {
    let world = World::new();
    let set = [("OPENAI_BASE_URL", "http://127.0.0.1:1/team/v2/")];
    let (_, printed) = run(&world, "qwen", "echo $OPENAI_BASE_URL", &set);
    assert!(printed.trim_end().ends_with("/team/v2"), "{printed}");
    assert!(!printed.contains(":1/"), "{printed}");
    let (_, printed) = run(&world, "qwen", "echo $OPENAI_BASE_URL", &[]);
    assert!(printed.trim_end().ends_with("/v1"), "{printed}");
}

#[test]
fn another_proxy_does_not_come_between() {
    let world = World::new();
    let set = [("HTTP_PROXY", "http://a.example"), ("NO_PROXY", "b.example")];
    let (_, printed) = run(&world, "claude", "echo $NO_PROXY", &set);
    assert_eq!(printed, "b.example,127.0.0.1\n");
    let (_, printed) = run(&world, "claude", "echo $ENABLE_TOOL_SEARCH", &[]);
    assert_eq!(printed, "true\n");
    let set = [("ENABLE_TOOL_SEARCH", "false")];
    let (_, printed) = run(&world, "claude", "echo $ENABLE_TOOL_SEARCH", &set);
    assert_eq!(printed, "false\n");
}
