//! What `checkup` finds on a machine.

use std::fs;

use super::*;
use crate::additions::Add;

/// A home with a session of Claude Code, last used on 2026-01-01.
fn machine(now: &str) -> (tempfile::TempDir, Config) {
    let dir = tempfile::tempdir().expect("a folder");
    let home = dir.path().canonicalize().expect("a folder");
    let now = now.to_owned();
    let var = |name: &str| (name == "EPITOME_NOW").then(|| now.clone().into());
    let config = Config::from_folders(&home, &home.join("data"), &home.join("config"), var);
    let session = home.join(".claude/projects/-p/a.jsonl");
    fs::create_dir_all(session.parent().expect("a folder")).expect("a folder");
    fs::write(&session, "{}\n").expect("a session");
    let used: Timestamp = "2026-01-01T00:00:00Z".parse().expect("a time");
    let file = fs::File::options().append(true).open(&session).expect("a session");
    file.set_modified(used.into()).expect("a time");
    (dir, config)
}

fn look(config: &Config) -> Vec<AgentState> {
    let version = |agent: &dyn Agent| (agent.name() == "claude").then(|| "2.1.331".to_owned());
    checkup_with(config, version).expect("a checkup").agents
}

fn kinds(states: &[AgentState]) -> Vec<FindingKind> {
    states.iter().flat_map(|state| &state.findings).map(|finding| finding.kind).collect()
}

#[test]
fn an_agent_that_is_not_here_is_left_out() {
    let (_dir, config) = machine("2026-01-02T00:00:00Z");
    let states = look(&config);
    let [claude] = states.as_slice() else { panic!("one agent is here: {states:?}") };
    assert_eq!((claude.agent, claude.sessions), ("claude", 1));
    assert_eq!(claude.version.as_deref(), Some("2.1.331"));
}

#[test]
fn sessions_that_are_deleted_soon_are_found() {
    let (dir, config) = machine("2026-01-23T00:00:00Z");
    assert_eq!(kinds(&look(&config)), [FindingKind::Deletes, FindingKind::NoMcp]);
    let (_dir, later) = machine("2026-01-24T00:00:00Z");
    let states = look(&later);
    assert_eq!(kinds(&states), [FindingKind::DeletesSoon, FindingKind::NoMcp]);
    let expect = "it deletes 1 session soon: those not used for 30 days (the oldest: 2026-01-01)";
    assert_eq!(states[0].findings[0].what, expect);
    let settings = dir.path().join(".claude/settings.json");
    fs::write(settings, "{\"cleanupPeriodDays\": 3650}").expect("settings");
    assert_eq!(kinds(&look(&config)), [FindingKind::NoMcp]);
}

#[test]
fn what_was_installed_and_changed_since_is_found() {
    let (dir, config) = machine("2026-01-02T00:00:00Z");
    let plan = Add::plan(&config, "claude", AdditionKind::Mcp, "/bin/epitome".as_ref());
    plan.expect("a plan").carry_out(&config).expect("it is added");
    let states = look(&config);
    assert_eq!(kinds(&states), [FindingKind::Deletes]);
    let file = dir.path().canonicalize().expect("a folder").join(".claude.json");
    let expect = [InstalledState { what: "mcp", file: file.clone(), is_there: true }];
    assert_eq!(states[0].installed, expect);
    fs::write(&file, "{}").expect("settings");
    let states = look(&config);
    assert_eq!(kinds(&states), [FindingKind::Deletes, FindingKind::Changed]);
    let expect = "epitome uninstall --mcp --agent claude && epitome install --mcp --agent claude";
    assert_eq!(states[0].findings[1].mend, expect);
}

#[test]
fn a_setting_that_takes_precedence_over_a_proxy_is_found() {
    let (dir, config) = machine("2026-01-02T00:00:00Z");
    let state = |config: &Config| look(config)[0].proxy.clone().expect("it can be given a proxy");
    let mut expect = ProxyState {
        command: "epitome wrap claude".to_owned(),
        sets: ["ANTHROPIC_BASE_URL", "ENABLE_TOOL_SEARCH"].map(str::to_owned).to_vec(),
        overridden_by: None,
    };
    assert_eq!(state(&config), expect);
    let file = dir.path().canonicalize().expect("a folder").join(".claude/settings.json");
    let settings = "{ \"env\": { \"ANTHROPIC_BASE_URL\": \"https://gateway.example\" } } // mine";
    fs::write(&file, settings).expect("settings");
    let setting = "env.ANTHROPIC_BASE_URL".to_owned();
    expect.overridden_by = Some(OverridingSetting { setting, file });
    assert_eq!(state(&config), expect);
}

#[test]
fn settings_in_toml_are_read() {
    let (dir, config) = machine("2026-01-02T00:00:00Z");
    let codex = agents::find_agent("codex").expect("a known agent");
    let file = dir.path().canonicalize().expect("a folder").join(".codex/config.toml");
    fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
    fs::write(&file, "model_provider = \"azure\" # mine\n").expect("settings");
    let setting = "model_provider".to_owned();
    assert_eq!(overriding_setting(&config, codex), Some(OverridingSetting { setting, file }));
}

#[test]
fn every_process_that_keeps_versions_counts_as_running() {
    let (_dir, config) = machine("2026-01-02T00:00:00Z");
    config.create_vault().expect("a vault");
    let state = || KeepState::read(&config).expect("a state");
    let running = keep::hold_running(&config);
    assert_eq!(state(), KeepState { is_running: true, ..KeepState::default() });
    drop(running);
    assert_eq!(state(), KeepState::default());
}

#[cfg(unix)]
#[test]
fn a_program_that_prints_much_has_a_version() {
    let printed = first_line(Command::new("sh").args(["-c", "echo 1.2; head -c 200000 /dev/zero"]));
    assert_eq!(printed.as_deref(), Some("1.2"));
}
