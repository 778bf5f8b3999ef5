//! What the compactions of a session took out of its context, as a page.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use epitome::ops::{
    CompactedBy, CompactionLosses, LossOptions, LossReport, OpenSession, Piece, session_losses,
};
use epitome::redact::Screen;
use epitome_passes::RuleFiles;
use epitome_passes::losses::LostKind;
use epitome_redact::Redactor;
use maud::{Markup, html};

use crate::page::{UP, bar, page as frame, run_blocking};
use crate::viewer::{Viewer, name};

/// Pieces shown of each group, and facts.
const SHOWN: usize = 100;
/// Characters of a name.
const WIDTH: usize = 200;

/// Makes a text of the session fit to be shown.
type Shown<'a> = &'a mut dyn FnMut(&str) -> String;

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
        let mut redactor = viewer.options.finder.as_ref().map(Redactor::new);
        if let Some(redactor) = &mut redactor {
            // A secret found once is redacted everywhere.
            redactor.learn(&session.loaded()?.source);
        }
        let mut shown = |text: &str| {
            let text = redactor.as_mut().map_or(text.into(), |redactor| redactor.text(text));
            epitome_model::short(&epitome_render::visible(&text), WIDTH)
        };
        let body = body(&report, &mut shown);
        Ok(frame("What compactions took", UP, &body).into_response())
    });
    told.await.unwrap_or_else(|problem| problem)
}

fn body(report: &LossReport, shown: Shown<'_>) -> Markup {
    let of = report.compactions.len();
    html! {
        a.skip href="#content" { "To the report" }
        (bar(UP, &html! { span.search {} }))
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
        @match it.by {
            CompactedBy::Agent => { (agent) "’s own" }
            CompactedBy::Epitome => {
                "by epitome" @if let Some(recipe) = &it.recipe { ", recipe " (shown(recipe)) }
            }
        }
        @if let Some(at) = &it.at { ", " time { (shown(at)) } }
        @if let Some(line) = it.line { ", line " (line) }
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
                        (it.again.calls) " calls, " (it.again.tokens) " tokens"
                        @if let Some(cost) = it.again.cost { ", " (cost) }
                    }
                }
            }
        }
    }
}

/// The pieces in groups, what matters most first.
fn groups(it: &CompactionLosses, shown: Shown<'_>) -> Markup {
    let is_again = |it: &&Piece| it.lost.again.is_some_and(|it| it.is_loss());
    let mut again: Vec<&Piece> = it.pieces.iter().filter(is_again).collect();
    again.sort_by_key(|it| std::cmp::Reverse(it.lost.again.map(|it| it.result_tokens)));
    let of = |kind: LostKind| -> Vec<&Piece> {
        it.pieces.iter().filter(|it| it.lost.kind == kind).collect()
    };
    let facts: Vec<String> = it.facts_used.iter().take(SHOWN).map(|it| shown(&it.fact)).collect();
    html! {
        section.edits {
            (group("Rules that left", &of(LostKind::Rule), true, shown))
            (group("Plans and lists that left", &of(LostKind::Plan), true, shown))
            (group("Read or run again", &again, true, shown))
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
                    (group(title(kind), &of(kind), false, shown))
                }
            }
        }
    }
}

fn title(kind: LostKind) -> &'static str {
    match kind {
        LostKind::Rule => "Rules",
        LostKind::Plan => "Plans",
        LostKind::Error => "Errors",
        LostKind::User => "Your messages",
        LostKind::Read => "Files that were read",
        LostKind::Command => "Commands",
        LostKind::Change => "Changes of files",
        LostKind::Result => "Other results",
        LostKind::Reply => "Texts of the model",
        LostKind::Agent => "Texts of the agent",
        LostKind::Image => "Pictures",
    }
}

fn group(title: &str, pieces: &[&Piece], is_open: bool, shown: Shown<'_>) -> Markup {
    let tokens: epitome_model::Tokens = pieces.iter().map(|it| it.lost.tokens).sum();
    html! {
        @if !pieces.is_empty() {
            details.card open[is_open] {
                summary {
                    b { (title) }
                    span.meta { span { (pieces.len()) } span { (tokens) " tokens" } }
                }
                div.body {
                    ul.pieces { @for piece in pieces.iter().take(SHOWN) { (line(piece, shown)) } }
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

fn line(piece: &Piece, shown: Shown<'_>) -> Markup {
    let lost = &piece.lost;
    html! {
        li {
            bdi { (shown(&lost.name)) }
            " " span.soft {
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
            @if let Some(command) = piece.restore.as_ref().or(piece.show.as_ref()) {
                br; code { (shown(command)) }
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
            p.soft { "The commands put single pieces back; all else stays." }
        } @else if !it.pieces.is_empty() {
            p.soft { (whose) }
        }
    }
}
