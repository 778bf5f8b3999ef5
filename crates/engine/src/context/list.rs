//! A whole list of messages, as an agent keeps it: the context takes what is new in it, and goes
//! back to where the list differs from what was said before.

use std::collections::HashSet;

use epitome_api::Api;
use epitome_error::{Error, ErrorKind, Result};
use epitome_formats::epitome::{Said, Speaker, Undone, back, line, said, said_again, undo};
use epitome_model::{Block, Entry, Role, Source, Tokens, ToolKind};
use serde::Serialize;

use super::calls::{OpenCalls, without_again};
use super::known_messages::hash_of;
use super::wire::{ParsedMessage, named};
use super::{Context, Outgoing};

/// How a list of messages differs from what was said before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ListChange {
    /// Messages at its beginning that were said before.
    pub known: u64,
    /// Messages that were said behind these, and are not in the list.
    pub left: u64,
    /// Messages of the list that are new.
    pub new: u64,
}

/// The beginning of a list that was said before.
#[derive(Default)]
struct Prefix {
    /// Messages.
    len: usize,
    /// Of those that are prompts, by their ids, the texts that they have now.
    prompts: Vec<(Box<str>, String)>,
}

/// How a message compares with one that was said.
enum Compared {
    Same,
    /// Both are prompts: the id of the entry, and the text that it has now.
    Prompt(Box<str>, String),
    Other,
}

impl Context {
    /// What to send for this whole list of messages, as [`sync`](Context::sync) takes it and
    /// [`view`](Context::view) does what is due.
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
    /// // One that goes on from an earlier place.
    /// let other = r#"{"role":"assistant","content":"Yes?"}"#;
    /// let sent = context.view_of("anthropic", &[hi, other])?.messages();
    /// assert!(sent.contains("Yes?") && !sent.contains("Hello."));
    /// # Ok::<(), epitome_error::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`sync`](Context::sync).
    pub fn view_of(&mut self, api: &str, messages: &[&str]) -> Result<Outgoing<'_>> {
        self.sync(api, messages, None)?;
        self.view()
    }

    /// Takes a whole list of messages of an API: all that an agent has said and heard so far. What
    /// was said before is found again, and what is new in the list is added. Where the list is
    /// another one or ends before, the context goes back to that place: compactions of what is not
    /// in the list are taken back, and the log keeps what was said. A prompt that has another text
    /// gets that text. `billed` is what [`push_messages`](Context::push_messages) takes.
    ///
    /// # Errors
    ///
    /// As [`push_messages`](Context::push_messages); the context is then what it was.
    pub fn sync(
        &mut self,
        api: &str,
        messages: &[&str],
        billed: Option<Tokens>,
    ) -> Result<ListChange> {
        let api = named(api)?;
        let prefix = self.known_prefix(api, messages);
        let before = self.log.log().message_items().len();
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
        let count = |messages: usize| messages as u64;
        let (left, new) = (count(before - known), count(messages.len() - known));
        Ok(ListChange { known: count(known), left, new })
    }

    /// The messages at the beginning of a list that were said before.
    fn known_prefix(&mut self, api: &Api, messages: &[&str]) -> Prefix {
        let mut prefix = Prefix::default();
        let mut known = std::mem::take(&mut self.known.bytes);
        let said = self.log.log().message_items();
        // The calls that are open behind so many messages.
        let (mut open, mut linked) = (OpenCalls::default(), 0);
        for (at, (message, items)) in messages.iter().zip(said).enumerate() {
            let hash = hash_of(message);
            if !known.is_known(at, hash) {
                for &item in said[linked..at].iter().flatten() {
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

    /// Compares a message with one that was said in these items, while these calls are open.
    fn compare(&self, api: &Api, message: &str, items: &[usize], open: &OpenCalls) -> Compared {
        let Ok(parsed) = ParsedMessage::read(api, message) else { return Compared::Other };
        // What the context said itself is before it.
        let skipped = items.len().checked_sub(parsed.entries.len());
        let Some(items) = skipped.map(|skipped| &items[skipped..]) else {
            return Compared::Other;
        };
        let transcript = self.transcript();
        let mut open = open.clone();
        for (&item, (is_prompt, entry)) in items.iter().zip(&parsed.entries) {
            let was_prompt = transcript.head.prompt.contains(&item);
            let id = transcript.items[item].entry().and_then(|entry| entry.id.as_deref());
            // A prompt is what it says now; anything else, what was said.
            let now = id.and_then(|id| self.log.log().item(id)).filter(|_| was_prompt);
            let said = transcript.items[now.unwrap_or(item)].entry();
            let (Some(said), Some(id), true) = (said, id, was_prompt == *is_prompt) else {
                return Compared::Other;
            };
            let spelled = |entry, source, answers: &mut dyn FnMut(&str) -> Option<Box<str>>| {
                spelled(entry, *is_prompt, source, answers)
            };
            let was = spelled(said, self.log.bytes(), &mut |id| Some(id.into()));
            let is = spelled(entry, &parsed.source(), &mut |id| open.answer(id));
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

    /// Goes back to where so many messages were said: what was said behind them is no part of the
    /// conversation any more, and compactions of it are taken back.
    fn go_back(&mut self, messages: usize) -> Result<()> {
        self.leave();
        let gone = self.said_behind(messages);
        for _ in 0..self.log.log().steps_about(&gone) {
            self.log.append(undo(Undone::Refused).as_bytes())?;
        }
        let line = back(self.log.log(), &gone, messages as u64)
            .map_err(|why| Error::new(ErrorKind::Refused, why))?;
        self.log.append(line.as_bytes())?;
        self.known.reread(&self.log);
        if let Some(asked) = &mut self.ask.request {
            asked.retain_calls(|id| self.known.calls.get(id).is_some());
        }
        (self.attempt.has_begun, self.attempt.overflows) = (false, 0);
        self.recount();
        Ok(())
    }

    /// The items in which the messages behind the first ones were said. A result that the context
    /// itself gave to a call of these belongs to them.
    fn said_behind(&self, messages: usize) -> HashSet<usize> {
        let log = self.log.log();
        let mut items: Vec<usize> =
            log.message_items()[messages..].iter().flatten().copied().collect();
        items.extend(log.unnumbered());
        let end = log.message_items()[..messages].last().and_then(|items| items.last().copied());
        let is_own = |item: &usize| {
            let entry = self.transcript().items[*item].entry();
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
        };
        let own = items.iter().take_while(|item| is_own(item)).count();
        items.split_off(own).into_iter().collect()
    }
}

/// An entry as the log spells it, without an id and with the ids of calls as they were made.
/// `answers` says which call a result answers.
fn spelled(
    entry: &Entry,
    prompt: bool,
    source: &dyn Source,
    answers: &mut dyn FnMut(&str) -> Option<Box<str>>,
) -> Option<String> {
    let mut blocks = said(entry, source);
    for block in &mut blocks {
        match block {
            Said::Call { id, .. } => *id = without_again(id).to_owned().into(),
            Said::Output { call, .. } => *call = answers(call)?.into_string().into(),
            _ => {}
        }
    }
    let role: Role = entry.role;
    Some(line("", &Speaker { role, prompt, ..Speaker::default() }, &blocks))
}

#[cfg(test)]
#[path = "list_tests.rs"]
mod tests;
