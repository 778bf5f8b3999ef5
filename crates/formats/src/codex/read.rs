//! Converts records into a transcript.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use epitome_json::MalformedJson;
use epitome_model::{
    Block, Entry, Faults, FieldRemainder, HiddenField, Item, RecordedUsage, Role, Source, ToolKind,
    Transcript,
};

use super::{items, raw};
use crate::lines;
use crate::place::RecordBytes;
use crate::records::{self, ContextEffect, RecordContent, Records, TranscriptBuilder};

/// Types of records that no model sees, that this reader does not read, and that it does not report
/// as unknown.
const KNOWN: [&str; 3] = ["world_state", "inter_agent_communication_metadata", "rollout_reference"];

/// Whether the first line is a `session_meta` with a payload.
pub fn sniff(head: &[u8]) -> bool {
    let header = lines::first(head, |line| {
        let record = raw::Record::parse(line.bytes).ok()?;
        let kind = RecordBytes::from_line(line).maybe(record.kind.as_ref())?;
        record.payload.filter(|_| &*kind == "session_meta")
    });
    header.is_some()
}

/// Reads a rollout.
pub fn read(source: &dyn Source, faults: &mut dyn Faults) -> Transcript {
    records::read::<Reader>(source, faults)
}

#[derive(Default)]
struct Reader {
    /// The model of the current turn.
    model: Option<Box<str>>,
    /// The number of responses so far.
    responses: u64,
    in_response: bool,
    last_said: Option<usize>,
    /// Whether a `token_usage_record` was read. From then on, usage is read only from such records,
    /// and not from events.
    usage_recorded: bool,
    /// For each call id, whether the call failed according to the events.
    failed: HashMap<Box<str>, bool>,
    /// The ids of calls that ask the user.
    asked: HashSet<Box<str>>,
    /// The items for which [`items::is_prompt`] is true.
    prompt_items: HashSet<usize>,
    has_meta: bool,
}

impl Records for Reader {
    type Record<'a> = raw::Record;

    fn record(
        &mut self,
        session: &mut TranscriptBuilder<'_>,
        at: &RecordBytes<'_>,
        record: raw::Record,
    ) -> RecordContent {
        // An error is impossible: the line was parsed before, so the values in it are valid JSON.
        self.content(session, at, &record).unwrap_or_default()
    }

    fn finish(self, session: &mut TranscriptBuilder<'_>) {
        let transcript = &mut session.transcript;
        // Reasoning of the current turn cannot be removed, because the service requires it.
        let turn =
            transcript.context.iter().rfind(|&&item| is_user(&transcript.items[item])).copied();
        for (idx, item) in transcript.items.iter_mut().enumerate() {
            let Item::Entry(entry) = item else { continue };
            for block in &mut entry.blocks {
                match block {
                    Block::Thinking(thinking) => {
                        thinking.removable = turn.is_some_and(|turn| idx < turn);
                    }
                    Block::Output(output) => {
                        output.error = self.failed.get(&output.call).copied().unwrap_or(false);
                    }
                    _ => {}
                }
            }
        }
        // After the first response, items of these kinds only state changes, for example of the
        // environment. They are not part of the prompt.
        let before = transcript.context().take_while(|(_, entry)| entry.role != Role::Assistant);
        let before = before.map(|(item, _)| item);
        transcript.head.prompt = before.filter(|item| self.prompt_items.contains(item)).collect();
    }
}

impl Reader {
    fn content(
        &mut self,
        session: &mut TranscriptBuilder<'_>,
        at: &RecordBytes<'_>,
        record: &raw::Record,
    ) -> Result<RecordContent, MalformedJson> {
        let kind = at.maybe(record.kind.as_ref()).unwrap_or_default();
        let Some(payload) = &record.payload else {
            if &*kind == "response_item" {
                let empty = Entry { role: Role::Assistant, ..Entry::default() };
                return Ok(self.entries(session, at, record, vec![empty]));
            }
            report_unknown(session, &kind);
            return Ok(RecordContent::default());
        };
        match &*kind {
            "response_item" => {
                let item = raw::Item::at(at.line, payload)?;
                self.note_prompt(session.next(), at, &item);
                if items::is_unknown(at, &item) {
                    session.fault("an item of a kind that is not known");
                }
                return Ok(self.entries(session, at, record, vec![items::entry(at, &item)]));
            }
            "inter_agent_communication" => {
                let blocks = vec![Block::Opaque(at.span(payload))];
                let entry = Entry { role: Role::System, blocks, ..Entry::default() };
                return Ok(self.entries(session, at, record, vec![entry]));
            }
            "compacted" => return self.compacted(session, at, record, payload),
            "event_msg" => {
                let event = raw::Event::at(at.line, payload)?;
                return Ok(RecordContent::nothing(self.event(session, at, &event)));
            }
            "session_meta" => {
                let meta = raw::Meta::at(at.line, payload)?;
                // A fork also contains the `session_meta` of the session it was made from.
                if !std::mem::replace(&mut self.has_meta, true) {
                    session.head(
                        || at.maybe(meta.id.as_ref()),
                        || at.maybe(meta.cwd.as_ref()),
                        || at.maybe(meta.version.as_ref()),
                    );
                    if meta.base.rollout.is_some() {
                        session
                            .fault("it continues another rollout, of which nothing is read here");
                    }
                }
            }
            "turn_context" => {
                let turn = raw::Turn::at(at.line, payload)?;
                self.model = at.maybe(turn.model.as_ref()).or(self.model.take());
            }
            "token_usage_record" => {
                self.usage_recorded = true;
                let tokens = raw::UsageRecord::at(at.line, payload)?.usage;
                self.usage(session, tokens.usage());
            }
            kind => report_unknown(session, kind),
        }
        Ok(RecordContent::default())
    }

    /// Remembers the item if it is one that Codex sends before the conversation.
    fn note_prompt(&mut self, item: usize, at: &RecordBytes<'_>, raw: &raw::Item) {
        self.prompt_items.extend(items::is_prompt(at, raw).then_some(item));
    }

    /// Sets the metadata of the entries of a record, such as their ids, and which results contain
    /// text of the user. Returns the entries as content that is added at the end of the context.
    fn entries(
        &mut self,
        session: &TranscriptBuilder<'_>,
        at: &RecordBytes<'_>,
        record: &raw::Record,
        mut entries: Vec<Entry>,
    ) -> RecordContent {
        for (item, entry) in (session.next()..).zip(&mut entries) {
            entry.id = at.literal(&record.ordinal).map(|it| String::from_utf8_lossy(it).into());
            entry.time = at.maybe(record.timestamp.as_ref());
            if entry.role == Role::Assistant {
                self.responses += u64::from(!self.in_response);
                self.in_response = true;
                self.last_said = Some(item);
                entry.group = Some(self.responses.to_string().into());
                entry.model = self.model.clone();
            } else {
                self.in_response = false;
            }
            for block in &mut entry.blocks {
                match block {
                    Block::Call(call) if call.kind == ToolKind::Ask => {
                        self.asked.insert(call.id.clone());
                    }
                    Block::Output(output) => output.from_user = self.asked.contains(&output.call),
                    _ => {}
                }
            }
        }
        RecordContent { entries, hidden_fields: Vec::new(), effect: ContextEffect::Adds }
    }

    /// Reads a compaction. Its replacement history takes the place of the whole context. If it has
    /// no such history, as in old rollouts, only the user's messages stay in the context, and the
    /// summary follows them.
    fn compacted(
        &mut self,
        session: &mut TranscriptBuilder<'_>,
        at: &RecordBytes<'_>,
        record: &raw::Record,
        payload: &Range<usize>,
    ) -> Result<RecordContent, MalformedJson> {
        let compacted = raw::Compacted::at(at.line, payload)?;
        self.in_response = false;
        let mut entries = Vec::new();
        if let Some(history) = compacted.history.array_items(at.line) {
            session.forget();
            for (number, item) in (session.next()..).zip(history) {
                self.note_prompt(number, at, item);
                entries.push(Entry { repeated: true, ..items::entry(at, item) });
            }
            let content = self.entries(session, at, record, entries);
            self.in_response = false;
            return Ok(content);
        }
        let Transcript { items, context, .. } = &mut session.transcript;
        context.retain(|&item| items[item].entry().is_some_and(|it| it.role == Role::User));
        if let Some(message) = &compacted.message {
            let blocks = vec![Block::Summary(at.source(message))];
            entries.push(Entry { role: Role::System, blocks, ..Entry::default() });
        }
        Ok(self.entries(session, at, record, entries))
    }

    /// Reads an event. It may say whether a call failed, how many tokens were used, or that the
    /// user has taken back the last turns. Returns the values that the event repeats for display.
    fn event(
        &mut self,
        session: &mut TranscriptBuilder<'_>,
        at: &RecordBytes<'_>,
        event: &raw::Event,
    ) -> Vec<HiddenField> {
        let what = &event.what;
        if let Some(id) = &what.id {
            let failed = at.literal(&what.status).map(|status| status == b"\"failed\"");
            let exited = at.literal(&what.exit_code).map(|it| !matches!(it, b"0" | b"null"));
            let refused = at.literal(&what.success).map(|success| success == b"false");
            if let Some(failed) = failed.or(exited).or(refused) {
                self.failed.insert(at.text(id), failed);
            }
        }
        if at.literal(&event.kind) == Some(b"\"thread_rolled_back\"") {
            self.roll_back(&mut session.transcript, event.rolled_back.unwrap_or(0));
        }
        if !self.usage_recorded {
            self.usage(session, event.usage());
        }
        hidden_fields(at, what)
    }

    /// Removes the last `turns` turns from the context, or all turns if there are fewer. What is
    /// before the first turn stays.
    fn roll_back(&mut self, transcript: &mut Transcript, turns: u64) {
        let Some(skipped) = usize::try_from(turns).ok().and_then(|turns| turns.checked_sub(1))
        else {
            return;
        };
        let Transcript { items, context, .. } = transcript;
        let starts = (0..context.len()).filter(|&at| is_user(&items[context[at]]));
        let starts: Vec<usize> = starts.collect();
        let Some(first) = starts.first().copied() else { return };
        let cut = starts.len().checked_sub(skipped + 1).map_or(first, |idx| starts[idx]);
        context.truncate(cut);
        self.in_response = false;
    }

    fn usage(&self, session: &mut TranscriptBuilder<'_>, usage: Option<RecordedUsage>) {
        let (Some(usage), Some(said)) = (usage, self.last_said) else { return };
        if let Item::Entry(entry) = &mut session.transcript.items[said] {
            entry.usage = Some(usage);
        }
    }
}

fn is_user(item: &Item) -> bool {
    item.entry().is_some_and(|entry| entry.role == Role::User)
}

fn report_unknown(session: &mut TranscriptBuilder<'_>, kind: &str) {
    if !KNOWN.contains(&kind) {
        session.fault("a record of a kind that is not known");
    }
}

/// The values that an event repeats for display.
fn hidden_fields(at: &RecordBytes<'_>, event: &raw::EventItem) -> Vec<HiddenField> {
    let printed = event.printed.iter().map(|(name, place)| HiddenField {
        name,
        value: at.span(place),
        left: FieldRemainder::EmptyText,
    });
    let mut hidden_fields: Vec<HiddenField> = printed.collect();
    let changes = event.changes.clone().filter(|place| at.line[place.start] == b'{');
    hidden_fields.extend(at.hidden("changes", &changes, FieldRemainder::EmptyObject));
    hidden_fields.extend(at.hidden(
        "structuredContent",
        &event.structured,
        FieldRemainder::Nothing,
    ));
    hidden_fields
}
