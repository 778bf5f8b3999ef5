//! A second summary of a session with the same text, and further summaries after that.

use std::collections::HashSet;

use epitome::compaction::PreparedCompaction;
use epitome::{ErrorKind, Loaded};
use epitome_formats::find_format;
use epitome_model::Block;
use epitome_passes::{Keep, Recipe, built_in};
use epitome_tokens::Estimate;
use serde_json::{Value, json};

const ONE: &str = "The prices of two countries were settled: all tests pass.";
const OTHER: &str = "all tests pass";
const GO_ON: &str =
    "Go on with the next country, and tell me what its price was before it was settled anew.";

/// A session that is continued.
struct Session {
    agent: &'static str,
    bytes: Vec<u8>,
    turns: u64,
}

impl Session {
    fn load(&self) -> Loaded<Vec<u8>> {
        let format = find_format(self.agent).expect("a known agent");
        let mut faults = Vec::new();
        let transcript = (format.read)(&self.bytes, &mut faults);
        Loaded { format, source: self.bytes.clone(), transcript, faults }
    }

    /// The ids of the records that a summary appends; none if there is nothing to do.
    fn summarise(&mut self, text: &str, keep: u64) -> Option<HashSet<String>> {
        let loaded = self.load();
        let recipe = built_in("transcript").expect("a recipe");
        let keep = Keep { turns: Some(keep), ..Keep::default() };
        let recipe = Recipe { keep, ..recipe };
        let planned =
            PreparedCompaction::with_summary(text, &loaded, &recipe, &Estimate).expect(self.agent);
        assert_eq!(planned.violations, [], "{}", self.agent);
        let added = planned.splices.first()?.0.with.to_vec();
        self.bytes.extend_from_slice(&added);
        Some(ids(&added))
    }

    /// The next message of the user, as the agent writes it.
    fn go_on(&mut self) {
        self.turns += 1;
        let (id, time) = (format!("00000000-0000-4000-8000-{:012}", self.turns), "2027-01-01");
        let loaded = self.load();
        let (_, newest) = loaded.transcript.entries().last().expect("something was said");
        let parts = json!([{"type": "text", "text": GO_ON}]);
        let records = match self.agent {
            "pi" => {
                let last = self.bytes.split(|byte| *byte == b'\n').rfind(|line| !line.is_empty());
                let last: Value = serde_json::from_slice(last.expect("a line")).expect("JSON");
                vec![json!({"type": "message", "id": id, "parentId": last["id"],
                    "timestamp": time, "message": {"role": "user", "content": parts}})]
            }
            "claude" => vec![json!({"parentUuid": newest.id, "isSidechain": false, "uuid": id,
                "type": "user", "message": {"role": "user", "content": GO_ON},
                "timestamp": time})],
            // Codex sends the user's messages in addition to a summary, so there is an answer, too.
            "codex" => [("user", "input_text"), ("assistant", "output_text")]
                .map(|(role, kind)| {
                    json!({"timestamp": time, "type": "response_item", "payload": {
                        "type": "message", "role": role,
                        "content": [{"type": kind, "text": GO_ON}]}})
                })
                .to_vec(),
            "gemini" => vec![json!({"id": id, "timestamp": time, "type": "user",
                "content": [{"text": GO_ON}]})],
            "opencode" => vec![
                json!({"table": "message", "id": format!("msg_{id}"),
                    "time_created": 1_900_000_000_000_u64 + self.turns * 1000,
                    "data": {"role": "user", "agent": "build",
                        "model": {"providerID": "p", "modelID": "m"}}}),
                json!({"table": "part", "id": format!("prt_{id}"),
                    "message_id": format!("msg_{id}"), "data": parts[0]}),
            ],
            "epitome" => vec![json!({"type": "entry", "id": id, "role": "user",
                "blocks": [{"text": GO_ON}]})],
            other => panic!("{other} has no summaries"),
        };
        for record in records {
            self.bytes.extend_from_slice(format!("{record}\n").as_bytes());
        }
        let loaded = self.load();
        let (_, newest) = loaded.transcript.context().last().expect("something is sent");
        let [Block::Text(text)] = &newest.blocks[..] else { panic!("{newest:?} is no turn") };
        assert_eq!(text.read(&self.bytes), GO_ON, "{}", self.agent);
    }
}

/// The ids of records, and of messages in them.
fn ids(lines: &[u8]) -> HashSet<String> {
    fn collect(value: &Value, ids: &mut HashSet<String>) {
        match value {
            Value::Object(members) => {
                for (key, value) in members {
                    match (key.as_str(), value) {
                        ("id" | "uuid", Value::String(id)) => drop(ids.insert(id.clone())),
                        _ => collect(value, ids),
                    }
                }
            }
            Value::Array(values) => values.iter().for_each(|value| collect(value, ids)),
            _ => {}
        }
    }
    let mut all = HashSet::new();
    for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        collect(&serde_json::from_slice(line).expect("JSON"), &mut all);
    }
    all
}

fn sessions() -> Vec<Session> {
    let recorded = ["pi", "claude", "codex", "gemini", "opencode"]
        .map(|agent| (agent, fixtures::get(agent, "pricing").bytes()));
    let entry_of = |id: u64, role: &str| {
        json!({"type": "entry", "id": format!("entry {id}"), "role": role,
            "blocks": [{"text": "Words that were said. ".repeat(60)}]})
    };
    let header = json!({"type": "epitome", "version": 1, "id": "s-live"});
    let log = [header, entry_of(1, "user"), entry_of(2, "assistant"), entry_of(3, "user")];
    let log: String = log.iter().map(|record| format!("{record}\n")).collect();
    let all = recorded.into_iter().chain([("epitome", log.into_bytes())]);
    all.map(|(agent, bytes)| Session { agent, bytes, turns: 0 }).collect()
}

#[test]
fn the_same_summary_is_written_once_and_another_has_ids_of_its_own() {
    for mut session in sessions() {
        let agent = session.agent;
        let mut made = HashSet::new();
        let mut check = |session: &mut Session, text, keep| {
            let before = ids(&session.bytes);
            let new = session.summarise(text, keep).expect(agent);
            assert_eq!(made.intersection(&new).next(), None, "{agent}: an id is given twice");
            made.extend(new.difference(&before).cloned());
            assert_eq!(session.load().faults, [], "{agent}");
        };
        session.go_on();
        session.go_on();
        // A new summary is written even if its text is contained in the old one.
        for (text, keep) in [(ONE, 2), (OTHER, 1), (ONE, 0)] {
            if agent == "opencode" {
                // OpenCode cannot keep a part of a tail that a summary left.
                check(&mut session, text, 0);
                session.go_on();
            } else {
                check(&mut session, text, keep);
            }
        }
        for _ in 0..2 {
            session.go_on();
            assert_eq!(session.summarise(ONE, 1), None, "{agent}: it stands there");
            assert_eq!(session.summarise(ONE, 0), None, "{agent}: it stands there");
        }
        check(&mut session, OTHER, 1);
        // Only Codex's records have no ids.
        assert_eq!(made.is_empty(), agent == "codex", "{agent}");
    }
}

#[test]
fn a_summary_that_is_too_long_says_so_and_what_to_do() {
    for session in sessions() {
        let loaded = session.load();
        let keep = Keep { turns: Some(0), ..Keep::default() };
        let recipe = Recipe { keep, ..built_in("transcript").expect("a recipe") };
        let text = "far more words than there were ".repeat(40_000);
        let done = PreparedCompaction::with_summary(&text, &loaded, &recipe, &Estimate);
        let err = done.err().unwrap_or_else(|| panic!("{} takes it", session.agent));
        assert_eq!(err.kind(), ErrorKind::Refused);
        assert_eq!(err.to_string(), "the summary is longer than what it replaces");
        let hint = "nothing was written; give a shorter summary, or keep less (--keep-turns)";
        assert_eq!(err.hint(), Some(hint));
    }
}
