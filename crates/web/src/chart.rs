//! Bar charts over time, drawn on the server as SVG.

use maud::{Markup, html};

use crate::sums::{Slot, Sum};

/// The height of a chart, in units of the drawing, which the page stretches.
const HEIGHT: u64 = 100;
/// The width of a bar together with the gap next to it, in the same units as `HEIGHT`.
const SLOT: usize = 10;

/// A bar: its day or month, its parts from the bottom up, and a description of the parts.
pub(crate) struct Bar {
    pub(crate) when: String,
    pub(crate) parts: Vec<u64>,
    pub(crate) words: String,
}

/// A chart: its title, the sum of all bars and the largest bar in words, and its bars, the oldest
/// first.
pub(crate) struct Chart {
    pub(crate) title: &'static str,
    pub(crate) total: String,
    pub(crate) most: String,
    pub(crate) bars: Vec<Bar>,
}

impl Chart {
    /// Makes a chart with one bar for each slot (a day or a month); `bar` returns the parts of a
    /// slot's bar and a description of them. `total` describes the sum of all slots, `most` the
    /// largest slot.
    pub(crate) fn over(
        slots: &[Slot],
        title: &'static str,
        (total, most): (String, String),
        bar: impl Fn(&Sum) -> (Vec<u64>, String),
    ) -> Chart {
        let bars = slots.iter().map(|Slot { when, sum }| {
            let (parts, words) = bar(sum);
            Bar { when: when.clone(), parts, words }
        });
        Chart { title, total, most, bars: bars.collect() }
    }

    /// The chart as markup; empty if all bars are empty.
    pub(crate) fn draw(&self) -> Markup {
        let heights = self
            .bars
            .iter()
            .map(|bar| bar.parts.iter().fold(0_u64, |sum, part| sum.saturating_add(*part)));
        let most = heights.max().unwrap_or(0);
        let (Some(first), Some(last)) = (self.bars.first(), self.bars.last()) else {
            return html! {};
        };
        if most == 0 {
            return html! {};
        }
        let description = format!(
            "{}, {} to {}: {} in all, {} at most",
            self.title, first.when, last.when, self.total, self.most
        );
        html! {
            figure.chart {
                figcaption { b { (self.title) } span { (self.total) } }
                p.most { (self.most) }
                svg viewBox={ "0 0 " (self.bars.len() * SLOT) " " (HEIGHT) }
                    preserveAspectRatio="none" role="img" aria-label=(description) {
                    @for (n, bar) in self.bars.iter().enumerate() {
                        @for (part, (y, height)) in stack(&bar.parts, most).enumerate() {
                            @if height > 0 {
                                rect class={ "part" (part) } x=(n * SLOT + 1) y=(y)
                                    width=(SLOT - 2) height=(height) {
                                    title { (bar.when) ": " (bar.words) }
                                }
                            }
                        }
                    }
                }
                p.axis { span { (first.when) } span { (last.when) } }
            }
        }
    }
}

/// The position of the top and the height of each part, from the bottom up. A bar whose sum is not
/// 0 is always visible.
fn stack(parts: &[u64], most: u64) -> impl Iterator<Item = (u64, u64)> {
    let all = parts.iter().fold(0_u64, |sum, part| sum.saturating_add(*part));
    let scaled = move |value: u64| {
        let height = u128::from(value) * u128::from(HEIGHT) / u128::from(most.max(1));
        u64::try_from(height).unwrap_or(HEIGHT)
    };
    let mut below = 0_u64;
    parts.iter().map(move |part| {
        let from = below;
        let to = below.saturating_add(*part);
        below = to;
        let is_last = to == all && *part > 0;
        let high = if is_last { scaled(to).max(1) } else { scaled(to) };
        (HEIGHT - high, high - scaled(from).min(high))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_stand_on_each_other_and_the_smallest_bar_is_seen() {
        let stack = |parts: &[u64], most| stack(parts, most).collect::<Vec<_>>();
        assert_eq!(stack(&[1, 3], 4), [(75, 25), (0, 75)]);
        assert_eq!(stack(&[1, 0], 1_000), [(99, 1), (100, 0)]);
        assert_eq!(stack(&[0, 0], 9), [(100, 0), (100, 0)]);
        assert_eq!(stack(&[u64::MAX, u64::MAX], u64::MAX), [(0, 100), (0, 0)]);
    }

    #[test]
    fn a_chart_says_what_it_shows_and_an_empty_one_is_none() {
        let bar = |when: &str, n| Bar {
            when: when.to_owned(),
            parts: vec![n],
            words: format!("{n} <b>"),
        };
        let chart =
            |bars| Chart { title: "Tokens", total: "5".to_owned(), most: "4".to_owned(), bars };
        let html = chart(vec![bar("a", 4), bar("b", 0), bar("c", 1)]).draw().into_string();
        assert!(html.contains("aria-label=\"Tokens, a to c: 5 in all, 4 at most\""), "{html}");
        let first = "<rect class=\"part0\" x=\"1\" y=\"0\" width=\"8\" height=\"100\">\
                     <title>a: 4 &lt;b&gt;</title></rect>";
        let last = "<rect class=\"part0\" x=\"21\" y=\"75\" width=\"8\" height=\"25\">";
        assert!(html.contains(first) && html.contains(last), "{html}");
        assert_eq!(html.matches("<rect ").count(), 2);
        assert_eq!(chart(vec![bar("a", 0)]).draw().into_string(), "");
        assert_eq!(chart(Vec::new()).draw().into_string(), "");
    }
}
