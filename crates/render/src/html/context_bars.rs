//! A bar chart of the context size at each request, without a script.

use epitome_model::{Block, Tokens, Transcript, plural};
use maud::{Markup, html};

use crate::{Past, StorySession};

/// Maximum number of bars: with more requests, each bar shows the largest of a group of requests.
const BARS: usize = 160;
/// The size of the chart in its own units; the page scales it.
const WIDTH: usize = 1_600;
const HEIGHT: u64 = 48;

/// The chart of a session, with lines at compactions; empty if the session records the sizes of
/// fewer than three requests.
pub(super) fn course(session: &StorySession<'_>) -> Markup {
    drawn(session.transcript, session.past)
}

fn drawn(transcript: &Transcript, past: Option<&Past>) -> Markup {
    let (sizes, compactions) = sizes(transcript, past);
    let largest = sizes.iter().max().copied().unwrap_or_default();
    if sizes.len() < 3 || largest == Tokens(0) {
        return html! {};
    }
    let bars = sizes.len().min(BARS);
    let first = |bar: usize| bar * sizes.len() / bars;
    let place = |request: usize| request * WIDTH / sizes.len();
    let caption = format!(
        "Context of {}: {} at first, {} at the end, {largest} at most{}",
        plural(sizes.len() as u64, "request"),
        sizes[0],
        sizes[sizes.len() - 1],
        match compactions.len() as u64 {
            0 => String::new(),
            n => format!(", {}", plural(n, "compaction")),
        },
    );
    html! {
        figure.course {
            svg viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } preserveAspectRatio="none" role="img"
                aria-label=(caption) {
                @for bar in 0..bars {
                    @let (from, to) = (first(bar), first(bar + 1));
                    @let most = sizes[from..to].iter().max().copied().unwrap_or_default();
                    @let high = (most.0 * HEIGHT / largest.0).max(1);
                    rect x=(place(from)) y=(HEIGHT - high) height=(high)
                        width=((place(to) - place(from)).max(2) - 1) {
                        title { (requests(from, to)) ": " (most) " tokens" }
                    }
                }
                @for at in &compactions {
                    line x1=(place(*at)) x2=(place(*at)) y1="0" y2=(HEIGHT) {
                        title { "compaction" }
                    }
                }
            }
            figcaption { (caption) }
        }
    }
}

/// The label of a bar: `request 12`, or `requests 12 to 14`.
fn requests(from: usize, to: usize) -> String {
    if to - from == 1 {
        format!("request {}", from + 1)
    } else {
        format!("requests {} to {to}", from + 1)
    }
}

/// The input of each recorded request ([`request_sizes`](epitome_model::request_sizes)), and the
/// indices of the requests before which the context was summarised, or compacted by epitome.
fn sizes(transcript: &Transcript, past: Option<&Past>) -> (Vec<Tokens>, Vec<usize>) {
    let sizes = epitome_model::request_sizes(transcript);
    let mut compactions = Vec::new();
    let mut seen = 0;
    let mut response = None;
    let mut ours = past.into_iter().flat_map(|it| &it.compactions).map(|it| it.item).peekable();
    for (item, entry) in transcript.entries().filter(|(_, entry)| !entry.repeated) {
        while ours.next_if(|at| *at <= item).is_some() {
            compactions.push(seen.min(sizes.len()));
        }
        if entry.blocks.iter().any(|block| matches!(block, Block::Summary(_))) {
            compactions.push(seen.min(sizes.len()));
        }
        let group = entry.group.as_deref();
        if entry.usage.is_some_and(|usage| usage.input > 0) {
            seen += usize::from(group.is_none() || group != response);
            response = group;
        }
    }
    compactions.extend(ours.map(|_| sizes.len()));
    compactions.dedup();
    (sizes, compactions)
}

#[cfg(test)]
mod tests {
    use epitome_model::{Entry, Item, RecordedUsage, Text};

    use super::*;
    use crate::PastCompaction;

    fn transcript(entries: Vec<(Option<u64>, bool)>) -> Transcript {
        let item = |(input, is_summary): (Option<u64>, bool)| {
            let usage = input.map(|input| RecordedUsage { input, ..RecordedUsage::default() });
            let summary = Block::Summary(Text::Owned("x".into()));
            let blocks = if is_summary { vec![summary] } else { Vec::new() };
            Item::Entry(Box::new(Entry { usage, blocks, ..Entry::default() }))
        };
        let items = entries.into_iter().map(item).collect();
        Transcript { items, ..Transcript::default() }
    }

    #[test]
    fn bars_have_the_height_of_requests_and_compactions_are_lines() {
        let entries = vec![
            (Some(10), false),
            (None, false),
            (Some(40), false),
            (None, true),
            (Some(20), false),
            (Some(30), false),
        ];
        let html = drawn(&transcript(entries), None).into_string();
        let label = "Context of 4 requests: 10 at first, 30 at the end, 40 at most, 1 compaction";
        assert!(html.contains(&format!("<figcaption>{label}</figcaption>")), "{html}");
        let bar = "<rect x=\"400\" y=\"0\" height=\"48\" width=\"399\">\
                   <title>request 2: 40 tokens</title></rect>";
        assert!(html.contains(bar), "{html}");
        let line = "<line x1=\"800\" x2=\"800\" y1=\"0\" y2=\"48\">";
        assert!(html.contains(line), "{html}");
    }

    #[test]
    fn a_compaction_of_epitome_is_a_line_where_it_was_made() {
        let at = |item| PastCompaction { item, ..PastCompaction::default() };
        let past = Past { compactions: vec![at(2), at(4)], ..Past::default() };
        let html = drawn(&transcript(vec![(Some(10), false); 4]), Some(&past)).into_string();
        assert!(html.contains("10 at most, 2 compactions"), "{html}");
        assert!(html.contains("<line x1=\"800\" x2=\"800\""), "{html}");
        assert!(html.contains("<line x1=\"1600\" x2=\"1600\""), "{html}");
    }

    #[test]
    fn many_requests_are_few_bars_and_few_are_none() {
        assert_eq!(drawn(&transcript(vec![(Some(1), false); 2]), None).into_string(), "");
        let html = drawn(&transcript(vec![(Some(7), false); 1_000]), None).into_string();
        assert_eq!(html.matches("<rect ").count(), BARS);
        assert!(html.contains("<title>requests 1 to 6: 7 tokens</title>"), "{html}");
    }
}
