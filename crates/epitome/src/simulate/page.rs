//! A simulation as an HTML page: the table, and plots over the requests of the sessions.

use epitome_model::MicroDollars;
use epitome_render::{Figures, Plot, Series, SeriesStyle};

use super::replay::LiveCall;
use super::report::{RecipeReport, SimulateReport};
use super::{NO_COMPACTION, SimulatedSession};

/// The maximum number of sessions whose context is plotted. These are the sessions with the most
/// requests.
const PLOTTED: usize = 4;
/// The approximate maximum number of points of a line in a plot.
const POINTS: usize = 600;

impl SimulateReport {
    /// A page without scripts and without external files. `simulated` are the sessions of the
    /// report.
    pub fn page(&self, simulated: &[SimulatedSession]) -> String {
        let mut longest: Vec<&SimulatedSession> = simulated.iter().collect();
        longest.sort_by_key(|it| std::cmp::Reverse(it.report.calls));
        let mut plots = vec![self.kept(simulated), self.cost(simulated)];
        plots.extend(longest.into_iter().take(PLOTTED).map(|session| self.context(session)));
        let sessions = self.sessions.len();
        let calls = self.calls;
        let cuts = self.cuts;
        let rules: String =
            self.rule_findings().iter().map(|finding| format!(" {finding}")).collect();
        Figures {
            title: "What recipes keep and cost".to_owned(),
            about: format!(
                "{} {sessions} sessions, {calls} calls, {} tokens, {cuts} forced compactions. \
                 Prices of {}.{rules}",
                self.finding(),
                self.tokens,
                self.prices
            ),
            caption: "What each recipe keeps, and what it costs".to_owned(),
            heads: RecipeReport::HEADS.map(str::to_owned).to_vec(),
            rows: self.rows(),
            legend: RecipeReport::LEGEND
                .map(|(head, is)| (head.to_owned(), is.to_owned()))
                .to_vec(),
            plots,
        }
        .page()
    }

    /// The series of the recipe with this index. It has only a name; the caller adds the points.
    fn series(&self, n: usize) -> Series {
        let name = self.recipes[n].recipe.clone();
        let name = if name == NO_COMPACTION { "no compaction".to_owned() } else { name };
        Series { name, ..Series::default() }
    }

    /// Plots recall against the tokens that stay, with a dot for each forced compaction.
    fn kept(&self, simulated: &[SimulatedSession]) -> Plot {
        let series = (0..self.recipes.len()).map(|n| {
            let forced = simulated.iter().flat_map(|session| &session.forced[n]);
            let points =
                forced.map(|it| (100.0 * it.kept_share(), 100.0 * it.figures.recall)).collect();
            let mean = self.recipes[n].kept.zip(self.recipes[n].recall);
            let mean = mean.map(|(kept, recall)| (100.0 * kept, 100.0 * recall));
            let marks = mean.map(|mean| (mean, "mean over sessions".to_owned()));
            Series {
                drawn: SeriesStyle::Dots,
                points,
                marks: Vec::from_iter(marks),
                ..self.series(n)
            }
        });
        Plot {
            title: "Recall against tokens kept".to_owned(),
            about:
                "Each dot is a forced compaction; the large one is the mean. Up and to the left \
                    is better."
                    .to_owned(),
            across: "per cent of the tokens that stay".to_owned(),
            up: "per cent of the facts used later that stay".to_owned(),
            series: series.collect(),
        }
    }

    /// Plots the cumulative cost: for each request, the cost of all requests up to it.
    fn cost(&self, simulated: &[SimulatedSession]) -> Plot {
        let series = (0..self.recipes.len()).map(|n| {
            let calls = simulated.iter().flat_map(|session| &session.live[n]);
            let sum = calls.scan(MicroDollars(0), |sum, call| {
                *sum = MicroDollars(sum.0 + call.cost.0);
                Some(sum.0 as f64 / 1e6)
            });
            let points = sum.enumerate().map(|(call, cost)| (call as f64, cost)).collect();
            Series { points: thinned(points), ..self.series(n) }
        });
        Plot {
            title: "Cost so far".to_owned(),
            about: "The sessions one after another, at list prices, where any beginning of an \
                    earlier request is cached."
                .to_owned(),
            across: "calls".to_owned(),
            up: "dollars".to_owned(),
            series: series.collect(),
        }
    }

    /// Plots the tokens of each request of one session.
    fn context(&self, session: &SimulatedSession) -> Plot {
        let series = (0..self.recipes.len()).map(|n| {
            let place = |(call, it): (usize, &LiveCall)| (call as f64, it.figures.context.0 as f64);
            let calls = || session.live[n].iter().enumerate();
            let compacted = calls().filter(|(_, it)| it.compactions > 0);
            let marks = compacted.map(|at| (place(at), "compaction".to_owned())).collect();
            Series { points: thinned(calls().map(place).collect()), marks, ..self.series(n) }
        });
        let about = format!(
            "{}, priced as {}. Circles are compactions.",
            session.report.agent, session.report.priced_as
        );
        let name = session.report.session.rsplit(['/', '\\']).next().unwrap_or_default();
        Plot {
            title: format!("Context over the calls of {name}"),
            about,
            across: "calls".to_owned(),
            up: "tokens of the request".to_owned(),
            series: series.collect(),
        }
    }
}

/// Keeps about [`POINTS`] of the points, because more could not be distinguished in a plot. The
/// last point is always kept.
fn thinned(points: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    let every = points.len().div_ceil(POINTS).max(1);
    let last = points.len().saturating_sub(1);
    let kept = points.into_iter().enumerate().filter(|(n, _)| n % every == 0 || *n == last);
    kept.map(|(_, point)| point).collect()
}
