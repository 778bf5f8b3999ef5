//! The network fails, keys are refused, listings lag, objects are damaged: a pack is whole or
//! absent.

use std::sync::atomic::Ordering;

use epitome_error::ErrorKind;
use epitome_remote::{ObjectPackStore, SealKey};
use epitome_store::Archive;
use epitome_store::archive::SessionKey;

use crate::machine::{BEFORE, Machine};
use crate::network::{Cut, Direction, Network};
use crate::server::{Server, with_secret};

/// A machine that compacted a session, the session as it is now, and a server.
struct Case {
    server: Server,
    network: Network,
    machine: Machine,
    key: SessionKey,
    after: Vec<u8>,
}

impl Case {
    fn new() -> Case {
        let server = Server::start();
        let network = Network::new(&server);
        let machine = Machine::new(&SealKey::generate());
        let key = SessionKey::new("claude", "0f3c9a52");
        let after = machine.compact(&key, BEFORE, b"a long result");
        Case { server, network, machine, key, after }
    }

    fn remote_of(&self, machine: &Machine, folder: &str) -> ObjectPackStore {
        machine.remote_in(folder, &self.server.options(self.network.address))
    }

    /// Pulls to a new machine, and checks that the packs restore the session, if there are any.
    /// Returns their number.
    fn packs_there(&self, folder: &str) -> usize {
        let machine = Machine::new(&self.machine.key);
        let remote = machine.remote_in(folder, &self.server.options(self.server.address));
        let pulled = machine.pull(&remote, None).expect("pulled");
        machine.verify();
        let added = pulled.packs.added.len();
        if added > 0 {
            assert_eq!(machine.restored(&self.key, &self.after), BEFORE);
        }
        added
    }

    /// Pushes while the network is cut after `bytes`. Returns whether the cut was reached.
    fn push_cut(&self, direction: Direction, bytes: i64, cut: Cut) -> bool {
        let folder = format!("{direction:?}-{cut:?}-{bytes}");
        let remote = self.remote_of(&self.machine, &folder);
        self.network.cut(direction, bytes, cut);
        let pushed = epitome_remote::push(
            &self.machine.folder(),
            &remote,
            &mut epitome_remote::PushRecord::open(self.machine.home.path().join("none/record")),
        );
        let was_cut = !self.network.is_pending(direction);
        self.network.heal();
        let there = self.packs_there(&folder);
        match pushed {
            Ok(report) => assert_eq!((report.pushed + report.known, there), (1, 1)),
            Err(_) => assert!(there <= 1, "{there}"),
        }
        // The next push completes it.
        let remote = self.remote_of(&self.machine, &folder);
        self.machine.push(&remote).expect("pushed");
        assert_eq!(self.packs_there(&folder), 1, "{folder}");
        was_cut
    }

    /// Pulls while the network is cut after `bytes`. Returns whether the cut was reached.
    fn pull_cut(&self, direction: Direction, bytes: i64, cut: Cut) -> bool {
        let machine = Machine::new(&self.machine.key);
        let remote = self.remote_of(&machine, "pull");
        self.network.cut(direction, bytes, cut);
        let pulled = machine.pull(&remote, Some(&self.key));
        let was_cut = !self.network.is_pending(direction);
        self.network.heal();
        machine.verify();
        let packs = machine.archive().generations(&self.key).expect("generations").whole.len();
        match pulled {
            // A name whose request failed is reported, and its pack is not missed silently.
            Ok(report) => assert_eq!(packs + report.unread.len(), 1),
            Err(_) => assert_eq!(packs, 0),
        }
        machine.pull(&remote, Some(&self.key)).expect("pulled");
        assert_eq!(machine.restored(&self.key, &self.after), BEFORE);
        was_cut
    }
}

/// With 1, connections are cut after every byte, which takes an hour and a half of a busy machine.
const PUSH_STEP: usize = 401;
const PULL_STEP: usize = 199;

/// Calls `cut` with each `step`th number of bytes, until the cut is not reached.
fn each(step: usize, mut cut: impl FnMut(i64) -> bool) {
    let numbers = (0..).step_by(step).take_while(|bytes| cut(*bytes)).count();
    assert!(numbers * step > 500, "{numbers}");
}

fn push_cut_everywhere(step: usize) {
    let case = Case::new();
    for direction in [Direction::ToServer, Direction::FromServer] {
        for how in [Cut::Once, Cut::Forever] {
            each(step, |bytes| case.push_cut(direction, bytes, how));
        }
    }
}

fn pull_cut_everywhere(step: usize) {
    let case = Case::new();
    let remote = case.remote_of(&case.machine, "pull");
    case.machine.push(&remote).expect("pushed");
    for direction in [Direction::ToServer, Direction::FromServer] {
        for how in [Cut::Once, Cut::Forever] {
            each(step, |bytes| case.pull_cut(direction, bytes, how));
        }
    }
}

#[test]
fn a_push_that_is_cut_leaves_a_whole_pack_or_none() {
    push_cut_everywhere(PUSH_STEP);
}

#[test]
fn a_pull_that_is_cut_leaves_a_whole_pack_or_none() {
    pull_cut_everywhere(PULL_STEP);
}

#[test]
fn a_key_that_is_refused_is_an_error_that_says_what_to_check() {
    let case = Case::new();
    let remote = case.machine.remote_with(&with_secret(case.server.address, "expired"));
    let pushed = case.machine.push(&remote).expect_err("refused");
    let pulled = case.machine.pull(&remote, None).expect_err("refused");
    let joined = remote.join().expect_err("refused");
    for err in [pushed, pulled, joined] {
        assert_eq!(err.kind(), ErrorKind::NoPermission, "{err:?}");
        assert!(err.to_string().starts_with("the remote archive refuses access"), "{err}");
        assert!(err.hint().expect("a hint").contains("AWS_ACCESS_KEY_ID"), "{err:?}");
    }
}

#[test]
fn a_listing_that_lags_loses_nothing() {
    let case = Case::new();
    let remote = case.remote_of(&case.machine, "lag");
    case.machine.push(&remote).expect("pushed");
    case.server.lags.store(true, Ordering::SeqCst);
    // Another process finds the pack by its name, without a listing.
    let other = case.remote_of(&case.machine, "lag");
    let again = case.machine.push(&other).expect("pushed");
    assert_eq!((again.pushed, again.known), (0, 1));
    let second = Machine::new(&case.machine.key);
    let pulled = second.pull(&case.remote_of(&second, "lag"), None).expect("pulled");
    assert_eq!(pulled.packs.added.len(), 0);
    case.server.lags.store(false, Ordering::SeqCst);
    assert_eq!(case.packs_there("lag"), 1);
}

#[test]
fn writers_of_one_session_use_different_numbers_although_listings_lag() {
    let case = Case::new();
    case.server.lags.store(true, Ordering::SeqCst);
    let key = SessionKey::new("claude", "s");
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let (case, key) = (&case, &key);
            scope.spawn(move || {
                let remote = case.remote_of(&case.machine, "race");
                let archive = Archive::in_store(remote);
                for n in 0..2 {
                    let text = format!("writer {writer} pack {n}");
                    Machine::add(&archive, key, text.as_bytes());
                }
            });
        }
    });
    case.server.lags.store(false, Ordering::SeqCst);
    let archive = Archive::in_store(case.remote_of(&case.machine, "race"));
    let found = archive.generations(&key).expect("generations");
    assert!(found.damaged.is_empty(), "{:?}", found.damaged);
    let numbers: Vec<u64> = found.whole.iter().map(|it| it.number).collect();
    assert_eq!(numbers, (1..=8).collect::<Vec<u64>>());
    let report = archive.verify().expect("a report");
    assert_eq!((report.packs, report.blobs, report.faults.len()), (8, 8, 0));
}

#[test]
fn a_damaged_or_exchanged_object_is_never_read_as_a_pack() {
    let case = Case::new();
    let other = SessionKey::new("claude", "other");
    case.machine.compact(&other, BEFORE, b"\"two\":\"a long");
    let remote = case.remote_of(&case.machine, "team");
    case.machine.push(&remote).expect("pushed");
    let objects = case.server.objects();
    let originals: Vec<Vec<u8>> =
        objects.iter().map(|path| std::fs::read(path).expect("an object")).collect();
    let check = || {
        let machine = Machine::new(&case.machine.key);
        let result = machine.pull(&case.remote_of(&machine, "team"), None);
        machine.verify();
        let packs = machine.archive().verify().expect("a report").packs;
        let faults = match &result {
            Ok(report) => report.unread.len(),
            Err(err) => usize::from(err.kind() == ErrorKind::Archive),
        };
        assert!(faults > 0 && packs < 2, "{packs} packs, {result:?}");
    };
    assert_eq!(objects.len(), 4);
    for (at, object) in objects.iter().enumerate() {
        for byte in (0..originals[at].len()).step_by(53) {
            let mut damaged = originals[at].clone();
            damaged[byte] ^= 1;
            std::fs::write(object, damaged).expect("damaged");
            check();
        }
        for (other, original) in originals.iter().enumerate().filter(|(other, _)| *other != at) {
            println!("{other} over {at}");
            std::fs::write(object, original).expect("exchanged");
            check();
        }
        std::fs::write(object, &originals[at]).expect("whole again");
    }
    let machine = Machine::new(&case.machine.key);
    let pulled = machine.pull(&case.remote_of(&machine, "team"), None).expect("pulled");
    assert_eq!(pulled.packs.added.len(), 2);
}
