//! What happens in a recorded session, said once for all agents.

use crate::action::Action;
use crate::agent::Agent;
use crate::project::{FIX, Scale, manual};
use crate::sandbox::Sandbox;
use model_server::{Script, Step, Track};

/// One answer of the model.
#[derive(Debug, Clone, Default)]
pub struct Move {
    thinking: &'static str,
    text: &'static str,
    actions: Vec<Action>,
}

/// What the user says, and all the model answers to it.
#[derive(Debug, Clone)]
pub struct Turn {
    /// The user's words.
    pub prompt: &'static str,
    /// The model's answers; the last one calls nothing. None for a command of the agent's own.
    pub moves: Vec<Move>,
}

/// Which session is played.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Play {
    /// Every kind of call, over five turns.
    Full,
    /// A turn, the agent's own compaction, and a turn after it.
    OwnCompaction,
}

/// A whole session.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// What is played.
    pub play: Play,
    /// How big the project is.
    pub scale: Scale,
    /// The user's turns, each a run of the agent.
    pub turns: Vec<Turn>,
}

/// The last words of the resumed turn: they show that the script was played to its end.
pub const RESUMED: &str = "Resumed and done.";
/// What the user says to go on.
pub const RESUME_PROMPT: &str = "Go on: say how many cases there are, then stop.";

const SUMMARY: &str = "<summary>\nThe tests failed for Hungary: its rate in src/tax.awk was 25 %. \
                       It is 27 % now and all tests pass. No function was renamed. Configuration \
                       is TOML.\n</summary>";

const COUNT_MARK: &str = "[count-cases]";

impl Scenario {
    /// The session every agent is recorded with.
    pub fn full(agent: &dyn Agent) -> Self {
        let facts = agent.facts();
        let scale = facts.scale;
        let mut turns = vec![fix()];
        if facts.appends {
            turns.push(document(scale));
        }
        turns.push(import());
        if facts.records_sub_agents {
            turns.push(delegate());
        }
        turns.push(recall());
        Self { play: Play::Full, scale, turns }
    }

    /// A session that the agent itself compacts after the first turn: because it is asked to, or
    /// because its context is full.
    pub fn own_compaction(agent: &dyn Agent) -> Self {
        let command = agent.facts().compact_command;
        let command = command.map(|prompt| Turn { prompt, moves: vec![say(SUMMARY)] });
        let turns = [fix()].into_iter().chain(command).chain([recall()]).collect();
        Self { play: Play::OwnCompaction, scale: Scale::SMALL, turns }
    }

    /// The script for `sandbox`: the same moves, in its agent's own tools.
    pub fn script(&self, sandbox: &Sandbox) -> Script {
        let steps = |moves: &[Move]| moves.iter().map(|one| step(one, sandbox)).collect();
        let canned = (self.play == Play::OwnCompaction).then(|| SUMMARY.to_owned());
        Script {
            canned,
            steps: self.turns.iter().flat_map(|turn| -> Vec<Step> { steps(&turn.moves) }).collect(),
            tracks: vec![Track { mark: COUNT_MARK.to_owned(), steps: steps(&count()) }],
            aside: None,
        }
    }
}

/// The script of a resumed turn: one call of a tool, then the last words.
pub fn resumed(sandbox: &Sandbox) -> Script {
    let moves = [
        Move {
            thinking: "The cases are lines of one file; counting them is one command.",
            text: "Counting.",
            actions: vec![shell("wc -l < tests/cases.tsv", "Count the cases")],
        },
        say(RESUMED),
    ];
    Script::new(moves.iter().map(|one| step(one, sandbox)))
}

fn step(one: &Move, sandbox: &Sandbox) -> Step {
    let said = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    Step {
        thinking: said(one.thinking),
        text: said(one.text),
        calls: one.actions.iter().map(|action| sandbox.call(action)).collect(),
        ..Step::default()
    }
}

fn read(path: &str) -> Action {
    Action::Read { path: path.to_owned() }
}

fn shell(command: &str, why: &str) -> Action {
    Action::Shell { command: command.to_owned(), why: why.to_owned() }
}

fn edit(path: &str, old: &str, new: &str) -> Action {
    Action::Edit { path: path.to_owned(), old: old.to_owned(), new: new.to_owned() }
}

fn say(text: &'static str) -> Move {
    Move { text, ..Move::default() }
}

/// A failing test, a search, an edit that misses and one that hits.
fn fix() -> Turn {
    let tests = || shell("sh tests/run.sh", "Run the tests");
    Turn {
        prompt: "The tests fail since this morning. Find out why and fix it, but do not rename \
                 any function: the importer calls them by name.",
        moves: vec![
            Move {
                thinking: "Look at the layout and the sources before touching anything; the tests \
                           come after that.",
                text: "I start with the layout and the two programs.",
                actions: vec![
                    shell("ls -R . && wc -c src/* tests/* logs/*", "List all files"),
                    read("README.md"),
                    read("src/tax.awk"),
                ],
            },
            Move { text: "Now the failure itself.", actions: vec![tests()], ..Move::default() },
            Move {
                thinking: "Only HU fails, and every case of it by the same factor: 1.25 in place \
                           of 1.27. So it is the rate, not the rounding. Who else uses gross_hu?",
                actions: vec![Action::Search { pattern: "gross_hu".into(), path: ".".into() }],
                ..Move::default()
            },
            Move {
                text: "All failures are Hungarian, and all are off by the rate. I correct it.",
                actions: vec![edit("src/tax.awk", "    rate = 25    # Hungary", "    rate = 27")],
                ..Move::default()
            },
            Move {
                thinking: "The comment says HU, not Hungary. Take enough context to be unique.",
                actions: vec![edit("src/tax.awk", FIX.0, FIX.1)],
                ..Move::default()
            },
            Move { actions: vec![tests()], ..Move::default() },
            say("The rate of Hungary was 25 % in `src/tax.awk`; it is 27 % now. All tests pass, \
                 and no function was renamed."),
        ],
    }
}

/// Two reads at once, a big write, and the same file read again.
fn document(scale: Scale) -> Turn {
    Turn {
        prompt: "Good. Now write docs/manual.md, one section for each column. Configuration is \
                 TOML in it, never YAML.",
        moves: vec![
            Move {
                thinking: "The columns are in src/report.awk; the cases show the units. The user \
                           insists on TOML.",
                text: "Reading the report and the cases.",
                actions: vec![read("src/report.awk"), read("tests/cases.tsv")],
            },
            Move {
                text: "Writing the manual.",
                actions: vec![Action::Write {
                    path: "docs/manual.md".to_owned(),
                    content: manual(scale),
                }],
                ..Move::default()
            },
            Move {
                thinking: "Check the columns once more against the program, and the manual as it \
                           is on disk.",
                actions: vec![read("src/report.awk"), read("docs/manual.md")],
                ..Move::default()
            },
            say("`docs/manual.md` is written. It speaks of TOML only."),
        ],
    }
}

/// A long log with errors in its middle, a missing file and an image.
fn import() -> Turn {
    Turn {
        prompt: "Replay the nightly import and tell me which batches were rejected. Have a look \
                 at assets/logo.png too: is it still the old one?",
        moves: vec![
            Move {
                thinking: "The replay ends with an error when there were rejections; that is \
                           expected here.",
                actions: vec![shell("sh tools/import.sh", "Replay the import")],
                ..Move::default()
            },
            Move {
                text: "Two batches were rejected. Now the log around them and the logo.",
                actions: vec![
                    shell("cat logs/import.log", "Print the log"),
                    read("assets/logo.png"),
                    read("docs/branding.md"),
                ],
                ..Move::default()
            },
            Move {
                thinking: "There is no branding page, so whether the logo is old cannot be known \
                           from here; say so.",
                text: "Both rejected batches name the unknown country `XQ`. The logo is a square \
                       gradient; there is no `docs/branding.md` to compare it with.",
                actions: Vec::new(),
            },
        ],
    }
}

fn delegate() -> Turn {
    Turn {
        prompt: "Let a helper count the test cases of each country.",
        moves: vec![
            Move {
                thinking: "A small task that needs none of this conversation.",
                text: "Handing that over.",
                actions: vec![Action::Delegate {
                    task: "Count cases by country".to_owned(),
                    prompt: format!(
                        "{COUNT_MARK} Count the lines of tests/cases.tsv by their first column. \
                         Report the counts only."
                    ),
                    instead: "cut -f 1 tests/cases.tsv | sort | uniq -c".to_owned(),
                }],
            },
            say("Every country has the same number of cases."),
        ],
    }
}

fn count() -> [Move; 2] {
    let command = "cut -f 1 tests/cases.tsv | sort | uniq -c";
    [
        Move { actions: vec![shell(command, "Count by country")], ..Move::default() },
        say("Every country has the same number of cases."),
    ]
}

fn recall() -> Turn {
    Turn {
        prompt: "Remind me: which rate did you change, and which format is the configuration in?",
        moves: vec![Move {
            thinking: "Both were settled above: Hungary, and TOML.",
            text: "Hungary, from 25 % to 27 %. The configuration is TOML.",
            actions: Vec::new(),
        }],
    }
}
