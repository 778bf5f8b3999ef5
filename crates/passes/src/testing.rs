//! Helpers for unit tests: the edits of a pass for a [`Sample`], as lines for a table.

use std::sync::LazyLock;

use epitome_model::{At, Edit, Verb};
use regex::Regex;
use samples::{Quarters, Sample};

use crate::{Pass, View};

/// Checks the edits that a pass plans if the items `kept` are kept whole; `expect` are the edits as
/// lines, as [`describe`] writes them.
#[track_caller]
pub(crate) fn check(pass: &dyn Pass, sample: &Sample, kept: &[usize], expect: &[&str]) {
    let mut view = View::new(sample.transcript(), sample.source(), &Quarters);
    view.keep(kept.iter().copied());
    assert_eq!(describe(&pass.plan(&view)), expect);
}

/// Edits as lines: `ITEM = TEXT` for a block, `ITEM.fFIELD` for an argument, `ITEM.pPART` for a
/// part of a result, `ITEM.cFIELD` for a hidden field; `gone` for removed content. A reference is
/// written as `k#`, and a line feed as ` / `.
pub(crate) fn describe(edits: &[Edit]) -> Vec<String> {
    static REFERENCE: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"\bk[0-9a-f]{7}\b").expect("the pattern is fixed"));
    let lines = edits.iter().map(|edit| {
        let at = match edit.at {
            At::Block { item, .. } => item.to_string(),
            At::Field { item, field, .. } => format!("{item}.f{field}"),
            At::Part { item, part, .. } => format!("{item}.p{part}"),
            At::Items { item } => format!("{item}.."),
            At::HiddenField { item, field } => format!("{item}.c{field}"),
        };
        match &edit.verb {
            Verb::Replace(text) => {
                format!("{at} = {}", REFERENCE.replace_all(text, "k#").replace('\n', " / "))
            }
            _ => format!("{at} gone"),
        }
    });
    lines.collect()
}

/// A text of `n` numbered lines of equal length.
pub(crate) fn lines(n: usize) -> String {
    let lines: Vec<String> = (1..=n).map(|n| format!("line {n:03} of a long text")).collect();
    lines.join("\n")
}
