//! The bar and the controls of a page. Controls that need the page's script are hidden if no script
//! runs.

use maud::{Markup, html};

/// The keys of a page, and what each does.
const KEYS: [(&str, &str); 7] = [
    ("/", "search"),
    ("Enter", "next match; with Shift the one before"),
    ("j", "next turn"),
    ("k", "turn before"),
    ("n", "next failed call"),
    ("p", "failed call before"),
    ("?", "this list"),
];

/// The buttons of the filter: the class of the blocks that each one shows, and its label.
const FILTERS: [(&str, &str); 6] = [
    ("user", "User"),
    ("answer", "Answers"),
    ("tool", "Tools"),
    ("thinking", "Thinking"),
    ("error", "Errors"),
    ("file", "Files"),
];

/// The buttons that show only some kinds of blocks.
pub(super) fn filter() -> Markup {
    html! {
        div #kinds role="group" aria-label="Show only" hidden {
            span.soft { "on this page" }
            @for (kind, name) in FILTERS {
                button type="button" aria-pressed="false" data-show=(kind) { (name) }
            }
        }
    }
}

/// The list of keys, shown on request.
pub(super) fn keys() -> Markup {
    html! {
        dialog #keys aria-labelledby="keys-name" {
            h2 #keys-name { "Keys" }
            dl {
                @for (key, what) in KEYS { div { dt { kbd { (key) } } dd { (what) } } }
                div { dt { kbd { "Escape" } } dd { "ends a search, closes this list" } }
            }
            button #keys-close type="button" { "Close" }
        }
    }
}

/// The bar at the top of the page with this `number`, counted from 0, among `pages`. `up` is the
/// address and the name of the page above, such as an index; `search` is the address of a search
/// over all pages.
pub(super) fn bar(
    up: Option<&(String, String)>,
    links: &[(String, String)],
    search: Option<&str>,
    number: usize,
    pages: usize,
) -> Markup {
    html! {
        header.bar {
            @match up {
                Some((address, name)) => a.home href=(address) { "‹ " bdi { (name) } },
                None => span.home { "epitome" },
            }
            @for (address, name) in links { a.place href=(address) { (name) } }
            div.search role="search" {
                input #find type="search" placeholder="Search this page  /"
                    aria-label="Search this page" autocomplete="off";
                output #found aria-live="polite" {}
                @if let Some(address) = search.filter(|_| pages > 1) {
                    a #all href=(address) data-search=(address) hidden { "all pages" }
                }
                button #back type="button" aria-label="Previous match" hidden { "↑" }
                button #next type="button" aria-label="Next match" hidden { "↓" }
            }
            button #unfold type="button" aria-pressed="false" { "Unfold all" }
            button #theme type="button" aria-label="Switch between light and dark" { "◐" }
            button #help type="button" aria-label="Keys" aria-haspopup="dialog" { "?" }
            @if pages > 1 { span.count { "page " (number + 1) " of " (pages) } }
        }
    }
}
