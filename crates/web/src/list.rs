//! The list of sessions.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use axum::extract::State;
use axum::response::{Html, IntoResponse as _, Response};
use epitome::list::{Listed, SessionInfo};
use epitome_model::{Bytes, Tokens};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use maud::{Markup, html};
use serde::{Deserialize, Serialize};

use crate::page::{Query, bar, page as frame, run_blocking};
use crate::session::page_of;
use crate::session_cache::CachedSession;
use crate::viewer::Viewer;

/// The number of sessions on a page of the list.
const PAGE: usize = 100;
/// The number of projects offered as a filter: those with the most sessions.
const PROJECTS: usize = 200;

/// The query parameters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct ListQuery {
    /// Words to find in the title, the project, the id or the agent.
    #[serde(skip_serializing_if = "String::is_empty")]
    q: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    agent: String,
    /// The [`crate::session_cache::key`] of the folder.
    #[serde(skip_serializing_if = "String::is_empty")]
    project: String,
    #[serde(skip_serializing_if = "Sort::is_default")]
    sort: Sort,
    /// The page number, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    page: Option<usize>,
    /// Return only the list, for the script.
    #[serde(skip_serializing)]
    part: Option<String>,
}

/// The sort order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Sort {
    /// The newest first.
    #[default]
    Time,
    /// The largest on disk first.
    Size,
    /// The largest context first.
    Context,
    /// The largest saving first.
    Saving,
}

impl Sort {
    const ALL: [Sort; 4] = [Sort::Time, Sort::Size, Sort::Context, Sort::Saving];

    fn is_default(&self) -> bool {
        *self == Sort::default()
    }

    fn value(self) -> &'static str {
        match self {
            Sort::Time => "time",
            Sort::Size => "size",
            Sort::Context => "context",
            Sort::Saving => "saving",
        }
    }

    fn label(self) -> &'static str {
        match self {
            Sort::Time => "newest first",
            Sort::Size => "largest on disk",
            Sort::Context => "largest context",
            Sort::Saving => "most to save",
        }
    }
}

/// The sessions found, and the totals.
struct Found {
    /// The sessions on this page of the list.
    shown: Vec<CachedSession>,
    page: usize,
    pages: usize,
    matching: usize,
    all: usize,
    /// The number of sessions that were not read yet.
    unread: usize,
    disk: Bytes,
    context: Tokens,
    saving: Tokens,
    agents: BTreeMap<&'static str, usize>,
    projects: Vec<(String, String, usize)>,
}

pub(crate) async fn page(
    State(viewer): State<Arc<Viewer>>,
    Query(asked): Query<ListQuery>,
) -> Response {
    let told = run_blocking(viewer, move |viewer| {
        viewer.shelf.refresh(viewer.files());
        let kept = viewer.shelf.list(|kept| asked.first(kept));
        let found = asked.find(kept);
        let list = list(viewer, &asked, &found);
        Ok(match asked.part {
            Some(_) => Html(list.into_string()).into_response(),
            None => frame("Sessions", "", &body(viewer, &asked, &found, &list)).into_response(),
        })
    });
    told.await.unwrap_or_else(|problem| problem)
}

impl ListQuery {
    /// The sessions that the page will show first, as far as is known without reading.
    fn first(&self, kept: &[CachedSession]) -> Vec<usize> {
        if self.needs_all() {
            return (0..kept.len()).collect();
        }
        let of_agent = kept.iter().enumerate().filter(|(_, it)| self.is_of_agent(it));
        let from = (self.page.unwrap_or(1).max(1) - 1).saturating_mul(PAGE);
        of_agent.map(|(at, _)| at).skip(from).take(PAGE).collect()
    }

    /// Whether the result depends on the content of sessions.
    fn needs_all(&self) -> bool {
        let by_words = !self.q.trim().is_empty() || !self.project.is_empty();
        by_words || matches!(self.sort, Sort::Context | Sort::Saving)
    }

    fn is_of_agent(&self, kept: &CachedSession) -> bool {
        self.agent.is_empty() || self.agent == kept.file.agent
    }

    fn find(&self, kept: Vec<CachedSession>) -> Found {
        let all = kept.len();
        let unread = kept.iter().filter(|kept| kept.seen.is_none()).count();
        let mut agents = BTreeMap::new();
        let mut folders: HashMap<String, usize> = HashMap::new();
        for kept in &kept {
            *agents.entry(kept.file.agent).or_default() += 1;
            if let Some(cwd) = glance(kept).and_then(|seen| seen.cwd.as_deref()) {
                *folders.entry(cwd.to_owned()).or_default() += 1;
            }
        }
        let mut projects: Vec<(String, String, usize)> =
            folders.into_iter().map(|(cwd, n)| (key_of(&cwd), cwd, n)).collect();
        projects.sort_by(|one, other| other.2.cmp(&one.2).then_with(|| one.1.cmp(&other.1)));
        projects.truncate(PROJECTS);
        projects.sort_by(|one, other| one.1.cmp(&other.1));
        let mut shown = kept;
        shown.retain(|kept| self.takes(kept));
        let (mut context, mut saving) = (Tokens(0), Tokens(0));
        for seen in shown.iter().filter_map(glance) {
            context += seen.context.unwrap_or(Tokens(0));
            saving += seen.saving;
        }
        let disk = shown.iter().map(size).sum();
        match self.sort {
            // They are already in this order.
            Sort::Time => {}
            Sort::Size => shown.sort_by_key(|it| std::cmp::Reverse(size(it))),
            Sort::Context => {
                shown.sort_by_key(|it| std::cmp::Reverse(glance(it).and_then(|it| it.context)));
            }
            Sort::Saving => {
                shown.sort_by_key(|it| std::cmp::Reverse(glance(it).map(|it| it.saving)));
            }
        }
        let matching = shown.len();
        let pages = matching.div_ceil(PAGE).max(1);
        let page = self.page.unwrap_or(1).clamp(1, pages);
        let shown = shown.into_iter().skip((page - 1) * PAGE).take(PAGE).collect();
        Found { shown, page, pages, matching, all, unread, disk, context, saving, agents, projects }
    }

    fn takes(&self, kept: &CachedSession) -> bool {
        let cwd = glance(kept).and_then(|seen| seen.cwd.as_deref());
        let of_project =
            self.project.is_empty() || cwd.is_some_and(|cwd| key_of(cwd) == self.project);
        if !of_project || !self.is_of_agent(kept) {
            return false;
        }
        let title = glance(kept).and_then(|seen| seen.title.as_deref());
        let said = [Some(kept.file.agent), Some(&*kept.file.id), cwd, title];
        let said = said.map(|text| text.unwrap_or_default().to_lowercase()).join("\n");
        self.q.to_lowercase().split_whitespace().all(|word| said.contains(word))
    }

    /// The address of another page of the same list.
    fn address(&self, page: usize) -> String {
        let mut address = String::from("?");
        let mut add = |name: &str, value: &str| {
            if !value.is_empty() {
                address.push_str(&format!("{name}={}&", encoded(value)));
            }
        };
        add("q", &self.q);
        add("agent", &self.agent);
        add("project", &self.project);
        add("sort", if self.sort.is_default() { "" } else { self.sort.value() });
        address.push_str(&format!("page={page}"));
        address
    }
}

fn body(viewer: &Viewer, asked: &ListQuery, found: &Found, list: &Markup) -> Markup {
    let theme_only = html! { span.search {} };
    html! {
        a.skip href="#content" { "To the sessions" }
        (bar("", &theme_only))
        main #content.index.wide {
            form #filter.filter role="search" method="get" {
                input #q type="search" name="q" value=(asked.q) autocomplete="off"
                    placeholder="Find sessions by their words  /" aria-label="Find sessions";
                select name="agent" aria-label="Agent" {
                    option value="" { "all agents" }
                    @for (agent, n) in &found.agents {
                        option value=(agent) selected[asked.agent == **agent] {
                            (agent) " (" (n) ")"
                        }
                    }
                }
                select name="project" aria-label="Project" {
                    option value="" { "all projects" }
                    @for (key, cwd, n) in &found.projects {
                        option value=(key) selected[asked.project == *key] {
                            (viewer.shown(cwd)) " (" (n) ")"
                        }
                    }
                }
                select name="sort" aria-label="Order" {
                    @for sort in Sort::ALL {
                        option value=(sort.value()) selected[asked.sort == sort] { (sort.label()) }
                    }
                }
                noscript { button type="submit" { "Find" } }
            }
            div #sessions { (list) }
            section #hits aria-label="Found in what was said" aria-live="polite" hidden {}
        }
    }
}

fn list(viewer: &Viewer, asked: &ListQuery, found: &Found) -> Markup {
    html! {
        p.sum {
            b { (found.matching) @if found.matching == 1 { " session" } @else { " sessions" } }
            @if found.matching != found.all { " of " (found.all) }
            span { (found.disk) " on disk" }
            @if found.context.0 > 0 {
                span title="estimated" { "~" (found.context) " tokens of messages" }
                span { "compacting saves ~" (found.saving) }
            }
            @if found.unread > 0 {
                span #unread role="status" {
                    "reading: " (found.all - found.unread) " of " (found.all)
                }
            }
        }
        @if found.matching == 0 { p.none { "No title, project or id matches." } }
        ol.rows {
            @for kept in &found.shown { (row(viewer, kept)) }
        }
        @if found.pages > 1 {
            nav.between aria-label="Pages" {
                @if found.page > 1 {
                    a rel="prev" href=(asked.address(found.page - 1)) { "← Page " (found.page - 1) }
                } @else { span {} }
                span.count { "page " (found.page) " of " (found.pages) }
                @if found.page < found.pages {
                    a rel="next" href=(asked.address(found.page + 1)) {
                        "Page " (found.page + 1) " →"
                    }
                } @else { span {} }
            }
        }
    }
}

fn row(viewer: &Viewer, kept: &CachedSession) -> Markup {
    let address = page_of(&kept.file.path);
    let when = Timestamp::try_from(kept.file.modified).ok();
    let listed = kept.seen.as_deref();
    let seen = glance(kept);
    let title = seen.and_then(|seen| seen.title.as_deref()).unwrap_or_default();
    let title = viewer.shown(title.split_whitespace().collect::<Vec<_>>().join(" ").as_str());
    html! {
        li.row {
            a.title href=(address) {
                @if title.is_empty() { span.id { bdi { (viewer.shown(&kept.file.id)) } } }
                @else { bdi { (epitome_model::short(&title, 140)) } }
            }
            p.facts {
                span.agent { (kept.file.agent) }
                @if let Some(when) = when {
                    time datetime=(when) {
                        (when.to_zoned(TimeZone::UTC).strftime("%Y-%m-%d %H:%M"))
                    }
                }
                @if let Some(cwd) = seen.and_then(|seen| seen.cwd.as_deref()) {
                    bdi.cwd { (viewer.shown(cwd)) }
                }
                @if listed.is_some_and(Listed::is_compacted) {
                    span.done { "compacted" }
                }
                @if let Some(Err(why)) = listed.map(|listed| &listed.seen) {
                    span.bad { (viewer.shown(why)) }
                }
            }
            p.numbers {
                span { (size(kept)) }
                @if let Some(context) = seen.and_then(|seen| seen.context) {
                    span title=(context_title(seen)) { "~" (context) " tokens" }
                }
                @if let Some(seen) = seen { (saving(seen)) }
                @if listed.is_none() { span.soft { "…" } }
            }
        }
    }
}

fn size(kept: &CachedSession) -> Bytes {
    kept.seen.as_ref().map_or(kept.file.size, |listed| listed.size())
}

/// The tokens of a session, and as its provider bills them.
fn context_title(seen: Option<&SessionInfo>) -> String {
    let messages = "tokens of the messages that a resume sends, estimated";
    match seen.and_then(|seen| seen.request.zip(seen.calibration)) {
        Some((request, billed)) => {
            format!("{messages}; the request as billed: ~{request} ({billed})")
        }
        None => messages.to_owned(),
    }
}

/// The share of the context that compacting would save, as a bar.
fn saving(seen: &SessionInfo) -> Markup {
    let context = seen.context.unwrap_or(Tokens(0)).0;
    let percent = (seen.saving.0 * 100 + context / 2).checked_div(context).unwrap_or(0).min(100);
    html! {
        @if seen.saving.0 > 0 {
            span.saves title={ "compacting saves ~" (seen.saving) " tokens" } {
                progress max="100" value=(percent) aria-label="Part that compacting saves" {}
                "−" (percent) "%"
            }
        }
    }
}

fn glance(kept: &CachedSession) -> Option<&SessionInfo> {
    kept.seen.as_ref().and_then(|listed| listed.seen.as_ref().ok())
}

fn key_of(cwd: &str) -> String {
    crate::session_cache::key(cwd.as_ref())
}

/// A value encoded for an address.
pub(crate) fn encoded(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => {
                encoded.push(char::from(byte));
            }
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}
