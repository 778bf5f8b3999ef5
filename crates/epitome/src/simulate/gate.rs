//! Conditions on the result of a simulation, for agent developers: `recall>=0.9,cost<=0.6`.

use std::fmt;
use std::str::FromStr;

use super::report::RecipeReport;

/// Conditions that a recipe must meet.
#[derive(Clone, Debug)]
pub struct Gate(pub Vec<Condition>);

/// A figure and its bound.
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bound {
    AtLeast,
    AtMost,
}

/// A figure of the report that a condition can name.
#[derive(Debug)]
struct Figure {
    name: &'static str,
    of: fn(&RecipeReport) -> Option<f64>,
    kind: Kind,
    /// The reason why the figure was not measured, although sessions were long enough.
    none: &'static str,
}

/// The kind of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A share that is measured at forced compactions.
    Forced,
    /// A share that is measured at every call of the replayed sessions.
    Live,
    /// A cost relative to the cost without compaction; it may be above 1.
    Cost,
}

const fn figure(
    name: &'static str,
    kind: Kind,
    of: fn(&RecipeReport) -> Option<f64>,
    none: &'static str,
) -> Figure {
    Figure { name, of, kind, none }
}

const NO_LATER_USE: &str = "no later call uses a fact from before";
const NO_PRICE: &str = "no call has a price";

/// All figures that conditions can name, with the names that they have in the JSON of the report.
const FIGURES: [Figure; 13] = [
    figure("kept", Kind::Forced, |it| it.kept, "nothing was compacted"),
    figure("recall", Kind::Forced, |it| it.recall, NO_LATER_USE),
    figure("in_line", Kind::Forced, |it| it.in_line, NO_LATER_USE),
    figure("recoverable", Kind::Forced, |it| it.recoverable, NO_LATER_USE),
    figure(
        "pins",
        Kind::Forced,
        |it| it.pins,
        "no session has a rule file, a skill or a marked text",
    ),
    figure("rereads", Kind::Forced, |it| it.rereads, "no later edit quotes a line from before"),
    figure("cost", Kind::Cost, |it| it.cost, NO_PRICE),
    figure("cost_bp", Kind::Cost, |it| it.cost_bp, NO_PRICE),
    figure("cost_rereads", Kind::Cost, |it| it.cost_rereads, NO_PRICE),
    figure("call_recall", Kind::Live, |it| it.call_recall, "no response uses a fact from before"),
    figure(
        "far_recall",
        Kind::Live,
        |it| it.far_recall,
        "no response uses a fact from more than ten calls before",
    ),
    figure("over", Kind::Live, |it| Some(it.over), "there is no call"),
    figure("live_rereads", Kind::Live, |it| it.live_rereads, "no edit quotes a line from before"),
];

impl Gate {
    /// The conditions that a recipe does not meet, each with the actual figure: `recall>=0.9 (is
    /// 0.8812)`. A figure that was not measured does not meet its condition, and the text says why
    /// it was not. `cuts` is the number of compactions that were forced with each recipe.
    pub fn unmet_conditions(&self, report: &RecipeReport, cuts: u64) -> Vec<String> {
        let missed = self.0.iter().filter_map(|condition| {
            let is = (condition.figure.of)(report);
            let is_met = is.is_some_and(|is| match condition.bound {
                Bound::AtLeast => is >= condition.value,
                Bound::AtMost => is <= condition.value,
            });
            let none = || format!("was not measured: {}", condition.figure.why_none(cuts));
            let is = is.map_or_else(none, |is| format!("is {is}"));
            (!is_met).then(|| format!("{condition} ({is})"))
        });
        missed.collect()
    }
}

impl Figure {
    /// The reason why the figure was not measured.
    fn why_none(&self, cuts: u64) -> &'static str {
        match self.kind {
            Kind::Forced if cuts == 0 => "no session is long enough for a forced compaction",
            Kind::Forced | Kind::Live | Kind::Cost => self.none,
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
        let (name, value, bound) = match (text.split_once(">="), text.split_once("<=")) {
            (Some((name, value)), None) => (name, value, Bound::AtLeast),
            (None, Some((name, value))) => (name, value, Bound::AtMost),
            (Some(_), Some(_)) | (None, None) => return Err(wrong()),
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
        match figure.kind {
            Kind::Forced | Kind::Live if !(0.0..=1.0).contains(&value) => {
                let what = format!("`{text}`: {name} is a share, from 0 to 1");
                Err(GateError(what))
            }
            Kind::Forced | Kind::Live | Kind::Cost => Ok(Condition { figure, bound, value }),
        }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bound = match self.bound {
            Bound::AtLeast => ">=",
            Bound::AtMost => "<=",
        };
        write!(f, "{}{bound}{}", self.figure.name, self.value)
    }
}
