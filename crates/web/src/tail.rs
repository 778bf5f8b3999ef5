//! What is appended to a session, told to who looks at it.
//!
//! The length and the time of a session's file are asked for a few times a second: agents write
//! in too many ways (appended, replaced, rows of a database) for anything finer to be worth it.
//! When they change the page is made anew, and of its turns those are sent that are others.

use std::collections::HashMap;
use std::convert::Infallible;
use std::fmt;
use std::path::Path as FilePath;
use std::sync::Arc;
use std::time::{Duration, Instant, UNIX_EPOCH};

use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use epitome::Place;
use epitome::find::SessionFile;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use crate::page::{Query, problem};
use crate::session::{not_there, sheet};
use crate::viewer::{Viewer, beside, part_and_page};

/// How often it is asked whether a session changed.
const EVERY: Duration = Duration::from_millis(250);
/// A session that takes long to read is read for a quarter of the time at most.
const REST: u32 = 3;

/// What tells that a session is as it was: how long its files are, when they were written, and
/// which they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stamp(String);

impl Stamp {
    pub(crate) fn of(session: &FilePath) -> Stamp {
        let files = match Place::of(session) {
            Place::File(path) => vec![path],
            Place::Spread(spread) => vec![spread.session().to_owned()],
            Place::Rows(rows) => {
                let database = rows.database().to_owned();
                let mut log = database.clone().into_os_string();
                log.push("-wal");
                vec![database, log.into()]
            }
        };
        Stamp(files.iter().map(|file| one(file)).collect::<Vec<_>>().join("."))
    }
}

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl maud::Render for Stamp {
    fn render_to(&self, to: &mut String) {
        self.0.render_to(to);
    }
}

/// What a page says when it begins to follow.
#[derive(Deserialize)]
pub(crate) struct Follow {
    /// Which page it is.
    file: String,
    /// What the session was when the page was made.
    since: String,
}

/// What changed on a page.
#[derive(Serialize)]
struct Changed {
    /// The anchors of all turns that are there now, in order.
    order: Vec<String>,
    /// The turns that are others, by their anchors.
    turns: HashMap<String, String>,
    timeline: String,
    above: String,
    below: String,
    /// Whether what comes next comes here, too.
    is_last: bool,
}

/// Follows a page for as long as somebody reads what is sent.
pub(crate) async fn tail(
    State(viewer): State<Arc<Viewer>>,
    Path((_, key)): Path<(String, String)>,
    Query(follow): Query<Follow>,
    headers: HeaderMap,
) -> Response {
    let found = beside(Arc::clone(&viewer), move |viewer| viewer.session(&key));
    let session = match found.await {
        Ok(session) => session,
        Err(answer) => return answer,
    };
    let Some((part, page)) = part_and_page(&follow.file) else {
        return problem(&viewer, &not_there());
    };
    // Who comes back says what was told last.
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok());
    let told = Stamp(last.map_or(follow.since, str::to_owned));
    let (to, from) = mpsc::channel(4);
    let follower = Follower { viewer, session, part, page, told, turns: HashMap::new() };
    tokio::spawn(follower.run(to));
    Sse::new(ReceiverStream::new(from)).keep_alive(KeepAlive::default()).into_response()
}

struct Follower {
    viewer: Arc<Viewer>,
    session: SessionFile,
    part: usize,
    page: usize,
    /// What the session was when it was told last.
    told: Stamp,
    /// The turns as they were told last.
    turns: HashMap<String, blake3::Hash>,
}

impl Follower {
    /// Until nobody listens, or the server ends.
    async fn run(mut self, to: mpsc::Sender<Result<Event, Infallible>>) {
        let mut stopped = self.viewer.stopped.clone();
        let mut rest = EVERY;
        loop {
            let looked = tokio::task::spawn_blocking(move || {
                let began = Instant::now();
                let event = self.look();
                (self, event, began.elapsed())
            });
            let Ok((me, event, took)) = looked.await else { return };
            self = me;
            if let Some(event) = event {
                rest = EVERY.max(took * REST);
                if to.send(Ok(event)).await.is_err() {
                    return;
                }
            }
            tokio::select! {
                () = tokio::time::sleep(rest) => {}
                () = to.closed() => return,
                _ = stopped.changed() => return,
            }
        }
    }

    /// What is to be told, if anything changed.
    fn look(&mut self) -> Option<Event> {
        let stamp = Stamp::of(&self.session.path);
        if stamp == self.told {
            return None;
        }
        self.told = stamp;
        let event = Event::default().id(&self.told.0);
        let told = match sheet(&self.viewer, &self.session, self.part, self.page) {
            Ok(told) => told,
            // It may be in the middle of being written, or gone.
            Err(problem) => {
                let why = self.viewer.shown(&problem.message).replace(['\n', '\r'], " ");
                return Some(event.event("unreadable").data(why));
            }
        };
        let order = told.sheet.turns.iter().map(|(anchor, _)| anchor.clone()).collect();
        let before = std::mem::take(&mut self.turns);
        let mut turns = HashMap::new();
        for (anchor, html) in told.sheet.turns {
            let hash = blake3::hash(html.as_bytes());
            self.turns.insert(anchor.clone(), hash);
            if before.get(&anchor) != Some(&hash) {
                turns.insert(anchor, html);
            }
        }
        let changed = Changed {
            order,
            turns,
            timeline: told.sheet.timeline,
            above: told.sheet.above,
            below: told.sheet.below,
            is_last: told.is_last,
        };
        // JSON has no line feeds, which would end the event.
        let json = serde_json::to_string(&changed).expect("texts and lists of them are JSON");
        Some(event.event("changed").data(json))
    }
}

/// What is not there is told apart from what is.
fn one(file: &FilePath) -> String {
    let Ok(meta) = std::fs::metadata(file) else { return "none".to_owned() };
    let modified = meta.modified().ok().and_then(|it| it.duration_since(UNIX_EPOCH).ok());
    let modified = modified.unwrap_or_default().as_nanos();
    format!("{:x}-{modified:x}-{:x}", meta.len(), number(&meta))
}

#[cfg(unix)]
fn number(meta: &std::fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(meta)
}

#[cfg(not(unix))]
fn number(_: &std::fs::Metadata) -> u64 {
    0
}
