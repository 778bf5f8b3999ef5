//! A context while an agent uses it: what was said goes in, what to send comes out.
//!
//! What was said stands in a log that is only ever added to; what is sent is the log and the edits
//! behind it. See `docs/library.md`.

mod count;
mod log;
mod overflow;
mod question;
mod setup;
mod tool;
mod wire;

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

use epitome_formats::epitome::{Batch, batch, said, undo};
use epitome_formats::{SummaryAs, named};
use epitome_model::{
    At, Block, Change, Counter, Edit, Law, Output, Part, Ref, Role, Stub, Tokens, Transcript, Usage,
};
use epitome_passes::{
    Birth, Event, Gauge, Machine, NoReply, Options, Recipe, Seen, Spent, Step, SummaryRole,
    Trigger, Why, Writer, compact,
};

use tracing::field::Empty;
use tracing::{debug_span, trace_span};

use crate::error::{Error, ErrorKind, Result};

use count::Counts;
use log::LogFile;
use question::{ALL_KEPT, Pending};
use tool::Asked;

pub use epitome_formats::epitome::{Said, Speaker};
pub use epitome_llm::{Overflow, overflow};
pub use overflow::Recovery;
pub use question::Question;
pub use setup::{Fill, Report, Setup};
pub use tool::{NotDone, Outcome, compact_tool};
pub use wire::Outgoing;

/// A live context.
///
/// ```
/// use epitome::live::{Context, Said, Setup};
/// use epitome_passes::built_in;
///
/// let mut context = Context::in_memory(Setup::new(built_in("s06").expect("a built-in recipe")));
/// context.user("What is in a.rs?")?;
/// context.assistant(&[Said::call("c1", "Read", r#"{"path":"a.rs"}"#)])?;
/// context.tool(&[Said::output("c1", "fn main() {}")])?;
/// assert_eq!(context.view()?.transcript().context().count(), 3);
/// # Ok::<(), epitome::Error>(())
/// ```
pub struct Context {
    log: LogFile,
    recipe: Recipe,
    machine: Machine,
    counter: Arc<dyn Counter + Send>,
    writer: Option<Writer>,
    window: Option<Tokens>,
    counts: Counts,
    overhead: Tokens,
    anchor: Option<Anchor>,
    /// What was billed for so many counted tokens, when it was last told.
    factor: Option<(u64, u64)>,
    birth: Option<Birth>,
    seen: Seen,
    /// What each call does, in a few words.
    calls: HashMap<Box<str>, Box<str>>,
    /// Calls that came from a wire and have no result yet, with the names of their tools.
    open: Vec<(Box<str>, Box<str>)>,
    pending: Option<Pending>,
    /// What the next summary should look at, and what every one should.
    focus: (Option<String>, Option<String>),
    protected: Vec<String>,
    spent: Spent,
    /// A compaction that somebody asked for, and what came of the last one.
    asked: Option<Asked>,
    outcome: Option<Outcome>,
    wanted: Option<Tokens>,
    overflows: u32,
}

/// What a provider counted, and what we had counted then.
#[derive(Clone, Copy, Debug)]
struct Anchor {
    billed: Tokens,
    counted: Tokens,
}

/// What to do before a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Send the view.
    Send,
    /// Ask a model, and say what it answered: [`Context::answer`]. Then ask again what is next: a
    /// long history takes several questions.
    Ask(Question),
}

impl Context {
    /// A context whose log is not on disk.
    pub fn in_memory(setup: Setup) -> Context {
        let log = LogFile::in_memory(&setup.id);
        Context::of(setup, log)
    }

    /// A context with a new log at `path`.
    ///
    /// # Errors
    ///
    /// `Disk` if there is a file already, or none can be made.
    pub fn create(path: &Path, setup: Setup) -> Result<Context> {
        let log = LogFile::create(path, &setup.id)?;
        Ok(Context::of(setup, log))
    }

    /// The context of a log that is there, as it was left.
    ///
    /// # Errors
    ///
    /// `Unreadable` and its like if it cannot be read, `Broken` if it is no log.
    pub fn open(path: &Path, setup: Setup) -> Result<Context> {
        let log = LogFile::open(path)?;
        Ok(Context::of(setup, log))
    }

    fn of(setup: Setup, log: LogFile) -> Context {
        let Setup { recipe, window, overhead, counter, writer, focus, protected, .. } = setup;
        let mut live = recipe.live.clone();
        // A recipe that says when it begins for a stored session begins then here, too.
        if live.trigger == Default::default() {
            live.trigger.tokens = recipe.trigger.tokens;
            live.trigger.bytes = recipe.trigger.bytes;
        }
        let mut context = Context {
            birth: live.birth,
            machine: Machine::new(live, window),
            log,
            recipe,
            counter,
            writer,
            window,
            counts: Counts::default(),
            overhead,
            anchor: None,
            factor: None,
            seen: Seen::default(),
            calls: HashMap::new(),
            open: Vec::new(),
            pending: None,
            focus: (None, focus),
            protected,
            spent: Spent::default(),
            asked: None,
            outcome: None,
            wanted: None,
            overflows: 0,
        };
        for item in 0..context.transcript().items.len() {
            context.learn(item);
        }
        context.recount();
        context
    }

    /// Words of the user.
    ///
    /// # Errors
    ///
    /// `Disk` if the log cannot be written; nothing was said then.
    pub fn user(&mut self, words: &str) -> Result<()> {
        self.push(&Speaker::default(), &[Said::text(words)])
    }

    /// A response of the model.
    ///
    /// # Errors
    ///
    /// As [`user`](Context::user).
    pub fn assistant(&mut self, said: &[Said<'_>]) -> Result<()> {
        self.push(&Speaker { role: Role::Assistant, ..Speaker::default() }, said)
    }

    /// A response of the model, and what the provider counted for it.
    ///
    /// # Errors
    ///
    /// As [`user`](Context::user).
    pub fn response(&mut self, said: &[Said<'_>], model: &str, usage: Usage) -> Result<()> {
        let role = Role::Assistant;
        let (model, usage) = (Some(model), Some(usage));
        self.push(&Speaker { role, model, usage, ..Speaker::default() }, said)
    }

    /// Results of calls.
    ///
    /// # Errors
    ///
    /// As [`user`](Context::user).
    pub fn tool(&mut self, said: &[Said<'_>]) -> Result<()> {
        self.push(&Speaker { role: Role::Tool, ..Speaker::default() }, said)
    }

    /// Anything that anybody says.
    ///
    /// # Errors
    ///
    /// As [`user`](Context::user).
    pub fn push(&mut self, speaker: &Speaker<'_>, said: &[Said<'_>]) -> Result<()> {
        // What a model says in one go is one response, in however many entries.
        let last = self.transcript().context().next_back().map(|(_, entry)| entry);
        let before =
            last.filter(|entry| entry.role == Role::Assistant).and_then(|it| it.group.clone());
        let group = speaker.group.or(before.as_deref()).filter(|_| speaker.role == Role::Assistant);
        let role = speaker.role;
        let _span = trace_span!("live.push", ?role, blocks = said.len()).entered();
        let item = self.log.push(&Speaker { group, ..*speaker }, said)?;
        self.count(item);
        if speaker.role == Role::Assistant {
            self.overflows = 0;
        }
        if let Some(Usage { input, output, .. }) = speaker.usage {
            self.billed(Tokens(input + output));
        }
        self.bear(item)
    }

    /// What the provider counted for all that was said so far, the last response included.
    pub fn billed(&mut self, billed: Tokens) {
        let counted = self.counted();
        if billed > Tokens(0) && counted > Tokens(0) {
            self.anchor = Some(Anchor { billed, counted });
            self.factor = Some((billed.0, counted.0));
        }
    }

    /// Says what an entry of another transcript says.
    fn push_entry(
        &mut self,
        entry: &epitome_model::Entry,
        prompt: bool,
        source: &dyn epitome_model::Source,
    ) -> Result<()> {
        let speaker = Speaker {
            role: entry.role,
            prompt,
            model: entry.model.as_deref(),
            usage: entry.usage,
            group: None,
        };
        self.push(&speaker, &said(entry, source))
    }

    /// What to send now: whatever is due is done first. A summary that would have to be asked for
    /// is left out; who has a model asks [`step`](Context::step) before.
    ///
    /// # Errors
    ///
    /// `Disk` if the log cannot be written.
    pub fn view(&mut self) -> Result<Outgoing<'_>> {
        while let Next::Ask(_) = self.step()? {
            self.answer(Err(NoReply::Nobody))?;
        }
        Ok(self.as_it_is())
    }

    /// What would be sent if nothing were due.
    pub fn as_it_is(&self) -> Outgoing<'_> {
        let rule = self.machine.live().summary.as_ref();
        let summary = match rule.map_or(SummaryRole::User, |rule| rule.role) {
            SummaryRole::User => SummaryAs::User,
            SummaryRole::Acknowledged => SummaryAs::Acknowledged,
            SummaryRole::System => SummaryAs::System,
        };
        Outgoing::new(self.transcript(), self.log.bytes(), summary)
    }

    /// What is to be done before the next request; all but questions is done at once.
    ///
    /// # Errors
    ///
    /// As [`view`](Context::view).
    pub fn step(&mut self) -> Result<Next> {
        let _span = trace_span!("live.step", tokens = self.tokens().0).entered();
        self.notice()?;
        loop {
            if let Some(pending) = &self.pending {
                return Ok(Next::Ask(pending.question()));
            }
            let gauge = self.gauge();
            match self.machine.step(&gauge) {
                Step::Send => {
                    self.tell()?;
                    return Ok(Next::Send);
                }
                Step::Run(why) => self.run(why)?,
                Step::Ask(why) => match self.begin(why) {
                    Ok(pending) => self.pending = Some(pending),
                    Err(reason) => {
                        let asked = self.asked.iter_mut().filter(|_| reason != ALL_KEPT);
                        asked.for_each(|asked| asked.did_not(&reason));
                        self.machine.answered(why, gauge.tokens, Err(reason));
                    }
                },
            }
        }
    }

    /// Makes the context small now, whatever its size; `focus` is what a summary should look at.
    ///
    /// # Errors
    ///
    /// As [`view`](Context::view).
    pub fn compact(&mut self, focus: Option<&str>) -> Result<Outcome> {
        self.compact_to(focus, None)
    }

    /// The same, but no smaller than it takes to come down to the target.
    ///
    /// # Errors
    ///
    /// As [`view`](Context::view).
    pub fn compact_to(&mut self, focus: Option<&str>, target: Option<Tokens>) -> Result<Outcome> {
        self.ask_for_compaction(focus, target);
        self.view()?;
        Ok(self.outcome.clone().expect("what was asked for is done before a view"))
    }

    /// The same before the next request: who has a model for the summary asks
    /// [`step`](Context::step) then.
    pub fn ask_for_compaction(&mut self, focus: Option<&str>, target: Option<Tokens>) {
        self.wanted = target;
        self.focus.0 = focus.map(Into::into);
        self.pending = None;
        // A model that asked as well is told the same.
        let calls = self.asked.take().map(Asked::calls).unwrap_or_default();
        self.asked_by(Why::Manual, calls);
        self.machine.force(Why::Manual);
    }

    /// Keeps a text as it is in every summary from now on.
    pub fn protect(&mut self, text: impl Into<String>) {
        self.protected.push(text.into());
    }

    /// Who is to write summaries from now on; nobody else's window counts.
    pub fn set_writer(&mut self, writer: Writer) {
        self.writer = Some(writer);
    }

    /// Takes the last compaction back. Says whether there was one.
    ///
    /// # Errors
    ///
    /// `Disk` if the log cannot be written.
    pub fn undo(&mut self) -> Result<bool> {
        if self.log.log().compactions() == 0 {
            return Ok(false);
        }
        self.pending = None;
        self.log.append(undo().as_bytes())?;
        self.recount();
        Ok(true)
    }

    /// What was removed under a reference: the words, from the log.
    pub fn recall(&self, reference: &Ref) -> Option<String> {
        let source = self.log.bytes();
        let matches = |span| {
            let raw = epitome_model::Source::at(source, span);
            Ref::of(&raw).digits().starts_with(reference.digits())
                || reference.digits().starts_with(Ref::of(&raw).digits())
        };
        let blocks = self.transcript().entries().flat_map(|(_, entry)| &entry.blocks);
        let found = blocks.into_iter().find_map(|block| match block {
            Block::Output(output) if matches(output.whole) => Some(output.text(source)),
            Block::Call(call) => {
                let mut fields = call.fields.iter();
                let field = fields.find(|field| field.text.span().is_some_and(matches))?;
                Some(field.text.read(source).into_owned())
            }
            _ => None,
        })?;
        // What was shortened at birth and went later stands whole behind its own reference.
        match Stub::parse(&found) {
            Some(stub) if stub.reference() != reference => {
                Some(self.recall(stub.reference()).unwrap_or(found))
            }
            Some(_) | None => Some(found),
        }
    }

    /// How full the window is.
    pub fn usage(&self) -> Fill {
        let tokens = self.tokens();
        let usable = self.machine.usable();
        let error = self.factor.map(|(billed, counted)| {
            (i64::try_from(counted).unwrap_or(i64::MAX) - i64::try_from(billed).unwrap_or(0))
                .saturating_mul(1_000)
                / i64::try_from(billed).unwrap_or(1).max(1)
        });
        let percent = usable.map(|usable| tokens.0 * 100 / usable.0.max(1));
        Fill { tokens, usable, percent, billed: self.anchor.is_some(), error }
    }

    /// What became of what was said.
    pub fn report(&self) -> Report {
        let transcript = self.transcript();
        let mut said: HashMap<&str, Tokens> = HashMap::new();
        for (item, entry) in transcript.entries() {
            let is_said = !entry.blocks.iter().any(|block| matches!(block, Block::Summary(_)));
            if let Some(id) = entry.id.as_deref().filter(|_| is_said) {
                // The first entry of an id is what was said; others are what it says since.
                said.entry(id).or_insert_with(|| self.counts.item(item));
            }
        }
        Report {
            said: said.values().copied().sum(),
            sent: self.counts.total().tokens,
            entries: said.len() as u64,
            compactions: self.log.log().compactions() as u64,
            log_bytes: self.log.bytes().len() as u64,
            summaries: self.spent,
        }
    }

    /// What happened since this was last asked.
    pub fn events(&mut self) -> Vec<Event> {
        self.machine.events()
    }

    /// The log as it stands on disk.
    pub fn log(&self) -> &[u8] {
        self.log.bytes()
    }

    fn transcript(&self) -> &Transcript {
        self.log.log().transcript()
    }

    fn gauge(&self) -> Gauge {
        let total = self.counts.total();
        let (bytes, results, turns) = (total.bytes, total.results, total.turns);
        Gauge { tokens: self.tokens(), bytes, results, turns, messages: total.messages }
    }

    /// What we count, prompt and tools included.
    fn counted(&self) -> Tokens {
        self.overhead + self.counts.total().tokens
    }

    /// What the provider would count: what it counted last and what came since, or else our count
    /// scaled as its last one says.
    fn tokens(&self) -> Tokens {
        let counted = self.counted();
        match (self.anchor, self.factor) {
            (Some(anchor), _) => anchor.billed + (counted - anchor.counted),
            (None, Some((billed, ours))) => scaled(counted, billed, ours),
            (None, None) => counted,
        }
    }

    /// As much of the context as may be left for it to come to so many of the provider's tokens.
    fn in_counts(&self, target: Tokens) -> Tokens {
        let target = match self.factor {
            Some((billed, ours)) => scaled(target, ours, billed),
            None => target,
        };
        target - self.overhead - self.counts.total().frames
    }

    fn run(&mut self, why: Why) -> Result<()> {
        let target = match why {
            Why::Trigger | Why::Hard | Why::Tool => {
                self.machine.target().map(|it| self.in_counts(it).0)
            }
            Why::Manual => self.wanted.take().map(|it| self.in_counts(it).0),
            Why::Request | Why::Overflow => None,
        };
        // Who has to come down, or asked for it, takes what there is.
        let at_least = match why {
            Why::Trigger | Why::Request => self.recipe.at_least,
            Why::Hard | Why::Manual | Why::Tool | Why::Overflow => None,
        };
        let trigger = Trigger::default();
        let recipe = Recipe { trigger, target, at_least, ..self.recipe.clone() };
        let before = self.tokens();
        let span = debug_span!(
            "live.run",
            recipe = recipe.name.as_str(),
            ?why,
            before = before.0,
            after = Empty,
            edits = Empty
        );
        let _span = span.clone().entered();
        match self.carry_out(&recipe) {
            Ok(by_tier) => {
                let after = self.gauge();
                self.asked.iter_mut().for_each(|asked| asked.did(&by_tier));
                span.record("after", after.tokens.0);
                span.record("edits", by_tier.values().sum::<u64>());
                self.machine.ran(why, before, &after, by_tier);
                Ok(())
            }
            // The log could not be written: that is for the caller to know.
            Err(err) if err.kind() != ErrorKind::Refused => Err(err),
            Err(err) => {
                self.asked.iter_mut().for_each(|asked| asked.did_not(&err.to_string()));
                self.machine.failed(why, before, err.to_string());
                Ok(())
            }
        }
    }

    /// Runs the passes of a recipe and writes what they plan. Says how many edits each has made.
    fn carry_out(&mut self, recipe: &Recipe) -> Result<BTreeMap<String, u64>> {
        let format = named("epitome").expect("our own format is one of them");
        let (transcript, source) = (self.log.log().transcript(), self.log.bytes());
        let options = Options {
            counter: &*self.counter,
            thinking_is_bound: format.thinking_is_bound,
            counted: self.counts.items(),
        };
        let plan = compact(transcript, source, recipe, &options);
        let sent: Vec<bool> = self.counts.sent(transcript);
        let edits: Vec<Edit> = plan
            .edits()
            .into_iter()
            .filter(|edit| sent[edit.at.item()] && !matches!(edit.at, At::Copy { .. }))
            .collect();
        let mut by_tier = BTreeMap::new();
        for edit in &edits {
            *by_tier.entry(edit.pass.to_owned()).or_default() += 1;
        }
        if edits.is_empty() {
            return Ok(by_tier);
        }
        let what = Batch::Compaction(Some(&recipe.name));
        let line = batch(transcript, source, &edits, what).map_err(|err| {
            Error::new(ErrorKind::Refused, "an edit cannot be written").because(err)
        })?;
        let (before, broken) = (self.counts.total().tokens, self.breaches());
        // What goes is on disk before it goes.
        self.log.flush()?;
        self.log.append(&line)?;
        self.recount();
        let more = self.breaches().into_iter().find(|breach| !broken.contains(breach));
        let grew = self.counts.total().tokens > before;
        if more.is_some() || grew {
            self.log.append(undo().as_bytes())?;
            self.recount();
            let what = more.map_or_else(|| "it would grow".to_owned(), |breach| breach.1);
            return Err(Error::new(ErrorKind::Refused, what));
        }
        Ok(by_tier)
    }

    fn breaches(&self) -> Vec<(Law, String)> {
        let format = named("epitome").expect("our own format is one of them");
        let found = format.laws.check(self.transcript(), self.log.bytes());
        found.into_iter().map(|breach| (breach.law, breach.what)).collect()
    }

    /// Shortens the results of an entry before it is first sent.
    fn bear(&mut self, item: usize) -> Result<()> {
        let Some(birth) = self.birth else { return Ok(()) };
        let (transcript, source) = (self.log.log().transcript(), self.log.bytes());
        let Some(entry) = transcript.items[item].entry() else { return Ok(()) };
        let mut edits = Vec::new();
        for (block, said) in entry.blocks.iter().enumerate() {
            let Block::Output(output) = said else { continue };
            let Some(text) = alone(output).map(|text| text.read(source)) else { continue };
            let what = self.calls.get(&output.call).map_or("result", |what| what);
            let whole = Ref::of(&epitome_model::Source::at(source, output.whole));
            let short = birth.shorten(&text, whole, &self.seen, &*self.counter);
            self.seen.add(short.as_deref().unwrap_or(&text), what);
            edits.extend(short.map(|short| Edit {
                at: At::Block { item, block },
                change: Change::Replace(short),
                pass: "birth",
            }));
        }
        if edits.is_empty() {
            return Ok(());
        }
        let line = batch(transcript, source, &edits, Batch::Birth).map_err(|err| {
            Error::new(ErrorKind::Refused, "a result cannot be shortened").because(err)
        })?;
        self.log.append(&line)?;
        let last = self.transcript().items.len() - 1;
        self.counts.replace(
            item,
            last,
            self.log.log().transcript(),
            self.log.bytes(),
            &*self.counter,
        );
        Ok(())
    }

    fn count(&mut self, item: usize) {
        let (transcript, source) = (self.log.log().transcript(), self.log.bytes());
        self.counts.add(item, transcript, source, &*self.counter);
        self.learn(item);
    }

    /// Remembers what the calls of an entry do.
    fn learn(&mut self, item: usize) {
        let (transcript, source) = (self.log.log().transcript(), self.log.bytes());
        let entry = transcript.items[item].entry();
        for block in entry.into_iter().flat_map(|entry| &entry.blocks) {
            if let Block::Call(call) = block {
                let target = call.target.as_ref().map(|target| target.read(source));
                let what = match target {
                    Some(target) => format!("{} {target}", call.name),
                    None => call.name.to_string(),
                };
                self.calls.insert(call.id.clone(), epitome_model::short(&what, 80).into());
            }
        }
    }

    /// Counts what is sent anew: other items may say it now. What a provider counted is of another
    /// context.
    fn recount(&mut self) {
        self.anchor = None;
        let (transcript, source) = (self.log.log().transcript(), self.log.bytes());
        self.counts.all(transcript, source, &*self.counter);
        if self.birth.is_some() {
            self.seen = Seen::default();
            for (_, entry) in transcript.context() {
                for block in &entry.blocks {
                    if let Block::Output(output) = block {
                        let what = self.calls.get(&output.call).map_or("result", |what| what);
                        self.seen.add(&output.text(source), what);
                    }
                }
            }
        }
    }
}

/// The words of a result that holds nothing else, and none of the user's.
fn alone(output: &Output) -> Option<&epitome_model::Text> {
    match output.parts.as_slice() {
        [Part::Text(text)] if !output.from_user => Some(text),
        _ => None,
    }
}

fn scaled(tokens: Tokens, by: u64, per: u64) -> Tokens {
    let scaled = u128::from(tokens.0) * u128::from(by) / u128::from(per.max(1));
    Tokens(u64::try_from(scaled).unwrap_or(u64::MAX))
}
