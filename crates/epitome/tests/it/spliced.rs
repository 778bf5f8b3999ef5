//! Two logs in one file, as a broken tool may leave them: after a compaction the file still has the
//! same key, or it is not compacted.

use epitome::archive::Archive;
use epitome::compaction::{PreparedCompaction, Way, apply_to};
use epitome::{ErrorKind, Loaded};
use epitome_passes::built_in;
use epitome_tokens::Estimate;
use jiff::Timestamp;

/// How many tenths of the first log are kept, from its beginning, and how many tenths of the second
/// log are left out.
const CUTS: [(usize, usize); 3] = [(2, 8), (5, 5), (8, 2)];
/// The length in bytes from which recorded sessions are skipped, because every session is combined
/// with every other.
const LONGEST: usize = 300_000;

#[test]
fn two_logs_in_one_file_are_one_session_before_and_after_a_compaction() {
    let logs: Vec<(String, Vec<u8>)> = fixtures::all()
        .into_iter()
        .map(|it| (format!("{}/{}", it.agent, it.name), it.bytes()))
        .filter(|(_, bytes)| bytes.len() < LONGEST)
        .collect();
    let mut compacted = 0;
    for (name, first) in &logs {
        for (other, second) in &logs {
            for (kept, left_out) in CUTS {
                let head = &first[..first.len() * kept / 10];
                let tail = &second[second.len() * left_out / 10..];
                let name = format!("{name} and {other}, cut at {kept} tenths");
                compacted += usize::from(is_found_again(&name, [head, tail].concat()));
            }
        }
    }
    assert!(compacted > logs.len(), "{compacted} of {} pairs were compacted", logs.len().pow(2));
}

/// Whether a session can be compacted and has the same key afterwards. If it would have another
/// key, checks that the compaction is refused.
fn is_found_again(name: &str, session: Vec<u8>) -> bool {
    let mut recipe = built_in("epitome").expect("a built-in recipe");
    recipe.trigger = Default::default();
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("s.jsonl");
    let Ok(read) = Loaded::read(session, None) else { return false };
    let Ok(plan) = PreparedCompaction::in_way(Way::Rewrite, &read, &recipe, &Estimate) else {
        return false;
    };
    if plan.is_empty() || !plan.violations.is_empty() {
        return false;
    }
    let mut after = Vec::new();
    let spliced = plan.spliced().expect("the splices lie apart");
    spliced.copy_to(&mut after).expect("memory is written");
    let again = Loaded::read(after, None).map(|again| epitome::storage::key_of(&again, &path));
    if again.is_ok_and(|key| key == epitome::storage::key_of(&read, &path)) {
        return true;
    }
    let archive = Archive::new(&dir.path().join("data"));
    let done = apply_to(&plan, &path, &archive, &Estimate, Timestamp::UNIX_EPOCH);
    let err = done.err().unwrap_or_else(|| panic!("{name}: nothing could be restored"));
    assert_eq!(err.kind(), ErrorKind::Refused, "{name}: {err}");
    false
}
