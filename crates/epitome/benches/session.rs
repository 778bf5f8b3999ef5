//! Speed of the parts of a compaction over one session of Claude Code with 60 MB.
//!
//! `cargo bench -p epitome`. The whole program, with its peak of memory: `cargo lab bench`.

use std::collections::HashMap;
use std::sync::OnceLock;

use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use epitome::archive::{Generation, Hash, UndoData};
use epitome::compaction::PreparedCompaction;
use epitome::storage::{Blobs, RestoreTarget, Spliced, restore};
use epitome::{Error, Loaded};
use epitome_model::{Counter, Source, Tokens};
use epitome_passes::{Recipe, built_in};
use epitome_tokens::{Estimate, O200k};

fn main() {
    divan::main();
}

/// Bytes of the session.
const SIZE: usize = 60_000_000;

fn bytes() -> &'static [u8] {
    static BYTES: OnceLock<Vec<u8>> = OnceLock::new();
    BYTES.get_or_init(|| {
        let recorded = String::from_utf8(fixtures::get("claude", "pricing").bytes());
        fixtures::grown::claude(&recorded.expect("a recorded session is text"), SIZE).into_bytes()
    })
}

fn session() -> Loaded<&'static [u8]> {
    Loaded::read(bytes(), Some("claude")).expect("a session of Claude Code")
}

fn recipe() -> Recipe {
    built_in("epitome").expect("the default recipe")
}

#[divan::bench(sample_count = 10)]
fn lines(bencher: Bencher<'_, '_>) {
    bencher
        .counter(BytesCount::of_slice(bytes()))
        .bench(|| memchr::memchr_iter(b'\n', black_box(bytes())).count());
}

#[divan::bench(sample_count = 10)]
fn read(bencher: Bencher<'_, '_>) {
    bencher.counter(BytesCount::of_slice(bytes())).bench(session);
}

#[divan::bench(sample_count = 10)]
fn plan_o200k(bencher: Bencher<'_, '_>) {
    plan(bencher, &O200k::new());
}

#[divan::bench(sample_count = 10)]
fn plan_estimate(bencher: Bencher<'_, '_>) {
    plan(bencher, &Estimate::new());
}

/// Planning, reading the result and checking the invariants: everything but the first read.
fn plan(bencher: Bencher<'_, '_>, counter: &dyn Counter) {
    let (session, recipe) = (session(), recipe());
    // Loading the vocabulary is not planning.
    counter.count("x");
    let bencher = bencher.counter(BytesCount::of_slice(bytes()));
    bencher.bench(|| {
        let planned =
            PreparedCompaction::new(&session, &recipe, counter).expect("the edits can be written");
        planned.splices.len()
    });
}

#[divan::bench(sample_count = 10)]
fn write(bencher: Bencher<'_, '_>) {
    let (session, recipe) = (session(), recipe());
    let planned =
        PreparedCompaction::new(&session, &recipe, &Estimate::new()).expect("it can be planned");
    let spliced = planned.spliced().expect("the splices lie apart");
    bencher.counter(BytesCount::of_slice(bytes())).bench(|| {
        let mut hasher = Hasher(blake3::Hasher::new());
        spliced.copy_to(&mut hasher).expect("a hasher takes everything");
        hasher.0.finalize()
    });
}

#[divan::bench(sample_count = 10)]
fn back(bencher: Bencher<'_, '_>) {
    let (session, recipe) = (session(), recipe());
    let planned =
        PreparedCompaction::new(&session, &recipe, &Estimate::new()).expect("it can be planned");
    let spliced = planned.spliced().expect("the splices lie apart");
    let removed = planned.splices.iter().map(|(splice, _)| {
        let raw = session.source.at(splice.span).into_owned();
        (Hash::compute(&raw), raw)
    });
    let removed = Removed(removed.collect());
    let way = UndoData::between(&session.source, &spliced).expect("memory is read");
    let generations = [generation(way)];
    let after = spliced.read(0..Source::len(&spliced)).into_owned();
    bencher.counter(BytesCount::of_slice(bytes())).bench(|| {
        let back =
            restore(&after, &generations, &removed, RestoreTarget::Original).expect("it is back");
        Spliced::new(&after, back.splices).map(|spliced| Source::len(&spliced))
    });
}

/// The removed bytes, in memory, so that the speed of the archive is not measured.
struct Removed(HashMap<Hash, Vec<u8>>);

impl Blobs for Removed {
    fn blob(&self, _generation: u64, hash: &Hash) -> Result<Vec<u8>, Error> {
        Ok(self.0[hash].clone())
    }
}

fn generation(way: UndoData) -> Generation {
    Generation {
        number: 1,
        agent: "claude".into(),
        session: "s".into(),
        path: "s.jsonl".into(),
        recipe: "epitome".into(),
        made: jiff::Timestamp::UNIX_EPOCH,
        run: None,
        part_of: None,
        parts: Vec::new(),
        epitome: "0".into(),
        before: way.before,
        after: way.after,
        records: way.records,
        tokens_before: Tokens(0),
        tokens_after: Tokens(0),
        edits: Default::default(),
        shared: Some(way.shared),
        forgotten: Vec::new(),
        imported: None,
    }
}

struct Hasher(blake3::Hasher);

impl std::io::Write for Hasher {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
