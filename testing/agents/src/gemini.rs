//! Gemini CLI: the `gemini` program of `@google/gemini-cli`, run by node.

use crate::action::Action;
use crate::agent::{Agent, Facts};
use crate::home::{Home, sessions_below};
use crate::install;
use model_server::ToolCall;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::Command;

const MODEL: &str = "gemini-3-pro-preview";

/// Gemini CLI's data folder of the project, named after the project's folder.
const PROJECT: &str = ".gemini/tmp/project";

/// Gemini CLI.
#[derive(Debug)]
pub(crate) struct Gemini;

impl Agent for Gemini {
    fn facts(&self) -> Facts {
        Facts {
            name: "gemini",
            package: "@google/gemini-cli@0.61.0",
            appends: false,
            hook_settings: Some(".gemini/settings.json"),
            ..Facts::MOST
        }
    }

    fn prepare(&self, home: &Home, _url: &str) -> anyhow::Result<()> {
        settings(home, None)?;
        let project = home.project().display().to_string();
        let projects = json!({ "projects": { &project: "project" } });
        home.write(".gemini/projects.json", projects.to_string().as_bytes())?;
        home.write(Path::new(PROJECT).join(".project_root"), project.as_bytes())?;
        Ok(())
    }

    fn compact_early(&self, home: &Home) -> anyhow::Result<()> {
        // A share of the window of a million tokens: 4,000 tokens.
        settings(home, Some(0.004))
    }

    fn command(&self, resume: Option<&str>, prompt: &str) -> anyhow::Result<Command> {
        let mut command = install::node_program(self.facts().package, ".bin/gemini")?;
        command.args(["-m", MODEL, "-o", "json"]);
        command.args(["--approval-mode", "yolo", "--skip-trust"]);
        if let Some(id) = resume {
            command.args(["--resume", id]);
        }
        command.args(["-p", prompt]);
        Ok(command)
    }

    fn environment(&self, url: &str) -> Vec<(&'static str, String)> {
        let own = [
            ("GEMINI_API_KEY", "unused"),
            ("GOOGLE_GEMINI_BASE_URL", url),
            ("GEMINI_TELEMETRY_ENABLED", "false"),
            ("GEMINI_CLI_TRUST_WORKSPACE", "true"),
            ("CI", "1"),
        ];
        own.map(|(name, value)| (name, value.to_owned())).into()
    }

    fn sessions(&self, home: &Home) -> Vec<PathBuf> {
        let mut found = sessions_below(&home.path().join(PROJECT).join("chats"), 0);
        // A resume leaves a second file, which has the same id and no messages.
        found.retain(|path| {
            let text = std::fs::read_to_string(path).unwrap_or_default();
            text.contains(r#""type":"gemini""#)
        });
        found
    }

    fn place(&self, _home: &Home, id: &str) -> PathBuf {
        let short: String = id.chars().take(8).collect();
        Path::new(PROJECT).join(format!("chats/session-2026-01-01T00-00-{short}.jsonl"))
    }

    fn beside(&self, session: &Path, id: &str) -> PathBuf {
        session.with_file_name(id)
    }

    fn call(&self, project: &Path, action: &Action) -> ToolCall {
        let at = |path: &str| project.join(path);
        let (name, input) = match action {
            Action::Read { path } => ("read_file", json!({ "file_path": at(path) })),
            Action::Write { path, content } => {
                ("write_file", json!({ "file_path": at(path), "content": content }))
            }
            Action::Edit { path, old, new } => {
                let input = json!({
                    "file_path": at(path), "old_string": old, "new_string": new,
                    "instruction": "Correct the rate",
                });
                ("replace", input)
            }
            Action::Shell { command, why } => {
                ("run_shell_command", json!({ "command": command, "description": why }))
            }
            Action::Search { pattern, path } => {
                ("grep_search", json!({ "pattern": pattern, "dir_path": at(path) }))
            }
            Action::Delegate { prompt, .. } => {
                ("invoke_agent", json!({ "agent_name": "generalist", "prompt": prompt }))
            }
        };
        ToolCall { name: name.to_owned(), input }
    }
}

/// Writes settings with which Gemini CLI asks no questions, sends nothing to other machines, and
/// uses no second model for edits.
fn settings(home: &Home, threshold: Option<f64>) -> anyhow::Result<()> {
    let mut settings = json!({
        "security": {
            "auth": { "selectedType": "gemini-api-key" }, "folderTrust": { "enabled": false },
        },
        "privacy": { "usageStatisticsEnabled": false },
        "general": {
            "enableAutoUpdate": false, "enableAutoUpdateNotification": false,
            "checkpointing": { "enabled": false },
        },
        "telemetry": { "enabled": false },
        "ide": { "enabled": false },
        "tools": { "useRipgrep": false, "disableLLMCorrection": true },
    });
    if let Some(threshold) = threshold {
        settings["model"] = json!({ "compressionThreshold": threshold });
    }
    home.write(".gemini/settings.json", settings.to_string().as_bytes())?;
    Ok(())
}
