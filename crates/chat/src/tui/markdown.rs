//! Markdown as lines of a terminal.

use std::ops::Range;

use epitome_render::highlight;
use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::text::{Breaks, clean, width_of, wrap};
use super::theme::Theme;

/// Renders a text. Code is coloured if `highlighted`, which costs more than all the rest.
pub(super) fn markdown(
    text: &str,
    width: usize,
    theme: Theme,
    highlighted: bool,
) -> Vec<Line<'static>> {
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut writer = Writer {
        width,
        theme,
        highlighted,
        lines: Vec::new(),
        containers: Vec::new(),
        lists: Vec::new(),
        inline: Vec::new(),
        styles: Vec::new(),
        links: Vec::new(),
        code: None,
        table: None,
    };
    for event in Parser::new_ext(text, options) {
        writer.event(event);
    }
    writer.flush();
    writer.lines
}

/// Where the part of a text ends that what comes later does not change: behind the last empty line
/// outside of code that is followed by a new paragraph.
pub(super) fn settled(text: &str) -> usize {
    let mut end = 0;
    let mut at = 0;
    let mut fence: Option<&str> = None;
    let mut after_blank = false;
    for line in text.split_inclusive('\n') {
        let bare = line.trim_start();
        let mark = ["```", "~~~"].into_iter().find(|mark| bare.starts_with(mark));
        let begins = line.starts_with(|c: char| c.is_alphabetic() || matches!(c, '`' | '#'));
        if fence.is_none() && after_blank && begins {
            end = at;
        }
        match (fence, mark) {
            (None, Some(_)) => fence = mark,
            (Some(open), Some(mark)) if open == mark => fence = None,
            _ => {}
        }
        after_blank = fence.is_none() && bare.trim_end().is_empty() && line.ends_with('\n');
        at += line.len();
    }
    end
}

/// A quote, or an item of a list.
enum Container {
    Quote,
    Item { marker: String, is_used: bool },
}

#[derive(Default)]
struct Table {
    rows: Vec<Vec<Vec<Span<'static>>>>,
}

struct Writer {
    width: usize,
    theme: Theme,
    highlighted: bool,
    lines: Vec<Line<'static>>,
    containers: Vec<Container>,
    /// The number of the next item of each open list, if it has numbers.
    lists: Vec<Option<u64>>,
    inline: Vec<Span<'static>>,
    styles: Vec<Style>,
    /// Addresses of open links, and where their texts begin.
    links: Vec<(String, usize)>,
    /// The language and the text of an open block of code.
    code: Option<(String, String)>,
    table: Option<Table>,
}

impl Writer {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => match &mut self.code {
                Some((_, code)) => code.push_str(&text),
                None => self.text(&text, self.theme.plain()),
            },
            Event::Code(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                self.text(&text, self.theme.code());
            }
            Event::Html(text) | Event::InlineHtml(text) => {
                for line in text.split_inclusive('\n') {
                    self.text(line.trim_end_matches('\n'), self.theme.dim());
                    if line.ends_with('\n') {
                        self.flush();
                    }
                }
            }
            Event::FootnoteReference(name) => self.text(&format!("[{name}]"), self.theme.dim()),
            Event::SoftBreak => self.text(" ", self.theme.plain()),
            Event::HardBreak => self.flush(),
            Event::Rule => {
                self.gap();
                let rule = "─".repeat(self.width.min(40));
                self.lines.push(Line::styled(rule, self.theme.dim()));
            }
            Event::TaskListMarker(done) => {
                let mark = if done { "☑ " } else { "☐ " };
                self.text(mark, self.theme.plain());
            }
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph => self.gap(),
            Tag::Heading { level, .. } => {
                self.gap();
                let style = match level {
                    HeadingLevel::H1 | HeadingLevel::H2 => self.theme.accent(),
                    _ => self.theme.bold(),
                };
                self.styles.push(style);
            }
            Tag::BlockQuote(_) => {
                self.gap();
                self.containers.push(Container::Quote);
            }
            Tag::CodeBlock(kind) => {
                self.flush();
                self.gap();
                let language = match kind {
                    CodeBlockKind::Fenced(name) => name.to_string(),
                    CodeBlockKind::Indented => String::new(),
                };
                self.code = Some((language, String::new()));
            }
            Tag::List(first) => {
                self.flush();
                if self.lists.is_empty() {
                    self.gap();
                }
                self.lists.push(first);
            }
            Tag::Item => {
                let marker = match self.lists.last_mut() {
                    Some(Some(number)) => {
                        let marker = format!("{number}. ");
                        *number += 1;
                        marker
                    }
                    Some(None) | None => "• ".to_owned(),
                };
                self.containers.push(Container::Item { marker, is_used: false });
            }
            Tag::Emphasis => self.styles.push(self.theme.italic()),
            Tag::Strong => self.styles.push(self.theme.bold()),
            Tag::Strikethrough => self.styles.push(self.theme.dim()),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.links.push((dest_url.to_string(), self.inline.len()));
                self.styles.push(self.theme.link());
            }
            Tag::Table(_) => {
                self.gap();
                self.table = Some(Table::default());
            }
            Tag::TableHead => {
                self.styles.push(self.theme.bold());
                self.row();
            }
            Tag::TableRow => self.row(),
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph => self.flush(),
            TagEnd::Heading(_) => {
                self.flush();
                self.styles.pop();
            }
            TagEnd::BlockQuote(_) | TagEnd::Item => {
                self.flush();
                // An item of nothing is there, too.
                if let Some(Container::Item { is_used: false, .. }) = self.containers.last() {
                    self.line(&[], Breaks::Words);
                }
                self.containers.pop();
            }
            TagEnd::CodeBlock => self.code(),
            TagEnd::List(_) => drop(self.lists.pop()),
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => drop(self.styles.pop()),
            TagEnd::Link | TagEnd::Image => self.link(),
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.inline);
                let rows = self.table.as_mut().and_then(|table| table.rows.last_mut());
                rows.into_iter().for_each(|row| row.push(cell.clone()));
            }
            TagEnd::TableHead => drop(self.styles.pop()),
            TagEnd::Table => self.table(),
            _ => {}
        }
    }

    fn row(&mut self) {
        self.table.iter_mut().for_each(|table| table.rows.push(Vec::new()));
    }

    fn text(&mut self, text: &str, style: Style) {
        let style = self.styles.iter().fold(style, |style, more| style.patch(*more));
        self.inline.push(Span::styled(clean(text), style));
    }

    /// An address is shown unless it is the text.
    fn link(&mut self) {
        self.styles.pop();
        let Some((address, begin)) = self.links.pop() else { return };
        let shown: String =
            self.inline[begin.min(self.inline.len())..].iter().map(|span| &*span.content).collect();
        let address = clean(&address);
        if shown != address && !address.is_empty() {
            self.text(&format!(" ({address})"), self.theme.dim());
        }
    }

    /// An empty line before a block, but for the first of an item.
    fn gap(&mut self) {
        let is_first =
            matches!(self.containers.last(), Some(Container::Item { is_used: false, .. }));
        if self.lines.last().is_some_and(|line| line.width() > 0) && !is_first {
            self.lines.push(Line::default());
        }
    }

    /// Ends the line that is being written.
    fn flush(&mut self) {
        if self.table.is_some() || self.inline.is_empty() {
            return;
        }
        let inline = std::mem::take(&mut self.inline);
        self.line(&inline, Breaks::Words);
    }

    fn line(&mut self, runs: &[Span<'_>], breaks: Breaks) {
        self.barred(runs, breaks, None);
    }

    /// A line with a bar before it and before all that it is cut into.
    fn barred(&mut self, runs: &[Span<'_>], breaks: Breaks, bar: Option<&Span<'static>>) {
        let (mut first, mut rest) = (Vec::new(), Vec::new());
        for container in &mut self.containers {
            match container {
                Container::Quote => {
                    let bar = Span::styled("│ ", self.theme.dim());
                    first.push(bar.clone());
                    rest.push(bar);
                }
                Container::Item { marker, is_used } => {
                    let blank = Span::raw(" ".repeat(width_of(marker)));
                    let marker = Span::styled(marker.clone(), self.theme.dim());
                    first.push(if *is_used { blank.clone() } else { marker });
                    rest.push(blank);
                    *is_used = true;
                }
            }
        }
        first.extend(bar.cloned());
        rest.extend(bar.cloned());
        self.lines.extend(wrap(runs, self.width, breaks, &first, &rest));
    }

    fn code(&mut self) {
        let Some((language, code)) = self.code.take() else { return };
        let language = language.split([',', ' ', '{']).next().unwrap_or_default();
        let runs = if self.highlighted { highlight(&code, language) } else { None };
        let runs = runs.unwrap_or_else(|| vec![(None, &*code)]);
        let bar = Span::styled("▏ ", self.theme.dim());
        let mut line = Vec::new();
        let mut is_open = false;
        for (token, run) in runs {
            for part in run.split_inclusive('\n') {
                let text = part.trim_end_matches(['\n', '\r']);
                line.push(Span::styled(clean(text), self.theme.token(token)));
                is_open = !part.ends_with('\n');
                if !is_open {
                    let done = std::mem::take(&mut line);
                    self.barred(&done, Breaks::Anywhere, Some(&bar));
                }
            }
        }
        if is_open {
            self.barred(&line, Breaks::Anywhere, Some(&bar));
        }
    }

    fn table(&mut self) {
        let Some(Table { rows }) = self.table.take() else { return };
        let count = rows.iter().map(Vec::len).max().unwrap_or(0);
        let cell_width = |cell: &[Span<'_>]| cell.iter().map(|it| width_of(&it.content)).sum();
        let widths: Vec<usize> = (0..count)
            .map(|at| rows.iter().filter_map(|row| Some(cell_width(row.get(at)?))).max())
            .map(Option::unwrap_or_default)
            .collect();
        let between: Range<usize> = 0..count.saturating_sub(1);
        let fits = widths.iter().sum::<usize>() + 3 * between.len() <= self.width;
        for (number, row) in rows.iter().enumerate() {
            let mut line: Vec<Span<'_>> = Vec::new();
            for (at, cell) in row.iter().enumerate() {
                line.extend(cell.iter().cloned());
                if fits {
                    let gap = widths[at].saturating_sub(cell_width(cell));
                    line.push(Span::raw(" ".repeat(gap)));
                }
                if between.contains(&at) {
                    line.push(Span::styled(" │ ", self.theme.dim()));
                }
            }
            self.line(&line, Breaks::Words);
            if number == 0 && fits {
                let lines: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
                self.line(&[Span::styled(lines.join("─┼─"), self.theme.dim())], Breaks::Anywhere);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, width: usize) -> String {
        let lines = markdown(text, width, Theme { colours: true }, true);
        lines.iter().map(|line| format!("{}\n", line.to_string().trim_end())).collect()
    }

    #[test]
    fn blocks_are_laid_out() {
        let text = "# Title\n\nA **bold** word, `code` and [a link](https://x.y).\n\n\
                    1. one\n2. two which is longer\n   - nested\n\n> quoted\n> text\n\n\
                    ```rust\nfn main() {\n\tlet a = 1;\n}\n```\n\n\
                    | a | bb |\n|---|---|\n| 1 | 2 |\n\n- [x] done\n- [ ] open\n\n\
                    ---\nEnd <b>x</b>";
        insta::assert_snapshot!(shown(text, 30));
    }

    #[test]
    fn styles_say_what_a_text_is() {
        let theme = Theme { colours: true };
        let lines = markdown("**b** *i* `c`", 80, theme, true);
        let expect = Line::from(vec![
            Span::styled("b", theme.bold()),
            Span::raw(" "),
            Span::styled("i", theme.italic()),
            Span::raw(" "),
            Span::styled("c", theme.code()),
        ]);
        assert_eq!(lines, [expect]);
    }

    #[test]
    fn hostile_text_is_shown_and_not_obeyed() {
        let text = "a\u{1b}[2Jb `c\u{9b}d`\n\n```\n\u{1b}]0;t\u{7}\n```\n[x](\u{1b}y)";
        let expect = "a␛[2Jb c\\u{9b}d\n\n▏ ␛]0;t␇\n\n[x](␛y)\n";
        assert_eq!(shown(text, 80), expect);
    }

    #[test]
    fn what_is_settled_does_not_change_any_more() {
        for (text, expect) in [
            ("one", ""),
            ("one\n\n", ""),
            ("one\n\ntwo", "one\n\n"),
            ("one\n\n  two", ""),
            ("- one\n\n- two", ""),
            ("```\na\n\nb", ""),
            ("```\na\n```\n\nb", "```\na\n```\n\n"),
        ] {
            assert_eq!(&text[..settled(text)], expect, "{text:?}");
        }
    }
}
