//! Messages of pages that have nothing to show.

use epitome::agents;
use maud::{Markup, html};

use crate::options::Which;
use crate::query::{ListQuery, State};
use crate::viewer::Viewer;

/// Says that there are no sessions, and where they were searched.
pub(crate) fn looked_in(viewer: &Viewer) -> Markup {
    let options = &viewer.options;
    let folders = match &options.which {
        Which::All | Which::Of(_) => agents::folders(&options.config.agents),
        Which::Below(folder) => vec![folder.clone()],
    };
    html! {
        "There are no sessions yet. Looked in "
        @for (n, folder) in folders.iter().enumerate() {
            @if n > 0 { ", " }
            code { (viewer.redacted(&folder.to_string_lossy())) }
        }
        "."
    }
}

/// Says that no session matches, and repeats the filters.
pub(crate) fn no_session(viewer: &Viewer, asked: &ListQuery, project: Option<&str>) -> Markup {
    let words = asked.words();
    html! {
        "No session"
        @if !asked.agent.is_empty() { " of " b { (viewer.redacted(&asked.agent)) } }
        @if let Some(project) = project { " in " bdi { (viewer.redacted(project)) } }
        @match asked.state {
            State::Any => {},
            State::Compacted => " is compacted",
            State::Whole => " is not compacted",
        }
        @if !words.is_empty() {
            @if asked.state != State::Any { " and" }
            " has " b { "“" bdi { (viewer.redacted(words)) } "”" }
            " in its title, project or id"
        } @else if asked.state == State::Any { " is here" }
        "."
        @if asked.is_narrowed() || !words.is_empty() { " " a href="./" { "Show all sessions" } "." }
    }
}
