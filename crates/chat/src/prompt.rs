//! The system prompt of the agent.

use std::path::Path;

use epitome::storage::regular::{FoundFile, read_in};

use crate::machine::{Event, LoadedFile, LoadedKind};
use crate::tools::{Workplace, not_read};

/// The maximum number of bytes of a rule file that are read.
const LONGEST: u64 = 32 << 10;

/// The files in which projects keep rules for agents; only the first readable one is used.
const RULE_FILES: [&str; 2] = ["AGENTS.md", "CLAUDE.md"];

/// The maximum number of skills in the text of the prompt.
const SKILLS: usize = 50;

const PROMPT: &str = include_str!("prompt.md");

/// The beginning of the line of the prompt that names the project's folder.
pub(crate) const PROJECT: &str = "The project is in ";

/// The prompt for a project, and the files from which it was made.
pub struct Prompt {
    /// The text.
    pub text: String,
    /// The rule file and all skills, for the user. Skills beyond the maximum are included, although
    /// the text does not list them.
    pub files: Vec<LoadedFile>,
    /// Files that should be in the prompt and were not read, each with the reason, for the user.
    pub refused: Vec<String>,
}

impl Prompt {
    /// The prompt for a project: what the agent is, where it works, the available skills, and the
    /// project's own rules.
    pub fn new(place: &Workplace) -> Prompt {
        let root = place.root();
        let mut text = format!("{}\n{PROJECT}{}.\n", PROMPT.trim_end(), root.display());
        let (skills, mut refused) = place.skills_and_refused();
        if !skills.is_empty() {
            text.push_str("\nSkills, which the tool skill loads:\n");
            let lines = skills.iter().map(|skill| format!("- {}: {}\n", skill.name, skill.about));
            text.extend(lines.take(SKILLS));
        }
        let mut files = Vec::new();
        if let Some((name, rules)) = rules_of(root, &mut refused) {
            let FoundFile { bytes, is_whole, .. } = rules;
            let rules = String::from_utf8_lossy(&bytes);
            // A character may have been cut in two at the end.
            let rules = if is_whole { &rules } else { rules.trim_end_matches('\u{fffd}') };
            text.push_str(&format!("\nRules of the project, from {name}:\n\n{rules}\n"));
            if !is_whole {
                text.push_str(&format!("[the rest of {name} is left out: read it]\n"));
            }
            files.push(LoadedFile { kind: LoadedKind::Rules, name: name.to_owned(), path: None });
        }
        files.extend(skills.into_iter().map(|skill| LoadedFile {
            kind: LoadedKind::Skill,
            path: Some(place.shown_path(skill.path())),
            name: skill.name,
        }));
        Prompt { text, files, refused }
    }

    /// The events about the prompt, for the user.
    pub fn events(&self) -> Vec<Event> {
        let refused = self.refused.iter().map(|text| Event::Notice { text: text.clone() });
        let files = (!self.files.is_empty()).then(|| Event::Loaded { files: self.files.clone() });
        files.into_iter().chain(refused).collect()
    }
}

/// The first readable rule file of a project, and its name. Each file before it that cannot be
/// read, or that is a link to a file outside of the project, is reported in `refused`.
fn rules_of(root: &Path, refused: &mut Vec<String>) -> Option<(&'static str, FoundFile)> {
    for name in RULE_FILES {
        let path = root.join(name);
        if path.symlink_metadata().is_err() {
            continue;
        }
        match read_in(root, &path, LONGEST) {
            Ok(found) => return Some((name, found)),
            Err(err) => refused.push(not_read(name, &err)),
        }
    }
    None
}

/// The prompt of a session that goes on in another folder. `of_project` is the prompt of the
/// project in that folder; `before` is the folder in which the session was run until now.
pub fn moved_prompt(of_project: &str, before: &str) -> String {
    format!(
        "{of_project}\nUntil now this conversation was about the project in {before}. What was \
         said of its files is about that folder; tools work in the one named above from here on.\n"
    )
}

/// The system prompt of a sub-agent, made from the project's prompt.
pub fn task_prompt(of_project: &str) -> String {
    format!("{of_project}\n{}", include_str!("prompt_of_tasks.md"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prompt(root: &Path) -> Prompt {
        Prompt::new(&Workplace::new(root).unwrap())
    }

    #[test]
    fn the_rules_of_a_project_are_in_its_prompt() {
        let folder = tempfile::tempdir().unwrap();
        let without = prompt(folder.path()).text;
        assert!(!without.contains("Rules of the project"), "{without}");
        let skill = folder.path().join(".agents/skills/release");
        std::fs::create_dir_all(&skill).unwrap();
        std::fs::write(skill.join("SKILL.md"), "# How to release").unwrap();
        let named = prompt(folder.path()).text;
        assert!(named.ends_with("loads:\n- release: How to release\n"), "{named}");
        std::fs::write(folder.path().join("CLAUDE.md"), "Never push.").unwrap();
        let with = prompt(folder.path());
        assert!(with.text.ends_with("from CLAUDE.md:\n\nNever push.\n"), "{}", with.text);
        let files = with.files.iter().map(|file| (file.kind, &*file.name, file.path.as_deref()));
        let skill = ".agents/skills/release/SKILL.md";
        let expect =
            [(LoadedKind::Rules, "CLAUDE.md", None), (LoadedKind::Skill, "release", Some(skill))];
        assert_eq!(files.collect::<Vec<_>>(), expect);
        let long = "é".repeat(usize::try_from(LONGEST).unwrap());
        std::fs::write(folder.path().join("AGENTS.md"), long).unwrap();
        let long = prompt(folder.path()).text;
        assert!(long.ends_with("é\n[the rest of AGENTS.md is left out: read it]\n"), "{long}");
    }

    #[cfg(unix)]
    #[test]
    fn a_rule_file_or_skill_that_leads_out_of_the_project_is_not_read() {
        use std::os::unix::fs::symlink;

        let folder = tempfile::tempdir().unwrap();
        let (root, outside) = (folder.path().join("project"), folder.path().join("outside"));
        std::fs::create_dir_all(root.join(".agents/skills/x")).unwrap();
        std::fs::write(&outside, "SECRET").unwrap();
        symlink(&outside, root.join(".agents/skills/x/SKILL.md")).unwrap();
        for target in [&outside, Path::new("/proc/self/environ"), Path::new("/dev/zero")] {
            let rules = root.join("AGENTS.md");
            symlink(target, &rules).unwrap();
            let Prompt { text, files, refused } = prompt(&root);
            std::fs::remove_file(&rules).unwrap();
            assert!(!text.contains("SECRET") && !text.contains("Rules of"), "{text}");
            assert_eq!(files, []);
            assert_eq!(refused.len(), 2, "{refused:?}");
            for (name, why) in [".agents/skills/x/SKILL.md", "AGENTS.md"].iter().zip(&refused) {
                assert!(why.starts_with(&format!("{name} is not read: a link out of")), "{why}");
            }
        }
        std::fs::write(root.join("RULES"), "Be kind.").unwrap();
        symlink("RULES", root.join("AGENTS.md")).unwrap();
        assert!(prompt(&root).text.ends_with("from AGENTS.md:\n\nBe kind.\n"));
    }
}
