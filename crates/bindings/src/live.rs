//! The context of an agent that is running.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use epitome::pipe::{LogStore, Logs, Server, ServerOptions, Size, parse_options};
use epitome::storage::Store;
use epitome::{Config, Error, ErrorKind, recipes};
use epitome_api::find_api;
use epitome_tokens::{Estimate, O200k};
use serde::Deserialize;
use serde_json::json;

use crate::answer::answer;
use crate::options::Count;

/// Does what `epitome engine` does on a pipe: it answers each request, which is a line of JSON,
/// with a line of JSON, one request at a time.
///
/// ```
/// let engine = epitome_bindings::Engine::new();
/// let options = br#"{"api":"anthropic","recipe":"epitome","window":200000,"overhead":0,
///     "log":null,"count":"estimate"}"#;
/// assert_eq!(engine.start(options), r#"{"ok":true}"#);
/// let answer = engine.answer(br#"{"op":"call","messages":[]}"#.to_vec());
/// assert_eq!(answer, r#"{"messages":[],"refs":{}}"#);
/// ```
#[derive(Default)]
pub struct Engine {
    server: Mutex<Option<Server>>,
}

/// How an engine is started. The user's settings are not read: the calling program passes all
/// values.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Start {
    api: String,
    recipe: String,
    window: u64,
    overhead: u64,
    /// The folder of the logs; `None`: logs are kept in memory.
    log: Option<PathBuf>,
    count: Option<Count>,
}

impl Engine {
    /// An engine that is not started.
    pub fn new() -> Engine {
        Engine::default()
    }

    /// Starts the engine, in place of one that was started before, and returns `{"ok":true}` or an
    /// error. `options` has `api`, `recipe`, `window` and `overhead` in tokens, `log` (a folder, or
    /// null), and optionally `count` (`o200k` or `estimate`).
    pub fn start(&self, options: &[u8]) -> String {
        answer(|| {
            let server = server(parse_options(options)?)?;
            *self.server.lock().unwrap_or_else(PoisonError::into_inner) = Some(server);
            Ok(json!({ "ok": true }))
        })
    }

    /// Stops the engine. Another engine can then open its log.
    pub fn stop(&self) {
        *self.server.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// The answer to a request, as `docs/engine.md` describes both. If the engine is not started,
    /// the answer is an error.
    pub fn answer(&self, line: Vec<u8>) -> String {
        let mut server = self.server.lock().unwrap_or_else(PoisonError::into_inner);
        match server.as_mut() {
            Some(server) => server.answer(line),
            None => {
                answer(|| Err::<(), _>(Error::new(ErrorKind::Usage, "the engine is not running")))
            }
        }
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
    let logs = logs.map(|logs| -> Box<dyn LogStore> { Box::new(logs) });
    let options = ServerOptions {
        api: api.name.to_owned(),
        recipe: recipes::find(&config, &start.recipe)?,
        logs,
        counter: match start.count.unwrap_or_default() {
            Count::O200k => Arc::new(O200k::new()),
            Count::Estimate => Arc::new(Estimate::new()),
        },
        model: None,
    };
    Ok(Server::new(options, size))
}
