//! The entries of a conversation, and their lines.

use std::cell::RefCell;
use std::rc::Rc;

use epitome_engine::{ContentShare, WindowUse};
use epitome_model::{Tokens, plural};
use ratatui::text::{Line, Span};

use super::markdown::{markdown, settled_len};
use super::preview::Preview;
use super::text::{Breaks, clean, cut, width_of, wrap};
use super::theme::Theme;
use crate::commands::COMMANDS;
use crate::notices::{kind, reserve};
use crate::tools::{Fold, find_tool, subject};

/// The maximum width of prose in columns: longer lines are hard to read.
const PROSE: usize = 120;
/// The maximum number of lines of a folded message.
const FOLDED_MESSAGE: usize = 20;
/// The maximum number of lines of a folded result.
const FOLDED: usize = 4;
/// The maximum number of lines of a folded diff.
const FOLDED_CHANGE: usize = 16;
/// The maximum number of lines of a message, result or diff that are shown if it is not folded.
const MOST: usize = 2_000;

/// An entry of the conversation.
pub(super) enum Entry {
    /// A message of the user.
    User(String),
    /// Text of the model.
    Answer(Answer),
    /// Reasoning.
    Thinking(Answer),
    /// A call and its result.
    Call(Card),
    /// A notice of the program.
    Note(Tone, String),
    /// How full the window is, its contents, and its whole size.
    Window(WindowUse, Vec<ContentShare>, Option<Tokens>),
    /// The help: keys and commands.
    Help,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tone {
    /// A remark that needs no attention.
    Quiet,
    /// A success.
    Good,
    /// An explanation in a demo.
    Guide,
    Warn,
    Bad,
}

/// A text that may still grow.
#[derive(Default)]
pub(super) struct Answer {
    pub(super) text: String,
    pub(super) is_open: bool,
    /// The lines for the beginning of the text, as far as it cannot change any more. They are valid
    /// for one width.
    settled: RefCell<Settled>,
}

#[derive(Default)]
struct Settled {
    width: usize,
    end: usize,
    lines: Vec<Line<'static>>,
}

impl Answer {
    pub(super) fn new(text: String) -> Answer {
        Answer { text, is_open: true, settled: RefCell::default() }
    }

    fn lines(&self, width: usize, theme: Theme) -> Vec<Line<'static>> {
        if !self.is_open {
            return markdown(&self.text, width, theme, true);
        }
        // The beginning that cannot change any more is laid out only once, the rest each time.
        let mut done = self.settled.borrow_mut();
        if done.width != width {
            *done = Settled { width, ..Settled::default() };
        }
        let more = settled_len(&self.text[done.end..]);
        if more > 0 {
            let block = &self.text[done.end..done.end + more];
            let lines = markdown(block, width, theme, true);
            append(&mut done.lines, lines);
            done.end += more;
        }
        let mut lines = done.lines.clone();
        append(&mut lines, markdown(&self.text[done.end..], width, theme, false));
        lines
    }
}

/// Adds a block, after an empty line if there are lines before it.
fn append(lines: &mut Vec<Line<'static>>, block: Vec<Line<'static>>) {
    if !lines.is_empty() && !block.is_empty() {
        lines.push(Line::default());
    }
    lines.extend(block);
}

/// A call and its state.
pub(super) struct Card {
    pub(super) id: String,
    pub(super) tool: String,
    pub(super) arguments: String,
    pub(super) state: CardState,
    /// How long the call has been running, in seconds. While this is set, the result is the output
    /// so far.
    pub(super) seconds: Option<u64>,
    pub(super) result: String,
    pub(super) preview: Option<Preview>,
    /// The calls of the sub-agent, if this is a call of `task`.
    pub(super) inside: Vec<Card>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CardState {
    /// The user is being asked.
    Asked,
    Running,
    Done,
    Failed,
}

impl Card {
    /// A new call.
    pub(super) fn new(
        id: String,
        tool: String,
        arguments: String,
        preview: Option<Preview>,
    ) -> Card {
        let state = CardState::Running;
        let result = String::new();
        let inside = Vec::new();
        Card { id, tool, arguments, state, seconds: None, result, preview, inside }
    }

    /// The lines for the calls of the sub-agent. If they are folded: a line with the number of
    /// calls and, while the sub-agent works, the last call; then, in full, each call that the user
    /// is asked about.
    fn inside(&self, width: usize, folded: bool, theme: Theme) -> Vec<Line<'static>> {
        let Some(last) = self.inside.last() else { return Vec::new() };
        let shown = self.inside.iter().filter(|card| !folded || card.state == CardState::Asked);
        let inner = width.saturating_sub(2);
        let mut lines: Vec<Line<'static>> =
            shown.flat_map(|card| card.lines(inner, true, theme)).map(indented).collect();
        if folded {
            let mut text = format!("  ⎿ {}", plural(self.inside.len() as u64, "call"));
            if self.state == CardState::Running {
                let subject = subject(&last.tool, &last.arguments);
                let first = clean(subject.lines().next().unwrap_or_default());
                text.push_str(&format!(" · {} {first}", clean(&last.tool)));
            }
            lines.insert(0, Line::styled(cut(&text, width), theme.dim()));
        }
        lines
    }

    fn lines(&self, width: usize, folded: bool, theme: Theme) -> Vec<Line<'static>> {
        // A call that the user is asked about is shown in full.
        let folded = folded && self.state != CardState::Asked;
        let (mark, style) = match self.state {
            CardState::Asked => ("?", theme.warn()),
            CardState::Running => ("●", theme.warn()),
            CardState::Done => ("●", theme.good()),
            CardState::Failed => ("✗", theme.bad()),
        };
        let mut title = vec![
            Span::styled(format!("{mark} "), style),
            Span::styled(clean(&self.tool), theme.bold()),
            Span::raw(" "),
        ];
        let indent = [Span::raw("  ")];
        let subject = subject(&self.tool, &self.arguments);
        let change = self.preview.as_ref().map(Preview::summary);
        let mut lines = if folded {
            let change = change.clone().or_else(|| self.seconds.map(|it| format!("{it} s")));
            let change_width = change.as_ref().map_or(0, |change| change.len() + 2);
            let taken = width_of(&self.tool) + 3 + change_width;
            let flat = clean(subject.lines().next().unwrap_or_default());
            let more = if subject.lines().nth(1).is_some() { " …" } else { "" };
            let shown = cut(&format!("{flat}{more}"), width.saturating_sub(taken));
            title.push(Span::raw(shown));
            title.extend(change.map(|change| Span::styled(format!("  {change}"), theme.dim())));
            vec![Line::from(title)]
        } else {
            let mut rows = subject.lines();
            title.push(Span::raw(clean(rows.next().unwrap_or_default())));
            title.extend(change.map(|change| Span::styled(format!("  {change}"), theme.dim())));
            let mut lines = wrap(&title, width, Breaks::Anywhere, &[], &indent);
            for row in rows {
                let row = [Span::raw(clean(row))];
                lines.extend(wrap(&row, width, Breaks::Anywhere, &indent, &indent));
            }
            lines
        };
        if let Some(preview) = &self.preview {
            let most = if folded { FOLDED_CHANGE } else { MOST };
            let inner = width.saturating_sub(2);
            let (rows, left) = preview.lines(inner, most, theme);
            lines.extend(rows.into_iter().map(indented));
            lines.extend(left_out(left, theme));
            if self.state == CardState::Done {
                return lines;
            }
        }
        lines.extend(self.inside(width, folded, theme));
        lines.extend(self.result(width, folded, theme));
        lines
    }

    fn result(&self, width: usize, folded: bool, theme: Theme) -> Vec<Line<'static>> {
        let style = if self.state == CardState::Failed { theme.bad() } else { theme.dim() };
        let rows: Vec<&str> = self.result.lines().collect();
        let fold = find_tool(&self.tool).map_or(Fold::Beginning, |tool| tool.fold);
        let all_is_shown = !folded || fold == Fold::All;
        let most = if all_is_shown { MOST } else { FOLDED };
        let first = [Span::styled("  ⎿ ", theme.dim())];
        let rest = [Span::raw("    ")];
        let mut lines = Vec::new();
        let begin = if fold == Fold::End { rows.len().saturating_sub(most) } else { 0 };
        if folded && fold == Fold::Count && self.state == CardState::Done {
            let read = [Span::styled(format!("{} lines", rows.len()), style)];
            return wrap(&read, width, Breaks::Words, &first, &rest);
        }
        if begin > 0 {
            let more = Span::styled(format!("… {begin} more lines (Ctrl-O)"), theme.dim());
            lines.extend(wrap(&[more], width, Breaks::Words, &first, &rest));
        }
        for row in rows.iter().skip(begin).take(most) {
            let prefix = if lines.is_empty() { &first } else { &rest };
            let text = clean(row);
            if all_is_shown {
                let text = Span::styled(text, style);
                lines.extend(wrap(&[text], width, Breaks::Anywhere, prefix, &rest));
            } else {
                let text = cut(&text, width.saturating_sub(4));
                lines.push(Line::from(vec![prefix[0].clone(), Span::styled(text, style)]));
            }
        }
        lines.extend(left_out(rows.len().saturating_sub(begin + most), theme));
        lines
    }
}

fn indented(mut line: Line<'static>) -> Line<'static> {
    line.spans.insert(0, Span::raw("  "));
    line
}

fn left_out(n: usize, theme: Theme) -> Option<Line<'static>> {
    let more = plural(n as u64, "more line");
    (n > 0).then(|| Line::styled(format!("    … {more} (Ctrl-O)"), theme.dim()))
}

/// An entry with its cached lines.
pub(super) struct LaidOutEntry {
    pub(super) entry: Entry,
    /// Whether an empty line precedes the entry.
    pub(super) gap: bool,
    cache: RefCell<Option<Cached>>,
}

struct Cached {
    width: usize,
    folded: bool,
    lines: Rc<[Line<'static>]>,
}

impl LaidOutEntry {
    pub(super) fn new(entry: Entry, before: Option<&Entry>) -> LaidOutEntry {
        let gap = match (&entry, before) {
            (_, None) => false,
            (Entry::Call(_), Some(Entry::Call(_))) => false,
            (Entry::Note(tone, _), Some(Entry::Note(before, _))) => tone != before,
            (_, Some(_)) => true,
        };
        LaidOutEntry { entry, gap, cache: RefCell::new(None) }
    }

    /// Returns the entry, to be changed, and clears the cache.
    pub(super) fn change(&mut self) -> &mut Entry {
        *self.cache.borrow_mut() = None;
        &mut self.entry
    }

    /// Whether the lines of the entry are cached.
    #[cfg(test)]
    pub(super) fn is_laid_out(&self) -> bool {
        self.cache.borrow().is_some()
    }

    /// The lines of the entry; at least one.
    pub(super) fn lines(&self, width: usize, folded: bool, theme: Theme) -> Rc<[Line<'static>]> {
        let mut cache = self.cache.borrow_mut();
        if let Some(cached) = &*cache
            && (cached.width, cached.folded) == (width, folded)
        {
            return cached.lines.clone();
        }
        let mut lines = if self.gap { vec![Line::default()] } else { Vec::new() };
        lines.extend(self.entry.lines(width, folded, theme));
        if lines.is_empty() {
            lines.push(Line::default());
        }
        let lines: Rc<[Line<'static>]> = lines.into();
        *cache = Some(Cached { width, folded, lines: lines.clone() });
        lines
    }
}

impl Entry {
    fn lines(&self, width: usize, folded: bool, theme: Theme) -> Vec<Line<'static>> {
        let prose = width.min(PROSE);
        match self {
            Entry::User(text) => message(text, prose, folded, theme),
            Entry::Answer(answer) => answer.lines(prose, theme),
            Entry::Thinking(thinking) => reasoning(thinking, prose, folded, theme),
            Entry::Call(card) => card.lines(width, folded, theme),
            Entry::Note(tone, text) => {
                let style = match tone {
                    Tone::Quiet => theme.dim(),
                    Tone::Good => theme.good(),
                    Tone::Guide => theme.bold(),
                    Tone::Warn => theme.warn(),
                    Tone::Bad => theme.bad(),
                };
                let indent = [Span::styled("  ", style)];
                let lines = text.lines().map(|line| Span::styled(clean(line), style));
                lines
                    .flat_map(|line| wrap(&[line], prose, Breaks::Words, &indent, &indent))
                    .collect()
            }
            Entry::Window(usage, contents, size) => {
                let mut lines = window(usage, contents, width, theme);
                if let Some(text) = reserve(*size, usage.usable) {
                    lines.push(Line::styled(format!("  {text}"), theme.dim()));
                }
                lines
            }
            Entry::Help => help(prose, theme),
        }
    }
}

/// A message of the user. Only its beginning is shown if it is folded and long, such as a paste.
fn message(text: &str, width: usize, folded: bool, theme: Theme) -> Vec<Line<'static>> {
    let first = [Span::styled("› ", theme.accent())];
    let rest = [Span::raw("  ")];
    let most = if folded { FOLDED_MESSAGE } else { MOST };
    let mut lines = Vec::new();
    for line in text.lines().take(most) {
        let prefix = if lines.is_empty() { &first } else { &rest };
        let run = [Span::styled(clean(line), theme.accent())];
        lines.extend(wrap(&run, width, Breaks::Words, prefix, &rest));
    }
    lines.extend(left_out(text.lines().count().saturating_sub(most), theme));
    lines
}

/// Reasoning. Only its last line is shown if it is folded.
fn reasoning(thinking: &Answer, width: usize, folded: bool, theme: Theme) -> Vec<Line<'static>> {
    let style = theme.dim().patch(theme.italic());
    let indent = [Span::styled("  ", style)];
    let mut rows = thinking.text.lines().filter(|line| !line.trim().is_empty());
    if folded {
        let last = clean(rows.next_back().unwrap_or_default());
        let shown = cut(&format!("thinking: {last}"), width.saturating_sub(2));
        return wrap(&[Span::styled(shown, style)], width, Breaks::Words, &indent, &indent);
    }
    let lines = rows.map(|line| Span::styled(clean(line), style));
    lines.flat_map(|line| wrap(&[line], width, Breaks::Words, &indent, &indent)).collect()
}

/// The contents of the window: a bar for each kind.
fn window(
    usage: &WindowUse,
    contents: &[ContentShare],
    width: usize,
    theme: Theme,
) -> Vec<Line<'static>> {
    let percent = usage.percent.unwrap_or_default();
    let of = usage.usable.map_or(String::new(), |usable| format!(" of {usable} tokens"));
    let mut lines = vec![Line::from(vec![
        Span::styled("  context ", theme.bold()),
        Span::styled(format!("{percent}%"), theme.fill(percent)),
        Span::raw(format!("  {}{of}", usage.tokens)),
    ])];
    let counted: Tokens = contents.iter().map(|share| share.tokens).sum();
    let whole = usage.usable.unwrap_or(counted).0.max(counted.0).max(1);
    let room = width.saturating_sub(34).clamp(4, 60) as u64;
    for share in contents {
        let cells = (share.tokens.0 * room).div_ceil(whole);
        let bar = "█".repeat(usize::try_from(cells).unwrap_or(0));
        let percent = share.tokens.0 * 100 / whole;
        let name = kind(share.content);
        let tokens = share.tokens.to_string();
        lines.push(Line::from(vec![
            Span::raw(format!("  {name:<16}{tokens:>8} {percent:>3}%  ")),
            Span::styled(bar, theme.code()),
        ]));
    }
    if let Some(usable) = usage.usable {
        let free = usable - usage.tokens;
        let percent = free.0 * 100 / whole;
        let free = free.to_string();
        let text = format!("  {:<16}{free:>8} {percent:>3}%", "free");
        lines.push(Line::styled(text, theme.dim()));
    }
    if usage.tokens != counted {
        let text = format!("counted here: {counted}; the provider counts otherwise");
        lines.push(Line::styled(format!("  {text}"), theme.dim()));
    }
    lines
}

/// The keys, and what they do.
const KEYS: [(&str, &str); 12] = [
    ("Enter", "send; while the model works, your message is read at its next request"),
    ("Ctrl-J, Alt-Enter", "a new line (Shift-Enter where the terminal tells)"),
    ("Esc", "interrupt the turn"),
    ("Ctrl-O", "unfold or fold results, changes, and reasoning"),
    ("PgUp, PgDn, wheel", "scroll; Ctrl-End goes to the end"),
    ("Up, Down", "what you typed before"),
    ("Tab", "complete a command"),
    ("Ctrl-W, Ctrl-U, Ctrl-K", "delete a word, to the start, to the end of a line"),
    ("Ctrl-L", "draw the screen again"),
    ("Ctrl-Z", "back to the shell; fg goes on"),
    ("Shift and mouse", "select text, in most terminals"),
    ("Ctrl-C twice, Ctrl-D", "leave; the session can be resumed"),
];

fn help(width: usize, theme: Theme) -> Vec<Line<'static>> {
    let commands = COMMANDS.iter().map(|it| {
        let name = format!("{} {}", it.name, it.arguments);
        (name.trim_end().to_owned(), it.about)
    });
    let keys = KEYS.iter().map(|(key, about)| ((*key).to_owned(), *about));
    let mut lines = vec![Line::styled("  Commands", theme.bold())];
    let row = |(name, about): (String, &str)| {
        let first = [Span::styled(format!("  {name:<24}"), theme.code())];
        let rest = [Span::raw(" ".repeat(if width > 50 { 26 } else { 4 }))];
        wrap(&[Span::raw(about.to_owned())], width, Breaks::Words, &first, &rest)
    };
    lines.extend(commands.flat_map(row));
    lines.push(Line::default());
    lines.push(Line::styled("  Keys", theme.bold()));
    lines.extend(keys.flat_map(row));
    lines
}
