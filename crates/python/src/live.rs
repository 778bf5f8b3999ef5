//! The context of an agent that is running.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use epitome::pipe::{Logs, Server, ServerOptions, Size};
use epitome::storage::Store;
use epitome::{Config, Error, ErrorKind, recipes};
use epitome_api::find_api;
use pyo3::prelude::*;
use serde::Deserialize;
use serde_json::json;

use crate::answer::{answer, parse};

/// What `epitome engine` is for a pipe: it answers a line of JSON with a line of JSON.
#[pyclass(frozen, module = "epitome._native")]
pub struct Engine {
    server: Mutex<Option<Server>>,
}

/// How an engine is started. Settings of the user are not read: a program has its own.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Start {
    api: String,
    recipe: String,
    window: u64,
    overhead: u64,
    /// The folder of the logs; without one they are kept in memory.
    log: Option<PathBuf>,
    estimate: bool,
}

#[pymethods]
impl Engine {
    /// An engine that is not started.
    #[new]
    fn new() -> Engine {
        Engine { server: Mutex::new(None) }
    }

    /// Starts it: `{"ok":true}`, or an error.
    fn start(&self, py: Python<'_>, options: &[u8]) -> String {
        py.detach(|| {
            answer(|| {
                let server = server(parse(options)?)?;
                *self.server.lock().unwrap_or_else(PoisonError::into_inner) = Some(server);
                Ok(json!({ "ok": true }))
            })
        })
    }

    /// The answer to a request, as `docs/engine.md` describes both.
    fn answer(&self, py: Python<'_>, line: &[u8]) -> String {
        let line = line.to_vec();
        py.detach(|| {
            let mut server = self.server.lock().unwrap_or_else(PoisonError::into_inner);
            match server.as_mut() {
                Some(server) => server.answer(line),
                None => answer(|| {
                    Err::<(), _>(Error::new(ErrorKind::Usage, "the engine was not started"))
                }),
            }
        })
    }
}

fn server(start: Start) -> epitome::Result<Server> {
    let config = Config::from_env()?;
    let Some(api) = find_api(&start.api) else {
        let what = format!("no API is called `{}`", start.api);
        let names: Vec<&str> = epitome_api::APIS.iter().map(|api| api.name).collect();
        let hint = format!("there are: {}", names.join(", "));
        return Err(Error::new(ErrorKind::Usage, what).with_hint(hint));
    };
    let size = Size { window: start.window, overhead: start.overhead, ..Size::default() };
    size.check()?;
    let logs = start.log.map(|folder| Logs::new(folder, Store::new(&config.home)));
    let options = ServerOptions {
        api: api.name.to_owned(),
        recipe: recipes::find(&config, &start.recipe)?,
        logs,
        estimate: start.estimate,
        model: None,
    };
    Ok(Server::new(options, size))
}
