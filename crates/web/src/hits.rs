//! Search results: the messages that the index finds, grouped by session.
//!
//! A search covers what is indexed so far, and the page says how much that is.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use axum::extract::State;
use axum::response::{Html, IntoResponse as _, Redirect, Response};
use epitome_model::plural;
use epitome_render::{minute, moment, visible};
use epitome_search::{Hit, Hits, Query as Words};
use jiff::Timestamp;
use maud::{Markup, html};

use crate::options::Which;
use crate::page::{Query, run_blocking};
use crate::query::{ListQuery, encoded};
use crate::seeker::{IndexState, MOST};
use crate::session::page_of;
use crate::session_cache::CachedSession;
use crate::viewer::Viewer;

/// The tooltip of a hit in a text that a compaction removed from what is sent.
const UNSENT: &str = "A compaction took it, or a part of it, out of what a resume sends; the page \
                      of the session shows it";

/// The number of hits of a session that are displayed at first; the others are folded.
const OPEN: usize = 3;
/// The maximum number of characters of a title, and of the words that are marked on a page.
const TITLE: usize = 120;
const MARKED: usize = 200;

/// The hits as a fragment for the script. A request that does not come from the script is
/// redirected to the list, whose page contains the hits.
pub(crate) async fn page(
    State(viewer): State<Arc<Viewer>>,
    Query(asked): Query<ListQuery>,
) -> Response {
    let response = run_blocking(viewer, move |viewer| {
        if asked.part.is_none() {
            return Ok(Redirect::to(&asked.address(1)).into_response());
        }
        if asked.words().is_empty() {
            return Ok(Html(String::new()).into_response());
        }
        viewer.session_cache.refresh(viewer.files());
        // Waits for the content of sessions only if the result depends on it.
        let kept = viewer.session_cache.list(|kept| match asked.needs_all() {
            true => (0..kept.len()).collect(),
            false => Vec::new(),
        });
        Ok(Html(found(viewer, &asked, &kept).into_string()).into_response())
    });
    response.await.unwrap_or_else(|problem| problem)
}

/// The hits in these sessions, or why they cannot be searched, as a fragment of the list's page.
pub(crate) fn found(viewer: &Viewer, asked: &ListQuery, kept: &[CachedSession]) -> Markup {
    let query = match query(viewer, asked, kept) {
        Ok(query) => query,
        Err(bad) => return html! { p.none role="status" { (bad) } },
    };
    let seeker = &viewer.seeker;
    seeker.refresh();
    match seeker.find(&query) {
        Ok((hits, state)) => {
            let mark = epitome_model::short(&query.marked_terms().join(" "), MARKED);
            list(viewer, asked, (&hits, &state), (kept, &mark))
        }
        Err(why) => html! { p.none role="status" { (visible(&why)) } },
    }
}

/// The query, limited to the chosen agent and project.
fn query(viewer: &Viewer, asked: &ListQuery, kept: &[CachedSession]) -> Result<Words, String> {
    let bad = |err: epitome_search::BadQuery| visible(&err.to_string());
    let query = Words::parse(asked.words()).map_err(bad)?;
    let agent = match &viewer.options.which {
        Which::Of(agent) => agent,
        Which::All | Which::Below(_) => &asked.agent,
    };
    let query = if agent.is_empty() { query } else { query.with_agent(agent).map_err(bad)? };
    let folder = match &*asked.project {
        "" => None,
        project => {
            let of_project = kept.iter().find(|it| {
                let cwd = it.project().unwrap_or_default();
                crate::session_cache::key(cwd.as_ref()) == project
            });
            of_project.and_then(CachedSession::project)
        }
    };
    Ok(match folder {
        Some(folder) => query.with_folders(vec![folder.into()]),
        None => query,
    })
}

/// A session and its hits.
type Group<'a> = (&'a CachedSession, Vec<&'a Hit>);

fn list(
    viewer: &Viewer,
    asked: &ListQuery,
    (hits, state): (&Hits, &IndexState),
    (kept, mark): (&[CachedSession], &str),
) -> Markup {
    let mut groups = groups(hits, kept);
    groups.retain(|(session, _)| asked.is_chosen(session));
    if let Some(sort) = asked.sort() {
        sort.order(&mut groups, |(session, _)| (&session.file, session.seen.as_deref()));
    }
    let shown: usize = groups.iter().map(|(_, hits)| hits.len()).sum();
    html! {
        @if shown > 0 || *state != IndexState::Complete {
            h2.found { "In messages" }
            p.sum {
                b { (plural(shown as u64, "place")) }
                span { "in " (plural(groups.len() as u64, "session")) }
                @if hits.all > MOST { span { "of the " (MOST) " best of " (hits.all) } }
                (coverage(state))
            }
        } @else {
            p.none role="status" {
                "No message has “" bdi { (viewer.redacted(asked.words())) } "”"
                @if asked.is_narrowed() { " in the sessions that are chosen" }
                "."
            }
        }
        ol.groups { @for group in &groups { (group_of(viewer, group, mark)) } }
    }
}

/// Says how much the index covers.
fn coverage(state: &IndexState) -> Markup {
    html! {
        @match state {
            IndexState::Complete => {}
            IndexState::Indexing(Some((done, of))) => {
                span #indexing role="status" { "still indexing: " (done) " of " (of) }
            }
            IndexState::Indexing(None) => span #indexing role="status" { "still indexing" },
            IndexState::Elsewhere => {
                span #indexing role="status" { "another epitome is indexing" }
            }
            IndexState::Failed(why) => span.bad role="status" { (visible(why)) },
        }
    }
}

/// The hits by session, in the order of each session's best hit. Hits of sessions that are not in
/// the list are left out, because the viewer has no page for them.
fn groups<'a>(hits: &'a Hits, kept: &'a [CachedSession]) -> Vec<Group<'a>> {
    let known: HashMap<&Path, &CachedSession> =
        kept.iter().map(|session| (&*session.file.path, session)).collect();
    let groups = hits.by_session().into_iter();
    groups.filter_map(|hits| Some((*known.get(&*hits[0].session)?, hits))).collect()
}

fn group_of(viewer: &Viewer, (session, hits): &Group<'_>, mark: &str) -> Markup {
    let first = hits[0];
    let title = epitome_model::short(&visible(&first.title), TITLE);
    let title = if title.trim().is_empty() { viewer.redacted(&first.id) } else { title };
    let when = Timestamp::try_from(session.file.modified).ok();
    let (open, folded) = hits.split_at(hits.len().min(OPEN));
    html! {
        li.group {
            h3 { a href=(page_of(&session.file.path)) { bdi { (title) } } }
            p.facts {
                span.agent { (first.agent) }
                @if let Some(when) = when { time datetime=(when) { (minute(when)) } }
                @if let Some(project) = &first.project { bdi.cwd { (visible(project)) } }
            }
            ol.hits { @for hit in open { (row(session, hit, mark)) } }
            @if !folded.is_empty() {
                details.more {
                    summary { (folded.len()) " more in this session" }
                    ol.hits { @for hit in folded { (row(session, hit, mark)) } }
                }
            }
        }
    }
}

fn row(session: &CachedSession, hit: &Hit, mark: &str) -> Markup {
    let when = hit.time.as_deref().and_then(moment);
    html! {
        li.hit {
            a href=(address(session, hit, mark)) {
                bdi { @for run in &hit.snippet {
                    @if run.marked { mark { (run.text) } } @else { (run.text) }
                } }
            }
            p.facts {
                @match hit.sub_agent {
                    Some(number) => span { "sub-agent " (number + 1) },
                    None => span { "turn " (hit.turn) },
                }
                span { (hit.role) @if hit.kind == "thinking" { ", thinking" } }
                @if hit.archived {
                    span.unsent title=(UNSENT) { "not sent" }
                }
                @if let Some(when) = when { time datetime=(when) { (minute(when)) } }
            }
        }
    }
}

/// The address of a hit, with the words to mark on its page.
fn address(session: &CachedSession, hit: &Hit, mark: &str) -> String {
    let place = hit.anchor.trim_start_matches('m');
    let mut address = format!("s/{}/at?m={}", session.key, encoded(place));
    if let Some(number) = hit.sub_agent {
        address.push_str(&format!("&part={}", number + 1));
    }
    if !mark.is_empty() {
        address.push_str(&format!("&mark={}", encoded(mark)));
    }
    address
}
