//! MCP servers, as the settings name them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use epitome::{Error, ErrorKind, McpServer};
use epitome_chat::Workplace;
use epitome_chat::machine::Event;
use epitome_chat::mcp::{Place, Server, Servers, TIMEOUT, is_name};

use crate::app::App;
use crate::failure::Result;

/// A workplace with the tools of all servers: those of the settings, and `more`. Programs do not
/// get the variables `hidden`. The events say which servers have no tools.
pub fn with_servers(
    app: &App,
    place: Workplace,
    hidden: &[String],
    more: &[Server],
) -> Result<(Workplace, Vec<Event>)> {
    let set = app.settings()?.values.chat.mcp.iter().flatten();
    let mut servers =
        set.map(|(name, set)| server(app, name, set)).collect::<Result<Vec<Server>>>()?;
    let is_new = |server: &&Server| !servers.iter().any(|it| it.name == server.name);
    let more: Vec<Server> = more.iter().filter(is_new).cloned().collect();
    servers.extend(more);
    for server in &mut servers {
        // Some programs look for code where they are started: not in a project of others.
        if let Place::Program { folder, .. } = &mut server.place
            && folder.as_os_str().is_empty()
        {
            *folder = app.config.user.clone();
        }
    }
    if servers.is_empty() {
        return Ok((place, Vec::new()));
    }
    let servers = Servers::start(servers, place.root(), hidden)?;
    let failed =
        |(name, why)| Event::Notice { text: format!("MCP server {name} has no tools: {why}") };
    let events = servers.failed().into_iter().map(failed).collect();
    Ok((place.with_more(Arc::new(servers)), events))
}

fn server(app: &App, name: &str, set: &McpServer) -> Result<Server> {
    if !is_name(name) {
        let what = "letters, digits, `-` and single `_`, at most 32";
        return Err(wrong(app, format!("`{name}` is no name of a server: {what}")));
    }
    let place = match (&set.command, &set.url) {
        (Some(command), None) => Place::Program {
            command: command.clone(),
            args: set.args.clone(),
            env: expanded(app, &set.env)?,
            folder: match &set.cwd {
                Some(folder) => app.config.here.join(folder),
                None => PathBuf::new(),
            },
        },
        (None, Some(url)) => {
            Place::Address { url: url.clone(), headers: expanded(app, &set.headers)? }
        }
        (None, None) => {
            return Err(wrong(app, format!("chat.mcp.{name} has neither `command` nor `url`")));
        }
        (Some(_), Some(_)) => {
            return Err(wrong(app, format!("chat.mcp.{name} has both `command` and `url`")));
        }
    };
    let timeout = set.timeout.map_or(TIMEOUT, |seconds| Duration::from_secs(seconds.max(1)));
    Ok(Server { name: name.to_owned(), place, timeout })
}

/// Values with the variables of the environment in place of their names.
fn expanded(app: &App, values: &BTreeMap<String, String>) -> Result<Vec<(String, String)>> {
    let one = |(name, text): (&String, &String)| {
        let mut value = String::new();
        let mut rest = text.as_str();
        while let Some((before, after)) = rest.split_once("${") {
            let Some((variable, after)) = after.split_once('}') else { break };
            let found = std::env::var(variable).map_err(|_| {
                wrong(app, format!("chat.mcp: the variable {variable} is not set ({name})"))
            })?;
            value.push_str(before);
            value.push_str(&found);
            rest = after;
        }
        value.push_str(rest);
        Ok((name.clone(), value))
    };
    values.iter().map(one).collect()
}

/// An error of the settings, with its place.
fn wrong(app: &App, what: String) -> crate::failure::Failure {
    let set = app.settings().ok().and_then(|settings| settings.set.get("chat.mcp")?.first());
    let place = set.map_or(String::new(), |set| format!("{}: ", set.place));
    Error::new(ErrorKind::Settings, format!("{place}{what}")).into()
}
