//! Files that were edited after a compaction: only what an edit certainly made is undone.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use epitome::archive::{Archive, Generation, Hash, SessionKey, UndoData};
use epitome::compaction::{PreparedCompaction, Way};
use epitome::storage::{Blobs, RestoreOutcome, RestoreTarget, Spliced, restore};
use epitome::{Error, Loaded};
use epitome_model::{Source, Splice, Tokens};
use epitome_passes::{Keep, built_in};
use epitome_tokens::Estimate;
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};

/// The generations and their removed bytes.
#[derive(Default)]
struct Memory {
    generations: Vec<Generation>,
    blobs: HashMap<(u64, Hash), Vec<u8>>,
}

impl Blobs for Memory {
    fn blob(&self, generation: u64, hash: &Hash) -> Result<Vec<u8>, Error> {
        match self.blobs.get(&(generation, *hash)) {
            Some(raw) => Ok(raw.clone()),
            None => Archive::new("/nowhere".as_ref()).read(
                &SessionKey::new("opencode", "s"),
                generation,
                hash,
            ),
        }
    }
}

/// A compacted file, and its edits in the order of the file.
struct Compacted {
    bytes: Vec<u8>,
    /// The offset in the compacted file, the bytes there, and the original bytes.
    edits: Vec<(usize, Vec<u8>, Vec<u8>)>,
}

impl Memory {
    /// Compacts a session like `epitome compact --keep-turns`. None if there is nothing to do.
    fn compact(&mut self, bytes: &[u8], turns: u64) -> Option<Compacted> {
        let session = Loaded::read(bytes.to_vec(), None).ok()?;
        let mut recipe = built_in("epitome").expect("a recipe");
        recipe.keep = Keep { turns: Some(turns), results: Some(0), ..Keep::default() };
        recipe.trigger = Default::default();
        let planned =
            PreparedCompaction::in_way(Way::Rewrite, &session, &recipe, &Estimate).ok()?;
        if planned.is_empty() || !planned.violations.is_empty() {
            return None;
        }
        let spliced = planned.spliced().expect("apart");
        let number = self.generations.len() as u64 + 1;
        let way = UndoData::between(&session.source, &spliced).expect("in memory");
        let mut edits = Vec::new();
        let mut shift = 0_i64;
        for Splice { span, with } in spliced.splices() {
            let raw = session.source.at(*span).into_owned();
            self.blobs.insert((number, Hash::compute(&raw)), raw.clone());
            let at = (span.start as i64 + shift) as usize;
            shift += with.len() as i64 - raw.len() as i64;
            edits.push((at, with.to_vec(), raw));
        }
        let bytes = spliced.read(0..spliced.len()).into_owned();
        self.generations.push(Generation {
            number,
            agent: session.format.name.into(),
            session: "s".into(),
            path: "/s".into(),
            recipe: "epitome".into(),
            made: jiff::Timestamp::UNIX_EPOCH,
            epitome: String::new(),
            before: way.before,
            after: way.after,
            records: way.records,
            tokens_before: Tokens(0),
            tokens_after: Tokens(0),
            edits: BTreeMap::new(),
            shared: Some(way.shared),
            forgotten: Vec::new(),
            imported: None,
            run: None,
            part_of: None,
            parts: Vec::new(),
        });
        Some(Compacted { bytes, edits })
    }

    fn restore(&self, file: &[u8]) -> Result<(Vec<u8>, RestoreOutcome), Error> {
        let file = file.to_vec();
        let done = restore(&file, &self.generations, self, RestoreTarget::Original)?;
        let view = Spliced::new(&file, done.splices).expect("apart");
        Ok((view.read(0..view.len()).into_owned(), done.outcome))
    }
}

/// Whether `restored` is `file` with some of the edits undone, and no other difference.
fn is_undone_in_part(restored: &[u8], file: &[u8], edits: &[(usize, Vec<u8>, Vec<u8>)]) -> bool {
    let mut ends = BTreeSet::from([0]);
    let mut from = 0;
    for (at, with, raw) in edits {
        let plain = &file[from..*at];
        let mut next = BTreeSet::new();
        for end in ends {
            let Some(rest) = restored[end..].strip_prefix(plain) else { continue };
            let at = restored.len() - rest.len();
            next.extend(rest.starts_with(with).then_some(at + with.len()));
            next.extend(rest.starts_with(raw).then_some(at + raw.len()));
        }
        ends = next;
        from = at + with.len();
    }
    ends.into_iter().any(|end| restored[end..] == file[from..])
}

/// The compacted file with one byte changed or added in a line that no edit touched.
fn changed(compacted: &Compacted, place: Index, longer: bool) -> Option<Compacted> {
    let Compacted { bytes, edits } = compacted;
    let mut starts = vec![0];
    starts.extend(memchr::memchr_iter(b'\n', bytes).map(|at| at + 1));
    let untouched = starts.iter().filter_map(|&start| {
        let end = memchr::memchr(b'\n', &bytes[start..]).map_or(bytes.len(), |len| start + len);
        let is_edited = edits.iter().any(|(at, with, _)| *at <= end && at + with.len() >= start);
        (!is_edited && end > start).then_some((start, end))
    });
    let untouched: Vec<(usize, usize)> = untouched.collect();
    let (start, end) = *untouched.get(place.index(untouched.len().max(1)))?;
    let letter = (start..end).find(|&at| bytes[at].is_ascii_alphabetic())?;
    let mut bytes = bytes.clone();
    if longer {
        bytes.insert(letter, b'q')
    } else {
        bytes[letter] = if bytes[letter] == b'q' { b'w' } else { b'q' }
    }
    let moved = |(at, with, raw): &(usize, Vec<u8>, Vec<u8>)| {
        (at + usize::from(longer && *at > letter), with.clone(), raw.clone())
    };
    Some(Compacted { bytes, edits: edits.iter().map(moved).collect() })
}

/// The file with all edits undone.
fn undone(file: &Compacted) -> Vec<u8> {
    let mut bytes = file.bytes.clone();
    for (at, with, raw) in file.edits.iter().rev() {
        bytes.splice(*at..at + with.len(), raw.iter().copied());
    }
    bytes
}

fn sessions() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        3 => fixtures::generate::session("opencode"),
        1 => fixtures::generate::session("claude"),
        1 => fixtures::generate::session("gemini"),
        1 => fixtures::generate::body("anthropic"),
        1 => fixtures::generate::body("openai-chat"),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None, ..ProptestConfig::with_cases(300)
    })]

    /// After one line was changed, a restore undoes edits exactly where they were made, and all of
    /// them unless some are counted as missing. Old generations do not know which of their records
    /// equal other lines.
    #[test]
    fn one_changed_line_changes_nothing_else(
        bytes in sessions(), place: Index, longer: bool, old: bool,
    ) {
        let mut memory = Memory::default();
        let Some(compacted) = memory.compact(&pretty(&bytes), 0) else { return Ok(()) };
        let Some(file) = changed(&compacted, place, longer) else { return Ok(()) };
        if old {
            memory.generations[0].shared = None;
        }
        let (restored, outcome) = match memory.restore(&file.bytes) {
            Ok(done) => done,
            Err(err) => {
                // The file is unchanged.
                prop_assert_eq!(err.kind(), epitome::ErrorKind::Refused);
                return Ok(());
            }
        };
        prop_assert!(is_undone_in_part(&restored, &file.bytes, &file.edits));
        match outcome {
            RestoreOutcome::Exact { .. } => prop_assert_eq!(restored, undone(&file)),
            RestoreOutcome::ByRecord { missing: 0, .. } => prop_assert_eq!(restored, undone(&file)),
            RestoreOutcome::ByRecord { .. } => {}
        }
    }
}

/// The file, pretty-printed if it is one JSON document; other files are returned unchanged.
fn pretty(bytes: &[u8]) -> Vec<u8> {
    match serde_json::from_slice::<Value>(bytes) {
        Ok(document) => serde_json::to_vec_pretty(&document).unwrap_or_default(),
        Err(_) => bytes.to_vec(),
    }
}

/// The output of `opencode export` for a session of so many turns. Its results have copies in
/// members that an edit removes as a whole, which leaves lines like `},`.
fn export(turns: usize) -> Vec<u8> {
    let turn = |n: usize| {
        let output = format!("line {n} of a long result\n").repeat(40);
        let own = |id: String| json!({"id": id, "sessionID": "ses_abcdefgh", "messageID": "m"});
        let with = |mut part: Value, more: Value| {
            for (key, value) in more.as_object().expect("an object") {
                part[key] = value.clone();
            }
            part
        };
        let call = with(
            own(format!("prt_{n}b")),
            json!({"type": "tool", "tool": "bash", "callID": format!("c{n}"), "state": {
                "status": "completed", "input": {"command": format!("make {n}")},
                "output": output, "title": "make", "time": {"start": 1, "end": 2},
                "metadata": {"output": output, "exit": 0}}}),
        );
        let words = with(own(format!("prt_{n}a")), json!({"type": "text", "text": "go on"}));
        let user = json!({"id": format!("msg_{n}a"), "role": "user", "sessionID": "ses_abcdefgh",
            "time": {"created": n}});
        let model = json!({"id": format!("msg_{n}b"), "role": "assistant",
            "sessionID": "ses_abcdefgh", "parentID": format!("msg_{n}a"), "modelID": "m",
            "providerID": "p", "time": {"created": n}});
        [json!({"info": user, "parts": [words]}), json!({"info": model, "parts": [call]})]
    };
    let messages: Vec<Value> = (0..turns).flat_map(turn).collect();
    let info = json!({"id": "ses_abcdefgh", "directory": "/p", "title": "neon-sailor",
        "version": "1.18.33", "time": {"created": 1}});
    serde_json::to_vec_pretty(&json!({"info": info, "messages": messages})).expect("JSON")
}

fn replaced(bytes: &[u8], what: &str, with: &str) -> Vec<u8> {
    String::from_utf8_lossy(bytes).replace(what, with).into_bytes()
}

#[test]
fn an_export_with_one_other_byte_comes_back_whole() {
    let mut memory = Memory::default();
    let compacted = memory.compact(&export(8), 0).expect("compacted");
    let edits = compacted.edits.len();
    assert!(edits > 8, "{edits}");
    let file = replaced(&compacted.bytes, "neon-sailor", "neon-Sailor");
    let (restored, outcome) = memory.restore(&file).expect("restored");
    assert_eq!(restored, replaced(&export(8), "neon-sailor", "neon-Sailor"));
    assert!(matches!(outcome, RestoreOutcome::ByRecord { missing: 0, .. }), "{outcome:?}");
}

#[test]
fn an_export_made_again_later_stays_as_it_is() {
    let mut memory = Memory::default();
    memory.compact(&export(8), 0).expect("compacted");
    let (restored, outcome) = memory.restore(&export(10)).expect("left");
    assert_eq!(restored, export(10));
    assert!(matches!(outcome, RestoreOutcome::ByRecord { restored: 0, .. }), "{outcome:?}");
}

#[test]
fn a_proved_way_back_is_not_spoilt_by_an_older_generation() {
    for turns in [0, 1] {
        let mut memory = Memory::default();
        memory.compact(&export(8), turns).expect("compacted");
        let later = memory.compact(&export(10), turns).expect("compacted");
        let (restored, outcome) = memory.restore(&later.bytes).expect("restored");
        assert_eq!(restored, export(10), "{turns} turns kept");
        assert_eq!(outcome, RestoreOutcome::Exact { undone: vec![2] });
    }
}

#[test]
fn a_refused_attempt_leaves_no_pack() {
    let home = tempfile::tempdir().expect("a folder");
    let path = home.path().join("s.json");
    std::fs::write(&path, export(8)).expect("written");
    let archive = Archive::new(home.path());
    let file = epitome::storage::Store::new(home.path()).open_for_edit(&path).expect("a session");
    let session = Loaded::read(file.source(), None).expect("a session");
    let mut recipe = built_in("epitome").expect("a recipe");
    recipe.keep = Keep { turns: Some(0), results: Some(0), ..Keep::default() };
    recipe.trigger = Default::default();
    let planned =
        PreparedCompaction::in_way(Way::Rewrite, &session, &recipe, &Estimate).expect("planned");
    let mut appended = export(8);
    appended.push(b'\n');
    std::fs::write(&path, appended).expect("appended");
    let now = jiff::Timestamp::UNIX_EPOCH;
    let err = epitome::compaction::apply(&planned, &file, &archive, &Estimate, now)
        .expect_err("it changed");
    assert_eq!(err.kind(), epitome::ErrorKind::Changed);
    assert_eq!(archive.sessions().expect("a listing"), []);
    assert!(!Archive::folder_in(home.path()).join("opencode").exists());
}
