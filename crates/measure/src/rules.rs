//! The rules that every request to a model must follow, however its context was shortened.

use std::collections::HashSet;
use std::sync::Arc;

use memchr::memmem;

use crate::block::{BlockKind, MeasuredBlock};
use crate::lines::line_ids;

/// A rule that every request must fulfil. For each rule except `KeepsRequest`, there are services
/// that refuse a request which breaks it. A request that breaks `KeepsRequest` does not tell the
/// model what to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RequestRule {
    /// The request has a message.
    HasMessage,
    /// The first message is not the model's.
    BeginsWithUser,
    /// The last message is not the model's.
    EndsWithUser,
    /// Every call has its result in the next message.
    CallHasResult,
    /// Every result has its call in the message before.
    ResultHasCall,
    /// The results are at the beginning of their message.
    ResultsFirst,
    /// Each call id is used only once, and each call has only one result.
    IdOnce,
    /// The newest text of the user is in the request, or at least a line of it.
    KeepsRequest,
}

impl RequestRule {
    /// The name of the rule in JSON.
    pub fn name(self) -> &'static str {
        match self {
            RequestRule::HasMessage => "empty",
            RequestRule::BeginsWithUser => "first-role",
            RequestRule::EndsWithUser => "last-role",
            RequestRule::CallHasResult => "open-call",
            RequestRule::ResultHasCall => "orphan-result",
            RequestRule::ResultsFirst => "late-result",
            RequestRule::IdOnce => "repeated-id",
            RequestRule::KeepsRequest => "lost-request",
        }
    }

    /// What is wrong with a request that breaks the rule.
    pub fn breach(self) -> &'static str {
        match self {
            RequestRule::HasMessage => "it has no message",
            RequestRule::BeginsWithUser => "it begins with a message of the model",
            RequestRule::EndsWithUser => "it ends with a message of the model",
            RequestRule::CallHasResult => "a call has no result in the next message",
            RequestRule::ResultHasCall => "a result has no call in the message before",
            RequestRule::ResultsFirst => "a result comes after another part of its message",
            RequestRule::IdOnce => "an id is that of two calls or two results",
            RequestRule::KeepsRequest => "the user's newest text is not in it",
        }
    }
}

/// The rules that a request breaks, each once, in the order of [`RequestRule`]. `request` is the
/// newest text of the user; if it is `None`, the rule `KeepsRequest` is not checked.
///
/// ```
/// use std::sync::Arc;
///
/// use epitome_measure::{MeasuredBlock, RequestRule, broken_rules};
/// use epitome_model::{Block, Role, Text};
/// # use samples::Quarters;
///
/// let block = Block::Text(Text::Owned("What is in src/lib.rs?".into()));
/// let source: &[u8] = b"";
/// let block = Arc::new(MeasuredBlock::from_block(&block, Role::User, &source, &Quarters));
/// assert_eq!(broken_rules(&[block.clone()], Some(&block)), []);
/// let broken = [RequestRule::HasMessage, RequestRule::KeepsRequest];
/// assert_eq!(broken_rules(&[], Some(&block)), broken);
/// ```
pub fn broken_rules(
    view: &[Arc<MeasuredBlock>],
    request: Option<&MeasuredBlock>,
) -> Vec<RequestRule> {
    let mut broken = Vec::new();
    if view.is_empty() {
        broken.push(RequestRule::HasMessage);
    }
    if view.first().is_some_and(|block| block.by_model) {
        broken.push(RequestRule::BeginsWithUser);
    }
    if view.last().is_some_and(|block| block.by_model) {
        broken.push(RequestRule::EndsWithUser);
    }
    pairing(view, &mut broken);
    if request.is_some_and(|request| !contains(view, request)) {
        broken.push(RequestRule::KeepsRequest);
    }
    broken.sort_unstable();
    broken.dedup();
    broken
}

/// Checks that calls and results belong together, and adds each rule that is broken to `broken`.
/// Consecutive blocks of the model are one message, and so are consecutive blocks that are not the
/// model's.
fn pairing(view: &[Arc<MeasuredBlock>], broken: &mut Vec<RequestRule>) {
    let mut called: HashSet<&str> = HashSet::new();
    let mut open: HashSet<&str> = HashSet::new();
    for message in view.chunk_by(|a, b| a.by_model == b.by_model) {
        let is_of_model = message.first().is_some_and(|block| block.by_model);
        if is_of_model {
            for call in ids(message, BlockKind::Call) {
                if !called.insert(call) {
                    broken.push(RequestRule::IdOnce);
                }
                open.insert(call);
            }
            continue;
        }
        let mut answered: HashSet<&str> = HashSet::new();
        for result in ids(message, BlockKind::Result) {
            if !answered.insert(result) {
                broken.push(RequestRule::IdOnce);
            } else if !open.remove(result) {
                broken.push(RequestRule::ResultHasCall);
            }
        }
        if !open.is_empty() {
            broken.push(RequestRule::CallHasResult);
            open.clear();
        }
        let mut kinds = message.iter().map(|block| block.kind);
        let mut others = kinds.by_ref().skip_while(|kind| *kind == BlockKind::Result);
        if others.any(|kind| kind == BlockKind::Result) {
            broken.push(RequestRule::ResultsFirst);
        }
    }
    if !open.is_empty() {
        broken.push(RequestRule::CallHasResult);
    }
}

/// The ids of the calls or of the results of a message.
fn ids(message: &[Arc<MeasuredBlock>], kind: BlockKind) -> impl Iterator<Item = &str> {
    let blocks = message.iter().filter(move |block| block.kind == kind);
    blocks.filter_map(|block| block.call.as_deref())
}

/// Whether `view` contains the block `request` or at least one of its lines. If all lines of
/// `request` are shorter than eight characters, the blocks are searched for its whole text.
fn contains(view: &[Arc<MeasuredBlock>], request: &MeasuredBlock) -> bool {
    if view.iter().any(|block| block.id == request.id) {
        return true;
    }
    let lines = line_ids(&request.text);
    if lines.is_empty() {
        let text = memmem::Finder::new(request.text.trim());
        return view.iter().any(|block| text.find(block.text.as_bytes()).is_some());
    }
    view.iter().any(|block| lines.iter().any(|line| block.lines.binary_search(line).is_ok()))
}

#[cfg(test)]
#[path = "rules_tests.rs"]
mod tests;
