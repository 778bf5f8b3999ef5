//! Conditions on a simulation, for people who build agents: `recall>=0.9,cost<=0.6`.

use std::fmt;
use std::str::FromStr;

use super::report::RecipeReport;

/// Conditions that a recipe has to meet.
#[derive(Clone, Debug)]
pub struct Gate(pub Vec<Condition>);

/// A figure and its bound.
#[derive(Clone, Debug)]
pub struct Condition {
    figure: &'static Figure,
    bound: Bound,
    value: f64,
}

/// What is no condition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct GateError(String);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bound {
    AtLeast,
    AtMost,
}

/// A figure that a condition can name.
#[derive(Debug)]
struct Figure {
    name: &'static str,
    of: fn(&RecipeReport) -> Option<f64>,
}

/// The figures that conditions can name, as in the JSON of the report.
const FIGURES: [Figure; 13] = [
    Figure { name: "kept", of: |it| it.kept },
    Figure { name: "recall", of: |it| it.recall },
    Figure { name: "in_line", of: |it| it.in_line },
    Figure { name: "recoverable", of: |it| it.recoverable },
    Figure { name: "pins", of: |it| it.pins },
    Figure { name: "rereads", of: |it| it.rereads },
    Figure { name: "cost", of: |it| it.cost },
    Figure { name: "cost_bp", of: |it| it.cost_bp },
    Figure { name: "cost_rereads", of: |it| it.cost_rereads },
    Figure { name: "call_recall", of: |it| it.call_recall },
    Figure { name: "far_recall", of: |it| it.far_recall },
    Figure { name: "over", of: |it| Some(it.over) },
    Figure { name: "live_rereads", of: |it| it.live_rereads },
];

impl Gate {
    /// The conditions that a recipe misses, each with the figure it has: `recall>=0.9 (is 0.8812)`.
    /// A figure that was not measured meets no condition.
    pub fn missed(&self, report: &RecipeReport) -> Vec<String> {
        let missed = self.0.iter().filter_map(|condition| {
            let is = (condition.figure.of)(report);
            let is_met = is.is_some_and(|is| match condition.bound {
                Bound::AtLeast => is >= condition.value,
                Bound::AtMost => is <= condition.value,
            });
            let is = is.map_or("was not measured".to_owned(), |is| format!("is {is}"));
            (!is_met).then(|| format!("{condition} ({is})"))
        });
        missed.collect()
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
        let is_number = value.is_finite().then_some(value);
        is_number.map(|value| Condition { figure, bound, value }).ok_or_else(wrong)
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
