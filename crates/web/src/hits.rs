//! The page of search results, from the index.
//!
//! A search covers what is indexed so far, and the page says how much that is.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{Html, IntoResponse as _, Response};
use epitome_render::visible;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use maud::{Markup, html};
use serde::Deserialize;

use crate::options::Which;
use crate::page::{Query, bar, page as frame, run_blocking};
use crate::seeker::IndexState;
use crate::session_cache::key;
use crate::viewer::Viewer;
use epitome_search::{Hit, Hits, Query as Words};

/// The query parameters.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct SearchQuery {
    #[serde(default)]
    q: String,
    #[serde(default)]
    agent: String,
    /// Return only the hits, for the script.
    part: Option<String>,
}

pub(crate) async fn page(
    State(viewer): State<Arc<Viewer>>,
    Query(asked): Query<SearchQuery>,
) -> Response {
    let told = run_blocking(viewer, move |viewer| {
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

fn body(asked: &SearchQuery, found: &Markup) -> Markup {
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
        Ok((hits, state)) => list(&hits, &state),
        Err(why) => html! { p.none role="status" { (visible(&why)) } },
    }
}

fn list(hits: &Hits, state: &IndexState) -> Markup {
    html! {
        p.sum {
            b { (hits.all) @if hits.all == 1 { " place" } @else { " places" } }
            span { "in what was said" }
            @if hits.all > hits.hits.len() { span { "the best " (hits.hits.len()) } }
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
