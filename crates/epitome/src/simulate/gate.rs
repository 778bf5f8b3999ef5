//! Conditions on the result of a simulation, for agent developers: `recall=0.9,cost=0.6`.

use std::fmt;
use std::str::FromStr;

use super::gate_result::{Bound, GateResult};
use super::report::{RecipeReport, SimulateReport};

use Bound::{AtLeast, AtMost};
use Kind::{Cost, Forced, Live};

/// Conditions that a recipe must meet.
#[derive(Clone, Debug)]
pub struct Gate(pub Vec<Condition>);

/// A condition: a figure of the report, and the minimum or maximum that it must have.
#[derive(Clone, Debug)]
pub struct Condition {
    figure: &'static Figure,
    bound: Bound,
    value: f64,
}

/// Why a text is no condition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct GateError(String);

/// A figure of the report that a condition can name.
#[derive(Debug)]
struct Figure {
    name: &'static str,
    of: fn(&RecipeReport) -> Option<f64>,
    kind: Kind,
    /// The bound that `=` means for this figure: `AtLeast` if high values are good, otherwise
    /// `AtMost`.
    bound: Bound,
    /// The usual reason why the figure was not measured.
    none: &'static str,
}

/// The kind of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A share that is measured at forced compactions.
    Forced,
    /// A share that is measured even if no compaction is forced.
    Live,
    /// A cost relative to the cost without compaction; it may be above 1.
    Cost,
}

const fn figure(
    name: &'static str,
    kind: Kind,
    bound: Bound,
    of: fn(&RecipeReport) -> Option<f64>,
    none: &'static str,
) -> Figure {
    Figure { name, of, kind, bound, none }
}

const NO_LATER_USE: &str = "no later call uses a fact from before";
const NO_PRICE: &str = "no call has a price";
const NO_EDIT: &str = "no edit quotes a line from before";
const NO_FAR_USE: &str = "no response uses a fact from more than ten calls before";
const NO_PIN: &str = "no session has a rule file, a skill or a marked text";

/// All figures that conditions can name, with the names that they have in the JSON of the report.
const FIGURES: [Figure; 14] = [
    figure("kept", Forced, AtMost, |it| it.kept, "nothing was compacted"),
    figure("recall", Forced, AtLeast, |it| it.recall, NO_LATER_USE),
    figure("in_line", Forced, AtLeast, |it| it.in_line, NO_LATER_USE),
    figure("recoverable", Forced, AtLeast, |it| it.recoverable, NO_LATER_USE),
    figure("pins", Forced, AtLeast, |it| it.pins, NO_PIN),
    figure("rereads", Forced, AtMost, |it| it.rereads, "no later edit quotes a line from before"),
    figure("cost", Cost, AtMost, |it| it.cost, NO_PRICE),
    figure("cost_bp", Cost, AtMost, |it| it.cost_bp, NO_PRICE),
    figure("cost_rereads", Cost, AtMost, |it| it.cost_rereads, NO_PRICE),
    figure(
        "call_recall",
        Live,
        AtLeast,
        |it| it.call_recall,
        "no response uses a fact from before",
    ),
    figure("far_recall", Live, AtLeast, |it| it.far_recall, NO_FAR_USE),
    figure("over", Live, AtMost, |it| Some(it.over), "there is no call"),
    figure("live_rereads", Live, AtMost, |it| it.live_rereads, NO_EDIT),
    figure("rules", Live, AtLeast, |it| it.rules, "there is no call"),
];

impl Gate {
    /// Checks each condition against a recipe's figure. A condition is not met if its figure was
    /// not measured. `cuts`, the number of compactions that were forced with each recipe, is used
    /// to say why it was not.
    pub fn check(&self, report: &RecipeReport, cuts: u64) -> Vec<GateResult> {
        let results = self.0.iter().map(|condition| {
            let Condition { figure, bound, value } = *condition;
            let measured = (figure.of)(report);
            let passed = measured.is_some_and(|measured| match bound {
                AtLeast => measured >= value,
                AtMost => measured <= value,
            });
            let reason = if measured.is_none() { Some(figure.why_none(cuts)) } else { None };
            GateResult { figure: figure.name, bound, value, measured, passed, reason }
        });
        results.collect()
    }
}

impl SimulateReport {
    /// Checks a gate: sets [`gates`](SimulateReport::gates) for the first recipe or policy command.
    pub fn check(&mut self, gate: &Gate) {
        if let Some(first) = self.recipes.get(1) {
            self.gates = gate.check(first, self.cuts);
        }
    }
}

impl Figure {
    /// The reason why the figure was not measured.
    fn why_none(&self, cuts: u64) -> &'static str {
        match self.kind {
            Forced if cuts == 0 => "no session is long enough for a forced compaction",
            Forced | Live | Cost => self.none,
        }
    }
}

impl FromStr for Gate {
    type Err = GateError;

    fn from_str(text: &str) -> Result<Gate, GateError> {
        text.split(',')
            .map(|condition| condition.trim().parse())
            .collect::<Result<_, _>>()
            .map(Gate)
    }
}

impl FromStr for Condition {
    type Err = GateError;

    fn from_str(text: &str) -> Result<Condition, GateError> {
        let wrong = || GateError(format!("`{text}` is no condition; write it like recall>=0.9"));
        let (name, value) = text.split_once('=').ok_or_else(wrong)?;
        let (name, sign) = match name.as_bytes().last() {
            Some(b'>') => (&name[..name.len() - 1], Some(AtLeast)),
            Some(b'<') => (&name[..name.len() - 1], Some(AtMost)),
            Some(_) | None => (name, None),
        };
        let value: f64 = value.trim().parse().map_err(|_| wrong())?;
        let name = name.trim().replace('-', "_");
        let figure = FIGURES.iter().find(|figure| figure.name == name).ok_or_else(|| {
            let names: Vec<&str> = FIGURES.iter().map(|figure| figure.name).collect();
            GateError(format!("there is no figure `{name}`: {}", names.join(", ")))
        })?;
        if !value.is_finite() {
            return Err(wrong());
        }
        let bound = sign.unwrap_or(figure.bound);
        match figure.kind {
            Forced | Live if !(0.0..=1.0).contains(&value) => {
                let what = format!("`{text}`: {name} is a share, from 0 to 1");
                Err(GateError(what))
            }
            Forced | Live | Cost => Ok(Condition { figure, bound, value }),
        }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}{}", self.figure.name, self.bound.sign(), self.value)
    }
}
