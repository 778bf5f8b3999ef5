//! The loss report for people.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::Path;

use epitome::ops::{
    CompactionLosses, LossGroup, LossMembers, LossReport, LostText, RecoveryCommand,
};
use epitome_model::Tokens;

use crate::text::{BOLD, DIM, YELLOW, field, one_line, path};

/// The maximum number of lines for the removed texts of a group, unless all are requested. Of
/// facts, twice as many are displayed.
const SHOWN: usize = 3;
/// The maximum number of characters of a removed text's name.
const NAME: usize = 64;

/// The whole report. If `all`, every removed text is listed.
pub fn render(report: &LossReport, all: bool) -> String {
    let mut text = format!("{BOLD}{}{BOLD:#}\n", path(&report.session));
    // A note names compactions that are known, but cannot be reported.
    if report.compactions.is_empty() && report.notes.is_empty() {
        text.push_str("no compaction is known of this session\n");
    }
    let of = report.compactions.len();
    for (idx, compaction) in report.compactions.iter().enumerate() {
        let _ = writeln!(
            text,
            "\n{BOLD}Compaction {} of {of}{BOLD:#} {}",
            idx + 1,
            head(compaction, report.agent)
        );
        text.push_str(&body(compaction, all));
    }
    for note in &report.notes {
        let _ = writeln!(text, "\n{YELLOW}{}{YELLOW:#}", field(note));
    }
    text
}

/// What a planned compaction would remove, as text.
pub fn render_planned(losses: &CompactionLosses) -> String {
    format!("\n{BOLD}What would leave the context{BOLD:#}\n{}", body(losses, false))
}

/// The end of a compaction's heading, after its number: `(Claude Code's own, 2026-11-02 14:10):
/// 152.0k → 9.1k tokens`.
fn head(compaction: &CompactionLosses, agent: &str) -> String {
    let maker = compaction.maker(agent);
    let mut about = vec![field(maker.strip_prefix("by ").unwrap_or(&maker))];
    about.extend(compaction.at.as_deref().map(minute));
    about.extend(compaction.line.map(|line| format!("line {line}")));
    let tokens = compaction.context_tokens;
    format!("({}): {} → {} tokens", about.join(", "), tokens.before, tokens.after)
}

/// A recorded time, to the minute.
fn minute(at: &str) -> String {
    let at = field(at);
    match (at.get(..10), at.get(11..16)) {
        (Some(day), Some(minute)) if at.as_bytes()[10] == b'T' => format!("{day} {minute}"),
        _ => at,
    }
}

fn body(compaction: &CompactionLosses, all: bool) -> String {
    let is_planned = compaction.is_planned();
    let mut text = String::new();
    let verb = if is_planned { "It would take" } else { "Left the context" };
    let _ = writeln!(text, "  {verb}: {}.", compaction.amounts());
    let _ = writeln!(text, "  {}", compaction.facts_sentence());
    let most = if all { usize::MAX } else { SHOWN };
    let rest = if is_planned { "--json" } else { "--all-pieces" };
    let mut list = List { text, most, rest, listed: 0 };
    for group in compaction.groups() {
        if all || is_planned || !group.is_rest {
            list.group(&group);
        }
    }
    list.recovery_command(compaction);
    list.text
}

/// The lines that are printed for a compaction. `most` limits the number of lines for the removed
/// texts of a group.
struct List {
    text: String,
    most: usize,
    /// The command-line option that lists the other removed texts, too.
    rest: &'static str,
    /// The number of lines that show a removed text with its reference.
    listed: usize,
}

impl List {
    fn line(&mut self, line: &str) {
        let _ = writeln!(self.text, "  {line}");
    }

    fn group(&mut self, LossGroup { title, members, .. }: &LossGroup<'_>) {
        match members {
            LossMembers::Pieces(pieces) => self.pieces(title, pieces),
            LossMembers::Facts(facts) => self.names(title, facts, self.most.saturating_mul(2)),
            LossMembers::Files(files) => self.names(title, files, usize::MAX),
            LossMembers::None => self.line(&format!("{DIM}{title}{DIM:#}")),
        }
    }

    /// Adds names on one line, at most `most` of them.
    fn names(&mut self, title: &str, names: &[&str], most: usize) {
        let shown: Vec<String> = names.iter().take(most).map(|it| end(it, 40)).collect();
        let more = match names.len() - shown.len() {
            0 => String::new(),
            n => format!(" and {n} more"),
        };
        self.line(&format!("{title}: {}{more}", shown.join(", ")));
    }

    fn pieces(&mut self, title: &str, pieces: &[&LostText]) {
        self.line(&format!("{title}:"));
        let groups = self.grouped(pieces);
        let shown: usize = groups.iter().take(self.most).map(Vec::len).sum();
        for group in groups.iter().take(self.most) {
            let piece = group[0];
            let reference = piece.reference().map(ToString::to_string).unwrap_or_default();
            self.listed += usize::from(!reference.is_empty());
            let times = match group.len() {
                1 => String::new(),
                n => {
                    let tokens: Tokens = group.iter().map(|it| it.lost.tokens).sum();
                    format!(" {DIM}· {n} times, {tokens} in all{DIM:#}")
                }
            };
            self.line(&format!("  {DIM}{reference:8}{DIM:#}  {}{times}", line(piece)));
            if self.most == usize::MAX
                && let Some(command) = piece.command()
            {
                self.line(&format!("            {DIM}{}{DIM:#}", field(command)));
            }
        }
        let rest = pieces.len() - shown;
        if rest > 0 {
            let how = self.rest;
            self.line(&format!("  {DIM}{:8}  and {rest} more ({how}){DIM:#}", ""));
        }
    }

    /// Groups removed texts that have the same kind and name; each group is displayed as its first
    /// text. If all removed texts are listed, only those with equal texts are grouped.
    fn grouped<'p>(&self, pieces: &[&'p LostText]) -> Vec<Vec<&'p LostText>> {
        let is_all = self.most == usize::MAX;
        let mut groups: Vec<Vec<&LostText>> = Vec::new();
        let mut known = HashMap::new();
        for piece in pieces {
            let lost = &piece.lost;
            let text = is_all.then_some(&lost.references);
            let at = *known.entry((lost.kind, &lost.name, text)).or_insert(groups.len());
            match groups.get_mut(at) {
                Some(group) => group.push(piece),
                None => groups.push(vec![piece]),
            }
        }
        groups
    }

    /// Adds a command that puts a removed text back, or that prints it.
    fn recovery_command(&mut self, compaction: &CompactionLosses) {
        if self.listed == 0 {
            return;
        }
        match compaction.recovery_command() {
            Some(RecoveryCommand::Restore(command)) => {
                let when = if compaction.is_planned() { " afterwards" } else { "" };
                self.line(&format!("Put one back{when}: {}", field(&command)));
            }
            Some(RecoveryCommand::Show(command)) => {
                let why = compaction.why_not_restored();
                let command = field(&command);
                self.line(&format!("None can be put back alone ({why}). Read one: {command}"));
            }
            None => {}
        }
    }
}

/// One removed text as a line.
fn line(piece: &LostText) -> String {
    let name = &piece.lost.name;
    let name = if piece.is_file() { end(name, NAME) } else { one_line(name, NAME) };
    format!("{name}  {DIM}{}{DIM:#}", piece.details().join(" · "))
}

/// The end of a path, on one line; the user's home folder is `~`.
fn end(name: &str, most: usize) -> String {
    let path = path(Path::new(name));
    let n = path.chars().count();
    if n <= most {
        return path;
    }
    let end: String = path.chars().skip(n + 1 - most).collect();
    format!("…{end}")
}
