//! A session compacted or given back, by the button of a page: the only requests that write.

use std::sync::Arc;

use axum::extract::{Form, Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use epitome::find::SessionFile;
use epitome::{Compacted, GivenBack, Restored, compact_session, restore_session};
use maud::{Markup, html};

use crate::page::{UP, bar, message, page as frame, run_blocking};
use crate::plan::{Asked, disk, figures, heading_of, restore};
use crate::problem::Problem;
use crate::viewer::{Viewer, name};

/// Compacts a session and what its sub-agents did.
pub(crate) async fn compact(
    State(viewer): State<Arc<Viewer>>,
    Path((_, key)): Path<(String, String)>,
    Form(asked): Form<Asked>,
) -> Response {
    let writes = Arc::clone(&viewer.writes).read_owned().await;
    let told = run_blocking(viewer, move |viewer| {
        let _writes = writes;
        let session = viewer.session(&key)?;
        let recipe = asked.recipe(viewer)?;
        let options = &viewer.options;
        let run = options.config.begin_run("serve");
        let (config, path) = (&options.config, &session.path);
        Ok(match compact_session(config, path, &recipe, options.counter, &run) {
            Ok(done) => compacted(viewer, &session, &done),
            Err(err) => refused(viewer, "It was not compacted", &err.into()),
        })
    });
    told.await.unwrap_or_else(|problem| problem)
}

/// Gives a session back, and what its sub-agents did.
pub(crate) async fn give_back(
    State(viewer): State<Arc<Viewer>>,
    Path((_, key)): Path<(String, String)>,
) -> Response {
    let writes = Arc::clone(&viewer.writes).read_owned().await;
    let told = run_blocking(viewer, move |viewer| {
        let _writes = writes;
        let session = viewer.session(&key)?;
        Ok(match restore_session(&viewer.options.config, &session.path) {
            Ok(done) => given_back(&done),
            Err(err) => refused(viewer, "It was not restored", &err.into()),
        })
    });
    told.await.unwrap_or_else(|problem| problem)
}

fn compacted(viewer: &Viewer, session: &SessionFile, done: &[Compacted]) -> Response {
    let generations = epitome::undoable(&viewer.options.config, &session.path);
    let number = done.first().and_then(|file| file.generation);
    let title = match done.iter().any(|file| file.generation.is_some()) {
        true => "Compacted",
        false => "There was nothing to do",
    };
    let proof = generations.iter().find(|it| Some(it.number) == number);
    told(
        title,
        &html! {
            (figures(viewer, done))
            @if let Some(generation) = proof {
                p.soft {
                    "Archived as generation " (generation.number) ". "
                    "The archive was verified to restore the session: blake3 "
                    code { (generation.before.blake3) }
                }
            }
            div.acts { (restore(&generations)) }
        },
    )
}

fn given_back(done: &[GivenBack]) -> Response {
    let title = match done.iter().all(GivenBack::is_nothing) {
        true => "It is what it was",
        false => "Restored",
    };
    told(
        title,
        &html! {
            @for (n, file) in done.iter().enumerate() {
                (heading_of(n, done.len()))
                dl.figures {
                    (disk(file.bytes_before, file.bytes_after()))
                    div { dt { "how" } dd.words { (how(&file.outcome)) } }
                }
            }
        },
    )
}

fn how(outcome: &Restored) -> String {
    match outcome {
        Restored::Exact { undone } if undone.is_empty() => "there was nothing to undo".to_owned(),
        Restored::Exact { .. } => "exact, to the byte, proved by hash".to_owned(),
        Restored::ByRecord { restored, missing, .. } => {
            let mut how =
                format!("others changed it since: record by record, {restored} given back");
            if *missing > 0 {
                how.push_str(&format!(
                    "; {missing} no longer where epitome left them: `epitome show` has the bytes"
                ));
            }
            how
        }
    }
}

fn told(title: &str, inside: &Markup) -> Response {
    let body = html! {
        (bar(UP, &html! { span.search {} }))
        main #content.index.plan {
            p.of {
                a href=(name(0).file(0)) { "‹ the session" } " · "
                a href="plan" { "what compacting would save" }
            }
            h1 role="status" { (title) }
            (inside)
        }
    };
    frame(title, UP, &body).into_response()
}

/// Nothing was changed: why, and what may help.
fn refused(viewer: &Viewer, title: &str, problem: &Problem) -> Response {
    let page = told(title, &message(viewer, problem));
    let status: StatusCode = problem.status;
    (status, page).into_response()
}
