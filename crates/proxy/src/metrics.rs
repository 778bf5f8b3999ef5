//! Counters of the requests of a run, of their tokens and their costs, as text for Prometheus.

use std::fmt::Write as _;

use epitome::wire::ledger::{Group, LedgerLine};
use epitome::wire::stats::RequestSum;
use epitome_model::MicroDollars;

/// The path at which the metrics are served. If the proxy has a token, it is in front of this path.
pub(crate) const PATH: &str = "/metrics";
/// The media type of the metrics.
pub(crate) const MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The labels of a Prometheus sample. Requests with the same labels are added up.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Labels {
    agent: String,
    api: String,
    model: String,
    group: Group,
}

impl Labels {
    pub(crate) fn from_line(line: &LedgerLine) -> Labels {
        Labels {
            agent: line.agent.clone().unwrap_or_default(),
            api: line.api.clone(),
            model: line.model.clone().unwrap_or_default(),
            group: line.group,
        }
    }

    fn render(&self) -> String {
        let Labels { agent, api, model, group } = self;
        let [agent, api, model] = [agent, api, model].map(|text| escaped(text));
        let group = group.name();
        format!(r#"agent="{agent}",api="{api}",model="{model}",group="{group}""#)
    }
}

/// A Prometheus counter: its name, its help text, and a function that returns its samples for a sum
/// of requests. A sample is a value, with the labels that it has in addition to those of the sum.
struct CounterOf {
    name: &'static str,
    help: &'static str,
    samples: fn(&RequestSum) -> Vec<(&'static str, String)>,
}

const COUNTERS: &[CounterOf] = &[
    CounterOf {
        name: "epitome_proxy_requests_total",
        help: "Finished requests for a response of a model, by what was done to them.",
        samples: |sum| {
            vec![
                (r#",treatment="passed""#, sum.passed.to_string()),
                (r#",treatment="known""#, sum.known.to_string()),
                (r#",treatment="shortened""#, sum.shortened.to_string()),
                (r#",treatment="cut""#, sum.cut.to_string()),
            ]
        },
    },
    CounterOf {
        name: "epitome_proxy_uncounted_requests_total",
        help: "Finished requests without a count of tokens from the service.",
        samples: |sum| vec![("", (sum.requests - sum.metered).to_string())],
    },
    CounterOf {
        name: "epitome_proxy_unpriced_requests_total",
        help: "Counted requests to models without a known price, which are in no cost.",
        samples: |sum| vec![("", sum.unpriced.to_string())],
    },
    CounterOf {
        name: "epitome_proxy_tokens_total",
        help: "Tokens by the count of the services.",
        samples: |sum| {
            vec![
                (r#",kind="input""#, sum.input_tokens.0.to_string()),
                (r#",kind="cached""#, sum.cached_tokens.0.to_string()),
                (r#",kind="cache_written""#, sum.cache_written_tokens.0.to_string()),
                (r#",kind="output""#, sum.output_tokens.0.to_string()),
            ]
        },
    },
    CounterOf {
        name: "epitome_proxy_saved_tokens_total",
        help: "Input tokens that were not sent, by the count of the proxy.",
        samples: |sum| vec![("", sum.saved_tokens.0.to_string())],
    },
    CounterOf {
        name: "epitome_proxy_cost_dollars_total",
        help: "What counted requests cost at list prices.",
        samples: |sum| vec![("", dollars(sum.cost))],
    },
    CounterOf {
        name: "epitome_proxy_unchanged_cost_dollars_total",
        help: "What the same requests would have cost unchanged: an estimate.",
        samples: |sum| vec![("", dollars(sum.unchanged_cost))],
    },
    CounterOf {
        name: "epitome_proxy_recalled_texts_total",
        help: "Removed texts that models asked back.",
        samples: |sum| vec![("", sum.recalled.to_string())],
    },
    CounterOf {
        name: "epitome_proxy_errors_total",
        help: "Requests that did not end well, by the reason.",
        samples: |sum| {
            vec![
                (r#",kind="status""#, sum.errors.to_string()),
                (r#",kind="unreachable""#, sum.unreachable.to_string()),
                (r#",kind="interrupted""#, sum.interrupted.to_string()),
                (r#",kind="epitome""#, sum.failed.to_string()),
            ]
        },
    },
];

/// The counters of all sums of requests, in the text format of Prometheus.
pub(crate) fn render<'s>(
    sums: impl Iterator<Item = (&'s Labels, &'s RequestSum)> + Clone,
) -> String {
    let mut text = String::new();
    for CounterOf { name, help, samples } in COUNTERS {
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} counter");
        for (labels, sum) in sums.clone() {
            let labels = labels.render();
            for (further, value) in samples(sum) {
                let _ = writeln!(text, "{name}{{{labels}{further}}} {value}");
            }
        }
    }
    text
}

fn dollars(amount: MicroDollars) -> String {
    format!("{}.{:06}", amount.0 / 1_000_000, amount.0 % 1_000_000)
}

/// A text with escapes, as the value of a label. Clients choose the name of the model, so it may
/// contain any character.
fn escaped(text: &str) -> String {
    text.replace('\\', r"\\").replace('"', r#"\""#).replace('\n', r"\n")
}

#[cfg(test)]
mod tests {
    use epitome_model::{TokenUsage, Tokens};

    use super::*;

    #[test]
    fn names_are_escaped_and_sums_are_exact() {
        let line = LedgerLine {
            agent: Some("claude".into()),
            api: "anthropic".into(),
            model: Some("a\"b\\c\nd".into()),
            usage: Some(TokenUsage { cached: Tokens(7), ..TokenUsage::default() }),
            cost: Some(MicroDollars(1_000_020)),
            unchanged_cost: Some(MicroDollars(3_000_000)),
            ..LedgerLine::default()
        };
        let mut sum = RequestSum::default();
        sum.add(&line);
        let text = render([(&Labels::from_line(&line), &sum)].into_iter());
        let labels = r#"agent="claude",api="anthropic",model="a\"b\\c\nd",group="treated""#;
        for expect in [
            format!("epitome_proxy_requests_total{{{labels},treatment=\"passed\"}} 1"),
            format!("epitome_proxy_tokens_total{{{labels},kind=\"cached\"}} 7"),
            format!("epitome_proxy_cost_dollars_total{{{labels}}} 1.000020"),
            format!("epitome_proxy_unchanged_cost_dollars_total{{{labels}}} 3.000000"),
        ] {
            assert!(text.lines().any(|line| line == expect), "{expect}\n{text}");
        }
        // Each counter is described once.
        assert_eq!(text.matches("# TYPE ").count(), COUNTERS.len());
    }
}
