//! What every page has around its content.

use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest as _, Sha256};

use crate::Facts;

/// The style of every page.
pub const STYLE: &str = include_str!("style.css");
/// The script of every page: it folds, searches and steps, and asks nobody for anything.
pub const SCRIPT: &str = include_str!("page.js");

/// A page allows its own style, its own script and pictures that it holds, by hash, and nothing
/// else: no request leaves it.
static POLICY: LazyLock<String> = LazyLock::new(|| {
    format!(
        "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; img-src data:; \
         base-uri 'none'; form-action 'none'",
        hash(STYLE),
        hash(SCRIPT)
    )
});

/// A page without a script allows its own style, and nothing else.
fn policy_of_style(style: &str) -> String {
    let hash = hash(style);
    format!("default-src 'none'; style-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'")
}

fn hash(text: &str) -> String {
    STANDARD.encode(Sha256::digest(text.as_bytes()))
}

/// The name of the element that holds a page's facts.
pub(super) const FACTS: &str = "epitome-session";

/// A whole page.
pub(super) fn frame(title: &str, facts: Option<&Facts>, body: &Markup) -> String {
    let facts =
        facts.map(|facts| crate::inert_json(serde_json::to_string(facts).unwrap_or_default()));
    let head = html! {
        @if let Some(facts) = facts { meta name=(FACTS) content=(facts); }
    };
    let body = html! {
        (body)
        script { (PreEscaped(SCRIPT)) }
    };
    document(title, STYLE, &POLICY, &head, &body)
}

/// A whole page without a script, with a style of its own.
pub(super) fn frame_without_script(title: &str, style: &str, body: &Markup) -> String {
    document(title, style, &policy_of_style(style), &html! {}, body)
}

fn document(title: &str, style: &str, policy: &str, head: &Markup, body: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="referrer" content="no-referrer";
                meta name="generator" content={ "epitome " (env!("CARGO_PKG_VERSION")) };
                (head)
                title { (title) }
                style { (PreEscaped(style)) }
            }
            body { (body) }
        }
    };
    let mut page = page.into_string();
    page.push('\n');
    page
}
