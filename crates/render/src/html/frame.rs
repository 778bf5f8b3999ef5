//! The HTML document around the content of a page.

use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest as _, Sha256};

use crate::Facts;

/// The style of the pages of sessions and of an index.
pub const STYLE: &str = include_str!("style.css");
/// The script of these pages, which folds, searches and navigates. It sends no requests.
pub const SCRIPT: &str = include_str!("page.js");

/// The content security policy of a page: it allows the page's own style and script by their
/// hashes, and images that are embedded as `data:` URLs, and nothing else. So the page loads
/// nothing from the network.
static POLICY: LazyLock<String> = LazyLock::new(|| {
    format!(
        "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; img-src data:; \
         base-uri 'none'; form-action 'none'",
        hash(STYLE),
        hash(SCRIPT)
    )
});

/// The content security policy of a page without a script: its own style and nothing else.
fn policy_of_style(style: &str) -> String {
    let hash = hash(style);
    format!("default-src 'none'; style-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'")
}

fn hash(text: &str) -> String {
    STANDARD.encode(Sha256::digest(text.as_bytes()))
}

/// The `name` of the `meta` element with a page's key figures.
pub(super) const FACTS: &str = "epitome-session";

/// Builds a whole HTML document.
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

/// Builds a whole HTML document without a script, with a style of its own.
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

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    /// The colours of a theme, by name.
    fn colours(theme: &str) -> HashMap<&str, [f64; 3]> {
        let (_, rest) = STYLE.split_once(theme).expect("the theme is there");
        let (declared, _) = rest.split_once('}').expect("an end");
        let colours = declared.split([';', '\n']).filter_map(|one| one.split_once(":#"));
        colours
            .map(|(name, hex)| {
                let digit = |at: usize| u8::from_str_radix(&hex[at..=at], 16).expect("a digit");
                let two = |at: usize| match hex.len() {
                    3 => digit(at) * 17,
                    _ => digit(2 * at) * 16 + digit(2 * at + 1),
                };
                (name.trim_start_matches("--"), [0, 1, 2].map(|at| f64::from(two(at)) / 255.0))
            })
            .collect()
    }

    /// The contrast of two colours, as WCAG 2 defines it: from 1 to 21.
    fn contrast(one: [f64; 3], other: [f64; 3]) -> f64 {
        let light = |colour: [f64; 3]| {
            let [r, g, b] = colour.map(|part| match part {
                ..=0.04045 => part / 12.92,
                _ => ((part + 0.055) / 1.055).powf(2.4),
            });
            0.2126 * r + 0.7152 * g + 0.0722 * b
        };
        let (one, other) = (light(one), light(other));
        (one.max(other) + 0.05) / (one.min(other) + 0.05)
    }

    #[test]
    fn text_can_be_told_from_what_is_behind_it() {
        const PAIRS: [(&str, &[&str]); 8] = [
            ("bg", &["ink", "soft", "accent", "link", "ok", "bad"]),
            ("card", &["ink", "soft", "accent", "link", "ok", "bad", "hf", "hn"]),
            ("quiet", &["ink", "soft", "bad"]),
            ("user", &["ink", "soft", "accent", "link"]),
            ("term", &["ink", "soft", "hc", "hs", "hn", "hk", "hf", "ht", "ha", "bad", "ok"]),
            ("mark", &["ink"]),
            ("insbg", &["insink"]),
            ("delbg", &["delink"]),
        ];
        for theme in [":root{color-scheme:light dark;", ":root.dark{color-scheme:dark;"] {
            let colours = colours(theme);
            for (behind, texts) in PAIRS {
                for text in texts {
                    let found = contrast(colours[behind], colours[text]);
                    assert!(found >= 4.5, "{theme} {text} on {behind}: {found:.2}");
                }
            }
        }
    }
}
