//! What the compactions of a session took out of its context, as a page.

use std::path::Path as FilePath;
use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use epitome::compaction::CompactionPlan;
use epitome::ops::{
    CompactedBy, CompactionLosses, LossOptions, LossReport, OpenSession, Piece, planned_losses,
    session_losses,
};
use epitome::redact::Screen;
use epitome_model::Source;
use epitome_passes::losses::LostKind;
use epitome_passes::{RuleFiles, response_name};
use epitome_render::{minute, moment};
use maud::{Markup, html};

use crate::page::{Here, UP, bar, page as frame, run_blocking};
use crate::problem::Problem;
use crate::viewer::{Viewer, name};

/// Pieces shown of each group, and facts.
const SHOWN: usize = 100;
/// Characters of a name.
const WIDTH: usize = 200;

/// Makes a text of the session fit to be shown.
type Shown<'a> = &'a mut dyn FnMut(&str) -> String;

/// Whether the compaction was made already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum When {
    Made,
    Planned,
}

pub(crate) async fn page(
    State(viewer): State<Arc<Viewer>>,
    Path((_, key)): Path<(String, String)>,
) -> Response {
    let told = run_blocking(viewer, move |viewer| {
        let file = viewer.session(&key)?;
        let config = &viewer.options.config;
        let session = OpenSession::at(config, &file.path);
        let screen = Screen::new(config);
        let rule_files = RuleFiles::built_in();
        let options = LossOptions { counter: viewer.options.counter, rule_files, screen: &screen };
        let report = session_losses(&session, &options)?;
        let body = body(&report, &mut shown_of(viewer, &file.path)?);
        Ok(frame("What compactions took", UP, &body).into_response())
    });
    told.await.unwrap_or_else(|problem| problem)
}

/// What a plan would take out of the context.
#[derive(Default)]
pub(crate) struct PlannedLosses {
    /// What of it may matter, in words; none if nothing leaves the context.
    pub(crate) may_matter: Option<Vec<String>>,
    /// All of it, as a part of a page.
    pub(crate) listed: Markup,
}

/// What a plan would take out of the context, for the page of the plan.
pub(crate) fn planned<S: Source>(
    viewer: &Viewer,
    path: &FilePath,
    plan: &CompactionPlan<'_, S>,
) -> Result<PlannedLosses, Problem> {
    let config = &viewer.options.config;
    let screen = Screen::new(config);
    let rule_files = RuleFiles::built_in();
    let options = LossOptions { counter: viewer.options.counter, rule_files, screen: &screen };
    let losses = planned_losses(config, path, plan, &options)?;
    let groups = groups(&losses, When::Planned, &mut shown_of(viewer, path)?);
    let facts = losses.facts;
    let may_matter = (!losses.pieces.is_empty()).then(|| losses.may_matter());
    let listed = html! {
        @if !losses.pieces.is_empty() {
            h2.file { "What would leave the context" }
            p.soft {
                "Of " (facts.before) " facts (paths, names, numbers) " (facts.gone)
                " would be gone. Each text can be put back afterwards, or printed."
            }
            @if !losses.changed_files.is_empty() {
                p.soft {
                    "Read and changed in this session: "
                    @for (n, file) in losses.changed_files.iter().enumerate() {
                        @if n > 0 { ", " }
                        bdi { (viewer.shown(file)) }
                    }
                }
            }
            (groups)
        }
    };
    Ok(PlannedLosses { may_matter, listed })
}

/// Redacts, and makes all characters visible.
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
                (groups(it, When::Made, shown))
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
        @match it.by {
            CompactedBy::Agent => { (agent) "’s own" }
            CompactedBy::Epitome => {
                "by epitome" @if let Some(recipe) = &it.recipe { ", recipe " (shown(recipe)) }
            }
        }
        @if let Some(at) = &it.at { ", " (time(at, shown)) }
        @if let Some(line) = it.line { ", line " (line) }
    }
}

/// A time as all pages write it; one of another form as it is.
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
                        (it.again.calls) @if it.again.calls == 1 { " call, " } @else { " calls, " }
                        (it.again.tokens) " tokens"
                        @if let Some(cost) = it.again.cost { ", " (cost) }
                    }
                }
            }
        }
    }
}

/// The pieces in groups, what matters most first.
fn groups(it: &CompactionLosses, when: When, shown: Shown<'_>) -> Markup {
    let is_again = |it: &&Piece| it.lost.again.is_some_and(|it| it.is_loss());
    let mut again: Vec<&Piece> = it.pieces.iter().filter(is_again).collect();
    again.sort_by_key(|it| std::cmp::Reverse(it.lost.again.map(|it| it.result_tokens)));
    let of = |kind: LostKind| -> Vec<&Piece> {
        it.pieces.iter().filter(|it| it.lost.kind == kind).collect()
    };
    let facts: Vec<String> = it.facts_used.iter().take(SHOWN).map(|it| shown(&it.fact)).collect();
    let mut group = |title, pieces: &[&Piece], is_open| group(title, pieces, is_open, when, shown);
    html! {
        section.edits {
            (group(title(LostKind::Rule), &of(LostKind::Rule), true))
            (group(title(LostKind::Plan), &of(LostKind::Plan), true))
            (group("Read or run again", &again, true))
            @if !facts.is_empty() {
                details.card open {
                    summary {
                        b { "Used later though gone" }
                        span.meta { span { (it.facts.used) } }
                    }
                    div.body { p { @for fact in &facts { code { (fact) } " " } } }
                }
            }
            @for kind in LostKind::ALL {
                @if !matches!(kind, LostKind::Rule | LostKind::Plan) {
                    (group(title(kind), &of(kind), is_of_model(kind)))
                }
            }
        }
    }
}

/// Whether it is a text of the model: what it found out is in these, and nowhere else.
fn is_of_model(kind: LostKind) -> bool {
    matches!(kind, LostKind::Decision | LostKind::Reply)
}

fn title(kind: LostKind) -> &'static str {
    match kind {
        LostKind::Rule => "Rules",
        LostKind::Plan => "Plans",
        LostKind::Error => "Errors",
        LostKind::User => "Your messages",
        LostKind::Decision => "Decisions and findings of the model",
        LostKind::Read => "Files that were read",
        LostKind::Command => "Commands",
        LostKind::Change => "Changes of files",
        LostKind::Result => "Other results",
        LostKind::Reply => "Other texts of the model",
        LostKind::Agent => "Texts of the agent",
        LostKind::Image => "Pictures",
    }
}

fn group(title: &str, pieces: &[&Piece], is_open: bool, when: When, shown: Shown<'_>) -> Markup {
    let tokens: epitome_model::Tokens = pieces.iter().map(|it| it.lost.tokens).sum();
    html! {
        @if !pieces.is_empty() {
            details.card open[is_open] {
                summary {
                    b { (title) }
                    span.meta { span { (pieces.len()) } span { (tokens) " tokens" } }
                }
                div.body {
                    ul.pieces {
                        @for piece in pieces.iter().take(SHOWN) { (line(piece, when, shown)) }
                    }
                    @if pieces.len() > SHOWN {
                        p.soft {
                            "and " (pieces.len() - SHOWN) " more: `epitome losses --all-pieces`"
                        }
                    }
                }
            }
        }
    }
}

fn line(piece: &Piece, when: When, shown: Shown<'_>) -> Markup {
    let lost = &piece.lost;
    let name = shown(&lost.name);
    html! {
        li {
            bdi { (name) }
            " " span.soft {
                @if let Some(number) = lost.response { (response_name(number)) ", " }
                "line " (lost.line) ", " (lost.tokens) " tokens" @if lost.partly { " of it" }
                @if lost.resolved == Some(false) { ", not resolved" }
                @if let Some(again) = &lost.again {
                    ", again on line " (again.line) " ("
                    (again.call_tokens + again.result_tokens) " tokens"
                    @if let Some(cost) = piece.cost { ", " (cost) }
                    @if !again.is_loss() { ", because of changes" }
                    ")"
                }
                @if lost.used > 0 { ", " (lost.used) " facts used later" }
            }
            @if when == When::Made {
                @if let Some(command) = piece.restore.as_ref().or(piece.show.as_ref()) {
                    br; code { (shown(command)) }
                }
                (put_back(piece, &name))
            }
        }
    }
}

/// The button that puts a piece back into the session, if it can be.
fn put_back(piece: &Piece, name: &str) -> Markup {
    let reference = piece.restore.as_ref().and_then(|_| piece.reference());
    html! {
        @if piece.back {
            p.there { "It is in the session again." }
        } @else if let Some(reference) = reference {
            form method="post" action="restore" {
                input type="hidden" name="block" value=(reference);
                button.act type="submit" aria-label={ "Put back " (name) } { "Put it back" }
            }
        }
    }
}

/// What can be put back.
fn how(it: &CompactionLosses) -> Markup {
    let is_restored = it.pieces.iter().any(|it| it.restore.is_some());
    let whose = match it.by {
        CompactedBy::Agent => {
            "The agent took these out itself: none can be put back alone. They are still in the \
             file; the commands print them."
        }
        CompactedBy::Epitome => {
            "These are still in the file: none can be put back alone. The commands print them."
        }
    };
    html! {
        @if is_restored {
            p.soft { "The buttons and the commands put single pieces back; all else stays." }
        } @else if !it.pieces.is_empty() {
            p.soft { (whose) }
        }
    }
}
