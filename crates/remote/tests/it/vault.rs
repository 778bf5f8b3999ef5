//! The vaults of machines are pushed, and pulled by others.

use std::fs;
use std::path::PathBuf;

use epitome_error::Result;
use epitome_remote::{
    ObjectPackStore, PushRecord, SealKey, VaultPushReport, hidden_folder, pull_vault, push_vault,
};
use epitome_store::archive::{FolderStore, SessionKey};
use epitome_store::forgotten::ForgottenText;
use epitome_store::vault::{Committed, FileKey, ReceivedVersions, StagedVersions, Vault};
use jiff::Timestamp;

use crate::machine::{BEFORE, Machine};
use crate::network::{Cut, Direction, Network};
use crate::server::Server;

/// A machine that keeps versions of one file.
struct Keeper {
    machine: Machine,
    vault: Vault,
    /// The contents of its versions.
    seen: Vec<Vec<u8>>,
}

impl Keeper {
    fn new(seal: &SealKey, seed: &str) -> Keeper {
        let machine = Machine::new(seal);
        let vault = Vault::create(machine.home.path(), seed).expect("a vault");
        Keeper { machine, vault, seen: Vec::new() }
    }

    fn path(&self) -> PathBuf {
        self.machine.home.path().join("s.jsonl")
    }

    fn key(&self) -> FileKey {
        FileKey {
            machine: self.vault.machine().to_owned(),
            agent: "pi".into(),
            session: "s".into(),
            part: None,
            path: self.path(),
        }
    }

    fn keep(&mut self, content: &[u8]) {
        let path = self.path();
        fs::write(&path, content).expect("a file");
        let mut batch = self.vault.begin(Timestamp::UNIX_EPOCH);
        let key = batch.key("pi", "s", None, &path);
        batch.put_file(&key, &path).expect("it is read");
        assert!(matches!(batch.commit().expect("written"), Committed::Written(_)));
        self.seen.push(content.to_vec());
    }

    fn record(&self, name: &str) -> PushRecord {
        PushRecord::open(self.machine.home.path().join("vault").join(name))
    }

    fn folder(&self) -> FolderStore {
        FolderStore::new(Vault::folder_in(self.machine.home.path()))
    }

    fn push(&self, remote: &ObjectPackStore) -> Result<VaultPushReport> {
        push_vault(&self.vault, &self.folder(), remote, &mut self.record("pushed-x"))
    }

    fn pull(&mut self, remote: &ObjectPackStore) -> Result<ReceivedVersions> {
        let staged = StagedVersions::new(self.machine.home.path());
        let pulled = pull_vault(&self.vault, remote, self.record("pulled-x"), staged)?;
        let received = self.vault.receive(pulled.staged, &|_| true)?;
        if received.is_complete() {
            pulled.receipt.note();
        }
        pulled.unread.into_iter().next().map_or(Ok(received), Err)
    }

    /// Checks that all versions of another machine are here, and whole.
    fn check(&self, of: &Keeper) {
        for (n, expect) in of.seen.iter().enumerate() {
            let mut bytes = Vec::new();
            let read = self.vault.write_version(&of.key(), n as u64 + 1, &mut bytes);
            read.expect("a version");
            assert!(bytes == *expect, "version {}", n + 1);
        }
        assert_eq!(self.vault.verify().faults.len(), 0);
    }
}

fn numbers(report: &VaultPushReport) -> (u64, u64, u64) {
    (report.pushed, report.known, report.deleted)
}

#[test]
fn two_machines_have_the_versions_of_each_other() {
    let server = Server::start();
    let seal = SealKey::generate();
    let (mut one, mut two) = (Keeper::new(&seal, "one"), Keeper::new(&seal, "two"));
    one.keep(b"the first version");
    one.keep(b"the first version, and more");
    two.keep(b"of another machine");
    let (of_one, of_two) =
        (one.machine.remote(&server, server.address), two.machine.remote(&server, server.address));
    assert_eq!(numbers(&one.push(&of_one).expect("pushed")), (2, 0, 0));
    assert_eq!(numbers(&two.push(&of_two).expect("pushed")), (1, 0, 0));
    assert_eq!(two.pull(&of_two).expect("pulled").added, [(one.key(), 2)]);
    assert_eq!(one.pull(&of_one).expect("pulled").added, [(two.key(), 1)]);
    two.check(&one);
    one.check(&two);
    // What was pulled is neither pushed nor pulled again.
    assert_eq!(numbers(&two.push(&of_two).expect("pushed")), (0, 1, 0));
    assert_eq!(two.pull(&of_two).expect("pulled"), ReceivedVersions::default());
    // After some time without a network, only what is new is copied.
    for n in 0..3 {
        one.keep(format!("version {n}").as_bytes());
    }
    assert_eq!(numbers(&one.push(&of_one).expect("pushed")), (3, 2, 0));
    assert_eq!(two.pull(&of_two).expect("pulled").added, [(one.key(), 3)]);
    two.check(&one);
}

#[test]
fn a_machine_that_lost_its_packs_pulls_them() {
    let server = Server::start();
    let mut one = Keeper::new(&SealKey::generate(), "one");
    one.keep(b"the first version");
    one.keep(b"the second");
    let remote = one.machine.remote(&server, server.address);
    one.push(&remote).expect("pushed");
    let folder = Vault::folder_in(one.machine.home.path()).join(one.vault.machine());
    fs::remove_dir_all(folder).expect("removed");
    one.vault.refresh().expect("a listing");
    assert_eq!(one.vault.files().count(), 0);
    assert_eq!(numbers(&one.push(&remote).expect("pushed")), (0, 0, 0), "nothing is deleted there");
    assert_eq!(one.pull(&remote).expect("pulled").versions(), 2);
    one.check(&one);
}

#[test]
fn what_was_forgotten_is_deleted_there_after_it_was_replaced() {
    let server = Server::start();
    let seal = SealKey::generate();
    let mut one = Keeper::new(&seal, "one");
    let text = "a text that is a secret";
    one.keep(text.as_bytes());
    one.keep(format!("{text}, and more").as_bytes());
    one.keep(b"without it");
    let remote = one.machine.remote(&server, server.address);
    assert_eq!(numbers(&one.push(&remote).expect("pushed")), (3, 0, 0));
    let before = server.objects();
    one.vault.mask(&ForgottenText::new(text).expect("a text")).expect("masked");
    let pushed = numbers(&one.push(&remote).expect("pushed"));
    assert_eq!((pushed.0, pushed.2 >= 2), (1, true), "{pushed:?}");
    let after = server.objects();
    let stay = before.iter().filter(|object| after.contains(object)).count();
    assert_eq!(stay as u64, 2 * (3 - pushed.2), "names and bytes are gone");
    let mut two = Keeper::new(&seal, "two");
    two.pull(&remote).expect("pulled");
    let mut first = Vec::new();
    two.vault.write_version(&one.key(), 1, &mut first).expect("version 1");
    assert_eq!(String::from_utf8_lossy(&first), "*".repeat(text.len()));
}

#[test]
fn a_copy_of_a_home_deletes_nothing_that_it_did_not_push() {
    let server = Server::start();
    let seal = SealKey::generate();
    let (mut one, mut copy) = (Keeper::new(&seal, "same"), Keeper::new(&seal, "same"));
    assert_eq!(one.vault.machine(), copy.vault.machine());
    one.keep(b"of the one");
    copy.keep(b"of the other");
    let remote = one.machine.remote(&server, server.address);
    assert_eq!(numbers(&one.push(&remote).expect("pushed")), (1, 0, 0));
    assert_eq!(numbers(&copy.push(&remote).expect("pushed")), (1, 0, 0));
    let none = Default::default();
    copy.keep(b"and more");
    let number = std::collections::BTreeMap::from([(copy.key(), [1].into())]);
    copy.vault.remove(&number).expect("removed");
    assert_eq!(numbers(&copy.push(&remote).expect("pushed")), (1, 0, 1));
    let mut two = Keeper::new(&seal, "two");
    two.seen = none;
    let received = two.pull(&remote).expect("pulled");
    assert_eq!(received.versions() + received.known, 2, "{received:?}");
}

#[test]
fn a_pack_that_is_damaged_here_does_not_reach_the_others() {
    let server = Server::start();
    let mut one = Keeper::new(&SealKey::generate(), "one");
    one.keep(b"the first version");
    let remote = one.machine.remote(&server, server.address);
    one.push(&remote).expect("pushed");
    let pack =
        Vault::folder_in(one.machine.home.path()).join(one.vault.machine()).join("000001.pack");
    let mut bytes = fs::read(&pack).expect("a pack");
    bytes[40] ^= 1;
    fs::write(&pack, bytes).expect("a pack");
    let pushed = one.push(&remote).expect("pushed");
    assert_eq!((numbers(&pushed), pushed.damaged.len()), ((0, 0, 0), 1));
}

#[test]
fn nothing_in_the_bucket_reveals_a_version() {
    let server = Server::start();
    let mut one = Keeper::new(&SealKey::generate(), "one");
    one.keep(b"a secret version");
    one.push(&one.machine.remote(&server, server.address)).expect("pushed");
    for object in server.objects() {
        let bytes = fs::read(&object).expect("an object");
        let text = format!("{} {}", object.display(), String::from_utf8_lossy(&bytes));
        for secret in ["vault", one.vault.machine(), "000001", "s.jsonl", "EPITPACK", "secret"] {
            assert!(!text.contains(secret), "{secret} in {}", object.display());
        }
    }
}

/// Copies of a session's archive are deleted by a name that says nothing of the session.
#[test]
fn copies_of_the_archive_are_deleted_by_hidden_names() {
    let server = Server::start();
    let machine = Machine::new(&SealKey::generate());
    let (key, other) = (SessionKey::new("claude", "0f3c9a52"), SessionKey::new("claude", "other"));
    machine.compact(&key, BEFORE, b"a long result");
    machine.compact(&other, BEFORE, b"a long result");
    let remote = machine.remote(&server, server.address);
    assert_eq!(machine.push(&remote).expect("pushed").pushed, 2);
    let folder = hidden_folder(&machine.key, &key);
    assert!(!folder.contains("claude") && !folder.contains("0f3c9a52"), "{folder}");
    let no_such_pack = std::collections::BTreeSet::from(["0".repeat(64)]);
    assert_eq!(remote.forget(&folder, Some(&no_such_pack)).expect("deleted"), 0);
    assert_eq!(remote.forget(&folder, None).expect("deleted"), 1);
    assert_eq!(remote.forget(&folder, None).expect("deleted"), 0);
    assert_eq!(server.objects().len(), 2, "the other session stays");
    assert_eq!(machine.push(&remote).expect("pushed").pushed, 1);
}

/// The network is cut after any number of bytes: another machine has whole versions or none, and a
/// repetition completes it.
#[test]
fn a_cut_network_leaves_whole_versions_or_none() {
    let server = Server::start();
    let network = Network::new(&server);
    let seal = SealKey::generate();
    let mut one = Keeper::new(&seal, "one");
    one.keep(b"the first version");
    one.keep(b"the first version, and more");
    for (n, bytes) in [0, 300, 700, 1_500, 3_000, 5_000].into_iter().enumerate() {
        for direction in [Direction::ToServer, Direction::FromServer] {
            let folder = format!("{direction:?}-{bytes}");
            let through = one.machine.remote_in(&folder, &server.options(network.address));
            let direct = one.machine.remote_in(&folder, &server.options(server.address));
            fs::remove_file(one.machine.home.path().join("vault/pushed-x")).ok();
            network.cut(direction, bytes, Cut::Forever);
            let pushed = one.push(&through);
            network.heal();
            let mut two = Keeper::new(&seal, &format!("two {n} {direction:?}"));
            let whole = two.pull(&direct).map(|received| received.versions()).unwrap_or_default();
            assert!(pushed.is_err() || whole == 2, "{folder}: {whole}");
            one.push(&direct).expect("pushed");
            let mut three = Keeper::new(&seal, &format!("three {n} {direction:?}"));
            let through = three.machine.remote_in(&folder, &server.options(network.address));
            network.cut(direction, bytes, Cut::Forever);
            let pulled = three.pull(&through);
            network.heal();
            let here: u64 = three.vault.versions(&one.key()).count() as u64;
            assert!(here == 2 || pulled.is_err(), "{folder}: {here}");
            assert_eq!(three.vault.verify().faults.len(), 0, "{folder}");
            three.pull(&direct).expect("pulled");
            three.check(&one);
        }
    }
}
