//! The tools on real files and processes, with hostile arguments.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Duration, Instant};

use epitome_model::ToolKind;
use serde_json::{Value, json};

use super::*;

/// A project, and a file next to it that is not part of it.
struct Project {
    folder: tempfile::TempDir,
    place: Workplace,
}

impl Project {
    fn new() -> Project {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("project/src")).unwrap();
        fs::write(folder.path().join("outside"), "secret\n").unwrap();
        let place = Workplace::new(&folder.path().join("project")).unwrap();
        let project = Project { folder, place };
        project.write("src/a.rs", "fn one() {}\nfn two() {}\nfn one_more() {}\n");
        project.write(".gitignore", "ignored\n");
        project.write("ignored/b.rs", "fn one() {}\n");
        project.write("README.md", "# One\n");
        project
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.root().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    fn access(&self, tool: &str, arguments: &Value) -> Result<Access, String> {
        self.place.access(&called(tool, arguments))
    }

    fn run(&self, tool: &str, arguments: Value) -> Outcome {
        let access = self.access(tool, &arguments)?;
        self.place.run(&called(tool, &arguments), &access, &Stop::default())
    }
}

fn called(tool: &str, arguments: &Value) -> ResponseCall {
    let arguments = arguments.to_string();
    ResponseCall { id: "c1".into(), name: tool.into(), kind: ToolKind::Other, arguments }
}

#[test]
fn a_path_is_where_it_leads_and_not_what_it_looks_like() {
    let project = Project::new();
    let outside = project.folder.path().canonicalize().unwrap();
    symlink("..", project.path("up")).unwrap();
    symlink("/etc", project.path("etc")).unwrap();
    symlink("../not-there", project.path("dangling")).unwrap();
    symlink("src", project.path("inside")).unwrap();
    symlink("loop", project.path("loop")).unwrap();
    for (path, expect) in [
        ("src/a.rs", Some(project.path("src/a.rs"))),
        ("./src/../src/a.rs", Some(project.path("src/a.rs"))),
        ("inside/new.rs", Some(project.path("src/new.rs"))),
        ("../outside", Some(outside.join("outside"))),
        ("src/../../outside", Some(outside.join("outside"))),
        ("up/outside", Some(outside.join("outside"))),
        ("up/up/up", Some(outside.parent().unwrap().to_owned()).filter(|_| false)),
        ("dangling", Some(outside.join("not-there"))),
        ("/etc/passwd", Some("/etc/passwd".into())),
        ("etc/passwd", Some("/etc/passwd".into())),
        ("inside/../../outside", Some(outside.join("outside"))),
        ("../../../../../../../../../../../etc/passwd", Some("/etc/passwd".into())),
        ("loop", None),
        ("", None),
        ("a\0b", None),
    ] {
        let found = project.place.resolve(path).ok();
        if path != "up/up/up" {
            assert_eq!(found, expect, "{path}");
        }
        for tool in ["read", "write", "edit"] {
            let arguments =
                json!({"path": path, "content": "", "old_string": "", "new_string": ""});
            let access = project.access(tool, &arguments).ok();
            let path_of = access.as_ref().and_then(|access| permitted(access).ok());
            assert_eq!(path_of, found.as_ref(), "{tool} {path}");
        }
    }
}

#[test]
fn files_are_read_in_parts() {
    let project = Project::new();
    project.write("empty", "");
    fs::write(project.path("binary"), [0xff, 0xfe, 0]).unwrap();
    for (arguments, expect) in [
        (json!({"path": "README.md"}), Ok("# One\n")),
        (
            json!({"path": "src/a.rs", "offset": 2}),
            Ok("fn two() {}\nfn one_more() {}\n[lines 2-3 of 3]"),
        ),
        (json!({"path": "src/a.rs", "limit": 1}), Ok("fn one() {}\n[lines 1-1 of 3]")),
        (json!({"path": "src/a.rs", "offset": 9}), Err("src/a.rs has 3 lines")),
        (json!({"path": "empty"}), Ok("[the file is empty]")),
        (json!({"path": "binary"}), Err("binary is not a text file in UTF-8")),
        (json!({"path": "src"}), Err("src is a folder: use glob")),
        (json!({"path": "none"}), Err("none: No such file or directory (os error 2)")),
        (json!({}), Err("bad arguments: missing field `path` at line 1 column 2")),
    ] {
        let read = project.run("read", arguments.clone());
        assert_eq!(read.as_deref().map_err(|err| &**err), expect, "{arguments}");
    }
    project.write("long", &"é".repeat(BYTES_OF_A_LINE));
    let long = project.run("read", json!({"path": "long"})).unwrap();
    assert!(long.ends_with("é\n[the rest of this line is left out]\n"), "{}", long.len());
}

/// The maximum number of bytes that a call of `read` returns. A line of as many two-byte characters
/// is too long.
const BYTES_OF_A_LINE: usize = 100_000;

#[test]
fn an_edit_must_know_what_it_changes() {
    let project = Project::new();
    let edit = |old: &str, new: &str, all: bool| {
        let arguments =
            json!({"path": "src/a.rs", "old_string": old, "new_string": new, "replace_all": all});
        project.run("edit", arguments)
    };
    for (old, new, all, expect) in [
        ("three", "3", false, Err("old_string is not in src/a.rs: read it again")),
        (
            "fn one",
            "fn 1",
            false,
            Err("old_string is 2 times in src/a.rs: give more lines around it"),
        ),
        ("", "x", false, Err("old_string is empty: use write for a new file")),
        ("two", "two", false, Err("old_string and new_string are the same")),
        ("two", "zwei", false, Ok("edited src/a.rs at line 2")),
        ("fn one", "fn 1", true, Ok("edited src/a.rs at line 1 (2 places)")),
    ] {
        let done = edit(old, new, all);
        assert_eq!(done.as_deref().map_err(|err| &**err), expect, "{old}");
    }
    assert_eq!(project.text("src/a.rs"), "fn 1() {}\nfn zwei() {}\nfn 1_more() {}\n");
}

#[test]
fn a_file_is_written_with_its_folder() {
    let project = Project::new();
    let write = |path: &str| project.run("write", json!({"path": path, "content": "a\nb\n"}));
    assert_eq!(write("x/y/z.txt").as_deref(), Ok("created x/y/z.txt: 2 lines, 4 bytes"));
    assert_eq!(write("x/y/z.txt").as_deref(), Ok("replaced x/y/z.txt: 2 lines, 4 bytes"));
    assert_eq!(write("src").as_deref().map_err(|err| &**err), Err("src is not a file"));
    assert_eq!(project.text("x/y/z.txt"), "a\nb\n");
}

#[test]
fn files_and_lines_are_found_without_those_that_are_ignored() {
    let project = Project::new();
    symlink(project.folder.path(), project.path("up")).unwrap();
    for (tool, arguments, expect) in [
        ("glob", json!({"pattern": "**/*.rs"}), Ok("src/a.rs")),
        ("glob", json!({"pattern": "*.rs", "path": "src"}), Ok("src/a.rs")),
        ("glob", json!({"pattern": "*.py"}), Ok("no file matches *.py")),
        ("glob", json!({"pattern": "a{"}), Err("bad pattern")),
        ("grep", json!({"pattern": "one\\("}), Ok("src/a.rs:1:fn one() {}")),
        (
            "grep",
            json!({"pattern": "ONE", "ignore_case": true, "include": "*.md"}),
            Ok("README.md:1:# One"),
        ),
        ("grep", json!({"pattern": "two", "path": "src/a.rs"}), Ok("src/a.rs:2:fn two() {}")),
        ("grep", json!({"pattern": "secret"}), Ok("no line matches secret")),
        ("grep", json!({"pattern": "("}), Err("bad pattern")),
        ("glob", json!({"pattern": "*", "path": "none"}), Err("there is no")),
    ] {
        let found = project.run(tool, arguments.clone());
        match expect {
            Ok(text) => assert_eq!(found.as_deref(), Ok(text), "{arguments}"),
            Err(why) => assert!(found.clone().is_err_and(|it| it.starts_with(why)), "{found:?}"),
        }
    }
}

#[test]
fn a_command_returns_what_it_printed_and_how_it_ended() {
    let project = Project::new();
    let place = project.place.clone().without_variables(["CARGO".to_owned()]);
    let run = |command: &str, timeout: u64| {
        let arguments = json!({"command": command, "timeout": timeout});
        let called = called("shell", &arguments);
        let access = place.access(&called)?;
        place.run(&called, &access, &Stop::default())
    };
    for (command, expect) in [
        ("echo out; echo err >&2", Ok("out\nerr\n")),
        ("printf x", Ok("x\n")),
        ("true", Ok("")),
        ("exit 7", Err("[exit status: 7]")),
        ("cat", Ok("")),
        ("echo ${CARGO:-hidden}", Ok("hidden\n")),
        ("pwd", Ok(&*format!("{}\n", place.root().display()))),
        // A command has a terminal for its output, without input and without colours.
        ("test -t 1 && test -t 2 && echo out", Ok("out\n")),
        ("test -t 0 || echo in", Ok("in\n")),
        ("echo $TERM $PAGER; stty size < /dev/tty", Ok("dumb cat\n50 200\n")),
        (r"printf '\033[31m1%%\033[0m\r50%%\r\033[K100%%\n'", Ok("100%\n")),
        // The end of the output is not lost.
        ("seq 3000 | tail -n 1", Ok("3000\n")),
        ("exec >&- 2>&-; exit 3", Err("[exit status: 3]")),
        // A process that the command leaves running is killed when the command ends.
        ("sleep 600 & echo begun", Ok("begun\n")),
    ] {
        let done = run(command, 60);
        assert_eq!(done.as_deref().map_err(|err| &**err), expect, "{command}");
    }
    let begun = Instant::now();
    let late = run("sleep 600; echo never", 1);
    assert_eq!(late.as_deref().map_err(|err| &**err), Err("[ended after 1 s: time-out]"));
    assert!(begun.elapsed() < Duration::from_secs(60));
}

/// A process with a session of its own continues, and is not waited for; all others are killed.
#[test]
fn a_command_is_over_when_its_shell_is_whoever_has_its_terminal_open() {
    let project = Project::new();
    let pid = |name: &str| {
        while !project.path(name).exists() || !project.text(name).ends_with('\n') {
            std::thread::yield_now();
        }
        rustix::process::Pid::from_raw(project.text(name).trim().parse().unwrap()).unwrap()
    };
    let is_there = |pid| rustix::process::test_kill_process(pid).is_ok();
    let begun = Instant::now();
    let command = "setsid sh -c 'echo $$ > own; exec sleep 600' & while ! test -s own; do :; done";
    assert_eq!(project.run("shell", json!({"command": command})).as_deref(), Ok(""));
    let own = pid("own");
    assert!(is_there(own));
    rustix::process::kill_process(own, rustix::process::Signal::KILL).unwrap();
    // A process group of its own that ignores signals.
    let command = "set -m; (trap '' HUP INT TERM; while :; do echo x; sleep 600; done) & \
                   echo $! > group; yes & echo begun";
    let text = project.run("shell", json!({"command": command})).unwrap();
    assert!(text.contains("begun\n"), "{text}");
    let group = pid("group");
    while is_there(group) {
        std::thread::yield_now();
    }
    assert!(begun.elapsed() < Duration::from_secs(300));
}

#[test]
fn a_command_that_asks_or_never_stops_ends_with_its_time() {
    let project = Project::new();
    let late = "[ended after 1 s: time-out]";
    for (command, begin) in [
        ("read answer < /dev/tty; echo $answer", late),
        ("yes", "y\ny\n"),
        // An unfinished sequence does not hide the following output.
        (r"printf '\033]0;'; yes", "y\n"),
        (r"while :; do printf '\r%s' $((n = n + 1)); done", ""),
        ("while :; do tr '\\0' x < /dev/zero; done", "xxx"),
    ] {
        let ended = project.run("shell", json!({"command": command, "timeout": 1})).unwrap_err();
        assert!(ended.starts_with(begin) && ended.ends_with(late), "{command}: {:?}", ended.len());
        assert!(ended.len() < 300_000, "{command}: {}", ended.len());
    }
}

#[test]
fn of_a_long_output_the_beginning_and_the_end_are_kept() {
    let project = Project::new();
    let command = "echo first; yes middle | head -c 5000000; echo; echo last";
    let text = project.run("shell", json!({"command": command})).unwrap();
    assert!(text.starts_with("first\nmiddle\n") && text.ends_with("\nlast\n"));
    assert!(text.contains(" bytes left out]\n") && text.len() < 300_000, "{}", text.len());
}

#[test]
fn a_stop_ends_all_processes_of_a_command() {
    let project = Project::new();
    let stop = Stop::default();
    let arguments = json!({"command": "(sleep 600; touch late) & echo $! > pid; wait"});
    let (place, called, by) = (project.place.clone(), called("shell", &arguments), stop.clone());
    let running = std::thread::spawn(move || {
        let access = place.access(&called)?;
        place.run(&called, &access, &by)
    });
    let pid = project.path("pid");
    while !fs::read_to_string(&pid).is_ok_and(|pid| pid.ends_with('\n')) {
        std::thread::yield_now();
    }
    let process = Path::new("/proc").join(fs::read_to_string(pid).unwrap().trim());
    stop.stop();
    assert_eq!(running.join().unwrap(), Err("[stopped]".to_owned()));
    // The parent of the process has ended too: only the system still has to reap the process.
    let state = || fs::read_to_string(process.join("stat")).unwrap_or_default();
    while process.exists() && !state().contains(") Z ") {
        std::thread::yield_now();
    }
}

#[test]
fn the_list_of_what_is_to_be_done_is_returned() {
    let items = json!({"items": [
        {"text": "read", "state": "done"}, {"text": "write", "state": "doing"},
        {"text": "test", "state": "open"},
    ]});
    let list = Project::new().run("todo", items);
    assert_eq!(list.as_deref(), Ok("[x] read\n[>] write\n[ ] test"));
}

#[test]
fn every_tool_has_a_name_that_services_take_and_a_schema() {
    for tool in TOOLS {
        assert!(epitome_api::is_name(tool.name, 64), "{}", tool.name);
        let schema: Value = serde_json::from_str(tool.parameters).unwrap();
        assert_eq!(schema["type"], "object", "{}", tool.name);
    }
    let unknown = Project::new().run("rm", json!({}));
    assert!(
        unknown
            .unwrap_err()
            .starts_with("there is no tool `rm`: there are read, write, edit, patch")
    );
}

/// A patch of these lines.
fn patch(lines: &[&str]) -> Value {
    json!({"patch": format!("*** Begin Patch\n{}\n*** End Patch\n", lines.join("\n"))})
}

#[test]
fn a_patch_changes_several_files_at_once() {
    let project = Project::new();
    project.write("dos.txt", "a\r\nb\r\n");
    project.write("no_end.txt", "last  ");
    let done = project.run(
        "patch",
        patch(&[
            "*** Update File: src/a.rs",
            "@@ fn one() {}",
            "-fn two() {}",
            "+fn zwei() {}",
            "+",
            " fn one_more() {}",
            "@@",
            "+// the end",
            "*** End of File",
            "*** Add File: new/deep/c.txt",
            "+one",
            "+",
            "*** Delete File: README.md",
            "*** Update File: dos.txt",
            "*** Move to: unix.txt",
            " a",
            "+between",
            "*** Update File: no_end.txt",
            " last",
            "+more",
        ]),
    );
    let expect = "changed src/a.rs\ncreated new/deep/c.txt\ndeleted README.md\ndeleted dos.txt\n\
                  created unix.txt\nchanged no_end.txt";
    assert_eq!(done.as_deref(), Ok(expect));
    let expect = "fn one() {}\nfn zwei() {}\n\nfn one_more() {}\n// the end\n";
    assert_eq!(project.text("src/a.rs"), expect);
    assert_eq!(project.text("new/deep/c.txt"), "one\n\n");
    assert_eq!(project.text("unix.txt"), "a\r\nbetween\r\nb\r\n");
    assert_eq!(project.text("no_end.txt"), "last  \nmore");
    assert!(!project.path("README.md").exists() && !project.path("dos.txt").exists());
}

#[test]
fn a_patch_that_does_not_fit_changes_nothing() {
    let project = Project::new();
    project.write("twice.txt", "x\ny\nx\ny\n");
    let first = ["*** Update File: src/a.rs", "-fn two() {}", "+fn zwei() {}"];
    let text = project.text("src/a.rs");
    for (second, expect) in [
        (&["*** Update File: README.md", "-# Two"][..], "README.md: change 1: its lines are not"),
        (&["*** Update File: twice.txt", " x", "+z"], "twice.txt: change 1: its lines are there 2"),
        (
            &["*** Update File: twice.txt", "@@ q", "+z"],
            "twice.txt: change 1: there is no line `q`",
        ),
        (&["*** Update File: twice.txt"], "nothing is changed in twice.txt"),
        (&["*** Update File: none.txt", "+z"], "none.txt: No such file"),
        (&["*** Add File: README.md", "+z"], "README.md is there already: update it"),
        (&["*** Add File: a.txt", "z"], "line 6 of the patch: a line of a new file begins with +"),
        (&["*** Update File: twice.txt", "z"], "line 6 of the patch: it begins with none of"),
        (&["*** Delete File: src"], "src is a folder"),
        (&["*** Update File: README.md", "*** Move to: src/a.rs", "+z"], "src/a.rs is there"),
        (&["*** Update File: ./src/../src/a.rs", "+z"], "src/a.rs is changed twice"),
        // Errors that only occur when the file is written.
        (&["*** Add File: README.md/below", "+z"], "README.md"),
    ] {
        let arguments = patch(&[&first[..], second].concat());
        let failed = project.run("patch", arguments.clone()).unwrap_err();
        assert!(failed.starts_with(expect), "{second:?}: {failed}");
        // All other errors are found before the user is asked.
        let is_known = !second[0].contains("below");
        assert_eq!(project.access("patch", &arguments).is_err(), is_known, "{second:?}");
        assert_eq!(project.text("src/a.rs"), text, "{second:?}");
    }
    for (arguments, expect) in [
        (json!({"patch": ""}), "the patch is empty"),
        (json!({"patch": "hello"}), "a patch begins with *** Begin Patch"),
        (json!({"text": ""}), "bad arguments: missing field `patch`"),
    ] {
        let failed = project.run("patch", arguments).unwrap_err();
        assert!(failed.starts_with(expect), "{failed}");
    }
}

#[test]
fn a_patch_touches_where_its_paths_lead() {
    let project = Project::new();
    let outside = project.folder.path().canonicalize().unwrap().join("outside");
    symlink("../outside", project.path("link")).unwrap();
    let lines = [
        "*** Update File: link",
        "*** Move to: src/../../moved",
        "-secret",
        "*** Delete File: src/a.rs",
    ];
    let access = project.access("patch", &patch(&lines));
    let paths = [outside.clone(), outside.with_file_name("moved"), project.path("src/a.rs")];
    assert_eq!(access, Ok(Access::Patch(paths.to_vec())));
    // The content of a file outside of the project is not revealed before the user is asked.
    let guess = patch(&["*** Update File: ../outside", "-public", "+x"]);
    assert_eq!(project.access("patch", &guess), Ok(Access::Patch(vec![outside])));
}

#[test]
fn skills_are_found_by_name_and_those_of_the_user_count_first() {
    let project = Project::new();
    let home = project.folder.path().join("home/skills");
    fs::create_dir_all(home.join("release")).unwrap();
    fs::write(home.join("release/SKILL.md"), "# How the user releases\nTag it.\n").unwrap();
    let head = "---\nname: x\ndescription: >\n  Use it for\n  reviews.\nversion: 1\n---\n\n";
    project.write(".claude/skills/review/SKILL.md", &format!("{head}Read every line.\n"));
    project.write(".agents/skills/release/SKILL.md", "---\ndescription: no\n---\nNo.\n");
    project.write(".agents/skills/long/SKILL.md", &"é".repeat(40_000));
    project.write(".agents/skills/none/README.md", "");
    // Links in a project must not lead out of it.
    let outside = project.folder.path().join("elsewhere");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("SKILL.md"), "secret").unwrap();
    symlink(&outside, project.path(".agents/skills/link")).unwrap();
    let place = project.place.clone().with_skills([home.clone()], home);
    let found = place.skills();
    let found: Vec<(&str, &str)> = found.iter().map(|it| (&*it.name, &*it.about)).collect();
    let about = format!("{}…", "é".repeat(249));
    let expect = [
        ("long", &*about),
        ("release", "How the user releases"),
        ("review", "Use it for reviews."),
    ];
    assert_eq!(found, expect);
    let run = |arguments: Value| {
        let called = called("skill", &arguments);
        place.run(&called, &place.access(&called)?, &Stop::default())
    };
    let expect = "Instructions of the skill review, whose files are in .claude/skills/review:\n\n\
                  Read every line.";
    assert_eq!(run(json!({"name": "review"})).as_deref(), Ok(expect));
    let long = run(json!({"name": "long"})).unwrap();
    assert!(long.ends_with("é\n[the rest of this file is left out: read it]"), "{}", long.len());
    let missing = "there is no skill `link`: there are long, release, review".to_owned();
    assert_eq!(run(json!({"name": "link"})), Err(missing));
    let bare = Project::new().run("skill", json!({"name": "../../etc"}));
    assert_eq!(bare, Err("there is no skill `../../etc`, and no other".to_owned()));
}

#[test]
fn what_a_call_would_change_is_known_before_it_runs() {
    let project = Project::new();
    project.write("a.txt", "one\ntwo\n");
    let planned = |tool: &str, arguments: Value| {
        let changes = project.place.planned_changes(tool, &arguments.to_string())?;
        let texts = changes.into_iter().map(|it| (it.before, it.after));
        Some(texts.collect::<Vec<_>>())
    };
    let text = |text: &str| Some(text.to_owned());
    let edit = json!({"path": "a.txt", "old_string": "two", "new_string": "2"});
    assert_eq!(planned("edit", edit), Some(vec![(text("one\ntwo\n"), text("one\n2\n"))]));
    let write = json!({"path": "a.txt", "content": "1\n"});
    assert_eq!(planned("write", write), Some(vec![(text("one\ntwo\n"), text("1\n"))]));
    let edit = json!({
        "path": "a.txt", "old_string": "o", "new_string": "0", "replace_all": true
    });
    assert_eq!(planned("edit", edit), Some(vec![(text("one\ntwo\n"), text("0ne\ntw0\n"))]));
    let new = json!({"path": "new.txt", "content": "1\n"});
    assert_eq!(planned("write", new), Some(vec![(None, text("1\n"))]));
    let patch = "*** Begin Patch\n*** Delete File: a.txt\n*** End Patch";
    let patch = json!({"patch": patch});
    assert_eq!(planned("patch", patch), Some(vec![(text("one\ntwo\n"), None)]));
    for (tool, arguments) in [
        ("edit", json!({"path": "a.txt", "old_string": "three", "new_string": "3"})),
        ("edit", json!({"path": "none.txt", "old_string": "one", "new_string": "3"})),
        ("edit", json!({"path": "a.txt", "old_string": "o", "new_string": "0"})),
        ("edit", json!({"path": "a.txt", "old_string": "two", "new_string": "two"})),
        ("write", json!({"path": "src", "content": "x"})),
        ("read", json!({"path": "a.txt"})),
        ("nothing", json!({})),
    ] {
        assert_eq!(planned(tool, arguments.clone()), None, "{tool} {arguments}");
    }
    assert_eq!(project.text("a.txt"), "one\ntwo\n");
}

#[cfg(unix)]
#[test]
fn a_command_tells_what_it_prints_while_it_runs() {
    let project = Project::new();
    let (tell, told) = std::sync::mpsc::channel();
    let on_progress = move |_, text: String| drop(tell.send(text));
    let place = project.place.clone().with_progress(Arc::new(on_progress));
    let stop = Stop::default();
    let stopper = stop.clone();
    // The command is stopped once its output is shown.
    let watching = std::thread::spawn(move || {
        let is_told = told.iter().any(|text| text == "one\ntwo");
        stopper.stop();
        is_told
    });
    let command = json!({"command": "echo one; echo two; sleep 600"});
    let access = project.access("shell", &command).unwrap();
    let result = place.run(&called("shell", &command), &access, &stop);
    assert_eq!(result, Err("one\ntwo\n[stopped]".to_owned()));
    assert!(watching.join().unwrap());
}
