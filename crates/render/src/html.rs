//! Self-contained HTML pages.

mod card;
mod code;
mod context_bars;
mod controls;
mod figures;
mod frame;
mod index;
mod layout;
mod markdown;
mod name;
mod page;

pub use figures::{Figures, Plot, Series, SeriesStyle};
pub use frame::{SCRIPT, STYLE};
pub use index::{Index, Listing, facts_of_page, is_index_page};
pub use name::PageName;
pub use page::{Html, Sheet};

use maud::{Markup, PreEscaped, Render as _};

use crate::visible::picture;

/// A text for the body of a page: escaped, with invisible characters made visible.
pub(crate) fn plain(text: &str) -> Markup {
    let mut html = String::with_capacity(text.len() + text.len() / 16);
    let mut from = 0;
    for (at, c) in text.char_indices() {
        // Most characters need no change.
        if matches!(c, ' '..='~' | '\n' | '\t') {
            continue;
        }
        if let Some(picture) = picture(c) {
            text[from..at].render_to(&mut html);
            html.push_str("<span class=\"ctl\">");
            picture.render_to(&mut html);
            html.push_str("</span>");
            from = at + c.len_utf8();
        }
    }
    text[from..].render_to(&mut html);
    PreEscaped(html)
}

#[cfg(test)]
#[path = "html_tests.rs"]
mod tests;
