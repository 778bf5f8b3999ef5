//! Words that must not be in tracked files.

use super::{File, Findings, Repo};

/// Names that say nothing about the content.
const VAGUE: [&str; 7] = ["utils", "util", "helpers", "helper", "common", "misc", "manager"];

/// Unfinished work is done, or listed in SHORTCOMINGS.md. Each word is split in two, so that this
/// file does not contain it.
const UNDONE: [&str; 3] =
    [concat!("todo", "!("), concat!("unimplemented", "!("), concat!("#[", "ignore")];

/// Folders of a particular machine, and addresses of a registry in a particular network.
const MACHINE: [&str; 9] = [
    concat!("/", "work/"),
    concat!("/", "root/"),
    concat!("/", "tmp/"),
    concat!("/", "Users/"),
    concat!("/", "private/var/"),
    concat!("/", "var/folders/"),
    concat!("sparse", "+http"),
    concat!("registry", "=http"),
    concat!("registry", " = \"http"),
];

/// Files that need such a word, and why.
const EXEMPT: &[(&str, &str)] = &[
    ("crates/epitome/tests/it/archive.rs", "a path in an archive that leads out of it is refused"),
    ("testing/fixtures/src/lib.rs", "recorded sessions are searched for such folders"),
    ("testing/agents/", "agents keep what they cannot keep at home in a folder for such things"),
];

/// Recorded by the real agents, which use such folders.
const RECORDED: &str = "testing/fixtures/sessions/";

/// Files, folders and modules are named after their content.
pub(super) fn names_say_what_things_are(repo: &Repo, findings: &mut Findings) {
    for path in repo.paths.iter().filter(|path| !path.starts_with(RECORDED)) {
        let mut names = path.split('/').map(|name| name.split('.').next().unwrap_or(name));
        if let Some(name) = names.find(|name| VAGUE.contains(name)) {
            findings.fail(path, 0, format!("`{name}` says nothing: find the noun"));
        }
    }
}

/// There is no unfinished code, and no test that is never run.
pub(super) fn nothing_is_left_undone(repo: &Repo, findings: &mut Findings) {
    for file in repo.rust() {
        each(file, &UNDONE, |line, word| {
            findings.fail(&file.path, line, format!("`{word}`: nothing is left undone"));
        });
    }
}

/// The repository contains nothing of a particular machine.
pub(super) fn no_machine_is_named(repo: &Repo, findings: &mut Findings) {
    for file in &repo.files {
        let exempt = EXEMPT.iter().any(|(path, _)| file.path.starts_with(path));
        if exempt || file.path.starts_with(RECORDED) {
            continue;
        }
        each(file, &MACHINE, |line, word| {
            findings.fail(&file.path, line, format!("`{word}` is of one machine"));
        });
    }
}

fn each(file: &File, words: &[&str], mut found: impl FnMut(usize, &str)) {
    for (line, text) in file.lines() {
        for word in words.iter().filter(|word| text.contains(**word)) {
            found(line, word);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::check;
    use super::*;

    #[test]
    fn names_that_say_nothing_are_found() {
        let files = [("src/utils.rs", ""), ("common/a.rs", ""), ("src/used.rs", "")];
        let expect = ["common/a.rs:0: `common`", "src/utils.rs:0: `utils`"];
        check(names_say_what_things_are, &files, &expect);
    }

    #[test]
    fn what_is_left_undone_is_found() {
        let text = UNDONE.join("\n");
        check(
            nothing_is_left_undone,
            &[("a.rs", &text), ("a.md", &text)],
            &["a.rs:1:", "a.rs:2:", "a.rs:3:"],
        );
    }

    #[test]
    fn folders_of_one_machine_are_found() {
        let text = format!("cd {}shared\nfine /workspace\n", MACHINE[0]);
        let recorded = format!("{RECORDED}pi/a.jsonl");
        check(no_machine_is_named, &[("a.md", &text), (&recorded, &text)], &["a.md:1: "]);
    }
}
