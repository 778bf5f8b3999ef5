//! The losses of a compaction as they are displayed: groups in order, titles, amounts in words.
//! Texts of the session are not escaped for a terminal or a page: the caller must do that.

use std::cmp::Reverse;

use epitome_model::{MicroDollars, plural};
use epitome_passes::facts::FactKind;
use epitome_passes::losses::{LostKind, LostPiece, RepeatReason, UsedFact};
use epitome_passes::response_name;

use super::{CompactedBy, CompactionLosses, LostText};

/// Losses that are displayed under one title.
#[derive(Clone, Debug)]
pub struct LossGroup<'a> {
    /// The title.
    pub title: String,
    /// The losses.
    pub members: LossMembers<'a>,
    /// Whether this is the last group, with the removed texts that are in no other group.
    pub is_rest: bool,
}

/// The losses in a group.
#[derive(Clone, Debug)]
pub enum LossMembers<'a> {
    /// Removed texts. Their order depends on the group.
    Pieces(Vec<&'a LostText>),
    /// Facts. Lines and names of files are first, numbers are last.
    Facts(Vec<&'a str>),
    /// Files.
    Files(Vec<&'a str>),
    /// No members: the title says everything.
    None,
}

/// The command that gets a removed text back, with `REF` in place of the reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecoveryCommand {
    /// The command puts the text back into the session.
    Restore(String),
    /// The command prints the text. No command puts the text back.
    Show(String),
}

impl CompactionLosses {
    /// Whether the compaction is only planned.
    pub fn is_planned(&self) -> bool {
        self.by == CompactedBy::Epitome && self.generation.is_none()
    }

    /// Which program made the compaction, as text: `claude's own`, `by epitome, recipe s06`.
    pub fn maker(&self, agent: &str) -> String {
        match (self.by, &self.recipe) {
            (CompactedBy::Agent, _) => format!("{agent}'s own"),
            (CompactedBy::Epitome, Some(recipe)) => format!("by epitome, recipe {recipe}"),
            (CompactedBy::Epitome, None) => "by epitome".to_owned(),
        }
    }

    /// What was removed, by kind, with tokens: `1 rule (80), 2 file reads (9.1k)`.
    pub fn amounts(&self) -> String {
        let amounts = self.left.iter();
        let amounts: Vec<String> = amounts
            .map(|(kind, amount)| format!("{} ({})", count(*kind, amount.pieces), amount.tokens))
            .collect();
        if amounts.is_empty() { "nothing".to_owned() } else { amounts.join(", ") }
    }

    /// The number of removed facts, as a sentence.
    pub fn facts_sentence(&self) -> String {
        let facts = self.facts;
        let before = plural(facts.before, "fact");
        let (gone, later) = match facts.used {
            _ if self.is_planned() => ("would be gone", String::new()),
            0 => ("are gone", "; the agent used none of them later".to_owned()),
            n => ("are gone", format!("; the agent used {n} of them later")),
        };
        format!("Of {before} (paths, names, numbers) {} {gone}{later}.", facts.gone)
    }

    /// The losses in groups, the group that matters most first.
    pub fn groups(&self) -> Vec<LossGroup<'_>> {
        let mut groups = Vec::new();
        let rules = self.pieces_where(|it| is_one_of(it, &[LostKind::Rule, LostKind::Plan]));
        groups.extend(LossGroup::of_pieces("Rules and plans that left", rules));
        groups.extend(self.repeated_calls());
        groups.extend(self.changed_calls());
        let facts = self.facts_used_later();
        if !facts.is_empty() {
            groups.push(LossGroup::new("Used later though gone", LossMembers::Facts(facts)));
        }
        if !self.changed_files.is_empty() {
            let files = self.changed_files.iter().map(String::as_str).collect();
            let title = "Read and changed in this session";
            groups.push(LossGroup::new(title, LossMembers::Files(files)));
        }
        let errors = self.pieces_where(|it| is_unresolved(&it.lost));
        groups.extend(LossGroup::of_pieces("Errors that were not resolved", errors));
        let mut messages = self.pieces_where(|it| it.lost.kind == LostKind::User);
        messages.sort_by_key(|it| Reverse(it.lost.tokens));
        groups.extend(LossGroup::of_pieces("Your messages", messages));
        groups.extend(LossGroup::of_pieces("Texts of the model", self.texts_of_the_model()));
        groups.extend(self.rest());
        groups
    }

    /// The command that puts back a removed text, for the first text that can be put back and is
    /// not in the session again. If no text can be put back, the command that prints a text. `None`
    /// if no text has a command, or if all that can be put back are in the session again.
    pub fn recovery_command(&self) -> Option<RecoveryCommand> {
        let restorable = self.pieces.iter().filter(|it| it.restore.is_some());
        if restorable.clone().next().is_some() {
            let piece = restorable.into_iter().find(|it| !it.back)?;
            return Some(RecoveryCommand::Restore(with_ref(piece.restore.as_ref()?, piece)));
        }
        let mut pieces = self.pieces.iter();
        pieces.find_map(|it| Some(RecoveryCommand::Show(with_ref(it.show.as_ref()?, it))))
    }

    /// Why the removed texts cannot be put back. Call this only for a compaction of which no text
    /// can be put back.
    pub fn why_not_restored(&self) -> &'static str {
        match self.by {
            CompactedBy::Agent => "the agent took them out itself",
            CompactedBy::Epitome => "they are still in the file",
        }
    }

    fn pieces_where(&self, is_wanted: impl Fn(&LostText) -> bool) -> Vec<&LostText> {
        self.pieces.iter().filter(|it| is_wanted(it)).collect()
    }

    /// The calls that were probably repeated because their results had been removed, those with the
    /// most tokens first.
    fn repeated_calls(&self) -> Option<LossGroup<'_>> {
        let mut pieces = self.pieces_where(is_repeated);
        pieces.sort_by_key(|piece| {
            Reverse(piece.lost.again.map(|it| it.call_tokens + it.result_tokens))
        });
        let cost = self.again.cost.map(|it| format!(", {it}")).unwrap_or_default();
        let title = format!("Read or run again: {} tokens{cost}", self.again.tokens);
        LossGroup::of_pieces(&title, pieces)
    }

    /// The calls that were repeated because something had changed: a group that has only a title,
    /// with the number of these calls.
    fn changed_calls(&self) -> Option<LossGroup<'_>> {
        let is_changed =
            |it: &LostText| it.lost.again.is_some_and(|it| it.because == RepeatReason::Changed);
        let calls = match self.pieces_where(is_changed).len() {
            0 => return None,
            1 => "1 other call was".to_owned(),
            n => format!("{n} other calls were"),
        };
        let title = format!("{calls} made again because of changes: not counted.");
        Some(LossGroup::new(&title, LossMembers::None))
    }

    /// The removed facts that were used later, in the order of [`rank`]. If one fact is the end of
    /// another, only the first of the two is listed.
    fn facts_used_later(&self) -> Vec<&str> {
        let mut found: Vec<&UsedFact> = self.facts_used.iter().collect();
        found.sort_by_key(|it| rank(it));
        let mut facts: Vec<&str> = Vec::new();
        for UsedFact { fact, .. } in found {
            if !facts.iter().any(|known| known.ends_with(fact) || fact.ends_with(known)) {
                facts.push(fact);
            }
        }
        facts
    }

    /// The removed texts that are in no other group. If the compaction is only planned, the largest
    /// is first; otherwise they are in the order of the session.
    fn rest(&self) -> Option<LossGroup<'_>> {
        const OF_OTHER_GROUPS: [LostKind; 5] =
            [LostKind::Rule, LostKind::Plan, LostKind::User, LostKind::Decision, LostKind::Reply];
        let mut pieces = self.pieces_where(|it| {
            !is_one_of(it, &OF_OTHER_GROUPS) && !is_unresolved(&it.lost) && !is_repeated(it)
        });
        let title = if self.is_planned() { "The largest of the rest" } else { "The rest" };
        if self.is_planned() {
            pieces.sort_by_key(|it| Reverse(it.lost.tokens));
        }
        let group = LossGroup::of_pieces(title, pieces)?;
        Some(LossGroup { is_rest: true, ..group })
    }
}

impl<'a> LossGroup<'a> {
    fn new(title: &str, members: LossMembers<'a>) -> LossGroup<'a> {
        LossGroup { title: title.to_owned(), members, is_rest: false }
    }

    fn of_pieces(title: &str, pieces: Vec<&'a LostText>) -> Option<LossGroup<'a>> {
        (!pieces.is_empty()).then(|| LossGroup::new(title, LossMembers::Pieces(pieces)))
    }
}

impl LostText {
    /// Whether the name of the removed text is that of a file.
    pub fn is_file(&self) -> bool {
        is_one_of(self, &[LostKind::Read, LostKind::Change, LostKind::Rule])
    }

    /// The command that puts the text back into the session. If it cannot be put back, or is in the
    /// session again, the command that prints it. `None` if the text has no command.
    pub fn command(&self) -> Option<&str> {
        let restore = self.restore.as_deref().filter(|_| !self.back);
        restore.or(self.show.as_deref())
    }

    /// Details that are displayed with the name, for example the size, and how the text was needed
    /// later.
    pub fn details(&self) -> Vec<String> {
        let lost = &self.lost;
        let part = if lost.partly { " of it" } else { "" };
        let mut details = vec![format!("{} tokens{part}", lost.tokens)];
        details.extend(lost.response.map(response_name));
        if let Some(again) = &lost.again {
            let tokens = again.call_tokens + again.result_tokens;
            let cost = self.cost.filter(|it| *it > MicroDollars(0));
            let cost = cost.map(|it| format!(", {it}")).unwrap_or_default();
            let why = match again.because {
                RepeatReason::Same => ", the same text",
                RepeatReason::Gone => "",
                RepeatReason::Changed => ", changed",
            };
            details.push(format!("again on line {} ({tokens}{cost}{why})", again.line));
        }
        if lost.used > 0 {
            details.push(format!("{} used later", plural(lost.used, "fact")));
        }
        if self.back {
            details.push("in the session again".to_owned());
        }
        details
    }
}

/// A command with the reference to this removed text replaced by `REF`.
fn with_ref(command: &str, piece: &LostText) -> String {
    let reference = piece.reference().map(ToString::to_string).unwrap_or_default();
    command.replace(&reference, "REF")
}

fn is_one_of(piece: &LostText, kinds: &[LostKind]) -> bool {
    kinds.contains(&piece.lost.kind)
}

/// Whether a removed text is an error that was not resolved. An error of which a part is still in
/// the context does not count: a compaction keeps the lines that say what failed.
pub(super) fn is_unresolved(piece: &LostPiece) -> bool {
    piece.resolved == Some(false) && !piece.partly
}

fn is_repeated(piece: &LostText) -> bool {
    piece.lost.again.is_some_and(|it| it.is_loss())
}

/// The sort key of a fact. Lines and names of files have the smallest, and numbers, which occur in
/// any program, have the largest.
fn rank(used: &UsedFact) -> u8 {
    match used.kind {
        FactKind::Line => 0,
        FactKind::Path if is_file_name(&used.fact) => 1,
        FactKind::Url => 2,
        FactKind::Identifier => 3,
        FactKind::Path => 4,
        FactKind::Hash => 5,
        FactKind::Hyphenated => 6,
        FactKind::Number => 7,
    }
}

/// Whether a path ends with an extension of lower-case letters.
fn is_file_name(path: &str) -> bool {
    let extension = path.rsplit_once('.').map(|(_, extension)| extension);
    extension.is_some_and(|extension| extension.bytes().all(|it| it.is_ascii_lowercase()))
}

fn count(kind: LostKind, n: u64) -> String {
    match kind {
        LostKind::Rule => plural(n, "rule"),
        LostKind::Plan => plural(n, "plan"),
        LostKind::Error => plural(n, "error"),
        LostKind::User => format!("{n} of your messages"),
        LostKind::Decision => plural(n, "text") + " with decisions",
        LostKind::Read => plural(n, "file read"),
        LostKind::Command => plural(n, "command"),
        LostKind::Change => plural(n, "change"),
        LostKind::Result => plural(n, "other result"),
        LostKind::Reply => plural(n, "text") + " of the model",
        LostKind::Agent => plural(n, "text") + " of the agent",
        LostKind::Image => plural(n, "picture"),
    }
}
