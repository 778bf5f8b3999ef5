//! What was done to a request. It may have been cut, that is, old messages were shortened or
//! replaced, although the provider then has to write its cache again.

use epitome::wire::Chain;
use epitome::wire::ledger::{Group, Treatment};
use epitome_model::Tokens;

/// What rewriting did to one body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Effect {
    /// The model that the request names.
    pub(crate) model: Option<String>,
    /// Bytes of the body as it is sent.
    pub(crate) bytes: u64,
    /// The tokens that this request saves by decisions about messages that were sent before,
    /// including the decisions of a cut that was just made.
    pub(crate) saved_before: Tokens,
    /// The tokens that this request saves by decisions about new messages.
    pub(crate) saved_now: Tokens,
    /// The number of results that were shortened for the first time.
    pub(crate) shortened: u64,
    /// The cut that was made in this request, if one was.
    pub(crate) cut: Option<NewCut>,
    /// The cuts that change the request, earlier ones and `cut`, each with the tokens that it
    /// saves.
    pub(crate) cuts: Vec<(Chain, Tokens)>,
    /// The conversation, by the hash of the messages before its first response.
    pub(crate) session: Option<Chain>,
    /// Whether the conversation is held out, that is, passes unchanged so that others can be
    /// compared with it.
    pub(crate) group: Group,
    /// What was done to the request.
    pub(crate) treatment: Treatment,
    /// Whether the user begins a turn with this request.
    pub(crate) begins_turn: bool,
    /// Whether the new messages contain a summary with which the agent itself has compacted the
    /// conversation.
    pub(crate) has_own_compaction: bool,
    /// The error of epitome because of which the request, or a part of it, is sent as it came.
    pub(crate) failure: Option<String>,
}

/// A cut that was made in a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NewCut {
    /// The name of the cut: the hash of the last message that it covers and of all before it.
    pub(crate) id: Chain,
    /// Tokens that the provider has to write to its cache again.
    pub(crate) rewritten: Tokens,
    /// Whether the provider's cache is assumed to have held the request as it was before the cut.
    pub(crate) is_warm: bool,
}

impl Effect {
    /// Whether a cut was made that cost nothing, because the cache was cold.
    pub(crate) fn has_cold_cut(&self) -> bool {
        self.cut.is_some_and(|cut| !cut.is_warm)
    }

    /// What was done to a request that is sent changed.
    pub(crate) fn treatment_of_changed(&self) -> Treatment {
        match self.cut {
            Some(_) => Treatment::Cut,
            None if self.shortened > 0 => Treatment::Shortened,
            None => Treatment::Known,
        }
    }
}
