//! MCP servers from the settings.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use epitome::{Config, McpServer, Settings};
use epitome_error::{Error, ErrorKind, Result};

use super::{Server, ServerAddress, Servers, TIMEOUT, is_name};
use crate::machine::Event;
use crate::options::{ChatOptions, Wait};
use crate::tools::Workplace;

/// Starts the MCP servers of the settings and those in `more`, and adds their tools to a workplace.
/// A server in `more` is left out if a server of the settings that is started has the same name.
/// Programs do not inherit the environment variables in `hidden`. The returned events name each
/// server without tools, because it was not started or failed, and the reason. If servers are
/// started, `waits` is called before and afterwards.
pub(crate) fn with_servers(
    options: &ChatOptions,
    place: Workplace,
    hidden: &[String],
    more: &[Server],
    waits: &dyn Fn(Wait<'_>),
) -> Result<(Workplace, Vec<Event>)> {
    let ChatOptions { config, settings, .. } = options;
    let mut servers = Vec::new();
    let mut events = Vec::new();
    for (name, set) in settings.values.chat.mcp.iter().flatten() {
        let server = server(config, settings, name, set)?;
        // A server with a variable that is not set is left out. Like the failure of a server, this
        // does not end the chat.
        match unset(config, set) {
            None => servers.push(server),
            Some(variable) => {
                let why = format!("the variable {variable} is not set");
                events.push(without_tools(name, &why));
            }
        }
    }
    let more = more.iter().filter(|server| !servers.iter().any(|it| it.name == server.name));
    let more: Vec<Server> = more.cloned().collect();
    servers.extend(more);
    for server in &mut servers {
        // Some programs load code from their current folder, so it must not be an untrusted
        // project. Unless a folder is configured, it is the user's home folder.
        if let ServerAddress::Program { folder, .. } = &mut server.place
            && folder.as_os_str().is_empty()
        {
            folder.clone_from(&config.user);
        }
    }
    if servers.is_empty() {
        return Ok((place, events));
    }
    let names: Vec<&str> = servers.iter().map(|server| server.name.as_str()).collect();
    waits(Wait::ForServers(&names.join(", ")));
    let servers = Servers::start(servers, place.root(), hidden);
    waits(Wait::Over);
    let servers = servers?;
    let failed = servers.failed().into_iter();
    events.extend(failed.map(|(name, why)| without_tools(&name, &why)));
    Ok((place.with_more(Arc::new(servers)), events))
}

fn without_tools(name: &str, why: &str) -> Event {
    Event::Notice { text: format!("MCP server {name} has no tools: {why}") }
}

fn server(config: &Config, settings: &Settings, name: &str, set: &McpServer) -> Result<Server> {
    if !is_name(name) {
        let what = "letters, digits, `-` and single `_`, at most 32";
        return Err(wrong(settings, format!("`{name}` is no name of a server: {what}")));
    }
    let place = match (&set.command, &set.url) {
        (Some(command), None) => ServerAddress::Program {
            command: command.clone(),
            args: set.args.clone(),
            env: expanded(config, &set.env),
            folder: match &set.cwd {
                Some(folder) => config.here.join(folder),
                None => PathBuf::new(),
            },
        },
        (None, Some(url)) => {
            ServerAddress::Address { url: url.clone(), headers: expanded(config, &set.headers) }
        }
        (None, None) => {
            return Err(wrong(
                settings,
                format!("chat.mcp.{name} has neither `command` nor `url`"),
            ));
        }
        (Some(_), Some(_)) => {
            return Err(wrong(settings, format!("chat.mcp.{name} has both `command` and `url`")));
        }
    };
    let timeout = set.timeout.map_or(TIMEOUT, |seconds| Duration::from_secs(seconds.max(1)));
    Ok(Server { name: name.to_owned(), place, timeout })
}

/// The first environment variable that a server's values refer to and that is not set. `None` if
/// all are set.
fn unset<'s>(config: &Config, set: &'s McpServer) -> Option<&'s str> {
    let values = set.env.values().chain(set.headers.values());
    let mut named = values.flat_map(|text| parts(text).filter_map(|(_, variable)| variable));
    named.find(|variable| config.variable(variable).is_none())
}

/// Replaces references to environment variables in values. A variable that is not set is replaced
/// by an empty text.
fn expanded(config: &Config, values: &BTreeMap<String, String>) -> Vec<(String, String)> {
    let values = values.iter().map(|(name, text)| {
        let mut value = String::new();
        for (before, variable) in parts(text) {
            value.push_str(before);
            value.push_str(&variable.and_then(|it| config.variable(it)).unwrap_or_default());
        }
        (name.clone(), value)
    });
    values.collect()
}

/// Splits a text at each `${VARIABLE}` into pairs: the text before it, and the variable's name. The
/// last pair has the rest of the text, and no variable.
fn parts(text: &str) -> impl Iterator<Item = (&str, Option<&str>)> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let found = text.split_once("${").and_then(|(before, after)| {
            let (variable, after) = after.split_once('}')?;
            Some((before, variable, after))
        });
        rest = found.map(|(_, _, after)| after);
        Some(found.map_or((text, None), |(before, variable, _)| (before, Some(variable))))
    })
}

/// An error of the setting `chat.mcp`, with the place where it is set.
fn wrong(settings: &Settings, what: String) -> Error {
    let set = settings.set.get("chat.mcp").and_then(|sets| sets.first());
    let place = set.map_or(String::new(), |set| format!("{}: ", set.place));
    Error::new(ErrorKind::Settings, format!("{place}{what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_parts_of_a_text() {
        let of = |text| parts(text).collect::<Vec<_>>();
        assert_eq!(of("plain"), [("plain", None)]);
        assert_eq!(of("a ${B} c${D}"), [("a ", Some("B")), (" c", Some("D")), ("", None)]);
        assert_eq!(of("a ${B"), [("a ${B", None)]);
    }

    #[test]
    fn a_variable_that_is_not_set_is_named() {
        let env = BTreeMap::from([("X".to_owned(), "${EPITOME_NO_SUCH_VARIABLE}".to_owned())]);
        let set = McpServer { env, ..McpServer::default() };
        let config = Config::from_home("/home/ada".as_ref());
        assert_eq!(unset(&config, &set), Some("EPITOME_NO_SUCH_VARIABLE"));
        assert_eq!(unset(&config, &McpServer::default()), None);
    }
}
