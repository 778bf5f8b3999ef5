//! Draws the browser.

use epitome::list::SessionInfo;
use epitome_model::{Tokens, percent};
use jiff::Timestamp;
use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::{Block, Clear, Paragraph};
use unicode_width::UnicodeWidthStr;

use super::menu::Menu;
use super::picker::{Picker, PickerOf};
use super::rows::{Row, state};
use super::state::{Browser, Mode, Note, Question, sums};
use super::view::View;
use super::worker::Kind;
use crate::text::{self, count, field, fit_line, share};

/// The keys that the last line of the screen lists, the most important first. The last keys are
/// left out if they do not fit.
const KEYS: [(&str, &str); 15] = [
    ("?", "help"),
    ("q", "quit"),
    ("d", "plan"),
    ("c", "compact"),
    ("u", "undo"),
    ("r", "read"),
    ("/", "filter"),
    ("space", "select"),
    ("o", "open page"),
    ("v", "versions"),
    ("x", "deleted"),
    ("y", "copy resume"),
    ("s", "simulate"),
    ("p", "port"),
    ("e", "export"),
];

const HELP: &str = "\
Move      j k ↑ ↓  PgUp PgDn  g G       Select    space one   a all
Find      / filter (fuzzy)              Sort      tab  saving, time, size, …

d  plan what compacting would remove    r  read the session
D  the same, block by block             o  open its page in the web browser
c  compact, after a question            i  where its tokens go
u  undo: restore it, to the byte        l  what compactions lost
s  simulate: cost under each recipe     y  copy the command that resumes it
p  continue it in another agent         e  export it: HTML, Markdown, JSON
v  versions that epitome keep has seen  x  deleted sessions that it has
R  read the list again now              q  quit

c, u and s take all selected sessions, other keys the one at the cursor.
The title of what is shown is the command that showed it.";

const VIEW_HELP: &str = "\
Move      j k ↑ ↓  space b PgUp PgDn  g G
Find      / words, enter      n N  next, previous

q  back to the list           y  copy the command, if one is shown";

pub fn draw(browser: &mut Browser, frame: &mut Frame<'_>) {
    let area = frame.area();
    browser.size = (area.width, area.height);
    match &browser.mode {
        Mode::View(view) => draw_view(browser, view, frame),
        Mode::Pick(picker) => draw_picker(browser, picker, frame),
        Mode::List | Mode::Filter | Mode::Help | Mode::Menu(_) | Mode::Ask(_) => {
            draw_list(browser, frame);
            draw_above(browser, frame);
        }
    }
}

/// Draws what lies over the list: the help, a menu, or a question.
fn draw_above(browser: &Browser, frame: &mut Frame<'_>) {
    match &browser.mode {
        Mode::Help => boxed(frame, browser, "Keys", HELP.lines().map(Line::raw).collect()),
        Mode::Menu(Menu { title, entries }) => {
            let accent = browser.style(Color::Cyan).add_modifier(Modifier::BOLD);
            let lines = entries.iter().map(|(key, words, _)| {
                Line::from(vec![Span::styled(format!("{key}  "), accent), Span::raw(words.clone())])
            });
            boxed(frame, browser, title, lines.collect());
        }
        Mode::Ask(Question { text, .. }) => {
            let mut lines: Vec<Line<'_>> = text.iter().map(|it| Line::raw(it.clone())).collect();
            lines.push(Line::raw(""));
            lines.push(Line::styled("y yes · any other key no", bold()));
            boxed(frame, browser, "epitome", lines);
        }
        Mode::List | Mode::Filter | Mode::View(_) | Mode::Pick(_) => {}
    }
}

fn boxed(frame: &mut Frame<'_>, browser: &Browser, title: &str, lines: Vec<Line<'_>>) {
    let area = frame.area();
    let widest = lines.iter().map(Line::width).max().unwrap_or(0).max(title.width() + 2);
    let width = u16::try_from(widest + 4).unwrap_or(u16::MAX).min(area.width);
    let height = u16::try_from(lines.len() + 2).unwrap_or(u16::MAX).min(area.height);
    let place = area.centered(Constraint::Length(width), Constraint::Length(height));
    let frame_style = browser.style(Color::Cyan);
    let lines =
        cut_off(lines, usize::from(width).saturating_sub(4), usize::from(height).saturating_sub(2));
    let block = Block::bordered().title(format!(" {title} ")).border_style(frame_style);
    frame.render_widget(Clear, place);
    let inside = ratatui::widgets::Padding::horizontal(1);
    frame.render_widget(Paragraph::new(Text::from(lines)).block(block.padding(inside)), place);
}

/// The lines, cut so that they fit into a box of this size. If some lines are left out, a last line
/// says so.
fn cut_off(mut lines: Vec<Line<'_>>, width: usize, height: usize) -> Vec<Line<'_>> {
    if lines.len() > height {
        lines.truncate(height.saturating_sub(1));
        lines.push(Line::styled("… more on a larger screen", dim()));
    }
    for line in &mut lines {
        if line.width() > width {
            *line = Line::styled(text::cut(&line.to_string(), width), line.style);
        }
    }
    lines
}

fn draw_list(browser: &mut Browser, frame: &mut Frame<'_>) {
    let foot = u16::try_from(browser.lines_of_foot()).unwrap_or(u16::MAX);
    let parts = [
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Min(1),
        Constraint::Length(foot),
    ];
    let [head, names, list, below] = Layout::vertical(parts).areas(frame.area());
    let height = usize::from(list.height).max(1);
    // The list scrolls so that the current row is on the screen.
    browser.top = browser.top.clamp(browser.at.saturating_sub(height - 1), browser.at);
    browser.top = browser.top.min(browser.shown.len().saturating_sub(height));
    frame.render_widget(head_line(browser, usize::from(head.width)), head);
    if browser.rows.is_empty() {
        frame.render_widget(Paragraph::new(empty(browser)), list);
    } else if browser.shown.is_empty() {
        frame.render_widget(Paragraph::new(no_match(browser)), list);
    } else {
        let columns = Columns::fit(browser, usize::from(list.width));
        frame.render_widget(Line::styled(columns.heads(), dim()), names);
        let rows = browser.shown.iter().enumerate().skip(browser.top).take(height);
        let lines = rows.map(|(place, &at)| columns.line(browser, place, &browser.rows[at]));
        frame.render_widget(Paragraph::new(lines.collect::<Vec<_>>()), list);
    }
    let mut lines = foot_lines(browser, usize::from(below.width));
    lines.drain(..lines.len().saturating_sub(usize::from(below.height)));
    frame.render_widget(Paragraph::new(lines), below);
}

/// The first line: the number of sessions, the size of their contexts, what compacting would save,
/// and the filter, or without a filter the name of the sort order.
fn head_line(browser: &Browser, width: usize) -> Line<'static> {
    let all: Vec<&Row> = browser.shown.iter().map(|&at| &browser.rows[at]).collect();
    let (before, saving) = sums(&all);
    let mut status = match (browser.shown.len(), browser.rows.len()) {
        (_, 0) => String::new(),
        (n, of) if n == of => count(of as u64, "session"),
        (n, of) => format!("{n} of {}", count(of as u64, "session")),
    };
    if before > Tokens(0) {
        status.push_str(&format!(", ~{before} tokens, compacting saves ~{saving}"));
    }
    let right = match &browser.mode {
        Mode::Filter => format!("/{}▏", browser.filter),
        _ if !browser.filter.is_empty() => format!("/{}", browser.filter),
        _ => format!("by {}", browser.sort.name()),
    };
    let right = fit_line(&right, width / 3);
    let room = width.saturating_sub("epitome  ".width() + right.width() + 1);
    let status = fit_line(&status, room);
    let gap = room.saturating_sub(status.width()) + 1;
    let accent = browser.style(Color::Cyan).add_modifier(Modifier::BOLD);
    Line::from(vec![
        Span::styled("epitome  ", accent),
        Span::raw(status),
        Span::raw(" ".repeat(gap)),
        Span::styled(right, if browser.filter.is_empty() { dim() } else { bold() }),
    ])
}

fn empty(browser: &Browser) -> Text<'static> {
    match &browser.work {
        Some(_) => Text::raw(""),
        None => Text::from(vec![
            Line::raw("No sessions of coding agents were found on this machine."),
            Line::raw(""),
            Line::styled("epitome demo   shows what epitome does, on a sample session", dim()),
            Line::styled("epitome list   says in which folders sessions are looked for", dim()),
        ]),
    }
}

/// Says that the filter finds nothing, and how to continue.
fn no_match(browser: &Browser) -> Text<'static> {
    Text::from(vec![
        Line::raw(format!("No session matches `{}`.", field(&browser.filter))),
        Line::raw(""),
        Line::styled("esc  clears the filter", dim()),
    ])
}

/// The widths of the columns; 0 for a column for which there is no room.
struct Columns {
    agent: usize,
    id: usize,
    age: usize,
    disk: usize,
    context: usize,
    course: usize,
    saves: usize,
    project: usize,
    title: usize,
}

impl Columns {
    fn fit(browser: &Browser, width: usize) -> Columns {
        let shown = browser.shown.iter().map(|&at| &browser.rows[at]);
        let agent = shown.clone().map(|row| row.listed.file.agent.width()).max();
        let agent = agent.unwrap_or(5).clamp(5, 8);
        let id = shown.map(|row| row.short.width()).max().unwrap_or(8).clamp(7, 18);
        let mut columns = Columns {
            agent,
            id,
            age: 4,
            disk: if width >= 110 { 9 } else { 0 },
            context: 8,
            course: if width >= 130 { 24 } else { 8 },
            saves: 5,
            project: if width >= 96 { (width / 8).min(28) } else { 0 },
            title: 0,
        };
        if width < 60 {
            columns.age = 0;
            columns.course = 0;
        }
        if width < 44 {
            columns.context = 0;
        }
        let used: usize = columns.fixed().iter().filter(|it| **it > 0).map(|it| it + 1).sum();
        columns.title = width.saturating_sub(2 + used);
        columns
    }

    fn fixed(&self) -> [usize; 8] {
        let Columns { agent, id, age, disk, context, course, saves, project, .. } = *self;
        [agent, id, age, disk, context, course, saves, project]
    }

    fn heads(&self) -> String {
        let heads = ["agent", "session", "age", "disk", "messages", "context", "saves", "project"];
        let mut line = "  ".to_owned();
        for ((head, width), right) in heads.into_iter().zip(self.fixed()).zip(RIGHT) {
            if width > 0 {
                line.push_str(&cell(head, width, right));
                line.push(' ');
            }
        }
        line + "title"
    }

    fn line(&self, browser: &Browser, place: usize, row: &Row) -> Line<'static> {
        let listed = &row.listed;
        let is_current = place == browser.at;
        let is_chosen = browser.chosen.contains(&listed.file.path);
        let modified = Timestamp::try_from(listed.file.modified).unwrap_or(browser.now);
        let info = row.info();
        let cells = [
            listed.file.agent.to_owned(),
            row.short.clone(),
            text::age(browser.now, modified),
            listed.size().to_string(),
            info.and_then(|it| it.context).map_or("-".to_owned(), |it| format!("~{it}")),
            info.map(|it| course(&it.course, self.course)).unwrap_or_default(),
            saves(row),
            project(info, self.project),
        ];
        let mut styles = [Style::new(); 8];
        styles[0] = browser.agent_style(listed.file.agent);
        (styles[2], styles[3], styles[5], styles[7]) = (dim(), dim(), dim(), dim());
        styles[6] = saves_style(browser, row);
        if is_current {
            // A reversed line has no colours of its own, because they would become backgrounds.
            styles = [Style::new(); 8];
        }
        let mark = match (is_chosen, is_current) {
            (true, _) => "● ",
            (false, true) => "▸ ",
            (false, false) => "  ",
        };
        let of_mark = if is_current { Style::new() } else { browser.style(Color::Cyan) };
        let mut spans = vec![Span::styled(mark, of_mark)];
        let columns = cells.iter().zip(self.fixed()).zip(RIGHT).zip(styles);
        for (((text, width), right), style) in columns.filter(|(((_, width), _), _)| *width > 0) {
            spans.push(Span::styled(cell(text, width, right), style));
            spans.push(Span::raw(" "));
        }
        let (title, style) = title(row);
        spans.push(Span::styled(fit_line(&title, self.title), style));
        let line = Line::from(spans);
        if is_current { line.style(Style::new().add_modifier(Modifier::REVERSED)) } else { line }
    }
}

/// Which columns are right-aligned.
const RIGHT: [bool; 8] = [false, false, true, true, true, false, true, false];

/// A text, cut or padded to the width of a column.
fn cell(text: &str, width: usize, right: bool) -> String {
    let text = fit_line(text, width);
    let gap = " ".repeat(width.saturating_sub(text.width()));
    if right { gap + &text } else { text + &gap }
}

/// The size of the context over time, as bars. The largest size has the highest bar.
fn course(points: &[Tokens], width: usize) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let largest = points.iter().max().map_or(0, |it| it.0);
    let wide = width.min(points.len());
    let bars = (0..wide).map(|n| {
        let part = n * points.len() / wide..(n + 1) * points.len() / wide;
        let most = points[part].iter().max().map_or(0, |it| it.0);
        BARS[usize::try_from(most * 7 / largest.max(1)).unwrap_or(7)]
    });
    bars.collect()
}

fn saves(row: &Row) -> String {
    match (state(&row.listed), row.saving(), row.context()) {
        ("compacted", ..) => "done".to_owned(),
        (_, Tokens(0), _) | (_, _, Tokens(0)) => "-".to_owned(),
        (_, saving, context) => format!("−{}%", percent(saving.0, context.0)),
    }
}

fn saves_style(browser: &Browser, row: &Row) -> Style {
    match state(&row.listed) {
        "compacted" => dim(),
        _ if row.listed.saves_half() => browser.style(Color::Green),
        _ => Style::new(),
    }
}

/// The last two parts of the folder in which the session was run, or only the last part if there is
/// no room for both.
fn project(info: Option<&SessionInfo>, width: usize) -> String {
    let cwd = info.and_then(|it| it.cwd.as_deref()).unwrap_or_default();
    let mut parts = cwd.rsplit(['/', '\\']).filter(|it| !it.is_empty());
    let last = parts.next().unwrap_or_default();
    match parts.next().map(|above| format!("{above}/{last}")) {
        Some(both) if both.width() <= width => both,
        Some(_) | None => last.to_owned(),
    }
}

fn title(row: &Row) -> (String, Style) {
    match &row.listed.seen {
        Ok(info) => (info.title.clone().unwrap_or_default(), Style::new()),
        Err(why) => (format!("({why})"), dim()),
    }
}

/// The lines below the list: a rule, three lines about the current session, and the last line.
fn foot_lines(browser: &Browser, width: usize) -> Vec<Line<'static>> {
    let mut lines = vec![Line::styled("─".repeat(width), dim())];
    match browser.current() {
        Some(row) => lines.extend(details(browser, row, width)),
        None => lines.extend([Line::raw(""), Line::raw(""), Line::raw("")]),
    }
    lines.push(last_line(browser, width, &KEYS));
    lines
}

fn details(browser: &Browser, row: &Row, width: usize) -> [Line<'static>; 3] {
    let (title, _) = title(row);
    let listed = &row.listed;
    let mut facts = vec![format!("{} {}", listed.file.agent, field(&listed.file.id))];
    let Some(info) = row.info() else {
        let path = text::path(&listed.file.path);
        let lines = [title, facts.remove(0), path];
        return lines.map(|line| Line::raw(fit_line(&line, width)));
    };
    facts.extend(info.turns.map(|n| count(n, "turn")));
    facts.push(listed.size().to_string());
    if listed.is_compacted() {
        facts.push(match info.in_effect {
            1 => "compacted".to_owned(),
            n => format!("compacted {n} times"),
        });
    }
    facts.extend(info.cwd.as_deref().map(|cwd| text::path(cwd.as_ref())));
    let sums = if browser.chosen.is_empty() {
        sums_of(info, width)
    } else {
        let chosen = browser.selected_rows();
        let (before, saving) = sums(&chosen);
        let n = count(chosen.len() as u64, "session");
        format!("{n} selected: ~{before} tokens, compacting saves ~{saving}")
    };
    [
        Line::styled(fit_line(&title, width), bold()),
        Line::styled(fit_line(&facts.join(" · "), width), dim()),
        Line::raw(fit_line(&sums, width)),
    ]
}

/// The size of a session's context, what compacting would save, and the number of tokens that a
/// request is billed for. A short form is used if the long one does not fit.
fn sums_of(info: &SessionInfo, width: usize) -> String {
    let mut long = Vec::new();
    let mut short = Vec::new();
    if let Some(context) = info.context {
        long.push(format!("~{context} tokens of messages"));
        short.push(format!("messages ~{context}"));
        let part = share(info.saving.0, context.0);
        let (in_words, in_short) = match info.saving {
            Tokens(0) => ("compacting saves nothing".to_owned(), "saves nothing".to_owned()),
            saving => (format!("compacting saves ~{saving} ({part})"), format!("saves {part}")),
        };
        long.push(in_words);
        short.push(in_short);
    }
    if let Some(request) = info.request {
        long.push(format!("a request is billed as ~{request}"));
        short.push(format!("billed ~{request}"));
    }
    let long = long.join(" · ");
    if long.width() <= width { long } else { short.join(" · ") }
}

/// The last line of the screen: a note, or else the work in progress, or else the keys.
fn last_line(browser: &Browser, width: usize, keys: &[(&str, &str)]) -> Line<'static> {
    match (&browser.note, &browser.work) {
        (Some(Note::Failed(text)), _) => {
            Line::styled(fit_line(text, width), browser.style(Color::Red))
        }
        (Some(Note::Said(text)), _) => {
            Line::styled(fit_line(text, width), browser.style(Color::Green))
        }
        (None, Some(work)) => {
            let text = match work.progress {
                Some((done, of)) => {
                    let bar = text::full_bar(done as u64, of as u64);
                    format!("{} {bar} {done} of {of} …", work.what)
                }
                None => format!("{} …", work.what),
            };
            Line::styled(fit_line(&text, width), browser.style(Color::Yellow))
        }
        (None, None) => key_line(browser, width, keys),
    }
}

fn key_line(browser: &Browser, width: usize, keys: &[(&str, &str)]) -> Line<'static> {
    let mut spans = Vec::new();
    let mut used = 0;
    let accent = browser.style(Color::Cyan).add_modifier(Modifier::BOLD);
    for (key, words) in keys {
        let more = key.width() + words.width() + 3;
        if used + more > width + 2 {
            break;
        }
        used += more;
        spans.push(Span::styled((*key).to_owned(), accent));
        spans.push(Span::raw(format!(" {words}  ")));
    }
    Line::from(spans)
}

/// Draws a list of versions or of deleted sessions.
fn draw_picker(browser: &Browser, picker: &Picker, frame: &mut Frame<'_>) {
    let parts =
        [Constraint::Length(1), Constraint::Length(1), Constraint::Min(1), Constraint::Length(1)];
    let [head, names, body, below] = Layout::vertical(parts).areas(frame.area());
    let width = usize::from(head.width);
    let accent = browser.style(Color::Cyan).add_modifier(Modifier::BOLD);
    frame
        .render_widget(Line::styled(fit_line(&format!("$ {}", picker.title), width), accent), head);
    let widths = picker.widths();
    let heads = picker.heads.map(str::to_owned);
    frame.render_widget(Line::styled(pick_line(&heads, widths, width), dim()), names);
    let height = usize::from(body.height).max(1);
    let top = picker.first_line(height);
    let entries = picker.entries.iter().enumerate().skip(top).take(height);
    let lines = entries.map(|(at, entry)| {
        let line = Line::raw(pick_line(&entry.cells, widths, width));
        match (at == picker.at, entry.number) {
            (true, _) => line.style(Style::new().add_modifier(Modifier::REVERSED)),
            (false, None) => line.style(dim()),
            (false, Some(_)) => line,
        }
    });
    frame.render_widget(Paragraph::new(lines.collect::<Vec<_>>()), body);
    let keys: &[(&str, &str)] = match picker.of {
        PickerOf::Versions => &[("u", "restore this version"), ("q", "back"), ("j k", "move")],
        PickerOf::Deleted => &[("u", "restore"), ("v", "versions"), ("q", "back"), ("j k", "move")],
    };
    frame.render_widget(last_line(browser, width, keys), below);
}

/// A line of a list of versions or of deleted sessions: three right-aligned columns, and a fourth
/// that takes the rest of the width.
fn pick_line(cells: &[String; 4], widths: [usize; 3], width: usize) -> String {
    let mut line = "  ".to_owned();
    for (text, width) in cells.iter().zip(widths) {
        line.push_str(&cell(text, width, true));
        line.push_str("  ");
    }
    let room = width.saturating_sub(line.width());
    line.push_str(&fit_line(&cells[3], room));
    line
}

fn draw_view(browser: &Browser, view: &View, frame: &mut Frame<'_>) {
    let parts = [Constraint::Length(1), Constraint::Min(1), Constraint::Length(1)];
    let [head, body, below] = Layout::vertical(parts).areas(frame.area());
    let height = usize::from(body.height);
    let width = usize::from(head.width);
    let end = (view.top + height).min(view.lines.len());
    let place = match view.lines.len() {
        all if all <= height => String::new(),
        all => format!(" {}–{end} of {all}", view.top + 1),
    };
    let accent = browser.style(Color::Cyan).add_modifier(Modifier::BOLD);
    let title = fit_line(&format!("$ {}", view.title), width.saturating_sub(place.width()));
    frame.render_widget(Line::styled(title, accent), head);
    frame.render_widget(Line::styled(place, dim()).alignment(Alignment::Right), head);
    let lines: Vec<Line<'_>> = view.lines[view.top.min(end)..end].to_vec();
    frame.render_widget(Paragraph::new(lines), body);
    let line = if view.is_typing {
        Line::raw(format!("/{}▏", view.search))
    } else {
        last_line(browser, width, &keys_of_view(view))
    };
    frame.render_widget(line, Rect { ..below });
    if view.shows_keys {
        let more = match view.kind {
            Kind::Plans => "c  carry the plan out         D  the plan block by block",
            Kind::Writes => "u  undo it, after a question",
            Kind::Shows | Kind::Restores | Kind::Ports => "",
        };
        let lines = VIEW_HELP.lines().chain([more, "", "The title is the command that showed it."]);
        boxed(frame, browser, "Keys", lines.map(Line::raw).collect());
    }
}

fn keys_of_view(view: &View) -> Vec<(&'static str, &'static str)> {
    let mut keys = vec![("?", "help"), ("q", "back")];
    match view.kind {
        Kind::Plans => keys.extend([("c", "compact"), ("D", "block by block")]),
        Kind::Writes => keys.push(("u", "undo")),
        Kind::Shows | Kind::Restores | Kind::Ports => {}
    }
    if view.copy.is_some() {
        keys.push(("y", "copy the command"));
    }
    keys.extend([("j k", "scroll"), ("space", "page"), ("g G", "ends"), ("/ n N", "search")]);
    keys
}

fn bold() -> Style {
    Style::new().add_modifier(Modifier::BOLD)
}

fn dim() -> Style {
    Style::new().add_modifier(Modifier::DIM)
}

impl Browser {
    /// The style of a colour. Without colours, a style that changes nothing.
    fn style(&self, colour: Color) -> Style {
        if self.colours { Style::new().fg(colour) } else { Style::new() }
    }

    fn agent_style(&self, agent: &str) -> Style {
        let colour = match text::agent_colour(agent).get_fg_color() {
            Some(anstyle::Color::Ansi(colour)) => colour,
            Some(_) | None => return Style::new(),
        };
        self.style(match colour {
            anstyle::AnsiColor::Yellow => Color::Yellow,
            anstyle::AnsiColor::Cyan => Color::Cyan,
            anstyle::AnsiColor::Magenta => Color::Magenta,
            anstyle::AnsiColor::BrightBlue => Color::LightBlue,
            anstyle::AnsiColor::BrightGreen => Color::LightGreen,
            _ => Color::LightRed,
        })
    }
}
