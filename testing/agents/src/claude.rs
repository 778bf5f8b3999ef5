//! Claude Code: the `claude` program of `@anthropic-ai/claude-code`.

use crate::action::Action;
use crate::agent::{Agent, Facts, Way};
use crate::home::{Home, dashed, sessions_below};
use crate::install;
use model_server::ToolCall;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::Command;

const MODEL: &str = "claude-sonnet-4-6";
const KEY: &str = "sk-ant-unused";
const TOOLS: &str = "Agent,Bash,Edit,Grep,Read,Write";

/// Replaces the default prompt: its 28 KB would be twice in every recording, and we may not publish
/// it.
const SYSTEM: &str = "You are a careful programmer. Work in the current folder with the tools you \
                      have. Say briefly what you found and what you changed.";

/// Claude Code.
#[derive(Debug)]
pub(crate) struct Claude;

impl Agent for Claude {
    fn facts(&self) -> Facts {
        Facts {
            name: "claude",
            package: "@anthropic-ai/claude-code@2.1.331",
            ways: &[Way::Rewrite, Way::Summary],
            is_ported: true,
            hook_settings: Some(".claude/settings.json"),
            compact_command: Some("/compact"),
            ..Facts::MOST
        }
    }

    fn prepare(&self, home: &Home, _url: &str) -> anyhow::Result<()> {
        let keys = json!({ "approved": [KEY], "rejected": [] });
        let settings = json!({ "hasCompletedOnboarding": true, "customApiKeyResponses": keys });
        home.write(".claude.json", settings.to_string().as_bytes())?;
        Ok(())
    }

    fn compact_early(&self, _home: &Home) -> anyhow::Result<()> {
        Ok(())
    }

    fn command(&self, resume: Option<&str>, prompt: &str) -> anyhow::Result<Command> {
        let mut command = Command::new(install::npm(&[self.facts().package])?.join(".bin/claude"));
        command.args(["-p", "--model", MODEL, "--output-format", "json"]);
        command.args(["--system-prompt", SYSTEM]);
        if !prompt.starts_with('/') {
            // The list of commands would be sent and stored with every session.
            command.arg("--disable-slash-commands");
        }
        command.args(["--tools", TOOLS, "--allowedTools", TOOLS]);
        command.args(["--permission-mode", "acceptEdits"]);
        if let Some(id) = resume {
            command.args(["--resume", id]);
        }
        command.args(["--", prompt]);
        Ok(command)
    }

    fn environment(&self, url: &str) -> Vec<(&'static str, String)> {
        let on = [
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
            "DISABLE_AUTOUPDATER",
            "DISABLE_ERROR_REPORTING",
            "DISABLE_TELEMETRY",
        ];
        let own = [
            ("ANTHROPIC_BASE_URL", url),
            ("ANTHROPIC_API_KEY", KEY),
            // A refusal must be reported, not retried.
            ("CLAUDE_CODE_MAX_RETRIES", "0"),
            ("API_TIMEOUT_MS", "60000"),
        ];
        on.map(|name| (name, "1")).into_iter().chain(own).map(|(k, v)| (k, v.to_owned())).collect()
    }

    fn sessions(&self, home: &Home) -> Vec<PathBuf> {
        sessions_below(&home.path().join(".claude/projects"), 1)
    }

    fn place(&self, home: &Home, id: &str) -> PathBuf {
        let folder = dashed(&home.project().display().to_string());
        [".claude/projects", &folder, &format!("{id}.jsonl")].iter().collect()
    }

    fn call(&self, project: &Path, action: &Action) -> ToolCall {
        let at = |path: &str| project.join(path);
        let (name, input) = match action {
            Action::Read { path } => ("Read", json!({ "file_path": at(path) })),
            Action::Write { path, content } => {
                ("Write", json!({ "file_path": at(path), "content": content }))
            }
            Action::Edit { path, old, new } => {
                ("Edit", json!({ "file_path": at(path), "old_string": old, "new_string": new }))
            }
            Action::Shell { command, why } => {
                ("Bash", json!({ "command": command, "description": why }))
            }
            Action::Search { pattern, path } => {
                let content = "content";
                ("Grep", json!({ "pattern": pattern, "path": at(path), "output_mode": content }))
            }
            Action::Delegate { task, prompt, .. } => {
                let kind = "general-purpose";
                let input = json!({
                    "description": task, "prompt": prompt, "subagent_type": kind,
                    "run_in_background": false,
                });
                ("Agent", input)
            }
        };
        ToolCall { name: name.to_owned(), input }
    }
}
