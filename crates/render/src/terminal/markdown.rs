//! Formats Markdown as lines for a terminal.

use anstyle::{AnsiColor, Style};
use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use super::wrap::{Breaks, Run, clean, width_of, wrap};
use crate::{Token, highlight};

type Span = Run<Style>;

/// Columns of the separator between two table columns.
const BETWEEN: usize = 3;
/// Minimum width of a table column, unless its widest cell is narrower.
const NARROWEST_COLUMN: usize = 6;

const PLAIN: Style = Style::new();
const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const ITALIC: Style = Style::new().italic();
const HEADING: Style = AnsiColor::Cyan.on_default().bold();
const CODE: Style = AnsiColor::Cyan.on_default();
const LINK: Style = AnsiColor::Blue.on_default().underline();

/// Formats Markdown as lines of at most `width` columns, each a list of runs. Code is highlighted
/// if `highlighted` is set, which takes longer than all the rest. Control characters are made
/// visible.
///
/// ```
/// use epitome_render::{Run, markdown_lines};
///
/// let lines = markdown_lines("A **bold** word", 80, false);
/// let (plain, bold) = (anstyle::Style::new(), anstyle::Style::new().bold());
/// let run = |text: &str, style| Run { text: text.to_owned(), style };
/// assert_eq!(lines, [[run("A ", plain), run("bold", bold), run(" word", plain)]]);
/// ```
pub fn markdown_lines(text: &str, width: usize, highlighted: bool) -> Vec<Vec<Run<Style>>> {
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut writer = Writer {
        width,
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

/// A quotation, or an item of a list.
enum Container {
    Quote,
    Item { marker: String, is_used: bool },
}

#[derive(Default)]
struct Table {
    rows: Vec<Vec<Vec<Span>>>,
}

struct Writer {
    width: usize,
    highlighted: bool,
    lines: Vec<Vec<Span>>,
    containers: Vec<Container>,
    /// The next number of each open list; `None` for bullet lists.
    lists: Vec<Option<u64>>,
    inline: Vec<Span>,
    styles: Vec<Style>,
    /// The address of each open link or image, and the index in `inline` at which its text begins.
    links: Vec<(String, usize)>,
    /// The language and the text of an open code block.
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
                None => self.text(&text, PLAIN),
            },
            Event::Code(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                self.text(&text, CODE);
            }
            Event::Html(text) | Event::InlineHtml(text) => {
                for line in text.split_inclusive('\n') {
                    self.text(line.trim_end_matches('\n'), DIM);
                    if line.ends_with('\n') {
                        self.flush();
                    }
                }
            }
            Event::FootnoteReference(name) => self.text(&format!("[{name}]"), DIM),
            Event::SoftBreak => self.text(" ", PLAIN),
            Event::HardBreak => self.flush(),
            Event::Rule => {
                self.gap();
                let rule = "─".repeat(self.width.min(40));
                self.lines.push(vec![styled(rule, DIM)]);
            }
            Event::TaskListMarker(done) => {
                let mark = if done { "☑ " } else { "☐ " };
                self.text(mark, PLAIN);
            }
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph => self.gap(),
            Tag::Heading { level, .. } => {
                self.gap();
                let style = match level {
                    HeadingLevel::H1 | HeadingLevel::H2 => HEADING,
                    _ => BOLD,
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
            Tag::Emphasis => self.styles.push(ITALIC),
            Tag::Strong => self.styles.push(BOLD),
            Tag::Strikethrough => self.styles.push(DIM),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.links.push((dest_url.to_string(), self.inline.len()));
                self.styles.push(LINK);
            }
            Tag::Table(_) => {
                self.gap();
                self.table = Some(Table::default());
            }
            Tag::TableHead => {
                self.styles.push(BOLD);
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
                // Show the marker of an empty item.
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
        let style = self.styles.iter().fold(style, |style, more| patched(style, *more));
        self.inline.push(styled(clean(text), style));
    }

    /// Ends a link or an image: its address is shown unless it is equal to the text.
    fn link(&mut self) {
        self.styles.pop();
        let Some((address, begin)) = self.links.pop() else { return };
        let shown: String =
            self.inline[begin.min(self.inline.len())..].iter().map(|span| &*span.text).collect();
        let address = clean(&address);
        if shown != address && !address.is_empty() {
            self.text(&format!(" ({address})"), DIM);
        }
    }

    /// Adds an empty line before a block, except before the first block of the text or of a list
    /// item.
    fn gap(&mut self) {
        let is_first =
            matches!(self.containers.last(), Some(Container::Item { is_used: false, .. }));
        if self.lines.last().is_some_and(|line| !line.is_empty()) && !is_first {
            self.lines.push(Vec::new());
        }
    }

    /// Writes the current line.
    fn flush(&mut self) {
        if self.table.is_some() || self.inline.is_empty() {
            return;
        }
        let inline = std::mem::take(&mut self.inline);
        self.line(&inline, Breaks::Words);
    }

    /// The columns that are left for text next to the bars of quotations and markers of lists.
    fn room(&self) -> usize {
        let taken = self.containers.iter().map(|container| match container {
            Container::Quote => 2,
            Container::Item { marker, .. } => width_of(marker),
        });
        self.width.saturating_sub(taken.sum())
    }

    fn line(&mut self, runs: &[Span], breaks: Breaks) {
        self.barred(runs, breaks, None);
    }

    /// Writes a line, wrapped. Each of the resulting lines begins with the marks of the open
    /// quotations and items, and then with `bar`.
    fn barred(&mut self, runs: &[Span], breaks: Breaks, bar: Option<&Span>) {
        let mut first = Vec::new();
        let mut rest = Vec::new();
        for container in &mut self.containers {
            match container {
                Container::Quote => {
                    let bar = styled("│ ", DIM);
                    first.push(bar.clone());
                    rest.push(bar);
                }
                Container::Item { marker, is_used } => {
                    let blank = styled(" ".repeat(width_of(marker)), PLAIN);
                    let marker = styled(marker.clone(), DIM);
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
        let bar = styled("▏ ", DIM);
        let mut line = Vec::new();
        let mut is_open = false;
        for (token, run) in runs {
            for part in run.split_inclusive('\n') {
                let text = part.trim_end_matches(['\n', '\r']);
                line.push(styled(clean(text), style_of(token)));
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
        let wanted: Vec<usize> = (0..count)
            .map(|at| {
                let cells = rows.iter().filter_map(|row| row.get(at));
                cells.map(|cell| cell.iter().map(|it| width_of(&it.text)).sum()).max()
            })
            .map(Option::unwrap_or_default)
            .collect();
        let widths = column_widths(&wanted, self.room());
        for (number, row) in rows.iter().enumerate() {
            match &widths {
                Some(widths) => self.row_in_columns(row, widths),
                None => {
                    let line: Vec<Span> = row.join(&styled(" │ ", DIM));
                    self.line(&line, Breaks::Words);
                }
            }
            if let (0, Some(widths)) = (number, &widths) {
                let lines: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
                self.line(&[styled(lines.join("─┼─"), DIM)], Breaks::Anywhere);
            }
        }
    }

    /// A row of a table: a cell that is wider than its column is wrapped.
    fn row_in_columns(&mut self, row: &[Vec<Span>], widths: &[usize]) {
        let cells: Vec<Vec<Vec<Span>>> = (row.iter().zip(widths))
            .map(|(cell, width)| wrap(cell, *width, Breaks::Words, &[], &[]))
            .collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or(0);
        for at in 0..height {
            let mut line: Vec<Span> = Vec::new();
            for (column, (cell, width)) in cells.iter().zip(widths).enumerate() {
                if column > 0 {
                    line.push(styled(" │ ", DIM));
                }
                let part = cell.get(at).map_or(&[][..], Vec::as_slice);
                let used: usize = part.iter().map(|it| width_of(&it.text)).sum();
                line.extend(part.iter().cloned());
                line.push(styled(" ".repeat(width.saturating_sub(used)), PLAIN));
            }
            self.line(&line, Breaks::Anywhere);
        }
    }
}

/// The widths of columns that fit into `room`. Narrow columns get the width that they need, and
/// wide ones share the rest. `None` if a column would become narrower than `NARROWEST_COLUMN` and
/// also narrower than its widest cell, or if the separators alone do not fit.
fn column_widths(wanted: &[usize], room: usize) -> Option<Vec<usize>> {
    let mut left = room.checked_sub(BETWEEN * wanted.len().saturating_sub(1))?;
    let mut narrow_first: Vec<usize> = (0..wanted.len()).collect();
    narrow_first.sort_by_key(|&at| wanted[at]);
    let mut widths = vec![0; wanted.len()];
    for (done, at) in narrow_first.into_iter().enumerate() {
        let share = left / (wanted.len() - done);
        widths[at] = wanted[at].min(share);
        left -= widths[at];
        if widths[at] < wanted[at].min(NARROWEST_COLUMN) {
            return None;
        }
    }
    Some(widths)
}

fn styled(text: impl Into<String>, style: Style) -> Span {
    Run { text: text.into(), style }
}

/// A style with the settings of another one added.
fn patched(style: Style, more: Style) -> Style {
    let colour = more.get_fg_color().or(style.get_fg_color());
    Style::new().fg_color(colour).effects(style.get_effects() | more.get_effects())
}

/// The style of a kind of token.
fn style_of(token: Option<Token>) -> Style {
    match token {
        None => PLAIN,
        Some(Token::Comment) => DIM,
        Some(Token::String) => AnsiColor::Green.on_default(),
        Some(Token::Number) => AnsiColor::Magenta.on_default(),
        Some(Token::Keyword) => AnsiColor::Blue.on_default().bold(),
        Some(Token::Function | Token::Attribute) => AnsiColor::Cyan.on_default(),
        Some(Token::Type) => AnsiColor::Yellow.on_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fit(text: &str, width: usize) -> String {
        let lines = markdown_lines(text, width, true);
        let line_text = |line: &Vec<Span>| line.iter().map(|run| &*run.text).collect::<String>();
        lines.iter().map(|line| format!("{}\n", line_text(line).trim_end())).collect()
    }

    #[test]
    fn blocks_are_laid_out() {
        let text = "# Title\n\nA **bold** word, `code` and [a link](https://x.y).\n\n\
                    1. one\n2. two which is longer\n   - nested\n\n> quoted\n> text\n\n\
                    ```rust\nfn main() {\n\tlet a = 1;\n}\n```\n\n\
                    | a | bb |\n|---|---|\n| 1 | 2 |\n\n- [x] done\n- [ ] open\n\n\
                    ---\nEnd <b>x</b>";
        insta::assert_snapshot!(fit(text, 30), @r"
        Title

        A bold word, code and a link
        (https://x.y).

        1. one
        2. two which is longer
           • nested

        │ quoted text

        ▏ fn main() {
        ▏     let a = 1;
        ▏ }

        a │ bb
        ──┼───
        1 │ 2

        • ☑ done
        • ☐ open

        ──────────────────────────────

        End <b>x</b>
        ");
    }

    #[test]
    fn a_wide_table_keeps_its_columns_and_cuts_its_cells() {
        let text = "| id | what it does |\n|---|---|\n| 1 | one two three four |\n| 22 | x |";
        let expect =
            "id │ what it does\n───┼──────────────\n1  │ one two three\n   │ four\n22 │ x\n";
        assert_eq!(fit(text, 18), expect);
        let quoted = expect.lines().map(|line| format!("│ {line}\n")).collect::<String>();
        assert_eq!(fit(&format!("> {}", text.replace('\n', "\n> ")), 20), quoted);
    }

    #[test]
    fn columns_share_what_narrow_ones_leave() {
        assert_eq!(column_widths(&[2, 3], 80), Some(vec![2, 3]));
        assert_eq!(column_widths(&[40, 2, 40], 28), Some(vec![10, 2, 10]));
        assert_eq!(column_widths(&[9, 9, 9], 20), None);
        assert_eq!(column_widths(&[1; 9], 20), None);
        assert_eq!(column_widths(&[], 20), Some(vec![]));
    }

    #[test]
    fn styles_say_what_a_text_is() {
        let lines = markdown_lines("**b** *i* `c` [**d**](e)", 80, true);
        let bold_link = AnsiColor::Blue.on_default().underline().bold();
        let runs = [
            ("b", BOLD),
            (" ", PLAIN),
            ("i", ITALIC),
            (" ", PLAIN),
            ("c", CODE),
            (" ", PLAIN),
            ("d", bold_link),
            (" (e)", DIM),
        ];
        assert_eq!(lines, [runs.map(|(text, style)| styled(text, style))]);
    }

    #[test]
    fn hostile_text_is_shown_and_not_obeyed() {
        let text = "a\u{1b}[2Jb `c\u{9b}d`\n\n```\n\u{1b}]0;t\u{7}\n```\n[x](\u{1b}y)";
        let expect = "a␛[2Jb c\\u{9b}d\n\n▏ ␛]0;t␇\n\n[x](␛y)\n";
        assert_eq!(fit(text, 80), expect);
    }
}
