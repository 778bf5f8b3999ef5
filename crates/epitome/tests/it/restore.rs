//! Everything can be restored: random files, random generations, random bytes appended in between.

use std::collections::{BTreeMap, HashMap};

use epitome::archive::{About, Archive, Digest, Draft, Generation, Hash, SessionKey, UndoData};
use epitome::storage::{
    Blobs, FileSource, Restoration, RestoreOutcome, RestoreTarget, Spliced, Store, restore,
    restore_block,
};
use epitome::{Error, ErrorKind};
use epitome_model::{Ref, Source, Span, Splice, Tokens};
use jiff::Timestamp;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

/// Generated numbers and texts, from which [`splices`] makes splices once the length of a file is
/// known.
type Choice = Vec<(Index, Index, Vec<u8>)>;

fn choices() -> impl Strategy<Value = Choice> {
    vec((any::<Index>(), any::<Index>(), text()), 0..6)
}

/// Texts of a few different letters, so that lines and removed pieces are often equal.
fn text() -> impl Strategy<Value = Vec<u8>> {
    vec(prop::sample::select(b"ab\n".to_vec()), 0..8)
}

/// Splices for `len` bytes, sorted and disjoint.
fn splices(len: usize, choice: &Choice) -> Vec<Splice> {
    let mut ends: Vec<usize> =
        choice.iter().flat_map(|(a, b, _)| [a.index(len + 1), b.index(len + 1)]).collect();
    ends.sort_unstable();
    let spans = ends.chunks_exact(2).map(|pair| span(pair[0], pair[1]));
    spans.zip(choice).map(|(span, (.., with))| Splice { span, with: with[..].into() }).collect()
}

fn span(start: usize, end: usize) -> Span {
    Span { start: start as u64, end: end as u64 }
}

fn naive(base: &[u8], splices: &[Splice]) -> Vec<u8> {
    let mut bytes = base.to_vec();
    for Splice { span, with } in splices.iter().rev() {
        bytes.splice(span.start as usize..span.end as usize, with.iter().copied());
    }
    bytes
}

/// An archive in memory.
#[derive(Default)]
struct Memory {
    generations: Vec<Generation>,
    blobs: HashMap<(u64, Hash), Vec<u8>>,
}

impl Blobs for Memory {
    fn blob(&self, generation: u64, hash: &Hash) -> Result<Vec<u8>, Error> {
        // The error for missing bytes is that of an empty archive.
        let nothing = Archive::new("/nowhere".as_ref());
        match self.blobs.get(&(generation, *hash)) {
            Some(raw) => Ok(raw.clone()),
            None => nothing.read(&SessionKey::new("claude", "s"), generation, hash),
        }
    }
}

impl Memory {
    /// Applies `splices` to `file`, archives the removed bytes, and returns the result.
    fn compact(&mut self, file: &[u8], splices: Vec<Splice>) -> Vec<u8> {
        let file = file.to_vec();
        let after = Spliced::new(&file, splices).expect("sorted and apart");
        let draft = draft(&file, &after);
        let number = self.generations.len() as u64 + 1;
        for splice in after.splices() {
            let raw = file.at(splice.span).into_owned();
            self.blobs.insert((number, Hash::compute(&raw)), raw);
        }
        self.generations.push(Generation {
            number,
            agent: "text".into(),
            session: "s".into(),
            path: draft.path,
            recipe: draft.recipe,
            made: draft.made,
            run: None,
            part_of: None,
            parts: Vec::new(),
            epitome: String::new(),
            before: draft.before,
            after: draft.after,
            records: draft.records,
            tokens_before: draft.tokens_before,
            tokens_after: draft.tokens_after,
            edits: draft.edits,
            shared: draft.shared,
            forgotten: Vec::new(),
            imported: None,
        });
        after.read(0..after.len()).into_owned()
    }

    fn restore(
        &self,
        file: &[u8],
        target: RestoreTarget,
    ) -> Result<(Vec<u8>, RestoreOutcome), Error> {
        let file = file.to_vec();
        Ok(laid(&file, restore(&file, &self.generations, self, target)?))
    }

    fn restore_block(&self, file: &[u8], raw: &[u8]) -> Result<(Vec<u8>, RestoreOutcome), Error> {
        let file = file.to_vec();
        Ok(laid(&file, restore_block(&file, &self.generations, self, &Ref::from_bytes(raw))?))
    }
}

fn laid(file: &[u8], done: Restoration) -> (Vec<u8>, RestoreOutcome) {
    (naive(file, &done.splices), done.outcome)
}

fn draft(file: &dyn Source, after: &Spliced<'_>) -> Draft {
    let UndoData { before, after, records, shared } =
        UndoData::between(file, after).expect("in memory");
    Draft {
        path: "/s.jsonl".into(),
        recipe: "epitome".into(),
        made: Timestamp::UNIX_EPOCH,
        run: None,
        part_of: None,
        parts: Vec::new(),
        before,
        after,
        records,
        tokens_before: Tokens(0),
        tokens_after: Tokens(0),
        edits: BTreeMap::new(),
        shared: Some(shared),
    }
}

/// Replaces the only occurrence of `what` in `file`.
fn swap(file: &[u8], what: &str, with: &str) -> Vec<Splice> {
    let start = memchr::memmem::find(file, what.as_bytes()).expect("it is there");
    vec![Splice { span: span(start, start + what.len()), with: with.as_bytes().into() }]
}

proptest! {
    #[test]
    fn splices_read_as_if_they_were_applied(
        base in text(), choice in choices(), from: Index, to: Index,
    ) {
        let splices = splices(base.len(), &choice);
        let expect = naive(&base, &splices);
        let spliced = Spliced::new(&base, splices).expect("sorted and apart");
        prop_assert_eq!(spliced.len(), expect.len() as u64);
        let (from, to) = (from.index(expect.len() + 3), to.index(expect.len() + 3));
        let range = from.min(expect.len())..to.clamp(from.min(expect.len()), expect.len());
        prop_assert_eq!(&*spliced.read(from as u64..to as u64), &expect[range]);
        let mut copied = Vec::new();
        spliced.copy_to(&mut copied).expect("in memory");
        prop_assert_eq!(copied, expect);
    }

    #[test]
    fn splices_over_splices_are_splices(base in text(), one in choices(), other in choices()) {
        let one = splices(base.len(), &one);
        let middle = naive(&base, &one);
        let other = splices(middle.len(), &other);
        let joined = Spliced::new(&base, one).and_then(|one| one.with_more(other.clone()));
        let joined = joined.expect("sorted and apart");
        prop_assert_eq!(naive(&base, joined.splices()), naive(&middle, &other));
    }

    /// After any sequence of compactions and appended bytes, a restore gives everything back, with
    /// all that was appended, and can reach each generation.
    ///
    /// Numbers in the file keep the generations apart: a file that looks like an earlier generation
    /// with something appended could not be told from it.
    #[test]
    fn everything_comes_back(
        first in text(), steps in vec((choices(), text()), 1..5),
    ) {
        let mut memory = Memory::default();
        let mut file = [b"0:".as_slice(), &first].concat();
        let mut original = file.clone();
        let mut left = Vec::new();
        for (idx, (choice, appended)) in steps.iter().enumerate() {
            let mut splices = splices(file.len() - 1, choice);
            splices.iter_mut().for_each(|it| it.span = Span {
                start: it.span.start + 1, end: it.span.end + 1,
            });
            let mark = [b"123456789"[idx]].as_slice().into();
            splices.insert(0, Splice { span: span(0, 1), with: mark });
            file = memory.compact(&file, splices);
            left.push(file.clone());
            for file in left.iter_mut().chain([&mut file, &mut original]) {
                file.extend_from_slice(appended);
            }
        }
        let numbers = || (1..=steps.len() as u64).rev();
        let (restored, outcome) = memory.restore(&file, RestoreTarget::Original).expect("restored");
        prop_assert_eq!(outcome, RestoreOutcome::Exact { undone: numbers().collect() });
        prop_assert_eq!(&restored, &original);
        let again = memory.restore(&restored, RestoreTarget::Original).expect("restored");
        prop_assert_eq!(again, (original, RestoreOutcome::Exact { undone: vec![] }));
        for number in numbers() {
            let target = RestoreTarget::Generation(number);
            let (restored, outcome) = memory.restore(&file, target).expect("restored");
            let undone = numbers().take_while(|&it| it > number).collect();
            prop_assert_eq!(outcome, RestoreOutcome::Exact { undone });
            prop_assert_eq!(&restored, &left[number as usize - 1]);
        }
    }

    /// Whatever was done to the file, a restore neither fails nor loses a line that was not edited.
    #[test]
    fn a_file_that_others_changed_is_restored_or_left(
        first in text(), choice in choices(), hand in choices(),
    ) {
        let mut memory = Memory::default();
        let file = memory.compact(&first, splices(first.len(), &choice));
        let file = naive(&file, &splices(file.len(), &hand));
        let (restored, outcome) = memory.restore(&file, RestoreTarget::Original).expect("restored");
        // A file that looks untouched is restored exactly, which is tested above.
        if matches!(outcome, RestoreOutcome::Exact { .. }) {
            return Ok(());
        }
        let edited = &memory.generations[0].records;
        let hash = |line: &[u8]| epitome::archive::RecordHash::compute(line);
        let kept = |line: &&[u8]| edited.iter().all(|it| it.hash != hash(line));
        let mut lines = restored.split(|&b| b == b'\n');
        for line in file.split(|&b| b == b'\n').filter(kept) {
            prop_assert!(lines.any(|it| it == line), "{:?} is gone", line);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// The same with files, an archive on disk and replacements.
    #[test]
    fn everything_comes_back_through_the_disk(
        first in text(), steps in vec((choices(), text()), 1..4),
    ) {
        let dir = tempfile::tempdir().expect("a folder");
        let (archive, store) = (Archive::new(dir.path()), Store::new(dir.path()));
        let key = SessionKey::new("claude", "s");
        let path = dir.path().join("s.jsonl");
        let mut original = [b"0:".as_slice(), &first].concat();
        std::fs::write(&path, &original).expect("written");
        for (idx, (choice, appended)) in steps.iter().enumerate() {
            let session = store.open_for_edit(&path).expect("a session");
            let source = session.source();
            let mut splices = splices(source.len() as usize - 1, choice);
            splices.iter_mut().for_each(|it| it.span = Span {
                start: it.span.start + 1, end: it.span.end + 1,
            });
            let mark = [b"123456789"[idx]].as_slice().into();
            splices.insert(0, Splice { span: span(0, 1), with: mark });
            let after = Spliced::new(source, splices).expect("sorted and apart");
            let mut pack = archive.begin(&key).expect("a pack");
            for splice in after.splices() {
                pack.put(&source.at(splice.span), About::default()).expect("put");
            }
            pack.commit(draft(source, &after)).expect("a generation");
            session.replace(|out| after.copy_to(out)).expect("replaced");
            let mut bytes = std::fs::read(&path).expect("a file");
            bytes.extend_from_slice(appended);
            std::fs::write(&path, bytes).expect("written");
            original.extend_from_slice(appended);
        }
        let session = store.open_for_edit(&path).expect("a session");
        let generations = archive.generations(&key).expect("a listing").whole;
        let blobs = archive.blobs(&key);
        let done = restore(session.source(), &generations, &blobs, RestoreTarget::Original);
        let done = done.expect("restored");
        let undone = (1..=steps.len() as u64).rev().collect();
        prop_assert_eq!(done.outcome, RestoreOutcome::Exact { undone });
        let view = Spliced::new(session.source(), done.splices).expect("sorted and apart");
        session.replace(|out| view.copy_to(out)).expect("replaced");
        prop_assert_eq!(std::fs::read(&path).expect("a file"), original);
    }
}

const FILE: &str =
    "{\"id\":1,\"a\":\"AAAA\"}\n{\"id\":2,\"b\":\"BBBB\",\"c\":\"CCCC\"}\n{\"id\":3}\n";

/// Removes `AAAA` first, and then `BBBB` and `CCCC` together.
fn twice() -> (Memory, Vec<u8>) {
    let mut memory = Memory::default();
    let file = memory.compact(FILE.as_bytes(), swap(FILE.as_bytes(), "AAAA", "-"));
    let splices = [swap(&file, "BBBB", "-"), swap(&file, "CCCC", "-")].concat();
    let file = memory.compact(&file, splices);
    (memory, file)
}

fn text_of(file: &[u8]) -> &str {
    std::str::from_utf8(file).expect("text")
}

#[test]
fn a_file_changed_by_hand_is_restored_record_by_record() {
    let (memory, file) = twice();
    let file = text_of(&file).replace("{\"id\":3}", "{\"id\":33}");
    let (restored, outcome) =
        memory.restore(file.as_bytes(), RestoreTarget::Original).expect("restored");
    assert_eq!(text_of(&restored), FILE.replace("{\"id\":3}", "{\"id\":33}"));
    assert_eq!(outcome, RestoreOutcome::ByRecord { undone: vec![], restored: 2, missing: 0 });
    // Back to the first generation: only the edits of the second are undone.
    let first = memory.restore(file.as_bytes(), RestoreTarget::Generation(1)).expect("restored");
    let expect = FILE.replace("{\"id\":3}", "{\"id\":33}").replace("AAAA", "-");
    assert_eq!(
        first,
        (expect.into_bytes(), RestoreOutcome::ByRecord { undone: vec![], restored: 1, missing: 0 })
    );
    // A record that was edited by hand is unchanged.
    let file = file.replace("\"id\":2", "\"id\":22");
    let (restored, outcome) =
        memory.restore(file.as_bytes(), RestoreTarget::Original).expect("restored");
    assert_eq!(text_of(&restored), file.replace("\"a\":\"-\"", "\"a\":\"AAAA\""));
    assert_eq!(outcome, RestoreOutcome::ByRecord { undone: vec![], restored: 1, missing: 1 });
}

#[test]
fn a_record_edited_twice_goes_back_twice() {
    let mut memory = Memory::default();
    let file = memory.compact(FILE.as_bytes(), swap(FILE.as_bytes(), "BBBB", "b"));
    let file = memory.compact(&file, swap(&file, "CCCC", "c"));
    let file = [b"{\"id\":0}\n".as_slice(), &file].concat();
    let (restored, outcome) = memory.restore(&file, RestoreTarget::Original).expect("restored");
    assert_eq!(text_of(&restored), format!("{{\"id\":0}}\n{FILE}"));
    assert_eq!(outcome, RestoreOutcome::ByRecord { undone: vec![], restored: 2, missing: 0 });
}

#[test]
fn records_that_are_alike_are_told_apart_by_order_or_left() {
    let mut memory = Memory::default();
    let file = b"{A}\n{B}\n{x}\n".as_slice();
    let splices = [swap(file, "A", "-"), swap(file, "B", "-")].concat();
    assert_eq!(memory.compact(file, splices), b"{-}\n{-}\n{x}\n");
    let both = memory.restore(b"{-}\n{y}\n{-}\n", RestoreTarget::Original).expect("restored");
    assert_eq!(
        both,
        (
            b"{A}\n{y}\n{B}\n".to_vec(),
            RestoreOutcome::ByRecord { undone: vec![], restored: 2, missing: 0 }
        )
    );
    let one = memory.restore(b"{-}\n{y}\n", RestoreTarget::Original).expect("restored");
    assert_eq!(
        one,
        (
            b"{-}\n{y}\n".to_vec(),
            RestoreOutcome::ByRecord { undone: vec![], restored: 0, missing: 2 }
        )
    );
}

/// The result of the first generation is still the beginning of that of the second.
#[test]
fn the_newest_generation_is_undone_first() {
    let mut memory = Memory::default();
    let file = memory.compact(b"{A}\n", swap(b"{A}\n", "A", "-"));
    let file = [file.as_slice(), b"{B}\n"].concat();
    let file = memory.compact(&file, swap(&file, "B", "+"));
    assert_eq!(file, b"{-}\n{+}\n");
    let all = memory.restore(&file, RestoreTarget::Original).expect("restored");
    assert_eq!(all, (b"{A}\n{B}\n".to_vec(), RestoreOutcome::Exact { undone: vec![2, 1] }));
    let one = memory.restore(&file, RestoreTarget::Generation(1)).expect("restored");
    assert_eq!(one, (b"{-}\n{B}\n".to_vec(), RestoreOutcome::Exact { undone: vec![2] }));
}

/// Edits that are only found after an exact step are undone in the same restore.
#[test]
fn a_file_changed_between_two_compactions_comes_back_past_the_change() {
    let mut memory = Memory::default();
    let file = memory.compact(FILE.as_bytes(), swap(FILE.as_bytes(), "AAAA", "-"));
    let file = text_of(&file).replace("{\"id\":3}", "{\"id\":33}").into_bytes();
    let small = memory.compact(&file, swap(&file, "BBBB", "-"));
    let original = FILE.replace("{\"id\":3}", "{\"id\":33}").into_bytes();
    let (whole, outcome) = memory.restore(&small, RestoreTarget::Original).expect("restored");
    assert_eq!(text_of(&whole), text_of(&original));
    assert_eq!(outcome, RestoreOutcome::ByRecord { undone: vec![2], restored: 1, missing: 0 });
    // The restore is archived as a generation: there is nothing more to restore.
    let splices = vec![Splice { span: span(0, small.len()), with: whole[..].into() }];
    assert_eq!(memory.compact(&small, splices), whole);
    memory.generations[2].recipe = "restore".into();
    let again = memory.restore(&whole, RestoreTarget::Original).expect("restored");
    let nothing = RestoreOutcome::ByRecord { undone: vec![], restored: 0, missing: 0 };
    assert_eq!(again, (whole.clone(), nothing));
    let third = memory.compact(&whole, swap(&whole, "CCCC", "-"));
    let (restored, _) = memory.restore(&third, RestoreTarget::Original).expect("restored");
    assert_eq!(text_of(&restored), text_of(&original));
}

#[test]
fn a_way_back_is_not_exact_while_older_stubs_stand() {
    let mut memory = Memory::default();
    let stub = format!("[epitome {}]", Ref::from_bytes(b"AAAA"));
    let file = memory.compact(FILE.as_bytes(), swap(FILE.as_bytes(), "AAAA", &stub));
    let changed = text_of(&file).replace("\"id\":1", "\"id\":11").into_bytes();
    let small = memory.compact(&changed, swap(&changed, "BBBB", "-"));
    let half = memory.restore(&small, RestoreTarget::Original).expect("restored");
    let outcome = RestoreOutcome::ByRecord { undone: vec![2], restored: 0, missing: 1 };
    assert_eq!(half, (changed, outcome));
    // A piece that was restored before the change leaves no trace: the restore is exact.
    let mut memory = Memory::default();
    memory.compact(FILE.as_bytes(), swap(FILE.as_bytes(), "AAAA", &stub));
    let changed = FILE.replace("\"id\":1", "\"id\":11").into_bytes();
    let small = memory.compact(&changed, swap(&changed, "BBBB", "-"));
    let whole = memory.restore(&small, RestoreTarget::Original).expect("restored");
    assert_eq!(whole, (changed, RestoreOutcome::Exact { undone: vec![2] }));
}

#[test]
fn one_piece_comes_back_alone() {
    let (mut memory, file) = twice();
    let (file, outcome) = memory.restore_block(&file, b"BBBB").expect("restored");
    assert_eq!(text_of(&file), FILE.replace("AAAA", "-").replace("CCCC", "-"));
    assert_eq!(outcome, RestoreOutcome::ByRecord { undone: vec![], restored: 1, missing: 0 });
    // A piece of an earlier generation, in a record that a later one did not touch.
    let (both, _) = memory.restore_block(&twice().1, b"AAAA").expect("restored");
    assert_eq!(text_of(&both), FILE.replace("BBBB", "-").replace("CCCC", "-"));
    // The restore is archived as a generation: then everything else can be restored, too.
    let compacted = twice().1;
    let splice = swap(&compacted, "\"b\":\"-\"", "\"b\":\"BBBB\"");
    assert_eq!(memory.compact(&compacted, splice), file);
    let appended = [file.as_slice(), b"{\"id\":4}\n"].concat();
    let (restored, outcome) = memory.restore(&appended, RestoreTarget::Original).expect("restored");
    assert_eq!(text_of(&restored), format!("{FILE}{{\"id\":4}}\n"));
    assert_eq!(outcome, RestoreOutcome::Exact { undone: vec![3, 2, 1] });
    let (same, outcome) = memory.restore_block(&file, b"BBBB").expect("restored");
    assert_eq!(
        (same, outcome),
        (file, RestoreOutcome::ByRecord { undone: vec![], restored: 0, missing: 0 })
    );
}

#[test]
fn an_earlier_piece_comes_back_from_under_a_later_edit_of_its_record() {
    let mut memory = Memory::default();
    let file = memory.compact(FILE.as_bytes(), swap(FILE.as_bytes(), "CCCC", "c"));
    let file = memory.compact(&file, swap(&file, "BBBB", "b"));
    let (restored, outcome) = memory.restore_block(&file, b"CCCC").expect("restored");
    assert_eq!(text_of(&restored), FILE.replace("BBBB", "b"));
    assert_eq!(outcome, RestoreOutcome::ByRecord { undone: vec![], restored: 1, missing: 0 });
}

#[test]
fn what_cannot_be_restored_is_said() {
    let (mut memory, file) = twice();
    let kind = |done: Result<(Vec<u8>, RestoreOutcome), Error>| done.expect_err("it cannot").kind();
    let number = RestoreTarget::Generation(9);
    assert_eq!(kind(memory.restore(&file, number)), ErrorKind::NotFound);
    assert_eq!(kind(memory.restore_block(&file, b"never")), ErrorKind::NotFound);
    assert_eq!(
        kind(Memory::default().restore(&file, RestoreTarget::Original)),
        ErrorKind::NotFound
    );
    // A generation from another history of this file.
    let mut other = memory.generations[0].clone();
    other.number = 3;
    other.after = Digest::from_bytes(b"another file");
    memory.generations.push(other);
    assert_eq!(kind(memory.restore(&file, RestoreTarget::Generation(3))), ErrorKind::NotFound);
    memory.generations.pop();
    // Missing bytes, and wrong bytes.
    let (key, raw) = ((1, Hash::compute(b"AAAA")), b"AAAA".to_vec());
    memory.blobs.remove(&key);
    let err = memory.restore(&file, RestoreTarget::Original).expect_err("it cannot");
    assert_eq!(err.kind(), ErrorKind::Archive);
    assert!(err.to_string().starts_with("generation 1 of this session is not in the archive"));
    memory.blobs.insert(key, b"XXXX".to_vec());
    let err = memory.restore(&file, RestoreTarget::Original).expect_err("it cannot");
    assert_eq!(err.kind(), ErrorKind::Archive);
    assert_eq!(err.to_string(), "undoing generation 1 does not give what was there");
    memory.blobs.insert(key, raw);
    assert_eq!(
        memory.restore(&file, RestoreTarget::Original).expect("restored").0,
        FILE.as_bytes()
    );
}

#[test]
fn a_file_is_read_as_it_was_when_it_was_opened() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("s.jsonl");
    std::fs::write(&path, "0123456789").expect("written");
    let source = FileSource::open(&path).expect("a file");
    std::fs::write(&path, "0123456789more").expect("written");
    let reads = [(0, 4), (4, 99), (9, 9), (10, 20), (20, 30), (7, 3)];
    let got = reads.map(|(from, to)| text_of(&source.read(from..to)).to_owned());
    assert_eq!(got, ["0123", "456789", "", "", "", ""]);
    assert!(source.failure().is_none());
    std::fs::write(&path, "01234").expect("cut");
    assert_eq!(&*source.read(3..8), b"34");
    assert_eq!(source.failure().map(|err| err.kind()), Some(ErrorKind::Changed));
}
