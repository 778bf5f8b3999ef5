//! Tables. On a terminal they are fitted to its width: some columns are cut, and others are left
//! out.

use std::fmt::Write as _;

use anstyle::Style;
use epitome_render::width_of;

use crate::text::{self, DIM, PLAIN, cut, field};

/// The number of spaces between two columns.
const GAP: usize = 2;

/// The alignment of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Left,
    Right,
}

/// A text with its style.
type Cell = (Style, String);

/// Rows of cells. All cells of a column have the same width.
pub struct Table {
    sides: Vec<Side>,
    rows: Vec<(Style, Vec<Cell>)>,
    /// Columns whose cells may be cut, each with its minimum width.
    shrinking: Vec<(usize, usize)>,
    /// Columns that are left out if cutting does not suffice, in this order.
    leaving: Vec<usize>,
}

impl Table {
    pub fn new(sides: &[Side], heads: &[&str]) -> Table {
        let shrinking = Vec::new();
        let leaving = Vec::new();
        let mut table = Table { sides: sides.to_vec(), rows: Vec::new(), shrinking, leaving };
        if !heads.is_empty() {
            table.styled(DIM, heads.iter().map(|head| (*head).to_owned()).collect());
        }
        table
    }

    /// Allows the cells of a column to be cut to a width of `least`.
    pub fn shrinks(mut self, column: usize, least: usize) -> Table {
        self.shrinking.push((column, least));
        self
    }

    /// Allows columns to be left out, in this order, if cutting cells is not enough.
    pub fn leaves_out(mut self, columns: &[usize]) -> Table {
        self.leaving = columns.to_vec();
        self
    }

    pub fn row(&mut self, cells: Vec<String>) {
        self.styled(PLAIN, cells);
    }

    /// Adds a row in one style.
    pub fn styled(&mut self, style: Style, cells: Vec<String>) {
        self.rows.push((style, cells.iter().map(|cell| (PLAIN, field(cell))).collect()));
    }

    /// Adds a row whose cells have styles of their own.
    pub fn painted(&mut self, cells: Vec<(Style, String)>) {
        let cells = cells.into_iter().map(|(style, cell)| (style, field(&cell)));
        self.rows.push((PLAIN, cells.collect()));
    }

    /// Whether a column is shown on this terminal.
    pub fn is_shown(&self, column: usize) -> bool {
        self.widths(text::width().unwrap_or(usize::MAX)).get(column).is_some_and(Option::is_some)
    }

    /// The lines of the table, fitted to the terminal's width if there is a terminal.
    pub fn render(&self) -> String {
        self.render_within(text::width())
    }

    /// The lines of the table. They have at most `width` columns, if cutting cells and leaving out
    /// columns make that possible.
    pub fn render_within(&self, width: Option<usize>) -> String {
        let widths = self.widths(width.unwrap_or(usize::MAX));
        let mut text = String::new();
        for (style, cells) in &self.rows {
            let mut line = String::new();
            let mut gap = 0;
            for ((cell, side), width) in cells.iter().zip(&self.sides).zip(&widths) {
                let Some(width) = *width else { continue };
                let (painted, cell_text) = cell;
                let cell_text = cut(cell_text, width);
                let room = width - width_of(&cell_text);
                let (before, after) = match side {
                    Side::Left => (0, room),
                    Side::Right => (room, 0),
                };
                if cell_text.is_empty() {
                    gap += room + GAP;
                    continue;
                }
                let _ = write!(line, "{:1$}", "", gap + before);
                let _ = write!(line, "{painted}{cell_text}{painted:#}");
                gap = after + GAP;
            }
            let _ = writeln!(text, "{style}{line}{style:#}");
        }
        text
    }

    /// The width of each column for a table of at most `most` columns of the screen. `None` for a
    /// column that is empty or left out.
    fn widths(&self, most: usize) -> Vec<Option<usize>> {
        let natural = (0..self.sides.len()).map(|column| {
            let cells = self.rows.iter().filter_map(|(_, cells)| cells.get(column));
            let width = cells.map(|(_, cell)| width_of(cell)).max().unwrap_or(0);
            (width > 0).then_some(width)
        });
        let mut natural: Vec<Option<usize>> = natural.collect();
        let mut leaving = self.leaving.iter();
        loop {
            let shown = natural.iter().flatten();
            let gaps = GAP * shown.clone().count().saturating_sub(1);
            let mut over = (shown.sum::<usize>() + gaps).saturating_sub(most);
            let mut widths = natural.clone();
            for &(column, least) in &self.shrinking {
                let Some(width) = &mut widths[column] else { continue };
                let less = over.min(width.saturating_sub(least));
                *width -= less;
                over -= less;
            }
            match leaving.next() {
                Some(&column) if over > 0 => natural[column] = None,
                Some(_) | None => return widths,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> String {
        anstream::adapter::strip_str(text).to_string()
    }

    #[test]
    fn columns_are_aligned() {
        let mut table = Table::new(&[Side::Left, Side::Right], &["what", "n"]);
        table.row(vec!["a".into(), "10".into()]);
        table.row(vec!["日本".into(), "1".into()]);
        assert_eq!(plain(&table.render_within(None)), "what   n\na     10\n日本   1\n");
    }

    #[test]
    fn a_column_with_nothing_in_it_is_left_out() {
        let mut table = Table::new(&[Side::Left, Side::Left, Side::Left], &["a", "", "b"]);
        table.row(vec!["1".into(), String::new(), "2".into()]);
        table.row(vec![String::new(), String::new(), "3".into()]);
        assert_eq!(plain(&table.render_within(None)), "a  b\n1  2\n   3\n");
    }

    #[test]
    fn what_shrinks_is_cut_and_then_columns_go() {
        let sides = [Side::Left, Side::Right, Side::Left];
        let mut table = Table::new(&sides, &["id", "size", "title"]).shrinks(2, 4).leaves_out(&[1]);
        table.row(vec!["x".into(), "1.2 MB".into(), "日本語 for all".into()]);
        for (width, expect) in [
            (26, "id    size  title\nx   1.2 MB  日本語 for all\n"),
            (25, "id    size  title\nx   1.2 MB  日本語 for a…\n"),
            (16, "id    size  tit…\nx   1.2 MB  日…\n"),
            (15, "id  title\nx   日本語 for…\n"),
            (8, "id  tit…\nx   日…\n"),
            // The table cannot become narrower.
            (1, "id  tit…\nx   日…\n"),
        ] {
            assert_eq!(plain(&table.render_within(Some(width))), expect, "{width}");
        }
    }

    #[test]
    fn cells_have_styles_of_their_own() {
        let mut table = Table::new(&[Side::Right, Side::Left], &[]);
        table.painted(vec![(DIM, "1".into()), (PLAIN, "a".into())]);
        table.painted(vec![(PLAIN, "10".into()), (PLAIN, "b".into())]);
        assert_eq!(table.render_within(None), format!(" {DIM}1{DIM:#}  a\n10  b\n"));
    }
}
