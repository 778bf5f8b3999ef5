//! Reads messages of an API into the log, and makes request bodies from the log.

use std::borrow::Cow;
use std::collections::HashSet;

use epitome_api::{APIS, Api, Message, RequestBody, Response, SummaryAs, anthropic};
use epitome_error::{Error, ErrorKind, Result};
use epitome_formats::epitome::blocks_of;
use epitome_model::{
    Block, Entry, HiddenRecord, Item, Role, Source, Tokens, ToolKind, Transcript, decode,
};

use super::calls::{AGAIN, NO_CALL, OpenCalls};
use super::known_messages::{KnownBytes, hash_of};
use super::{Context, Speaker};

/// What to send in a request: a transcript and the source of its texts. [`Context::view`] returns
/// it.
///
/// ```
/// # use epitome_engine::{Context, Setup};
/// # use epitome_passes::built_in;
/// # let recipe = built_in("epitome").expect("a recipe");
/// # let setup = Setup::new(recipe).with_counter(epitome_tokens::Estimate::new());
/// # let mut context = Context::in_memory(setup);
/// context.user("Hello.")?;
/// let outgoing = context.view()?;
/// let body = outgoing.body("openai-chat")?.body;
/// assert_eq!(body, r#"{"messages":[{"role":"user","content":"Hello."}]}"#);
/// assert!(outgoing.body("carrier-pigeon").is_err());
/// # Ok::<(), epitome_error::Error>(())
/// ```
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

    /// The transcript; its [`context`](Transcript::context) is what is sent.
    pub fn transcript(&self) -> &'a Transcript {
        self.transcript
    }

    /// The source that the spans of the transcript point into.
    pub fn source(&self) -> &'a dyn Source {
        self.source
    }

    /// The body of a request to an API (`anthropic`, `openai-chat`, `openai-responses`,
    /// `gemini-api`), and a list of the content that this API cannot express. The body names no
    /// model and sets no token limits. The body is empty if the context is empty.
    ///
    /// # Errors
    ///
    /// `NotFound` if there is no API with this name.
    pub fn body(&self, api: &str) -> Result<RequestBody> {
        Ok((named(api)?.make_as)(self.transcript, self.source, self.summary))
    }

    /// The same content, as a request to a model: see `Model::send` of `epitome-llm`.
    pub fn to_model(&self) -> epitome_api::Outgoing<'a> {
        let Outgoing { transcript, source, summary } = *self;
        epitome_api::Outgoing { transcript, source, summary }
    }

    /// The list of messages in Anthropic's format, as JSON. Unlike in a request body, the order of
    /// the transcript is not changed, and reasoning without a signature is included. A summary that
    /// belongs in the prompt becomes a user message.
    pub fn messages(&self) -> String {
        anthropic::messages(self.transcript, self.source, self.summary)
    }
}

impl Context {
    /// Adds one message in the format of an API: a JSON object, as in the list `messages`, `input`
    /// or `contents` of a request body.
    ///
    /// ```
    /// # use epitome_engine::{Context, Setup};
    /// # use epitome_passes::built_in;
    /// # let recipe = built_in("epitome").expect("a recipe");
    /// # let setup = Setup::new(recipe).with_counter(epitome_tokens::Estimate::new());
    /// # let mut context = Context::in_memory(setup);
    /// context.push_json("openai-chat", r#"{"role":"user","content":"Hello."}"#)?;
    /// assert_eq!(context.message_count(), 1);
    /// // Messages of the Gemini API have no `content`, so this one is refused.
    /// assert!(context.push_json("gemini-api", r#"{"role":"user","content":"Hello."}"#).is_err());
    /// # Ok::<(), epitome_error::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`push_messages`](Context::push_messages).
    pub fn push_json(&mut self, api: &str, message: &str) -> Result<()> {
        self.push_messages(api, &[message], None)
    }

    /// Adds messages in the format of an API, all of them or none. `billed` is the number of tokens
    /// that the provider counted for the context up to the last response among the messages; if
    /// there is no response among them, for the context before them.
    ///
    /// ```
    /// use epitome_engine::{Context, Setup};
    /// use epitome_passes::built_in;
    ///
    /// let mut context = Context::in_memory(Setup::new(built_in("epitome").expect("a recipe")));
    /// let of_another = r#"{"role":"tool","tool_call_id":"c1","content":"ok"}"#;
    /// let refused = context.push_messages("anthropic", &[of_another], None);
    /// let why = "message 1 of 1 is none of anthropic: the role `\"tool\"`";
    /// assert_eq!(refused.map_err(|err| err.to_string()), Err(why.to_owned()));
    /// assert_eq!(context.message_count(), 0);
    /// # Ok::<(), epitome_error::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `NotFound` if there is no API with this name; `Unreadable` if a message is not one of this
    /// API, or is the result of a call that does not exist or has its result already; `Disk` if the
    /// log cannot be written. No message is added then.
    pub fn push_messages(
        &mut self,
        api: &str,
        messages: &[&str],
        billed: Option<Tokens>,
    ) -> Result<()> {
        let mut read = ParsedMessage::all(named(api)?, messages, 0)?;
        self.tie_all(&mut read, 0, messages.len())?;
        self.all_or_nothing(|context| context.push_all(&read, billed))
    }

    /// Adds the response of a model, with the tokens that its provider counted. Returns the calls
    /// of the response in order, with the ids they have in the context: if an earlier call has the
    /// same id, the new one gets another.
    ///
    /// ```
    /// use epitome_engine::{Context, Setup};
    /// use epitome_passes::built_in;
    ///
    /// let mut context = Context::in_memory(Setup::new(built_in("epitome").expect("a recipe")));
    /// let body = br#"{"content":[{"type":"tool_use","id":"c1","name":"read","input":{}}]}"#;
    /// let api = epitome_api::find_api("anthropic").expect("an API");
    /// let response = api.response(body).expect("a response");
    /// let called = context.push_response(&response)?;
    /// assert_eq!((&*called[0].id, &*called[0].arguments), ("c1", "{}"));
    /// let again = context.push_response(&response)?;
    /// assert_eq!(&*again[0].id, "c1_again_1");
    /// # Ok::<(), epitome_error::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `Disk` if the log cannot be written; `Unreadable` if the response contains a result of a
    /// call that does not exist or has its result already. Nothing was added then.
    pub fn push_response(&mut self, response: &Response) -> Result<Vec<ResponseCall>> {
        let source = Cow::Borrowed(&*response.source);
        let entries = vec![(false, response.entry.clone())];
        let mut read = ParsedMessage { source, entries, hash: None };
        let mut ties = self.ties();
        self.tie(&mut read, &mut ties).map_err(|why| Error::new(ErrorKind::Unreadable, why))?;
        let blocks = read.entries.iter().flat_map(|(_, entry)| &entry.blocks);
        let called = blocks.filter_map(|block| match block {
            Block::Call(call) => Some(ResponseCall {
                id: call.id.clone(),
                name: call.name.clone(),
                kind: call.kind,
                arguments: arguments(&read.source().at(call.arguments)),
            }),
            _ => None,
        });
        let called = called.collect();
        self.all_or_nothing(|context| context.push_all(&[read], None))?;
        Ok(called)
    }

    /// Adds everything that `add` adds, or nothing if `add` fails or the log cannot be written.
    pub(super) fn all_or_nothing(
        &mut self,
        add: impl FnOnce(&mut Context) -> Result<()>,
    ) -> Result<()> {
        let from = self.log.bytes().len();
        let bill = self.bill;
        let overflows = self.attempt.overflows;
        self.log.gather();
        let added = add(self).and_then(|()| self.log.write_gathered());
        if added.is_err() {
            self.log.forget(from);
            self.known.reread(&self.log);
            self.known.bytes = KnownBytes::default();
            self.recount();
            self.bill = bill;
            self.attempt.overflows = overflows;
        }
        added
    }

    /// Calls [`tie`](Context::tie) for several messages. An error says which message is wrong: it
    /// calls `messages[0]` the message `first` + 1 of `of`.
    pub(super) fn tie_all(
        &self,
        messages: &mut [ParsedMessage<'_>],
        first: usize,
        of: usize,
    ) -> Result<()> {
        let mut ties = self.ties();
        for (idx, message) in messages.iter_mut().enumerate() {
            self.tie(message, &mut ties).map_err(|why| {
                let place = format!("message {} of {of}", first + idx + 1);
                Error::new(ErrorKind::Unreadable, format!("{place}: {why}"))
            })?;
        }
        Ok(())
    }

    /// The state with which [`tie`](Context::tie) begins: no new message has been handled yet.
    fn ties(&self) -> Ties {
        Ties { open: self.known.calls.open().clone(), made: HashSet::new() }
    }

    /// Adds parsed messages. `billed` is the number of tokens that the provider counted up to the
    /// last response among them, or before them if there is none.
    pub(super) fn push_all(
        &mut self,
        messages: &[ParsedMessage<'_>],
        billed: Option<Tokens>,
    ) -> Result<()> {
        let last = messages.iter().rposition(ParsedMessage::is_response);
        if let (Some(billed), None) = (billed, last) {
            self.report_billed_tokens(billed);
        }
        for (idx, parsed) in messages.iter().enumerate() {
            let number = self.message_count() + 1;
            self.push_parsed(parsed, Some(number))?;
            self.known.bytes.set_last(self.log.parsed().message_items().len() - 1, parsed.hash);
            if let (Some(billed), true) = (billed, last == Some(idx)) {
                self.report_billed_tokens(billed);
            }
        }
        Ok(())
    }

    /// Adds the content of a whole request body: prompt, tools and messages.
    ///
    /// ```
    /// # use epitome_engine::{Context, Setup};
    /// # use epitome_passes::built_in;
    /// # let recipe = built_in("epitome").expect("a recipe");
    /// # let setup = Setup::new(recipe).with_counter(epitome_tokens::Estimate::new());
    /// # let mut context = Context::in_memory(setup);
    /// let body = r#"{"system":"Be brief.","messages":[{"role":"user","content":"Hello."}]}"#;
    /// context.push_request("anthropic", body)?;
    /// let sent = context.view()?.body("anthropic")?.body;
    /// assert!(sent.starts_with(r#"{"system":[{"type":"text","text":"Be brief."}]"#));
    /// assert!(context.push_request("carrier-pigeon", body).is_err());
    /// # Ok::<(), epitome_error::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `NotFound` if there is no API with this name, `Unreadable` if `body` is not a request body
    /// of this API or has a result of a call that does not exist or has its result already, `Disk`
    /// if the log cannot be written.
    pub fn push_request(&mut self, api: &str, body: &str) -> Result<()> {
        let api = named(api)?;
        let mut parsed = ParsedMessage::from_body(api, body).map_err(|why| {
            Error::new(ErrorKind::Unreadable, format!("this is no body of {}: {why}", api.name))
        })?;
        self.tie(&mut parsed, &mut self.ties())
            .map_err(|why| Error::new(ErrorKind::Unreadable, format!("in this body: {why}")))?;
        self.push_parsed(&parsed, None)
    }

    /// The number of messages of the conversation that were added in the format of an API, in this
    /// run and in earlier ones. It includes neither messages that [`sync`](Context::sync) removed
    /// from the conversation nor the messages of [`push_request`](Context::push_request).
    ///
    /// ```
    /// # use epitome_engine::{Context, Setup};
    /// # use epitome_passes::built_in;
    /// # let recipe = built_in("epitome").expect("a recipe");
    /// # let setup = Setup::new(recipe).with_counter(epitome_tokens::Estimate::new());
    /// # let mut context = Context::in_memory(setup);
    /// context.user("Hello.")?;
    /// assert_eq!(context.message_count(), 0, "it was not in the format of an API");
    /// context.push_json("openai-chat", r#"{"role":"user","content":"Go."}"#)?;
    /// assert_eq!(context.message_count(), 1);
    /// # Ok::<(), epitome_error::Error>(())
    /// ```
    pub fn message_count(&self) -> u64 {
        self.log.parsed().messages()
    }

    /// The calls without a result, in order: the id of each, and the name of its tool.
    ///
    /// ```
    /// # use epitome_engine::{Context, MessagePart, Setup};
    /// # use epitome_passes::built_in;
    /// # let recipe = built_in("epitome").expect("a recipe");
    /// # let setup = Setup::new(recipe).with_counter(epitome_tokens::Estimate::new());
    /// # let mut context = Context::in_memory(setup);
    /// context.assistant(&[MessagePart::call("c1", "Read", r#"{"path":"a.rs"}"#)])?;
    /// assert_eq!(context.open_calls(), [("c1".into(), "Read".into())]);
    /// context.tool(&[MessagePart::output("c1", "fn main() {}")])?;
    /// assert!(context.open_calls().is_empty());
    /// # Ok::<(), epitome_error::Error>(())
    /// ```
    pub fn open_calls(&self) -> Vec<(Box<str>, Box<str>)> {
        self.known.calls.open().iter().map(|call| (call.id.clone(), call.tool.clone())).collect()
    }

    /// Adds the entries of a parsed message. `number` is the number of the message among all that
    /// were added in the format of an API, from 1; the log records it with the last entry of the
    /// message. It is `None` for a whole request body.
    fn push_parsed(&mut self, parsed: &ParsedMessage<'_>, number: Option<u64>) -> Result<()> {
        for (idx, (prompt, entry)) in parsed.entries.iter().enumerate() {
            let message = number.filter(|_| idx + 1 == parsed.entries.len());
            let model = entry.model.as_deref();
            let usage = entry.usage;
            let speaker =
                Speaker { role: entry.role, prompt: *prompt, model, usage, group: None, message };
            // The log gets a copy of the text, and does not refer to the parsed message.
            let item = self.log_entry(&speaker, &blocks_of(entry, &parsed.source()))?;
            self.take_entry(item, &speaker);
        }
        Ok(())
    }

    /// Gives each call a unique id (some APIs have no ids of calls, and some services use the same
    /// ids in every response), and each result the id of its call. It is an error if a result names
    /// a call that does not exist or has its result already.
    fn tie(
        &self,
        parsed: &mut ParsedMessage<'_>,
        ties: &mut Ties,
    ) -> std::result::Result<(), String> {
        let Ties { open, made } = ties;
        for block in parsed.entries.iter_mut().flat_map(|(_, entry)| &mut entry.blocks) {
            match block {
                Block::Call(call) => {
                    let original_id = call.id.clone();
                    let mut n = self.known.calls.len() + made.len();
                    while self.known.calls.get(&call.id).is_some() || made.contains(&call.id) {
                        call.id = format!("{original_id}{AGAIN}{n}").into();
                        n += 1;
                    }
                    made.insert(call.id.clone());
                    open.add(call);
                }
                Block::Output(output) => {
                    output.call = open.answer(&output.call).ok_or_else(|| {
                        let name = output.call.strip_prefix(NO_CALL);
                        let id = epitome_model::short(name.unwrap_or(&output.call), 80);
                        let known = self.known.calls.get(&output.call).is_some();
                        if known || made.contains(&output.call) {
                            format!("the call `{id}` has its result already")
                        } else {
                            format!("a result of `{id}`, but there is no such call")
                        }
                    })?;
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// A tool call of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResponseCall {
    /// The id that the result of the call must state.
    pub id: Box<str>,
    /// The name of the tool.
    pub name: Box<str>,
    /// The kind of the tool; [`ToolKind::Other`] if its name is unknown.
    pub kind: ToolKind,
    /// The arguments: the text of a JSON object, or whatever the model wrote.
    pub arguments: String,
}

/// The arguments as the model wrote them. Some APIs put the object into a string, which is decoded.
fn arguments(json: &[u8]) -> String {
    if json.starts_with(b"\"") {
        decode(json).into_owned()
    } else {
        String::from_utf8_lossy(json).into_owned()
    }
}

/// The state of [`Context::tie`]: the calls that have no result yet, and the ids of new calls.
struct Ties {
    open: OpenCalls,
    /// The ids of the calls in the messages that are being added.
    made: HashSet<Box<str>>,
}

/// A parsed message of an API.
pub(super) struct ParsedMessage<'m> {
    source: Cow<'m, [u8]>,
    /// The entries, each with a flag: whether it is part of the prompt.
    pub(super) entries: Vec<(bool, Entry)>,
    /// The hash of the message's bytes; `None` for a whole request body and for a [`Response`].
    hash: Option<u64>,
}

impl<'m> ParsedMessage<'m> {
    /// Parses the messages of a list, beginning at the index `first`. An error gives the number of
    /// the message in the list, from 1.
    pub(super) fn all(
        api: &Api,
        messages: &[&'m str],
        first: usize,
    ) -> Result<Vec<ParsedMessage<'m>>> {
        let parsed = messages.iter().enumerate().skip(first).map(|(idx, message)| {
            ParsedMessage::read(api, message).map_err(|why| {
                let place = format!("message {} of {}", idx + 1, messages.len());
                let what = format!("{place} is none of {}: {why}", api.name);
                let err = Error::new(ErrorKind::Unreadable, what);
                match elsewhere(message) {
                    Some(other) => err.with_hint(format!("{other} has such messages")),
                    None if has_half_a_character(message) => {
                        err.with_hint("send U+FFFD (\\ufffd) in its place: no text can hold it")
                    }
                    None => err,
                }
            })
        });
        parsed.collect()
    }

    /// Parses a message of an API.
    pub(super) fn read(
        api: &Api,
        message: &'m str,
    ) -> std::result::Result<ParsedMessage<'m>, String> {
        if has_half_a_character(message) {
            return Err("a character in it is cut in half (half of a surrogate pair)".to_owned());
        }
        let read = api.message(message).map_err(|why| why.to_string())?;
        let Message { source, entries } = read;
        Ok(ParsedMessage { source, entries, hash: Some(hash_of(message)) })
    }

    /// Parses a whole request body as if it were one message.
    fn from_body(api: &Api, body: &'m str) -> std::result::Result<ParsedMessage<'m>, String> {
        let mut faults = Vec::new();
        let transcript = (api.format.read)(&body.as_bytes(), &mut faults);
        if let Some(fault) = faults.first() {
            return Err(fault.what.clone());
        }
        let Transcript { head, mut items, context } = transcript;
        let entries = context.into_iter().filter_map(|item| {
            match std::mem::replace(&mut items[item], Item::Hidden(HiddenRecord::default())) {
                Item::Entry(entry) => Some((head.prompt.contains(&item), *entry)),
                Item::Hidden(_) => None,
            }
        });
        let entries = entries.collect();
        let source = Cow::Borrowed(body.as_bytes());
        Ok(ParsedMessage { source, entries, hash: None })
    }

    /// The source that the spans of the entries point into.
    pub(super) fn source(&self) -> &[u8] {
        &self.source
    }

    fn is_response(&self) -> bool {
        self.entries.iter().any(|(_, entry)| entry.role == Role::Assistant)
    }
}

/// Whether JSON contains an escape of an unpaired surrogate (one half of a character), which no
/// text can contain.
fn has_half_a_character(json: &str) -> bool {
    let mut rest = json;
    let mut begun = false;
    while let Some(at) = rest.find('\\') {
        let escape = &rest[at + 1..];
        let digits = escape.strip_prefix('u').and_then(|it| it.get(..4));
        let unit = digits.and_then(|it| u16::from_str_radix(it, 16).ok()).unwrap_or_default();
        let ends = (0xdc00..0xe000).contains(&unit);
        if begun != ends || begun && at > 0 {
            return true;
        }
        begun = (0xd800..0xdc00).contains(&unit);
        rest = escape.get(1..).unwrap_or_default();
        if unit > 0 {
            rest = &escape[5..];
        }
    }
    begun
}

/// The name of the first API for which the message is valid; `None` if there is none, or if the
/// message contains an unpaired surrogate.
fn elsewhere(message: &str) -> Option<&'static str> {
    if has_half_a_character(message) {
        return None;
    }
    APIS.iter().find(|api| api.message(message).is_ok()).map(|api| api.name)
}

/// The API with this name.
pub(super) fn named(api: &str) -> Result<&'static Api> {
    epitome_api::find_api(api).ok_or_else(|| {
        let names: Vec<&str> = APIS.iter().map(|api| api.name).collect();
        Error::new(ErrorKind::NotFound, format!("there is no API {api}"))
            .with_hint(format!("the APIs are {}", names.join(", ")))
    })
}

#[cfg(test)]
mod tests {
    use super::super::Setup;
    use super::super::log::ContextLog;
    use super::*;
    use crate::Journal;

    /// A disk that is full after the first line of a log.
    struct FullDisk {
        is_new: bool,
    }

    impl Journal for FullDisk {
        fn append(&mut self, _: &[u8]) -> Result<()> {
            if std::mem::take(&mut self.is_new) {
                Ok(())
            } else {
                Err(Error::new(ErrorKind::Disk, "no storage space"))
            }
        }

        fn flush(&self) -> Result<()> {
            Ok(())
        }
    }

    #[test]
    fn of_messages_that_a_full_disk_does_not_take_nothing_was_said() {
        let recipe = epitome_passes::built_in("epitome").expect("a built-in recipe");
        let log = ContextLog::create(
            Box::new(FullDisk { is_new: true }),
            "full",
            &epitome_formats::epitome::Origin::default(),
        );
        let mut context =
            Context::from_log(Setup::new(recipe), log.expect("its first line is taken"));
        let call = r#"{"role":"assistant","content":[
            {"type":"tool_use","id":"c1","name":"Read","input":{}}]}"#;
        let result = r#"{"role":"user","content":[
            {"type":"tool_result","tool_use_id":"c1","content":"a"}]}"#;
        for _ in 0..2 {
            let before = (context.log().to_vec(), context.usage(), context.message_count());
            let pushed = context.push_messages("anthropic", &[call, result], Some(Tokens(900)));
            assert_eq!(pushed.map_err(|err| err.kind()), Err(ErrorKind::Disk));
            let after = (context.log().to_vec(), context.usage(), context.message_count());
            assert_eq!(after, before);
            assert_eq!((context.open_calls(), context.known.calls.len()), (Vec::new(), 0));
        }
    }
}
