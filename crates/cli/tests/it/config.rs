//! Settings: where they are read from, what they change, and what is refused.

use crate::world::World;
use crate::world::sessions::{self, CLAUDE};
use insta::assert_snapshot;

const OWN: &str = ".config/epitome/epitome.toml";

/// A project below the home folder, with a file of settings.
fn project(world: &World, settings: &str) {
    world.write("project/.git/HEAD", "");
    world.write("project/epitome.toml", settings);
}

/// Runs the program in the project.
fn run(world: &World, args: &[&str], variables: &[(&str, &str)]) -> String {
    let mut command = world.command(args);
    command.current_dir(world.home.join("project")).envs(variables.iter().copied());
    let output = command.output().expect("the program runs");
    world.terminal(args, &output)
}

#[test]
fn a_file_in_place_of_the_folder_of_settings_is_refused() {
    let world = World::new();
    let file = world.write("mine/epitome.toml", "[compaction]\nrecipe = 's06'\n");
    let other = world.write("mine/other.toml", "");
    let folder = file.parent().expect("a folder");
    let of_file = format!("hint: give the folder of the file: {}", folder.display());
    for (path, hint) in [
        (&file, of_file.as_str()),
        (&other, "hint: the settings are `epitome.toml` in that folder"),
    ] {
        let mut command = world.command(&["config"]);
        let output = command.env("EPITOME_CONFIG", path).output().expect("the program runs");
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        let what = format!("EPITOME_CONFIG is a file: {}; it takes a folder", path.display());
        assert!(stderr.contains(&what) && stderr.contains(hint), "{stderr}");
        assert_eq!(output.status.code(), Some(2));
    }
    let mut command = world.command(&["config"]);
    let output = command.env("EPITOME_CONFIG", folder).output().expect("the program runs");
    assert!(String::from_utf8_lossy(&output.stdout).contains("\"s06\""));
}

#[test]
fn later_ones_win_and_each_value_says_where_it_was_set() {
    let world = World::new();
    world.write(
        OWN,
        "[compaction]\nrecipe = 'pi'\nkeep = { results = 2 }\nexempt_tools = ['skill']\n",
    );
    project(&world, "[compaction]\nrecipe = 's06'\nkeep.results = 4\nkeep.turns = 1\n");
    let variables = [("EPITOME_COMPACTION_KEEP_RESULTS", "6"), ("EPITOME_LIVE_WINDOW", "100k")];
    let set = ["config", "--set", "compaction.keep.results=8"];
    assert_snapshot!(run(&world, &set, &variables), @r#"
    $ epitome config --set compaction.keep.results=8
    key                      value              where
    compaction.exempt_tools  ["skill"]          [home]/.config/epitome/epitome.toml:4
    compaction.keep.results  8                  --set
    compaction.keep.turns    1                  [home]/project/epitome.toml:4
    compaction.recipe        "s06"              [home]/project/epitome.toml:2
    compaction.timeout       300                default
    compaction.tries         3                  default
    live.auto                true               default
    live.overhead            0                  default
    live.window              100000             EPITOME_LIVE_WINDOW
    redaction.enabled        true               default
    redaction.find           ["secrets","pii"]  default
    render.compact           "no"               default
    render.format            ["terminal"]       default
    --- stderr
    read: ~/.config/epitome/epitome.toml (yours)
    read: ~/project/epitome.toml (the project's)
    --- status 0
    "#);
}

#[test]
fn everything_is_explained() {
    let world = World::new();
    world.write(OWN, "[live]\nauto = false\n");
    project(&world, "[live]\nauto = true\n");
    assert_snapshot!(run(&world, &["config", "--explain"], &[]));
}

#[test]
fn names_of_other_programs_are_taken_and_shown_as_what_they_are() {
    let tables = [
        (
            "anthropic",
            "type = 'clear_tool_uses_20250919'\n\
             trigger = { type = 'input_tokens', value = 30000 }\n\
             keep = { type = 'tool_uses', value = 5 }\n\
             clear_at_least = { type = 'input_tokens', value = 5000 }\n\
             exclude_tools = ['web_search']\nclear_tool_inputs = true\n",
        ),
        ("pi", "enabled = true\nreserveTokens = 16384\nkeepRecentTokens = 20000\n"),
        ("opencode", "auto = true\nprune = true\nreserved = 10000\n"),
        (
            "jcli",
            "enabled = false\ntoken_threshold = 50000\nkeep_recent = 3\n\
             micro_compact_exempt_tools = ['Grep']\n",
        ),
        ("ion", "model = 'claude-haiku'\nauto = true\nprotected_messages = 8\n"),
        (
            "gitclaw",
            "enabled = true\nsizeThresholdKB = 50\nturnThresholdBeforeCompress = 2\n\
             toolCallMaxBytes = 600\ntoolResultMaxBytes = 900\nstripThinking = false\n\
             eliminateRedundancy = false\nkeepBackup = true\n",
        ),
    ];
    let mut terminals = Vec::new();
    for (table, names) in tables {
        let world = World::new();
        world.write(OWN, format!("[{table}]\n{names}"));
        let shown = world.run(&["config"]);
        terminals.push(
            shown.lines().filter(|it| !it.ends_with("default")).collect::<Vec<_>>().join("\n"),
        );
    }
    assert_snapshot!(terminals.join("\n\n"));
}

#[test]
fn what_means_nothing_is_an_error_with_its_place_and_the_nearest_name() {
    let files = [
        "[compaction]\nreciepe = 's06'\n",
        "[compaction]\ntarget = 'much'\n",
        "[compaction\n",
        "[antropic]\nkeep = 1\n",
        "[anthropic]\n\nkep = 1\n",
        "[anthropic]\nkeep = { type = 'tokens', value = 1 }\n",
        "[anthropic]\nkeep = 1\n[pi]\nkeepRecentTokens = 3\n",
        "[render]\nformat = ['pdf']\n",
        "recipe = 's06'\n",
        "compaction = { recipe = 'so6' }\n",
        "[compaction]\nrecipe = 'nothing of the kind'\n",
        "[live]\nrecipe = './mine.toml'\n",
        "[live]\nwindow = 0\n",
        "[live]\nwarn = 500\n",
        "[live]\ntrigger = { results = 2, percent = 101 }\n",
        "[compaction]\ntarget = { percent = 500 }\n",
        "[live]\nreserve = -1\n",
        "[pi]\nreserveTokens = -1\n",
        "[opencode]\nkeep = { token = 8000 }\n",
        "[live.summary]\nrole = 'assistant'\n",
        "[live.summary]\nsections = 'nine'\n",
        "[live]\nwindow = 1000\noverhead = 1000\n",
        "[live]\nwindow = 1000\nreserve = 2000\n",
        "[live]\ntrigger.percent = 40\ntarget.percent = 70\n",
        "[compaction]\ntarget = 2000\ntrigger.tokens = 1000\n",
    ];
    let mut terminals = Vec::new();
    for file in files {
        let world = World::new();
        project(&world, file);
        terminals.push(format!("{file}{}", run(&world, &["config"], &[])));
    }
    assert_snapshot!(terminals.join("\n"));
}

#[test]
fn a_value_that_bounds_another_counts_wherever_it_is_set() {
    let world = World::new();
    world.write(OWN, "[live]\nreserve = 16000\n");
    project(&world, "[live]\nwindow = 8000\n");
    let output = run(&world, &["config"], &[("EPITOME_LIVE_WINDOW", "16k")]);
    let expect = ".config/epitome/epitome.toml:2:11: live.reserve is 16000, which is not less than \
                  live.window: 16000 (EPITOME_LIVE_WINDOW)";
    assert!(output.contains(expect), "{output}");
    assert!(run(&world, &["config"], &[("EPITOME_LIVE_WINDOW", "17k")]).contains("--- status 0"));
}

#[test]
fn a_variable_that_sets_nothing_is_an_error_with_the_nearest_name() {
    let world = World::new();
    project(&world, "");
    for (name, value, expect) in [
        ("EPITOME_LIVE_WINDOWS", "9k", "hint: did you mean EPITOME_LIVE_WINDOW?\n--- status 2"),
        ("EPITOME_RECIPE", "s06", "hint: did you mean EPITOME_COMPACTION_RECIPE?\n--- status 2"),
        ("EPITOME_LOGS", "debug", "hint: did you mean EPITOME_LOG?\n--- status 2"),
        ("EPITOME_ZZZ", "1", "hint: `epitome config --explain` lists"),
        ("EPITOME_ZZZ", "", "--- status 0"),
        ("EPITOME_LIVE_WARN", "0", "error: EPITOME_LIVE_WARN: live.warn is 0; it takes a whole"),
        ("EPITOME_COMPACTION_RECIPE", "nope", "no recipe is called `nope`"),
        ("EPITOME_BROWSER", "required", "--- status 0"),
        ("EPITOME_API_KEY", "a-secret-of-mine", "--- status 0"),
    ] {
        let stderr = run(&world, &["config"], &[(name, value)]);
        assert!(stderr.contains(expect), "{name}: {stderr}");
        assert!(!stderr.contains("a-secret"), "{stderr}");
    }
    let mut command = world.command(&["archive", "ls"]);
    let output = command.env("EPITOME_ZZZ", "1").output().expect("the program runs");
    assert_eq!(output.status.code(), Some(0), "what reads no settings goes on");
}

#[test]
fn a_list_may_be_one_word_in_a_variable() {
    let world = World::new();
    project(&world, "");
    for (value, expect) in [("ion", "\"ion\""), ("Goal, State", "[\"Goal\", \"State\"]")] {
        let output = run(&world, &["config"], &[("EPITOME_LIVE_SUMMARY_SECTIONS", value)]);
        assert!(output.contains(&format!("live.summary.sections  {expect} ")), "{output}");
    }
}

/// Every variable in our sources is a setting, or is on the list of other variables.
#[test]
fn variables_of_our_own_tools_are_let_through() {
    let world = World::new();
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut folders = ["crates", "testing", "xtask"].map(|name| root.join(name)).to_vec();
    let name = regex::Regex::new(r#"(?:var|var_os|env)\(\s*"(EPITOME_[A-Z_]+)""#).expect("one");
    let mut found = std::collections::BTreeSet::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|it| it == "rs") {
                let text = std::fs::read_to_string(path).expect("text");
                found.extend(name.captures_iter(&text).map(|it| it[1].to_owned()));
            }
        }
    }
    assert!(found.len() > 8, "{found:?}");
    found.retain(|name| name != "EPITOME_ZZZ");
    for name in &found {
        let value = if name == "EPITOME_CONFIG" { ".config/epitome" } else { "info" };
        let mut command = world.command(&["config"]);
        let output = command.env(name, value).output().expect("the program runs");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(!stderr.contains("there is no setting for"), "{name}: {stderr}");
    }
}

/// Settings files, each with whether it is valid.
const SETTINGS: &[(bool, &str)] = &[
    (true, "live.window = 1\nlive.reserve = 0"),
    (false, "live.window = 0"),
    (false, "live.window = 2_000_000_000"),
    (false, "live.window = -5"),
    (false, "live.window = 1.5"),
    (false, "live.window = '9k'"),
    (true, "live.warn = 100"),
    (false, "live.warn = 101"),
    (true, "live.trigger.percent = 1"),
    (false, "live.trigger.percent = 0"),
    (false, "live.target.percent = 200"),
    (false, "live.trigger.results = 0"),
    (true, "live.trigger.chars = 90000\nlive.target.chars = 1"),
    (true, "live.summary.over.chars = 1"),
    (false, "live.trigger.chars = 0"),
    (false, "live.target.chars = -1"),
    (false, "live.summary.over.percent = 101"),
    (true, "live.summary.sections = 'jcli-9'"),
    (true, "live.summary.sections = ['Goal', 'State']"),
    (false, "live.summary.sections = 'nine'"),
    (false, "live.summary.sections = [1]"),
    (true, "live.summary.role = 'acknowledged'"),
    (false, "live.summary.role = 'assistant'"),
    (true, "live.summary.user_tokens = 0"),
    (false, "live.summary.user_tokens = -1"),
    (false, "live.summary.max_tokens = 0"),
    (true, "live.summary.focus = 'the parser'\nlive.summary.protected = ['a']"),
    (false, "live.summary.protected = 'a'"),
    (true, "compaction.target = { tokens = 9, percent = 100, chars = 1 }"),
    (false, "compaction.target = { percent = 500 }"),
    (false, "compaction.target = { chars = 0 }"),
    (false, "compaction.target = '500%'"),
    (true, "compaction.target = '100 %'"),
    (true, "compaction.target = 0\ncompaction.keep.turns = 0"),
    (false, "compaction.keep.turns = -1"),
    (true, "compaction.thinking = 'drop'\ncompaction.backup = 'beside'"),
    (false, "compaction.thinking = 'maybe'"),
    (true, "compaction.clear_tool_inputs = true"),
    (true, "compaction.clear_tool_inputs = ['Write']"),
    (false, "compaction.clear_tool_inputs = 'Write'"),
    (true, "compaction.recipe = 'ion'"),
    (false, "compaction.recipe = ''"),
    (false, "compaction.recipe = 3"),
    (true, "render.format = ['html', 'json']\nrender.compact = 'no-thinking'"),
    (false, "render.format = ['pdf']"),
    (false, "render.format = 'html'"),
    (false, "unheard.of = 1"),
    (false, "live.unheard = 1"),
    (true, "anthropic.trigger = 30000"),
    (true, "anthropic.trigger = { type = 'tool_uses', value = 9 }"),
    (false, "anthropic.trigger = { type = 'turns', value = 9 }"),
    (false, "anthropic.trigger = { type = 'tool_uses', value = 0 }"),
    (false, "anthropic.keep = -1"),
    (false, "anthropic.type = 'compact'"),
    (true, "opencode.keep = { tokens = 8000 }\nopencode.buffer = 20000"),
    (false, "opencode.keep = { turns = 8000 }"),
    (false, "opencode.prune = 1"),
    (false, "jcli.token_threshold = -1"),
    (true, "gitclaw.sizeThresholdKB = 0\ngitclaw.stripThinking = true"),
    (false, "gitclaw.stripThinking = 'yes'"),
    (false, "ion.model = 3"),
    (false, "pi.enabled = 'yes'"),
];

/// The schema and the program accept the same files, except for what only the program knows: which
/// recipes exist, and which values contradict each other.
#[test]
fn the_schema_and_the_program_take_the_same() {
    let world = World::new();
    let schema = world.output(&["config", "schema"]).stdout;
    let schema: serde_json::Value = serde_json::from_slice(&schema).expect("JSON");
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    for &(fits, text) in SETTINGS {
        let document: toml::Table = text.parse().expect("TOML");
        let document = serde_json::to_value(document).expect("TOML is JSON");
        assert_eq!(validator.is_valid(&document), fits, "the schema: {text}");
        world.write(OWN, text);
        let output = world.run(&["config"]);
        assert_eq!(output.ends_with("--- status 0\n"), fits, "the program: {text}: {output}");
    }
}

#[test]
fn a_project_takes_nothing_away_unless_it_is_trusted() {
    let world = World::new();
    let says = "[redaction]\nenabled = false\nfind = ['pii']\n[compaction]\nmodel = 'x'\n\
                [trust]\nprojects = ['/']\n";
    project(&world, says);
    assert_snapshot!(run(&world, &["config"], &[]), @r#"
    $ epitome config
    key                 value              where
    compaction.recipe   "epitome"          default
    compaction.timeout  300                default
    compaction.tries    3                  default
    live.auto           true               default
    live.overhead       0                  default
    live.window         200000             default
    redaction.enabled   true               default
    redaction.find      ["secrets","pii"]  default
    render.compact      "no"               default
    render.format       ["terminal"]       default
    --- stderr
    ignored: [home]/project/epitome.toml:5 sets compaction.model, which only your own settings can: it is ignored
    ignored: [home]/project/epitome.toml:2 sets redaction.enabled, which only your own settings can: it is ignored
    ignored: [home]/project/epitome.toml:3 sets redaction.find, which only your own settings can: it is ignored
    ignored: [home]/project/epitome.toml:7 sets trust.projects, which only your own settings can: it is ignored
    read: ~/project/epitome.toml (the project's)
    your settings file: ~/.config/epitome/epitome.toml
    --- status 0
    "#);
    world.write(OWN, "[trust]\nprojects = ['~/project']\n");
    assert_snapshot!(run(&world, &["config"], &[]), @r#"
    $ epitome config
    key                 value         where
    compaction.model    "x"           [home]/project/epitome.toml:5
    compaction.recipe   "epitome"     default
    compaction.timeout  300           default
    compaction.tries    3             default
    live.auto           true          default
    live.overhead       0             default
    live.window         200000        default
    redaction.enabled   false         [home]/project/epitome.toml:2
    redaction.find      ["pii"]       [home]/project/epitome.toml:3
    render.compact      "no"          default
    render.format       ["terminal"]  default
    trust.projects      ["/"]         [home]/project/epitome.toml:7
    --- stderr
    read: ~/.config/epitome/epitome.toml (yours)
    read: ~/project/epitome.toml (the project's, trusted)
    --- status 0
    "#);
}

#[test]
fn a_project_names_no_paths_outside_of_itself() {
    let refused = |settings: &str| {
        let world = World::new();
        project(&world, settings);
        world.write("outside/recipe.toml", "name='a'\nabout=''\npasses=[]\n");
        world.write("project/inside.toml", "name='a'\nabout=''\npasses=[]\n");
        #[cfg(unix)]
        for (to, link) in [("../outside", "project/link"), ("/nowhere", "project/nowhere")] {
            std::os::unix::fs::symlink(to, world.home.join(link)).expect("a link");
        }
        let shown = run(&world, &["config"], &[]);
        shown.contains("is outside of the project")
    };
    for (settings, expect) in [
        ("[compaction]\nrecipe = '../outside/recipe.toml'\n", true),
        ("[compaction]\nrecipe = './inside.toml'\n", false),
        ("[compaction]\nrecipe = 's06'\n", false),
        ("[compaction]\nrecipe = 'link/recipe.toml'\n", true),
        ("[render]\nout = '~/pages'\n", true),
        ("[render]\nout = '/pages'\n", true),
        ("[render]\nout = 'nowhere'\n", true),
        ("[render]\nout = 'pages/of/it'\n", false),
    ] {
        assert_eq!(refused(settings), expect, "{settings}");
    }
}

#[test]
fn the_nearest_file_counts_and_none_above_the_repository() {
    let world = World::new();
    world.write("epitome.toml", "[compaction]\nrecipe = 'pi'\n");
    world.write("project/.git/HEAD", "");
    world.write("project/sub/deep/file", "");
    let recipe = || {
        let mut command = world.command(&["config", "--json"]);
        let output = command.current_dir(world.home.join("project/sub/deep")).output();
        let explained: serde_json::Value =
            serde_json::from_slice(&output.expect("the program runs").stdout).expect("JSON");
        let settings = explained["settings"].as_array().expect("a list");
        let recipe = settings.iter().find(|it| it["key"] == "compaction.recipe");
        recipe.expect("a key")["value"].as_str().map(str::to_owned)
    };
    assert_eq!(recipe().as_deref(), Some("epitome"), "not that of the home folder");
    world.write("project/epitome.toml", "[compaction]\nrecipe = 's06'\n");
    assert_eq!(recipe().as_deref(), Some("s06"));
    world.write("project/sub/epitome.toml", "[compaction]\nrecipe = 's08'\n");
    assert_eq!(recipe().as_deref(), Some("s08"));
    world.write("project/sub/.epitome.toml", "[compaction]\nrecipe = 'ion'\n");
    assert_eq!(recipe().as_deref(), Some("ion"));
}

#[test]
fn commands_do_what_is_set_and_flags_win() {
    let world = World::new();
    let session = world.claude("s", sessions::claude(CLAUDE));
    let name = session.to_str().expect("text");
    let recipe = |args: &[&str]| {
        let all = [&["compact", name, "--dry-run", "--json"], args].concat();
        world.json(&all)[0]["recipe"].as_str().map(str::to_owned)
    };
    world.write(OWN, "[compaction]\nrecipe = 'transcript'\n");
    assert_eq!(recipe(&[]).as_deref(), Some("transcript"));
    assert_eq!(recipe(&["--set", "compaction.recipe=s06"]).as_deref(), Some("s06"));
    assert_eq!(recipe(&["--recipe", "gitclaw"]).as_deref(), Some("gitclaw"));
    world.write(OWN, "[render]\nformat = ['markdown']\ndetail = 'conversation'\n");
    let set = world.output(&["render", name]).stdout;
    let asked = ["render", name, "--format", "markdown", "--detail", "conversation"];
    assert_eq!(set, world.output(&asked).stdout);
    assert_ne!(set, world.output(&["render", name, "--detail", "full"]).stdout);
    world.write(OWN, "[live]\nrecipe = 'ion'\nwindow = 64000\n[compaction]\nrecipe = 's06'\n");
    let hello = world.run_with(&["engine", "--no-log"], b"{\"op\":\"hello\"}\n");
    assert!(hello.contains(r#""recipe":"ion""#) && hello.contains(r#""window":64000"#), "{hello}");
}

#[test]
fn redaction_is_switched_off_by_the_user_alone_and_says_so() {
    let world = World::new();
    let secret = format!("ghp_{}", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");
    let content = format!("token={secret}");
    let line = serde_json::json!({ "messages": [{ "role": "user", "content": content }] });
    let file = world.write("request.json", line.to_string());
    let name = file.to_str().expect("text");
    let args = ["export", name, "--agent", "anthropic", "--to", "anthropic"];
    let explain = |world: &World| world.run(&args);
    assert!(!explain(&world).contains(&secret), "{}", explain(&world));
    world.write(OWN, "[redaction]\nenabled = false\n");
    let off = explain(&world);
    assert!(off.contains(&secret) && off.contains("redaction.enabled is off"), "{off}");
    let redacted = world.run(&["redact", name, "--agent", "anthropic"]);
    assert!(!redacted.contains(&secret), "who asks for it gets it: {redacted}");
}

#[test]
fn settings_of_another_program_become_a_table() {
    let world = World::new();
    let files = [
        (
            "compression.json",
            r#"{"session":{"sizeThresholdKB":100,"turnThresholdBeforeCompress":4,"colour":1}}"#,
        ),
        (
            "settings.json",
            r#"{"theme":"dark","compaction":{"reserveTokens":16384,"keepRecentTokens":30000}}"#,
        ),
        ("bare.json", r#"{"enabled":true,"sizeThresholdKB":100,"turnThresholdBeforeCompress":4}"#),
        ("opencode.json", r#"{"compaction":{"auto":true,"prune":false}}"#),
        ("v2.json", r#"{"compaction":{"auto":true,"keep":{"tokens":8000},"buffer":20000}}"#),
        ("of-nobody.json", r#"{"enabled":true,"model":"m","keep":3}"#),
        (
            "request.json",
            concat!(
                r#"{"context_management":{"edits":[{"type":"clear_tool_uses_20250919","#,
                r#""keep":{"type":"tool_uses","value":2}}]}}"#,
            ),
        ),
        ("config.toml", "[compact]\nkeep_recent = 10\ntoken_threshold = 204800\n"),
        ("ion.toml", "[compaction]\nmodel = 'm'\nprotected_messages = 12\n"),
        ("nothing.json", "{}"),
        ("torn.json", "{\"session\":"),
    ];
    let mut terminals = Vec::new();
    for (name, text) in files {
        world.write(name, text);
        terminals.push(world.run(&["config", "import", name]));
    }
    assert_snapshot!(terminals.join("\n"));
}

#[test]
fn the_schema_that_is_published_is_the_one_that_is_printed() {
    let world = World::new();
    let printed = String::from_utf8(world.output(&["config", "schema"]).stdout).expect("text");
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schema/epitome.schema.json");
    let published = std::fs::read_to_string(path).unwrap_or_default();
    assert!(printed == published, "epitome config schema > docs/schema/epitome.schema.json");
    let schema: serde_json::Value = serde_json::from_str(&printed).expect("JSON");
    let example = include_str!("../../../../docs/config.md").split("```toml\n").nth(1);
    let example = example.and_then(|rest| rest.split("```").next()).expect("an example");
    let example: toml::Table = example.parse().expect("the example is TOML");
    let example = serde_json::to_value(example).expect("TOML is JSON");
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    let faults: Vec<String> = validator.iter_errors(&example).map(|it| it.to_string()).collect();
    assert_eq!(faults, Vec::<String>::new(), "the example of docs/config.md fits");
    assert!(!validator.is_valid(&serde_json::json!({ "compaction": { "reciepe": "x" } })));
    world.write("e.toml", toml::to_string(&example).expect("TOML"));
    world.write(OWN, std::fs::read(world.home.join("e.toml")).expect("a file"));
    assert_eq!(world.status(&["config"]), 0);
}

#[test]
fn spans_are_told_where_somebody_wants_them_and_hold_no_words() {
    let world = World::new();
    let session = world.claude("s", sessions::claude(CLAUDE));
    let name = session.to_str().expect("text");
    let logged = |filter: &str| {
        let mut command = world.command(&["compact", name, "--dry-run"]);
        let output = command.env("EPITOME_LOG", filter).output().expect("the program runs");
        String::from_utf8(output.stderr).expect("text")
    };
    let spans = logged("epitome=debug");
    assert!(spans.contains("session.plan{format=\"claude\" recipe=\"epitome\" way="), "{spans}");
    assert!(!spans.contains(name) && !spans.contains("fn "), "{spans}");
    assert_eq!(logged("epitome=warn"), "");
    assert!(
        logged("epitome=[").contains("EPITOME_LOG is not a valid filter"),
        "{}",
        logged("epitome=[")
    );
}
