//! Words of this project's own that a first-time reader has to decode, and what to say instead.

use super::{File, Findings, Repo};

/// A word, and the word of the field that is used in its place.
type Instead = (&'static str, &'static str);

/// Words that no comment has.
const IN_COMMENTS: &[Instead] = &[
    ("anew", "again"),
    ("beside", "next to, in addition to"),
    ("birth", "ingest"),
    ("breach", "violation"),
    ("law", "invariant"),
    ("laws", "invariants"),
    ("nobody", "no caller, none"),
    ("patience", "retry"),
    ("shelf", "cache"),
    ("snip", "trim middle"),
    ("somebody", "the user, the caller"),
    ("whoever", "the caller"),
];

/// Names that no function has: a participle says neither what is done nor what is returned.
const FUNCTIONS: &[Instead] = &[
    ("asked", "a verb, or the noun of what is returned"),
    ("heard", "a verb, or the noun of what is returned"),
    ("left", "a verb, or the noun of what is returned"),
    ("known", "look_up, classify"),
    ("of", "from_…, parse, read"),
    ("said", "message, text, describe"),
    ("shown", "describe, display"),
    ("taken", "a verb, or the noun of what is returned"),
    ("told", "message, describe"),
];

/// Names that no variable and no field has.
const VARIABLES: &[Instead] = &[
    ("anew", "the noun of what it holds"),
    ("beside", "the noun of what is next to it"),
    ("birth", "ingest"),
    ("breach", "violation"),
    ("heard", "input, or the noun of what was received"),
    ("law", "invariant"),
    ("nobody", "none, or the noun of what is missing"),
    ("patience", "retry"),
    ("said", "text, message, original"),
    ("shelf", "cache"),
    ("snip", "trim"),
    ("told", "output, message, report"),
];

/// Names that no module has.
const MODULES: &[Instead] = &[
    ("cut", "what is cut, as a noun"),
    ("known", "the noun of what is known"),
    ("later", "the noun of what comes later"),
    ("left", "the noun of what is left"),
    ("more", "the noun of what is added"),
    ("said", "the noun of what is said"),
    ("say", "the noun of what is said"),
    ("shown", "the noun of what is shown"),
    ("told", "the noun of what is told"),
    ("who", "the noun of the person or program"),
    ("words", "texts, terms"),
];

/// Comments, functions, variables, fields and modules use the terms of the field.
pub(super) fn words_are_of_the_field(repo: &Repo, findings: &mut Findings) {
    for file in repo.rust() {
        let name = file.path.rsplit('/').next().unwrap_or_default().trim_end_matches(".rs");
        if let Some((word, instead)) = listed(MODULES, name) {
            findings.fail(&file.path, 0, format!("a module called `{word}`: say {instead}"));
        }
        if file.path.ends_with("tidy/dialect.rs") {
            continue;
        }
        in_lines(file, findings);
    }
}

fn in_lines(file: &File, findings: &mut Findings) {
    for (line, text) in file.lines() {
        let text = text.trim_start();
        if let Some(comment) = text.strip_prefix("//") {
            for word in words(comment) {
                if let Some((word, instead)) = listed(IN_COMMENTS, &word.to_ascii_lowercase()) {
                    findings.fail(&file.path, line, format!("`{word}`: say {instead}"));
                }
            }
        } else if let Some((word, instead)) = function(text).and_then(|it| listed(FUNCTIONS, it)) {
            findings.fail(&file.path, line, format!("a function called `{word}`: say {instead}"));
        } else if let Some((word, instead)) = variable(text).and_then(|it| listed(VARIABLES, it)) {
            findings.fail(&file.path, line, format!("a variable called `{word}`: say {instead}"));
        }
    }
}

/// The name of the function that a line declares.
fn function(line: &str) -> Option<&str> {
    let (before, declared) = line.split_once("fn ")?;
    let qualifiers = ["", "pub ", "const ", "async ", "pub const ", "pub async ", "unsafe "];
    let is_declaration = qualifiers.contains(&before) || before.starts_with("pub(");
    words(declared).next().filter(|_| is_declaration)
}

/// The name of the variable that a line binds with `let`, or of the field or parameter whose
/// declaration is the line.
fn variable(line: &str) -> Option<&str> {
    if let Some(bound) = line.strip_prefix("let ") {
        return words(bound.strip_prefix("mut ").unwrap_or(bound)).next();
    }
    let (declared, _) = line.split_once(": ")?;
    match declared.split_once(' ') {
        Some((visibility, name)) => visibility.starts_with("pub").then_some(name),
        None => Some(declared),
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

fn listed(list: &[Instead], word: &str) -> Option<Instead> {
    list.iter().find(|(listed, _)| *listed == word).copied()
}

#[cfg(test)]
mod tests {
    use super::super::check;
    use super::*;

    #[test]
    fn words_of_our_own_are_found() {
        let text = "//! Nobody knows.\n/// Made anew, beside it.\nlet nobody = 1;\n";
        let expect =
            ["a.rs:1: `nobody`", "a.rs:2: `anew`", "a.rs:2: `beside`", "a.rs:3: a variable"];
        check(words_are_of_the_field, &[("a.rs", text), ("a.md", text)], &expect);
    }

    #[test]
    fn functions_and_modules_say_what_they_are() {
        let text =
            "pub(super) fn told() {}\n    fn of(x: u8) {}\nfn of_kind() {}\nlet x = \"fn of\";\n";
        let expect = ["a.rs:1: a function called `told`", "a.rs:2: a function called `of`"];
        check(words_are_of_the_field, &[("a.rs", text)], &expect);
        let text =
            "let told = 1;\n    let mut said: u8 = 2;\nlet retold = told;\n    pub told: u8,\n";
        let expect = ["a.rs:1: a variable", "a.rs:2: a variable", "a.rs:4: a variable"];
        check(words_are_of_the_field, &[("a.rs", text)], &expect);
        let expect = ["b/left.rs:0: a module called `left`"];
        check(words_are_of_the_field, &[("b/left.rs", ""), ("b/left_behind.rs", "")], &expect);
    }
}
