//! The browser without a terminal: keys, the tasks that they start, and the screen.

use std::path::Path;
use std::time::{Duration, SystemTime};

use epitome::Config;
use epitome::agents::SessionFile;
use epitome::keep::{ChangeName, DeletedSession, HistoryVersion, VersionHistory, VersionReason};
use epitome::list::{ListedSession, list};
use epitome_model::Bytes;
use jiff::Timestamp;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use tempfile::TempDir;

use super::draw::draw;
use super::state::{Browser, Effect, Mode, Note};
use super::worker::{Commands, Form, Kind, Task, TaskResult};

const NOW: &str = "2026-11-23T12:00:00Z";

/// A folder with sessions of three agents, and one file that is no session.
struct World {
    _dir: TempDir,
    listed: Vec<ListedSession>,
}

impl World {
    fn new() -> World {
        let dir = tempfile::tempdir().expect("a folder");
        let mut config = Config::from_home(dir.path());
        config.home = dir.path().join("epitome");
        let now: Timestamp = NOW.parse().expect("a time");
        let file = |name: &str, agent, hours: u64, bytes: &[u8]| {
            let path = dir.path().join(name);
            std::fs::write(&path, bytes).expect("a file");
            let modified = SystemTime::from(now) - Duration::from_secs(hours * 3_600);
            let (id, size) = (name.to_owned(), Bytes(bytes.len() as u64));
            SessionFile { path, agent, id, modified, size, row: None }
        };
        let fixture = |agent, name| fixtures::get(agent, name).bytes().to_vec();
        let files = vec![
            file("0f3c9a52-aaaa", "pi", 3, &fixture("pi", "pricing")),
            file("1b7d0e44-bbbb", "claude", 30, &fixture("claude", "pricing")),
            file("77aa0000-cccc", "codex", 700, &fixture("codex", "pricing")),
            file("broken-dddd", "pi", 1, b"no session\n"),
        ];
        let recipe = epitome_passes::built_in("epitome").expect("a recipe");
        let listed = list(&config, files, &recipe, || ());
        World { _dir: dir, listed }
    }

    fn browser(&self) -> Browser {
        let now = NOW.parse().expect("a time");
        let mut browser = Browser::new(now, true, (80, 24));
        assert_eq!(browser.finish_task(TaskResult::Listed(self.listed.clone())), None);
        browser
    }
}

fn press(browser: &mut Browser, keys: &str) -> Option<Effect> {
    let key = |c| match c {
        '\n' => KeyCode::Enter,
        '\t' => KeyCode::Tab,
        '\u{1b}' => KeyCode::Esc,
        '\u{8}' => KeyCode::Backspace,
        c => KeyCode::Char(c),
    };
    let mut last = None;
    for c in keys.chars() {
        last = browser.key(KeyEvent::new(key(c), KeyModifiers::NONE));
    }
    last
}

fn screen(browser: &mut Browser, columns: u16, lines: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(columns, lines)).expect("a terminal");
    terminal.draw(|frame| draw(browser, frame)).expect("it is drawn");
    terminal.backend().to_string()
}

/// The title, the arguments and the kind of the commands that a key started. Of a path, only the
/// file name is returned.
fn started(effect: Option<Effect>) -> (String, Vec<Vec<String>>, Kind) {
    let Some(Effect::Start(Task::Run(Commands { title, lines, kind }))) = effect else {
        panic!("it started {effect:?}");
    };
    let word = |word: &std::ffi::OsString| {
        let name = Path::new(word).file_name().expect("a name");
        name.to_string_lossy().into_owned()
    };
    let lines = lines.iter().map(|line| line.iter().map(word).collect()).collect();
    (title, lines, kind)
}

#[test]
fn the_list_fits_every_screen() {
    let world = World::new();
    let mut browser = world.browser();
    press(&mut browser, "j ");
    for (columns, lines) in [(80, 24), (140, 16), (40, 10)] {
        let name = format!("list_{columns}x{lines}");
        insta::assert_snapshot!(name, screen(&mut browser, columns, lines));
    }
    // Drawing does not panic, even on the smallest screens.
    for columns in 1..30 {
        for lines in 1..8 {
            screen(&mut browser, columns, lines);
        }
    }
}

#[test]
fn help_and_questions_and_menus_lie_above_the_list() {
    let world = World::new();
    let mut browser = world.browser();
    press(&mut browser, "?");
    insta::assert_snapshot!(screen(&mut browser, 80, 24), @r#"
    "epitome  4 sessions, ~130.9k tokens, compacting saves ~108.4k          by saving"
    "  agent  session   age messages context  saves title                            "
    "▸ pi     0f3c9a52   3h   ~91.6k ▁▂▂▂▃▄▇█  −96% The tests fail since this mornin…"
    "  claude 1b7d0e44   1d   ~19.9k ▂▂▂▃▄▅▇█  −53% The tests fail since this mornin…"
    "┌ Keys ────────────────────────────────────────────────────────────────────────┐"
    "│ Move      j k ↑ ↓  PgUp PgDn  g G       Select    space one   a all          │"
    "│ Find      / filter (fuzzy)              Sort      tab  saving, time, size, … │"
    "│                                                                              │"
    "│ d  plan what compacting would remove    r  read the session                  │"
    "│ D  the same, block by block             o  open its page in the web browser  │"
    "│ c  compact, after a question            i  where its tokens go               │"
    "│ u  undo: restore it, to the byte        l  what compactions lost             │"
    "│ s  simulate: cost under each recipe     y  copy the command that resumes it  │"
    "│ p  continue it in another agent         e  export it: HTML, Markdown, JSON   │"
    "│ v  versions that epitome keep has seen  x  deleted sessions that it has      │"
    "│ R  read the list again now              q  quit                              │"
    "│                                                                              │"
    "│ c, u and s take all selected sessions, other keys the one at the cursor.     │"
    "│ The title of what is shown is the command that showed it.                    │"
    "└──────────────────────────────────────────────────────────────────────────────┘"
    "The tests fail since this morning. Find out why and fix it, but do not rename … "
    "pi 0f3c9a52-aaaa · 5 turns · 273.7 KB · /home/dev/project                       "
    "messages ~91.6k · saves 95.8% · billed ~64.0k                                   "
    "? help  q quit  d plan  c compact  u undo  r read  / filter  space select       "
    "#);
    press(&mut browser, "qp");
    insta::assert_snapshot!(screen(&mut browser, 80, 24), @r#"
    "epitome  4 sessions, ~130.9k tokens, compacting saves ~108.4k          by saving"
    "  agent  session   age messages context  saves title                            "
    "▸ pi     0f3c9a52   3h   ~91.6k ▁▂▂▂▃▄▇█  −96% The tests fail since this mornin…"
    "  claude 1b7d0e44   1d   ~19.9k ▂▂▂▃▄▅▇█  −53% The tests fail since this mornin…"
    "  codex  77aa0000   4w   ~19.3k ▂▃▃▃▄▅▇█  −51% The tests fail since this mornin…"
    "  pi     broken-d   1h        -              - (not a session of an agent that… "
    "                                                                                "
    "                                                                                "
    "                                                                                "
    "                                                                                "
    "                       ┌ Continue it in another agent ──┐                       "
    "                       │ 1  claude                      │                       "
    "                       │ 2  codex                       │                       "
    "                       └────────────────────────────────┘                       "
    "                                                                                "
    "                                                                                "
    "                                                                                "
    "                                                                                "
    "                                                                                "
    "────────────────────────────────────────────────────────────────────────────────"
    "The tests fail since this morning. Find out why and fix it, but do not rename … "
    "pi 0f3c9a52-aaaa · 5 turns · 273.7 KB · /home/dev/project                       "
    "messages ~91.6k · saves 95.8% · billed ~64.0k                                   "
    "? help  q quit  d plan  c compact  u undo  r read  / filter  space select       "
    "#);
    press(&mut browser, "\u{1b}ac");
    insta::assert_snapshot!(screen(&mut browser, 80, 24), @r#"
    "epitome  4 sessions, ~130.9k tokens, compacting saves ~108.4k          by saving"
    "  agent  session   age messages context  saves title                            "
    "● pi     0f3c9a52   3h   ~91.6k ▁▂▂▂▃▄▇█  −96% The tests fail since this mornin…"
    "● claude 1b7d0e44   1d   ~19.9k ▂▂▂▃▄▅▇█  −53% The tests fail since this mornin…"
    "● codex  77aa0000   4w   ~19.3k ▂▃▃▃▄▅▇█  −51% The tests fail since this mornin…"
    "  pi     broken-d   1h        -              - (not a session of an agent that… "
    "                                                                                "
    "                                                                                "
    "   ┌ epitome ───────────────────────────────────────────────────────────────┐   "
    "   │ Compact 3 sessions?                                                    │   "
    "   │ ~130.9k → ~22.5k tokens of messages (−82.8%)                           │   "
    "   │ What is removed is archived first; u restores it.                      │   "
    "   │ The file of codex grows by a record; compact --rewrite shrinks it too. │   "
    "   │                                                                        │   "
    "   │ y yes · any other key no                                               │   "
    "   └────────────────────────────────────────────────────────────────────────┘   "
    "                                                                                "
    "                                                                                "
    "                                                                                "
    "────────────────────────────────────────────────────────────────────────────────"
    "The tests fail since this morning. Find out why and fix it, but do not rename … "
    "pi 0f3c9a52-aaaa · 5 turns · 273.7 KB · /home/dev/project                       "
    "3 sessions selected: ~130.9k tokens, compacting saves ~108.4k                   "
    "? help  q quit  d plan  c compact  u undo  r read  / filter  space select       "
    "#);
}

#[test]
fn a_key_starts_its_command_for_the_current_session() {
    let world = World::new();
    let mut browser = world.browser();
    let name = browser.current().expect("a session").listed.file.id.clone();
    let short = browser.current().expect("a session").short.clone();
    for (key, words, kind) in [
        ("d", vec!["compact", "--dry-run", "--losses"], Kind::Plans),
        ("D", vec!["compact", "--diff"], Kind::Plans),
        ("r", vec!["render", "--detail", "calls"], Kind::Shows),
        ("i", vec!["inspect"], Kind::Shows),
        ("l", vec!["losses"], Kind::Shows),
        ("s", vec!["simulate"], Kind::Shows),
    ] {
        let (title, lines, of) = started(press(&mut browser, key));
        let line = [words.clone(), vec![&name]].concat();
        assert_eq!((lines, of), (vec![line.iter().map(|it| (*it).to_owned()).collect()], kind));
        assert_eq!(title, format!("epitome {} {short}", words.join(" ")));
        browser.work = None;
    }
    let session = browser.current().expect("a session").listed.file.path.clone();
    let export = press(&mut browser, "e2");
    let form = Form::Markdown;
    assert_eq!(export, Some(Effect::Start(Task::Export { session, short, form })));
}

#[test]
fn what_is_written_is_asked_once_for_all() {
    let world = World::new();
    let mut browser = world.browser();
    assert_eq!(press(&mut browser, " j c"), None);
    let chosen: Vec<String> =
        browser.selected_rows().iter().map(|row| row.listed.file.id.clone()).collect();
    assert_eq!(chosen.len(), 2);
    // Any key but yes means no.
    assert_eq!(press(&mut browser, "n"), None);
    assert_eq!(browser.note, Some(Note::Said("nothing was changed".to_owned())));
    let (_, lines, kind) = started(press(&mut browser, "cy"));
    let line = [vec!["compact".to_owned(), "--yes".to_owned()], chosen].concat();
    assert_eq!((lines, kind), (vec![line], Kind::Writes));
    // While a command writes, a key starts no other command.
    assert_eq!(press(&mut browser, "d"), None);
    assert_eq!(browser.note, Some(Note::Failed("wait a moment: writing …".to_owned())));
}

#[test]
fn what_is_written_shows_how_far_it_is() {
    let world = World::new();
    let mut browser = world.browser();
    press(&mut browser, "acy");
    browser.work.as_mut().expect("it writes").progress = Some((31, 500));
    let shown = screen(&mut browser, 80, 24);
    let last = shown.lines().last().expect("a line");
    assert!(last.contains("writing ▌░░░░░░░░░ 31 of 500 …"), "{shown}");
    // `q` waits for the command to finish, and Ctrl-C stops it.
    assert_eq!(press(&mut browser, "q"), Some(Effect::Leave));
    let ctrl_c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    assert_eq!(browser.key(ctrl_c), Some(Effect::Stop));
}

#[test]
fn the_title_of_several_is_the_command_that_was_run() {
    let world = World::new();
    let mut browser = world.browser();
    let (title, ..) = started(press(&mut browser, " jjcy"));
    let names: Vec<&str> = browser.selected_rows().iter().map(|row| row.short.as_str()).collect();
    assert_eq!(title, format!("epitome compact {}", names.join(" ")));
}

#[test]
fn after_a_restore_nothing_is_selected() {
    let world = World::new();
    let mut browser = world.browser();
    press(&mut browser, " ");
    assert_eq!(browser.chosen.len(), 1);
    let lines = vec![vec!["restore".into(), "x".into()]];
    let commands = Commands { title: "epitome restore x".to_owned(), lines, kind: Kind::Writes };
    browser.finish_task(TaskResult::Printed {
        commands,
        text: "restored\n".to_owned(),
        failed: false,
    });
    assert_eq!(browser.chosen.len(), 0);
}

#[test]
fn a_filter_that_finds_nothing_says_how_to_go_on() {
    let world = World::new();
    let mut browser = world.browser();
    press(&mut browser, "/zzzz");
    let shown = screen(&mut browser, 80, 24);
    assert!(shown.contains("No session matches `zzzz`.") && shown.contains("esc"), "{shown}");
}

#[test]
fn a_small_screen_has_the_keys_and_marks_what_is_cut_off() {
    let world = World::new();
    let mut browser = world.browser();
    assert!(screen(&mut browser, 20, 4).contains("? help"));
    press(&mut browser, "?");
    assert!(screen(&mut browser, 40, 10).contains("… more on a larger screen"));
}

#[test]
fn what_others_changed_is_shown_and_ends_no_work() {
    let world = World::new();
    let mut browser = world.browser();
    assert!(browser.is_idle());
    press(&mut browser, "jj");
    let current = browser.current().expect("a session").listed.file.id.clone();
    let Some(Effect::Start(_)) = press(&mut browser, "d") else { panic!("it plans") };
    assert!(!browser.is_idle());
    let work = browser.work.clone();
    let left = world.listed.iter().filter(|it| it.file.id != "broken-dddd").cloned().collect();
    assert_eq!(browser.finish_task(TaskResult::Refreshed(left)), None);
    assert_eq!((browser.rows.len(), &browser.work), (3, &work));
    assert_eq!(browser.current().expect("a session").listed.file.id, current);
}

#[test]
fn what_was_not_compacted_is_not_restored() {
    let world = World::new();
    let mut browser = world.browser();
    assert_eq!(press(&mut browser, "u"), None);
    let note = Note::Failed("it was not compacted with epitome".to_owned());
    assert_eq!(browser.note, Some(note));
}

#[test]
fn a_plan_is_read_and_carried_out() {
    let world = World::new();
    let mut browser = world.browser();
    let Some(Effect::Start(Task::Run(commands))) = press(&mut browser, "d") else {
        panic!("it plans");
    };
    let text = (1..=50).map(|n| format!("\u{1b}[1mline {n}\u{1b}[0m\n")).collect();
    assert_eq!(browser.finish_task(TaskResult::Printed { commands, text, failed: false }), None);
    let shown = screen(&mut browser, 60, 8);
    insta::assert_snapshot!(shown, @r#"
    "$ epitome compact --dry-run --losses 0f3c9a52      1–6 of 50"
    "line 1                                                      "
    "line 2                                                      "
    "line 3                                                      "
    "line 4                                                      "
    "line 5                                                      "
    "line 6                                                      "
    "? help  q back  c compact  D block by block  j k scroll     "
    "#);
    press(&mut browser, "/line 49\n");
    insta::assert_snapshot!(screen(&mut browser, 60, 8), @r#"
    "$ epitome compact --dry-run --losses 0f3c9a52    45–50 of 50"
    "line 45                                                     "
    "line 46                                                     "
    "line 47                                                     "
    "line 48                                                     "
    "line 49                                                     "
    "line 50                                                     "
    "? help  q back  c compact  D block by block  j k scroll     "
    "#);
    press(&mut browser, "/nowhere\n");
    assert_eq!(browser.note, Some(Note::Failed("not found".to_owned())));
    press(&mut browser, "?");
    insta::assert_snapshot!(screen(&mut browser, 80, 16), @r#"
    "$ epitome compact --dry-run --losses 0f3c9a52                        45–50 of 50"
    "line 45                                                                         "
    "line 46                                                                         "
    "line 47                                                                         "
    "line ┌ Keys ──────────────────────────────────────────────────────────────┐     "
    "line │ Move      j k ↑ ↓  space b PgUp PgDn  g G                          │     "
    "line │ Find      / words, enter      n N  next, previous                  │     "
    "     │                                                                    │     "
    "     │ q  back to the list           y  copy the command, if one is shown │     "
    "     │ c  carry the plan out         D  the plan block by block           │     "
    "     │                                                                    │     "
    "     │ The title is the command that showed it.                           │     "
    "     └────────────────────────────────────────────────────────────────────┘     "
    "                                                                                "
    "                                                                                "
    "? help  q back  c compact  D block by block  j k scroll  space page  g G ends   "
    "#);
    // Any key closes the help and does nothing else.
    press(&mut browser, "q");
    assert!(matches!(&browser.mode, Mode::View(view) if !view.shows_keys));
    let (_, lines, kind) = started(press(&mut browser, "cy"));
    let name = browser.current().expect("a session").listed.file.id.clone();
    let line = vec!["compact".to_owned(), "--yes".to_owned(), name];
    assert_eq!((lines, kind), (vec![line], Kind::Writes));
}

#[test]
fn after_a_write_the_list_is_read_again() {
    let world = World::new();
    let mut browser = world.browser();
    press(&mut browser, " ");
    let Some(Effect::Start(Task::Run(commands))) = press(&mut browser, "cy") else {
        panic!("it compacts");
    };
    let text = "compacted\n".to_owned();
    let effect = browser.finish_task(TaskResult::Printed { commands, text, failed: false });
    assert_eq!(effect, Some(Effect::Start(Task::List)));
    assert_eq!(browser.chosen.len(), 1);
    assert!(matches!(&browser.mode, Mode::View(_)));
}

#[test]
fn a_filter_finds_the_best_first_and_keeps_nothing_else() {
    let world = World::new();
    let mut browser = world.browser();
    press(&mut browser, "/codex");
    let shown: Vec<&str> =
        browser.shown.iter().map(|&at| browser.rows[at].listed.file.agent).collect();
    assert_eq!(shown, ["codex"]);
    press(&mut browser, "\u{8}\u{8}\u{8}\u{8}\u{8}");
    assert_eq!(browser.shown.len(), 4);
    press(&mut browser, "0f3c\n");
    assert_eq!(browser.current().map(|row| &*row.short), Some("0f3c9a52"));
    press(&mut browser, "\u{1b}");
    assert_eq!((browser.filter.as_str(), browser.shown.len()), ("", 4));
}

#[test]
fn orders_follow_each_other_and_stay_on_the_session() {
    let world = World::new();
    let mut browser = world.browser();
    press(&mut browser, "j");
    let current = |browser: &Browser| browser.current().expect("a session").short.clone();
    let before = current(&browser);
    let mut names = vec![browser.sort.name()];
    for _ in 0..4 {
        press(&mut browser, "\t");
        names.push(browser.sort.name());
        assert_eq!(current(&browser), before);
    }
    assert_eq!(names, ["saving", "time", "size", "context", "saving"]);
}

#[test]
fn the_command_that_resumes_is_copied() {
    let world = World::new();
    let mut browser = world.browser();
    press(&mut browser, "/claude\n");
    let info = browser.current().and_then(|row| row.info()).expect("it is read");
    let line = epitome::agents::resume_line("claude", &info.id, info.cwd.as_deref());
    assert_eq!(press(&mut browser, "y"), line.map(Effect::Copy));
}

#[test]
fn no_session_at_all_is_said() {
    let mut browser = Browser::new(NOW.parse().expect("a time"), true, (80, 10));
    insta::assert_snapshot!(screen(&mut browser, 80, 10), @r#"
    "epitome                                                                by saving"
    "                                                                                "
    "                                                                                "
    "                                                                                "
    "                                                                                "
    "────────────────────────────────────────────────────────────────────────────────"
    "                                                                                "
    "                                                                                "
    "                                                                                "
    "reading sessions …                                                              "
    "#);
    browser.finish_task(TaskResult::Listed(Vec::new()));
    insta::assert_snapshot!(screen(&mut browser, 80, 10), @r#"
    "epitome                                                                by saving"
    "                                                                                "
    "No sessions of coding agents were found on this machine.                        "
    "                                                                                "
    "epitome demo   shows what epitome does, on a sample session                     "
    "────────────────────────────────────────────────────────────────────────────────"
    "                                                                                "
    "                                                                                "
    "                                                                                "
    "? help  q quit  d plan  c compact  u undo  r read  / filter  space select       "
    "#);
    // No key fails if there is no session.
    for key in "dDcursopeyil \tajkgG/".chars() {
        assert_eq!(press(&mut browser, &key.to_string()), None);
    }
}

/// The versions of a session that was appended to, compacted and deleted.
fn history() -> VersionHistory {
    let version = |number: u64, change, bytes: u64, bytes_added, reason| HistoryVersion {
        version: number,
        seen: format!("2026-11-2{number}T12:00:00Z").parse().expect("a time"),
        modified: None,
        earlier_path: None,
        bytes: Bytes(bytes),
        blake3: epitome::archive::Hash::compute(b""),
        change,
        same_as: None,
        bytes_added,
        reason,
        masked: 0,
    };
    VersionHistory {
        agent: "pi".to_owned(),
        session: "0f3c9a52-aaaa".to_owned(),
        part: None,
        machine: "00000000000000aa".to_owned(),
        path: "/home/dev/.pi/s.jsonl".into(),
        is_other: false,
        exists: false,
        versions: vec![
            version(0, ChangeName::First, 273_700, 273_700, None),
            version(1, ChangeName::Appended, 280_000, 6_300, None),
            version(
                2,
                ChangeName::Rewritten,
                40_000,
                -240_000,
                Some(VersionReason::CompactedByAgent),
            ),
            version(3, ChangeName::Deleted, 0, -40_000, None),
        ],
        parts: Vec::new(),
        elsewhere: Vec::new(),
    }
}

#[test]
fn versions_are_listed_and_one_is_restored_after_a_question() {
    let world = World::new();
    let mut browser = world.browser();
    let Some(Effect::Start(Task::Versions { short, agent, .. })) = press(&mut browser, "v") else {
        panic!("it looks for versions");
    };
    assert_eq!(agent, "pi");
    assert_eq!(browser.finish_task(TaskResult::Versions(history(), short)), None);
    insta::assert_snapshot!(screen(&mut browser, 80, 9), @r#"
    "$ epitome history 0f3c9a52                                                      "
    "  version  age      size  what changed                                          "
    "        0   3d  273.7 KB  first seen, 273.7 KB                                  "
    "        1   2d  280.0 KB  +6.3 KB                                               "
    "        2   1d   40.0 KB  compacted by the agent, -240.0 KB                     "
    "        3  now         -  deleted                                               "
    "                                                                                "
    "                                                                                "
    "u restore this version  q back  j k move                                        "
    "#);
    assert_eq!(press(&mut browser, "u"), None);
    let note = "this version has no content: the session was deleted then";
    assert_eq!(browser.note, Some(Note::Failed(note.to_owned())));
    press(&mut browser, "ku");
    insta::assert_snapshot!(screen(&mut browser, 80, 12), @r#"
    "epitome  4 sessions, ~130.9k tokens, compacting saves ~108.4k          by saving"
    "  agent  session   age messages context  saves title                            "
    "▸ pi     0f3c9a52   3h   ~91.6k ▁▂▂▂▃▄▇█  −96% The tests fail since this mornin…"
    "  claude 1b┌ epitome ────────────────────────────────────────────────┐is mornin…"
    "  codex  77│ Restore version 2 of 0f3c9a52?                          │is mornin…"
    "  pi     br│ 40.0 KB, seen 1d ago: compacted by the agent, -240.0 KB │ent that… "
    "           │ The session is made again where its agent had it.       │          "
    "───────────│                                                         │──────────"
    "The tests f│ y yes · any other key no                                │ rename … "
    "pi 0f3c9a52└─────────────────────────────────────────────────────────┘          "
    "messages ~91.6k · saves 95.8% · billed ~64.0k                                   "
    "? help  q quit  d plan  c compact  u undo  r read  / filter  space select       "
    "#);
    let (title, lines, kind) = started(press(&mut browser, "y"));
    assert_eq!((title.as_str(), kind), ("epitome restore 0f3c9a52 --at 2", Kind::Restores));
    let words = ["restore", "s.jsonl", "--at", "2", "--yes"];
    assert_eq!(lines, [words.map(str::to_owned).to_vec()]);
}

#[test]
fn deleted_sessions_are_listed_and_lead_to_their_versions() {
    let world = World::new();
    let mut browser = world.browser();
    assert_eq!(press(&mut browser, "x"), Some(Effect::Start(Task::Deleted)));
    assert_eq!(browser.finish_task(TaskResult::Deleted(Vec::new())), None);
    let note = "no deleted session was kept (epitome keep)".to_owned();
    assert_eq!(browser.note, Some(Note::Said(note)));
    press(&mut browser, "x");
    let deleted = |id: &str, day: u8| DeletedSession {
        agent: "claude".to_owned(),
        session: id.to_owned(),
        path: format!("/home/dev/.claude/projects/-p/{id}.jsonl").into(),
        machine: None,
        deleted: format!("2026-11-{day}T12:00:00Z").parse().expect("a time"),
        modified: None,
        bytes: Bytes(12_345),
        version: 7,
    };
    let sessions = vec![deleted("5f3c9a52-aaaa", 22), deleted("6f3c9a52-bbbb", 20)];
    assert_eq!(browser.finish_task(TaskResult::Deleted(sessions)), None);
    press(&mut browser, "j");
    insta::assert_snapshot!(screen(&mut browser, 100, 6), @r#"
    "$ epitome list --deleted                                                                            "
    "   agent  deleted     size  session                                                                 "
    "  claude       1d  12.3 KB  5f3c9a52 /home/dev/.claude/projects/-p/5f3c9a52-aaaa.jsonl              "
    "  claude       3d  12.3 KB  6f3c9a52 /home/dev/.claude/projects/-p/6f3c9a52-bbbb.jsonl              "
    "                                                                                                    "
    "u restore  v versions  q back  j k move                                                             "
    "#);
    let wanted = Task::Versions {
        session: "/home/dev/.claude/projects/-p/6f3c9a52-bbbb.jsonl".into(),
        agent: "claude".to_owned(),
        short: "6f3c9a52".to_owned(),
    };
    assert_eq!(press(&mut browser, "\n"), Some(Effect::Start(wanted)));
}
