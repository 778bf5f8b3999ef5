//! What every page has around its content, and pages that say what went wrong.

use std::error::Error as _;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{Html, IntoResponse as _, Response};
use epitome::{Error, ErrorKind};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde::de::DeserializeOwned;

use crate::viewer::Viewer;

/// The way from a session's pages to the list.
pub(crate) const UP: &str = "../../";

/// A whole page. `root` is the way to the list.
pub(crate) fn page(title: &str, root: &str, body: &Markup) -> Html<String> {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                link rel="icon" href="data:,";
                link rel="stylesheet" href={ (root) "viewer.css" };
                script src={ (root) "page.js" } defer {}
                script src={ (root) "viewer.js" } defer {}
            }
            body { (body) }
        }
    };
    Html(page.into_string())
}

/// What an address asks for behind its question mark. What cannot be read is told as any problem.
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

/// HTML that a template of epitome made.
pub(crate) fn made(html: &str) -> PreEscaped<&str> {
    PreEscaped(html)
}

/// The bar above a page that shows no session.
pub(crate) fn bar(root: &str, inside: &Markup) -> Markup {
    html! {
        header.bar {
            @if root.is_empty() { span.home { "epitome" } }
            @else { a.home href=(root) { "‹ Sessions" } }
            (inside)
            button #theme type="button" aria-label="Switch between light and dark" { "◐" }
        }
    }
}

/// What went wrong, why, and what may help.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) status: StatusCode,
    pub(crate) message: String,
    pub(crate) causes: Vec<String>,
    pub(crate) hints: Vec<String>,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, message: impl Into<String>) -> Problem {
        Problem { status, message: message.into(), causes: Vec::new(), hints: Vec::new() }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Problem {
        self.hints.push(hint.into());
        self
    }

    /// The message, its causes and its hints, as a person reads them.
    pub(crate) fn told(&self, viewer: &Viewer) -> Markup {
        html! {
            p.problem role="alert" { b { (viewer.shown(&self.message)) } }
            @for cause in &self.causes { p.cause { "because: " (viewer.shown(cause)) } }
            @for hint in &self.hints { p.hint { (viewer.shown(hint)) } }
        }
    }
}

impl From<Error> for Problem {
    fn from(err: Error) -> Problem {
        let mut problem = Problem::new(status(err.kind()), err.to_string());
        let mut cause = err.source();
        while let Some(inner) = cause {
            problem.causes.push(inner.to_string());
            cause = inner.source();
        }
        problem.hints.extend(err.hint().map(str::to_owned));
        problem
    }
}

/// A page that says what went wrong, seen from a session's pages.
pub(crate) fn problem(viewer: &Viewer, problem: &Problem) -> Response {
    let body = html! {
        (bar(UP, &html! {}))
        main #content.index { h1 { "That did not work" } (problem.told(viewer)) }
    };
    (problem.status, page("That did not work", UP, &body)).into_response()
}

fn status(kind: ErrorKind) -> StatusCode {
    match kind {
        ErrorKind::NotFound | ErrorKind::NotArchived => StatusCode::NOT_FOUND,
        ErrorKind::NoPermission => StatusCode::FORBIDDEN,
        ErrorKind::NotAFile | ErrorKind::Unreadable | ErrorKind::UnknownFormat => {
            StatusCode::UNPROCESSABLE_ENTITY
        }
        ErrorKind::InUse
        | ErrorKind::HeldByAgent
        | ErrorKind::Changed
        | ErrorKind::Locked
        | ErrorKind::HardLinked
        | ErrorKind::Exists
        | ErrorKind::Refused
        | ErrorKind::ReadOnly => StatusCode::CONFLICT,
        ErrorKind::Disk => StatusCode::INSUFFICIENT_STORAGE,
        ErrorKind::Archive | ErrorKind::NewerFormat | ErrorKind::Broken => {
            StatusCode::INTERNAL_SERVER_ERROR
        }
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}
