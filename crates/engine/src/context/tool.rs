//! Requested compactions: by the model with the `compact` tool, by the user with `/compact`, or by
//! the program. All of them have the same kind of outcome.

use std::collections::{BTreeMap, HashSet};
use std::fmt;

use epitome_api::{Tool, text_argument};
use epitome_error::Result;
use epitome_model::{Block, Call, Role, Tokens, ToolKind, Transcript};
use epitome_passes::EventReason;
use serde::Serialize;

use super::{Context, MessagePart, Speaker};

/// The definition of the tool with which a model requests a compaction: an element of `tools` in a
/// request to this API (`anthropic`, `openai-chat`, `openai-responses`, `gemini-api`).
///
/// The agent does not run the tool. [`Context::step`] and [`Context::view`] notice its call in the
/// messages that were added, and add its result once all other calls of that response have theirs.
///
/// ```
/// let tool = epitome_engine::compact_tool("openai-chat")?;
/// assert!(tool.starts_with(r#"{"type":"function","function":{"name":"compact","#));
/// # Ok::<(), epitome_error::Error>(())
/// ```
///
/// # Errors
///
/// `NotFound` if there is no API with this name.
///
/// ```
/// use epitome_error::ErrorKind;
///
/// let err = epitome_engine::compact_tool("carrier-pigeon").expect_err("no API");
/// assert_eq!(err.kind(), ErrorKind::NotFound);
/// ```
pub fn compact_tool(api: &str) -> Result<String> {
    let text = epitome_passes::compact_tool();
    let parameters = text_argument(text.argument, text.argument_about);
    let name = text.name;
    let description = text.about;
    let tool = Tool { name, description, parameters: &parameters };
    Ok((super::api_json::named(api)?.tool)(&tool))
}

/// The outcome of a requested compaction. `Display` prints it as a text for the model or the user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Outcome {
    /// Why the compaction was made: [`EventReason::Tool`] if the model requested it,
    /// [`EventReason::Manual`] if the user or the program did.
    pub why: EventReason,
    /// Tokens of the next request before the compaction.
    pub before: Tokens,
    /// Tokens of the next request after the compaction.
    pub after: Tokens,
    /// Number of edits of each pass or stage; a summary counts as one. Empty if nothing was done.
    #[serde(rename = "by_tier")]
    pub by_stage: BTreeMap<String, u64>,
    /// Number of user messages that are sent unchanged, and number of user messages that were in
    /// the context when the compaction was requested.
    pub user: (u64, u64),
    /// Number of entries at the end that are sent unchanged.
    pub last: u64,
    /// Why nothing was done, or less than possible: the context was small already, or a step
    /// failed. Otherwise `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_done: Option<NotDone>,
    /// The target of this compaction, in tokens: the caller's, or else the one that
    /// [`Context::compact`] derives from the recipe's. `None` if there is neither, or if the
    /// caller's is 0: then the passes remove all that they can.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<Tokens>,
    /// The window without the tokens that are reserved for the response, if the window is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usable: Option<Tokens>,
}

/// Why nothing was done, or less than possible.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NotDone {
    /// The context is small already.
    Small {
        /// Tokens of the context, without the overhead: the tokens of everything in a request that
        /// is not in the log, such as tools.
        messages: Tokens,
        /// The minimum number of tokens at which messages are compacted.
        least: Tokens,
    },
    /// A step of the compaction failed; the text is the reason.
    Failed(String),
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Outcome { before, after, by_stage, user: (kept, all), last, not_done, .. } = self;
        let of = self.usable.map(|usable| format!(" of {usable}")).unwrap_or_default();
        match (by_stage.is_empty(), not_done) {
            (true, Some(NotDone::Small { messages, least })) => {
                let what = "tokens of messages; they are made small from";
                return write!(f, "No compaction needed: {messages} {what} {least} on.");
            }
            (true, Some(NotDone::Failed(why))) => {
                return write!(f, "Nothing was made smaller ({before} tokens): {why}.");
            }
            (true, None) => {
                write!(f, "No compaction needed: {before}{of} tokens, ")?;
                return match self.target.filter(|target| before <= target) {
                    Some(target) => write!(f, "and it aims at {target}."),
                    None => f.write_str("nothing left to shorten."),
                };
            }
            (false, _) => {}
        }
        write!(f, "Compacted: {before} → {after}{of} tokens. Shortened: ")?;
        for (n, (tier, times)) in by_stage.iter().enumerate() {
            let comma = if n > 0 { ", " } else { "" };
            write!(f, "{comma}{tier} {times}")?;
        }
        let last_stand = match last {
            1 => "the last entry".to_owned(),
            last => format!("the last {last} entries"),
        };
        match (by_stage.contains_key("summary"), last) {
            (true, 0) => write!(f, ". A summary stands for all of it; it holds the user's words.")?,
            (true, _) => {
                write!(
                    f,
                    ". A summary stands for all but {last_stand}; it holds the user's words."
                )?;
            }
            (false, _) => {
                let user = if kept == all { "All" } else { "Most" };
                write!(f, ". {user} messages of the user and {last_stand} stand as they were.")?;
            }
        }
        match not_done {
            Some(NotDone::Failed(why)) => write!(f, " No summary: {why}."),
            Some(NotDone::Small { .. }) | None => Ok(()),
        }
    }
}

/// A requested compaction that is under way.
#[derive(Debug)]
pub(super) struct CompactionRequest {
    why: EventReason,
    before: Tokens,
    /// The items of the context when the compaction was requested.
    sent: HashSet<usize>,
    /// The ids of tool calls that wait for the outcome.
    calls: Vec<Box<str>>,
    by_stage: BTreeMap<String, u64>,
    not_done: Option<NotDone>,
    target: Option<Tokens>,
}

impl CompactionRequest {
    /// Adds the edits of a step to the outcome.
    pub(super) fn did(&mut self, by_stage: &BTreeMap<String, u64>) {
        for (tier, n) in by_stage {
            *self.by_stage.entry(tier.clone()).or_default() += n;
        }
    }

    /// The ids of tool calls that wait for the outcome.
    pub(super) fn calls(self) -> Vec<Box<str>> {
        self.calls
    }

    /// Removes the tool calls that wait for the outcome and for which `stays` returns false.
    pub(super) fn retain_calls(&mut self, stays: impl Fn(&str) -> bool) {
        self.calls.retain(|call| stays(call));
    }

    /// Whether the request needs nothing to be done, because the context is small already.
    pub(super) fn is_needless(&self) -> bool {
        matches!(self.not_done, Some(NotDone::Small { .. }))
    }

    /// Records why a step failed, or did too little.
    pub(super) fn did_not(&mut self, reason: &str) {
        self.not_done = Some(NotDone::Failed(reason.to_owned()));
    }
}

impl Context {
    /// Requests a compaction if `line`, which the user typed, is `/compact`, optionally followed by
    /// what a summary or a digest should pay attention to. Returns false for any other line.
    ///
    /// ```
    /// use epitome_engine::{Context, Setup};
    /// use epitome_passes::built_in;
    ///
    /// let recipe = built_in("ion").expect("a built-in recipe");
    /// let mut context = Context::in_memory(Setup::new(recipe));
    /// assert!(!context.slash("How are you?"));
    /// assert!(context.slash("/compact the parser"));
    /// context.view()?;
    /// let outcome = context.outcome().expect("it was asked for");
    /// assert!(outcome.to_string().starts_with("No compaction needed"));
    /// # Ok::<(), epitome_error::Error>(())
    /// ```
    pub fn slash(&mut self, line: &str) -> bool {
        let Some(rest) = line.trim().strip_prefix("/compact") else { return false };
        if !rest.is_empty() && !rest.starts_with(char::is_whitespace) {
            return false;
        }
        self.ask_for_compaction(Some(rest.trim()).filter(|it| !it.is_empty()), None);
        true
    }

    /// The outcome of the last requested compaction; `None` if none was requested or it is not done
    /// yet.
    pub fn outcome(&self) -> Option<&Outcome> {
        self.ask.outcome.as_ref()
    }

    /// Records that a compaction was requested, with the target that the state machine has for it.
    pub(super) fn asked_by(&mut self, why: EventReason, calls: Vec<Box<str>>) {
        let sent = self.transcript().context.iter().copied().collect();
        let before = self.tokens();
        let by_stage = BTreeMap::new();
        let target = self.machine.aim();
        let not_done = None;
        self.ask.request =
            Some(CompactionRequest { why, before, sent, calls, by_stage, not_done, target });
        self.ask.outcome = None;
    }

    /// Looks for calls of the tool `compact` in the last response, once all other calls of the
    /// response have results, and requests the compaction. If the context is small already, the
    /// calls are answered at once instead. Does nothing while another requested compaction or a
    /// summary is under way.
    pub(super) fn notice_tool_calls(&mut self) -> Result<()> {
        if self.ask.request.is_some() || self.ask.pending.is_some() {
            return Ok(());
        }
        let (calls, focus) = self.waiting();
        if calls.is_empty() {
            return Ok(());
        }
        if let Some(small) = self.small() {
            self.asked_by(EventReason::Tool, calls);
            self.needless(EventReason::Tool, small);
            return self.report_outcome();
        }
        self.ask.focus = focus;
        self.machine.force(EventReason::Tool);
        self.asked_by(EventReason::Tool, calls);
        Ok(())
    }

    /// If the context is so small that a requested compaction without a target does nothing,
    /// returns that as the reason; otherwise `None`.
    pub(super) fn small(&self) -> Option<NotDone> {
        let messages = self.tokens() - self.setup.overhead;
        let least = self.least();
        (messages < least).then_some(NotDone::Small { messages, least })
    }

    /// A requested compaction without a target does nothing if the messages have fewer tokens than
    /// this: the recipe's minimum, or the target of requested compactions if that is smaller, as in
    /// a small window.
    fn least(&self) -> Tokens {
        let least = Tokens(self.setup.recipe.live.tool.min_tokens);
        self.machine.target_by_hand().map_or(least, |aim| least.min(aim))
    }

    /// Records that a requested compaction does nothing, because the messages are small.
    pub(super) fn needless(&mut self, why: EventReason, small: NotDone) {
        let least = self.least();
        self.machine.skip(why, format!("messages are made small from {least} tokens on"));
        self.ask.request.iter_mut().for_each(|asked| asked.not_done = Some(small.clone()));
    }

    /// Ends a requested compaction, if there is one: records its outcome, and adds the results of
    /// the tool calls that requested it.
    pub(super) fn report_outcome(&mut self) -> Result<()> {
        let Some(asked) = self.ask.request.take() else { return Ok(()) };
        // The focus was for this compaction only.
        self.ask.focus = None;
        let CompactionRequest { why, before, sent, calls, by_stage, not_done, target } = asked;
        let transcript = self.transcript();
        let all = sent.iter().filter(|&&item| is_user(transcript, item)).count() as u64;
        let context = &transcript.context;
        let kept = context
            .iter()
            .filter(|item| sent.contains(item) && is_user(transcript, **item))
            .count();
        let last = context.iter().rev().take_while(|item| sent.contains(item)).count() as u64;
        let after = self.tokens();
        let user = (kept as u64, all);
        let usable = self.machine.usable();
        let outcome =
            Outcome { why, before, after, by_stage, user, last, not_done, target, usable };
        for (n, call) in calls.iter().enumerate() {
            let text = match n {
                0 => outcome.to_string(),
                _ => "Done with the call before.".to_owned(),
            };
            let speaker = Speaker { role: Role::Tool, ..Speaker::default() };
            self.push(&speaker, &[MessagePart::output(&**call, text)])?;
        }
        self.ask.outcome = Some(outcome);
        Ok(())
    }

    /// The calls of the tool `compact` in the last response that have no result. Empty if another
    /// call of the response has no result, either. The second value is the focus of the first of
    /// the calls that states one.
    fn waiting(&self) -> (Vec<Box<str>>, Option<String>) {
        let open = LastResponse::from_transcript(self.transcript()).open;
        if open.iter().any(|call| call.kind != ToolKind::Compact) {
            return (Vec::new(), None);
        }
        let focus = open.iter().find_map(|call| {
            let focus = call.target.as_ref()?.read(self.log.bytes()).trim().to_owned();
            (!focus.is_empty()).then_some(focus)
        });
        (open.into_iter().map(|call| call.id.clone()).collect(), focus)
    }
}

fn is_user(transcript: &Transcript, item: usize) -> bool {
    transcript.items[item].entry().is_some_and(|entry| entry.role == Role::User)
}

/// The last response of the model, if nothing but its results follows in the context. Otherwise a
/// response without calls that begins at the end of the context.
pub(super) struct LastResponse<'t> {
    /// The index in the context at which the response begins.
    pub(super) begins: usize,
    /// The calls of the response that have no result.
    pub(super) open: Vec<&'t Call>,
}

impl<'t> LastResponse<'t> {
    pub(super) fn from_transcript(transcript: &'t Transcript) -> LastResponse<'t> {
        let mut answered: HashSet<&str> = HashSet::new();
        let mut last = LastResponse { begins: transcript.context.len(), open: Vec::new() };
        let mut group: Option<&str> = None;
        let mut at = transcript.context.len();
        for (_, entry) in transcript.context().rev() {
            at -= 1;
            match entry.role {
                // Results between two responses belong to the earlier one.
                Role::Tool => {}
                Role::Assistant if group.is_none() || entry.group.as_deref() == group => {
                    group = entry.group.as_deref();
                    last.begins = at;
                }
                Role::Assistant | Role::User | Role::System => break,
            }
            for block in entry.blocks.iter().rev() {
                match block {
                    Block::Call(call) if !answered.contains(&*call.id) => last.open.push(call),
                    Block::Output(output) => drop(answered.insert(&output.call)),
                    _ => {}
                }
            }
        }
        last.open.reverse();
        last
    }
}
