//! The pages of a session, as `epitome render` makes them.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Redirect, Response};
use epitome::find::SessionFile;
use epitome_render::Sheet;
use maud::{Markup, html};
use serde::Deserialize;

use crate::page::{Query, UP, made, page as frame, run_blocking};
use crate::problem::Problem;
use crate::stamp::Stamp;
use crate::viewer::{Viewer, name, part_and_page};

/// A page of a session or of one of its sub-agents.
pub(crate) async fn page(
    State(viewer): State<Arc<Viewer>>,
    Path((_, key, file)): Path<(String, String, String)>,
) -> Response {
    let told = run_blocking(viewer, move |viewer| {
        let session = viewer.session(&key)?;
        let (part, page) = part_and_page(&file).ok_or_else(not_there)?;
        // Before it is read: what changes meanwhile is told then.
        let stamp = Stamp::of(&session.path);
        let told = sheet(viewer, &session, part, page)?;
        Ok(frame(&told.sheet.title, UP, &body(&told, &stamp)).into_response())
    });
    told.await.unwrap_or_else(|problem| problem)
}

/// Which item of the transcript, and which block of it.
#[derive(Deserialize)]
pub(crate) struct Anchor {
    m: String,
    /// 0 is the session itself, the others are its sub-agents.
    #[serde(default)]
    part: usize,
}

/// The page on which a message stands, at its anchor (`m`: `12`, or `12.1` for its second block).
pub(crate) async fn at(
    State(viewer): State<Arc<Viewer>>,
    Path((_, key)): Path<(String, String)>,
    Query(Anchor { m, part }): Query<Anchor>,
) -> Response {
    let found = run_blocking(viewer, move |viewer| {
        let session = viewer.session(&key)?;
        let (item, block) = m.split_once('.').unwrap_or((&m, "0"));
        let item: usize = item.parse().map_err(|_| not_there())?;
        let block: usize = block.parse().map_err(|_| not_there())?;
        let page =
            viewer.tell(&session, |pages| pages.get(part).map_or(0, |it| it.page_of(item)))?;
        let anchor = if block == 0 { format!("m{item}") } else { format!("m{item}.{block}") };
        Ok(Redirect::to(&format!("{}#{anchor}", name(part).file(page))).into_response())
    });
    found.await.unwrap_or_else(|problem| problem)
}

/// A page in parts, and where it stands among the others.
pub(crate) struct ToldSheet {
    pub(crate) sheet: Sheet,
    pub(crate) file: String,
    /// Whether what is appended comes here.
    pub(crate) is_last: bool,
    part: usize,
    sub_agents: usize,
}

/// Reads a session and makes one page of it.
pub(crate) fn sheet(
    viewer: &Viewer,
    session: &SessionFile,
    part: usize,
    page: usize,
) -> Result<ToldSheet, Problem> {
    let told = viewer.tell(session, |pages| {
        let html = pages.get(part).filter(|html| page < html.pages())?;
        Some(ToldSheet {
            sheet: html.sheet(page),
            file: html.file(page),
            is_last: page + 1 == html.pages(),
            part,
            sub_agents: pages.len() - 1,
        })
    });
    told?.ok_or_else(not_there)
}

pub(crate) fn not_there() -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "the session has no such page")
        .hint("it may have become shorter: its first page is `session.html`")
}

fn body(told: &ToldSheet, stamp: &Stamp) -> Markup {
    let ToldSheet { sheet, file, is_last, part, sub_agents } = told;
    // Sub-agents are followed on the pages of their session.
    let follows = *is_last && *part == 0;
    html! {
        (made(&sheet.bar))
        div.columns {
            (made(&sheet.timeline))
            main #content data-file=[follows.then_some(file)]
                data-stamp=[follows.then_some(stamp)] {
                (made(&sheet.above))
                @if *part == 0 { (tools(*sub_agents)) }
                @for (_, turn) in &sheet.turns { (made(turn)) }
                @if follows {
                    p #live.live role="status" hidden { "Waiting for more" }
                }
                (made(&sheet.below))
            }
        }
    }
}

/// What can be done with the session, and who worked for it.
fn tools(sub_agents: usize) -> Markup {
    html! {
        p.tools {
            a href="plan" { "What compacting would save" }
            @for part in 1..=sub_agents {
                a href=(name(part).file(0)) { "Sub-agent " (part) }
            }
        }
    }
}
