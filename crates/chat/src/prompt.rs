//! What the model is told before everything else.

use std::path::Path;

use crate::tools::Skill;

/// Bytes of a rule file that are sent.
const LONGEST: usize = 32 << 10;

/// Files in which projects keep rules for agents; the first that is there counts.
const RULE_FILES: [&str; 2] = ["AGENTS.md", "CLAUDE.md"];

/// Skills that are named.
const SKILLS: usize = 50;

const PROMPT: &str = include_str!("prompt.md");

/// The prompt for a project: what the agent is, where it works, the skills that are there, and the
/// project's own rules.
pub fn prompt(root: &Path, skills: &[Skill]) -> String {
    let mut text = format!("{}\nThe project is in {}.\n", PROMPT.trim_end(), root.display());
    if !skills.is_empty() {
        text.push_str("\nSkills, which the tool skill loads:\n");
        let lines = skills.iter().map(|skill| format!("- {}: {}\n", skill.name, skill.about));
        text.extend(lines.take(SKILLS));
    }
    let files = RULE_FILES.iter().map(|name| (name, root.join(name)));
    let rules = files
        .filter(|(_, path)| path.is_file())
        .find_map(|(name, path)| Some((name, std::fs::read_to_string(path).ok()?)));
    if let Some((name, rules)) = rules {
        let cut = rules.floor_char_boundary(LONGEST);
        text.push_str(&format!("\nRules of the project, from {name}:\n\n{}\n", &rules[..cut]));
        if cut < rules.len() {
            text.push_str(&format!("[the rest of {name} is left out: read it]\n"));
        }
    }
    text
}

/// The prompt of a task, made from that of the project.
pub fn task_prompt(of_project: &str) -> String {
    format!("{of_project}\n{}", include_str!("prompt_of_tasks.md"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::Workplace;

    #[test]
    fn the_rules_of_a_project_are_in_its_prompt() {
        let folder = tempfile::tempdir().unwrap();
        let without = prompt(folder.path(), &[]);
        assert!(!without.contains("Rules of the project"), "{without}");
        let skill = folder.path().join(".agents/skills/release");
        std::fs::create_dir_all(&skill).unwrap();
        std::fs::write(skill.join("SKILL.md"), "# How to release").unwrap();
        let skills = Workplace::new(folder.path()).unwrap().skills();
        let named = prompt(folder.path(), &skills);
        assert!(named.ends_with("loads:\n- release: How to release\n"), "{named}");
        std::fs::write(folder.path().join("CLAUDE.md"), "Never push.").unwrap();
        let with = prompt(folder.path(), &[]);
        assert!(with.ends_with("from CLAUDE.md:\n\nNever push.\n"), "{with}");
        std::fs::write(folder.path().join("AGENTS.md"), "é".repeat(LONGEST)).unwrap();
        let long = prompt(folder.path(), &[]);
        assert!(long.ends_with("é\n[the rest of AGENTS.md is left out: read it]\n"), "{long}");
    }
}
