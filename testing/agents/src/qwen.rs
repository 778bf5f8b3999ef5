//! Qwen Code: the `qwen` program of `@qwen-code/qwen-code`, talking OpenAI Chat Completions.

use crate::action::Action;
use crate::agent::{Agent, Facts, Way};
use crate::home::{Home, dashed, sessions_below};
use crate::install;
use model_server::ToolCall;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::Command;

const MODEL: &str = "gpt-5";

/// Qwen Code.
#[derive(Debug)]
pub(crate) struct Qwen;

impl Agent for Qwen {
    fn facts(&self) -> Facts {
        Facts {
            name: "qwen",
            package: "@qwen-code/qwen-code@0.24.4",
            ways: &[Way::Rewrite],
            records_sub_agents: false,
            ..Facts::MOST
        }
    }

    fn prepare(&self, home: &Home, _url: &str) -> anyhow::Result<()> {
        // No questions, nothing that leaves the machine, no requests of its own.
        let settings = json!({
            "security": {
                "auth": { "selectedType": "openai" }, "folderTrust": { "enabled": false },
            },
            "privacy": { "usageStatisticsEnabled": false },
            "general": { "enableAutoUpdate": false, "checkpointing": { "enabled": false } },
            "memory": { "enableManagedAutoMemory": false, "enableManagedAutoDream": false },
            "telemetry": { "enabled": false },
            "ide": { "enabled": false },
            "tools": { "useRipgrep": false },
        });
        home.write(".qwen/settings.json", settings.to_string().as_bytes())?;
        Ok(())
    }

    fn command(&self, resume: Option<&str>, prompt: &str) -> anyhow::Result<Command> {
        let mut command = install::node_program(self.facts().package, ".bin/qwen")?;
        command.args(["--auth-type", "openai", "-m", MODEL, "-o", "json"]);
        command.args(["--approval-mode", "yolo"]);
        if let Some(id) = resume {
            command.args(["--resume", id]);
        }
        command.args(["-p", prompt]);
        Ok(command)
    }

    fn environment(&self, url: &str) -> Vec<(&'static str, String)> {
        let own = [
            ("OPENAI_API_KEY", "unused".to_owned()),
            ("OPENAI_BASE_URL", format!("{url}/v1")),
            ("OPENAI_MODEL", MODEL.to_owned()),
            ("QWEN_DISABLE_AUTO_TITLE", "1".to_owned()),
            ("CI", "1".to_owned()),
        ];
        own.into()
    }

    fn sessions(&self, home: &Home) -> Vec<PathBuf> {
        sessions_below(&home.path().join(".qwen/projects"), 2)
    }

    fn place(&self, home: &Home, id: &str) -> PathBuf {
        let folder = dashed(&home.project().display().to_string());
        [".qwen/projects", &folder, "chats", &format!("{id}.jsonl")].iter().collect()
    }

    fn call(&self, project: &Path, action: &Action) -> ToolCall {
        let at = |path: &str| project.join(path);
        let (name, input) = match action {
            Action::Read { path } => ("read_file", json!({ "file_path": at(path) })),
            Action::Write { path, content } => {
                ("write_file", json!({ "file_path": at(path), "content": content }))
            }
            Action::Edit { path, old, new } => {
                ("edit", json!({ "file_path": at(path), "old_string": old, "new_string": new }))
            }
            Action::Shell { command, why } => {
                let input = json!({
                    "command": command, "description": why, "is_background": false,
                });
                ("run_shell_command", input)
            }
            Action::Search { pattern, path } => {
                ("grep_search", json!({ "pattern": pattern, "path": at(path) }))
            }
            Action::Delegate { task, prompt, .. } => {
                let input = json!({
                    "description": task, "prompt": prompt, "subagent_type": "general-purpose",
                });
                ("agent", input)
            }
        };
        ToolCall { name: name.to_owned(), input }
    }
}
