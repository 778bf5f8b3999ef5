//! Server-sent events for a page that follows a session.
//!
//! The stamp of a session's file (its length, time and inode) is read a few times a second. Agents
//! write in many ways (appending, replacing, rows of a database), so a finer method is not worth
//! its cost. When the stamp changes, the page is rendered again, and the turns that differ are
//! sent.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use epitome::agents::SessionFile;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use crate::laid_out::not_there;
use crate::page::{Query, problem, run_blocking};
use crate::session::sheet_alone;
use crate::stamp::Stamp;
use crate::viewer::{Viewer, part_and_page};

/// The polling interval.
const EVERY: Duration = Duration::from_millis(250);
/// After a session was read, the next look at it waits for this many times as long as reading took.
/// So a large session is being read for at most a quarter of the time.
const REST: u32 = 3;

/// The query parameters of a page that follows a session.
#[derive(Deserialize)]
pub(crate) struct Follow {
    /// The file name of the page.
    file: String,
    /// The stamp of the session when the page was made.
    since: String,
}

/// The changes of a page.
#[derive(Serialize)]
struct Changed {
    /// The anchors of all current turns, in order.
    order: Vec<String>,
    /// The changed turns, by their anchors.
    turns: HashMap<String, String>,
    timeline: String,
    above: String,
    below: String,
    /// Whether this is the last page, to which new turns are added.
    is_last: bool,
}

/// Sends the changes of a page, until the client disconnects or the server ends.
pub(crate) async fn tail(
    State(viewer): State<Arc<Viewer>>,
    Path((_, key)): Path<(String, String)>,
    Query(follow): Query<Follow>,
    headers: HeaderMap,
) -> Response {
    let found = run_blocking(Arc::clone(&viewer), move |viewer| viewer.session(&key));
    let session = match found.await {
        Ok(session) => session,
        Err(answer) => return answer,
    };
    let Some((part, page)) = part_and_page(&follow.file) else {
        return problem(&viewer, &not_there());
    };
    // A client that reconnects sends the id of the last event that it received: a stamp.
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok());
    let sent_stamp = Stamp(last.map_or(follow.since, str::to_owned));
    let (to, from) = mpsc::channel(4);
    let follower = Follower { viewer, session, part, page, sent_stamp, turns: HashMap::new() };
    tokio::spawn(follower.run(to));
    Sse::new(ReceiverStream::new(from)).keep_alive(KeepAlive::default()).into_response()
}

struct Follower {
    viewer: Arc<Viewer>,
    session: SessionFile,
    part: usize,
    page: usize,
    /// The stamp of the state that the client has.
    sent_stamp: Stamp,
    /// The hash of each turn as it was sent last.
    turns: HashMap<String, blake3::Hash>,
}

impl Follower {
    /// Runs until the client disconnects or the server ends.
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

    /// Returns the event to send, if the session has changed.
    fn look(&mut self) -> Option<Event> {
        let stamp = Stamp::read(&self.session.path);
        if stamp == self.sent_stamp {
            return None;
        }
        self.sent_stamp = stamp;
        let event = Event::default().id(&self.sent_stamp.0);
        let new_sheet = match sheet_alone(&self.viewer, &self.session, self.part, self.page) {
            Ok(new_sheet) => new_sheet,
            // The file may be incomplete while it is being written, or deleted.
            Err(problem) => {
                let why = self.viewer.redacted(&problem.message).replace(['\n', '\r'], " ");
                return Some(event.event("unreadable").data(why));
            }
        };
        let order = new_sheet.sheet.turns.iter().map(|(anchor, _)| anchor.clone()).collect();
        let before = std::mem::take(&mut self.turns);
        let mut turns = HashMap::new();
        for (anchor, html) in new_sheet.sheet.turns {
            let hash = blake3::hash(html.as_bytes());
            self.turns.insert(anchor.clone(), hash);
            if before.get(&anchor) != Some(&hash) {
                turns.insert(anchor, html);
            }
        }
        let changed = Changed {
            order,
            turns,
            timeline: new_sheet.sheet.timeline,
            above: new_sheet.sheet.above,
            below: new_sheet.sheet.below,
            is_last: new_sheet.is_last,
        };
        // This JSON has no line feeds, which would end the event.
        let json = serde_json::to_string(&changed).expect("texts and lists of them are JSON");
        Some(event.event("changed").data(json))
    }
}
