//! Rules for the user of this machine, whom the built-in rules cannot know.

use crate::rule::{Rule, Rules};

/// The user of a machine, as far as known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Person {
    /// The home directory.
    pub home: Option<String>,
    /// The login name and other names.
    pub names: Vec<String>,
    /// The host name.
    pub host: Option<String>,
}

/// Names that identify no person, or that are words.
const NOBODY: [&str; 24] = [
    "root",
    "user",
    "users",
    "admin",
    "ubuntu",
    "debian",
    "runner",
    "dev",
    "developer",
    "home",
    "node",
    "vscode",
    "codespace",
    "guest",
    "test",
    "work",
    "localhost",
    "local",
    "docker",
    "agent",
    "build",
    "host",
    "claude",
    "nobody",
];

impl Person {
    /// Rules that find the home directory, the names and the host name. There is no rule for a home
    /// directory of less than four bytes, for a name of less than three, and for a name such as
    /// `root`: these texts occur everywhere.
    pub fn rules(&self) -> Rules {
        let mut rules = Vec::new();
        if let Some(home) = self.home.as_deref().filter(|home| home.len() > 3) {
            let home = home.trim_end_matches(['/', '\\']);
            rules.push(Rule {
                id: "home-path".to_owned() + "-own",
                description: "The user's own home folder".to_owned(),
                regex: Some(format!(r"({})(?:[^\w.-]|$)", regex::escape(home))),
                keywords: vec![home.to_owned()],
                tags: vec!["pii".to_owned()],
                replace: Some("~".to_owned()),
                ..Rule::default()
            });
        }
        let names: Vec<&str> = self.names.iter().map(String::as_str).filter(identifies).collect();
        rules.extend(word("own-name", "The user's own name", &names));
        let host: Vec<&str> = self.host.iter().map(String::as_str).filter(identifies).collect();
        rules.extend(word("own-host", "The name of the user's machine", &host));
        let known = ["home-path-own", "own-name", "own-host"].map(str::to_owned).to_vec();
        Rules { rules, known, ..Rules::default() }
    }
}

/// Whether a name identifies a person or a machine. Short names and common words do not: they occur
/// everywhere.
fn identifies(name: &&str) -> bool {
    name.len() >= 3 && !NOBODY.contains(&&*name.to_ascii_lowercase())
}

fn word(id: &str, description: &str, words: &[&str]) -> Option<Rule> {
    let any = words.iter().map(|word| regex::escape(word)).collect::<Vec<_>>().join("|");
    (!words.is_empty()).then(|| Rule {
        id: id.to_owned(),
        description: description.to_owned(),
        regex: Some(format!(r"(?i)(?:^|[^A-Za-z0-9])({any})(?:[^A-Za-z0-9]|$)")),
        keywords: words.iter().map(|&word| word.to_owned()).collect(),
        tags: vec!["pii".to_owned()],
        ..Rule::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Finder, Redactor};

    #[test]
    fn the_user_is_found_as_a_whole_word() {
        let person = Person {
            home: Some("/srv/people/jroe".to_owned()),
            names: vec!["jroe".to_owned(), "Jane Roe".to_owned()],
            host: Some("tulip".to_owned()),
        };
        let finder = Finder::new(person.rules()).expect("rules");
        let mut redactor = Redactor::new(&finder);
        let text = "/srv/people/jroe/a jroe@tulip, by Jane Roe; jroes and tulips";
        let expect = "~/a [REDACTED:own-name-1]@[REDACTED:own-host-1], by \
                      [REDACTED:own-name-2]; jroes and tulips";
        assert_eq!(redactor.text(text), expect);
        let no_names = Person { names: vec!["root".to_owned()], ..Person::default() };
        assert_eq!(no_names.rules().ids().count(), 0);
    }
}
