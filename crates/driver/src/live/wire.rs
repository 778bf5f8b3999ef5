//! What goes in from a wire, and what comes out for one.

use epitome_formats::{Made, SummaryAs, WIRES, Wire, anthropic};
use epitome_model::{Source, Transcript};

use super::Context;
use crate::error::{Error, ErrorKind, Result};

/// What is to be sent: a transcript and its bytes.
#[derive(Clone, Copy)]
pub struct Outgoing<'a> {
    transcript: &'a Transcript,
    source: &'a Vec<u8>,
    summary: SummaryAs,
}

impl<'a> Outgoing<'a> {
    pub(super) fn new(
        transcript: &'a Transcript,
        source: &'a Vec<u8>,
        summary: SummaryAs,
    ) -> Outgoing<'a> {
        Outgoing { transcript, source, summary }
    }

    /// The transcript; what is sent is its [`context`](Transcript::context).
    pub fn transcript(&self) -> &'a Transcript {
        self.transcript
    }

    /// The bytes in which its texts stand.
    pub fn source(&self) -> &'a dyn Source {
        self.source
    }

    /// The body of a request on a wire (`anthropic`, `openai-chat`, `openai-responses`, `gemini`),
    /// and what cannot be said there.
    ///
    /// # Errors
    ///
    /// `NotFound` if there is no such wire.
    pub fn body(&self, wire: &str) -> Result<Made> {
        Ok((named(wire)?.make_as)(self.transcript, self.source, self.summary))
    }

    /// The messages as Anthropic's wire spells them, each as it was said: nothing is moved, and
    /// reasoning without a signature is there, too. A summary stands among the user's words.
    pub fn messages(&self) -> String {
        anthropic::messages(self.transcript, self.source)
    }
}

impl Context {
    /// Says what a message of a wire says: the text of a JSON object, as an element of `messages`,
    /// `input` or `contents`.
    ///
    /// # Errors
    ///
    /// `NotFound` if there is no such wire, `Unreadable` if it is no message, `Disk` if the log
    /// cannot be written.
    pub fn push_json(&mut self, wire: &str, message: &str) -> Result<()> {
        let wire = named(wire)?;
        self.push_body(wire, &format!("{{\"{}\":[{message}]}}", wire.list))
    }

    /// Says all that the body of a request says: prompt, tools and messages.
    ///
    /// # Errors
    ///
    /// As [`push_json`](Context::push_json).
    pub fn push_request(&mut self, wire: &str, body: &str) -> Result<()> {
        self.push_body(named(wire)?, body)
    }

    fn push_body(&mut self, wire: &Wire, body: &str) -> Result<()> {
        let source = body.as_bytes().to_vec();
        let mut faults = Vec::new();
        let transcript = (wire.format.read)(&source, &mut faults);
        if let Some(fault) = faults.first() {
            let what = format!("this is no message of {}: {}", wire.name, fault.what);
            return Err(Error::new(ErrorKind::Unreadable, what));
        }
        for (item, entry) in transcript.context() {
            let entry = self.with_ids(entry);
            self.push_entry(&entry, transcript.head.prompt.contains(&item), &source)?;
        }
        Ok(())
    }

    /// An entry whose calls have ids of their own: some wires have none, and each message counts
    /// from one again.
    fn with_ids(&mut self, entry: &epitome_model::Entry) -> epitome_model::Entry {
        use epitome_model::Block;

        let mut entry = entry.clone();
        for block in &mut entry.blocks {
            match block {
                Block::Call(call) => {
                    if self.calls.contains_key(&call.id) {
                        call.id = format!("{} of {}", call.id, self.calls.len()).into();
                    }
                    self.open.push((call.id.clone(), call.name.clone()));
                    self.calls.insert(call.id.clone(), call.name.clone());
                }
                Block::Output(output) => {
                    let name = output.call.strip_prefix("no call of ").unwrap_or_default();
                    let by_id = self.open.iter().position(|(id, _)| *id == output.call);
                    let by_name = || self.open.iter().position(|(_, open)| **open == *name);
                    if let Some(found) = by_id.or_else(by_name) {
                        output.call = self.open.remove(found).0;
                    }
                }
                _ => {}
            }
        }
        entry
    }
}

pub(super) fn named(wire: &str) -> Result<&'static Wire> {
    WIRES.iter().find(|it| it.name == wire).ok_or_else(|| {
        let names: Vec<&str> = WIRES.iter().map(|wire| wire.name).collect();
        Error::new(ErrorKind::NotFound, format!("there is no wire {wire}"))
            .with_hint(format!("the wires are {}", names.join(", ")))
    })
}
