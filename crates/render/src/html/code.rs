//! Source text in colours.

use std::cell::Cell;
use std::str::FromStr as _;
use std::sync::LazyLock;

use maud::{Markup, PreEscaped, Render as _};
use syntect::easy::HighlightLines;
use syntect::highlighting::{
    Color, ScopeSelectors, StyleModifier, Theme, ThemeItem, ThemeSettings,
};
use syntect::parsing::{SyntaxReference, SyntaxSet};
use syntect::util::LinesWithEndings;

use super::plain;

/// Bytes of one text that are coloured; the rest is plain.
const TEXT: usize = 24 << 10;
/// Lines longer than this are no code that somebody wrote.
const LINE: usize = 2_000;

/// What a page may still spend on colours, in bytes: they cost a hundred times what the rest does.
pub(crate) struct Budget(Cell<usize>);

impl Budget {
    pub(crate) fn new(bytes: usize) -> Budget {
        Budget(Cell::new(bytes))
    }

    fn take(&self, bytes: usize) -> bool {
        let left = self.0.get();
        self.0.set(left.saturating_sub(bytes));
        left >= bytes
    }
}

/// A text in the colours of a language: the name of one, a file's extension, or a path.
pub(crate) fn coloured(text: &str, language: &str, budget: &Budget) -> Markup {
    let fits = !text.is_empty() && text.len() <= TEXT && text.lines().all(|line| line.len() < LINE);
    let syntax = if fits { syntax(language) } else { None };
    match syntax {
        Some(syntax) if budget.take(text.len()) => coloured_by(syntax, text),
        Some(_) | None => plain(text),
    }
}

fn coloured_by(syntax: &SyntaxReference, text: &str) -> Markup {
    let mut html = String::with_capacity(text.len() * 2);
    let mut lines = HighlightLines::new(syntax, &THEME);
    let mut open = 0;
    for line in LinesWithEndings::from(text) {
        let Ok(runs) = lines.highlight_line(line, &SYNTAXES) else {
            return plain(text);
        };
        for (style, run) in runs {
            // White space has no colour: it does not end a run.
            let class = if run.trim().is_empty() { open } else { style.foreground.r };
            if class != open {
                if open != 0 {
                    html.push_str("</span>");
                }
                if let Some(class) = CLASSES.get(usize::from(class).wrapping_sub(1)) {
                    html.push_str("<span class=\"");
                    html.push_str(class.0);
                    html.push_str("\">");
                }
                open = class;
            }
            plain(run).render_to(&mut html);
        }
    }
    if open != 0 {
        html.push_str("</span>");
    }
    PreEscaped(html)
}

fn syntax(language: &str) -> Option<&'static SyntaxReference> {
    let name = language.rsplit(['/', '\\']).next().unwrap_or(language);
    let extension = name.rsplit('.').next().unwrap_or(name);
    if name.is_empty() || name.len() > 80 {
        return None;
    }
    let plain = |syntax: &&SyntaxReference| syntax.name != "Plain Text";
    SYNTAXES
        .find_syntax_by_extension(name)
        .or_else(|| SYNTAXES.find_syntax_by_extension(&extension.to_ascii_lowercase()))
        .or_else(|| SYNTAXES.find_syntax_by_token(&name.to_ascii_lowercase()))
        .filter(plain)
}

/// Classes of the page, and what has them. A colour of the theme is the number of its class.
const CLASSES: [(&str, &str); 7] = [
    ("hc", "comment"),
    ("hs", "string, constant.character, markup.raw"),
    ("hn", "constant.numeric, constant.language, constant.other"),
    ("hk", "keyword, storage, variable.language, markup.heading"),
    ("hf", "entity.name.function, support.function, variable.function"),
    ("ht", "entity.name.type, entity.name.class, support.type, support.class, entity.name.struct"),
    ("ha", "entity.name.tag, entity.other.attribute-name, support.type.property-name"),
];

static SYNTAXES: LazyLock<SyntaxSet> = LazyLock::new(two_face::syntax::extra_newlines);

static THEME: LazyLock<Theme> = LazyLock::new(|| {
    let colour = |number: usize| {
        let r = u8::try_from(number).expect("there are few classes");
        Some(Color { r, g: 0, b: 0, a: 255 })
    };
    let scopes = CLASSES.iter().enumerate().map(|(idx, (_, scopes))| ThemeItem {
        scope: ScopeSelectors::from_str(scopes).expect("the scopes of this table are well formed"),
        style: StyleModifier { foreground: colour(idx + 1), ..StyleModifier::default() },
    });
    Theme {
        settings: ThemeSettings { foreground: colour(0), ..ThemeSettings::default() },
        scopes: scopes.collect(),
        ..Theme::default()
    }
});

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
