//! The list of sessions.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use axum::extract::State;
use axum::response::{Html, IntoResponse as _, Response};
use epitome::list::{ListedSession, SessionInfo, Sort, short_ids};
use epitome_model::{Bytes, Tokens, percent, plural};
use epitome_render::minute;
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use maud::{Markup, html};

use crate::chart::Chart;
use crate::empty::{looked_in, no_session};
use crate::hits;
use crate::page::{Here, Query, bar, page as frame, run_blocking};
use crate::query::{BEST, ListQuery, State as Compaction, label};
use crate::session::page_of;
use crate::session_cache::{CachedSession, key};
use crate::sums::{Period, Slot, Sums, Used};
use crate::versions;
use crate::viewer::Viewer;

/// The maximum number of sessions on a page of the list.
const PAGE: usize = 100;
/// The maximum number of projects offered as a filter: those with the most sessions.
const PROJECTS: usize = 200;
/// The orders to choose from; `None` is the best match first.
const ORDERS: [Option<Sort>; 5] =
    [None, Some(Sort::Time), Some(Sort::Size), Some(Sort::Context), Some(Sort::Saving)];
/// The maximum number of characters of a title.
const TITLE: usize = 140;
/// The number of leading characters by which titles are compared. Titles that begin alike are
/// displayed on as many lines as they need, so that the difference is seen.
const ALIKE: usize = 60;

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
    /// The number of compacted sessions, and the tokens that were saved in them.
    compacted: usize,
    saved: Tokens,
    /// The usage of the matching sessions, over time.
    slots: Vec<Slot>,
    /// The short id of each session, by key.
    ids: HashMap<String, String>,
    agents: BTreeMap<&'static str, usize>,
    projects: Vec<(String, String, usize)>,
}

pub(crate) async fn page(
    State(viewer): State<Arc<Viewer>>,
    Query(asked): Query<ListQuery>,
) -> Response {
    let response = run_blocking(viewer, move |viewer| {
        viewer.session_cache.refresh(viewer.files());
        let kept = viewer.session_cache.list(|kept| first(&asked, kept));
        let today = viewer.options.config.now().to_zoned(TimeZone::UTC).date();
        let hits = match asked.part {
            None if !asked.words().is_empty() => Some(hits::found(viewer, &asked, &kept)),
            Some(_) | None => None,
        };
        let found = find(&asked, kept, today);
        let list = list(viewer, &asked, &found);
        Ok(match asked.part {
            Some(_) => Html(list.into_string()).into_response(),
            None => {
                let body = body(viewer, &asked, &found, (&list, hits.as_ref()));
                frame("Sessions", "", &body).into_response()
            }
        })
    });
    response.await.unwrap_or_else(|problem| problem)
}

/// The indexes of the sessions that should be read before the page is shown: all if the query
/// depends on the content of sessions, otherwise those on the page. If the list is sorted by size,
/// the page may change when they are read.
fn first(asked: &ListQuery, kept: &[CachedSession]) -> Vec<usize> {
    if asked.needs_all() {
        return (0..kept.len()).collect();
    }
    let mut listed: Vec<(usize, &CachedSession)> =
        kept.iter().enumerate().filter(|(_, it)| asked.is_of_agent(it)).collect();
    if let Some(sort) = asked.sort() {
        sort.order(&mut listed, |(_, it)| (&it.file, it.seen.as_deref()));
    }
    let from = (asked.page.unwrap_or(1).max(1) - 1).saturating_mul(PAGE);
    listed.into_iter().skip(from).take(PAGE).map(|(at, _)| at).collect()
}

fn find(asked: &ListQuery, kept: Vec<CachedSession>, today: Date) -> Found {
    let all = kept.len();
    let unread = kept.iter().filter(|kept| kept.seen.is_none()).count();
    let mut agents = BTreeMap::new();
    let mut folders: HashMap<String, usize> = HashMap::new();
    for kept in &kept {
        *agents.entry(kept.file.agent).or_default() += 1;
        if let Some(cwd) = kept.project() {
            *folders.entry(cwd.to_owned()).or_default() += 1;
        }
    }
    let mut projects: Vec<(String, String, usize)> =
        folders.into_iter().map(|(cwd, n)| (key(cwd.as_ref()), cwd, n)).collect();
    projects.sort_by(|one, other| other.2.cmp(&one.2).then_with(|| one.1.cmp(&other.1)));
    projects.truncate(PROJECTS);
    projects.sort_by(|one, other| one.1.cmp(&other.1));
    let short = short_ids(&kept.iter().map(|kept| &*kept.file.id).collect::<Vec<_>>());
    let ids = kept.iter().map(|kept| kept.key.clone()).zip(short).collect();
    let mut shown = kept;
    shown.retain(|kept| asked.takes(kept));
    let mut context = Tokens(0);
    let mut saving = Tokens(0);
    let mut saved = Tokens(0);
    for info in shown.iter().filter_map(CachedSession::info) {
        context += info.context.unwrap_or(Tokens(0));
        saving += info.saving;
        saved += info.saved.map_or(Tokens(0), |it| it.context.before - it.context.after);
    }
    let disk = shown.iter().map(CachedSession::size).sum();
    let compacted = shown.iter().filter(|it| it.is_compacted()).count();
    let slots = slots(&shown, today);
    if let Some(sort) = asked.sort() {
        sort.order(&mut shown, |it| (&it.file, it.seen.as_deref()));
    }
    let matching = shown.len();
    let pages = matching.div_ceil(PAGE).max(1);
    let page = asked.page.unwrap_or(1).clamp(1, pages);
    let shown = shown.into_iter().skip((page - 1) * PAGE).take(PAGE).collect();
    Found {
        shown,
        page,
        pages,
        matching,
        all,
        unread,
        disk,
        context,
        saving,
        compacted,
        saved,
        slots,
        ids,
        agents,
        projects,
    }
}

/// The usage of the sessions over the shortest period that contains a request: by day, or by month
/// if the period is long.
fn slots(sessions: &[CachedSession], today: Date) -> Vec<Slot> {
    let used: Vec<Used<'_>> = sessions.iter().filter_map(CachedSession::used).collect();
    let period = Period::fitting(used.iter().flat_map(|it| it.usage), today);
    Sums::from_sessions(&used, period, today).slots
}

fn body(
    viewer: &Viewer,
    asked: &ListQuery,
    found: &Found,
    (list, hits): (&Markup, Option<&Markup>),
) -> Markup {
    html! {
        a.skip href="#content" { "To the sessions" }
        (bar("", Here::Sessions))
        main #content.index.wide {
            h1.sr { "Sessions" }
            form #filter.filter role="search" method="get" {
                input #q type="search" name="q" value=(asked.q) autocomplete="off"
                    placeholder="Find words in all sessions  /" aria-label="Find words";
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
                            (viewer.redacted(cwd)) " (" (n) ")"
                        }
                    }
                }
                select name="state" aria-label="State" {
                    @for state in Compaction::ALL {
                        option value=(state.value()) selected[asked.state == state] {
                            (state.label())
                        }
                    }
                }
                select name="sort" aria-label="Order of sessions" {
                    @for sort in ORDERS {
                        option value=(sort.map_or(BEST, Sort::name))
                            selected[asked.sort() == sort] { (label(sort)) }
                    }
                }
                noscript { button.act type="submit" { "Find" } }
            }
            section #hits aria-label="Found in messages" aria-live="polite"
                hidden[hits.is_none()] {
                @if let Some(hits) = hits { (hits) }
            }
            div #sessions { (list) }
        }
    }
}

fn list(viewer: &Viewer, asked: &ListQuery, found: &Found) -> Markup {
    let project = found.projects.iter().find(|(key, ..)| *key == asked.project);
    let project = project.map(|(_, cwd, _)| &**cwd);
    html! {
        @if found.matching == 0 {
            p.none {
                @if found.all == 0 { (looked_in(viewer)) }
                @else { (no_session(viewer, asked, project)) }
            }
        }
        @if found.matching > 0 && asked.words().is_empty() { (charts(&found.slots)) }
        @if found.matching > 0 || found.unread > 0 { (totals(asked, found)) }
        @let alike = alike(&found.shown);
        ol.rows {
            @for kept in &found.shown { (row(viewer, kept, (found, &alike))) }
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
        @if asked.words().is_empty() { (versions::deleted(viewer, &asked.agent)) }
    }
}

fn totals(asked: &ListQuery, found: &Found) -> Markup {
    html! {
        p.sum {
            b { (plural(found.matching as u64, "session")) }
            @if found.matching != found.all { span { "of " (found.all) } }
            @if !asked.words().is_empty() && found.matching > 0 {
                span { "by title, project or id" }
            }
            span { (found.disk) " on disk" }
            @if found.context.0 > 0 {
                span title="estimated" { "~" (found.context) " tokens of messages" }
                span { "compacting saves ~" (found.saving) }
            }
            @if found.compacted > 0 {
                span.done { (found.compacted) " compacted, saved " (found.saved) }
            }
            @if found.unread > 0 {
                span #unread role="status" {
                    "reading: " (found.all - found.unread) " of " (found.all)
                }
            }
        }
    }
}

/// Charts of sessions and tokens over time.
fn charts(slots: &[Slot]) -> Markup {
    let is_by_month = slots.first().is_some_and(|slot| slot.when.len() < 10);
    let titles = if is_by_month {
        ("Sessions by month", "Tokens by month")
    } else {
        ("Sessions by day", "Tokens by day")
    };
    let most = slots.iter().map(|slot| slot.sum.sessions).max().unwrap_or(0);
    let all: Tokens = slots.iter().map(|slot| slot.sum.tokens()).sum();
    let largest = slots.iter().map(|slot| slot.sum.tokens()).max().unwrap_or_default();
    let sessions = Chart::over(slots, titles.0, (String::new(), most.to_string()), |sum| {
        (vec![sum.sessions], plural(sum.sessions, "session"))
    });
    let tokens = Chart::over(slots, titles.1, (all.to_string(), largest.to_string()), |sum| {
        let parts = vec![sum.output.0, (sum.input - sum.cached).0, sum.cached.0];
        (parts, format!("{} tokens", sum.tokens()))
    });
    html! {
        @if all.0 > 0 {
            div.charts.small { (sessions.draw()) (tokens.draw()) }
        }
    }
}

/// The beginnings of titles that several of these sessions have.
fn alike(shown: &[CachedSession]) -> HashSet<String> {
    let mut seen = HashSet::new();
    let mut alike = HashSet::new();
    for begin in shown.iter().filter_map(begin) {
        if !seen.insert(begin.clone()) {
            alike.insert(begin);
        }
    }
    alike
}

fn begin(kept: &CachedSession) -> Option<String> {
    Some(kept.info()?.title.as_deref()?.chars().take(ALIKE).collect())
}

fn row(
    viewer: &Viewer,
    kept: &CachedSession,
    (found, alike): (&Found, &HashSet<String>),
) -> Markup {
    let when = Timestamp::try_from(kept.file.modified).ok();
    let listed = kept.seen.as_deref();
    let info = kept.info();
    let is_alike = begin(kept).is_some_and(|begin| alike.contains(&begin));
    let id = found.ids.get(&kept.key).map_or(&*kept.file.id, |id| id);
    html! {
        li.row {
            a.title.alike[is_alike] href=(page_of(&kept.file.path)) {
                bdi { (viewer.title(kept, TITLE)) }
            }
            p.facts {
                span.agent { (kept.file.agent) }
                span.id { bdi { (viewer.redacted(id)) } }
                @if let Some(when) = when { time datetime=(when) { (minute(when)) } }
                @if let Some(turns) = info.and_then(|info| info.turns) {
                    span { (plural(turns, "turn")) }
                }
                @if let Some(cwd) = kept.project() { bdi.cwd { (viewer.redacted(cwd)) } }
                @if kept.is_compacted() { span.done { "compacted" } }
                @if let Some(Err(why)) = listed.map(|listed| &listed.seen) {
                    span.bad { (viewer.redacted(why)) }
                }
            }
            p.numbers {
                span { (kept.size()) }
                @if let Some(context) = info.and_then(|info| info.context) {
                    span title=(context_title(info)) { "~" (context) " tokens" }
                }
                @if let Some(listed) = listed { (saving(listed)) }
                @if listed.is_none() { span.soft { "…" } }
            }
        }
    }
}

/// The tooltip of a number of tokens: what the number counts and, if known, how many tokens the
/// provider bills for the request.
fn context_title(seen: Option<&SessionInfo>) -> String {
    let messages = "tokens of the messages that a resume sends, estimated";
    match seen.and_then(|seen| seen.request.zip(seen.calibration)) {
        Some((request, billed)) => {
            format!("{messages}; the request as billed: ~{request} ({billed})")
        }
        None => messages.to_owned(),
    }
}

/// The share of the context that compacting would save, as a bar. Empty if it would save nothing.
fn saving(listed: &ListedSession) -> Markup {
    let context = listed.seen.as_ref().ok().and_then(|seen| seen.context).unwrap_or_default();
    html! {
        @if let Some(saving) = listed.saving() && saving.0 > 0 {
            @let percent = percent(saving.0, context.0).min(100);
            span.saves title={ "compacting saves ~" (saving) " tokens" } {
                progress max="100" value=(percent) aria-label="Part that compacting saves" {}
                "−" (percent) "%"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use epitome::agents::SessionFile;

    use super::*;

    /// An unread session of this size, written this many seconds after the epoch.
    fn session(size: u64, seconds: u64) -> CachedSession {
        let file = SessionFile {
            path: format!("/{size}").into(),
            agent: "pi",
            id: size.to_string(),
            modified: SystemTime::UNIX_EPOCH + Duration::from_secs(seconds),
            size: Bytes(size),
            row: None,
        };
        CachedSession { key: size.to_string(), file, seen: None }
    }

    #[test]
    fn the_sessions_on_the_page_are_waited_for() {
        // The newest first, as the cache keeps them.
        let kept = [session(10, 3), session(30, 2), session(20, 1)];
        let order = |sort| first(&ListQuery { sort: Some(sort), ..ListQuery::default() }, &kept);
        assert_eq!(order(Sort::Time), [0, 1, 2]);
        assert_eq!(order(Sort::Size), [1, 2, 0]);
    }
}
