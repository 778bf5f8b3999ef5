//! The gate of `epitome simulate`: a table for people, a JUnit report for CI, a status.

use std::fs;
use std::io::Read;
use std::path::Path;

use epitome::simulate::{GateResult, PolicyCommand, SimulateReport};
use epitome::storage::{Spliced, write_new};
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

use crate::failure::{Failure, Result, Status};
use crate::table::{Side, Table};
use crate::text::{GREEN, PLAIN, RED, field};

/// The name of the report, and the class name of the cases for sessions that were not replayed.
const NAME: &str = "epitome simulate";
/// The first bytes of a report, with [`NAME`]. A new report replaces a file that begins with them.
const HEAD: &[u8] =
    b"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"epitome simulate\"";

/// The conditions as a table, with an empty line before it. Empty if there is no gate.
pub fn table(report: &SimulateReport) -> String {
    if report.gates.is_empty() {
        return String::new();
    }
    let sides = [Side::Left, Side::Right, Side::Right, Side::Left];
    let mut table = Table::new(&sides, &["figure", "gate", "measured", "result"]);
    for gate in &report.gates {
        let limit = format!("{} {}", gate.bound.sign(), gate.value);
        let measured = gate.measured.map_or_else(|| "-".to_owned(), |it| it.to_string());
        let (style, result) = match (gate.passed, gate.reason) {
            (true, _) => (GREEN, "passed".to_owned()),
            (false, None) => (RED, "failed".to_owned()),
            (false, Some(reason)) => (RED, format!("failed, not measured: {reason}")),
        };
        table.painted(vec![
            (PLAIN, gate.figure.to_owned()),
            (PLAIN, limit),
            (PLAIN, measured),
            (style, result),
        ]);
    }
    format!("\n{}", table.render())
}

/// Returns an error unless every condition is met. `policy` is the policy command that was
/// measured; `None` if a recipe was measured.
pub fn check(report: &SimulateReport, policy: Option<&PolicyCommand>) -> Result<()> {
    let missed = report.gates.iter().filter(|gate| !gate.passed);
    let missed: Vec<String> =
        missed.map(|gate| format!("{} ({})", gate.condition(), gate.finding())).collect();
    if missed.is_empty() {
        return Ok(());
    }
    let what = if policy.is_some() { "policy" } else { "recipe" };
    let name = field(measured(report));
    let what = format!("the {what} {name} misses the gate: {}", missed.join(", "));
    Err(Failure::new(Status::Missed, "gate", what))
}

/// Writes a JUnit report: a test for each condition, and an error for each session that was not
/// replayed.
pub fn write_junit(
    path: &Path,
    report: &SimulateReport,
    failed: &[(String, Failure)],
) -> Result<()> {
    let text = junit(report, failed)?;
    if is_report(path) {
        fs::remove_file(path)
            .map_err(|err| Failure::disk("cannot replace the report", &err).with_path(path))?;
    }
    write_new(path, |to| Spliced::new(&text.as_bytes(), Vec::new())?.copy_to(to))
        .map_err(Failure::writing)
}

fn junit(report: &SimulateReport, failed: &[(String, Failure)]) -> Result<String> {
    let name = measured(report);
    let mut suite = TestSuite::new(name);
    suite.add_property(("sessions", report.sessions.len().to_string().as_str()));
    suite.add_property(("calls", report.calls.to_string().as_str()));
    suite.add_property(("forced compactions", report.cuts.to_string().as_str()));
    suite.add_test_cases(report.gates.iter().map(|gate| test_case(name, gate)));
    let findings = report.rule_findings();
    if !findings.is_empty() {
        suite.set_system_out(findings.join("\n"));
    }
    let mut junit = Report::new(NAME);
    junit.add_test_suite(suite);
    if !failed.is_empty() {
        let mut sessions = TestSuite::new("sessions");
        for (session, failure) in failed {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
            status.set_message(failure.render().trim_end());
            let mut case = TestCase::new(session.as_str(), status);
            case.set_classname(NAME);
            sessions.add_test_case(case);
        }
        junit.add_test_suite(sessions);
    }
    junit.to_string().map_err(|err| Failure::new(Status::Bug, "bug", err.to_string()))
}

fn test_case(name: &str, gate: &GateResult) -> TestCase {
    let status = if gate.passed {
        TestCaseStatus::success()
    } else {
        let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
        status.set_type("gate");
        status.set_message(format!("{} {}", gate.figure, gate.finding()));
        status
    };
    let mut case = TestCase::new(gate.condition(), status);
    case.set_classname(name);
    if gate.passed {
        case.set_system_out(format!("{} {}", gate.figure, gate.finding()));
    }
    case
}

/// The name of the policy command or recipe that the gate is about: the first one. Before it, at
/// index 0, the report has the sessions without compaction.
fn measured(report: &SimulateReport) -> &str {
    report.recipes.get(1).map_or(NAME, |recipe| recipe.recipe.as_str())
}

/// Whether a file is a report of this command, so that a new report may replace it.
fn is_report(path: &Path) -> bool {
    let mut head = [0; HEAD.len()];
    let read = fs::File::open(path).and_then(|mut file| file.read_exact(&mut head));
    read.is_ok() && head == HEAD
}
