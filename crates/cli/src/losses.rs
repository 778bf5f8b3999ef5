//! What compactions took out of a context, for people.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::Path;

use epitome::ops::{CompactedBy, CompactionLosses, LossReport, Piece};
use epitome_model::{MicroDollars, Tokens};
use epitome_passes::facts::FactKind;
use epitome_passes::losses::{Because, LostKind, UsedFact};
use epitome_passes::response_name;

use crate::text::{BOLD, DIM, YELLOW, count, field, one_line, path};

/// Pieces shown of each kind.
const SHOWN: usize = 3;
/// Columns of the name of a piece.
const NAME: usize = 64;

/// A report.
pub fn render(report: &LossReport, all: bool) -> String {
    let mut text = format!("{BOLD}{}{BOLD:#}\n", path(&report.session));
    if report.compactions.is_empty() {
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
        text.push_str(&body(compaction, all, false));
    }
    for note in &report.notes {
        let _ = writeln!(text, "\n{YELLOW}{}{YELLOW:#}", field(note));
    }
    text
}

/// What a planned compaction would take.
pub fn render_planned(losses: &CompactionLosses) -> String {
    format!("\n{BOLD}What would leave the context{BOLD:#}\n{}", body(losses, false, true))
}

/// `(Claude Code's own, 2026-11-02 14:10): 152.0k → 9.1k tokens`.
fn head(compaction: &CompactionLosses, agent: &str) -> String {
    let by = match (compaction.by, &compaction.recipe) {
        (CompactedBy::Agent, _) => format!("{agent}'s own"),
        (CompactedBy::Epitome, Some(recipe)) => format!("epitome, recipe {}", field(recipe)),
        (CompactedBy::Epitome, None) => "epitome".to_owned(),
    };
    let mut about = vec![by];
    about.extend(compaction.at.as_deref().map(minute));
    about.extend(compaction.line.map(|line| format!("line {line}")));
    let tokens = compaction.context_tokens;
    format!("({}): {} → {} tokens", about.join(", "), tokens.before, tokens.after)
}

/// A time to the minute, as it is written.
fn minute(at: &str) -> String {
    let at = field(at);
    match (at.get(..10), at.get(11..16)) {
        (Some(day), Some(minute)) if at.as_bytes()[10] == b'T' => format!("{day} {minute}"),
        _ => at,
    }
}

fn body(compaction: &CompactionLosses, all: bool, is_planned: bool) -> String {
    let mut text = String::new();
    let left = compaction.left.iter();
    let left: Vec<String> = left
        .map(|(kind, amount)| format!("{} ({})", count_of(*kind, amount.pieces), amount.tokens))
        .collect();
    let left = if left.is_empty() { "nothing".to_owned() } else { left.join(", ") };
    let verb = if is_planned { "It would take" } else { "Left the context" };
    let _ = writeln!(text, "  {verb}: {left}.");
    let facts = compaction.facts;
    let of = count(facts.before, "fact");
    let later = match facts.used {
        _ if is_planned => String::new(),
        0 => "; the agent used none of them later".to_owned(),
        n => format!("; the agent used {n} of them later"),
    };
    let gone = if is_planned { "would be gone" } else { "are gone" };
    let _ = writeln!(text, "  Of {of} (paths, names, numbers) {} {gone}{later}.", facts.gone);
    let most = if all { usize::MAX } else { SHOWN };
    let rest = if is_planned { "--json" } else { "--all-pieces" };
    let mut list = List { text, most, rest, listed: 0 };
    let of = |kinds: &[LostKind]| pieces(compaction, |it| kinds.contains(&it.lost.kind));
    list.section("Rules and plans that left", &of(&[LostKind::Rule, LostKind::Plan]));
    again(&mut list, compaction);
    used(&mut list, compaction);
    changed(&mut list, compaction);
    let open = |it: &Piece| it.lost.resolved == Some(false);
    list.section("Errors that were not resolved", &pieces(compaction, open));
    let mut messages = of(&[LostKind::User]);
    messages.sort_by_key(|it| Reverse(it.lost.tokens));
    list.section("Your messages", &messages);
    list.section("Texts of the model", &compaction.texts_of_the_model());
    if is_planned {
        let mut largest =
            of(&[LostKind::Read, LostKind::Command, LostKind::Change, LostKind::Result]);
        largest.sort_by_key(|it| Reverse(it.lost.tokens));
        list.section("The largest of the rest", &largest);
    }
    if all {
        let shown =
            [LostKind::Rule, LostKind::Plan, LostKind::User, LostKind::Decision, LostKind::Reply];
        let is_again = |it: &Piece| it.lost.again.is_some_and(|it| it.is_loss());
        let is_rest = |it: &Piece| !shown.contains(&it.lost.kind) && !open(it) && !is_again(it);
        list.section("The rest", &pieces(compaction, is_rest));
    }
    list.how(compaction);
    list.text
}

fn pieces(compaction: &CompactionLosses, is_wanted: impl Fn(&Piece) -> bool) -> Vec<&Piece> {
    compaction.pieces.iter().filter(|it| is_wanted(it)).collect()
}

/// What was read or run again, the dearest first.
fn again(list: &mut List, compaction: &CompactionLosses) {
    let total = compaction.again;
    let mut found = pieces(compaction, |it| it.lost.again.is_some_and(|it| it.is_loss()));
    let tokens =
        |piece: &Piece| piece.lost.again.map_or(Tokens(0), |it| it.call_tokens + it.result_tokens);
    found.sort_by_key(|piece| Reverse(tokens(piece)));
    if !found.is_empty() {
        let cost = total.cost.map(|it| format!(", {it}")).unwrap_or_default();
        let head = format!("Read or run again: {} tokens{cost}", total.tokens);
        list.section(&head, &found);
    }
    let is_changed = |it: &&Piece| it.lost.again.is_some_and(|it| it.because == Because::Changed);
    let what = match compaction.pieces.iter().filter(is_changed).count() {
        0 => return,
        1 => "1 other call was".to_owned(),
        n => format!("{n} other calls were"),
    };
    list.line(&format!("{DIM}{what} made again because of changes: not counted.{DIM:#}"));
}

/// Facts that were used though they were gone, the most telling first.
fn used(list: &mut List, compaction: &CompactionLosses) {
    let mut found: Vec<_> = compaction.facts_used.iter().collect();
    found.sort_by_key(|it| rank(it));
    let mut shown: Vec<&str> = Vec::new();
    for it in found {
        // A path comes with its last names.
        let of = |one: &&str| one.ends_with(&it.fact) || it.fact.ends_with(one);
        if !shown.iter().any(of) {
            shown.push(&it.fact);
        }
    }
    if shown.is_empty() {
        return;
    }
    let rest = shown.len().saturating_sub(list.most.saturating_mul(2));
    shown.truncate(list.most.saturating_mul(2));
    let shown: Vec<String> = shown.into_iter().map(|it| end(it, 40)).collect();
    let more = if rest > 0 { format!(" and {rest} more") } else { String::new() };
    list.line(&format!("Used later though gone: {}{more}", shown.join(", ")));
}

/// Files that were read and changed.
fn changed(list: &mut List, compaction: &CompactionLosses) {
    let files: Vec<String> = compaction.changed_files.iter().map(|it| end(it, 40)).collect();
    if !files.is_empty() {
        list.line(&format!("Read and changed in this session: {}", files.join(", ")));
    }
}

/// Names of files first; what any program has last.
fn rank(used: &UsedFact) -> u8 {
    let is_file = || {
        let extension = used.fact.rsplit_once('.').map(|(_, it)| it);
        extension.is_some_and(|it| it.bytes().all(|it| it.is_ascii_lowercase()))
    };
    match used.kind {
        FactKind::Line => 0,
        FactKind::Path if is_file() => 1,
        FactKind::Url => 2,
        FactKind::Identifier => 3,
        FactKind::Path => 4,
        FactKind::Hash => 5,
        FactKind::Hyphenated => 6,
        FactKind::Number => 7,
    }
}

/// What is printed of a compaction, and how many pieces of each kind.
struct List {
    text: String,
    most: usize,
    /// What lists the rest.
    rest: &'static str,
    /// Pieces with a reference that were listed.
    listed: usize,
}

impl List {
    fn line(&mut self, line: &str) {
        let _ = writeln!(self.text, "  {line}");
    }

    fn section(&mut self, head: &str, pieces: &[&Piece]) {
        if pieces.is_empty() {
            return;
        }
        self.line(&format!("{head}:"));
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
                && let Some(command) = piece.restore.as_ref().or(piece.show.as_ref())
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

    /// The pieces of one kind and name together, as the first of them; where all are listed, only
    /// those of the same text.
    fn grouped<'p>(&self, pieces: &[&'p Piece]) -> Vec<Vec<&'p Piece>> {
        let is_all = self.most == usize::MAX;
        let mut groups: Vec<Vec<&Piece>> = Vec::new();
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

    /// How a piece is put back, or read.
    fn how(&mut self, compaction: &CompactionLosses) {
        let command = |command: &str, piece: &Piece| {
            let reference = piece.reference().map(ToString::to_string).unwrap_or_default();
            field(&command.replace(&reference, "REF"))
        };
        if self.listed == 0 {
            return;
        }
        let restored =
            compaction.pieces.iter().find_map(|it| Some(command(it.restore.as_ref()?, it)));
        let shown = compaction.pieces.iter().find_map(|it| Some(command(it.show.as_ref()?, it)));
        if let Some(restored) = restored {
            let when = if self.rest == "--json" { " afterwards" } else { "" };
            self.line(&format!("Put one back{when}: {restored}"));
        } else if let Some(shown) = shown {
            let whose = match compaction.by {
                CompactedBy::Agent => "the agent took them out itself",
                CompactedBy::Epitome => "they are still in the file",
            };
            self.line(&format!("None can be put back alone ({whose}). Read one: {shown}"));
        }
    }
}

/// A piece in a line.
fn line(piece: &Piece) -> String {
    let lost = &piece.lost;
    let mut about = vec![format!("{} tokens", lost.tokens)];
    if lost.partly {
        about[0].push_str(" of it");
    }
    about.extend(lost.response.map(response_name));
    if let Some(again) = &lost.again {
        let tokens = again.call_tokens + again.result_tokens;
        let cost = piece.cost.filter(|it| *it > MicroDollars(0));
        let cost = cost.map(|it| format!(", {it}")).unwrap_or_default();
        let same = match again.because {
            Because::Same => ", the same text",
            Because::Gone => "",
            Because::Changed => ", changed",
        };
        about.push(format!("again on line {} ({tokens}{cost}{same})", again.line));
    }
    if lost.used > 0 {
        about.push(format!("{} used later", count(lost.used, "fact")));
    }
    let name = match lost.kind {
        LostKind::Read | LostKind::Change | LostKind::Rule => end(&lost.name, NAME),
        _ => one_line(&lost.name, NAME),
    };
    format!("{name}  {DIM}{}{DIM:#}", about.join(" · "))
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

fn count_of(kind: LostKind, n: u64) -> String {
    match kind {
        LostKind::Rule => count(n, "rule"),
        LostKind::Plan => count(n, "plan"),
        LostKind::Error => count(n, "error"),
        LostKind::User => format!("{n} of your messages"),
        LostKind::Decision => count(n, "text") + " with decisions",
        LostKind::Read => count(n, "file read"),
        LostKind::Command => count(n, "command"),
        LostKind::Change => count(n, "change"),
        LostKind::Result => count(n, "other result"),
        LostKind::Reply => count(n, "text") + " of the model",
        LostKind::Agent => count(n, "text") + " of the agent",
        LostKind::Image => count(n, "picture"),
    }
}
