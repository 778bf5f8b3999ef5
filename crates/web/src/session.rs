//! The pages of a session: those of `epitome render`, with the viewer's own buttons and links.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Redirect, Response};
use epitome::agents::{SessionFile, resume_line, shell_word};
use maud::{Markup, html};
use serde::Deserialize;

use crate::laid_out::{LaidOut, OF_ONE, ToldSheet, not_there};
use crate::page::{Query, UP, made, page as frame, run_blocking};
use crate::problem::Problem;
use crate::query::encoded;
use crate::session_cache::key;
use crate::stamp::Stamp;
use crate::viewer::{Viewer, name, part_and_page};

/// A page of a session or of one of its sub-agents.
pub(crate) async fn page(
    State(viewer): State<Arc<Viewer>>,
    Path((_, key, file)): Path<(String, String, String)>,
) -> Response {
    let laid_out_page = run_blocking(viewer, move |viewer| {
        let session = viewer.session(&key)?;
        let (part, page) = part_and_page(&file).ok_or_else(not_there)?;
        // The stamp is read before the session, so that the page is told of every later change
        // (module `tail`).
        let stamp = Stamp::read(&session.path);
        let laid_out_page = sheet(viewer, &session, part, page)?;
        Ok(frame(&laid_out_page.sheet.title, UP, &body(viewer, &session, &laid_out_page, &stamp))
            .into_response())
    });
    laid_out_page.await.unwrap_or_else(|problem| problem)
}

/// The address of the page of a session, relative to that of the viewer.
pub fn page_of(session: &std::path::Path) -> String {
    format!("s/{}/{}", key(session), name(0).file(0))
}

/// The address of the plan of a session, relative to that of the viewer.
pub(crate) fn plan_of(session: &std::path::Path) -> String {
    format!("s/{}/plan", key(session))
}

/// The query parameters that name an item of a transcript, or one of its blocks.
#[derive(Deserialize)]
pub(crate) struct Anchor {
    m: String,
    /// 0 is the session itself; the other numbers are those of its sub-agents, from 1.
    #[serde(default)]
    part: usize,
    /// Words to mark on the page.
    #[serde(default)]
    mark: String,
}

/// Redirects to the page and anchor of a message (`m`: `12`, or `12.1` for its second block).
pub(crate) async fn at(
    State(viewer): State<Arc<Viewer>>,
    Path((_, key)): Path<(String, String)>,
    Query(Anchor { m, part, mark }): Query<Anchor>,
) -> Response {
    let found = run_blocking(viewer, move |viewer| {
        let session = viewer.session(&key)?;
        let (item, block) = m.split_once('.').unwrap_or((&m, "0"));
        let item: usize = item.parse().map_err(|_| not_there())?;
        let block: usize = block.parse().map_err(|_| not_there())?;
        let page = viewer.pages.get(
            viewer.key_of(&session),
            |laid_out| Some(laid_out.page_of(part, item)),
            || {
                viewer.with_pages(&session, |pages| {
                    let page = pages.get(part).map_or(0, |html| html.page_of(item));
                    LaidOut::from_pages(pages, (part, page), OF_ONE)
                })
            },
        );
        let page = page?.unwrap_or_default();
        let anchor = if block == 0 { format!("m{item}") } else { format!("m{item}.{block}") };
        let marked = if mark.is_empty() { mark } else { format!("?mark={}", encoded(&mark)) };
        let file = name(part).file(page);
        Ok(Redirect::to(&format!("{file}{marked}#{anchor}")).into_response())
    });
    found.await.unwrap_or_else(|problem| problem)
}

/// One page of a session, from the cache if the session did not change.
pub(crate) fn sheet(
    viewer: &Viewer,
    session: &SessionFile,
    part: usize,
    page: usize,
) -> Result<Arc<ToldSheet>, Problem> {
    let found = viewer.pages.get(
        // The key is made before the session is read. If the session changes in between, the next
        // request notices it.
        viewer.key_of(session),
        |laid_out| laid_out.sheet(part, page),
        || viewer.with_pages(session, |pages| LaidOut::from_pages(pages, (part, page), OF_ONE)),
    );
    found?.unwrap_or_else(|| Err(not_there()))
}

/// One page of a session that is being written to. Its other pages are not kept: the session will
/// have changed before they are requested.
pub(crate) fn sheet_alone(
    viewer: &Viewer,
    session: &SessionFile,
    part: usize,
    page: usize,
) -> Result<ToldSheet, Problem> {
    let laid_out =
        viewer.with_pages(session, |pages| LaidOut::from_pages(pages, (part, page), 0))?;
    let found_sheet = laid_out.sheet(part, page).unwrap_or_else(|| Err(not_there()));
    // After this, nothing else holds the page, so it need not be copied.
    drop(laid_out);
    found_sheet.map(Arc::unwrap_or_clone)
}

fn body(viewer: &Viewer, session: &SessionFile, told: &ToldSheet, stamp: &Stamp) -> Markup {
    let ToldSheet { sheet, file, is_last, part, sub_agents, is_compacted, .. } = told;
    // While the session grows, only the last page of the session itself is updated, never a page of
    // a sub-agent.
    let follows = *is_last && *part == 0;
    html! {
        (made(&sheet.bar))
        div.columns {
            (made(&sheet.timeline))
            main #content data-file=[follows.then_some(file)]
                data-stamp=[follows.then_some(stamp)] {
                (made(&sheet.above))
                @if *part == 0 {
                    @if *is_compacted { (restore()) }
                    (tools(*sub_agents))
                    (commands(viewer, session, told))
                }
                (made(&sheet.filter))
                @for (_, turn) in &sheet.turns { (made(turn)) }
                @if follows {
                    p #live.live role="status" hidden { "Waiting for more" }
                }
                (made(&sheet.below))
            }
        }
    }
}

/// The button that restores a compacted session.
fn restore() -> Markup {
    html! {
        div.acts {
            form method="post" action="restore" {
                button.act type="submit" { "Restore it" }
                span.soft { "puts back into the file what compactions took out of it" }
            }
        }
    }
}

/// Links to the viewer's other pages about the session, and to its sub-agents.
fn tools(sub_agents: usize) -> Markup {
    html! {
        p.tools {
            a href="plan" { "What compacting would save" }
            " " a href="losses" { "What compactions took" }
            " " a href="history" { "History" }
            @for part in 1..=sub_agents {
                a href=(name(part).file(0)) { "Sub-agent " (part) }
            }
        }
    }
}

/// The path of the session, the command that resumes it, and the command that plans its compaction,
/// to be copied. A path or command that contains a secret is left out, because it does not work
/// when the secret is redacted.
fn commands(viewer: &Viewer, session: &SessionFile, told: &ToldSheet) -> Markup {
    let id = told.id.as_deref().unwrap_or(&session.id);
    let resume = resume_line(session.agent, id, told.cwd.as_deref());
    let path = viewer.redacted(&session.path.to_string_lossy());
    let plan = format!("epitome compact {} --dry-run", shell_word(id));
    // A path that is redacted in part is of no use.
    let path = Some(path).filter(|path| !path.contains("[REDACTED"));
    let all = [("File", path), ("Resume", resume), ("Plan", Some(plan))];
    let shown = all.into_iter().filter_map(|(name, text)| {
        let text = text.filter(|text| viewer.redacted(text) == text.as_str())?;
        Some((name, text))
    });
    html! {
        dl.commands {
            @for (name, text) in shown {
                dt { (name) }
                dd { code { (text) } " " button type="button" data-copy=(text) hidden { "Copy" } }
            }
        }
    }
}

#[cfg(test)]
#[path = "session_tests.rs"]
mod tests;
