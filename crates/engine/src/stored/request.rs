//! A digest of the old part of a request that is about to be sent.

use epitome_error::Result;
use epitome_formats::Loaded;
use epitome_model::{
    Block, Counter, Role, Source, TOKENS_AROUND, Tokens, Transcript, unit_boundary_before,
};
use epitome_passes::{Digest, DigestRule, FactIndex, Recipe, View};

use crate::boundary::{CutPlace, current_request, with_reasoning_in};
use crate::digest::{Chosen, Digesting, saves_enough};

/// A digest of the old part of a request.
///
/// The digest is made from the original request, in which results that are sent in a shorter form
/// are still whole: the digest can choose from all of their lines.
#[derive(Clone, Debug)]
pub struct RequestDigest {
    /// The digest.
    pub digest: Digest,
    /// The messages that the digest replaces, in order: indices into the list of the request.
    pub messages: Vec<usize>,
}

/// What a digest of a request needs to know in addition to the request.
pub struct RequestRule<'r> {
    /// The rule of the recipe.
    pub rule: &'r DigestRule,
    /// The recipe.
    pub recipe: &'r Recipe,
    /// The maximum tokens of the whole request with the digest.
    pub target: Tokens,
    /// For each item, the index in the list of the message that holds it; `None` for an item
    /// outside of the list, such as the system prompt.
    pub message_of: &'r [Option<usize>],
    /// The number of messages at the beginning of the list that are never replaced.
    pub root: usize,
    /// The tokens of each block of each item in the form in which the block would be sent; a result
    /// may be shortened.
    pub sent: &'r [Vec<Tokens>],
}

impl RequestDigest {
    /// Makes the digest of a request.
    ///
    /// These stay in their places: the first `root` messages, messages of the system, and messages
    /// of the user with a block of an unknown kind. The last response stays with its results, and a
    /// message of the user stays until it has an answer. `None` if there is nothing to digest, or
    /// if the old part cannot be replaced, for example because a response in it has a block of an
    /// unknown kind.
    ///
    /// # Errors
    ///
    /// `Refused` if a pinned rule in the old part alone exceeds the target.
    pub fn new<S: Source>(
        request: &mut Loaded<S>,
        with: &RequestRule<'_>,
        index: &mut FactIndex,
        counter: &dyn Counter,
    ) -> Result<Option<RequestDigest>> {
        // From here on, items that stay in their places are treated as prompt, because a digest
        // never replaces a prompt.
        let in_place = stays_in_place(&request.transcript, with);
        request.transcript.head.prompt = in_place;
        let Loaded { source, transcript, .. } = &*request;
        let rule_files = &with.recipe.rule_files;
        let sent = View::new(transcript, source, counter)
            .with_counts(with.sent)
            .with_rule_files(rule_files);
        let Some(end) = end_of_old(&sent, with) else { return Ok(None) };
        // The digest is made from the texts of the request, in which no result is shortened.
        let view = View::new(transcript, source, counter).with_rule_files(rule_files);
        let digesting = Digesting {
            rule: with.rule,
            view: &view,
            end,
            budget: with.target.into(),
            around: TOKENS_AROUND,
        };
        let originals = |old: &[usize], _: &[usize]| {
            let is_old = |item: &usize| !transcript.head.prompt.contains(item);
            old.iter().copied().filter(is_old).collect()
        };
        let chosen = digesting.choose(index, originals, |item| sent.item_tokens(item))?;
        let Some(Chosen { digest, items }) = chosen else { return Ok(None) };
        if items.iter().any(|&item| has_unknown_block(transcript, item)) {
            return Ok(None);
        }
        let mut messages: Vec<usize> =
            items.iter().filter_map(|&item| with.message_of[item]).collect();
        messages.dedup();
        let is_whole = |message: &usize| {
            let in_place = transcript.head.prompt.iter();
            !in_place.into_iter().any(|&item| with.message_of[item] == Some(*message))
        };
        Ok(messages.iter().all(is_whole).then_some(RequestDigest { digest, messages }))
    }
}

impl RequestDigest {
    /// The tokens of the message with the digest.
    pub fn tokens(&self) -> Tokens {
        self.digest.tokens + TOKENS_AROUND
    }

    /// Whether the digest saves enough to be sent at all. `of` are the tokens of the messages that
    /// the digest replaces.
    pub fn saves_enough(&self, of: Tokens) -> bool {
        saves_enough(self.tokens(), of)
    }
}

/// The items that no digest replaces, in order.
fn stays_in_place(transcript: &Transcript, with: &RequestRule<'_>) -> Vec<usize> {
    let stays = |item: &usize| {
        let Some(entry) = transcript.items[*item].entry() else { return false };
        match (with.message_of[*item], entry.role) {
            (None, _) | (_, Role::System) => true,
            (Some(message), _) if message < with.root => true,
            (Some(_), Role::User) => has_unknown_block(transcript, *item),
            (Some(_), Role::Assistant | Role::Tool) => false,
        }
    };
    transcript.context.iter().copied().filter(stays).collect()
}

fn has_unknown_block(transcript: &Transcript, item: usize) -> bool {
    let blocks = transcript.items[item].entry().map_or(&[][..], |entry| &entry.blocks);
    blocks.iter().any(|block| matches!(block, Block::Opaque(_)))
}

/// The index in the context at which the old part of a request ends. `None` if the kept part would
/// have to begin much earlier, with reasoning, and would be too long.
fn end_of_old(view: &View<'_>, with: &RequestRule<'_>) -> Option<usize> {
    let transcript = view.transcript;
    let last = last_response(transcript).min(current_request(transcript));
    let least = with.rule.longest_tail(view, with.target).min(last);
    let end = with.rule.tail(view, with.target).min(last);
    let turn = turn(transcript, with.message_of);
    let end = match with_reasoning_in(turn, transcript, view.source, least, end, last) {
        CutPlace::At(end) => end,
        CutPlace::Before(end) => {
            let kept = transcript.context[end..].iter();
            let tokens: Tokens = kept.map(|&item| view.item_tokens(item)).sum();
            if tokens.0 > with.target.0 / 2 {
                return None;
            }
            end
        }
    };
    Some(between_messages(transcript, with.message_of, end))
}

/// The index in the context at which the last response begins; the length of the context if there
/// is none.
fn last_response(transcript: &Transcript) -> usize {
    let entries: Vec<_> = transcript.context().map(|(_, entry)| entry).collect();
    let Some(end) = entries.iter().rposition(|entry| entry.role == Role::Assistant) else {
        return entries.len();
    };
    let before = entries[..end].iter().rposition(|entry| entry.group != entries[end].group);
    before.map_or(0, |before| before + 1)
}

/// The index in the context after the last message of the user that holds no results; 0 if there is
/// none.
fn turn(transcript: &Transcript, message_of: &[Option<usize>]) -> usize {
    let context = &transcript.context;
    let role = |at: usize| transcript.items[context[at]].entry().map(|entry| entry.role);
    let is_of_user = |at: &usize| {
        let message = message_of[context[*at]];
        let mut same = (0..context.len()).filter(|at| message_of[context[*at]] == message);
        role(*at) == Some(Role::User) && same.all(|at| role(at) == Some(Role::User))
    };
    (0..context.len()).rev().find(is_of_user).map_or(0, |at| at + 1)
}

/// The last index in the context that is not after `end`, is between two messages, and separates no
/// call from its result.
fn between_messages(transcript: &Transcript, message_of: &[Option<usize>], end: usize) -> usize {
    let context = &transcript.context;
    let message = |at: usize| context.get(at).map(|&item| message_of[item]);
    let mut end = end;
    loop {
        let before = end;
        end = unit_boundary_before(transcript, end);
        while end > 0 && end < context.len() && message(end) == message(end - 1) {
            end -= 1;
        }
        if end == before {
            return end;
        }
    }
}

#[cfg(test)]
mod tests {
    use epitome_model::ToolKind;
    use epitome_passes::built_in;
    use samples::{Quarters, Sample};

    use super::*;

    #[test]
    fn a_request_is_divided_between_messages_and_never_between_a_call_and_its_result() {
        let sample = Sample::new().user("Go.").call(ToolKind::Shell, "make").output("ok");
        let sample = sample.user("And now?").reply("Done.");
        // The result and the question after it are one message.
        let message_of = [0, 1, 2, 2, 3].map(Some);
        for (end, expect) in [(0, 0), (1, 1), (2, 1), (3, 1), (4, 4), (5, 5)] {
            let found = between_messages(sample.transcript(), &message_of, end);
            assert_eq!(found, expect, "{end}");
        }
    }

    #[test]
    fn a_digest_replaces_whole_messages_and_no_prompt() {
        let lines: String = (0..60).map(|n| format!("let value_{n} = compute({n});\\n")).collect();
        let read = |n: usize| {
            let call = format!(r#"{{"type":"tool_use","id":"c{n}","name":"Read","input":{{}}}}"#);
            let result =
                format!(r#"{{"type":"tool_result","tool_use_id":"c{n}","content":"{lines}"}}"#);
            let call = format!(r#"{{"role":"assistant","content":[{call}]}}"#);
            format!(r#"{call},{{"role":"user","content":[{result}]}}"#)
        };
        let reads = (0..6).map(read).collect::<Vec<_>>().join(",");
        let user = r#"{"role":"user","content":"Read value_7."}"#;
        let body = format!(r#"{{"system":"Be brief.","messages":[{user},{reads}]}}"#).into_bytes();
        let mut request = Loaded::read(body, Some("anthropic")).expect("a request");
        let prompt = request.transcript.head.prompt.clone();
        let mut messages = 0..;
        let message_of: Vec<Option<usize>> = (0..request.transcript.items.len())
            .map(|item| if prompt.contains(&item) { None } else { messages.next() })
            .collect();
        let recipe = built_in("epitome").expect("a recipe");
        let view = View::new(&request.transcript, &request.source, &Quarters);
        let tokens = |(item, entry): (usize, &epitome_model::Entry)| {
            (0..entry.blocks.len()).map(|block| view.tokens(item, block)).collect()
        };
        let sent: Vec<Vec<Tokens>> = request.transcript.entries().map(tokens).collect();
        let with = RequestRule {
            rule: &DigestRule::default(),
            recipe: &recipe,
            target: Tokens(1_500),
            message_of: &message_of,
            root: 0,
            sent: &sent,
        };
        let made = RequestDigest::new(&mut request, &with, &mut FactIndex::default(), &Quarters);
        let digest = made.expect("no rules").expect("a digest");
        assert_eq!(digest.messages, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    }
}
