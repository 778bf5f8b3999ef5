//! The requests that session files record, and a cache of them.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use epitome_agents::{self as agents, SessionFile};
use epitome_formats::{BilledRequest, BilledRequests, find_format};
use epitome_llm::Catalogue;
use epitome_model::{
    CacheUse, MicroDollars, RecordedUsage, Source, TokenUsage, Tokens, Transcript,
};
use epitome_model::{requests_with_counts, short};
use jiff::Timestamp;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::archive::Hash;
use crate::config::Config;
use crate::error::Result;
use crate::ops::timestamp;
use crate::place::Place;
use crate::redact::Screen;
use crate::regular;
use crate::store::disk;

/// The maximum length of the name of a model, in characters.
const NAME: usize = 80;

/// The requests of one session file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RecordedSession {
    pub agent: String,
    /// The path of the folder in which the session was run, with secrets redacted. `None` if it is
    /// not recorded.
    pub project: Option<String>,
    pub requests: Vec<RecordedRequest>,
}

/// A request that a session records.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RecordedRequest {
    /// Identifies the request in every file that contains it. `None` if the session does not record
    /// what the key is made from, such as an id of the response.
    pub key: Option<String>,
    /// The time of the response. `None` if the session does not record it in a known format.
    pub time: Option<Timestamp>,
    /// The name of the model as it is displayed. `None` if the session does not record it.
    pub model: Option<String>,
    /// All input tokens, those read from or written to a cache included.
    input: u64,
    /// The output tokens.
    output: u64,
    /// The input tokens that were read from a cache and that were written to one, if the session
    /// records them.
    cache: Option<(u64, u64)>,
    /// The cost, in millionths of a dollar, if the session records it.
    cost: Option<u64>,
}

impl RecordedRequest {
    /// The tokens of the request; each token is counted in one field only. If the use of a cache is
    /// not recorded, all input counts as not cached.
    pub fn usage(&self) -> TokenUsage {
        self.recorded().tokens().unwrap_or_else(|| TokenUsage {
            input: Tokens(self.input),
            output: Tokens(self.output),
            ..TokenUsage::default()
        })
    }

    /// Replaces the cost and each count by the value in `other` if that is larger. `other` must be
    /// another record of the same request.
    pub fn take_largest(&mut self, other: &RecordedRequest) {
        self.input = self.input.max(other.input);
        self.output = self.output.max(other.output);
        let larger = |one: (u64, u64), other: (u64, u64)| (one.0.max(other.0), one.1.max(other.1));
        self.cache = match (self.cache, other.cache) {
            (Some(one), Some(other)) => Some(larger(one, other)),
            (one, other) => one.or(other),
        };
        self.cost = self.cost.max(other.cost);
    }

    /// The recorded cost of the request, or else its cost at list prices. `None` if neither is
    /// known.
    pub fn cost(&self, prices: &Catalogue) -> Option<MicroDollars> {
        let listed = || prices.cost(self.model.as_deref()?, &self.recorded().tokens()?);
        self.cost.map(MicroDollars).or_else(listed)
    }

    fn recorded(&self) -> RecordedUsage {
        let cache = self.cache.map(|(read, written)| CacheUse { read, written });
        RecordedUsage { input: self.input, output: self.output, cache, cost: None }
    }
}

/// Converts the requests of a session of `agent`. Requests with the same key are records of one
/// request: it is returned once, with the largest of each count. Requests with neither tokens nor a
/// cost are left out. `shown` converts a model's name to the displayed one.
pub(crate) fn billed_requests(
    agent: &str,
    billed: Vec<BilledRequest>,
    shown: impl Fn(&str) -> String,
) -> Vec<RecordedRequest> {
    let mut known: HashMap<String, usize> = HashMap::new();
    let mut requests: Vec<RecordedRequest> = Vec::new();
    for BilledRequest { key, time, model, usage } in billed {
        let key = key.map(|key| hash(&[agent, &key]));
        let request = RecordedRequest {
            key: key.clone(),
            time: time.as_deref().and_then(timestamp),
            model: model.as_deref().map(&shown),
            input: usage.input,
            output: usage.output,
            cache: usage.cache.map(|cache| (cache.read, cache.written)),
            cost: usage.cost.map(|cost| cost.0),
        };
        match key.as_ref().and_then(|key| known.get(key)) {
            Some(&at) => requests[at].take_largest(&request),
            None => {
                known.extend(key.map(|key| (key, requests.len())));
                requests.push(request);
            }
        }
    }
    // A request that has neither tokens nor a cost was probably never answered.
    requests.retain(|request| request.input > 0 || request.output > 0 || request.cost.is_some());
    requests
}

fn hash(parts: &[&str]) -> String {
    Hash::compute(parts.join("\n").as_bytes()).to_string()[..16].to_owned()
}

/// The requests that a transcript records. `shown` converts a model's name to the displayed one.
fn requests_of(
    agent: &str,
    transcript: &Transcript,
    shown: impl Fn(&str) -> String,
) -> Vec<RecordedRequest> {
    let mut names: HashMap<&str, String> = HashMap::new();
    let requests = requests_with_counts(transcript).into_iter().map(|request| {
        let model =
            request.model.map(|model| names.entry(model).or_insert_with(|| shown(model)).clone());
        let key = request.group.map(|group| {
            hash(&[agent, group, request.time.unwrap_or(""), request.model.unwrap_or("")])
        });
        let RecordedUsage { input, output, cache, cost } = request.usage;
        RecordedRequest {
            key,
            time: request.time.and_then(timestamp),
            model,
            input,
            output,
            cache: cache.map(|cache| (cache.read, cache.written)),
            cost: cost.map(|cost| cost.0),
        }
    });
    requests.collect()
}

/// The requests of sessions and of their sub-agents, and the number of files that could not be
/// read. The requests of files that did not change since the last report are taken from the cache.
pub(super) fn sessions(config: &Config, found: &[SessionFile]) -> (Vec<RecordedSession>, u64) {
    let screen = Screen::new(config);
    let mut cache = Cache::load(config, &screen);
    let files = all_files(found);
    let read: Vec<(Stamped, Option<RecordedSession>, bool)> = files
        .into_par_iter()
        .map(|file| match cache.look_up(&file) {
            Some(known) => (file, Some(known.clone()), false),
            None => {
                let read = read(&file, &screen);
                (file, read, true)
            }
        })
        .collect();
    let unreadable = read.iter().filter(|(_, read, _)| read.is_none()).count() as u64;
    let is_changed = read.iter().any(|(_, read, is_new)| *is_new && read.is_some());
    let mut sessions = Vec::new();
    for (file, read, is_new) in read {
        let Some(session) = read else { continue };
        if is_new {
            cache.add(&file, &session);
        }
        sessions.push(session);
    }
    if is_changed {
        // Errors of the cache are ignored: the report is correct without it.
        cache.store(config).ok();
    }
    (sessions, unreadable)
}

/// A session file with its size and time of modification. If both are as in the cache, the file is
/// taken to be unchanged.
struct Stamped {
    path: PathBuf,
    agent: &'static str,
    size: u64,
    /// Nanoseconds since 1970.
    modified: u64,
}

/// The files of sessions and of their sub-agents, each once. Sessions in a database that records no
/// requests are left out.
fn all_files(found: &[SessionFile]) -> Vec<Stamped> {
    // If a session has a `row`, its database records no requests.
    let own = found.iter().filter(|file| file.row.is_none()).map(Stamped::of_session);
    let parts = found.par_iter().flat_map_iter(|file| {
        let parts = agents::companions(&file.path).into_iter();
        parts.filter_map(|path| Stamped::of_file(path, file.agent))
    });
    let mut files: Vec<Stamped> = own.collect();
    files.extend(parts.collect::<Vec<_>>());
    files.sort_by(|one, other| one.path.cmp(&other.path));
    files.dedup_by(|one, other| one.path == other.path);
    files
}

impl Stamped {
    fn of_session(file: &SessionFile) -> Stamped {
        let since = file.modified.duration_since(UNIX_EPOCH).unwrap_or_default();
        let modified = u64::try_from(since.as_nanos()).unwrap_or(u64::MAX);
        Stamped { path: file.path.clone(), agent: file.agent, size: file.size.0, modified }
    }

    fn of_file(path: PathBuf, agent: &'static str) -> Option<Stamped> {
        let meta = fs::metadata(&path).ok()?;
        let since = meta.modified().ok()?.duration_since(UNIX_EPOCH).unwrap_or_default();
        let modified = u64::try_from(since.as_nanos()).unwrap_or(u64::MAX);
        Some(Stamped { path, agent, size: meta.len(), modified })
    }
}

fn read(file: &Stamped, screen: &Screen) -> Option<RecordedSession> {
    if let Some(billed) = find_format(file.agent).and_then(|format| format.billed) {
        let source = Place::parse(&file.path).open().ok()?;
        let BilledRequests { cwd, requests } = billed(&source.read(0..source.len()));
        if source.failure().is_some() {
            return None;
        }
        let shown = |model: &str| short(&screen.text(model), NAME);
        let requests = billed_requests(file.agent, requests, shown);
        let project = cwd.map(|cwd| screen.text(&cwd).into_owned());
        return Some(RecordedSession { agent: file.agent.to_owned(), project, requests });
    }
    let loaded = crate::session::load(&file.path, Some(file.agent)).ok()?;
    let requests =
        requests_of(file.agent, &loaded.transcript, |model| short(&screen.text(model), NAME));
    if loaded.source.failure().is_some() {
        return None;
    }
    let cwd = loaded.transcript.head.cwd.as_deref();
    let project = cwd.map(|cwd| screen.text(cwd).into_owned());
    Some(RecordedSession { agent: file.agent.to_owned(), project, requests })
}

/// The cache of the requests that session files record. It is used only by the version of epitome
/// that wrote it, and only with the same rules for redacting secrets.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Cache {
    epitome: String,
    rules: String,
    files: HashMap<String, CachedFile>,
}

#[derive(Debug, Serialize, Deserialize)]
struct CachedFile {
    size: u64,
    modified: u64,
    session: RecordedSession,
}

impl Cache {
    fn load(config: &Config, screen: &Screen) -> Cache {
        let empty = Cache {
            epitome: env!("CARGO_PKG_VERSION").to_owned(),
            rules: screen.stamp(),
            files: HashMap::new(),
        };
        let stored = regular::read(&path(config)).ok();
        let stored: Option<Cache> = stored.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let is_ours = |it: &Cache| (&it.epitome, &it.rules) == (&empty.epitome, &empty.rules);
        stored.filter(is_ours).unwrap_or(empty)
    }

    fn look_up(&self, file: &Stamped) -> Option<&RecordedSession> {
        let known = self.files.get(&*file.path.to_string_lossy())?;
        let is_same = (known.size, known.modified) == (file.size, file.modified);
        (is_same && known.session.agent == file.agent).then_some(&known.session)
    }

    fn add(&mut self, file: &Stamped, session: &RecordedSession) {
        let size = file.size;
        let modified = file.modified;
        let session = session.clone();
        let name = file.path.to_string_lossy().into_owned();
        self.files.insert(name, CachedFile { size, modified, session });
    }

    /// Writes the cache, without files that no longer exist. It is written to a temporary file and
    /// renamed: if two processes store at the same time, one of the two caches is kept whole.
    fn store(mut self, config: &Config) -> Result<()> {
        self.files.retain(|name, _| {
            let path = Path::new(name);
            path.exists() || crate::rows::split(path).is_some_and(|(database, _)| database.exists())
        });
        let bytes = serde_json::to_vec(&self).unwrap_or_default();
        let path = path(config);
        if let Some(folder) = path.parent() {
            disk::private_folder(folder)?;
        }
        crate::store::write_over(&path, |out| Ok(out.write_all(&bytes)?))
    }
}

fn path(config: &Config) -> PathBuf {
    config.home.join("cache/cost.json")
}
