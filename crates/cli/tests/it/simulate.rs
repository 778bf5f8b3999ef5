//! What recipes would have kept of sessions, and the cost.

use crate::world::sessions::{self, CLAUDE};
use crate::world::{self, World};
use insta::assert_snapshot;
use serde_json::json;
use std::path::Path;

#[test]
fn a_compacted_session_is_replayed_as_it_was_before() {
    let world = World::new();
    world.claude(CLAUDE, session());
    let simulated = || world.output(&["simulate", CLAUDE]);
    let before = simulated();
    assert_eq!(world.status(&["compact", CLAUDE, "--keep-turns=1"]), 0);
    assert_eq!(simulated(), before);
}

/// A session of twenty calls: each reads a file, and mentions what it found in earlier ones.
pub fn session() -> String {
    let mut session = sessions::Claude::new(CLAUDE);
    session.user("Find out why parseConfig fails.");
    for n in 0..20_usize {
        let code: Vec<String> =
            (0..60).map(|line| format!("fn step{n}Of{line}() {{ run({n}{line:03}) }}")).collect();
        let input = json!({ "file_path": format!("/p/src/file{n}.rs") });
        session.call(&format!("toolu_{n}"), "Read", input, &code.join("\n"), false);
        let earlier = n / 2;
        session.say(&format!("It calls step{earlier}Of7 in src/file{earlier}.rs."));
        session.user("And then?");
    }
    session.lines()
}

#[test]
fn recipes_are_compared_over_a_session() {
    let world = World::new();
    world.claude(CLAUDE, session());
    let before = world.tree();
    assert_snapshot!(world.run(&["simulate", CLAUDE]), @r"
    $ epitome simulate 0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4
    epitome keeps 100.0% of what was needed later, costs 100% of no compaction ($0.31 of $0.31), and is
    never over the window. As it happened, without a compaction that is recorded, the session cost at
    least $0.02.

    recipe             kept  recall  in line  recoverable  pins    cost      bp  dollars    call     far  context  over  re-reads
    as it happened        -       -        -            -     -  ≥ 5.4%       -  ≥ $0.02       -       -      140  0.0%         -
    no compaction         -       -        -            -     -  100.0%  100.0%    $0.31  100.0%  100.0%    20.2k  0.0%         -
    epitome          100.0%  100.0%   100.0%       100.0%     -  100.0%  100.0%    $0.31  100.0%  100.0%    20.2k  0.0%         -
    clear-tool-uses   31.2%   85.1%    85.1%       100.0%     -  100.0%  100.0%    $0.31  100.0%  100.0%    20.2k  0.0%         -
    1 session, 40 calls, 16.5k tokens, 8 forced compactions

    kept         of forced compactions, tokens after of those before
    recall       facts that the next 40 calls use and the compacted context holds
    in line      the same, in whole lines
    recoverable  the same, with what can be recalled or read again
    pins         what sets rules and stays whole
    cost         the bill of that without compaction, the recipe asked before every call
    bp           the same, where only whole earlier requests are cached
    dollars      that bill at list prices
    call         facts that a response uses and its request holds
    far          the same, of facts from more than ten calls ago
    context      tokens of a request, on average
    over         requests that do not fit into the window
    re-reads     edits for which a file has to be read again
    --- status 0
    ");
    assert_snapshot!(world.run(&["simulate", CLAUDE, "--recipe", "s06", "--recipe", "s08"]), @r"
    $ epitome simulate 0f3c9a52-7d1e-4c55-9f0e-2b8d7a61c3d4 --recipe s06 --recipe s08
    s06 keeps 91.2% of what was needed later, costs 110% of no compaction ($0.34 of $0.31), and is never
    over the window. As it happened, without a compaction that is recorded, the session cost at least
    $0.02.

    recipe           kept  recall  in line  recoverable  pins    cost      bp  dollars    call     far  context  over  re-reads
    as it happened      -       -        -            -     -  ≥ 5.4%       -  ≥ $0.02       -       -      140  0.0%         -
    no compaction       -       -        -            -     -  100.0%  100.0%    $0.31  100.0%  100.0%    20.2k  0.0%         -
    s06             30.8%   85.1%    85.1%       100.0%     -  110.1%  117.9%    $0.34   91.2%   80.0%    14.6k  0.0%         -
    s08             34.5%   85.9%    85.9%       100.0%     -  237.8%  237.8%    $0.74  100.0%  100.0%    19.1k  0.0%         -
    1 session, 40 calls, 16.5k tokens, 8 forced compactions

    kept         of forced compactions, tokens after of those before
    recall       facts that the next 40 calls use and the compacted context holds
    in line      the same, in whole lines
    recoverable  the same, with what can be recalled or read again
    pins         what sets rules and stays whole
    cost         the bill of that without compaction, the recipe asked before every call
    bp           the same, where only whole earlier requests are cached
    dollars      that bill at list prices
    call         facts that a response uses and its request holds
    far          the same, of facts from more than ten calls ago
    context      tokens of a request, on average
    over         requests that do not fit into the window
    re-reads     edits for which a file has to be read again
    --- status 0
    ");
    assert_snapshot!(world.run(&["simulate", "--all", "--recipe", "s06"]), @r"
    $ epitome simulate --all --recipe s06
    In the last 30 days, 1 session with 40 calls would have cost $0.31 at list prices without any
    compaction. With s06 they would have cost $0.34 (10% more), and its requests would have held 80.0%
    of the facts from far back that were used.

    recipe           kept  recall  in line  recoverable  pins    cost      bp  dollars    call     far  context  over  re-reads
    as it happened      -       -        -            -     -  ≥ 5.4%       -  ≥ $0.02       -       -      140  0.0%         -
    no compaction       -       -        -            -     -  100.0%  100.0%    $0.31  100.0%  100.0%    20.2k  0.0%         -
    s06             30.8%   85.1%    85.1%       100.0%     -  110.1%  117.9%    $0.34   91.2%   80.0%    14.6k  0.0%         -
    1 session, 40 calls, 16.5k tokens, 8 forced compactions

    kept         of forced compactions, tokens after of those before
    recall       facts that the next 40 calls use and the compacted context holds
    in line      the same, in whole lines
    recoverable  the same, with what can be recalled or read again
    pins         what sets rules and stays whole
    cost         the bill of that without compaction, the recipe asked before every call
    bp           the same, where only whole earlier requests are cached
    dollars      that bill at list prices
    call         facts that a response uses and its request holds
    far          the same, of facts from more than ten calls ago
    context      tokens of a request, on average
    over         requests that do not fit into the window
    re-reads     edits for which a file has to be read again
    --- status 0
    ");
    assert_eq!(world.tree(), before, "a simulation writes nothing");
}

#[test]
fn a_page_is_a_new_file_and_a_session_that_is_not_replayed_is_told() {
    let world = World::new();
    let path = world.claude(CLAUDE, session());
    let path = path.to_str().expect("it is one");
    let before = world.tree();
    let output = world.output(&["simulate", path, "--recipe", "s06", "--html", path]);
    assert_eq!(output.status.code(), Some(4), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(world.tree(), before, "the session is not written over");
    let output = world.output(&["simulate", path, "/nowhere", "--recipe", "s06"]);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(3), "{stderr}");
    assert!(stderr.contains("1 of 2 sessions were not replayed"), "{stderr}");
    let page = world.home.join("page.html");
    world.run(&["simulate", path, "--recipe", "s06", "--html", page.to_str().expect("a path")]);
    let page = std::fs::read_to_string(page).expect("a page");
    assert!(page.starts_with("<!DOCTYPE html>") && !page.contains("<script"), "{page}");
}

#[test]
fn json_is_what_the_schema_says() {
    let world = World::new();
    let path = world.claude(CLAUDE, session());
    let path = path.to_str().expect("it is one");
    let copy = world.write("copy.jsonl", session());
    let copy = copy.to_str().expect("text");
    // One file with two names counts once; a copy of it counts again.
    let objects = world.json(&["simulate", CLAUDE, path, copy, "--json"]);
    world::check("simulate.schema.json", &objects);
    assert_eq!(objects.len(), 1);
    let sessions = objects[0]["sessions"].as_array().map(Vec::len);
    assert_eq!(sessions, Some(2));
    // A mean over sessions, one of which is the copy of the other.
    assert_eq!(
        objects[0]["recipes"][1]["recall"],
        objects[0]["sessions"][0]["recipes"][1]["recall"]
    );
}

#[test]
fn a_gate_that_is_missed_is_a_status_of_its_own() {
    let world = World::new();
    world.claude(CLAUDE, session());
    let simulate =
        |gate: &str| world.output(&["simulate", CLAUDE, "--recipe", "s06", "--gate", gate]);
    let status = |gate: &str| simulate(gate).status.code();
    let cases = [
        ("recall>=0.1, cost<=9", Some(0)),
        ("recall>=0.1,cost<=0.01", Some(7)),
        ("cost<=1.5", Some(0)),
        ("far-recall>=1.1", Some(2)),
        ("recall>=90", Some(2)),
        ("over<=-1", Some(2)),
        ("beauty>=1", Some(2)),
        ("recall=0.1,kept=0.9,rules=1", Some(0)),
        ("recall=1", Some(7)),
        ("recall", Some(2)),
        ("recall==1", Some(2)),
    ];
    for (gate, expect) in cases {
        assert_eq!(status(gate), expect, "{gate}");
    }
    let stderr = String::from_utf8(simulate("kept<=0.9,recall>=1").stderr).expect("UTF-8");
    assert!(stderr.contains("the recipe s06 misses the gate: recall>=1 (is 0."), "{stderr}");
    assert!(!stderr.contains("kept"), "{stderr}");
    let stderr = String::from_utf8(simulate("beauty=1").stderr).expect("UTF-8");
    assert!(stderr.contains("there is no figure `beauty`: kept, recall, in_line, "), "{stderr}");
    let stderr = String::from_utf8(simulate("pins>=1").stderr).expect("UTF-8");
    let why = "pins>=1 (was not measured: no session has a rule file, a skill or a marked text)";
    assert!(stderr.contains(why), "{stderr}");
    let mut short = sessions::Claude::new(CLAUDE);
    short.user("Hello.");
    short.say("Hello.");
    let short = world.write("short.jsonl", short.lines());
    let short = short.to_str().expect("text");
    let output = world.output(&["simulate", short, "--recipe", "s06", "--gate", "recall>=0.9"]);
    let stderr = String::from_utf8(output.stderr).expect("UTF-8");
    let why = "recall>=0.9 (was not measured: no session is long enough for a forced compaction)";
    assert!(stderr.contains(why), "{stderr}");
}

#[test]
fn a_gate_is_a_table_json_and_a_junit_report() {
    let world = World::new();
    world.claude(CLAUDE, session());
    let gate = "recall=0.9,cost<=1.5,pins=1,rules=1";
    let args = ["simulate", CLAUDE, "--recipe", "s06", "--gate", gate];
    let output = world.output(&args);
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let table = text.split("\n\n").last().expect("a table");
    assert_snapshot!(table, @r"
    figure    gate  measured  result
    recall  >= 0.9    0.8513  failed
    cost    <= 1.5    1.1015  passed
    pins      >= 1         -  failed, not measured: no session has a rule file, a skill or a marked text
    rules     >= 1         1  passed
    ");
    let report = world.home.join("report.xml");
    let path = report.to_str().expect("text");
    let with_report = [&args[..], &["--json", "--junit", path]].concat();
    let output = world.output(&with_report);
    assert_eq!(output.status.code(), Some(7));
    let object: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    world::check("simulate.schema.json", std::slice::from_ref(&object));
    assert_eq!(object["gates"][1]["figure"], "cost");
    assert_eq!(object["gates"][1]["passed"], true);
    let pins = json!({ "figure": "pins", "bound": ">=", "value": 1.0, "measured": null,
        "passed": false, "reason": "no session has a rule file, a skill or a marked text" });
    assert_eq!(object["gates"][2], pins);
    let first = std::fs::read_to_string(&report).expect("a report");
    assert_snapshot!(first, @r#"
    <?xml version="1.0" encoding="UTF-8"?>
    <testsuites name="epitome simulate" tests="4" skipped="0" failures="2" errors="0">
        <testsuite name="s06" tests="4" skipped="0" errors="0" failures="2">
            <properties>
                <property name="sessions" value="1"/>
                <property name="calls" value="40"/>
                <property name="forced compactions" value="8"/>
            </properties>
            <testcase name="recall&gt;=0.9" classname="s06">
                <failure message="recall is 0.8513" type="gate"/>
            </testcase>
            <testcase name="cost&lt;=1.5" classname="s06">
                <system-out>cost is 1.1015</system-out>
            </testcase>
            <testcase name="pins&gt;=1" classname="s06">
                <failure message="pins was not measured: no session has a rule file, a skill or a marked text" type="gate"/>
            </testcase>
            <testcase name="rules&gt;=1" classname="s06">
                <system-out>rules is 1</system-out>
            </testcase>
        </testsuite>
    </testsuites>
    "#);
    // A new report replaces an older one, and no other file.
    assert_eq!(world.output(&with_report).status.code(), Some(7));
    assert_eq!(std::fs::read_to_string(&report).expect("a report"), first);
    let of_others =
        first.replace("testsuites name=\"epitome simulate\"", "testsuites name=\"unit\"");
    for other in ["notes", "<?xml version=\"1.0\"?>\n<project/>\n", &*of_others] {
        std::fs::write(&report, other).expect("a disk");
        assert_eq!(world.output(&with_report).status.code(), Some(4));
        assert_eq!(std::fs::read_to_string(&report).expect("a file"), other);
    }
}

/// The figures of the first recipe or policy command.
fn figures(world: &World, args: &[&str]) -> serde_json::Value {
    let objects = world.json(&[&["simulate", CLAUDE, "--json"], args].concat());
    world::check("simulate.schema.json", &objects);
    let mut figures = objects[0]["recipes"][1].clone();
    figures["recipe"].take();
    figures
}

#[cfg(unix)]
#[test]
fn the_engine_as_a_policy_has_the_figures_of_its_recipe() {
    let world = World::new();
    world.claude(CLAUDE, session());
    for recipe in ["s06", "s08", "clear-tool-uses", "epitome"] {
        let window = ["--window", "24000", "--count", "estimate"];
        let engine = env!("CARGO_BIN_EXE_epitome");
        let policy = format!("{engine} engine --no-log --count estimate --recipe {recipe}");
        let measured = |what: &[&str]| figures(&world, &[&window, what].concat());
        let of_recipe = measured(&["--recipe", recipe]);
        let of_command = measured(&["--policy-command", &policy]);
        for figure in ["kept", "recall", "in_line", "recoverable", "cost", "cost_bp", "far_recall"]
        {
            assert_eq!(of_command[figure], of_recipe[figure], "{recipe}: {figure}");
        }
        assert_eq!(of_command["violations"], json!([]), "{recipe}");
    }
}

/// Answers to each request, by its operation, in the shell.
#[cfg(unix)]
fn shell_policy(call: &str, force: &str) -> String {
    let ok = r#"{"ok":true}"#;
    format!(
        "while read -r line; do case $line in *'\"op\":\"call\"'*) {call};; \
         *'\"op\":\"force\"'*) {force};; *) echo '{ok}';; esac; done"
    )
}

#[cfg(unix)]
#[test]
fn what_a_policy_breaks_is_counted_with_its_reason() {
    let world = World::new();
    world.claude(CLAUDE, session());
    let hi = r#"{"messages":[{"role":"user","content":"Something of its own."}]}"#;
    let orphan = json!({ "type": "tool_result", "tool_use_id": "x", "content": "a" });
    let orphan = json!({ "messages": [{ "role": "user", "content": [orphan] }] }).to_string();
    let count = |policy: &str| {
        let figures = figures(&world, &["--policy-command", policy]);
        let violations = figures["violations"].as_array().expect("a list").iter();
        let counts = violations.map(|it| (it["rule"].clone(), it["count"].clone()));
        (figures["rules"].clone(), counts.collect::<Vec<_>>())
    };
    let lost = count(&shell_policy(&format!("echo '{hi}'"), &format!("echo '{orphan}'")));
    assert_eq!(
        lost,
        (json!(0.0), vec![(json!("lost-request"), json!(48)), (json!("orphan-result"), json!(8)),])
    );
    let bad = count(&shell_policy("echo no", r#"echo '{"error":{"message":"not today"}}'"#));
    assert_eq!(bad, (json!(0.0), vec![(json!("bad-answer"), json!(48))]));
    let policy = shell_policy("echo no", "echo no");
    let output =
        world.output(&["simulate", CLAUDE, "--policy-command", &policy, "--gate", "rules=1"]);
    let (text, stderr) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(7), "{stderr}");
    assert!(text.contains("48 break a rule: bad-answer 48 times (first: call "), "{text}");
    assert!(stderr.contains("misses the gate: rules>=1 (is 0)"), "{stderr}");
}

#[cfg(unix)]
#[test]
fn a_policy_that_ends_is_an_error() {
    let world = World::new();
    world.claude(CLAUDE, session());
    let other = world.write("other.jsonl", session());
    let other = other.to_str().expect("text");
    let refuses = r#"read l; echo '{}'; read l; echo '{"error":"no window"}'; read l"#;
    let wire = r#"read l; echo '{"wire":"openai-chat"}'; read l"#;
    for (policy, expect) in [
        ("exit 3", "has ended (exit status: 3) and left a request unanswered"),
        ("read l; echo '{}'; read l; echo '{}'; read l; exit 4", "has ended (exit status: 4)"),
        ("no-such-program-anywhere", "has ended (exit status: 127)"),
        (refuses, "begins no session: no window"),
        (wire, "takes messages of openai-chat"),
    ] {
        let output = world.output(&["simulate", CLAUDE, other, "--policy-command", policy]);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{policy}: {stderr}");
        assert!(stderr.contains(expect), "{policy}: {stderr}");
    }
}

#[test]
fn the_policy_of_the_documentation_is_measured() {
    let policy = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/clients/policy.py");
    let text = std::fs::read_to_string(&policy).expect("it is part of the repository");
    assert!(text.lines().count() <= 30, "it is short");
    let python = std::process::Command::new("python3").arg("--version").output();
    if !python.is_ok_and(|output| output.status.success()) {
        let why = "there is no python3 on this machine";
        fixtures::skipped("the_policy_of_the_documentation_is_measured", why);
        return;
    }
    let world = World::new();
    world.claude(CLAUDE, session());
    let policy = format!("python3 '{}'", policy.display());
    let gate = "kept=0.4,recall=0.5,cost=1.0,rules=1";
    let figures = figures(&world, &["--policy-command", &policy, "--gate", gate]);
    assert_eq!(figures["rules"], 1.0);
    assert!(figures["compactions"].as_u64() > Some(0), "{figures}");
}

#[test]
fn what_cannot_be_simulated_is_refused() {
    let world = World::new();
    world.claude(CLAUDE, session());
    world.write("prices.toml", "[[model]]\n");
    let refused = [
        &["simulate"][..],
        &["simulate", "no-such-session"],
        &["simulate", CLAUDE, "--recipe", "no-such-recipe"],
        &["simulate", CLAUDE, "--model", "no-such-model"],
        &["simulate", CLAUDE, "--prices", "prices.toml"],
        &["simulate", CLAUDE, "--gate", "recall>=90"],
    ];
    let mut terminals: Vec<String> = refused.iter().map(|args| world.run(args)).collect();
    terminals.push(World::new().run(&["simulate", "--all"]));
    assert_snapshot!(terminals.join("\n"));
}
