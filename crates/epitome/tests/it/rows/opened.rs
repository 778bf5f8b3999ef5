//! An operation resolves the address of a session once, and copies the rows of each part once.

use std::sync::atomic::{AtomicUsize, Ordering};

use epitome::Config;
use epitome::ops::{Compact, OpenSession, Restore};
use epitome_passes::built_in;
use epitome_tokens::Estimate;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use super::World;

/// How often a session was resolved, its rows copied, and read.
#[derive(Default)]
struct Counts {
    resolved: AtomicUsize,
    copied: AtomicUsize,
    read: AtomicUsize,
}

/// Counts tracing spans by name.
struct Counting(&'static Counts);

impl Subscriber for Counting {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let counter = match span.metadata().name() {
            "place.resolve" => Some(&self.0.resolved),
            "rows.export" => Some(&self.0.copied),
            "session.read" => Some(&self.0.read),
            _ => None,
        };
        if let Some(counter) = counter {
            counter.fetch_add(1, Ordering::Relaxed);
        }
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, _: &Event<'_>) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// The counts for `work`: resolved, copied, read.
fn counted(work: impl FnOnce()) -> (usize, usize, usize) {
    let counts: &'static Counts = Box::leak(Box::default());
    tracing::subscriber::with_default(Counting(counts), work);
    let count = |it: &AtomicUsize| it.load(Ordering::Relaxed);
    (count(&counts.resolved), count(&counts.copied), count(&counts.read))
}

/// The database holds two documents of the session: its conversation, and its log.
#[test]
fn an_operation_resolves_a_session_once_and_copies_its_rows_once() {
    let world = World::new();
    let config = Config::from_home(world.dir.path());
    let address = world.address("ses_a");
    let recipe = built_in("transcript").expect("a built-in recipe");
    let run = config.begin_run("compact");
    let compact = Compact::new(&recipe, &Estimate, &run);
    let before = world.all();
    let plan = counted(|| {
        let session = OpenSession::new(&config, &address);
        assert_eq!(session.missing_files(), Vec::<&std::path::Path>::new());
        compact.plan(&session, |_, _| {}).expect("a plan");
    });
    assert_eq!(plan, (1, 2, 2));
    assert_eq!(world.all(), before, "a plan writes nothing");
    let written = counted(|| {
        let session = OpenSession::new(&config, &address);
        assert_eq!(session.missing_files(), Vec::<&std::path::Path>::new());
        let report = compact.run(&session).expect("a compaction");
        assert_eq!(report.file.generation, Some(1));
    });
    assert_eq!(written, (1, 2, 2));
    assert_ne!(world.all(), before);
    let restored = counted(|| {
        let session = OpenSession::new(&config, &address);
        Restore::default().run(&session).expect("a restore");
    });
    assert_eq!(restored, (1, 2, 2));
    assert_eq!(world.all(), before);
}

#[test]
fn an_operation_resolves_a_session_in_a_file_once() {
    let world = World::new();
    let config = Config::from_home(world.dir.path());
    let path = world.dir.path().join("one.jsonl");
    let bytes = fixtures::get("claude", "pricing").bytes();
    std::fs::write(&path, &bytes).expect("a session");
    let recipe = built_in("transcript").expect("a built-in recipe");
    let run = config.begin_run("compact");
    let written = counted(|| {
        let session = OpenSession::new(&config, &path);
        Compact::new(&recipe, &Estimate, &run).run(&session).expect("a compaction");
    });
    assert_eq!(written, (1, 0, 1));
    let restored = counted(|| {
        let session = OpenSession::new(&config, &path);
        Restore::default().run(&session).expect("a restore");
    });
    assert_eq!(restored, (1, 0, 1));
    assert_eq!(std::fs::read(&path).expect("a session"), bytes);
}
