//! Splits source code into runs of one colour.

use std::str::FromStr as _;
use std::sync::LazyLock;

use syntect::easy::HighlightLines;
use syntect::highlighting::{
    Color, ScopeSelectors, StyleModifier, Theme, ThemeItem, ThemeSettings,
};
use syntect::parsing::{SyntaxReference, SyntaxSet};
use syntect::util::LinesWithEndings;

/// The maximum length of a text that is highlighted, in bytes. A longer text stays plain.
const TEXT: usize = 24 << 10;
/// A text with a line of this many bytes or more is not highlighted: such lines are usually
/// generated code.
const LINE: usize = 2_000;

/// The kind of a run of source code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token {
    /// A comment.
    Comment,
    /// A string.
    String,
    /// A number, or another constant.
    Number,
    /// A keyword.
    Keyword,
    /// The name of a function.
    Function,
    /// The name of a type.
    Type,
    /// A tag, or the name of an attribute.
    Attribute,
}

/// Splits a text into runs of one colour. The language is given by its name, a file extension or a
/// path. `None` if the language is unknown, or the text is empty, too long, or has a very long
/// line.
///
/// ```
/// use epitome_render::{Token, highlight};
///
/// let runs = highlight("let a;", "rust").expect("a known language");
/// assert_eq!(runs, [(Some(Token::Keyword), "let"), (None, " a;")]);
/// ```
pub fn highlight<'t>(text: &'t str, language: &str) -> Option<Vec<(Option<Token>, &'t str)>> {
    let syntax = syntax_of(text, language)?;
    let mut lines = HighlightLines::new(syntax, &THEME);
    let mut runs: Vec<(Option<Token>, &str)> = Vec::new();
    // Runs are consecutive parts of the text; adjacent ones of the same kind are joined.
    let mut begin = 0;
    let mut at = 0;
    let mut open = None;
    for line in LinesWithEndings::from(text) {
        for (style, run) in lines.highlight_line(line, &SYNTAXES).ok()? {
            let number = usize::from(style.foreground.r);
            let token = number.checked_sub(1).and_then(|at| TOKENS.get(at)).map(|(it, _)| *it);
            // White space has no colour and does not end a run.
            if token != open && !run.trim().is_empty() {
                if at > begin {
                    runs.push((open, &text[begin..at]));
                }
                begin = at;
                open = token;
            }
            at += run.len();
        }
    }
    if at > begin {
        runs.push((open, &text[begin..at]));
    }
    Some(runs)
}

/// Whether [`highlight`] can split a text.
pub(crate) fn is_coloured(text: &str, language: &str) -> bool {
    syntax_of(text, language).is_some()
}

fn syntax_of(text: &str, language: &str) -> Option<&'static SyntaxReference> {
    let fits = !text.is_empty() && text.len() <= TEXT && text.lines().all(|line| line.len() < LINE);
    if fits { syntax(language) } else { None }
}

fn syntax(language: &str) -> Option<&'static SyntaxReference> {
    let name = language.rsplit(['/', '\\']).next().unwrap_or(language);
    let extension = name.rsplit('.').next().unwrap_or(name);
    if name.is_empty() || name.len() > 80 {
        return None;
    }
    SYNTAXES
        .find_syntax_by_extension(name)
        .or_else(|| SYNTAXES.find_syntax_by_extension(&extension.to_ascii_lowercase()))
        .or_else(|| SYNTAXES.find_syntax_by_token(&name.to_ascii_lowercase()))
        .filter(|syntax| syntax.name != "Plain Text")
}

/// The kinds of runs, each with the syntax scopes that belong to it. The index of a kind, from 1,
/// is its colour in the theme.
const TOKENS: [(Token, &str); 7] = [
    (Token::Comment, "comment"),
    (Token::String, "string, constant.character, markup.raw"),
    (Token::Number, "constant.numeric, constant.language, constant.other"),
    (Token::Keyword, "keyword, storage, variable.language, markup.heading"),
    (Token::Function, "entity.name.function, support.function, variable.function"),
    (
        Token::Type,
        "entity.name.type, entity.name.class, support.type, support.class, entity.name.struct",
    ),
    (Token::Attribute, "entity.name.tag, entity.other.attribute-name, support.type.property-name"),
];

static SYNTAXES: LazyLock<SyntaxSet> = LazyLock::new(two_face::syntax::extra_newlines);

static THEME: LazyLock<Theme> = LazyLock::new(|| {
    let colour = |number: usize| {
        let r = u8::try_from(number).expect("there are few classes");
        Some(Color { r, g: 0, b: 0, a: 255 })
    };
    let scopes = TOKENS.iter().enumerate().map(|(idx, (_, scopes))| ThemeItem {
        scope: ScopeSelectors::from_str(scopes).expect("the scopes of this table are well formed"),
        style: StyleModifier { foreground: colour(idx + 1), ..StyleModifier::default() },
    });
    Theme {
        settings: ThemeSettings { foreground: colour(0), ..ThemeSettings::default() },
        scopes: scopes.collect(),
        ..Theme::default()
    }
});
