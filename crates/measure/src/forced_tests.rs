use epitome_model::{FieldRole, ToolKind};
use samples::Sample;

use super::*;
use crate::testing::{history, text};

/// A session in which a file is read and a command is run. The tests force a compaction before the
/// reply, which uses one fact of each result; then the model edits a line of the file.
fn session() -> History {
    let sample = Sample::new()
        .user("Fix it.")
        .call(ToolKind::Read, "src/first.rs")
        .output("fn oneFact() {}\nlet first_line = 1;")
        .call(ToolKind::Shell, "make all")
        .output("note: otherFact is slow")
        .user("Go on.")
        .reply("oneFact calls otherFact")
        .call_with(ToolKind::Edit, "src/other.rs", &[(FieldRole::Old, "let first_line = 1;")])
        .output("done");
    history(&sample)
}

#[test]
fn what_a_compaction_kept_is_told_by_what_is_used_afterwards() {
    let history = session();
    let needs = Needs::from_history(&history);
    // The reply is the response to the third request.
    let cut = ForcedCompaction::before(2, &history, &needs);
    let none = References::new();
    let named: References = [("call-2".into(), "k1234567".to_owned())].into();
    let cases = [
        (
            "fn oneFact() {}\nnote: otherFact is slow\nlet first_line = 1;",
            &none,
            (1.0, 1.0, 1.0, 0),
        ),
        // The facts are in the context, but no whole line with them; the file must be read again
        // for the line that the edit quotes.
        ("oneFact otherFact first_line", &none, (1.0, 0.0, 1.0, 1)),
        ("nothing", &none, (0.0, 0.0, 0.0, 1)),
        // The context names the file, so that the fact in it can be read again.
        ("see src/first.rs", &none, (0.0, 0.0, 0.67, 1)),
        ("nothing", &named, (0.0, 0.0, 0.0, 1)),
        ("see k1234567", &named, (0.0, 0.0, 0.33, 1)),
    ];
    for (kept, references, expect) in cases {
        let view = vec![Arc::new(text(kept))];
        let figures = cut.measure(&view, references).expect("something was used");
        let share = |share: f64| (share * 100.0).round() / 100.0;
        let CutFigures { recall, in_line, recoverable, rereads, edits, .. } = figures;
        let got = (share(recall), share(in_line), share(recoverable), rereads);
        assert_eq!((got, edits), (expect, 1), "{kept}");
        assert_eq!(figures.after, view[0].tokens);
        assert_eq!(figures.before, history.tokens_before(6));
    }
}

#[test]
fn a_cut_after_which_nothing_is_used_says_nothing() {
    let sample = Sample::new().user("Hello.").reply("Hello.").user("Bye.").reply("Bye.");
    let history = history(&sample);
    let needs = Needs::from_history(&history);
    let cut = ForcedCompaction::before(1, &history, &needs);
    assert_eq!(cut.measure(&[], &References::new()), None);
}
