//! What was done to each block of a request, and why. New results may be shortened in any request;
//! other blocks only in a cut, which shortens or replaces many old messages at once.

use std::ops::Range;
use std::sync::Arc;

use epitome::wire::ledger::{Treatment, now};
use epitome::wire::{Chain, Decision};
use epitome_api::Api;
use epitome_engine::stored::unanswered;
use epitome_error::Result;
use epitome_model::{At, Block, Call, Counter, Output, Role, Stub, Tokens, decode};
use epitome_passes::{Recipe, View, only_text};
use jiff::Timestamp;

use crate::block::{describe, span_of};
use crate::body::Messages;
use crate::effect::Effect;
use crate::splice::{BodySplice, spliced, splices};

/// A function that is called with the explanations of changed requests.
pub type Explainer = Arc<dyn Fn(&Explanation) + Send + Sync>;

/// What was done to a request that was changed. Its texts are those of the conversation: neither
/// redacted nor escaped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// When the explanation was made, just before the request was sent.
    pub time: Timestamp,
    /// The name of the API.
    pub api: &'static str,
    /// The model that the request names.
    pub model: Option<String>,
    /// The conversation, by the hash of the messages before its first response.
    pub session: Option<Chain>,
    /// What was done to the request.
    pub treatment: Treatment,
    /// The number of messages at the beginning of the request for which decisions had been made
    /// before.
    pub known: usize,
    /// The tokens that were not sent because of decisions about messages that were sent before,
    /// including the decisions of a cut that was just made.
    pub saved_before: Tokens,
    /// The tokens that were not sent because of decisions about new messages.
    pub saved_now: Tokens,
    /// Tokens that the provider has to write to its cache again, if a cut was made.
    pub rewritten: Option<Tokens>,
    /// What was done to the blocks of the messages for which decisions were made in this request:
    /// of the new messages, or of all messages if a cut was made. Blocks without content are left
    /// out.
    pub blocks: Vec<ExplainedBlock>,
}

/// What was done to a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExplainedBlock {
    /// The number of the block's message, from 1.
    pub message: usize,
    /// A description of the block, for example `result of Bash make`.
    pub what: String,
    /// Tokens of the block.
    pub before: Tokens,
    /// Tokens of the block as it is sent; 0 if a digest is sent in place of its message.
    pub after: Tokens,
    /// Why the block is sent in this form.
    pub reason: Reason,
    /// The first line of the stub that is sent in place of the block, if there is one.
    pub stub: Option<String>,
}

/// Why a block is sent unchanged, or changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// A new result is longer than the recipe allows, or has lines that the context contains
    /// already.
    Ingest,
    /// The same block was made smaller before: it is sent as it was then.
    AsBefore,
    /// A pass of the recipe made the block smaller in a cut.
    Pass,
    /// A digest, made in a cut, is sent in place of the block's message and of other messages.
    Digested,
    /// The block is a text, a summary or an image of the user, or instructions.
    OfUser,
    /// The block is a text, a summary or an image of the model.
    OfModel,
    /// The block is reasoning, which is sent exactly as it is or not at all.
    Reasoning,
    /// The block is of an unknown kind.
    Unknown,
    /// The arguments of a call are changed only in a cut.
    Call,
    /// A result with pictures or several parts is changed only in a cut.
    SeveralParts,
    /// A result that contains a text of the user is not changed.
    ResultOfUser,
    /// A new result that was not shortened: usually, it is not longer than the recipe allows.
    Short,
    /// A result that the model has seen whole: another text would break the provider's cache.
    Seen,
    /// The result of reading a rule file, which sets rules for the agent, is not changed.
    Rules,
    /// The request was cut, but the recipe keeps this block, or no pass makes it smaller.
    Kept,
}

impl Reason {
    /// The reason in a few words.
    pub fn describe(self) -> &'static str {
        match self {
            Reason::Ingest => "ingest: longer than the recipe allows, or in the context already",
            Reason::AsBefore => "as it was sent before",
            Reason::Pass => "a pass of the recipe, in a cut",
            Reason::Digested => "a digest of the old part, in a cut",
            Reason::OfUser => "text of the user or of the agent's instructions",
            Reason::OfModel => "text of the model",
            Reason::Reasoning => "reasoning is exact or absent",
            Reason::Unknown => "of an unknown kind",
            Reason::Call => "arguments are shortened in a cut only",
            Reason::SeveralParts => "a result of several parts is shortened in a cut only",
            Reason::ResultOfUser => "a result with a text of the user",
            Reason::Short => "a new result that the recipe allows",
            Reason::Seen => "the model has seen it whole",
            Reason::Rules => "a rule file",
            Reason::Kept => "kept by the recipe, or not smaller by any pass",
        }
    }
}

/// A request as it came, and the replacements with which it is sent.
pub(crate) struct Explained<'r> {
    pub(crate) api: &'static Api,
    pub(crate) body: &'r [u8],
    pub(crate) messages: &'r Messages,
    pub(crate) splices: &'r [BodySplice<'r>],
    /// The decisions about the messages without the cut that was made in this request, if one was.
    pub(crate) before_cut: &'r [Arc<Decision>],
    /// The number of messages at the beginning of the request for which decisions had been made
    /// before.
    pub(crate) known: usize,
}

impl Explained<'_> {
    /// Explains the request.
    ///
    /// # Errors
    ///
    /// `Broken`, if a decision does not fit its message.
    pub(crate) fn explain(
        &self,
        effect: &Effect,
        recipe: &Recipe,
        counter: &dyn Counter,
    ) -> Result<Explanation> {
        Ok(Explanation {
            time: now(),
            api: self.api.name,
            model: effect.model.clone(),
            session: effect.session,
            treatment: effect.treatment,
            known: self.known,
            saved_before: effect.saved_before,
            saved_now: effect.saved_now,
            rewritten: effect.cut.map(|cut| cut.rewritten),
            blocks: self.blocks(effect.treatment, recipe, counter)?,
        })
    }

    /// The blocks that the explanation contains, in order: see [`Explanation::blocks`].
    fn blocks(
        &self,
        treatment: Treatment,
        recipe: &Recipe,
        counter: &dyn Counter,
    ) -> Result<Vec<ExplainedBlock>> {
        let before_cut = splices(self.messages, self.before_cut)?;
        let source = &self.body.to_vec();
        let transcript = (self.api.format.read)(source, &mut ());
        let view = View::new(&transcript, source, counter).with_rule_files(&recipe.rule_files);
        let unanswered = unanswered(&transcript);
        let mut blocks = Vec::new();
        for (item, entry) in transcript.context() {
            let start = transcript.items[item].record().span.start as usize;
            let Some(message) = self.messages.index_at(start) else { continue };
            if message < self.known && treatment != Treatment::Cut {
                continue;
            }
            for (idx, block) in entry.blocks.iter().enumerate() {
                let Some(span) = span_of(block) else { continue };
                let range = span.start as usize..span.end as usize;
                let changes = changes_in(self.splices, &range);
                let is_digested = self.is_replaced_with_its_message(&range);
                let (before, after) = match is_digested {
                    true => (counter.count(&decode(&self.body[range.clone()])), Tokens(0)),
                    false => self.tokens(&range, &changes, counter),
                };
                let is_seen = !unanswered.contains(&item);
                let reason = match changes.is_empty() {
                    _ if is_digested => Reason::Digested,
                    true => reason_to_leave(&view, treatment, entry.role, block, is_seen),
                    false if changes != changes_in(&before_cut, &range) => Reason::Pass,
                    false => self.reason_to_change(treatment, message, is_seen),
                };
                blocks.push(ExplainedBlock {
                    message: message + 1,
                    what: describe(&view, &transcript, At::Block { item, block: idx }, entry.role),
                    before,
                    after,
                    reason,
                    stub: changes.iter().find_map(|(_, with)| first_line(with)),
                });
            }
        }
        Ok(blocks)
    }

    /// Whether a range is in a message that is not sent, because a digest is sent in its place.
    fn is_replaced_with_its_message(&self, range: &Range<usize>) -> bool {
        let is_within = |at: &Range<usize>| at.start < range.start && range.end < at.end;
        self.splices.iter().any(|(at, _)| is_within(at))
    }

    /// The tokens of a range, as it came and as it is sent.
    fn tokens(
        &self,
        range: &Range<usize>,
        changes: &[&BodySplice<'_>],
        counter: &dyn Counter,
    ) -> (Tokens, Tokens) {
        let raw = &self.body[range.clone()];
        let before = counter.count(&decode(raw));
        if changes.is_empty() {
            return (before, before);
        }
        let moved =
            changes.iter().map(|(at, with)| (at.start - range.start..at.end - range.start, *with));
        let sent = spliced(raw, &moved.collect::<Vec<_>>());
        (before, counter.count(&decode(&sent)))
    }

    /// Why a block is changed that no cut of this request has changed. If the agent has changed an
    /// old message, the messages after it are new to the proxy, although the model has seen the
    /// results in them. Such a result is sent in the same form as before.
    fn reason_to_change(&self, treatment: Treatment, message: usize, is_seen: bool) -> Reason {
        match treatment {
            Treatment::Cut | Treatment::Shortened if message < self.known || is_seen => {
                Reason::AsBefore
            }
            Treatment::Cut | Treatment::Shortened => Reason::Ingest,
            Treatment::Known | Treatment::Passed => Reason::AsBefore,
        }
    }
}

/// Those of the replacements that are within a range.
fn changes_in<'s, 'd>(
    splices: &'s [BodySplice<'d>],
    range: &Range<usize>,
) -> Vec<&'s BodySplice<'d>> {
    let is_within = |(at, _): &&BodySplice<'d>| range.start <= at.start && at.end <= range.end;
    splices.iter().filter(is_within).collect()
}

/// Why a block is sent as it is. `is_seen` is whether the model has responded after the block.
fn reason_to_leave(
    view: &View<'_>,
    treatment: Treatment,
    role: Role,
    block: &Block,
    is_seen: bool,
) -> Reason {
    let is_cut = treatment == Treatment::Cut;
    match block {
        Block::Text(_) | Block::Summary(_) | Block::Image(_) => match role {
            Role::Assistant => Reason::OfModel,
            Role::User | Role::System | Role::Tool => Reason::OfUser,
        },
        Block::Thinking(_) => Reason::Reasoning,
        Block::Call(_) if is_cut => Reason::Kept,
        Block::Call(_) => Reason::Call,
        Block::Repeated(again) => result_reason(view, &again.output, is_cut, is_seen),
        Block::Output(output) => result_reason(view, output, is_cut, is_seen),
        _ => Reason::Unknown,
    }
}

fn result_reason(view: &View<'_>, output: &Output, is_cut: bool, is_seen: bool) -> Reason {
    let call = view.call_of(output);
    let is_rules =
        |call: &Call| view.file_of(call).is_some_and(|path| view.rule_files().has(&path));
    if output.from_user {
        Reason::ResultOfUser
    } else if call.is_some_and(is_rules) {
        Reason::Rules
    } else if is_cut {
        Reason::Kept
    } else if only_text(output).is_none() {
        Reason::SeveralParts
    } else if is_seen {
        Reason::Seen
    } else {
        Reason::Short
    }
}

/// The first line of a text that is sent; `None` if the text is not a stub.
fn first_line(with: &str) -> Option<String> {
    let text = decode(with.as_bytes());
    Stub::parse(&text)?;
    text.lines().next().map(str::to_owned)
}
