//! The requests of a conversation that were sent last, one for each of its branches. A request is
//! identified by the chain of its last message: the hash of all its messages.
//!
//! A conversation has branches where the user goes back, and where several clients begin with the
//! same messages. For each branch, its last request says what the service has in its cache, and how
//! many tokens the service counted.

use std::time::Instant;

use epitome::wire::Chain;
use epitome_model::Tokens;

/// The maximum number of branches that are remembered.
const BRANCHES: usize = 32;

/// A request that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SentRequest {
    /// The chain of the last message of the request.
    last: Chain,
    /// When the request was sent.
    pub(crate) time: Instant,
    /// The input tokens of the request as the service counted them. Until they are counted, the
    /// count of the request that this one continues; `None` if there is no count.
    pub(crate) input: Option<Tokens>,
}

/// The requests that were sent last.
#[derive(Default)]
pub(crate) struct SentRequests(Vec<SentRequest>);

impl SentRequests {
    /// Whether this proxy has sent no request of the conversation.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The longest of the requests whose messages are the beginning of this list, or the whole
    /// list. It is returned with the number of its messages.
    pub(crate) fn longest_beginning(&self, chains: &[Chain]) -> Option<(usize, SentRequest)> {
        let place = |sent: &SentRequest| chains.iter().rposition(|chain| *chain == sent.last);
        let found = self.0.iter().filter_map(|sent| Some((place(sent)? + 1, *sent)));
        found.max_by_key(|(length, _)| *length)
    }

    /// Adds a request, given by the chains of its messages. The new request replaces the longest
    /// request that it continues.
    pub(crate) fn add(&mut self, chains: &[Chain], time: Instant) {
        let Some(&last) = chains.last() else { return };
        let before = self.longest_beginning(chains).map(|(_, sent)| sent);
        self.0.retain(|sent| Some(*sent) != before);
        if self.0.len() >= BRANCHES {
            self.0.remove(0);
        }
        let input = before.and_then(|before| before.input);
        self.0.push(SentRequest { last, time, input });
    }

    /// Records what the service counted for the request that ends with this message.
    pub(crate) fn set_input(&mut self, last: Chain, input: Tokens) {
        if let Some(sent) = self.0.iter_mut().find(|sent| sent.last == last) {
            sent.input = Some(input);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chains(ids: &[u8]) -> Vec<Chain> {
        ids.iter().map(|id| Chain::from_bytes([*id; 16])).collect()
    }

    #[test]
    fn each_branch_has_its_own_last_request() {
        let mut sent = SentRequests::default();
        let now = Instant::now();
        let known = |sent: &SentRequests, ids: &[u8]| {
            let found = sent.longest_beginning(&chains(ids));
            found.map(|(length, request)| (length, request.input))
        };
        sent.add(&chains(&[1, 2, 3]), now);
        sent.set_input(chains(&[3])[0], Tokens(30));
        // The user goes back to the first message, and continues in another way.
        assert_eq!(known(&sent, &[1, 4, 5]), None);
        sent.add(&chains(&[1, 4, 5]), now);
        assert_eq!(known(&sent, &[1, 4, 5, 6]), Some((3, None)));
        assert_eq!(known(&sent, &[1, 2, 3, 7]), Some((3, Some(Tokens(30)))));
        sent.add(&chains(&[1, 2, 3, 7]), now);
        assert_eq!(known(&sent, &[1, 2, 3, 7, 8]), Some((4, Some(Tokens(30)))));
        assert_eq!(known(&sent, &[1, 2, 3]), None);
        assert_eq!(sent.0.len(), 2);
        for id in 10..60 {
            sent.add(&chains(&[id]), now);
        }
        assert_eq!((sent.0.len(), known(&sent, &[1, 4, 5])), (BRANCHES, None));
    }
}
