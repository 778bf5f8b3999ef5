//! Codex: the `codex` program of `@openai/codex`.

use crate::action::Action;
use crate::agent::{Agent, Facts, Provider, records};
use crate::home::{Home, sessions_below};
use crate::install;
use anyhow::Context;
use model_server::ToolCall;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const PROVIDER: &str = "scripted";
const CONFIG: &str = ".codex/config.toml";

/// Replaces the default prompt: its 21 KB would be in every recording, and we may not publish it.
const PROMPT: &str = "You are a careful programmer. Work in the current folder with the tools you \
                      have. Say briefly what you found and what you changed.";

/// How Codex offers its tools, which depends on the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tools {
    /// Each as a tool of its own.
    Single,
    /// One tool that runs a script, which calls the others.
    Scripts,
}

/// Codex with one of its sets of tools.
#[derive(Debug)]
pub(crate) struct Codex {
    pub(crate) tools: Tools,
    pub(crate) provider: Provider,
}

impl Codex {
    fn model(&self) -> &'static str {
        match self.tools {
            Tools::Single => "gpt-5.5",
            Tools::Scripts => "gpt-6-sol",
        }
    }

    /// A call of a tool, or a script that calls it and prints its result.
    fn tool(&self, name: &str, input: &Value) -> ToolCall {
        match self.tools {
            Tools::Single => ToolCall { name: name.to_owned(), input: input.clone() },
            Tools::Scripts => {
                let script = match name {
                    "exec_command" => format!(
                        "const run = await tools.exec_command({input});\ntext(run.output);\nif \
                         (run.exit_code) text('exit code ' + run.exit_code);\n"
                    ),
                    "view_image" => format!("image(await tools.view_image({input}));\n"),
                    _ => format!("text(await tools.{name}({input}));\n"),
                };
                ToolCall { name: "exec".to_owned(), input: Value::String(script) }
            }
        }
    }

    /// The settings of the provider, in two parts: the keys of the top level, and a table, which
    /// must come last in the file.
    fn provider(&self, url: &str) -> (String, String) {
        match self.provider {
            Provider::Own => (format!("openai_base_url = \"{url}/v1\"\n"), String::new()),
            Provider::Scripted => {
                let table = format!(
                    "\n[model_providers.{PROVIDER}]\nname = \"{PROVIDER}\"\nbase_url = \
                     \"{url}/v1\"\nwire_api = \"responses\"\nrequest_max_retries = \
                     0\nstream_max_retries = 0\n"
                );
                (format!("model_provider = \"{PROVIDER}\"\n"), table)
            }
        }
    }

    fn shell(&self, project: &Path, command: &str) -> ToolCall {
        let input = json!({ "cmd": command, "workdir": project, "yield_time_ms": 20_000,
            "max_output_tokens": 30_000 });
        self.tool("exec_command", &input)
    }
}

impl Agent for Codex {
    fn facts(&self) -> Facts {
        let single = self.tools == Tools::Single;
        Facts {
            name: if single { "codex" } else { "codex-scripts" },
            package: "@openai/codex@0.169.0",
            is_ported: single,
            hook_settings: single.then_some(".codex/hooks.json"),
            ..Facts::MOST
        }
    }

    fn prepare(&self, home: &Home, url: &str) -> anyhow::Result<()> {
        let (model, project) = (self.model(), home.project().display().to_string());
        let prompt = home.write(".codex/prompt.md", PROMPT.as_bytes())?.display().to_string();
        let (provider, table) = self.provider(url);
        let config = format!(
            r#"model = "{model}"
{provider}approval_policy = "never"
sandbox_mode = "danger-full-access"
model_reasoning_effort = "medium"
model_reasoning_summary = "auto"
check_for_update_on_startup = false
model_instructions_file = "{prompt}"
{table}
[analytics]
enabled = false

[projects."{project}"]
trust_level = "trusted"
"#
        );
        home.write(CONFIG, config.as_bytes())?;
        Ok(())
    }

    fn compact_early(&self, home: &Home) -> anyhow::Result<()> {
        let config = fs::read_to_string(home.path().join(CONFIG))?;
        let limit = "model_auto_compact_token_limit = 5000\n";
        home.write(CONFIG, [limit, &config].concat().as_bytes())?;
        Ok(())
    }

    fn command(&self, resume: Option<&str>, prompt: &str) -> anyhow::Result<Command> {
        let mut command = install::node_program(self.facts().package, ".bin/codex")?;
        // Hooks in a test's own home need no confirmation.
        command.arg("--dangerously-bypass-hook-trust");
        command.args(["exec", "--skip-git-repo-check"]);
        if let Some(id) = resume {
            command.args(["resume", id]);
        }
        command.args(["--", prompt]);
        Ok(command)
    }

    fn environment(&self, _url: &str) -> Vec<(&'static str, String)> {
        match self.provider {
            Provider::Scripted => Vec::new(),
            Provider::Own => vec![("CODEX_API_KEY", "unused".to_owned())],
        }
    }

    fn upstream(&self, url: &str) -> Option<String> {
        Some(format!("{url}/v1"))
    }

    fn sessions(&self, home: &Home) -> Vec<PathBuf> {
        sessions_below(&home.path().join(".codex/sessions"), 3)
    }

    fn session_id(&self, text: &str) -> anyhow::Result<String> {
        records(text)
            .find(|record| record["type"] == "session_meta")
            .and_then(|record| record["payload"]["id"].as_str().map(str::to_owned))
            .context("no `session_meta` with an id")
    }

    fn place(&self, _home: &Home, id: &str) -> PathBuf {
        // The time in the name does not matter; Codex uses the id.
        let name = format!("rollout-2026-01-01T00-00-00-{id}.jsonl");
        [".codex/sessions/2026/01/01", &name].iter().collect()
    }

    fn call(&self, project: &Path, action: &Action) -> ToolCall {
        match action {
            Action::Read { path } if path.ends_with(".png") => {
                self.tool("view_image", &json!({ "path": project.join(path) }))
            }
            Action::Read { path } => self.shell(project, &format!("cat {path}")),
            Action::Write { path, content } => {
                let added: String = content.lines().map(|line| format!("+{line}\n")).collect();
                self.patch(&format!("*** Add File: {path}\n{added}"))
            }
            Action::Edit { path, old, new } => {
                // A patch consists of whole lines, and the replaced text may end within a line.
                let line = |sign: char, line: &str| format!("{sign}{line}\n");
                let (old, new) = (old.lines().next(), new.lines().next());
                let hunk = [old.map(|it| line('-', it)), new.map(|it| line('+', it))]
                    .into_iter()
                    .flatten();
                self.patch(&format!("*** Update File: {path}\n@@\n{}", hunk.collect::<String>()))
            }
            Action::Shell { command, .. } => self.shell(project, command),
            Action::Search { pattern, path } => {
                self.shell(project, &format!("grep -rn '{pattern}' {path}"))
            }
            // Sub-agents of Codex do not follow the order of the script; a command answers the
            // question instead.
            Action::Delegate { instead, .. } => self.shell(project, instead),
        }
    }
}

impl Codex {
    fn patch(&self, change: &str) -> ToolCall {
        self.tool("apply_patch", &json!(format!("*** Begin Patch\n{change}*** End Patch\n")))
    }
}
