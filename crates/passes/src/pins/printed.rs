//! Finds the rule files that a shell command prints.

use crate::rule_files::RuleFiles;

/// Programs that print files.
const PRINTS: [&str; 11] =
    ["cat", "bat", "batcat", "less", "more", "nl", "head", "tail", "sed", "type", "get-content"];
/// Programs that always print whole files.
const WHOLE: [&str; 6] = ["cat", "bat", "batcat", "nl", "type", "get-content"];

/// A rule file that a command prints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrintedFile {
    /// The path of the file, as in the command.
    pub path: String,
    /// Whether the command prints the whole file.
    pub is_whole: bool,
}

/// The rule files that a command prints, and whether it prints anything else.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct PrintedRules {
    /// The rule files, in order.
    pub files: Vec<PrintedFile>,
    /// Whether the command prints nothing but rule files. Meaningless if `files` is empty.
    pub is_all: bool,
}

/// The rule files that a command prints.
pub fn printed_rule_files(command: &str, files: &RuleFiles) -> PrintedRules {
    let mut shown = PrintedRules { files: Vec::new(), is_all: true };
    if !files.may_name(command) {
        return shown;
    }
    for line in command.split(['\n', ';']).flat_map(|it| it.split("&&")) {
        for alternative in line.split("||") {
            let mut pipe = alternative.split('|');
            let words = pipe.next().map(words).unwrap_or_default();
            let is_filtered = pipe.next().is_some();
            let printed = printed_by_words(&words, is_filtered, files);
            shown.is_all &= printed.is_all || is_silent(&words);
            shown.files.extend(printed.files);
        }
    }
    shown
}

/// Whether a command prints nothing: it changes the folder, is a comment, or is empty.
fn is_silent(words: &[String]) -> bool {
    words.first().is_none_or(|word| word == "cd" || word.starts_with('#'))
}

/// The rule files that one program prints. `is_filtered` is whether the output of the program goes
/// to another program.
fn printed_by_words(words: &[String], is_filtered: bool, files: &RuleFiles) -> PrintedRules {
    // All words before the program are skipped: a shell with options, `sudo`, variables.
    let at = words.iter().take_while(|word| program(word).is_none() && !files.has(word)).count();
    let Some(name) = words.get(at).and_then(|word| program(word)) else {
        return PrintedRules::default();
    };
    let arguments = &words[at + 1..];
    let writes = arguments.iter().any(|it| it.contains('>') || it.contains("<<"));
    if writes || name == "sed" && arguments.iter().any(|it| it.starts_with("-i")) {
        return PrintedRules::default();
    }
    let is_whole = WHOLE.contains(&name) && !is_filtered;
    let arguments = arguments.iter().take_while(|word| !word.starts_with('#'));
    let arguments = arguments.filter(|word| !word.starts_with('-') && word.parse::<u64>().is_err());
    let (paths, others): (Vec<&String>, Vec<&String>) = arguments.partition(|word| files.has(word));
    // The first argument of `sed` is its script.
    let is_all = others.len() <= usize::from(name == "sed") && !paths.is_empty();
    let files = paths.into_iter().map(|path| PrintedFile { path: path.clone(), is_whole });
    PrintedRules { files: files.collect(), is_all }
}

/// The program of [`PRINTS`] that a word names, with or without its folder and `.exe`; `None` if
/// the word names none of them.
fn program(word: &str) -> Option<&'static str> {
    let name = word.rsplit(['/', '\\']).next().unwrap_or(word).to_lowercase();
    PRINTS.into_iter().find(|it| *it == name.strip_suffix(".exe").unwrap_or(&name))
}

/// The words of a command, without quotes and brackets around a word, and without redirections of
/// the error output.
fn words(command: &str) -> Vec<String> {
    let words = command.split_whitespace().map(|word| {
        word.trim_matches(|c: char| matches!(c, '"' | '\'' | '`' | '(' | ')' | '{' | '}'))
    });
    let words = words.filter(|word| !word.is_empty() && !word.starts_with("2>"));
    words.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_prints_a_rule_file_is_known() {
        let (all, part) = (true, false);
        for (command, expect) in [
            ("cat AGENTS.md", vec![("AGENTS.md", all)]),
            ("bash -lc 'cat AGENTS.md'", vec![("AGENTS.md", all)]),
            ("cd /p && /bin/cat a.md sub/CLAUDE.md 2>/dev/null; ls", vec![("sub/CLAUDE.md", all)]),
            ("ls; cat \"AGENTS.md\" GEMINI.md", vec![("AGENTS.md", all), ("GEMINI.md", all)]),
            ("sed -n '1,200p' AGENTS.md", vec![("AGENTS.md", part)]),
            ("cat AGENTS.md | head -5", vec![("AGENTS.md", part)]),
            ("cat x || cat AGENTS.md", vec![("AGENTS.md", all)]),
            ("Get-Content .\\AGENTS.md", vec![(".\\AGENTS.md", all)]),
            ("cat > AGENTS.md <<'EOF'", vec![]),
            ("cat a.md >> AGENTS.md", vec![]),
            ("sed -i s/a/b/ AGENTS.md", vec![]),
            ("cat a.md; git add AGENTS.md", vec![]),
            ("echo AGENTS.md | xargs rm", vec![]),
            ("git commit -m 'cat AGENTS.md'", vec![("AGENTS.md", all)]),
            ("", vec![]),
        ] {
            let found = printed_rule_files(command, &RuleFiles::default());
            let found: Vec<_> =
                found.files.iter().map(|it| (it.path.as_str(), it.is_whole)).collect();
            assert_eq!(found, expect, "{command}");
        }
    }

    #[test]
    fn a_command_that_prints_other_things_as_well_is_known() {
        for (command, expect) in [
            ("cat AGENTS.md", true),
            ("cd /p && cat AGENTS.md CLAUDE.md", true),
            ("cat AGENTS.md # the rules", true),
            ("sed -n '1,200p' AGENTS.md", true),
            ("head -n 20 AGENTS.md", true),
            ("cat issue.txt AGENTS.md", false),
            ("cat issue.txt; cat AGENTS.md", false),
            ("curl evil.example && cat AGENTS.md", false),
            ("cat AGENTS.md || ls", false),
        ] {
            assert_eq!(
                printed_rule_files(command, &RuleFiles::default()).is_all,
                expect,
                "{command}"
            );
        }
    }
}
