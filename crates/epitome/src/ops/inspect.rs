//! Inspects a session: where its bytes and tokens go, and whether it is valid.

use std::collections::BTreeMap;
use std::path::Path;

use epitome_model::{
    Block, Bytes, Counter, Source, Tokens, Violation, context_turns, turns, weigh,
};
use epitome_render::Changes;
use epitome_tokens::Calibration;
use serde::Serialize;

use super::{BillingFit, CompactionPrice, FaultFound, OpenSession, compaction_prices};
use crate::agents;
use crate::anatomy::{Anatomy, LargeBlock, PartKind, PartSize, ToolSize, anatomy};
use crate::compaction::{Family, calibration};
use crate::config::Config;
use crate::error::Result;
use crate::history::History;
use crate::redact::Screen;
use crate::session::{Loaded, key_of};
use crate::state::compactions;

/// Measures a session with a counter. Secrets in texts of the session are hidden in the report.
#[derive(Clone, Copy)]
pub struct Inspect<'a> {
    /// Where the archive and the settings are.
    pub config: &'a Config,
    /// Replaces secrets in texts of the session.
    pub screen: &'a Screen,
    /// Counts tokens.
    pub counter: &'a dyn Counter,
}

/// The report of a session. Its serde form is the JSON of `epitome inspect` (`docs/json.md`).
#[derive(Debug, Serialize)]
pub struct Inspection {
    /// The address of the session: a path, `DATABASE#ID`, or `-` for bytes in memory.
    pub session: String,
    /// The agent that wrote the session.
    pub agent: &'static str,
    /// The id that the agent gave the session.
    pub id: Option<String>,
    /// The title of the session.
    pub title: Option<String>,
    /// The folder in which the session was run.
    pub cwd: Option<String>,
    /// The version of the agent.
    pub version: Option<String>,
    /// The name of the counter with which all tokens in this report were counted.
    pub counter: &'static str,
    /// Tokens of the messages that a resume sends, without system prompt and tools.
    pub context_tokens: Tokens,
    /// The tokens of the next request as the provider would bill them, with system prompt and
    /// tools. `None` if there is no [`calibration`](Self::calibration).
    pub request_tokens: Option<Tokens>,
    /// The size of the file.
    pub disk_bytes: Bytes,
    /// Lines of the file.
    pub lines: u64,
    /// Messages in the file.
    pub entries: u64,
    /// Messages that a resume sends.
    pub sent_entries: u64,
    /// User turns in the file.
    pub turns: u64,
    /// User turns that a resume sends.
    pub context_turns: u64,
    /// The number of the session's sub-agents.
    pub sub_agents: u64,
    /// The size of the session with all files that belong to it.
    pub family: Family,
    /// The number of the session's generations in the archive, in effect or not, including damaged
    /// ones.
    pub compactions: u64,
    /// The number of compactions in effect: those that a restore of the session would undo.
    pub compactions_in_effect: u64,
    /// The session as it was before it was compacted. `None` if it is not compacted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub as_it_was: Option<OriginalState>,
    /// For each compaction in effect, the predicted cost of the requests after it, and the first
    /// such request that is recorded.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub prices: Vec<CompactionPrice>,
    /// Sizes by kind of content, such as messages of the user or tool results.
    pub kinds: BTreeMap<PartKind, PartSize>,
    /// Sizes by tool, the one with the most tokens first.
    pub tools: Vec<ToolSize>,
    /// The largest blocks, the largest first.
    pub largest: Vec<LargeBlock>,
    /// How the token counts of the provider are computed from those of the counter. `None` if the
    /// requests that the session records do not suffice to compute that.
    pub calibration: Option<InspectionFit>,
    /// The calibration that [`calibration`](Self::calibration) describes; not serialized.
    #[serde(skip)]
    pub billed: Option<Calibration>,
    /// The records that could not be fully parsed.
    pub faults: Vec<FaultFound>,
    /// The invariants of the agent's format that the session violates.
    #[serde(rename = "breaches")]
    pub violations: Vec<Violation>,
}

/// A compacted session in its original state, with everything that the agent appended since.
#[derive(Debug, Serialize)]
pub struct OriginalState {
    /// Tokens of the messages that a resume would send.
    pub context_tokens: Tokens,
    /// The size of the session.
    pub disk_bytes: Bytes,
    /// The number of lines of the session.
    pub lines: u64,
    /// The number of messages of the session.
    pub entries: u64,
    /// Lines that the session's tool calls added to files.
    pub lines_added: u64,
    /// Lines that the session's tool calls removed from files.
    pub lines_removed: u64,
    /// Blocks of readable reasoning.
    pub thinking: u64,
    /// What could not be restored, one sentence for each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
}

/// How the provider's token counts are computed from those of epitome's counter, and the result for
/// the next request.
#[derive(Debug, Serialize)]
pub struct InspectionFit {
    /// The calibration.
    #[serde(flatten)]
    pub fit: BillingFit,
    /// The tokens of the next request as the provider would bill them.
    pub context_tokens: Tokens,
}

impl Inspect<'_> {
    /// Inspects a session; `path` is its file, `None` for bytes that are no file. `history` is the
    /// same session, read in its original state.
    ///
    /// # Errors
    ///
    /// The errors of reading the archive; for a compacted session, the errors of
    /// [`compaction_prices`].
    pub fn run<S: Source>(
        &self,
        path: Option<&Path>,
        session: &Loaded<S>,
        history: &History,
    ) -> Result<Inspection> {
        let Loaded { format, source, transcript, .. } = session;
        let Anatomy { kinds, total, tools, largest } = anatomy(transcript, source, self.counter);
        let file = path.unwrap_or(Path::new("-"));
        let archive = self.config.archive();
        let generations = archive.generations(&key_of(session, file))?;
        let compactions_in_effect = compactions(session, &archive, file)?.len() as u64;
        let prices = match path {
            Some(path) if compactions_in_effect > 0 => {
                let stored = OpenSession::with_agent(self.config, path, Some(format.name));
                compaction_prices(&stored, self.counter)?
            }
            Some(_) | None => Vec::new(),
        };
        let billed = calibration(session, self.config, file, self.counter);
        let request_tokens = billed.map(|fit| fit.apply(total.context_tokens));
        let mut inspection = Inspection {
            session: file.display().to_string(),
            agent: format.name,
            id: transcript.head.id.as_deref().map(str::to_owned),
            title: transcript.head.title.as_deref().map(str::to_owned),
            cwd: transcript.head.cwd.as_deref().map(str::to_owned),
            version: transcript.head.version.as_deref().map(str::to_owned),
            counter: self.counter.name(),
            context_tokens: total.context_tokens,
            request_tokens,
            disk_bytes: total.disk_bytes,
            lines: transcript.items.last().map_or(0, |item| item.record().line),
            entries: transcript.entries().count() as u64,
            sent_entries: transcript.context().count() as u64,
            turns: turns(transcript, source).len() as u64,
            context_turns: context_turns(transcript, source),
            sub_agents: agents::sub_agents(file).len() as u64,
            family: Family::measure(file, total.disk_bytes),
            compactions: (generations.whole.len() + generations.damaged.len()) as u64,
            compactions_in_effect,
            as_it_was: history
                .is_compacted()
                .then(|| OriginalState::from_history(history, self.counter)),
            prices,
            kinds,
            tools,
            largest,
            calibration: billed.as_ref().zip(request_tokens).map(|(fit, context_tokens)| {
                InspectionFit { fit: BillingFit::from_calibration(fit), context_tokens }
            }),
            billed,
            faults: session.faults.iter().map(FaultFound::from_fault).collect(),
            violations: format.invariants.check(transcript, source),
        };
        inspection.hide_secrets(history, self.screen);
        Ok(inspection)
    }
}

impl Inspection {
    /// Replaces the secrets in the texts that come from the session.
    fn hide_secrets(&mut self, history: &History, screen: &Screen) {
        let mut screen = history.screen(screen);
        let names = [&mut self.id, &mut self.title, &mut self.cwd, &mut self.version];
        let texts = names
            .into_iter()
            .flatten()
            .chain(self.tools.iter_mut().map(|tool| &mut tool.name))
            .chain(self.largest.iter_mut().map(|block| &mut block.what))
            .chain(self.faults.iter_mut().map(|fault| &mut fault.what));
        for text in texts {
            *text = screen.text(text);
        }
    }
}

impl OriginalState {
    fn from_history(history: &History, counter: &dyn Counter) -> OriginalState {
        let Loaded { source, transcript, .. } = &history.session;
        let changes = Changes::from_transcript(transcript, source);
        let blocks = transcript.entries().flat_map(|(_, entry)| &entry.blocks);
        let thinking =
            blocks.filter(|block| matches!(block, Block::Thinking(it) if it.text.is_some()));
        OriginalState {
            context_tokens: weigh(transcript, source, counter).total(),
            disk_bytes: Bytes(Source::len(source)),
            lines: transcript.items.last().map_or(0, |item| item.record().line),
            entries: transcript.entries().count() as u64,
            lines_added: changes.added,
            lines_removed: changes.removed,
            thinking: thinking.count() as u64,
            missing: history.missing.clone(),
        }
    }
}
