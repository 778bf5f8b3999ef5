//! Chooses the lines of a digest: those with the most new value per token, until the budget is
//! spent.
//!
//! Lines belong to pieces. A piece is a text, or a call with its result. In a digest, the lines of
//! a piece follow a header that names the speaker or the call.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashSet};

use epitome_model::{Counter, Tokens, parallel};

use crate::facts::facts;

use super::focus::Focus;
use super::index::FactIndex;
use super::pieces::{Fact, Line, Piece, Pieces, Speaker};
use super::value::Values;

/// The lines of each piece that the digest contains, by the index of the piece.
pub(super) type Chosen = BTreeMap<usize, ChosenLines>;

/// What a digest contains of one piece: its short or its full header, and lines below it.
#[derive(Clone, Debug, Default)]
pub(super) struct ChosenLines {
    /// Whether the header is the full one, with the target of the call.
    pub full: bool,
    /// Whether the piece is a short text of the model that is included whole.
    pub whole: bool,
    pub lines: BTreeSet<usize>,
}

/// Settings and limits for the choice of lines.
pub(super) struct DigestLimits<'a> {
    /// The texts that set rules, as the digest contains them.
    pub rules: Option<&'a str>,
    /// Maximum tokens of all short texts of the model; the newest are included first.
    pub briefs: Tokens,
    /// Maximum tokens of the full headers of all calls with an effect; the newest are included
    /// first.
    pub effects: Tokens,
    /// The topic: lines about it have a higher value.
    pub focus: Option<&'a str>,
}

/// What is added to the value of a line that looks like an error.
const ERROR: f64 = 0.01;
/// What is added to the value of a line that states a decision. With this addition, a digest with a
/// fifth of the session's tokens contains four of five decisions, and as many facts as without the
/// addition (`docs/quality.md`).
const DECISION: f64 = 0.2;
/// What is added to the value of a heading of a long text of the model, and to the value of a line
/// in the first or last paragraph of such a text.
const FRAME: f64 = 0.1;

/// The pieces of a session, the lines and headers that may be chosen (the candidates), and what
/// every digest contains.
pub(super) struct Choice<'p> {
    old: &'p [Piece],
    values: &'p Values,
    candidates: Vec<Candidate>,
    /// For each fact number, whether the fact is in a part of the context that stays, or in what
    /// every digest contains.
    known: Vec<bool>,
    focus: Focus,
    /// Texts and lines that every digest contains.
    stays: Chosen,
    /// Tokens of `stays`, and of the pieces that are included whole.
    whole: u64,
}

/// A line or a header that may be chosen.
#[derive(Clone, Copy)]
struct Candidate {
    /// The value of the candidate per token, or an upper bound of it.
    gain: f64,
    // There may be hundreds of thousands of candidates, and most of the time is spent on moving
    // them: so this type is small.
    piece: u32,
    /// The index of the line; `None` for the full header.
    line: Option<u32>,
    tokens: u32,
}

impl Candidate {
    fn piece(&self) -> usize {
        self.piece as usize
    }

    fn line(&self) -> Option<usize> {
        self.line.map(|line| line as usize)
    }

    fn tokens(&self) -> u64 {
        self.tokens.into()
    }
}

impl<'p> Choice<'p> {
    /// Prepares the choice. Finds the lines, short texts and full headers that every digest of
    /// these pieces contains, and computes the value of the other lines. Of a long text of the
    /// model, only the headings and the first and last paragraph (its frame) are candidates at
    /// first; its other lines become candidates when the whole frame is chosen.
    pub fn weigh(
        index: &FactIndex,
        pieces: &'p Pieces,
        values: &'p Values,
        limits: &DigestLimits<'_>,
        counter: &dyn Counter,
    ) -> Choice<'p> {
        let old = pieces.old();
        let mut known = vec![false; index.facts.len()];
        let rules = facts(limits.rules.unwrap_or_default());
        let in_rules = rules.into_iter().filter_map(|(fact, _)| index.number(fact));
        in_rules.for_each(|number| known[number as usize] = true);
        for piece in pieces.kept() {
            piece.full.iter().for_each(|full| cover(&mut known, &full.facts));
            piece.lines.iter().for_each(|line| cover(&mut known, &line.facts));
        }
        let mut stays = stays(old, pieces.kept());
        let mut whole = 0;
        for n in briefs(old, pieces.kept(), limits.briefs) {
            stays.insert(n, ChosenLines { whole: true, ..ChosenLines::default() });
            let piece = &old[n];
            whole += piece.brief.as_ref().map_or(0, |(_, tokens)| tokens.0);
            piece.lines.iter().for_each(|line| cover(&mut known, &line.facts));
        }
        for n in effects(old, limits.effects) {
            let Some(full) = &old[n].full else { continue };
            stays.entry(n).or_default().full = true;
            // Here, a full header counts only the tokens that it has in addition to the short
            // header. The short headers of all pieces in `stays` are counted below.
            whole += full.tokens.0 - old[n].head_tokens.0.min(full.tokens.0);
            cover(&mut known, &full.facts);
        }
        for (n, piece) in old.iter().enumerate() {
            if let Some(of_piece) = stays.get(&n) {
                whole += piece.head_tokens.0;
                for line in of_piece.lines.iter().map(|&at| &piece.lines[at]) {
                    whole += counter.count(&line.text).0 + 1;
                    cover(&mut known, &line.facts);
                }
            }
            if let Some((_, tokens)) = &piece.whole {
                whole += tokens.0 + piece.head_tokens.0;
                piece.lines.iter().for_each(|line| cover(&mut known, &line.facts));
            }
        }
        let focus = Focus::new(limits.focus.unwrap_or_default(), old);
        let mut choice = Choice { old, values, candidates: Vec::new(), known, focus, stays, whole };
        let open = (0..old.len()).filter(|n| choice.is_open(*n)).collect();
        let found = parallel::map(open, |n| {
            choice.candidates_of(n, |line| line.is_frame || !is_framed(&old[n]), counter)
        });
        choice.candidates = found.into_iter().flatten().collect();
        choice
    }

    /// Whether single lines of a piece may be chosen: the piece is not included whole, and is not
    /// reasoning.
    fn is_open(&self, n: usize) -> bool {
        let piece = &self.old[n];
        let is_whole = piece.whole.is_some() || self.stays.get(&n).is_some_and(|it| it.whole);
        !is_whole && piece.speaker != Speaker::Thinking
    }

    /// The candidates of a piece: its full header, unless every digest contains it, and the lines
    /// for which `may_be` returns true. Candidates without value are left out.
    fn candidates_of(
        &self,
        n: usize,
        may_be: impl Fn(&Line) -> bool,
        counter: &dyn Counter,
    ) -> Vec<Candidate> {
        let piece = &self.old[n];
        let has_header = self.stays.get(&n).is_some_and(|of_piece| of_piece.full);
        let header = (piece.full.is_some() && !has_header).then_some(None);
        let lines = (0..piece.lines.len()).filter(|&at| may_be(&piece.lines[at])).map(Some);
        let candidates = header.into_iter().chain(lines).filter_map(|line| {
            let gain = self.gain(piece, line, &self.known);
            if gain <= 0.0 {
                return None;
            }
            let tokens = match line {
                None => piece.full.as_ref().map_or(0, |full| full.tokens.0),
                Some(line) => piece.lines[line].tokens(counter),
            };
            let opens = line.map_or(0, |_| piece.head_tokens.0);
            Some(Candidate {
                gain: gain / price(tokens, opens),
                piece: saturated(n),
                line: line.map(saturated),
                tokens: saturated(tokens as usize),
            })
        });
        candidates.collect()
    }

    /// The value of a line, or of the full header if `line` is `None`. Facts in `covered` have no
    /// value: the digest, or a part of the context that stays, contains them already.
    fn gain(&self, piece: &Piece, line: Option<usize>, covered: &[bool]) -> f64 {
        let (facts, bonus) = match (line, &piece.full) {
            (None, None) => return 0.0,
            (None, Some(full)) => (&*full.facts, self.focus.worth(&full.text)),
            (Some(line), _) => {
                let line = &piece.lines[line];
                let frame = if line.is_frame && is_framed(piece) { FRAME } else { 0.0 };
                (&*line.facts, bonus(line) + frame + self.focus.worth(&line.text))
            }
        };
        let new = facts.iter().filter(|fact| !covered[fact.number as usize]);
        let value: f64 = new.map(|fact| self.values.get(*fact)).sum();
        value + bonus
    }

    /// Begins a choice with the texts and lines that every digest contains.
    pub fn begin<'c>(&'c self, counter: &'c dyn Counter) -> Choosing<'c, 'p> {
        Choosing {
            choice: self,
            counter,
            heap: self.candidates.clone().into(),
            passed: Vec::new(),
            misfits: 0,
            covered: self.known.clone(),
            spent: self.whole,
            chosen: self.stays.clone(),
        }
    }
}

fn saturated(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// The lines chosen so far, and the remaining candidates.
pub(super) struct Choosing<'c, 'p> {
    choice: &'c Choice<'p>,
    counter: &'c dyn Counter,
    heap: BinaryHeap<Candidate>,
    /// Candidates that had too many tokens for the rest of the budget.
    passed: Vec<Candidate>,
    /// Number of candidates that were passed one by one since the heap was last searched for
    /// candidates that do not fit.
    misfits: usize,
    covered: Vec<bool>,
    /// Tokens of everything that the digest contains so far, counted line by line.
    pub spent: u64,
    pub chosen: Chosen,
}

impl Choosing<'_, '_> {
    /// Chooses lines until `budget` tokens are spent, or no candidate is left that fits into the
    /// rest. The value of a candidate may have dropped since it was computed, because lines that
    /// were chosen since then contain some of its facts. So the value of the best candidate is
    /// computed again, and the candidate is chosen only if its new value is still the highest.
    pub fn spend(&mut self, budget: Tokens) {
        self.heap.extend(self.passed.drain(..));
        while self.spent < budget.0
            && let Some(best) = self.heap.pop()
        {
            let piece = &self.choice.old[best.piece()];
            let gain = self.choice.gain(piece, best.line(), &self.covered);
            if gain <= 0.0 {
                continue;
            }
            let is_first = !self.chosen.contains_key(&best.piece());
            let opens = if best.line().is_some() && is_first { piece.head_tokens.0 } else { 0 };
            let now = Candidate { gain: gain / price(best.tokens(), opens), ..best };
            if self.heap.peek().is_some_and(|next| next.gain > now.gain + 1e-12) {
                self.heap.push(now);
                continue;
            }
            let cost = match (best.line(), is_first) {
                (Some(_), _) => best.tokens() + opens,
                (None, true) => best.tokens(),
                // The full header replaces the short one.
                (None, false) => best.tokens().saturating_sub(piece.head_tokens.0),
            };
            if self.spent + cost > budget.0 {
                self.passed.push(now);
                self.misfits += 1;
                // One pass over the heap costs less than to take so many candidates from it.
                if self.misfits * 32 > self.heap.len() {
                    self.pass_larger_than(budget.0 - self.spent);
                }
                continue;
            }
            self.spent += cost;
            self.take(best);
        }
    }

    /// Removes from the heap the candidates that cost more than `room` tokens.
    fn pass_larger_than(&mut self, room: u64) {
        self.misfits = 0;
        let all = std::mem::take(&mut self.heap).into_iter();
        let (fitting, larger): (Vec<_>, Vec<_>) =
            all.partition(|candidate| self.least_cost(*candidate) <= room);
        self.heap = fitting.into();
        self.passed.extend(larger);
    }

    /// The least number of tokens that a candidate can cost: a line, if its header is chosen
    /// already; a full header, if it replaces the short one.
    fn least_cost(&self, candidate: Candidate) -> u64 {
        match candidate.line {
            Some(_) => candidate.tokens(),
            None => {
                let short = self.choice.old[candidate.piece()].head_tokens.0;
                candidate.tokens().saturating_sub(short)
            }
        }
    }

    fn take(&mut self, best: Candidate) {
        let piece = &self.choice.old[best.piece()];
        let of_piece = self.chosen.entry(best.piece()).or_default();
        match best.line() {
            Some(line) => {
                of_piece.lines.insert(line);
                cover(&mut self.covered, &piece.lines[line].facts);
                let was_frame = is_framed(piece) && piece.lines[line].is_frame;
                let mut frame = piece.lines.iter().enumerate().filter(|(_, line)| line.is_frame);
                if was_frame && frame.all(|(at, _)| of_piece.lines.contains(&at)) {
                    let rest = self.choice.candidates_of(
                        best.piece(),
                        |line| !line.is_frame,
                        self.counter,
                    );
                    self.heap.extend(rest);
                }
            }
            None => {
                of_piece.full = true;
                piece.full.iter().for_each(|full| cover(&mut self.covered, &full.facts));
            }
        }
    }
}

/// Whether a piece is a long text of the model. The frame of such a text is chosen before its other
/// lines.
fn is_framed(piece: &Piece) -> bool {
    piece.speaker == Speaker::Model && piece.brief.is_none()
}

/// The indices of the short texts of the model that the digest contains whole, in ascending order.
/// If all such texts have more than `most` tokens together, only the newest are included. Each text
/// is included once, and not at all if the part of the context that stays contains the same short
/// text.
fn briefs(old: &[Piece], kept: &[Piece], most: Tokens) -> Vec<usize> {
    let briefs = kept.iter().filter_map(|piece| piece.brief.as_ref());
    let mut there: HashSet<String> = briefs.map(|(text, _)| text.trim().to_owned()).collect();
    let mut left = most;
    let mut found = Vec::new();
    for (n, piece) in old.iter().enumerate().rev() {
        let Some((text, tokens)) = &piece.brief else { continue };
        if text.trim().is_empty() || !there.insert(text.trim().to_owned()) {
            continue;
        }
        if *tokens > left {
            break;
        }
        left = left - *tokens;
        found.push(n);
    }
    found.reverse();
    found
}

/// The indices of the calls with an effect (such as a push) that the digest names by their full
/// headers, from the newest to the oldest. Each command is named once. The first header that does
/// not fit into the rest of `most` tokens ends the list.
fn effects(old: &[Piece], most: Tokens) -> Vec<usize> {
    let mut named: HashSet<&str> = HashSet::new();
    let mut left = most;
    let mut found = Vec::new();
    for (n, piece) in old.iter().enumerate().rev() {
        let Some(full) = piece.full.as_ref().filter(|_| piece.has_effect) else { continue };
        if !named.insert(full.text.trim_start_matches(&*piece.head)) {
            continue;
        }
        if full.tokens > left {
            break;
        }
        left = left - full.tokens;
        found.push(n);
    }
    found
}

/// The lines that every digest contains. Of equal lines in several pieces, only that of the newest
/// piece is included, and none if the part of the context that stays has an equal line of this
/// kind. A line of the user is also left out if another text of the user has it, in the part that
/// stays or in a text that every digest contains whole.
fn stays(old: &[Piece], kept: &[Piece]) -> Chosen {
    let of_kept = kept.iter().flat_map(|piece| &piece.lines).filter(|line| line.stays);
    let mut there: HashSet<&str> = of_kept.map(|line| line.text.trim()).collect();
    let whole = kept.iter().chain(old.iter().filter(|piece| piece.whole.is_some()));
    let by_user = whole.filter(|piece| piece.speaker == Speaker::User);
    let by_user: HashSet<&str> =
        by_user.flat_map(|piece| &piece.lines).map(|line| line.text.trim()).collect();
    let mut chosen = Chosen::new();
    let may_be = old.iter().enumerate().rev();
    let may_be = may_be.filter(|(_, piece)| piece.whole.is_none() && piece.has_lines_that_stay);
    for (n, piece) in may_be {
        let is_user = piece.speaker == Speaker::User;
        for (at, line) in piece.lines.iter().enumerate().filter(|(_, line)| line.stays) {
            let text = line.text.trim();
            if !(is_user && by_user.contains(text)) && there.insert(text) {
                chosen.entry(n).or_default().lines.insert(at);
            }
        }
    }
    chosen
}

/// What is added to the value of a line because it looks like an error or states a decision.
fn bonus(line: &Line) -> f64 {
    let error = if line.is_error { ERROR } else { 0.0 };
    let decision = if line.decides { DECISION } else { 0.0 };
    error + decision
}

/// The price of a line: the tokens by which its value is divided when lines are compared. `opens`
/// is the number of tokens of the header that the line needs, or 0 if the digest already contains
/// the header. A header counts twice, so that a digest has more lines from fewer pieces.
fn price(tokens: u64, opens: u64) -> f64 {
    (tokens + 2 * opens) as f64
}

fn cover(covered: &mut [bool], facts: &[Fact]) {
    facts.iter().for_each(|fact| covered[fact.number as usize] = true);
}

impl PartialEq for Candidate {
    fn eq(&self, other: &Candidate) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Candidate {}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Candidate) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Orders candidates by gain; the heap returns the greatest first. If gains are equal, the newest
/// piece is first, because its result is the current one; within a piece, the header and then the
/// earliest line.
impl Ord for Candidate {
    fn cmp(&self, other: &Candidate) -> Ordering {
        self.gain
            .total_cmp(&other.gain)
            .then_with(|| self.piece.cmp(&other.piece))
            .then_with(|| other.line.cmp(&self.line))
    }
}
