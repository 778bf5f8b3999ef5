//! The sections of a summary: sets as data.

use serde::{Deserialize, Serialize};

/// The sections of a summary: a named set, or a list of headings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(
    untagged,
    expecting = "a list of headings, or one of s06, jcli, s08, pi, ion, jcli-9, claude-code"
)]
pub enum Sections {
    /// A named set of sections.
    Set(SectionSet),
    /// A list of headings.
    Own(Vec<String>),
}

impl Default for Sections {
    fn default() -> Sections {
        Sections::Set(SectionSet::Ion)
    }
}

/// A set of sections, named after the program that it comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum SectionSet {
    /// Three: done, state, decisions.
    S06,
    /// Four: those of S06, and the current workflow.
    Jcli,
    /// Five: goal, findings, files, what remains, the user's constraints.
    S08,
    /// Six: goal, constraints, progress, decisions, next steps, critical context.
    Pi,
    /// Seven: task state, files, tools, errors, decisions, the user's guidance, next steps. The
    /// default.
    #[default]
    Ion,
    /// Nine: request, concepts, files, errors, problems, active skills, pending tasks, current
    /// work, next step.
    #[serde(rename = "jcli-9")]
    Jcli9,
    /// Nine, reportedly as in Claude Code: those of [`Jcli9`](SectionSet::Jcli9), but with the
    /// user's messages in place of active skills.
    ClaudeCode,
}

/// A section: its heading, and what belongs under it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// The heading.
    pub title: String,
    /// What the section should contain, as an instruction for the model; empty if the heading is
    /// enough.
    pub about: &'static str,
}

impl Sections {
    /// The sections, in order. An empty list means the default set.
    pub fn all(&self) -> Vec<Section> {
        match self {
            Sections::Set(set) => set.all(),
            Sections::Own(titles) => {
                let mut found: Vec<Section> = Vec::new();
                for title in titles {
                    let title = title.split_whitespace().collect::<Vec<_>>().join(" ");
                    if !title.is_empty() && found.iter().all(|it| it.title != title) {
                        found.push(Section { title, about: "" });
                    }
                }
                if found.is_empty() { SectionSet::default().all() } else { found }
            }
        }
    }
}

impl SectionSet {
    fn all(self) -> Vec<Section> {
        let table: &[(&str, &'static str)] = match self {
            SectionSet::S06 => S06,
            SectionSet::Jcli => JCLI,
            SectionSet::S08 => S08,
            SectionSet::Pi => PI,
            SectionSet::Ion => ION,
            SectionSet::Jcli9 => JCLI_9,
            SectionSet::ClaudeCode => CLAUDE_CODE,
        };
        table.iter().map(|&(title, about)| Section { title: title.into(), about }).collect()
    }
}

const WORKFLOW: &str = "the skill or workflow that is being followed, which of its steps are done, \
     which one is under way and where it stands; none, if none is";

const S06: &[(&str, &str)] = &[
    ("What was accomplished", "what is done, with the files and names it is in"),
    ("Current state", "where the work stands at the end of the history"),
    ("Key decisions", "what was decided, by whom, and why"),
];

const JCLI: &[(&str, &str)] = &[
    ("What was accomplished", "what is done, with the files and names it is in"),
    ("Current state", "where the work stands at the end of the history"),
    ("Key decisions", "what was decided, by whom, and why"),
    ("Active skill or workflow", WORKFLOW),
];

const S08: &[(&str, &str)] = &[
    ("Goal", "what the user wants in the end"),
    ("Findings and decisions", "what was found out and decided, and why"),
    ("Files read or changed", "what each file is for, and what was changed in it"),
    ("Remaining work", "what is not done yet, in the order in which to do it"),
    ("User constraints", "what the user demanded or forbade"),
];

const PI: &[(&str, &str)] = &[
    ("Goal", "what the user wants in the end"),
    ("Constraints & Preferences", "what the user demanded, forbade or prefers"),
    ("Progress", "what is done, what is under way, what is blocked and by what"),
    ("Key Decisions", "what was decided, by whom, and why"),
    ("Next Steps", "what is to be done, in order"),
    ("Critical Context", "names, values and messages without which the work cannot go on"),
];

const ION: &[(&str, &str)] = &[
    ("Task state", "what the user wants, what of it is done, what is under way"),
    ("Files", "what each file that matters is for, and what was changed in it"),
    ("Tool history", "what running and searching showed, in a line each"),
    ("Errors", "what failed, why, what was tried against it, and whether it is mended"),
    ("Decisions", "what was decided, by whom, and why; what was rejected"),
    ("User guidance", "what the user demanded, forbade, corrected or prefers"),
    ("Next steps", "what is to be done, in order, beginning with what was under way"),
];

const JCLI_9: &[(&str, &str)] = &[
    ("Primary request", "what the user wants, in full"),
    ("Key concepts", "technologies, patterns and terms that matter"),
    ("Files and code", "what each file is for, what was changed, names and signatures"),
    ("Errors and fixes", "what failed, how it was mended, what the user said to it"),
    ("Problem solving", "what was found out, what is still sought"),
    ("Active skills and workflows", WORKFLOW),
    ("Pending tasks", "what the user asked for and is not done"),
    ("Current work", "what was under way at the end, with its file and place"),
    ("Next step", "the one that follows from the current work and the user's words"),
];

const CLAUDE_CODE: &[(&str, &str)] = &[
    ("Primary request and intent", "what the user wants, in full"),
    ("Key technical concepts", "technologies, patterns and terms that matter"),
    ("Files and code sections", "what each file is for, what was changed, names and signatures"),
    ("Errors and fixes", "what failed, how it was mended, what the user said to it"),
    ("Problem solving", "what was found out, what is still sought"),
    ("User messages", "what they come to: how the wishes of the user changed"),
    ("Pending tasks", "what the user asked for and is not done"),
    ("Current work", "what was under way at the end, with its file and place"),
    ("Next step", "the one that follows from the current work and the user's words"),
];

#[cfg(test)]
#[path = "sections_tests.rs"]
mod tests;
