//! How much it is worth to have a fact in the context.

use crate::facts::{FactId, FactKind, FactMap};

use super::pieces::{Pieces, Who};

/// What a model would miss of each fact: how rare it is, times the chance that it is used soon.
pub(super) struct Values(FactMap<f64>);

/// Where a fact was seen.
#[derive(Clone, Copy, Debug)]
struct Seen {
    kind: FactKind,
    /// Texts that hold it: what was said, arguments of a call, a result.
    texts: u32,
    /// The responses in which it was first and last seen.
    first: u32,
    last: u32,
    /// How many facts the last text had, and whether that was the result of a read.
    among: u32,
    in_read: bool,
    /// How often the model wrote it, and when last.
    written: u32,
    last_written: Option<u32>,
    in_argument: bool,
    by_user: bool,
}

/// How likely a fact is used within the next 40 responses, as weights of a logistic function.
/// Fitted on recorded sessions of four repositories; `docs/quality.md` says how.
struct Weights {
    bias: f64,
    density: f64,
    since_first: f64,
    since_last: f64,
    just_seen: f64,
    written: f64,
    written_recently: f64,
    written_20: f64,
    in_argument: f64,
    by_user: f64,
    texts: f64,
    in_read: f64,
    url: f64,
    number: f64,
    line: f64,
    hash: f64,
}

const WEIGHTS: Weights = Weights {
    bias: -2.2,
    density: -0.326,
    since_first: -0.28,
    since_last: -0.258,
    just_seen: 0.24,
    written: 0.72,
    written_recently: 1.722,
    written_20: 0.575,
    in_argument: 0.554,
    by_user: 1.223,
    texts: 0.066,
    in_read: 1.047,
    url: -0.913,
    number: -0.332,
    line: -1.01,
    hash: -0.764,
};

/// The chance counts less than it says: it is a guess.
const GAMMA: f64 = 0.85;

impl Values {
    /// The values of all facts of a session.
    pub fn of(pieces: &Pieces) -> Values {
        let (seen, texts) = seen(pieces);
        let now = pieces.responses;
        let value = |it: &Seen| {
            let rarity = (f64::from(texts) / f64::from(it.texts)).ln_1p();
            rarity * it.chance(now).powf(GAMMA)
        };
        Values(seen.iter().map(|(fact, it)| (*fact, value(it))).collect())
    }

    /// The value of a fact.
    pub fn get(&self, fact: FactId) -> f64 {
        self.0.get(&fact).copied().unwrap_or_default()
    }
}

/// Where each fact was seen, and how many texts there are.
fn seen(pieces: &Pieces) -> (FactMap<Seen>, u32) {
    let mut all: FactMap<Seen> = FactMap::default();
    let mut texts = 0;
    for piece in pieces.all() {
        let (arguments, rest): (Vec<_>, Vec<_>) =
            piece.lines.iter().partition(|line| line.is_argument);
        let is_call = matches!(piece.speaker, Who::Call { .. });
        if is_call {
            let head = piece.full.iter().flat_map(|full| &full.facts);
            let of_arguments = arguments.iter().flat_map(|line| &line.facts);
            texts += 1;
            note(&mut all, Text::argument(piece.response), head.chain(of_arguments));
        }
        if !is_call || !rest.is_empty() {
            texts += 1;
            let text = Text::of(piece.speaker, piece.response);
            note(&mut all, text, rest.iter().flat_map(|line| &line.facts));
        }
    }
    (all, texts)
}

/// A text that facts stand in.
struct Text {
    response: u32,
    by_model: bool,
    by_user: bool,
    is_argument: bool,
    is_read: bool,
}

impl Text {
    fn argument(response: u32) -> Text {
        Text { response, by_model: true, by_user: false, is_argument: true, is_read: false }
    }

    fn of(speaker: Who, response: u32) -> Text {
        Text {
            response,
            by_model: speaker == Who::Model,
            by_user: speaker == Who::User,
            is_argument: false,
            is_read: matches!(speaker, Who::Call { reads: true, .. }),
        }
    }
}

fn note<'f>(
    all: &mut FactMap<Seen>,
    text: Text,
    facts: impl Iterator<Item = &'f (FactId, FactKind)>,
) {
    let mut facts: Vec<(FactId, FactKind)> = facts.copied().collect();
    facts.sort_unstable();
    facts.dedup_by_key(|(fact, _)| *fact);
    let among = facts.len() as u32;
    for (fact, kind) in facts {
        let it = all.entry(fact).or_insert(Seen {
            kind,
            texts: 0,
            first: text.response,
            last: 0,
            among: 0,
            in_read: false,
            written: 0,
            last_written: None,
            in_argument: false,
            by_user: false,
        });
        it.texts += 1;
        (it.last, it.among, it.in_read) = (text.response, among, text.is_read);
        if text.by_model {
            it.written += 1;
            it.last_written = Some(text.response);
        }
        it.in_argument |= text.is_argument;
        it.by_user |= text.by_user;
    }
}

impl Seen {
    /// The chance that the model uses it soon, from 0 to 1.
    fn chance(&self, now: u32) -> f64 {
        let w = &WEIGHTS;
        let since = |then: u32| f64::from(now.saturating_sub(then));
        let age = since(self.last);
        let mut z = w.bias
            + w.density * f64::from(self.among).ln_1p()
            + w.since_first * since(self.first).ln_1p()
            + w.since_last * age.ln_1p()
            + w.written * f64::from(self.written).ln_1p()
            + w.texts * f64::from(self.texts).ln();
        if let Some(written) = self.last_written {
            z += w.written_recently / (1.0 + since(written));
            if since(written) <= 20.0 {
                z += w.written_20;
            }
        }
        for (holds, weight) in [
            (self.by_user, w.by_user),
            (self.in_argument, w.in_argument),
            (self.in_read, w.in_read),
            (age <= 5.0, w.just_seen),
            (self.kind == FactKind::Url, w.url),
            (self.kind == FactKind::Number, w.number),
            (self.kind == FactKind::Line, w.line),
            (self.kind == FactKind::Hash, w.hash),
        ] {
            if holds {
                z += weight;
            }
        }
        1.0 / (1.0 + (-z).exp())
    }
}
