//! Recognises calls that change something outside the working copy, or record a step of the work.
//!
//! `effects.toml` lists their commands and tools. The list is not complete. Any other call is taken
//! for a call without an effect, so a digest may leave out the full header of the call.

use std::sync::LazyLock;

use epitome_model::ToolKind;
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Effects {
    #[serde(deserialize_with = "patterns")]
    commands: Vec<Vec<String>>,
    tools: Vec<String>,
}

static EFFECTS: LazyLock<Effects> =
    LazyLock::new(|| toml::from_str(include_str!("effects.toml")).expect("a test reads the list"));

fn patterns<'de, D: serde::Deserializer<'de>>(input: D) -> Result<Vec<Vec<String>>, D::Error> {
    let commands = Vec::<String>::deserialize(input)?;
    let words = |command: &String| command.split(' ').map(str::to_owned).collect();
    Ok(commands.iter().map(words).collect())
}

/// Words that may precede the program of a command: other programs that run it, and keywords of the
/// shell.
const WRAPPERS: [&str; 34] = [
    "!", "bash", "bun", "bunx", "bundle", "command", "cmd", "do", "dlx", "doas", "else", "env",
    "exec", "if", "nohup", "npx", "php", "pipenv", "pnpm", "poetry", "python", "python3", "run",
    "sh", "sudo", "then", "time", "timeout", "uv", "uvx", "while", "xargs", "yarn", "zsh",
];

/// Whether a call of a tool of this kind and name, with this target (its command), changes
/// something outside the working copy or records a step of the work.
pub fn has_effect(kind: ToolKind, name: &str, target: &str) -> bool {
    match kind {
        ToolKind::Shell => target.split(['\n', ';', '&', '|', '(', ')', '`']).any(is_effect),
        ToolKind::Other => EFFECTS.tools.contains(&first_word(name)),
        _ => false,
    }
}

/// Whether a command, which contains no shell operators, matches a command in the list of those
/// with an effect. A command with `--dry-run` has no effect.
fn is_effect(command: &str) -> bool {
    let words: Vec<&str> =
        command.split_whitespace().map(|word| word.trim_matches(['"', '\''])).collect();
    if words.iter().any(|word| word.starts_with("--dry-run")) {
        return false;
    }
    let program = words.iter().position(|word| !may_precede_program(word));
    let Some(words) = program.map(|at| &words[at..]) else { return false };
    EFFECTS.commands.iter().any(|pattern| begins_with(words, pattern))
}

fn may_precede_program(word: &str) -> bool {
    let is_number = word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    is_number || word.starts_with('-') || word.contains('=') || WRAPPERS.contains(&word)
}

/// Whether a command matches a pattern: it must have the pattern's program, followed by the other
/// words of the pattern in their order. Any words may precede an option of the pattern. Only
/// options and their values may precede another word of the pattern.
fn begins_with(words: &[&str], pattern: &[String]) -> bool {
    let program = words[0].rsplit('/').next().unwrap_or_default();
    if !is_word(program, &pattern[0]) {
        return false;
    }
    let mut rest = &words[1..];
    for expected in &pattern[1..] {
        let found = rest.iter().position(|word| is_word(word, expected));
        let Some(at) = found else { return false };
        let may_skip = expected.starts_with('-') || is_options(&rest[..at]);
        if !may_skip {
            return false;
        }
        rest = &rest[at + 1..];
    }
    true
}

/// Whether words are options, each with at most one value.
fn is_options(words: &[&str]) -> bool {
    let mut may_be_value = false;
    words.iter().all(|word| {
        let is_option = word.starts_with('-');
        let is_value = may_be_value && !is_option;
        may_be_value = is_option;
        is_option || is_value
    })
}

fn is_word(word: &str, expected: &str) -> bool {
    match expected.strip_suffix('*') {
        Some(beginning) => word.starts_with(beginning),
        None => word == expected,
    }
}

/// The first word of a tool's own name, in lower case: `create` for `mcp__github__create_issue`.
fn first_word(name: &str) -> String {
    let own = name.rsplit("__").next().unwrap_or_default();
    let own = own.rsplit(['.', '/', ':']).next().unwrap_or_default();
    let lower = own.find(|letter: char| letter.is_lowercase()).unwrap_or(own.len());
    let end = own[lower..].find(|letter: char| !letter.is_lowercase());
    own[..end.map_or(own.len(), |end| lower + end)].to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(command: &str, expected: bool) {
        assert_eq!(has_effect(ToolKind::Shell, "Bash", command), expected, "{command}");
    }

    #[test]
    fn commands_with_an_effect_are_recognised_in_the_words_of_the_shell() {
        check("git push", true);
        check("cd /p && git -C sub push origin main 2>&1 | tail -3", true);
        check("GIT_SSH=x sudo -E /usr/bin/git push", true);
        check("bash -lc 'git push --force'", true);
        check("npm test\nnpm publish", true);
        check("timeout 60 npx prisma migrate deploy", true);
        check("python3 manage.py migrate", true);
        check("bundle exec rails db:rollback", true);
        check("curl -s https://api.example.org/x -X POST -d '{}'", true);
        check("if true; then kubectl -n web apply -f x.yaml; fi", true);
    }

    #[test]
    fn other_commands_are_not() {
        check("git status", false);
        check("git log --oneline push", false);
        check("git push --dry-run", false);
        check("grep -rn rsync .", false);
        check("echo git push", false);
        check("cargo test publish", false);
        check("curl https://api.example.org/x", false);
        check("", false);
        assert!(!has_effect(ToolKind::Read, "Read", "git push"));
    }

    #[test]
    fn tools_are_known_by_the_first_word_of_their_name() {
        let names = ["mcp__github__create_issue", "slack.post_message", "deployService", "Send"];
        for name in names {
            assert!(has_effect(ToolKind::Other, name, ""), "{name}");
        }
        let names = ["mcp__github__get_issue", "postgres_query", "mcp__x__list", "", "Ü", "X1"];
        for name in names {
            assert!(!has_effect(ToolKind::Other, name, ""), "{name}");
        }
    }
}
