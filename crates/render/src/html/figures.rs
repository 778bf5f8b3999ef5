//! A page with a table and plots, without a script.

use maud::{Markup, html};

use super::frame::frame_without_script;
use crate::visible;

/// The style sheet of a page with figures.
const STYLE: &str = include_str!("figures.css");

/// CSS classes for the colours of series; they repeat if there are more series.
const COLOURS: [&str; 8] = ["s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7"];

/// A page with a table and plots.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// The title, one line.
    pub title: String,
    /// A description of the table, in a sentence or two.
    pub about: String,
    /// The caption of the table.
    pub caption: String,
    /// The heads of the table's columns.
    pub heads: Vec<String>,
    /// The rows of the table.
    pub rows: Vec<Vec<String>>,
    /// The explanation of each column: its head, and the text.
    pub legend: Vec<(String, String)>,
    /// The plots, in order.
    pub plots: Vec<Plot>,
}

/// A plot with two axes that start at 0.
#[derive(Clone, Debug, Default)]
pub struct Plot {
    /// The title, one line.
    pub title: String,
    /// A description of the plot.
    pub about: String,
    /// The label of the horizontal axis.
    pub across: String,
    /// The label of the vertical axis.
    pub up: String,
    /// The plotted series.
    pub series: Vec<Series>,
}

/// A series of points.
#[derive(Clone, Debug, Default)]
pub struct Series {
    /// The name of the series in the legend.
    pub name: String,
    /// How the points are drawn.
    pub drawn: SeriesStyle,
    /// The points.
    pub points: Vec<(f64, f64)>,
    /// Points with a highlighted mark, and the label of each.
    pub marks: Vec<((f64, f64), String)>,
}

/// How points are drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SeriesStyle {
    /// A line through all points.
    #[default]
    Line,
    /// Separate dots.
    Dots,
}

impl Figures {
    /// The self-contained page; it loads nothing else.
    pub fn page(&self) -> String {
        let body = html! {
            main {
                h1 { (visible(&self.title)) }
                p { (visible(&self.about)) }
                // The region scrolls on its own, also with keys, and has a name for screen readers.
                div.wide role="region" aria-labelledby="of-table" tabindex="0" { (self.table()) }
                @if !self.legend.is_empty() {
                    dl {
                        @for (head, meaning) in &self.legend {
                            div { dt { (visible(head)) } dd { (visible(meaning)) } }
                        }
                    }
                }
                @for plot in &self.plots { (plot.section()) }
            }
        };
        frame_without_script(&visible(&self.title), STYLE, &body)
    }

    fn table(&self) -> Markup {
        html! {
            table {
                caption #of-table { (visible(&self.caption)) }
                thead { tr { @for head in &self.heads { th scope="col" { (visible(head)) } } } }
                tbody {
                    @for row in &self.rows {
                        tr { @for cell in row { td { bdi { (visible(cell)) } } } }
                    }
                }
            }
        }
    }
}

/// The size of a plot with its axes, in units of the picture.
const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 318.0;
const LEFT: f64 = 56.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 32.0;
const BOTTOM: f64 = 40.0;

/// Approximate number of steps of an axis.
const STEPS: f64 = 5.0;

impl Plot {
    fn section(&self) -> Markup {
        html! {
            section {
                h2 { (visible(&self.title)) }
                p { (visible(&self.about)) }
                ul.legend {
                    @for (n, series) in self.series.iter().enumerate() {
                        li class=(colour(n)) { span.swatch {} bdi { (visible(&series.name)) } }
                    }
                }
                (self.picture())
            }
        }
    }

    fn picture(&self) -> Markup {
        let points = self.series.iter().flat_map(|series| {
            series.points.iter().chain(series.marks.iter().map(|(point, _)| point))
        });
        let across = Axis::to(points.clone().map(|(x, _)| *x).fold(0.0, f64::max));
        let up = Axis::to(points.map(|(_, y)| *y).fold(0.0, f64::max));
        let x = |value: f64| LEFT + across.share(value) * (WIDTH - LEFT - RIGHT);
        let y = |value: f64| HEIGHT - BOTTOM - up.share(value) * (HEIGHT - TOP - BOTTOM);
        let bottom = HEIGHT - BOTTOM;
        let right = WIDTH - RIGHT;
        let size = format!("0 0 {WIDTH} {HEIGHT}");
        let title = visible(&self.title);
        let row = |tick: f64| (unit(y(tick)), unit(y(tick) + 4.0));
        html! {
            svg viewBox=(size) role="img" aria-label=(title) {
                @for (tick, (at, below)) in up.ticks().map(|tick| (tick, row(tick))) {
                    line.grid x1=(LEFT) x2=(right) y1=(at) y2=(at) {}
                    text x=(LEFT - 6.0) y=(below) text-anchor="end" { (up.label(tick)) }
                }
                @for tick in across.ticks() {
                    text x=(unit(x(tick))) y=(bottom + 16.0) text-anchor="middle" {
                        (across.label(tick))
                    }
                }
                text x=(right) y=(HEIGHT - 8.0) text-anchor="end" { (visible(&self.across)) }
                text x=(LEFT - 8.0) y=(TOP - 14.0) { (visible(&self.up)) }
                @for (n, series) in self.series.iter().enumerate() {
                    g class=(colour(n)) { (series.drawing(&x, &y)) }
                }
            }
        }
    }
}

impl Series {
    fn drawing(&self, x: &dyn Fn(f64) -> f64, y: &dyn Fn(f64) -> f64) -> Markup {
        let points = self.points.iter().map(|&(a, b)| format!("{},{}", unit(x(a)), unit(y(b))));
        let line = points.collect::<Vec<_>>().join(" ");
        html! {
            @match self.drawn {
                SeriesStyle::Line => { polyline.line points=(line) {} }
                SeriesStyle::Dots => {
                    @for &(a, b) in &self.points {
                        circle.dot cx=(unit(x(a))) cy=(unit(y(b))) r="3" {}
                    }
                }
            }
            @for ((a, b), what) in &self.marks {
                circle.mark cx=(unit(x(*a))) cy=(unit(y(*b))) r="4.5" { title { (visible(what)) } }
            }
        }
    }
}

/// An axis from 0 to a round number.
struct Axis {
    step: f64,
    steps: u32,
}

impl Axis {
    fn to(most: f64) -> Axis {
        let most = if most.is_finite() && most > 0.0 { most } else { 1.0 };
        let rough = most / STEPS;
        let power = 10_f64.powf(rough.log10().floor());
        let round = [1.0, 2.0, 2.5, 5.0, 10.0].into_iter().map(|round| round * power);
        let step = round.into_iter().find(|step| *step >= rough).unwrap_or(10.0 * power);
        Axis { step, steps: (most / step).ceil() as u32 }
    }

    fn share(&self, value: f64) -> f64 {
        value / (self.step * f64::from(self.steps))
    }

    fn ticks(&self) -> impl Iterator<Item = f64> {
        (0..=self.steps).map(|n| f64::from(n) * self.step)
    }

    /// The label of a tick: `40k`, `0.25`.
    fn label(&self, tick: f64) -> String {
        match self.step {
            1_000_000.0.. => format!("{}M", exact(tick / 1e6, self.step / 1e6)),
            1_000.0.. => format!("{}k", exact(tick / 1e3, self.step / 1e3)),
            _ => exact(tick, self.step),
        }
    }
}

/// A number with as many decimals as multiples of a step need.
fn exact(number: f64, step: f64) -> String {
    let digits = (-step.log10().floor()).max(0.0) as usize;
    let more = usize::from((step * 10_f64.powi(digits as i32)).fract() > 0.01);
    format!("{number:.*}", digits + more)
}

fn colour(n: usize) -> &'static str {
    COLOURS[n % COLOURS.len()]
}

/// A length in the picture, rounded to a tenth of a unit.
fn unit(length: f64) -> f64 {
    (length * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_ends_at_a_round_number_and_says_its_steps() {
        let cases: [(f64, &[&str]); 6] = [
            (0.0, &["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]),
            (1.0, &["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]),
            (1.2, &["0.00", "0.25", "0.50", "0.75", "1.00", "1.25"]),
            (7.0, &["0", "2", "4", "6", "8"]),
            (198.0, &["0", "50", "100", "150", "200"]),
            (104_000.0, &["0k", "25k", "50k", "75k", "100k", "125k"]),
        ];
        for (most, expect) in cases {
            let axis = Axis::to(most);
            let labels: Vec<String> = axis.ticks().map(|tick| axis.label(tick)).collect();
            assert_eq!(labels, expect, "{most}");
        }
    }

    #[test]
    fn a_page_escapes_all_that_it_is_given_and_has_no_script() {
        let bad = "<script>alert(1)</script>\u{202e}\"'&".to_owned();
        let series = Series {
            name: bad.clone(),
            drawn: SeriesStyle::Dots,
            points: vec![(1.0, f64::NAN)],
            marks: vec![((1.0, 2.0), bad.clone())],
        };
        let plot = Plot {
            title: bad.clone(),
            about: bad.clone(),
            across: bad.clone(),
            up: bad.clone(),
            series: vec![series],
        };
        let page = Figures {
            title: bad.clone(),
            caption: bad.clone(),
            about: bad.clone(),
            heads: vec![bad.clone()],
            legend: vec![(bad.clone(), bad.clone())],
            rows: vec![vec![bad]],
            plots: vec![plot],
        };
        let page = page.page();
        assert!(!page.contains("<script"), "{page}");
        assert!(!page.contains('\u{202e}'), "{page}");
        assert!(page.contains("default-src 'none'; style-src 'sha256-"), "{page}");
    }
}
