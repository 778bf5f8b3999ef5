//! Renders sessions as pages and texts: opens them, and redacts and compacts them in memory if the
//! caller wants that.
//!
//! # Absent
//!
//! - Changes: neither a session nor the archive is written.

mod folder;
mod names;

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use epitome_llm::Catalogue;
use epitome_model::{
    Block, EditedTranscript, Lines, MicroDollars, RecordedUsage, Ref, Source, ToolKind, Transcript,
    line_count,
};
use epitome_passes::{Recipe, edits_for_reading};
use epitome_redact::{Finder, Found, Redactor};
use epitome_render::{
    Changes, Detail, Html, Past, PastCompaction, Prices, Story, StorySession, json, markdown,
};

pub use folder::{RenderForm, facts_of, rebuild_index, render_into, repair, update_index, upsert};
pub(crate) use folder::{ours, rendered_in};

use crate::archive::Archive;
use crate::config::Config;
use crate::drive::catalogue;
use crate::error::{Error, Result};
use crate::history::{History, ShownSource, Version};
use crate::ops::is_no_part;
use crate::place::Place;
use crate::redact::redact_session;
use crate::session::Loaded;
use crate::source::Spliced;
use epitome_agents as agents;

/// A session and its sub-agents' sessions, opened to be rendered.
pub struct RenderSource {
    /// The session.
    pub session: Member,
    /// The sessions of its sub-agents, in the order of their files.
    pub sub_agents: Vec<Member>,
}

/// A session of a [`RenderSource`].
pub struct Member {
    /// The path of the session; `None` if it is not a file.
    pub path: Option<PathBuf>,
    /// The history of the session, in the state in which it was opened.
    pub history: History,
}

/// The anchor of a sub-agent's session on a page with all sub-agents. The first sub-agent has the
/// number 0.
pub fn sub_agent_anchor(number: usize) -> String {
    format!("a{}", number + 1)
}

fn link_to_sub_agent(number: usize) -> String {
    format!("#{}", sub_agent_anchor(number))
}

/// Several stories as one text.
fn join(stories: &[Story<'_>], each: impl Fn(&Story<'_>) -> String) -> String {
    stories.iter().map(each).collect::<Vec<_>>().join("\n")
}

impl Member {
    fn loaded(&self) -> &Loaded<ShownSource> {
        &self.history.session
    }
}

/// How a session is rendered.
pub struct RenderOptions<'a> {
    /// The level of detail.
    pub detail: Detail,
    /// Finds the secrets that are replaced before anything else is done. `None`: no secret is
    /// replaced.
    pub redact: Option<&'a Finder>,
    /// The recipe with which the redacted session is compacted; `None` leaves it as it is.
    pub compact: Option<&'a Recipe>,
    /// The archive. If `compact` is set, it is read for the numbers of lines of texts that earlier
    /// compactions removed.
    pub archive: &'a Archive,
    /// List prices for requests whose cost the session does not record. `None`: these requests have
    /// no cost.
    pub prices: Option<&'a ListPrices>,
}

/// List prices of models, for the costs that are shown.
#[derive(Clone, Debug)]
pub struct ListPrices<C = Catalogue>(pub(crate) C);

impl ListPrices {
    /// epitome's prices. Prices in the user's own table have priority.
    ///
    /// # Errors
    ///
    /// The errors of [`catalogue`].
    pub fn from_config(config: &Config) -> Result<ListPrices> {
        Ok(ListPrices(catalogue(config)?))
    }
}

impl<C: Borrow<Catalogue> + Sync> Prices for ListPrices<C> {
    fn cost(&self, model: &str, usage: &RecordedUsage) -> Option<MicroDollars> {
        self.0.borrow().cost(model, &usage.tokens()?)
    }

    fn date(&self) -> &str {
        self.0.borrow().date()
    }
}

impl RenderSource {
    /// Opens a session and those of its sub-agents, as they were before they were compacted. Files
    /// of sub-agents that are no sessions are skipped.
    ///
    /// # Errors
    ///
    /// The errors of [`History::open`], for the sub-agents' sessions, too.
    pub fn open(config: &Config, path: &Path, agent: Option<&str>) -> Result<RenderSource> {
        RenderSource::open_version(config, path, agent, Version::AsItWas)
    }

    /// Like [`open`](RenderSource::open), in the state `version`.
    ///
    /// # Errors
    ///
    /// The errors of [`RenderSource::open`].
    pub fn open_version(
        config: &Config,
        path: &Path,
        agent: Option<&str>,
        version: Version,
    ) -> Result<RenderSource> {
        let session = Member::open(config, path, agent, version)?;
        let agent = Some(session.loaded().format.name);
        let mut sub_agents = Vec::new();
        for path in agents::companions_at(&Place::parse(path), path)? {
            match Member::open(config, &path, agent, version) {
                Ok(member) => sub_agents.push(member),
                Err(err) if is_no_part(&err) => {}
                Err(err) => return Err(err),
            }
        }
        Ok(RenderSource { session, sub_agents })
    }

    /// Reads a session that is not a file.
    ///
    /// # Errors
    ///
    /// The errors of [`History::from_bytes`].
    pub fn from_bytes(
        config: &Config,
        bytes: Vec<u8>,
        agent: Option<&str>,
        version: Version,
    ) -> Result<RenderSource> {
        let history = History::from_bytes(config, bytes, agent, version)?;
        Ok(RenderSource { session: Member { path: None, history }, sub_agents: Vec::new() })
    }

    /// What could not be put back into the session and its sub-agents' sessions, each as a
    /// sentence. Equal sentences in a row are returned once.
    pub fn missing(&self) -> Vec<&str> {
        let members = std::iter::once(&self.session).chain(&self.sub_agents);
        let mut missing: Vec<&str> =
            members.flat_map(|it| &it.history.missing).map(String::as_str).collect();
        missing.dedup();
        missing
    }

    /// The error of the first read that failed, if one did: what was rendered is incomplete then.
    pub fn failure(&self) -> Option<Error> {
        let mut members = std::iter::once(&self.session).chain(&self.sub_agents);
        members.find_map(|member| member.history.failure())
    }

    /// Redacts and then compacts the sessions in memory, as `how` says, and calls `show` once with
    /// all stories: that of the session first, then those of its sub-agents in their order.
    /// `address` returns the address of a sub-agent's page by its number, from 0. Returns the
    /// result of `show`, and what was redacted in all sessions.
    ///
    /// # Errors
    ///
    /// The errors of [`redact_session`].
    pub fn with_stories<T>(
        &self,
        how: &RenderOptions<'_>,
        address: impl Fn(usize) -> String,
        show: impl FnOnce(&[Story<'_>]) -> T,
    ) -> Result<(T, Vec<Found>)> {
        let links = self.links(&address);
        // One redactor is used for all sessions, so that a secret has the same number everywhere.
        let mut redactor = how.redact.map(Redactor::new);
        let members: Vec<&Member> =
            std::iter::once(&self.session).chain(&self.sub_agents).collect();
        if let Some(redactor) = &mut redactor {
            members.iter().for_each(|member| member.history.teach(redactor));
        }
        let mut without = Vec::new();
        let mut found = Vec::new();
        for member in &members {
            without.push(match &mut redactor {
                Some(redactor) => {
                    let redacted = redact_session(member.loaded(), redactor)?;
                    found.extend(redacted.found);
                    Seen::Redacted(Box::new(redacted.session))
                }
                None => Seen::Whole(member.loaded()),
            });
        }
        let pasts = members.iter().map(|it| past(&it.history, redactor.as_mut()));
        let pasts: Vec<Past> = pasts.collect();
        // Changed files and lines are counted before anything is compacted.
        let changes: Vec<Changes> = without
            .iter()
            .map(|seen| Changes::from_transcript(seen.transcript(), seen.source()))
            .collect();
        let applied: Vec<Option<EditedTranscript<'_>>> = without
            .iter()
            .map(|seen| how.compact.map(|recipe| seen.compacted(recipe, how.archive)))
            .collect();
        let stories: Vec<Story<'_>> = without
            .iter()
            .zip(&applied)
            .zip(changes)
            .zip(&pasts)
            .map(|(((seen, applied), changes), past)| {
                let (transcript, source): (&Transcript, &dyn Source) = match applied {
                    Some(applied) => (&applied.transcript, &applied.source),
                    None => (seen.transcript(), seen.source()),
                };
                Story::new(StorySession {
                    agent: self.session.loaded().format.name,
                    transcript,
                    source,
                    changes,
                    sub_agents: &links,
                    detail: how.detail,
                    prices: how.prices.map(|prices| prices as &dyn Prices),
                    past: Some(past).filter(|past| !past.is_empty()),
                })
            })
            .collect();
        found.extend(redactor.iter_mut().flat_map(Redactor::take_found));
        Ok((show(&stories), found))
    }

    /// The session with its sub-agents' sessions as one text, and what was redacted. As
    /// [`RenderForm::Jsonl`], the text has only the session itself.
    ///
    /// # Errors
    ///
    /// The errors of [`with_stories`](RenderSource::with_stories), and those of reading.
    pub fn single_text(
        &self,
        form: RenderForm,
        how: &RenderOptions<'_>,
    ) -> Result<(String, Vec<Found>)> {
        let (text, found) = self.with_stories(how, link_to_sub_agent, |stories| match form {
            RenderForm::Html => {
                let [main, parts @ ..] = stories else { return String::new() };
                let parts = parts.iter().enumerate();
                let parts = parts.map(|(n, story)| (sub_agent_anchor(n), story)).collect();
                Html::single_page(main, parts).page(0)
            }
            RenderForm::Markdown => join(stories, markdown),
            RenderForm::Json => {
                let [main, parts @ ..] = stories else { return String::new() };
                json(main, parts)
            }
            RenderForm::Jsonl => {
                let main = stories.first().map(Story::records).unwrap_or_default();
                String::from_utf8_lossy(&main).into_owned()
            }
        })?;
        self.failure().map_or(Ok((text, found)), Err)
    }

    /// The links from calls to the sub-agents that they started. A call belongs to the sub-agent
    /// whose name is in the call's result. If as many calls as sub-agents remain after that, they
    /// are matched by their order.
    fn links(&self, address: &dyn Fn(usize) -> String) -> BTreeMap<String, String> {
        let mut links = BTreeMap::new();
        if self.sub_agents.is_empty() {
            return links;
        }
        let mut tasks = Vec::new();
        for member in std::iter::once(&self.session).chain(&self.sub_agents) {
            tasks.extend(member.tasks());
        }
        let mut left: Vec<usize> = Vec::new();
        for (number, member) in self.sub_agents.iter().enumerate() {
            let names = member.names();
            let named = tasks
                .iter()
                .position(|(_, result)| names.iter().any(|name| result.contains(&**name)));
            match named {
                Some(task) => drop(links.insert(tasks.remove(task).0, address(number))),
                None => left.push(number),
            }
        }
        if left.len() == tasks.len() {
            let in_order = tasks.into_iter().zip(left);
            links.extend(in_order.map(|((call, _), number)| (call, address(number))));
        }
        links
    }
}

impl Member {
    fn open(config: &Config, path: &Path, agent: Option<&str>, version: Version) -> Result<Member> {
        let history = History::open(config, path, agent, version)?;
        Ok(Member { path: Some(path.to_owned()), history })
    }

    /// The name of the agent, and the id of the session. Without an id, the name of the session's
    /// file; `session` if it is not a file.
    fn agent_and_id(&self) -> (&'static str, String) {
        let loaded = self.loaded();
        let id = match &loaded.transcript.head.id {
            Some(id) => id.to_string(),
            None => match self.path.as_ref().and_then(|path| path.file_stem()) {
                Some(stem) => stem.to_string_lossy().into_owned(),
                None => "session".to_owned(),
            },
        };
        (loaded.format.name, id)
    }

    /// The name of a sub-agent's page; other sub-agents of the session may have the same.
    fn part_name(&self) -> String {
        self.names().into_iter().next().unwrap_or_else(|| "sub-agent".to_owned())
    }

    /// The names by which a result may refer to this sub-agent.
    fn names(&self) -> Vec<String> {
        let stem = self.path.as_ref().and_then(|path| {
            let name = path.to_string_lossy();
            let stem = match name.rsplit_once('#') {
                Some((_, id)) => id.to_owned(),
                None => path.file_stem()?.to_string_lossy().into_owned(),
            };
            Some(stem.strip_prefix("agent-").map(str::to_owned).unwrap_or(stem))
        });
        stem.into_iter().filter(|name| name.len() >= 6).collect()
    }

    /// The ids of the calls that started a sub-agent, each with the text of its result, which is
    /// empty if there is none.
    fn tasks(&self) -> Vec<(String, String)> {
        let Loaded { source, transcript, .. } = self.loaded();
        let blocks = || transcript.entries().flat_map(|(_, entry)| &entry.blocks);
        let mut results: BTreeMap<&str, String> = BTreeMap::new();
        let mut tasks = Vec::new();
        for block in blocks() {
            match block {
                Block::Call(call) if call.kind == ToolKind::Task => tasks.push(&*call.id),
                Block::Output(output) if tasks.contains(&&*output.call) => {
                    results.insert(&output.call, output.text(source));
                }
                _ => {}
            }
        }
        let tasks = tasks
            .into_iter()
            .map(|call| (call.to_owned(), results.get(call).cloned().unwrap_or_default()));
        tasks.collect()
    }
}

/// The compactions of a session, and what could not be restored, in the form in which they are
/// displayed.
fn past(history: &History, redactor: Option<&mut Redactor<'_>>) -> Past {
    let compactions = history.compactions.iter().map(|it| PastCompaction {
        made: it.made.to_string(),
        recipe: it.recipe.clone(),
        item: it.item,
    });
    let mut past = Past {
        compactions: compactions.collect(),
        is_as_sent: history.version == Version::AsSent,
        unsent: history.unsent.clone(),
        missing: history.missing.clone(),
    };
    // The name of a recipe may be a path, and an error contains names of files.
    if let Some(redactor) = redactor {
        let recipes = past.compactions.iter_mut().map(|it| &mut it.recipe);
        for text in recipes.chain(&mut past.missing) {
            *text = redactor.text(text).into_owned();
        }
    }
    past
}

/// A session that is rendered, redacted or not.
enum Seen<'a> {
    Whole(&'a Loaded<ShownSource>),
    Redacted(Box<Loaded<Spliced<'a>>>),
}

impl Seen<'_> {
    fn transcript(&self) -> &Transcript {
        match self {
            Seen::Whole(loaded) => &loaded.transcript,
            Seen::Redacted(loaded) => &loaded.transcript,
        }
    }

    fn source(&self) -> &dyn Source {
        match self {
            Seen::Whole(loaded) => &loaded.source,
            Seen::Redacted(loaded) => &loaded.source,
        }
    }

    fn compacted(&self, recipe: &Recipe, archive: &Archive) -> EditedTranscript<'_> {
        let transcript = self.transcript();
        let source = self.source();
        let edits = edits_for_reading(transcript, source, recipe, &|reference| {
            lines_in_archive(archive, reference)
        });
        EditedTranscript::new(transcript, source, &edits)
    }
}

/// The number of lines of the archived text with a reference. `None` if it is not in the archive or
/// cannot be read.
fn lines_in_archive(archive: &Archive, reference: &Ref) -> Option<Lines> {
    let found = archive.find(reference).ok()?.into_iter().next()?;
    let raw = archive.read(&found.key, found.generation, &found.hash).ok()?;
    Some(line_count(&String::from_utf8_lossy(&found.about.text_for_people(&raw))))
}

#[cfg(test)]
mod tests {
    use epitome_redact::Rules;

    use super::*;

    #[test]
    fn what_was_redacted_in_each_session_is_returned() {
        let home = tempfile::tempdir().expect("a folder");
        let config = Config::from_home(home.path());
        let member = |text: &str| {
            let bytes = format!(r#"{{"messages":[{{"role":"user","content":"{text}"}}]}}"#);
            let bytes = bytes.into_bytes();
            let agent = Some("openai-chat");
            let source = RenderSource::from_bytes(&config, bytes, agent, Version::AsItWas);
            source.expect("a session").session
        };
        let key = "Use AKIAQ3EGRXLTPN2MWVJD.";
        let sub_agents = vec![member(key), member("Use no key.")];
        let source = RenderSource { session: member(key), sub_agents };
        let finder = Finder::new(Rules::built_in()).expect("rules");
        let how = RenderOptions {
            detail: Detail::Full,
            redact: Some(&finder),
            compact: None,
            archive: &config.archive(),
            prices: None,
        };
        let (_, found) = source.single_text(RenderForm::Markdown, &how).expect("a text");
        let found: Vec<(&str, u32)> = found.iter().map(|it| (&*it.rule, it.number)).collect();
        assert_eq!(found, [("aws-access-key", 1), ("aws-access-key", 1)]);
    }
}
