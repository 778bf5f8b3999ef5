//! The index page of a folder of sessions, and its parts.

use epitome_model::plural;
use maud::{Markup, html};
use serde::{Deserialize, Serialize};

use super::frame::{FACTS, frame};
use crate::{Facts, time, visible};

/// The sessions in a folder, as its `manifest.json` lists them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Index {
    /// The version of the manifest format: 1.
    pub epitome_manifest: u64,
    /// The sessions.
    pub sessions: Vec<Listing>,
}

/// A session in a folder.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listing {
    /// The prefix of the names of the session's files.
    pub name: String,
    /// The names of the files to which the session was rendered, one for each format. Of several
    /// HTML pages, only the first is listed.
    pub files: Vec<String>,
    /// The key figures of the session.
    #[serde(flatten)]
    pub facts: Facts,
    /// The first digits of a hash of the session's path. They distinguish copies of one session, so
    /// that each copy has separate pages. `None` if the session was not a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    /// The sessions of this session's sub-agents.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sub_agents: Vec<Listing>,
}

impl Index {
    /// Makes an index with the newest session first. Of several sessions with the same name, only
    /// the last in `sessions` is kept.
    pub fn new(mut sessions: Vec<Listing>) -> Index {
        sessions.reverse();
        sessions.sort_by(|one, other| one.name.cmp(&other.name));
        sessions.dedup_by(|later, earlier| later.name == earlier.name);
        sessions.sort_by(|one, other| {
            began(other).cmp(&began(one)).then_with(|| one.name.cmp(&other.name))
        });
        Index { epitome_manifest: 1, sessions }
    }

    /// The index page.
    pub fn page(&self) -> String {
        let n = self.sessions.len();
        let body = html! {
            a.skip href="#content" { "To the sessions" }
            header.bar {
                span.home { "epitome" }
                div.search role="search" {
                    input #find type="search" placeholder="Find a session  /"
                        aria-label="Find a session" autocomplete="off";
                    output #found aria-live="polite" {}
                }
                button #theme type="button" aria-label="Switch between light and dark" { "◐" }
            }
            main #content.index {
                h1 { (plural(n as u64, "session")) }
                ol.sessions { @for listing in &self.sessions { (session(listing)) } }
            }
        };
        frame("Sessions · epitome", None, &body)
    }
}

fn began(session: &Listing) -> Option<jiff::Timestamp> {
    session.facts.started.as_deref().and_then(time::parse)
}

/// Whether a page is an index page that epitome wrote. It is recognised by its elements, which no
/// text of a session can imitate: quotation marks in such a text are escaped.
pub fn is_index_page(html: &str) -> bool {
    html.contains("<span class=\"home\">epitome</span>")
        && html.contains("<main class=\"index\" id=\"content\">")
}

/// Returns the key figures of a session from its first page; `None` for any other page.
pub fn facts_of_page(html: &str) -> Option<Facts> {
    let begin = format!("<meta name=\"{FACTS}\" content=\"");
    let from = html.find(&begin)? + begin.len();
    let text = &html[from..from + html[from..].find('"')?];
    let text = text
        .replace("&quot;", "\"")
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&");
    serde_json::from_str(&text).ok()
}

fn session(listing: &Listing) -> Markup {
    let facts = &listing.facts;
    let first = listing.files.first().map_or("", String::as_str);
    let when = facts.started.as_deref().and_then(time::parse);
    html! {
        li.session {
            a.title href=(address(first)) { bdi { (facts.title) } }
            p.facts {
                span.agent { (facts.agent) }
                @if let Some(when) = when { time datetime=(when) { (time::display(when)) } }
                @if let Some(cwd) = &facts.cwd { bdi { (visible(cwd)) } }
                span { (plural(facts.turns, "turn")) }
                span { (plural(facts.calls, "call")) }
                @if !facts.changes.is_empty() {
                    span {
                        span.plus { "+" (facts.changes.added) } " "
                        span.minus { "−" (facts.changes.removed) }
                    }
                }
                @for file in listing.files.iter().skip(1) {
                    a href=(address(file)) { (file.rsplit('.').next().unwrap_or(file)) }
                }
                @if !listing.sub_agents.is_empty() {
                    span { (plural(listing.sub_agents.len() as u64, "sub-agent")) }
                }
            }
        }
    }
}

/// The name of a file as a relative address. An absolute path, and a name with unusual characters,
/// become `#`: such a name could contain a scheme or a host.
fn address(file: &str) -> String {
    let is_plain =
        file.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/'));
    if is_plain && !file.starts_with('/') { file.to_owned() } else { "#".to_owned() }
}
