//! pi: `dist/bundle/cli.js` of `@earendil-works/pi-coding-agent`, run by node.

use crate::action::Action;
use crate::agent::{Agent, Facts, Provider, Way, records};
use crate::home::{Home, sessions_below};
use crate::install;
use crate::project::Scale;
use anyhow::Context;
use model_server::ToolCall;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::Command;

const PROVIDER: &str = "scripted";
const MODEL: &str = "scripted-1";
/// A model of a provider that pi knows by itself.
const OWN_MODEL: &str = "anthropic/claude-sonnet-4-6";
const WINDOW: usize = 1_000_000;
const TOOLS: &str = "read,bash,edit,write";

/// The API that pi uses.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Api {
    Anthropic,
    Chat,
}

/// pi with one of its APIs.
#[derive(Debug)]
pub(crate) struct Pi {
    pub(crate) api: Api,
    pub(crate) provider: Provider,
}

impl Pi {
    /// The model, with its provider.
    fn model(&self) -> String {
        match self.provider {
            Provider::Scripted => format!("{PROVIDER}/{MODEL}"),
            Provider::Own => OWN_MODEL.to_owned(),
        }
    }
}

impl Agent for Pi {
    fn facts(&self) -> Facts {
        let facts = Facts { package: "@earendil-works/pi-coding-agent@1.5.2", ..Facts::MOST };
        match self.api {
            Api::Anthropic => Facts { name: "pi", scale: Scale::LARGE, is_ported: true, ..facts },
            Api::Chat => Facts { name: "pi-chat", ways: &[Way::Rewrite, Way::Summary], ..facts },
        }
    }

    fn prepare(&self, home: &Home, url: &str) -> anyhow::Result<()> {
        let (api, base) = match self.api {
            Api::Anthropic => ("anthropic-messages", url.to_owned()),
            Api::Chat => ("openai-completions", format!("{url}/v1")),
        };
        let model = json!({
            "id": MODEL, "name": MODEL, "reasoning": true, "input": ["text", "image"],
            "contextWindow": WINDOW, "maxTokens": 32_000,
            "cost": { "input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0 },
        });
        let models = match self.provider {
            Provider::Scripted => json!({ "providers": { PROVIDER: {
                "baseUrl": base, "apiKey": "unused", "api": api, "models": [model],
            } } }),
            Provider::Own => json!({ "providers": { "anthropic": { "baseUrl": base } } }),
        };
        home.write(".pi/agent/models.json", models.to_string().as_bytes())?;
        // pi's own compaction and its retries would send requests for which no script has a step.
        let settings = json!({ "compaction": { "enabled": false }, "retry": { "enabled": false } });
        home.write(".pi/agent/settings.json", settings.to_string().as_bytes())?;
        Ok(())
    }

    fn compact_early(&self, home: &Home) -> anyhow::Result<()> {
        // pi compacts when the free part of the window is smaller than the reserve.
        let reserve = WINDOW - 4_000;
        let compaction =
            json!({ "enabled": true, "reserveTokens": reserve, "keepRecentTokens": 1_000 });
        let settings = json!({ "compaction": compaction, "retry": { "enabled": false } });
        home.write(".pi/agent/settings.json", settings.to_string().as_bytes())?;
        Ok(())
    }

    fn command(&self, resume: Option<&str>, prompt: &str) -> anyhow::Result<Command> {
        let mut command = Command::new(install::node()?);
        command.arg(install::pi(self.facts().package)?).args(["-p", "--model", &self.model()]);
        command.args(["--thinking", "medium", "--tools", TOOLS]);
        if let Some(id) = resume {
            command.args(["--session", id]);
        }
        command.arg(prompt);
        Ok(command)
    }

    fn environment(&self, _url: &str) -> Vec<(&'static str, String)> {
        ["PI_OFFLINE", "PI_SKIP_VERSION_CHECK"]
            .map(|name| (name, "1".to_owned()))
            .into_iter()
            .chain([("PI_TELEMETRY", "0".to_owned()), ("ANTHROPIC_API_KEY", "unused".to_owned())])
            .collect()
    }

    fn upstream(&self, url: &str) -> Option<String> {
        Some(url.to_owned())
    }

    fn sessions(&self, home: &Home) -> Vec<PathBuf> {
        sessions_below(&home.path().join(".pi/agent/sessions"), 1)
    }

    fn session_id(&self, text: &str) -> anyhow::Result<String> {
        records(text)
            .find(|record| record["type"] == "session")
            .and_then(|record| record["id"].as_str().map(str::to_owned))
            .context("no header with a session id")
    }

    fn place(&self, home: &Home, id: &str) -> PathBuf {
        let project = home.project().display().to_string();
        let folder = format!("--{}--", project.trim_matches('/').replace('/', "-"));
        // The time in the name does not matter; pi uses the id in the header.
        let name = format!("2026-01-01T00-00-00-000Z_{id}.jsonl");
        [".pi/agent/sessions", &folder, &name].iter().collect()
    }

    fn call(&self, project: &Path, action: &Action) -> ToolCall {
        let at = |path: &str| project.join(path);
        let (name, input) = match action {
            Action::Read { path } => ("read", json!({ "path": at(path) })),
            Action::Write { path, content } => {
                ("write", json!({ "path": at(path), "content": content }))
            }
            Action::Edit { path, old, new } => {
                let edit = json!({ "oldText": old, "newText": new });
                ("edit", json!({ "path": at(path), "edits": [edit] }))
            }
            Action::Shell { command, .. } => ("bash", json!({ "command": command })),
            // pi's own `grep` needs a ripgrep, which it would download.
            Action::Search { pattern, path } => {
                ("bash", json!({ "command": format!("grep -rn '{pattern}' {path}") }))
            }
            // pi has no sub-agents; a command answers the question instead.
            Action::Delegate { instead, .. } => ("bash", json!({ "command": instead })),
        };
        ToolCall { name: name.to_owned(), input }
    }
}
