//! The action for GitHub and the hook for pre-commit, as far as they run without either.
//!
//! A small runner does what GitHub's does with a composite action: it puts inputs and outputs in
//! their places and runs the shell steps in order. Steps that are actions themselves (`uses`) are
//! only named.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde_yaml_ng::Value;

use crate::simulate::session;
use crate::world::World;
use crate::world::sessions::CLAUDE;

fn read(name: &str) -> Value {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name);
    let text = std::fs::read_to_string(file).expect("it is part of the repository");
    serde_yaml_ng::from_str(&text).expect("YAML")
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value[key].as_str().unwrap_or_default()
}

/// What a run of the action left.
#[derive(Debug)]
struct Run {
    status: i32,
    log: String,
    summary: String,
    /// Steps that are other people's actions, which were not run.
    uses: Vec<String>,
    outputs: BTreeMap<String, String>,
}

struct Runner<'w> {
    world: &'w World,
    /// What expressions can name: `inputs.gate`, `steps.install.outputs.program`.
    values: BTreeMap<String, String>,
}

impl Runner<'_> {
    fn new<'w>(world: &'w World, action: &Value, inputs: &[(&str, &str)]) -> Runner<'w> {
        let declared = action["inputs"].as_mapping().expect("inputs");
        let mut values = BTreeMap::new();
        for (name, input) in declared {
            let name = name.as_str().expect("a name");
            let given = inputs.iter().find(|(given, _)| *given == name).map(|(_, value)| *value);
            let required = input["required"].as_bool().unwrap_or(false);
            assert!(given.is_some() || !required, "the input {name} is required");
            let value = given.unwrap_or_else(|| text(input, "default"));
            values.insert(format!("inputs.{name}"), value.to_owned());
        }
        for (name, _) in inputs {
            assert!(values.contains_key(&format!("inputs.{name}")), "no input is called {name}");
        }
        let home = world.home.display().to_string();
        values.insert("github.action_path".to_owned(), "/nowhere".to_owned());
        values.insert("runner.temp".to_owned(), home);
        Runner { world, values }
    }

    /// A text with its expressions replaced.
    fn filled(&self, text: &str) -> String {
        let mut filled = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${{") {
            let (name, after) = after.split_once("}}").expect("an expression ends");
            let value = self.values.get(name.trim());
            let value = value.unwrap_or_else(|| panic!("nothing is called {name}"));
            filled.push_str(before);
            filled.push_str(value);
            rest = after;
        }
        filled.push_str(rest);
        filled
    }

    fn run(mut self, action: &Value) -> Run {
        assert_eq!(text(&action["runs"], "using"), "composite");
        let home = &self.world.home;
        let mut run = Run {
            status: 0,
            log: String::new(),
            summary: String::new(),
            uses: Vec::new(),
            outputs: BTreeMap::new(),
        };
        for step in action["runs"]["steps"].as_sequence().expect("steps") {
            let is_always = text(step, "if") == "always()";
            assert!(is_always || text(step, "if").is_empty(), "a condition that is not known");
            if run.status != 0 && !is_always {
                continue;
            }
            if !text(step, "uses").is_empty() {
                let with = step["with"].as_mapping().into_iter().flatten();
                for (_, value) in with.filter(|(_, value)| value.is_string()) {
                    self.filled(value.as_str().unwrap_or_default());
                }
                run.uses.push(text(step, "uses").to_owned());
                continue;
            }
            let script = text(step, "run");
            assert!(!script.contains("${{"), "an input in a script could be a command");
            assert_eq!(text(step, "shell"), "bash");
            let (output, summary) = (home.join("output"), home.join("summary"));
            std::fs::write(&output, "").expect("a disk");
            let mut bash = Command::new("bash");
            // As GitHub calls it.
            bash.args(["--noprofile", "--norc", "-eo", "pipefail", "-c", script]);
            bash.current_dir(home).env_clear().env("HOME", home);
            bash.env("PATH", std::env::var_os("PATH").unwrap_or_default());
            bash.env("GITHUB_OUTPUT", &output).env("GITHUB_STEP_SUMMARY", &summary);
            for (name, value) in step["env"].as_mapping().into_iter().flatten() {
                let value = self.filled(value.as_str().expect("a text"));
                bash.env(name.as_str().expect("a name"), value);
            }
            let done = bash.output().expect("bash runs");
            run.status = done.status.code().expect("a status");
            run.log.push_str(&String::from_utf8_lossy(&done.stdout));
            run.log.push_str(&String::from_utf8_lossy(&done.stderr));
            let written = std::fs::read_to_string(&output).expect("a file");
            for (name, value) in written.lines().filter_map(|line| line.split_once('=')) {
                let id = text(step, "id");
                self.values.insert(format!("steps.{id}.outputs.{name}"), value.to_owned());
            }
            run.summary = std::fs::read_to_string(&summary).unwrap_or_default();
        }
        for (name, output) in action["outputs"].as_mapping().into_iter().flatten() {
            let name = name.as_str().expect("a name").to_owned();
            run.outputs.insert(name, self.filled(text(output, "value")));
        }
        run
    }
}

/// Whether there is a bash; the test is skipped without one.
fn has_bash(test: &str) -> bool {
    let has_bash = Command::new("bash").arg("--version").output().is_ok();
    if !has_bash {
        fixtures::skipped(test, "there is no bash on this machine");
    }
    has_bash
}

#[test]
fn the_shell_steps_of_the_action_hold_a_gate() {
    if !has_bash("the_shell_steps_of_the_action_hold_a_gate") {
        return;
    }
    let action = read("action.yml");
    let world = World::new();
    world.write("sessions/one.jsonl", session());
    world.write("sessions/deep er/two.jsonl", session());
    world.write("sessions/notes.txt", "no session");
    let run = |gate: &str, more: &[(&str, &str)]| {
        let program = ("program", env!("CARGO_BIN_EXE_epitome"));
        let fixed = [program, ("sessions", "sessions"), ("gate", gate)];
        Runner::new(&world, &action, &[&fixed[..], more].concat()).run(&action)
    };
    let passed = run("recall=0.5,rules=1", &[("recipe", "s06"), ("args", "--count estimate")]);
    assert_eq!(passed.status, 0, "{passed:#?}");
    assert!(passed.summary.contains("2 sessions, 80 calls"), "{passed:#?}");
    assert!(passed.log.contains("epitome 0."), "{passed:#?}");
    assert_eq!(passed.uses, ["actions/upload-artifact@v5"]);
    assert_eq!(passed.outputs["status"], "0");
    let junit = world.home.join(&passed.outputs["junit"]);
    let report = std::fs::read_to_string(junit).expect("a report");
    assert!(report.contains(r#"tests="2" skipped="0" failures="0""#), "{report}");

    let missed = run("recall=1", &[("recipe", "s06")]);
    assert_eq!((missed.status, missed.outputs["status"].as_str()), (7, "7"), "{missed:#?}");
    assert!(missed.log.contains("::error::the gate was missed: recall=1"), "{missed:#?}");
    assert_eq!(missed.uses, ["actions/upload-artifact@v5"], "the report is uploaded all the same");

    let policy = format!("{} engine --no-log --recipe s06", env!("CARGO_BIN_EXE_epitome"));
    let policy = run("rules=1", &[("policy-command", &policy)]);
    assert_eq!(policy.status, 0, "{policy:#?}");
}

#[test]
fn an_input_of_the_action_is_no_command() {
    if !has_bash("an_input_of_the_action_is_no_command") {
        return;
    }
    let action = read("action.yml");
    let world = World::new();
    world.write("one.jsonl", session());
    for input in ["sessions", "gate", "recipe", "args", "junit"] {
        let mut inputs = BTreeMap::from([
            ("program", env!("CARGO_BIN_EXE_epitome")),
            ("sessions", "one.jsonl"),
            ("gate", "rules=1"),
        ]);
        inputs.insert(input, "$(touch pwned) `touch pwned` ; touch pwned");
        let inputs: Vec<(&str, &str)> = inputs.into_iter().collect();
        let run = Runner::new(&world, &action, &inputs).run(&action);
        assert!(!world.home.join("pwned").exists(), "{input}: {run:#?}");
    }
}

#[test]
fn the_hook_of_pre_commit_is_a_command_of_this_program() {
    let hooks = read(".pre-commit-hooks.yaml");
    let hooks = hooks.as_sequence().expect("a list of hooks");
    assert_eq!(hooks.len(), 1);
    let words: Vec<&str> = text(&hooks[0], "entry").split(' ').collect();
    let ["epitome", command] = words[..] else { panic!("{words:?}") };
    assert_eq!(text(&hooks[0], "language"), "system");
    assert_eq!(hooks[0]["pass_filenames"].as_bool(), Some(false));
    let world = World::new();
    world.claude(CLAUDE, session());
    let args = [command, "--recipe", "s06", "--gate", "recall=1", CLAUDE];
    assert_eq!(world.status(&args), 7);
}
