use std::collections::BTreeSet;

use samples::Sample;

use super::*;

const DIGEST: &str = "[Digest of the conversation so far, with 2 tool calls: lines of it.]";

/// A session of entries, each given by its id, the id of its parent, and its text. An entry whose
/// text begins with `[` is a summary.
fn sample(entries: &[(&str, Option<&str>, &str)]) -> Sample {
    entries.iter().fold(Sample::new(), |sample, &(id, parent, text)| {
        let sample = if text.starts_with('[') { sample.summary(text) } else { sample.reply(text) };
        sample.with(|entry| {
            entry.id = Some(id.into());
            entry.parent = parent.map(Into::into);
        })
    })
}

#[test]
fn the_history_of_a_context_goes_back_before_digests_and_leaves_other_branches_out() {
    let linear =
        [("a", None, "one"), ("b", None, "two"), ("c", None, DIGEST), ("d", None, "three")];
    let tree = [
        ("a", None, "one"),
        ("b", Some("a"), "left behind"),
        ("c", Some("a"), "two"),
        ("d", None, DIGEST),
        ("e", Some("d"), "three"),
    ];
    let hidden = [
        ("a", None, "one"),
        ("b", Some("no entry"), "two"),
        ("c", None, DIGEST),
        ("d", Some("c"), "three"),
    ];
    let kept_behind = [
        ("a", None, "one"),
        ("b", Some("a"), "two"),
        ("c", Some("b"), DIGEST),
        ("d", Some("c"), "three"),
    ];
    let by_model = [("a", None, "one"), ("b", None, "[A model's summary]"), ("c", None, "two")];
    for (entries, old, expect) in [
        (&linear[..], &[2, 3][..], &[0, 1, 3][..]),
        (&linear, &[0, 1], &[0, 1]),
        (&tree, &[3, 4], &[0, 2, 4]),
        (&hidden, &[2, 3], &[0, 1, 3]),
        (&kept_behind, &[2, 1, 3], &[0, 1, 3]),
        (&by_model, &[1, 2], &[0, 1, 2]),
        (&by_model, &[], &[]),
    ] {
        let sample = sample(entries);
        let (transcript, source) = (sample.transcript(), sample.source());
        assert_eq!(history(transcript, source, old), expect, "{entries:?}");
        let each = old.iter().flat_map(|&item| history(transcript, source, &[item]));
        let each: BTreeSet<usize> = each.collect();
        assert_eq!(histories(transcript, source, old), Vec::from_iter(each), "{entries:?}");
    }
}
