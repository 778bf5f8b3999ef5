//! `epitome wrap`: a program in place of an agent.

use crate::world::World;

/// The exit status of a shell script behind the proxy, and what it printed.
fn run(world: &World, agent: &str, script: &str, variables: &[(&str, &str)]) -> (i32, String) {
    let line = ["wrap", agent, "--no-mcp", "--program", "/bin/sh", "--", "-c", script];
    let mut command = world.command(&line);
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

#[cfg(unix)]
#[test]
fn the_model_is_given_a_way_to_read_what_was_shortened() {
    use std::os::unix::fs::PermissionsExt as _;

    let world = World::new();
    let agent = world.write("agent", "#!/bin/sh\nprintf '%s\\n' \"$@\"\nepitome --version\n");
    std::fs::set_permissions(&agent, std::fs::Permissions::from_mode(0o755)).expect("a file");
    let agent = agent.to_string_lossy();
    let printed = |options: &[&str]| {
        let line = [&["wrap", "claude", "--program", &agent], options, &["--", "-p", "Hi"]];
        let printed = world.run(&line.concat());
        // The first line is the command.
        printed.lines().skip(1).map(str::to_owned).collect::<Vec<_>>()
    };
    let lines = printed(&[]);
    assert!(
        lines[0].starts_with(r#"--mcp-config={"mcpServers":{"epitome":{"command":"/"#),
        "{lines:?}"
    );
    assert!(lines[0].contains(r#""args":["mcp","--home","#), "{lines:?}");
    assert_eq!(lines[1..3], ["-p", "Hi"]);
    assert!(lines[3].starts_with("epitome "), "its shell finds the program: {lines:?}");
    assert_eq!(printed(&["--no-mcp"])[..2], ["-p", "Hi"]);
    // A dry run shortens nothing, so the agent is given no tools of epitome.
    assert_eq!(printed(&["--dry-run"])[..2], ["-p", "Hi"]);
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
