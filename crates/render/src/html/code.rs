//! Highlighted source code.

use std::cell::Cell;

use maud::{Markup, PreEscaped, Render as _};

use super::plain;
use crate::highlight::{Token, highlight, is_coloured};

/// The number of bytes that may still be highlighted on a page. Highlighting takes a hundred times
/// as long as the rest of a page.
pub(crate) struct Budget(Cell<usize>);

impl Budget {
    pub(crate) fn new(bytes: usize) -> Budget {
        Budget(Cell::new(bytes))
    }

    fn take(&self, bytes: usize) -> bool {
        let left = self.0.get();
        if bytes > left {
            return false;
        }
        self.0.set(left - bytes);
        true
    }
}

/// A text highlighted in a language, which is given by its name, a file extension, or a path. The
/// text stays plain if [`highlight`] cannot split it, or if the rest of the budget is too small for
/// it.
pub(crate) fn coloured(text: &str, language: &str, budget: &Budget) -> Markup {
    if !is_coloured(text, language) || !budget.take(text.len()) {
        return plain(text);
    }
    let Some(runs) = highlight(text, language) else { return plain(text) };
    let mut html = String::with_capacity(text.len() * 2);
    for (token, run) in runs {
        if let Some(token) = token {
            html.push_str("<span class=\"");
            html.push_str(class(token));
            html.push_str("\">");
        }
        plain(run).render_to(&mut html);
        if token.is_some() {
            html.push_str("</span>");
        }
    }
    PreEscaped(html)
}

/// The CSS class of a kind of token.
fn class(token: Token) -> &'static str {
    match token {
        Token::Comment => "hc",
        Token::String => "hs",
        Token::Number => "hn",
        Token::Keyword => "hk",
        Token::Function => "hf",
        Token::Type => "ht",
        Token::Attribute => "ha",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, language: &str, expect: &str) {
        let html = coloured(text, language, &Budget::new(1_000));
        assert_eq!(html.into_string(), expect, "{text:?} as {language}");
    }

    #[test]
    fn code_is_coloured_by_path_and_by_name() {
        let number = "<span class=\"hk\">let</span> a <span class=\"hk\">= </span>\
                      <span class=\"hn\">1</span>;";
        check("let a = 1;", "/src/main.rs", number);
        check("let a = 1;", "rust", number);
        check("<b> & \u{202e}", "txt", "&lt;b&gt; &amp; <span class=\"ctl\">\\u{202e}</span>");
        check("let a = 1;", "", "let a = 1;");
    }

    #[test]
    fn what_is_beyond_the_budget_is_plain() {
        let budget = Budget::new(15);
        assert!(coloured("let a = 1;", "rs", &budget).0.contains("span"));
        assert!(!coloured("let a = 1;", "rs", &budget).0.contains("span"));
    }
}
