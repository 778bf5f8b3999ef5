//! Additions to the settings of a user, and their removal.

use super::*;

const SETTINGS: &str = "{\n  \"model\": \"opus\"\n}\n";

/// A user's home with settings of agents.
struct User {
    _dir: tempfile::TempDir,
    config: Config,
    home: PathBuf,
}

impl User {
    fn new() -> User {
        let dir = tempfile::tempdir().expect("a folder");
        let home = dir.path().canonicalize().expect("a folder");
        let config =
            Config::from_folders(&home, &home.join("data"), &home.join("config"), |_| None);
        User { _dir: dir, config, home }
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.home.join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(&path, text).expect("a file");
        path
    }

    fn add(&self, agent: &str, kind: AdditionKind) {
        let add = Add::plan(&self.config, agent, kind, Path::new("/bin/epitome")).expect("a plan");
        add.carry_out(&self.config).expect("it is added");
    }

    fn remove(&self, agent: Option<&str>, kind: Option<AdditionKind>) -> Vec<FileChange> {
        let mut done = Vec::new();
        // Each removal changes a file, so the next removal is planned only after it.
        while let Some(remove) = Remove::plan(&self.config, agent, kind).expect("a plan").pop() {
            let all = Remove::plan(&self.config, agent, kind).expect("a plan");
            let remove = all.into_iter().next().unwrap_or(remove);
            remove.carry_out(&self.config).expect("it is removed");
            done.push(remove.settings);
        }
        done
    }
}

/// For each agent, its name, its settings file, and texts that this file may have.
const FILES: &[(&str, &str, &[&str])] = &[
    ("claude", ".claude.json", &["{}", SETTINGS, "{\"mcpServers\":{\"x\":{}}}"]),
    ("gemini", ".gemini/settings.json", &["{}\n", "// mine\n{\n  \"a\": [],\n}\n"]),
    ("opencode", ".config/opencode/opencode.json", &["{ }", "{\n\t\"mcp\": {}\n}"]),
    ("codex", ".codex/config.toml", &["", "model = \"gpt-5\"", "[a]\nb = 1\n\n# end\n"]),
];

#[test]
fn settings_come_back_to_the_byte() {
    for (agent, file, texts) in FILES {
        for text in *texts {
            let user = User::new();
            let path = user.write(file, text);
            user.add(agent, AdditionKind::Mcp);
            let with = fs::read_to_string(&path).expect("settings");
            assert!(with.contains("/bin/epitome"), "{with}");
            // A second addition changes nothing.
            user.add(agent, AdditionKind::Mcp);
            assert_eq!(fs::read_to_string(&path).expect("settings"), with);
            user.remove(None, None);
            assert_eq!(&fs::read_to_string(&path).expect("settings"), text, "{agent}");
            assert!(!user.config.home.exists());
        }
    }
}

#[test]
fn where_there_were_no_settings_there_are_none_again() {
    for (agent, file, _) in FILES {
        let user = User::new();
        user.add(agent, AdditionKind::Mcp);
        assert!(user.home.join(file).exists(), "{agent}");
        user.remove(Some(agent), Some(AdditionKind::Mcp));
        let left = fs::read_dir(&user.home).expect("a folder").flatten();
        let left: Vec<PathBuf> = left.map(|entry| entry.path()).collect();
        assert_eq!(left, [user.home.join("data")], "{agent}");
    }
}

#[test]
fn what_the_user_wrote_since_stays() {
    let user = User::new();
    let path = user.write(".claude.json", SETTINGS);
    user.add("claude", AdditionKind::Mcp);
    let with = fs::read_to_string(&path).expect("settings");
    fs::write(&path, with.replace("opus", "haiku")).expect("a file");
    user.remove(None, None);
    let expect = SETTINGS.replace("opus", "haiku");
    assert_eq!(fs::read_to_string(&path).expect("settings"), expect);
}

#[test]
fn an_agent_that_writes_its_settings_again_keeps_what_was_not_ours() {
    let user = User::new();
    let path = user.write(".claude.json", SETTINGS);
    user.add("claude", AdditionKind::Mcp);
    let with = fs::read_to_string(&path).expect("settings");
    let value: serde_json::Value = serde_json::from_str(&with).expect("it is JSON");
    fs::write(&path, value.to_string()).expect("a file");
    user.remove(None, None);
    assert_eq!(fs::read_to_string(&path).expect("settings"), "{\"model\":\"opus\"}");
}

#[test]
fn two_additions_to_one_file_are_both_taken_back() {
    let [mcp, status_line, command] = AdditionKind::ALL;
    for order in [AdditionKind::ALL, [command, status_line, mcp]] {
        let user = User::new();
        let path = user.write(".claude/settings.json", SETTINGS);
        let other = user.write(".claude.json", "{}");
        order.iter().for_each(|kind| user.add("claude", *kind));
        let names: Vec<AdditionKind> =
            list_installed(&user.config).expect("a list").iter().map(|it| it.kind).collect();
        assert_eq!(names, order);
        order.iter().for_each(|kind| drop(user.remove(None, Some(*kind))));
        assert_eq!(fs::read_to_string(&path).expect("settings"), SETTINGS);
        assert_eq!(fs::read_to_string(&other).expect("settings"), "{}");
    }
}

#[test]
fn a_value_that_the_user_changed_is_kept() {
    let user = User::new();
    let path = user.write(".codex/config.toml", "");
    user.add("codex", AdditionKind::Mcp);
    let text = fs::read_to_string(&path).expect("settings");
    fs::write(&path, text.replace("[\"mcp\"]", "[\"mcp\", \"--no-redact\"]")).expect("a file");
    let is_there = list_installed(&user.config).expect("a list")[0].is_there;
    assert!(!is_there);
    assert_eq!(user.remove(None, None), [FileChange::Kept { file: path }]);
}

#[test]
fn what_the_user_has_is_not_replaced() {
    let user = User::new();
    let text = "{\"statusLine\":{\"type\":\"command\",\"command\":\"mine\"}}";
    user.write(".claude/settings.json", text);
    let kind = AdditionKind::StatusLine;
    let plan = Add::plan(&user.config, "claude", kind, Path::new("/bin/epitome"));
    assert_eq!(plan.expect_err("it is there").kind(), ErrorKind::Exists);
    let plan = Add::plan(&user.config, "pi", kind, Path::new("/bin/epitome"));
    assert_eq!(plan.expect_err("pi has none").kind(), ErrorKind::Refused);
}

/// For each agent, its name and the file of its command.
const COMMANDS: &[(&str, &str)] = &[
    ("claude", ".claude/commands/epitome.md"),
    ("codex", ".codex/skills/epitome/SKILL.md"),
    ("gemini", ".gemini/commands/epitome.toml"),
    ("opencode", ".config/opencode/commands/epitome.md"),
    ("pi", ".pi/agent/prompts/epitome.md"),
    ("qwen", ".qwen/commands/epitome.md"),
];

#[test]
fn a_command_is_a_file_that_is_removed_with_its_folders() {
    let agents: Vec<&str> = COMMANDS.iter().map(|(agent, _)| *agent).collect();
    let mut known = AdditionKind::Command.agents();
    known.sort_unstable();
    assert_eq!(known, agents);
    for (agent, file) in COMMANDS {
        let user = User::new();
        user.add(agent, AdditionKind::Command);
        let path = user.home.join(file);
        let text = fs::read_to_string(&path).expect("a command");
        assert!(text.contains("/bin/epitome compact ID --agent"), "{text}");
        user.add(agent, AdditionKind::Command);
        assert_eq!(fs::read_to_string(&path).expect("a command"), text);
        user.remove(Some(agent), Some(AdditionKind::Command));
        let left = fs::read_dir(&user.home).expect("a folder").flatten();
        let left: Vec<PathBuf> = left.map(|entry| entry.path()).collect();
        assert_eq!(left, [user.home.join("data")], "{agent}");
    }
}

#[test]
fn a_file_of_the_user_is_not_replaced_by_a_command() {
    for text in ["", "mine"] {
        let user = User::new();
        user.write(".claude/commands/epitome.md", text);
        let kind = AdditionKind::Command;
        let plan = Add::plan(&user.config, "claude", kind, Path::new("/bin/epitome"));
        assert_eq!(plan.expect_err("it is there").kind(), ErrorKind::Exists);
    }
}

#[test]
fn a_command_that_the_user_edited_is_kept() {
    let user = User::new();
    user.add("pi", AdditionKind::Command);
    let path = user.write(".pi/agent/prompts/epitome.md", "mine");
    assert_eq!(user.remove(None, None), [FileChange::Kept { file: path.clone() }]);
    assert_eq!(fs::read_to_string(&path).expect("a command"), "mine");
}

#[test]
fn folders_that_two_additions_share_are_removed_with_the_last() {
    for [first, last] in
        [[AdditionKind::Mcp, AdditionKind::Command], [AdditionKind::Command, AdditionKind::Mcp]]
    {
        let user = User::new();
        user.add("codex", AdditionKind::Mcp);
        user.add("codex", AdditionKind::Command);
        user.remove(None, Some(first));
        assert!(user.home.join(".codex").exists());
        user.remove(None, Some(last));
        assert!(!user.home.join(".codex").exists(), "{first:?} first");
    }
}

#[test]
fn a_command_in_toml_can_be_read_back() {
    let user = User::new();
    let program = Path::new("C:\\it's \"here\"\\epitome");
    let add = Add::plan(&user.config, "gemini", AdditionKind::Command, program).expect("a plan");
    let parsed: toml::Table = add.after.parse().expect("it is TOML");
    let prompt = parsed["prompt"].as_str().expect("a text");
    let command = epitome_formats::command(&[&program.to_string_lossy(), "compact", "ID"]);
    assert!(prompt.contains(&command), "{prompt}");
}
