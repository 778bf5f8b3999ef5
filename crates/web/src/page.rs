//! The frame of every page, and the page of an error.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{Html, IntoResponse as _, Response};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde::de::DeserializeOwned;

use crate::problem::Problem;
use crate::viewer::Viewer;

/// The relative path from a session's pages to the list.
pub(crate) const UP: &str = "../../";

/// The icon of every page: lines that become shorter.
const ICON: &str = "data:image/svg+xml,%3Csvg%20xmlns=%22http://www.w3.org/2000/svg%22%20\
    viewBox=%220%200%2016%2016%22%3E%3Crect%20width=%2216%22%20height=%2216%22%20rx=%223.5%22%20\
    fill=%22%238a4b16%22/%3E%3Cpath%20d=%22M3.5%204.5h9M3.5%208h6.5M3.5%2011.5h3.5%22%20\
    stroke=%22%23fff%22%20stroke-width=%221.7%22%20stroke-linecap=%22round%22/%3E%3C/svg%3E";

/// Which of the viewer's own pages a header belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Here {
    Sessions,
    Overview,
    Proxy,
    /// A page of one session.
    Session,
}

/// A whole page. `root` is the relative path from it to the list of sessions; it is empty for the
/// list itself.
pub(crate) fn page(title: &str, root: &str, body: &Markup) -> Html<String> {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " · epitome" }
                link rel="icon" href=(ICON);
                link rel="stylesheet" href={ (root) "viewer.css" };
                script src={ (root) "page.js" } defer {}
                script src={ (root) "viewer.js" } defer {}
            }
            body { (body) }
        }
    };
    Html(page.into_string())
}

/// The query parameters of an address. Invalid ones become an error page.
pub(crate) struct Query<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequestParts<Arc<Viewer>> for Query<T> {
    type Rejection = Response;

    async fn from_request_parts(
        parts: &mut Parts,
        viewer: &Arc<Viewer>,
    ) -> Result<Query<T>, Response> {
        match axum::extract::Query::try_from_uri(&parts.uri) {
            Ok(axum::extract::Query(asked)) => Ok(Query(asked)),
            Err(_) => {
                let what = "the address asks for something that no page of the viewer has";
                Err(problem(viewer, &Problem::new(StatusCode::BAD_REQUEST, what)))
            }
        }
    }
}

/// Marks HTML that epitome's own templates made, so that it is not escaped again.
pub(crate) fn made(html: &str) -> PreEscaped<&str> {
    PreEscaped(html)
}

/// The header of the viewer's own pages.
pub(crate) fn bar(root: &str, here: Here) -> Markup {
    let list = if root.is_empty() { "./" } else { root };
    let is_here = |place: Here| (place == here).then_some("page");
    html! {
        header.bar {
            @if here == Here::Session { a.home href=(list) { "‹ Sessions" } }
            @else {
                span.home { "epitome" }
                a.place href=(list) aria-current=[is_here(Here::Sessions)] { "Sessions" }
            }
            a.place href={ (root) "overview" } aria-current=[is_here(Here::Overview)] {
                "Overview"
            }
            a.place href={ (root) "proxy" } aria-current=[is_here(Here::Proxy)] { "Proxy" }
            span.search {}
            button #theme type="button" aria-label="Switch between light and dark" { "◐" }
        }
    }
}

/// The page of an error.
pub(crate) fn problem(viewer: &Viewer, problem: &Problem) -> Response {
    let body = html! {
        (bar(&viewer.root, Here::Session))
        main #content.index { h1 { "That did not work" } (message(viewer, problem)) }
    };
    (problem.status, page("That did not work", &viewer.root, &body)).into_response()
}

/// The message of an error, its causes and its hints.
pub(crate) fn message(viewer: &Viewer, problem: &Problem) -> Markup {
    html! {
        p.problem role="alert" { b { (viewer.redacted(&problem.message)) } }
        @for cause in &problem.causes { p.cause { "because: " (viewer.redacted(cause)) } }
        @for hint in &problem.hints { p.hint { (viewer.redacted(hint)) } }
    }
}

/// Runs blocking work (reading files, computing) on a thread for such work, and turns an error into
/// a page.
pub(crate) async fn run_blocking<T: Send + 'static>(
    viewer: Arc<Viewer>,
    work: impl FnOnce(&Viewer) -> Result<T, Problem> + Send + 'static,
) -> Result<T, Response> {
    let done = tokio::task::spawn_blocking({
        let viewer = Arc::clone(&viewer);
        move || work(&viewer)
    });
    match done.await {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(told)) => Err(problem(&viewer, &told)),
        // A panic is a bug; other requests are still answered.
        Err(_) => {
            let bug = Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "internal error")
                .hint("please report the message in the terminal, and what you did");
            Err(problem(&viewer, &bug))
        }
    }
}
