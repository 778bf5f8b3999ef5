//! The search over sessions, on an index on disk.

use std::fs;
use std::path::{Path, PathBuf};

use epitome::{Config, agents};
use epitome_search::{Hit, Query, Scope, Search, SearchError, Update, UpdateCounts};

/// A home folder with sessions.
struct Machine {
    dir: tempfile::TempDir,
    config: Config,
}

impl Machine {
    fn new() -> Machine {
        let dir = tempfile::tempdir().expect("a folder");
        let mut config = Config::from_home(dir.path());
        let home = dir.path();
        config.home = home.join("data");
        config.settings = home.join("settings");
        let folders = [("PI_CODING_AGENT_SESSION_DIR", "pi"), ("CLAUDE_CONFIG_DIR", "claude")];
        for (variable, folder) in folders {
            config.agents.variables.insert(variable.to_owned(), home.join(folder).into());
        }
        Machine { dir, config }
    }

    /// A session of Claude Code with these messages, each an author and a text.
    fn claude(&self, id: &str, said: &[(&str, &str)]) -> PathBuf {
        let path = self.dir.path().join(format!("claude/projects/-p/{id}.jsonl"));
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
        let folder = self.dir.path().join("pi/--p--");
        fs::create_dir_all(&folder).expect("a folder");
        let path = folder.join("t_0001.jsonl");
        fs::write(&path, fixtures::get("pi", "pricing").bytes()).expect("a file");
        path
    }

    fn open(&self) -> Search {
        Search::open(&self.config, Scope::Machine).expect("an index")
    }

    fn update(&self, search: &Search) -> UpdateCounts {
        let files = agents::sessions(&self.config.agents, None);
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

/// Describes each hit: the session, the anchor, the author, and the snippet.
fn describe(search: &Search, query: &str) -> Vec<String> {
    let show = |hit: Hit| {
        let marked = |run: &epitome_search::Run| {
            if run.marked { format!("[{}]", run.text) } else { run.text.clone() }
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
    assert_eq!(describe(&search, "parser"), [""; 0], "nothing was indexed yet");
    let updated = machine.update(&search);
    assert_eq!(updated, UpdateCounts { sessions: 2, written: 3, gone: 0, unreadable: 0 });
    let both = ["one m1 assistant: The [parser] is in src.", "one m0 user: Where is the [parser]?"];
    let mut found = describe(&search, "parser");
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
        assert_eq!(describe(&search, query), expect, "{query}");
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
        let query = query.with_folders(folders.iter().map(PathBuf::from).collect());
        assert_eq!(search.find(&query, 10).expect("hits").all, expect, "{folders:?}");
    }
}

#[test]
fn anchors_lead_to_the_message_on_the_page_of_the_session() {
    let machine = Machine::new();
    let path = machine.pi();
    let search = machine.open();
    machine.update(&search);
    let reading = epitome::render::RenderSource::open(&machine.config, &path, None).expect("it");
    let archive = machine.config.archive();
    let how = epitome::render::RenderOptions {
        detail: epitome_render::Detail::Steps,
        redact: None,
        compact: None,
        archive: &archive,
        prices: None,
    };
    let page = |stories: &[epitome_render::Story<'_>]| {
        epitome_render::Html::single_page(&stories[0], Vec::new()).page(0)
    };
    let (page, _) = reading.with_stories(&how, |_| String::new(), page).expect("a page");
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
    let messages = [("user", "alpha"), ("assistant", "beta"), ("user", "gamma")];
    machine.claude("one", &messages[..2]);
    let two = machine.claude("two", &messages);
    let search = machine.open();
    assert_eq!(machine.update(&search).written, 5);
    assert_eq!(machine.update(&search), UpdateCounts::default());
    machine.claude("one", &messages);
    let expect = UpdateCounts { sessions: 1, written: 1, ..UpdateCounts::default() };
    assert_eq!(machine.update(&search), expect);
    machine.claude("one", &[messages[0], ("assistant", "delta")]);
    fs::remove_file(two).expect("it was there");
    let expect = UpdateCounts { sessions: 1, written: 1, gone: 1, unreadable: 0 };
    assert_eq!(machine.update(&search), expect);
    assert_eq!(describe(&search, "-nothing role:user"), ["one m0 user: alpha"]);
    assert_eq!(describe(&search, "beta"), [""; 0]);
    assert_eq!(describe(&search, "delta"), ["one m1 assistant: [delta]"]);
    let again = machine.open();
    assert_eq!(machine.update(&again), UpdateCounts::default(), "another process knows it too");
    assert_eq!(describe(&again, "delta"), ["one m1 assistant: [delta]"]);
}

#[test]
fn no_secret_reaches_the_index() {
    let machine = Machine::new();
    let secret = "AKIAQ3EGRFNBVJ2WXK7T";
    let key = format!("my key is aws_access_key_id={secret} and that is it");
    machine.claude("one", &[("user", &key), ("assistant", &key)]);
    let search = machine.open();
    machine.update(&search);
    let hits = find(&search, "key");
    assert_eq!(hits.len(), 2);
    assert!(!format!("{hits:?}").contains(secret), "{hits:?}");
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
    machine.claude("one", &[("user", "alpha")]);
    machine.update(&machine.open());
    let mode = |path: &Path| fs::metadata(path).expect("it").permissions().mode() & 0o777;
    let (folder, index) = (machine.config.home.join("cache/search"), machine.index());
    assert_eq!([mode(&folder), mode(&index)], [0o700; 2]);
    let modes: Vec<(PathBuf, u32)> =
        files(&folder).into_iter().map(|file| (file.clone(), mode(&file))).collect();
    let expect = [index.join("checksum"), index.join("index.db"), folder.join("lock")];
    assert_eq!(modes, expect.map(|file| (file, 0o600)));
}

#[test]
fn an_index_of_another_version_is_deleted() {
    let machine = Machine::new();
    let old = machine.config.home.join("cache/search/0123456789abcdef");
    fs::create_dir_all(&old).expect("a folder");
    fs::write(old.join("meta.json"), "{}").expect("a file");
    machine.claude("one", &[("user", "alpha")]);
    let search = machine.open();
    assert_eq!(machine.update(&search).written, 1);
    assert_ne!(machine.index(), old);
}

#[test]
fn what_fits_best_comes_first_and_then_what_is_newest() {
    let machine = Machine::new();
    let long = "alpha and many other words that have nothing to do with it";
    let texts = ["alpha", long, "alpha", "beta", "gamma", "delta", "alpha"];
    machine.claude("one", &texts.map(|text| ("user", text)));
    let search = machine.open();
    machine.update(&search);
    let query = Query::parse("alpha").expect("a query");
    let found = |most| {
        let hits = search.find(&query, most).expect("hits");
        let anchors = hits.hits.into_iter().map(|hit| hit.anchor).collect::<Vec<_>>();
        (anchors.join(" "), hits.all)
    };
    assert_eq!(found(10), ("m6 m2 m0 m1".to_owned(), 4));
    assert_eq!(found(2), ("m6 m2".to_owned(), 4));
}

#[test]
fn no_word_of_a_query_is_an_operator() {
    let machine = Machine::new();
    let text_of_user = "NOT AND near(text, rowid) über 漢字です {a} b^2 𠀀𠀁";
    machine.claude("one", &[("user", text_of_user)]);
    let search = machine.open();
    machine.update(&search);
    let many = "a ".repeat(400);
    let phrase = format!("\"{many}\"");
    let cases = [
        ("NOT", 1),
        ("AND OR", 0),
        ("near(text rowid)", 1),
        ("NEAR(not and)", 0),
        ("text:rowid", 1),
        ("text:b", 0),
        ("{a}:b^2", 1),
        ("^not ÜBER", 1),
        ("\"b ^2\" + a", 1),
        ("漢字", 1),
        ("字漢", 0),
        ("字です", 1),
        ("漢*", 1),
        ("\u{20000}\u{20001}", 1),
        ("' OR 1=1;", 0),
        ("-a", 0),
        ("-x -y* -\"a a\" role:user", 1),
        (&many, 1),
        (&phrase, 0),
    ];
    for (query, expect) in cases {
        let Ok(parsed) = Query::parse(query) else { panic!("{query}") };
        let hits = search.find(&parsed, 10).unwrap_or_else(|err| panic!("{query}: {err:?}"));
        assert_eq!(hits.all, expect, "{query}");
    }
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
    let files = agents::sessions(&machine.config.agents, None);
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
    let names: Vec<_> = whole.iter().filter_map(|(file, _)| file.file_name()).collect();
    assert_eq!(names, ["checksum", "index.db"]);
    let whole_database = &whole[1].1;
    assert_eq!(whole_database.len() % PAGE, 0);
    let mut harms: Vec<(&Path, Option<Vec<u8>>)> = Vec::new();
    for (file, bytes) in &whole {
        let half = bytes[..bytes.len() / 2].to_vec();
        let others = bytes.iter().map(|byte| byte ^ 0x55).collect();
        harms.extend([None, Some(Vec::new()), Some(half), Some(others)].map(|it| (&**file, it)));
    }
    // Damages one byte of each page.
    for at in (0..whole_database.len()).step_by(PAGE) {
        let mut bytes = whole_database.clone();
        bytes[at + at / 7 % PAGE] ^= 0x40;
        harms.push((&whole[1].0, Some(bytes)));
    }
    for (harmed, bytes) in harms {
        fs::remove_dir_all(machine.index()).expect("it was there");
        fs::create_dir(&index).expect("a folder");
        for (file, bytes) in &whole {
            fs::write(file, bytes).expect("a file");
        }
        let is_whole = bytes.is_none() && harmed == whole[0].0;
        match bytes {
            Some(bytes) => fs::write(harmed, bytes).expect("a file"),
            None => fs::remove_file(harmed).expect("it was there"),
        }
        let found = found_after_damage(&machine, harmed);
        assert_eq!(found, if is_whole { 2 } else { 0 }, "{}", harmed.display());
    }
    let search = machine.open();
    machine.update(&search);
    assert_eq!(find(&search, "gamma").len(), 1);
}

/// The size of a page of the database, in bytes.
const PAGE: usize = 4096;

/// Opens the index, searches it, and checks it, which replaces a damaged one. Returns the number of
/// messages that are found afterwards: all or none.
fn found_after_damage(machine: &Machine, harmed: &Path) -> usize {
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
    let all = find(&search, "-nothing role:user").len() + find(&search, "gamma").len();
    assert_eq!(find(&search, "-nothing").len(), all, "{}", harmed.display());
    all
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
