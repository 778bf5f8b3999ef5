//! OpenCode: the `opencode` program of `opencode-ai`; and Kilo Code's fork of it, `kilo` of
//! `@kilocode/cli`.
//!
//! The sessions of OpenCode are rows of a database. They are read here in the same form as epitome
//! reads them, one row per line, but with SQL of this crate; a recorded session is imported with
//! `opencode import`.

use crate::action::Action;
use crate::agent::{Agent, Facts, Provider, records};
use crate::home::Home;
use crate::install;
use crate::process::run;
use anyhow::{Context, ensure};
use model_server::ToolCall;
use rusqlite::{Connection, OpenFlags};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const PROVIDER: &str = "scripted";
const MODEL: &str = "scripted-1";
/// A model of a provider that OpenCode knows by itself.
const OWN_MODEL: &str = "anthropic/claude-sonnet-4-6";
const SESSION: &str = "{\"table\":\"session\",";

/// Selects the rows of the session `?1`: the part of a line before the JSON, and the JSON.
const ROWS: &str = "
    SELECT head, data FROM (
        SELECT 0 AS at, 0 AS time, '' AS message, 0 AS kind, '' AS part,
            json_object('table', 'session', 'id', id, 'parent_id', parent_id,
                'directory', directory, 'title', title, 'version', version,
                'time_created', time_created) AS head, coalesce(revert, 'null') AS data
        FROM session WHERE id = ?1
        UNION ALL
        SELECT 1, time_created, id, 1, '',
            json_object('table', 'message', 'id', id, 'time_created', time_created), data
        FROM message WHERE session_id = ?1
        UNION ALL
        SELECT 1, m.time_created, m.id, 2, p.id,
            json_object('table', 'part', 'id', p.id, 'message_id', p.message_id), p.data
        FROM message m JOIN part p ON p.message_id = m.id WHERE m.session_id = ?1
    ) ORDER BY at, time, message, kind, part";

/// OpenCode, or a fork that differs in names.
#[derive(Debug)]
pub(crate) struct Opencode {
    /// The name of the program, and of its files and folders.
    pub(crate) name: &'static str,
    /// As in [`Facts::package`].
    pub(crate) package: &'static str,
    pub(crate) provider: Provider,
}

impl Opencode {
    fn program(&self) -> anyhow::Result<Command> {
        let program = Path::new(".bin").join(self.name);
        Ok(Command::new(install::npm(&[self.package])?.join(program)))
    }

    /// The tokens of a request after which OpenCode compacts, if it is made to compact early.
    fn least_compacted(&self) -> u64 {
        match self.provider {
            Provider::Scripted => 12_000,
            Provider::Own => 1_000,
        }
    }

    /// The model, with its provider.
    fn model(&self) -> String {
        match self.provider {
            Provider::Scripted => format!("{PROVIDER}/{MODEL}"),
            Provider::Own => OWN_MODEL.to_owned(),
        }
    }

    fn config(&self) -> String {
        format!(".config/{0}/{0}.json", self.name)
    }

    /// The beginning of a session's row, which differs in the fork.
    fn session_head(&self) -> String {
        match self.name {
            "opencode" => SESSION.to_owned(),
            name => format!("{SESSION}\"agent\":\"{name}\","),
        }
    }

    fn database(&self) -> PathBuf {
        format!(".local/share/{0}/{0}.db", self.name).into()
    }
}

impl Agent for Opencode {
    fn facts(&self) -> Facts {
        Facts {
            name: self.name,
            package: self.package,
            marked_text: Some("[Old tool result content cleared]"),
            ..Facts::MOST
        }
    }

    fn prepare(&self, home: &Home, url: &str) -> anyhow::Result<()> {
        let model = json!({
            "name": MODEL, "reasoning": true, "tool_call": true, "attachment": true,
            "limit": { "context": 400_000, "output": 32_000 },
            "modalities": { "input": ["text", "image"], "output": ["text"] },
            "options": { "thinking": { "type": "adaptive" } },
        });
        let options = json!({ "baseURL": format!("{url}/v1"), "apiKey": "unused" });
        let providers = match self.provider {
            Provider::Scripted => json!({ PROVIDER: {
                "npm": "@ai-sdk/anthropic", "name": PROVIDER, "options": options,
                "models": { MODEL: model },
            } }),
            Provider::Own => json!({ "anthropic": { "options": options } }),
        };
        let name = self.model();
        let config = json!({
            "$schema": "https://opencode.ai/config.json", "autoupdate": false, "share": "disabled",
            "model": name, "small_model": name, "permission": { "*": "allow" },
            // OpenCode's own compaction would send requests for which no script has a step.
            "compaction": { "auto": false, "prune": false },
            "provider": providers,
        });
        home.write(self.config(), config.to_string().as_bytes())?;
        Ok(())
    }

    fn compact_early(&self, home: &Home) -> anyhow::Result<()> {
        let config = fs::read_to_string(home.path().join(self.config()))?;
        let mut config: Value = serde_json::from_str(&config)?;
        config["compaction"] = json!({ "auto": true, "prune": false });
        let name = self.model();
        let (provider, model) = name.split_once('/').context("a model has a provider")?;
        config["provider"][provider]["models"][model]["limit"] =
            json!({ "context": 32_000 + self.least_compacted(), "output": 32_000 });
        home.write(self.config(), config.to_string().as_bytes())?;
        Ok(())
    }

    fn command(&self, resume: Option<&str>, prompt: &str) -> anyhow::Result<Command> {
        let mut command = self.program()?;
        command.args(["run", "--model", &self.model()]);
        match resume {
            Some(id) => command.args(["--session", id]),
            // Otherwise a model names the session after its answer, which changes the row of the
            // session: also after a summary that leaves one message of the user.
            None => command.args(["--title", "Recorded"]),
        };
        match prompt.strip_prefix('/') {
            Some(name) => command.args(["--command", name]),
            None => command.arg(prompt),
        };
        Ok(command)
    }

    fn environment(&self, _url: &str) -> Vec<(&'static str, String)> {
        [
            "OPENCODE_DISABLE_MODELS_FETCH",
            "OPENCODE_DISABLE_AUTOUPDATE",
            "OPENCODE_DISABLE_LSP_DOWNLOAD",
            "OPENCODE_DISABLE_SHARE",
            "KILO_DISABLE_MODELS_FETCH",
            "KILO_DISABLE_AUTOUPDATE",
            "KILO_DISABLE_LSP_DOWNLOAD",
            "KILO_DISABLE_SHARE",
            "KILO_DISABLE_CODEBASE_INDEXING",
            "KILO_DISABLE_SESSION_INGEST",
            "KILO_DISABLE_PRESENCE",
        ]
        .map(|name| (name, "1".to_owned()))
        .into()
    }

    fn upstream(&self, url: &str) -> Option<String> {
        Some(url.to_owned())
    }

    fn sessions(&self, home: &Home) -> Vec<PathBuf> {
        let database = home.path().join(self.database());
        let sql = "SELECT id FROM session WHERE parent_id IS NULL ORDER BY time_updated";
        let read = || {
            let connection = open(&database)?;
            let mut statement = connection.prepare(sql)?;
            let ids = statement.query_map([], |row| row.get::<_, String>(0))?;
            ids.collect::<rusqlite::Result<Vec<String>>>()
        };
        // There is no database before the first session.
        read().unwrap_or_default().iter().map(|id| address(&database, id)).collect()
    }

    fn read(&self, session: &Path) -> anyhow::Result<Vec<u8>> {
        let text = session.to_str().context("a path is text")?;
        let (database, id) = text.rsplit_once('#').context("a session of a database")?;
        let connection = open(Path::new(database))?;
        let mut statement = connection.prepare(ROWS)?;
        let mut rows = statement.query([id])?;
        let mut lines = String::new();
        while let Some(row) = rows.next()? {
            let (head, data): (String, String) = (row.get(0)?, row.get(1)?);
            let head = head.strip_suffix('}').context("an object")?;
            let head = head.replacen(SESSION, &self.session_head(), 1);
            lines.push_str(&format!("{head},\"data\":{data}}}\n"));
        }
        Ok(lines.into_bytes())
    }

    fn session_id(&self, text: &str) -> anyhow::Result<String> {
        let row = records(text).next().context("no row")?;
        Ok(row["id"].as_str().context("no id")?.to_owned())
    }

    fn place(&self, _home: &Home, id: &str) -> PathBuf {
        address(&self.database(), id)
    }

    fn put(
        &self,
        home: &Home,
        text: &str,
        environment: &dyn Fn(&mut Command),
    ) -> anyhow::Result<PathBuf> {
        let export = home.write("export.json", export(text)?.to_string().as_bytes())?;
        let mut command = self.program()?;
        command.arg("import").arg(&export);
        environment(&mut command);
        let done = run(&mut command, Duration::from_secs(60))?;
        ensure!(done.success(), "{}\n{}", done.stdout, done.stderr);
        Ok(home.path().join(self.place(home, &self.session_id(text)?)))
    }

    fn call(&self, project: &Path, action: &Action) -> ToolCall {
        let at = |path: &str| project.join(path);
        let (name, input) = match action {
            Action::Read { path } => ("read", json!({ "filePath": at(path) })),
            Action::Write { path, content } => {
                ("write", json!({ "filePath": at(path), "content": content }))
            }
            Action::Edit { path, old, new } => {
                ("edit", json!({ "filePath": at(path), "oldString": old, "newString": new }))
            }
            Action::Shell { command, why } => {
                ("bash", json!({ "command": command, "description": why }))
            }
            // OpenCode's own `grep` needs a ripgrep, which it would download.
            Action::Search { pattern, path } => {
                let command = format!("grep -rn '{pattern}' {path}");
                ("bash", json!({ "command": command, "description": "Search" }))
            }
            Action::Delegate { task, prompt, .. } => (
                "task",
                json!({ "description": task, "prompt": prompt, "subagent_type": "general" }),
            ),
        };
        ToolCall { name: name.to_owned(), input }
    }
}

fn open(database: &Path) -> rusqlite::Result<Connection> {
    Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_ONLY)
}

fn address(database: &Path, id: &str) -> PathBuf {
    PathBuf::from(format!("{}#{id}", database.display()))
}

/// Rows as `opencode export` writes them.
fn export(text: &str) -> anyhow::Result<Value> {
    let mut info = Value::Null;
    let mut messages: Vec<Value> = Vec::new();
    for row in records(text) {
        let (id, mut data) = (row["id"].clone(), row["data"].clone());
        match row["table"].as_str() {
            Some("session") => {
                let time = &row["time_created"];
                info = json!({ "id": id, "slug": "recorded", "projectID": "global",
                    "directory": row["directory"], "title": row["title"],
                    "version": row["version"], "time": { "created": time, "updated": time } });
            }
            Some("message") => {
                data["id"] = id;
                data["sessionID"] = info["id"].clone();
                messages.push(json!({ "info": data, "parts": [] }));
            }
            Some("part") => {
                data["id"] = id;
                data["sessionID"] = info["id"].clone();
                data["messageID"] = row["message_id"].clone();
                let message = messages.last_mut().context("a part has a message")?;
                message["parts"].as_array_mut().context("an array")?.push(data);
            }
            _ => {}
        }
    }
    Ok(json!({ "info": info, "messages": messages }))
}
