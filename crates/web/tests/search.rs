//! The search over sessions, on an index on disk.

use std::fs;
use std::path::{Path, PathBuf};

use epitome::{Config, find};
use epitome_web::search::{Hit, Query, Scope, Search, SearchError, Update, Updated};

/// A machine with sessions of its own.
struct Machine {
    _dir: tempfile::TempDir,
    config: Config,
}

impl Machine {
    fn new() -> Machine {
        let dir = tempfile::tempdir().expect("a folder");
        let mut config = Config::of_home(dir.path());
        let home = dir.path();
        config.home = home.join("data");
        config.settings = home.join("settings");
        config.pi_sessions = home.join("pi");
        config.claude = home.join("claude");
        config.codex = home.join("codex");
        config.copilot = home.join("copilot");
        config.cursor = home.join("cursor");
        config.cursor_editor = home.join("editor");
        config.gemini = home.join("gemini");
        config.opencode = home.join("opencode");
        config.opencode_database = None;
        Machine { _dir: dir, config }
    }

    /// A session of Claude Code: of each message who says it, and what.
    fn claude(&self, id: &str, said: &[(&str, &str)]) -> PathBuf {
        let path = self.config.claude.join(format!("projects/-p/{id}.jsonl"));
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        let records = said.iter().enumerate().map(|(idx, (role, text))| {
            let parent = idx.checked_sub(1).map(|idx| format!("u{idx}"));
            let record = serde_json::json!({
                "type": role, "uuid": format!("u{idx}"), "parentUuid": parent, "sessionId": id,
                "cwd": "/srv/my-app", "timestamp": format!("2026-11-20T10:00:0{idx}Z"),
                "version": "2.1.329", "message": { "role": role, "content": text },
            });
            format!("{record}\n")
        });
        fs::write(&path, records.collect::<String>()).expect("a file");
        path
    }

    /// A recorded session of pi, with calls, results and reasoning.
    fn pi(&self) -> PathBuf {
        let folder = self.config.pi_sessions.join("--p--");
        fs::create_dir_all(&folder).expect("a folder");
        let path = folder.join("t_0001.jsonl");
        fs::write(&path, fixtures::get("pi", "pricing").bytes()).expect("a file");
        path
    }

    fn open(&self) -> Search {
        Search::open(&self.config, Scope::Machine).expect("an index")
    }

    fn update(&self, search: &Search) -> Updated {
        let files = find::sessions(&self.config, None);
        match search.update(&files, &|_| {}).expect("an update") {
            Update::Done(updated) => updated,
            Update::Elsewhere => panic!("nobody else is at it"),
        }
    }

    /// The folder of the index itself.
    fn index(&self) -> PathBuf {
        let entries = fs::read_dir(self.config.home.join("cache/search")).expect("a folder");
        let mut folders = entries.map(|it| it.expect("an entry").path()).filter(|it| it.is_dir());
        let index = folders.next().expect("an index");
        assert_eq!(folders.next(), None, "there is one index");
        index
    }
}

fn find(search: &Search, query: &str) -> Vec<Hit> {
    let query = Query::parse(query).expect("a query");
    search.find(&query, 50).expect("hits").hits
}

/// What was found: the session, the anchor, who says it, and the snippet.
fn shown(search: &Search, query: &str) -> Vec<String> {
    let show = |hit: Hit| {
        let marked = |run: &epitome_web::search::Run| match run.marked {
            true => format!("[{}]", run.text),
            false => run.text.clone(),
        };
        let snippet: String = hit.snippet.iter().map(marked).collect();
        format!("{} {} {}: {snippet}", hit.id, hit.anchor, hit.role)
    };
    find(search, query).into_iter().map(show).collect()
}

#[test]
fn what_is_said_is_found_where_it_is_said() {
    let machine = Machine::new();
    let one = [("user", "Where is the parser?"), ("assistant", "The parser is in src.")];
    machine.claude("one", &one);
    machine.claude("two", &[("user", "Nothing of that kind <b>here</b>")]);
    let search = machine.open();
    assert_eq!(shown(&search, "parser"), [""; 0], "nothing was indexed yet");
    let updated = machine.update(&search);
    assert_eq!(updated, Updated { sessions: 2, written: 3, gone: 0, unreadable: 0 });
    let both = ["one m1 assistant: The [parser] is in src.", "one m0 user: Where is the [parser]?"];
    let mut found = shown(&search, "parser");
    found.sort_by(|one, other| other.cmp(one));
    assert_eq!(found, both);
    let cases: [(&str, &[&str]); 11] = [
        ("parser role:user", &both[1..]),
        ("\"the parser\" -src", &["one m0 user: Where is [the parser]?"]),
        ("\"parser the\"", &[]),
        ("pars* src", &["one m1 assistant: The [parser] is in [src]."]),
        ("here", &["two m0 user: Nothing of that kind <b>[here]</b>"]),
        ("project:my-app here", &["two m0 user: Nothing of that kind <b>[here]</b>"]),
        ("project:app-my here", &[]),
        ("agent:pi parser", &[]),
        ("session:tw agent:claude", &["two m0 user: Nothing of that kind <b>here</b>"]),
        ("nothing here parser", &[]),
        ("NOTHING", &["two m0 user: [Nothing] of that kind <b>here</b>"]),
    ];
    for (query, expect) in cases {
        assert_eq!(shown(&search, query), expect, "{query}");
    }
}

#[test]
fn sessions_are_found_by_the_folder_they_were_run_in() {
    let machine = Machine::new();
    machine.claude("one", &[("user", "alpha")]);
    let search = machine.open();
    machine.update(&search);
    let cases: [(&[&str], usize); 5] = [
        (&["/srv/my-app"], 1),
        (&["/srv"], 1),
        (&["/x", "/srv"], 1),
        (&["/srv/my"], 0),
        (&["/x"], 0),
    ];
    for (folders, expect) in cases {
        let query = Query::parse("alpha").expect("a query");
        let query = query.of_folders(folders.iter().map(PathBuf::from).collect());
        assert_eq!(search.find(&query, 10).expect("hits").all, expect, "{folders:?}");
    }
}

#[test]
fn anchors_lead_to_the_message_on_the_page_of_the_session() {
    let machine = Machine::new();
    let path = machine.pi();
    let search = machine.open();
    machine.update(&search);
    let reading = epitome::Reading::open(&path, None).expect("it");
    let archive = machine.config.archive();
    let how = epitome::Telling {
        detail: epitome_render::Detail::Steps,
        redact: None,
        compact: None,
        archive: &archive,
        prices: None,
    };
    let page = |stories: &[epitome_render::Story<'_>]| {
        epitome_render::Html::whole(&stories[0], Vec::new()).page(0)
    };
    let (page, _) = reading.tell(&how, |_| String::new(), page).expect("a page");
    for query in ["role:user", "role:assistant", "role:tool"] {
        let hits = find(&search, query);
        assert!(!hits.is_empty(), "{query}");
        for hit in hits {
            assert!(page.contains(&format!("id=\"{}\"", hit.anchor)), "{query}: {hit:?}");
        }
    }
}

#[test]
fn only_what_changed_is_written() {
    let machine = Machine::new();
    let said = [("user", "alpha"), ("assistant", "beta"), ("user", "gamma")];
    machine.claude("one", &said[..2]);
    let two = machine.claude("two", &said);
    let search = machine.open();
    assert_eq!(machine.update(&search).written, 5);
    assert_eq!(machine.update(&search), Updated::default());
    machine.claude("one", &said);
    let expect = Updated { sessions: 1, written: 1, ..Updated::default() };
    assert_eq!(machine.update(&search), expect);
    machine.claude("one", &[said[0], ("assistant", "delta")]);
    fs::remove_file(two).expect("it was there");
    let expect = Updated { sessions: 1, written: 1, gone: 1, unreadable: 0 };
    assert_eq!(machine.update(&search), expect);
    assert_eq!(shown(&search, "-nothing role:user"), ["one m0 user: alpha"]);
    assert_eq!(shown(&search, "beta"), [""; 0]);
    assert_eq!(shown(&search, "delta"), ["one m1 assistant: [delta]"]);
    let again = machine.open();
    assert_eq!(machine.update(&again), Updated::default(), "another process knows it too");
    assert_eq!(shown(&again, "delta"), ["one m1 assistant: [delta]"]);
}

#[test]
fn no_secret_reaches_the_index() {
    let machine = Machine::new();
    let secret = "AKIAQ3EGRFNBVJ2WXK7T";
    let key = format!("my key is aws_access_key_id={secret} and that is it");
    machine.claude("one", &[("user", &key), ("assistant", &key)]);
    let search = machine.open();
    machine.update(&search);
    assert_eq!(find(&search, "key").len(), 2);
    assert_eq!(find(&search, secret).len(), 0);
    for file in files(&machine.config.home) {
        let bytes = fs::read(&file).expect("a file").to_ascii_lowercase();
        let lower = secret.to_ascii_lowercase();
        let holds = bytes.windows(secret.len()).any(|window| window == lower.as_bytes());
        assert!(!holds, "{}", file.display());
    }
}

#[cfg(unix)]
#[test]
fn the_index_is_private() {
    use std::os::unix::fs::PermissionsExt as _;

    let machine = Machine::new();
    machine.open();
    let mode = fs::metadata(machine.config.home.join("cache/search")).expect("it").permissions();
    assert_eq!(mode.mode() & 0o777, 0o700);
}

#[test]
fn rules_of_ones_own_make_another_index() {
    let machine = Machine::new();
    machine.claude("one", &[("user", "the word sesame opens it")]);
    let search = machine.open();
    machine.update(&search);
    assert_eq!(find(&search, "sesame").len(), 1);
    fs::create_dir_all(&machine.config.settings).expect("a folder");
    let rule = "[[rules]]\nid = \"mine\"\nregex = '''(sesame)'''\nkeywords = [\"sesame\"]\n";
    fs::write(machine.config.redaction_rules(), rule).expect("a file");
    let search = machine.open();
    assert_eq!(machine.update(&search).written, 1);
    assert_eq!(find(&search, "sesame").len(), 0);
    machine.index();
}

#[test]
fn who_comes_second_reads_and_says_so() {
    let machine = Machine::new();
    machine.claude("one", &[("user", "alpha")]);
    let search = machine.open();
    machine.update(&search);
    machine.claude("two", &[("user", "alpha")]);
    let lock = fs::File::create(machine.config.home.join("cache/search/lock")).expect("a file");
    lock.lock().expect("nobody has it");
    let files = find::sessions(&machine.config, None);
    assert_eq!(search.update(&files, &|_| {}).expect("an answer"), Update::Elsewhere);
    assert_eq!(find(&search, "alpha").len(), 1);
    drop(lock);
    assert_eq!(machine.update(&search).written, 1);
    assert_eq!(find(&search, "alpha").len(), 2);
}

#[test]
fn a_damaged_index_is_made_anew() {
    let machine = Machine::new();
    machine.claude("one", &[("user", "alpha beta"), ("assistant", "gamma")]);
    machine.update(&machine.open());
    let index = machine.index();
    let whole: Vec<(PathBuf, Vec<u8>)> =
        files(&index).into_iter().map(|file| (file.clone(), read(&file))).collect();
    assert!(whole.len() > 5, "{}", whole.len());
    let harms: [Harm; 4] = [
        |_| None,
        |_| Some(Vec::new()),
        |bytes| Some(bytes[..bytes.len() / 2].to_vec()),
        |bytes| Some(bytes.into_iter().map(|byte| byte ^ 0x55).collect()),
    ];
    for (harmed, harm) in whole.iter().flat_map(|it| harms.map(|harm| (it, harm))) {
        fs::remove_dir_all(&index).expect("it was there");
        fs::create_dir(&index).expect("a folder");
        for (file, bytes) in &whole {
            fs::write(file, bytes).expect("a file");
        }
        match harm(harmed.1.clone()) {
            Some(bytes) => fs::write(&harmed.0, bytes).expect("a file"),
            None => fs::remove_file(&harmed.0).expect("it was there"),
        }
        harmed_is_found_or_gone(&machine, &harmed.0);
    }
    let search = machine.open();
    search.check().ok();
    machine.update(&search);
    assert_eq!(find(&search, "gamma").len(), 1);
}

/// What becomes of a file: nothing, or other bytes.
type Harm = fn(Vec<u8>) -> Option<Vec<u8>>;

/// Opens the index and searches: what is there is right, or thrown away.
fn harmed_is_found_or_gone(machine: &Machine, harmed: &Path) {
    let gamma = Query::parse("gamma").expect("words");
    let search = machine.open();
    match search.find(&gamma, 10) {
        Ok(_) | Err(SearchError::Damaged) => {}
        Err(err) => panic!("{}: {err:?}", harmed.display()),
    }
    let checked = match search.check() {
        Err(SearchError::Damaged) => search.check(),
        checked => checked,
    };
    checked.unwrap_or_else(|err| panic!("{}: {err:?}", harmed.display()));
    let all = find(&search, "-nothing").len();
    assert!(all == 2 || all == 0, "{}: {all}", harmed.display());
    assert_eq!(find(&search, "gamma").len(), all / 2, "{}", harmed.display());
}

fn read(file: &Path) -> Vec<u8> {
    fs::read(file).expect("a file")
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found.sort();
    found
}
