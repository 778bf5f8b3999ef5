//! The pages about versions that `epitome keep` has stored: the list of a session's versions, the
//! session as it was at one of them, and the sessions that their agents have deleted. Nothing is
//! changed here.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use epitome::agents::shell_word;
use epitome::keep::{
    DeletedSession, FileKey, HistoryVersion, RestoreVersion, Vault, VersionHistory,
    deleted_sessions, file_with_version, present_path,
};
use epitome_render::minute;
use maud::{Markup, html};

use crate::laid_out::{LaidOut, OF_ONE, ToldSheet, not_there};
use crate::options::{Options, Which};
use crate::page::{Here, UP, bar, made, page as frame, run_blocking};
use crate::problem::Problem;
use crate::session_cache::key;
use crate::vault_cache::not_kept;
use crate::viewer::{Viewer, name, part_and_page};

/// The maximum number of deleted sessions in the list.
const DELETED: usize = 200;

/// The page with the versions of a session, the newest first.
pub(crate) async fn page(
    State(viewer): State<Arc<Viewer>>,
    Path((_, key)): Path<(String, String)>,
) -> Response {
    let response = run_blocking(viewer, move |viewer| {
        let Options { config, .. } = &viewer.options;
        let history = viewer.vault.with(&viewer.options, |vault| {
            let Some(file) = kept_file(viewer, vault, &key) else { return Ok(None) };
            Ok(Some(VersionHistory::read(config, vault, &file)?))
        })?;
        let body = match &history {
            Some(history) => history_body(viewer, &key, history),
            None => {
                // A session without versions still has this page if it exists; otherwise the
                // request fails here.
                viewer.session(&key)?;
                framed(true, &html! { p.none { (NONE) } })
            }
        };
        Ok(frame("History", UP, &body).into_response())
    });
    response.await.unwrap_or_else(|problem| problem)
}

/// A page of a session as it was at one version. The first page is at `v/KEY-NUMBER/session.html`.
pub(crate) async fn session(
    State(viewer): State<Arc<Viewer>>,
    Path((_, version, file)): Path<(String, String, String)>,
) -> Response {
    let response = run_blocking(viewer, move |viewer| {
        let (key, number) = version.split_once('-').ok_or_else(not_there)?;
        let number: u64 = number.parse().map_err(|_| not_there())?;
        let (part, page) = part_and_page(&file).ok_or_else(not_there)?;
        let options = &viewer.options;
        let (file, listed, content) = viewer.vault.with(options, |vault| {
            let file = kept_file(viewer, vault, key).ok_or_else(not_kept)?;
            let history = VersionHistory::read(&options.config, vault, &file)?;
            let listed = history.versions.into_iter().find(|version| version.version == number);
            let file = file_with_version(&options.config, vault, &file, number).unwrap_or(file);
            let content = vault.version(&file, number)?.digest.blake3;
            Ok((file, listed.ok_or_else(not_kept)?, content))
        })?;
        let restore = RestoreVersion { file: &file, number, force: false };
        let sheet = viewer.pages.get(
            viewer.key_of_version(&file, number, content),
            |laid_out| laid_out.sheet(part, page),
            || {
                let config = &options.config;
                let folder =
                    viewer.vault.with(options, |vault| Ok(restore.to_folder(config, vault)?))?;
                let made = viewer.with_pages_at(folder.session(), &file.session, |_, pages| {
                    LaidOut::from_pages(pages, (part, page), OF_ONE)
                });
                made.map_err(Problem::from)
            },
        );
        let sheet = sheet?.unwrap_or_else(|| Err(not_there()))?;
        let body = version_body(viewer, (key, &file), &listed, &sheet);
        Ok(frame(&sheet.sheet.title, UP, &body).into_response())
    });
    response.await.unwrap_or_else(|problem| problem)
}

/// The deleted sessions of an agent (of all agents, if `agent` is empty), folded. Empty if there
/// are none, or if the viewer shows only the sessions below a folder.
pub(crate) fn deleted(viewer: &Viewer, agent: &str) -> Markup {
    let wanted = match (&viewer.options.which, agent) {
        (Which::Below(_), _) => return html! {},
        (Which::Of(agent), _) => Some(agent.as_str()),
        (Which::All, "") => None,
        (Which::All, agent) => Some(agent),
    };
    let found = viewer
        .vault
        .with(&viewer.options, |vault| Ok(deleted_sessions(&viewer.options.config, vault, wanted)))
        .unwrap_or_default();
    html! {
        @if !found.is_empty() {
            details.card.gone {
                summary { b { "Deleted sessions" } span.meta { span { (found.len()) } } }
                div.body {
                    p.soft { "Their agents have deleted them; `epitome keep` has their versions." }
                    ol.rows {
                        @for session in found.iter().take(DELETED) {
                            (deleted_row(viewer, session))
                        }
                    }
                    @if found.len() > DELETED {
                        p.soft { "and " (found.len() - DELETED) " more: `epitome list --deleted`" }
                    }
                }
            }
        }
    }
}

fn deleted_row(viewer: &Viewer, session: &DeletedSession) -> Markup {
    let key = key(&session.path);
    html! {
        li.row {
            a.title href={ "s/" (key) "/history" } {
                bdi.id { (viewer.redacted(&session.session)) }
            }
            p.facts {
                span.agent { (session.agent) }
                span { "deleted " time datetime=(session.deleted) { (minute(session.deleted)) } }
            }
            p.numbers {
                span { (session.bytes) }
                a href=(version_page(&key, session.version)) { "last version" }
            }
        }
    }
}

/// The address of the first page of a version, relative to that of the viewer.
fn version_page(key: &str, number: u64) -> String {
    format!("v/{key}-{number}/{}", name(0).file(0))
}

/// The session in the vault with this key in URLs, if the viewer shows the sessions of its agent or
/// folder. If several sessions were kept from one path, returns the one that was seen last.
fn kept_file(viewer: &Viewer, vault: &Vault, wanted: &str) -> Option<FileKey> {
    let is_shown = |file: &FileKey| match &viewer.options.which {
        Which::All => true,
        Which::Of(agent) => file.agent == *agent,
        Which::Below(folder) => file.path.starts_with(folder),
    };
    // The home folder may have been moved after the session was kept. The session's page then has
    // an address by the session's old path, and another by its path in the new home folder.
    let is_wanted = |file: &FileKey| {
        key(&file.path) == wanted
            || key(&present_path(&viewer.options.config, vault, file)) == wanted
    };
    let files =
        vault.files().filter(|file| file.part.is_none() && is_shown(file) && is_wanted(file));
    files.max_by_key(|file| vault.versions(file).next_back().map(|last| last.seen)).cloned()
}

const NONE: &str = "No version of this session was kept. `epitome keep --all` keeps every version \
                    of every session from then on.";

fn framed(has_session: bool, content: &Markup) -> Markup {
    html! {
        a.skip href="#content" { "To the versions" }
        (bar(UP, Here::Session))
        main #content.index.plan {
            @if has_session { p.of { a href=(name(0).file(0)) { "‹ the session" } } }
            h1 { "History" }
            (content)
        }
    }
}

fn history_body(viewer: &Viewer, key: &str, history: &VersionHistory) -> Markup {
    let path = viewer.redacted(&history.path.to_string_lossy());
    let content = html! {
        p.soft {
            (history.agent) " " bdi { (viewer.redacted(&history.session)) } " · " (path)
            @if !history.exists { " · deleted" }
        }
        (list(key, history, true))
        (restore_command(viewer, history))
        @for part in &history.parts {
            h2.file { (viewer.redacted(part.part.as_deref().unwrap_or_default())) }
            (list(key, part, false))
        }
    };
    framed(history.exists, &content)
}

/// The versions of a file, the newest first. If the file is a session, each version with content is
/// a link to its pages.
fn list(key: &str, history: &VersionHistory, is_session: bool) -> Markup {
    html! {
        ol.rows.versions {
            @for version in history.versions.iter().rev() {
                li.row {
                    @let title = format!("Version {}", version.version);
                    @if is_session && version.has_content() {
                        a.title href={ (UP) (version_page(key, version.version)) } { (title) }
                    } @else {
                        span.title { (title) }
                    }
                    p.facts {
                        time datetime=(version.seen) { (minute(version.seen)) }
                        span { (version.description()) }
                    }
                    p.numbers { @if version.has_content() { span { (version.bytes) } } }
                }
            }
        }
    }
}

/// The command that restores the last version with content, to be copied. Empty if no version has
/// content, or if the command contains a secret.
fn restore_command(viewer: &Viewer, history: &VersionHistory) -> Markup {
    let last = history.versions.iter().rev().find(|version| version.has_content());
    html! { @if let Some(last) = last { (command(viewer, &history.session, last.version)) } }
}

fn command(viewer: &Viewer, session: &str, number: u64) -> Markup {
    let text = format!("epitome restore {} --at {number}", shell_word(session));
    html! {
        @if viewer.redacted(&text) == text {
            dl.commands {
                dt { "Restore" }
                dd { code { (text) } " " button type="button" data-copy=(text) hidden { "Copy" } }
            }
        }
    }
}

fn version_body(
    viewer: &Viewer,
    (key, file): (&str, &FileKey),
    version: &HistoryVersion,
    laid_out: &ToldSheet,
) -> Markup {
    let ToldSheet { sheet, part, sub_agents, .. } = laid_out;
    html! {
        (made(&sheet.bar))
        div.columns {
            (made(&sheet.timeline))
            main #content {
                p.then role="note" {
                    b { "Version " (version.version) }
                    ", seen " time datetime=(version.seen) { (minute(version.seen)) }
                    ": " (version.description()) ". This is the session as it was then. "
                    a href={ (UP) "s/" (key) "/history" } { "All versions" }
                }
                (made(&sheet.above))
                @if *part == 0 {
                    p.tools {
                        @for part in 1..=*sub_agents {
                            a href=(name(part).file(0)) { "Sub-agent " (part) }
                        }
                    }
                    (command(viewer, &file.session, version.version))
                }
                (made(&sheet.filter))
                @for (_, turn) in &sheet.turns { (made(turn)) }
                (made(&sheet.below))
            }
        }
    }
}
