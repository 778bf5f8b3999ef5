//! The report of a compaction, for people. Programs get the library's report as JSON.

use std::cmp::Ordering;
use std::fmt::Write as _;
use std::path::Path;

use epitome::compaction::{Saving, Savings};
use epitome::ops::{
    Change, CompactReport, CompactedFile, FaultFound, MissedChars, Outcome, WindowLimits,
    WindowShare, WrittenWay,
};
use epitome_formats::Native;
use epitome_model::{Bytes, Tokens};
use epitome_passes::KeepRule;

use crate::table::{Side, Table};
use crate::text::{self, BOLD, DIM, GREEN, PLAIN, RED, change, count, field};

/// A compaction that was made or planned, and what is shown with it.
pub struct ReportView {
    pub report: CompactReport,
    /// The losses of a plan that may matter, each in a few words. `None` if they are not shown.
    pub may_matter: Option<Vec<String>>,
    /// The text before and after each edit; empty if that was not requested.
    pub diff: String,
}

/// The whole report of one session, without the list of losses. `may_matter` are the losses that
/// may matter, each in a few words.
pub fn render(report: &CompactReport, may_matter: Option<&[String]>) -> String {
    let file = &report.file;
    let mut text = String::new();
    let outcomes: Vec<Outcome> = report.all().map(|it| it.outcome).collect();
    let verb = match outcomes.iter().find(|it| **it != Outcome::Nothing) {
        Some(Outcome::Compacted) => "compacted",
        Some(Outcome::Planned) => "would compact",
        Some(Outcome::Nothing) | None => "nothing to do",
    };
    let name = text::path(Path::new(&file.session));
    let _ = writeln!(text, "{BOLD}{verb}{BOLD:#}  {name}");
    let mut facts = vec![format!("{} · recipe {}", file.agent, field(&report.recipe))];
    let appended = matches!(file.way, Some(WrittenWay::Native | WrittenWay::Summary))
        && file.outcome != Outcome::Nothing;
    facts.extend(appended.then(|| how_appended(file)));
    facts.extend(file.generation.map(|number| format!("generation {number}")));
    facts.extend(report.dry_run.then(|| "nothing was written".to_owned()));
    let _ = writeln!(text, "{DIM}{}{DIM:#}\n", facts.join(" · "));
    text.push_str(&size_table(report));
    text.push('\n');
    let mut lines = Lines::default();
    lines.add("edits", edits(file));
    lines.extend("saves", saves(&file.savings));
    if let Some(may_matter) = may_matter {
        lines.extend("loses", loses(may_matter, report.losses.is_some()));
    }
    lines.extend("price", price(file));
    lines.extend("kept", kept(file));
    lines.extend("window", window(file));
    lines.extend("note", file.notes.clone());
    lines.extend("note", grows(file));
    lines.extend("faults", faults(&file.faults));
    lines.extend("in use", in_use(file));
    if let Some(out) = &report.out {
        lines.add("written", text::path(out));
    }
    if let Some(backup) = &file.backup {
        lines.add("backup", text::path(backup));
    }
    for file in report.files.iter().filter(|it| it.outcome != Outcome::Nothing) {
        let stem = Path::new(&file.session).file_stem().unwrap_or_default();
        let Change { before, after } = file.disk_bytes;
        let number = file.generation.map(|number| format!("  generation {number}"));
        let name = field(&stem.to_string_lossy());
        let change = text::bytes_change(before, after);
        lines.add("with", format!("{name}  {change}{}", number.unwrap_or_default()));
    }
    if let Some(hash) = &file.restored_proof {
        let hash = text::short_hash(hash);
        lines.add("verified", format!("restoring reproduces every byte ({hash})"));
    }
    if outcomes.contains(&Outcome::Compacted) && report.out.is_none() {
        lines.add("undo", "epitome undo");
    }
    text.push_str(&lines.render());
    text
}

/// Describes how the agent's own format holds the compaction: in a new record, or by marks.
fn how_appended(file: &CompactedFile) -> String {
    let native = epitome_formats::find_format(file.agent).and_then(|format| format.native);
    match (file.way, native) {
        (Some(WrittenWay::Native), Some(Native::Mark(_))) => {
            format!("by marks of {}'s own", file.agent)
        }
        (Some(_) | None, Some(_) | None) => format!("in a record of {}'s own", file.agent),
    }
}

/// The table of sizes before and after: of the session's own file, and of the session with its
/// parts.
fn size_table(report: &CompactReport) -> String {
    use Side::{Left, Right};
    let heads = ["", "before", "", "after", "", "", ""];
    let table = Table::new(&[Left, Right, Left, Right, Right, Left, Left], &heads);
    let mut table = table.shrinks(6, 20).leaves_out(&[5]);
    for row in report.file.sizes(report.counter).into_iter().chain(report.sizes_with_parts()) {
        let Change { before, after } = row.size;
        let of_style = match after.cmp(&before) {
            Ordering::Less => GREEN,
            Ordering::Equal => PLAIN,
            Ordering::Greater => RED,
        };
        let change = [row.percent(), text::saved_bar(after, before)].map(|cell| (of_style, cell));
        let Change { before, after } = row.words;
        let cells = [row.name.to_owned(), before, "→".into(), after].map(|cell| (PLAIN, cell));
        table.painted(cells.into_iter().chain(change).chain([(PLAIN, row.unit)]).collect());
    }
    table.render()
}

/// Labelled lines, with the labels in a column.
#[derive(Default)]
pub struct Lines(Vec<(String, String)>);

impl Lines {
    pub fn add(&mut self, label: &str, line: impl Into<String>) {
        self.0.push((label.to_owned(), line.into()));
    }

    /// Adds several lines under one label.
    pub fn extend(&mut self, label: &str, lines: Vec<String>) {
        for (idx, line) in lines.into_iter().enumerate() {
            self.add(if idx == 0 { label } else { "" }, line);
        }
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The lines, wrapped to the terminal's width if there is one.
    pub fn render(&self) -> String {
        let width = self.0.iter().map(|(label, _)| label.len()).max().unwrap_or(0).max(7);
        let most = text::width().map_or(usize::MAX, |all| all.saturating_sub(width + 2).max(20));
        let mut text = String::new();
        for (label, line) in &self.0 {
            for (n, line) in text::wrap_line(line, most).into_iter().enumerate() {
                let label = if n == 0 { label } else { "" };
                let _ = writeln!(text, "{DIM}{label:width$}{DIM:#}  {line}");
            }
        }
        text
    }
}

/// A table with a line for each of many sessions, and the total.
pub fn summary(reports: &[CompactReport]) -> String {
    use Side::{Left, Right};
    let sides = [Left, Right, Left, Right, Right, Right, Left, Right, Right, Left];
    let heads = ["session", "messages", "", "after", "", "disk", "", "after", "", ""];
    let table = Table::new(&sides, &heads).shrinks(0, 16).shrinks(9, 8);
    let mut table = table.leaves_out(&[9]);
    let mut add = |style, name: String, (context, disk): (Change<Tokens>, Change<Bytes>), what| {
        let mut cells = vec![name, context.before.to_string(), "→".into()];
        cells.extend([context.after.to_string(), change(context.before.0, context.after.0)]);
        cells.extend([disk.before.to_string(), "→".into(), disk.after.to_string()]);
        cells.extend([change(disk.before.0, disk.after.0), what]);
        table.styled(style, cells);
    };
    let mut all = (Change::<Tokens>::default(), Change::<Bytes>::default());
    let mut archive = Bytes(0);
    let names = names(reports);
    for (report, name) in reports.iter().zip(names) {
        let file = &report.file;
        let what = match file.outcome {
            Outcome::Compacted | Outcome::Planned => String::new(),
            Outcome::Nothing => "nothing to do".to_owned(),
        };
        let own = (file.context_tokens, file.disk_bytes);
        add(PLAIN, name, own, what);
        let tokens = report.tokens();
        let bytes = report.disk_bytes();
        let net = report.net_bytes();
        if let Some(with) = report.sub_agents_text() {
            add(DIM, format!("  {with}"), (tokens, bytes), String::new());
        }
        all.0 += tokens;
        all.1 += bytes;
        archive += net.after - bytes.after;
    }
    if reports.len() > 1 {
        let of_what = if reports.iter().any(|report| !report.files.is_empty()) {
            "with what belongs to them".to_owned()
        } else {
            String::new()
        };
        add(GREEN, count(reports.len() as u64, "session"), all, of_what);
    }
    let mut text = table.render();
    if archive > Bytes(0) {
        let before = all.1.before;
        let after = all.1.after + archive;
        let change = change(before.0, after.0);
        let _ = writeln!(
            text,
            "{DIM}with {archive} in the archive: {before} → {after} {change}{DIM:#}"
        );
    }
    text
}

/// The names of the sessions: the agent, and the shortest prefix of the id that has at least eight
/// characters and is unique among these sessions.
fn names(reports: &[CompactReport]) -> Vec<String> {
    let ids = reports.iter().map(|report| match &report.file.id {
        Some(id) => id.clone(),
        None => {
            let stem = Path::new(&report.file.session).file_stem().unwrap_or_default();
            stem.to_string_lossy().into_owned()
        }
    });
    let ids: Vec<String> = ids.collect();
    let short = text::short_ids(&ids.iter().map(String::as_str).collect::<Vec<_>>());
    let names = reports.iter().zip(short);
    names.map(|(report, id)| format!("{} {id}", report.file.agent)).collect()
}

fn edits(file: &CompactedFile) -> String {
    let edits = epitome_render::edits(&file.edits);
    let all: Vec<String> = file.stands_for.iter().map(ToString::to_string).chain(edits).collect();
    if all.is_empty() { "none".to_owned() } else { all.join(", ") }
}

/// If the compaction makes the file grow, because it appended a record in the agent's own way, says
/// so, and how the file can be made smaller.
fn grows(file: &CompactedFile) -> Vec<String> {
    let Change { before, after } = file.disk_bytes;
    let is_appended = file.way == Some(WrittenWay::Native) && file.outcome != Outcome::Nothing;
    let hint = format!("the file grows: {} gets a record; --rewrite shrinks both", file.agent);
    (is_appended && after > before).then_some(hint).into_iter().collect()
}

/// Lists the largest savings of the context by tool and by file.
fn saves(savings: &Savings) -> Vec<String> {
    let lines = [largest(&savings.tools, field), largest(&savings.files, path_end)];
    lines.into_iter().flatten().collect()
}

/// Lists the largest savings, at most four, and the sum of the others: `46.6k of Read, 7.9k of
/// Edit, 4.1k of thinking, 2.0k of 5 others`. Savings below one per cent are not named.
fn largest(savings: &[Saving], name: fn(&str) -> String) -> Option<String> {
    const SHOWN: usize = 4;
    let all: Tokens = savings.iter().map(|it| it.tokens).sum();
    let least = Tokens(all.0.div_ceil(100));
    let shown = savings.iter().take(SHOWN).take_while(|it| it.tokens >= least).count();
    let (first, rest) = savings.split_at(shown);
    let parts = first.iter().map(|it| format!("{} of {}", it.tokens, name(&it.of)));
    let mut parts: Vec<String> = parts.collect();
    let tokens: Tokens = rest.iter().map(|it| it.tokens).sum();
    let others = if rest.len() == 1 { "other" } else { "others" };
    if !rest.is_empty() && tokens >= least {
        parts.push(format!("{tokens} of {} {others}", rest.len()));
    }
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// The last two components of a path.
fn path_end(path: &str) -> String {
    let path = field(path);
    match path.rmatch_indices(['/', '\\']).nth(1) {
        Some((at, _)) if at > 0 => format!("…{}", &path[at..]),
        _ => path,
    }
}

/// Says which losses may matter, and how to list all losses unless they are listed already.
fn loses(may_matter: &[String], are_listed: bool) -> Vec<String> {
    let mut lines = vec![if may_matter.is_empty() {
        "no rule, plan, decision, unresolved error, or message of yours".to_owned()
    } else {
        may_matter.join(", ")
    }];
    if !are_listed {
        lines.push(format!("{DIM}--losses lists all that would leave the context{DIM:#}"));
    }
    lines
}

/// Lines that say what the next requests cost after the compaction, and for which model.
fn price(file: &CompactedFile) -> Vec<String> {
    let Some(quote) = &file.quote else { return Vec::new() };
    let basis = if quote.is_fitted { "" } else { ", tokens assumed" };
    let balance = format!("{} ({}{basis})", quote.balance(), field(&quote.model));
    vec![quote.next_request(), balance]
}

/// Says which part of the session is kept, and why: for example everything, because the recipe's
/// trigger is not reached.
fn kept(file: &CompactedFile) -> Vec<String> {
    if let Some(trigger) = file.not_reached {
        let mut waits = Vec::new();
        waits.extend(trigger.tokens.map(|least| format!("{} tokens of context", Tokens(least))));
        waits.extend(trigger.bytes.map(|least| format!("{} on disk", Bytes(least))));
        waits.extend(trigger.percent.map(|least| format!("{least} per cent of the window")));
        for (least, what) in [
            (trigger.chars, "characters"),
            (trigger.results, "results"),
            (trigger.turns, "turns"),
            (trigger.messages, "messages"),
        ] {
            waits.extend(least.map(|least| format!("{least} {what}")));
        }
        return vec![format!("everything: the recipe starts at {}", waits.join(" and "))];
    }
    if let Some(saved) = file.saving_below_minimum {
        return vec![format!(
            "everything: the recipe would save only {saved} tokens, less than its minimum"
        )];
    }
    let kept = &file.kept_because;
    let rules: Vec<String> = kept
        .rules
        .iter()
        .map(|kept| format!("{} ({})", untouched(kept.rule), count(kept.entries, "entry")))
        .collect();
    let mut lines = Vec::new();
    if !rules.is_empty() {
        lines.push(format!("{} tokens untouched: {}", kept.tokens, rules.join(", ")));
    }
    if !kept.covered_everything.is_empty() {
        let rules: Vec<&str> = kept.covered_everything.iter().map(|it| untouched(*it)).collect();
        let rules = rules.join(" and ");
        lines.push(match kept.instead {
            Some(tail) => {
                format!("{rules} would be everything; the last {tail} tokens are kept instead")
            }
            None if file.edits.is_empty() => {
                format!("{rules}: that is everything, nothing is old yet")
            }
            None => format!("{rules}: that is everything; only duplicates and copies go"),
        });
    }
    if let Some(target) = file.target_missed {
        lines.push(format!(
            "the target of {target} is not reached: the rest is kept or cannot be removed"
        ));
    }
    if let Some(MissedChars { target, left }) = file.target_chars_missed {
        lines.push(format!(
            "the target of {target} characters is not reached: {left} are kept or cannot be removed"
        ));
    }
    lines
}

/// Says how large the window is, and what the recipe's percentages of it are in tokens.
fn window(file: &CompactedFile) -> Vec<String> {
    let Some(WindowLimits { tokens, usable, trigger, target }) = file.window else {
        return Vec::new();
    };
    let share = |share: WindowShare| format!("{}% of it, {} tokens", share.percent, share.tokens);
    let mut line = format!("{tokens} tokens, {usable} without the reserve");
    line.extend(trigger.map(|limit| format!("; the recipe starts at {}", share(limit))));
    line.extend(target.map(|limit| format!("; the target is {}", share(limit))));
    vec![line]
}

/// A description of what a rule keeps.
fn untouched(rule: KeepRule) -> &'static str {
    match rule {
        KeepRule::Turns => "the last turns",
        KeepRule::Results => "the last results",
        KeepRule::Messages => "the last messages",
        KeepRule::Tokens => "the last tokens",
        KeepRule::Unanswered => "what the model has not answered",
    }
}

/// A line for each of the first faults, and a line with the number of further ones.
pub fn faults(faults: &[FaultFound]) -> Vec<String> {
    let mut lines: Vec<String> = faults
        .iter()
        .take(5)
        .map(|fault| format!("line {}: {}", fault.line, field(&fault.what)))
        .collect();
    if faults.len() > 5 {
        lines.push(format!("and {} more", faults.len() - 5));
    }
    lines
}

fn in_use(file: &CompactedFile) -> Vec<String> {
    let users = file.in_use.iter();
    users.map(|user| format!("{} (process {})", field(&user.name), user.pid)).collect()
}

/// Totals of several compactions, for people.
#[derive(Debug, Default)]
pub struct Sum {
    /// Sessions that were compacted, or would be.
    pub sessions: u64,
    tokens: Change<Tokens>,
    bytes: Change<Bytes>,
    /// Sessions skipped because too little of their context would be removed. The caller counts
    /// them: [`add`](Sum::add) does not.
    pub too_little: u64,
}

impl Sum {
    pub fn add(&mut self, report: &CompactReport) {
        self.sessions += 1;
        self.tokens += report.tokens();
        self.bytes += report.disk_bytes();
    }

    /// The totals in words. `verb` is `compacted` or `would be compacted`.
    pub fn message(&self, verb: &str) -> String {
        let Sum { sessions, tokens, bytes, too_little } = self;
        let mut text = String::new();
        if *too_little > 0 {
            let left = count(*too_little, "session");
            text.push_str(&format!("{left} skipped: too little of the context would be removed\n"));
        }
        text.push_str(&match sessions {
            0 => "nothing to compact\n".to_owned(),
            n => format!(
                "{} {verb}: messages {} → {} tokens ({}), disk {}\n",
                count(*n, "session"),
                tokens.before,
                tokens.after,
                change(tokens.before.0, tokens.after.0),
                text::bytes_change(bytes.before, bytes.after),
            ),
        });
        text
    }
}
