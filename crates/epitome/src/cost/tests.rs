//! Costs of sessions on a machine.

use std::fs;

use serde_json::json;

use super::*;

/// A machine with two sessions of Claude Code: the second begins with a copy of the first, and the
/// first has a sub-agent.
fn machine() -> (tempfile::TempDir, Config) {
    let dir = tempfile::tempdir().expect("a folder");
    let config = Config::from_home(dir.path());
    let first = response("msg_1", "2026-11-20T23:59:00Z", "claude-haiku-4-5", 1_000_000);
    let again = first.replace("\"output_tokens\":1", "\"output_tokens\":100000");
    let second = response("msg_2", "2026-11-23T00:00:00Z", "claude-haiku-4-5", 1_000_000);
    let other = response("msg_3", "2026-11-23T08:00:00Z", "unheard-of", 7);
    let write = |name: &str, text: &str| {
        let path = dir.path().join(".claude/projects/-p").join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a session");
    };
    // A response is stored in several records, each with the tokens that were counted so far.
    write("a.jsonl", &[&*first, &again].concat());
    write("b.jsonl", &[&*first, &again, &second].concat());
    write("a/subagents/agent-1.jsonl", &other);
    (dir, config)
}

fn response(id: &str, time: &str, model: &str, input: u64) -> String {
    let record = json!({
        "type": "assistant", "uuid": format!("{id}-{time}"), "sessionId": "s", "cwd": "/p",
        "timestamp": time, "version": "2.1.329", "requestId": format!("req_{id}"),
        "message": {
            "id": id, "role": "assistant", "model": model, "type": "message",
            "content": [{ "type": "text", "text": "…" }],
            "usage": {
                "input_tokens": input, "cache_read_input_tokens": 0,
                "cache_creation_input_tokens": 0, "output_tokens": 1,
            },
        },
    });
    format!("{record}\n")
}

fn rows(report: &CostReport) -> Vec<(Option<&str>, u64, u64, u64)> {
    let row = |row: &'_ CostRow| (row.sum.requests, row.sum.cost.0, row.sum.unpriced);
    let rows = report.rows.iter().map(|it| {
        let (requests, cost, unpriced) = row(it);
        (it.name.as_deref(), requests, cost, unpriced)
    });
    rows.collect()
}

#[test]
fn a_request_in_two_files_is_counted_once_with_its_last_counts() {
    let (_dir, config) = machine();
    let report = cost(&config, CostBy::Day, &CostFilter::default(), |_| true).expect("a report");
    let expect = [(Some("2026-11-20"), 1, 1_500_000, 0), (Some("2026-11-23"), 2, 1_000_005, 1)];
    assert_eq!(rows(&report), expect);
    let total = CostSum {
        sessions: 3,
        requests: 3,
        input_tokens: Tokens(2_000_007),
        output_tokens: Tokens(100_002),
        cost: MicroDollars(2_500_005),
        unpriced: 1,
        ..CostSum::default()
    };
    assert_eq!(report.total, total);
    // This report is made from the cache.
    let again = cost(&config, CostBy::Day, &CostFilter::default(), |_| true).expect("a report");
    assert_eq!(again, report);
}

#[test]
fn rows_are_days_weeks_projects_models_or_agents() {
    let (_dir, config) = machine();
    for (by, expect) in [
        (CostBy::Week, &[Some("2026-11-16"), Some("2026-11-23")][..]),
        (CostBy::Project, &[Some("/p")]),
        (CostBy::Model, &[Some("claude-haiku-4-5"), Some("unheard-of")]),
        (CostBy::Agent, &[Some("claude")]),
    ] {
        let report = cost(&config, by, &CostFilter::default(), |_| true).expect("a report");
        let names: Vec<Option<&str>> = report.rows.iter().map(|row| row.name.as_deref()).collect();
        assert_eq!(names, expect, "{by:?}");
    }
}

#[test]
fn requests_are_filtered_by_time_and_project() {
    let (_dir, config) = machine();
    let since = "2026-11-21T00:00:00Z".parse().ok();
    let filter = CostFilter { since, ..CostFilter::default() };
    let report = cost(&config, CostBy::Day, &filter, |_| true).expect("a report");
    assert_eq!(rows(&report), [(Some("2026-11-23"), 2, 1_000_005, 1)]);
    let none = cost(&config, CostBy::Day, &filter, |_| false).expect("a report");
    assert_eq!((none.rows, none.total), (Vec::new(), CostSum::default()));
}
