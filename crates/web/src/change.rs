//! Handles the requests of the buttons that compact a session, restore it, or put one text back. No
//! other request changes a session.

use std::sync::Arc;

use axum::extract::{Form, Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use epitome::ops::{
    Change, Compact, CompactReport, OpenSession, Restore, RestoreReport, SizeRow, What,
};
use epitome::storage::RestoreOutcome;
use epitome_model::Ref;
use maud::{Markup, html};
use serde::Deserialize;

use crate::page::{Here, UP, bar, message, page as frame, run_blocking};
use crate::plan::{PlanQuery, figures, heading_of, restore, size};
use crate::problem::Problem;
use crate::viewer::{Viewer, name};

/// Compacts a session with its sub-agents.
pub(crate) async fn compact(
    State(viewer): State<Arc<Viewer>>,
    Path((_, key)): Path<(String, String)>,
    Form(asked): Form<PlanQuery>,
) -> Response {
    let writes = Arc::clone(&viewer.writes).read_owned().await;
    let response = run_blocking(viewer, move |viewer| {
        let _writes = writes;
        let session = viewer.session(&key)?;
        let recipe = asked.recipe(viewer)?;
        let options = &viewer.options;
        let run = options.config.begin_run("serve");
        let opened = OpenSession::new(&options.config, &session.path);
        let settings = &options.settings;
        let compact = Compact::with_settings(settings, &recipe, options.counter, &run);
        Ok(match compact.run(&opened) {
            Ok(done) => compacted(&opened, &done),
            Err(err) => refused(viewer, "It was not compacted", &err.into()),
        })
    });
    response.await.unwrap_or_else(|problem| problem)
}

/// What is restored: the text with this reference, or everything if the reference is empty.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Wanted {
    #[serde(default)]
    block: String,
}

/// Restores a session with its sub-agents, or puts one text of the session back.
pub(crate) async fn give_back(
    State(viewer): State<Arc<Viewer>>,
    Path((_, key)): Path<(String, String)>,
    Form(Wanted { block }): Form<Wanted>,
) -> Response {
    let writes = Arc::clone(&viewer.writes).read_owned().await;
    let response = run_blocking(viewer, move |viewer| {
        let _writes = writes;
        let session = viewer.session(&key)?;
        let opened = OpenSession::new(&viewer.options.config, &session.path);
        if !block.is_empty() {
            let reference: Ref = block.parse().map_err(|_| {
                let what = "this is not the reference of a text";
                Problem::new(StatusCode::UNPROCESSABLE_ENTITY, what)
            })?;
            let restore = Restore { what: What::Block(&reference), ..Restore::default() };
            return Ok(match restore.run(&opened) {
                Ok(done) => put_back(&opened, &reference, &done),
                Err(err) => refused(viewer, "It was not put back", &err.into()),
            });
        }
        Ok(match Restore::default().run(&opened) {
            Ok(done) => given_back(&done),
            Err(err) => refused(viewer, "It was not restored", &err.into()),
        })
    });
    response.await.unwrap_or_else(|problem| problem)
}

fn compacted(session: &OpenSession<'_>, done: &CompactReport) -> Response {
    let generations = session.undoable();
    let number = done.file.generation;
    let title = if done.all().any(|file| file.generation.is_some()) {
        "Compacted"
    } else {
        "There was nothing to do"
    };
    let proof = generations.iter().find(|it| Some(it.number) == number);
    response(
        title,
        &html! {
            (figures(done))
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
    response(
        title,
        &html! {
            @for (n, file) in done.iter().enumerate() {
                @let disk = Change { before: file.bytes_before, after: file.bytes_after() };
                (heading_of(n, done.len()))
                dl.figures {
                    (size(&SizeRow::disk(disk)))
                    div { dt { "how" } dd.words { (how(&file.outcome)) } }
                }
            }
        },
    )
}

/// The response to a request to put one text back: whether this was done, and in how many places.
fn put_back(session: &OpenSession<'_>, reference: &Ref, report: &RestoreReport) -> Response {
    let file = &report.file;
    let (title, how) = match (file.by_record, file.missing) {
        (0, 0) => ("It is there already", "there was nothing to put back".to_owned()),
        (0, _) => (
            "It was not put back",
            "the place it was taken from was changed since: `epitome show` prints it".to_owned(),
        ),
        (1, _) => ("Put back", "in its place; all else stays".to_owned()),
        (n, _) => ("Put back", format!("in {n} places; all else stays")),
    };
    response(
        title,
        &html! {
            dl.figures {
                div { dt { "text" } dd.words { code { (reference) } } }
                (size(&SizeRow::disk(file.disk_bytes)))
                div { dt { "how" } dd.words { (how) } }
            }
            @if let Some(number) = file.generation {
                p.soft { "What was in its place is kept as generation " (number) "." }
            }
            p { a href="losses" { "‹ what compactions took" } }
            div.acts { (restore(&session.undoable())) }
        },
    )
}

fn how(outcome: &RestoreOutcome) -> String {
    match outcome {
        RestoreOutcome::Exact { undone } if undone.is_empty() => {
            "there was nothing to undo".to_owned()
        }
        RestoreOutcome::Exact { .. } => {
            "identical to the original, verified by its hash".to_owned()
        }
        RestoreOutcome::ByRecord { restored, missing, .. } => {
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

fn response(title: &str, inside: &Markup) -> Response {
    let body = html! {
        (bar(UP, Here::Session))
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

/// The page of an error: the reason, and what may help.
fn refused(viewer: &Viewer, title: &str, problem: &Problem) -> Response {
    let page = response(title, &message(viewer, problem));
    let status: StatusCode = problem.status;
    (status, page).into_response()
}
