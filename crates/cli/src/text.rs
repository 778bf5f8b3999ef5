//! Text for people: numbers, paths, bars, and the width of the terminal.
//!
//! Text of a session must be made harmless before it is printed on a terminal, for example with
//! [`field`] or [`one_line`].

use std::io::IsTerminal;
use std::path::Path;

use anstyle::{AnsiColor, Style};
pub use epitome::agents::shell_word;
use epitome_model::Bytes;
pub use epitome_model::{percent_change as change, plural as count};
pub use epitome_render::{cut_to_width as cut, visible};
use jiff::Timestamp;

pub use crate::fold::wrap_line;

pub const BOLD: Style = Style::new().bold();
pub const DIM: Style = Style::new().dimmed();
pub const RED: Style = AnsiColor::Red.on_default().bold();
pub const YELLOW: Style = AnsiColor::Yellow.on_default().bold();
pub const GREEN: Style = AnsiColor::Green.on_default();
pub const PLAIN: Style = Style::new();

/// The colour of an agent's name, the same in every table.
pub fn agent_colour(agent: &str) -> Style {
    const COLOURS: [AnsiColor; 6] = [
        AnsiColor::Yellow,
        AnsiColor::Cyan,
        AnsiColor::Magenta,
        // Plain blue is hard to read on black.
        AnsiColor::BrightBlue,
        AnsiColor::BrightGreen,
        AnsiColor::BrightRed,
    ];
    let place = epitome_formats::FORMATS.iter().position(|format| format.name == agent);
    place.map_or(PLAIN, |place| COLOURS[place % COLOURS.len()].on_default())
}

/// A text of a session (an id, a name, a path) on one line; line feeds and tabs become symbols.
pub fn field(text: &str) -> String {
    visible(text).replace('\n', "␊").replace('\t', "␉")
}

/// `text` on one line of at most `max` characters, with control characters made visible.
pub fn one_line(text: &str, max: usize) -> String {
    let flat: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    epitome_model::short(&visible(&flat), max)
}

/// A path as text, with `~` for the user's home folder.
pub fn path(path: &Path) -> String {
    let shown = match std::env::home_dir() {
        Some(home) if home != Path::new("/") => match path.strip_prefix(&home) {
            Ok(rest) if rest != Path::new("") => format!("~/{}", rest.display()),
            Ok(_) => "~".to_owned(),
            Err(_) => path.display().to_string(),
        },
        Some(_) | None => path.display().to_string(),
    };
    field(&shown)
}

/// `part` as a percentage of `whole`: `12.3%`, or `-` if `whole` is 0.
pub fn share(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "-".to_owned();
    }
    #[expect(clippy::cast_precision_loss, reason = "shown with one decimal")]
    let percent = part as f64 * 100.0 / whole as f64;
    format!("{percent:.1}%")
}

/// `part` of `whole` as a bar of at most ten columns. Empty if standard output is no terminal, or
/// if `whole` is 0.
pub fn bar(part: u64, whole: u64) -> String {
    if width().is_none() || whole == 0 {
        return String::new();
    }
    bar_of(part, whole)
}

/// The part of `before` that was saved, as a bar of ten columns with a shaded rest. Empty if
/// nothing was saved, or if standard output is no terminal.
pub fn saved_bar(after: u64, before: u64) -> String {
    if after >= before || width().is_none() {
        return String::new();
    }
    full_bar(before - after, before)
}

/// `part` of `whole` as a bar of ten columns with a shaded rest.
pub fn full_bar(part: u64, whole: u64) -> String {
    let bar = bar_of(part, whole);
    let rest = 10 - bar.chars().count();
    bar + &"░".repeat(rest)
}

/// A bar in steps of an eighth of a column.
fn bar_of(part: u64, whole: u64) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = usize::try_from(part.min(whole) * 80 / whole.max(1)).unwrap_or(80);
    // A part above zero is always visible.
    let eighths = if part > 0 { eighths.max(1) } else { 0 };
    format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8])
}

/// The beginning of a hash, long enough to distinguish files: `blake3 21dd95183f7f93f4…`. JSON has
/// the whole hash.
pub fn short_hash(blake3: &str) -> String {
    format!("blake3 {}…", blake3.get(..16).unwrap_or(blake3))
}

/// The time from `then` to `now`, such as `3m`, `5h`, `12d` or `7w`. For less than a minute, the
/// word `now`.
pub fn age(now: Timestamp, then: Timestamp) -> String {
    let seconds = now.duration_since(then).as_secs();
    match seconds {
        ..60 => "now".to_owned(),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..86_400 => format!("{}h", seconds / 3_600),
        86_400..1_209_600 => format!("{}d", seconds / 86_400),
        _ => format!("{}w", seconds / 604_800),
    }
}

/// A size before and after: `4.2 MB → 812.0 KB`.
pub fn bytes_change(before: Bytes, after: Bytes) -> String {
    format!("{before} → {after}")
}

/// The width of the output in columns: the variable `COLUMNS`, or the terminal's width, or 100.
pub fn columns() -> usize {
    let given = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    given.or_else(|| terminal_size::terminal_size().map(|(width, _)| width.0.into())).unwrap_or(100)
}

/// The width of the terminal in columns; `None` if standard output is not a terminal.
pub fn width() -> Option<usize> {
    std::io::stdout().is_terminal().then(columns)
}

/// A text of a session on one line of at most `columns` columns.
pub fn fit_line(text: &str, columns: usize) -> String {
    cut(&one_line(text, 1_000), columns)
}

/// For each id, its shortest unique prefix of at least eight characters, on one line.
pub fn short_ids(ids: &[&str]) -> Vec<String> {
    epitome::list::short_ids(ids).into_iter().map(|id| one_line(&id, 40)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_shown() {
        assert_eq!(
            visible("a\x1b[31mred\u{7}\n\tb\u{9b}2J\u{202e}"),
            concat!("a␛[31mred␇\n\tb", r"\u{9b}2J\u{202e}",)
        );
        assert_eq!(field("a\nb\tc\u{200b}"), r"a␊b␉c\u{200b}");
    }

    #[test]
    fn what_is_fitted_is_measured_in_columns() {
        assert_eq!(fit_line("one\ttwo\nthree", 9), "one two…");
        assert_eq!(fit_line("日本語日本語", 7), "日本語…");
        assert_eq!(fit_line("日本語日本語", 12), "日本語日本語");
        assert_eq!(fit_line("a\u{1b}[2Jb", 40), "a␛[2Jb");
    }

    #[test]
    fn bars_are_parts_of_ten_columns() {
        assert_eq!(bar_of(0, 100), "");
        assert_eq!(bar_of(1, 1_000), "▏");
        assert_eq!(bar_of(33, 100), "███▎");
        assert_eq!(bar_of(100, 100), "██████████");
        assert_eq!(bar_of(120, 100), "██████████");
    }
}
