//! The loss report of a session as a page.

use std::path::Path as FilePath;
use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use epitome::compaction::PreparedCompaction;
use epitome::ops::{
    CompactionLosses, LossGroup, LossMembers, LossReport, LostText, OpenSession, RecoveryCommand,
    planned_losses, session_losses,
};
use epitome_model::{Source, Tokens, plural};
use epitome_render::{minute, moment};
use maud::{Markup, html};

use crate::options::Options;
use crate::page::{Here, UP, bar, page as frame, run_blocking};
use crate::problem::Problem;
use crate::viewer::{Viewer, name};

/// The maximum number of removed texts, facts or files that are shown of each group.
const SHOWN: usize = 100;
/// The maximum number of characters that are shown of a text of the session, such as a name.
const WIDTH: usize = 200;

/// A function that redacts a text of the session, makes invisible characters visible, and shortens
/// it.
type Shown<'a> = &'a mut dyn FnMut(&str) -> String;

pub(crate) async fn page(
    State(viewer): State<Arc<Viewer>>,
    Path((_, key)): Path<(String, String)>,
) -> Response {
    let response = run_blocking(viewer, move |viewer| {
        let file = viewer.session(&key)?;
        let Options { config, settings, counter, .. } = &viewer.options;
        let session = OpenSession::new(config, &file.path);
        let report = session_losses(&session, settings, *counter)?;
        let body = body(&report, &mut shown_of(viewer, &file.path)?);
        Ok(frame("What compactions took", UP, &body).into_response())
    });
    response.await.unwrap_or_else(|problem| problem)
}

/// The losses of a planned compaction.
#[derive(Default)]
pub(crate) struct PlannedLosses {
    /// The losses that may matter, in words; `None` if nothing is removed from the context.
    pub(crate) may_matter: Option<Vec<String>>,
    /// All losses, as a fragment of a page.
    pub(crate) listed: Markup,
}

/// The losses of a planned compaction, for the page of the plan.
pub(crate) fn planned<S: Source>(
    viewer: &Viewer,
    path: &FilePath,
    plan: &PreparedCompaction<'_, S>,
) -> Result<PlannedLosses, Problem> {
    let Options { config, settings, counter, .. } = &viewer.options;
    let losses = planned_losses(config, settings, path, plan, *counter)?;
    let groups = groups(&losses, &mut shown_of(viewer, path)?);
    let may_matter = (!losses.pieces.is_empty()).then(|| losses.relevant_losses());
    let listed = html! {
        @if !losses.pieces.is_empty() {
            h2.file { "What would leave the context" }
            p.soft {
                (losses.facts_sentence()) " Each text can be put back afterwards, or printed."
            }
            (groups)
        }
    };
    Ok(PlannedLosses { may_matter, listed })
}

/// Returns a function that redacts a text, makes invisible characters visible, and shortens it.
fn shown_of<'a>(
    viewer: &'a Viewer,
    session: &FilePath,
) -> Result<impl FnMut(&str) -> String + 'a, Problem> {
    let mut redactor = viewer.redactor(session)?;
    Ok(move |text: &str| {
        let text = redactor.as_mut().map_or(text.into(), |redactor| redactor.text(text));
        epitome_model::short(&epitome_render::visible(&text), WIDTH)
    })
}

fn body(report: &LossReport, shown: Shown<'_>) -> Markup {
    let of = report.compactions.len();
    html! {
        a.skip href="#content" { "To the report" }
        (bar(UP, Here::Session))
        main #content.index.plan {
            p.of { a href=(name(0).file(0)) { "‹ the session" } }
            h1 { "What compactions took" }
            @if of == 0 { p.none { "No compaction is known of this session." } }
            @for note in &report.notes { p.hint { (shown(note)) } }
            @for (n, it) in report.compactions.iter().enumerate() {
                h2.file { "Compaction " (n + 1) " of " (of) ", " (head(it, report.agent, shown)) }
                (figures(it))
                (groups(it, shown))
                (how(it))
            }
            @if of > 0 {
                p.soft {
                    "A text left if lines of it are in the context no more. What was read again "
                    "is counted once, at list prices of " (report.prices_of) "."
                }
            }
        }
    }
}

fn head(it: &CompactionLosses, agent: &str, shown: Shown<'_>) -> Markup {
    html! {
        (shown(&it.maker(agent)))
        @if let Some(at) = &it.at { ", " (time(at, shown)) }
        @if let Some(line) = it.line { ", line " (line) }
    }
}

/// A time in the format of all pages. A text that is not a time stays as it is.
fn time(at: &str, shown: Shown<'_>) -> Markup {
    html! {
        @match moment(at) {
            Some(at) => time datetime=(at) { (minute(at)) },
            None => time { (shown(at)) },
        }
    }
}

fn figures(it: &CompactionLosses) -> Markup {
    html! {
        dl.figures {
            div {
                dt { "messages, tokens" }
                dd { (it.context_tokens.before) " → " (it.context_tokens.after) }
            }
            div {
                dt { "facts gone, used later" }
                dd { (it.facts.gone) " of " (it.facts.before) ", " (it.facts.used) }
            }
            div {
                dt { "read or run again" }
                dd {
                    @if it.again.calls == 0 { "nothing" } @else {
                        (plural(it.again.calls, "call")) ", " (it.again.tokens) " tokens"
                        @if let Some(cost) = it.again.cost { ", " (cost) }
                    }
                }
            }
        }
    }
}

/// The losses in groups. Those that matter least are folded.
fn groups(it: &CompactionLosses, shown: Shown<'_>) -> Markup {
    html! {
        section.edits { @for group in it.groups() { (part(it, &group, shown)) } }
    }
}

fn part(it: &CompactionLosses, group: &LossGroup<'_>, shown: Shown<'_>) -> Markup {
    let title = &group.title;
    html! {
        @match &group.members {
            LossMembers::Pieces(pieces) => {
                @let tokens: Tokens = pieces.iter().map(|it| it.lost.tokens).sum();
                details.card open[!group.is_rest] {
                    summary {
                        b { (title) }
                        span.meta { span { (pieces.len()) } span { (tokens) " tokens" } }
                    }
                    div.body {
                        ul.pieces {
                            @for piece in pieces.iter().take(SHOWN) { (line(piece, it, shown)) }
                        }
                        @if pieces.len() > SHOWN {
                            p.soft {
                                "and " (pieces.len() - SHOWN) " more: `epitome losses --all-pieces`"
                            }
                        }
                    }
                }
            }
            LossMembers::Facts(names) | LossMembers::Files(names) => {
                details.card open {
                    summary { b { (title) } span.meta { span { (names.len()) } } }
                    div.body {
                        p { @for name in names.iter().take(SHOWN) { code { (shown(name)) } " " } }
                    }
                }
            }
            LossMembers::None => p.soft { (title) }
        }
    }
}

fn line(piece: &LostText, of: &CompactionLosses, shown: Shown<'_>) -> Markup {
    let name = shown(&piece.lost.name);
    html! {
        li {
            bdi { (name) }
            " " span.soft { "line " (piece.lost.line) ", " (piece.details().join(", ")) }
            @if !of.is_planned() {
                @if let Some(command) = piece.command() {
                    br; code { (shown(command)) }
                }
                (put_back(piece, &name))
            }
        }
    }
}

/// The button that puts a removed text back into the session. Empty if the text cannot be put back,
/// or is in the session again.
fn put_back(piece: &LostText, name: &str) -> Markup {
    let restore = piece.restore.as_ref().filter(|_| !piece.back);
    let reference = restore.and_then(|_| piece.reference());
    html! {
        @if let Some(reference) = reference {
            form method="post" action="restore" {
                input type="hidden" name="block" value=(reference);
                button.act type="submit" aria-label={ "Put back " (name) } { "Put it back" }
            }
        }
    }
}

/// Says whether single texts can be put back, and how.
fn how(it: &CompactionLosses) -> Markup {
    html! {
        @match it.recovery_command() {
            Some(RecoveryCommand::Restore(_)) => p.soft {
                "The buttons and the commands put single pieces back; all else stays."
            }
            Some(RecoveryCommand::Show(_)) => p.soft {
                "Of these, none can be put back alone (" (it.why_not_restored())
                "). The commands print them."
            }
            None => {}
        }
    }
}
