//! The buttons that compact and restore a session: the only requests that write.

use std::sync::Arc;

use axum::extract::{Form, Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use epitome::ops::{Compact, CompactReport, OpenSession, Restore, RestoreReport};
use epitome::storage::Restored;
use maud::{Markup, html};

use crate::page::{UP, bar, message, page as frame, run_blocking};
use crate::plan::{PlanQuery, disk, figures, heading_of, restore};
use crate::problem::Problem;
use crate::viewer::{Viewer, name};

/// Compacts a session with its sub-agents.
pub(crate) async fn compact(
    State(viewer): State<Arc<Viewer>>,
    Path((_, key)): Path<(String, String)>,
    Form(asked): Form<PlanQuery>,
) -> Response {
    let writes = Arc::clone(&viewer.writes).read_owned().await;
    let told = run_blocking(viewer, move |viewer| {
        let _writes = writes;
        let session = viewer.session(&key)?;
        let recipe = asked.recipe(viewer)?;
        let options = &viewer.options;
        let run = options.config.begin_run("serve");
        let opened = OpenSession::at(&options.config, &session.path);
        let settings = &options.settings;
        let compact = Compact::with_settings(settings, &recipe, options.counter, &run);
        Ok(match compact.run(&opened) {
            Ok(done) => compacted(viewer, &opened, &done),
            Err(err) => refused(viewer, "It was not compacted", &err.into()),
        })
    });
    told.await.unwrap_or_else(|problem| problem)
}

/// Restores a session with its sub-agents.
pub(crate) async fn give_back(
    State(viewer): State<Arc<Viewer>>,
    Path((_, key)): Path<(String, String)>,
) -> Response {
    let writes = Arc::clone(&viewer.writes).read_owned().await;
    let told = run_blocking(viewer, move |viewer| {
        let _writes = writes;
        let session = viewer.session(&key)?;
        let opened = OpenSession::at(&viewer.options.config, &session.path);
        Ok(match Restore::default().run(&opened) {
            Ok(done) => given_back(&done),
            Err(err) => refused(viewer, "It was not restored", &err.into()),
        })
    });
    told.await.unwrap_or_else(|problem| problem)
}

fn compacted(viewer: &Viewer, session: &OpenSession<'_>, done: &CompactReport) -> Response {
    let generations = session.undoable();
    let number = done.file.generation;
    let title = if done.all().any(|file| file.generation.is_some()) {
        "Compacted"
    } else {
        "There was nothing to do"
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

fn given_back(report: &RestoreReport) -> Response {
    let done = &report.done;
    let title = if report.is_nothing() { "It is what it was" } else { "Restored" };
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
            let mut how = format!("others changed it since: record by record, {restored} restored");
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

/// A failure that changed nothing: the reason, and what may help.
fn refused(viewer: &Viewer, title: &str, problem: &Problem) -> Response {
    let page = told(title, &message(viewer, problem));
    let status: StatusCode = problem.status;
    (status, page).into_response()
}
