//! What was said somewhere, found by the index.
//!
//! The index is opened and brought up to date beside what is answered: a list is there at once,
//! and a search finds what is indexed so far and says how much that is.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::extract::State;
use axum::response::{Html, IntoResponse as _, Response};
use epitome::Config;
use epitome::find::SessionFile;
use epitome_render::visible;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use maud::{Markup, html};
use serde::Deserialize;

use crate::page::{Query, bar, page as frame};
use crate::search::{Hit, Hits, Query as Words, Scope, Search, SearchError, Update};
use crate::shelf::key;
use crate::viewer::{Viewer, Which, beside};

/// Hits that are shown.
const MOST: usize = 50;
/// How long a search waits for what is new to be indexed.
const PATIENCE: Duration = Duration::from_millis(300);

/// What is asked for.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Asked {
    #[serde(default)]
    q: String,
    #[serde(default)]
    agent: String,
    /// Only the hits, for the script.
    part: Option<String>,
}

pub(crate) async fn page(
    State(viewer): State<Arc<Viewer>>,
    Query(asked): Query<Asked>,
) -> Response {
    let told = beside(viewer, move |viewer| {
        let found = match asked.q.trim() {
            "" => html! {},
            words => told(viewer, words, &asked.agent),
        };
        Ok(match asked.part {
            Some(_) => Html(found.into_string()).into_response(),
            None => frame("Search", "./", &body(&asked, &found)).into_response(),
        })
    });
    told.await.unwrap_or_else(|problem| problem)
}

fn body(asked: &Asked, found: &Markup) -> Markup {
    html! {
        (bar("./", &html! { span.search {} }))
        main #content.index.wide {
            form.filter role="search" method="get" action="search" {
                input type="search" name="q" value=(asked.q) aria-label="Find what was said";
                button type="submit" { "Find" }
            }
            section #hits aria-label="Found in what was said" { (found) }
        }
    }
}

fn told(viewer: &Viewer, words: &str, agent: &str) -> Markup {
    let query = Words::parse(words).and_then(|query| {
        let of = match &viewer.options.which {
            Which::Of(agent) => Some(agent.as_str()),
            Which::All | Which::Below(_) => Some(agent).filter(|agent| !agent.is_empty()),
        };
        of.map_or(Ok(query.clone()), |agent| query.of_agent(agent))
    });
    let query = match query {
        Ok(query) => query,
        Err(bad) => return html! { p.none role="status" { (visible(&bad.to_string())) } },
    };
    let seeker = &viewer.seeker;
    seeker.refresh();
    match seeker.find(&query) {
        Ok((hits, standing)) => list(&hits, &standing),
        Err(why) => html! { p.none role="status" { (visible(&why)) } },
    }
}

fn list(hits: &Hits, standing: &Standing) -> Markup {
    html! {
        p.sum {
            b { (hits.all) @if hits.all == 1 { " place" } @else { " places" } }
            span { "in what was said" }
            @if hits.all > hits.hits.len() { span { "the best " (hits.hits.len()) } }
            @match standing {
                Standing::Complete => {}
                Standing::Indexing(Some((done, of))) => {
                    span #indexing role="status" { "still indexing: " (done) " of " (of) }
                }
                Standing::Indexing(None) => span #indexing role="status" { "still indexing" },
                Standing::Elsewhere => {
                    span #indexing role="status" { "another epitome is indexing" }
                }
                Standing::Failed(why) => span.bad role="status" { (visible(why)) },
            }
        }
        ol.rows.hits { @for hit in &hits.hits { (row(hit)) } }
    }
}

fn row(hit: &Hit) -> Markup {
    let place = hit.anchor.trim_start_matches('m');
    let part = hit.sub_agent.map_or(0, |number| number + 1);
    let address = match part {
        0 => format!("s/{}/at?m={place}", key(&hit.session)),
        part => format!("s/{}/at?m={place}&part={part}", key(&hit.session)),
    };
    let when = hit.time.as_deref().and_then(|time| time.parse::<Timestamp>().ok());
    html! {
        li.hit {
            a href=(address) {
                bdi { @for run in &hit.snippet {
                    @if run.marked { mark { (run.text) } } @else { (run.text) }
                } }
            }
            p.facts {
                span.agent { (hit.agent) }
                span { (hit.role) @if hit.kind == "thinking" { ", thinking" } }
                @if let Some(when) = when {
                    time datetime=(when) {
                        (when.to_zoned(TimeZone::UTC).strftime("%Y-%m-%d %H:%M"))
                    }
                }
                bdi { (epitome_model::short(&visible(&hit.title), 80)) }
                @if let Some(project) = &hit.project { bdi.cwd { (visible(project)) } }
            }
        }
    }
}

/// How much of the sessions is found.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Standing {
    Complete,
    /// Some are read yet, so many of so many.
    Indexing(Option<(usize, usize)>),
    /// Another process writes the index.
    Elsewhere,
    Failed(String),
}

/// Who opens the index, brings it up to date and asks it.
pub(crate) struct Seeker {
    config: Config,
    which: Which,
    files: fn(&Config, &Which) -> Vec<SessionFile>,
    inside: Mutex<Inside>,
    /// An update ended.
    ended: Condvar,
}

#[derive(Default)]
struct Inside {
    search: Option<Arc<Search>>,
    is_updating: bool,
    /// Whether somebody asked for another one meanwhile.
    is_wanted: bool,
    /// What came of the last one.
    came: Option<Standing>,
}

impl Seeker {
    pub(crate) fn new(
        config: Config,
        which: Which,
        files: fn(&Config, &Which) -> Vec<SessionFile>,
    ) -> Seeker {
        let (inside, ended) = (Mutex::default(), Condvar::new());
        Seeker { config, which, files, inside, ended }
    }

    /// Looks for what is new, beside whoever asks. Who is at it looks once more afterwards: what
    /// was written a moment ago may stand in a session that was already read.
    pub(crate) fn refresh(self: &Arc<Self>) {
        let mut inside = self.inside();
        if inside.is_updating {
            inside.is_wanted = true;
            return;
        }
        inside.is_updating = true;
        let seeker = Arc::clone(self);
        std::thread::spawn(move || {
            loop {
                let update = std::panic::AssertUnwindSafe(|| seeker.update());
                let broke_off = |_| Standing::Failed("the search broke off".to_owned());
                let came = std::panic::catch_unwind(update).unwrap_or_else(broke_off);
                let mut inside = seeker.inside();
                inside.came = Some(came);
                if !std::mem::take(&mut inside.is_wanted) {
                    inside.is_updating = false;
                    break;
                }
            }
            seeker.ended.notify_all();
        });
    }

    fn update(&self) -> Standing {
        let search = match self.open() {
            Ok(search) => search,
            Err(SearchError::Busy) => return Standing::Elsewhere,
            Err(err) => return Standing::Failed(told_with_causes(&err)),
        };
        let files = match self.which {
            // The index knows all sessions, whatever is shown.
            Which::All | Which::Of(_) => (self.files)(&self.config, &Which::All),
            Which::Below(_) => (self.files)(&self.config, &self.which),
        };
        let updated = match search.update(&files, &|_| {}) {
            // It was thrown away, and is made anew.
            Err(SearchError::Damaged) => search.update(&files, &|_| {}),
            updated => updated,
        };
        match updated {
            Ok(Update::Done(_)) => Standing::Complete,
            Ok(Update::Elsewhere) => Standing::Elsewhere,
            Err(err) => Standing::Failed(told_with_causes(&err)),
        }
    }

    /// The index, opened and looked through for damage the first time.
    fn open(&self) -> Result<Arc<Search>, SearchError> {
        if let Some(search) = &self.inside().search {
            return Ok(Arc::clone(search));
        }
        let scope = match &self.which {
            Which::All | Which::Of(_) => Scope::Machine,
            Which::Below(folder) => Scope::Below(folder),
        };
        let search = Arc::new(Search::open(&self.config, scope)?);
        match search.check() {
            // Thrown away, or somebody else's business.
            Ok(()) | Err(SearchError::Damaged | SearchError::Busy) => {}
            Err(err) => return Err(err),
        }
        self.inside().search = Some(Arc::clone(&search));
        Ok(search)
    }

    /// What is found by now; what is new is waited for a moment.
    fn find(&self, query: &Words) -> Result<(Hits, Standing), String> {
        let inside = self.inside();
        let waited = self.ended.wait_timeout_while(inside, PATIENCE, |it| it.is_updating);
        let inside = waited.unwrap_or_else(PoisonError::into_inner).0;
        let (search, is_updating) = (inside.search.clone(), inside.is_updating);
        let came = inside.came.clone();
        drop(inside);
        let progress = || {
            let progress = search.as_ref().and_then(|search| search.progress());
            progress.map(|progress| (progress.done, progress.of))
        };
        let standing = match (is_updating, came) {
            (true, _) | (false, None) => Standing::Indexing(progress()),
            (false, Some(came)) => came,
        };
        let Some(search) = &search else {
            return match standing {
                Standing::Failed(why) => Err(why),
                standing => Ok((Hits { hits: Vec::new(), all: 0 }, standing)),
            };
        };
        let hits = search.find(query, MOST).map_err(|err| told_with_causes(&err))?;
        Ok((hits, standing))
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn told_with_causes(err: &dyn std::error::Error) -> String {
    let mut told = err.to_string();
    let mut cause = err.source();
    while let Some(inner) = cause {
        told.push_str(": ");
        told.push_str(&inner.to_string());
        cause = inner.source();
    }
    told
}
