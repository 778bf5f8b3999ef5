//! A machine with an archive and a session.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use epitome_error::Result;
use epitome_formats::Spliced;
use epitome_model::{Source, Span, Splice, Tokens};
use epitome_remote::{
    Address, ObjectPackStore, PullReport, PushRecord, PushReport, Retries, SealKey,
};
use epitome_store::Archive;
use epitome_store::archive::{About, Draft, FolderStore, Generation, SessionKey, UndoData};
use epitome_store::restore::{RestoreTarget, restore};

use crate::server::{BUCKET, Server};

/// Failed requests are repeated at once, so that tests take no time.
pub const AT_ONCE: Retries = Retries {
    count: 2,
    first_wait: Duration::from_millis(1),
    until: Duration::from_secs(10),
    connect: Duration::from_secs(5),
    request: Duration::from_secs(120),
};

/// A session before its compaction.
pub const BEFORE: &[u8] = b"{\"one\":1}\n{\"two\":\"a long result\"}\n{\"three\":3}\n";

/// A machine: the folder that would be EPITOME_HOME, and the session's file as it has it.
pub struct Machine {
    pub home: tempfile::TempDir,
    pub key: SealKey,
}

impl Machine {
    pub fn new(key: &SealKey) -> Machine {
        Machine { home: tempfile::tempdir().expect("a folder"), key: key.clone() }
    }

    pub fn archive(&self) -> Archive {
        Archive::new(self.home.path())
    }

    pub fn folder(&self) -> FolderStore {
        FolderStore::new(Archive::folder_in(self.home.path()))
    }

    /// Removes `text` from a session, archives it, and returns the smaller session.
    pub fn compact(&self, key: &SessionKey, before: &[u8], text: &[u8]) -> Vec<u8> {
        Machine::compact_into(&self.archive(), key, before, text)
    }

    /// Adds a generation that removed `text`.
    pub fn add(archive: &Archive, key: &SessionKey, text: &[u8]) {
        Machine::compact_into(archive, key, text, text);
    }

    fn compact_into(archive: &Archive, key: &SessionKey, before: &[u8], text: &[u8]) -> Vec<u8> {
        let at = before.windows(text.len()).position(|it| it == text).expect("it has the text");
        let span = Span { start: at as u64, end: (at + text.len()) as u64 };
        let splice = Splice { span, with: b"stub".as_slice().into() };
        let after = Spliced::new(&before, vec![splice]).expect("spliced");
        let undo = UndoData::between(&before, &after).expect("undo data");
        let mut pack = archive.begin(key).expect("a pack");
        pack.put(text, About::default()).expect("put");
        let draft = Draft {
            path: "s.jsonl".into(),
            recipe: "test".into(),
            made: jiff::Timestamp::UNIX_EPOCH,
            run: None,
            part_of: None,
            parts: Vec::new(),
            before: undo.before,
            after: undo.after,
            records: undo.records,
            tokens_before: Tokens(3),
            tokens_after: Tokens(2),
            edits: Default::default(),
            shared: Some(undo.shared),
        };
        pack.commit(draft).expect("a generation");
        after.read(0..after.len()).into_owned()
    }

    /// The original of a session from the packs of this machine.
    pub fn restored(&self, key: &SessionKey, session: &[u8]) -> Vec<u8> {
        let archive = self.archive();
        let generations = archive.generations(key).expect("generations").whole;
        let target = RestoreTarget::Original;
        let found = restore(&session, &generations, &archive.blobs(key), target).expect("restored");
        let restored = Spliced::new(&session, found.splices).expect("spliced");
        restored.read(0..restored.len()).into_owned()
    }

    /// The remote archive, reached at `address`.
    pub fn remote(&self, server: &Server, address: SocketAddr) -> ObjectPackStore {
        self.remote_with(&server.options(address))
    }

    pub fn remote_with(&self, options: &[(String, String)]) -> ObjectPackStore {
        self.remote_in("team", options)
    }

    /// The remote archive in a folder of the bucket.
    pub fn remote_in(&self, folder: &str, options: &[(String, String)]) -> ObjectPackStore {
        let url: Address = format!("s3://{BUCKET}/{folder}").parse().expect("an address");
        let staging = self.home.path().join("cache/remote");
        ObjectPackStore::new(&url, options, AT_ONCE, self.key.clone(), staging).expect("a store")
    }

    pub fn push(&self, remote: &ObjectPackStore) -> Result<PushReport> {
        epitome_remote::push(&self.folder(), remote, &mut self.record())
    }

    pub fn record(&self) -> PushRecord {
        PushRecord::open(self.home.path().join("cache/remote/pushed"))
    }

    pub fn pull(&self, remote: &ObjectPackStore, key: Option<&SessionKey>) -> Result<PullReport> {
        let no_files = |_: &Generation| -> Vec<PathBuf> { Vec::new() };
        epitome_remote::pull(remote, &self.folder(), key, &no_files)
    }

    /// Verifies the whole archive.
    pub fn verify(&self) {
        let report = self.archive().verify().expect("a report");
        assert!(report.faults.is_empty(), "{:?}", report.faults);
    }
}
