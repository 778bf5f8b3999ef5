//! Reads the whole list of messages of an agent: adds the new ones, and goes back to an earlier
//! message where the list differs from the log.

use std::collections::HashSet;

use epitome_api::Api;
use epitome_error::{Error, ErrorKind, Result};
use epitome_formats::epitome::{
    MessagePart, Speaker, UndoReason, blocks_of, line, rewind, said_again, undo,
};
use epitome_model::{Block, Entry, Role, Source, Tokens, ToolKind};
use serde::Serialize;

use super::api_json::{ParsedMessage, named};
use super::calls::{OpenCalls, without_again};
use super::known_messages::hash_of;
use super::{Context, Outgoing};

/// How a list of messages differed from the messages of the context.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ListChange {
    /// Number of messages at the beginning of the list that the context had already.
    pub known: u64,
    /// Number of messages of the context that follow the `known` ones: they are no longer part of
    /// the conversation.
    pub left: u64,
    /// Number of messages of the list that were added to the context.
    pub new: u64,
}

/// The beginning of a list whose messages the context has already.
#[derive(Default)]
struct Prefix {
    /// Number of messages.
    len: usize,
    /// The prompts in this beginning whose text in the list differs from that in the log: the id of
    /// the entry in the log, and the text in the list.
    prompts: Vec<(Box<str>, String)>,
}

/// The result of comparing a message of a list with the message of the context at the same index.
enum Compared {
    Same,
    /// Both are prompts, with different texts: the id of the entry in the log, and the text in the
    /// list.
    Prompt(Box<str>, String),
    Other,
}

impl Context {
    /// Reads a whole list of messages as [`sync`](Context::sync) does, and returns what to send as
    /// [`view`](Context::view) does.
    ///
    /// ```
    /// use epitome_engine::{Context, Setup};
    /// use epitome_passes::built_in;
    ///
    /// let mut context = Context::in_memory(Setup::new(built_in("epitome").expect("a recipe")));
    /// let hi = r#"{"role":"user","content":"Hi."}"#;
    /// let hello = r#"{"role":"assistant","content":"Hello."}"#;
    /// let sent = context.view_of("anthropic", &[hi, hello])?.messages();
    /// // The same list again: nothing is new.
    /// assert_eq!(context.view_of("anthropic", &[hi, hello])?.messages(), sent);
    /// // A list that differs from the second message on.
    /// let other = r#"{"role":"assistant","content":"Yes?"}"#;
    /// let sent = context.view_of("anthropic", &[hi, other])?.messages();
    /// assert!(sent.contains("Yes?") && !sent.contains("Hello."));
    /// # Ok::<(), epitome_error::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`sync`](Context::sync).
    pub fn view_of(&mut self, api: &str, messages: &[&str]) -> Result<Outgoing<'_>> {
        self.sync(api, messages, None)?;
        self.view()
    }

    /// Reads the whole list of messages that an agent has, in the format of an API. Messages that
    /// the context has already are recognised, and new ones are added. Where the list differs or is
    /// shorter, the context goes back to that message: compactions of messages that are not in the
    /// list are undone, and these messages stay in the log only. If a prompt has a different text,
    /// the text is replaced. `billed` is the same as for [`push_messages`](Context::push_messages).
    ///
    /// ```
    /// # use epitome_engine::{Context, Setup};
    /// # use epitome_passes::built_in;
    /// # let recipe = built_in("epitome").expect("a recipe");
    /// # let setup = Setup::new(recipe).with_counter(epitome_tokens::Estimate::new());
    /// # let mut context = Context::in_memory(setup);
    /// let hi = r#"{"role":"user","content":"Hi."}"#;
    /// let go = r#"{"role":"user","content":"Go."}"#;
    /// let change = context.sync("openai-chat", &[hi], None)?;
    /// assert_eq!((change.known, change.left, change.new), (0, 0, 1));
    /// // The same list again changes nothing.
    /// let change = context.sync("openai-chat", &[hi], None)?;
    /// assert_eq!((change.known, change.left, change.new), (1, 0, 0));
    /// // A list that differs replaces the messages from there on.
    /// let change = context.sync("openai-chat", &[go], None)?;
    /// assert_eq!((change.known, change.left, change.new), (0, 1, 1));
    /// # Ok::<(), epitome_error::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`push_messages`](Context::push_messages), and `Refused` if the context has to
    /// go back to an earlier message but the ids of entries in the log are missing or repeat. The
    /// log and an open question are then unchanged.
    pub fn sync(
        &mut self,
        api: &str,
        messages: &[&str],
        billed: Option<Tokens>,
    ) -> Result<ListChange> {
        let api = named(api)?;
        let prefix = self.known_prefix(api, messages);
        let before = self.log.parsed().message_items().len();
        let known = prefix.len;
        let mut new = ParsedMessage::all(api, messages, known)?;
        self.all_or_nothing(|context| {
            for (id, text) in &prefix.prompts {
                context.append_line(&said_again(id, text))?;
            }
            if known < before {
                context.go_back(known)?;
            }
            context.tie_all(&mut new, known, messages.len())?;
            context.push_all(&new, billed)
        })?;
        if known < before {
            // The question may be about messages that are no longer part of the conversation.
            self.drop_question();
        }
        Ok(ListChange {
            known: known as u64,
            left: (before - known) as u64,
            new: (messages.len() - known) as u64,
        })
    }

    /// The longest beginning of a list whose messages the context has already.
    fn known_prefix(&mut self, api: &Api, messages: &[&str]) -> Prefix {
        let mut prefix = Prefix::default();
        let mut known = std::mem::take(&mut self.known.bytes);
        let message_items = self.log.parsed().message_items();
        // The calls that have no result in the messages before the index `linked`.
        let mut open = OpenCalls::default();
        let mut linked = 0;
        for (at, (message, items)) in messages.iter().zip(message_items).enumerate() {
            let hash = hash_of(message);
            if !known.is_known(at, hash) {
                for &item in message_items[linked..at].iter().flatten() {
                    self.transcript().items[item].entry().into_iter().for_each(|it| open.link(it));
                }
                linked = at;
                match self.compare(api, message, items, &open) {
                    Compared::Same => known.set(at, hash),
                    Compared::Prompt(id, text) => prefix.prompts.push((id, text)),
                    Compared::Other => break,
                }
            }
            prefix.len += 1;
        }
        self.known.bytes = known;
        prefix
    }

    /// Compares a message of a list with the message of the context that has the items `items`.
    /// `open` are the calls that have no result before this message.
    fn compare(&self, api: &Api, message: &str, items: &[usize], open: &OpenCalls) -> Compared {
        let Ok(parsed) = ParsedMessage::read(api, message) else { return Compared::Other };
        // `items` may begin with results of the tool `compact`, which the context itself added; the
        // items of the message follow.
        let skipped = items.len().checked_sub(parsed.entries.len());
        let Some(items) = skipped.map(|skipped| &items[skipped..]) else {
            return Compared::Other;
        };
        let transcript = self.transcript();
        let mut open = open.clone();
        for (&item, (is_prompt, entry)) in items.iter().zip(&parsed.entries) {
            let was_prompt = transcript.head.prompt.contains(&item);
            let id = transcript.items[item].entry().and_then(|entry| entry.id.as_deref());
            // A prompt is compared with its current text, because the text may have been replaced;
            // any other entry is compared with its original text.
            let now = id.and_then(|id| self.log.parsed().item(id)).filter(|_| was_prompt);
            let original_entry = transcript.items[now.unwrap_or(item)].entry();
            let (Some(original_entry), Some(id), true) =
                (original_entry, id, was_prompt == *is_prompt)
            else {
                return Compared::Other;
            };
            let was = comparable_line(original_entry, *is_prompt, self.log.bytes(), &mut |id| {
                Some(id.into())
            });
            let is =
                comparable_line(entry, *is_prompt, &parsed.source(), &mut |id| open.answer(id));
            match (was == is, entry.blocks.as_slice()) {
                (true, _) => {}
                (false, [Block::Text(text)]) if *is_prompt && items.len() == 1 => {
                    let text = text.read(&parsed.source()).into_owned();
                    return Compared::Prompt(id.into(), text);
                }
                (false, _) => return Compared::Other,
            }
        }
        Compared::Same
    }

    /// Goes back to the state after the first `messages` messages: later ones are no longer part of
    /// the conversation, and compactions of them are undone.
    fn go_back(&mut self, messages: usize) -> Result<()> {
        let gone = self.said_behind(messages);
        for _ in 0..self.log.parsed().steps_about(&gone) {
            self.log.append(undo(UndoReason::NoGain).as_bytes())?;
        }
        let line = rewind(self.log.parsed(), &gone, messages as u64)
            .map_err(|why| Error::new(ErrorKind::Refused, why))?;
        self.log.append(line.as_bytes())?;
        self.known.reread(&self.log);
        if let Some(asked) = &mut self.ask.request {
            asked.retain_calls(|id| self.known.calls.get(id).is_some());
        }
        self.attempt.has_begun = false;
        self.attempt.overflows = 0;
        self.recount();
        Ok(())
    }

    /// The items after the first `messages` messages, which leave the conversation. If the first of
    /// them are results of the tool `compact` whose calls stay, these results are left out: the
    /// context itself added them.
    fn said_behind(&self, messages: usize) -> HashSet<usize> {
        let log = self.log.parsed();
        let mut items: Vec<usize> =
            log.message_items()[messages..].iter().flatten().copied().collect();
        items.extend(log.unnumbered());
        let end = log.message_items()[..messages].last().and_then(|items| items.last().copied());
        let own = items.iter().take_while(|&&item| {
            let entry = self.transcript().items[item].entry();
            entry.is_some_and(|entry| {
                entry.blocks.iter().all(|block| match block {
                    Block::Output(output) => {
                        self.known.calls.get(&output.call).is_some_and(|call| {
                            call.kind == ToolKind::Compact && Some(call.at.0) <= end
                        })
                    }
                    _ => false,
                })
            })
        });
        let own = own.count();
        items.split_off(own).into_iter().collect()
    }
}

/// The log line of an entry, without its id and with the original ids of calls, so that entries can
/// be compared. `answers` returns the id of the call that a result answers. `None` if a result
/// answers no call.
fn comparable_line(
    entry: &Entry,
    prompt: bool,
    source: &dyn Source,
    answers: &mut dyn FnMut(&str) -> Option<Box<str>>,
) -> Option<String> {
    let mut blocks = blocks_of(entry, source);
    for block in &mut blocks {
        match block {
            MessagePart::Call { id, .. } => *id = without_again(id).to_owned().into(),
            MessagePart::Output { call, .. } => *call = answers(call)?.into_string().into(),
            _ => {}
        }
    }
    let role: Role = entry.role;
    Some(line("", &Speaker { role, prompt, ..Speaker::default() }, &blocks))
}

#[cfg(test)]
#[path = "list_tests.rs"]
mod tests;
