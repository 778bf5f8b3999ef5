//! Redaction.

use std::sync::LazyLock;

use epitome_json::check;
use epitome_redact::{Finder, Redactor, Rules};

/// Redacts any bytes as a session. The replacements must be in order and disjoint, a line of JSON
/// must stay JSON, no line may come or go, and a second redaction must find nothing.
///
/// # Panics
///
/// If that does not hold.
pub fn redact(bytes: &[u8]) {
    static FINDER: LazyLock<Finder> =
        LazyLock::new(|| Finder::new(Rules::built_in()).expect("rules that are tested"));
    let once = redacted(&FINDER, bytes);
    let lines = |bytes: &[u8]| bytes.split(|&byte| byte == b'\n').map(is_json).collect::<Vec<_>>();
    for (idx, (before, after)) in lines(bytes).iter().zip(lines(&once)).enumerate() {
        assert!(!before || after, "line {} stays JSON", idx + 1);
    }
    assert_eq!(lines(&once).len(), lines(bytes).len(), "no line comes or goes");
    assert_eq!(
        String::from_utf8_lossy(&redacted(&FINDER, &once)),
        String::from_utf8_lossy(&once),
        "twice is once"
    );
}

fn is_json(line: &[u8]) -> bool {
    check(line).is_ok()
}

fn redacted(finder: &Finder, bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut at = 0;
    for splice in Redactor::new(finder).splices(&bytes, &[]) {
        let (start, end) = (splice.span.start as usize, splice.span.end as usize);
        assert!(at <= start && start <= end && end <= bytes.len(), "in order and apart");
        out.extend_from_slice(&bytes[at..start]);
        out.extend_from_slice(&splice.with);
        at = end;
    }
    out.extend_from_slice(&bytes[at..]);
    out
}
