//! The folders of agents, and the commands that resume a session, compared with recorded ones.
//!
//! A file `testing/fixtures/places/<agent>` has lines: `folder PATH [VARIABLE=VALUE…]` for the
//! folder of the agent's sessions if these variables are set and the home is `/u`; `session FILE
//! ID` and `other FILE` for files in it; `hook FILE [VARIABLE=VALUE…]`; `resume COMMAND`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::{AGENTS, Agent, Environment, UnreadErrors, agents_with_hooks, resume_line};

/// The lines about an agent that begin with `word`, without this word.
fn places(agent: &str, word: &str) -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testing/fixtures/places");
    let text = std::fs::read_to_string(folder.join(agent)).expect("every agent has a file there");
    let lines = text.lines().filter_map(|line| line.split_once(' '));
    lines.filter(|(first, _)| *first == word).map(|(_, rest)| rest.to_owned()).collect()
}

/// The lines of an agent that begin with `word`: a path, and an environment with the variables
/// that follow it.
fn paths(agent: &dyn Agent, word: &str) -> Vec<(PathBuf, Environment)> {
    let parse = |line: String| {
        let mut words = line.split(' ');
        let path = words.next().expect("a path").into();
        let mut environment = Environment::from_home("/u".as_ref());
        for word in words {
            let (name, value) = word.split_once('=').expect("a variable and its value");
            assert!(agent.variables().contains(&name), "{name} is not declared");
            environment.variables.insert(name.to_owned(), value.into());
        }
        (path, environment)
    };
    places(agent.name(), word).into_iter().map(parse).collect()
}

#[test]
fn agents_keep_sessions_where_their_variables_say() {
    for agent in AGENTS {
        let cases = paths(*agent, "folder");
        assert!(!cases.is_empty(), "{}", agent.name());
        for (folder, environment) in cases {
            assert_eq!(agent.folder(&environment), folder, "{:?}", environment.variables);
        }
    }
}

#[test]
fn the_sessions_of_an_agent_are_the_files_of_its_own_layout() {
    let home = tempfile::tempdir().expect("a folder");
    let environment = Environment::from_home(home.path());
    let write = |path: &Path| {
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, "{}\n").expect("a file");
    };
    for agent in AGENTS {
        let folder = agent.folder(&environment);
        let others = places(agent.name(), "other");
        let sessions = places(agent.name(), "session").into_iter().map(|line| {
            let (file, id) = line.split_once(' ').expect("a file and an id");
            (folder.join(file), id.to_owned())
        });
        let sessions: BTreeSet<(PathBuf, String)> = sessions.collect();
        assert!(!others.is_empty(), "{}", agent.name());
        others.iter().for_each(|file| write(&folder.join(file)));
        sessions.iter().for_each(|(path, _)| write(path));
        let mut unread = UnreadErrors::default();
        let found = agent.sessions(&environment, &mut unread).into_iter();
        let found: BTreeSet<(PathBuf, String)> = found.map(|it| (it.path, it.id)).collect();
        assert_eq!(found, sessions, "{}", agent.name());
        assert_eq!(unread.into_errors().len(), 0, "{}", agent.name());
    }
}

#[test]
fn a_hook_is_written_into_the_settings_of_its_agent() {
    for agent in AGENTS {
        let cases = paths(*agent, "hook");
        let target = agents_with_hooks().find(|(other, _)| other.name() == agent.name());
        assert_eq!(target.is_some(), !cases.is_empty(), "{}", agent.name());
        let Some((_, target)) = target else { continue };
        for (file, environment) in cases {
            assert_eq!((target.settings)(&environment).join(target.hook.file), file);
        }
    }
}

#[test]
fn each_agent_says_how_it_continues_a_session() {
    for agent in AGENTS {
        let line = resume_line(agent.name(), "ID", None);
        assert_eq!(Vec::from_iter(line), places(agent.name(), "resume"), "{}", agent.name());
    }
}
