//! The dry run of a compaction as a page: the savings, and each edit.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use epitome::archive::Generation;
use epitome::compaction::{PreparedCompaction, Saving};
use epitome::ops::{Change, Compact, CompactReport, OpenSession, SizeRow};
use epitome::recipes;
use epitome_model::{Source, Tokens, plural};
use epitome_passes::{BUILT_IN, Recipe};
use epitome_redact::Redactor;
use epitome_render::{DiffLine, LineChange, diff_lines};
use maud::{Markup, html};
use serde::Deserialize;

use crate::losses::{self, PlannedLosses};
use crate::options::Options;
use crate::page::{Here, Query, UP, bar, page as frame, run_blocking};
use crate::problem::Problem;
use crate::query::encoded;
use crate::viewer::{Viewer, name};

/// The maximum number of tools and of files whose savings are shown.
const SAVINGS: usize = 6;
/// The maximum number of edits that are shown of each file.
const EDITS: usize = 200;
/// The number of lines that are shown of a longer run of removed, added or equal lines, and the
/// maximum number of characters that are shown of a line.
const RUN: usize = 12;
const WIDTH: usize = 400;

/// The query parameters: the name of the recipe (if empty, that of the settings), and the pass
/// whose edits are shown.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct PlanQuery {
    #[serde(default)]
    recipe: String,
    /// The pass whose edits are shown. In a file in which no edit of this pass saves tokens, the
    /// edits of all passes are shown.
    #[serde(default)]
    pass: String,
}

impl PlanQuery {
    /// The recipe as `epitome compact` would run it. The name comes from a URL, so it is never used
    /// as the path of a file.
    pub(crate) fn recipe(&self, viewer: &Viewer) -> Result<Recipe, Problem> {
        let Options { config, settings, .. } = &viewer.options;
        let name = Some(self.recipe.as_str()).filter(|name| !name.is_empty());
        if let Some(name) = name
            && recipes::all(config).iter().all(|it| it.name != name)
        {
            let what = format!("no recipe is called `{name}`");
            return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, what));
        }
        Ok(recipes::resolve(config, settings, name)?)
    }
}

/// A file of a session, and its edits.
struct PlannedFile {
    /// The name of the file on the page.
    title: String,
    /// The edits that save most tokens, the largest saving first; only those of one pass, if one is
    /// chosen.
    edits: Vec<Edit>,
    /// The number of edits that are not in `edits` because there are too many.
    more: usize,
    /// The number of edits that save tokens, by pass.
    passes: BTreeMap<String, u64>,
    /// The number of edits that save no tokens, because they are in text that is not sent to a
    /// model.
    unread: usize,
    violations: Vec<String>,
}

/// An edit, redacted.
struct Edit {
    line: u64,
    what: String,
    pass: &'static str,
    saved: Tokens,
    lines: Vec<DiffLine>,
}

pub(crate) async fn page(
    State(viewer): State<Arc<Viewer>>,
    Path((_, key)): Path<(String, String)>,
    Query(asked): Query<PlanQuery>,
) -> Response {
    let response = run_blocking(viewer, move |viewer| {
        let session = viewer.session(&key)?;
        let recipe = asked.recipe(viewer)?;
        let counter = viewer.options.counter;
        let mut parts = Vec::new();
        let config = &viewer.options.config;
        let opened = OpenSession::new(config, &session.path);
        let run = config.begin_run("serve");
        let mut left = None;
        let mut failed = None;
        let compact = Compact::with_settings(&viewer.options.settings, &recipe, counter, &run);
        let planned = compact.plan(&opened, |path, planned| {
            left.get_or_insert_with(|| losses::planned(viewer, path, planned));
            let redactor = match viewer.redactor(path) {
                Ok(redactor) => redactor,
                Err(err) => {
                    failed.get_or_insert(err);
                    return;
                }
            };
            let title = match parts.len() {
                0 => "The session".to_owned(),
                n => format!("Sub-agent {n}"),
            };
            parts.push(PlannedFile::from_plan(viewer, redactor, title, planned, &asked.pass));
        })?;
        if let Some(err) = failed {
            return Err(err.into());
        }
        let left = left.transpose()?.unwrap_or_default();
        let body = body(viewer, &opened, (&asked, &recipe), &planned, (&parts, &left));
        Ok(frame("What compacting would save", UP, &body).into_response())
    });
    response.await.unwrap_or_else(|problem| problem)
}

impl PlannedFile {
    fn from_plan<S: Source>(
        viewer: &Viewer,
        redactor: Option<Redactor<'_>>,
        title: String,
        planned: &PreparedCompaction<'_, S>,
        pass: &str,
    ) -> PlannedFile {
        let mut redactor = redactor;
        if let Some(redactor) = &mut redactor {
            redactor.learn(&planned.session.source);
        }
        let mut shown = |text: &str| {
            let text = redactor.as_mut().map_or(text.into(), |redactor| redactor.text(text));
            epitome_render::visible(&text)
        };
        let saving: Vec<_> =
            planned.plan.edits.iter().filter(|edit| edit.tokens > Tokens(0)).collect();
        let mut passes = BTreeMap::new();
        saving.iter().for_each(|it| *passes.entry(it.edit.pass.to_owned()).or_default() += 1);
        let pass = Some(pass).filter(|pass| passes.contains_key(*pass));
        let is_asked = |name: &str| pass.is_none_or(|pass| pass == name);
        let asked = saving.iter().filter(|it| is_asked(it.edit.pass)).count();
        let unread = planned.plan.edits.len() - saving.len();
        let more = asked.saturating_sub(EDITS);
        let all = planned.describe_edits_by_saving(viewer.options.counter);
        let edits = all.filter(|edit| is_asked(edit.pass)).take(EDITS).map(|edit| Edit {
            line: edit.line,
            what: shown(&edit.what),
            pass: edit.pass,
            saved: edit.saved,
            lines: diff_lines(&shown(&edit.before), &shown(&edit.after), RUN),
        });
        let edits = edits.collect();
        let violations =
            planned.violations.iter().map(|violation| shown(&violation.to_string())).collect();
        PlannedFile { title, edits, more, passes, unread, violations }
    }
}

fn body(
    viewer: &Viewer,
    session: &OpenSession<'_>,
    (asked, recipe): (&PlanQuery, &Recipe),
    planned: &CompactReport,
    (parts, left): (&[PlannedFile], &PlannedLosses),
) -> Markup {
    let generations = session.undoable();
    let is_sound = parts.iter().all(|part| part.violations.is_empty());
    html! {
        a.skip href="#content" { "To the plan" }
        (bar(UP, Here::Session))
        main #content.index.plan {
            p.of { a href=(name(0).file(0)) { "‹ " bdi { (title_of(viewer, session)) } } }
            h1 { "What compacting would save" }
            (choice(viewer, asked, recipe))
            (figures(planned))
            (savings(viewer, &planned.file.savings.tools, "Saved by tool, in tokens"))
            (savings(viewer, &planned.file.savings.files, "Saved by file, in tokens"))
            (matters(left))
            @for user in &planned.file.in_use {
                p.hint role="status" {
                    "In use by " bdi { (viewer.redacted(&user.name)) } " (process " (user.pid) "): "
                    "close it before compacting."
                }
            }
            @for violation in parts.iter().flat_map(|part| &part.violations) {
                p.problem role="alert" { "Refused: it would violate an invariant: " (violation) }
            }
            div.acts {
                @if is_sound && !planned.is_nothing() {
                    form method="post" action="compact" {
                        input type="hidden" name="recipe" value=(asked.recipe);
                        button.act.go type="submit" { "Compact it" }
                    }
                }
                @if planned.is_nothing() {
                    p.none {
                        "There is nothing to do with this recipe"
                        @if !generations.is_empty() { ": the session is compacted already" }
                        "."
                    }
                }
                (restore(&generations))
            }
            p.soft {
                "What is removed is written to the archive first, and restoring it is checked for "
                "this file; only then is the file replaced. Nothing has been written yet."
            }
            (left.listed)
            @for part in parts { (edits(part, asked)) }
        }
    }
}

/// The largest savings, with bars.
fn savings(viewer: &Viewer, savings: &[Saving], heading: &str) -> Markup {
    let largest = savings.first().map_or(0, |it| it.tokens.0);
    html! {
        @if savings.len() > 1 {
            section.savings {
                h2 { (heading) }
                dl {
                    @for it in savings.iter().take(SAVINGS) {
                        div {
                            dt { bdi { (viewer.redacted(&it.of)) } }
                            dd {
                                progress max=(largest) value=(it.tokens.0) aria-hidden="true" {}
                                " " (it.tokens)
                            }
                        }
                    }
                }
                @if savings.len() > SAVINGS { p.soft { "and " (savings.len() - SAVINGS) " more" } }
            }
        }
    }
}

/// The losses that may matter, shown before the button.
fn matters(left: &PlannedLosses) -> Markup {
    html! {
        @if let Some(matters) = &left.may_matter {
            p {
                @if matters.is_empty() {
                    "No rule, plan, decision, unresolved error or message of yours would leave the "
                    "context."
                } @else {
                    "Would leave the context, and may matter: " b { (matters.join(", ")) } "."
                }
            }
        }
    }
}

/// The session's title, or its id.
fn title_of(viewer: &Viewer, session: &OpenSession<'_>) -> String {
    let head = session.load().ok().map(|loaded| &loaded.transcript.head);
    let title = head.and_then(|head| head.title.as_deref().or(head.id.as_deref()));
    viewer.redacted(&epitome_model::short(title.unwrap_or("the session"), 100))
}

/// The button that restores the session. Empty if no compaction is in effect.
pub(crate) fn restore(generations: &[Generation]) -> Markup {
    let compactions = generations.iter().filter(|it| !it.is_restore()).count();
    html! {
        @if compactions > 0 {
            form method="post" action="restore" {
                button.act type="submit" { "Restore it" }
                span.soft {
                    "compacted " (plural(compactions as u64, "time"))
                }
            }
        }
    }
}

fn choice(viewer: &Viewer, asked: &PlanQuery, recipe: &Recipe) -> Markup {
    let known = recipes::all(&viewer.options.config);
    // The recipe of the settings may be a path, which is not among the names.
    let default = viewer.options.settings.recipe().unwrap_or(BUILT_IN[0].0);
    let is_known = known.iter().any(|it| it.name == default);
    let chosen = if asked.recipe.is_empty() { default } else { &asked.recipe };
    html! {
        form.choice method="get" {
            label for="recipe" { "Recipe" }
            select #recipe name="recipe" data-submit {
                @if !is_known {
                    option value="" selected[asked.recipe.is_empty()] { "of the settings" }
                }
                @for it in &known {
                    option value=(it.name) selected[it.name == chosen] { (it.name) }
                }
            }
            noscript { button.act type="submit" { "Show" } }
            span.soft { (viewer.redacted(&recipe.about)) }
        }
    }
}

/// The sizes before and after, the price and the number of edits, of the session and of each of its
/// sub-agents.
pub(crate) fn figures(report: &CompactReport) -> Markup {
    let files = report.all().count();
    html! {
        @for (n, file) in report.all().enumerate() {
            (heading_of(n, files))
            dl.figures {
                @for row in file.sizes(report.counter) { (size(&row)) }
                @if let Some(quote) = &file.quote {
                    div {
                        dt { "price, at the list prices of " (quote.model) }
                        dd.words { (quote.next_request()) ": " (quote.balance()) }
                    }
                }
                div {
                    dt { "edits" }
                    dd.words {
                        (epitome_render::edits(&file.edits).join(", ")) " "
                        @if let Some(it) = &file.stands_for { (it.to_string()) }
                        @else if file.edits.is_empty() { "none" }
                    }
                }
            }
        }
    }
}

/// The heading of the file with the index `n` among `of` files; empty if there is only one file.
pub(crate) fn heading_of(n: usize, of: usize) -> Markup {
    html! {
        @match (n, of) {
            (_, 1) => {},
            (0, _) => h2.file { "The session" },
            (n, _) => h2.file { "Sub-agent " (n) },
        }
    }
}

/// A size before and after, and the difference.
pub(crate) fn size(row: &SizeRow) -> Markup {
    let Change { before, after } = row.size;
    html! {
        div {
            dt { (row.name) @if !row.unit.is_empty() { ", " (row.unit) } }
            dd {
                (row.words.before) " → " (row.words.after) " "
                (change(row)) (saved_of(before, after))
            }
        }
    }
}

/// The saved part of a size, as a bar. Empty unless the size becomes smaller.
fn saved_of(before: u64, after: u64) -> Markup {
    html! {
        @if after < before {
            progress max=(before) value=(before - after) aria-label="Part that is saved" {}
        }
    }
}

/// The change in per cent.
fn change(row: &SizeRow) -> Markup {
    let Change { before, after } = row.size;
    let percent = row.percent().replace('-', "−");
    html! {
        @if before == after { span.soft { "the same" } }
        @else if after < before { span.plus { (percent) } }
        @else { span.minus { (percent) } }
    }
}

/// Links that show the edits of all passes, or of one.
fn passes(part: &PlannedFile, asked: &PlanQuery) -> Markup {
    let is_one = part.passes.contains_key(&asked.pass);
    let of = |pass: &str| format!("?recipe={}&pass={}", encoded(&asked.recipe), encoded(pass));
    html! {
        @if part.passes.len() > 1 {
            nav.kinds aria-label="Kinds of changes" {
                a href=(of("")) aria-current=[(!is_one).then_some("true")] { "all" }
                @for (pass, n) in &part.passes {
                    @let words = epitome_render::edits(&[(pass.clone(), *n)].into());
                    a href=(of(pass)) aria-current=[(*pass == asked.pass).then_some("true")] {
                        (words.join(", "))
                    }
                }
            }
        }
    }
}

/// A note that only the changes that save tokens are listed; empty if all changes save tokens.
fn not_listed(part: &PlannedFile) -> Markup {
    let listed: u64 = part.passes.values().sum();
    html! {
        @if part.unread > 0 {
            p.soft {
                "Listed are the " (listed) " changes that save tokens of the next request. The "
                "other " (part.unread) " of those counted above are in what is no longer sent, or "
                "in fields that no model reads: they save disk."
            }
        }
    }
}

fn edits(part: &PlannedFile, asked: &PlanQuery) -> Markup {
    html! {
        @if !part.edits.is_empty() {
            section.edits {
                h2 { (part.title) ": what changes, the largest saving first" }
                (passes(part, asked))
                (not_listed(part))
                @for (n, edit) in part.edits.iter().enumerate() {
                    details.card open[n < 3] {
                        summary {
                            span.meta-line { "line " (edit.line) }
                            b { bdi { (edit.what) } }
                            span.meta {
                                span { (edit.pass) }
                                @if edit.saved.0 > 0 { span { "−" (edit.saved) " tokens" } }
                            }
                        }
                        div.body {
                            pre.diff { code { @for line in &edit.lines { (line_of(line)) } } }
                        }
                    }
                }
                @if part.more > 0 {
                    p.soft {
                        "and " (part.more) " more: `epitome compact --dry-run --diff` shows all"
                    }
                }
            }
        }
    }
}

fn line_of(line: &DiffLine) -> Markup {
    html! {
        @match line {
            DiffLine::Shown(change, text) => {
                @let text = epitome_model::short(text, WIDTH);
                @match change {
                    LineChange::Removed => del { "- " (text) },
                    LineChange::Added => ins { "+ " (text) },
                    LineChange::Same => span { "  " (text) },
                }
            }
            DiffLine::Hidden(_, lines) => span.hunk { "… " (lines) " more lines" },
        }
    }
}
