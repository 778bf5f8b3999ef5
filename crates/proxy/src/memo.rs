//! Memos: what was decided about the messages of conversations, in memory and on disk. A message is
//! identified by its chain: the hash of the message and of all messages before it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use epitome::wire::{Chain, CutLine, Decision, MemoFile, MemoLine};
use epitome_error::Result;
use epitome_model::{Ref, Tokens};
use epitome_passes::SeenLines;
use epitome_store::archive::Hash;

use crate::cuttable::RequestCut;
use crate::sent_requests::SentRequests;

/// Maximum number of memos that are in memory at the same time. Beyond it, the memo whose last use
/// is the longest ago is dropped: it is read from disk again when it is needed, or is lost if memos
/// are not kept on disk.
const OPEN: usize = 256;

/// The maximum number of tried cuts that a memo remembers.
const TRIED_CUTS: usize = 64;

/// The memos of all conversations.
pub(crate) struct Memos {
    /// The folder of the memos on disk; `None` if they are kept in memory only.
    folder: Option<PathBuf>,
    /// The memos in memory. The one that was used last is at the end.
    open: Mutex<Vec<(Chain, Arc<Mutex<Memo>>)>>,
}

/// The memo of one conversation.
#[derive(Default)]
pub(crate) struct Memo {
    file: Option<MemoFile>,
    /// The decision that was made about each message when it was new, by the chain of the message.
    messages: HashMap<Chain, Arc<Decision>>,
    /// Decisions to send messages as they are. They are not on disk yet.
    unwritten: BTreeMap<Chain, Decision>,
    /// The cuts, each by the chain of the last message that it is about. What a cut decided about a
    /// message takes the place of what `messages` has.
    cuts: HashMap<Chain, KnownCut>,
    /// What is sent in place of results, by a hash of the text of a result and the id of its call.
    results: HashMap<Chain, Arc<str>>,
    /// The hashes of the texts that were removed from requests.
    removed: BTreeSet<Hash>,
    /// The requests that this proxy sent last.
    pub(crate) sent: SentRequests,
    /// Whether the memo was on disk when it was opened: the conversation was changed before, for
    /// example by another proxy or in an earlier run.
    is_continued: bool,
    /// The cuts that were tried, each as the chain of the request's last message and a number of
    /// bytes. A request that contains this message and has fewer bytes is not cut.
    tried_cuts: Vec<(Chain, usize)>,
    /// The lines of earlier results, with which new results are compared.
    pub(crate) seen: Seen,
    /// A cut that was planned for the next request. It is not on disk.
    pub(crate) prepared: Option<PreparedCut>,
}

/// A cut that was planned and is not made yet.
pub(crate) struct PreparedCut {
    /// The chain of the last message that the cut is about.
    pub(crate) last: Chain,
    pub(crate) cut: RequestCut,
    /// The number of cuts of the conversation when this one was planned. If another cut was made
    /// since, this one is not made, because it would repeat what the other cut did.
    pub(crate) cuts: usize,
}

/// The lines of the results in all messages up to `last`. They are not on disk: after a restart
/// they are read again from a request.
#[derive(Default)]
pub(crate) struct Seen {
    /// The chain of the last message whose results were read.
    pub(crate) last: Option<Chain>,
    pub(crate) lines: SeenLines,
}

/// A cut that was made.
struct KnownCut {
    /// What is sent in place of each message.
    messages: Arc<[Arc<Decision>]>,
    /// The tokens that the cut saves in each request, in addition to what earlier decisions save.
    saved: Tokens,
}

impl Memos {
    /// Memos in `folder`; only in memory if that is `None`.
    pub(crate) fn new(folder: Option<PathBuf>) -> Memos {
        Memos { folder, open: Mutex::default() }
    }

    /// The memo of the conversation with this [root](crate::body::Messages::root). It is read from
    /// disk if it is not in memory.
    ///
    /// # Errors
    ///
    /// If the memo on disk cannot be read.
    pub(crate) fn of_conversation(&self, root: Chain) -> Result<Arc<Mutex<Memo>>> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = open.iter().position(|(known, _)| *known == root) {
            let found = open.remove(at);
            let memo = Arc::clone(&found.1);
            open.push(found);
            return Ok(memo);
        }
        let memo = match &self.folder {
            Some(folder) => {
                let (file, lines) = MemoFile::open(folder, root)?;
                let mut memo = Memo { file: Some(file), ..Memo::default() };
                memo.is_continued = !lines.is_empty();
                lines.into_iter().for_each(|line| memo.learn(line));
                memo
            }
            None => Memo::default(),
        };
        let memo = Arc::new(Mutex::new(memo));
        if open.len() >= OPEN {
            open.remove(0);
        }
        open.push((root, Arc::clone(&memo)));
        Ok(memo)
    }
}

/// Locks a memo, even if a thread panicked while it had the lock. The memo is consistent then,
/// because it is changed only after everything that can fail.
pub(crate) fn locked(memo: &Mutex<Memo>) -> MutexGuard<'_, Memo> {
    memo.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Memo {
    /// The decisions about the first messages of a list, which is given by the chains of its
    /// messages: one for each message, up to the first message without a decision.
    pub(crate) fn look_up(&self, chains: &[Chain]) -> Vec<Arc<Decision>> {
        let mut known = match chains.iter().rev().find_map(|chain| self.cuts.get(chain)) {
            Some(cut) => cut.messages.to_vec(),
            None => Vec::new(),
        };
        let rest = chains[known.len()..].iter().map_while(|chain| self.messages.get(chain));
        known.extend(rest.cloned());
        known
    }

    /// The cuts whose last message is in this list of messages, each with the tokens that it saves
    /// in a request.
    pub(crate) fn cuts(&self, chains: &[Chain]) -> Vec<(Chain, Tokens)> {
        let cuts = chains.iter().filter_map(|chain| Some((*chain, self.cuts.get(chain)?.saved)));
        cuts.collect()
    }

    /// Whether any message of the conversation was changed.
    pub(crate) fn is_changed(&self) -> bool {
        !self.cuts.is_empty() || !self.messages.values().all(|decision| decision.changes_nothing())
    }

    /// The hashes of the removed texts that are named by one of these references.
    pub(crate) fn named_texts(&self, references: &[Ref]) -> Vec<Hash> {
        let is_named = |hash: &&Hash| references.iter().any(|reference| hash.matches(reference));
        self.removed.iter().filter(is_named).copied().collect()
    }

    /// Whether a text was removed from requests.
    pub(crate) fn has_text(&self, text: &Hash) -> bool {
        self.removed.contains(text)
    }

    /// Whether any text was removed from requests.
    pub(crate) fn has_removed(&self) -> bool {
        !self.removed.is_empty()
    }

    /// What is sent in place of the result with this key; `None` if the result is sent whole or is
    /// new.
    pub(crate) fn result(&self, key: Chain) -> Option<&Arc<str>> {
        self.results.get(&key)
    }

    /// Reads from disk what other proxies have decided since the memo was read. An agent can then
    /// use two proxies in turn, and both send the same bytes.
    ///
    /// # Errors
    ///
    /// If the memo on disk cannot be read.
    pub(crate) fn catch_up(&mut self) -> Result<()> {
        if let Some(file) = &mut self.file {
            let lines = file.new_lines()?;
            lines.into_iter().for_each(|line| self.learn(line));
        }
        Ok(())
    }

    /// Removes the prepared cut, and returns it. `None` if there is none, if its last message is
    /// not in this list, or if another cut was made since it was planned.
    pub(crate) fn take_prepared(&mut self, chains: &[Chain]) -> Option<PreparedCut> {
        let prepared = self.prepared.take()?;
        let is_of_list = chains.contains(&prepared.last);
        (is_of_list && prepared.cuts == self.cuts.len()).then_some(prepared)
    }

    /// The number of cuts that were made in the conversation.
    pub(crate) fn cut_count(&self) -> usize {
        self.cuts.len()
    }

    /// Keeps the decisions of `line`: first on disk, then in memory. A line that changes no message
    /// is written to the disk only together with the next line that does.
    ///
    /// # Errors
    ///
    /// If the memo cannot be written. The decisions are not kept then.
    pub(crate) fn keep(&mut self, line: MemoLine) -> Result<()> {
        match &mut self.file {
            Some(_) if line.changes_nothing() => self.unwritten.extend(line.messages.clone()),
            Some(file) => {
                let mut written = line.clone();
                written.messages.extend(self.unwritten.clone());
                file.append(&written)?;
                self.unwritten.clear();
            }
            None => {}
        }
        self.learn(line);
        Ok(())
    }

    /// Whether a cut of a request of this many bytes may be tried. Two things forbid it: a cut was
    /// tried when the request was only a little shorter (see [`no_cut_below`](Memo::no_cut_below)),
    /// or the request is the first that this proxy sends of a conversation that was changed before.
    /// In that case another proxy may have sent the same request, and found a cut not worth its
    /// price.
    pub(crate) fn may_cut(&self, chains: &[Chain], bytes: usize) -> bool {
        let is_sent_again = self.is_continued && self.sent.is_empty();
        let tried = self.tried_cuts.iter().filter(|(last, _)| chains.contains(last));
        tried.into_iter().all(|(_, least)| bytes >= *least) && !is_sent_again
    }

    /// Records that these messages are sent as they are, in memory and not on disk.
    pub(crate) fn leave_unchanged(&mut self, chains: &[Chain]) {
        let unchanged = chains.iter().map(|chain| (*chain, Decision::default()));
        self.learn(MemoLine { messages: unchanged.collect(), ..MemoLine::default() });
    }

    /// Records that a cut of a request was tried, whatever the result. `bytes` is the length of the
    /// request, and `last` the chain of its last message. A request that contains this message is
    /// cut again only when it has a tenth more bytes. Other branches of the conversation may be
    /// cut.
    pub(crate) fn no_cut_below(&mut self, last: Chain, bytes: usize) {
        self.tried_cuts.retain(|(known, _)| *known != last);
        if self.tried_cuts.len() >= TRIED_CUTS {
            self.tried_cuts.remove(0);
        }
        self.tried_cuts.push((last, bytes + bytes / 10));
    }

    fn learn(&mut self, line: MemoLine) {
        // The decision that was made first stays.
        for (chain, decision) in line.messages {
            self.messages.entry(chain).or_insert_with(|| Arc::new(decision));
        }
        for (key, text) in line.results {
            self.results.entry(key).or_insert_with(|| text.into());
        }
        self.removed.extend(line.removed.into_iter().map(|text| text.hash));
        if let Some(CutLine { last, messages, bytes, saved }) = line.cut {
            let messages = messages.into_iter().map(Arc::new).collect();
            let cut = || KnownCut { messages, saved: Tokens(saved) };
            self.cuts.entry(last).or_insert_with(cut);
            self.no_cut_below(last, bytes as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use epitome::wire::Patch;

    fn chains() -> Vec<Chain> {
        (0..5).map(|n| Chain::from_bytes([n; 16])).collect()
    }

    fn decision(saved: u64) -> Decision {
        let patches = vec![Patch { start: 0, end: 1, with: "x".into() }];
        Decision { patches, saved, dropped: false }
    }

    fn saved(known: &[Arc<Decision>]) -> Vec<u64> {
        known.iter().map(|decision| decision.saved).collect()
    }

    #[test]
    fn the_longest_cut_is_followed_by_single_decisions() {
        let chains = chains();
        let mut memo = Memo::default();
        assert_eq!(memo.look_up(&chains).len(), 0);
        let messages = (0..4).map(|n| (chains[n], decision(n as u64))).collect();
        memo.keep(MemoLine { messages, ..MemoLine::default() }).expect("memory");
        assert_eq!(saved(&memo.look_up(&chains)), [0, 1, 2, 3]);
        let messages = vec![decision(10), decision(11)];
        let cut = Some(CutLine { last: chains[1], messages, bytes: 1_000, saved: 20 });
        memo.keep(MemoLine { cut, ..MemoLine::default() }).expect("memory");
        assert_eq!(saved(&memo.look_up(&chains)), [10, 11, 2, 3]);
        assert_eq!(saved(&memo.look_up(&chains[..1])), [0]);
        // A decision that was made once stays.
        let messages = [(chains[2], decision(99))].into();
        memo.keep(MemoLine { messages, ..MemoLine::default() }).expect("memory");
        assert_eq!(saved(&memo.look_up(&chains)), [10, 11, 2, 3]);
        assert_eq!(memo.cuts(&chains), [(chains[1], Tokens(20))]);
        assert_eq!(memo.cuts(&chains[..1]), []);
    }

    #[test]
    fn a_memo_is_the_same_after_a_restart() {
        let folder = tempfile::tempdir().expect("a folder");
        let chains = chains();
        let memos = Memos::new(Some(folder.path().to_owned()));
        let memo = memos.of_conversation(chains[0]).expect("a disk");
        let messages = [(chains[0], Decision::default()), (chains[1], decision(1))].into();
        let messages_of_cut = vec![decision(7)];
        let cut = CutLine { last: chains[0], messages: messages_of_cut, bytes: 1_000, saved: 6 };
        let cut = Some(cut);
        let line = MemoLine { messages, cut, ..MemoLine::default() };
        locked(&memo).keep(line).expect("a disk");
        let before = locked(&memo).look_up(&chains);
        let again = Memos::new(Some(folder.path().to_owned()));
        let memo = again.of_conversation(chains[0]).expect("a disk");
        assert_eq!(locked(&memo).look_up(&chains), before);
        assert_eq!(saved(&before), [7, 1]);
        let mut memo = locked(&memo);
        assert!(!memo.may_cut(&chains, 1_100), "the first request");
        memo.sent.add(&chains, Instant::now());
        assert_eq!((memo.may_cut(&chains, 1_099), memo.may_cut(&chains, 1_100)), (false, true));
        assert!(memo.may_cut(&chains[1..], 1), "another branch");
        assert_eq!(memo.cuts(&chains), [(chains[0], Tokens(6))]);
        assert!(memo.is_changed());
    }
}
