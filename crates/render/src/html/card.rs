//! The card of a tool call with its result.

use epitome_model::{Bytes, Call, FieldRole, Image, Output, Part, Source, ToolKind, decode, short};
use maud::{Markup, html};
use serde_json::Value;

use super::code::coloured;
use super::layout::Page;
use super::markdown::words;
use super::plain;
use crate::call::{self, FileChange, Line, Outcome};
use crate::reminder::without_reminders;
use crate::shorten::{Limit, cut};
use crate::visible::one_line;
use crate::{ansi, todo, visible};

/// The maximum number of bytes of base64 of an image that is displayed.
const PICTURE: u64 = 8 << 20;

/// The card of a call. It is folded, unless the call is an edit, a patch or a to-do list that did
/// not fail.
///
/// `mark` is shown even if the card is folded.
pub(super) fn card(
    page: &Page<'_, '_>,
    call: &Call,
    output: Option<&Output>,
    mark: Markup,
) -> Markup {
    let source = page.source();
    let arguments = call::arguments(call, source);
    let failed = output.is_some_and(|output| output.error);
    let target = call::target(call, page.session().cwd(), page.session().source);
    let (added, removed) = call::counts(call, source);
    // If a change failed, show the reason before the change.
    let is_refused = failed && call.kind.changes_file();
    let shown = html! { @if let Some(output) = output { (result(page, Some(call), output)) } };
    let is_open = matches!(call.kind, ToolKind::Edit | ToolKind::Todo | ToolKind::Patch) && !failed;
    html! {
        details.card.failed[failed] data-kind=(kind(call.kind)) open[is_open] {
            summary {
                span.glyph aria-hidden="true" { (glyph(call.kind)) }
                b { bdi { (visible(&short(&call.name, 60))) } }
                @if let Some(target) = &target { bdi.target { (target) } }
                span.meta {
                    (mark)
                    @if added > 0 { span.plus { "+" (added) } }
                    @if removed > 0 { span.minus { "−" (removed) } }
                    @match output {
                        Some(output) => (outcome(output, source)),
                        None => span.open { "no result" },
                    }
                }
            }
            div.body {
                @if is_refused { (shown) }
                (input(page, call, arguments.as_ref(), output))
                @if let Some(address) = page.sub_agent(&call.id) {
                    p.sub { a href=(address) { "What the sub-agent did →" } }
                }
                @if !is_refused { (shown) }
            }
        }
    }
}

/// A result; `call` determines how it is shown.
pub(super) fn result(page: &Page<'_, '_>, call: Option<&Call>, output: &Output) -> Markup {
    let source = page.source();
    let kind = call.map_or(ToolKind::Other, |call| call.kind);
    let path = call.and_then(|call| call.target.as_ref()).map(|it| it.read(source));
    html! {
        @for part in &output.parts {
            @match part {
                Part::Text(text) => {
                    @let text = text.read(source);
                    @let (text, found) = without_reminders(&text);
                    @if !text.trim().is_empty() {
                        div.out.error[output.error] {
                            @match kind {
                                ToolKind::Task | ToolKind::Plan | ToolKind::Skill => {
                                    div.md dir="auto" { (words(&text, page.limit(), &page.budget)) }
                                }
                                ToolKind::Read if !output.error => {
                                    (read_text(page, output, &text, path.as_deref().unwrap_or("")))
                                }
                                _ => (terminal(&text, page.limit())),
                            }
                        }
                    }
                    (reminders(page, &found))
                }
                Part::Image(image) => (picture(image, source)),
                Part::Opaque(span) => {
                    (code(page, &String::from_utf8_lossy(&source.at(*span)), "json"))
                }
            }
        }
    }
}

/// An image. A note takes its place if the image is empty or too large, has characters that base64
/// does not have, or is none of PNG, JPEG, GIF and WebP, which cannot contain a script.
pub(super) fn picture(image: &Image, source: &dyn Source) -> Markup {
    let known = ["image/png", "image/jpeg", "image/gif", "image/webp"];
    let media = known.into_iter().find(|known| known.eq_ignore_ascii_case(&image.media));
    let size = Bytes(image.data.len() * 3 / 4);
    let data = match media {
        Some(_) if image.data.len() <= PICTURE => decode(&source.at(image.data)).into_owned(),
        Some(_) | None => String::new(),
    };
    let is_base64 =
        data.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'='));
    match media {
        Some(media) if !data.is_empty() && is_base64 => html! {
            img.picture loading="lazy" alt={ "A picture of the session, " (size) }
                src={ "data:" (media) ";base64," (data) };
        },
        Some(_) | None => html! {
            p.gap { "a picture (" (one_line(&image.media)) ", " (size) ") that is not shown" }
        },
    }
}

/// Code, highlighted in its language.
pub(super) fn code(page: &Page<'_, '_>, text: &str, language: &str) -> Markup {
    let shown = cut(text, page.limit());
    html! {
        pre.code { code { (coloured(&shown.head, language, &page.budget)) } }
        @if let Some(gap) = &shown.gap {
            p.gap { (gap) }
            pre.code { code { (plain(&shown.tail)) } }
        }
    }
}

fn kind(kind: ToolKind) -> &'static str {
    match kind {
        ToolKind::Read | ToolKind::List | ToolKind::Search => "look",
        ToolKind::Write | ToolKind::Edit | ToolKind::Patch => "change",
        ToolKind::Shell => "shell",
        ToolKind::Fetch => "fetch",
        ToolKind::Task => "task",
        ToolKind::Todo | ToolKind::Plan => "plan",
        _ => "other",
    }
}

fn glyph(kind: ToolKind) -> &'static str {
    match kind {
        ToolKind::Read => "≡",
        ToolKind::List => "⋮",
        ToolKind::Search => "⌕",
        ToolKind::Write => "+",
        ToolKind::Edit | ToolKind::Patch => "±",
        ToolKind::Shell => "$",
        ToolKind::Fetch => "↓",
        ToolKind::Task => "⤷",
        ToolKind::Todo | ToolKind::Plan => "✓",
        ToolKind::Ask => "?",
        ToolKind::Skill => "★",
        _ => "·",
    }
}

fn outcome(output: &Output, source: &dyn Source) -> Markup {
    match call::outcome(output, source) {
        Outcome::Left(text) => html! { span.left { (plain(&text)) } },
        Outcome::Failed => html! { span.bad { "failed" } },
        Outcome::Pictures(1) => html! { span { "a picture" } },
        Outcome::Pictures(n) => html! { span { (n) " pictures" } },
        Outcome::Lines(lines) => html! { span { (lines) } },
    }
}

fn input(
    page: &Page<'_, '_>,
    call: &Call,
    arguments: Option<&Value>,
    output: Option<&Output>,
) -> Markup {
    let source = page.source();
    if let Some(list) = arguments.filter(|_| call.kind == ToolKind::Todo).and_then(todo::list) {
        return html! {
            ul.todo { @for (state, text) in &list { (todo_item(*state, text)) } }
        };
    }
    let path = call.target.as_ref().map(|it| it.read(source).into_owned()).unwrap_or_default();
    let lines = output.and_then(|output| call::line_numbers(call, output, source));
    let rest = call::rest(call, arguments, source).len();
    let telling = call::telling(call, arguments, lines.as_ref(), source);
    html! {
        @if let Some(lines) = lines.filter(|lines| lines.start > 1 || telling.len() < rest) {
            p.arg { "lines " (lines.start) "–" (lines.end - 1) }
        }
        @for (name, value) in &telling { (named(page, name, value)) }
        @if call.kind.changes_file() {
            @for change in call::changes(&call.fields, source) { (changed(page, &change, &path)) }
        }
        @for field in call.fields.iter().filter(|_| !call.kind.changes_file()) {
            @let text = field.text.read(source);
            @match field.role {
                FieldRole::Command => div.cmd { (code(page, &text, "sh")) },
                FieldRole::Prompt => div.md.prompt dir="auto" {
                    (words(&text, page.limit(), &page.budget))
                },
                _ => (named(page, &field.name, &text)),
            }
        }
        @if let Some(text) = call::unknown(call, arguments, source) { (code(page, &text, "json")) }
    }
}

fn named(page: &Page<'_, '_>, name: &str, text: &str) -> Markup {
    let is_short = text.len() < 100 && !text.contains('\n');
    html! {
        @if is_short {
            p.arg { b { bdi { (visible(name)) } } " " (plain(text)) }
        } @else {
            p.arg { b { bdi { (visible(name)) } } }
            (code(page, text, ""))
        }
    }
}

fn changed(page: &Page<'_, '_>, change: &FileChange, path: &str) -> Markup {
    match change {
        FileChange::Content(text) => code(page, text, path),
        FileChange::Patch(text) => patch(page, text),
        FileChange::Named(name, text) => named(page, name, text),
        FileChange::Becomes(old, new) if old.len() + new.len() < 200 => html! {
            p.left { (plain(old)) " → " (plain(new)) }
        },
        FileChange::Becomes(old, new) => html! {
            (code(page, old, "")) p.gap { "becomes" } (code(page, new, ""))
        },
        FileChange::Lines(lines) => html! {
            pre.diff { code {
                @for line in lines {
                    @match line {
                        Line::Same(line) => span { "  " (plain(line)) "\n" },
                        Line::Added(line) => ins { "+ " (plain(line)) "\n" },
                        Line::Removed(line) => del { "− " (plain(line)) "\n" },
                        Line::Gap => span.hunk { "⋯\n" },
                    }
                }
            } }
        },
    }
}

fn patch(page: &Page<'_, '_>, patch: &str) -> Markup {
    let shown = cut(patch, page.limit());
    html! {
        pre.diff { code {
            @for line in shown.head.lines() {
                @match line.as_bytes() {
                    [b'+', ..] => ins { (plain(line)) "\n" },
                    [b'-', ..] => del { (plain(line)) "\n" },
                    [b'*', b'*', b'*', ..] | [b'@', b'@', ..] => span.hunk { (plain(line)) "\n" },
                    _ => span { (plain(line)) "\n" },
                }
            }
        } }
        @if let Some(gap) = &shown.gap {
            p.gap { (gap) }
            pre.code { code { (plain(&shown.tail)) } }
        }
    }
}

fn todo_item(state: todo::State, text: &str) -> Markup {
    let (class, mark, said) = match state {
        todo::State::Open => ("open", "☐", "to do: "),
        todo::State::Active => ("active", "◐", "being done: "),
        todo::State::Done => ("done", "☑", "done: "),
    };
    html! {
        li class=(class) {
            span aria-hidden="true" { (mark) " " }
            span.sr { (said) }
            bdi { (plain(text)) }
        }
    }
}

/// A file's text, highlighted, without the line numbers that an agent put before its lines.
fn read_text(page: &Page<'_, '_>, output: &Output, text: &str, path: &str) -> Markup {
    if !output.numbered || epitome_model::is_left_by_recipe(text) {
        return code(page, text, path);
    }
    code(page, &call::without_numbers(text), path)
}

/// The reminders that an agent put into a text, folded.
pub(super) fn reminders(page: &Page<'_, '_>, reminders: &[&str]) -> Markup {
    html! {
        @for reminder in reminders {
            details.note { summary { "System reminder" } (terminal(reminder, page.limit())) }
        }
    }
}

/// The output of a command, with its terminal colours.
fn terminal(text: &str, limit: Limit) -> Markup {
    let shown = cut(text, limit);
    html! {
        pre.term { (coloured_runs(&shown.head)) }
        @if let Some(gap) = &shown.gap {
            p.gap { (gap) }
            pre.term { (coloured_runs(&shown.tail)) }
        }
    }
}

fn coloured_runs(text: &str) -> Markup {
    if !text.contains(['\u{1b}', '\r']) {
        return plain(text);
    }
    html! {
        @for run in ansi::runs(text) {
            @let classes = run.style.classes();
            @if classes.is_empty() { (plain(&run.text)) }
            @else { span class=(classes) { (plain(&run.text)) } }
        }
    }
}
