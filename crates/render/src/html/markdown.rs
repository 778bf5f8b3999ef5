//! Converts Markdown to HTML. Tags in the text are escaped: every tag of the output is made here or
//! in the functions that this file calls.

use maud::{Markup, PreEscaped, Render as _, html};
use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

use super::code::{Budget, coloured};
use super::plain;
use crate::link::is_safe;
use crate::shorten::{Limit, cut};

/// The maximum nesting of elements. Deeper elements are written without their tags.
const DEEPEST: usize = 24;
/// The maximum length of Markdown in bytes. A longer text is displayed as plain text.
const LONGEST: usize = 256 << 10;

/// Formats a message, which may be Markdown or plain text.
pub(super) fn words(text: &str, limit: Limit, budget: &Budget) -> Markup {
    if text.len() > LONGEST.min(limit.text) {
        let shown = cut(text, limit);
        return html! {
            pre.raw { (plain(&shown.head)) }
            @if let Some(gap) = &shown.gap { p.gap { (gap) } pre.raw { (plain(&shown.tail)) } }
        };
    }
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let highest = highest_heading(Parser::new_ext(text, options));
    let html = String::new();
    let open = Vec::new();
    let mut writer = Writer { html, open, code: None, head: false, highest, budget };
    for event in Parser::new_ext(text, options) {
        writer.event(event);
    }
    while writer.open.pop().map(|end| writer.html.push_str(&end)).is_some() {}
    PreEscaped(writer.html)
}

/// The level of the highest heading; 1 if there is none.
fn highest_heading<'t>(events: impl Iterator<Item = Event<'t>>) -> usize {
    let levels = events.filter_map(|event| match event {
        Event::Start(Tag::Heading { level, .. }) => Some(level as usize),
        _ => None,
    });
    levels.min().unwrap_or(1)
}

struct Writer<'a> {
    html: String,
    /// The end tags of the open elements.
    open: Vec<String>,
    /// The language of an open code block, and its text so far.
    code: Option<(String, String)>,
    /// Whether the cells belong to a table's head.
    head: bool,
    /// The level of the highest heading.
    highest: usize,
    budget: &'a Budget,
}

impl Writer<'_> {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(&tag),
            Event::End(end) => self.end(end),
            Event::Text(text) => match &mut self.code {
                Some((_, code)) => code.push_str(&text),
                None => self.text(&text),
            },
            Event::Code(text) => self.put(&html! { code { (plain(&text)) } }),
            // HTML tags are shown as text.
            Event::Html(text) | Event::InlineHtml(text) => self.text(&text),
            Event::SoftBreak | Event::HardBreak => self.html.push_str("<br>"),
            Event::Rule => self.html.push_str("<hr>"),
            Event::TaskListMarker(done) => self.html.push_str(if done { "☑ " } else { "☐ " }),
            Event::InlineMath(text) | Event::DisplayMath(text) | Event::FootnoteReference(text) => {
                self.text(&text);
            }
        }
    }

    fn start(&mut self, tag: &Tag<'_>) {
        let (begin, end): (String, &str) = match tag {
            Tag::Paragraph => ("<p>".into(), "</p>"),
            // The page uses the first two levels itself. Levels are counted from the highest one in
            // the text.
            Tag::Heading { level, .. } => match *level as usize - self.highest {
                0 => ("<h3>".into(), "</h3>"),
                1 => ("<h4>".into(), "</h4>"),
                2 => ("<h5>".into(), "</h5>"),
                _ => ("<h6>".into(), "</h6>"),
            },
            Tag::BlockQuote(_) => ("<blockquote>".into(), "</blockquote>"),
            Tag::CodeBlock(kind) => {
                let language = match kind {
                    CodeBlockKind::Fenced(info) => info.split([' ', ',', '{']).next(),
                    CodeBlockKind::Indented => None,
                };
                self.code = Some((language.unwrap_or_default().to_owned(), String::new()));
                (String::new(), "")
            }
            Tag::List(None) => ("<ul>".into(), "</ul>"),
            Tag::List(Some(first)) => (format!("<ol start=\"{first}\">"), "</ol>"),
            Tag::Item => ("<li>".into(), "</li>"),
            Tag::Table(_) => ("<div class=\"wide\"><table>".into(), "</table></div>"),
            Tag::TableHead => {
                self.head = true;
                ("<thead><tr>".into(), "</tr></thead>")
            }
            Tag::TableRow => ("<tr>".into(), "</tr>"),
            Tag::TableCell if self.head => ("<th>".into(), "</th>"),
            Tag::TableCell => ("<td>".into(), "</td>"),
            Tag::Emphasis => ("<em>".into(), "</em>"),
            Tag::Strong => ("<strong>".into(), "</strong>"),
            Tag::Strikethrough => ("<del>".into(), "</del>"),
            Tag::Link { dest_url, .. } => {
                if is_safe(dest_url) {
                    let mut begin = String::from("<a rel=\"noopener noreferrer nofollow\" href=\"");
                    crate::visible(dest_url).render_to(&mut begin);
                    begin.push_str("\">");
                    (begin, "</a>")
                } else {
                    self.addressed("", dest_url)
                }
            }
            // Images are not loaded. Their address is displayed instead.
            Tag::Image { dest_url, .. } => self.addressed("image: ", dest_url),
            Tag::HtmlBlock => ("<p>".into(), "</p>"),
            Tag::FootnoteDefinition(_)
            | Tag::DefinitionList
            | Tag::DefinitionListTitle
            | Tag::DefinitionListDefinition
            | Tag::Superscript
            | Tag::Subscript
            | Tag::MetadataBlock(_) => (String::new(), ""),
        };
        if self.open.iter().filter(|end| !end.is_empty()).count() >= DEEPEST {
            self.open.push(String::new());
            return;
        }
        self.html.push_str(&begin);
        self.open.push(end.to_owned());
    }

    /// Begins a link that is not safe to follow, or an image: writes its address before its text.
    fn addressed(&mut self, what: &str, address: &str) -> (String, &'static str) {
        let mut begin = String::from("<span class=\"addr\">");
        what.render_to(&mut begin);
        plain(address).render_to(&mut begin);
        begin.push_str("</span> ");
        (begin, "")
    }

    fn end(&mut self, end: TagEnd) {
        if end == TagEnd::CodeBlock
            && let Some((language, code)) = self.code.take()
        {
            let code = coloured(&code, &language, self.budget);
            self.put(&html! { pre.code { code { (code) } } });
        }
        if end == TagEnd::TableHead {
            self.head = false;
        }
        if let Some(end) = self.open.pop() {
            self.html.push_str(&end);
        }
    }

    fn text(&mut self, text: &str) {
        self.put(&plain(text));
    }

    fn put(&mut self, html: &Markup) {
        self.html.push_str(&html.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: &str) {
        let limit = Limit { text: 1_000, line: 100 };
        assert_eq!(words(text, limit, &Budget::new(0)).into_string(), expect, "{text:?}");
    }

    #[test]
    fn markdown_becomes_the_elements_of_this_file_and_nothing_else() {
        check("*a* **b** `c`", "<p><em>a</em> <strong>b</strong> <code>c</code></p>");
        check("# T\n\n- [x] a", "<h3>T</h3><ul><li>☑ a</li></ul>");
        check("<b onclick=x>", "<p>&lt;b onclick=x&gt;</p>");
        check("a <script>alert(1)</script>", "<p>a &lt;script&gt;alert(1)&lt;/script&gt;</p>");
        check(
            "[x](javascript:alert(1))",
            "<p><span class=\"addr\">javascript:alert(1)</span> x</p>",
        );
        check(
            "![p](http://e.com/a.png)",
            "<p><span class=\"addr\">image: http://e.com/a.png</span> p</p>",
        );
        check(
            "<https://e.com/\"onclick=x>",
            "<p><a rel=\"noopener noreferrer nofollow\" \
             href=\"https://e.com/&quot;onclick=x\">https://e.com/&quot;onclick=x</a></p>",
        );
        check("```rs\n<b>\n```", "<pre class=\"code\"><code>&lt;b&gt;\n</code></pre>");
        check(
            "|a|\n|-|\n|b|",
            "<div class=\"wide\"><table><thead><tr><th>a</th></tr></thead><tr><td>b</td></tr>\
             </table></div>",
        );
    }

    #[test]
    fn what_is_nested_too_deeply_is_flat() {
        let html = words(&"> ".repeat(400), Limit { text: 1_000, line: 1_000 }, &Budget::new(0));
        assert_eq!(html.0.matches("<blockquote>").count(), DEEPEST);
        assert_eq!(html.0.matches("</blockquote>").count(), DEEPEST);
    }

    #[test]
    fn lists_and_marks_keep_their_form() {
        check("3. a\n4. b", "<ol start=\"3\"><li>a</li><li>b</li></ol>");
        check("- a\n  - b", "<ul><li>a<ul><li>b</li></ul></li></ul>");
        check("- [ ] a", "<ul><li>☐ a</li></ul>");
        check("~~a~~\nb", "<p><del>a</del><br>b</p>");
        check("> a\n\n---", "<blockquote><p>a</p></blockquote><hr>");
        check("# a\n## b\n### c\n#### d", "<h3>a</h3><h4>b</h4><h5>c</h5><h6>d</h6>");
        check("## a\n#### b\n##### c", "<h3>a</h3><h5>b</h5><h6>c</h6>");
        check("a\u{202e}", "<p>a<span class=\"ctl\">\\u{202e}</span></p>");
    }

    #[test]
    fn a_text_beyond_the_limit_is_cut_and_shown_as_it_stands() {
        let html = words(&"*\n".repeat(8), Limit { text: 8, line: 100 }, &Budget::new(0));
        let expect = "<pre class=\"raw\">*\n*\n*\n</pre><p class=\"gap\">4 lines not shown, 8 B</p>\
             <pre class=\"raw\">*\n</pre>";
        assert_eq!(html.into_string(), expect);
    }
}
