//! A compaction that somebody asked for: the model with a tool, the user with a line, a program
//! with a call. All three are told the same of what came of it.

use std::collections::{BTreeMap, HashSet};
use std::fmt;

use epitome_api::{Tool, text_argument};
use epitome_error::Result;
use epitome_model::{Block, Call, Role, Tokens, ToolKind, Transcript};
use epitome_passes::EventReason;
use serde::Serialize;

use super::{Context, Said, Speaker};

/// The tool with which a model asks for a compaction: an element of `tools` of a request on this
/// wire (`anthropic`, `openai-chat`, `openai-responses`, `gemini-api`).
///
/// Whoever offers it runs nothing when it is called: [`Context::step`] and [`Context::view`] notice
/// the call in what was pushed, and give its result once all other calls of that response have
/// theirs.
///
/// ```
/// let tool = epitome_engine::compact_tool("openai-chat")?;
/// assert!(tool.starts_with(r#"{"type":"function","function":{"name":"compact","#));
/// # Ok::<(), epitome_error::Error>(())
/// ```
///
/// # Errors
///
/// `NotFound` if there is no such wire.
pub fn compact_tool(wire: &str) -> Result<String> {
    let text = epitome_passes::compact_tool();
    let parameters = text_argument(text.argument, text.argument_about);
    let (name, description) = (text.name, text.about);
    let tool = Tool { name, description, parameters: &parameters };
    Ok((super::wire::named(wire)?.tool)(&tool))
}

/// What came of a compaction that was asked for. Shown, it is what a model or a user is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Outcome {
    /// Who asked.
    pub why: EventReason,
    /// What would have been sent.
    pub before: Tokens,
    /// What will be.
    pub after: Tokens,
    /// Edits by pass; a summary counts as one.
    pub by_tier: BTreeMap<String, u64>,
    /// Messages of the user that are sent as they were, and how many there were.
    pub user: (u64, u64),
    /// Entries at the end that are sent as they were.
    pub last: u64,
    /// Why less was done than could have been.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_done: Option<NotDone>,
    /// What it aimed at, if the recipe or the caller has a target.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<Tokens>,
    /// The window without the reserve, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usable: Option<Tokens>,
}

/// Why less was done than could have been.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NotDone {
    /// The context is small.
    Small {
        /// Tokens of its messages: prompt and tools, which nobody can shorten, do not count.
        messages: Tokens,
        /// From so many on it is made small.
        least: Tokens,
    },
    /// A step came to nothing: there is no summary.
    Failed(String),
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Outcome { before, after, by_tier, user: (kept, all), last, not_done, .. } = self;
        let of = self.usable.map(|usable| format!(" of {usable}")).unwrap_or_default();
        match (by_tier.is_empty(), not_done) {
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
        for (n, (tier, times)) in by_tier.iter().enumerate() {
            let comma = if n > 0 { ", " } else { "" };
            write!(f, "{comma}{tier} {times}")?;
        }
        let last_stand = match last {
            1 => "the last entry".to_owned(),
            last => format!("the last {last} entries"),
        };
        match (by_tier.contains_key("summary"), last) {
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

/// A compaction that was asked for and is under way.
#[derive(Debug)]
pub(super) struct CompactionRequest {
    why: EventReason,
    before: Tokens,
    /// What was sent.
    sent: HashSet<usize>,
    /// Calls that wait for its outcome.
    calls: Vec<Box<str>>,
    by_tier: BTreeMap<String, u64>,
    not_done: Option<NotDone>,
    target: Option<Tokens>,
}

impl CompactionRequest {
    /// What a step has done.
    pub(super) fn did(&mut self, by_tier: &BTreeMap<String, u64>) {
        for (tier, n) in by_tier {
            *self.by_tier.entry(tier.clone()).or_default() += n;
        }
    }

    /// The calls that wait for it.
    pub(super) fn calls(self) -> Vec<Box<str>> {
        self.calls
    }

    /// Keeps those of the calls that wait for it.
    pub(super) fn retain_calls(&mut self, stays: impl Fn(&str) -> bool) {
        self.calls.retain(|call| stays(call));
    }

    /// Whether nothing needs to be done.
    pub(super) fn is_needless(&self) -> bool {
        matches!(self.not_done, Some(NotDone::Small { .. }))
    }

    /// Why a step has done nothing.
    pub(super) fn did_not(&mut self, reason: &str) {
        self.not_done = Some(NotDone::Failed(reason.to_owned()));
    }
}

impl Context {
    /// Takes a line that a user typed: `/compact`, and behind it what a summary should look at. Any
    /// other line is left to the caller. What was asked for is done before the next request.
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

    /// What came of the compaction that was asked for last, once it is done.
    pub fn outcome(&self) -> Option<&Outcome> {
        self.ask.outcome.as_ref()
    }

    /// Remembers that somebody asked.
    pub(super) fn asked_by(&mut self, why: EventReason, calls: Vec<Box<str>>) {
        let sent = self.transcript().context.iter().copied().collect();
        let (before, by_tier) = (self.tokens(), BTreeMap::new());
        let target = self.machine.aim();
        let not_done = None;
        self.ask.request =
            Some(CompactionRequest { why, before, sent, calls, by_tier, not_done, target });
        self.ask.outcome = None;
    }

    /// Notices calls of the tool that wait for nothing but their own results. Those of a context
    /// that is small enough are answered at once.
    pub(super) fn notice(&mut self) -> Result<()> {
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
            return self.tell();
        }
        self.ask.focus = focus;
        self.machine.force(EventReason::Tool);
        self.asked_by(EventReason::Tool, calls);
        Ok(())
    }

    /// Why there is nothing to be done for who asks without a target.
    pub(super) fn small(&self) -> Option<NotDone> {
        let messages = self.tokens() - self.setup.overhead;
        let least = self.least();
        (messages < least).then_some(NotDone::Small { messages, least })
    }

    /// From how many tokens on messages are made small for who asks. In a small window that is what
    /// a compaction by hand aims at.
    fn least(&self) -> Tokens {
        let least = Tokens(self.setup.recipe.live.tool.min_tokens);
        self.machine.target_by_hand().map_or(least, |aim| least.min(aim))
    }

    /// Remembers that nothing needs to be done for who asked.
    pub(super) fn needless(&mut self, why: EventReason, small: NotDone) {
        let least = self.least();
        self.machine.skip(why, format!("messages are made small from {least} tokens on"));
        self.ask.request.iter_mut().for_each(|asked| asked.not_done = Some(small.clone()));
    }

    /// Says what came of it to who asked.
    pub(super) fn tell(&mut self) -> Result<()> {
        let Some(asked) = self.ask.request.take() else { return Ok(()) };
        // What was asked for with a focus is done.
        self.ask.focus = None;
        let CompactionRequest { why, before, sent, calls, by_tier, not_done, target } = asked;
        let transcript = self.transcript();
        let is_user = |item: usize| {
            transcript.items[item].entry().is_some_and(|entry| entry.role == Role::User)
        };
        let all = sent.iter().filter(|&&item| is_user(item)).count() as u64;
        let context = &transcript.context;
        let kept = context.iter().filter(|item| sent.contains(item) && is_user(**item)).count();
        let last = context.iter().rev().take_while(|item| sent.contains(item)).count() as u64;
        let (after, user) = (self.tokens(), (kept as u64, all));
        let usable = self.machine.usable();
        let outcome = Outcome { why, before, after, by_tier, user, last, not_done, target, usable };
        for (n, call) in calls.iter().enumerate() {
            let text = match n {
                0 => outcome.to_string(),
                _ => "Done with the call before.".to_owned(),
            };
            let speaker = Speaker { role: Role::Tool, ..Speaker::default() };
            self.push(&speaker, &[Said::output(&**call, text)])?;
        }
        self.ask.outcome = Some(outcome);
        Ok(())
    }

    /// The calls of the tool in the last response, if every other call of it has its result; and
    /// what the first of them says.
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

/// The response of the model at the end of a context, behind which nothing stands but its results.
pub(super) struct LastResponse<'t> {
    /// Where it begins in the context.
    pub(super) begins: usize,
    /// Its calls without a result.
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
                // Results above its first words are those of the response before.
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
