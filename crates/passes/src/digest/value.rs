//! The value of facts: how useful it is that the context contains a fact.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use epitome_model::parallel;

use crate::facts::{FactId, FactKind};

use super::pieces::{Body, Fact, Pieces, Speaker};

/// The value of each fact, by its number: its rarity times a power ([`GAMMA`]) of the probability
/// that the model will use it soon.
pub(super) struct Values(Vec<f64>);

/// The occurrences of each fact in the pieces that were read, and the number of texts in these
/// pieces.
#[derive(Clone, Default)]
pub(super) struct Occurrences {
    /// The occurrences of each fact, by its number; `None` for a fact that is not in the pieces.
    facts: Vec<Option<Seen>>,
    texts: u32,
    /// The pieces, each with the number of its response.
    pieces: Vec<(Arc<Body>, u32)>,
}

/// The occurrences of one fact.
#[derive(Clone, Copy, Debug)]
struct Seen {
    kind: FactKind,
    /// Number of texts that contain the fact; a text is a message, a piece of reasoning, the
    /// arguments of a call, or a result.
    texts: u32,
    /// The numbers of the model's responses that the first and the last text with the fact belong
    /// to or follow.
    first: u32,
    last: u32,
    /// The number of facts in the last text that contains this fact, and whether that text is the
    /// result of a read.
    among: u32,
    in_read: bool,
    /// Number of texts and calls of the model that contain the fact (reasoning is not counted), and
    /// the response of the last of them.
    written: u32,
    last_written: Option<u32>,
    in_argument: bool,
    by_user: bool,
}

/// The names of the features of a fact, in order. From these features, a digest computes the
/// probability that the model uses the fact in the next 40 responses.
pub const FEATURES: [&str; 16] = [
    "bias",
    "density",
    "since_first",
    "since_last",
    "just_seen",
    "written",
    "written_recently",
    "written_20",
    "in_argument",
    "by_user",
    "texts",
    "in_read",
    "url",
    "number",
    "line",
    "hash",
];

/// The features of a fact, in the order of [`FEATURES`].
pub type Features = [f64; FEATURES.len()];

/// The weights of the features in a logistic function.
static WEIGHTS: LazyLock<Features> = LazyLock::new(|| {
    let read: Result<BTreeMap<String, f64>, _> = toml::from_str(include_str!("weights.toml"));
    let weights = read.expect("a test reads the weights");
    FEATURES.map(|name| *weights.get(name).expect("a test reads the weights"))
});

/// The exponent of the probability, which makes differences smaller, because the probability is
/// only an estimate.
const GAMMA: f64 = 0.85;

impl Values {
    /// The values of the facts of a session. `all` are the facts of the index, in the order of
    /// their numbers.
    pub fn from_occurrences(seen: &mut Occurrences, all: &[FactId], pieces: &Pieces) -> Values {
        seen.note(pieces, all.len());
        let Occurrences { facts, texts, .. } = &*seen;
        let values = parallel::map(facts.iter().collect(), |seen| match seen {
            Some(seen) => {
                let rarity = (f64::from(*texts) / f64::from(seen.texts)).ln_1p();
                rarity * seen.chance(pieces.responses).powf(GAMMA)
            }
            None => 0.0,
        });
        Values(values)
    }

    /// The value of a fact.
    pub fn get(&self, fact: Fact) -> f64 {
        self.0[fact.number as usize]
    }
}

impl Occurrences {
    /// Updates the occurrences to those in `pieces`; the index has `facts` facts. If `pieces` begin
    /// with the pieces of the previous update, only the new ones are read.
    fn note(&mut self, pieces: &Pieces, facts: usize) {
        let all = pieces.all();
        let mut pairs = self.pieces.iter().zip(all);
        let begins_as_before = pairs.all(|((body, response), piece)| {
            Arc::ptr_eq(body, &piece.body) && *response == piece.response
        });
        if self.pieces.len() > all.len() || !begins_as_before {
            *self = Occurrences::default();
        }
        self.facts.resize(facts, None);
        for piece in &all[self.pieces.len()..] {
            self.see(&piece.body, piece.response);
            self.pieces.push((Arc::clone(&piece.body), piece.response));
        }
    }

    fn see(&mut self, piece: &Body, response: u32) {
        let (arguments, rest): (Vec<_>, Vec<_>) =
            piece.lines.iter().partition(|line| line.is_argument);
        let is_call = matches!(piece.speaker, Speaker::Call { .. });
        if is_call {
            let head = piece.full.iter().flat_map(|full| &full.facts);
            let of_arguments = arguments.iter().flat_map(|line| &line.facts);
            self.texts += 1;
            self.see_text(Text::argument(response), head.chain(of_arguments));
        }
        if !is_call || !rest.is_empty() {
            self.texts += 1;
            let text = Text::from_speaker(piece.speaker, response);
            self.see_text(text, rest.iter().flat_map(|line| &line.facts));
        }
    }

    fn see_text<'f>(&mut self, text: Text, facts: impl Iterator<Item = &'f Fact>) {
        let mut facts: Vec<(u32, FactKind)> = facts.map(|it| (it.number, it.kind)).collect();
        facts.sort_unstable();
        facts.dedup_by_key(|(number, _)| *number);
        let among = facts.len() as u32;
        for (number, kind) in facts {
            let it = self.facts[number as usize].get_or_insert(Seen {
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
            it.last = text.response;
            it.among = among;
            it.in_read = text.is_read;
            if text.by_model {
                it.written += 1;
                it.last_written = Some(text.response);
            }
            it.in_argument |= text.is_argument;
            it.by_user |= text.by_user;
        }
    }
}

/// A text in which facts occur.
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

    fn from_speaker(speaker: Speaker, response: u32) -> Text {
        Text {
            response,
            by_model: speaker == Speaker::Model,
            by_user: speaker == Speaker::User,
            is_argument: false,
            is_read: matches!(speaker, Speaker::Call { reads: true, .. }),
        }
    }
}

impl Seen {
    /// The probability that the model uses the fact soon, from 0 to 1. `now` is the number of
    /// responses so far.
    fn chance(&self, now: u32) -> f64 {
        let z: f64 = self.features(now).iter().zip(&*WEIGHTS).map(|(it, weight)| it * weight).sum();
        1.0 / (1.0 + (-z).exp())
    }

    /// The features of the fact. `now` is the number of responses so far.
    fn features(&self, now: u32) -> Features {
        let since = |then: u32| f64::from(now.saturating_sub(then));
        let flag = |holds: bool| f64::from(u8::from(holds));
        let age = since(self.last);
        [
            1.0,
            f64::from(self.among).ln_1p(),
            since(self.first).ln_1p(),
            age.ln_1p(),
            flag(age <= 5.0),
            f64::from(self.written).ln_1p(),
            self.last_written.map_or(0.0, |written| 1.0 / (1.0 + since(written))),
            flag(self.last_written.is_some_and(|written| since(written) <= 20.0)),
            flag(self.in_argument),
            flag(self.by_user),
            f64::from(self.texts).ln(),
            flag(self.in_read),
            flag(self.kind == FactKind::Url),
            flag(self.kind == FactKind::Number),
            flag(self.kind == FactKind::Line),
            flag(self.kind == FactKind::Hash),
        ]
    }
}

/// The features of every fact of some pieces, sorted by the id of the fact.
pub(super) fn features(
    seen: &mut Occurrences,
    all: &[FactId],
    pieces: &Pieces,
) -> Vec<(FactId, Features)> {
    seen.note(pieces, all.len());
    let facts = all.iter().zip(&seen.facts);
    let seen = facts.filter_map(|(fact, seen)| Some((*fact, seen.as_ref()?)));
    let mut all: Vec<(FactId, Features)> =
        seen.map(|(fact, it)| (fact, it.features(pieces.responses))).collect();
    all.sort_unstable_by_key(|(fact, _)| *fact);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_feature_has_a_weight_and_nothing_else_has_one() {
        let weights: BTreeMap<String, f64> =
            toml::from_str(include_str!("weights.toml")).expect("weights");
        let mut names = FEATURES.map(str::to_owned);
        names.sort();
        assert_eq!(weights.into_keys().collect::<Vec<_>>(), names);
    }

    #[test]
    fn what_the_model_wrote_just_now_is_likelier_than_what_it_saw_long_ago() {
        let old = Seen {
            kind: FactKind::Path,
            texts: 1,
            first: 1,
            last: 1,
            among: 9,
            in_read: false,
            written: 0,
            last_written: None,
            in_argument: false,
            by_user: false,
        };
        let new = Seen { first: 99, last: 99, written: 1, last_written: Some(99), ..old };
        assert!(new.chance(100) > 4.0 * old.chance(100));
        let url = Seen { kind: FactKind::Url, ..new };
        assert!(url.chance(100) < new.chance(100));
    }

    #[test]
    fn the_last_response_in_which_the_model_wrote_a_fact_is_known() {
        let fact = Fact { number: 0, kind: FactKind::Path };
        let mut seen = Occurrences { facts: vec![None], ..Occurrences::default() };
        let texts = [
            Text::from_speaker(Speaker::User, 1),
            Text::from_speaker(Speaker::Model, 2),
            Text::argument(3),
            Text::from_speaker(Speaker::Call { number: 1, reads: true }, 4),
        ];
        for text in texts {
            seen.see_text(text, [fact].iter());
        }
        let fact = seen.facts[0].expect("it was seen");
        assert_eq!((fact.texts, fact.first, fact.last), (4, 1, 4));
        assert_eq!((fact.written, fact.last_written), (2, Some(3)));
    }
}
