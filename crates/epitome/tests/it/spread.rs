//! Sessions in many files: read as one, and never written.

use std::fs;
use std::path::PathBuf;

use epitome::storage::Store;
use epitome::{Config, ErrorKind, Place, agents};
use epitome_model::{Block, Bytes, Role};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A folder of OpenCode before 1.2, with one session.
struct World {
    dir: TempDir,
    /// The number of files in the folder that are not valid records.
    faults: usize,
}

impl World {
    fn new() -> World {
        let world = World { dir: tempfile::tempdir().expect("a folder"), faults: 0 };
        world.session("ses_a", json!({}));
        let of = |id: &str| json!({"id": id, "sessionID": "ses_a", "time": {"created": 10}});
        let with = |mut value: Value, more: Value| {
            let more = more.as_object().expect("an object").clone();
            value.as_object_mut().expect("an object").extend(more);
            value
        };
        let answer = json!({"role": "assistant", "parentID": "msg_1", "modelID": "m",
            "providerID": "p", "finish": "stop"});
        world.put("message/ses_a/msg_2", &with(of("msg_2"), answer));
        world.put("message/ses_a/msg_1", &with(of("msg_1"), json!({"role": "user"})));
        let part = |id: &str, message: &str, more: Value| {
            let own = json!({"id": id, "sessionID": "ses_a", "messageID": message});
            world.put(&format!("part/{message}/{id}"), &with(own, more));
        };
        part("prt_1", "msg_1", json!({"type": "text", "text": "Go"}));
        let state = json!({"status": "completed", "input": {"command": "ls"}, "output": "a\nb\n",
            "title": "ls", "metadata": {}, "time": {"start": 1, "end": 2}});
        part("prt_3", "msg_2", json!({"type": "text", "text": "Done."}));
        part(
            "prt_2",
            "msg_2",
            json!({"type": "tool", "tool": "bash", "callID": "c",
            "state": state}),
        );
        world
    }

    fn session(&self, id: &str, more: Value) -> PathBuf {
        let mut session = json!({"id": id, "version": "1.1.0", "projectID": "global",
            "directory": "/p", "title": "One", "time": {"created": 1, "updated": 5}});
        let more = more.as_object().expect("an object").clone();
        session.as_object_mut().expect("an object").extend(more);
        self.put(&format!("session/global/{id}"), &session)
    }

    /// Writes JSON like OpenCode, over several lines.
    fn put(&self, name: &str, value: &Value) -> PathBuf {
        self.write(name, &serde_json::to_string_pretty(value).expect("JSON"))
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.dir.path().join("opencode/storage").join(format!("{name}.json"));
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(&path, text).expect("a file");
        path
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("opencode/storage/session/global/ses_a.json")
    }

    /// The roles and texts of the session.
    fn texts(&self) -> Vec<(Role, String)> {
        let session = epitome::storage::load(&self.path(), None).expect("a session");
        assert_eq!((session.format.name, session.faults.len()), ("opencode", self.faults));
        let entries = session.transcript.context();
        let blocks = entries
            .flat_map(|(_, entry)| entry.blocks.iter().map(move |block| (entry.role, block)));
        let words = blocks.map(|(role, block)| match block {
            Block::Text(text) => (role, text.read(&session.source).into_owned()),
            Block::Call(call) => (role, format!("{} {}", call.name, call.id)),
            Block::Output(output) => (role, output.text(&session.source)),
            other => panic!("{other:?}"),
        });
        words.collect()
    }
}

#[test]
fn many_files_are_one_session_in_the_order_of_their_names() {
    let world = World::new();
    let line_of = |role, words: &str| (role, words.to_owned());
    let expect = [
        line_of(Role::User, "Go"),
        line_of(Role::Assistant, "bash c"),
        line_of(Role::Assistant, "a\nb\n"),
        line_of(Role::Assistant, "Done."),
    ];
    assert_eq!(world.texts(), expect);
    let head = epitome::storage::load(&world.path(), None).expect("a session").transcript.head;
    let head = [head.id, head.cwd, head.title, head.version].map(Option::unwrap_or_default);
    assert_eq!(head, ["ses_a", "/p", "One", "1.1.0"].map(Box::from));
}

#[test]
fn a_file_that_is_damaged_or_gone_hides_no_other() {
    let world = World { faults: 2, ..World::new() };
    world.write("part/msg_2/prt_3", "{\"type\":\"text\",\"te");
    world.write("message/ses_a/msg_0", "");
    let path = world.dir.path().join("opencode/storage/part/msg_1");
    fs::remove_dir_all(path).expect("a folder");
    let words: Vec<String> = world.texts().into_iter().map(|(_, words)| words).collect();
    assert_eq!(words, ["bash c", "a\nb\n"]);
}

#[test]
fn files_are_only_read_and_it_is_said_why() {
    let world = World::new();
    let store = Store::new(&world.dir.path().join("home"));
    let err = store.open_for_edit(&world.path()).expect_err("it is only read");
    assert_eq!(err.kind(), ErrorKind::ReadOnly);
    assert!(err.to_string().starts_with("files of opencode are only read: "), "{err}");
    assert!(!world.dir.path().join("home").exists(), "nothing is made on disk");
    // A file outside of the store is an ordinary session.
    let export = world.dir.path().join("ses_a.json");
    fs::copy(world.path(), &export).expect("a copy");
    assert!(matches!(Place::parse(&export), Place::File(_)));
}

#[test]
fn sessions_in_files_are_found_with_those_of_their_sub_agents() {
    let world = World::new();
    let below = world.session("ses_b", json!({"parentID": "ses_a"}));
    let further = world.session("ses_c", json!({"parentID": "ses_b"}));
    let mut config = Config::from_home(world.dir.path());
    config.agents.variables.insert("XDG_DATA_HOME".to_owned(), world.dir.path().into());
    let found = agents::sessions(&config.agents, Some("opencode"));
    let ids: Vec<&str> = found.iter().map(|it| it.id.as_str()).collect();
    assert_eq!(ids, ["ses_a"]);
    assert!(found[0].size > Bytes(fs::metadata(world.path()).expect("a file").len()));
    assert_eq!(agents::companions(&world.path()), [below, further]);
    assert_eq!(
        agents::find_session(&config.agents, "ses_a", None),
        agents::SessionMatch::File(world.path())
    );
}
